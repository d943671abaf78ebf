"""The threads of a block that wait for each other: a small runtime in LLVM IR.

A kernel with barriers or warp operations runs each thread of a block on a stack of its own. One
operating system thread switches between them: `qdsim_switch` saves the registers that a function
must keep and changes the stack. A thread runs until it has to wait (`qdsim_wait`) or ends, then the
next one runs; when none can run, the waiting ones are matched::

    exchange   every thread named in the mask that has not ended waits with the same mask and kind:
               all of them get the values of all of them
    active     threads of a warp that ask which of them are together: those that wait at the same
               place now
    barrier    every thread of the block that has not ended waits there

If nothing matches, the block is stuck, and `qdsim_grid` says so.

A thread's record, `RECORD` bytes::

    0 stack pointer   8 state   12 mask   16 value   24 number in the block   28 who is present
    32 kind   40 sum of values of a barrier   44 how many met at it   64 values of 32 lanes
"""

from __future__ import annotations

import platform
from functools import cache
from typing import Any

import llvmlite.binding as llvm

RECORD = 320
READY, AT_BARRIER, AT_EXCHANGE, ENDED, AT_ACTIVE = range(5)
STUCK, TRAPPED = 1, 2
"""What `qdsim_grid` returns beside 0."""

SYMBOLS = ("qdsim_me", "qdsim_ctaid", "qdsim_nctaid", "qdsim_ntid", "qdsim_wait", "qdsim_trap",
           "qdsim_grid")  # fmt: skip

# Saves the registers that belong to a caller, and with them the place to go on.
_SWITCH = {
    "x86_64": """\
push rbp; push rbx; push r12; push r13; push r14; push r15; mov qword ptr [rdi], rsp;
mov rsp, rsi; pop r15; pop r14; pop r13; pop r12; pop rbx; pop rbp; ret""",
    "aarch64": """\
sub sp, sp, #176; stp x19, x20, [sp, #0]; stp x21, x22, [sp, #16]; stp x23, x24, [sp, #32];
stp x25, x26, [sp, #48]; stp x27, x28, [sp, #64]; stp x29, x30, [sp, #80]; stp d8, d9, [sp, #96];
stp d10, d11, [sp, #112]; stp d12, d13, [sp, #128]; stp d14, d15, [sp, #144]; mov x9, sp;
str x9, [x0]; mov sp, x1; ldp x19, x20, [sp, #0]; ldp x21, x22, [sp, #16]; ldp x23, x24, [sp, #32];
ldp x25, x26, [sp, #48]; ldp x27, x28, [sp, #64]; ldp x29, x30, [sp, #80]; ldp d8, d9, [sp, #96];
ldp d10, d11, [sp, #112]; ldp d12, d13, [sp, #128]; ldp d14, d15, [sp, #144]; add sp, sp, #176;
ret""",
}
# From the top of a fresh stack: where the first stack pointer is, and where in it the start lies.
_FRESH = {"x86_64": (64, 48), "aarch64": (192, 88)}


def _switch_text() -> str:
    machine = platform.machine().lower()
    if machine not in _SWITCH:
        raise RuntimeError(f"threads of a block cannot be switched on {machine}")
    lines = [".text", "qdsim_switch:"]
    if machine == "x86_64":
        lines.insert(0, ".intel_syntax noprefix")
    lines += [part.strip() for part in _SWITCH[machine].replace("\n", " ").split(";")]
    if machine == "x86_64":
        lines.append(".att_syntax")
    return "".join(f'module asm "{line}"\n' for line in lines)


