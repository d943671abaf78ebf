"""The part of a record about machine code for a GPU, and about the launch of its tasks.

Everything here is known without a device; see `record`.
"""

from typing import Annotated

from .record_base import RecordPart, about

__all__ = ["MachineKernel", "MachineRecord"]


class MachineKernel(RecordPart, frozen=True, kw_only=True):
    """One kernel function of a module.

    For AMD, registers are per lane, and shared memory is LDS.
    """

    symbol: Annotated[str, about("Name of the function.")]
    task: Annotated[int, about("Index of its task; -1 for a helper.")] = -1
    block_dim: Annotated[int, about("Threads per block.")] = 0
    grid: Annotated[
        str,
        about(
            "Grid: ``one`` (a single thread), ``cover`` (one block for each part of the work), "
            "``saturate`` (at most as many blocks as the device holds) or ``exact`` (set by the "
            "program)."
        ),
    ] = ""
    blocks: Annotated[
        str, about("Number of blocks as a formula; empty if only the device knows it.")
    ] = ""
    known: Annotated[bool, about("True if an assembler reported the fields below.")] = False
    registers: Annotated[int, about("Registers per thread.")] = 0
    stack: Annotated[int, about("Bytes of stack per thread; for AMD, scratch.")] = 0
    spill_stores: Annotated[int, about("Bytes of spill stores.")] = 0
    spill_loads: Annotated[int, about("Bytes of spill loads.")] = 0
    shared: Annotated[int, about("Bytes of shared memory per block.")] = 0
    constant: Annotated[int, about("Bytes of constant memory.")] = 0
    barriers: Annotated[int, about("Hardware barriers.")] = 0
    blocks_held: Annotated[int, about("Blocks that a multiprocessor holds at a time.")] = 0
    warps_held: Annotated[int, about("Warps that a multiprocessor holds at a time.")] = 0
    occupancy: Annotated[float, about("Share of the warps that it could hold.")] = 0.0
    limit: Annotated[
        str, about("Limiting resource: threads, blocks, registers or shared memory.")
    ] = ""
    scalar_registers: Annotated[int, about("AMD: scalar registers per wave.")] = 0
    accumulators: Annotated[int, about("AMD: accumulation registers per lane.")] = 0
    spilled_registers: Annotated[int, about("AMD: registers kept in memory.")] = 0
    wave: Annotated[int, about("AMD: lanes per wave.")] = 0
    waves: Annotated[int, about("AMD: waves that a SIMD holds at a time.")] = 0
    most_waves: Annotated[int, about("AMD: waves that a SIMD could hold.")] = 0
    code: Annotated[int, about("AMD: bytes of code.")] = 0


class MachineRecord(RecordPart, frozen=True, kw_only=True):
    """A module for one processor."""

    arch: Annotated[str, about("Processor, such as sm_90 or gfx942.")]
    title: Annotated[str, about("Family of the processor.")] = ""
    ptx_version: Annotated[str, about("Version of the PTX.")] = ""
    ptx_bytes: Annotated[int, about("Size of the PTX.")] = 0
    assembler: Annotated[str, about("Name and version of the tool that reported the facts.")] = ""
    reason: Annotated[str, about("Reason if there are no facts.")] = ""
    assemble_ms: Annotated[float, about("Time of the assembler.")] = 0.0
    disassembler: Annotated[str, about("Name and version of the disassembler.")] = ""
    sass_reason: Annotated[str, about("Reason if there is no text of the machine code.")] = ""
    notes: Annotated[tuple[str, ...], about("Warnings.")] = ()
    kernels: Annotated[tuple[MachineKernel, ...], about("The kernel functions.")] = ()
