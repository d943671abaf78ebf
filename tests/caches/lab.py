"""Programs that are imported again and again in one process, over a cache directory of their own.

    lab.write(TEXT)
    assert lab.run() == (4.0, "miss", "")
    assert lab.run() == (4.0, "hit", "")

A program says ``from qd_studio import engine as qd`` and has a function ``main``, which gives a
number, and a kernel ``k``. Each run imports it again, in a new program (`qd.init`) that finds
nothing in memory: so a run sees what another process would see.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from qd_studio import engine as qd
from qd_studio.engine.cache.in_process import IN_PROCESS
from qd_studio.engine.cache.observe import Observation

HEAD = """\
import dataclasses, enum, math
import numpy as np
from qd_studio import engine as qd

F32 = qd.types.NDArray[qd.f32, 1]

def call(kernel, *args):
    a = np.ones(1, np.float32)
    kernel(a, *args)
    return float(a[0])
"""

KERNEL = """
@qd.kernel(fastcache=True)
def k(a: F32) -> None:
    for i in range(1):
        a[i] = EXPRESSION

def main():
    return call(k)
"""


def kernel(expression: str) -> str:
    return KERNEL.replace("EXPRESSION", expression)


HELPERS = """
@qd.func
def double(x):
    return x * 2.0

@qd.func
def triple(x):
    return x * 3.0
"""


Row = tuple[Any, ...]
"""The head of a program, an expression, its value; an edit, the value after it, its reason."""


class Answer(NamedTuple):
    """What a run gave: its result, and what fastcache answered for ``k``."""

    value: Any
    state: str
    reason: str


class Lab:
    """Writes, edits and runs programs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.options: dict[str, Any] = {}
        self.module: Any = None

    def write(self, body: str, name: str = "lab_program", head: str = HEAD) -> None:
        path = self.folder / f"{name}.py"
        path.write_text(f"{head}\n{body}", encoding="utf-8")

    def edit(self, old: str, new: str, name: str = "lab_program") -> None:
        path = self.folder / f"{name}.py"
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new), encoding="utf-8")

    @contextmanager
    def started(self) -> Iterator[Any]:
        """The program, imported again."""
        IN_PROCESS.clear()
        for name in [n for n in sys.modules if n.startswith("lab_")]:
            del sys.modules[name]
        importlib.invalidate_caches()
        sys.path.insert(0, str(self.folder))
        # Files are edited faster than their times of change can tell.
        sys.dont_write_bytecode, before = True, sys.dont_write_bytecode
        qd.init(arch=qd.cpu, offline_cache_file_path=str(self.folder / "cache"), **self.options)
        try:
            self.module = importlib.import_module("lab_program")
            yield self.module
        finally:
            sys.dont_write_bytecode = before
            sys.path.remove(str(self.folder))
            qd.reset()

    def seen(self, kernel: Any = None) -> Observation:
        """What fastcache answered for a kernel."""
        kernel = self.module.k if kernel is None else kernel
        return kernel.launchers.observed.layers[0]

    def run(self) -> Answer:
        with self.started() as module:
            value = module.main()
            seen = self.seen()
        return Answer(value, seen.state, seen.reason)

    def warm(self) -> Any:
        """Run twice; the second time everything is found. Gives the result."""
        first, second = self.run(), self.run()
        assert first.state == "miss", first
        assert second == Answer(first.value, "hit", ""), second
        return first.value

    def warm_until(self, row: Row) -> None:
        """Check that a program is found until it is edited, and found again after that."""
        head, expression, value, edit, after, *reason = row
        self.write(head + kernel(expression))
        assert self.warm() == value
        self.edit(*edit)
        found = self.run()
        same = after == value and not reason
        assert found[:2] == (after, "hit" if same else "miss")
        assert bool(found.reason) is not same
        assert found.reason.startswith(*reason or ("",))
        assert self.run()[:2] == (after, "hit")

    def never_kept(self, row: Row) -> None:
        """Check that a program is not stored, for a reason with all texts of the row."""
        head, expression, value, *reason = row
        path = str(self.folder / "numbers.bin")
        self.write((head + kernel(expression)).replace("PATH", path))
        for _ in range(2):
            found = self.run()
            assert found.state == "bypass" and abs(found.value - value) <= 1e-6 * abs(value)
            assert found.reason.startswith("`") and all(text in found.reason for text in reason)
        assert not self.module.k._primal.src_ll_cache_observations.cache_stored
