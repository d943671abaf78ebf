"""Runs generated kernels in every configuration and compares.

The reference is the interpreter on the frontend's IR, before any pass. It is compared with

* the interpreter on the IR at each named point of the pipeline, with all passes on, for both kinds
  of target: tells a wrong pass apart from a wrong backend;
* the CPU backend in each configuration of `configs` (kernels whose final IR and options of the
  backend are the same as in an earlier configuration run once).

Tolerance. Integers, and reals of ``exact`` kernels, must agree bit for bit, but for the sign of a
zero and the payload of a NaN. ``tame`` kernels call functions that no two libraries round alike and
sum in another order in parallel reductions: they compute with well-conditioned expressions of a
few dozen operations, so agreement is asked to within 2**5 units in the last place of the coarsest
real type they use, and under ``fast_math``, which reassociates, 2**9 units. Sums over a parallel
loop of n elements are worth n half units more.
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
from qd_studio.engine.types import f16, f32

from .configs import VARIANTS, Variant
from .model import Array, Program, expressions, walk

__all__ = [
    "Failure", "Outcome", "Tally", "arguments", "check", "difference", "interpret", "outcome",
    "tolerance",
]  # fmt: skip

_ID = re.compile(r"\$\d+")
MAX_STEPS = 2_000_000
Values = list[Any]


class Failure(NamedTuple):
    """A disagreement. config: where it shows. what: the first difference, or an error."""

    program: Program
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

    def count(self, p: Program, level: str, statements: int) -> None:
        """One more program of a level."""
        self.programs += 1
        self.statements += statements
        kind = f"{level} {p.mode}"
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


# --- arguments ---------------------------------------------------------------------------------


def _fill(p: Program, array: Array, random: np.random.Generator) -> np.ndarray:
    t = array.dtype
    shape = tuple(p.dims[d] for d in array.dims)
    if t.is_real:
        if p.mode == "tame":
            values = random.uniform(0.5, 2.0, shape)
        else:
            plain = np.array([0.0, 1.0, -1.0, 0.5, 2.0, -3.25, 1e3, 65504.0])
            values = np.where(
                random.random(shape) < 0.4, random.choice(plain, shape), random.normal(0, 10, shape)
            )
        return np.ascontiguousarray(values.astype(t.np)).reshape(shape)
    edges = np.array([0, 1, 2, 5, t.max, t.min, t.max // 3], dtype=t.np)
    spread = random.integers(t.min, t.max, shape, dtype=t.np, endpoint=True)
    small = random.integers(0, 10, shape).astype(t.np)
    pick = random.random(shape)
    values = np.where(pick < 0.3, random.choice(edges, shape), np.where(pick < 0.7, small, spread))
    return np.ascontiguousarray(values.astype(t.np)).reshape(shape)


def arguments(p: Program) -> Values:
    """Fresh arguments, the same for each call."""
    random = np.random.default_rng(p.seed)
    return [_fill(p, a, random) for a in p.arrays] + [s.value for s in p.scalars]


# --- comparison --------------------------------------------------------------------------------


def units(p: Program) -> float:
    """The unit in the last place of the coarsest real type that the program uses."""
    types = {a.dtype for a in p.arrays} | {s.dtype for s in p.scalars} | set(p.results)
    for f in p.functions:
        types |= {t for _, t in f.params} | {e.t for e in expressions(f.result)}
        types |= {x.t for s in walk(f.body) for e in s.exprs for x in expressions(e)}
    types |= {x.t for s in walk(p.body) for e in s.exprs for x in expressions(e)}
    return 2.0**-10 if f16 in types else 2.0**-23 if f32 in types else 2.0**-52


def tolerance(p: Program, fast: bool) -> float:
    """Relative tolerance for reals; 0 asks for the same bits."""
    if p.mode != "tame":
        return 0.0
    cells = max((int(np.prod([p.dims[d] for d in a.dims])) for a in p.arrays), default=1)
    return units(p) * ((512 if fast else 32) + cells / 2)


def _differs(a: Any, b: Any, rtol: float) -> bool:
    x, y = np.asarray(a), np.asarray(b)
    if not rtol or x.dtype.kind != "f":
        return not np.array_equal(x, y, equal_nan=x.dtype.kind == "f")
    x, y = x.astype(np.float64), y.astype(np.float64)
    with np.errstate(all="ignore"):
        close = np.abs(x - y) <= rtol * np.maximum(1.0, np.abs(x))
    return not bool(np.all(close | (x == y) | (np.isnan(x) & np.isnan(y))))


def difference(p: Program, a: Outcome, b: Outcome, rtol: float) -> str:
    """The first difference in words, empty if there is none."""
    if a.error or b.error:
        if a.error == b.error:
            return ""
        return f"errors differ: {a.error or 'none'!r} and {b.error or 'none'!r}"
    for array, x, y in zip(p.arrays, a.arrays, b.arrays, strict=True):
        if _differs(x, y, rtol):
            wrong = [i for i in np.ndindex(x.shape) if _differs(x[i], y[i], rtol)]
            at = wrong[0]
            return (
                f"{array.name}{list(at)} ({array.dtype}): {x[at]!r} and {y[at]!r}; "
                f"{len(wrong)} of {x.size} elements differ"
            )
    for k, (x, y) in enumerate(zip(a.results, b.results, strict=True)):
        if _differs(x, y, rtol):
            return f"result {k} ({p.results[k]}): {x!r} and {y!r}"
    return ""


# --- running -----------------------------------------------------------------------------------


def outcome(p: Program, launch: Callable[[Values], tuple[Any, ...]]) -> Outcome:
    values = arguments(p)
    arrays = tuple(values[: len(p.arrays)])
    try:
        return Outcome(arrays, launch(values))
    except QuadrantsAssertionError as error:
        return Outcome(arrays, (), f"{error.message} @{error.line}")


def interpret(p: Program, func: ir.Func, debug: bool = False) -> Outcome:
    """The interpreter on IR of any stage."""
    program = interp.compile_func(func, debug=debug, counted=True)
    return outcome(
        p, lambda v: program.launch(v, max_steps=MAX_STEPS, seed=1, print_fn=lambda text: None)
    )


def execute(p: Program, func: ir.Func, variant: Variant) -> Outcome:
    """The CPU backend on finished IR."""
    backend = find("cpu")
    executable = backend.load(backend.lower(func, variant.config()))
    return outcome(p, lambda v: executable.launch(v, 1))


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
        passes.run(func, variant.config(), "cpu", instruments)
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
        )
    ]
    level = min(options.get("opt_level", 1), 1)
    numbers: dict[str, str] = {}
    text = _ID.sub(lambda m: numbers.setdefault(m[0], f"${len(numbers)}"), ir.to_text(func))
    return hashlib.sha256(f"{backend} {level}\n{text}".encode()).hexdigest()


def check(
    p: Program,
    func: ir.Func,
    tally: Tally,
    variants: tuple[Variant, ...] = VARIANTS,
    stages: bool = True,
) -> Failure | None:
    """Compare ``func``, the program in stage ``ast``, in all ways; the first disagreement."""
    source = ir.to_text(func, locs=True)
    problems = ir.verify(func)
    if problems:
        return Failure(p, "frontend", str(problems[0]))
    try:
        expected = interpret(p, func)
    except Exception as error:
        return Failure(p, "interp on the frontend's IR", _text(error))
    if stages:
        failure = _check_stages(p, source, expected, tally)
        if failure:
            return failure
    done: set[str] = set()
    for variant in variants:
        if variant.fast and p.mode == "exact":
            continue
        try:
            what = _check_variant(p, source, expected, variant, done, tally)
        except Exception as error:
            what = _text(error)
        if what:
            return Failure(p, variant.name, what)
        tally.add(variant.name)
    return None


def _text(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def _check_stages(p: Program, source: str, expected: Outcome, tally: Tally) -> Failure | None:
    variant = VARIANTS[0]
    seen: set[str] = set()
    for target in ("interp", "cpu"):
        recorder = _Stages()
        try:
            passes.run(ir.parse(source), variant.config(), target, [recorder, passes.VerifyEach()])
        except Exception as error:
            return Failure(p, f"passes for {target}", _text(error))
        for name, text in recorder.texts.items():
            if text in seen:
                continue
            seen.add(text)
            where = f"interp at {name} for {target}"
            try:
                what = difference(p, expected, interpret(p, ir.parse(text)), tolerance(p, False))
            except Exception as error:
                what = _text(error)
            if what:
                return Failure(p, where, what)
            tally.add(f"interp at {name}")
    return None


def _check_variant(
    p: Program, source: str, expected: Outcome, variant: Variant, done: set[str], tally: Tally
) -> str:
    func = compiled(source, variant)
    key = _key(func, variant)
    if key in done:
        return ""
    done.add(key)
    tally.compiles += 1
    tally.ops += len(ir.walk(func.body))
    rtol = tolerance(p, variant.fast)
    found = execute(p, func, variant)
    if variant.errors and found.error:
        # Where the kernel does what debug forbids, the interpreter must say the same.
        tally.errors += 1
        expected = interpret(p, func, debug=True)
    what = difference(p, expected, found, rtol)
    if not what:
        return ""
    try:
        passes_wrong = difference(p, expected, interpret(p, func, debug=True), rtol)
    except Exception as error:
        passes_wrong = _text(error)
    return f"{what} (expected, found; {'passes' if passes_wrong else 'backend'} at fault)"
