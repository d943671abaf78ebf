"""Listings made again and again print what has changed, and nothing else."""

import random

import pytest
from qd_studio.engine import ir, passes
from qd_studio.engine.config import CompileConfig
from qd_studio.engine.inspect import Recorder
from qd_studio.engine.inspect.listings import LineCache, structure
from qd_studio.engine.inspect.moves import differences
from qd_studio.engine.ir import codes as C
from qd_studio.engine.pipeline_kind import PipelineKind
from qd_studio.engine.types import f32

from tests.app.records import make_func


@pytest.fixture
def func():
    return make_func()


def printer():
    return LineCache(lambda loc: -1 if loc is ir.UNKNOWN else loc.line)


def ir_listing(func):
    full = ir.listing(func)
    lines = [-1 if loc is ir.UNKNOWN else loc.line for loc in full.locs]
    return tuple(full.lines), tuple(full.ids), tuple(lines)


def same(cache, func):
    return cache.listing(func) == ir_listing(func)


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
    old = next(text for text, id in zip(*cache.listing(func)[:2], strict=True) if id == op.id)
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


def edited(func, chance):
    """Remove ops, put in new ones, and move some, in and out of blocks, without regard to use."""
    blocks = ir.all_blocks(func.body)
    taken = []
    for block in blocks:
        kept = []
        for op in block.ops:
            way = chance.random() * 12
            if op.regions or way > 3:
                kept.append(op)
            elif way > 2:
                taken.append(op)
            elif way > 1:
                new = func.new_op(C.CONST, f32, (), 0.5, op.loc, block)
                kept += [new, op] if way > 1.5 else [op, new]
        block.ops = kept
    for op in taken:
        block = chance.choice(blocks)
        block.ops.insert(chance.randrange(len(block.ops) + 1), op)


@pytest.mark.parametrize("seed", range(40))
def test_any_edit_is_listed_and_what_came_and_went_is_known(func, seed):
    """Against the plain printer, and against the ids of both listings as sets."""
    chance = random.Random(seed)
    passes.run(func, CompileConfig(), PipelineKind.CPU, upto="after_offload" if seed % 2 else None)
    cache = printer()
    old, by_parts = cache.listing(func), 0
    for _ in range(12):
        if chance.random() < 0.5:
            edited(func, chance)
        else:  # some in one block only
            block = chance.choice([b for b in ir.all_blocks(func.body) if b.ops])
            block.ops = [op for op in block.ops if op.regions or chance.random() > 0.1]
        assert same(cache, func)
        new = cache.listing(func)
        if new is old:
            continue
        assert cache.before is old
        was, now = {*old.ids} - {-1}, {*new.ids} - {-1}
        found = differences([structure(*old[:2])], [structure(*new[:2])])
        assert (found.added, found.removed) == (len(now - was), len(was - now))
        assert [i for i, both in enumerate(found.both[:-1]) if both] == sorted(was & now)
        parts = differences(*cache.changed)
        if parts is not None:  # no op has gone from one task to another
            assert parts[:3] == found[:3]
            by_parts += 1
        old = new
    assert by_parts


def test_a_body_that_becomes_empty_and_is_filled_again(func):
    cache = printer()
    count, ops = len({*cache.listing(func).ids}) - 1, func.body.ops
    func.body.ops = []
    assert same(cache, func)
    assert differences(*cache.changed)[:3] == (0, count, 0)
    func.body.ops = ops
    assert same(cache, func)
    assert differences(*cache.changed)[:3] == (count, 0, 0)


def test_the_texts_that_changed_are_known_once(func):
    cache = printer()
    cache.listing(func)
    op = next(op for op in ir.walk(func.body) if op.code == C.MUL)
    op.args = op.args[::-1]
    cache.listing(func)
    op.args = op.args[::-1]
    other = next(op for op in ir.walk(func.body) if op.code == C.CONST)
    other.attr = 7
    cache.listing(func)
    assert cache.take_rewritten() == [other.id] and not cache.take_rewritten()


def test_only_tasks_that_may_have_changed_are_looked_at(func):
    passes.run(func, CompileConfig(), PipelineKind.CPU, upto="after_offload")
    cache = printer()
    old, (first, *_) = cache.listing(func), func.tasks()
    op = next(op for op in ir.walk(first.regions[1]) if op.code == C.MUL)
    op.args = op.args[::-1]
    assert cache.listing(func, set()) is old
    assert cache.listing(func, {first}) == ir_listing(func) != old


def test_an_op_that_passes_the_end_of_a_block_has_moved(func):
    cache = printer()
    block = next(
        b for b in ir.all_blocks(func.body) if b.owner and b.owner.block and len(b.ops) > 1
    )
    cache.listing(func)
    around, op = block.owner.block, block.ops.pop()
    around.ops.insert(around.ops.index(block.owner) + 1, op)
    assert same(cache, func)
    assert differences(*cache.changed)[:3] == (0, 0, 1)


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
