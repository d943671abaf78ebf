"""LLVM's optimisation remarks: what its passes did, and did not do, and why.

LLVM prints them to the process's standard error, as far as its options ask for them. While they are
collected that descriptor leads to a temporary file; whatever else was written there goes on to
where it belongs afterwards. Only the texts that a person looks at are made that way, never code
that runs.

The module has debug locations whose lines are those of the LLVM IR text (`lines.with_locations`).
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Callable, Sequence
from typing import Any, Final

from . import toolchain

__all__ = ["OpRemark", "collected"]

OpRemark = tuple[str, int, str]
"""The pass, the op (-1: none that is known), the text; other ops in it are written ``$7``."""

_NOTHING: Final = "^$"
_DONE: Final = "^(loop-vectorize|loop-unroll|licm)$"
_MISSED: Final = "^(loop-vectorize|loop-unroll|licm|gvn|transform-warning)$"
_REMARK: Final = re.compile(r"(?:remark|warning): (?:kernel\.ll:(\d+):\d+|<unknown>:0:0): (.*)")
_PLACE: Final = re.compile(r"kernel\.ll:(\d+):\d+")
_MORE: Final = re.compile(r"(Backward|Forward|Unsafe|Unknown|Indirect)\b.*(depend|kernel\.ll:)")
"""A second line of a remark."""
_PRAGMA: Final = re.compile(r"\.? ?Use #pragma .*")
_BARE: Final = "loop not vectorized"
_MOST: Final = 400
_PASSES: Final = (
    ("loop-vectorize", re.compile(r"vectoriz|interleav|dependen|reorder", re.I)),
    ("loop-unroll", re.compile(r"unroll", re.I)),
    ("licm", re.compile(r"hoist|sink|loop-invariant|promot|moving", re.I)),
    ("gvn", re.compile(r"load of type", re.I)),
)
"""LLVM does not print the name of the pass: it follows from the words."""


def collected(work: Callable[[], str], ids: Sequence[int]) -> tuple[str, tuple[OpRemark, ...]]:
    """Return the result of ``work``, which runs LLVM's passes, and the remarks of these passes.

    ids: the op of each line of the LLVM IR.
    """
    with toolchain.LOCK:
        out, texts = _caught(work)
    return out, _parsed(texts, ids)


def _caught(work: Callable[[], str]) -> tuple[str, list[str]]:
    """Return the result of ``work`` and the lines of remarks that were printed meanwhile."""
    llvm: Any = toolchain.binding()
    if sys.stderr is not None:
        sys.stderr.flush()
    try:
        kept = os.dup(2)
    except OSError:  # the process has no standard error
        return work(), []
    with tempfile.TemporaryFile() as file:
        try:
            os.dup2(file.fileno(), 2)
            _ask(llvm, _DONE, _MISSED)
            out = work()
        finally:
            _ask(llvm, _NOTHING, _NOTHING)
            os.dup2(kept, 2)
            file.seek(0)
            lines = file.read().decode("utf-8", "replace").splitlines()
            others = [line for line in lines if not (_REMARK.match(line) or _MORE.match(line))]
            if others:
                os.write(kept, ("\n".join(others) + "\n").encode())
            os.close(kept)
    return out, lines


def _ask(llvm: Any, done: str, missed: str) -> None:
    llvm.set_option("", f"-pass-remarks={done}")
    llvm.set_option("", f"-pass-remarks-missed={missed}")
    llvm.set_option("", f"-pass-remarks-analysis={missed}")


def _parsed(lines: Sequence[str], ids: Sequence[int]) -> tuple[OpRemark, ...]:
    """The distinct remarks, in order. A plain "not vectorized" is left out next to a reason."""

    def op_of(number: str | None) -> int:
        at = int(number or 0)
        return ids[at - 1] if 0 < at <= len(ids) else -1

    def named(match: re.Match[str]) -> str:
        op = op_of(match[1])
        return f"${op}" if op >= 0 else "another place"

    found: dict[OpRemark, None] = {}
    for line, after in zip(lines, [*lines[1:], ""], strict=False):
        match = _REMARK.match(line)
        if match:
            text = _PRAGMA.sub("", match[2])
            if _MORE.match(after):
                text = f"{text.rstrip('. ')}. {after}"
            text = _PLACE.sub(named, text).strip()
            name = next((name for name, words in _PASSES if words.search(text)), "LLVM")
            found[name, op_of(match[1]), text] = None
    reasons = any(text.startswith(_BARE) and text != _BARE for _, _, text in found)
    kept = [x for x in found if not (reasons and x[2] == _BARE)]
    return tuple(kept[:_MOST])
