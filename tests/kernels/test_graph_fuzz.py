"""Random graph kernels: loops in loops, checkpoints, sections, local variables.

The same kernel does the same in the interpreter, on the CPU and, as a variant, with CUDA: what it
leaves in its arrays, where it stops, and what it does when it is resumed there until it ends.
"""

import random

import numpy as np
import pytest
from qd_studio import engine as qd

SIZE = 6
MOST_LAUNCHES = 6
PROGRAMS = 14


class Maker:
    """Writes one kernel. flags: those of its loops, with how often each repeats."""

    def __init__(self, seed):
        self.r = random.Random(seed)
        self.checkpoints = self.r.random() < 0.5
        self.lines = []
        self.flags = 0
        self.points = 0
        self.numbers = 0

    def line(self, depth, text):
        self.lines.append("    " * depth + text)

    def name(self):
        self.numbers += 1
        return f"v{self.numbers}"

    def value(self, names, written=""):
        """written: an array that other iterations write, so that no element of it is read."""
        r = self.r
        elements = {"x": f"x[{r.randrange(SIZE)}] % 7", "y": f"y[{r.randrange(SIZE)}] % 5"}
        elements.pop(written, None)
        return r.choice([str(r.randint(-3, 9)), *elements.values(), *names, *names])

    def loop(self, depth, names):
        """A loop of the top level; it may add to local variables."""
        r = self.r
        a, b = r.sample("xy", 2)
        bound = r.choice([str(SIZE), f"x[0] % {SIZE} + 1", f"{a}.shape[0]"])
        self.line(depth, f"for i in range({bound}):")
        kind = r.randrange(4)
        if kind == 0 and names:
            self.line(depth + 1, f"{r.choice(names)} += {a}[i] % 3")
        elif kind == 1:
            self.line(depth + 1, f"{a}[i] = {a}[i] * 3 % 101 + {self.value(names, a)}")
        elif kind == 2:
            self.line(depth + 1, f"if {a}[i] > {self.value(names, a)}:")
            self.line(depth + 2, f"{a}[i] -= {b}[i] % 11")
        else:
            self.line(
                depth + 1, f"qd.atomic_add({a}[{r.randrange(SIZE)}], i + {self.value(names, a)})"
            )

    def statement(self, depth, names):
        r = self.r
        if r.random() < 0.4:
            new = self.name()
            self.line(depth, f"{new} = {self.value(names)}")
            names.append(new)
        elif names and r.random() < 0.5:
            self.line(depth, f"{r.choice(names)} += {self.value(names)}")
        else:
            self.line(depth, f"{r.choice('xy')}[{r.randrange(SIZE)}] += {self.value(names)}")

    def do_while(self, depth, names, nesting):
        flag = f"f{self.flags}"
        self.flags += 1
        self.line(depth, f"{flag}[()] = {self.r.randint(0, 3)}")
        self.line(depth, f"while qd.graph.do_while({flag}):")
        self.block(depth + 1, list(names), nesting + 1)
        self.line(depth + 1, f"{flag}[()] = {flag}[()] - 1 if {flag}[()] > 0 else 0")

    def checkpoint(self, depth, names):
        number = self.points
        self.points += 1
        self.line(depth, f"with qd.checkpoint({number * 3 + 1}, yield_on=g{number}):")
        for _ in range(self.r.randint(1, 2)):
            self.loop(depth + 1, names)
        self.line(depth + 1, "for _ in range(1):")
        self.line(depth + 2, f"g{number}[()] = 1 if x[{self.r.randrange(SIZE)}] % 3 == 0 else 0")

    def sections(self, depth, names):
        """Sections that touch different arrays and no common variable."""
        self.line(depth, "with qd.graph.parallel_context():")
        for array in "xy":
            self.line(depth + 1, "with qd.graph.parallel():")
            for _ in range(self.r.randint(1, 2)):
                self.line(depth + 2, f"for i in {array}:")
                inside = self.r.choice([*names, "i", "4"])
                self.line(depth + 3, f"{array}[i] = {array}[i] * 2 % 97 + {inside}")

    def block(self, depth, names, nesting=0):
        r = self.r
        for _ in range(r.randint(1, 4)):
            what = r.random()
            if what < 0.4:
                self.loop(depth, names)
            elif what < 0.6:
                self.statement(depth, names)
            elif what < 0.8 and nesting < 3 and self.flags < 4:
                self.do_while(depth, names, nesting)
            elif self.checkpoints and self.points < 4:
                self.checkpoint(depth, names)
            elif not self.checkpoints:
                self.sections(depth, names)
            else:
                self.loop(depth, names)

    def text(self):
        self.block(1, [])
        params = ["x: A1", "y: A1", *[f"f{k}: A0" for k in range(4)]]
        params += [f"g{k}: A0" for k in range(4)]
        options = "graph=True, checkpoints=True" if self.checkpoints else "graph=True"
        head = [
            "from qd_studio import engine as qd", "A1 = qd.types.NDArray[qd.i32, 1]",
            "A0 = qd.types.NDArray[qd.i32, 0]", f"@qd.kernel({options})",
            f"def k({', '.join(params)}):",
        ]  # fmt: skip
        return "\n".join([*head, *self.lines]) + "\n"


def kernel_of(seed, folder):
    text = Maker(seed).text()
    path = folder / f"program_{seed}.py"
    path.write_text(text)
    scope = {}
    exec(compile(text, str(path), "exec"), scope)
    return scope["k"]


def behaviour(arch, seed, folder, **options):
    """What the kernel is seen to do."""
    qd.init(arch=arch, **options)
    kernel = kernel_of(seed, folder)
    r = np.random.default_rng(seed)
    arrays = [qd.ndarray(qd.i32, SIZE) for _ in "xy"]
    for array in arrays:
        array.from_numpy(r.integers(0, 50, SIZE).astype(np.int32))
    flags = [qd.ndarray(qd.i32, ()) for _ in range(8)]
    seen = []
    status = None
    for launch in range(MOST_LAUNCHES):
        if status is None or not status.yielded:
            status = kernel(*arrays, *flags)
        else:
            for flag in flags[4:]:
                flag.fill(0)
            status = kernel.resume(*arrays, *flags, from_checkpoint=status.checkpoint)
        if launch == 2:  # a replay with other arrays
            arrays.reverse()
        seen.append((repr(status), *[list(np.ravel(a.to_numpy())) for a in (*arrays, *flags)]))
    qd.reset()
    return seen


@pytest.mark.sampled(6)
@pytest.mark.parametrize("arch", ["cpu"])
@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_random_graphs_agree(arch, seed, tmp_path):
    want = behaviour(qd.interp, seed, tmp_path)
    debug = seed % 3 == 0
    level = seed % 2
    assert behaviour(getattr(qd, arch), seed, tmp_path, debug=debug, opt_level=level) == want
