"""Random kernels whose iterations share arrays and wait for each other.

They are free of races: between two barriers an array is only written, each iteration its own
element, or only read. Conditions around barriers are the same for all iterations of a block.
"""

import random

__all__ = ["source"]

HEAD = """\
from qd_studio import engine as qd

Ints = qd.types.ndarray(dtype=qd.i32, ndim=1)
"""


_KINDS = ["new", "set", "write", "write", "read", "read", "sync", "private", "if", "loop", "plain"]


class _Writer:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.pad = "        "
        self.variables: list[str] = ["i", "t"]
        self.uniform: list[str] = ["m"]
        self.mode = {"s0": "", "s1": ""}  # what was done to a shared array since the last barrier
        self.count = 0

    def line(self, text: str) -> None:
        self.lines.append(self.pad + text)

    def name(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def value(self, depth: int = 2) -> str:
        pick = self.random.random()
        if depth == 0 or pick < 0.4:
            number = str(self.random.randint(-9, 9))
            return self.random.choice([*self.variables, *self.uniform, number])
        a, b = self.value(depth - 1), self.value(depth - 1)
        if pick < 0.9:
            return f"({a} {self.random.choice('+-*^')} {b})"
        return f"({a} if {b} > 0 else {self.value(depth - 1)})"

    def sync(self) -> None:
        self.line("qd.simt.block.sync()")
        self.mode = dict.fromkeys(self.mode, "")

    def want(self, array: str, mode: str) -> None:
        if self.mode[array] not in ("", mode):
            self.sync()
        self.mode[array] = mode

    def statement(self, depth: int) -> None:
        kind = self.random.choice(_KINDS)
        if kind == "new":
            name = self.name()
            self.line(f"{name} = {self.value()}")
            self.variables.append(name)
        elif kind == "set":
            mutable = [v for v in self.variables if v.startswith("v")]
            if mutable:
                target = self.random.choice(mutable)
                self.line(f"{target} {self.random.choice(['=', '+='])} {self.value()}")
        elif kind == "write":
            array = self.random.choice(list(self.mode))
            self.want(array, "write")
            self.line(f"{array}[t] = {self.value()}")
        elif kind == "read":
            array = self.random.choice(list(self.mode))
            self.want(array, "read")
            name = self.name()
            self.line(f"{name} = {array}[(t + {self.random.randint(0, 7)}) % B]")
            self.variables.append(name)
        elif kind == "sync":
            self.sync()
        elif kind == "private":
            self.line(f"p[{self.random.randint(0, 2)}] = {self.value()}")
            self.line(f"p[(t & 1) + 1] += {self.value(1)}")
        elif kind in ("if", "loop") and depth:
            self.nested(kind, depth)
        else:
            self.line(f"if {self.value()} > 3:")
            self.line(f"    p[t % 3] += {self.value()}")

    def nested(self, kind: str, depth: int) -> None:
        saved = list(self.variables), list(self.uniform), self.pad
        self.sync()  # one state on every way in
        if kind == "if":
            same = self.random.choice(self.uniform)
            self.line(f"if ({same} + {self.random.randint(0, 3)}) % 2 == 0:")
        else:
            index = self.name()
            bound = self.random.choice(["3", "m % 4", "m % 2 + 1"])
            self.line(f"for {index} in range({bound}):")
            self.uniform.append(index)
        self.pad += "    "
        for _ in range(self.random.randint(1, 4)):
            self.statement(depth - 1)
        if kind == "loop" and self.random.random() < 0.3:
            self.sync()
            self.line(f"if {self.uniform[-1]} == 1:")
            self.line(f"    {self.random.choice(['break', 'continue'])}")
        self.sync()
        self.variables, self.uniform, self.pad = saved


def source(seed: int) -> str:
    """A kernel ``k(out, m)`` as a module's text."""
    w = _Writer(seed)
    dim = w.random.choice([2, 4, 8])
    ends = w.random.random() < 0.3
    w.line("t = qd.simt.block.thread_idx()")
    w.line("s0 = qd.simt.block.SharedArray(B, qd.i32)")
    w.line("s1 = qd.simt.block.SharedArray(B, qd.i32)")
    # A long vector lies in an array, a short one in variables.
    length = w.random.choice([3, 40])
    w.line(f"p = qd.Vector([k * i for k in range({length})])")
    for k in range(w.random.randint(5, 14)):
        if ends and k == 3:
            w.sync()
            w.line("if (i + m) % 5 == 3:")
            w.line("    out[i] = -7")
            w.line("    continue")
        w.statement(2)
    w.sync()
    w.line(f"total = {' + '.join(w.variables)} + s0[(t + 1) % B] + s1[t]")
    w.line("out[i] = total + p[0] + p[1] * 3 + p[2] * 5")
    body = "\n".join(w.lines)
    return (
        f"{HEAD}\nB = {dim}\n\n\n@qd.kernel\ndef k(out: Ints, m: qd.i32):\n"
        f"    qd.loop_config(block_dim=B)\n    for i in range(out.shape[0]):\n{body}\n"
    )
