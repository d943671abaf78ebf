"""Kernels with a NaN or infinity whose origin is known by construction: `case(seed)`.

A case puts one op that goes wrong (`OPS`) into one surrounding (`FORMS`), in one float type, at
one iteration. The line of the op ends in ``# here``. Around it are decoys: a NaN that a `select`
masks, one that nothing uses, the same fault in a later iteration, and ops that pass it on.
"""

from __future__ import annotations

import importlib.util
import random
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

__all__ = ["FORMS", "OPS", "Case", "case", "fault"]

N = 64
_BIG = {"f16": 6e4, "f32": 3e38, "f64": 1.5e308}
_EXP = {"f16": 20.0, "f32": 200.0, "f64": 2000.0}


class Op(NamedTuple):
    """An op. text: of it, with operands a and b. bad: their values where it goes wrong; BIG and EXP
    stand for numbers of the type. kind: of the finding. nan: it makes a NaN."""

    text: str
    bad: tuple[Any, Any]
    kind: str = "made"
    nan: bool = True


OPS = {
    "sqrt": Op("qd.sqrt(a)", (-2.0, 1.0)),
    "log": Op("qd.log(a)", (-1.0, 1.0)),
    "log of 0": Op("qd.log(a)", (0.0, 1.0), nan=False),
    "acos": Op("qd.acos(a)", (2.0, 1.0)),
    "asin": Op("qd.asin(a)", (-3.0, 1.0)),
    "division by 0": Op("b / a", (0.0, 1.0), nan=False),
    "0 / 0": Op("b / a", (0.0, 0.0)),
    "inf - inf": Op("a - b", (np.inf, np.inf)),
    "0 * inf": Op("a * b", (0.0, np.inf)),
    "pow": Op("qd.pow(a, b)", (-2.0, 0.5)),
    "exp": Op("qd.exp(a)", ("EXP", 1.0), nan=False),
    "product": Op("a * b", ("BIG", 8.0), nan=False),
    "sum": Op("a + b", ("BIG", "BIG"), nan=False),
    "rsqrt": Op("qd.rsqrt(a)", (0.0, 1.0), nan=False),
    "remainder": Op("a % b", (1.0, 0.0)),
    "loaded NaN": Op("a * b", (np.nan, 1.0), "loaded"),
    "loaded infinity": Op("a * b", (np.inf, 1.0), "loaded", nan=False),
    "cast": Op("qd.cast(w[i], T)", (1.0, 1.0), nan=False),
}

# {op} is the op. Lines that end in "# here" are where it is.
FORMS = {
    "plain": """
    for i in x:
        a, b = x[i], y[i]
        r = {op}  # here
        z[i] = r * 2.0 + 1.0
""",
    "branch": """
    for i in x:
        a, b = x[i], y[i]
        if i % 2 == PAR:
            r = {op}  # here
            z[i] = r
        else:
            z[i] = b * 0.5
""",
    "loop": """
    for i in x:
        total = qd.cast(0.0, T)
        for k in range(4):
            a, b = x[i], y[i]
            if k < 3:
                a, b = qd.cast(1.0, T), qd.cast(1.0, T)
            r = {op}  # here
            total += r
        z[i] = total
""",
    "function": """
    for i in x:
        z[i] = step(x[i], y[i], w, i) + 1.0
""",
    "vector": """
    for i in x:
        v = qd.Vector([y[i] * 0.25, x[i]])
        a, b = v[1], y[i]
        u = qd.Vector([b, {op}])  # here
        u += v * 0.5
        z[i] = u[0] + u[1]
""",
    "matrix": """
    for i in x:
        a, b = x[i], y[i]
        m = qd.Matrix([[1.0, 0.0], [0.0, 1.0]], T) * {op}  # here
        z[i] = (m @ qd.Vector([qd.cast(1.0, T), qd.cast(2.0, T)]))[1]
""",
    "second task": """
    for i in z:
        z[i] = y[i] * 0.0625
    for i in x:
        a, b = x[i], y[i]
        r = {op}  # here
        z[i] = z[i] + r
""",
    "two axes": """
    for p, q in qd.ndrange(8, 8):
        i = p * 8 + q
        a, b = x[i], y[i]
        r = {op}  # here
        z[i] = -r
""",
    "serial": """
    qd.loop_config(serialize=True)
    for i in range(64):
        a, b = x[i], y[i]
        r = {op}  # here
        z[i] = r
""",
    "while": """
    for i in x:
        left = 3
        r = qd.cast(0.0, T)
        while left > 0:
            a, b = x[i], y[i]
            if left > 1:
                a, b = qd.cast(1.0, T), qd.cast(1.0, T)
            r = {op}  # here
            left -= 1
        z[i] = r
""",
    "field": """
    for i in range(64):
        a, b = x[i], y[i]
        r = {op}  # here
        F[i] = r
""",
    "scatter": """
    for i in x:
        a, b = x[i], y[i]
        r = {op}  # here
        z[i // 2] += r
""",
    "sum of all": """
    for i in x:
        a, b = x[i], y[i]
        r = {op}  # here
        z[0] += r
""",
    "next task": """
    for i in x:
        a, b = x[i], y[i]
        r = {op}  # here
        z[i] = r
    for i in x:
        x[i] = z[i] * 2.0
""",
    "masked": """
    for i in x:
        a, b = x[i], y[i]
        hidden = qd.sqrt(-1.0 - a * a)
        z[i] = qd.select(i >= 0, y[i], hidden)
        r = {op}  # here
        z[i] = r
""",
    "unused": """
    for i in x:
        a, b = x[i], y[i]
        none = qd.log(-1.0 - a * a)
        if none > 0.0:
            z[i] = 1.0
        r = {op}  # here
        z[i] = qd.min(r, r) + b
""",
    "result": """
    total = qd.cast(0.0, T)
    qd.loop_config(serialize=True)
    for i in range(64):
        a, b = x[i], y[i]
        r = {op}  # here
        total += r
    z[1] = total
""",
    "gradient": "",
}

