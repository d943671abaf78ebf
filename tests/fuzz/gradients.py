"""`python -m tests.fuzz.gradients --count 2000 --seed 0`: gradients of generated kernels.

Each kernel of `slopes` is differentiated in reverse and forward mode on the interpreter and the CPU
backend; `tests.autodiff.gradients` compares with central differences, of backends with each other,
and of modes with each other. Some are compiled with other options, without some optional pass, or
with loops cut into small pieces. Every fifth is also called as users do, ``kernel.grad(...)``.

A kernel may be refused: then it is counted by what the error says. Failures are made smaller and
printed as a file that runs by itself. Exit status 1 if there was any.

With ``--cuda`` CUDA stands for the CPU, on the device of this machine, else on the simulated one;
with ``--opencl chunks`` or ``lanes`` OpenCL does.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from qd_studio import engine as qd
from qd_studio.engine import ir
from qd_studio.engine.runtime.program import current

from tests import cuda_sim
from tests.autodiff import gradients as harness
from tests.backend_variants.backends import opencl

from .configs import CUDA_VARIANTS, OPENCL_VARIANTS, VARIANTS, Variant
from .farmed import farmed
from .frontends import load_file
from .slope_model import (
    ARGUMENTS,
    Made,
    fill,
    launch_arguments,
    source_of,
    statements,
    values,
    without,
)
from .slope_parts import generate as generate_parts
from .slopes import generate

__all__ = ["Found", "Tally", "check_one", "run", "shrunk"]


class Found(NamedTuple):
    """What came of one kernel. kind: ``ok``, ``refused`` or ``failed``. what: the error's text."""

    kind: str
    what: str = ""
    compared: int = 0
    kinks: int = 0
    fits: int = 0


_BUDGETS = 24, 60, 150
"""Bytes of adstacks: gradients within them are the same to the bit."""


