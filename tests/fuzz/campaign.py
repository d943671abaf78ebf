"""Many programs by seed: generated at two levels, checked, counted, failures made small.

Level ``source``: Python source text through the real frontend, whose IR must compute what a direct
lowering of the same program computes; once through `qd.init` and a call as a user would do it.
Level ``ir``: the direct lowering itself, with operations on constants that Python would fold.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from qd_studio import engine as qd
from qd_studio.engine import ir

from tests import cuda_sim
from tests.backend_variants.backends import opencl
from tests.cuda_sim import launching

from .cases import case_of
from .configs import CUDA_VARIANTS, OPENCL_VARIANTS, TIER_VARIANTS, VARIANTS, Variant
from .containers import Containers
from .frontends import build, built_case, containers, load
from .generate import generate
from .lower import lower
from .model import Program, count
from .runner import MAX_STEPS, Failure, Outcome, Tally, check, difference, interpret
from .shrink import shrink
from .source import program_source

__all__ = [
    "LEVELS", "check_seed", "part", "part_of_tiers", "part_on_cuda", "part_on_opencl",
    "report", "run", "shrunk",
]  # fmt: skip

LEVELS = ("source", "ir")
BATCH = 20
"""Programs in a module."""
ALWAYS = ("all passes", "fast_math", "threads=2, small pieces", "check_out_of_bound", "debug")


def level_of(seed: int, level: str) -> str:
    """Of mixed campaigns every third seed is of level ``ir``."""
    if level != "both":
        return level
    return "ir" if seed % 3 == 2 else "source"


def make(seed: int, level: str) -> Program:
    return generate(seed, f"k{seed}", pairs=level == "ir")


def _too_long(p: Program) -> bool:
    """Whether the program runs longer than is useful, by its direct lowering."""
    try:
        interpret(case_of(p), lower(p), steps=MAX_STEPS)
    except qd.QuadrantsRuntimeError as error:
        return "step limit" in str(error)
    return False


def check_seed(
    p: Program, level: str, tally: Tally, module: Any = None,
    variants: tuple[Variant, ...] = VARIANTS, launch: bool = True,
) -> Failure | None:  # fmt: skip
    """Everything that is compared for one program."""
    direct, case = lower(p), case_of(p)
    if level == "ir":
        return check(case, direct, tally, variants)
    try:
        held = containers(p, module)
        first = build(held, fast_math=False)
        plain = build(held, fast_math=False, short_circuit_operators=False)
    except qd.QuadrantsCompilationError as error:
        return Failure("frontend", f"{type(error).__name__}: {error}")
    expected = interpret(case, direct)
    for name, made in (("frontend", first), ("short_circuit_operators=False", plain)):
        problems = ir.verify(made.func)
        what = str(problems[0]) if problems else ""
        mine = built_case(held, made)
        what = what or difference(case, expected, interpret(mine, made.func), case.rtol)
        if what:
            return Failure(name, f"{what} (direct lowering, frontend)")
        tally.add(name)
    failure = check(built_case(held, first), first.func, tally, variants)
    if failure is None and launch:
        what = difference(case, expected, _call(held), case.rtol)
        if what:
            return Failure("call", what)
        tally.add("call")
    return failure


def _call(held: Containers) -> Outcome:
    """The kernel called as a user calls it; the caller has called `qd.init`."""
    try:
        results, arrays = held.call()
    except qd.QuadrantsAssertionError as error:
        return Outcome((), (), f"{error.message} @{error.line}")
    return Outcome(arrays, results)


def shrunk(p: Program, failure: Failure, level: str, folder: Path, limit: int = 200) -> Program:
    """The failing program, smaller, if it still fails in the same configuration."""
    every = (*VARIANTS, *CUDA_VARIANTS, *OPENCL_VARIANTS["chunks"], *OPENCL_VARIANTS["lanes"])
    variants = tuple(v for v in every if v.name == failure.config) or VARIANTS[:1]
    number = 0

    def fails(p: Program) -> bool:
        nonlocal number
        number += 1
        try:
            if ir.verify(lower(p)):
                return False
            module = load([p], folder, f"shrink_{p.name}_{number}") if level == "source" else None
            found = check_seed(p, level, Tally(), module, variants, failure.config == "call")
        except Exception:
            return False
        if found is None or found.config != failure.config:
            return False
        return _error(found.what) == _error(failure.what)

    return shrink(p, fails, limit)


def _error(what: str) -> str:
    """The class of an error, empty for a difference of values."""
    head = what.split(":", 1)[0]
    return head if head.endswith("Error") else ""


def run(
    seeds: range,
    level: str = "both",
    tell: Callable[[str], object] = print,
    small: bool = True,
    variants: tuple[Variant, ...] = VARIANTS,
    thorough: bool = False,
    arch: Any = qd.cpu,
    options: dict[str, Any] | None = None,
) -> tuple[Tally, list[str]]:
    """Check the programs of these seeds; counts and the texts of failures.

    thorough: all configurations, with LLVM's optimisation, for every program, not for each twelfth;
        see `chosen`. arch: where kernels run that are called as users do; options: of `qd.init`.
    """
    tally, failures = Tally(), list[str]()
    more = options or {}
    qd.init(arch=arch, fast_math=False, offline_cache=False, log_level="error", **more)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for start in range(seeds.start, seeds.stop, BATCH):
            batch = range(start, min(start + BATCH, seeds.stop))
            programs = [(make(s, level_of(s, level)), level_of(s, level)) for s in batch]
            sources = [p for p, kind in programs if kind == "source"]
            module = load(sources, folder, f"batch{start}") if sources else None
            for p, kind in programs:
                if _too_long(p):
                    tally.skipped += 1
                    continue
                tally.count(f"{kind} {p.mode}", count(p.body))
                mine = variants if thorough else chosen(variants, p.seed)
                failure = check_seed(p, kind, tally, module, mine)
                if failure:
                    failures.append(report(p, failure, kind, folder if small else None))
                    tell(failures[-1])
            tell(f"seeds to {batch.stop - 1}: {tally.programs} kernels, {len(failures)} failures")
    qd.reset()
    return tally, failures


def chosen(variants: tuple[Variant, ...], seed: int) -> tuple[Variant, ...]:
    """The configurations in which the program with this seed is compiled.

    Each twelfth program has all of them as they are. The others have those that matter most to
    users and a sixth of the rest, another one for each seed, with LLVM's optimisation off where it
    does not matter: many programs find more than the same program many times.
    """
    if seed % 12 == 0:
        return variants
    return tuple(
        v.quick() for k, v in enumerate(variants) if v.name in ALWAYS or (k + seed) % 6 == 0
    )


def part(begin: int, end: int, level: str, small: bool, thorough: bool) -> tuple[Tally, list[str]]:
    """`run` for another process: seeds from ``begin`` up to ``end``, without a word."""
    return run(range(begin, end), level, lambda text: None, small, thorough=thorough)


def part_of_tiers(begin: int, end: int, level: str, small: bool) -> tuple[Tally, list[str]]:
    """`part` for first-tier code."""
    return run(range(begin, end), level, lambda text: None, small, TIER_VARIANTS, True)


def part_on_cuda(begin: int, end: int, level: str, small: bool) -> tuple[Tally, list[str]]:
    """`part` with CUDA in place of the CPU, in all of its configurations."""
    with cuda_sim.cuda():
        device = launching.opened()
        try:
            return run(
                range(begin, end), level, lambda text: None, small, CUDA_VARIANTS, True, qd.cuda
            )
        finally:
            device.end()


def part_on_opencl(
    begin: int, end: int, level: str, small: bool, mapping: str
) -> tuple[Tally, list[str]]:
    """`part` with OpenCL in place of the CPU, loops mapped so, in all of its configurations."""
    options = {"opencl_mapping": mapping}
    variants = OPENCL_VARIANTS[mapping]
    with opencl():
        device = launching.opened("opencl", **options)
        try:
            return run(range(begin, end), level, lambda text: None, small, variants, True,
                       qd.opencl, options)  # fmt: skip
        finally:
            device.end()


def report(p: Program, failure: Failure, level: str, folder: Path | None) -> str:
    """A failure in words, with the smallest source found."""
    if folder:
        p = shrunk(p, failure, level, folder)
    head = f"seed {p.seed} ({level}, {p.mode}), {failure.config}: {failure.what}"
    scalars = ", ".join(f"{s.name}={s.value!r}" for s in p.scalars)
    shapes = ", ".join(f"{a.name}{[p.dims[d] for d in a.dims]}" for a in p.arrays)
    return f"{head}\n  arrays {shapes}; scalars {scalars}\n{program_source(p)}"
