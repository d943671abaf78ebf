"""Memory as arrays of lanes see it: loads gather, stores scatter, atomics fold.

::

    <f32> $5 = global_load $4              v5 = load(M0, p4)
    $7 : global_store $6, $5               store(M1, p6, v5)
    <f32> $8 = atomic_add $6, $5           add_at(M1, p6, v5)          the old values are not used
                                           v8 = exchange(M1, p6, v5, f0)               they are used

``M``, ``G`` and ``T`` are NumPy views of what ``m``, ``g`` and ``t`` are in the scalar source.
Where several lanes of one op address the same element, they take turns in the order of lanes: a
scatter leaves the last value, NumPy's ``at`` and `exchange` go element by element. A local
variable has an element for each lane of the task, an array in private memory ``count`` of them.

The code around such an op depends on the kind of its memory, see `vectorizable`.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import repeat
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from ...ir import Op, base_of
from ...ir import codes as C
from ...ir.semantics import ATOMIC_OPERATION, binary_fn
from ...types import DataType, PointerType, u1
from .element_offsets import element
from .vector_ops import combined
from .vectorizable import BLIND, READ

if TYPE_CHECKING:
    from .vector import VectorEmitter

__all__ = ["HANDLERS", "NAMES", "Trouble", "folder"]

Array = Any


class Trouble(Exception):
    """A run over arrays cannot go on: the task has to run one iteration after the other."""


# --- emission --------------------------------------------------------------------------------


def _elem(pointer: Op) -> DataType:
    assert isinstance(pointer.type, PointerType)
    assert isinstance(pointer.type.elem, DataType)
    return pointer.type.elem


def _alloca(e: VectorEmitter, op: Op) -> None:
    e.values[op] = f"a{op.id}"
    e.line(f"a{op.id} = zeros(n, {_elem(op)})")


def _array_alloca(e: VectorEmitter, op: Op) -> None:
    e.values[op] = "0"
    e.line(f"a{op.id} = zeros(n * {op.attr.count}, {_elem(op)})")


def _lvalue(e: VectorEmitter, pointer: Op) -> str:
    """The elements of this iteration's own memory that an address means."""
    memory = e.memory(pointer)
    if pointer.code == C.ALLOCA:
        return f"{memory}[{':' if e.region.whole else e.region.lanes}]"
    count = base_of(pointer).attr.count
    return f"{memory}[{e.region.lanes} * {count} + inside({e.values[pointer]}, {count})]"


def _offsets(e: VectorEmitter, pointer: Op) -> str:
    """The offsets that an address means, as an array."""
    text = e.values[pointer]
    return text if pointer in e.facts.varying else f"full({e.count()}, {text})"


def _touch(e: VectorEmitter, pointer: Op, memory: str) -> str:
    """The offsets, of a SHARED space: all of these lanes must be in time."""
    offsets = _offsets(e, pointer)
    if pointer not in e.facts.varying:
        e.line(f"q = {offsets}")
        offsets = "q"
    e.line(f"run.touch({memory!r}, {offsets}, {e.region.lanes})")
    return offsets


def _load(e: VectorEmitter, op: Op) -> None:
    pointer = op.args[0]
    if e.facts.own(pointer):
        copy = ".copy()" if pointer.code == C.ALLOCA and e.region.whole else ""
        e.value(op, _lvalue(e, pointer) + copy)
        return
    memory = e.memory(pointer).upper()
    if e.facts.kinds[e.facts.space(pointer)] == READ:
        if op not in e.facts.varying:
            e.load(op)
            return
        offsets = e.values[pointer]
    else:
        offsets = _touch(e, pointer, memory)
    e.value(op, f"load({memory}, {offsets})")


def _change(e: VectorEmitter, pointer: Op, name: str, value: str, others: str = "") -> None:
    """A store, or an atomic whose result is not used; ``name``: of the function that does it."""
    space, memory = e.facts.space(pointer), e.memory(pointer).upper()
    if e.facts.kinds[space] != BLIND:
        offsets = _touch(e, pointer, memory)
    elif space not in e.facts.deferred:
        offsets = _offsets(e, pointer)
    else:
        slot = e.slot(space, memory, name)
        e.line(f"run.later({slot}, {e.region.lanes}, {e.values[pointer]}, {value})")
        return
    e.line(f"{name}({memory}, {offsets}, {value}{others})")


