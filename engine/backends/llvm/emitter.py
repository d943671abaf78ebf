"""LLVM IR for the body of one function: control flow, memory, effects.

An `Emitter` collects lines of text. `v` maps an op's id to its operand text; constants are written
where they are used. Every value gets the name ``%v<id>`` or one made from it, so that a line of
LLVM IR leads back to the op and through it to the user's source; `ids` holds the op of each line.

What the text relies on LLVM for, and what it does itself to help it:

* Local variables are ``alloca`` in the entry block, set to 0 at the position of the op; LLVM makes
  them values.
* Index arithmetic is done in 64 bits from the loop index on (`wide`), so that ``a[i + 1]`` is one
  address plus a constant, which is what lets a loop use vector instructions.
* A loop whose index is only used in addresses counts in 64 bits. Other loops count in 32, as wide
  as the values that are computed from the index, and extend for addresses.
* An address is formed in two steps, row and place: the first is invariant in the innermost loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final
from weakref import ref

from ...analysis.alias import apart
from ...errors import QuadrantsUnsupportedError
from ...ir import Block, Callee, Func, Op, all_ops, walk
from ...ir import codes as C
from ...types import Type
from ..base import AssertSite, PrintSite
from ..index_sums import is_index_sum
from ..kernarg import abi
from ..statements import Statements, full_table
from .control import CONTROL_OPS, Counter
from .hints import loop_hint
from .later import STACK_OPS
from .memory_ops import MEMORY_OPS, memset
from .scalars import SCALAR
from .text import FAST, SIZE, VALUE, Slot, name_of, names_of

if TYPE_CHECKING:
    from .stacks import TaskStacks

__all__ = ["Emitter", "ModuleState", "Slot"]

# What computes such a sum in 64 bits.
_WIDE: Final = {C.ADD: "add", C.SUB: "sub", C.MUL: "mul", C.BIT_SHL: "shl"}

_FIRST_PROPERTY: Final = 10_000_000
"""Numbers of metadata from here on are loop properties (`lines` uses those of line numbers)."""
_SUFFIX: Final = {"half": "f16", "float": "f32", "double": "f64"}
_MOST_STACK: Final = 1 << 20
"""Bytes of arrays in one function: well below the stack of a thread."""


class ModuleState:
    """The state that the functions of one module share.

    declares: intrinsics by name. helpers: names of `helpers` in use. asserts / prints: the sites,
    numbered as the code numbers them. reports: likewise, of asserts that end nothing. written:
    arrays and fields that are written. seeded: whether any code asks for the launch's seed. failed:
    most values an assertion shows. param_names: of each parameter, unique. apart: whether it shares
    no memory with another parameter. properties: of loops, with the number of their metadata.
    stamps: how often a launch reads the clock. threads: most that work on a task. areas: of the
    adstacks of each task.
    """

    def __init__(
        self, func: Func, fast_math: bool, stamps: int = 0, threads: int = 1, fast: str = FAST
    ) -> None:
        """fast: the flags of `fast_math` for instructions on floats."""
        self.func: Final = func
        self.fast: Final = fast if fast_math else ""
        self.declares: dict[str, str] = {}
        self.helpers: dict[str, None] = {}
        self.asserts: list[AssertSite] = []
        self.prints: list[PrintSite] = []
        self.reports: list[AssertSite] = []
        self.written: set[int] = set()
        self.seeded = False
        self.properties: list[tuple[int, str]] = []
        ops = all_ops(func)
        codes = {op.code for op in ops}
        asserts = [op for op in ops if op.code == C.ASSERT] if C.ASSERT in codes else []
        ending = [op for op in asserts if op.attr.kind != "overflow"]
        self.calls_fail: Final = any(
            op.code == C.ASSERT and op.attr.kind != "overflow"
            for callee in func.callees.values()
            for op in walk(callee.body)
        )
        self.functions: Final = {
            name: f"@function_{k}_{name_of(name, 'unnamed')}" for k, name in enumerate(func.callees)
        }
        self.failed = max([len(op.args) - 1 for op in ending], default=0)
        counts = [(0, False)] * len(func.tasks())
        if C.AD_STACK_ALLOCA in codes:
            counts = [
                (sum(op.code == C.AD_STACK_ALLOCA for op in walk(task.regions[1])),
                 bool(task.attr.predicate))
                for task in func.tasks()
            ]  # fmt: skip
        self.threads: Final = threads
        self.layout: Final = abi.layout(
            func.params, func.results, self.failed, len(asserts) - len(ending),
            func.global_tmp_size, stamps, counts, threads,
        )  # fmt: skip
        self.areas: Final = abi.stack_areas(counts, threads, self.layout.stacks)[0]
        self.fails: Final = bool(ending) or any(self.areas)
        self.param_names: Final = names_of([p.name for p in func.params])
        self.apart: Final = apart(func)

    def loop_property(self, text: str) -> str:
        """The metadata that a loop's back branch needs for the loop to have this property."""
        if not text:
            return ""
        number = _FIRST_PROPERTY + 2 * len(self.properties)
        self.properties.append((number, text))
        return f", !llvm.loop !{number}"

    def property_lines(self) -> list[str]:
        """The definitions of the metadata. A text may be several properties."""
        lines: list[str] = []
        for number, text in self.properties:
            first, *others = text.split("; ")
            both = ", ".join((f"!{number}", f"!{number + 1}", *others))
            lines += [f"!{number} = distinct !{{{both}}}", f"!{number + 1} = {first}"]
        return lines

    def access_group(self) -> int:
        """The number of fresh metadata for a group of accesses to memory."""
        number = _FIRST_PROPERTY + 2 * len(self.properties)
        self.properties.append((number, "distinct !{}"))
        return number + 1


