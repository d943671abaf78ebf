"""Runs generated kernels in every configuration and compares.

The reference is the interpreter on the frontend's IR, before any pass. It is compared with

* the interpreter on the IR at each named point of the pipeline, with all passes on, for both kinds
  of target: distinguishes a wrong pass from a wrong backend;
* the CPU backend, CUDA or OpenCL, in each configuration of `configs` (kernels whose final IR and
  options of the backend are the same as in an earlier configuration run once).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from qd_studio.engine import ir, passes
from qd_studio.engine.backends import interp
from qd_studio.engine.backends.base import find
from qd_studio.engine.errors import QuadrantsAssertionError
from qd_studio.engine.passes import make_cpu_multithreaded_range_for as pieces_pass
from qd_studio.engine.pipeline_kind import PipelineKind

from tests.cuda_sim import launching

from .configs import VARIANTS, Variant

__all__ = [
    "MAX_STEPS", "Case", "Failure", "Outcome", "Tally", "check", "difference", "interpret",
    "outcome",
]  # fmt: skip

_ID = re.compile(r"\$\d+")
MAX_STEPS = 1_000_000
"""Of the direct lowering; a kernel that takes more is not worth its time."""
LOWERED_STEPS = 100 * MAX_STEPS
"""Of all other IR of the same kernel, in which a power, for one, may be a loop."""
Values = list[Any]


class Case(NamedTuple):
    """A kernel's arguments and what agreement means for it.

    make: fresh arguments, the same at each call. arrays: names of those that are arrays. rtol,
    fast_rtol: relative tolerance for floats without and with ``fast_math``; 0 asks for the same
    value. fast: whether results under ``fast_math`` mean anything.
    """

    name: str
    make: Callable[[], Values]
    arrays: tuple[str, ...]
    rtol: float
    fast_rtol: float
    fast: bool = True


class Failure(NamedTuple):
    """A disagreement. config: where it shows. what: the first difference, or an error."""

    config: str
    what: str


class Outcome(NamedTuple):
    """What a run left behind: arrays (as they are now), results, or the text of an assertion."""

    arrays: tuple[np.ndarray, ...]
    results: tuple[Any, ...]
    error: str = ""


class Tally:
    """Counts for the closing summary."""

    def __init__(self) -> None:
        self.programs = self.skipped = self.statements = 0
        self.comparisons = self.compiles = self.ops = self.errors = 0
        self.by_config: dict[str, int] = {}
        self.by_kind: dict[str, int] = {}

    def count(self, kind: str, statements: int) -> None:
        """One more program of a kind."""
        self.programs += 1
        self.statements += statements
        self.by_kind[kind] = self.by_kind.get(kind, 0) + 1

    def add(self, config: str) -> None:
        """One more comparison, in a configuration."""
        self.comparisons += 1
        self.by_config[config] = self.by_config.get(config, 0) + 1

    def merge(self, other: Tally) -> None:
        for key, value in vars(other).items():
            mine = getattr(self, key)
            if isinstance(mine, dict):
                for name, n in value.items():
                    mine[name] = mine.get(name, 0) + n
            else:
                setattr(self, key, mine + value)

    def summary(self, variants: int, seconds: float) -> str:
        lines = [f"{n:8} kernels: {kind}" for kind, n in sorted(self.by_kind.items())]
        lines += [f"{n:8} comparisons: {name}" for name, n in self.by_config.items()]
        per = self.ops / max(self.compiles, 1)
        lines += [
            f"{self.programs} kernels of {self.statements} statements in {variants} "
            f"configurations, {self.skipped} more that run too long; {self.comparisons} "
            f"comparisons, {self.compiles} different compiles of {per:.0f} ops; {self.errors} runs "
            f"that debug stopped; {seconds:.0f} s",
        ]
        return "\n".join(lines)


# --- comparison --------------------------------------------------------------------------------


def _differs(a: Any, b: Any, rtol: float) -> bool:
    x, y = np.asarray(a), np.asarray(b)
    if not rtol or x.dtype.kind != "f":
        return not np.array_equal(x, y, equal_nan=x.dtype.kind == "f")
    x, y = x.astype(np.float64), y.astype(np.float64)
    with np.errstate(all="ignore"):
        close = np.abs(x - y) <= rtol * np.maximum(1.0, np.abs(x))
    return not bool(np.all(close | (x == y) | (np.isnan(x) & np.isnan(y))))


def difference(c: Case, a: Outcome, b: Outcome, rtol: float) -> str:
    """The first difference in words, empty if there is none."""
    if a.error or b.error:
        if a.error == b.error:
            return ""
        return f"errors differ: {a.error or 'none'!r} and {b.error or 'none'!r}"
    for name, x, y in zip(c.arrays, a.arrays, b.arrays, strict=True):
        if _differs(x, y, rtol):
            wrong = [i for i in np.ndindex(x.shape) if _differs(x[i], y[i], rtol)]
            at = wrong[0]
            return (
                f"{name}{list(at)}: {x[at]!r} and {y[at]!r}; "
                f"{len(wrong)} of {x.size} elements differ"
            )
    for k, (x, y) in enumerate(zip(a.results, b.results, strict=True)):
        if _differs(x, y, rtol):
            return f"result {k}: {x!r} and {y!r}"
    return ""


# --- running -----------------------------------------------------------------------------------


def outcome(c: Case, launch: Callable[[Values], tuple[Any, ...]]) -> Outcome:
    values = c.make()
    results, text = (), ""
    try:
        results = launch(values)
    except QuadrantsAssertionError as error:
        text = f"{error.message} @{error.line}"
    seen = getattr(values, "arrays", None)
    arrays = seen() if seen else tuple(v for v in values if isinstance(v, np.ndarray))
    return Outcome(arrays, results, text)


def interpret(
    c: Case, func: ir.Func, debug: bool = False, steps: int = LOWERED_STEPS,
    least: int | None = None,
) -> Outcome:  # fmt: skip
    """The interpreter on IR of any stage; by default one iteration after the other."""
    program = interp.compile_func(func, debug=debug, counted=True, least=least)
    return outcome(
        c, lambda v: program.launch(v, max_steps=steps, seed=1, print_fn=lambda text: None)
    )


def execute(c: Case, func: ir.Func, variant: Variant) -> Outcome:
    """The variant's backend on finished IR."""
    if variant.tiers:
        return _execute_tiers(c, func, variant)
    backend = find(variant.target)
    executable = backend.load(backend.lower(func, variant.config()))
    if variant.target != "cpu":
        return outcome(c, lambda v: launching.launch(executable, v, 1))
    return outcome(c, lambda v: executable.launch(v, 1))


