"""The functions that all first-tier code shares, as LLVM IR text; see `llvm.deadline`.

``qd_late`` is called where a function has used up its fuel; ``qd_first`` launches a kernel. It also
copies what the kernel may write, and restores it if the launch is late: ``spans`` has the address,
the place of the copy and the size of each. In Python another thread could run, and write, between
the copy and the launch, or between its end and the restoring.
"""

from __future__ import annotations

from typing import Final

from ..kernarg.abi import LATE

__all__ = ["library"]

_FUEL: Final = 20_000
"""Operations between two looks at the clock: 20 to 50 us of first-tier code."""

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

define i32 @qd_first(
  ptr %kernel, ptr %kernarg, i64 %deadline, ptr %spans, i64 %count
) nounwind {{
entry:
  store i64 %deadline, ptr @qd.deadline, align 8
  br label %save
save:
  %s = phi i64 [ 0, %entry ], [ %s.next, %save.one ]
  %s.more = icmp slt i64 %s, %count
  br i1 %s.more, label %save.one, label %run
save.one:
  %s.next = add i64 %s, 1
  %s.data.at = getelementptr inbounds [3 x ptr], ptr %spans, i64 %s, i64 0
  %s.copy.at = getelementptr inbounds [3 x ptr], ptr %spans, i64 %s, i64 1
  %s.size.at = getelementptr inbounds [3 x i64], ptr %spans, i64 %s, i64 2
  %s.data = load ptr, ptr %s.data.at, align 8
  %s.copy = load ptr, ptr %s.copy.at, align 8
  %s.size = load i64, ptr %s.size.at, align 8
  %s.ignored = call ptr @memcpy(ptr %s.copy, ptr %s.data, i64 %s.size)
  br label %save
run:
  %code = call i32 %kernel(ptr %kernarg)
  %error = load atomic i64, ptr %kernarg monotonic, align 8
  %late = icmp eq i64 %error, {late}
  br i1 %late, label %restore, label %done
restore:
  %r = phi i64 [ 0, %run ], [ %r.next, %restore.one ]
  %r.more = icmp slt i64 %r, %count
  br i1 %r.more, label %restore.one, label %done
restore.one:
  %r.next = add i64 %r, 1
  %r.data.at = getelementptr inbounds [3 x ptr], ptr %spans, i64 %r, i64 0
  %r.copy.at = getelementptr inbounds [3 x ptr], ptr %spans, i64 %r, i64 1
  %r.size.at = getelementptr inbounds [3 x i64], ptr %spans, i64 %r, i64 2
  %r.data = load ptr, ptr %r.data.at, align 8
  %r.copy = load ptr, ptr %r.copy.at, align 8
  %r.size = load i64, ptr %r.size.at, align 8
  %r.ignored = call ptr @memcpy(ptr %r.data, ptr %r.copy, i64 %r.size)
  br label %restore
done:
  ret i32 %code
}}

declare ptr @memcpy(ptr, ptr, i64)
"""


def library(clock: int) -> str:
    """The functions, for a module that declares ``clock_gettime``.

    clock: the number of the system's monotonic clock.
    """
    return _LIBRARY.format(clock=clock, late=LATE, fuel=_FUEL)