def _budgets(seed: int) -> tuple[int, ...]:
    """One budget for each second kernel: each costs two compiles more."""
    return (_BUDGETS[seed // 2 % len(_BUDGETS)],) if seed % 2 else ()


class Tally:
    """Counts for the closing summary."""

    def __init__(self) -> None:
        self.kinds: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.compared = self.kinks = self.fits = 0

    def add(self, found: Found) -> None:
        self.kinds[found.kind] += 1
        self.compared += found.compared
        self.kinks += found.kinks
        self.fits += found.fits
        if found.kind == "refused":
            self.refused[re.sub(r"[`'\"$]?\b\w*\d+\w*\b[`'\"]?", "_", found.what)[:110]] += 1

    def merge(self, other: Tally) -> None:
        self.kinds += other.kinds
        self.refused += other.refused
        self.compared += other.compared
        self.fits += other.fits
        self.kinks += other.kinks

    def summary(self) -> str:
        lines = [f"{n:6} refused: {what}" for what, n in self.refused.most_common()]
        lines += [
            f"{sum(self.kinds.values())} kernels: {self.kinds['ok']} agree, "
            f"{self.kinds['refused']} refused, {self.kinds['failed']} failures; {self.compared} "
            f"derivatives compared with differences, {self.kinks} more next to a kink; "
            f"{self.fits} gradients also within a budget of adstacks"
        ]
        return "\n".join(lines)


def loaded(made: Made, folder: Path, name: str) -> Any:
    """The module of a kernel."""
    path = folder / f"{name}.py"
    path.write_text(source_of(made), encoding="utf-8")
    return load_file(path, f"fuzz_{name}")


def _backend() -> str:
    """What is compared with the interpreter: the backend of the program."""
    return current().backend.name


def variant_of(seed: int) -> Variant:
    """How the kernel of this seed is compiled: each second one as users have it."""
    variants = CUDA_VARIANTS if _backend() == "cuda" else VARIANTS
    if _backend() == "opencl":
        variants = OPENCL_VARIANTS[current().config.opencl_mapping]
    usable = [v for v in variants if v.options.get("opt_level", 1) and not v.fast]
    if seed % 2:
        return variants[0]
    chosen = usable[seed // 2 % len(usable)]
    return chosen if seed % 8 == 0 else chosen.quick()


def check_one(made: Made, module: Any, called: bool | None = None) -> Found:
    """Everything that is compared for one kernel."""
    held = values(made.seed, made.real, made.integer)
    args = launch_arguments(made, module, held)
    fill(made, module, held)
    variant = variant_of(made.seed)
    options = {"external_optimization_level": 0, **variant.options} if made.seed % 4 else (
        dict(variant.options))  # fmt: skip
    exact = made.real == "f64"
    try:
        problem = harness.Problem.of_kernel(module.kernel, *args, default_fp=made.real)
        report = harness.check(
            problem, seed=made.seed, skip=variant.skip, pieces=variant.pieces,
            backends=("interp", _backend()), rounding=1e-9 if exact else 2e-4, tolerance=1e-4,
            differences=exact, default_fp=made.real, budgets=_budgets(made.seed), **options,
        )  # fmt: skip
        if not made.parts and (called if called is not None else made.seed % 5 == 0):
            check_call(problem, made, module, held)
    except qd.QuadrantsCompilationError as error:
        if isinstance(error, qd.QuadrantsInternalError):
            return Found("failed", f"{type(error).__name__}: {error}")
        return Found("refused", error.message)
    except Exception as error:
        return Found("failed", f"{type(error).__name__}: {error}")
    return Found("ok", "", report.compared, report.kinks, report.fits)


def check_call(problem: harness.Problem, made: Made, module: Any, held: dict[str, Any]) -> None:
    """``kernel.grad`` with arrays and fields that have gradients gives what the harness found."""
    params = problem.params
    floats = [i for i, p in enumerate(params) if p.kind != "scalar" and p.dtype.is_real]
    launch = harness.compiled(
        harness.differentiated(problem.source, "reverse"), _backend(), default_fp=made.real
    )
    after = problem.fresh()
    harness.compiled(ir.parse(problem.source), _backend(), default_fp=made.real)(after)
    random = np.random.default_rng(made.seed)
    weights = [random.uniform(0.3, 1.0, after[i].shape).astype(after[i].dtype) for i in floats]
    want = dict(zip([params[i].name for i in floats],
                    harness.gradients(launch, after, weights), strict=True))  # fmt: skip
    seeds = dict(zip([params[i].name for i in floats], weights, strict=True))
    arrays: dict[str, Any] = {}
    for name in ("x", "u", "y", "t"):
        array = qd.ndarray(module.real, held[name].shape, needs_grad=True)
        array.from_numpy(held[name])
        arrays[name] = array
    for name in ("p", "w", "loss", "q"):
        getattr(module, name).from_numpy(held[name])
    args = [arrays.get(name, held[name]) for name in ARGUMENTS]
    module.kernel(*args)
    every = {**arrays, **{name: getattr(module, name) for name in ("p", "w", "loss")}}
    for name, array in every.items():
        if name in seeds:
            array.grad.from_numpy(seeds[name].reshape(held[name].shape))
        else:
            array.grad.fill(0.0)
    module.kernel.grad(*args)
    for name, g in want.items():
        got = every[name].grad.to_numpy()
        size = max(1.0, float(np.abs(g).max(initial=0.0)))
        close = np.allclose(got.ravel(), g.ravel(), rtol=1e-9 if made.real == "f64" else 1e-3,
                            atol=(1e-9 if made.real == "f64" else 1e-3) * size)  # fmt: skip
        assert close, f"kernel.grad: {name}.grad is {got}, the harness has {g}"


def shrunk(made: Made, found: Found, folder: Path, limit: int = 250) -> Made:
    """The failing kernel, smaller, if it still fails in the same way."""
    head = found.what.split(":")[0]
    tries = 0

    def fails(body: Any) -> bool:
        nonlocal tries
        tries += 1
        smaller = made._replace(body=body)
        try:
            got = check_one(smaller, loaded(smaller, folder, f"{made.name}_{tries}"))
        except Exception:
            return False
        return got.kind == "failed" and got.what.split(":")[0] == head

    again = True
    while again and tries < limit:
        again = False
        for path in list(statements(made.body)):
            for unwrap in (False, True):
                try:
                    body = without(made.body, path, unwrap)
                except IndexError:
                    continue
                if body != made.body and tries < limit and fails(body):
                    made = made._replace(body=body)
                    again = True
                    break
            if again:
                break
    return made


FOOT = """
if __name__ == "__main__":  # run with the repository's root on the path
    from tests.fuzz import gradients, slope_model

    qd.init(arch=qd.cpu, default_fp=real, offline_cache=False, ad_stack_experimental_enabled=True)
    import sys

    made = slope_model.Made({name!r}, {seed}, (), (), {real!r}, {parts}, {integer!r})
    print(gradients.check_one(made, sys.modules[__name__]))
"""


def report_of(made: Made, found: Found, folder: Path | None) -> str:
    """A failure in words, with a file that shows it."""
    small = shrunk(made, found, folder) if folder else made
    text = source_of(small).replace(
        "real = ", "qd.init(arch=qd.cpu)\nreal = ", 1
    ) + FOOT.format(name=made.name, seed=made.seed, real=made.real, parts=made.parts,
                integer=made.integer)  # fmt: skip
    return f"--- seed {made.seed}, {variant_of(made.seed).name}: {found.what}\n{text}"


def start(real: str, arch: Any = qd.cpu, **options: Any) -> None:
    """`qd.init` as the kernels need it."""
    qd.init(
        arch=arch, default_fp=getattr(qd, real), fast_math=False, offline_cache=False,
        log_level="error", ad_stack_experimental_enabled=True, **options,
    )  # fmt: skip


def run(
    seeds: range,
    tell: Callable[[str], object] = print,
    small: bool = True,
    real: str = "f64",
    parts: bool = False,
    arch: Any = qd.cpu,
    **options: Any,
) -> tuple[Tally, list[str]]:
    """Check the kernels of these seeds; counts and the texts of failures."""
    tally, failures = Tally(), list[str]()
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as name, np.errstate(all="ignore"):
        folder = Path(name)
        for seed in seeds:
            if (seed - seeds.start) % 40 == 0:
                start(real, arch, **options)
            made = (generate_parts if parts else generate)(seed, real)
            found = check_one(made, loaded(made, folder, made.name))
            tally.add(found)
            if found.kind == "failed":
                failures.append(report_of(made, found, folder if small else None))
                tell(failures[-1])
    qd.reset()
    return tally, failures


def part(begin: int, end: int, small: bool, real: str, parts: bool) -> tuple[Tally, list[str]]:
    """`run` for another process."""
    return run(range(begin, end), lambda text: None, small, real, parts)


def part_on_cuda(
    begin: int, end: int, small: bool, real: str, parts: bool
) -> tuple[Tally, list[str]]:
    """`part` with CUDA in place of the CPU."""
    with cuda_sim.cuda():
        return run(range(begin, end), lambda text: None, small, real, parts, qd.cuda)


def part_on_opencl(
    begin: int, end: int, small: bool, real: str, parts: bool, mapping: str
) -> tuple[Tally, list[str]]:
    """`part` with OpenCL in place of the CPU, loops mapped so."""
    with opencl():
        return run(range(begin, end), lambda text: None, small, real, parts, qd.opencl,
                   opencl_mapping=mapping)  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.gradients", description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="number of kernels")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first kernel")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--executor", default="", help="where they run; see app/farm/executors.py")
    parser.add_argument("--real", choices=("f64", "f32"), default="f64")
    parser.add_argument("--parts", action="store_true", help="kernels of `slope_parts`")
    parser.add_argument("--keep", action="store_true", help="do not make failing kernels small")
    parser.add_argument("--cuda", action="store_true", help="with CUDA in place of the CPU")
    parser.add_argument("--opencl", choices=tuple(OPENCL_VARIANTS), help="with OpenCL")
    args = parser.parse_args()
    begin = time.perf_counter()
    end = args.seed + args.count
    if args.jobs == 1 and not args.executor and not args.cuda and not args.opencl:
        tally, failures = run(range(args.seed, end), _say, not args.keep, args.real, args.parts)
    else:
        tally = Tally()
        job, more = (part_on_cuda if args.cuda else part), ()
        if args.opencl:
            job, more = part_on_opencl, (args.opencl,)
        parts = [
            (s, min(s + 20, end), not args.keep, args.real, args.parts, *more)
            for s in range(args.seed, end, 20)
        ]
        failures = farmed(
            job, parts, args, tally, lambda: f"{sum(tally.kinds.values())} kernels"
        )  # fmt: skip
    _say(f"{tally.summary()}; {time.perf_counter() - begin:.0f} s")
    return 1 if failures else 0


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