def _execute_tiers(c: Case, func: ir.Func, variant: Variant) -> Outcome:
    """First-tier code, which without ``fast_math`` must leave the bits of full code, but for sums
    of floats that several threads add to, whose order is another at each launch of either."""
    from .tiers import launches, launches_on_opencl

    if variant.target == "opencl":
        made = launches_on_opencl(
            func, variant.config(),
            lambda executable: outcome(c, lambda v: launching.launch(executable, v, 1)),
        )  # fmt: skip
    else:
        made = launches(
            func, variant.config(), lambda executable: outcome(c, lambda v: executable.launch(v, 1))
        )
    if made is None:
        return execute(c, func, variant._replace(tiers=False))
    whole, stopped, was_stopped = made
    rtol = c.rtol if variant.config().cpu_max_num_threads > 1 else 0.0
    what = difference(c, whole, stopped, c.fast_rtol if variant.fast else rtol)
    if what:
        raise AssertionError(f"first tier and {'stopped' if was_stopped else 'again'}: {what}")
    return whole


@contextmanager
def _small_pieces(wanted: bool) -> Iterator[None]:
    """Make the pass cut loops that are far too short to be worth it."""
    saved = pieces_pass._CHUNK_NS, pieces_pass._MIN_PLAIN_CELLS
    if wanted:
        pieces_pass._CHUNK_NS, pieces_pass._MIN_PLAIN_CELLS = 1, 1
    try:
        yield
    finally:
        pieces_pass._CHUNK_NS, pieces_pass._MIN_PLAIN_CELLS = saved


def compiled(source: str, variant: Variant) -> ir.Func:
    """The finished IR of a kernel given as IR text."""
    func = ir.parse(source)
    instruments = [passes.SkipPasses(variant.skip)] if variant.skip else []
    with _small_pieces(variant.pieces):
        config = variant.config()
        passes.run(func, config, find(variant.target).pipeline(config), instruments)
    ir.check(func, "the pipeline")
    return func


