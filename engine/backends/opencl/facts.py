"""The facts of an OpenCL artifact on how to launch each of its tasks, added to `base.TaskMeta`.

A launch packs its arguments into an *argument buffer*, laid out by `kernarg.abi.layout`. A task is
one kernel of the program. Its first parameter is the *device buffer*, a buffer with the same
layout, in which kernels find all that is not an argument: the error word, reports, results, global
temporaries, claims. All else is passed by value, as the argument buffer has it at that moment.

Plain data that `cache.codec` keeps: tuples of numbers and texts.
"""

from __future__ import annotations

from typing import Final

from ...named_tuple import NamedTuple

__all__ = ["FAILED", "MEMORY", "OpenclTask"]

FAILED: Final = 4
"""Offset in the device buffer of the i32 that is 0 unless a launch has failed; see `source.stacks`.
Tasks that find something else there return at once."""

MEMORY: Final = "m"
"""An argument that is memory: two parameters, the buffer and the byte offset in it (``ulong``)."""


class OpenclTask(NamedTuple):
    """The facts to launch one task.

    symbol: the kernel's name in the program. args: of each parameter after the device buffer what
    it is, `MEMORY` or the letter of `struct` for a scalar, and its offset in the argument buffer,
    where memory is an address (see `buffer_table`). block_dim: work-items of a group. grid: of
    `kernarg.grids`. blocks: a Python expression for the number of groups, at least 1, over ``v0``,
    ``v1``, ..., the i32 at the offsets ``reads`` of the argument buffer; empty where the host
    cannot know (then a ``cover`` grid is a ``saturate`` one, an ``exact`` one needs `header`).
    header: symbol of a kernel of one work-item with the same parameters that stores the number of
    groups as i64 to the device buffer at `grids.HEADER`; empty where ``blocks`` says it. prints:
    the parameter after the device buffer is the print buffer (see `grids.PRINTS` for its layout).
    limit: most groups that make sense; 0 for no limit.

    Tasks may share one kernel (see `source.fused`): ``number`` says which this is, and is the
    parameter after those two, an ``int``; -1 for a kernel of its own. positions: of each argument
    its index among the kernel's parameters. rest: (index, what it is) of those that this task does
    not use; memory is two parameters there, too.
    """

    symbol: str
    args: tuple[tuple[str, int], ...]
    block_dim: int
    grid: str
    blocks: str = ""
    reads: tuple[int, ...] = ()
    header: str = ""
    prints: bool = False
    limit: int = 0
    number: int = -1
    positions: tuple[int, ...] = ()
    rest: tuple[tuple[int, str], ...] = ()
