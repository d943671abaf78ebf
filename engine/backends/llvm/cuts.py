"""Long basic blocks of optimised LLVM IR, cut into shorter ones.

LLVM selects instructions block by block, in a time that grows faster than the block: 18 s for one
chain of 10,000 multiplications and additions, 0.8 s for the same in blocks of `_MOST`. A cut is a
branch to the next line, for which no instruction is generated.

LLVM would join the blocks again just before it selects instructions, unless their addresses are
used: a list in the metadata of the module does that, and costs nothing in the code.

Results are the same bits without `fast_math`. With it a product and the sum that uses it become one
instruction only inside of a block: a block is cut where no product is left unused, if there is such
a place before it has twice the length.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["cut"]

_MOST: Final = 500
"""Instructions of a block: the smallest time of code generation is that for 250 to 500."""
_LABEL: Final = re.compile(r'([\w.$-]+|"[^"]*"):')
_DEFINED: Final = re.compile(r'define [^@]*(@[\w.$-]+|@"[^"]*")\(')
_FROM: Final = re.compile(r', %([\w.$-]+|"[^"]*") \]')
_VALUE: Final = re.compile(r"%[\w.$-]+")
_PRODUCT: Final = re.compile(r"  (%[\w.$-]+) = fmul [a-z ]*\bcontract\b")


class _Cutter:
    """Copies the lines of one module. taken: the address of each new block."""

    def __init__(self, lines: list[str]) -> None:
        self.lines: Final = lines
        self.out: Final[list[str]] = []
        self.taken: Final[list[str]] = []

    def function(self, at: int, end: int) -> None:
        """Copy the function whose body is ``lines[at:end]``; ``lines[at - 1]`` is its head."""
        found = _DEFINED.match(self.lines[at - 1])
        if found is None or end - at <= _MOST:
            self.out += self.lines[at:end]
            return
        last: dict[str, str] = {}
        start = len(self.out)
        label = ""
        count = 0
        products: set[str] = set()
        for line in self.lines[at:end]:
            if (new := _LABEL.match(line)) is not None:
                label, count = new[1], 0
                products.clear()
            elif label and _may_follow_cut(line):
                if count >= _MOST and (not products or count >= 2 * _MOST):
                    name = f"qd.cut.{len(self.taken)}"
                    self.out += [f"  br label %{name}", f"{name}:"]
                    self.taken.append(f"ptr blockaddress({found[1]}, %{name})")
                    last[label] = name
                    count = 0
                    products.clear()
                count += 1
                if products:
                    products.difference_update(_VALUE.findall(line))
                if (product := _PRODUCT.match(line)) is not None:
                    products.add(product[1])
            self.out.append(line)
        if last:
            for i in range(start, len(self.out)):
                if " = phi " in self.out[i]:
                    self.out[i] = _FROM.sub(lambda m: f", %{last.get(m[1], m[1])} ]", self.out[i])


def _may_follow_cut(line: str) -> bool:
    """True for an instruction that may come first in a block other than the entry."""
    if line.startswith("  %"):
        return " = phi " not in line and " = alloca " not in line
    return line.startswith(("  store ", "  call ", "  tail call "))


def cut(text: str) -> str:
    """The module with no block that is much longer than `_MOST`; ``text`` itself if it has none."""
    lines = text.split("\n")
    cutter = _Cutter(lines)
    at = 0
    while at < len(lines):
        cutter.out.append(lines[at])
        at += 1
        if lines[at - 1].startswith("define "):
            end = lines.index("}", at)
            cutter.function(at, end)
            at = end
    if not cutter.taken:
        return text
    node = 1 + max((int(m) for m in re.findall(r"^!(\d+) = ", text, re.M)), default=-1)
    return "\n".join([
        *cutter.out, f"!qd.cuts = !{{!{node}}}", f"!{node} = !{{{', '.join(cutter.taken)}}}", ""
    ])  # fmt: skip
