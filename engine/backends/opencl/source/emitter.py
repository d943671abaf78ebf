"""OpenCL C for the body of one function: lines, names, parameters, values.

The modules of this package::

    kernel.py         `ProgramSource`: what the functions of a program share, the order of its parts
    coarsened.py      a parallel task where a work-item runs whole chunks of the loop (CPU devices)
    per_iteration.py  a parallel task where a work-item runs single iterations of it (GPUs)
    emitter.py        `Emitter`: one function's text; `Emitter.table` has what emits each op
    scalars, memory, control, calls, stacks, effects, atomics    the rows of that table

An `Emitter` collects `lines` (without indentation: `depth` says how far each is in). `v` holds the
text of each value by op id, `low` how loosely it binds where it is no atom. Texts go where they are
used as long as that is the only place (`inlined`, see `inlining.InliningPlan`); others are named::

    <f32> $7 = global_load $6
    <f32> $8 = mul $20, $7            y[i] = a * x[i] + y[i];
    <f32> $12 = add $8, $11
    $14 : global_store $10, $12

A named value is ``v<id>`` so that it leads back to the op. Sums of integers are made in unsigned
types, where they wrap (`raw` holds them before they are cast back), unless they cannot overflow
(`size_of`). Addresses are `Address` records in `addresses`.

Each mapping passes to `ProgramSource` a subclass of `Emitter` with its own `table` and writes
parallel tasks with `ProgramSource.emitter`, `begin`, `Emitter.run` and `finish`. Where it puts a
body into a loop it increments `Emitter.loop_depth`; outside of loops an iteration ends by
``return``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from ....ir import Block, Op
from ....ir import codes as C
from ....named_tuple import NamedTuple
from ....types import DataType, f16
from ...index_sums import is_index_sum
from ...kernarg import abi
from ...statements import Statements
from ..capabilities import COARSENED
from ..facts import MEMORY as BUFFER
from .inlining import InliningPlan
from .minmax import MinMaxVariable, minmax_variables
from .names import LETTER, MEMORY, VALUE, Names

if TYPE_CHECKING:
    from .kernel import ProgramSource
    from .stacks import TaskStacks

__all__ = ["ATOM", "GLOBAL", "LOCAL", "PRIVATE", "Address", "Emitter", "Offset", "Slot", "wrap"]

ATOM: Final = 16
UNARY: Final = 14
MUL: Final = 13
ADD: Final = 12
SHIFT: Final = 11
RELATION: Final = 10
EQUAL: Final = 9
AND: Final = 8
XOR: Final = 7
OR: Final = 6
CHOICE: Final = 3
"""Levels of binding of expressions; higher is tighter."""

GLOBAL: Final = "__global "
LOCAL: Final = "__local "
PRIVATE: Final = ""
"""Address spaces, as they are written in front of a pointer's type."""

_LONGEST: Final = 96
"""Characters of an expression that is still put where it is used."""


class Slot(NamedTuple):
    """A value of the argument buffer that is a parameter of a function.

    name: of the parameter; of memory the name of the pointer that is made of it. kind:
    `facts.MEMORY` or the letter of `struct`. type: of a scalar its C type, of memory that of its
    elements. offset: in the argument buffer. alone: the memory overlaps no other parameter's.
    only_read: nothing writes it while the task runs.
    """

    name: str
    kind: str
    type: str
    offset: int
    alone: bool = False
    only_read: bool = False

    @property
    def declaration(self) -> str:
        """As parameters of a kernel."""
        if self.kind != BUFFER:
            return f"{'uchar' if self.type == 'bool' else self.type} {self.name}"
        const = "const " if self.only_read else ""
        restrict = "restrict " if self.alone else ""
        return f"__global {const}uchar *{restrict}{self.name}_mem, ulong {self.name}_at"

    @property
    def passed(self) -> str:
        """As parameter of a function that a kernel calls."""
        return f"{self.pointer if self.kind == BUFFER else self.type + ' '}{self.name}"

    @property
    def pointer(self) -> str:
        return f"__global {'const ' if self.only_read else ''}{self.type} *"

    @property
    def head(self) -> str:
        """The line that makes the value of a kernel's parameters; empty if they are the value."""
        if self.kind != BUFFER:
            return ""
        return (
            f"{self.pointer}{self.name} = ({self.pointer[:-1]}*)({self.name}_mem + {self.name}_at);"
        )


