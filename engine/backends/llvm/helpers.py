"""Small functions that emitted code calls, as LLVM IR text; a module gets those it uses."""

from __future__ import annotations

import re
from typing import Final

from .moves import move_text

__all__ = ["gpu_helper_text", "helper_text"]

_F64_TO_F16 = """\
; f64 to f16 in one rounding: to f32 rounding to odd, then to f16. Few machines have it in one step.
define internal half @qd.f64_to_f16(double %x) alwaysinline nounwind memory(none) {
  %near = fptrunc double %x to float
  %back = fpext float %near to double
  %size = call double @llvm.fabs.f64(double %x)
  %got = call double @llvm.fabs.f64(double %back)
  %over = fcmp ogt double %got, %size
  %inexact = fcmp one double %back, %x
  %bits = bitcast float %near to i32
  %less = sext i1 %over to i32
  %down = add i32 %bits, %less
  %odd = zext i1 %inexact to i32
  %sticky = or i32 %down, %odd
  %single = bitcast i32 %sticky to float
  %half = fptrunc float %single to half
  ret half %half
}
"""

_EXP_F32 = """\
; e ** x to 1.5 units of the last place. LLVM calls the C library once for each lane of a vector;
; this is arithmetic, which it vectorises: x = n ln 2 + r, a polynomial in r, 2 ** n in two steps
; as one may overflow. The sum with 1.5 * 2 ** 23 rounds to a whole number: it has no fast flags.
define internal float @qd.exp_f32(float %x) alwaysinline nounwind memory(none) {
  %small = fcmp olt float %x, -1.040000e+02
  %bounded = select i1 %small, float -1.040000e+02, float %x
  %large = fcmp ogt float %bounded, 8.900000e+01
  %c = select i1 %large, float 8.900000e+01, float %bounded
  %scaled = fmul float %c, 0x3FF7154760000000
  %shifted = fadd float %scaled, 0x4168000000000000
  %whole = fsub float %shifted, 0x4168000000000000
  %most = fmul contract float %whole, 0x3FE6300000000000
  %near = fsub contract float %c, %most
  %least = fmul contract float %whole, 0xBF2BD01060000000
  %r = fsub contract float %near, %least
  %p5 = fmul contract float %r, 0x3F2A0D2CE0000000
  %q4 = fadd contract float %p5, 0x3F56E879C0000000
  %p4 = fmul contract float %q4, %r
  %q3 = fadd contract float %p4, 0x3F81112100000000
  %p3 = fmul contract float %q3, %r
  %q2 = fadd contract float %p3, 0x3FA5553820000000
  %p2 = fmul contract float %q2, %r
  %q1 = fadd contract float %p2, 0x3FC5555540000000
  %p1 = fmul contract float %q1, %r
  %q0 = fadd contract float %p1, 5.000000e-01
  %square = fmul contract float %r, %r
  %p0 = fmul contract float %q0, %square
  %rest = fadd contract float %p0, %r
  %value = fadd contract float %rest, 1.000000e+00
  %bits = bitcast float %shifted to i32
  %n = sub i32 %bits, 1262485504
  %half = ashr i32 %n, 1
  %other = sub i32 %n, %half
  %biased = add i32 %half, 127
  %biased.other = add i32 %other, 127
  %placed = shl i32 %biased, 23
  %placed.other = shl i32 %biased.other, 23
  %one = bitcast i32 %placed to float
  %two = bitcast i32 %placed.other to float
  %part = fmul float %value, %one
  %result = fmul float %part, %two
  ret float %result
}
"""

_IPOW = """\
; base ** n by squaring, wrapping; for n < 0 the truncated real result: 1, -1 or 0.
define internal {ty} @qd.ipow.{ty}{suffix}({ty} %base, i64 %n, i1 %negative) memory(none) {{
entry:
  br i1 %negative, label %reciprocal, label %head
head:
  %left = phi i64 [ %n, %entry ], [ %next, %step ]
  %square = phi {ty} [ %base, %entry ], [ %squared, %step ]
  %result = phi {ty} [ 1, %entry ], [ %chosen, %step ]
  %done = icmp eq i64 %left, 0
  br i1 %done, label %finish, label %step
step:
  %bit = trunc i64 %left to i1
  %product = mul {ty} %result, %square
  %chosen = select i1 %bit, {ty} %product, {ty} %result
  %squared = mul {ty} %square, %square
  %next = lshr i64 %left, 1
  br label %head
finish:
  ret {ty} %result
reciprocal:
  %one = icmp eq {ty} %base, 1
  %minus = icmp eq {ty} %base, -1
  %odd = trunc i64 %n to i1
  %sign = select i1 %odd, {ty} -1, {ty} 1
  %unit = select i1 %minus, {ty} {sign}, {ty} 0
  %value = select i1 %one, {ty} 1, {ty} %unit
  ret {ty} %value
}}
"""


