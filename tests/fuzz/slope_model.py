"""Differentiable kernels as trees of statements, and as source text; `slopes` generates them.

The containers of every such kernel are the same; `slopes` says what they are for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

__all__ = [
    "ARGUMENTS", "COLUMNS", "ROWS", "Made", "N", "Node", "arguments", "fields", "fill",
    "launch_arguments", "source_of", "statements", "values", "without",
]  # fmt: skip

N, ROWS, COLUMNS = 4, 3, 4


class Node(NamedTuple):
    """A statement. text: its line, without an end for a block. bodies: of a block, and its else."""

    text: str
    bodies: tuple[tuple[Node, ...], ...] = ()


class Made(NamedTuple):
    """A generated kernel. functions: `qd.func`s that it calls. parts: it has vectors, too.
    integer: type of the elements of integer arrays."""

    name: str
    seed: int
    body: tuple[Node, ...]
    functions: tuple[str, ...] = ()
    real: str = "f64"
    parts: bool = False
    integer: str = "i32"


HEAD = """\
import dataclasses

from qd_studio import engine as qd

real = qd.{real}
p = qd.field(real, shape={n}, needs_grad=True)
w = qd.field(real, shape=({rows}, {columns}), needs_grad=True)
loss = qd.field(real, shape=(), needs_grad=True)
q = qd.field(qd.i32, shape={n})
R1 = qd.types.ndarray(real, 1)
R2 = qd.types.ndarray(real, 2)
I1 = qd.types.ndarray(qd.{integer}, 1)
"""
PARAMETERS = "x: R1, u: R2, y: R1, t: R1, c: I1, o: I1, n: qd.i32, a: real"
ARGUMENTS = ("x", "u", "y", "t", "c", "o", "n", "a")
FIELDS = ("p", "w", "loss", "q")
PARTS_HEAD = """\
V2 = qd.types.vector(2, real)
V3 = qd.types.vector(3, real)
M2 = qd.types.matrix(2, 2, real)
S = qd.types.struct(a=real, v=V2)
pv = qd.Vector.field(3, real, shape={n}, needs_grad=True)
pm = qd.Matrix.field(2, 2, real, shape={n}, needs_grad=True)
ps = S.field(shape={n}, needs_grad=True)
ov = qd.Vector.field(2, real, shape={n}, needs_grad=True, layout=qd.Layout.SOA)
qs = S.field(shape={n}, needs_grad=True)
qv = qd.Vector.field(2, qd.i32, shape={n})
AV2 = qd.types.ndarray(V2, 1)
AI2 = qd.types.ndarray(qd.types.vector(2, qd.{integer}), 1)
AV3 = qd.types.ndarray(V3, 1)
AM2 = qd.types.ndarray(M2, 1)


@dataclasses.dataclass
class Box:
    b: I1
    k: qd.i32
"""
PARTS_PARAMETERS = ", xv: AV2, xm: AM2, x2: R1, yv: AV3, kv: V2, cv: AI2, box: Box"
PARTS_ARGUMENTS = ("xv", "xm", "x2", "yv", "kv", "cv", "box")
PARTS_FIELDS = ("pv", "pm", "ps", "ov", "qs", "qv")


def arguments(made: Made) -> tuple[str, ...]:
    """The names of the kernel's parameters."""
    return (*ARGUMENTS, *PARTS_ARGUMENTS) if made.parts else ARGUMENTS


def fields(made: Made) -> tuple[str, ...]:
    """The names of the fields of the kernel's module."""
    return (*FIELDS, *PARTS_FIELDS) if made.parts else FIELDS


def fill(made: Made, module: Any, held: dict[str, Any]) -> None:
    """Give all fields of a kernel's module what ``held`` says."""
    for name in fields(made):
        getattr(module, name).from_numpy(held[name])


def source_of(made: Made) -> str:
    """The module of a kernel: its fields, functions and the kernel ``kernel``."""
    lines = [HEAD.format(real=made.real, integer=made.integer, n=N, rows=ROWS, columns=COLUMNS)]
    more = ""
    if made.parts:
        lines.append(PARTS_HEAD.format(n=N, integer=made.integer))
        more = PARTS_PARAMETERS
    lines += [f"\n{text}\n" for text in made.functions]
    lines += ["", "@qd.kernel", f"def kernel({PARAMETERS}{more}):"]
    _write(made.body, 1, lines)
    return "\n".join(lines) + "\n"


def _write(body: tuple[Node, ...], depth: int, lines: list[str]) -> None:
    pad = "    " * depth
    for node in body:
        lines.append(pad + node.text)
        for k, inner in enumerate(node.bodies):
            if k:
                if not inner:
                    continue
                lines.append(pad + "else:")
            _write(inner or (Node("pass"),), depth + 1, lines)
    if not body and depth == 1:
        lines.append(pad + "pass")


def launch_arguments(made: Made, module: Any, held: dict[str, Any]) -> list[Any]:
    """The kernel's arguments, with what ``held`` says."""
    return [
        module.Box(held["b"], held["k"]) if name == "box" else held[name]
        for name in arguments(made)
    ]


def values(seed: int, real: str, integer: str = "i32") -> dict[str, Any]:
    """Contents of all arrays and fields, and the scalars."""
    r = np.random.default_rng(seed)
    t = np.float64 if real == "f64" else np.float32
    small = np.dtype(f"{integer[0]}{int(integer[1:]) // 8}").type

    def some(*shape: int) -> np.ndarray:
        return r.uniform(0.3, 1.4, shape).astype(t)

    held: dict[str, Any] = {
        "x": some(N), "u": some(ROWS, COLUMNS), "y": some(N), "t": some(N), "p": some(N),
        "w": some(ROWS, COLUMNS), "loss": some(),
        "c": r.integers(0, 4, N).astype(small), "o": r.integers(0, N, N).astype(small),
        "q": r.integers(0, 4, N).astype(np.int32), "n": int(r.integers(0, 4)),
        "a": float(t(r.uniform(0.5, 1.5))),
    }  # fmt: skip
    held |= {"xv": some(N, 2), "xm": some(N, 2, 2), "x2": some(N), "yv": some(N, 3),
             "kv": some(2), "pv": some(N, 3), "pm": some(N, 2, 2), "ov": some(N, 2)}  # fmt: skip
    held |= {name: {"a": some(N), "v": some(N, 2)} for name in ("ps", "qs")}
    held |= {"cv": r.integers(0, 4, (N, 2)).astype(small), "k": int(r.integers(0, 4)),
             "qv": r.integers(0, 4, (N, 2)).astype(np.int32),
             "b": r.integers(0, 4, N).astype(small)}  # fmt: skip
    return held


def statements(body: tuple[Node, ...], path: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
    """Paths to every statement, outer before inner: position, body, position, ..."""
    for k, node in enumerate(body):
        yield (*path, k)
        for b, inner in enumerate(node.bodies):
            yield from statements(inner, (*path, k, b))


def without(body: tuple[Node, ...], path: tuple[int, ...], unwrap: bool) -> tuple[Node, ...]:
    """The tree without a statement, or with a block's own body in its place."""
    k, *rest = path
    node = body[k]
    if rest:
        b, *deeper = rest
        bodies = list(node.bodies)
        bodies[b] = without(bodies[b], tuple(deeper), unwrap)
        return (*body[:k], node._replace(bodies=tuple(bodies)), *body[k + 1 :])
    inside = node.bodies[0] if unwrap and node.bodies else ()
    return (*body[:k], *inside, *body[k + 1 :])
