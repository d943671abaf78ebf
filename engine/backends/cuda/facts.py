"""The launch facts of each task in a CUDA artifact, in addition to its `TaskMeta`.

A launch packs its arguments into an *argument buffer*, laid out by `kernarg.abi.layout` like the
buffer of the CPU. A task is one kernel of the PTX module. Its first parameter is the address of the
*device buffer*, memory of the device with the same layout, in which kernels find all that is not an
argument: the error word, the values of a failed assertion, reports, results, global temporaries,
claims. What follows depends on the flavour the kernel was compiled in:

* an ordinary kernel receives every argument of the task by value: parameter ``k`` is what the
  argument buffer holds at ``slots[k - 1]`` when it is launched;
* a ``graph`` kernel has no other parameter and loads its arguments from the device buffer, to which
  the launch has copied them, so that a replay needs no change of the graph.

Plain data that `cache.codec` keeps: tuples of numbers and texts.
"""

from __future__ import annotations

from ...named_tuple import NamedTuple
from ..kernarg.grids import evaluate

__all__ = ["CudaLoop", "CudaTask", "loop_fits"]


class CudaTask(NamedTuple):
    """The launch facts of one task.

    symbol: the kernel's name in the module. slots: offsets in the argument buffer of its parameters
    after the first. block_dim: threads of a block. grid: ``one``, ``cover``, ``saturate`` or
    ``exact``. blocks: a Python expression for the number of blocks, at least 1, over ``v0``,
    ``v1``, ... which stand for the i32 at the offsets ``reads`` of the argument buffer; empty where
    the host cannot know (then a ``cover`` grid is a ``saturate`` one, an ``exact`` one needs
    `header`). header: symbol of a one-thread kernel, with the same parameters, that stores the
    number of blocks as i64 to the device buffer at offset `HEADER`; empty where ``blocks`` says it.
    shared: bytes of shared memory that the launch requests for a block, in addition to those that
    the code declares. limit: most blocks that make sense; 0 for no limit. tiled: full code runs it
    in tiles, and first-tier code as a loop, which is several times slower. first: ``blocks`` with
    which first-tier code has a thread for each iteration, where that code needs it; right unless it
    is above ``limit``.
    """

    symbol: str
    slots: tuple[int, ...]
    block_dim: int
    grid: str
    blocks: str = ""
    reads: tuple[int, ...] = ()
    header: str = ""
    shared: int = 0
    limit: int = 0
    tiled: bool = False
    first: str = ""


class CudaLoop(NamedTuple):
    """A whole `do_while` of a ``graph`` kernel as one kernel of a single block.

    It runs the tasks of the loop one after the other, with barriers of the block between them, and
    looks at the flag itself: a round costs no launch. number: of the loop among those of
    `KernelMeta.flow`, in program order; loops inside of it run with it. symbol: its only parameter
    is the device buffer. fits: a Python expression over ``v0``, ``v1``, ... (``reads``, as in
    `CudaTask`) that says whether the tasks are so small that one block is the fastest way.
    """

    number: int
    symbol: str
    block_dim: int
    fits: str
    reads: tuple[int, ...] = ()


def loop_fits(loop: CudaLoop, *values: int) -> bool:
    """Evaluate `CudaLoop.fits`; values: those of ``reads``."""
    return bool(evaluate(loop.fits, values))
