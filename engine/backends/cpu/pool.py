"""The native part of the runtime, as LLVM IR text: a thread pool, next to the overlap check.

One job is in the pool at a time. `state` packs everything that decides who may work on it::

    bits 32..63   number of the job
    bit  31       open: threads may join
    bits 16..30   threads that may still join
    bits 0..15    threads that have joined and not left

A launch writes the job, opens it, runs chunks itself until none is left, closes the job and waits
until all who joined have left. A worker joins by one compare-and-swap on `state` as a whole, so
that it can never join a job that has been closed, however late it wakes up. Chunks are handed out
by one counter, so a launch never waits for a thread that did not join. A launch that finds the
pool busy (one from a second Python thread, or from a callback of a launch) runs all its chunks
itself.

A task receives the number of the thread it runs on: 0 for the launch, then 1 and so on in the order
in which workers join. In one launch no two threads have the same number.

Workers wait for the next job by spinning for some microseconds, then on a semaphore. A sleeper
announces itself in `sleepers` before it looks at `state` for the last time, and a launch looks at
`sleepers` after it has opened the job; both sequentially consistent, so that one of them sees the
other. The thread that decreases `sleepers` decides: a launch that does posts the semaphore once,
and a worker that does goes on without it. So there are never more posts than waits, and no one
holds a lock that others need. `waiting` and `left` are the same for a launch that waits for
workers.

A launch wakes at most two sleepers, and each worker that joins at most two more, so that no thread
has to wake all. Waking costs more than a short job: a launch does it if there are many chunks (then
they are longer than the shortest), or if `history` says that the chunks of this task take long.
Workers that spin join without it.

Where other programs use the other processors, the system may run a worker on that of the launch. A
worker without work that finds itself there sleeps at once, since its spin would keep the launch
from going on; and a launch that waits for a worker yields its processor now and then.

Threads are created by the first launch that needs them, and after a fork by the child's first.
"""

from __future__ import annotations

import time
from typing import Final

from ..kernarg import abi
from .overlap import ALONE, OVERLAP
from .waiting import ANYWHERE, DISPATCH, LINUX, POSIX

__all__ = ["module_text"]

_SPINS: Final = 2000
"""Looks at `state` before a worker sleeps."""
_WAITS: Final = 512
"""Looks at `state` of a launch that waits for workers, before it yields its processor."""
_YIELDS: Final = 128
"""Looks that each yield it, after those and before it sleeps."""
_WORTHY_NS: Final = 20_000
"""Shorter jobs do not wake sleepers."""
_MANY: Final = 4
"""Times the number of threads: with as many chunks, a job is not short."""
_TASKS: Final = 64
"""Entries of the history."""

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
@job.wakes = internal global i32 0, align 4
@workers = internal global i64 0, align 8
@ready = internal global i32 0, align 4
@launched.on = internal global i32 -1, align 4
@wake = internal global [128 x i8] zeroinitializer, align 64
@left = internal global [128 x i8] zeroinitializer, align 64
@history = internal global [{tasks} x {{ ptr, i64 }}] zeroinitializer, align 64

declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_detach(ptr)
declare i32 @pthread_sigmask(i32, ptr, ptr)
declare i32 @sched_yield()
declare i32 @clock_gettime(i32, ptr)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1 immarg)
declare i64 @llvm.smin.i64(i64, i64)
{pause_declare}

{semaphores}
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

define internal i64 @now() nounwind {{
  %at = alloca {{ i64, i64 }}, align 8
  %bad = call i32 @clock_gettime(i32 {clock}, ptr %at)
  %seconds = load i64, ptr %at, align 8
  %fraction.at = getelementptr inbounds i8, ptr %at, i64 8
  %fraction = load i64, ptr %fraction.at, align 8
  %scaled = mul i64 %seconds, 1000000000
  %ns = add i64 %scaled, %fraction
  ret i64 %ns
}}

