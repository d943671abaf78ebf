"""What a device gives a kernel, as functions of the host: special registers, warps, mathematics.

`definition(name, declaration)` gives the text of the function in place of an intrinsic
``llvm.nvvm.*`` or a function of libdevice, named `stand_in(name)`. A kernel whose functions use one
of `meets` needs threads that wait for each other (`warp`).
"""

from __future__ import annotations

import re

from . import fragments

__all__ = ["COMMON", "Lacking", "definition", "meets", "stand_in"]


class Lacking(Exception):
    """An intrinsic that the simulator has not."""


_MEETS = ("barrier", "bar.", "shfl", "vote", "match", "redux", "activemask", "elect",
          "mma", "ldmatrix")  # fmt: skip


def meets(name: str) -> bool:
    """Whether threads wait for each other in this intrinsic; a trap ends the launch like one."""
    if name in ("llvm.trap", "llvm.debugtrap"):
        return True
    bare = name.removeprefix("llvm.nvvm.")
    return name.startswith("llvm.nvvm.") and bare.startswith(_MEETS)


def stand_in(name: str) -> str:
    return "sim." + name.removeprefix("llvm.")


COMMON = """\
define internal i32 @sim.lane() alwaysinline {
  %t = call i32 @sim.get.tid()
  %l = and i32 %t, 31
  ret i32 %l
}
"""
"""Functions that stand-ins use."""

MEETING = """\
@qdsim_me = external global ptr
@qdsim_ctaid = external global i32
@qdsim_nctaid = external global i32
@qdsim_ntid = external global i32
declare ptr @qdsim_wait(i32, i32, i32, i64)
declare void @qdsim_trap()
define internal i32 @sim.get.tid() alwaysinline {
  %me = load ptr, ptr @qdsim_me
  %p = getelementptr i8, ptr %me, i64 24
  %t = load i32, ptr %p
  ret i32 %t
}
define internal i32 @sim.get.ctaid() alwaysinline {
  %v = load i32, ptr @qdsim_ctaid
  ret i32 %v
}
define internal i32 @sim.get.nctaid() alwaysinline {
  %v = load i32, ptr @qdsim_nctaid
  ret i32 %v
}
define internal i32 @sim.get.ntid() alwaysinline {
  %v = load i32, ptr @qdsim_ntid
  ret i32 %v
}
; The value of a lane, and whether it is there.
define internal i64 @sim.seen(ptr %r, i32 %lane) alwaysinline {
  %s = getelementptr i8, ptr %r, i64 64
  %p = getelementptr i64, ptr %s, i32 %lane
  %v = load i64, ptr %p
  ret i64 %v
}
define internal i32 @sim.present(ptr %r) alwaysinline {
  %p = getelementptr i8, ptr %r, i64 28
  %v = load i32, ptr %p
  ret i32 %v
}
; Lanes that are there and whose value is `wanted` (or is not, with `other`).
define internal i32 @sim.lanes(ptr %r, i64 %wanted, i1 %other) {
entry:
  %present = call i32 @sim.present(ptr %r)
  br label %loop
loop:
  %k = phi i32 [ 0, %entry ], [ %next, %loop ]
  %mask = phi i32 [ 0, %entry ], [ %now, %loop ]
  %v = call i64 @sim.seen(ptr %r, i32 %k)
  %same = icmp eq i64 %v, %wanted
  %is = xor i1 %same, %other
  %bit = zext i1 %is to i32
  %shifted = shl i32 %bit, %k
  %here = and i32 %shifted, %present
  %now = or i32 %mask, %here
  %next = add i32 %k, 1
  %end = icmp eq i32 %next, 32
  br i1 %end, label %done, label %loop
done:
  ret i32 %now
}
"""
"""Of kernels whose threads meet."""

ALONE = """\
@sim.tid = internal global i32 0
@sim.ctaid = internal global i32 0
@sim.nctaid = internal global i32 0
@sim.ntid = internal global i32 0
""" + "".join(
    f"define internal i32 @sim.get.{name}() alwaysinline {{\n"
    f"  %v = load i32, ptr @sim.{name}\n  ret i32 %v\n}}\n"
    for name in ("tid", "ctaid", "nctaid", "ntid")
)
"""Of kernels whose threads run one after the other."""

_kinds: dict[str, int] = {}