class _Values(dict[int, str]):
    """Operand texts by op id. An offset kept in two parts is summed where its value is wanted."""

    def __init__(self, emitter: Emitter) -> None:
        super().__init__()
        self.emitter: Final = ref(emitter)  # which keeps the IR alive

    def __missing__(self, op_id: int) -> str:
        emitter = self.emitter()
        assert emitter is not None
        row, last = emitter.offsets[op_id]
        # Not kept for other blocks: a use may be where this one is not computed.
        return last if row == "0" else emitter.once(f"add nsw i64 {row}, {last}")


class Emitter(Statements):
    """Emits the statements of one function; see the module docstring.

    in_entry: in the kernel's entry function, where values of the argument buffer are loaded at the
    head; elsewhere they are parameters of the function. `params` collects them either way. offsets:
    of a `linearize`, its value in two parts. loop_values: loop counters. counted: axes of loops
    whose index is wanted as a number. unused: what `wide` computes in 64 bits. narrow: ids of
    integers that are `hidden`. known: values of `once`, by instruction. cleared: the last
    variable that was set to 0, and the line that does. asserts: the function can
    fail. stop: where to go then. read_only: numbers of the arrays that the function's task only
    reads. callee: the real function that is emitted, if it is one. calls: there are calls of real
    functions, which get at arrays by other ways than this function. stacks: the adstacks of the
    function's task, if it has any. tail: blocks for the end of the function, by label.

    scope: of atomics, as text. space / private: the text before pointers into the argument buffer
    and the heaps, and into the function's own memory. most_stack: bytes that arrays of one function
    may have. array_align: of such an array. far: the text before pointers into arrays. together:
    threads of the function wait for each other, so memory may have changed after a barrier although
    the thread itself writes nothing: no pointer must be `noalias`. real_atomics: there are atomic
    sums, minima and maxima of floats. real_notes: the text after them. own_exp: exp of f32 under
    fast_math is arithmetic, not a call of the C library. vectors: loops may become vectors.
    """

    language = "LLVM"
    table = full_table({**SCALAR, **MEMORY_OPS, **CONTROL_OPS, **STACK_OPS})
    scope: str = ""
    space: str = ""
    private: str = ""
    real_atomics: bool = True
    real_notes: str = ""
    own_exp: ClassVar[bool] = True
    vectors: ClassVar[bool] = True
    most_stack: ClassVar[int] = _MOST_STACK
    array_align: ClassVar[int] = 64
    far: ClassVar[str] = ""
    together: bool = False

    def __init__(
        self,
        state: ModuleState,
        in_entry: bool = False,
        read_only: tuple[int, ...] = (),
        callee: Callee | None = None,
        calls: bool = False,
    ) -> None:
        super().__init__()
        self.state: Final = state
        self.fast: Final = state.fast
        self.in_entry: Final = in_entry
        self.read_only: Final = read_only
        self.callee: Final = callee
        self.calls: Final = calls
        self.v: Final[dict[int, str]] = _Values(self)
        self.offsets: dict[int, tuple[str, str]] = {}
        self.params: dict[str, Slot] = {}
        self.loaded: dict[str, str] = {}
        self.loop_values: dict[tuple[int, int], Counter] = {}
        self.counted: Final[dict[Op, set[int]]] = {}
        self.block = "entry"
        self.known: Final[dict[str, str]] = {}
        self.cleared: tuple[str, str] = "", ""
        self.narrow: set[int] = set()
        self.asserts = False
        self.stop = "stop"
        self.stacks: TaskStacks | None = None
        self.tail: dict[str, list[str]] = {}
        self.stack = 0
        self._names: dict[int, int] = {}
        self._labels = 0
        self.stops: Final[list[tuple[int, int]]] = []
        self.groups: dict[Block, list[tuple[int, int]]] = {}
        self.spans: Final[list[tuple[int, int]]] = []
        """Lines of the groups that `outline` may move."""
        self.loops: list[tuple[str, str]] = []
        """Of each open loop: where `continue` goes, where leaving it goes."""

    def run(self, block: Block) -> None:
        """See `Statements.run`; marks the lines of groups that `outline` may move."""
        mine = self.groups.get(block) if self.groups else None
        if mine is None:
            super().run(block)
            return
        begins, ends = {begin for begin, _ in mine}, {end for _, end in mine}
        start = -1
        for i, op in enumerate([*block.ops, None]):
            if i in ends and not self.ended and start >= 0:
                self._mark("endpart")
                self.spans.append((start, len(self.lines) - 1))
                start = -1
            if self.ended or op is None:
                return
            if i in begins:
                self._mark("part")
                start = len(self.lines) - 1
            if op.id not in self.unused:
                self.op_id = op.id
                self.table[op.code](self, op)

    def _mark(self, hint: str) -> None:
        label = self.label(hint)
        self.jump(label)
        self.place(label)

    # Lines, names

    def line(self, text: str) -> None:
        self.lines.append("  " + text)
        self.ids.append(self.op_id)

    def name(self) -> str:
        """A fresh name made from the id of the op being emitted. Specializations of a kernel often
        have the same entry function: it has no ids, so that its text is the same."""
        op_id = -1 if self.in_entry else self.op_id
        n = self._names.get(op_id, 0)
        self._names[op_id] = n + 1
        base = f"%v{op_id}" if op_id >= 0 else "%t"
        return f"{base}.{n}" if n or op_id < 0 else base

    def value(self, text: str) -> str:
        """Append an instruction with a result; the result's name."""
        op_id = self.op_id
        if op_id < 0 or op_id in self._names or self.in_entry:
            name = self.name()
        else:  # most
            self._names[op_id] = 1
            name = f"%v{op_id}"
        self.lines.append(f"  {name} = {text}")
        self.ids.append(op_id)
        return name

    def once(self, text: str) -> str:
        """As `value`, for an instruction on integers that its block need not repeat."""
        found = self.known.get(text)
        if found is None:
            found = self.known[text] = self.value(text)
        return found

    def call(
        self, name: str, ty: str, args: str, *, flags: bool = True, more: str = "", result: str = ""
    ) -> str:
        """Call the intrinsic ``llvm.<name>`` for operands of type ``ty``. flags: with those of
        fast_math, after ``more``."""
        result = result or ty
        full = f"@llvm.{name}.{_SUFFIX.get(ty, ty)}"
        if full not in self.state.declares:
            types = ", ".join([part.split(" ", 1)[0] for part in args.split(", ")])
            self.state.declares[full] = f"declare {result} {full}({types})"
        fast = more + (self.fast if flags else "")
        return self.value(f"call {fast}{result} {full}({args})")

    def helper(self, name: str) -> str:
        """The symbol of a helper function, which the module will define."""
        self.state.helpers[name] = None
        return f"@qd.{name}"

    def label(self, hint: str) -> str:
        self._labels += 1
        return f"{hint}{self._labels}"

    def place(self, label: str) -> None:
        """Begin the basic block ``label``."""
        self.lines.append(f"{label}:")
        self.ids.append(-1)
        self.block = label
        self.known.clear()
        self.ended = False

    def may_stop(self, weight: int) -> None:
        """Note that first-tier code checks its deadline at this position; see `deadline`."""
        self.stops.append((len(self.lines), weight))

    def jump(self, label: str) -> None:
        if not self.ended:
            self.line(f"br label %{label}")
            self.ended = True

    def branch(self, cond: str, yes: str, no: str, likely: bool = False) -> None:
        """likely: ``no`` is hardly ever taken."""
        weights = ", !prof !1" if likely else ""
        self.line(f"br i1 {cond}, label %{yes}, label %{no}{weights}")
        self.ended = True

    def take_stack(self, op: Op, size: int) -> None:
        """Count the bytes of an array; QuadrantsUnsupportedError if a thread has no such stack."""
        self.stack += size
        if self.stack > self.most_stack:
            raise QuadrantsUnsupportedError.from_loc(
                f"the arrays that the kernel makes in one task take {self.stack} bytes or more, "
                f"of {self.most_stack} that there are: use a field or an ndarray for large ones",
                op.loc,
            )

    def heap(self, name: str, offset: int, attributes: str) -> str:
        """The address of a heap, which the argument buffer has at ``offset``, as an operand."""
        return f"{self.space}{self.param(name, f'ptr {self.space}'.strip(), offset, attributes)}"

    def claim(self, claims: str, rows: str) -> str:
        """The row that this thread claims in the heap of floats, -1 if none is left of ``rows``."""
        call = f"call i64 {self.helper('claim')}(ptr {claims}, i64 %thread.wide, i64 {rows})"
        return self.value(call)

    # Memory

    @property
    def kernarg(self) -> str:
        """The argument buffer, as an operand."""
        return f"{self.space}%kernarg"

    def beyond(self, pointer: str, offset: int | str) -> str:
        """The address that is ``offset`` bytes after another one."""
        space, gap, _ = pointer.rpartition(" ")
        found = self.value(f"getelementptr inbounds i8, ptr {pointer}, i64 {offset}")
        return f"{space}{gap}{found}"

    def local(self, name: str, ty: str, align: int) -> str:
        """A variable of the function's own, made at its head."""
        space = f", {self.private.strip()}" if self.private else ""
        self.head.append(f"  {name} = alloca {ty}, align {align}{space}")
        return f"{self.private}{name}"

    def hidden(self, ty: str, result: str) -> str:
        """The result of integer arithmetic, with its origin hidden from two faults of LLVM's
        vectoriser by a zero that LLVM does not know.

        An integer division whose divisor is no constant is conditional to LLVM even where its
        operands are the same in a whole loop. An address that follows from them is still that of
        all lanes; LLVM divides in the first lane alone, and only if that lane's condition holds.

        A value of few bits that counts up with a loop, such as ``i & 15``, is vectorised for the
        iterations in which it does not wrap. If its address has another sum that must not wrap,
        such as ``row + (i & 15)``, LLVM holds the check of that one for a check of both, whatever
        their numbers of bits; see `index_sums.narrow_in_addresses`.
        """
        zero = f"%zero.{ty}"
        if zero not in self.loaded:
            self.loaded[zero] = zero
            self.head.append(f'  {zero} = call {ty} asm "", "=r,0"({ty} 0)')
        return self.value(f"or {ty} {result}, {zero}")

    def clear(self, pointer: str, align: int, size: int, value: int = 0) -> None:
        """Set bytes."""
        declared, name = memset(pointer)
        self.state.declares[name] = declared
        space, gap, at = pointer.rpartition(" ")
        where = f"ptr {space}{gap}align {align} {at}"
        self.line(f"call void {name}({where}, i8 {value}, i64 {size}, i1 false)")

    # Parameters

    def incoming(self, number: int, t: Type) -> str:
        """An argument of the real function, as an operand."""
        return f"%arg.{number}"

    def passed(self) -> list[str]:
        """Operands of calls of real functions between the argument buffer and user arguments."""
        return []

    def param(self, name: str, ty: str, offset: int, attributes: str = "") -> str:
        """A value that every function of the kernel gets from the argument buffer."""
        found = self.loaded.get(name)
        if found is not None:
            return found
        self.loaded[name] = f"%{name}"
        slot = self.params[name] = Slot(name, ty, offset, attributes)
        if self.in_entry:  # first of all: what uses it first may be passed over
            self.head += slot.load(self.space)
        return f"%{name}"

    def array(self, number: int) -> str:
        state = self.state
        p = state.func.params[number]
        apart = state.apart[number] and not self.calls and not self.together
        alias = "noalias " if apart else ""
        if number in self.read_only:
            alias += "readonly "
        size = SIZE[p.dtype.name]
        if p.layout is not None:
            alias += f"dereferenceable({p.layout.span * size}) "
        name, at = self.place_of(number)
        attributes = f"{alias}noundef align {size}"
        return self.far + self.param(f"p.{name}", f"ptr {self.far}".rstrip(), at, attributes)

    def place_of(self, number: int) -> tuple[str, int]:
        """The name of a parameter, and where the argument buffer has it."""
        return self.state.param_names[number], self.state.layout.params[number]

    def extent(self, axis: int, number: int) -> str:
        p = self.state.func.params[number]
        at = self.state.layout.params[number] + 8 * (1 + p.needs_grad + axis)
        name = f"n{axis}.{self.state.param_names[number]}"
        return self.param(name, "i32", at, "noundef range(i32 0, -2147483648)")

    def extent64(self, axis: int, number: int) -> str:
        """An extent as i64, computed at the head of the function."""
        narrow = self.extent(axis, number)
        wide = f"{narrow}.wide"
        if wide not in self.loaded:
            self.loaded[wide] = wide
            self.head.append(f"  {wide} = zext nneg i32 {narrow} to i64")
        return wide

    def loop_hint(self, loop: Op, axis: int, bounds: list[str], axes: int) -> str:
        """The property of the innermost loop of a nest; see `hints.loop_hint`."""
        return loop_hint(loop, axis, bounds, axes)

    # Addresses

    def reference(self, pointer: Op) -> str:
        """The operand that a real function is passed for a pointer."""
        return f"ptr {self.v[pointer.id]}"

    def wide(self, op: Op) -> str:
        """``op``, an i32 that is (part of) an array index, as i64.

        Sums of loop indices, constants, extents and parameters, and of products of a loop index and
        one of the others, are computed in 64 bits. That is the same number wherever the index is
        one that an array can have.
        """
        code = op.code
        if code == C.CONST:
            return str(op.attr)
        if code == C.LOOP_INDEX:
            return self.loop_values[op.args[0].id, op.attr].wide
        if code == C.EXTERNAL_TENSOR_SHAPE_ALONG_AXIS:
            return self.extent64(*op.attr)
        if is_index_sum(op, 4):
            a, b = self.wide(op.args[0]), self.wide(op.args[1])
            return self.once(f"{_WIDE[code]} nsw i64 {a}, {b}")
        return self.once(f"sext {VALUE[op.type.name]} {self.v[op.id]} to i64")

    def widened(self, text: str) -> str:
        """An i32 operand as i64."""
        return text if text.lstrip("-").isdigit() else self.once(f"sext i32 {text} to i64")

    def rows(self, indices: tuple[Op, ...], extents: list[str]) -> tuple[str, str]:
        """The row-major offset of ``indices`` as a sum: all axes but the last, and the last.

        ``extents``: those of axes 1.. as i64.
        """
        if not indices:
            return "0", "0"
        total, last = "0", self.wide(indices[0])
        for index, extent in zip(indices[1:], extents, strict=True):
            if total != "0":
                last = self.once(f"add nsw i64 {total}, {last}")
            total = self.once(f"mul nsw i64 {last}, {extent}")
            last = self.wide(index)
        return total, last
