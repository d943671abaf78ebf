"""Dumps: the IR on its way through the pipeline, to files or to standard output.

* ``QD_DUMP_IR=1``: ``{kernel}_{key}_{point}.ll`` at the points in `FILES`;
* ``QD_DUMP_SIMPLIFY=1``: ``{kernel}_{key}.simplify_I_call{n}_iter{i}_{step}.ir`` after each step of
  each round of each simplification group (``simplify_I`` whatever the group). n counts the groups
  of the process; ``iter0_00_start`` is what a group began with;
* ``QD_DUMP_CFG=1``: ``{kernel}_{key}_CFG_{phase}_task{k}_before_cfg_opt.txt`` and ``..post..``,
  the control-flow graph of each task around cfg_optimization;
* ``print_ir=True``: the IR after each stage, under a label, to standard output.

``{key}`` is a digest of the IR that the frontend made and of the options: each specialisation of a
kernel has files of its own, and processes that dump into one folder write the same file only with
the same contents. A file is complete whenever it is there.

The files are IR text (whatever their suffix says) that `ir.parse` reads; they go to
``debug_dump_path``, which is created. All of this is done by instruments, which only look on: what
is compiled is the same with and without them.
"""

from __future__ import annotations

import os
import re
from itertools import count
from pathlib import Path
from threading import get_ident
from typing import Any, Final
from zlib import crc32

from ..analysis.cfg import Cfg
from ..config import OPTIONS, CompileConfig, DebugSwitches
from ..ir import Func, to_text
from .manager import Instrument, PassCx, Run

__all__ = ["DumpToFiles", "PrintIr", "instruments_for", "write_whole"]

FILES: Final = (
    "from_ast", "quadrants1", "before_simplify_I", "after_simplify_I", "after_offload",
    "after_simplify_III",
)  # fmt: skip
"""Points of the pipeline that ``QD_DUMP_IR`` writes a file at."""

_STEPS: Final = {
    "extract_constant": "01", "unreachable_code_elimination": "02", "binary_op_simplify": "03",
    "constant_fold": "04", "alg_simp": "06", "loop_invariant_code_motion": "07", "simplify": "09",
    "per_task_cse": "11", "cfg_optimization": "12",
}  # fmt: skip
# die runs three times a round; the pass before it identifies the run.
_DIE_AFTER: Final = {"loop_invariant_code_motion": "08", "simplify": "10"}

_calls = count(1)


class DumpToFiles(Instrument):
    """Writes dump files to ``directory``; see the module docstring for which."""

    def __init__(
        self, directory: str | Path, *, ir: bool = False, simplify: bool = False, cfg: bool = False
    ) -> None:
        self.directory = Path(directory)
        self.ir = ir
        self.simplify = simplify
        self.wants_notes = cfg
        self.key = ""
        """Of the kernel that was compiled last."""
        self._group = ""  # phase of the simplification group going on
        self._call = 0
        self._last = ""
        self._run: Run | None = None

    def begin(self, func: Func, cx: PassCx) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        self._group = ""
        options = {name: value for name, value in cx.config.as_dict().items() if _counts(name)}
        self.key = digest(to_text(func), repr(sorted(options.items())))

    def before(self, run: Run, func: Func) -> bool:
        self._run = run
        if self.simplify and run.round and run.stage != self._group:
            self._group, self._call, self._last = run.stage, next(_calls), ""
            self._step(func, 0, "00_start")
        return True

    def after(self, run: Run, func: Func) -> None:
        if self.simplify and run.round:
            if run.name == "die":
                number = _DIE_AFTER.get(self._last, "05")
            else:
                self._last = run.name
                number = _STEPS.get(run.name, "99")
            self._step(func, run.round, f"{number}_{run.name}")

    def stage(self, name: str, func: Func) -> None:
        if self.ir and name in FILES:
            self._write(f"{self._base(func)}_{name}.ll", to_text(func))

    def note(self, name: str, func: Func, data: Any) -> None:
        if self.wants_notes and isinstance(data, Cfg) and self._run is not None:
            when = "before" if name == "cfg_before" else "post"
            task = f"task{data.task_index}_" if data.task is not None else ""
            phase = self._run.stage or "alone"
            file = f"{self._base(func)}_CFG_{phase}_{task}{when}_cfg_opt.txt"
            self._write(file, "\n".join(data.lines(func)) + "\n")

    def _step(self, func: Func, round: int, step: str) -> None:
        file = f"{self._base(func)}.simplify_I_call{self._call}_iter{round}_{step}.ir"
        self._write(file, to_text(func))

    def _write(self, name: str, text: str) -> None:
        write_whole(self.directory / name, text)

    def _base(self, func: Func) -> str:
        return f"{_safe(func.name)}_{self.key}"