_CLAIM: Final = """\
; The row of the real adstacks that a thread has or claims; -1 if there are no more than `rows`.
define internal i64 @qd.claim(ptr %claims, i64 %thread, i64 %rows) noinline cold nounwind {
entry:
  %table = getelementptr inbounds i64, ptr %claims, i64 1
  %slot = getelementptr inbounds i64, ptr %table, i64 %thread
  %had = load i64, ptr %slot, align 8
  %has = icmp sge i64 %had, 0
  br i1 %has, label %check, label %take
take:
  %next = atomicrmw add ptr %claims, i64 1 monotonic, align 8
  br label %check
check:
  %row = phi i64 [ %had, %entry ], [ %next, %take ]
  %fits = icmp ult i64 %row, %rows
  br i1 %fits, label %keep, label %none
keep:
  store i64 %row, ptr %slot, align 8
  ret i64 %row
none:
  ret i64 -1
}
"""


_CLAIM_GPU: Final = """\
; The row of the real adstacks that a thread claims; -1 if there are no more than `rows`.
define internal i64 @qd.claim_gpu(ptr %claims, i64 %thread, i64 %rows, i64 %predicated) noinline cold nounwind {
entry:
  %none = icmp eq i64 %predicated, 0
  br i1 %none, label %check, label %take
take:
  %next = atomicrmw add ptr %claims, i64 1 syncscope("device") monotonic, align 8
  br label %check
check:
  %row = phi i64 [ %thread, %entry ], [ %next, %take ]
  %fits = icmp ult i64 %row, %rows
  %found = select i1 %fits, i64 %row, i64 -1
  ret i64 %found
}
"""  # noqa: E501

_PRINT_ROOM: Final = """\
; Room for a record of `size` bytes in the print buffer; null if there is none.
define internal ptr @qd.print_room(ptr %kernarg, i64 %size) noinline cold nounwind {
  %at = getelementptr inbounds i8, ptr %kernarg, i64 16
  %buffer = load ptr, ptr %at, align 8
  %used = atomicrmw add ptr %buffer, i64 %size syncscope("device") monotonic, align 8
  %limit.at = getelementptr inbounds i8, ptr %buffer, i64 8
  %limit = load i64, ptr %limit.at, align 8
  %end = add i64 %used, %size
  %fits = icmp ule i64 %end, %limit
  %offset = add i64 %used, 16
  %room = getelementptr inbounds i8, ptr %buffer, i64 %offset
  %found = select i1 %fits, ptr %room, ptr null
  ret ptr %found
}
"""


_BUFFER_OF: Final = re.compile(r"  %at = .*\n  %buffer = .*\n")
_POINTER: Final = re.compile(r"\bptr\b")


def _add_vector(width: int) -> str:
    """Atomic sums of neighbouring floats, in the words of NVIDIA's: others have none."""
    values = ", ".join([f"float %v{k}" for k in range(width)])
    places = ", ".join([f"${k + 1}" for k in range(width)])
    kinds = "l" + ",f" * width
    return f"""\
define internal void @qd.add_vector.{width}(ptr addrspace(1) %to, {values}) alwaysinline {{
  call void asm sideeffect "red.relaxed.gpu.global.add.v{width}.f32 [$0], {{{places}}};", \
"{kinds},~{{memory}}"(ptr addrspace(1) %to, {values})
  ret void
}}"""


def gpu_helper_text(name: str, space: str, scope: str) -> tuple[str, tuple[str, ...]]:
    """The same for a GPU: the space of the argument buffer and the scope of its atomics are the
    target's."""
    text, needs = helper_text(name)
    if name in ("print_room", "print_room_given", "claim_gpu"):
        text = text.replace('syncscope("device")', f'syncscope("{scope}")')
        text = _POINTER.sub(f"ptr {space}".strip(), text)
    return text, needs


def helper_text(name: str) -> tuple[str, tuple[str, ...]]:
    """The definition of ``@qd.<name>`` and the intrinsics that it calls."""
    if name.startswith("move."):
        return move_text(name)
    if name == "f64_to_f16":
        return _F64_TO_F16, ("declare double @llvm.fabs.f64(double)",)
    if name == "exp_f32":
        return _EXP_F32, ()
    if name == "print_room":
        return _PRINT_ROOM, ()
    if name == "print_room_given":
        text = _PRINT_ROOM.replace("print_room(ptr %kernarg", "print_room_given(ptr %buffer")
        return _BUFFER_OF.sub("", text), ()
    if name == "claim_gpu":
        return _CLAIM_GPU, ()
    if name == "claim":
        return _CLAIM, ()
    if name.startswith("warpgroup_"):
        from .warpgroups import warpgroup_text

        return warpgroup_text(name), ()
    if name.startswith("add_vector."):
        return _add_vector(int(name[-1])), ()
    _, ty, *unsigned = name.split(".")
    suffix = ".unsigned" if unsigned else ""
    return _IPOW.format(ty=ty, suffix=suffix, sign="0" if unsigned else "%sign"), ()
