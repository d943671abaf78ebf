"""The reason why a launch did not end, or was not made, in words and with the user's line."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from ..errors import SourceSpan
from ..ir import all_ops
from ..ir import codes as C
from .record import ErrorRecord

if TYPE_CHECKING:
    from ..ir import Loc
    from ..lang.kernel import Kernel
    from ..runtime.compile import FullCompile

__all__ = ["late_error", "place_of", "reason_of", "synthetic_unfit", "unending"]

_MOST: Final = 4


def place_of(loc: Loc) -> str:
    """``kernels.py:7``; where it was inlined, too, if it was."""
    text = f"{os.path.basename(loc.file)}:{loc.line}"
    if loc.root is loc:
        return text
    return f"{text}, called at {os.path.basename(loc.root.file)}:{loc.root.line}"


def reason_of(error: ErrorRecord) -> str:
    """The first line of an error's message, with the user's line."""
    text = error.message.splitlines()[0] if error.message else error.kind
    return f"{text} (line {error.line})" if error.line else text


def synthetic_unfit(error: ErrorRecord) -> str:
    """The reason why synthetic inputs are not launched: the interpreter fails on them."""
    return f"synthetic arguments do not fit the kernel: {reason_of(error)}"


def unending(compiled: FullCompile, loop: Loc | None) -> tuple[str, int]:
    """The possible cause of an endless launch, and its line in the kernel; ("", 0) for none.

    loop: the one that the interpreter did not get out of. Without one, the loops whose end depends
    on a condition are named.
    """
    if loop is not None:
        return f"the interpreter did not get out of the loop at {place_of(loop)}", loop.root.line
    functions = (compiled.func, *compiled.func.callees.values())
    found = {op.loc: None for f in functions for op in all_ops(f) if op.code == C.WHILE}
    places = list(dict.fromkeys(place_of(loc) for loc in found if loc.line))
    if not places:
        return "", 0
    more = f" and {len(places) - _MOST} more" if len(places) > _MOST else ""
    where = ", ".join(places[:_MOST]) + more
    return f"it has loops without a fixed end at {where}", next(iter(found)).root.line


def late_error(kernel: Kernel, backend: str, text: str, loop: Loc | None) -> ErrorRecord:
    """The error of a launch that did not end, at its loop or else at the kernel."""
    decl = kernel.decl
    file, line = (loop.root.file, loop.root.line) if loop is not None else (decl.file, decl.line)
    if loop is not None:
        text += f"; it was in the loop at {place_of(loop)}"
    span = SourceSpan(file, line, function=decl.name)
    return ErrorRecord(
        kind="TimeLimit",
        message=text,
        stage="launch",
        kernel=decl.name,
        backend=backend,
        file=file,
        line=line,
        function=decl.name,
        rendered=f"{span.render()}\n{text}",
    )
