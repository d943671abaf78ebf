"""The native functions that need no threads, as LLVM IR text: the overlap check of a launch, and a
task on one thread."""

from __future__ import annotations

from typing import Final

__all__ = ["ALONE", "OVERLAP"]

OVERLAP: Final = """\
; In place of `qd_overlap`, for arrays that were found to share no memory.
define i32 @qd_apart(ptr %kernarg, ptr %table) nounwind {
  ret i32 0
}

; Whether an array or field that is written shares memory with another, two fields left out.
; `table` is described in `kernel`. A gradient that is not there has the address 0 and no bytes.
define i32 @qd_overlap(ptr %kernarg, ptr %table) nounwind {
entry:
  %n64 = load i64, ptr %table, align 8
  %rows = getelementptr inbounds i8, ptr %table, i64 8
  %low = alloca i64, i64 %n64, align 8
  %high = alloca i64, i64 %n64, align 8
  br label %ranges
ranges:
  %i = phi i64 [ 0, %entry ], [ %i.next, %measured ]
  %i.in = icmp ult i64 %i, %n64
  br i1 %i.in, label %measure, label %pairs
measure:
  %row = getelementptr inbounds [5 x i64], ptr %rows, i64 %i
  %slot64 = load i64, ptr %row, align 8
  %data.at = getelementptr inbounds i8, ptr %kernarg, i64 %slot64
  %data = load i64, ptr %data.at, align 8
  %extents.in = getelementptr inbounds i8, ptr %row, i64 8
  %extents.off64 = load i64, ptr %extents.in, align 8
  %extents = getelementptr inbounds i8, ptr %kernarg, i64 %extents.off64
  %ndim.in = getelementptr inbounds i8, ptr %row, i64 16
  %ndim = load i64, ptr %ndim.in, align 8
  %size.in = getelementptr inbounds i8, ptr %row, i64 24
  %size64 = load i64, ptr %size.in, align 8
  br label %axes
axes:
  %axis = phi i64 [ 0, %measure ], [ %axis.next, %axis.do ]
  %bytes = phi i64 [ %size64, %measure ], [ %bytes.next, %axis.do ]
  %axis.in = icmp slt i64 %axis, %ndim
  br i1 %axis.in, label %axis.do, label %measured
axis.do:
  %extent.at = getelementptr inbounds i64, ptr %extents, i64 %axis
  %extent = load i32, ptr %extent.at, align 8
  %extent64 = zext i32 %extent to i64
  %bytes.next = mul i64 %bytes, %extent64
  %axis.next = add i64 %axis, 1
  br label %axes
measured:
  %absent = icmp eq i64 %data, 0
  %held = select i1 %absent, i64 0, i64 %bytes
  %end = add i64 %data, %held
  %low.at = getelementptr inbounds i64, ptr %low, i64 %i
  %high.at = getelementptr inbounds i64, ptr %high, i64 %i
  store i64 %data, ptr %low.at, align 8
  store i64 %end, ptr %high.at, align 8
  %i.next = add i64 %i, 1
  br label %ranges
pairs:
  %a = phi i64 [ 0, %ranges ], [ %a.next, %next.a ]
  %a.in = icmp ult i64 %a, %n64
  br i1 %a.in, label %one, label %apart
one:
  %a.row = getelementptr inbounds [5 x i64], ptr %rows, i64 %a
  %a.flag = getelementptr inbounds i8, ptr %a.row, i64 32
  %a.flags = load i64, ptr %a.flag, align 8
  %a.written = and i64 %a.flags, 1
  %a.writes = icmp ne i64 %a.written, 0
  br i1 %a.writes, label %others, label %next.a
others:
  %b = phi i64 [ 0, %one ], [ %b.next, %next.b ]
  %b.in = icmp ult i64 %b, %n64
  br i1 %b.in, label %two, label %next.a
two:
  %b.row = getelementptr inbounds [5 x i64], ptr %rows, i64 %b
  %b.flag = getelementptr inbounds i8, ptr %b.row, i64 32
  %b.flags = load i64, ptr %b.flag, align 8
  %flags = and i64 %a.flags, %b.flags
  %field.bit = and i64 %flags, 2
  %fields = icmp ne i64 %field.bit, 0
  %itself = icmp eq i64 %a, %b
  %same = or i1 %itself, %fields
  %a.low.at = getelementptr inbounds i64, ptr %low, i64 %a
  %a.high.at = getelementptr inbounds i64, ptr %high, i64 %a
  %b.low.at = getelementptr inbounds i64, ptr %low, i64 %b
  %b.high.at = getelementptr inbounds i64, ptr %high, i64 %b
  %a.low = load i64, ptr %a.low.at, align 8
  %a.high = load i64, ptr %a.high.at, align 8
  %b.low = load i64, ptr %b.low.at, align 8
  %b.high = load i64, ptr %b.high.at, align 8
  %before = icmp ult i64 %a.low, %b.high
  %after = icmp ult i64 %b.low, %a.high
  %share = and i1 %before, %after
  %differ = xor i1 %same, true
  %a.some = icmp ult i64 %a.low, %a.high
  %b.some = icmp ult i64 %b.low, %b.high
  %some = and i1 %a.some, %b.some
  %real = and i1 %share, %some
  %clash = and i1 %real, %differ
  br i1 %clash, label %overlap, label %next.b
next.b:
  %b.next = add i64 %b, 1
  br label %others
next.a:
  %a.next = add i64 %a, 1
  br label %pairs
overlap:
  ret i32 1
apart:
  ret i32 0
}
"""

ALONE: Final = """
; Run task(kernarg, c, 0) for begin <= c < end.
define void @qd_alone(ptr %kernarg, ptr %task, i32 %begin, i32 %end) nounwind {
entry:
  br label %head
head:
  %c = phi i32 [ %begin, %entry ], [ %c.next, %run ]
  %some = icmp slt i32 %c, %end
  br i1 %some, label %check, label %done
check:
  %error = load i64, ptr %kernarg, align 8
  %fine = icmp eq i64 %error, 0
  br i1 %fine, label %run, label %done
run:
  call void %task(ptr %kernarg, i32 %c, i32 0)
  %c.next = add nsw i32 %c, 1
  br label %head
done:
  ret void
}
"""