_TEXT = """from qd_studio import engine as qd

T = qd.{dtype}
WIDE = qd.{wide}
PAR = {parity}
F = qd.field(T, shape=64)


@qd.func
def step(a, b, w, i):
    c = a * 1.0
    r = {op}  # here
    return r - c * 0.125


@qd.kernel
def k(x: qd.types.NDArray[T, 1], y: qd.types.NDArray[T, 1], z: qd.types.NDArray[T, 1],
      w: qd.types.NDArray[WIDE, 1]):{body}"""

_GRADIENT = """from qd_studio import engine as qd

T = qd.{dtype}
x = qd.field(T, shape=64, needs_grad=True)
y = qd.field(T, shape=64, needs_grad=True)


@qd.kernel
def k():
    for i in x:
        y[i] = qd.sqrt(x[i]) * 3.0  # here
"""


class Case(NamedTuple):
    """A kernel, its arguments and the truth. line: of the op. iteration: None if it is in a serial
    task. label: for people."""

    label: str
    text: str
    line: int
    iteration: tuple[int, ...] | None
    kind: str
    nan: bool
    dtype: str
    x: Any
    y: Any
    w: Any
    gradient: bool


def case(seed: int) -> Case:
    """The case of a seed; the same seed, the same case."""
    rng = random.Random(seed)
    forms, ops = list(FORMS), list(OPS)
    form = forms[seed % len(forms)]
    dtype = ("f32", "f64", "f32", "f16")[seed // len(forms) % 4]
    op_name = rng.choice(ops)
    if op_name == "cast" and (dtype == "f64" or form in ("function",)):
        op_name = "sqrt"
    op = OPS[op_name]
    at = rng.randrange(8, N // 2)
    kind, nan = op.kind, op.nan
    x = np.linspace(0.25, 0.75, N).astype(dtype.replace("f", "float"))
    y = np.linspace(1.0, 2.0, N).astype(x.dtype)
    w = np.linspace(0.0, 1.0, N).astype(np.float32 if dtype == "f16" else np.float64)
    stand = {"BIG": _BIG[dtype], "EXP": _EXP[dtype]}
    for i in (at, at + 12, at + 24):
        x[i], y[i] = (stand.get(v, v) if isinstance(v, str) else v for v in op.bad)
        if op_name == "cast":
            w[i] = _BIG["f64"] if dtype == "f32" else 1e6
    if form == "gradient":
        op_name, nan, kind = "sqrt at 0", False, "made"
        x = np.linspace(0.25, 0.75, N).astype(x.dtype)
        x[at] = x[at + 7] = 0.0
    body = FORMS[form].format(op=op.text) if form != "gradient" else ""
    text = _TEXT.format(
        dtype=dtype, wide="f32" if dtype == "f16" else "f64", parity=at % 2, op=op.text, body=body
    )
    if form == "gradient":
        text = _GRADIENT.format(dtype=dtype)
    if form != "function" and form != "gradient":
        text = text.replace("    r = " + op.text + "  # here\n    return", "    r = a\n    return")
    lines = text.splitlines()
    marked = [i + 1 for i, row in enumerate(lines) if row.endswith("# here")]
    assert len(marked) == 1, (form, marked)
    line = marked[0]
    if kind == "loaded":  # the load is the origin
        near = range(line) if form != "function" else range(len(lines))
        line = max(n + 1 for n in near if "x[i]" in lines[n])
    iteration: tuple[int, ...] | None = (at,)
    if form == "two axes":
        iteration = divmod(at, 8)
    elif form in ("serial", "result"):
        iteration = None
    label = f"{seed}: {op_name}, {form}, {dtype}"
    return Case(label, text, line, iteration, kind, nan, dtype, x, y, w, form == "gradient")


def fault(qd: Any, one: Case, folder: Path) -> str:
    """Launch a case; return what is wrong with its finding, empty if it is right.

    qd: the engine, after ``init(debug_nan=True)``. folder: for the source.
    """
    path = folder / f"nan_case_{abs(hash((one.label, one.text)))}.py"
    path.write_text(one.text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    dtype = getattr(qd, one.dtype)
    try:
        if one.gradient:
            module.x.from_numpy(one.x)
            module.y.grad.fill(1.0)
            module.k()
            module.k.grad()
        else:
            wide = qd.f32 if one.dtype == "f16" else qd.f64
            arrays = [qd.ndarray(t, N) for t in (dtype, dtype, dtype, wide)]
            for array, data in zip(arrays, (one.x, one.y, np.ones_like(one.x), one.w), strict=True):
                array.from_numpy(data)
            module.k(*arrays)
    except qd.NanError as error:
        return _compared(one, error)
    return "no error"


def _compared(one: Case, error: Any) -> str:
    text = str(error)
    if error.line != one.line:
        return f"line {error.line}, not {one.line}: {text}"
    if one.iteration is not None and tuple(error.iteration) != one.iteration:
        return f"iteration {error.iteration}, not {one.iteration}: {text}"
    if error.kind != one.kind:
        return f"{error.kind}, not {one.kind}: {text}"
    if ("a NaN" in text) != one.nan:
        return f"{'no NaN' if one.nan else 'no infinity'}: {text}"
    return ""
