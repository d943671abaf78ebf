"""Functions that threads of the pool wait with, by system, as LLVM IR text.

`semaphore` makes one of 128 bytes of memory, which are aligned to 64; `post` and `wait` use it.
`note_launch` remembers on which processor a launch runs, and `next_to_launch` says whether the
calling thread runs on that one.
"""

from __future__ import annotations

from typing import Final

__all__ = ["ANYWHERE", "DISPATCH", "LINUX", "POSIX"]

POSIX: Final = """\
declare i32 @sem_init(ptr, i32, i32)
declare i32 @sem_post(ptr)
declare i32 @sem_wait(ptr)

define internal void @semaphore(ptr %s) nounwind {
  %bad = call i32 @sem_init(ptr %s, i32 0, i32 0)
  ret void
}
define internal void @post(ptr %s) nounwind {
  %bad = call i32 @sem_post(ptr %s)
  ret void
}
define internal void @wait(ptr %s) nounwind {
entry:
  br label %again
again:
  %bad = call i32 @sem_wait(ptr %s)
  %interrupted = icmp ne i32 %bad, 0
  br i1 %interrupted, label %again, label %done
done:
  ret void
}
"""

LINUX: Final = """\
declare i32 @sched_getcpu()

define internal void @note_launch() nounwind {
  %cpu = call i32 @sched_getcpu()
  store atomic i32 %cpu, ptr @launched.on monotonic, align 4
  ret void
}
define internal i1 @next_to_launch() nounwind {
  %cpu = call i32 @sched_getcpu()
  %launch = load atomic i32, ptr @launched.on monotonic, align 4
  %same = icmp eq i32 %cpu, %launch
  ret i1 %same
}
"""

# Without a number of the processor, the system decides who needs it.
ANYWHERE: Final = """\
define internal void @note_launch() nounwind {
  ret void
}
define internal i1 @next_to_launch() nounwind {
  %yielded = call i32 @sched_yield()
  ret i1 false
}
"""

# macOS has unnamed POSIX semaphores in its headers only: `sem_init` fails.
DISPATCH: Final = """\
declare ptr @dispatch_semaphore_create(i64)
declare i64 @dispatch_semaphore_signal(ptr)
declare i64 @dispatch_semaphore_wait(ptr, i64)

define internal void @semaphore(ptr %s) nounwind {
  %made = call ptr @dispatch_semaphore_create(i64 0)
  store ptr %made, ptr %s, align 8
  ret void
}
define internal void @post(ptr %s) nounwind {
  %made = load ptr, ptr %s, align 8
  %woken = call i64 @dispatch_semaphore_signal(ptr %made)
  ret void
}
define internal void @wait(ptr %s) nounwind {
  %made = load ptr, ptr %s, align 8
  %late = call i64 @dispatch_semaphore_wait(ptr %made, i64 -1)
  ret void
}
"""
