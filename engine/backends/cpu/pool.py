"""The native part of the runtime, as LLVM IR text: a thread pool and the overlap check.

One job is in the pool at a time. `state` packs everything that decides who may work on it::

    bits 32..63   number of the job
    bit  31       open: threads may join
    bits 0..30    threads that have joined and not left

A launch writes the job, opens it, wakes sleepers, runs chunks itself until none is left, closes
the job and waits until all who joined have left. A worker joins by one compare-and-swap on `state`
as a whole, so that it can never join a job that has been closed, however late it wakes up. Chunks
are handed out by one counter. A launch that finds the pool busy (one from a second Python thread,
or from a callback of a launch) runs all its chunks itself.

A task receives the number of the thread it runs on: 0 for the launch, 1 and so on for workers. In
one launch no two threads that work at the same time have the same number.

Workers wait for the next job by spinning for some microseconds, then on a condition variable. A
sleeper announces itself in `sleepers` before it looks at `state` for the last time, and a launch
looks at `sleepers` after it has opened the job; both sequentially consistent, so that one of them
sees the other.

Threads are created by the first launch that needs them, and after a fork by the child's first.
"""

from __future__ import annotations

from typing import Final

from ..kernarg import abi

__all__ = ["module_text"]

_SPINS: Final = 2000

_OVERLAP: Final = """\
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

_POOL: Final = """\
@state = internal global i64 0, align 128
@next = internal global i64 0, align 128
@busy = internal global i32 0, align 128
@sleepers = internal global i32 0, align 128
@waiting = internal global i32 0, align 4
@job.task = internal global ptr null, align 8
@job.kernarg = internal global ptr null, align 8
@job.end = internal global i64 0, align 8
@job.helpers = internal global i64 0, align 8
@workers = internal global i64 0, align 8
@ready = internal global i32 0, align 4
@mutex = internal global [128 x i8] zeroinitializer, align 64
@wake = internal global [128 x i8] zeroinitializer, align 64
@left = internal global [128 x i8] zeroinitializer, align 64

declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_detach(ptr)
declare i32 @pthread_sigmask(i32, ptr, ptr)
declare i32 @pthread_mutex_init(ptr, ptr)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_init(ptr, ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_broadcast(ptr)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1 immarg)
{pause_declare}

; After a fork: the child has none of the threads, and what they left half done does not count.
define void @qd_pool_forget() nounwind {{
  store atomic i64 0, ptr @state seq_cst, align 8
  store atomic i32 0, ptr @busy seq_cst, align 4
  store atomic i32 0, ptr @sleepers seq_cst, align 4
  store atomic i32 0, ptr @waiting seq_cst, align 4
  store i64 0, ptr @workers, align 8
  store i32 0, ptr @ready, align 4
  ret void
}}

; How many threads the pool has created.
define i64 @qd_pool_workers() nounwind {{
  %n = load i64, ptr @workers, align 8
  ret i64 %n
}}

; Create threads until there are `wanted`. Only the owner of `busy` calls this.
define internal void @start(i64 %wanted) nounwind noinline {{
entry:
  %thread = alloca i64, align 8
  %ready = load i32, ptr @ready, align 4
  %first = icmp eq i32 %ready, 0
  br i1 %first, label %prepare, label %head
prepare:
  %m = call i32 @pthread_mutex_init(ptr @mutex, ptr null)
  %w = call i32 @pthread_cond_init(ptr @wake, ptr null)
  %l = call i32 @pthread_cond_init(ptr @left, ptr null)
  store i32 1, ptr @ready, align 4
  br label %head
head:
  %n = load i64, ptr @workers, align 8
  %more = icmp slt i64 %n, %wanted
  br i1 %more, label %create, label %done
create:
  %number = inttoptr i64 %n to ptr
  %bad = call i32 @pthread_create(ptr %thread, ptr null, ptr @worker, ptr %number)
  %n.next = add i64 %n, 1
  store i64 %n.next, ptr @workers, align 8
  %failed = icmp ne i32 %bad, 0
  br i1 %failed, label %head, label %detach
detach:
  %id = load ptr, ptr %thread, align 8
  %d = call i32 @pthread_detach(ptr %id)
  br label %head
done:
  ret void
}}