def _kind(name: str) -> int:
    """A number for each operation in which threads meet."""
    return _kinds.setdefault(name, len(_kinds) + 1)


def _register(name: str) -> str:
    head = f"define internal i32 @{stand_in(name)}() alwaysinline {{\n"
    bare = name.removeprefix("llvm.nvvm.read.ptx.sreg.")
    what, _, axis = bare.partition(".")
    if what in ("tid", "ctaid", "nctaid", "ntid"):
        if axis != "x":
            return head + f"  ret i32 {int(what.startswith('n'))}\n}}\n"
        return head + f"  %v = call i32 @sim.get.{what}()\n  ret i32 %v\n}}\n"
    if what in ("clock64", "globaltimer"):
        head = head.replace("internal i32", "internal i64")
        return head + "  %v = call i64 @llvm.readcyclecounter()\n  ret i64 %v\n}\n"
    lane = "  %l = call i32 @sim.lane()\n"
    if what == "laneid":
        return head + lane + "  ret i32 %l\n}\n"
    if what == "warpsize":
        return head + "  ret i32 32\n}\n"
    if what == "lanemask":
        lines = {
            "eq": "  %v = shl i32 1, %l\n",
            "lt": "  %b = shl i32 1, %l\n  %v = sub i32 %b, 1\n",
            "ge": "  %b = shl i32 1, %l\n  %v = sub i32 0, %b\n",
            "le": "  %v = lshr i32 -1, %m\n",
            "gt": "  %w = lshr i32 -1, %m\n  %v = xor i32 %w, -1\n",
        }[axis]
        return head + lane + "  %m = sub i32 31, %l\n" + lines + "  ret i32 %v\n}\n"
    if what in ("warpid", "smid", "clock"):
        return head + "  ret i32 0\n}\n"
    raise Lacking(name)


_SHUFFLED = """\
  %lane = call i32 @sim.lane()
  %b = and i32 %by, 31
  %clamp = and i32 %c, 31
  %c8 = lshr i32 %c, 8
  %seg = and i32 %c8, 31
  %notseg = xor i32 %seg, 31
  %low = and i32 %lane, %seg
  %upper = and i32 %clamp, %notseg
  %last = or i32 %low, %upper
"""
_SHUFFLES = {
    "up": "  %j = sub i32 %lane, %b\n  %in = icmp sge i32 %j, %last\n",
    "down": "  %j = add i32 %lane, %b\n  %in = icmp sle i32 %j, %last\n",
    "bfly": "  %j = xor i32 %lane, %b\n  %in = icmp sle i32 %j, %last\n",
    "idx": "  %bs = and i32 %b, %notseg\n  %j = or i32 %low, %bs\n  %in = icmp sle i32 %j, %last\n",
}


def _shuffle(name: str) -> str:
    _, _, mode, kind = name.removeprefix("llvm.nvvm.").split(".")
    ty = "float" if kind.startswith("f32") else "i32"
    result = f"{{ {ty}, i1 }}" if kind.endswith("p") else ty
    text = f"define internal {result} @{stand_in(name)}(i32 %mask, {ty} %x, i32 %by, i32 %c) {{\n"
    text += f"  %x32 = bitcast {ty} %x to i32\n  %x64 = zext i32 %x32 to i64\n"
    number = _kind(name)
    text += f"  %r = call ptr @qdsim_wait(i32 2, i32 {number}, i32 %mask, i64 %x64)\n" + _SHUFFLED
    text += _SHUFFLES[mode] + "  %from = select i1 %in, i32 %j, i32 %lane\n"
    text += "  %v64 = call i64 @sim.seen(ptr %r, i32 %from)\n  %v32 = trunc i64 %v64 to i32\n"
    text += f"  %v = bitcast i32 %v32 to {ty}\n"
    if kind.endswith("p"):
        text += f"  %s = insertvalue {result} poison, {ty} %v, 0\n"
        text += f"  %t = insertvalue {result} %s, i1 %in, 1\n  ret {result} %t\n}}\n"
        return text
    return text + f"  ret {ty} %v\n}}\n"


