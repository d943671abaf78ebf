"""Large kernels as people write or generate them, each a program for either engine.

`SOURCES[name](n)` is the text of a program with a kernel `generated`, of about `n` statements or
terms, and a function `arguments()`. The engine is imported as `qd` by the line ``ENGINE``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

__all__ = ["ENGINE", "SIZES", "SOURCES"]

ENGINE: Final = "# engine\n"
_ARRAYS: Final = "x: qd.types.NDArray[qd.f32, 1], y: qd.types.NDArray[qd.f32, 1], a: qd.f32"
_CALL: Final = "x, y, 0.5"


def _program(
    lines: list[str], before: str = "", params: str = _ARRAYS, call: str = _CALL, more: str = ""
) -> str:
    """A program. lines: of the kernel. before: it. params, call: of it. more: arguments."""
    body = "".join(f"    {line}\n" for line in lines)
    return (
        f"import numpy as np\n{ENGINE}\n{before}\n@qd.kernel\ndef generated({params}):\n{body}\n"
        "def arguments():\n"
        "    x = (np.arange(64) % 7 * 0.125 + 0.25).astype(np.float32)\n"
        f"    y = np.zeros(64, np.float32)\n{more}    return {call}\n"
    )


def _c(k: int) -> float:
    return (k * 37 % 101) / 16 + 0.25


def _ifs(n: int) -> str:
    """A loop with `n` conditions."""
    lines = ["for i in range(x.shape[0]):", "    s = x[i]"]
    for k in range(n):
        lines += [f"    if s > {_c(k)}:", f"        s = s * 0.5 + {_c(k + 1) / 8}"]
    return _program([*lines, "    y[i] = s"])


def _funcs(n: int) -> str:
    """`n` calls of functions, which call others."""
    before = """
@qd.func
def inner(p, q):
    r = p * 0.5 + q
    if r > 4.0:
        r = r - 3.0
    return r

@qd.func
def outer(s, a, c):
    t = inner(s, c)
    return inner(t, a) * 0.25
"""
    lines = ["for i in range(x.shape[0]):", "    s = x[i]"]
    lines += [f"    s = outer(s, a, {_c(k)})" for k in range(n // 2)]
    return _program([*lines, "    y[i] = s"], before)


def _matrices(n: int) -> str:
    """An unrolled loop over vectors and matrices of six rows."""
    before = "V = qd.types.vector(6, qd.f32)\nM = qd.types.matrix(6, 6, qd.f32)\n"
    lines = ["for i in range(x.shape[0]):", "    v = V(x[i], a, 1.0, 2.0, 3.0, 4.0)",
             "    m = M(0.0)", "    for r in qd.static(range(6)):", "        m[r, r] = 0.5",
             f"    for k in qd.static(range({n})):",
             "        v = m @ v * 0.5 + x[(i + k) % 64]",
             "        m[k % 6, (k + 1) % 6] = v[k % 6] * 0.125",
             "    y[i] = v.sum()"]  # fmt: skip
    return _program(lines, before)


def _deep(n: int) -> str:
    """`n` loops inside each other, by functions of twelve loops."""
    before = "@qd.func\ndef level0(s):\n    return s * 0.5 + 0.25\n"
    for level in range(n // 12):
        before += f"\n@qd.func\ndef level{level + 1}(s):\n"
        for d in range(12):
            before += "    " * (d + 1) + f"for j{d} in range({1 + (d == 3)}):\n"
        before += "    " * 13 + f"s = level{level}(s)\n    return s\n"
    return _program(
        ["for i in range(x.shape[0]):", f"    y[i] = level{n // 12}(x[i])"], before
    )  # fmt: skip


def _top(n: int) -> str:
    """`n` loops at the top."""
    lines: list[str] = []
    for k in range(n):
        lines += [f"for i in range(64):", f"    y[i] = y[i] * 0.5 + x[i] * {_c(k)}"]  # noqa: F541
    return _program(lines)


def _arguments(n: int) -> str:
    """`n` arguments, of which a tenth are arrays."""
    names = [f"x{k}" if k % 10 == 0 else f"a{k}" for k in range(n)]
    kinds = ["qd.types.NDArray[qd.f32, 1]" if k % 10 == 0 else "qd.f32" for k in range(n)]
    params = ", ".join(f"{a}: {b}" for a, b in zip(names, kinds, strict=True))
    lines = ["for i in range(64):", "    s = 0.0"]
    lines += [f"    s = s * 0.5 + {f'x{k}[i]' if k % 10 == 0 else f'a{k}'}" for k in range(n)]
    call = f"[x.copy() if k % 10 == 0 else k / 16 for k in range({n})]"
    return _program([*lines, "    x0[i] = s"], params=params, call=call)


def _long(n: int) -> str:
    """`n` lines of long expressions."""
    lines = ["for i in range(x.shape[0]):", "    s = x[i]"]
    for k in range(n):
        terms = " + ".join(
            f"(s * {_c(k + j)} - x[(i + {j}) % 64]) / (a + {_c(j)})" for j in range(12)
        )
        lines.append(f"    s = qd.sin(({terms}) * 0.001) * 0.5")
    return _program([*lines, "    y[i] = s"])


def _terms(n: int) -> str:
    """One expression of `n` terms."""
    terms = " + ".join(f"x[(i + {k}) % 64] * {_c(k)}" for k in range(n))
    return _program(["for i in range(x.shape[0]):", f"    y[i] = {terms}"])


def _static(n: int) -> str:
    """Nested conditions that are known when the kernel is compiled."""
    before = "FLAGS = [k % 3 for k in range(64)]\n"
    lines = ["for i in range(x.shape[0]):", "    s = x[i]",
             f"    for k in qd.static(range({n})):",
             "        if qd.static(FLAGS[k % 64] == 0):", "            s = s * 0.5 + a",
             "        elif qd.static(FLAGS[k % 64] == 1):",
             "            if qd.static(k % 2 == 0):", "                s = s * 0.25 + k % 5",
             "            else:", "                s = s - x[(i + k) % 64]",
             "        else:", "            s = s + 0.125"]  # fmt: skip
    return _program([*lines, "    y[i] = s"], before)


def _members(n: int) -> str:
    """A struct of `n` members."""
    members = "".join(f"    m{k}: qd.f32\n" for k in range(n))
    before = f"@qd.dataclass\nclass Big:\n{members}\nbig = Big.field(shape=8)\n"
    lines = ["for i in range(8):", "    b = big[i]"]
    lines += [f"    b.m{k} = b.m{(k + 1) % n} * 0.5 + x[(i + {k}) % 64]" for k in range(n)]
    lines += ["    big[i] = b", "    s = 0.0", *(f"    s += big[i].m{k}" for k in range(n)),
              "    y[i] = s"]  # fmt: skip
    return _program(lines, before)


SOURCES: Final[dict[str, Callable[[int], str]]] = {
    "ifs": _ifs, "funcs": _funcs, "matrices": _matrices, "deep": _deep, "top": _top,
    "arguments": _arguments, "long": _long, "terms": _terms, "static": _static,
    "members": _members,
}  # fmt: skip

SIZES: Final[dict[str, int]] = {
    "ifs": 3000, "funcs": 2000, "matrices": 1000, "deep": 60, "top": 500, "arguments": 400,
    "long": 300, "terms": 2000, "static": 5000, "members": 200,
}  # fmt: skip
"""The usual size of each."""
