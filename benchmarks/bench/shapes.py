"""Kernels of one shape each and of a wanted size, for benchmarks whose subject is the size.

`generated` mixes everything; a kernel here repeats one thing, so that a part of the compiler which
is not linear in it shows. Every statement feeds a value that is stored.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

__all__ = ["SHAPES", "source"]

_HEADER: Final = '''"""Generated: {shape}, {statements} statements."""

from qd_studio import engine as qd

{functions}
@qd.kernel
def generated(x: qd.types.NDArray[qd.f32, 1], y: qd.types.NDArray[qd.f32, 1], a: qd.f32):
'''
_LOOP: Final = ("for i in range(x.shape[0]):", "    s = x[i]")
_STORE: Final = "    y[i] = s"
_DEPTH: Final = 12
"""Of nested loops: Python allows 20."""


def _c(k: int) -> float:
    """A constant that differs between neighbours."""
    return (k * 37 % 101) / 16 + 0.25


def _block(n: int) -> list[str]:
    """One long block of loads, arithmetic and stores to different places."""
    lines: list[str] = []
    for k in range(n // 4):
        lines += [f"    p{k} = s * {_c(k) / 8} + x[(i + {k}) % 64] * a",
                  f"    q{k} = qd.max(p{k}, {_c(k)}) + a",
                  f"    y[(i + {k}) % 64] = q{k}",
                  f"    s = s * 0.25 + p{k} * q{k}"]  # fmt: skip
    return [*_LOOP, *lines, _STORE]


def _chain(n: int) -> list[str]:
    """A chain of additions and multiplications."""
    return [*_LOOP, *(f"    s = s * a + {_c(k)}" for k in range(n)), _STORE]


def _divisions(n: int) -> list[str]:
    """A chain of divisions."""
    return [*_LOOP, *(f"    s = {_c(k)} / (s + a)" for k in range(n)), _STORE]


def _loops(n: int) -> list[str]:
    """Many loops at the top, a task each."""
    lines: list[str] = []
    for k in range(n // 2):
        lines += [f"for i{k} in range(x.shape[0]):", f"    y[i{k}] = y[i{k}] * {_c(k)} + x[i{k}]"]
    return lines


def _distinct(n: int) -> list[str]:
    """Many loops at the top, each with a number of its own."""
    lines: list[str] = []
    for k in range(n // 2):
        lines += [f"for i{k} in range(x.shape[0]):",
                  f"    y[i{k}] = y[i{k}] * {k / 8 + 0.0625} + x[i{k}]"]  # fmt: skip
    return lines


def _various(n: int) -> list[str]:
    """Many loops at the top that differ in numbers, arrays, bounds, operations and structure."""
    lines: list[str] = []
    for k in range(n // 2):
        to, of = "xy" if k // 3 % 2 else "yx"
        first, second = "+-*/"[k % 4], "+-*/"[k // 4 % 4]
        function = ("qd.sin", "qd.abs", "qd.sqrt", "qd.exp")[k % 4]
        number = k / 4 + 1.5
        head, line = (
            (f"{of}.shape[0]", f"{to}[i] = {of}[i] {first} {number} {second} a"),
            (f"{k % 7 + 3}", f"{of}[i + {k % 11}] += {function}({to}[i] * {number})"),
            ("x.shape[0] - 1", f"{to}[i] = {of}[i + 1] {first} {to}[i] {second} {number}"),
            (f"{k % 9}, {to}.shape[0]", f"{of}[i] = qd.max(a, {to}[i]) {first} {number}"),
        )[k % 4]
        lines += [f"for i in range({head}):", f"    {line}"]
    return lines


def _nests(n: int) -> list[str]:
    """Nests of loops and conditions, one after the other."""
    lines: list[str] = []
    for k in range(n // (2 * _DEPTH + 1)):
        for d in range(_DEPTH):
            lines.append("    " * (d + 1) + f"for j{d} in range({d % 2 + 1}):")
        for d in range(_DEPTH):
            lines.append("    " * (_DEPTH + 1 + d) + f"if s < {_c(k + d)}:")
        lines.append("    " * (2 * _DEPTH + 1) + f"s = s * 0.5 + {_c(k)}")
    return [*_LOOP, *lines, _STORE]


def _branches(n: int) -> list[str]:
    """Many conditions, one after the other."""
    lines: list[str] = []
    for k in range(n // 4):
        lines += [f"    if s > {_c(k)}:", f"        s = s * a + {_c(k + 1)}", "    else:",
                  f"        s = s - x[(i + {k}) % 64]", f"    y[(i + {k}) % 64] = s"]  # fmt: skip
    return [*_LOOP, *lines, _STORE]


def _choices(n: int) -> list[str]:
    """Chains of `elif`, one after the other."""
    lines: list[str] = []
    for k in range(n // 80):
        for d in range(40):
            lines += [f"    {'el' * (d > 0)}if s > {40 - d + _c(k)}:",
                      f"        s = s * a + {_c(d)}"]  # fmt: skip
    return [*_LOOP, *lines, _STORE]


def _calls(n: int) -> list[str]:
    """Calls of a function of four statements, inlined each."""
    return [*_LOOP, *(f"    s = step(s, a, {_c(k)})" for k in range(n // 5)), _STORE]


def _unrolled(n: int) -> list[str]:
    """Two statements, unrolled."""
    return [*_LOOP, f"    for k in qd.static(range({n // 2})):",
            "        t = s * 0.5 + x[(i + k) % 64]", "        s = t * a + k", _STORE]  # fmt: skip


def _stored(n: int) -> list[str]:
    """Statements outside of loops: one task that runs once."""
    return [f"y[{k % 64}] = y[{(k + 1) % 64}] * a + {_c(k)}" for k in range(n)]


def _updates(n: int) -> list[str]:
    """Updates of as many places by atomics, in one loop."""
    names = ("add", "max", "min")
    updates = [f"    qd.atomic_{names[k % 3]}(y[{k}], x[i] * {_c(k)})" for k in range(n)]
    return ["for i in range(x.shape[0]):", *updates]


def _casts(n: int) -> list[str]:
    """Integers and floats that become each other, in one long block."""
    lines = ["    t = qd.f64(s)", "    m = i"]
    for k in range(n // 2):
        lines += [f"    m = (m * {2 * k % 89 + 3} + qd.i32(t)) ^ (m >> {k % 19 + 1})",
                  "    t = t * 0.5 + qd.f64(m & 255)"]  # fmt: skip
    return [*_LOOP, *lines, "    y[i] = qd.f32(t) + m"]


def _sums(n: int) -> list[str]:
    """Many loops at the top that add to one variable of the kernel."""
    lines = ["t = a"]
    for k in range(n // 2):
        lines += [f"for i{k} in range(x.shape[0] - {k % 7}):", f"    t += x[i{k}] * {_c(k)}"]
    return [*lines, "y[0] = t"]


def _fields(n: int) -> list[str]:
    """Many loops at the top over many fields."""
    lines: list[str] = []
    for k in range(n // 2):
        mine, other = k % (n // 4), (k * 7 + 1) % (n // 4)
        lines += [f"for i{k} in FIELDS[{mine}]:",
                  f"    FIELDS[{mine}][i{k}] = FIELDS[{other}][i{k}] * {_c(k)} + a"]  # fmt: skip
    return [*lines, "y[0] = FIELDS[1][0]"]


SHAPES: Final[dict[str, Callable[[int], list[str]]]] = {
    "block": _block, "chain": _chain, "divisions": _divisions, "loops": _loops,
    "distinct": _distinct, "various": _various, "nests": _nests, "branches": _branches,
    "choices": _choices, "calls": _calls, "unrolled": _unrolled, "serial": _stored,
    "updates": _updates, "casts": _casts, "sums": _sums, "fields": _fields,
}  # fmt: skip

_STEP: Final = """
@qd.func
def step(s, a, c):
    p = s * c + a
    q = qd.max(p, c)
    r = q * a + p
    return r - s
"""


_FIELDS: Final = """
FIELDS = [qd.field(qd.f32, 64) for _ in range({count})]
"""


def source(shape: str, statements: int) -> str:
    """A file with one kernel, ``generated``."""
    lines = SHAPES[shape](statements)
    functions = {"calls": _STEP, "fields": _FIELDS.format(count=statements // 4)}.get(shape, "")
    head = _HEADER.format(shape=shape, statements=statements, functions=functions)
    return head + "".join(f"    {line}\n" for line in lines)
