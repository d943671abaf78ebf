"""Random loops of the shapes that mapping passes look for: a GPU gives what the interpreter gives.

Each kind is what one pass takes, written in several ways, and sometimes what it must leave alone:

- ``transposed``: elements read across the rows of those written (`stage_shared`);
- ``product``: sums along an inner loop of pairs that depend on one axis each (`tile_products`);
- ``counts``: updates of an array at places that another array has (`privatize_scatter`);
- ``rows``: sums along an inner loop whose bounds an array has, or that reads rows of a matrix;
- ``sums``: updates of one element by all iterations (`make_thread_local`), some under conditions;
- ``cells``: updates of components of vectors (`vectorize_atomics`), some of them, in any order;
- ``ranges``: loops of all these kinds over a few iterations anywhere in the range of i32, or none;
- ``straight``: neighbours of elements along several axes (`map_to_grid`), which are the loops of
  `tests.backends.cuda.test_schedule_fuzz`.

Values are small whole numbers: their sums are exact in every order, and results must be equal. On
CUDA all launches run twice: with first-tier code, and with full code after the swap.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import math
import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine import passes
from qd_studio.engine.backends.cpu import background as helping
from qd_studio.engine.backends.cuda import background, nvptx
from qd_studio.engine.backends.llvm import tiles
from qd_studio.engine.passes import map_to_grid, tensor_products, tile_products
from qd_studio.engine.passes.fragment_tiles import Shape

from tests.backends.cuda import test_schedule_fuzz as straight
from tests.cuda_sim import on_device, simulated

__all__ = ["KINDS", "MappingTally", "part_of_mappings", "random_loop", "run_mappings"]

NUMPY = {"f32": "float32", "f64": "float64", "f16": "float16", "i32": "int32", "i64": "int64",
         "u8": "uint8", "i16": "int16", "u32": "uint32"}  # fmt: skip
SUMMED = ("i32", "f32", "f64", "i64", "u32")
"""Types of which an atomic update is one operation of a device, or a loop of it."""


class RandomLoop(NamedTuple):
    """text: the module of a kernel `loop`. arrays: its arguments for each launch, numbers too."""

    kind: str
    text: str
    arrays: list[tuple[np.ndarray | int, ...]]


class MappingTally:
    """How many loops of each kind were compared."""

    def __init__(self) -> None:
        self.kinds = Counter[str]()

    @property
    def programs(self) -> int:
        return self.kinds.total()

    def merge(self, other: MappingTally) -> None:
        self.kinds += other.kinds

    def summary(self, _: int, seconds: float) -> str:
        kinds = ", ".join(f"{n} {kind}" for kind, n in sorted(self.kinds.items()))
        return f"{self.programs} loops in {seconds:.0f} s: {kinds}"


def _module(parameters: dict[str, tuple[str, int]], body: list[str]) -> str:
    """parameters: type and axes of each array, no axes for a number."""
    arrays = ", ".join(
        f"{name}: qd.types.ndarray(qd.{t}, {axes})" if axes else f"{name}: qd.{t}"
        for name, (t, axes) in parameters.items()
    )
    lines = ["from qd_studio import engine as qd", "", "", "@qd.kernel", f"def loop({arrays}):"]
    return "\n".join(lines + ["    " + line for line in body]) + "\n"


def _whole(rng: np.random.Generator, t: str, shape: Any, most: int = 4) -> np.ndarray:
    low = 0 if t.startswith("u") else -most
    return rng.integers(low, most, shape, endpoint=True).astype(NUMPY[t])


def _size(rng: random.Random) -> int:
    return rng.choice((0, 1, 2, 7, 31, 32, 33, 64, 65, 100, 129))


def _transposed(rng: random.Random, data: np.random.Generator) -> RandomLoop:
    t, u = rng.choice(list(NUMPY)), rng.choice(list(NUMPY))
    value = "x[i, j]"
    more = rng.random()
    if more < 0.3:
        value += " + z[j, i]"
    elif more < 0.5:
        value += " * 2 + x[i, j]"
    elif more < 0.6:
        value += " + x[j, i]"  # of another shape: only where the matrix is square
    order = rng.choice(("i, j", "j, i"))
    ends = {"i": "x.shape[0]", "j": "x.shape[1]"}
    head = ", ".join(ends[name] for name in order.split(", "))
    if order == "i, j" and rng.random() < 0.5:
        body = ["for i, j in x:"]
    else:
        body = [f"for {order} in qd.ndrange({head}):"]
    if rng.random() < 0.3:
        body += ["    if i < j + 3:", f"        y[j, i] = qd.cast({value}, qd.{u})"]
    elif rng.random() < 0.3:
        body.append(f"    y[j, i] += qd.cast({value}, qd.{u})")
    else:
        body.append(f"    y[j, i] = qd.cast({value}, qd.{u})")
    arrays = []
    for _ in range(3):
        n, m = _size(rng), _size(rng)
        if "x[j, i]" in value:
            m = n
        arrays.append((_whole(data, t, (n, m), 3), _whole(data, u, (m, n), 3),
                       _whole(data, t, (m, n), 3)))  # fmt: skip
    return RandomLoop("transposed", _module({"x": (t, 2), "y": (u, 2), "z": (t, 2)}, body), arrays)


def _product(rng: random.Random, data: np.random.Generator) -> RandomLoop:
    t = rng.choice(("f32", "f32", "i32", "f64", "f16", "f16", "i64", "u32"))
    total = t if t != "f16" else rng.choice(("f16", "f32", "f32"))
    a, b = rng.choice(("a[i, k]", "a[k, i]")), rng.choice(("b[k, j]", "b[j, k]"))
    depth = "a.shape[1]" if a == "a[i, k]" else "a.shape[0]"
    if total != t:
        a, b = f"qd.cast({a}, qd.{total})", f"qd.cast({b}, qd.{total})"
    term = rng.choice(("{a} * {b}", "{a} * {b}", "{a} * {b} + 1", "({a} - {b}) * ({a} - {b})"))
    term = term.format(a=a, b=b)
    body = ["for i, j in c:"]
    in_place = rng.random() < 0.3
    start = rng.choice(("0", "c[i, j]"))
    if in_place:
        body += [f"    for k in range({depth}):", f"        c[i, j] += {term}"]
    else:
        body += [f"    s = qd.cast({start}, qd.{total})", f"    for k in range({depth}):",
                 f"        s += {term}", f"    c[i, j] = {rng.choice(('s', 's - 1'))}"]  # fmt: skip
    arrays = []
    for _ in range(3):
        n, m, k = (rng.choice((1, 2, 16, 33, 128, 129, 140)) for _ in range(3))
        k = min(k, 40)
        a_shape = (n, k) if "a[i, k]" in a else (k, n)
        b_shape = (k, m) if "b[k, j]" in b else (m, k)
        arrays.append((_whole(data, t, a_shape, 2), _whole(data, t, b_shape, 2),
                       _whole(data, total, (n, m), 2)))  # fmt: skip
    return RandomLoop("product", _module({"a": (t, 2), "b": (t, 2), "c": (total, 2)}, body), arrays)


def _counts(rng: random.Random, data: np.random.Generator) -> RandomLoop:
    t = rng.choice(SUMMED)
    key = rng.choice(("k[i]", "k[i] // 2", "(k[i] + i) % h.shape[0]", "0 * k[i]"))
    inner = rng.choice(((), (), (2,), (5,), (3, 2)))
    for axis in range(1, len(inner) + 1):
        key += rng.choice((", {} - 1", ", i % {}", ", k[i] % {}")).format(f"h.shape[{axis}]")
    update = rng.choice((f"h[{key}] += 1", f"h[{key}] += w[i]", f"h[{key}] -= w[i]",
                         f"qd.atomic_max(h[{key}], w[i])"))  # fmt: skip
    body = ["for i in k:"]
    if rng.random() < 0.3:
        body += ["    if w[i] != 1:", f"        {update}"]
    else:
        body.append(f"    {update}")
    arrays = []
    for _ in range(3):
        bins, n = rng.choice((1, 2, 255, 256, 4096, 4097, 5000)), rng.choice((0, 1, 300, 5000))
        bins = max(1, bins // math.prod(inner))
        keys = data.integers(0, bins, n).astype(np.int32)
        arrays.append((keys, _whole(data, t, n), _whole(data, t, (bins, *inner))))
    parameters = {"k": ("i32", 1), "w": (t, 1), "h": (t, 1 + len(inner))}
    return RandomLoop("counts", _module(parameters, body), arrays)


def _rows(rng: random.Random, data: np.random.Generator) -> RandomLoop:
    t = rng.choice(("f32", "f32", "f64", "i32", "i64"))
    gathered = rng.choice(("v[k] * x[c[k]]", "v[k]", "x[c[k]]", "v[k] * x[c[k]] + 1"))
    combine = rng.choice(("s += {}", "s += {}", "s = max(s, {})", "s = min(s, {})"))
    update = combine.format(gathered)
    body = ["for i in y:", f"    s = qd.cast({rng.choice(('0', 'y[i]'))}, qd.{t})"]
    body.append("    for k in range(p[i], p[i + 1]):")
    if rng.random() < 0.3:
        body += ["        if c[k] > 2:", f"            {update}"]
    else:
        body.append(f"        {update}")
    if rng.random() < 0.3:
        body.append("        s -= 1")
    ends = ["y[i] = s", "y[i] += s", "if s > 0:\n            y[i] = s", "y[i] = s * 2 + i"]
    body.append(f"    {rng.choice(ends)}")
    arrays = []
    for _ in range(3):
        n, mean = rng.choice((0, 1, 5, 64, 300)), rng.choice((0, 1, 3, 8, 33, 70))
        lengths = data.integers(0, 2 * mean, n, endpoint=True)
        p = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        entries, columns = int(p[-1]), rng.choice((5, 100))
        arrays.append((p, data.integers(0, columns, entries).astype(np.int32),
                       _whole(data, t, entries), _whole(data, t, columns),
                       _whole(data, t, n)))  # fmt: skip
    parameters = {"p": ("i32", 1), "c": ("i32", 1), "v": (t, 1), "x": (t, 1), "y": (t, 1)}
    return RandomLoop("rows", _module(parameters, body), arrays)


def _sums(rng: random.Random, data: np.random.Generator) -> RandomLoop:
    t = rng.choice(SUMMED)
    body = ["for i, j in x:"]
    places = rng.sample(range(4), rng.randint(1, 3))
    for place in places:
        value = rng.choice(("x[i, j]", "x[i, j] * x[i, j]", "1", "i - j"))
        update = rng.choice(("s[{}] += {}", "qd.atomic_max(s[{}], {})", "qd.atomic_min(s[{}], {})"))
        line = update.format(place, f"qd.cast({value}, qd.{t})")
        if rng.random() < 0.4:
            condition = rng.choice(("x[i, j] > 0", "i < j", "x[i, j] == 77"))
            body += [f"    if {condition}:", f"        {line}"]
        else:
            body.append(f"    {line}")
    if rng.random() < 0.3:
        body.append("    x[i, j] = x[i, j] + 1")
    arrays = []
    for _ in range(3):
        shape = (_size(rng), rng.choice((0, 1, 5, 70)))
        arrays.append((_whole(data, t, shape), _whole(data, t, 4)))
    return RandomLoop("sums", _module({"x": (t, 2), "s": (t, 1)}, body), arrays)


def _cells(rng: random.Random, data: np.random.Generator) -> RandomLoop:
    width = rng.choice((2, 3, 4, 4, 6, 8))
    body = ["for i in k:", "    at = k[i]"]
    for _ in range(rng.randint(1, 3)):
        place = rng.choice(("at", "at", "(at + 1) % v.shape[0]"))
        chosen = rng.sample(range(width), rng.choice((width, width, rng.randint(1, width))))
        if rng.random() < 0.1:
            chosen.append(chosen[0])
        for c in chosen:
            body.append(f"    v[{place}][{c}] += {rng.choice(('w[i]', '2 * w[i]', 'i % 3'))}")
            if rng.random() < 0.05:
                body.append("    n[0] += 1")
    arrays = []
    for _ in range(3):
        cells, n = rng.choice((1, 5, 300)), rng.choice((1, 300, 3000))
        arrays.append((data.integers(0, cells, n).astype(np.int32), _whole(data, "f32", n),
                       _whole(data, "f32", (cells, width)), np.zeros(1, np.int32)))  # fmt: skip
    vectors = f"types.vector({width}, qd.f32)"
    parameters = {"k": ("i32", 1), "w": ("f32", 1), "v": (vectors, 1), "n": ("i32", 1)}
    return RandomLoop("cells", _module(parameters, body), arrays)


_EDGES = (0, 1, -1, 5, 40, 2**31 - 1, -(2**31), 2**31 - 48, 48 - 2**31)


def _bound(rng: random.Random, depth: int = 0) -> str:
    """An i32 expression, which may wrap."""
    if depth > 2 or rng.random() < 0.3:
        return rng.choice(("a", "b", "c", "x.shape[0]", "x.shape[1]"))
    one = _bound(rng, depth + 1)
    code = rng.choice(("+", "-", "*", "&", "//", "%", ">>", "min", "max", "const"))
    if code in ("min", "max"):
        return f"qd.{code}({one}, {_bound(rng, depth + 1)})"
    if code in ("//", "%", ">>"):
        return f"({one} {code} {rng.choice((1, 2, 3, 7))})"
    other = str(rng.choice(_EDGES[:-2])) if code == "const" else _bound(rng, depth + 1)
    return f"({one} {'+' if code == 'const' else code} {other})"


def _ranges(rng: random.Random, data: np.random.Generator) -> RandomLoop:
    names, pairs, most = "ijk"[: rng.choice((1, 1, 2, 2, 3))], [], []
    kind = rng.choice(("counts", "sums", "straight"))
    for _ in names:
        # Sums in an index do not wrap.
        some = rng.choice("abc") if kind == "straight" else _bound(rng, 1)
        begin = rng.choice(("0", some))
        most.append(rng.choice((3, 20, 70 if len(names) < 3 else 9)))
        pairs.append((begin, f"qd.min({_bound(rng)}, {begin} + {most[-1]})"))
    ranges = ", ".join([f"({begin}, {end})" for begin, end in pairs])
    head = f"for {', '.join(names)} in qd.ndrange({ranges}):"
    if len(names) == 1:
        head = f"for i in range{ranges}:"
    value = " + ".join(f"{c} * {n}" for c, n in zip((1, 31, 1009), names, strict=False))
    place = "0"
    for name, (begin, _), size in zip(names, pairs, most, strict=True):
        place = f"({place}) * {size} + {name} - {begin}"
    update = {"counts": f"h[({value}) & 1023] += 1", "sums": f"h[7] += {value}",
              "straight": f"h[{place}] = {value}"}[kind]  # fmt: skip
    arrays = []
    for _ in range(4):
        x = np.zeros((rng.choice((1, 5, 40, 300)), rng.choice((1, 3, 33, 260))), np.int32)
        numbers = [rng.choice((*_EDGES, rng.randint(-300, 300))) for _ in range(3)]
        arrays.append((x, _whole(data, "i32", 8000), *numbers))
    parameters = {"x": ("i32", 2), "h": ("i32", 1)} | dict.fromkeys("abc", ("i32", 0))
    return RandomLoop("ranges", _module(parameters, [head, f"    {update}"]), arrays)


OPTIONS: tuple[dict[str, Any], ...] = (
    {}, {}, {"max_block_dim": 128}, {}, {"skip_passes": "tile_products"}, {"opt_level": 0}, {},
)  # fmt: skip
"""Options of the GPU, by turns."""
KINDS = (_transposed, _product, _counts, _rows, _sums, _cells, _ranges)


def random_loop(seed: int) -> RandomLoop:
    """The loop of this seed: the kinds take turns."""
    return KINDS[seed % len(KINDS)](random.Random(seed), np.random.default_rng(seed))


def _straight(seed: int, folder: Path) -> str:
    try:
        straight.compare(seed, folder)
    except AssertionError as error:
        return str(error)
    return ""


def _results(
    loop: RandomLoop, path: Path, swapped: bool = False, **options: Any
) -> list[list[np.ndarray]]:
    """What the arrays hold after each launch. swapped: all launches again, with full code."""
    qd.init(offline_cache=False, enable_fallback=False, log_level="error", **options)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    results = [_launched(loop, module, given) for given in loop.arrays]
    if swapped:
        _wait_for_full_code()
        variants = set(module.loop.launchers.variants.values())
        assert all(variant.executable.is_full for variant in variants), "there is no full code"
        results += [_launched(loop, module, given) for given in loop.arrays]
    qd.reset()
    return results


def _wait_for_full_code(seconds: float = 60.0) -> None:
    late = time.monotonic() + seconds
    while helping._queue or helping._running or background._loader.running:
        assert time.monotonic() < late, "full code takes too long"
        time.sleep(0.002)


def _launched(loop: RandomLoop, module: Any, given: Any) -> list[np.ndarray]:
    held = []
    for values in given:
        if isinstance(values, int):
            held.append(values)
            continue
        made = values.copy()
        if values.size and loop.kind != "cells":  # no array of the device is empty
            made = qd.ndarray(getattr(qd, SHORT[values.dtype.name]), values.shape)
            made.from_numpy(values)
        held.append(made)
    module.loop(*held)
    return [a.to_numpy() if isinstance(a, qd.Ndarray) else np.asarray(a) for a in held]


SHORT = {name: short for short, name in NUMPY.items()}


def difference(seed: int, folder: Path) -> str:
    """Where a GPU and the interpreter differ, with the kernel; empty if they agree."""
    loop = random_loop(seed)
    path = folder / f"mapped_{seed}.py"
    path.write_text(loop.text)
    expected = _results(loop, path, arch="interp")
    options: dict[str, Any] = OPTIONS[seed // len(KINDS) % len(OPTIONS)]
    with contextlib.ExitStack() as stack:
        if not on_device():
            stack.enter_context(simulated())
        found = _results(loop, path, True, arch=qd.cuda, tiered="auto", **options)
    for launch, (right, mine) in enumerate(zip(expected * 2, found, strict=True)):
        for number, (a, b) in enumerate(zip(right, mine, strict=True)):
            if not np.array_equal(a, b):
                where = np.argwhere(a != b)[:3].tolist()
                given = loop.arrays[launch % len(expected)]
                shapes = [a if isinstance(a, int) else a.shape for a in given]
                return (
                    f"seed {seed}, {loop.kind}, launch {launch}, argument {number}: "
                    f"{np.count_nonzero(a != b)} elements differ, first {where}, shapes {shapes}\n"
                    f"{loop.text}"
                )
    return ""


def _verified(run: Callable[..., Any]) -> Callable[..., Any]:
    """`passes.run` with a check after each pass; ``debug`` would add checks to the kernel, too."""

    @functools.wraps(run)
    def wrapped(func, config, kind, instruments=(), *rest, **options):
        return run(func, config, kind, (passes.VerifyEach(), *instruments), *rest, **options)

    return wrapped


@contextlib.contextmanager
def _always_mapped():
    """Small loops are mapped as large ones are, passes leave good IR, and kernels have tiers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passes, "run", _verified(passes.run))
        patch.setattr(nvptx, "_SHORT", 0)  # each has two tiers
        patch.setattr(background, "_QUIET", 0.0)
        patch.setattr(tiles, "ENOUGH", 0)
        patch.setattr(map_to_grid, "ENOUGH", 0)
        patch.setattr(tile_products, "_FEW", (1, 1))
        patch.setattr(tensor_products, "SHAPE", Shape(fragments=(2, 4), depth=32, stages=3))
        patch.setattr(tensor_products, "WARPGROUPS", (Shape((4, 1), (1, 4), 64, 3),))
        yield


def run_mappings(seeds: range) -> tuple[MappingTally, list[str]]:
    """Compare the loops of these seeds; counts, and a text for each that differs."""
    tally, failures = MappingTally(), list[str]()
    with tempfile.TemporaryDirectory() as folder, _always_mapped():
        for seed in seeds:
            kind = "straight" if seed % 8 == 7 else random_loop(seed).kind
            try:
                found = (_straight if kind == "straight" else difference)(seed, Path(folder))
            except Exception as error:
                found = f"seed {seed}, {kind}: {type(error).__name__}: {error}"
            tally.kinds[kind] += 1
            if found:
                failures.append(found)
    return tally, failures


def part_of_mappings(begin: int, end: int) -> tuple[MappingTally, list[str]]:
    """`run_mappings` for another process."""
    return run_mappings(range(begin, end))