; Create threads until there are `wanted`. Only the owner of `busy` calls this.
define internal void @start(i64 %wanted) nounwind noinline {{
entry:
  %thread = alloca i64, align 8
  %ready = load i32, ptr @ready, align 4
  %first = icmp eq i32 %ready, 0
  br i1 %first, label %prepare, label %head
prepare:
  call void @semaphore(ptr @wake)
  call void @semaphore(ptr @left)
  store i32 1, ptr @ready, align 4
  br label %head
head:
  %n = load i64, ptr @workers, align 8
  %more = icmp slt i64 %n, %wanted
  br i1 %more, label %create, label %done
create:
  %bad = call i32 @pthread_create(ptr %thread, ptr null, ptr @worker, ptr null)
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

; Decrease `number` by one, unless it is 0.
define internal i1 @claim(ptr %number) nounwind {{
entry:
  %first = load atomic i32, ptr %number seq_cst, align 4
  br label %head
head:
  %seen = phi i32 [ %first, %entry ], [ %other, %some ]
  %none = icmp eq i32 %seen, 0
  br i1 %none, label %done, label %some
some:
  %less = sub i32 %seen, 1
  %pair = cmpxchg ptr %number, i32 %seen, i32 %less seq_cst seq_cst, align 4
  %other = extractvalue {{ i32, i1 }} %pair, 0
  %in = extractvalue {{ i32, i1 }} %pair, 1
  br i1 %in, label %done, label %head
done:
  %claimed = phi i1 [ false, %head ], [ true, %some ]
  ret i1 %claimed
}}

; Wake two sleepers, or fewer if there are not as many or fewer are `wanted`.
define internal void @rouse(i64 %wanted) nounwind {{
entry:
  %most = call i64 @llvm.smin.i64(i64 %wanted, i64 2)
  br label %head
head:
  %n = phi i64 [ 0, %entry ], [ %n.next, %post ]
  %more = icmp slt i64 %n, %most
  br i1 %more, label %try, label %done
try:
  %claimed = call i1 @claim(ptr @sleepers)
  br i1 %claimed, label %post, label %done
post:
  call void @post(ptr @wake)
  %n.next = add i64 %n, 1
  br label %head
done:
  ret void
}}

; Take chunks of the open job until `most` are done, none is left or an assertion has failed. How
; many were run.
define internal i64 @take(ptr %kernarg, ptr %task, i64 %end, i32 %thread, i64 %most) nounwind {{
entry:
  br label %head
head:
  %ran = phi i64 [ 0, %entry ], [ %ran.next, %run ]
  %enough = icmp eq i64 %ran, %most
  br i1 %enough, label %done, label %next.chunk
next.chunk:
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
  %ran.next = add i64 %ran, 1
  br label %head
done:
  ret i64 %ran
}}

define internal ptr @worker(ptr %argument) nounwind {{
entry:
  %signals = alloca [16 x i64], align 8
  call void @llvm.memset.p0.i64(ptr %signals, i8 -1, i64 128, i1 false)
  ; Signals are for the threads of Python.
  %masked = call i32 @pthread_sigmask(i32 {sig_block}, ptr %signals, ptr null)
  br label %look
look:
  %last = phi i64 [ 0, %entry ], [ %last, %more ], [ %last, %up ], [ %last, %join ], [ %job, %out ]
  %spins = phi i32 [ 0, %entry ], [ %next, %more ], [ {spins}, %up ], [ 0, %join ], [ 0, %out ]
  %seen = load atomic i64, ptr @state acquire, align 8
  %seen.job = lshr i64 %seen, 32
  %seen.new = icmp ne i64 %seen.job, %last
  %seen.low = trunc i64 %seen to i32
  %seen.room = lshr i32 %seen.low, 16
  %seen.open = icmp ugt i32 %seen.room, 32768
  %seen.ok = and i1 %seen.new, %seen.open
  br i1 %seen.ok, label %join, label %spin
spin:
  %tired = icmp uge i32 %spins, {spins}
  br i1 %tired, label %doze, label %rest
rest:
  {pause}
  %next = add i32 %spins, 1
  %few = and i32 %next, 31
  %due = icmp eq i32 %few, 0
  br i1 %due, label %where, label %more
where:
  %in.the.way = call i1 @next_to_launch()
  br i1 %in.the.way, label %doze, label %more
more:
  br label %look
doze:
  %s.in = atomicrmw add ptr @sleepers, i32 1 seq_cst, align 4
  %now = load atomic i64, ptr @state seq_cst, align 8
  %now.job = lshr i64 %now, 32
  %now.new = icmp ne i64 %now.job, %last
  %now.low = trunc i64 %now to i32
  %now.room = lshr i32 %now.low, 16
  %now.open = icmp ugt i32 %now.room, 32768
  %now.ok = and i1 %now.new, %now.open
  br i1 %now.ok, label %retract, label %sleep
retract:
  %alone = call i1 @claim(ptr @sleepers)
  br i1 %alone, label %up, label %sleep
sleep:
  call void @wait(ptr @wake)
  br label %up
up:
  br label %look
join:
  %less = sub i64 %seen, 65535  ; one who may join less, one more who has
  %pair = cmpxchg ptr @state, i64 %seen, i64 %less seq_cst seq_cst, align 8
  %in = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %in, label %joined, label %look
joined:
  %job = lshr i64 %seen, 32
  %helpers = load i64, ptr @job.helpers, align 8
  %kernarg = load ptr, ptr @job.kernarg, align 8
  %task = load ptr, ptr @job.task, align 8
  %end = load i64, ptr @job.end, align 8
  %room = and i32 %seen.room, 32767
  %others = sub i32 %room, 1
  %room64 = zext i32 %room to i64
  %before = sub i64 %helpers, %room64
  %before32 = trunc i64 %before to i32
  %thread = add i32 %before32, 1
  %wakes = load atomic i32, ptr @job.wakes monotonic, align 4
  %quiet = icmp eq i32 %wakes, 0
  br i1 %quiet, label %work, label %pass.on
pass.on:
  %others64 = zext i32 %others to i64
  %taken = load atomic i64, ptr @next monotonic, align 8
  %open = sub i64 %end, %taken
  %useful = call i64 @llvm.smin.i64(i64 %others64, i64 %open)
  call void @rouse(i64 %useful)
  br label %work
work:
  %ran = call i64 @take(ptr %kernarg, ptr %task, i64 %end, i32 %thread, i64 -1)
  %old = atomicrmw sub ptr @state, i64 1 seq_cst, align 8
  %count = and i64 %old, 65535
  %empty = icmp eq i64 %count, 1
  br i1 %empty, label %last.out, label %out
last.out:
  %awaited = call i1 @claim(ptr @waiting)
  br i1 %awaited, label %notify, label %out
notify:
  call void @post(ptr @left)
  br label %out
out:
  br label %look
}}

; Wait until all who joined the closed job have left.
define internal void @join.all() nounwind {{
entry:
  br label %look
look:
  %spins = phi i32 [ 0, %entry ], [ %spins.next, %more ], [ 0, %again ]
  %now = load atomic i64, ptr @state acquire, align 8
  %inside = and i64 %now, 65535
  %empty = icmp eq i64 %inside, 0
  br i1 %empty, label %done, label %spin
spin:
  %spins.next = add i32 %spins, 1
  %near = icmp ult i32 %spins, {waits}
  br i1 %near, label %rest, label %far
rest:
  {pause}
  br label %more
far:
  %tired = icmp ugt i32 %spins, {yields}
  br i1 %tired, label %doze, label %yield
yield:
  %yielded = call i32 @sched_yield()
  br label %more
more:
  br label %look
doze:
  store atomic i32 1, ptr @waiting seq_cst, align 4
  %still = load atomic i64, ptr @state seq_cst, align 8
  %still.in = and i64 %still, 65535
  %gone = icmp eq i64 %still.in, 0
  br i1 %gone, label %retract, label %sleep
retract:
  %alone = call i1 @claim(ptr @waiting)
  br i1 %alone, label %done, label %sleep
sleep:
  call void @wait(ptr @left)
  ; Not always the end: a worker of an earlier job may have come late to its look at `waiting`.
  br label %again
again:
  br label %look
done:
  ret void
}}

; Run task(kernarg, c, thread) for begin <= c < end, on the pool if there is more than one chunk.
define void @qd_parallel(ptr %kernarg, ptr %task, i32 %begin, i32 %end) nounwind {{
entry:
  %begin64 = sext i32 %begin to i64
  %end64 = sext i32 %end to i64
  %n = sub i64 %end64, %begin64
  %threads.at = getelementptr inbounds i8, ptr %kernarg, i64 {threads}
  %threads = load i64, ptr %threads.at, align 8
  %most = call i64 @llvm.smin.i64(i64 %threads, i64 32767)
  %width = call i64 @llvm.smin.i64(i64 %n, i64 %most)
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
  br i1 %few, label %grow, label %judge
grow:
  call void @start(i64 %helpers)
  br label %judge
judge:
  ; Long: many chunks, a task that is not in the history, or one whose chunks took long.
  %address = ptrtoint ptr %task to i64
  %mixed = lshr i64 %address, 4
  %entry.of = and i64 %mixed, {last_task}
  %row = getelementptr inbounds [{tasks} x {{ ptr, i64 }}], ptr @history, i64 0, i64 %entry.of
  %row.task = load ptr, ptr %row, align 8
  %row.ns = getelementptr inbounds i8, ptr %row, i64 8
  %known.ns = load i64, ptr %row.ns, align 8
  %known = icmp eq ptr %row.task, %task
  %expected = mul i64 %known.ns, %n
  %brief = icmp slt i64 %expected, {worthy}
  %known.brief = and i1 %known, %brief
  %bulk = mul i64 %most, {many}
  %small = icmp slt i64 %n, %bulk
  %short = and i1 %known.brief, %small
  %wakes = select i1 %short, i32 0, i32 1
  store ptr %kernarg, ptr @job.kernarg, align 8
  store ptr %task, ptr @job.task, align 8
  store i64 %end64, ptr @job.end, align 8
  store i64 %helpers, ptr @job.helpers, align 8
  call void @note_launch()
  store atomic i32 %wakes, ptr @job.wakes monotonic, align 4
  store atomic i64 %begin64, ptr @next monotonic, align 8
  %old = load atomic i64, ptr @state monotonic, align 8
  %number = lshr i64 %old, 32
  %number.next = add i64 %number, 1
  %shifted = shl i64 %number.next, 32
  %room = shl i64 %helpers, 16
  %free = or i64 %room, 2147483648
  %opened = or i64 %shifted, %free
  store atomic i64 %opened, ptr @state seq_cst, align 8
  br i1 %short, label %first, label %wake.all
wake.all:
  call void @rouse(i64 %helpers)
  %began.all = call i64 @now()
  br label %rest
first:
  %began.first = call i64 @now()
  %ran.first = call i64 @take(ptr %kernarg, ptr %task, i64 %end64, i32 0, i64 1)
  %first.at = call i64 @now()
  %first.ns = sub i64 %first.at, %began.first
  %taken = load atomic i64, ptr @next monotonic, align 8
  %left.over = sub i64 %end64, %taken
  %left.ns = mul i64 %left.over, %first.ns
  %mistaken = icmp sgt i64 %left.ns, {worthy}
  br i1 %mistaken, label %wake.late, label %rest
wake.late:
  store atomic i32 1, ptr @job.wakes monotonic, align 4
  call void @rouse(i64 %left.over)
  br label %rest
rest:
  %began = phi i64 [ %began.all, %wake.all ], [ %began.first, %first ], [ %began.first, %wake.late ]
  %ran.before = phi i64 [ 0, %wake.all ], [ %ran.first, %first ], [ %ran.first, %wake.late ]
  %ran.rest = call i64 @take(ptr %kernarg, ptr %task, i64 %end64, i32 0, i64 -1)
  %closed = atomicrmw and ptr @state, i64 -2147483649 seq_cst, align 8
  %ended = call i64 @now()
  %ran = add i64 %ran.before, %ran.rest
  %idle = icmp eq i64 %ran, 0
  br i1 %idle, label %wait, label %record
record:
  ; At most twice what was known, since other programs may have run in between.
  %took = sub i64 %ended, %began
  %chunk.ns = sdiv i64 %took, %ran
  %twice = shl i64 %known.ns, 1
  %limit = add i64 %twice, 100
  %damped = call i64 @llvm.smin.i64(i64 %chunk.ns, i64 %limit)
  %kept.ns = select i1 %known, i64 %damped, i64 %chunk.ns
  store ptr %task, ptr %row, align 8
  store i64 %kept.ns, ptr %row.ns, align 8
  br label %wait
wait:
  call void @join.all()
  store atomic i32 0, ptr @busy release, align 4
  ret void
alone:
  call void @qd_alone(ptr %kernarg, ptr %task, i32 %begin, i32 %end)
  ret void
}}
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
        return OVERLAP
    declare, pause = _PAUSES.get(machine, ("", 'fence syncscope("singlethread") seq_cst'))
    darwin, linux = system == "Darwin", system == "Linux"
    pool = _POOL.format(
        pause_declare=declare, pause=pause,
        semaphores=(DISPATCH if darwin else POSIX) + (LINUX if linux else ANYWHERE),
        spins=_SPINS, waits=_WAITS, yields=_WAITS + _YIELDS, worthy=_WORTHY_NS, many=_MANY,
        tasks=_TASKS, last_task=_TASKS - 1, threads=abi.THREADS, sig_block=1 if darwin else 0,
        clock=time.CLOCK_MONOTONIC,
    )  # fmt: skip
    return OVERLAP + ALONE + "\n" + pool
