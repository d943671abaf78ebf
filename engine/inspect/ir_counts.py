"""Statements of a recorded listing, by kind, task and pass: what rules about IR count.

    shot = listing_after(compiled, "cfg_optimization", task=2)
    found = statements(compiled, shot, "loads", task=2)
    found[0].text, found[0].line      # the statement, and the line of the user's source

A kind is one of `KINDS`, ``statements`` for all, or ``op.NAME`` for ops of one name. Everything is
read from the record, so that saved reports and baselines can be asked the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from ..ir import codes as C
from ..named_tuple import NamedTuple
from .readable_ops import OpLine, numbers_of, read_line
from .record import CompileRecord, PassRun, Snapshot

__all__ = [
    "KINDS", "KIND_CODES", "SHORT_PASSES", "NoTaskError", "Statement", "UncountedError", "is_kind",
    "kinds_text", "listing_after", "statements", "task_count",
]  # fmt: skip


def _only(*codes: int) -> list[bool]:
    return [code in codes for code in range(C.COUNT)]


KIND_CODES: Final = (
    ("loads", _only(C.GLOBAL_LOAD)),
    ("stores", _only(C.GLOBAL_STORE)),
    ("local_loads", _only(C.LOCAL_LOAD)),
    ("local_stores", _only(C.LOCAL_STORE)),
    ("allocas", _only(C.ALLOCA)),
    ("atomics", C.ATOMIC),
    ("loops", _only(C.RANGE_FOR, C.WHILE)),
    ("branches", _only(C.IF)),
    ("asserts", _only(C.ASSERT)),
    ("casts", _only(C.CAST_VALUE, C.CAST_BITS)),
)
"""Kinds of ops: (name, by code: True if an op is of this kind)."""
KINDS: Final = tuple(name for name, _ in KIND_CODES)
SHORT_PASSES: Final = {
    "cfg": "cfg_optimization",
    "cse": "per_task_cse",
    "licm": "loop_invariant_code_motion",
}
"""Common names of passes."""
_NAMES: Final = {
    kind: frozenset(name for name, there in zip(C.NAME, codes, strict=True) if there)
    for kind, codes in KIND_CODES
}
_TASK: Final = "offloaded"
_LOOP: Final = "range_for"
_FLOAT: Final = re.compile(r"(<f\d+> \$\d+ = const )(\S+)")
_TOP: Final = 2
"""Columns before an op at the top of a kernel."""


class UncountedError(ValueError):
    """A compile lacks what is to be counted; the message says what."""


class NoTaskError(UncountedError):
    """The kernel has no task of this number."""


class Statement(NamedTuple):
    """A statement. op: its id. file, line: of the user's source; empty and 0 if unknown. called:
    ``file:line`` of the call that it was inlined at; empty for none."""

    op: int
    text: str
    file: str
    line: int
    called: str = ""


def kinds_text() -> str:
    """The kinds, for messages."""
    return f"statements, {', '.join(KINDS)}, op.NAME (such as op.global_load)"


def is_kind(kind: str) -> bool:
    """True if statements can be counted by this kind."""
    return kind == "statements" or kind in _NAMES or kind.removeprefix("op.") in C.NAME


def listing_after(
    compiled: CompileRecord, name: str = "", stage: str = "", task: int | None = None
) -> Snapshot:
    """The IR after the last run of a pass, of ``stage`` if given; without a name, after the last
    pass. task: runs that were limited to other tasks do not count.

    Raises UncountedError if there is none.
    """
    if not compiled.snapshots:
        raise UncountedError("the record has no listings of the IR")
    if not name and not stage:
        return compiled.snapshots[-1]
    wanted = SHORT_PASSES.get(name, name)
    found: PassRun | None = None
    for run in compiled.runs:
        here = wanted in ("", run.name) and stage in ("", run.stage) and run.state != "skipped"
        if here and (task is None or run.task is None or run.task == task):
            found = run
    if found is None:
        if task is not None and task_count(compiled.snapshots[-1]) <= task:
            raise NoTaskError(f"has no task {task}")
        of = f" in stage {stage}" if stage else ""
        raise UncountedError(f"no pass {wanted or 'at all'} ran{of}{_near(wanted, compiled)}")
    return compiled.snapshots[found.after]


def _near(name: str, compiled: CompileRecord) -> str:
    import difflib  # for messages alone

    known = dict.fromkeys(run.name for run in compiled.runs)
    close = [] if name in known else difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f'; did you mean "{close[0]}"?' if close else ""


def task_count(shot: Snapshot) -> int:
    """The number of tasks of a listing."""
    found = map(_task, shot.lines)
    return sum(1 for task in found if task is not None and task.name == _TASK)


def statements(
    compiled: CompileRecord, shot: Snapshot, kind: str, task: int | None = None
) -> list[Statement]:
    """The statements of a kind, in order; of one task, or of the kernel and all it calls.

    The task itself is no statement of its own. Raises NoTaskError if there is no such task.
    """
    names = _NAMES.get(kind)
    only = kind.removeprefix("op.") if kind.startswith("op.") else ""
    out: list[Statement] = []
    for index, text in _lines_of(shot, task):
        found = read_line(text)
        if found is None or shot.ids[index] < 0:
            continue
        if found.name == only if only else names is None or found.name in names:
            out.append(_statement(compiled, shot, index, text))
    return out


def _task(text: str) -> OpLine | None:
    """The task, or loop at the top, that begins on a line."""
    if len(text) - len(text.lstrip(" ")) != _TOP:
        return None
    found = read_line(text)
    return found if found is not None and found.name in (_TASK, _LOOP) else None


def _lines_of(shot: Snapshot, task: int | None) -> Iterator[tuple[int, str]]:
    """The lines of a task, or all; for one that repeats another one, those of the other."""
    number = -1
    inside = False
    bodies: dict[int, list[tuple[int, str]]] = {}
    body: list[tuple[int, str]] = []
    for index, text in enumerate(shot.lines):
        found = _task(text)
        if found is not None:
            number += found.name == _TASK
            inside = bool(found.opens)
            body = [] if inside else _repeated(found, bodies)
            bodies[shot.ids[index]] = body
            if task is None:
                yield index, text
                yield from () if inside else body
            elif number == task and not inside:
                yield from body
        elif inside:
            if len(text) - len(text.lstrip(" ")) < _TOP or text.rstrip() == " " * _TOP + "}":
                inside = False
            else:
                body.append((index, text))
                if task in (None, number):
                    yield index, text
        elif task is None:
            yield index, text
    if task is None:
        return
    if number < 0:
        raise UncountedError("the IR has no tasks yet at that pass")
    if task > number:
        many = "1 task" if number == 0 else f"{number + 1} tasks"
        raise NoTaskError(f"has no task {task}: the IR has {many}, from 0")


def _repeated(task: OpLine, bodies: dict[int, list[tuple[int, str]]]) -> list[tuple[int, str]]:
    """The lines of a task or loop that repeats another one, with its own numbers. bodies: those of
    the ones before it."""
    lines, numbers = bodies.get(task.args[0], []), numbers_of(task)
    return [(index, _FLOAT.sub(lambda m: m[1] + numbers.get(m[2], m[2]), text))
            for index, text in lines] if numbers else lines  # fmt: skip


def _statement(compiled: CompileRecord, shot: Snapshot, index: int, line: str) -> Statement:
    op, text, at = shot.ids[index], line.strip(), shot.locs[index]
    outer = compiled.root(at)
    if outer is None:
        return Statement(op, text, "", 0)
    loc = compiled.locs[at]
    called = f"{outer.file}:{outer.line}" if outer is not loc else ""
    return Statement(op, text, loc.file, loc.line, called)