def _vote(name: str) -> str:
    mode = name.removeprefix("llvm.nvvm.vote.").removesuffix(".sync")
    result = "i32" if mode == "ballot" else "i1"
    text = f"define internal {result} @{stand_in(name)}(i32 %mask, i1 %p) {{\n"
    text += "  %x = zext i1 %p to i64\n"
    text += f"  %r = call ptr @qdsim_wait(i32 2, i32 {_kind(name)}, i32 %mask, i64 %x)\n"
    text += "  %yes = call i32 @sim.lanes(ptr %r, i64 1, i1 false)\n"
    text += "  %all = call i32 @sim.present(ptr %r)\n"
    if mode == "ballot":
        return text + "  ret i32 %yes\n}\n"
    text += "  %every = icmp eq i32 %yes, %all\n  %none = icmp eq i32 %yes, 0\n"
    text += "  %some = xor i1 %none, true\n  %uni = or i1 %every, %none\n"
    value = {"all": "every", "any": "some", "uni": "uni"}[mode]
    return text + f"  ret i1 %{value}\n}}\n"


def _matching(name: str) -> str:
    _, mode, _, kind = name.removeprefix("llvm.nvvm.").split(".")
    ty = kind.rstrip("p")
    result = "{ i32, i1 }" if mode == "all" else "i32"
    text = f"define internal {result} @{stand_in(name)}(i32 %mask, {ty} %x) {{\n"
    text += "  %x64 = zext i32 %x to i64\n" if ty == "i32" else "  %x64 = add i64 %x, 0\n"
    text += f"  %r = call ptr @qdsim_wait(i32 2, i32 {_kind(name)}, i32 %mask, i64 %x64)\n"
    text += "  %same = call i32 @sim.lanes(ptr %r, i64 %x64, i1 false)\n"
    if mode == "any":
        return text + "  ret i32 %same\n}\n"
    text += "  %all = call i32 @sim.present(ptr %r)\n  %ok = icmp eq i32 %same, %all\n"
    text += "  %v = select i1 %ok, i32 %all, i32 0\n"
    text += f"  %s = insertvalue {result} poison, i32 %v, 0\n"
    return text + f"  %t = insertvalue {result} %s, i1 %ok, 1\n  ret {result} %t\n}}\n"


_FOLD = {"add": "add i32 %a, %v", "and": "and i32 %a, %v", "or": "or i32 %a, %v",
         "xor": "xor i32 %a, %v"}  # fmt: skip
_PICK = {"max": ("s", "max"), "min": ("s", "min"), "umax": ("u", "max"), "umin": ("u", "min")}


def _redux(name: str) -> str:
    mode = name.removeprefix("llvm.nvvm.redux.sync.")
    if mode in _PICK:
        step = "call i32 @llvm.{}{}.i32(i32 %a, i32 %v)".format(*_PICK[mode])
    elif mode in _FOLD:
        step = _FOLD[mode]
    else:
        raise Lacking(name)
    return f"""\
define internal i32 @{stand_in(name)}(i32 %x, i32 %mask) {{
entry:
  %x64 = zext i32 %x to i64
  %r = call ptr @qdsim_wait(i32 2, i32 {_kind(name)}, i32 %mask, i64 %x64)
  %present = call i32 @sim.present(ptr %r)
  br label %loop
loop:
  %k = phi i32 [ 0, %entry ], [ %next, %loop ]
  %a = phi i32 [ 0, %entry ], [ %now, %loop ]
  %none = phi i1 [ true, %entry ], [ %still, %loop ]
  %v64 = call i64 @sim.seen(ptr %r, i32 %k)
  %v = trunc i64 %v64 to i32
  %s = lshr i32 %present, %k
  %in = trunc i32 %s to i1
  %folded = {step}
  %started = select i1 %none, i32 %v, i32 %folded
  %now = select i1 %in, i32 %started, i32 %a
  %out = xor i1 %in, true
  %still = and i1 %none, %out
  %next = add i32 %k, 1
  %end = icmp eq i32 %next, 32
  br i1 %end, label %done, label %loop
done:
  ret i32 %now
}}
"""


_LETTERS = {"f": "float", "d": "double"}


