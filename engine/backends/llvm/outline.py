"""Groups of statements of a very large task, moved into functions of their own.

LLVM's passes for loops and its code generator need a time that grows faster than a function: 13 s
for 4,800 small loops in one, and the square of that number. A task of more than `_LARGE` is
therefore cut into functions of `_MOST` at most, so that the time is linear in its size.

::

    part3:                                    part3:
      br label %for7                            call void @task.body.part3(..., ptr %qd.frame)
      ... loops over `s` and `%i` ...    ->     br label %endpart4
      br label %endpart4                      endpart4:
    endpart4:

`groups` chooses the statements of each group from the IR, the emitter marks where their lines begin
and end, and `outline` moves these lines, which keep their names:

* a scalar variable that other lines use, too, is in a frame, which all functions get. A function
  with loops copies it from there and back, so that LLVM can keep it in a register; arrays are
  passed by address;
* a value that other groups compute is in the frame, too; one of other lines is passed. An address
  or a wider integer that follows from the task's arguments alone is computed again instead;
* lines that leave the group in another way than by its end (`continue`, `return`, assertions) stay
  where they are, as do those with a value whose type the text does not show.

A function has few parameters therefore, whatever the number of variables: with one for each, the
text of a loop with 10,000 accumulators would be four times as long.

Results are the same bits, but for sums of products across the ends of groups under `fast_math`.
First-tier code looks at its deadline after each call: what an interrupted function has left must
not be used (see `deadline`).
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

from ...ir import Block, Op
from ...ir import codes as C
from ...named_tuple import NamedTuple

__all__ = ["OUTLINED", "Groups", "Outlined", "groups", "outline"]

OUTLINED: Final = ".body.part"
"""The middle of the names of functions made here."""

Groups = dict[Block, list[tuple[int, int]]]
"""By block, the first and the last operation, plus 1, of each group in it."""

_LARGE: Final = 60_000
"""Weight of a task that is cut. The largest of known programs has 33,000 operations."""
_MOST: Final = 4_000
"""Weight of a group: LLVM's time per operation is the least between 2,000 and 8,000."""
_LEAST: Final = 400
"""Weight of a group that is worth a function."""
_LOOP: Final = 100
"""Weight of a loop, in operations."""
_LOCAL: Final = 10
"""Weight of a variable, in operations of a task that may be cut: a loop over 5,000 accumulators
needs three times as long in one function."""
_ALWAYS: Final = 1 << 20
"""Weight of a call for `deadline`: the clock is always looked at."""

_NAME: Final = re.compile(r"%[\w.$-]+")
_TYPE: Final = re.compile(r"\b(i1|i8|i16|i32|i64|half|float|double|ptr)\b")
_VARIABLE: Final = re.compile(r"  (%[\w.$-]+) = alloca (i\d+|half|float|double)(, align \d+)?$")
_ADDRESSES: Final = frozenset(("alloca", "getelementptr", "inttoptr"))
_CASTS: Final = frozenset((
    "sext", "zext", "trunc", "fpext", "fptrunc", "sitofp", "uitofp", "fptosi", "fptoui", "bitcast",
    "ptrtoint", "addrspacecast",
))  # fmt: skip
_UNKNOWN: Final = frozenset(("cmpxchg", "extractvalue", "insertvalue", "atomicrmw"))
_AGAIN: Final = frozenset(("getelementptr", "sext", "zext"))
"""Operations that are cheaper than a load."""
_BYTES: Final = {"i1": 1, "i8": 1, "i16": 2, "half": 2, "i32": 4, "float": 4, "i64": 8, "double": 8,
                 "ptr": 8}  # fmt: skip
_FRAME: Final = "%qd.frame"
_DECLARED_FRAME: Final = f"ptr noalias noundef align 8 {_FRAME}"


def groups(body: Block, ops: Sequence[Op]) -> Groups:
    """The groups of a task's body; none for a task of usual size. ops: all under ``body``."""
    found: Groups = {}
    codes = bytes([op.code for op in ops])
    loops = sum([codes.count(code) for code in range(C.COUNT) if C.LOOP[code]])
    if len(ops) + _LOOP * loops + _LOCAL * codes.count(C.ALLOCA) > _LARGE:
        weights: dict[Block, list[int]] = {}
        _weigh(body, weights)
        _group(body, weights, found)
    return found


def _weigh(block: Block, weights: dict[Block, list[int]]) -> int:
    """The weight of a block; notes those of its operations."""
    found = [
        1 + (_LOOP if C.LOOP[op.code] else 0) + sum([_weigh(r, weights) for r in op.regions])
        if op.regions else 1
        for op in block.ops
    ]  # fmt: skip
    weights[block] = found
    return sum(found)


