"""Generated code, printed or written to files as the options and the environment ask.

``print_kernel_llvm_ir``, ``print_kernel_llvm_ir_optimized`` and ``print_kernel_asm`` print a
kernel's code to standard output; ``QD_DUMP_IR=1`` writes ``{task}_{key}_llvm.ll``, the functions
of each task, to ``debug_dump_path``, with the key of the kernel's other dumps (`passes.dump`). All
of it reads the artifact; the running code does not change.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from ..backends.base import Artifact
from ..config import CompileConfig, DebugSwitches

__all__ = ["show_code"]

_MARK: Final = "\n; task "


def show_code(
    artifact: Artifact, config: CompileConfig, switches: DebugSwitches, instruments: Sequence[Any]
) -> None:
    """Print and write the requested code of a kernel that has just been compiled.

    instruments: those attached to the compile; one of them has the key of its dumps.
    """
    printed = {
        "llvm_ir": config.print_kernel_llvm_ir,
        "llvm_ir_optimized": config.print_kernel_llvm_ir_optimized,
        "asm": config.print_kernel_asm,
    }
    for name, wanted in printed.items():
        if wanted and name in artifact.names:
            print(f"[{artifact.meta.name}] {name}:\n{artifact.text(name)}\n", end="")
    if switches.dump_ir and "llvm_ir" in artifact.names:
        from ..passes.dump import DumpToFiles, write_whole

        key = next(one.key for one in instruments if isinstance(one, DumpToFiles))
        directory = Path(config.debug_dump_path)
        directory.mkdir(parents=True, exist_ok=True)
        parts = artifact.text("llvm_ir").split(_MARK)[1:]
        for task, part in zip(artifact.meta.tasks, parts, strict=True):
            text = _MARK.lstrip("\n") + part
            write_whole(directory / f"{task.name}_{key}_llvm.ll", text)