def _mathematics(name: str) -> str:
    """Of ``llvm.nvvm.<what>.<rounding>.<type>``."""
    parts = name.removeprefix("llvm.nvvm.").split(".")
    what, ty = parts[0], _LETTERS.get(parts[-1], "")
    suffix = {"float": "f32", "double": "f64"}.get(ty, "")
    one = {"sqrt": "sqrt", "fabs": "fabs", "sin": "sin", "cos": "cos", "ex2": "exp2", "lg2": "log2",
           "floor": "floor", "ceil": "ceil", "round": "rint", "trunc": "trunc"}  # fmt: skip
    two = {"fmax": "maxnum", "fmin": "minnum"}
    head = f"define internal {ty} @{stand_in(name)}("
    end = f"  ret {ty} %r\n}}\n"
    if ty and what in one:
        call = f"  %r = call {ty} @llvm.{one[what]}.{suffix}({ty} %a)\n"
        return head + f"{ty} %a) alwaysinline {{\n" + call + end
    if ty and what in two:
        call = f"  %r = call {ty} @llvm.{two[what]}.{suffix}({ty} %a, {ty} %b)\n"
        return head + f"{ty} %a, {ty} %b) alwaysinline {{\n" + call + end
    if ty and what == "fma":
        call = f"  %r = call {ty} @llvm.fma.{suffix}({ty} %a, {ty} %b, {ty} %c)\n"
        return head + f"{ty} %a, {ty} %b, {ty} %c) alwaysinline {{\n" + call + end
    if ty and what in ("add", "mul", "div"):
        call = f"  %r = f{what} {ty} %a, %b\n"
        return head + f"{ty} %a, {ty} %b) alwaysinline {{\n" + call + end
    if ty and what in ("rcp", "rsqrt"):
        root = f"  %q = call {ty} @llvm.sqrt.{suffix}({ty} %a)\n" if what == "rsqrt" else ""
        call = f"  %r = fdiv {ty} 1.0, {'%q' if root else '%a'}\n"
        return head + f"{ty} %a) alwaysinline {{\n" + root + call + end
    raise Lacking(name)


_ARGUMENTS = re.compile(r"\b(float|double|i32|i64|ptr)\b(?=\s*(?:,|\)|noundef|%|$))")
_SAME = {"fabs", "floor", "ceil", "sqrt", "exp2", "log2", "log", "exp", "sin", "cos", "pow", "fma",
         "trunc", "rint", "copysign", "log10", "exp10", "round"}  # fmt: skip
_LIBM = {"tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh",
         "expm1", "log1p", "cbrt", "fmod", "remainder", "hypot", "erf", "erfc", "tgamma",
         "lgamma", "nextafter", "ldexp"}  # fmt: skip


def _libdevice(name: str) -> str:
    """Of ``__nv_<what>`` for f64, ``__nv_<what>f`` for f32."""
    what = name.removeprefix("__nv_").removeprefix("fast_")
    ty, suffix, letter = "double", "f64", ""
    if what not in _SAME | _LIBM and what.endswith("f"):
        what, ty, suffix, letter = what[:-1], "float", "f32", "f"
    count = 3 if what == "fma" else 2 if what in (
        "pow", "atan2", "fmod", "remainder", "hypot", "nextafter", "copysign", "fmax", "fmin",
        "fdivide", "powi", "ldexp") else 1  # fmt: skip
    types = [ty, "i32" if what in ("powi", "ldexp") else ty, ty][:count]
    params = ", ".join(f"{t} %a{k}" for k, t in enumerate(types))
    head = f"define internal {ty} @{stand_in(name)}({params}) alwaysinline {{\n"
    end = f"  ret {ty} %r\n}}\n"
    if what in ("rsqrt", "rcbrt"):
        inner = f"@llvm.sqrt.{suffix}" if what == "rsqrt" else f"@cbrt{letter}"
        declare = f"declare {ty} @cbrt{letter}({ty})\n" if what == "rcbrt" else ""
        body = f"  %q = call {ty} {inner}({ty} %a0)\n  %r = fdiv {ty} 1.0, %q\n"
        return declare + head + body + end
    if what == "fdivide":
        return head + f"  %r = fdiv {ty} %a0, %a1\n" + end
    names = {"fmax": "maxnum", "fmin": "minnum", **{n: n for n in _SAME}}
    if what in names:
        return head + f"  %r = call {ty} @llvm.{names[what]}.{suffix}({params})\n" + end
    if what == "powi":
        return head + f"  %r = call {ty} @llvm.powi.{suffix}.i32({params})\n" + end
    if what in _LIBM:
        declare = f"declare {ty} @{what}{letter}({', '.join(types)})\n"
        return declare + head + f"  %r = call {ty} @{what}{letter}({params})\n" + end
    raise Lacking(name)


