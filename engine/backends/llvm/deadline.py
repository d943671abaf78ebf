"""The text of first-tier code: that of the kernel, with a deadline.

It is for LLVM; on x86-64 `cpu.baseline` makes most code itself, with the same checks.

Code of the first tier is made without LLVM's passes, so it is slow. A launch of it has a deadline:
it must be able to end in the middle, after which the caller restores what it has written and
launches the full code. `with_deadline` splits blocks at the positions that the emitters have noted
(`Emitter.may_stop`):

* at the start of an iteration, the number of its operations is taken from the function's fuel;
  where that is used up, ``qd_late`` reads the clock. If it is late, the argument buffer's error
  becomes `LATE`, and the function returns;
* after each task the entry function returns if the error is `LATE`: no later task may work with
  what an interrupted one has left;
* a task's body loads its arguments itself: FastISel accepts at most six, and each function costs;
* tasks that are alike are one function, which loads the numbers that they differ in (see `alike`).

``i32 qd_first(ptr kernel, ptr args, i64 deadline)`` launches first-tier code. Both functions are of
the native library (`cpu.late`): compiling them with each kernel would cost a fifth of the time of
the code generator. There is one deadline, since one such launch is under way at a time.

LLVM's fastest code generator (FastISel) leaves calls of ``minnum``, ``abs`` and the like to the
slow one. For x86 they become the compares, selects and bit operations that LLVM makes of such a
call, with the same bits: of two zeros a minimum or maximum is the first, and the second if that is
a constant. Code generation takes 0.8 of the time then (the sample kernels, geometric mean).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from ..kernarg.abi import LATE
from . import text

if TYPE_CHECKING:
    from .kernel_text import KernelText, TaskBody

__all__ = ["quick", "with_deadline"]

_BODY: Final = re.compile(r"(  call void @[\w.$-]+\.body)\(")
_LATE: Final = "qd.late"
"""The block in which the entry function of a launch that is late ends."""
_FROM: Final = re.compile(r" %([\w.$-]+) \]")
_SLOW: Final = re.compile(
    r"  (%[\w.$-]+) = call (?:[a-z]+ )*(float|double|i\d+) "
    r"@llvm\.(m(?:in|ax)(?:imum)?num|fabs|[su]min|[su]max|abs)"
    r"\.\w+\(\2 ([^,]+?)(?:, \w+ ([^,]+))?\)$"
)
_ZERO: Final = re.compile(r'  (%[\w.$-]+) = call (i\d+) asm "", "=r,0"\(i\d+ 0\)$')
_BETTER: Final = {"minnum": "lt", "maxnum": "gt", "minimumnum": "lt", "maximumnum": "gt",
                  "smin": "slt", "smax": "sgt", "umin": "ult", "umax": "ugt"}  # fmt: skip
"""The comparison that the first operand of a minimum or maximum holds to be the result."""
_WITHOUT_SIGN: Final = {"float": ("i32", (1 << 31) - 1), "double": ("i64", (1 << 63) - 1)}
_NAN: Final = "0x7FF8000000000000"


def with_deadline(kernel: KernelText, late: int, x86: bool) -> str:
    """The text of first-tier code. late: the address of ``qd_late`` in this process. x86: the code
    is for an x86 processor.

    The kernel calls no real function and takes no time stamps.
    """
    lines, at_stops, bodies = kernel.first()
    heads = {body.line: body for body in bodies}
    middle = {_signature(body.name) for body in bodies if body.chunked}
    out: list[str] = []
    # Blocks that were split -> the name of their last part, which phi nodes have to refer to.
    last: dict[str, str] = {}
    stops = iter([*at_stops, (-1, 0)])
    at, weight = next(stops)
    block, left_out, in_entry = "", False, False
    loads: list[str] = []
    for number, line in enumerate(lines):
        if left_out:
            left_out = line != "}"
            continue
        while 0 <= at <= number:
            if at == number:
                go_on = f"qd.go{len(out)}"
                out += _check(len(out), weight, go_on, late)
                in_entry = in_entry or not weight
                last[block] = go_on
            at, weight = next(stops)
        if line.startswith("  %"):  # most lines
            if last and " = phi " in line:
                line = _FROM.sub(lambda m: f" %{last.get(m[1], m[1])} ]", line)
            elif x86 and " = call " in line:
                out += quick(line, f"%qd.q{len(out)}")
                continue
        elif line.startswith("define "):
            last.clear()
            block = ""
            body = heads.get(number)
            left_out = line[: line.find(")") + 1] in middle
            if left_out:
                continue
            if body is not None:
                line, loads = _merged(body), body.loads
        elif line.endswith(":") and not line.startswith((" ", ";")):
            block = line[:-1]
        elif line.startswith("  call void @") and (call := _BODY.match(line)) is not None:
            line = f"{call[1]}(ptr %kernarg)"
        out.append(line)
        if in_entry and line == "}":
            out[-1:] = [f"{_LATE}:", f"  ret i32 {LATE}", line]
            in_entry = False
        if line == "entry:":
            out += [
                "  %qd.fuel = alloca i64, align 8",
                f"  store i64 {text.START}, ptr %qd.fuel, align 8",
                *loads,
            ]
            loads = []
    return "\n".join(out)


def _signature(name: str) -> str:
    """The head of the function that the thread pool runs for a task, up to its parameters."""
    return f"define internal void @{name}(ptr %kernarg, i32 %chunk, i32 %thread)"


def _merged(body: TaskBody) -> str:
    """The head of a task's body that loads its arguments itself."""
    if body.chunked:
        return f"{_signature(body.name)} #1 {{"
    return f"define internal void @{body.name}.body(ptr %kernarg) #1 {{"