class _Stages(passes.Instrument):
    """The text of the IR at each named point."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}

    def stage(self, name: str, func: ir.Func) -> None:
        self.texts[name] = ir.to_text(func)


def _key(func: ir.Func, variant: Variant) -> str:
    """What decides the machine code: the IR up to numbering, and the backend's options."""
    options = variant.options
    backend = [
        options.get(k)
        for k in (
            "fast_math",
            "external_optimization_level",
            "max_vector_width",
            "cpu_max_num_threads",
            "debug",
            "opencl_mapping",
            "default_gpu_block_dim",
            "saturating_grid_dim",
        )
    ]
    level = min(options.get("opt_level", 1), 1)
    numbers: dict[str, str] = {}
    text = _ID.sub(lambda m: numbers.setdefault(m[0], f"${len(numbers)}"), ir.to_text(func))
    return hashlib.sha256(f"{backend} {level}\n{text}".encode()).hexdigest()


def check(
    c: Case,
    func: ir.Func,
    tally: Tally,
    variants: tuple[Variant, ...] = VARIANTS,
    stages: bool = True,
    reference: ir.Func | None = None,
) -> Failure | None:
    """Compare ``func``, the kernel in stage ``ast``, in all ways; the first disagreement.

    reference: what is interpreted instead of ``func`` to learn what is right.
    """
    source = ir.to_text(func, locs=True)
    problems = ir.verify(func)
    if problems:
        return Failure("frontend", str(problems[0]))
    try:
        expected = interpret(c, reference or func)
    except Exception as error:
        return Failure("interp on the frontend's IR", _text(error))
    if stages:
        failure = _check_stages(c, source, expected, tally)
        if failure:
            return failure
    done: set[str] = set()
    for variant in variants:
        if variant.fast and not c.fast:
            continue
        try:
            what = _check_variant(c, source, expected, variant, done, tally)
        except Exception as error:
            what = _text(error)
        if what:
            return Failure(variant.name, what)
        tally.add(variant.name)
    return None


def _text(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def _check_stages(c: Case, source: str, expected: Outcome, tally: Tally) -> Failure | None:
    variant = VARIANTS[0]
    seen: set[str] = set()
    for kind in (PipelineKind.INTERP, PipelineKind.CPU):
        recorder = _Stages()
        try:
            passes.run(ir.parse(source), variant.config(), kind, [recorder, passes.VerifyEach()])
        except Exception as error:
            return Failure(f"passes for {kind.value}", _text(error))
        for name, text in recorder.texts.items():
            if text in seen:
                continue
            seen.add(text)
            where = f"interp at {name} for {kind.value}"
            try:
                what = difference(c, expected, interpret(c, ir.parse(text)), c.rtol)
            except Exception as error:
                what = _text(error)
            if what:
                return Failure(where, what)
            tally.add(f"interp at {name}")
    return _check_arrays(c, source, tally)


def _check_arrays(c: Case, source: str, tally: Tally) -> Failure | None:
    """Tasks over arrays give what they give one iteration after the other, to the bit."""
    func = compiled(source, VARIANTS[0]._replace(target="interp"))
    if not any(interp.refusal(func, task) == "" for task in func.tasks()):
        return None
    plain = interpret(c, func)
    try:
        what = difference(c, plain, interpret(c, func, steps=40 * LOWERED_STEPS, least=1), 0.0)
    except Exception as error:
        what = _text(error)
    if what:
        return Failure("interp over arrays", what)
    tally.add("interp over arrays")
    return None


def _check_variant(
    c: Case, source: str, expected: Outcome, variant: Variant, done: set[str], tally: Tally
) -> str:
    func = compiled(source, variant)
    key = _key(func, variant)
    if key in done:
        return ""
    done.add(key)
    tally.compiles += 1
    tally.ops += len(ir.walk(func.body))
    rtol = c.fast_rtol if variant.fast else c.rtol
    found = execute(c, func, variant)
    if variant.errors and found.error:
        # Where the kernel does what debug forbids, the interpreter must say the same.
        tally.errors += 1
        expected = interpret(c, func, debug=True)
    what = difference(c, expected, found, rtol)
    if not what:
        return ""
    try:
        passes_wrong = difference(c, expected, interpret(c, func, debug=True), rtol)
    except Exception as error:
        passes_wrong = _text(error)
    return f"{what} (expected, found; {'passes' if passes_wrong else 'backend'} at fault)"
