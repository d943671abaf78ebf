"""`python -m tests.fuzz.slope_calls --batches 20`: gradients called as users call them.

Each kernel of `slopes` and `slope_parts` is launched with its gradient several times in one
program. Between launches the arrays that bound its loops, close its predicates and pick its
elements change: through elements, whole copies, views, other arrays, another kernel, scalar
arguments, or not at all, so that sizes found earlier are right or stale. The interpreter says what
each gradient should be; the CPU backend runs the same launches under the settings of `OPTIONS`,
with loops cut into small pieces; then once more with every kernel from the offline cache. Inputs
may lack gradients, be NumPy arrays, or be one array for two parameters that are only read.

`tests.fuzz.gradients` compares the interpreter's gradients with differences.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from qd_studio import engine as qd
from qd_studio.engine.passes import make_cpu_multithreaded_range_for as pieces_pass
from qd_studio.engine.passes import serialize_scatter as serial_pass

from . import slope_parts, slopes
from .frontends import load_file
from .slope_model import Made, N, arguments, fields, fill, source_of, values

__all__ = ["OPTIONS", "check_batch"]

OPTIONS: Final[tuple[dict[str, Any], ...]] = (
    {"cpu_max_num_threads": 3, "ad_stack_sparse_threshold_bytes": 0},
    {"cpu_max_num_threads": 1, "ad_stack_sparse_threshold_bytes": 0, "fast_math": True},
    {"cpu_max_num_threads": 2, "ad_stack_size": 4096},
    {"cpu_max_num_threads": 2, "ad_stack_sparse_threshold_bytes": 0, "debug": True},
    {"cpu_max_num_threads": 3, "fast_math": True},
    {"cpu_max_num_threads": 2, "check_out_of_bound": True},
    {"cpu_max_num_threads": 2, "ad_stack_sparse_threshold_bytes": 0, "ad_stack_size": 4096},
    {
        "cpu_max_num_threads": 3,
        "ad_stack_sparse_threshold_bytes": 0,
        "advanced_optimization": False,
    },
)
INPUTS: Final = ("x", "u", "x2", "xv", "xm")
ELEMENTS: Final = {"xv": (2,), "xm": (2, 2), "yv": (3,)}
STEPS: Final = 9

Gradients = dict[str, np.ndarray]


class Use(NamedTuple):
    """How the kernel is called. alias: x is the argument of x2, too. without: inputs that have no
    gradients; foreign: of these and of the integers, what are NumPy arrays."""

    alias: bool
    without: frozenset[str]
    foreign: frozenset[str]


def use_of(made: Made) -> Use:
    """How the kernel of this seed is called."""
    r = random.Random(made.seed)
    alias = made.parts and r.random() < 0.4
    free = [name for name in INPUTS if name in arguments(made) and not (alias and name in "x2")]
    without = frozenset(name for name in free if r.random() < 0.25)
    foreign = frozenset(
        name for name in (*sorted(without), "c", "o", "cv", "b") if r.random() < 0.3
    )
    return Use(alias, without, foreign)


class _Program:
    """The arguments of one kernel, and its launches."""

    def __init__(self, made: Made, module: Any, use: Use) -> None:
        self.made, self.module, self.use = made, module, use
        self.held = values(made.seed, made.real, made.integer)
        self.shared = use_of(made).alias
        if self.shared:
            self.held["x2"] = self.held["x"].copy()
        self.args: dict[str, Any] = {}
        for name in arguments(made):
            if name == "box":
                b = self.held["b"]
                b = b if "b" in use.foreign else self.array("b", b)
                self.args[name] = module.Box(b, self.held["k"])
                continue
            value = self.held[name]
            if name == "kv":
                self.args[name] = qd.Vector(list(value))
            elif not isinstance(value, np.ndarray) or name in use.foreign:
                self.args[name] = value
            else:
                self.args[name] = self.array(name, value)
        if use.alias:
            self.args["x2"] = self.args["x"]
        self.r = random.Random(made.seed)

    def array(self, name: str, value: np.ndarray) -> Any:
        if value.dtype.kind in "iu":
            integer = getattr(qd, self.made.integer)
            t = qd.types.vector(2, integer) if name == "cv" else integer
            out = qd.ndarray(t, N)
        else:
            element = ELEMENTS.get(name, ())
            real = self.module.real
            kind = {1: qd.types.vector, 2: qd.types.matrix}.get(len(element))
            t = kind(*element, real) if kind else real
            shape = value.shape[: value.ndim - len(element)]
            out = qd.ndarray(t, shape, needs_grad=name not in self.use.without)
        out.from_numpy(value)
        return out

    # --- between launches ----------------------------------------------------------------------

    def change(self) -> str:
        """Change something that sizes may depend on; the same for each program of this kernel."""
        what = self.r.choice(
            ("same", "same", "element", "element", "copy", "kernel", "n", "fill", "other", "mask")
        )
        names = ("c", "q", "c", "cv", "qv", "b", "k") if self.made.parts else ("c", "q", "c")
        name, k = self.r.choice(names), self.r.randrange(N)
        value, whole = self.r.randrange(4), [self.r.randrange(4) for _ in range(2 * N)]
        level = round(self.r.uniform(0.2, 1.4), 3)
        if what == "n":
            self.args["n"] = value
        elif what == "mask":
            for array in ("x", "x2") if self.shared else ("x",):
                self.args[array][k] = self.held[array][k] = level
        elif name == "k":
            box = self.args["box"]
            self.args["box"] = self.module.Box(box.b, value)
        elif what != "same":
            self.rewrite(what, name, k, value, whole)
        return f"{what} {name}"

    def rewrite(self, what: str, name: str, k: int, value: int, whole: list[int]) -> None:
        """Change an integer array or field."""
        module = self.module
        field = name[0] == "q"
        where = getattr(module, name) if field else self.args.get(name)
        if name == "b":
            where = self.args["box"].b
        foreign = isinstance(where, np.ndarray)
        new = np.array(whole[:N] if name in "cqb" else whole, self.held[name].dtype)
        new = new.reshape(self.held[name].shape)
        if what == "element" or (what in ("kernel", "fill") and foreign):
            where[k] = value if name in "cqb" else [value, whole[0]]
        elif what == "kernel":
            put = getattr(module, f"put_{name if name in ('q', 'qv', 'cv') else 'c'}")
            put(k, value) if field else put(where, k, value)
        elif what == "fill":
            where.fill(value)
        elif what == "copy" and foreign:
            where[:] = new
        elif what == "copy":
            where.from_numpy(new)
        elif not field:
            made = new if name in self.use.foreign else self.array(name, new)
            if name == "b":
                self.args["box"] = module.Box(made, self.args["box"].k)
            else:
                self.args[name] = made

    def launch(self) -> Gradients:
        """The kernel and its gradient, from the same contents of the real arrays."""
        made, module = self.made, self.module
        for name in fields(made):
            if name[0] != "q" or name == "qs":
                getattr(module, name).from_numpy(self.held[name])
        for name in ("y", "t", *(("yv",) if made.parts else ())):
            self.args[name].from_numpy(self.held[name])
        args = list(self.args.values())
        module.kernel(*args)
        places = self.places()
        for name, memory in places.items():
            # Whichever others have gradients: the same weights.
            r = np.random.default_rng([made.seed, *name.encode()])
            weights = r.uniform(0.3, 1.0, memory.to_numpy().shape)
            memory.fill(0.0) if name in INPUTS else memory.from_numpy(weights)
        module.kernel.grad(*args)
        return {name: memory.to_numpy() for name, memory in places.items()}

    def places(self) -> dict[str, Any]:
        """The memory of all gradients."""
        out: dict[str, Any] = {}
        for name, value in self.args.items():
            if name == "x2" and self.use.alias:
                continue
            if getattr(value, "grad", None) is not None:
                out[name] = value.grad
        for name in fields(self.made):
            field = getattr(self.module, name)
            if name in ("ps", "qs"):
                out |= {f"{name}.{key}": getattr(field, key).grad for key in ("a", "v")}
            elif name[0] != "q":
                out[name] = field.grad
        return out


PUT = """