_RUNTIME = """\
@qdsim_me = global ptr null
@qdsim_ctaid = global i32 0
@qdsim_nctaid = global i32 0
@qdsim_ntid = global i32 0
@scheduler = internal global i64 0
@entry = internal global ptr null
@params = internal global ptr null
@trapped = internal global i32 0
declare void @qdsim_switch(ptr, i64) returns_twice

define void @yield() noinline {
  %me = load ptr, ptr @qdsim_me
  %to = load i64, ptr @scheduler
  call void @qdsim_switch(ptr %me, i64 %to)
  ret void
}

; Wait in this state; the record, in which the answer stands.
define ptr @qdsim_wait(i32 %state, i32 %kind, i32 %mask, i64 %value) noinline {
  %me = load ptr, ptr @qdsim_me
  %p8 = getelementptr i8, ptr %me, i64 8
  store i32 %state, ptr %p8
  %p12 = getelementptr i8, ptr %me, i64 12
  store i32 %mask, ptr %p12
  %p16 = getelementptr i8, ptr %me, i64 16
  store i64 %value, ptr %p16
  %p32 = getelementptr i8, ptr %me, i64 32
  store i32 %kind, ptr %p32
  call void @yield()
  ret ptr %me
}

define void @qdsim_trap() noinline {
  store i32 1, ptr @trapped
  %me = load ptr, ptr @qdsim_me
  %p8 = getelementptr i8, ptr %me, i64 8
  store i32 3, ptr %p8
  call void @yield()
  unreachable
}

define void @start() noinline {
  %f = load ptr, ptr @entry
  %p = load ptr, ptr @params
  call void %f(ptr %p)
  %me = load ptr, ptr @qdsim_me
  %p8 = getelementptr i8, ptr %me, i64 8
  store i32 3, ptr %p8
  call void @yield()
  unreachable
}

define internal ptr @record(ptr %records, i32 %t) alwaysinline {
  %t64 = zext i32 %t to i64
  %at = mul i64 %t64, RECORD
  %r = getelementptr i8, ptr %records, i64 %at
  ret ptr %r
}

define internal i32 @get(ptr %records, i32 %t, i64 %offset) alwaysinline {
  %r = call ptr @record(ptr %records, i32 %t)
  %p = getelementptr i8, ptr %r, i64 %offset
  %v = load i32, ptr %p
  ret i32 %v
}

define internal void @set(ptr %records, i32 %t, i64 %offset, i32 %v) alwaysinline {
  %r = call ptr @record(ptr %records, i32 %t)
  %p = getelementptr i8, ptr %r, i64 %offset
  store i32 %v, ptr %p
  ret void
}

; Which lanes of the warp that begins at `first` wait as lane `lane` does; 0 if some still run.
define internal i32 @group(ptr %records, i32 %n, i32 %first, i32 %lane) {
entry:
  %t = add i32 %first, %lane
  %mask = call i32 @get(ptr %records, i32 %t, i64 12)
  %kind = call i32 @get(ptr %records, i32 %t, i64 32)
  br label %head
head:
  %k = phi i32 [ 0, %entry ], [ %next, %more ]
  %present = phi i32 [ 0, %entry ], [ %now, %more ]
  %end = icmp eq i32 %k, 32
  br i1 %end, label %done, label %look
look:
  %shifted = lshr i32 %mask, %k
  %named = trunc i32 %shifted to i1
  %u = add i32 %first, %k
  %inside = icmp ult i32 %u, %n
  %both = and i1 %named, %inside
  br i1 %both, label %check, label %more
check:
  %state = call i32 @get(ptr %records, i32 %u, i64 8)
  %over = icmp eq i32 %state, 3
  br i1 %over, label %more, label %alive
alive:
  %waits = icmp eq i32 %state, 2
  %mask2 = call i32 @get(ptr %records, i32 %u, i64 12)
  %kind2 = call i32 @get(ptr %records, i32 %u, i64 32)
  %same = icmp eq i32 %mask, %mask2
  %alike = icmp eq i32 %kind, %kind2
  %a = and i1 %waits, %same
  %ok = and i1 %a, %alike
  br i1 %ok, label %join, label %none
join:
  %bit = shl i32 1, %k
  %with = or i32 %present, %bit
  br label %more
more:
  %now = phi i32 [ %present, %look ], [ %present, %check ], [ %with, %join ]
  %next = add i32 %k, 1
  br label %head
done:
  %own = shl i32 1, %lane
  %mine = and i32 %present, %own
  %in = icmp ne i32 %mine, 0
  %result = select i1 %in, i32 %present, i32 0
  ret i32 %result
none:
  ret i32 0
}

; Lanes that ask who is active at the same place as lane `lane`.
define internal i32 @together(ptr %records, i32 %n, i32 %first, i32 %lane) {
entry:
  %t = add i32 %first, %lane
  %kind = call i32 @get(ptr %records, i32 %t, i64 32)
  br label %head
head:
  %k = phi i32 [ 0, %entry ], [ %next, %more ]
  %present = phi i32 [ 0, %entry ], [ %now, %more ]
  %end = icmp eq i32 %k, 32
  br i1 %end, label %done, label %look
look:
  %u = add i32 %first, %k
  %inside = icmp ult i32 %u, %n
  br i1 %inside, label %check, label %more
check:
  %state = call i32 @get(ptr %records, i32 %u, i64 8)
  %kind2 = call i32 @get(ptr %records, i32 %u, i64 32)
  %waits = icmp eq i32 %state, 4
  %alike = icmp eq i32 %kind, %kind2
  %ok = and i1 %waits, %alike
  %one = zext i1 %ok to i32
  %bit = shl i32 %one, %k
  %with = or i32 %present, %bit
  br label %more
more:
  %now = phi i32 [ %present, %look ], [ %with, %check ]
  %next = add i32 %k, 1
  br label %head
done:
  ret i32 %present
}

; Tell all lanes that are present the values of each other, and let them go on.
define internal void @release(ptr %records, i32 %first, i32 %present) {
entry:
  br label %head
head:
  %k = phi i32 [ 0, %entry ], [ %knext, %kmore ]
  %end = icmp eq i32 %k, 32
  br i1 %end, label %done, label %look
look:
  %ks = lshr i32 %present, %k
  %kin = trunc i32 %ks to i1
  br i1 %kin, label %tell, label %kmore
tell:
  %u = add i32 %first, %k
  %r = call ptr @record(ptr %records, i32 %u)
  %seen = getelementptr i8, ptr %r, i64 64
  call void @set(ptr %records, i32 %u, i64 28, i32 %present)
  call void @set(ptr %records, i32 %u, i64 8, i32 0)
  br label %each
each:
  %j = phi i32 [ 0, %tell ], [ %jnext, %put ]
  %js = lshr i32 %present, %j
  %jin = trunc i32 %js to i1
  br i1 %jin, label %have, label %lack
have:
  %w = add i32 %first, %j
  %s = call ptr @record(ptr %records, i32 %w)
  %sv = getelementptr i8, ptr %s, i64 16
  %v = load i64, ptr %sv
  br label %put
lack:
  br label %put
put:
  %value = phi i64 [ %v, %have ], [ -6148914691236517206, %lack ]
  %slot = getelementptr i64, ptr %seen, i32 %j
  store i64 %value, ptr %slot
  %jnext = add i32 %j, 1
  %jend = icmp eq i32 %jnext, 32
  br i1 %jend, label %kmore, label %each
kmore:
  %knext = add i32 %k, 1
  br label %head
done:
  ret void
}

; Let warps go on whose threads have met in `state`. Whether some did.
define internal i1 @match(ptr %records, i32 %n, i32 %state) {
entry:
  br label %head
head:
  %t = phi i32 [ 0, %entry ], [ %next, %more ]
  %any = phi i1 [ false, %entry ], [ %some, %more ]
  %end = icmp uge i32 %t, %n
  br i1 %end, label %done, label %look
look:
  %s = call i32 @get(ptr %records, i32 %t, i64 8)
  %is = icmp eq i32 %s, %state
  br i1 %is, label %try, label %more
try:
  %first = and i32 %t, -32
  %lane = and i32 %t, 31
  %exchange = icmp eq i32 %state, 2
  br i1 %exchange, label %grouped, label %active
grouped:
  %g = call i32 @group(ptr %records, i32 %n, i32 %first, i32 %lane)
  br label %have
active:
  %a = call i32 @together(ptr %records, i32 %n, i32 %first, i32 %lane)
  br label %have
have:
  %present = phi i32 [ %g, %grouped ], [ %a, %active ]
  %ok = icmp ne i32 %present, 0
  br i1 %ok, label %go, label %more
go:
  call void @release(ptr %records, i32 %first, i32 %present)
  br label %more
more:
  %some = phi i1 [ %any, %look ], [ %any, %have ], [ true, %go ]
  %next = add i32 %t, 1
  br label %head
done:
  ret i1 %any
}

; All threads of a block from their start to their end.
define internal i32 @block(ptr %records, i32 %n, ptr %stacks, i64 %size) {
entry:
  br label %prepare
prepare:
  %t = phi i32 [ 0, %entry ], [ %tnext, %prepare ]
  %r = call ptr @record(ptr %records, i32 %t)
  call void @set(ptr %records, i32 %t, i64 24, i32 %t)
  call void @set(ptr %records, i32 %t, i64 8, i32 0)
  %tnext = add i32 %t, 1
  %tn = zext i32 %tnext to i64
  %off = mul i64 %tn, %size
  %base = ptrtoint ptr %stacks to i64
  %topmost = add i64 %base, %off
  %top = and i64 %topmost, -64
  %sp = sub i64 %top, FRESH
  %spp = inttoptr i64 %sp to ptr
  call void @llvm.memset.p0.i64(ptr %spp, i8 0, i64 FRESH, i1 false)
  %back = getelementptr i8, ptr %spp, i64 BACK
  store ptr @start, ptr %back
  store i64 %sp, ptr %r
  %tend = icmp eq i32 %tnext, %n
  br i1 %tend, label %again, label %prepare
again:
  br label %run
run:
  %k = phi i32 [ 0, %again ], [ %knext, %kmore ]
  %ran = phi i1 [ false, %again ], [ %some, %kmore ]
  %kend = icmp eq i32 %k, %n
  br i1 %kend, label %ranall, label %look
look:
  %s = call i32 @get(ptr %records, i32 %k, i64 8)
  %ready = icmp eq i32 %s, 0
  br i1 %ready, label %go, label %kmore
go:
  %rk = call ptr @record(ptr %records, i32 %k)
  store ptr %rk, ptr @qdsim_me
  %to = load i64, ptr %rk
  call void @qdsim_switch(ptr @scheduler, i64 %to)
  %trap = load i32, ptr @trapped
  %bad = icmp ne i32 %trap, 0
  br i1 %bad, label %trapped, label %kmore
kmore:
  %some = phi i1 [ %ran, %look ], [ true, %go ]
  %knext = add i32 %k, 1
  br label %run
ranall:
  br i1 %ran, label %again, label %waiting
waiting:
  %m = call i1 @match(ptr %records, i32 %n, i32 2)
  br i1 %m, label %again, label %asking
asking:
  %a = call i1 @match(ptr %records, i32 %n, i32 4)
  br i1 %a, label %again, label %count
count:
  %c = phi i32 [ 0, %asking ], [ %cnext, %cmore ]
  %ended = phi i32 [ 0, %asking ], [ %ended2, %cmore ]
  %met = phi i32 [ 0, %asking ], [ %met2, %cmore ]
  %sum = phi i32 [ 0, %asking ], [ %sum2, %cmore ]
  %cend = icmp eq i32 %c, %n
  br i1 %cend, label %counted, label %cmore
cmore:
  %cs = call i32 @get(ptr %records, i32 %c, i64 8)
  %cv = call i32 @get(ptr %records, i32 %c, i64 16)
  %e = icmp eq i32 %cs, 3
  %e32 = zext i1 %e to i32
  %ended2 = add i32 %ended, %e32
  %b = icmp eq i32 %cs, 1
  %b32 = zext i1 %b to i32
  %met2 = add i32 %met, %b32
  %nz = icmp ne i32 %cv, 0
  %bnz = and i1 %b, %nz
  %bnz32 = zext i1 %bnz to i32
  %sum2 = add i32 %sum, %bnz32
  %cnext = add i32 %c, 1
  br label %count
counted:
  %over = icmp eq i32 %ended, %n
  br i1 %over, label %good, label %barrier
barrier:
  %both = add i32 %ended, %met
  %all = icmp eq i32 %both, %n
  br i1 %all, label %open, label %stuck
open:
  %o = phi i32 [ 0, %barrier ], [ %onext, %omore ]
  %oend = icmp eq i32 %o, %n
  br i1 %oend, label %again, label %olook
olook:
  %os = call i32 @get(ptr %records, i32 %o, i64 8)
  %ob = icmp eq i32 %os, 1
  br i1 %ob, label %let, label %omore
let:
  call void @set(ptr %records, i32 %o, i64 8, i32 0)
  call void @set(ptr %records, i32 %o, i64 40, i32 %sum)
  call void @set(ptr %records, i32 %o, i64 44, i32 %met)
  br label %omore
omore:
  %onext = add i32 %o, 1
  br label %open
good:
  ret i32 0
stuck:
  ret i32 1
trapped:
  ret i32 2
}

; Blocks one after the other. clean: makes shared memory hold garbage.
define i32 @qdsim_grid(ptr %thread, ptr %p, ptr %clean, i32 %blocks, i32 %n, ptr %records,
                       ptr %stacks, i64 %size) {
entry:
  store ptr %thread, ptr @entry
  store ptr %p, ptr @params
  store i32 0, ptr @trapped
  store i32 %blocks, ptr @qdsim_nctaid
  store i32 %n, ptr @qdsim_ntid
  br label %head
head:
  %b = phi i32 [ 0, %entry ], [ %next, %fine ]
  %end = icmp uge i32 %b, %blocks
  br i1 %end, label %done, label %work
work:
  store i32 %b, ptr @qdsim_ctaid
  call void %clean()
  %result = call i32 @block(ptr %records, i32 %n, ptr %stacks, i64 %size)
  %bad = icmp ne i32 %result, 0
  br i1 %bad, label %stop, label %fine
fine:
  %next = add i32 %b, 1
  br label %head
done:
  ret i32 0
stop:
  ret i32 %result
}

declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
"""


@cache
def jit() -> Any:
    """The one linker of the process."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.initialize_native_asmparser()
    target = llvm.Target.from_triple(llvm.get_process_triple())
    machine = target.create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=1,
        reloc="pic", codemodel="small",
    )  # fmt: skip
    found = llvm.create_lljit_compiler(machine)
    found._owned = True
    return found


@cache
def addresses() -> dict[str, int]:
    """The runtime's symbols, made when the first kernel needs them."""
    fresh, back = _FRESH[platform.machine().lower()]
    text = _RUNTIME.replace("RECORD", str(RECORD)).replace("FRESH", str(fresh))
    text = _switch_text() + text.replace("BACK", str(back))
    builder = llvm.JITLibraryBuilder().add_ir(text)
    for symbol in SYMBOLS:
        builder.export_symbol(symbol)
    tracker = builder.link(jit(), "qdsim_runtime")
    tracker.detach()
    return {symbol: tracker[symbol] for symbol in SYMBOLS}
