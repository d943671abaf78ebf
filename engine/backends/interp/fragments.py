"""Fragments of matrices, asynchronous copies and atomic sums of vectors, as Python.

Each iteration of a subgroup loads and stores its own elements of a fragment. To multiply, all of
them stop, yield their parts, and get theirs of the sums. A copy happens when its iteration waits
for it, as late as it may: what is read too early is not there. So does a product of a warpgroup:
each iteration computes its own sums from the shared arrays.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ...ir import Op
from ...ir import codes as C
from ...ir.attrs import SUBGROUP_SIZE, FragmentAttr, WarpgroupAttr
from ...ir.semantics import binary_fn
from ...types import f32

if TYPE_CHECKING:
    from .emit import Emitter

__all__ = ["FRAGMENT_OPS", "NAMES", "multiplied", "parts_of"]

_A, _B, _SUMS = 8, 4, 4
"""Elements of a fragment that an iteration has."""


def _of_sums(lane: int) -> list[tuple[int, int]]:
    """Row and column of each element of a 16 by 8 fragment that a lane has."""
    group, pair = divmod(lane, 4)
    return [(group + low, 2 * pair + k) for low in (0, 8) for k in (0, 1)]


def _of_a(lane: int) -> list[tuple[int, int]]:
    return [(row, column + right) for right in (0, 8) for row, column in _of_sums(lane)]


def _of_b(lane: int) -> list[tuple[int, int]]:
    group, pair = divmod(lane, 4)
    return [(2 * pair + k + low, group) for low in (0, 8) for k in (0, 1)]


@cache
def _places(code: int, attr: FragmentAttr) -> list[list[int]]:
    """For each lane the offsets in memory of its elements of all fragments, in their order."""
    found: list[list[int]] = []
    for lane in range(SUBGROUP_SIZE):
        if code == C.FRAGMENT_STORE:
            at = [(r, c + 8 * n) for n in range(attr.columns) for r, c in _of_sums(lane)]
        elif attr.part == "a":
            at = [(r + 16 * n, k) for n in range(attr.rows) for r, k in _of_a(lane)]
        else:
            at = [(c + 8 * n, k) for n in range(attr.columns) for k, c in _of_b(lane)]
        across = code == C.FRAGMENT_LOAD and not attr.inward
        found.append([k * attr.pitch + r if across else r * attr.pitch + k for r, k in at])
    return found


def _table(e: Emitter, op: Op) -> str:
    """The offsets of this iteration's elements."""
    name = f"places{op.id}"
    e.names[name] = _places(op.code, op.attr)
    return f"{name}[{e.arg(op, 2)} & {SUBGROUP_SIZE - 1}]"


def _load(e: Emitter, op: Op) -> None:
    to, source = op.args[:2]
    count = op.attr.rows * _A if op.attr.part == "a" else op.attr.columns * _B
    begin, array, at = e.values[to], e.memory(source), e.values[source]
    e.line(
        f"{e.memory(to)}[{begin}:{begin} + {count}] = [{array}[{at} + x] for x in {_table(e, op)}]"
    )


def _store(e: Emitter, op: Op) -> None:
    to, source = op.args[:2]
    e.line(f"for x, k in enumerate({_table(e, op)}):")
    e.line(f" {e.memory(to)}[{e.values[to]} + k] = {e.memory(source)}[{e.values[source]} + x]")


def parts_of(e: Emitter, op: Op) -> tuple[str, str]:
    """The sums of this iteration as a target of an assignment; its part in `multiplied`."""
    attr: FragmentAttr = op.attr
    counts = attr.rows * attr.columns * _SUMS, attr.rows * _A, attr.columns * _B
    parts = [
        f"{e.memory(a)}[{e.values[a]}:{e.values[a]} + {count}]"
        for a, count in zip(op.args, counts, strict=True)
    ]
    return parts[0], f"({', '.join(parts)})"


def multiplied(op: Op, parts: dict[int, tuple[list[float], ...]]) -> dict[int, list[float]]:
    """The new sums of each lane, from the sums and the elements of ``a`` and ``b`` of all lanes.

    Products are exact, and added in f64 before they are rounded once.
    """
    attr: FragmentAttr = op.attr
    a = np.zeros((attr.rows * 16, 16))
    b = np.zeros((16, attr.columns * 8))
    for lane, (_, mine_of_a, mine_of_b) in parts.items():
        rows, columns = np.array(_of_a(lane)).T
        for n in range(attr.rows):
            a[rows + 16 * n, columns] = mine_of_a[n * _A : (n + 1) * _A]
        rows, columns = np.array(_of_b(lane)).T
        for n in range(attr.columns):
            b[rows, columns + 8 * n] = mine_of_b[n * _B : (n + 1) * _B]
    with np.errstate(invalid="ignore", over="ignore"):
        product = a @ b
        found: dict[int, list[float]] = {}
        for lane, (sums, _, _) in parts.items():
            rows, columns = np.array(_of_sums(lane)).T
            mine = [
                product[rows + 16 * m, columns + 8 * n]
                for m in range(attr.rows)
                for n in range(attr.columns)
            ]
            found[lane] = (np.concatenate(mine) + sums).astype(np.float32).tolist()
    return found


