"""Random kernels of `checked_random` with more of the language, judged in the same way.

    python -m tests.inspect.checked_features [--count 2000] [--seed 0]

Fields with offsets, of vectors and of structs; arrays of vectors; several axes; arrays that a block
shares, with and without barriers; subgroups; atomic updates whose result is an index; functions;
loops that are unrolled; local vectors with an index of run time; loops over a graph.
"""

import random
from typing import Any

import numpy as np

from tests.inspect import checked_random
from tests.inspect.checked_random import PARAMS, Kind, Writer

HEAD = (
    checked_random.HEAD
    + """\
W1 = qd.types.ndarray(qd.types.vector(3, qd.f32), 1)
I2 = qd.types.ndarray(qd.i32, 2)
I0 = qd.types.ndarray(qd.i32, 0)
f = qd.field(qd.f32, shape=6)
g = qd.field(qd.i32, shape=(4, 3), offset=(-1, 2))
v = qd.Vector.field(3, qd.i32, shape=5)
s = qd.types.struct(a=qd.i32, b=qd.types.vector(2, qd.f32)).field(shape=5)
t = qd.field(qd.i32, shape=())


@qd.func
def pick(a: qd.i32, b: qd.i32) -> qd.i32:
    r = a
    if a > b:
        r = b - 1
        while r > 3:
            r -= 2
            if r == b:
                break
    elif b == 2:
        r = a + b
    return r


@qd.func
def put(into: qd.template(), a: qd.i32, b: qd.i32):
    if a >= 0 and a < 4:
        into[a] = b


@qd.func
def swap(a: qd.template(), b: qd.template()):
    c = a
    a = b
    b = c
"""
)
ARRAYS = {
    # name: (a kind of element, the first and the end of each axis)
    "x[{}]": ("f", ("0", "x.shape[0]")),
    "z[{}, {}]": ("f", ("0", "z.shape[0]"), ("0", "z.shape[1]")),
    "w[{}][{}]": ("f", ("0", "w.shape[0]"), ("0", "3")),
    "r[{}, {}]": ("i", ("0", "r.shape[0]"), ("0", "r.shape[1]")),
    "p[{}]": ("i", ("0", "p.shape[0]")),
    "f[{}]": ("f", ("0", "6")),
    "g[{}, {}]": ("i", ("-1", "3"), ("2", "5")),
    "v[{}][{}]": ("i", ("0", "5"), ("0", "3")),
    "s[{}].a": ("i", ("0", "5")),
    "s[{}].b[{}]": ("f", ("0", "5"), ("0", "2")),
    "t[None]": ("i",),
}
SHARED = {"pad[{}]": ("i", ("0", "8")), "tab[{}, {}]": ("i", ("0", "4"), ("0", "2"))}
_ATOMICS = ("add", "add", "add", "sub", "min", "max", "and", "or", "xor", "mul")