def _store(e: VectorEmitter, op: Op) -> None:
    pointer = op.args[0]
    if e.facts.own(pointer):
        e.line(f"{_lvalue(e, pointer)} = {e.arg(op, 1)}")
    else:
        _change(e, pointer, "store", e.arg(op, 1))


def _atomic(e: VectorEmitter, op: Op) -> None:
    pointer, value, t = op.args[0], e.arg(op, 1), op.type
    assert isinstance(t, DataType)
    code = ATOMIC_OPERATION.get(op.code)
    expected = f", {e.arg(op, 2)}" if op.code == C.ATOMIC_CAS else ""
    fn = _first if op.code == C.ATOMIC_XCHG else _swap if code is None else binary_fn(code, t, t, t)
    used = bool(e.facts.uses.get(op))
    if not e.facts.own(pointer):
        if not used:
            _change(e, pointer, e.function(folder(op.code, t)), value, expected)
            return
        memory = e.memory(pointer).upper()
        offsets = _touch(e, pointer, memory)
        e.value(op, f"exchange({memory}, {offsets}, {value}, {e.function(fn)}{expected})")
        return
    target = _lvalue(e, pointer)
    e.value(op, target + (".copy()" if target.endswith("[:]") else ""))
    if op.code == C.ATOMIC_XCHG:
        e.line(f"{target} = {value}")
    elif code is None:
        e.line(f"{target} = choose({e.values[op]} == {e.arg(op, 2)}, {value}, {e.values[op]}, {t})")
    else:
        e.line(f"{target} = {combined(e, code, (t, t), t, (e.values[op], value))}")


def _external_ptr(e: VectorEmitter, op: Op) -> None:
    """The offset of an element, -1 where there is none."""
    if len(op.args) == 1 or op not in e.facts.varying:
        e.external_ptr(op)
        return
    number: int = op.args[0].attr[0]
    param = e.func.params[number]
    indices: list[str] = []
    extents = [f"s{number}_{k}" for k in range(param.ndim)]
    for k, index in enumerate(op.args[1:]):
        text = e.arg(op, k + 1)
        if op.attr == "clamp":
            text = f"clamped({text}, {(*extents, *param.element_shape)[k]})"
        indices.append(f"j{k}")
        e.line(f"j{k} = {'wide' if index in e.facts.varying else ''}({text})")
    offset, limits = element(indices, extents, param)
    tests = " & ".join(f"within({i}, {low}, {high})" for i, low, high in limits)
    e.value(op, f"placed({offset}, {tests})")


def _linearize(e: VectorEmitter, op: Op) -> None:
    if op not in e.facts.varying:
        e.linearize(op)
        return
    n = op.attr
    names = [f"wide({e.values[a]})" if a in e.facts.varying else e.values[a] for a in op.args]
    text = names[0]
    for index, extent in zip(names[1:n], names[n:], strict=True):
        text = f"({text} * {extent} + {index})"
    e.value(op, text)


def _shift_ptr(e: VectorEmitter, op: Op) -> None:
    if op not in e.facts.varying:
        e.shift_ptr(op)
        return
    base, offset = op.args
    text = e.values[offset]
    if offset in e.facts.varying and offset.code != C.LINEARIZE:
        text = f"wide({text})"
    e.value(op, text if e.values[base] == "0" else f"{e.values[base]} + {text}")


# --- what the texts call ---------------------------------------------------------------------


def wide(index: Array) -> Array:
    """An index as a number of 64 bits. One too large for that is outside of anything anyway."""
    return index.astype(np.int64)


def clamped(index: Any, extent: int) -> Any:
    return np.maximum(0, np.minimum(index, extent - 1))


def within(index: Any, low: int, high: int) -> Any:
    return (low <= index) & (index < high)


def placed(offset: Any, inside: Array) -> Array:
    """``offset``, -1 where there is no element; a number if all lanes mean the same."""
    every = isinstance(offset, np.ndarray) and bool(inside.all())
    return cast("Array", offset) if every else np.where(inside, cast("Any", offset), -1)


def inside(offset: Any, count: int) -> Any:
    """``offset``, if it is one of ``count`` everywhere."""
    if not np.all((np.asarray(offset) >= 0) & (np.asarray(offset) < count)):
        raise Trouble("an access outside of an array")
    return offset


def _from_start(offsets: Array) -> None:
    """NumPy counts negative offsets from the end; here they are outside."""
    if offsets.size and offsets.min() < 0:
        raise Trouble("an access outside of an array")


