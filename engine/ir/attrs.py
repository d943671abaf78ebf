"""Attribute records of ops that need more than one value. Immutable, compared by value."""

from __future__ import annotations

from typing import Any

from ..named_tuple import NamedTuple
from ..types import DataType, ElementLayout

__all__ = [
    "DEFAULT_BLOCK_DIM",
    "GPU_STACK",
    "RECORDS",
    "RECURSION_LIMIT",
    "SUBGROUP_SIZE",
    "AdStackAttr",
    "ArrayAttr",
    "AssertAttr",
    "ForAttr",
    "FragmentAttr",
    "GraphAttr",
    "Param",
    "TaskAttr",
    "WarpgroupAttr",
    "tile_problem",
]


class ForAttr(NamedTuple):
    """Settings of a loop, from ``qd.loop_config`` and the frontend.

    axes: order in which axes are nested, outermost first; None is 0, 1, 2, ...
    num_cpu_threads: 0 means the configured number. block_dim: 0 means the default.
    strictly_serialized: never run in parallel, keep the order of iterations. reversed: from the
        last iteration to the first. trip: of a root loop with adstacks, how often it runs, as the
        text of an `adstack.size_expr`. cold: it has few iterations, not worth much code.
    independent: accesses to arrays in different iterations are assumed not to depend on each other.
    shared: of the loop of a task of threads, which divide its iterations among themselves.
    straight: all iterations shall be straight code; their number is a constant.
    move: of a loop over two axes that only copies elements, how: ``transposed`` (rows of the source
        become columns) or ``streamed`` (past the cache, into memory that is not read soon).
    unroll: of an inner loop on a GPU, how many copies of its body there shall be, and then the
        numbers of the arrays that must begin at multiples of 16 bytes for that.
    """

    axes: tuple[int, ...] | None = None
    block_dim: int = 0
    num_cpu_threads: int = 0
    strictly_serialized: bool = False
    reversed: bool = False
    loop_name: str = ""
    trip: str = ""
    cold: bool = False
    independent: bool = False
    shared: bool = False
    straight: bool = False
    move: str = ""
    unroll: tuple[int, ...] = ()


class TaskAttr(NamedTuple):
    """The properties of an offloaded task.

    kind: ``serial`` (the body runs once) or ``range_for`` (the body runs for every index tuple
        between the bounds of the header, in any order and in parallel).
    unit: ``cell`` when an iteration is one of the user's loop, ``chunk`` when it is a chunk of it
        that one CPU thread runs (after make_cpu_multithreaded_range_for); ``thread`` when the body
        runs once for each thread of a grid of any number of whole blocks, `loop_index` is the
        thread's number in its block, and a ``shared`` loop over the bounds of the header is in the
        body (make_thread_local, subgroup_reduce).
    read_only: numbers of the array parameters that this task only reads (detect_read_only).
    trip: how often the body of a task with adstacks runs, as the text of an `adstack.size_expr`.
    predicate: which iterations of it use their real adstacks, as the text of an
        `adstack.predicate`; empty where that is not known.
    max_registers: of a thread of a GPU; 0: as many as it needs.
    tile: the iterations of a GPU's block, as the fields of a `passes.map_to_grid.Tile`; empty where
        each thread runs one at a time.
    """

    kind: str = "serial"
    axes: tuple[int, ...] | None = None
    block_dim: int = 0
    num_cpu_threads: int = 0
    loop_name: str = ""
    unit: str = "cell"
    read_only: tuple[int, ...] = ()
    trip: str = ""
    predicate: str = ""
    max_registers: int = 0
    tile: tuple[Any, ...] = ()


def tile_problem(tile: tuple[Any, ...], axes: int) -> str | None:
    """The fault of a `TaskAttr.tile` of a task with so many axes; None if it is right."""
    if not tile:
        return None
    lanes, shape, chunks = tile
    if len(shape) != axes or not 0 <= lanes < axes:
        return f"a tile has threads and iterations for each of {axes} axes, and lanes along one"
    if min([chunks, *[number for pair in shape for number in pair]]) < 1:
        return "a tile has threads and iterations along each axis"
    if shape[lanes][1] & (shape[lanes][1] - 1):
        return "a tile's iterations along the lanes are a power of two"
    return None


class AdStackAttr(NamedTuple):
    """A stack that keeps the values of a variable for the reverse pass.

    name: the user's name of the variable. size: the number of entries it needs, as the text of an
        `adstack.size_expr`; evaluated before each launch. max_size: the entries it has, where that
        is known when the kernel is compiled; 0 where ``size`` says. Both: a size that the user
        fixed, and what it would have been. adjoint: each entry has an
        adjoint next to its value. forced_by: the loop that makes it necessary, for reports.
    """

    name: str = ""
    size: str = ""
    max_size: int = 0
    adjoint: bool = True
    forced_by: str = ""


class ArrayAttr(NamedTuple):
    """Memory that a kernel makes for itself: an array of ``count`` scalars.

    name: the user's name for it. space: ``private`` (each execution of the op has its own) or
        ``shared`` (one for all iterations of a block, 0 when the block starts). A block is
        ``block_dim`` consecutive iterations of a parallel loop, the last one maybe fewer. clear:
        set to 0; else the kernel writes each element before it reads it.
    """

    name: str = ""
    count: int = 1  # pyright: ignore[reportIncompatibleMethodOverride]
    space: str = "private"
    clear: bool = True


