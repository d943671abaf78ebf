"""Machine code for a GPU: the resources of each kernel of the module, and its occupancy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ....engine.inspect.record import BackendRecord, CompileRecord, MachineKernel, MachineRecord
from .. import format as fmt
from ..lines import Line, table, used_columns

__all__ = [
    "HEADER", "facts", "machine_lines", "machine_rows", "machine_table", "registers", "spills",
    "spills_text",
]  # fmt: skip

HEADER: Final = (
    "task", "block", "registers", "scalar", "accumulators", "spills", "stack", "shared", "constant",
    "barriers", "code", "occupancy", "grid",
)  # fmt: skip
"""Names of all columns; `machine_table` leaves out those that say nothing of a module."""
_ALWAYS: Final = ("task", "grid")
_RIGHT: Final = (False, *(True,) * 10, False, False)
_LIMITS: Final = (34, 6, 9, 6, 12, 16, 9, 9, 9, 8, 9, 44, 100)


def registers(machine: MachineRecord | None) -> str:
    """Registers of the task that takes the most; empty where that is not known."""
    known = [k for k in machine.kernels if k.known] if machine is not None else []
    return str(max(k.registers for k in known)) if known else ""


def spills_text(machine: MachineRecord | None) -> str:
    """Bytes moved or registers put away: ``24 B``, of AMD's code ``2 regs``; ``0``; empty where
    that is not known."""
    if machine is None or not any(k.known for k in machine.kernels):
        return ""
    moved = sum(k.spill_stores + k.spill_loads for k in machine.kernels)
    number = sum(k.spilled_registers for k in machine.kernels)
    parts = [fmt.size(moved)] if moved else []
    parts += [fmt.counted(number, "reg")] if number else []
    return ", ".join(parts) or "0"


def spills(machine: MachineRecord | None) -> int:
    """Bytes of registers that all tasks together put into memory and take back; of AMD's code the
    number of such registers."""
    kernels = machine.kernels if machine is not None else ()
    return sum(k.spill_stores + k.spill_loads + k.spilled_registers for k in kernels)


def facts(machine: MachineRecord) -> list[str]:
    """The facts about the whole module; then, a line each, missing data and warnings."""
    first = f"{machine.arch}{f' ({machine.title})' if machine.title else ''}"
    if machine.ptx_bytes:
        first += f", PTX {machine.ptx_version}, {fmt.size(machine.ptx_bytes)}"
    waves = next((k.wave for k in machine.kernels if k.wave), 0)
    first += f", waves of {waves} lanes" if waves else ""
    if machine.assembler:
        first += f"; {machine.assembler}, {fmt.duration_ms(machine.assemble_ms)}"
    if machine.disassembler:
        first += f"; {machine.disassembler}"
    out = [first]
    if machine.reason:
        out.append(f"no registers and no machine code: {machine.reason}")
    elif machine.sass_reason:
        out.append(f"no machine code as text: {machine.sass_reason}")
    return [*out, *machine.notes]


def machine_rows(compiled: CompileRecord) -> list[tuple[str, ...]]:
    """Cells for `HEADER`, a row a kernel; empty cells where no assembler ran."""
    machine = compiled.machine
    return [] if machine is None else [_row(compiled, k) for k in machine.kernels]


def machine_table(compiled: CompileRecord) -> tuple[list[str], list[list[str]]]:
    """(header, rows) with the columns that say something."""
    rows = machine_rows(compiled)
    used = used_columns(HEADER, rows, _ALWAYS)
    return [HEADER[i] for i in used], [[row[i] for i in used] for row in rows]


def _row(compiled: CompileRecord, kernel: MachineKernel) -> tuple[str, ...]:
    block = str(kernel.block_dim or "")
    if not kernel.known:
        return (_name(compiled, kernel), block, *("",) * (len(HEADER) - 3), _grid(kernel))
    moved = kernel.spill_stores + kernel.spill_loads
    spilled = f"{fmt.size(kernel.spill_stores)} + {fmt.size(kernel.spill_loads)}" if moved else "0"
    amd = bool(kernel.wave)
    return (
        _name(compiled, kernel),
        block,
        str(kernel.registers),
        str(kernel.scalar_registers) if amd else "",
        str(kernel.accumulators or ""),
        str(kernel.spilled_registers) if amd else spilled,
        fmt.size(kernel.stack),
        fmt.size(kernel.shared),
        "" if amd else fmt.size(kernel.constant),
        "" if amd else str(kernel.barriers),
        fmt.size(kernel.code) if amd else "",
        _occupancy(kernel),
        _grid(kernel),
    )


def _name(compiled: CompileRecord, kernel: MachineKernel) -> str:
    """``0 range_for``; a helper by its symbol."""
    task = next((t for t in compiled.tasks if t.index == kernel.task), None)
    if task is None:
        return kernel.symbol
    return f"{task.index} {task.kind}"


def _grid(kernel: MachineKernel) -> str:
    if kernel.grid == "one":
        return "one thread"
    return f"{kernel.grid} {kernel.blocks}".strip()


def _occupancy(kernel: MachineKernel) -> str:
    """``75 %, 12 blocks, limited by registers``; of AMD's ``14 of 16 waves, limited by vgprs``."""
    if kernel.wave:
        return f"{kernel.waves} of {kernel.most_waves} waves, limited by {kernel.limit}"
    if not kernel.block_dim:
        return ""
    blocks = fmt.counted(kernel.blocks_held, "block")
    return f"{kernel.occupancy:.0%}, {blocks}, limited by {kernel.limit}"


def machine_lines(backend: BackendRecord | None) -> list[Line]:
    """The table, below what holds for the module; nothing for code that is for no GPU."""
    compiled = backend.compile if backend is not None else None
    machine = compiled.machine if compiled is not None else None
    if backend is None or compiled is None or machine is None:
        return []
    first, *rest = facts(machine)
    out = [Line(((backend.backend, "title"), (f"  {first}", "")))]
    out += [Line(((f"  {text}", "dim"),)) for text in rest]
    rows = machine_rows(compiled)
    cells = [_styled(row) for row in rows]
    keys = [("machine", k.symbol) for k in machine.kernels]
    used = used_columns(HEADER, rows, _ALWAYS)
    head, lines = table(
        [HEADER[i] for i in used],
        [[row[i] for i in used] for row in cells],
        keys,
        [_RIGHT[i] for i in used],
        [_LIMITS[i] for i in used],
    )
    return [*out, head, *lines]


def _styled(row: Sequence[str]) -> list[tuple[str, str]]:
    spilled = row[HEADER.index("spills")] not in ("", "0")
    styles = {"task": "accent", "grid": "dim", "registers": "num"}
    return [
        (text, "warn" if name == "spills" and spilled else styles.get(name, ""))
        for name, text in zip(HEADER, row, strict=True)
    ]