class Features(Writer):
    """arrays: those that can be used. barriers: the depth of statements of a block's loop."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng)
        several = rng.sample(list(ARRAYS), rng.choice([1, 2, 3, 5]))
        self.arrays: dict[str, Any] = {name: ARRAYS[name] for name in several}
        self.barriers = -1

    def within(self, first: str, end: str) -> str:
        rng, e = self.rng, self.integer(1)
        kind = rng.random()
        if kind < 0.2:
            return f"{e} % ({end} - {first}) + {first}"
        if kind < 0.3:
            return f"qd.max(qd.min({e}, {end} - 1), {first})"
        if kind < 0.8:
            return rng.choice(self.names)
        if kind < 0.9 and end.isdigit():
            return str(rng.randrange(int(first), int(end)))
        return e

    def place(self, text: str = "") -> tuple[str, str, str]:
        """(an element, its kind, the guard that its indices need)."""
        text = text or self.rng.choice(list(self.arrays))
        kind, *axes = self.arrays[text]
        several = [self.within(*axis) for axis in axes]
        guard = " and ".join(
            f"{i} >= {first} and {i} < {end}" for i, (first, end) in zip(several, axes, strict=True)
        )
        return text.format(*several), kind, guard or "n < 5"

    def element(self) -> tuple[str, str]:
        found = self.place()
        return found[0], found[2]

    def access(self, depth: int) -> None:
        rng = self.rng
        target, kind, guard = self.place()
        if rng.random() < 0.35:
            self.line(depth, f"if {guard}:")
            depth += 1
        value = rng.choice(["1", rng.choice(self.names), self.integer(1)])
        if rng.random() < 0.3:
            other, _, also = self.place()
            self.line(depth, f"if {also}:")
            depth += 1
            value = f"{other} + 1" if kind == "f" else f"qd.cast({other}, qd.i32)"
        if kind == "i" and rng.random() < 0.25:
            self.atomic(depth, target)
            return
        self.line(depth, f"{target} {rng.choice(['=', '=', '+='])} {value}")

    def atomic(self, depth: int, target: str) -> None:
        rng, name = self.rng, self.fresh()
        by = rng.choice(["1", "1", "2", "-1", "0", self.integer(1)])
        self.line(depth, f"{name} = qd.atomic_{rng.choice(_ATOMICS)}({target}, {by})")
        self.names += [name, name]
        self.access(depth)
        self.names = [n for n in self.names if n != name]

    def block(self, depth: int, left: int, loops: int) -> None:
        for _ in range(self.rng.randrange(0, 2)):
            self.rng.choice(_MORE)(self, depth, left, loops)
        super().block(depth, left, loops)
        if self.barriers == depth and self.rng.random() < 0.7:
            self.line(depth, "qd.simt.block.sync()")
            super().block(depth, left, loops)

    def call(self, depth: int, left: int, loops: int) -> None:
        name = self.fresh()
        self.line(depth, f"{name} = pick({self.integer(1)}, {self.integer(1)})")
        self.names += [name, name]
        self.changed.append(name)

    def put(self, depth: int, left: int, loops: int) -> None:
        into = self.rng.choice(["x", "f", "p"])
        self.line(depth, f"put({into}, {self.integer(1)}, {self.integer(1)})")

    def swap(self, depth: int, left: int, loops: int) -> None:
        if len(self.changed) > 1:
            self.line(depth, f"swap({', '.join(self.rng.sample(self.changed, 2))})")

    def static(self, depth: int, left: int, loops: int) -> None:
        name, saved = self.fresh(), self.saved()
        self.line(depth, f"for {name} in qd.static(range({self.rng.randrange(1, 4)})):")
        self.names += [name, name]
        self.access(depth + 1)
        self.restore(saved)

    def vector(self, depth: int, left: int, loops: int) -> None:
        name, rng = self.fresh(), self.rng
        self.line(depth, f"{name} = qd.Vector([{self.integer(1)}, {self.integer(2)}, 1])")
        at = rng.choice(["0", "2", f"{self.integer(1)} % 3", f"qd.min(abs({self.integer(1)}), 2)"])
        self.line(depth, f"{name}[{at}] {rng.choice(['=', '+='])} {self.integer(1)}")
        self.names += [f"{name}[{at}]", f"{name}[1]"]

    def random(self, depth: int, left: int, loops: int) -> None:
        name = self.fresh()
        self.line(depth, f"{name} = qd.random(qd.i32) % 5")
        self.names += [name, name]

    def nest(self, depth: int, left: int, loops: int) -> None:
        if loops < 2 and left > 1:
            self.inner(depth, left, loops)

    def lanes(self, depth: int, left: int, loops: int) -> None:
        if self.barriers != depth:
            return
        name, e = self.fresh(), self.rng.choice(self.names)
        self.line(depth, name + " = qd.cast(qd.simt." + self.rng.choice([
            f"subgroup.shuffle({e}, 1)", f"subgroup.shuffle_xor({e}, 1)",
            f"subgroup.reduce_all_add({e})", "subgroup.invocation_id()", "block.thread_idx()",
            f"block.sync_count_nonzero({e})", f"subgroup.ballot({e} > 2)",
        ]) + ", qd.i32)")  # fmt: skip
        self.names += [name, name]

    def loop(self) -> None:
        rng, saved = self.rng, self.saved()
        kind, arrays = rng.random(), dict(self.arrays)
        if kind < 0.35:
            super().loop()
            return
        if kind < 0.6:
            # Blocks of iterations.
            self.line(1, f"qd.loop_config(block_dim={rng.choice([4, 8])})")
            self.line(1, rng.choice(["for i in range(8):", "for i in range(11):", "for i in x:"]))
            self.line(2, "pad = qd.simt.block.SharedArray((8,), qd.i32)")
            self.line(2, "tab = qd.simt.block.SharedArray((4, 2), qd.i32)")
            thread = rng.choice(["block.thread_idx", "block.global_thread_idx"])
            self.line(2, f"j = qd.simt.{thread}()")
            self.arrays = SHARED if rng.random() < 0.5 else self.arrays | SHARED
            self.barriers = 2
            axes = "ij"
        else:
            axes = rng.choice(["i", "ij", "ijk", "I"])
            if axes == "I":
                over = rng.choice(["z", "r", "g", "x", "qd.ndrange(3, n)"])
                self.line(1, f"for I in qd.grouped({over}):")
                self.line(2, f"i = I[{0 if over == 'x' else 1}]")
                self.line(2, "j = I[0]")
                axes = "ij"
            elif axes == "i":
                self.line(1, f"for i in {rng.choice(['f', 'v', 's', 'w'])}:")
            else:
                ends = [rng.choice([self.extent(), "3", "(1, 3)", "(n, 4)"]) for _ in axes]
                self.line(1, f"for {', '.join(axes)} in qd.ndrange({', '.join(ends)}):")
        self.names += [*axes, *axes]
        self.block(2, 3, 0)
        self.arrays, self.barriers = arrays, -1
        self.restore(saved)

    def kernel(self, name: str) -> str:
        rng = self.rng
        graph = rng.random() < 0.15
        self.line(0, f"@qd.kernel{'(graph=True)' if graph else ''}")
        self.line(0, f"def {name}({PARAMS}, w: W1, r: I2, left: I0):")
        if rng.random() < 0.5 and not graph:
            self.line(1, "assert z.shape[0] == x.shape[0] and p.shape[0] == x.shape[0]")
            self.line(1, "assert w.shape[0] == x.shape[0] and r.shape[0] == x.shape[0]")
        start = len(self.lines)
        for _ in range(rng.choice([1, 1, 2])):
            self.loop()
        if graph:
            self.lines[start:] = [
                "    while qd.graph.do_while(left):", *("    " + s for s in self.lines[start:]),
                "        for _ in range(1):", "            left[None] -= 1",
            ]  # fmt: skip
        return "\n".join(self.lines) + "\n"


_MORE = (
    Features.call, Features.put, Features.swap, Features.static, Features.vector,
    Features.random, Features.nest, Features.lanes, Features.lanes,
)  # fmt: skip


def arguments_of(seed: int) -> list[dict[str, Any]]:
    """Those of `checked_random`, and more arrays."""
    rng = np.random.default_rng(seed)
    out = checked_random.arguments_of(seed)
    for one in out:
        same = len(one["x"]) == len(one["p"])
        a, b = (len(one["x"]),) * 2 if same else (int(n) for n in rng.integers(0, 8, 2))
        one["w"] = rng.random((a, 3), np.float32)
        one["r"] = rng.integers(-2, 6, (b, int(rng.integers(0, 5)))).astype(np.int32)
        one["left"] = np.array(int(rng.integers(0, 4)), np.int32)
    return out


FEATURES = Kind(HEAD, Features, arguments_of)

if __name__ == "__main__":
    checked_random.main(FEATURES)
