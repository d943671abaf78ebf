"""The origin of a NaN or infinity: the interpreter with the provenance of each bad float.

::

    <f32> $6 = sqrt $5       v6 = fn0(v5)
                             o6 = None if v6 - v6 == 0 else cx_bad(op6, v6, (v5,), (o5,), (i2_0,))
    $9 : global_store $8, $6 m1[p8] = v6
                             cx_put('m1', p8, o6, op9)

``o`` of a value is None while it is finite, else a `Bad`: the op, its operands, and the `Bad` of
each of them. Memory has a `Bad` for each element that holds a NaN or infinity which this run
stored; one that it did not store was there before. A store of such a value into an array, or a
result, ends the run with `FoundError`, unless the value is one that the program has put in on
purpose (a constant such as `qd.math.inf` or an infinite argument, passed on as it is).

`trace` runs all of the kernel in program order, or one iteration of one task.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any, Final

from ...errors import QuadrantsUnsupportedError
from ...ir import Block, Func, Op
from ...ir import codes as C
from ...named_tuple import NamedTuple
from ...types import DataType
from .blocks import in_blocks
from .emit import Emitter
from .run import InterpretedKernel
from .vector_run import LEAST

__all__ = ["Bad", "FoundError", "Traced", "trace"]

_MOST_PARENTS: Final = 2000
_MOST_INPUTS: Final = 16


Input = tuple[Op, Any, tuple[int, ...]]


class Bad:
    """A NaN or infinity, and where it comes from.

    op: that computed or loaded it. value: of it. values: of the operands, parents: those that are
    bad themselves. inputs: finite values that the operands were computed from, as (op, value,
    indices of the element that a load is of), latest first. indices: of the iteration of a
    parallel task, outermost axis first. at: orders all of a run by time. memory: of a load what it
    is loaded from, ``m3`` the array of parameter 3, ``g3`` its gradient; element: the indices as
    written.
    """

    __slots__ = ("at", "element", "indices", "inputs", "memory", "op", "parents", "value",
                 "values")  # fmt: skip

    def __init__(
        self, op: Op, value: float, values: tuple[Any, ...], parents: tuple[Bad | None, ...],
        indices: tuple[int, ...], at: int, inputs: tuple[Input, ...] = (),
    ) -> None:  # fmt: skip
        self.op: Final = op
        self.inputs: Final = inputs
        self.value: Final = value
        self.values: Final = values
        self.parents: Final = tuple([p for p in parents if p is not None])
        self.indices: Final = indices
        self.at: Final = at
        self.memory = ""
        self.element: tuple[int, ...] = ()

    @property
    def kind(self) -> str:
        """``made`` (a NaN from no NaN, or an infinity from finite numbers), ``loaded``,
        ``argument``, ``constant`` or ``passed`` (an operand was so already)."""
        code = self.op.code
        if code == C.CONST:
            return "constant"
        if code == C.ARG_LOAD:
            return "argument"
        if self.memory:
            return "loaded"
        fine = all(math.isfinite(v) for v in self.values if isinstance(v, float))
        if fine and not self.parents:
            return "made"
        nan = any(v != v for v in self.values) or any(p.value != p.value for p in self.parents)
        return "made" if self.value != self.value and not nan else "passed"

    def ancestors(self) -> Iterator[Bad]:
        """This one and all that it comes from, nearest first."""
        seen: set[int] = set()
        waiting: list[Bad] = [self]
        while waiting and len(seen) < _MOST_PARENTS:
            one = waiting.pop(0)
            if id(one) not in seen:
                seen.add(id(one))
                yield one
                waiting += one.parents

    def origin(self) -> Bad | None:
        """The first that was made; else the first that was loaded, or a NaN that was passed.

        None for what the program put in on purpose."""
        found = list(self.ancestors())
        for kind in ("made", "loaded", "argument"):
            of_kind = [b for b in found if b.kind == kind]
            if kind == "argument":
                of_kind = [b for b in of_kind if b.value != b.value]
            if of_kind:
                return min(of_kind, key=lambda bad: bad.at)
        return None

    def chain(self) -> list[Bad]:
        """From the origin to this one, each an operand of the next."""
        origin = self.origin()
        before: dict[int, Bad] = {}
        for one in self.ancestors():
            for parent in one.parents:
                before.setdefault(id(parent), one)
        out = [] if origin is None else [origin]
        while out and out[-1] is not self:
            out.append(before[id(out[-1])])
        return out


class FoundError(Exception):
    """Ends a run at the first store of a bad value. op: that stores it. memory, element: where."""

    def __init__(
        self, op: Op, bad: Bad, origin: Bad, memory: str, element: tuple[int, ...]
    ) -> None:
        super().__init__()
        self.op: Final = op
        self.bad: Final = bad
        self.origin: Final = origin
        self.memory: Final = memory
        self.element: Final = element


class _EndError(Exception):
    """Ends a run after the iteration that was asked for."""


class _Memory:
    """The callbacks of the traced code. on_purpose: a bad value was stored that is no fault."""

    def __init__(self) -> None:
        self.on_purpose = False
        self._time = itertools.count()
        self._of: dict[tuple[str, int], Bad] = {}

    def bad(
        self, op: Op, value: float, values: tuple[Any, ...], parents: tuple[Bad | None, ...],
        indices: tuple[int, ...], inputs: tuple[Input, ...] = (),
    ) -> Bad:  # fmt: skip
        return Bad(op, value, values, parents, indices, next(self._time), inputs)

    def get(
        self, op: Op, value: float, memory: str, offset: int, element: tuple[int, ...],
        indices: tuple[int, ...],
    ) -> Bad:  # fmt: skip
        found = self._of.get((memory, offset))
        if found is None:
            found = self.bad(op, value, (), (), indices)
            found.memory, found.element = memory, element
        return found

    def put(self, op: Op, bad: Bad | None, memory: str, offset: int, element: Any) -> None:
        if bad is None:
            if self._of:
                self._of.pop((memory, offset), None)
            return
        self._of[memory, offset] = bad
        if memory[0] in "mg":
            self.end(op, bad, memory, element)

    def end(self, op: Op, bad: Bad | None, memory: str, element: tuple[int, ...]) -> None:
        if bad is None:
            return
        origin = bad.origin()
        if origin is not None:
            raise FoundError(op, bad, origin, memory, element)
        self.on_purpose = True

    def updated(
        self, op: Op, old: float, value: Any, new: float, of_value: Bad | None, memory: str,
        offset: int, element: tuple[int, ...], indices: tuple[int, ...],
    ) -> Bad | None:  # fmt: skip
        """Note an atomic update; returns the `Bad` of the old value."""
        before = None
        if old - old != 0:
            before = self.get(op, old, memory, offset, element, indices)
        after: Bad | None = None
        if new - new != 0:
            if op.code == C.ATOMIC_XCHG and of_value is not None:
                after = of_value
            else:
                after = self.bad(op, new, (old, value), (before, of_value), indices)
        self.put(op, after, memory, offset, element)
        return before

    @staticmethod
    def nth(ranges: Sequence[range], number: int) -> tuple[int, ...]:
        """The indices of an iteration by its number in program order."""
        out: list[int] = []
        for each in reversed(ranges):
            number, at = divmod(number, len(each))
            out.append(each[at])
        return tuple(reversed(out))

    @staticmethod
    def stop() -> None:
        raise _EndError


class NanEmitter(Emitter):
    """Emits a kernel with provenance. only: the task that has it, None for all. iteration: the
    number of the one that runs of it, None for all. memory_of_run: what the code calls."""

    only: int | None = None
    iteration: int | None = None
    memory_of_run: _Memory

    def run(self) -> str:
        self._task = -1
        self._tracing = self.only is None
        self._indices = "()"
        self._shadow: dict[Op, str] = {}
        for name in ("bad", "get", "put", "updated", "end", "nth", "stop"):
            self.names[f"cx_{name}"] = getattr(self.memory_of_run, name)
        return super().run()

    def emit(self, op: Op) -> None:
        if op.code == C.OFFLOADED:
            self.offloaded(op)
            return
        if not self._tracing or self.callee is not None:
            super().emit(op)
            return
        handler = _TRACED.get(op.code)
        if handler is not None:
            handler(self, op)
        elif C.ATOMIC[op.code]:
            self._atomic(op)
        else:
            super().emit(op)
            if _is_float(op) and (C.PURE[op.code] or op.code in _PLAIN_VALUES):
                self._note(op)

    def shadow(self, op: Op) -> str:
        """The expression of the `Bad` of a value."""
        return self._shadow.get(op, "None")

    def _op(self, op: Op) -> str:
        name = f"op{op.id}"
        self.names[name] = op
        return name

    def _note(self, op: Op) -> None:
        """Emit the provenance of a value that is computed from operands."""
        given = [a for a in op.args if isinstance(a.type, DataType)]
        if op.code == C.CONST and math.isfinite(op.attr):
            return
        v, name = self.values[op], f"o{op.id}"
        values = "".join(f"{self.values[a]}, " for a in given)
        parents = "".join(f"{self.shadow(a)}, " for a in given)
        self._shadow[op] = name
        self.line(
            f"{name} = None if {v} - {v} == 0 else "
            f"cx_bad({self._op(op)}, {v}, ({values}), ({parents}), {self._indices}, "
            f"({''.join(self._inputs(op))}))"
        )

    def _inputs(self, op: Op) -> list[str]:
        """The values that an op is computed from, up to loads, as elements of a tuple."""
        out: list[str] = []
        seen: set[Op] = set()
        waiting = list(op.args)
        while waiting and len(out) < _MOST_INPUTS:
            one = waiting.pop(0)
            if one in seen or one.code == C.CONST or one not in self.values or one.type.is_ptr:
                continue
            seen.add(one)
            element = ""
            if one.code == C.GLOBAL_LOAD and one.args[0].code == C.EXTERNAL_PTR:
                element = "".join(f"{self.values[a]}, " for a in one.args[0].args[1:])
            elif C.PURE[one.code]:
                waiting += one.args
            out.append(f"({self._op(one)}, {self.values[one]}, ({element})), ")
        return out

    def traced_select(self, op: Op) -> None:
        """The one that was chosen."""
        Emitter.select(self, op)
        if _is_float(op):
            cond, a, b = op.args
            self._shadow[op] = f"o{op.id}"
            self.line(f"o{op.id} = {self.shadow(a)} if {self.values[cond]} else {self.shadow(b)}")

    def _where(self, pointer: Op) -> str:
        """Memory, offset and the indices as written, as arguments."""
        memory, offset = self.memory(pointer), self.values[pointer]
        element = f"({offset},)"
        if pointer.code == C.EXTERNAL_PTR:
            element = f"({''.join(f'{self.values[a]}, ' for a in pointer.args[1:])})"
        return f"{memory!r}, {offset}, {element}"

    def traced_alloca(self, op: Op) -> None:
        """A variable has none at first."""
        Emitter.alloca(self, op)
        self.line(f"oa{op.id} = None")

    def traced_load(self, op: Op) -> None:
        """The one that was stored there, or one of its own."""
        Emitter.load(self, op)
        if not _is_float(op):
            return
        v, pointer = self.values[op], op.args[0]
        self._shadow[op] = f"o{op.id}"
        if pointer.code == C.ALLOCA:
            got = f"oa{pointer.id} or cx_bad({self._op(op)}, {v}, (), (), {self._indices})"
        else:
            got = f"cx_get({self._op(op)}, {v}, {self._where(pointer)}, {self._indices})"
        self.line(f"o{op.id} = None if {v} - {v} == 0 else ({got})")

    def traced_store(self, op: Op) -> None:
        """Memory gets the one of the value."""
        Emitter.store(self, op)
        pointer, value = op.args
        if not value.type.is_real:
            return
        if pointer.code == C.ALLOCA:
            self.line(f"oa{pointer.id} = {self.shadow(value)}")
        else:
            self.line(f"cx_put({self._op(op)}, {self.shadow(value)}, {self._where(pointer)})")

    def _atomic(self, op: Op) -> None:
        Emitter.atomic(self, op)
        if not _is_float(op):
            return
        pointer, value = op.args[0], op.args[1]
        place = self.place(op)
        old, given = self.values[op], self.values[value]
        self._shadow[op] = f"o{op.id}"
        where = f"{old}, {given}, {place}, {self.shadow(value)}"
        if pointer.code == C.ALLOCA:
            variable = f"oa{pointer.id}"
            self.line(f"o{op.id} = {variable}")
            self.line(
                f"{variable} = None if {place} - {place} == 0 else cx_bad({self._op(op)}, {place}, "
                f"({old}, {given}), ({variable}, {self.shadow(value)}), {self._indices})"
            )
            return
        self.line(
            f"o{op.id} = cx_updated({self._op(op)}, {where}, {self._where(pointer)}, "
            f"{self._indices})"
        )

    def traced_return(self, op: Op) -> None:
        """A result is where the user finds it."""
        for i, value in enumerate(op.args):
            if value in self._shadow:
                self.line(f"cx_end({self._op(op)}, {self.shadow(value)}, 'result', ({i},))")
        Emitter.emit(self, op)

    def traced_stack(self, op: Op) -> None:
        """An adstack has a second list for each of its own."""
        Emitter.emit(self, op)
        stack = op if op.code == C.AD_STACK_ALLOCA else op.args[0]
        w, d = f"ow{stack.id}", f"od{stack.id}"
        if op.code == C.AD_STACK_ALLOCA:
            self.line(f"{w}, {d} = [], []")
        elif op.code == C.AD_STACK_PUSH:
            self.line(f"{w}.append({self.shadow(op.args[1])})")
            self.line(f"{d}.append(None)")
        elif op.code == C.AD_STACK_POP:
            self.line(f"{w}.pop()")
            self.line(f"{d}.pop()")
        elif op.code == C.AD_STACK_ACC_ADJOINT:
            v, given = f"d{stack.id}[-1]", op.args[1]
            self.line(
                f"{d}[-1] = None if {v} - {v} == 0 else cx_bad({self._op(op)}, {v}, "
                f"({self.values[given]},), ({d}[-1], {self.shadow(given)}), {self._indices})"
            )
        elif _is_float(op):
            self._shadow[op] = f"o{op.id}"
            of = w if op.code == C.AD_STACK_LOAD_TOP else d
            self.line(f"o{op.id} = {of}[-1]")

    # ---- which iterations run

    def offloaded(self, op: Op) -> None:
        self._task += 1
        if self.only is not None:
            if self._task > self.only:
                return
            self._tracing = self._task == self.only
        if op.attr.kind != "serial":
            n = len(op.regions[0].ops[-1].args) // 2
            order = op.attr.axes or tuple(range(n))
            self._indices = f"({''.join(f'i{op.id}_{axis}, ' for axis in order)})"
        if self._tracing:
            saved, self.vector = self.vector, None
            Emitter.offloaded(self, op)
            self.vector = saved
        else:
            Emitter.offloaded(self, op)
        self._indices = "()"
        if self._task == self.only:
            self.line("cx_stop()")

    def over(self, op: Op, bounds: Op, body: Block, backwards: bool = False) -> None:
        if op.code != C.OFFLOADED or not self._tracing or self.iteration is None:
            Emitter.over(self, op, bounds, body, backwards)
            return
        if in_blocks(self.func, op, body):
            raise QuadrantsUnsupportedError("interp: iterations of a block run together")
        names, ranges = self.axes_of(op, bounds)
        self.line(f"r{op.id} = cx_nth(({ranges},), {self.iteration})")
        self.loop(f"for {names}, in (r{op.id},):", body)


def _is_float(op: Op) -> bool:
    return isinstance(op.type, DataType) and op.type.is_real


_PLAIN_VALUES: Final = frozenset({C.CALL, C.RAND, C.SUBGROUP_SHUFFLE})
_TRACED: Final = {
    C.SELECT: NanEmitter.traced_select, C.ALLOCA: NanEmitter.traced_alloca,
    C.LOCAL_LOAD: NanEmitter.traced_load, C.GLOBAL_LOAD: NanEmitter.traced_load,
    C.LOCAL_STORE: NanEmitter.traced_store, C.GLOBAL_STORE: NanEmitter.traced_store,
    C.RETURN: NanEmitter.traced_return,
    **{code: NanEmitter.traced_stack for code in range(C.COUNT) if C.STACK[code]},
    C.AD_STACK_ALLOCA: NanEmitter.traced_stack,
}  # fmt: skip


class Traced(NamedTuple):
    """The end of a run. found: the first bad store. on_purpose: there were others, on purpose."""

    found: FoundError | None
    on_purpose: bool


def trace(
    func: Func, values: Sequence[Any], seed: int, most: int, task: int | None = None,
    iteration: int | None = None,
) -> Traced:  # fmt: skip
    """Run in program order up to the first bad store.

    values: as for `run.run`; they are changed. task, iteration: trace this task alone, or of it
    the iteration with this number in program order; the tasks before it run as usual. Raises
    QuadrantsRuntimeError if it takes more than ``most`` steps.
    """
    memory = _Memory()

    class One(NanEmitter):
        only = task
        memory_of_run = memory

    One.iteration = iteration
    program = InterpretedKernel(func, False, True, None if task is None else LEAST, One)
    try:
        program.launch(values, print_fn=_discard, max_steps=most, seed=seed)
    except FoundError as found:
        return Traced(found, memory.on_purpose)
    except _EndError:
        pass
    return Traced(None, memory.on_purpose)


def _discard(text: str) -> None:
    """Drop a print, which the launch has made already."""
