"""Machine code for a GPU as records: what an assembler says of each kernel, and its text.

`machine_record` is given the artifact of a compile. LLVM itself reports facts of code for AMD; for
NVIDIA its tools do, if they are installed. Where they are not, the record says which are missing,
and contains everything else. Equal PTX is assembled once in a process.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import msgspec

from ..backends.cuda import archs, ptxas
from .record import Artefact, MachineKernel, MachineRecord

if TYPE_CHECKING:
    from ..backends.base import Artifact
    from ..backends.cuda.facts import CudaTask
    from ..backends.kernarg.abi import ArgumentLayout
    from ..config import CompileConfig

__all__ = ["locate", "machine_record"]

_VERSION: Final = re.compile(r"^\.version\s+([\d.]+)", re.M)


@lru_cache(128)
def _assembled(ptx: str, arch: str, max_registers: int) -> ptxas.Assembled:
    return ptxas.assemble(ptx, arch, max_registers)


@lru_cache(128)
def _disassembled(ptx: str, arch: str, max_registers: int) -> ptxas.Sass:
    return ptxas.disassemble(_assembled(ptx, arch, max_registers))


def locate(artifact: Artifact, config: CompileConfig) -> None:
    """Let the lines of an artifact for a GPU know their ops; LLVM works once more for that."""
    level = config.external_optimization_level if config.opt_level else 0
    if "ptx" in artifact.texts:
        from ..backends.cuda import lines

        lines.locate(artifact, level)
    elif "isa" in artifact.texts:
        from ..backends.amdgpu import lines as isa_lines

        isa_lines.locate(artifact, level)


def machine_record(
    artifact: Artifact, locations: Mapping[int, int], max_registers: int = 0, *, ask: bool = True
) -> tuple[MachineRecord | None, tuple[Artefact, ...]]:
    """The record of code for a GPU, and of CUDA's the text of its machine code; else (None, ()).

    locations: op id -> index of its location. ask: False leaves the tools alone, for the time
    being.
    """
    if "resources" in artifact.facts:
        return _by_llvm(artifact), ()
    ptx = artifact.texts.get("ptx")
    if ptx is None:
        return None, ()
    arch = artifact.target.cpu
    known = archs.ARCHS.get(arch)
    version = _VERSION.search(ptx)
    record = MachineRecord(
        arch=arch,
        title=known.title if known else "",
        ptx_version=version[1] if version else "",
        ptx_bytes=len(ptx.encode()),
        kernels=_launch_facts(artifact, ptx),
    )
    if not ask:
        return record, ()
    try:
        found = _assembled(ptx, arch, max_registers)
    except ptxas.ToolError as error:
        why = str(error)
        return msgspec.structs.replace(record, reason=why, sass_reason=why), ()
    record = msgspec.structs.replace(
        record,
        assembler=found.tool,
        assemble_ms=found.ms,
        notes=found.notes,
        kernels=tuple(_assembled_facts(k, found, known) for k in record.kernels),
    )
    try:
        sass = _disassembled(ptx, arch, max_registers)
    except ptxas.ToolError as error:
        return msgspec.structs.replace(record, sass_reason=str(error)), ()
    ids = artifact.lines.get("ptx", ())
    ops = [ids[n - 1] if 0 < n <= len(ids) else -1 for n in sass.ptx_lines] if ids else []
    lines = tuple([locations.get(op, -1) for op in ops])
    text = Artefact(name="sass", language="sass", text=sass.text, lines=lines, ops=tuple(ops))
    return msgspec.structs.replace(record, disassembler=sass.tool), (text,)


def _by_llvm(artifact: Artifact) -> MachineRecord:
    """The record of an AMDGPU artifact, whose facts LLVM reports with the code."""
    from ..backends.amdgpu import archs as processors

    facts, arch = artifact.facts, artifact.target.cpu
    tasks: tuple[CudaTask, ...] = facts["tasks"]
    known = processors.ARCHS.get(arch)
    kernels = [
        _of_amd(MachineKernel(
            symbol=task.symbol, task=i, block_dim=task.block_dim, grid=task.grid,
            blocks=_formula(artifact, task),
        ), found)
        for i, (task, found) in enumerate(zip(tasks, facts["resources"], strict=True))
    ]  # fmt: skip
    helpers: dict[str, Any] = facts.get("helpers", {})
    kernels += [_of_amd(MachineKernel(symbol=name), found) for name, found in helpers.items()]
    missing: tuple[str, ...] = facts.get("unresolved", ())
    note = f"not linked, and not in the numbers: {', '.join(missing)} of ROCm's device library"
    return MachineRecord(
        arch=arch,
        title=known.title if known else "",
        kernels=tuple(kernels),
        notes=(note,) if missing else (),
    )


def _of_amd(kernel: MachineKernel, found: Mapping[str, Any]) -> MachineKernel:
    most = found["occupancy_most"]
    return msgspec.structs.replace(
        kernel, known=True, registers=found["vgprs"], scalar_registers=found["sgprs"],
        accumulators=found["agprs"], stack=found["scratch_bytes"], shared=found["lds_bytes"],
        spilled_registers=found["vgpr_spills"] + found["sgpr_spills"], wave=found["wave"],
        waves=found["occupancy"], most_waves=most, limit=found["occupancy_limit"],
        occupancy=found["occupancy"] / most if most else 0.0, code=found["code_bytes"],
    )  # fmt: skip


def _launch_facts(artifact: Artifact, ptx: str) -> tuple[MachineKernel, ...]:
    """The kernels in the order of the PTX, with what launching them needs."""
    facts: dict[str, Any] = artifact.facts
    tasks: tuple[CudaTask, ...] = facts.get("tasks", ())
    by_symbol = {task.symbol: (i, task) for i, task in enumerate(tasks)}
    out: list[MachineKernel] = []
    for symbol in ptxas.entries_of(ptx):
        number, task = by_symbol.get(symbol, (-1, None))
        if task is None:
            out.append(MachineKernel(symbol=symbol))
            continue
        out.append(
            MachineKernel(
                symbol=symbol,
                task=number,
                block_dim=task.block_dim,
                grid=task.grid,
                blocks=_formula(artifact, task),
                shared=task.shared,
            )
        )
    return tuple(out)


def _formula(artifact: Artifact, task: CudaTask) -> str:
    """The number of blocks as a formula, with names of parameters in place of offsets into the
    argument buffer."""
    text = task.blocks
    offsets = _named_offsets(artifact)
    for i, offset in enumerate(task.reads):
        text = re.sub(rf"\bv{i}\b", offsets.get(offset, f"[{offset}]"), text)
    return text


def _named_offsets(artifact: Artifact) -> dict[int, str]:
    """The values in an argument buffer, by offset: numbers, and the extents of arrays."""
    layout: ArgumentLayout | None = artifact.facts.get("layout")
    out: dict[int, str] = {}
    if layout is None:
        return out
    for param, offset in zip(artifact.meta.params, layout.params, strict=True):
        if param.kind == "ndarray":
            extents = offset + 8 * (1 + param.needs_grad)
            for axis in range(param.ndim):
                out[extents + 8 * axis] = f"{param.name}.shape[{axis}]"
        else:
            out[offset] = param.name
    return out


def _assembled_facts(
    kernel: MachineKernel, found: ptxas.Assembled, arch: archs.Arch | None
) -> MachineKernel:
    facts = found.kernels.get(kernel.symbol)
    if facts is None:
        return kernel
    shared = facts.shared + kernel.shared
    if arch is not None and kernel.block_dim:
        held = archs.occupancy(arch, kernel.block_dim, facts.registers, shared)
        kernel = msgspec.structs.replace(
            kernel, blocks_held=held.blocks, warps_held=held.warps, occupancy=held.share,
            limit=held.limit,
        )  # fmt: skip
    return msgspec.structs.replace(
        kernel, known=True, registers=facts.registers, stack=facts.stack,
        spill_stores=facts.spill_stores, spill_loads=facts.spill_loads, shared=shared,
        constant=facts.constant, barriers=facts.barriers,
    )  # fmt: skip
