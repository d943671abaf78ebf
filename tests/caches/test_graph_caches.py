"""Caches and graph kernels: what comes from them loops, stops and resumes as what was compiled."""

import pytest

from tests.caches.lab import Lab

PROGRAM = """
import enum

ONE = qd.types.NDArray[qd.i32, 1]
FLAG = qd.types.NDArray[qd.i32, 0]

class Stage(enum.IntEnum):
    FIRST = 4
    SECOND = 2

@qd.kernel(graph=True, checkpoints=True, fastcache=True)
def k(x: ONE, left: FLAG, stop: FLAG):
    while qd.graph.do_while(left):
        with qd.checkpoint(Stage.FIRST, yield_on=stop):
            for i in x:
                x[i] += 1
        for _ in range(1):
            left[()] -= 1
    with qd.checkpoint(Stage.SECOND, yield_on=stop):
        for i in x:
            x[i] += 10

def body(x: ONE, left: FLAG):
    for i in x:
        x[i] += 1
    for _ in range(1):
        left[()] -= 1

plain = qd.kernel(fastcache=True)(body)
graph = qd.kernel(graph=True, fastcache=True)(body)
loop = qd.kernel(graph_while="left", fastcache=True)(body)

def arrays(*values):
    x, *flags = qd.ndarray(qd.i32, 2), *[qd.ndarray(qd.i32, ()) for _ in values]
    for flag, value in zip(flags, values):
        flag.fill(value)
    return x, *flags

def main():
    x, left, stop = arrays(3, 0)
    out = [repr(k(x, left, stop)), x.to_numpy().tolist()]
    stop.fill(1)
    out.append(repr(k(x, left, stop)))
    stop.fill(0)
    left.fill(2)
    status = k.resume(x, left, stop, from_checkpoint=Stage.FIRST)
    out += [repr(status), x.to_numpy().tolist()]
    for kernel in (plain, graph, loop):
        x, left = arrays(3)
        kernel(x, left)
        out.append(x.to_numpy().tolist())
    return out

def metas():
    kernels = (k, plain, graph, loop)
    return [next(iter(one.launchers.variants.values())).executable.meta for one in kernels]
"""
EXPECTED = [
    "GraphStatus(yielded=False)", [13, 13],
    "GraphStatus(yielded=True, checkpoint=<Stage.FIRST: 4>)",
    "GraphStatus(yielded=False)", [26, 26], [1, 1], [1, 1], [3, 3],
]  # fmt: skip


@pytest.fixture
def lab(tmp_path):
    found = Lab(tmp_path)
    found.write(PROGRAM)
    return found


def run(lab, **options):
    lab.options = options
    with lab.started() as module:
        value = module.main()
        seen = [lab.seen(kernel).state for kernel in (module.k, module.plain, module.graph)]
        seen.append(lab.seen(module.loop).state)
        about = [(m.graph, m.flow, m.labels) for m in module.metas()]
        return value, seen, about


def test_what_fastcache_finds_again_is_the_same_graph(lab):
    value, seen, about = run(lab)
    assert value == EXPECTED
    assert seen == ["miss"] * 4
    assert run(lab) == (EXPECTED, ["hit"] * 4, about)
    assert [graph for graph, _, _ in about] == [True, False, True, True]
    assert [item.kind for item in about[0][1]] == ["do_while", "checkpoint"]
    assert about[0][2] == (4, 2)


def test_the_offline_cache_alone_keeps_it_too(lab):
    _, _, about = run(lab, src_ll_cache=False)
    value, _, again = run(lab, src_ll_cache=False)
    assert (value, again) == (EXPECTED, about)


def test_without_graphs_the_code_is_another(lab):
    run(lab)
    value, seen, about = run(lab, graph=False)
    assert value == EXPECTED
    assert seen == ["miss"] * 4
    assert not any(graph for graph, _, _ in about)
    assert about[0][1][0].kind == "do_while"
