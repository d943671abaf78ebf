"""Cells: locals, arrays and elements; the instructions that write them, and the last such write.

A search goes back from snapshot to snapshot. A stretch in which no watched element of an array was
written is skipped: the log of its snapshot says so.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from itertools import zip_longest
from typing import Any, Final, cast

import numpy as np

from ...ir import Op, base_of
from ...ir import codes as C
from ...named_tuple import NamedTuple
from ..contents import elements
from ..inputs import by_index
from .breakpoints import Filter
from .machine import END, Interrupted, Machine, Snapshot
from .user_values import Vector, component
from .values import DebugError, Frame, Names, without_gradient

__all__ = ["Cells", "Watch", "Write", "equal"]


class Write(NamedTuple):
    """A write of a cell. time: the moment before it. old, new: the values before and after."""

    time: int
    file: str
    line: int
    old: Any
    new: Any


class Watch:
    """Cells that are watched. text: what they are called, with the indices of the moment at which
    it was made. pcs: what may write them. array: the number of the parameter, -1 for a local.
    cells: flat indices; None for all. at: their addresses. lane: of a local, the iteration of its
    block; -1 for all. filter: the changes that stop; None for all."""

    def __init__(self, text: str, frame: Frame) -> None:
        self.text = text
        self.frame = frame
        self.pcs: frozenset[int] = frozenset()
        self.array = -1
        self.cells: frozenset[int] | None = None
        self.at: list[range] = []
        self.variables: list[Op] = []
        self.lane = -1
        self.filter: Filter | None = None


class Cells:
    """Finds writes in a run. values: its arguments."""

    def __init__(self, machine: Machine, names: Names, values: list[Any]) -> None:
        self._machine: Final = machine
        self._names: Final = names
        self._values: Final = values

    def search(self, watch: Watch, changed: bool, before: int) -> Write | None:
        """The last write of a cell before a moment; with ``changed``, one with another value that
        the filter of the watch lets stop. Raises DebugError if it is interrupted."""
        machine, which = self._machine, watch.filter if changed else None
        stops = watch.pcs.union(pc + 1 for pc in watch.pcs) if which else watch.pcs
        now = machine.time
        failed = machine.error is not None
        machine.go(before)
        following = self.value(watch)

        def skip(snapshot: Snapshot) -> bool:
            logs = [snapshot.logs.get(f"L{watch.array}"), snapshot.logs.get(f"G{watch.array}")]
            if watch.array < 0 or machine.doubled:
                return False
            log = logs[0] or {}
            return not log if watch.cells is None else not any(c in log for c in watch.cells)

        found: list[Write] = []

        def find(begin: int, end: int) -> int | None:
            nonlocal following
            seen: list[tuple[int, int, Any]] = []
            passed: set[int] = set()

            def stop() -> bool:
                if which and seen and seen[-1][0] == machine.time - 1:
                    time = seen[-1][0]
                    if which.stops(time, False) is not None:
                        passed.add(time)
                if machine.time < end and machine.pc in watch.pcs and self.writes(watch):
                    seen.append((machine.time, machine.pc, self.value(watch)))
                return False

            first = self.value(watch)
            stop()
            machine.run(end, stops, stop, interruptible=True)
            stop()
            for time, pc, old in reversed(seen):
                stopping = not which or time in passed
                if not changed or (stopping and not equal(old, following)):
                    loc = machine.code[pc].loc
                    found.append(Write(time, loc.file, loc.line, old, following))
                    return time
                following = old
            following = first
            return None

        try:
            machine.back(find, skip)
        except Interrupted:
            raise DebugError(f"the search for writes of {watch.text} was given up") from None
        finally:
            machine.go(now)
            if failed:
                machine.run(END)
        return found[0] if found else None

    def watched(self, text: str, frame: Frame) -> Watch:
        """The cells that an expression names in a frame. Raises DebugError."""
        watch = Watch("", frame)
        keys, watch.text = self._keys(text, frame)
        watch.variables = self._names.variable(keys, frame)
        if watch.variables:
            ids = {op.id for op in watch.variables}
            shared = {op.id for op in watch.variables if op.code == C.ARRAY_ALLOCA
                      and op.attr.space != "private"}  # fmt: skip
            watch.lane = -1 if shared else self._machine.lane
            watch.cells = _element(watch.variables[0], keys, watch.text)
            watch.pcs = self._pcs(lambda root: root.id in ids or root.code == C.CALL_ARG)
            return watch
        watch.array, index = self._array(keys, frame)
        data = without_gradient(self._values[watch.array])
        start, size = self._address(watch.array, False)
        if index or not self._machine.func.params[watch.array].ndim:
            watch.cells = self._cells(watch.array, index, watch.text)
            watch.at = [range(start + c * size, start + (c + 1) * size) for c in watch.cells]
        else:
            watch.at = [range(start, start + data.size * size)]
        several = self._machine.doubled
        watch.pcs = self._pcs(
            lambda root: (
                root.code == C.CALL_ARG
                or (root.code == C.ARG_ADDR and (several or root.attr[0] == watch.array))
            )
        )
        return watch

    def _keys(self, text: str, frame: Frame) -> tuple[tuple[str | int, ...], str]:
        """The names and indices of ``p[i].pos[1]``, in their order: ``p``, 3, ``pos``, 1; and the
        text with these indices."""
        keys: list[str | int] = []
        try:
            tree = ast.parse(text.strip(), mode="eval").body
        except SyntaxError:
            tree = None
        node = tree
        while isinstance(node, ast.Attribute | ast.Subscript):
            if isinstance(node, ast.Attribute):
                keys.append(node.attr)
            else:
                found = self._names.evaluate(f"({ast.unparse(node.slice)},)", frame)
                index = _flat(found)
                if index:
                    parts: list[ast.expr] = [ast.Constant(n) for n in index]
                    node.slice = parts[0] if len(parts) == 1 else ast.Tuple(parts, ast.Load())
                keys += reversed(index)
            node = node.value
        if tree is None or not isinstance(node, ast.Name):
            raise DebugError(
                f"{text!r} names no variable, array or element: write x[3] or p.pos[1]"
            )
        return (node.id, *reversed(keys)), ast.unparse(tree)

    def _array(self, keys: tuple[str | int, ...], frame: Frame) -> tuple[int, list[int]]:
        """The number of the array that keys name, and the index in it. Raises DebugError."""
        params = self._machine.func.params
        names = [p.name for p in params]
        path, index = str(keys[0]), list[int]()
        is_local = path in self._names.locals(frame)
        if not is_local and not any(f"{name}.".startswith(f"{path}.") for name in names):
            raise DebugError(f"no variable or array {path!r} has a value here")
        for key in keys[1:]:
            if isinstance(key, int):
                index.append(key)
            elif any(f"{name}.".startswith(f"{path}.{key}.") for name in names):
                path += f".{key}"
            elif component(key) >= 0:
                index.append(component(key))
            else:
                raise DebugError(f"{path!r} has no member {key!r}")
        if path in names and params[names.index(path)].kind != "scalar":
            return names.index(path), index
        members = ", ".join(n.removeprefix(f"{path}.") for n in names if n.startswith(f"{path}."))
        if members:
            raise DebugError(f"{path!r} has the members {members}: name one of them")
        raise DebugError(f"{path!r} is a loop index or a parameter: nothing writes it")

    def _address(self, number: int, gradient: bool) -> tuple[int, int]:
        """The address of an array or its gradient, and the bytes of an element."""
        value = self._values[number]
        data = value[1] if gradient else without_gradient(value)
        return data.ctypes.data, data.itemsize

    def _pcs(self, fits: Callable[[Op], bool]) -> frozenset[int]:
        """The instructions that write to memory whose root fits."""
        out: set[int] = set()
        for pc, instruction in enumerate(self._machine.code):
            op = instruction.op
            writes = op is not None and (C.WRITE[op.code] or C.ATOMIC[op.code])
            if op is not None and writes and op.args and fits(base_of(op.args[0])):
                out.add(pc)
        return frozenset(out)

    def _cells(self, number: int, index: list[int], text: str) -> frozenset[int]:
        """The flat indices of an element of an array."""
        param, data = self._machine.func.params[number], without_gradient(self._values[number])
        flat: Any = cast("Any", np.arange(data.size))
        origin: tuple[int, ...] = ()
        if param.layout is not None:
            flat, origin = elements(param.layout, flat), param.layout.origin
        else:
            flat = by_index(param, flat.reshape(data.shape))
        at = tuple(i - o for i, o in zip_longest(index, origin[: len(index)], fillvalue=0))
        try:
            if any(i < 0 for i in at):
                raise IndexError("the index is negative")
            return frozenset(np.atleast_1d(flat[at]).reshape(-1).tolist())
        except IndexError as error:
            raise DebugError(f"{text}: {error}") from None

    def writes(self, watch: Watch) -> bool:
        """True if the next instruction writes what is watched."""
        machine = self._machine
        op = machine.code[machine.pc].op
        assert op is not None
        root = base_of(op.args[0])
        memory = machine.env.get(f"q{root.attr}m") if root.code == C.CALL_ARG else None
        if watch.array < 0:
            if watch.lane >= 0 and machine.lane != watch.lane:
                return False
            if memory is not None:
                return any(memory is machine.env.get(f"a{v.id}") for v in watch.variables)
            here = len(machine.frames) == watch.frame.level
            return here and (watch.cells is None or self._index(op) in watch.cells)
        if memory is None:
            number, gradient = root.attr
        else:
            views = [*machine.cx.arrays, *machine.cx.grads]
            found = next((i for i, view in enumerate(views) if view is memory), -1)
            if found < 0:
                return False
            gradient, number = divmod(found, len(machine.cx.arrays))
        start, size = self._address(number, bool(gradient))
        first = start + self._index(op) * size
        return any(first < cell.stop and cell.start < first + size for cell in watch.at)

    def _index(self, op: Op) -> int:
        """The index that a write is about to write to, in the memory of its root."""
        return int(eval(self._machine.flat.values[op.args[0]], self._machine.env))

    def value(self, watch: Watch) -> Any:
        """The value of what is watched, as it is now."""
        if watch.array >= 0:
            data = without_gradient(self._values[watch.array])
            if watch.cells is None:
                return data.copy()
            cells = data.reshape(-1)[sorted(watch.cells)]
            return cells[0] if len(cells) == 1 else cells.copy()
        env, out = self._machine.env, list[Any]()
        for op in watch.variables:
            value = env.get(f"a{op.id}")
            kind: Any = op.type
            elem = kind.elem
            for v in cast("list[Any]", value if isinstance(value, list) else [value]):
                out.append(None if v is None else elem.np(v) if elem.is_real else int(v))
        if watch.cells is not None and len(out) > 1:
            return out[min(watch.cells)]
        return out[0] if len(out) == 1 else Vector(out)


def _element(op: Op, keys: tuple[str | int, ...], text: str) -> frozenset[int] | None:
    """The index that keys have in a local array; None for all of it, or another variable."""
    rest = keys[1:]
    if op.code != C.ARRAY_ALLOCA or not rest:
        return None
    index = component(rest[0]) if isinstance(rest[0], str) else rest[0]
    if len(rest) > 1 or not 0 <= index < op.attr.count:
        raise DebugError(f"{text} is no element of {keys[0]}, which has {op.attr.count}")
    return frozenset((index,))


def _flat(index: Any) -> list[int]:
    """The numbers of an index; None and vectors are in it as in kernels."""
    out: list[int] = []
    for each in index:
        if isinstance(each, tuple | list):
            out += _flat(each)
        elif each is not None:
            try:
                out.append(operator.index(each))
            except TypeError:
                raise DebugError(f"{each!r} is no index") from None
    return out


def equal(a: Any, b: Any) -> bool:
    """True if two values are the same, NaNs included."""
    if isinstance(a, Vector) and isinstance(b, Vector):
        return len(a) == len(b) and all(map(equal, a, b))
    if a is None or b is None:
        return a is b
    return bool(np.array_equal(a, b, equal_nan=np.asarray(a).dtype.kind == "f"))
