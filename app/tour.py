"""``qd-studio tour``: a walk through the studio, on a file of its own in a temporary folder."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from typing import Final

from . import streams
from .options import no_color, screen
from .usage import EXIT_ENVIRONMENT, Failure, Parser

__all__ = ["main", "parser"]

_KERNELS: Final = '''\
"""Kernels of the tour. The folder is a temporary one: change them as you like."""

import numpy as np
from qd_studio import engine as qd


@qd.kernel
def smooth(x: qd.types.NDArray[qd.f32, 1], y: qd.types.NDArray[qd.f32, 1], a: qd.f32):
    for i in range(1, x.shape[0] - 1):
        near = x[i - 1] + x[i + 1]
        y[i] = a * x[i] + (1 - a) / 2 * near


@qd.kernel
def total(x: qd.types.NDArray[qd.f32, 1]) -> qd.f32:
    s = 0.0
    for i in range(x.shape[0]):
        s += x[i] * x[i]
    return s


@smooth.workload(n=[1 << 12, 1 << 20], bytes=lambda n: 8 * n, flops=lambda n: 4 * n)
def noise(n):
    return np.random.default_rng(1).random(n, np.float32), np.zeros(n, np.float32), 0.5


@total.workload(n=[1 << 12, 1 << 20], bytes=lambda n: 4 * n, flops=lambda n: 2 * n)
def numbers(n):
    return (np.random.default_rng(2).random(n, np.float32),)
'''
_CHANGE: Final = ("(1 - a) / 2 * near", "(1 - a) * 0.25 * near + (1 - a) * 0.25 * near")


def parser() -> Parser:
    """The arguments."""
    made = Parser(
        prog="qd-studio tour",
        description="A tour through the studio in ten steps, on kernels in a temporary folder.",
    )
    made.add_argument("--no-color", action="store_true", help="no colours")
    screen(made)
    return made


def main(words: list[str]) -> int:
    """Run the command and return the exit code."""
    options = parser().parse_args(words)
    if not streams.has_screen():
        raise Failure(EXIT_ENVIRONMENT, "the tour needs a terminal to draw on; see docs/studio.md")
    from .tui.run import run_studio
    from .tui.tour import Tour

    with tempfile.TemporaryDirectory(prefix="qd-studio-tour-") as folder:
        path = os.path.join(folder, "tour_kernels.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(_KERNELS)
        return run_studio(
            [path],
            tour=Tour(change=_changes(path)),
            no_color=no_color(options),
            theme=options.theme,
            keymap=options.keymap,
            command=("qd-studio", "tour"),
        )


def _changes(path: str) -> Callable[[], None]:
    """Changes a line of the file, as an editor does."""

    def change() -> None:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.replace(*_CHANGE))

    return change