@qd.kernel
def put_c(where: I1, k: qd.i32, value: qd.i32):
    where[k] = value


@qd.kernel
def put_q(k: qd.i32, value: qd.i32):
    q[k] = value
"""
PUT_PARTS = """

@qd.kernel
def put_cv(where: AI2, k: qd.i32, value: qd.i32):
    where[k].x = value
    where[k][1] += 1


@qd.kernel
def put_qv(k: qd.i32, value: qd.i32):
    qv[k].y = value
"""


def text_of(made: Made) -> str:
    """The module of a kernel, with kernels that change its integers."""
    return source_of(made) + PUT + (PUT_PARTS if made.parts else "")


def launches(made: Made, path: Path, use: Use) -> tuple[list[str], list[Gradients], Any]:
    """What was changed before each launch, and the gradients of it."""
    module = load_file(path, f"fuzz_{made.name}")
    program = _Program(made, module, use)
    fill(made, module, program.held)
    changes, out = list[str](), list[Gradients]()
    for k in range(STEPS):
        changes.append(program.change() if k > 2 else "same")
        out.append(program.launch())
    return changes, out, module


@contextmanager
def small_pieces() -> Iterator[None]:
    """Parallel loops are cut into pieces and stay parallel, however little work they are."""
    places = [(pieces_pass, "_CHUNK_NS", 1), (pieces_pass, "_MIN_PLAIN_CELLS", 1),
              (serial_pass, "_SHORT", 0), (serial_pass, "_SCATTERED", 0),
              (serial_pass, "_CONTENDED", 0)]  # fmt: skip
    saved = [getattr(module, name) for module, name, _ in places]
    for module, name, value in places:
        setattr(module, name, value)
    try:
        yield
    finally:
        for (module, name, _), value in zip(places, saved, strict=True):
            setattr(module, name, value)


def differs(want: Gradients, got: Gradients, use: Use, rounding: float) -> str:
    """In words what is wrong with the gradients, if anything."""
    want = dict(want)
    if use.alias:
        want["x"] = want["x"] + want["x2"]
    for name, b in got.items():
        a = want[name]
        size = max(1.0, float(np.abs(a).max(initial=0.0)))
        # Where derivatives have grown, so has what was rounded away on their path.
        near = rounding * size * min(max(1.0, size / 100.0), 1e4)
        if not np.allclose(a, b, rtol=rounding, atol=near):
            return f"{name}.grad is\n{b}\nand should be\n{a}"
    return ""


class Batch(NamedTuple):
    """What a batch found. launches: that were compared. refused: kernels."""

    kernels: int
    launches: int
    refused: int
    failures: list[str]


def _start(arch: Any, **options: Any) -> None:
    plain = {"fast_math": False, "offline_cache": False}
    qd.init(arch=arch, default_fp=qd.f64, log_level="error", ad_stack_experimental_enabled=True,
            **{**plain, **options})  # fmt: skip


def check_batch(start: int, count: int = 6, cached: bool = True) -> Batch:
    """All launches of the kernels whose seeds begin at ``start``, in each way."""
    kernels = [(slope_parts if s % 3 else slopes).generate(s) for s in range(start, start + count)]
    options = OPTIONS[start // count % len(OPTIONS)]
    failures, refused, compared = list[str](), set[str](), 0
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings(), small_pieces():
        warnings.simplefilter("ignore")
        folder = Path(name)
        for made in kernels:
            (folder / f"{made.name}.py").write_text(text_of(made), encoding="utf-8")
        wanted: dict[str, list[Gradients]] = {}
        _start(qd.interp)
        for made in kernels:
            plain = Use(False, frozenset(), use_of(made).foreign & {"c", "o", "cv", "b"})
            try:
                wanted[made.name] = launches(made, folder / f"{made.name}.py", plain)[1]
            except qd.QuadrantsCompilationError as error:
                if isinstance(error, qd.QuadrantsInternalError):
                    failures.append(f"seed {made.seed}, interp: {error}")
                refused.add(made.name)
            except Exception as error:
                failures.append(f"seed {made.seed}, interp: {type(error).__name__}: {error}")
                refused.add(made.name)
        cache = {"offline_cache": True, "offline_cache_file_path": str(folder / "cache")}
        for phase in ("cold", "warm") if cached else ("cold",):
            _start(qd.cpu, **options, **(cache if cached else {}))
            for made in kernels:
                if made.name in refused:
                    continue
                found = _compare(made, folder / f"{made.name}.py", wanted[made.name], phase)
                failures += [f"{phase}, {options}, {text}" for text in found]
                compared += STEPS
    qd.reset()
    return Batch(len(kernels), compared, len(refused), failures)


def _compare(made: Made, path: Path, want: list[Gradients], phase: str) -> list[str]:
    """What is wrong with the launches of a kernel on the CPU."""
    use = use_of(made)
    head = f"seed {made.seed}, {use}"
    try:
        changes, got, module = launches(made, path, use)
    except Exception as error:
        return [f"{head}: {type(error).__name__}: {error}"]
    for k, (a, b) in enumerate(zip(want, got, strict=True)):
        # Reals of one kernel are rounded differently in two orders of the same sum.
        wrong = differs(a, b, use, 1e-8)
        if wrong:
            return [f"{head}: launch {k} of {changes}: {wrong}"]
    if phase == "warm":
        for kernel in (module.kernel, module.kernel.grad):
            for variant in kernel.launchers.variants.values():
                states = {x.layer: x.state for x in variant.compiled.layers}
                if "hit" not in states.values():
                    return [f"{head}: {kernel.name} did not come from the cache: {states}"]
    return []


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.slope_calls", description=__doc__)
    parser.add_argument("--batches", type=int, default=8, help="of six kernels each")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first kernel")
    args = parser.parse_args()
    begin = time.perf_counter()
    total = [0, 0, 0, 0]
    for k in range(args.batches):
        found = check_batch(args.seed + 6 * k)
        for text in found.failures:
            print(text, flush=True)
        for i, n in enumerate((*found[:3], len(found.failures))):
            total[i] += n
    print(
        f"{total[0]} kernels, {total[2]} refused, {total[1]} launches compared, {total[3]} "
        f"failures; {time.perf_counter() - begin:.0f} s"
    )
    return 1 if total[3] else 0


if __name__ == "__main__":
    sys.exit(main())