class Address(NamedTuple):
    """The target of a pointer.

    base: the name of a variable, an array or a pointer. number: text of the element's number, empty
    for the first. space: the address space. variable: ``base`` is the thing itself.
    """

    base: str
    number: str
    elem: DataType
    space: str
    variable: bool = False

    @property
    def text(self) -> str:
        """The thing, as something to read or assign to."""
        if self.variable:
            return self.base
        return f"{self.base}[{self.number or '0'}]"

    @property
    def pointer(self) -> str:
        if self.variable:
            return f"&{self.base}"
        return f"{self.base} + {self.number}" if self.number else self.base


class Offset(NamedTuple):
    """An offset in two parts: all axes but the last, and the last one.

    level: how tightly ``last`` binds. steady: ``row`` means the same at every place. loose:
    ``last`` is no sum of loop indices and the like.
    """

    row: str
    last: str
    level: int
    steady: bool
    loose: bool = False

    @property
    def joined(self) -> tuple[str, int]:
        """Both parts as one text, and how tightly it binds."""
        row, last = self.row, self.last
        if row == "0":
            return last, self.level
        if last == "0":
            return row, MUL
        if last[0] == "-" and last[1:].isdigit():
            return f"{row} - {last[1:]}", ADD
        # Each part is added by itself: the sum of two ints would be one in 32 bits.
        return f"{row} + {last if self.level >= ADD else f'({last})'}", ADD


