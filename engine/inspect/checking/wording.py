"""Findings in words: the user's expression, names of loop variables, the source line, a caret."""

from __future__ import annotations

import linecache
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from ...analysis import enclosing_loops, is_parallel
from ...errors import QuadrantsRuntimeError
from ...ir import Func, Op, base_of
from ...ir import codes as C
from ..record_check import CheckFinding

if TYPE_CHECKING:
    from .launches import Launched
    from .proofs import Doubt
    from .shadow import Seen

__all__ = ["Words"]

_FOR: Final = re.compile(r"^\s*for\s+(.+?)\s+in\b")
_DOES: Final = {"r": "reads", "w": "writes", "a": "updates"}


class Words:
    """Describes findings in one kernel."""

    def __init__(self, func: Func) -> None:
        self.func: Final = func

    def seen(self, seen: Seen, launched: Launched) -> CheckFinding:
        """A fault that a launch had."""
        name, text = self.array(seen.op), self.expression(seen.op)
        cell = _cell(name, seen.indices)
        at = self.iteration(seen.op, seen.at)
        if seen.what == "race":
            assert seen.other is not None
            before = self.iteration(seen.op, seen.before)
            first, then = _DOES[seen.kinds[0]], _DOES[seen.kinds[1]]
            other = self.expression(seen.other)
            where = "" if seen.other.loc.line == seen.op.loc.line else (
                f" at line {seen.other.loc.line}")  # fmt: skip
            message = (
                f"race on {cell}: iteration {before} {first} it ({other}{where}), and iteration "
                f"{at} {then} it ({text})"
            )
            return self._finding(
                "fault", message, seen.op, name, seen.indices, (before, at),
                seen.other.loc.line, launched.label,
            )  # fmt: skip
        where = f" in iteration {at}" if at else ""
        if seen.what == "bounds":
            shape = f" of shape ({', '.join(map(str, seen.extents))})" if seen.extents else ""
            message = f"{text} is outside of {name}{shape}{where}: {cell}"
        else:
            message = f"{text} reads {cell}{where}, which has no value yet"
        return self._finding(
            "fault", message, seen.op, name, seen.indices, (at,) if at else (), 0, launched.label
        )

    def doubt(self, doubt: Doubt) -> CheckFinding:
        """A fault that z3 does not exclude."""
        op = doubt.access.op
        name, text = self.array(op), self.expression(op)
        loops = [self._values(op, values) for values in doubt.indices]
        sizes = dict(doubt.example)
        shown = ", ".join([*(f"{k} = {v}" for k, v in sizes.items()), *(t for t in loops[:1] if t)])
        if doubt.other is None:
            message = f"{text} may be outside of {name}"
            if doubt.state == "late":
                message += ": z3 ended without an answer"
            elif shown and doubt.state != "values":
                message += f", for example with {shown}"
            if doubt.needs:
                message += f"; `assert {doubt.needs}` excludes it"
            return self._finding(
                doubt.state, message, op, name, (), tuple(t for t in loops if t), 0, "",
                doubt.needs, sizes,
            )  # fmt: skip
        other = doubt.other.op
        first, second = _DOES[doubt.access.kind], _DOES[doubt.other.kind]
        message = (
            f"iterations may race on {name}: one {first} {text}, another {second} "
            f"{self.expression(other)} at line {other.loc.line}"
        )
        if doubt.state == "late":
            message += ": z3 ended without an answer"
        elif len([t for t in loops if t]) == 2 and doubt.state != "values":
            sized = "".join(f", {k} = {v}" for k, v in sizes.items())
            message += f", for example {loops[0]} and {loops[1]}{sized}"
        return self._finding(
            doubt.state, message, op, name, (), tuple(t for t in loops if t), other.loc.line, "",
            "", sizes,
        )  # fmt: skip

    def _finding(
        self, state: str, message: str, op: Op, array: str, indices: tuple[int, ...],
        iterations: tuple[str, ...], other: int, workload: str, needs: str = "",
        sizes: dict[str, str] | None = None,
    ) -> CheckFinding:  # fmt: skip
        loc = _place(op)
        error = QuadrantsRuntimeError.from_loc(message, loc)
        same = loc.end_line in (0, loc.line)
        return CheckFinding(
            state=state, message=message, file=loc.file, line=loc.line, col=loc.col,
            end_col=loc.end_col if same else 0, other_line=other, array=array, indices=indices,
            iterations=iterations, sizes=sizes or {}, needs=needs, workload=workload,
            rendered=error.render(),
        )  # fmt: skip

    def array(self, op: Op) -> str:
        """The user's name of the memory that an op touches."""
        base = base_of(op.args[0])
        if base.code == C.ARG_ADDR:
            return self.func.params[int(base.attr[0])].name + (".grad" if base.attr[1] else "")
        attr: Any = base.attr
        named: Any = attr.name if base.code == C.ARRAY_ALLOCA else attr
        return str(named) or "an array"

    def expression(self, op: Op) -> str:
        """The user's text of an access."""
        loc = _place(op)
        line = linecache.getline(loc.file, loc.line).encode()
        if loc.end_line in (0, loc.line) and loc.end_col > loc.col:
            text = line[loc.col : loc.end_col].decode(errors="replace").strip()
            if text:
                return text
        return self.array(op)

    def iteration(self, op: Op, at: Sequence[int]) -> str:
        """An iteration of the parallel loop around an op: ``i = 3, j = 4``."""
        if not at:
            return ""
        loops = [x for x in enclosing_loops(op.block) if is_parallel(self.func, x)]
        return _named(loops[0] if loops else None, at)

    def _values(self, op: Op, values: dict[Any, int]) -> str:
        """Values of the indices of all loops around an op."""
        out: list[str] = []
        for loop in enclosing_loops(op.block):
            prefix = f"index {loop.id} "
            mine = {k: v for k, v in values.items() if str(k).startswith(prefix)}
            ordered = [v for _, v in sorted(mine.items(), key=lambda kv: kv[0].split()[2])]
            if ordered:
                out.append(_named(loop, ordered))
        return ", ".join(out)


def _named(loop: Op | None, at: Sequence[int]) -> str:
    """The indices of a loop with the user's names."""
    names: list[str] = []
    if loop is not None:
        found = _FOR.match(linecache.getline(loop.loc.file, loop.loc.line))
        if found is not None:
            names = [n.strip(" ()") for n in found.group(1).split(",")]
    if len(names) == len(at):
        return ", ".join(f"{n} = {v}" for n, v in zip(names, at, strict=True))
    values = ", ".join(map(str, at))
    if len(names) == 1:
        return f"{names[0]} = ({values})"
    return f"({values})" if len(at) > 1 else values


def _cell(name: str, indices: Sequence[int]) -> str:
    return f"{name}[{', '.join(map(str, indices))}]" if indices else name


def _place(op: Op) -> Any:
    """The location of the expression that names the element."""
    pointer = op.args[0]
    return pointer.loc if pointer.code in (C.EXTERNAL_PTR, C.SHIFT_PTR) else op.loc
