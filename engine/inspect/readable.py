"""IR in a form for people, made from a recorded listing.

    found = readable_ir(compiled, compiled.snapshots[-1])
    print("\\n".join(found.lines))

The exact form of a listing has one op a line and is for the parser. Here names are those of the
user, operations are infix, and an op that is used once is part of the expression that uses it::

    <f32> $44 = mul $23, $23
    <f32> $47 = mul $31, $31                r2 = dx * dx + dy * dy
    <f32> $48 = add $44, $47

* `$44` is the value of op 44, where no local variable was named after it; two values that one name
  would stand for are `dx$23` and `dx$31`.
* ``x[i]`` is an element; ``x[i, j; n]`` has its place computed from indices and the extent n of
  axis 1; ``x[flat: k]`` is k elements after the first; ``$tmp[8]`` is byte 8 of the buffer between
  tasks. ``&x[i]`` is an address, ``*p`` what is at one.
* ``atomic x[i] += v`` is one atomic operation. ``>>>`` shifts zeros in. Other operations have the
  name of their op. Settings of loops and tasks are in braces.

No op is lost: each has a line of its own or is part of one, `Readable.line_of`. Lines are in the
order of the IR. An op becomes part of an expression only in its own block, and one that reads
memory only where nothing in between may write there, so that the order of evaluation is that of the
IR. Constants, parameters, extents, loop indices and short addresses have no order; they are written
wherever they are used, and belong to the first line that does.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from ..named_tuple import NamedTuple
from .readable_ops import (
    Expr,
    OpLine,
    Signature,
    call,
    expression,
    literal,
    read_line,
    repeat,
    statement,
)
from .readable_plan import ANYWHERE, OWN, REPEATED, WRITES, Plan
from .record import CompileRecord, FileRecord, Snapshot

__all__ = ["Readable", "local_names", "loop_heads", "readable_ir", "readable_values"]

_SHORT: Final = 40
"""Columns of the longest address that is repeated wherever it is used."""


class Readable(NamedTuple):
    """A listing for people; parallel sequences, one entry a line.

    lines: the text. ids: the op that the line is about, -1 for none. locs: as in `Snapshot`. types:
    of the value, empty for none. ops: the ids of all ops that the line shows, in the order of the
    IR. line_of: by the id of an op, the index of the line that shows it.
    """

    lines: tuple[str, ...]
    ids: tuple[int, ...]
    locs: tuple[int, ...]
    types: tuple[str, ...]
    ops: tuple[tuple[int, ...], ...]
    line_of: Mapping[int, int]


def readable_ir(
    compiled: CompileRecord, snapshot: Snapshot, files: Iterable[FileRecord] = (),
    renamed: Snapshot | None = None,
) -> Readable:  # fmt: skip
    """``snapshot`` of ``compiled`` in the form for people; files: for the names of loop indices.

    renamed: the same listing with other numbers of ops (see `diff_renumbered`), which are those of
    the result. A listing that is not IR of this version is returned as it is.
    """
    try:
        names = local_names(compiled)
        if renamed is not None:
            ids = zip(snapshot.ids, renamed.ids, strict=True)
            names = {new: names[old] for old, new in ids if old in names}
            snapshot = renamed
        return _Writer(snapshot, names, _loops(compiled, files)).run()
    except (ValueError, SyntaxError, LookupError, TypeError, RecursionError, MemoryError):
        return _as_it_is(snapshot)


def readable_values(
    compiled: CompileRecord, snapshot: Snapshot, ops: Iterable[int],
    files: Iterable[FileRecord] = (),
) -> dict[int, str]:  # fmt: skip
    """By op: the line that it has in the readable form, or its expression if it is part of one.

    Without those that the listing does not have, or whose line is not understood.
    """
    try:
        writer = _Writer(snapshot, local_names(compiled), _loops(compiled, files))
        found = writer.run()
    except (ValueError, SyntaxError, LookupError, TypeError, RecursionError, MemoryError):
        return {}
    out: dict[int, str] = {}
    for op in ops:
        at = found.line_of.get(op, -1)
        if at >= 0 and found.ids[at] == op:
            out[op] = found.lines[at].strip()
        elif op in writer.exprs:
            out[op] = writer.exprs[op].inside(0)
    return out


def _as_it_is(shot: Snapshot) -> Readable:
    ops = tuple([(id,) if id >= 0 else () for id in shot.ids])
    line_of = {id: i for i, id in enumerate(shot.ids) if id >= 0}
    return Readable(shot.lines, shot.ids, shot.locs, ("",) * len(ops), ops, line_of)


# ---- names


def local_names(compiled: CompileRecord) -> dict[int, str]:
    """By op: the name of the local variable that the frontend put its value into."""
    names: dict[int, str] = {}
    variables: dict[int, str] = {}
    if compiled.snapshots:
        first = compiled.snapshots[0]
        for text, op in zip(first.lines, first.ids, strict=True):
            if op < 0 or ("local_store" not in text and " alloca" not in text):
                continue
            line = read_line(text)
            if line is None:
                continue
            if line.name == "alloca":
                variables[op] = literal(line.attr)
            elif line.name == "local_store" and line.args[0] in variables:
                names.setdefault(line.args[1], variables[line.args[0]])
    for new in compiled.origins:
        source, seen = compiled.origins.get(new), 0
        while source is not None and source not in names and seen < 99:
            source, seen = compiled.origins.get(str(source)), seen + 1
        if source is not None and source in names:
            names.setdefault(int(new), names[source])
    return names


_HEAD: Final = re.compile(r"\s*(?:while\b|for\s+(\w+(?:\s*,\s*\w+)*)\s+in\b)")


def loop_heads(compiled: CompileRecord, files: Iterable[FileRecord]) -> dict[int, str]:
    """By location: ``while``, or ``for x``, as the loop there begins in the source."""
    texts = {file.path: file.text.splitlines() for file in files}
    out: dict[int, str] = {}
    for i, loc in enumerate(compiled.locs):
        lines = texts.get(loc.file, ())
        match = _HEAD.match(lines[loc.line - 1]) if 0 < loc.line <= len(lines) else None
        if match is not None:
            out[i] = "while" if match[1] is None else f"for {match[1]}"
    return out


def _loops(compiled: CompileRecord, files: Iterable[FileRecord]) -> dict[int, tuple[str, ...]]:
    """By location: the names of the indices of the loop that the user wrote there."""
    heads = loop_heads(compiled, files).items()
    return {i: tuple(re.split(r"\s*,\s*", head[4:])) for i, head in heads if head != "while"}


# ---- the text


class _Writer:
    """Writes the lines; see the module docstring."""

    def __init__(
        self,
        snapshot: Snapshot,
        names: Mapping[int, str],
        loops: Mapping[int, tuple[str, ...]],
    ) -> None:
        self.snapshot = snapshot
        self.plan = Plan(snapshot)
        self.loops = loops
        self.signature = Signature((), ())
        self.rows: list[tuple[str, int, int, str, tuple[int, ...]]] = []
        self.line_of: dict[int, int] = {}
        self.exprs: dict[int, Expr] = {}
        self._parts: dict[int, list[int]] = {}
        self._scopes: list[list[str]] = []
        self._indices: dict[int, tuple[str, ...]] = {}
        self._wanted = self._names(names)
        self._claims = Counter([(self._top(id), name) for id, name in self._wanted.items()])
        self._claimed = Counter(self._wanted.values())
        self._params: tuple[str, ...] = ()

    def _names(self, names: Mapping[int, str]) -> dict[int, str]:
        """The name that each op with a line of its own would like."""
        out: dict[int, str] = {}
        plan = self.plan
        for id, i in plan.at.items():
            op = plan.ops[i]
            if op is None or plan.how[i] != OWN:
                continue
            if op.name == "alloca":
                out[id] = literal(op.attr)
            elif op.name in ("array_alloca", "ad_stack_alloca"):
                found = re.search(r"\bname='(\w+)'", op.attr)
                out[id] = found[1] if found else ""
            elif id in names and plan.uses[id]:
                out[id] = names[id]
        return {id: name for id, name in out.items() if name}

    def run(self) -> Readable:
        shot, plan = self.snapshot, self.plan
        for i, (text, id) in enumerate(zip(shot.lines, shot.ids, strict=True)):
            op = plan.ops[i]
            if op is None:
                self._other(i, text, id)
            elif plan.how[i] == OWN or not self._inline(i, id, op):
                self._own(i, id, op)
        rows = self.rows
        return Readable(
            tuple([row[0] for row in rows]), tuple([row[1] for row in rows]),
            tuple([row[2] for row in rows]), tuple([row[3] for row in rows]),
            tuple([row[4] for row in rows]), self.line_of,
        )  # fmt: skip

    def _other(self, i: int, text: str, id: int) -> None:
        """A first line, or one that closes; or an op that is not understood, as it is."""
        if text.startswith(("kernel ", "function ")):
            self.signature = Signature.read(text, self._params)
            if text.startswith("kernel "):
                self._params = self.signature.params
            self._scopes = [[*self.signature.params, *self.signature.args]]
        elif text.endswith("{"):  # the next region of the same op
            if text.endswith("else {") and self.snapshot.lines[i + 1] == text[:-6]:
                return  # it is empty
            self._scopes[-1:] = [list(self._scopes[-1])]
        elif self._scopes:
            self._scopes.pop()
        self._add(text, id, i, "", (id,) if id >= 0 else ())

    def _add(self, text: str, id: int, i: int, type: str, ops: tuple[int, ...]) -> None:
        for op in ops:
            self.line_of.setdefault(op, len(self.rows))
        self.rows.append((text, id, self.snapshot.locs[i], type, ops))

    def _args(self, op: OpLine) -> list[Expr]:
        exprs = self.exprs
        return [exprs.get(arg) or Expr(f"${arg}") for arg in op.args]

    def _inline(self, i: int, id: int, op: OpLine) -> bool:
        """Keep the text of an op for its uses; False if it is too long for that."""
        if op.name == "loop_index":
            made = Expr(self._index(op))
        else:
            made = expression(op, self._args(op), self.signature)
        if self.plan.how[i] == ANYWHERE and op.name in REPEATED and len(made.text) > _SHORT:
            return False
        self.exprs[id] = made
        parts = self._gather(op)
        parts.append(id)
        self._parts[id] = parts
        return True

    def _gather(self, op: OpLine) -> list[int]:
        """The ops that the operands of ``op`` show, without those that a line shows already."""
        parts: list[int] = []
        known, placed = self._parts, self.line_of
        for arg in op.args:
            if arg in known:
                parts += [part for part in known[arg] if part not in placed]
        return parts

    def _own(self, i: int, id: int, op: OpLine) -> None:
        """Write an op on a line of its own."""
        raw = self.snapshot.lines[i]
        pad = raw[: len(raw) - len(raw.lstrip(" "))]
        args = self._args(op)
        parts = self._gather(op)
        parts.append(id)
        ops = tuple(sorted(set(parts), key=self.plan.at.__getitem__))
        type = op.type
        if op.opens:
            text = self._opening(i, id, op, args)
        elif op.name == "bounds":
            text = self._bounds(args)
        elif op.name in ("offloaded", "range_for"):
            text = repeat(op) if op.args else "task"
        elif op.name in ("alloca", "array_alloca", "ad_stack_alloca"):
            text = self._variable(id, op)
        else:
            text = statement(op, args) or ""
            if not text:
                text = expression(op, args, self.signature, self._index(op)).inside(0)
            if op.type and (self.plan.uses[id] or not text.startswith("atomic ")):
                text = f"{self._name(id)} = {text}"
                self.exprs[id] = Expr(self._name(id))
            elif len(op.args) > 1 and op.name in WRITES:
                type = self._type(op.args[1])
        self._add(pad + text, id, i, type, ops)

    def _type(self, id: int) -> str:
        at = self.plan.at.get(id)
        op = self.plan.ops[at] if at is not None else None
        return op.type if op is not None else ""

    def _top(self, id: int) -> int:
        return self.plan.top[self.plan.at[id]]

    def _name(self, id: int) -> str:
        """The name of an op's value: the user's where it names this op alone."""
        name = self._wanted.get(id)
        if name is None:
            return f"${id}"
        top = self._top(id)
        same = self._claims[top, name] + self._claims[0, name] if top else self._claimed[name]
        alone = same == 1 and name not in self._scopes[0]
        return name if alone else f"{name}${id}"

    def _variable(self, id: int, op: OpLine) -> str:
        name = self._name(id)
        self.exprs[id] = Expr(name, place=op.name == "alloca")
        return f"var {name}" if op.name == "alloca" else f"{op.name} {name} {op.attr}"

    # ---- loops and branches

    def _opening(self, i: int, id: int, op: OpLine, args: Sequence[Expr]) -> str:
        """The first line of an op with regions."""
        names = self._scopes[-1]
        attr = f" {op.attr}" if op.attr else ""
        if op.name == "range_for":
            self._indices[id] = found = self._loop_names(i, id, op, len(args) // 2)
            names = [*names, *found]
            text = f"for {_ranges(found, args)}{attr} {{"
        elif op.name == "offloaded":
            axes = self._axes(i)
            self._indices[id] = found = self._loop_names(i, id, op, axes)
            names = [*names, *found]
            text = f"task{attr} {op.opens} {{"
        elif op.name == "if":
            text = f"if {args[0].inside(0)} {{"
        elif op.name == "while":
            text = "while true {"
        else:
            text = f"{call(op, args)} {op.opens} {{"
        self._scopes.append(names)
        return text

    def _axes(self, i: int) -> int:
        """The number of axes of the task that line ``i`` opens."""
        ops = self.plan.ops
        for k in range(i + 1, len(ops)):
            op = ops[k]
            if op is None or op.name == "bounds":
                return len(op.args) // 2 if op is not None else 0
        return 0

    def _loop_names(self, i: int, id: int, op: OpLine, axes: int) -> tuple[str, ...]:
        """The names of a loop's indices: those in the source where they are free."""
        found = self.loops.get(self.snapshot.locs[i], ())
        for unit in ("chunk", "thread"):
            if f"unit='{unit}'" in op.attr:
                found = (unit,)
        if len(found) == 1 < axes:
            found = tuple([f"{found[0]}[{axis}]" for axis in range(axes)])
        taken = {*self._scopes[-1], *self._wanted.values()}
        if len(found) != axes:
            free = [letter for letter in "ijklmnopqrstuvwxyz" if letter not in taken]
            found = tuple(free[:axes] if len(free) >= axes else [f"i{k}" for k in range(axes)])
        return tuple([f"{name}${id}" if name in taken else name for name in found])

    def _index(self, op: OpLine) -> str:
        if op.name != "loop_index":
            return ""
        names = self._indices.get(op.args[0]) or ()
        axis: int = literal(op.attr)
        return names[axis] if axis < len(names) else f"index {axis} of ${op.args[0]}"

    def _bounds(self, args: Sequence[Expr]) -> str:
        """The end of a task's header."""
        task = next(reversed(self._indices), -1)
        return f"for {_ranges(self._indices.get(task, ()), args)}" if args else "once"


def _ranges(names: Sequence[str], args: Sequence[Expr]) -> str:
    """``i, j in 0..n, 0..m``."""
    ends = [f"{a.inside(11)}..{b.inside(11)}" for a, b in zip(args[::2], args[1::2], strict=True)]
    return f"{', '.join(names)} in {', '.join(ends)}"