class Emitter(Statements):
    """Emits the statements of one function; see the module docstring.

    program: what all functions share. plan: see `inlining`; inlined: ids of the ops whose text goes
    where it is used; counts: how often an op is used, by id. read_only: numbers of the arrays that
    the function's task only reads. callee: it is a real function; arguments: its own. params: of
    the function, by name. loop_values: the text of a loop's index, by op id and axis. loop_depth:
    how many loops are open. stacks: the adstacks of the task. minmax: variables that are kept as
    keys; unset: the type of a variable that its first store declares; offsets: of `linearize` ops;
    all by op id. row_pointers: see `row`. guard: a condition under which stores to variables happen
    at all (`control.flattened`). prints / uses_kernarg: the function prints, uses the device
    buffer.
    """

    language = "OpenCL"
    index_cast: ClassVar[str] = "(long)"
    """In front of an index that is multiplied by an extent."""

    def __init__(
        self, program: ProgramSource, read_only: tuple[int, ...] = (), callee: bool = False
    ) -> None:
        super().__init__()
        self.program: Final = program
        self.read_only: Final = read_only
        self.callee: Final = callee
        self.names: Final = Names(program.taken)
        self.row_pointers: Final = program.capabilities.mapping == COARSENED
        self.v: Final[dict[int, str]] = {}
        self.low: Final[dict[int, int]] = {}
        self.raw: Final[dict[int, tuple[str, int]]] = {}
        self.addresses: Final[dict[int, Address]] = {}
        self.sizes: Final[dict[int, int]] = {}
        self.plan: Final = InliningPlan()
        self.inlined: Final = self.plan.inlined
        self.counts: Final = self.plan.counts
        self.minmax: dict[int, MinMaxVariable] = {}
        self.unset: dict[int, str] = {}
        self.depth = 1
        self.params: dict[str, Slot] = {}
        self.loop_values: dict[tuple[int, int], str] = {}
        self.loop_depth = 0
        self.stacks: TaskStacks | None = None
        self.arguments: list[str | Address] = []
        self.prints = False
        self.uses_kernarg = False
        self._loc: Any = None
        self.offsets: Final[dict[int, Offset]] = {}
        self.guard = ""
        self._scopes: Final[list[dict[tuple[str, str], str]]] = [{}]
        self._globals: Final[dict[int, str]] = {}

    # Lines

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)
        self.ids.append(self.op_id)

    def open(self, text: str) -> None:
        """A line that ends in a brace; what follows is inside of it."""
        self.line(text)
        self.depth += 1
        self._scopes.append({})

    def close(self, text: str = "}") -> None:
        self.depth -= 1
        self._scopes.pop()
        self.line(text)

    def otherwise(self) -> None:
        """The end of an open branch, and the begin of the other one."""
        self.close("} else {")
        self.depth += 1
        self._scopes.append({})

    def comment(self, op: Op) -> None:
        """Show the user's line, if it is not that of the lines before."""
        loc = op.loc
        if loc is not self._loc:
            before, self._loc = self._loc, loc
            if before is None or before.line != loc.line or before.file != loc.file:
                text = self.program.sources.comment(loc)
                if text:
                    self.lines.append("    " * self.depth + text)
                    self.ids.append(-1)

    def statement(self, op: Op, text: str) -> None:
        """A line for ``op``, under the user's line."""
        self.comment(op)
        self.line(text)

    # Values

    def at(self, op: Op, level: int) -> str:
        """The text of an operand for a place where less than ``level`` needs parentheses."""
        text = self.v[op.id]
        return f"({text})" if self.low.get(op.id, ATOM) < level else text

    def put(self, op: Op, text: str, level: int = ATOM) -> None:
        """``text`` is the value of ``op``: to be put where it is used, or to be named."""
        op_id = op.id
        if op_id in self.inlined and len(text) <= _LONGEST:
            self.v[op_id] = text
            if level < ATOM:
                self.low[op_id] = level
            return
        name = self.v[op_id] = f"v{op_id}"
        self.statement(op, f"const {VALUE[op.type.name]} {name} = {text};")

    def put_raw(self, op: Op, text: str, level: int) -> None:
        """The same for an integer that was made in an unsigned type and has to be cast back."""
        op_id = op.id
        if op_id in self.inlined and len(text) <= _LONGEST:
            self.raw[op_id] = text, level
            self.v[op_id] = f"({VALUE[op.type.name]})({text})"
            self.low[op_id] = UNARY
            return
        name = self.v[op_id] = f"v{op_id}"
        self.statement(op, f"const {VALUE[op.type.name]} {name} = {text};")

    def whole(self, op: Op) -> str:
        """The value for a place that converts to its type and needs no parentheses."""
        found = self.raw.get(op.id)
        return self.v[op.id] if found is None else found[0]

    def atom(self, op: Op) -> str:
        """The value as a name or literal, that may be read several times; no variable's name."""
        text, steady = self.v[op.id], op.id not in self.inlined or _is_simple(op)
        if steady and op.id not in self.low and (text.isalnum() or text.isidentifier()):
            return text
        if op.code == C.CONST:
            return self.at(op, ATOM)
        name = self.names.fresh(f"x{op.id}")
        self.line(f"const {VALUE[op.type.name]} {name} = {self.whole(op)};")
        self.v[op.id] = name
        self.low.pop(op.id, None)
        self.raw.pop(op.id, None)
        return name

    def used(self, op: Op) -> bool:
        return op.id in self.counts

    def helper(self, name: str, text: str = "") -> str:
        """A function of the program's own; it will be defined. See `ProgramSource.helper`."""
        return self.program.helper(name, text)

    # Parameters

    def param(self, name: str, kind: str, ctype: str, offset: int, **facts: bool) -> str:
        """Return the name in the C text of a value of the argument buffer."""
        if name not in self.params:
            self.params[name] = Slot(name, kind, ctype, offset, **facts)
        return name

    def scalar(self, number: int) -> str:
        """A scalar parameter of the user's kernel, as a value."""
        program = self.program
        p = program.func.params[number]
        name, at = program.param_names[number], program.layout.params[number]
        if p.dtype is f16:
            bits = self.param(f"{name}_bits", LETTER["f16"], "ushort", at)
            line = f"const float {name} = {self.helper('half_value')}({bits});"
            if line not in self.head:
                self.head.append(line)
            return name
        return self.param(name, LETTER[p.dtype.name], VALUE[p.dtype.name], at)

    def array(self, number: int, grad: bool = False) -> str:
        """The pointer to an array or field."""
        program = self.program
        p = program.func.params[number]
        return self.param(
            program.param_names[number], BUFFER, MEMORY[p.dtype.name],
            program.layout.params[number], alone=program.apart[number],
            only_read=number in self.read_only,
        )  # fmt: skip

    def extent(self, axis: int, number: int) -> str:
        """The length of an axis of an array, an int that is not negative."""
        program = self.program
        p = program.func.params[number]
        at = program.layout.params[number] + 8 * (1 + p.needs_grad + axis)
        return self.param(program.extent_names[axis, number], "i", "int", at)

    def kernarg(self, ctype: str, offset: int) -> str:
        """Something in the device buffer."""
        self.uses_kernarg = True
        return f"*(__global {ctype} *)(kernarg + {offset})"

    def global_tmp(self, offset: int, t: DataType) -> str:
        """The pointer to a global temporary."""
        name = self._globals.get(offset)
        if name is None:
            name = self._globals[offset] = f"tmp_{offset}"
            self.uses_kernarg = True
            ctype = MEMORY[t.name]
            at = self.program.layout.tmp + offset
            self.head.append(f"__global {ctype} *{name} = (__global {ctype} *)(kernarg + {at});")
        return name

    def seed(self) -> str:
        self.program.seeded = True
        return self.param("seed", "Q", "ulong", abi.SEED)

    # Addresses

    def address(self, op: Op) -> Address:
        """The target of a pointer operand."""
        return self.addresses[op.id]

    def index(self, op: Op) -> tuple[str, int]:
        """An integer that is (part of) an array index: its text and how tightly that binds.

        Sums of loop indices, constants, extents and parameters are plain signed sums: they do not
        overflow wherever the index is one that an array can have.
        """
        code = op.code
        if code == C.CONST:
            value = int(op.attr)
            return str(value), ATOM if value >= 0 else UNARY
        if op.id in self.unused or (is_index_sum(op, 4) and op.id not in self.v):
            return self._sum(op)
        if code != C.LOOP_INDEX and is_index_sum(op, 4):
            return self._sum(op)
        if code == C.LOOP_INDEX:
            return self.loop_values[op.args[0].id, op.attr], ATOM
        if code == C.EXTERNAL_TENSOR_SHAPE_ALONG_AXIS:
            return self.extent(*op.attr), ATOM
        return self.v[op.id], self.low.get(op.id, ATOM)

    def _sum(self, op: Op) -> tuple[str, int]:
        code = op.code
        if code == C.LOOP_INDEX:
            return self.loop_values[op.args[0].id, op.attr], ATOM
        (a, p), (b, q) = self.index(op.args[0]), self.index(op.args[1])
        if code == C.BIT_SHL:
            b, q, code = str(1 << int(b)), ATOM, C.MUL
        if code == C.MUL:
            return f"{wrap(a, p, MUL)} * {wrap(b, q, MUL + 1)}", MUL
        if b[0] == "-" and b[1:].isdigit():
            return f"{a} {'-' if code == C.ADD else '+'} {b[1:]}", ADD
        return f"{wrap(a, p, ADD)} {'+' if code == C.ADD else '-'} {wrap(b, q, ADD + 1)}", ADD

    def rows(self, indices: tuple[Op, ...], extents: list[tuple[str, int]]) -> Offset:
        """The row-major offset of ``indices``; extents: those of axes 1 and on."""
        if not indices:
            return Offset("0", "0", ATOM, True)
        row, (last, level) = "0", self.index(indices[0])
        cast = self.index_cast
        steady, op = True, indices[0]
        for before, op, (extent, q) in zip(indices, indices[1:], extents, strict=False):
            steady = steady and self._is_steady(before)
            index, p = self.index(op)
            total = Offset(row, last, level, True).joined
            if total[0] != "0":
                row = f"{cast}{wrap(*total, UNARY)} * {wrap(extent, q, MUL + 1)}"
                cast = ""  # all of it is in 64 bits now
            last, level = index, p
        return Offset(row, last, level, steady, not _is_simple(op))

    def _is_steady(self, op: Op) -> bool:
        """True if the text of an index means the same value at every place."""
        return _is_simple(op) or self.v[op.id] == f"v{op.id}"

    def row(self, place: Address, offset: Offset) -> str:
        """A pointer to the row of an array that an offset is in.

        Where the last index is no simple one, vector instructions gather the elements: from one
        address, if the row is invariant as a whole. (Where it is simple, rows by themselves let
        LLVM carry elements from one iteration to the next, and then it makes no vectors.)
        """
        key = place.base, offset.row
        for scope in self._scopes:
            if key in scope:
                return scope[key]
        name = self.names.fresh(f"{place.base}_row")
        slot = self.params.get(place.base)
        const = "const " if slot is not None and slot.only_read else ""
        ctype = f"{place.space}{const}{MEMORY[place.elem.name]} *"
        self.line(f"{ctype}{name} = {place.base} + {offset.row};")
        if offset.steady:
            self._scopes[-1][key] = name
        return name

    # Blocks

    def keep_minmax(self, block: Block) -> None:
        """Keep running maxima and minima as integers; see `minmax`."""
        found = minmax_variables(block, self.inlined)
        self.minmax |= found
        for variable in found.values():
            self.unused |= variable.covered


def wrap(text: str, level: int, need: int) -> str:
    return f"({text})" if level < need else text


def _is_simple(op: Op) -> bool:
    return op.code in (
        C.CONST,
        C.LOOP_INDEX,
        C.EXTERNAL_TENSOR_SHAPE_ALONG_AXIS,
        C.ARG_LOAD,
    ) or is_index_sum(op, 4)
