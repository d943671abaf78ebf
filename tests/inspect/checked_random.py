"""Random small kernels, most of them with faults: no proof may be contradicted by a launch.

    python -m tests.inspect.checked_random [--count 2000] [--seed 0]

`source` writes a file of kernels: loops over shapes, ranges and pairs of them, guards, early
``continue`` and ``break``, ``while`` loops, local variables that loops change, indices with
quotients, remainders, minima and indices from memory, integers of other types, their conversions
and bits, counters, conditions on floats. `contradictions` asks `checking` for verdicts without any
launch, so that they are proofs only, and follows launches of random shapes, empty ones among them
(`checked_runs`): a fault that one of them shows in a kernel whose verdict is *safe* is a wrong
proof, and so is an access that is no model of the formulas that proofs are made from.
"""

import argparse
import importlib.util
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from qd_studio.engine import alias
from qd_studio.engine.config import CompileConfig
from qd_studio.engine.errors import QuadrantsCompilationError
from qd_studio.engine.inspect import KernelCapture
from qd_studio.engine.inspect.arguments import Call
from qd_studio.engine.inspect.checking import verdicts
from qd_studio.engine.inspect.discover import ensure_program, kernels_in

from tests.inspect.checked_runs import refuted, run

HEAD = """\
from qd_studio import engine as qd

A1 = qd.types.ndarray(qd.f32, 1)
A2 = qd.types.ndarray(qd.f32, 2)
I1 = qd.types.ndarray(qd.i32, 1)
C1 = qd.types.ndarray(qd.f32, 1, boundary="clamp")
"""
NARROW = {"u8": "b", "u32": "q", "i64": "l", "i16": "h"}
"""Types, and the arguments of them."""
PARAMS = "x: A1, y: A1, z: A2, p: I1, c: C1, n: qd.i32, m: qd.i32, " + ", ".join(
    f"{name}: qd.{t}" for t, name in NARROW.items()
)
_AT_ONCE = 50
"""Kernels of one file."""
_EXTREME = {"u8": (250, 255), "u32": (2654435761, 4294967295), "i64": (-5, 7), "i16": (-3, 9)}