def load(memory: Array, offsets: Array) -> Array:
    _from_start(offsets)
    return memory[offsets]


def store(memory: Array, offsets: Array, values: Any) -> None:
    _from_start(offsets)
    memory[offsets] = values


def exchange(
    memory: Array, offsets: Array, values: Any, fn: Callable[..., Any], *more: Any
) -> Array:
    """``fn`` of each element and the lane's value, lane after lane; what was there before."""
    _from_start(offsets)
    lists = [x.tolist() if isinstance(x, np.ndarray) else repeat(x) for x in (values, *more)]
    found: list[Any] = []
    for offset, *given in zip(offsets.tolist(), *lists, strict=False):
        old = memory.item(offset)
        found.append(old)
        memory[offset] = fn(old, *given)
    return np.array(found, memory.dtype)


def _first(old: Any, value: Any) -> Any:
    """The value that an exchange leaves in memory."""
    return value


def _swap(old: Any, value: Any, expected: Any) -> Any:
    """The value that a compare-and-swap leaves in memory."""
    return value if old == expected else old


_AT: Final[dict[int, np.ufunc]] = {
    C.ATOMIC_ADD: np.add, C.ATOMIC_MUL: np.multiply, C.ATOMIC_MIN: np.minimum,
    C.ATOMIC_MAX: np.maximum, C.ATOMIC_BIT_AND: np.bitwise_and, C.ATOMIC_BIT_OR: np.bitwise_or,
    C.ATOMIC_BIT_XOR: np.bitwise_xor,
}  # fmt: skip
_FOLDERS: Final[dict[tuple[int, DataType], Callable[..., None]]] = {}


def folder(code: int, t: DataType) -> Callable[..., None]:
    """The function that does an atomic, lane after lane, whose results are not used."""
    found = _FOLDERS.get((code, t))
    if found is None:
        found = _FOLDERS[code, t] = _make_folder(code, t)
    return found


def _make_folder(code: int, t: DataType) -> Callable[..., None]:
    operation = ATOMIC_OPERATION.get(code)
    fn = _swap if operation is None else binary_fn(operation, t, t, t)
    if code == C.ATOMIC_XCHG:
        return store
    ufunc = _AT.get(code)
    if t.is_real and code in (C.ATOMIC_MIN, C.ATOMIC_MAX):

        def minmax(memory: Array, offsets: Array, values: Any) -> None:
            if offsets.size and offsets.min() == offsets.max() >= 0:
                _minmax_of_one(memory, offsets[0], values, code == C.ATOMIC_MIN)
            else:
                exchange(memory, offsets, values, fn)

        return minmax
    if ufunc is None or t is u1:

        def one_by_one(memory: Array, offsets: Array, values: Any, *more: Any) -> None:
            exchange(memory, offsets, values, fn, *more)

        return one_by_one

    def at(memory: Array, offsets: Array, values: Any) -> None:
        _from_start(offsets)
        # `at` treats a Python number as an i64, and u64 next to that as an f64.
        ufunc.at(memory, offsets, np.asarray(values, memory.dtype))

    return at


def _minmax_of_one(memory: Array, offset: int, values: Any, least: bool) -> None:
    """The first of the largest of one element and all values; NaNs lose."""
    given = np.append(memory[offset], values).astype(memory.dtype)
    given = given[given == given]
    if given.size:
        memory[offset] = given[given.argmin() if least else given.argmax()]


HANDLERS: Final[dict[int, Callable[[VectorEmitter, Op], None]]] = {
    C.ALLOCA: _alloca, C.ARRAY_ALLOCA: _array_alloca, C.LOCAL_LOAD: _load, C.LOCAL_STORE: _store,
    C.GLOBAL_LOAD: _load, C.GLOBAL_STORE: _store, C.EXTERNAL_PTR: _external_ptr,
    C.LINEARIZE: _linearize, C.SHIFT_PTR: _shift_ptr,
    **{code: _atomic for code in range(C.COUNT) if C.ATOMIC[code]},
}  # fmt: skip

NAMES: Final[dict[str, Any]] = {
    "wide": wide, "clamped": clamped, "within": within, "placed": placed, "inside": inside,
    "load": load, "store": store, "exchange": exchange,
}  # fmt: skip
"""The functions that the emitted source calls."""