; Take chunks of the open job until none is left or an assertion has failed.
define internal void @take(ptr %kernarg, ptr %task, i64 %end, i32 %thread) nounwind {{
entry:
  br label %head
head:
  %chunk = atomicrmw add ptr @next, i64 1 monotonic, align 8
  %some = icmp slt i64 %chunk, %end
  br i1 %some, label %check, label %done
check:
  %error = load atomic i64, ptr %kernarg monotonic, align 8
  %fine = icmp eq i64 %error, 0
  br i1 %fine, label %run, label %done
run:
  %number = trunc i64 %chunk to i32
  call void %task(ptr %kernarg, i32 %number, i32 %thread)
  br label %head
done:
  ret void
}}

define internal ptr @worker(ptr %argument) nounwind {{
entry:
  %signals = alloca [16 x i64], align 8
  call void @llvm.memset.p0.i64(ptr %signals, i8 -1, i64 128, i1 false)
  ; Signals are for the threads of Python.
  %masked = call i32 @pthread_sigmask(i32 {sig_block}, ptr %signals, ptr null)
  %me = ptrtoint ptr %argument to i64
  br label %look
look:
  %last = phi i64 [ 0, %entry ], [ %last, %spin.next ], [ %last, %join ], [ %job, %leave ]
  %spins = phi i32 [ 0, %entry ], [ %spins.next, %spin.next ], [ 0, %join ], [ 0, %leave ]
  %seen = load atomic i64, ptr @state acquire, align 8
  %seen.job = lshr i64 %seen, 32
  %seen.new = icmp ne i64 %seen.job, %last
  %seen.bit = and i64 %seen, 2147483648
  %seen.open = icmp ne i64 %seen.bit, 0
  %seen.ok = and i1 %seen.new, %seen.open
  br i1 %seen.ok, label %join, label %spin
spin:
  %tired = icmp ugt i32 %spins, {spins}
  br i1 %tired, label %doze, label %spin.next
spin.next:
  {pause}
  %spins.next = add i32 %spins, 1
  br label %look
doze:
  %locked = call i32 @pthread_mutex_lock(ptr @mutex)
  %s.in = atomicrmw add ptr @sleepers, i32 1 seq_cst, align 4
  br label %dozing
dozing:
  %now = load atomic i64, ptr @state seq_cst, align 8
  %now.job = lshr i64 %now, 32
  %now.new = icmp ne i64 %now.job, %last
  %now.bit = and i64 %now, 2147483648
  %now.open = icmp ne i64 %now.bit, 0
  %now.ok = and i1 %now.new, %now.open
  br i1 %now.ok, label %awake, label %sleep
sleep:
  %slept = call i32 @pthread_cond_wait(ptr @wake, ptr @mutex)
  br label %dozing
awake:
  %s.out = atomicrmw sub ptr @sleepers, i32 1 seq_cst, align 4
  %unlocked = call i32 @pthread_mutex_unlock(ptr @mutex)
  br label %join
join:
  %old = phi i64 [ %seen, %look ], [ %now, %awake ]
  %joined = add i64 %old, 1
  %pair = cmpxchg ptr @state, i64 %old, i64 %joined seq_cst seq_cst, align 8
  %in = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %in, label %joined.job, label %look
joined.job:
  %job = lshr i64 %old, 32
  %helpers = load i64, ptr @job.helpers, align 8
  %wanted = icmp slt i64 %me, %helpers
  br i1 %wanted, label %work, label %leave.now
work:
  %kernarg = load ptr, ptr @job.kernarg, align 8
  %task = load ptr, ptr @job.task, align 8
  %end = load i64, ptr @job.end, align 8
  %me32 = trunc i64 %me to i32
  %thread = add i32 %me32, 1
  call void @take(ptr %kernarg, ptr %task, i64 %end, i32 %thread)
  br label %leave.now
leave.now:
  %before = atomicrmw sub ptr @state, i64 1 seq_cst, align 8
  %count = and i64 %before, 2147483647
  %alone = icmp eq i64 %count, 1
  br i1 %alone, label %last.out, label %leave
last.out:
  %waits = load atomic i32, ptr @waiting seq_cst, align 4
  %awaited = icmp ne i32 %waits, 0
  br i1 %awaited, label %notify, label %leave
notify:
  %n.lock = call i32 @pthread_mutex_lock(ptr @mutex)
  %n.wake = call i32 @pthread_cond_broadcast(ptr @left)
  %n.unlock = call i32 @pthread_mutex_unlock(ptr @mutex)
  br label %leave
leave:
  br label %look
}}