class FragmentAttr(NamedTuple):
    """Fragments of matrices, whose elements the iterations of a subgroup of 32 hold together.

    In ``sums += a @ b`` a fragment of ``a`` is 16 by 16, those of ``b`` and ``sums`` are 16 by 8.
    With ``g, t = divmod(lane, 4)``, the iteration at ``lane`` holds, in this order, the elements

    * of ``a`` 8: rows ``g, g, g + 8, g + 8`` at columns ``2 * t, 2 * t + 1``, then the same rows 8
      columns further;
    * of ``b`` 4: rows ``2 * t, 2 * t + 1, 2 * t + 8, 2 * t + 9`` of column ``g``;
    * of ``sums`` 4: rows ``g, g, g + 8, g + 8`` at columns ``2 * t, 2 * t + 1``.

    rows / columns: of fragments: ``a`` has ``rows``, ``b`` has ``columns``, ``sums`` has both, row
        by row. part: of a load, ``a`` or ``b``.
    pitch: elements from a row in memory to the next, a multiple of 8 for a load and even for a
        store. inward: of a load, rows in memory run along what the product sums over; else they run
        along the rows of ``a``, or the columns of ``b``.
    """

    part: str = ""
    rows: int = 1
    columns: int = 1
    pitch: int = 0
    inward: bool = False


class WarpgroupAttr(NamedTuple):
    """A product of matrices in shared memory, for four subgroups of 32, a *warpgroup*.

    ``a`` has 64 rows, 16 for each subgroup, and ``b`` has 8 * ``columns`` columns. An iteration has
    its sums in the order of `FragmentAttr`, with one row of fragments. Both matrices are in panels
    of rows of 64 elements, 128 bytes, and begin at a multiple of 1,024 bytes: element (row, column)
    of a panel is at ``64 * row + (column ^ 8 * (row % 8))``, so that those of a column are in
    different banks.

    columns: of fragments of ``b``. inward: for ``a`` and for ``b``, whether rows in memory run
        along what the product sums over, 64 terms; then there is one panel. Else they run along
        the rows of ``a`` or the columns of ``b``, 64 for each panel.
    """

    columns: int = 1
    inward: tuple[bool, bool] = (True, True)


class AssertAttr(NamedTuple):
    """An assertion.

    kind: ``user`` (from the kernel's own assert; reported only in debug), ``bound`` (an array
        index), ``check`` (another check that the compiler put in), ``overflow`` (counted and
        reported after the launch, which goes on), ``breakpoint`` (checks nothing: a debugger stops
        there; the first passes delete it).
    text: the message; ``%d`` and ``%f`` stand for the op's further operands, in order.
    """

    kind: str = "user"
    text: str = ""


class GraphAttr(NamedTuple):
    """The way a part of the kernel's root runs.

    kind: ``do_while`` (the body, and again while the i32 at ``param`` is not 0 after it),
        ``checkpoint`` (once; if ``param`` is not -1 and the i32 there is not 0 afterwards, the
        launch ends; a launch may begin here), ``parallel`` (its parts, each a ``section``, in any
        order or at once), ``section`` (once, in order).
    param: number of the array parameter without axes, -1 for none. label: of a checkpoint with a
        name its number among them, in the order of the source, else -1. name: what the user calls
        that checkpoint.
    """

    kind: str = "section"
    param: int = -1
    label: int = -1
    name: int = 0


class Param(NamedTuple):
    """A parameter of a compiled kernel.

    kind: ``scalar``, ``ndarray``, or ``field`` (a field the kernel uses; its shape is known).
    dtype: of the scalar, or of one scalar of an element. ndim: axes, without those of an element.
    element_shape: of the vectors or matrices an array or field holds; () for scalars. An
        `external_ptr` has ``ndim + len(element_shape)`` indices, those of the element last.
    boundary: of an ndarray. axes: order of the axes of an ndarray in memory, outermost
        first; None is row-major. layout: of a field, over its axes and those of its element.
    grad: number of the parameter that holds its adjoints (in forward mode its duals), of the same
        kind, type and axes; -1 if there is none, or if the kernel is not differentiated.
    """

    name: str
    kind: str
    dtype: DataType
    ndim: int = 0
    needs_grad: bool = False
    boundary: str = "unsafe"
    element_shape: tuple[int, ...] = ()
    axes: tuple[int, ...] | None = None
    layout: ElementLayout | None = None
    grad: int = -1


DEFAULT_BLOCK_DIM = 128
"""Iterations of a block, for loops that do not say how many (`ForAttr.block_dim` is 0)."""

SUBGROUP_SIZE = 32
"""Iterations of a subgroup: a block has them in order, the last subgroup may be smaller."""

RECURSION_LIMIT = 4096
"""Limit of nested calls of real functions; more is an error of the kernel."""

GPU_STACK = 32 << 10
"""Bytes of stack that a thread of a GPU has for recursion where no option says it."""

RECORDS = {
    cls.__name__: cls
    for cls in (
        ForAttr,
        TaskAttr,
        AdStackAttr,
        ArrayAttr,
        AssertAttr,
        GraphAttr,
        FragmentAttr,
        WarpgroupAttr,
    )
}