def definition(name: str) -> str:
    """The function in place of ``name``. Lacking if there is none."""
    if name.startswith("__nv_"):
        return _libdevice(name)
    if name in ("llvm.trap", "llvm.debugtrap"):
        return (f"define internal void @{stand_in(name)}() {{\n  call void @qdsim_trap()\n"
                "  ret void\n}\n")  # fmt: skip
    if name == "cudaGraphSetConditional":
        # A handle of the simulated driver is the address of the condition.
        head = "define internal void @sim.cudaGraphSetConditional(i64 %h, i32 %v) {\n"
        return head + "  %p = inttoptr i64 %h to ptr\n  store i32 %v, ptr %p\n  ret void\n}\n"
    bare = name.removeprefix("llvm.nvvm.")
    here = stand_in(name)
    if bare.startswith("read.ptx.sreg."):
        return _register(name)
    if bare.startswith("shfl.sync."):
        return _shuffle(name)
    if bare.startswith("vote."):
        return _vote(name)
    if bare.startswith("match."):
        return _matching(name)
    if bare.startswith("redux."):
        return _redux(name)
    if bare == "isspacep.local":
        # Atomic updates of any memory are fine on the host.
        return f"define internal i1 @{here}(ptr %p) {{\n  ret i1 false\n}}\n"
    if bare == "activemask":
        return (f"define internal i32 @{here}() {{\n"
                f"  %r = call ptr @qdsim_wait(i32 4, i32 {_kind(name)}, i32 0, i64 0)\n"
                "  %v = call i32 @sim.present(ptr %r)\n  ret i32 %v\n}\n")  # fmt: skip
    if bare == "bar.warp.sync":
        return (f"define internal void @{here}(i32 %mask) {{\n"
                f"  %r = call ptr @qdsim_wait(i32 2, i32 {_kind(name)}, i32 %mask, i64 0)\n"
                "  ret void\n}\n")  # fmt: skip
    if bare in ("barrier0", "barrier.cta.sync.aligned.all", "barrier.cta.sync.all", "bar.sync",
                "barrier.sync"):  # fmt: skip
        parameter = "" if bare == "barrier0" else "i32 %id"
        head = f"define internal void @{here}({parameter}) {{\n"
        return head + "  %r = call ptr @qdsim_wait(i32 1, i32 0, i32 0, i64 0)\n  ret void\n}\n"
    reduced = re.fullmatch(r"barrier0\.(popc|and|or)", bare) or re.fullmatch(
        r"barrier\.cta\.red\.(popc|and|or)\.aligned\.all", bare
    )
    if reduced:
        old = bare.startswith("barrier0")
        ty = "i32" if old else "i1"
        result = "i32" if old or reduced[1] == "popc" else "i1"
        text = f"define internal {result} @{here}({'' if old else 'i32 %id, '}{ty} %x) {{\n"
        text += "  %x64 = zext " + ty + " %x to i64\n"
        text += "  %r = call ptr @qdsim_wait(i32 1, i32 0, i32 0, i64 %x64)\n"
        text += "  %ps = getelementptr i8, ptr %r, i64 40\n  %sum = load i32, ptr %ps\n"
        text += "  %pm = getelementptr i8, ptr %r, i64 44\n  %met = load i32, ptr %pm\n"
        text += "  %all = icmp eq i32 %sum, %met\n  %any = icmp ne i32 %sum, 0\n"
        if reduced[1] == "popc":
            return text + "  ret i32 %sum\n}\n"
        value = {"and": "%all", "or": "%any"}[reduced[1]]
        if result == "i1":
            return text + f"  ret i1 {value}\n}}\n"
        return text + f"  %v = zext i1 {value} to i32\n  ret i32 %v\n}}\n"
    if bare.startswith(("membar.", "fence.")):
        return f"define internal void @{here}() {{\n  fence seq_cst\n  ret void\n}}\n"
    if fragment := fragments.definition(bare, here, _kind(name)):
        return fragment
    if bare == "nanosleep":
        return f"define internal void @{here}(i32 %n) {{\n  ret void\n}}\n"
    return _mathematics(name)
