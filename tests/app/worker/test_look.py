"""The pass run on the screen is reported before the passes after it have run."""

from __future__ import annotations

import pytest
from qd_studio.engine import inspect
from qd_studio.engine.config import CompileConfig
from qd_studio.engine.inspect.record import KernelRecord

SOURCE = """
from qd_studio import engine as qd

@qd.kernel
def scale(x: qd.types.NDArray[qd.f32, 1], a: qd.f32):
    for i in x:
        y = x[i] * a
        x[i] = y + 1.0 * 2.0
"""


class Recorded(inspect.Steps):
    def __init__(self) -> None:
        self.records: list[KernelRecord] = []

    def updated(self, kernel: KernelRecord) -> None:
        self.records.append(kernel)


@pytest.fixture
def kernel(tmp_path):
    path = tmp_path / "scaled.py"
    path.write_text(SOURCE)
    space: dict = {"__name__": "scaled", "__file__": str(path)}
    exec(compile(SOURCE, str(path), "exec"), space)
    return space["scale"]


def compiles(kernel, look):
    steps = Recorded()
    capture = inspect.KernelCapture(kernel, ("cpu", "interp"), CompileConfig(), steps, shown=look)
    capture.compile()
    backends = [record.backend("cpu") for record in steps.records]
    return [(b.reason, b.compile.runs) for b in backends if b is not None and b.compile]


def test_without_a_look_the_passes_are_reported_of_once_they_are_over(kernel):
    assert compiles(kernel, None)[0][0] == "generating code"


def test_the_first_run_with_an_effect_is_reported_of_at_once(kernel):
    (doing, runs), (_, whole), *_ = compiles(kernel, inspect.ShownRun())
    assert doing == "running passes"
    assert [r.state for r in runs].count("changed") == 1 and runs[-1].state == "changed"
    assert whole[: len(runs)] == runs and len(whole) > len(runs)


def test_a_run_is_found_by_its_name_and_number(kernel):
    whole = compiles(kernel, None)[-1][1]
    names = [(r.stage, r.round, r.task, r.name) for r in whole]
    twice = next(i for i, name in enumerate(names) if name in names[:i])
    name = (*names[twice], names[:twice].count(names[twice]))
    doing, runs = compiles(kernel, inspect.ShownRun(name))[0]
    assert doing == "running passes" and len(runs) == twice + 1


def test_a_run_that_is_no_longer_there_delays_nothing(kernel):
    look = inspect.ShownRun(("simplify_I", 1, None, "no_such_pass", 0))
    assert compiles(kernel, look)[0][0] == "generating code"
