"""Random integer programs mean in a kernel what they mean in Python.

Values stay small, so that wrapping does not matter; names are used only where both languages have
them. The same text runs as Python and, on the interpreter, as a kernel.
"""

import random

import pytest

from .harness import load

pytestmark = pytest.mark.usefixtures("interp")

FUNCTIONS = """
def twist(a, b=3):
    a = a * 2 - b
    if a > 20:
        a -= 40
    return a

def split(a):
    return a // 7, a % 7
"""


class Program:
    """Text of a random function body; ``scopes`` holds the names that can be read."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.scopes = [["a", "b"]]
        self.fixed = {"a", "b"}
        self.count = 0
        self.lines = []

    def names(self):
        return [name for scope in self.scopes for name in scope]

    def fresh(self):
        self.count += 1
        return f"v{self.count}"

    def atom(self):
        r = self.random
        return r.choice(self.names()) if r.random() < 0.7 else str(r.randint(-9, 20))

    def number(self, depth=0):
        r = self.random
        kind = r.randrange(12) if depth < 3 else 0
        if kind < 3:
            return self.atom()
        x, y = self.number(depth + 1), self.number(depth + 1)
        if kind == 3:
            return f"({x} {r.choice(['+', '-', '*', '&', '|', '^'])} {y})"
        if kind == 4:
            return f"({x} {r.choice(['//', '%'])} {r.choice([2, 3, 7, -5])})"
        if kind == 5:
            return f"({x} {r.choice(['<<', '>>'])} {r.randint(0, 2)})"
        if kind == 6:
            return f"{r.choice('-~+')}({x})"
        if kind == 7:
            return f"({x} if {self.test(depth + 1)} else {y})"
        if kind == 8:
            return f"({x} {r.choice(['and', 'or'])} {y})"
        if kind == 9:
            return f"{r.choice(['min', 'max'])}({x}, {y}, {self.atom()})"
        if kind == 10:
            return f"abs({x})"
        return r.choice([f"twist({x})", f"twist({x}, {y})", f"twist(b={x}, a={y})"])

    def test(self, depth=0):
        r = self.random
        x, y = self.number(depth + 2), self.number(depth + 2)
        less = [
            f"{x} {r.choice(['<', '<=', '>', '>=', '==', '!='])} {y}",
            f"{x} < {y} <= {self.atom()}",
            x,
        ]
        if depth < 2 and r.random() < 0.4:
            word = r.choice([" and ", " or "])
            return f"({self.test(depth + 1)}){word}({self.test(depth + 1)})"
        return f"not ({less[0]})" if r.random() < 0.1 else r.choice(less)

    def line(self, text):
        self.lines.append("    " * len(self.scopes) + text)

    def block(self, in_loop):
        self.scopes.append([])
        for _ in range(self.random.randint(1, 3)):
            self.statement(in_loop)
        self.scopes.pop()

    def statement(self, in_loop):
        r = self.random
        kind = r.randrange(11) if len(self.scopes) < 5 else r.randrange(5)
        free = [n for n in self.names() if n not in self.fixed]
        if kind < 2 or not free:
            name = self.fresh()
            self.line(f"{name} = {self.number()} % 97 - 48")
            self.scopes[-1].append(name)
        elif kind == 2:
            self.line(f"{r.choice(free)} = {self.number()} % 97 - 48")
        elif kind == 3:
            name = r.choice(free)
            self.line(
                f"{name} {r.choice(['+=', '-=', '*=', '&=', '|=', '^='])} {self.number()} % 13"
            )
            self.line(f"{name} //= {r.choice([2, 3, 5])}")
            self.line(f"{name} %= 50")
        elif kind == 4:
            x, y = self.fresh(), self.fresh()
            self.line(f"{x}, {y} = split({self.number()})")
            self.scopes[-1] += [x, y]
            self.line(f"{x}, {y} = {y}, {x}")
        elif kind < 7:
            self.line(f"if {self.test()}:")
            self.block(in_loop)
            if r.random() < 0.5:
                self.line(f"elif {self.test()}:")
                self.block(in_loop)
            if r.random() < 0.5:
                self.line("else:")
                self.block(in_loop)
        elif kind < 9:
            name = self.fresh()
            self.line(f"for {name} in range({r.randint(-1, 2)}, {self.atom()} % 5):")
            self.fixed.add(name)
            self.scopes[-1].append(name)
            self.block(True)
            self.scopes[-1].remove(name)
        elif kind == 9:
            name = self.fresh()
            self.line(f"{name} = 0")
            self.fixed.add(name)
            self.scopes[-1].append(name)
            self.line(f"while {name} < {r.randint(1, 4)} and ({self.test()}):")
            self.lines.append("    " * (len(self.scopes) + 1) + f"{name} += 1")
            self.block(True)
        elif in_loop:
            self.line(f"if {self.test()}:")
            self.lines.append("    " * (len(self.scopes) + 1) + r.choice(["break", "continue"]))
        else:
            self.line("pass")

    def text(self):
        # Under a runtime `if` loops run in order and may be left.
        self.line("out = 0")
        self.scopes[0].append("out")
        self.line("if a > -99:")
        self.scopes.append([])
        for _ in range(self.random.randint(3, 7)):
            self.statement(False)
        total = " + ".join(f"{name} * {k + 1}" for k, name in enumerate(self.names()))
        self.line(f"out = {total}")
        self.scopes.pop()
        self.line("return out")
        return "\n".join(self.lines) + "\n"


@pytest.mark.sampled(5)
@pytest.mark.parametrize("seed", range(120))
def test_same_as_python(seed, tmp_path):
    body = Program(seed).text()
    functions = FUNCTIONS.replace("\ndef", "\n@qd.func\ndef")
    kernel = f"@qd.kernel\ndef k(a: qd.i32, b: qd.i32) -> qd.i32:\n{body}"
    names = load(functions + kernel, tmp_path)
    python = {}
    exec(FUNCTIONS + "def k(a, b):\n" + body, python)
    for a, b in ((3, 5), (-4, 11), (0, 0)):
        assert names["k"](a, b) == python["k"](a, b), kernel
