"""Random kernels of locals, ifs and loops for reverse mode: small, and tame where looked at.

A kernel has a root of loops and statements. It reads the real arrays ``x`` and ``z``, the integers
``c`` (0 to 4) and ``n``, and adds to ``y``; what it reads is never overwritten.
"""

from __future__ import annotations

import random

__all__ = ["HEAD", "source"]

HEAD = "from qd_studio import engine as qd\n"
_SIGNATURE = (
    "x: qd.types.NDArray[qd.f64, 1], y: qd.types.NDArray[qd.f64, 1], "
    "z: qd.types.NDArray[qd.f64, 1], c: qd.types.NDArray[qd.i32, 1], n: qd.i32"
)


class _Writer:
    def __init__(self, seed: int) -> None:
        self.r = random.Random(seed)
        self.lines: list[str] = []
        self.count = 0
        self.left = 28

    def name(self, kind: str) -> str:
        self.count += 1
        return f"{kind}{self.count}"

    def put(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    # --- expressions -------------------------------------------------------------------------

    def integer(self, scope: list[str], low: int = 0) -> str:
        """An expression from 0 to about 8."""
        ints = [v for v in scope if v[0] in "ijm"]
        pick = self.r.randrange(6)
        if pick == 0 or not ints:
            return self.r.choice(["n", "2", "3", f"c[{self.index(scope)}]"])
        if pick == 1:
            return f"({self.r.choice(ints)} + {self.r.randrange(1, 3)})"
        if pick == 2:
            return f"c[{self.index(scope)}]"
        return self.r.choice(ints)

    def index(self, scope: list[str]) -> str:
        """An index into an array of five."""
        ints = [v for v in scope if v[0] in "ijm"]
        if not ints or self.r.random() < 0.15:
            return str(self.r.randrange(5))
        if self.r.random() < 0.2:
            return f"({self.r.choice(ints)} + c[{self.r.choice(ints)} % 5]) % 5"
        return f"({self.r.choice(ints)} + {self.r.randrange(5)}) % 5"

    def real(self, scope: list[str], deep: int = 2) -> str:
        """An expression of size about 1."""
        floats = [v for v in scope if v[0] == "a"]
        r = self.r
        if deep == 0 or r.random() < 0.25:
            if floats and r.random() < 0.65:
                return r.choice(floats)
            return r.choice([f"x[{self.index(scope)}]", f"z[{self.index(scope)}]", "0.7"])
        a = self.real(scope, deep - 1)
        b = self.real(scope, deep - 1)
        return r.choice([
            f"({a} + {b}) * 0.5", f"({a} - {b})", f"{a} * {b}", f"qd.sin({a})",
            f"qd.cos({a} * {b})", f"qd.tanh({a})", f"{a} / (1.5 + {b} * {b})",
            f"qd.sqrt({a} * {a} + 0.3)",
            f"qd.max({a}, {b})", f"qd.min({a}, 0.8)", f"qd.select({self.test(scope)}, {a}, {b})",
            f"qd.exp(-{a} * {a})", f"qd.floor({a} * 2.0) * {b}", f"abs({a})",
        ])  # fmt: skip

    def test(self, scope: list[str]) -> str:
        floats = [v for v in scope if v[0] == "a"]
        if floats and self.r.random() < 0.5:
            return f"{self.r.choice(floats)} > {self.r.choice(['0.3', '0.6', self.real(scope, 1)])}"
        return f"{self.integer(scope)} {self.r.choice(['<', '>', '=='])} {self.integer(scope)}"

    # --- statements --------------------------------------------------------------------------

    def block(self, depth: int, scope: list[str], loops: int, parallel: bool) -> None:
        """A few statements. parallel: inside of a parallel loop, with ``loops`` loops around."""
        scope = list(scope)
        start = len(self.lines)
        for _ in range(self.r.randrange(2, 5)):
            if self.left <= 0:
                break
            self.left -= 1
            self.statement(depth, scope, loops, parallel)
        if len(self.lines) == start:
            self.put(depth, f"y[{self.index(scope)}] += {self.real(scope)}")

    def statement(self, depth: int, scope: list[str], loops: int, parallel: bool) -> None:
        r = self.r
        floats = [v for v in scope if v[0] == "a"]
        pick = r.randrange(13)
        if pick < 2 or (pick < 5 and not floats):
            name = self.name("a")
            self.put(depth, f"{name} = {r.choice([self.real(scope), '0.0', '1.0'])}")
            scope.append(name)
        elif pick < 5:
            self.put(depth, f"{r.choice(floats)} {r.choice(['=', '+=', '-='])} "
                            f"qd.sin({self.real(scope)})")  # fmt: skip
        elif pick == 5:
            ints = [v for v in scope if v[0] == "m"]
            if ints and r.random() < 0.6:
                self.put(depth, f"{r.choice(ints)} = {self.integer(scope)} % 5")
            else:
                name = self.name("m")
                self.put(depth, f"{name} = {self.integer(scope)}")
                scope.append(name)
        elif pick < 8:
            self.put(depth, f"y[{self.index(scope)}] += {self.real(scope)}")
        elif pick < 10:
            self.put(depth, f"if {self.test(scope)}:")
            self.block(depth + 1, scope, loops, parallel)
            if r.random() < 0.5:
                self.put(depth, "else:")
                self.block(depth + 1, scope, loops, parallel)
        elif loops < 3 and depth < 7:
            self.loop(depth, scope, loops, parallel)
        else:
            self.put(depth, f"y[{self.index(scope)}] -= {self.real(scope)}")

    def loop(self, depth: int, scope: list[str], loops: int, parallel: bool) -> None:
        index = self.name("j")
        if not parallel and depth == 1:
            self.put(depth, "qd.loop_config(serialize=True)")
        if self.r.random() < 0.2:
            second = self.name("j")
            self.put(depth, f"for {index}, {second} in qd.ndrange({self.integer(scope)}, 2):")
            inside = [*scope, index, second]
        else:
            begin = self.r.choice(["", "", "1, ", "-1, "])
            self.put(depth, f"for {index} in range({begin}{self.integer(scope)}):")
            inside = list(scope) if begin == "-1, " else [*scope, index]
        if self.r.random() < 0.15:
            self.put(depth + 1, f"if {self.test(inside)}:")
            self.put(depth + 2, "continue")
        self.block(depth + 1, inside, loops + 1, parallel)

    def root(self) -> None:
        scope: list[str] = []
        if self.r.random() < 0.35:
            for _ in range(self.r.randrange(1, 3)):
                self.left -= 1
                self.statement(1, scope, 1, False)
        for _ in range(self.r.choice([1, 1, 2])):
            index = self.name("i")
            total = ""
            if self.r.random() < 0.3:
                total = self.name("a")
                self.put(1, f"{total} = {self.r.choice(['0.0', '0.4'])}")
            self.put(
                1, f"for {index} in range({self.r.choice(['5', 'x.shape[0]', 'n', 'c[1] + 1'])}):"
            )
            # Iterations may not set variables of the root.
            mine = self.name("a")
            self.put(2, f"{mine} = {self.real([*scope, index])}")
            names: list[str] = []
            for variable in scope:
                if variable[0] == "a":
                    names.append(f"b{variable}")
                    self.put(2, f"{names[-1]} = {variable} * 1.0")
            self.left = max(self.left, 10)
            self.block(2, [index, mine], 1, True)
            if names:
                self.put(2, f"y[{self.index([index])}] += {' * '.join(names)} * {mine}")
            if total:
                self.put(2, f"{total} += {mine} * 0.3")
                scope.append(total)
        if self.r.random() < 0.3 or scope:
            self.put(1, f"y[0] += {self.real(scope)}")


def source(seed: int) -> str:
    """A kernel ``k``."""
    w = _Writer(seed)
    w.root()
    return "\n".join(["@qd.kernel", f"def k({_SIGNATURE}):", *w.lines, ""])
