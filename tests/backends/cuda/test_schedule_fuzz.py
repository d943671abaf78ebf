"""Random straight loops: several iterations a thread give what one thread gives, iteration after
iteration.

Each kernel has one to three axes in some order, arrays of two types that begin anywhere, reads at
small distances and with small strides, and maybe a sum; half of them know how many iterations a
thread has along each axis. The interpreter says what is right.
"""

import importlib.util
import itertools
import random

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine.backends.llvm import tiles
from qd_studio.engine.passes import map_to_grid

from .schedulekit import Placed, cuda

NAMES = {"f32": "float32", "i32": "int32", "f64": "float64", "i16": "int16", "u8": "uint8",
         "i64": "int64", "f16": "float16"}  # fmt: skip
MARGIN = 4
_numbers = itertools.count()


class Loop:
    """A kernel's text, and arguments for it."""

    def __init__(self, seed):
        rng = self.rng = random.Random(seed)
        self.axes = rng.choice((1, 1, 2, 2, 3))
        self.types = [rng.choice(list(NAMES)) for _ in range(2)]
        self.order = rng.sample(range(self.axes), self.axes)
        # What is last in an index moves by this much from iteration to iteration.
        self.stride = rng.choice((1, 1, 1, 2, 3))
        self.sums = rng.random() < 0.4
        self.aligned = rng.random() < 0.6
        self.tile = self._tile() if rng.random() < 0.5 else ""

    def _tile(self):
        """A number of iterations along each axis, of those that the compiler would not choose."""
        rng = self.rng
        rows = [rng.choice((1, 2, 3, 4)) for _ in range(self.axes - 1)]
        return "x".join(map(str, [rng.choice((1, 2, 4, 8)), *rows]))

    def text(self):
        rng, axes = self.rng, self.axes
        y = self.types[1]
        names = "ijk"[:axes]
        arrays = "".join(
            f"    {name}: qd.types.ndarray(qd.{t}, {axes}),\n"
            for name, t in zip("xy", self.types, strict=True)
        )
        lines = [
            "from qd_studio import engine as qd",
            "",
            "",
            "@qd.kernel",
            "def loop(",
            arrays.rstrip(),
        ]
        lines.append("    total: qd.types.ndarray(qd.i64, 1), bounds: qd.types.ndarray(qd.i32, 1),")
        lines += ["):", f"    qd.loop_config(block_dim={rng.choice((32, 64))})"]
        begin = [f"bounds[{2 * self.order[k]}]" for k in range(axes)]
        end = [f"bounds[{2 * self.order[k] + 1}]" for k in range(axes)]
        loops = ", ".join(f"({b}, {e})" for b, e in zip(begin, end, strict=True))
        counters = ", ".join(names[axis] for axis in self.order)
        lines.append(f"    for {counters} in qd.ndrange({loops}):")
        terms = []
        for _ in range(rng.randint(1, 4)):
            index = [f"{n} + {rng.randint(MARGIN, 2 * MARGIN)}" for n in names]
            if self.stride > 1:
                index[-1] = f"{names[-1]} * {self.stride} + {3 * MARGIN + rng.randint(0, MARGIN)}"
            terms.append(f"x[{', '.join(index)}]")
        value = f" {rng.choice('+-')} ".join(terms)
        target = ", ".join(f"{n} + {MARGIN}" for n in names)
        update = f"qd.cast({value}, qd.{y})"
        if rng.random() < 0.5:
            update = f"y[{target}] + {update}"
        lines.append(f"        y[{target}] = {update}")
        if self.sums:
            lines.append(f"        total[0] += qd.cast({terms[0]}, qd.i64)")
        return "\n".join(lines) + "\n"

    def cases(self):
        """Bounds and arrays: iterations lie ``MARGIN`` away from the edges."""
        rng = self.rng
        for _ in range(3):
            sizes = [rng.choice((0, 1, 2, 3, 5, 9)) for _ in range(self.axes)]
            sizes[-1] = rng.choice((0, 1, 3, 4, 63, 64, 130, 257, 300))
            begins = [rng.choice((0, 0, 1, 2, 3, -1, -4)) for _ in sizes]
            shape = [n + 2 * MARGIN + 4 for n in sizes]
            wide = [*shape[:-1], max(1, shape[-1]) * self.stride + 3 * MARGIN]
            if self.aligned:
                wide[-1], shape[-1] = (-(-n // 16) * 16 for n in (wide[-1], shape[-1]))
            bounds = [b for begin, n in zip(begins, sizes, strict=True) for b in (begin, begin + n)]
            yield bounds, tuple(wide), tuple(shape), [rng.choice((0, 0, 1, 3)) for _ in range(2)]


def kernel_of(text, folder):
    path = folder / f"loop_{next(_numbers)}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.loop


def arguments(loop, seed, bounds, wide, shape):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 9, wide).astype(NAMES[loop.types[0]])
    y = rng.integers(0, 9, shape).astype(NAMES[loop.types[1]])
    return x, y, np.zeros(1, np.int64), np.array(bounds, np.int32)


def compare(seed, folder):
    """Run one random kernel on both."""
    loop = Loop(seed)
    text = loop.text()
    cases = list(loop.cases())
    qd.init(arch="interp", offline_cache=False)
    kernel, expected = kernel_of(text, folder), []
    for k, (bounds, wide, shape, _) in enumerate(cases):
        values = arguments(loop, seed + k, bounds, wide, shape)
        kernel(*values)
        expected.append(values[1:3])
    with cuda(gpu_tile=loop.tile):
        kernel = kernel_of(text, folder)
        for k, (bounds, wide, shape, offs) in enumerate(cases):
            x, y, total, at = arguments(loop, seed + k, bounds, wide, shape)
            placed = Placed(y, offs[1])
            kernel(Placed(x, offs[0]), placed, total, at)
            said = f"seed {seed}, case {k}, tile {loop.tile!r}\n{text}"
            np.testing.assert_array_equal(placed.values(), expected[k][0], err_msg=said)
            np.testing.assert_array_equal(total, expected[k][1], err_msg=said)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("first", range(0, 24, 6))
def test_random_loops(first, tmp_path, monkeypatch):
    monkeypatch.setattr(tiles, "ENOUGH", 0)
    monkeypatch.setattr(map_to_grid, "ENOUGH", 0)
    for seed in range(first, first + 6):
        compare(seed, tmp_path)