class Writer:
    """Writes one kernel. names: integers that can be read; changed: those that can be set."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.lines: list[str] = []
        self.names = ["n", "m"]
        self.changed: list[str] = []
        self.typed: dict[str, str] = {}
        self.count = 0

    def line(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def fresh(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def extent(self) -> str:
        return self.rng.choice(
            ["x.shape[0]", "x.shape[0]", "y.shape[0]", "z.shape[0]", "z.shape[1]", "p.shape[0]"]
        )

    def of(self, t: str, deep: int = 0) -> str:
        """An integer of another type than i32."""
        rng, kind = self.rng, self.rng.random()
        if deep >= 2 or kind < 0.35:
            if kind < 0.12:
                return f"qd.cast({self.integer(2)}, qd.{t})"
            several = [str(rng.randrange(0, 9)), str(rng.choice(_EXTREME[t]))]
            return rng.choice([
                NARROW[t], NARROW[t], *(f"qd.cast({n}, qd.{t})" for n in several),
                *(name for name, of in self.typed.items() if of == t),
            ])  # fmt: skip
        a, b = self.of(t, deep + 1), self.of(t, deep + 1)
        n = rng.choice([1, 1, 2, 3, 5, 6, 7, 8, 12, 15, 16])
        other = rng.choice([s for s in NARROW if s != t])
        return rng.choice([
            f"({a} + {b})", f"({a} - {b})", f"({a} * {n})", f"({a} ^ {n})", f"({a} ^ {b})",
            f"({a} | {n})", f"({a} | {b})", f"({a} & {n})", f"({a} & {b})", f"({a} & ~{n})",
            f"(~{a})", f"(-{a})", f"({a} << {n % 4})", f"({a} >> {n % 4})", f"({a} >> ({b} & 3))",
            f"({a} << ({b} & 3))", f"({a} // {n})", f"({a} % {n})", f"({a} // {b})", f"({a} % {b})",
            f"qd.min({a}, {b})", f"qd.max({a}, {b})", f"abs({a})",
            f"qd.cast({self.of(other, deep + 1)}, qd.{t})",
            f"({a} if {self.test(2)} else {b})", f"qd.cast(x[0] * 9.0, qd.{t})",
        ])  # fmt: skip

    def bits(self, deep: int) -> str:
        """An integer of i32 from bits, other types or floats."""
        rng = self.rng
        a, b = self.integer(deep + 1), self.integer(deep + 1)
        n = rng.choice([1, 1, 2, 3, 4, 6, 7, 8, 12])
        if rng.random() < 0.4:
            return f"qd.cast({self.of(rng.choice(list(NARROW)), deep)}, qd.i32)"
        return rng.choice([
            f"({a} ^ {n})", f"({a} | {n})", f"({a} & ~{n})", f"({a} & {b})", f"({a} | {b})",
            f"({a} ^ {b})", f"(~{a})", f"({a} >> ({b} & 3))", f"({a} << ({b} & 3))",
            f"(-{a} // {n})", f"((-{a}) % {n})", f"({a} // {b})", f"({a} % {b})",
            f"({a} // (-{n}))", f"({a} % (-{n}))", f"qd.bit_shr({a}, {n})", f"qd.raw_div({a}, {n})",
            f"qd.raw_mod({a}, {b})", f"qd.cast({self.test(2)}, qd.i32)",
            f"qd.cast(c[{a}] * 9.0, qd.i32)",
        ])  # fmt: skip

    def integer(self, deep: int = 0) -> str:
        rng = self.rng
        if deep < 2 and rng.random() < 0.3:
            return self.bits(deep)
        kind = rng.random()
        if deep >= 2 or kind < 0.45:
            return rng.choice([*self.names, *self.names, self.extent(), str(rng.randrange(-2, 5))])
        a, b = self.integer(deep + 1), self.integer(deep + 1)
        c = rng.randrange(1, 5)
        return rng.choice([
            f"({a} + {b})", f"({a} - {b})", f"({a} + {c})", f"({a} - {c})", f"({a} * {c})",
            f"({a} // {c})", f"({a} % {c})", f"({a} % qd.max({b}, 1))", f"qd.min({a}, {b})",
            f"qd.max({a}, {b})", f"(-{a})", f"({a} // qd.max({b}, 1))", f"({a} << {c % 3})",
            f"({a} >> {c % 3})", f"({a} & {c})", f"abs({a})", f"({a} if {self.test(2)} else {b})",
        ])  # fmt: skip

    def test(self, deep: int = 0) -> str:
        rng = self.rng
        if deep < 1 and rng.random() < 0.3:
            word = rng.choice(["and", "or"])
            return f"({self.test(1)} {word} {self.test(1)})"
        kind = rng.random()
        if kind < 0.1:
            return f"not ({self.test(2)})" if deep < 2 else "n < m"
        if kind < 0.2 and deep < 2:
            t = rng.choice(list(NARROW))
            sign = rng.choice(["<", "<=", ">", "!="])
            other = self.of(t, 1) if rng.random() < 0.6 else self.integer(1)
            return f"{self.of(t, 1)} {sign} {other}"
        if kind < 0.25 and deep < 2:
            return f"({self.test(2)}) {rng.choice('^&|')} ({self.test(2)})"
        if kind < 0.33 and deep < 2:
            return rng.choice([
                f"c[{self.integer(2)}] < 0.5", "qd.cast(n, qd.f32) * 0.5 < 1.5",
                f"qd.cast(n, qd.f32) < qd.cast(m, qd.f{rng.choice([32, 64])})",
                f"qd.cast(c[{rng.choice(self.names)}], qd.f64) >= 0.25",
            ])  # fmt: skip
        sign = rng.choice(["<", "<=", ">", ">=", "==", "!="])
        return f"{self.integer(2)} {sign} {self.integer(min(deep + 1, 2))}"

    def index(self, name: str, axis: int) -> str:
        """An index, inside of the array by itself in about half of all cases."""
        rng, e = self.rng, self.integer(1)
        end = f"{name}.shape[{axis}]"
        kind = rng.random()
        if kind < 0.25:
            return f"{e} % {end}"
        if kind < 0.35:
            return f"qd.max(qd.min({e}, {end} - 1), 0)"
        if kind < 0.75:
            return rng.choice(self.names)
        if kind < 0.8:
            return self.of(rng.choice(list(NARROW)), 1)
        return e

    def element(self) -> tuple[str, str]:
        """(an element, the guard that its index needs)."""
        name = self.rng.choice("xxxyyzzc")
        several = [self.index(name, axis) for axis in range(2 if name == "z" else 1)]
        guard = " and ".join(
            f"{i} >= 0 and {i} < {name}.shape[{axis}]" for axis, i in enumerate(several)
        )
        return f"{name}[{', '.join(several)}]", guard

    def block(self, depth: int, left: int, loops: int) -> None:
        rng = self.rng
        for _ in range(rng.randrange(1, left + 1)):
            kind = rng.random()
            if kind < 0.5:
                self.access(depth)
            elif kind < 0.6:
                name = self.fresh()
                self.line(depth, f"{name} = {self.integer()}")
                self.names.append(name)
                self.changed.append(name)
            elif kind < 0.65:
                self.of_type(depth)
            elif kind < 0.7 and self.changed:
                name = rng.choice(self.changed)
                self.line(depth, f"{name} {rng.choice(['+=', '=', '-='])} {self.integer(1)}")
            elif kind < 0.84 and left > 1:
                self.line(depth, f"if {self.test()}:")
                self.scoped(depth + 1, left - 1, loops)
                if rng.random() < 0.4:
                    self.line(depth, "else:")
                    self.scoped(depth + 1, left - 1, loops)
            elif kind < 0.88:
                self.line(depth, f"if {self.test()}:")
                self.line(depth + 1, rng.choice(["continue", "break"]) if loops else "continue")
            elif loops < 2 and left > 1:
                self.inner(depth, left, loops)
            else:
                self.access(depth)

    def of_type(self, depth: int) -> None:
        """A variable of another type, or a change of one."""
        rng = self.rng
        if self.typed and rng.random() < 0.5:
            name = rng.choice(list(self.typed))
            value = self.of(self.typed[name], 1) if rng.random() < 0.7 else self.integer(1)
            self.line(depth, f"{name} {rng.choice(['+=', '=', '-=', '^=', '|=', '&='])} {value}")
            return
        name, t = self.fresh(), rng.choice(list(NARROW))
        self.line(depth, f"{name} = qd.cast({self.of(t)}, qd.{t})")
        self.typed[name] = t

    def scoped(self, depth: int, left: int, loops: int) -> None:
        """A block whose variables end with it."""
        saved = self.saved()
        self.block(depth, left, loops)
        self.restore(saved)

    def saved(self) -> Any:
        return list(self.names), list(self.changed), dict(self.typed)

    def restore(self, saved: Any) -> None:
        self.names, self.changed, self.typed = saved

    def access(self, depth: int) -> None:
        rng = self.rng
        target, guard = self.element()
        if rng.random() < 0.35:
            self.line(depth, f"if {guard}:")
            depth += 1
        other, also = self.element()
        value = rng.choice(["1.0", f"{rng.choice(self.names)} * 0.5", "i"])
        if rng.random() < 0.3:
            self.line(depth, f"if {also}:")
            depth += 1
            value = f"{other} + 1.0"
        if rng.random() < 0.05:
            # A counter, from which iterations take places.
            name, by = self.fresh(), rng.choice([1, 1, 2, -1])
            self.line(depth, f"{name} = qd.atomic_add(p[{rng.choice(['0', '1', 'i'])}], {by})")
            self.line(depth, f"if {name} >= 0 and {name} + 1 < x.shape[0]:")
            self.line(depth + 1, f"x[{name}{rng.choice(['', '', ' + 1'])}] = {value}")
            return
        if rng.random() < 0.08:
            index = self.index("p", 0)
            name = self.fresh()
            self.line(depth, f"{name} = p[{index}]")
            self.line(depth, f"if {name} >= 0 and {name} < x.shape[0]:")
            self.line(depth + 1, f"x[{name}] {rng.choice(['=', '+='])} {value}")
            return
        self.line(depth, f"{target} {rng.choice(['=', '=', '+='])} {value}")

    def inner(self, depth: int, left: int, loops: int) -> None:
        rng, name = self.rng, self.fresh()
        saved = self.saved()
        if rng.random() < 0.3:
            bound = rng.choice([self.extent(), "n", "4"])
            self.line(depth, f"{name} = {rng.randrange(-1, 3)}")
            self.line(depth, f"while {name} < {bound}:")
            self.line(depth + 1, f"{name} += {rng.randrange(1, 3)}")
        else:
            begin = rng.choice(["", "", "1, ", f"{rng.choice(self.names)}, "])
            self.line(depth, f"for {name} in range({begin}{self.integer(1)}):")
        self.names += [name, name]
        self.block(depth + 1, left - 1, loops + 1)
        self.restore(saved)

    def loop(self) -> None:
        rng = self.rng
        saved = self.saved()
        kind = rng.random()
        if rng.random() < 0.15:
            # A variable that iterations share.
            name = self.fresh()
            self.line(1, f"{name} = {self.integer(1)}")
            self.names.append(name)
            if rng.random() < 0.5:
                self.changed.append(name)
        if rng.random() < 0.1:
            self.line(1, "qd.loop_config(serialize=True)")
        if kind < 0.3:
            self.line(1, f"for i in {rng.choice('xyp')}:")
            self.names += ["i", "i", "i"]
        elif kind < 0.65:
            begin = rng.choice(["", "", "1, ", "n, "])
            self.line(1, f"for i in range({begin}{self.integer(1)}):")
            self.names += ["i", "i", "i"]
        else:
            self.line(1, rng.choice([
                "for i, j in z:", f"for i, j in qd.ndrange({self.extent()}, {self.extent()}):",
                f"for i, j in qd.ndrange((1, {self.extent()} - 1), {self.extent()}):",
            ]))  # fmt: skip
            self.names += ["i", "j", "i", "j"]
        self.block(2, 3, 0)
        self.restore(saved)

    def kernel(self, name: str) -> str:
        self.line(0, "@qd.kernel")
        self.line(0, f"def {name}({PARAMS}):")
        if self.rng.random() < 0.5:
            self.line(1, "assert x.shape[0] == y.shape[0]")
        if self.rng.random() < 0.5:
            self.line(1, "assert z.shape[0] == x.shape[0] and p.shape[0] == x.shape[0]")
        if self.rng.random() < 0.4:
            self.line(1, "assert n >= 0 and n <= x.shape[0]")
        for _ in range(self.rng.randrange(1, 3)):
            self.loop()
        return "\n".join(self.lines) + "\n"


class Kind(NamedTuple):
    """A kind of random kernels. head: of their file. arguments: of launches, for a seed."""

    head: str
    writer: type["Writer"]
    arguments: Callable[[int], list[dict[str, Any]]]

    def source(self, first: int, count: int) -> str:
        """Kernels ``k<seed>`` of ``count`` seeds."""
        seeds = range(first, first + count)
        kernels = [self.writer(random.Random(s)).kernel(f"k{s}") for s in seeds]
        return "\n\n".join([self.head, *kernels])


def arguments_of(seed: int) -> list[dict[str, Any]]:
    """Three launches of random shapes, the assertions of the kernels true in most of them."""
    rng = np.random.default_rng(seed)
    out: list[dict[str, Any]] = []
    for _ in range(3):
        a, b, c = (int(v) for v in rng.integers(0, 8, 3))
        same = rng.random() < 0.7
        sizes = (a, a, a) if same else tuple(int(v) for v in rng.integers(0, 8, 3))
        n = int(rng.integers(0, a + 1)) if same else int(rng.integers(-2, 9))
        out.append({
            "x": rng.random(a, np.float32), "y": rng.random(sizes[0], np.float32),
            "z": rng.random((sizes[1], b), np.float32),
            "p": rng.integers(-2, 9, sizes[2]).astype(np.int32),
            "c": rng.random(int(rng.integers(1, 6)), np.float32), "n": n, "m": c - 1,
            "b": int(rng.choice([0, 1, 3, 7, 200, 255])),
            "q": int(rng.choice([0, 1, 2, 5, 2**31, 2**32 - 1])),
            "l": int(rng.integers(-4, 9)), "h": int(rng.integers(-4, 9)),
        })  # fmt: skip
    return out


def contradictions(
    kind: Kind, first: int, count: int, folder: Path
) -> tuple[list[str], Counter[str]]:
    """Wrong proofs among the kernels of these seeds, and how often each outcome occurred."""
    path = folder / f"{kind.writer.__name__}_{first}.py"
    path.write_text(kind.source(first, count))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    ensure_program()
    spec.loader.exec_module(module)
    wrong: list[str] = []
    counts: Counter[str] = Counter()
    for kernel in kernels_in(vars(module), str(path)):
        try:
            wrong += _contradictions(kernel, kind, counts)
        except QuadrantsCompilationError:
            counts["does not compile"] += 1
    return wrong, counts


def _contradictions(kernel: Any, kind: Kind, counts: Counter[str]) -> list[str]:
    """Wrong proofs of one kernel."""
    seed = int(kernel.name[1:])
    several = kind.arguments(seed)
    calls = [Call(tuple(several[0].values()))]
    capture = KernelCapture(kernel, ("interp",), CompileConfig(), calls=calls)
    capture.prepare()
    func = verdicts._func(capture, [])
    assert func is not None
    seen: set[str] = set()
    wrong: list[str] = []
    made = verdicts._Verdicts(func, [])
    assert made.traced is not None
    for arguments, found in run(func, several):
        counts["launch" if found.complete or found.found else "launch, not followed"] += 1
        seen |= {s.what for s in found.found}
        for text in refuted(made.traced, found, arguments, random.Random(seed), 12):
            wrong.append(f"{kernel.name}: no model of {text}")
    for verdict in made.all():
        if verdict.check == "uninitialised":
            continue
        shown = verdict.check in seen
        counts[f"{verdict.check} {verdict.outcome}, {'a fault' if shown else 'none'}"] += 1
        if verdict.outcome == "safe" and shown:
            wrong.append(f"{kernel.name}: {verdict.check}")
    return wrong


RANDOM = Kind(HEAD, Writer, arguments_of)


def main(kind: Kind = RANDOM) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    alias.install("quadrants")
    total: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name:
        for first in range(options.seed, options.seed + options.count, _AT_ONCE):
            wrong, counts = contradictions(kind, first, _AT_ONCE, Path(name))
            total += counts
            for one in wrong:
                print(f"wrong proof: {one}", flush=True)
    for what, count in sorted(total.items()):
        print(f"{what:<40} {count:>6}")


if __name__ == "__main__":
    main()
