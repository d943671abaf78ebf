"""What the programs of the cache tests have in common: the head of each of them.

``calls(kernel, make, make, ...)`` calls a kernel with the arguments that each function makes, every
time in a new program (`qd.init`), and gives ``[result, flags]`` for each call. Flags are letters:
g the fast key was made, v an entry was found and its sources match, l its kernel was loaded,
s an entry was stored.
"""

import json
import subprocess
import sys
from pathlib import Path

from tests.reference import corpus

CHILD = Path(__file__).with_name("corpus_child.py")
ROOT = CHILD.parents[2]

HEAD = """
import dataclasses
import enum
import math
import os

import numpy as np

import quadrants as qd

F32 = qd.types.NDArray[qd.f32, 1]


def array(values, dtype=qd.f32):
    made = qd.ndarray(dtype, np.shape(values))
    made.from_numpy(np.asarray(values, np.float64 if dtype is qd.f64 else np.float32))
    return made


def ones(n=4):
    return array(np.ones(n))


def flags(kernel):
    seen = kernel._primal.src_ll_cache_observations
    flags = (seen.cache_key_generated, seen.cache_validated, seen.cache_loaded, seen.cache_stored)
    return "".join(letter for letter, on in zip("gvls", flags) if on)


def result_of(value, args):
    if value is None:
        value = args[0]
        if not isinstance(value, np.ndarray):
            value = value.to_numpy() if hasattr(value, "to_numpy") else value.numpy()
    return np.asarray(value).tolist()


def calls(kernel, *makers, **options):
    out = []
    for make in makers:
        qd.init(arch=qd.cpu, **options)
        args = make()
        value = kernel(*args)
        out.append([result_of(value, args), flags(kernel)])
    return out
"""

NEW = "gs"
"""Flags of a call that compiled and stored."""
WARM = "gvl"
"""Flags of a call that loaded."""
NEVER = ""
"""Flags of a call of a kernel that is not looked up by its source."""

SCALE = """
@qd.kernel(fastcache=True)
def scale(a: F32) -> None:
    for i in range(a.shape[0]):
        a[i] = a[i] * 2.0


def main():
    return calls(scale, lambda: (ones(),))
"""


ASSIGN = """
@qd.kernel(fastcache=True)
def assign(a: F32) -> None:
    for i in range(a.shape[0]):
        a[i] = VALUE


def main():
    return calls(assign, lambda: (ones(1),))
"""


def assign(value: str) -> str:
    """A program that assigns an expression."""
    return ASSIGN.replace("VALUE", value)


def program(body: str) -> str:
    """A whole program with this body."""
    return f"{HEAD}\n{body}"


def values(run) -> list:
    """The results of a run whose ``main`` gave those of `calls`."""
    return [value for value, _ in run.result]


def letters(run) -> list[str]:
    """The flags of such a run."""
    return [flags for _, flags in run.result]


def cases(runs, body: str, expected: str) -> list:
    """Run a program whose ``main`` gives `calls` in two processes; its values.

    expected: for each call of the first process, ``n`` for a key that is new, ``=`` for one that an
    earlier call had. In the second process all load, with the same values.
    """
    runs.write(program(body))
    first = runs.run()
    assert letters(first) == [{"n": NEW, "=": WARM}[kind] for kind in expected], first.stderr
    second = runs.run()
    assert letters(second) == [WARM] * len(expected)
    assert not second.parses and not second.ran_llvm
    assert values(first) == values(second)
    return values(second)


def corpus_cases(runs, program: str, names: list[str], arch: str = "cpu", **env: str) -> dict:
    """What cases of a program of the corpus give, with the caches on, in a process of their own."""
    out = runs.folder / "out"
    out.unlink(missing_ok=True)
    path = corpus.HERE / "programs" / f"{program}.py"
    subprocess.run(
        [sys.executable, str(CHILD), str(path), str(out), arch, *names],
        env=runs.environment(PYTHONPATH=str(ROOT), **env), check=True, timeout=300,
        cwd=runs.folder, capture_output=True,
    )  # fmt: skip
    lines = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    return {line.pop("name"): line for line in lines if "name" in line}