def _group(block: Block, weights: dict[Block, list[int]], found: Groups) -> None:
    begin = total = 0
    mine: list[tuple[int, int]] = []
    for i, (op, weight) in enumerate(zip(block.ops, weights[block], strict=True)):
        if total + weight > _MOST or op.code == C.WHILE_CONTROL:
            if total >= _LEAST:
                mine.append((begin, i))
            begin, total = i, 0
        if weight > _MOST or op.code == C.WHILE_CONTROL:
            begin, total = i + 1, 0
            for region in op.regions:
                _group(region, weights, found)
        else:
            total += weight
    if total >= _LEAST and len(mine) + begin:
        mine.append((begin, len(block.ops)))
    if mine:
        found[block] = mine


class Outlined(NamedTuple):
    """The text of a function's body, and of the functions that it calls now.

    lines, ids, stops: see `Emitter`. head: of the function. parts: whole functions, as lines with
    the ids and stops of these.
    """

    lines: list[str]
    ids: list[int]
    stops: list[tuple[int, int]]
    head: list[str]
    parts: list[tuple[list[str], list[int], list[tuple[int, int]]]]


class _Outliner:
    """Moves spans of one function's lines. params: declarations. names: of what each line defines.
    places: what the frame has, with offsets. size: of the frame."""

    def __init__(
        self, name: str, params: dict[str, str], text: tuple[list[str], list[int], list[str]],
        stops: Sequence[tuple[int, int]],
    ) -> None:  # fmt: skip
        self.name: Final = name
        self.params: Final = {"kernarg": "ptr", **params}
        self.lines, self.ids, self.head = text
        self.stops: Final = sorted(stops)
        self.defined: Final = {f"%{name}": -2 for name in self.params}
        self.variables: Final[dict[str, str]] = {}
        """Types of scalar variables."""
        self.heads: Final[dict[str, str]] = {}
        self.places: Final[dict[str, int]] = {}
        self.size = 0
        for line in self.head:
            if line.startswith("  %"):
                one = line.split(" ", 3)[2]
                self.defined[one] = -1
                self.heads[one] = line
                if (found := _VARIABLE.match(line)) is not None:
                    self.variables[one] = found[2]
        self.labels: Final[set[str]] = set()
        self.names: Final = [self._name(line) for line in self.lines]
        self.defined.update(zip(self.names, range(len(self.lines)), strict=True))

    def _name(self, line: str) -> str:
        """The value or the label that a line defines; "" for none."""
        if line[:3] == "  %":
            return line[2 : line.index(" ", 3)]
        if line[-1:] != ":":
            return ""
        label = f"%{line[:-1]}"
        self.labels.add(label)
        return label

    def stops_in(self, begin: int, end: int) -> list[tuple[int, int]]:
        """The stops of ``lines[begin:end]``. A search: there are parts and stops by thousands."""
        return self.stops[bisect_left(self.stops, (begin,)) : bisect_left(self.stops, (end,))]

    def used(self, begin: int, end: int) -> dict[str, None]:
        return dict.fromkeys(_NAME.findall("\n".join(self.lines[begin:end])))

    def definition(self, name: str) -> str:
        """The line of a value."""
        at = self.defined[name]
        return self.lines[at] if at >= 0 else self.heads[name]

    def operands(self, name: str) -> list[str] | None:
        """The task's arguments that a value follows from, if any function may compute it again."""
        text = self.definition(name).partition(" = ")[2]
        if text.split(" ", 1)[0] not in _AGAIN:
            return None
        found = _NAME.findall(text)
        return found if {self.defined[one] for one in found} <= {-2} else None

    def has_loop(self, begin: int, end: int) -> bool:
        """True if a jump goes back in these lines."""
        return any(
            begin <= self.defined.get(label, -1) <= i
            for i in range(begin, end) if self.lines[i].startswith("  br ")
            for label in _NAME.findall(self.lines[i]) if label in self.labels
        )  # fmt: skip

    def place(self, name: str, kind: str, to: str) -> str:
        """The line that computes the address, as ``to``, of a value or a variable in the frame."""
        at = self.places.get(name)
        if at is None:
            size = _BYTES[kind]
            at = self.places[name] = -(-self.size // size) * size
            self.size = at + size
        return f"  {to} = getelementptr inbounds i8, ptr {_FRAME}, i64 {at}"

    def read(self, name: str, kind: str) -> list[str]:
        """Lines that load a value from the frame. Memory has no ``i1``."""
        place = self.place(name, kind, f"{name}.at")
        if kind != "i1":
            return [place, f"  {name} = load {kind}, ptr {name}.at"]
        return [place, f"  {name}.byte = load i8, ptr {name}.at",
                f"  {name} = trunc i8 {name}.byte to i1"]  # fmt: skip

    def write(self, name: str, kind: str) -> list[str]:
        """Lines that store a value to the frame."""
        place = self.place(name, kind, f"{name}.at")
        if kind != "i1":
            return [place, f"  store {kind} {name}, ptr {name}.at"]
        return [place, f"  {name}.byte = zext i1 {name} to i8",
                f"  store i8 {name}.byte, ptr {name}.at"]  # fmt: skip

    def type_of(self, name: str) -> str:
        """The type of a value; "" if the text does not show it."""
        at = self.defined[name]
        if at == -2:
            return self.params[name[1:]].split(" ", 1)[0]
        text = self.definition(name).partition(" = ")[2]
        kind = text.split(" ", 1)[0]
        if kind in _UNKNOWN or "<" in text or "{" in text:
            return ""
        if kind in _ADDRESSES:
            return "ptr"
        if kind in ("icmp", "fcmp"):
            return "i1"
        if kind in _CASTS:
            text = text.rpartition(" to ")[2]
        elif kind == "select":
            text = text.partition(", ")[2]
        found = _TYPE.search(text)
        return found[1] if found else ""


class _Part(NamedTuple):
    """A group that can be moved. span: of its lines, from its label to before that of its end.
    taken: values that it is passed, with types. read: values of other groups, with types. again:
    values that it computes again, made: those that other lines do. given: values that other lines
    use, with types. variables: scalars in the frame. own: what only the group uses."""

    span: tuple[int, int]
    taken: dict[str, str]
    read: dict[str, str]
    again: list[str]
    given: dict[str, str]
    made: list[str]
    variables: list[str]
    own: list[str]

    @property
    def has_frame(self) -> bool:
        return bool(self.read or self.given or self.variables)


def _parts(
    o: _Outliner, spans: Sequence[tuple[int, int]]
) -> tuple[list[_Part], set[str]]:  # fmt: skip
    """The groups that can be moved, and the names that all other lines use."""
    uses = [o.used(*span) for span in spans]
    outside = set(_NAME.findall("\n".join([line.partition(" = ")[2] for line in o.head])))
    last = 0
    for begin, end in [*spans, (len(o.lines), 0)]:
        outside.update(o.used(last, begin))
        last = end
    shared, seen = outside.copy(), set[str]()
    for names in uses:
        shared.update(seen.intersection(names))
        seen.update(names)
    found: list[_Part] = []
    moved: dict[str, str] = {}
    left: set[str] = set()
    for span, names in zip(spans, uses, strict=True):
        part = _part(o, span, names, shared, moved)
        if part is None:
            left.update(names)
        else:
            found.append(part)
            moved.update(part.given)
    return found, outside | left


def _part(
    o: _Outliner, span: tuple[int, int], names: dict[str, None], shared: set[str],
    moved: dict[str, str],
) -> _Part | None:  # fmt: skip
    """A group, if it can be moved. names: that it uses. shared: those that other lines use, too.
    moved: values of groups before it, with types."""
    begin, end = span
    leaves = f"%{o.lines[end][:-1]}"
    part = _Part(span, {}, {}, [], {}, [], [], [])
    inner = set(o.names[begin:end])
    for name in [one for one in names if one in shared or one not in inner]:
        at = o.defined.get(name)
        if at is None:  # such as the end of the task
            return None
        if name in inner:
            if name not in o.labels:
                if o.operands(name) is None:
                    part.given[name] = o.type_of(name)
                else:
                    part.made.append(name)
        elif name in o.labels:
            if name != leaves:
                return None
        elif at == -2:
            part.taken[name] = o.type_of(name)
        elif at == -1 and name not in shared and " = alloca " in o.heads[name]:
            part.own.append(name)
        elif name in o.variables:
            part.variables.append(name)
        elif (operands := o.operands(name)) is not None:
            part.again.append(name)
            part.taken.update({one: o.type_of(one) for one in operands})
        elif name in moved:
            part.read[name] = moved[name]
        else:
            part.taken[name] = o.type_of(name)
    part.taken.pop("%kernarg", None)
    return None if "" in (*part.taken.values(), *part.given.values()) else part


def outline(
    name: str, params: dict[str, str], text: tuple[list[str], list[int], list[str]],
    stops: Sequence[tuple[int, int]], spans: Sequence[tuple[int, int]],
) -> Outlined:  # fmt: skip
    """The body of the task ``name`` with groups in functions of their own.

    params: declarations by name, the argument buffer not among them. text: lines, ids and head of
    the body. spans: of the groups, in order: the line of the first label and that of the last.
    """
    o = _Outliner(name, params, text, stops)
    found = Outlined([], [], [], [], [])
    parts, outside = _parts(o, spans)
    last = 0
    for part in parts:
        begin, end = part.span
        _copy(o, found, last, begin + 1)
        _call(o, found, part, outside)
        found.parts.append(_function(o, part, f"{name}{OUTLINED}{len(found.parts)}"))
        last = end
    _copy(o, found, last, len(o.lines))
    found.head.extend(_head(o, parts, outside))
    return found


def _head(o: _Outliner, parts: Sequence[_Part], outside: set[str]) -> list[str]:
    """The head of the function: what only the others use is not in it."""
    gone = {name for part in parts for name in part.own}
    shared = {name for part in parts for name in part.variables}
    head: list[str] = []
    for line in o.head:
        name = line.split(" ", 3)[2] if line.startswith("  %") else ""
        if name not in shared:
            if name not in gone:
                head.append(line)
        elif name in outside:
            head.append(o.place(name, o.variables[name], name))
    again = [name for part in parts for name in part.made if name in outside]
    head += [o.definition(name) for name in again]
    if o.size:
        head.insert(0, f"  {_FRAME} = alloca [{o.size + 7 >> 3} x i64], align 8")
    return head


def _copy(o: _Outliner, found: Outlined, begin: int, end: int) -> None:
    """Lines that stay, with their stops."""
    shift = len(found.lines) - begin
    found.stops.extend([(at + shift, w) for at, w in o.stops_in(begin, end)])
    found.lines.extend(o.lines[begin:end])
    found.ids.extend(o.ids[begin:end])


def _call(o: _Outliner, found: Outlined, part: _Part, outside: set[str]) -> None:
    """The call of a group's function, and the values of it that lines use which stay."""
    begin, end = part.span
    args = ["ptr %kernarg", *([f"ptr {_FRAME}"] if part.has_frame else ())]
    args += [f"{kind} {name}" for name, kind in part.taken.items()]
    lines = [f"  call void @{o.name}{OUTLINED}{len(found.parts)}({', '.join(args)})"]
    found.stops.append((len(found.lines) + 1, _ALWAYS))
    for name, kind in part.given.items():
        if name in outside:
            lines += o.read(name, kind)
    lines.append(f"  br label %{o.lines[end][:-1]}")
    found.lines.extend(lines)
    found.ids.extend([o.ids[begin + 1]] * len(lines))


def _declared(o: _Outliner, part: _Part) -> list[str]:
    """The parameters of a group's function."""
    # A pointer into an array that is passed next to the array is another way to its elements.
    exact = not any(
        kind == "ptr" and o.defined[name] >= 0 for name, kind in (part.taken | part.read).items()
    )  # fmt: skip
    params = ["ptr noalias noundef align 64 %kernarg"]
    if part.has_frame:
        params.append(_DECLARED_FRAME)
    for name, kind in part.taken.items():
        text = o.params.get(name[1:], kind) if exact else kind
        params.append(f"{text} {name}")
    return params


def _function(
    o: _Outliner, part: _Part, name: str
) -> tuple[list[str], list[int], list[tuple[int, int]]]:
    """The function of a group."""
    begin, end = part.span
    lines = ["", f"define internal void @{name}({', '.join(_declared(o, part))}) #1 {{", "entry:"]
    lines += [o.heads[one] for one in part.own]
    lines += [o.definition(one) for one in part.again]
    for one, kind in part.read.items():
        lines += o.read(one, kind)
    back: list[str] = []
    copies = part.variables and o.has_loop(begin, end)
    for one in part.variables:
        kind = o.variables[one]
        if not copies:
            lines.append(o.place(one, kind, one))
            continue
        lines += [f"  {one} = alloca {kind}", o.place(one, kind, f"{one}.at"),
                  f"  {one}.old = load {kind}, ptr {one}.at",
                  f"  store {kind} {one}.old, ptr {one}"]  # fmt: skip
        back += [f"  {one}.new = load {kind}, ptr {one}", f"  store {kind} {one}.new, ptr {one}.at"]
    lines.append(f"  br label %{o.lines[begin][:-1]}")
    shift = len(lines) - begin
    ids = [-1] * len(lines) + o.ids[begin:end]
    lines += o.lines[begin:end]
    stops = [(at + shift, weight) for at, weight in o.stops_in(begin + 1, end)]
    lines += [o.lines[end], *back]
    for one, kind in part.given.items():
        lines += o.write(one, kind)
    lines += ["  ret void", "stop:", "  ret void", "}"]
    return lines, ids + [-1] * (len(lines) - len(ids)), stops
