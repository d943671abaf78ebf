"""The same body as a function that is inlined and as one that is called: the results are equal."""

import importlib.util
import random

import numpy as np
import pytest
from qd_studio import engine as qd

HEAD = """\
from qd_studio import engine as qd

Ints = qd.types.ndarray(dtype=qd.i32, ndim=1)
V2 = qd.types.vector(2, qd.i32)


"""


class _Writer:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lines = []
        self.names = ["a", "b", "v[0]", "v[1]", "r", "x[a & 7]"]
        self.count = 0

    def value(self, depth=2):
        if depth == 0 or self.random.random() < 0.4:
            return self.random.choice([*self.names, str(self.random.randint(-9, 9))])
        op = self.random.choice(["+", "-", "*", "^", "&"])
        return f"({self.value(depth - 1)} {op} {self.value(depth - 1)})"

    def body(self, pad, depth, count):
        names = list(self.names)
        for _ in range(count):
            kind = self.random.choice(["new", "set", "ref", "array", "if", "for"])
            if kind == "new":
                self.count += 1
                self.lines.append(f"{pad}n{self.count} = {self.value()}")
                self.names.append(f"n{self.count}")
            elif kind == "set":
                mine = [n for n in self.names if n[0] == "n"] or ["r"]
                self.lines.append(f"{pad}{self.random.choice(mine)} = {self.value()}")
            elif kind == "ref":
                self.lines.append(f"{pad}r {self.random.choice(['=', '+='])} {self.value()}")
            elif kind == "array":
                self.lines.append(f"{pad}x[({self.value(1)}) & 7] += {self.value()}")
            elif depth:
                head = f"if {self.value()} > 2:"
                if kind == "for":
                    self.count += 1
                    head = f"for i{self.count} in range({self.random.randint(0, 4)}):"
                self.lines += [pad + head, f"{pad}    r += 1"]
                self.body(pad + "    ", depth - 1, self.random.randint(1, 3))
        self.names = names


def source(seed):
    """A module with the kernels ``inlined`` and ``called``."""
    w = _Writer(seed)
    w.body("    ", 2, w.random.randint(3, 9))
    w.lines.append(f"    return V2({w.value()}, r + {w.value()})")
    body = "\n".join(w.lines)
    text = HEAD
    for name, kind, ref in (
        ("one", "func", "qd.template()"),
        ("two", "real_func", "qd.ref(qd.i32)"),
    ):
        text += (
            f"@qd.{kind}\ndef {name}(a: qd.i32, b: qd.i32, v: V2, r: {ref}, x: Ints) -> V2:\n{body}"
            "\n\n\n"
        )
    for name, fn in (("inlined", "one"), ("called", "two")):
        text += (
            f"@qd.kernel\ndef {name}(x: Ints, out: Ints):\n    qd.loop_config(serialize=True)\n"
            "    for i in range(out.shape[0]):\n        r = i * 3\n"
            f"        p = {fn}(i, x[i & 7], V2(i - 2, 5), r, x)\n"
            f"        q = {fn}(p[0], p[1], p, r, x)\n"
            "        out[i] = p[0] + 3 * p[1] + 5 * q[0] + 7 * q[1] + 11 * r\n\n\n"
        )
    return text


def run(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = []
    for kernel in (module.inlined, module.called):
        x = np.arange(8, dtype=np.int32)
        out = np.zeros(6, np.int32)
        kernel(x, out)
        found.append((x.tolist(), out.tolist()))
    return found


@pytest.mark.sampled(5)
@pytest.mark.parametrize("seed", range(8))
def test_calls_do_what_inlined_code_does(seed, tmp_path):
    path = tmp_path / f"calls_{seed}.py"
    path.write_text(source(seed))
    results = []
    for arch, options in ((qd.interp, {}), (qd.cpu, {}), (qd.cpu, {"opt_level": 0})):
        qd.init(arch=arch, log_level="error", **options)
        results += run(path)
        qd.reset()
    assert all(result == results[0] for result in results)