; Run task(kernarg, c, thread) for begin <= c < end, on the pool if there is more than one chunk.
define void @qd_parallel(ptr %kernarg, ptr %task, i32 %begin, i32 %end) nounwind {{
entry:
  %begin64 = sext i32 %begin to i64
  %end64 = sext i32 %end to i64
  %n = sub i64 %end64, %begin64
  %threads.at = getelementptr inbounds i8, ptr %kernarg, i64 {threads}
  %threads = load i64, ptr %threads.at, align 8
  %width = call i64 @llvm.smin.i64(i64 %n, i64 %threads)
  %many = icmp sgt i64 %width, 1
  br i1 %many, label %claim, label %alone
claim:
  %pair = cmpxchg ptr @busy, i32 0, i32 1 acquire monotonic, align 4
  %mine = extractvalue {{ i32, i1 }} %pair, 1
  br i1 %mine, label %open, label %alone
open:
  %helpers = sub i64 %width, 1
  %have = load i64, ptr @workers, align 8
  %few = icmp slt i64 %have, %helpers
  br i1 %few, label %grow, label %publish
grow:
  call void @start(i64 %helpers)
  br label %publish
publish:
  store ptr %kernarg, ptr @job.kernarg, align 8
  store ptr %task, ptr @job.task, align 8
  store i64 %end64, ptr @job.end, align 8
  store i64 %helpers, ptr @job.helpers, align 8
  store atomic i64 %begin64, ptr @next monotonic, align 8
  %old = load atomic i64, ptr @state monotonic, align 8
  %number = lshr i64 %old, 32
  %number.next = add i64 %number, 1
  %shifted = shl i64 %number.next, 32
  %opened = or i64 %shifted, 2147483648
  store atomic i64 %opened, ptr @state seq_cst, align 8
  %sleeping = load atomic i32, ptr @sleepers seq_cst, align 4
  %asleep = icmp ne i32 %sleeping, 0
  br i1 %asleep, label %rouse, label %work
rouse:
  %r.lock = call i32 @pthread_mutex_lock(ptr @mutex)
  %r.wake = call i32 @pthread_cond_broadcast(ptr @wake)
  %r.unlock = call i32 @pthread_mutex_unlock(ptr @mutex)
  br label %work
work:
  call void @take(ptr %kernarg, ptr %task, i64 %end64, i32 0)
  %closed = atomicrmw and ptr @state, i64 -2147483649 seq_cst, align 8
  br label %wait
wait:
  %spins = phi i32 [ 0, %work ], [ %spins.next, %wait.more ]
  %now = load atomic i64, ptr @state acquire, align 8
  %inside = and i64 %now, 2147483647
  %empty = icmp eq i64 %inside, 0
  br i1 %empty, label %free, label %wait.spin
wait.spin:
  %tired = icmp ugt i32 %spins, {spins}
  br i1 %tired, label %doze, label %wait.more
wait.more:
  {pause}
  %spins.next = add i32 %spins, 1
  br label %wait
doze:
  store atomic i32 1, ptr @waiting seq_cst, align 4
  %d.lock = call i32 @pthread_mutex_lock(ptr @mutex)
  br label %dozing
dozing:
  %still = load atomic i64, ptr @state seq_cst, align 8
  %still.in = and i64 %still, 2147483647
  %gone = icmp eq i64 %still.in, 0
  br i1 %gone, label %awake, label %sleep
sleep:
  %slept = call i32 @pthread_cond_wait(ptr @left, ptr @mutex)
  br label %dozing
awake:
  %d.unlock = call i32 @pthread_mutex_unlock(ptr @mutex)
  store atomic i32 0, ptr @waiting seq_cst, align 4
  br label %free
free:
  store atomic i32 0, ptr @busy release, align 4
  ret void
alone:
  br label %head
head:
  %c = phi i32 [ %begin, %alone ], [ %c.next, %run ]
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
}}

declare i64 @llvm.smin.i64(i64, i64)
"""

_PAUSES: Final = {
    "x64": ("declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()"),
    "arm64": ("declare void @llvm.aarch64.hint(i32)", "call void @llvm.aarch64.hint(i32 1)"),
}


def module_text(machine: str, system: str, threads: bool) -> str:
    """The module for this kind of machine (``x64``, ``arm64``, other) and operating system.

    threads: whether there are POSIX threads; without, the module holds the overlap check alone.
    """
    if not threads:
        return _OVERLAP
    declare, pause = _PAUSES.get(machine, ("", 'fence syncscope("singlethread") seq_cst'))
    pool = _POOL.format(
        pause_declare=declare, pause=pause, spins=_SPINS, threads=abi.THREADS,
        sig_block=1 if system == "Darwin" else 0,
    )  # fmt: skip
    return _OVERLAP + "\n" + pool
