"""Differentiable kernels as trees of statements, and as source text; `slopes` generates them.

The containers of every such kernel are the same; `slopes` tells what they are for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

__all__ = [
    "ARGUMENTS", "COLUMNS", "ROWS", "Made", "N", "Node", "source_of", "statements", "values",
    "without",
]  # fmt: skip

N, ROWS, COLUMNS = 4, 3, 4


class Node(NamedTuple):
    """A statement. text: its line, without an end for a block. bodies: of a block, and its else."""

    text: str
    bodies: tuple[tuple[Node, ...], ...] = ()


class Made(NamedTuple):
    """A generated kernel. functions: `qd.func`s that it calls."""

    name: str
    seed: int
    body: tuple[Node, ...]
    functions: tuple[str, ...] = ()
    real: str = "f64"


HEAD = """\
from qd_studio import engine as qd

real = qd.{real}
p = qd.field(real, shape={n}, needs_grad=True)
w = qd.field(real, shape=({rows}, {columns}), needs_grad=True)
loss = qd.field(real, shape=(), needs_grad=True)
q = qd.field(qd.i32, shape={n})
R1 = qd.types.ndarray(real, 1)
R2 = qd.types.ndarray(real, 2)
I1 = qd.types.ndarray(qd.i32, 1)
"""
PARAMETERS = "x: R1, u: R2, y: R1, t: R1, c: I1, o: I1, n: qd.i32, a: real"
ARGUMENTS = ("x", "u", "y", "t", "c", "o", "n", "a")


def source_of(made: Made) -> str:
    """The module of a kernel: its fields, functions and the kernel ``kernel``."""
    lines = [HEAD.format(real=made.real, n=N, rows=ROWS, columns=COLUMNS)]
    lines += [f"\n{text}\n" for text in made.functions]
    lines += ["", "@qd.kernel", f"def kernel({PARAMETERS}):"]
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


def values(seed: int, real: str) -> dict[str, object]:
    """Contents of all arrays and fields, and the scalars."""
    r = np.random.default_rng(seed)
    t = np.float64 if real == "f64" else np.float32

    def some(*shape: int) -> np.ndarray:
        return r.uniform(0.3, 1.4, shape).astype(t)

    return {
        "x": some(N), "u": some(ROWS, COLUMNS), "y": some(N), "t": some(N), "p": some(N),
        "w": some(ROWS, COLUMNS), "loss": some(),
        "c": r.integers(0, 4, N).astype(np.int32), "o": r.integers(0, N, N).astype(np.int32),
        "q": r.integers(0, 4, N).astype(np.int32), "n": int(r.integers(0, 4)),
        "a": float(t(r.uniform(0.5, 1.5))),
    }  # fmt: skip


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
