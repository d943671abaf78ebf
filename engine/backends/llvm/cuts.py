"""Long basic blocks of optimised LLVM IR, cut into shorter ones.

LLVM selects instructions block by block, in a time that grows faster than the block: 18 s for one
chain of 10,000 multiplications and additions, 1.3 s for the same in blocks of `_MOST`. A cut is a
branch to the next line, for which no instruction is generated.

LLVM would join the blocks again just before it selects instructions, unless their addresses are
used: a list in the metadata of the module does that, and costs nothing in the code.

Results are the same bits without `fast_math`. With it a product and the sum that uses it become one
instruction only inside of a block: a block is cut where no product is left unused, if there is such
a place before it has twice the length.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final

__all__ = ["cut"]

_MOST: Final = 1000
"""Instructions of a block. Code generation is fastest with 250 to 500, the code 3 % slower then."""
_LONG: Final = 4
"""Blocks of this many times as many are cut: LLVM needs half a second at most for shorter ones."""
_LABEL: Final = re.compile(r'([\w.$-]+|"[^"]*"):')
_DEFINED: Final = re.compile(r'define [^@]*(@[\w.$-]+|@"[^"]*")\(')
_FROM: Final = re.compile(r', %([\w.$-]+|"[^"]*") \]')
_VALUE: Final = re.compile(r"%[\w.$-]+")
_PRODUCT: Final = re.compile(r"  (%[\w.$-]+) = fmul [a-z ]*\bcontract\b")


class _Cutter:
    """Copies the lines of one module. taken: the address of each new block."""

    def __init__(self, lines: list[str]) -> None:
        self.lines: Final = lines
        self.out: list[str] = []
        self.taken: Final[list[str]] = []

    def function(self, at: int, end: int) -> None:
        """Copy the function whose body is ``lines[at:end]``; ``lines[at - 1]`` is its head."""
        found = _DEFINED.match(self.lines[at - 1])
        if found is None or end - at <= _LONG * _MOST:
            self.out += self.lines[at:end]
            return
        starts = [i for i in range(at, end) if _LABEL.match(self.lines[i])]
        start = len(self.out)
        last: dict[str, str] = {}
        self.out += self.lines[at : starts[0] if starts else end]
        for first, after in pairwise([*starts, end]):
            label = _LABEL.match(self.lines[first])
            if label is None or after - first <= _LONG * _MOST:
                self.out += self.lines[first:after]
            else:
                last[label[1]] = self._block(first, after, found[1])
        if last:
            for i in range(start, len(self.out)):
                if " = phi " in self.out[i]:
                    self.out[i] = _FROM.sub(lambda m: f", %{last.get(m[1], m[1])} ]", self.out[i])

    def _block(self, first: int, after: int, function: str) -> str:
        """Copy the block ``lines[first:after]`` in parts; return the label of the last one."""
        count = 0
        name = self.lines[first].partition(":")[0]
        products: set[str] = set()
        for line in self.lines[first:after]:
            if _may_follow_cut(line):
                if count >= _MOST and (not products or count >= 2 * _MOST):
                    name = f"qd.cut.{len(self.taken)}"
                    self.out += [f"  br label %{name}", f"{name}:"]
                    self.taken.append(f"ptr blockaddress({function}, %{name})")
                    count = 0
                    products.clear()
                count += 1
                if products:
                    products.difference_update(_VALUE.findall(line))
                if (product := _PRODUCT.match(line)) is not None:
                    products.add(product[1])
            self.out.append(line)
        return name


def _may_follow_cut(line: str) -> bool:
    """True for an instruction that may come first in a block other than the entry."""
    if line.startswith("  %"):
        return " = phi " not in line and " = alloca " not in line
    return line.startswith(("  store ", "  call ", "  tail call "))


def cut(text: str) -> str:
    """The module without very long blocks; ``text`` itself if it has none."""
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