def digest(*texts: str) -> str:
    """Eight hexadecimal digits for texts."""
    return f"{crc32(chr(0).join(texts).encode('utf-8', 'replace')):08x}"


def write_whole(path: Path, text: str) -> None:
    """Write a file that is never seen in part."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}-{get_ident()}")
    unfinished.write_text(text, encoding="utf-8")
    os.replace(unfinished, path)


def _counts(name: str) -> bool:
    """True for an option that decides what is compiled."""
    return OPTIONS[name].in_cache_key


def _safe(name: str) -> str:
    """A kernel's name as a part of a file name."""
    return re.sub(r"[^\w.-]", "_", name)


_POINT_LABELS: Final = {
    "from_ast": "Initial IR",
    "after_simplify_I": "Simplified I",
    "after_simplify_II": "Simplified II",
    "after_offload": "Offloaded",
    "after_simplify_III": "Simplified III",
    "start_offload_to_executable": "Start offload_to_executable",
    "before_lower_access": "Simplified before lower access",
    "final": "Simplified IV",
}
_PASS_LABELS: Final = {
    "detect_read_only": "Detect read-only accesses",
    "demote_random": "Random numbers demoted",
    "demote_atomics": "Atomics demoted I",
    "cache_loop_invariant_global_vars": "Cache loop-invariant global vars",
    "make_cpu_multithreaded_range_for": "Make CPU multithreaded range-for",
    "make_thread_local": "Make thread local",
    "lower_access": "Access lowered",
    "die": "DIE",
    "demote_operations": "Operations demoted",
}


class PrintIr(Instrument):
    """Prints the IR under a label after each stage (``print_ir``), or only the first
    (``print_preprocessed_ir``); with positions if ``print_ir_dbg_info``."""

    def __init__(self, *, all_stages: bool = True, locs: bool = False) -> None:
        self.all_stages = all_stages
        self.locs = locs
        self._seen: set[str] = set()

    def begin(self, func: Func, cx: PassCx) -> None:
        self._seen = set()

    def stage(self, name: str, func: Func) -> None:
        label = _POINT_LABELS.get(name)
        if label and (self.all_stages or name == "from_ast"):
            self._print(label, func)

    def after(self, run: Run, func: Func) -> None:
        if not self.all_stages or run.skipped or run.round or run.stage not in _LABELLED:
            return
        if run.task is not None and run.task + 1 < len(func.tasks()):
            return  # a pass by task prints once, after the last task
        label = _PASS_LABELS.get(run.name)
        if label in self._seen:
            label += "I"  # the second round of demote_atomics
        if label:
            self._seen.add(label)
            self._print(label, func)

    def _print(self, label: str, func: Func) -> None:
        print(f"[{func.name}] {label}:\n{to_text(func, locs=self.locs)}", end="")


_LABELLED: Final = frozenset({"offload_to_executable", "lower_access"})


def instruments_for(
    config: CompileConfig, switches: DebugSwitches | None = None
) -> tuple[Instrument, ...]:
    """The instruments that options and environment switches ask for; usually none."""
    found: list[Instrument] = []
    if config.print_ir or config.print_preprocessed_ir:
        found.append(PrintIr(all_stages=config.print_ir, locs=config.print_ir_dbg_info))
    if switches is not None and switches.dumps:
        found.append(
            DumpToFiles(
                config.debug_dump_path,
                ir=switches.dump_ir,
                simplify=switches.dump_simplify,
                cfg=switches.dump_cfg,
            )
        )
    return tuple(found)
