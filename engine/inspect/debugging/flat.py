"""IR as a flat list of instructions, which a machine can stop at and go back to.

The interpreter's emitter writes the statements of each op, so an op does here what it does there.
What differs is control: regions become jumps, and each iteration of a loop is a number in a
variable. Nothing of the state of a run is then in frames or iterators of Python::

    $2 : range_for $0, $1 body {           0  R2 = range(0, x1); K2 = 0
      <i32> $3 = loop_index $2 [0]         1  if K2 >= len(R2): return 4
      ...                                     i2_0 = R2[K2]
      $9 : global_store $8, $7             2  if p8 not in L0: L0[p8] = m0[p8]
    }                                         m0[p8] = v7
                                           3  K2 += 1
                                              if K2 < len(R2): i2_0 = R2[K2]; return 2

All variables are globals of the functions that the instructions become: an instruction returns the
number of the next one, or None to go on. ``L`` holds what elements of an array held before they
were first written since the last snapshot, ``G`` those of its gradient.

Constants, arguments and addresses make no instruction. An instruction *starts a line* if it is the
first of its line there: static, so that a debugger counts lines alike forward and back.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from ...analysis import block_dim, is_parallel, shared_arrays
from ...backends.interp import emit
from ...backends.interp.blocks import in_blocks
from ...backends.interp.calls import arguments, boxed_variables
from ...errors import QuadrantsUnsupportedError
from ...ir import Block, Func, Op, all_ops, walk
from ...ir import codes as C
from ...types import DataType, i32

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...ir import Callee, Loc

__all__ = ["Flat", "Instruction", "names_of"]

_NAME: Final = re.compile(r"\b(?:[vapikwdnRK]\d\w*|q\d\w*)\b")
_LABEL: Final = re.compile(r"@(\d+)")


class Instruction:
    """Statements of one op. op: None for a jump. lines: Python. starts: it starts a line.
    block: the one it is in."""

    __slots__ = ("block", "lines", "loc", "op", "starts")

    def __init__(
        self, op: Op | None, lines: list[str], loc: Loc, starts: bool, block: Block
    ) -> None:  # fmt: skip
        self.op = op
        self.lines = lines
        self.loc = loc
        self.starts = starts
        self.block = block

    @property
    def leaves(self) -> bool:
        """True if something other than the next instruction may follow."""
        return any("return" in line for line in self.lines)


class Flat(emit.Emitter):
    """Makes the instructions of one function; see the module docstring.

    After `make`: ``code`` are the instructions, ``begin`` the statements before them, ``variables``
    the names that hold the state, ``heads`` the first instruction of each loop's body, ``calls``
    the first instruction and the variables of each real function.
    """

    def __init__(self, func: Func, debug: bool) -> None:
        super().__init__(func, debug, False)
        self.pad = ""
        self.code: Final[list[Instruction]] = []
        self.begin: list[str] = []
        self.variables: set[str] = set()
        self.breakpoints: Final[set[int]] = set()
        self.calls: Final[dict[str, tuple[int, set[str], list[str]]]] = {}
        self._labels: Final[list[int]] = []
        self._seen: list[tuple[str, int, Loc | None] | None] = []
        self._exits: list[tuple[int, int]] = []
        """The labels that `break` and `continue` lead to, by loop."""
        self._last = func.loc
        self._block = func.body

    def make(self) -> None:
        """Make the instructions."""
        self.arguments(all_ops(self.func))
        self.begin = self.lines
        self.boxed = boxed_variables(self.func)
        self.block(self.func.body)
        end, last = self._label(), self._last
        self._put(None, [f"return @{end}"])
        for callee in self.func.callees.values():
            self._callee(callee)
        self._labels[end], self._last = len(self.code), last
        self._put(None, ["return -1"])
        for instruction in self.code:
            instruction.lines = [
                _LABEL.sub(lambda m: str(self._labels[int(m[1])]), line)
                for line in instruction.lines
            ]
        for instruction in self.code:
            self.variables |= names_of(instruction.lines)

    # --- instructions ------------------------------------------------------------------------

    def _label(self) -> int:
        self._labels.append(-1)
        return len(self._labels) - 1

    def _here(self, label: int) -> None:
        self._labels[label] = len(self.code)

    def _put(self, op: Op | None, lines: list[str], starts: bool | None = None) -> None:
        loc = self._last if op is None else op.loc
        self._last = loc
        if op is None:
            starts = False
        elif starts is None:
            starts = self._starts(loc)
        else:
            self._starts(loc)
        self.code.append(Instruction(op, lines, loc, starts, self._block))

    def _starts(self, loc: Loc) -> bool:
        """True if an op with this location is the first of its line."""
        if not loc.line:
            return False
        depth = len(loc.chain())
        key = (loc.file, loc.line, loc.parent)
        seen = self._seen
        if len(seen) >= depth and seen[depth - 1] == key:
            del seen[depth:]
            return False
        del seen[depth - 1 :]
        seen.extend([None] * (depth - 1 - len(seen)))
        seen.append(key)
        return True

    def block(self, block: Block) -> None:
        saved, self._block = self._block, block
        super().block(block)
        self._block = saved

    def emit(self, op: Op) -> None:
        control = _CONTROL.get(op.code)
        if control is not None:
            control(self, op)
            return
        if op.code == C.ASSERT and op.attr.kind == "breakpoint":
            self.breakpoints.add(len(self.code))
            self._put(op, ["pass"], True)
            return
        self.lines = []
        super().emit(op)
        if self.lines and not op.regions:
            self._put(op, self.lines)

    def line(self, text: str) -> None:
        self.lines.append(text)

    def nested(self, block: Block) -> None:
        self.block(block)

    def place(self, op: Op) -> str:
        text = super().place(op)
        if op.code in (C.GLOBAL_LOAD, C.LOCAL_LOAD) or "[" not in text:
            return text
        memory, _, index = text[:-1].partition("[")
        if memory[0] == "q":
            self.line(f"cx.note({memory}, {index})")
        elif memory[0] in "mg":
            log = {"m": "L", "g": "G"}[memory[0]] + memory[1:]
            self.line(f"if {index} not in {log}: {log}[{index}] = {text}")
        return text

    # --- control -----------------------------------------------------------------------------

    def _if(self, op: Op) -> None:
        other, end = self._label(), self._label()
        self._put(op, [f"if not {self.values[op.args[0]]}: return @{other}"])
        self.block(op.regions[0])
        if op.regions[1].ops:
            self._put(None, [f"return @{end}"])
        self._here(other)
        self.block(op.regions[1])
        self._here(end)

    def _while(self, op: Op) -> None:
        head, end = self._label(), self._label()
        self._here(head)
        self._exits.append((end, head))
        self.block(op.regions[0])
        self._put(None, [f"return @{head}"])
        self._exits.pop()
        self._here(end)

    def _while_control(self, op: Op) -> None:
        self._put(op, [f"if not {self.values[op.args[0]]}: return @{self._exits[-1][0]}"])

    def _leave(self, op: Op) -> None:
        self._put(op, [f"return @{self._exits[-1][0 if op.code == C.BREAK else 1]}"])

    def over(self, op: Op, bounds: Op, body: Block, backwards: bool = False) -> None:
        if op.code == C.OFFLOADED and op.attr.unit == "thread":
            raise QuadrantsUnsupportedError.from_loc(
                "the debugger runs no loops that are mapped to threads", op.loc,
                hint="choose an earlier stage",
            )  # fmt: skip
        self.lines = []
        n = len(bounds.args) // 2
        order = op.attr.axes or tuple(range(n))
        ranges: list[str] = []
        for axis in order:
            low, high = self.arg(bounds, 2 * axis, i32), self.arg(bounds, 2 * axis + 1, i32)
            ranges.append(f"range({low}, {high})" + ("[::-1]" if backwards else ""))
        several = n > 1
        space = f"space({', '.join(ranges)})" if several else ranges[0]
        if is_parallel(self.func, op):
            self.names[f"op{op.id}"] = op
            space = f"cx.chosen(op{op.id}, {space})"
        k, r = f"K{op.id}", f"R{op.id}"
        indices = ", ".join(f"i{op.id}_{axis}" for axis in order) + ("," if several else "")
        self._put(op, [*self.lines, f"{r} = {space}", f"{k} = 0"])
        self.lines = []
        if in_blocks(self.func, op, body):
            self._in_blocks(op, body, indices)
            return
        top, latch, end = self._label(), self._label(), self._label()
        enter = f"{indices} = {r}[{k}]"
        self._put(op, [f"if {k} >= len({r}): return @{end}", enter])
        self._here(top)
        self._exits.append((end, latch))
        self.block(body)
        self._exits.pop()
        self._here(latch)
        again = [f"{k} += 1", f"if {k} >= len({r}): return @{end}", enter, f"return @{top}"]
        self._put(op, again, True)
        self._here(end)

    def _in_blocks(self, op: Op, body: Block, indices: str) -> None:
        """A loop whose iterations wait for each other: the machine changes between them."""
        top, latch, end, head = (self._label() for _ in range(4))
        inside = walk(body)
        shared = {a for a in inside if a.code == C.ARRAY_ALLOCA and a.attr.space != "private"}
        ids = {str(x.id) for x in inside if x not in shared} | {str(op.id)}
        k, r, size = f"K{op.id}", f"R{op.id}", block_dim(op)
        self._here(head)
        fresh = [self.fresh_array(array) for array in shared_arrays(body)]
        start = f"cx.begin_block(B{op.id}, {r}, {k}, {size}, @{top}, @{latch})"
        self._put(op, [f"if {k} >= len({r}): return @{end}", *fresh, f"return {start}"])
        self._here(top)
        saved, self.body_of = self.body_of, op
        done = self._label()
        self._exits.append((done, done))
        first = len(self.code)
        self.block(body)
        self._exits.pop()
        self.body_of = saved
        self._here(done)
        self._put(None, ["return cx.end_iteration()"])
        mine = set[str]()
        for instruction in self.code[first:]:
            mine |= {n for n in names_of(instruction.lines) if _number(n) in ids}
        mine = {n for n in mine if n[0] not in "RK" or _number(n) != str(op.id)}
        order = [name for name in indices.replace(" ", "").split(",") if name]
        self.names[f"B{op.id}"] = (order, sorted({*mine, *order}))
        self._here(latch)
        self._put(op, [f"{k} += {size}", f"return @{head}"], True)
        self._here(end)

    def _stop(self, op: Op, name: str, part: str, wanted: str) -> None:
        if self.body_of is None:
            raise QuadrantsUnsupportedError.from_loc(
                "a barrier is outside of a parallel loop", op.loc
            )
        after = self._label()
        self.names[f"op{op.id}"] = op
        self._put(op, [f"return cx.stop('{name}', op{op.id}, {part}, {wanted}, @{after})"])
        self._here(after)

    def _sync(self, op: Op) -> None:
        self._stop(op, "", "0", "0")

    def _exchange(self, op: Op) -> None:
        self.lines = []
        part = self.arg(op, 0)
        wanted = self.arg(op, 1) if op.code == C.SUBGROUP_SHUFFLE else "0"
        name = self.values[op] = f"v{op.id}"
        self._stop(op, name, part, wanted)

    def _region(self, op: Op) -> None:
        """A graph region; see `interp.regions`."""
        attr = op.attr
        top = self._label()
        self._here(top)
        self._put(op, ["pass"])
        self.block(op.regions[0])
        if attr.kind == "do_while":
            self._put(op, [f"if m{attr.param}[0]: return @{top}"], True)
        elif attr.kind == "checkpoint" and attr.param >= 0:
            self._put(op, [f"if m{attr.param}[0]: return -1"], True)

    # --- real functions ----------------------------------------------------------------------

    def _callee(self, callee: Callee) -> None:
        names: list[str] = []
        for k, arg in enumerate(callee.args):
            names += [f"q{k}m", f"q{k}i"] if arg.type.is_ptr else [f"q{k}"]
        first = len(self.code)
        self.callee, self._seen, self._last = callee, [], callee.loc
        self.block(callee.body)
        result = callee.results
        self._put(None, [f"return cx.leave({'0.0' if result and result[0].is_real else '0'})"])
        self.callee = None
        mine = set(names)
        for instruction in self.code[first:]:
            mine |= names_of(instruction.lines)
        self.calls[callee.name] = first, mine, names

    def _call(self, op: Op) -> None:
        self.lines = []
        args = arguments(self, op)
        name = self.values[op] = f"v{op.id}" if isinstance(op.type, DataType) else ""
        after = self._label()
        given = "".join(f"{a}, " for a in args)
        self._put(op, [f"return cx.enter({op.attr!r}, ({given}), {name!r}, @{after})"])
        self._here(after)

    def _return(self, op: Op) -> None:
        self.lines = []
        if self.callee is not None:
            result = self.callee.results
            value = self.arg(op, 0, result[0]) if result else "0"
            self._put(op, [*self.lines, f"return cx.leave({value})"])
            return
        values = [self.arg(op, i, t) for i, t in enumerate(self.func.results)]
        self._put(op, [*self.lines, f"cx.results = ({''.join(f'{v}, ' for v in values)})"])


def names_of(lines: list[str]) -> set[str]:
    """The variables in some statements."""
    return {name for line in lines for name in _NAME.findall(line)}


def _number(name: str) -> str:
    """The number of the op that a variable belongs to."""
    return name[1:].partition("_")[0]


_CONTROL: Final[dict[int, Callable[[Flat, Op], None]]] = {
    C.IF: Flat._if, C.WHILE: Flat._while, C.WHILE_CONTROL: Flat._while_control,  # pyright: ignore[reportPrivateUsage]
    C.BREAK: Flat._leave, C.CONTINUE: Flat._leave, C.CALL: Flat._call, C.RETURN: Flat._return,  # pyright: ignore[reportPrivateUsage]
    C.BLOCK_SYNC: Flat._sync, C.SUBGROUP_SYNC: Flat._sync, C.SUBGROUP_SHUFFLE: Flat._exchange,  # pyright: ignore[reportPrivateUsage]
    C.SUBGROUP_BALLOT: Flat._exchange, C.GRAPH_REGION: Flat._region,  # pyright: ignore[reportPrivateUsage]
}  # fmt: skip
