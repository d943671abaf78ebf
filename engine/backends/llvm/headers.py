"""Lines of the headers of tasks, computed once in the entry function of a kernel.

Each task evaluates its bounds and the number of its chunks. In a kernel of many loops over the same
array these are the same instructions again and again, which LLVM is not asked to find: the entry
function runs once a launch, and is not optimised.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["share_lines"]

_PURE: Final = re.compile(
    r"(?:sext|zext|trunc|add|sub|mul|sdiv|udiv|srem|urem|and|or|xor|shl|ashr|lshr|icmp|select"
    r"|call i(?:32|64) @llvm\.[su](?:min|max)\.i(?:32|64)\() ?"
)
_NAME: Final = re.compile(r"%[\w.$-]+")


def share_lines(
    lines: list[str], ids: list[int], begin: int, known: dict[str, str]
) -> dict[str, str]:
    """Drop those of ``lines[begin:]`` whose instruction is in ``known``, and add the others to it.

    Returns the names of results that are gone, with those that replace them. All of ``known`` is
    computed before ``begin`` on every way there. Nothing is dropped if the lines hold a block.
    """
    if any(line.endswith(":") for line in lines[begin:]):
        return {}
    same: dict[str, str] = {}
    kept: list[str] = []
    numbers: list[int] = []

    def renamed(found: re.Match[str]) -> str:
        return same.get(found[0], found[0])

    for line, number in zip(lines[begin:], ids[begin:], strict=True):
        if same:
            line = _NAME.sub(renamed, line)
        name, _, text = line.strip().partition(" = ")
        if _PURE.match(text):
            before = known.setdefault(text, name)
            if before != name:
                same[name] = before
                continue
        kept.append(line)
        numbers.append(number)
    lines[begin:], ids[begin:] = kept, numbers
    return same
