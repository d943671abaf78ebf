"""The text of first-tier code: that of the kernel, with a deadline.

Code of the first tier is made without LLVM's passes, so it is slow. A launch of it has a deadline:
it must be able to end in the middle, after which the caller restores what it has written and
launches the full code. `with_deadline` splits blocks at the positions that the emitters have noted
(`Emitter.may_stop`):

* at the start of an iteration, the number of its operations is taken from the function's fuel;
  where that is used up, `qd.late` reads the clock. If it is late, the argument buffer's error
  becomes `LATE`, and the function returns;
* after each task the entry function returns if the error is `LATE`: no later task may work with
  what an interrupted one has left.

The entry of first-tier code is ``i32 <symbol>.first(ptr args, i64 deadline)``.
"""

from __future__ import annotations

import re
from typing import Final

from .kernel import KernelText

__all__ = ["LATE", "entry_symbol", "with_deadline"]

LATE: Final = -1
"""The error of a launch that was interrupted, and the number that its entry function returns."""
_FUEL: Final = 20_000
"""Operations between two looks at the clock: 20 to 50 us of first-tier code."""

START = 0
"""Operations before the first look: none, since short chunks would never look. Tests set more."""

_FROM: Final = re.compile(r" %([\w.$-]+) \]")

_LIBRARY: Final = """
@qd.deadline = internal global i64 0, align 8

define internal i1 @qd.late(ptr %kernarg, ptr %fuel) noinline nounwind {{
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

define i32 @{entry}(ptr %kernarg, i64 %deadline) noinline nounwind {{
  store i64 %deadline, ptr @qd.deadline, align 8
  %code = call i32 @{symbol}(ptr %kernarg)
  ret i32 %code
}}

declare i32 @clock_gettime(i32, ptr)
"""


def entry_symbol(symbol: str) -> str:
    """The entry function of first-tier code for a kernel with this one."""
    return f"{symbol}.first"


def with_deadline(kernel: KernelText, clock: int) -> str:
    """The text of first-tier code. clock: the number of the system's monotonic clock.

    The kernel calls no real function and takes no time stamps.
    """
    lines = kernel.text.split("\n")
    out: list[str] = []
    # Blocks that were split -> the name of their last part, which phi nodes have to refer to.
    last: dict[str, str] = {}
    stops = iter([*kernel.stops, (-1, 0)])
    at, weight = next(stops)
    block = ""
    for number, line in enumerate(lines):
        while number == at:
            go_on = f"qd.go{len(out)}"
            out += _check(len(out), weight, go_on)
            last[block] = go_on
            at, weight = next(stops)
        if line.startswith("define "):
            last.clear()
            block = ""
        elif line.endswith(":") and not line.startswith((" ", ";")):
            block = line[:-1]
        elif last and " = phi " in line:
            line = _FROM.sub(lambda m: f" %{last.get(m[1], m[1])} ]", line)
        out.append(line)
        if line == "entry:":
            out += [
                "  %qd.fuel = alloca i64, align 8",
                f"  store i64 {START}, ptr %qd.fuel, align 8",
            ]
    symbol = kernel.symbol
    library = _LIBRARY.format(
        clock=clock, late=LATE, fuel=_FUEL, entry=entry_symbol(symbol), symbol=symbol
    )
    return "\n".join(out) + library


def _check(k: int, weight: int, go_on: str) -> list[str]:
    """The end of one block, which may stop, and the head of the block that goes on."""
    if not weight:
        return [
            f"  %qd.e{k} = load i64, ptr %kernarg, align 8",
            f"  %qd.c{k} = icmp eq i64 %qd.e{k}, {LATE}",
            f"  br i1 %qd.c{k}, label %qd.end{k}, label %{go_on}",
            f"qd.end{k}:",
            f"  ret i32 {LATE}",
            f"{go_on}:",
        ]
    return [
        f"  %qd.f{k} = load i64, ptr %qd.fuel, align 8",
        f"  %qd.g{k} = sub nsw i64 %qd.f{k}, {weight}",
        f"  store i64 %qd.g{k}, ptr %qd.fuel, align 8",
        f"  %qd.c{k} = icmp sgt i64 %qd.g{k}, 0",
        f"  br i1 %qd.c{k}, label %{go_on}, label %qd.ask{k}",
        f"qd.ask{k}:",
        f"  %qd.l{k} = call i1 @qd.late(ptr %kernarg, ptr %qd.fuel)",
        f"  br i1 %qd.l{k}, label %stop, label %{go_on}",
        f"{go_on}:",
    ]
