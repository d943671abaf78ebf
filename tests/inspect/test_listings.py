"""Listings made again and again print what has changed, and nothing else."""

import pytest
from qd_studio.engine import ir, passes
from qd_studio.engine.config import CompileConfig
from qd_studio.engine.inspect import Recorder
from qd_studio.engine.inspect.listings import LineCache
from qd_studio.engine.ir import codes as C
from qd_studio.engine.pipeline_kind import PipelineKind

from tests.app.records import make_func


@pytest.fixture
def func():
    return make_func()


def printer():
    return LineCache(lambda loc: -1 if loc is ir.UNKNOWN else loc.line)


def same(cache, func):
    made, full = cache.listing(func), ir.listing(func)
    lines = [-1 if loc is ir.UNKNOWN else loc.line for loc in full.locs]
    return made == (tuple(full.lines), tuple(full.ids), tuple(lines))


def test_an_unchanged_function_is_not_printed_again(func):
    cache = printer()
    assert same(cache, func)
    assert cache.printed == len(ir.walk(func.body))
    assert same(cache, func)
    assert cache.printed == len(ir.walk(func.body)) and not cache.replaced


def test_a_changed_op_alone_is_printed(func):
    cache = printer()
    cache.listing(func)
    before = cache.printed
    op = next(op for op in ir.walk(func.body) if op.code == C.MUL)
    old = cache.now[op.id]
    op.args = (op.args[1], op.args[0])
    assert same(cache, func)
    assert cache.printed == before + 1
    assert cache.replaced == {op.id: old}


@pytest.mark.parametrize("value", [-0.0, 1, True])
def test_constants_that_compare_equal_are_distinguished(func, value):
    cache = printer()
    const = next(op for op in ir.walk(func.body) if op.code == C.CONST and op.type.is_real)
    const.attr = 0.0 if value == 0 else 1.0
    cache.listing(func)
    const.attr = value
    assert same(cache, func)


def test_every_pass_leaves_a_true_listing(func):
    """The cache against the plain printer, through the whole pipeline."""
    cache = printer()

    class Both(passes.Instrument):
        def after(self, run, func):
            assert same(cache, func)

    passes.run(func, CompileConfig(), PipelineKind.CPU, (Both(),))
    assert cache.printed < sum(1 for _ in ir.walk(func.body)) * 6


def test_a_recorder_prints_an_op_once_and_when_it_changes(func):
    recorder = Recorder()
    passes.run(func, CompileConfig(), PipelineKind.CPU, (recorder,))
    lines = {id: set() for shot in recorder.snapshots for id in shot.ids if id >= 0}
    for shot in recorder.snapshots:
        for id, text in zip(shot.ids, shot.lines, strict=True):
            if id >= 0:
                lines[id].add(text.strip())
    texts = sum(len(kinds) for kinds in lines.values())
    whole = sum(shot.ops for shot in recorder.snapshots)
    # New objects may read as the old ones did, so a few are printed for nothing.
    assert texts <= recorder._lines.printed < whole / 2
