"""The part of a record that tells of machine code for a GPU, and of how its tasks are launched.

Everything here is known without a device; see `record`.
"""

from __future__ import annotations

import msgspec

__all__ = ["MachineKernel", "MachineRecord"]


class _Base(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=False):
    """Settings shared by all parts of a record."""


class MachineKernel(_Base, frozen=True, kw_only=True):
    """One kernel function of a module.

    symbol: its name. task: number of the task that it runs; -1 for a helper. block_dim: threads of
    a block. grid: ``one`` (a single thread), ``cover`` (as many blocks as there is work for),
    ``saturate`` (at most as many as the device holds), ``exact`` (blocks are part of the program).
    blocks: how many, as a formula; empty where only the device knows.

    known: whether an assembler told the rest. registers: of a thread. stack, shared, constant,
    spill_stores, spill_loads: bytes. barriers: hardware barriers. blocks_held, warps_held: that a
    multiprocessor holds at a time. occupancy: share of the warps that it could hold. limit: what
    keeps more away: threads, blocks, registers, shared memory.

    Of AMD's: registers are those of a lane, accumulators further ones of it, scalar_registers those
    of a wave. spilled_registers: kept in memory. stack: scratch of a thread. shared: LDS. wave:
    lanes of one. waves, most_waves: that a SIMD holds at a time, and could hold. code: bytes.
    """

    symbol: str
    task: int = -1
    block_dim: int = 0
    grid: str = ""
    blocks: str = ""
    known: bool = False
    registers: int = 0
    stack: int = 0
    spill_stores: int = 0
    spill_loads: int = 0
    shared: int = 0
    constant: int = 0
    barriers: int = 0
    blocks_held: int = 0
    warps_held: int = 0
    occupancy: float = 0.0
    limit: str = ""
    scalar_registers: int = 0
    accumulators: int = 0
    spilled_registers: int = 0
    wave: int = 0
    waves: int = 0
    most_waves: int = 0
    code: int = 0


class MachineRecord(_Base, frozen=True, kw_only=True):
    """A module for one processor.

    arch: such as sm_90 or gfx942. title: its family. ptx_version, ptx_bytes: of the PTX. assembler:
    name and version of what made the facts; reason: why there are none. assemble_ms: what it took.
    disassembler, sass_reason: the same of the text of the machine code. notes: warnings.
    """

    arch: str
    title: str = ""
    ptx_version: str = ""
    ptx_bytes: int = 0
    assembler: str = ""
    reason: str = ""
    assemble_ms: float = 0.0
    disassembler: str = ""
    sass_reason: str = ""
    notes: tuple[str, ...] = ()
    kernels: tuple[MachineKernel, ...] = ()
