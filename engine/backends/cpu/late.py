"""The functions that all first-tier code shares, as LLVM IR text; see `llvm.deadline`.

``qd_late`` is called where a function has used up its fuel; ``qd_first`` launches a kernel. It also
copies what the kernel may write, and restores it if the launch is late. In Python another thread
could run, and write, between the copy and the launch, or between its end and the restoring.
``plan`` has the deadline and the number of spans, then of each its address, the place of the copy
and the size.

``qd_keep`` is what such a kernel prints with: a launch that is late must not have printed anything.
It appends the number of the site and the values to a buffer, which begins with a header of 8-byte
words: the bytes in use, those that there are, the argument buffer, and the addresses of the number
of bytes of each site's values. A launch with more to print counts as late, also if an assertion has
failed: full code prints all, and fails again.
"""

from __future__ import annotations

from typing import Final

from ..kernarg.abi import LATE
from .overlap import ALONE, OVERLAP

__all__ = ["module_text"]

_FUEL: Final = 20_000
"""Operations between two looks at the clock: 20 to 50 us of first-tier code."""

_POOL: Final = """
@parallel = internal global i64 0, align 8

; Have launches from now on use a pool.
define void @qd_use_pool(ptr %parallel) nounwind {
  store atomic ptr %parallel, ptr @parallel monotonic, align 8
  ret void
}

define void @qd_parallel(ptr %kernarg, ptr %task, i32 %begin, i32 %end) nounwind {
  %pool = load atomic ptr, ptr @parallel monotonic, align 8
  %none = icmp eq ptr %pool, null
  br i1 %none, label %alone, label %shared
alone:
  call void @qd_alone(ptr %kernarg, ptr %task, i32 %begin, i32 %end)
  ret void
shared:
  call void %pool(ptr %kernarg, ptr %task, i32 %begin, i32 %end)
  ret void
}
"""
"""Chunks run on the calling thread until `qd_use_pool` is called; argument buffers of that time
keep this function."""

_LIBRARY: Final = """
@qd.deadline = internal global i64 0, align 8

define zeroext i1 @qd_late(ptr %kernarg, ptr %fuel) nounwind {{
  %time = alloca [2 x i64], align 16
  %ignored = call i32 @clock_gettime(i32 {clock}, ptr %time)
  %seconds = load i64, ptr %time, align 8
  %rest.at = getelementptr inbounds i8, ptr %time, i64 8
  %rest = load i64, ptr %rest.at, align 8
  %whole = mul i64 %seconds, 1000000000
  %now = add i64 %whole, %rest
  %deadline = load i64, ptr @qd.deadline, align 8
  %late = icmp sgt i64 %now, %deadline
  br i1 %late, label %stop, label %refuel
stop:
  %noted = cmpxchg ptr %kernarg, i64 0, i64 {late} monotonic monotonic, align 8
  ret i1 true
refuel:
  store i64 {fuel}, ptr %fuel, align 8
  %error = load atomic i64, ptr %kernarg monotonic, align 8
  %ends = icmp eq i64 %error, {late}
  ret i1 %ends
}}

define void @qd_keep(i64 %buffer, i32 %site, ptr %values) nounwind {{
entry:
  %place = alloca i64, align 8
  store i64 %buffer, ptr %place, align 8
  %kept = load ptr, ptr %place, align 8
  %room.at = getelementptr inbounds i8, ptr %kept, i64 8
  %room = load i64, ptr %room.at, align 8
  %kernarg.at = getelementptr inbounds i8, ptr %kept, i64 16
  %kernarg = load ptr, ptr %kernarg.at, align 8
  %sizes.at = getelementptr inbounds i8, ptr %kept, i64 24
  %sizes = load ptr, ptr %sizes.at, align 8
  %number = zext i32 %site to i64
  %size.at = getelementptr inbounds i64, ptr %sizes, i64 %number
  %size = load i64, ptr %size.at, align 8
  %whole = add i64 %size, 8
  %at = atomicrmw add ptr %kept, i64 %whole monotonic, align 8
  %end = add i64 %at, %whole
  %full = icmp sgt i64 %end, %room
  br i1 %full, label %stop, label %keep
stop:
  %before = atomicrmw xchg ptr %kernarg, i64 {late} monotonic, align 8
  ret void
keep:
  %record = getelementptr inbounds i8, ptr %kept, i64 %at
  store i64 %number, ptr %record, align 8
  %data = getelementptr inbounds i8, ptr %record, i64 8
  %ignored = call ptr @memcpy(ptr %data, ptr %values, i64 %size)
  ret void
}}

define i32 @qd_first(ptr %kernel, ptr %kernarg, ptr %plan) nounwind {{
entry:
  %deadline = load i64, ptr %plan, align 8
  %count.at = getelementptr inbounds i8, ptr %plan, i64 8
  %count = load i64, ptr %count.at, align 8
  %spans = getelementptr inbounds i8, ptr %plan, i64 16
  store i64 %deadline, ptr @qd.deadline, align 8
  br label %save
{save}run:
  %code = call i32 %kernel(ptr %kernarg)
  %error = load atomic i64, ptr %kernarg monotonic, align 8
  %late = icmp eq i64 %error, {late}
  br i1 %late, label %restore, label %done
{restore}done:
  ret i32 %code
}}

declare ptr @memcpy(ptr, ptr, i64)
declare i32 @clock_gettime(i32, ptr)
"""


_COPIES: Final = """
{label}:
  %{p} = phi i64 [ 0, %{before} ], [ %{p}.next, %{label}.one ]
  %{p}.more = icmp slt i64 %{p}, %count
  br i1 %{p}.more, label %{label}.one, label %{after}
{label}.one:
  %{p}.next = add i64 %{p}, 1
  %{p}.data.at = getelementptr inbounds [3 x i64], ptr %spans, i64 %{p}
  %{p}.copy.at = getelementptr inbounds i8, ptr %{p}.data.at, i64 8
  %{p}.size.at = getelementptr inbounds i8, ptr %{p}.data.at, i64 16
  %{p}.data = load ptr, ptr %{p}.data.at, align 8
  %{p}.copy = load ptr, ptr %{p}.copy.at, align 8
  %{p}.size = load i64, ptr %{p}.size.at, align 8
  %{p}.ignored = call ptr @memcpy(ptr %{p}.{to}, ptr %{p}.{source}, i64 %{p}.size)
  br label %{label}
""".lstrip()
"""Copies each span, or its copy back."""


def module_text(clock: int) -> str:
    """The module. clock: the number of the system's monotonic clock."""
    save = _COPIES.format(
        label="save", p="s", before="entry", after="run", source="data", to="copy"
    )
    restore = _COPIES.format(
        label="restore", p="r", before="run", after="done", source="copy", to="data"
    )
    library = _LIBRARY.format(clock=clock, late=LATE, fuel=_FUEL, save=save, restore=restore)
    return OVERLAP + ALONE + _POOL + library