def _start(e: Emitter, op: Op) -> None:
    name = f"places{op.id}"
    e.names[name] = [_of_warpgroup(op.attr, thread) for thread in range(4 * SUBGROUP_SIZE)]
    parts = ", ".join([f"{e.memory(a)}, {e.values[a]}" for a in op.args[:3]])
    e.line(f"products.append(({parts}, {name}[{e.arg(op, 3)} & {4 * SUBGROUP_SIZE - 1}]))")


def _finish(e: Emitter, op: Op) -> None:
    e.line(f"finish(products, {op.attr})")


@cache
def _of_warpgroup(attr: WarpgroupAttr, thread: int) -> tuple[Any, Any]:
    """The offsets of what a thread's sums are made of: rows of ``a``, then columns of ``b``."""
    warp, lane = divmod(thread, SUBGROUP_SIZE)
    group, pair = divmod(lane, 4)
    rows = np.array([16 * warp + group, 16 * warp + group + 8])
    columns = np.array([8 * n + 2 * pair + k for n in range(attr.columns) for k in (0, 1)])
    depth, found = np.arange(64), list[Any]()
    for at, inward in zip((rows, columns), attr.inward, strict=True):
        row, column = (at[:, None], depth) if inward else (depth, at[:, None])
        row = row + column // 64 * (0 if inward else 64)
        found.append(64 * row + (column % 64 ^ 8 * (row % 8)))
    return found[0], found[1]


def _finish_products(pending: list[tuple[Any, int, Any, int, Any, int, Any]], left: int) -> None:
    """Add all started products but the last ones."""
    for sums, at, a, at_a, b, at_b, (rows, columns) in pending[: len(pending) - left]:
        x, y = (
            np.array([[memory[start + k] for k in places] for places in table])
            for memory, start, table in ((a, at_a, rows.tolist()), (b, at_b, columns.tolist()))
        )
        with np.errstate(invalid="ignore", over="ignore"):
            product = x.astype(np.float64) @ y.astype(np.float64).T
            count = product.size
            # Two columns of the upper row, the same of the lower one, for each fragment.
            mine = product.reshape(2, count // 4, 2).swapaxes(0, 1).ravel()
            found = (mine + sums[at : at + count]).astype(np.float32).tolist()
        sums[at : at + count] = found
    del pending[: max(0, len(pending) - left)]


def _copy(e: Emitter, op: Op) -> None:
    to, source = op.args[:2]
    begin = f"{e.values[source]} + {e.arg(op, 2)} if {e.values[source]} >= 0 else -1"
    parts = f"{e.memory(to)}, {e.values[to]}, {e.memory(source)}, {begin}, {op.attr}"
    e.line(f"copies[-1].append(({parts}))")


def _group(e: Emitter, op: Op) -> None:
    e.line("copies.append([])")


def _wait(e: Emitter, op: Op) -> None:
    e.line(f"land(copies, {op.attr})")


def _land(groups: list[list[tuple[Any, int, Any, int, int]]], left: int) -> None:
    """Do the copies of all groups but the last ones. The last entry is no group yet."""
    for group in groups[: len(groups) - 1 - left]:
        for to, at, source, begin, count in group:
            if at < 0 or begin < 0:
                raise IndexError
            for k in range(count):
                to[at + k] = source[begin + k]
    del groups[: max(0, len(groups) - 1 - left)]


def _add_vector(e: Emitter, op: Op) -> None:
    memory, at = e.memory(op.args[0]), e.values[op.args[0]]
    e.line(f"if {at} < 0: raise IndexError")
    add = e.function(binary_fn(C.ADD, f32, f32, f32))
    for k in range(len(op.args) - 1):
        place = f"{memory}[{at} + {k}]"
        e.line(f"{place} = {add}({place}, {e.arg(op, k + 1)})")


NAMES: Final[dict[str, Any]] = {"land": _land, "finish": _finish_products}
"""The functions that the emitted source calls."""

FRAGMENT_OPS: Final[dict[int, Any]] = {
    C.FRAGMENT_LOAD: _load, C.FRAGMENT_STORE: _store,
    C.ASYNC_COPY: _copy, C.ASYNC_GROUP: _group, C.ASYNC_WAIT: _wait,
    C.WARPGROUP_MMA: _start, C.WARPGROUP_WAIT: _finish, C.ATOMIC_ADD_VECTOR: _add_vector,
}  # fmt: skip