def quick(line: str, name: str) -> list[str]:
    """``line``, an instruction, as instructions that FastISel knows; the line itself if it is none
    of those that have such a form. name: a prefix for the names of new values.

    A minimum or maximum is a number where one operand is NaN.
    """
    if (hidden := _ZERO.match(line)) is not None:  # hidden from passes, which do not run here
        return [f"  {hidden[1]} = add {hidden[2]} 0, 0"]
    found = _SLOW.match(line)
    if found is None:
        return [line]
    result, ty, kind, a, b = found.groups()
    if kind == "fabs":
        bits, mask = _WITHOUT_SIGN[ty]
        return [f"  {name} = bitcast {ty} {a} to {bits}",
                f"  {name}.and = and {bits} {name}, {mask}",
                f"  {result} = bitcast {bits} {name}.and to {ty}"]  # fmt: skip
    if kind == "abs":
        return [f"  {name} = sub {ty} 0, {a}", f"  {name}.below = icmp slt {ty} {a}, 0",
                f"  {result} = select i1 {name}.below, {ty} {name}, {ty} {a}"]  # fmt: skip
    better = _BETTER[kind]
    if kind[0] in "su":
        return [f"  {name} = icmp {better} {ty} {a}, {b}",
                f"  {result} = select i1 {name}, {ty} {a}, {ty} {b}"]  # fmt: skip
    # LLVM makes a constant the second operand. Of two zeros minnum is the first.
    if not a.startswith("%") or ("imum" in kind and b.startswith("%")):
        a, b = b, a
    if not a.startswith("%") or b == _NAN:
        return [line]
    if not b.startswith("%"):
        return [f"  {name} = fcmp o{better} {ty} {a}, {b}",
                f"  {result} = select i1 {name}, {ty} {a}, {ty} {b}"]  # fmt: skip
    return [
        f"  {name} = fcmp o{better} {ty} {b}, {a}",
        f"  {name}.best = select i1 {name}, {ty} {b}, {ty} {a}",
        f"  {name}.nan = fcmp uno {ty} {a}, {a}",
        f"  {result} = select i1 {name}.nan, {ty} {b}, {ty} {name}.best",
    ]


def _check(k: int, weight: int, go_on: str, late: int) -> list[str]:
    """The end of one block, which may stop, and the head of the block that goes on."""
    if not weight:
        return [
            f"  %qd.e{k} = load i64, ptr %kernarg, align 8",
            f"  %qd.c{k} = icmp eq i64 %qd.e{k}, {LATE}",
            f"  br i1 %qd.c{k}, label %{_LATE}, label %{go_on}",
            f"{go_on}:",
        ]
    return [
        f"  %qd.f{k} = load i64, ptr %qd.fuel, align 8",
        f"  %qd.g{k} = sub nsw i64 %qd.f{k}, {weight}",
        f"  store i64 %qd.g{k}, ptr %qd.fuel, align 8",
        f"  %qd.c{k} = icmp sgt i64 %qd.g{k}, 0",
        f"  br i1 %qd.c{k}, label %{go_on}, label %qd.ask{k}",
        f"qd.ask{k}:",
        f"  %qd.l{k} = call zeroext i1 inttoptr (i64 {late} to ptr)(ptr %kernarg, ptr %qd.fuel)",
        f"  br i1 %qd.l{k}, label %stop, label %{go_on}",
        f"{go_on}:",
    ]
