"""Graph kernels: loops in loops, checkpoints, sections, streams, in every configuration.

What each computes is written out in NumPy, or in Python over the same steps.
"""

import dataclasses
import enum

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine.backends.flow import flow_text

from .graphkit import flag, ints

A1, A0 = qd.types.NDArray[qd.i32, 1], qd.types.NDArray[qd.i32, 0]
F1 = qd.types.NDArray[qd.f32, 1]
pytestmark = pytest.mark.usefixtures("configured")


def meta_of(kernel):
    return next(iter(kernel.launchers.variants.values())).executable.meta


def test_loops_in_loops_and_side_by_side():
    @qd.kernel(graph=True)
    def k(x: A1, outer: A0, inner: A0, last: A0):
        for i in x:
            x[i] = 1
        while qd.graph.do_while(outer):
            inner[()] = 2
            while qd.graph.do_while(inner):
                for i in x:
                    x[i] += 10
                inner[()] -= 1
            for i in x:
                x[i] += 100
            outer[()] -= 1
        x[0] += 5
        while qd.graph.do_while(last):
            for i in x:
                x[i] *= 2
            last[()] -= 1

    for _ in range(3):
        x, outer, inner, last = ints(0, 0), flag(3), flag(9), flag(2)
        k(x, outer, inner, last)
        assert list(x.to_numpy()) == [4 * (1 + 3 * 120 + 5), 4 * (1 + 3 * 120)]
    assert flow_text(meta_of(k)).splitlines()[1] == "do_while outer"


def test_variables_of_a_round_begin_at_zero_and_others_last():
    @qd.kernel(graph=True)
    def k(x: A1, sums: A1, left: A0):
        rounds = 0
        total = 0
        start = left[()]
        while qd.graph.do_while(left):
            mine = 0
            for i in x:
                mine += x[i]
            for i in x:
                x[i] = x[i] + mine - mine + 1
            sums[rounds] = mine
            total += mine
            rounds += 1
            left[()] -= 1
        sums[5] = rounds
        sums[6] = total
        sums[7] = start

    x, sums, left = ints(1, 2, 3), ints(*[0] * 8), flag(3)
    k(x, sums, left)
    assert list(sums.to_numpy()) == [6, 9, 12, 0, 0, 3, 27, 3]


def test_arrays_of_a_round_are_empty_at_its_start():
    @qd.kernel(graph=True)
    def k(out: A1, left: A0):
        while qd.graph.do_while(left):
            v = qd.Vector([0, 0, 0, 0, 0, 0])
            j = left[()]
            v[j] = 7
            for i in range(6):
                out[i] += v[i]
            left[()] -= 1

    out, left = ints(*[0] * 6), flag(3)
    k(out, left)
    assert list(out.to_numpy()) == [0, 7, 7, 7, 0, 0]


@pytest.mark.parametrize("many", [1, 5])
def test_bounds_are_read_in_each_round(many):
    @qd.kernel(graph=True)
    def k(x: A1, n: A0, left: A0):
        while qd.graph.do_while(left):
            for i in range(n[()]):
                x[i] += 1
            n[()] -= 1
            left[()] -= 1

    x, n, left = ints(*[0] * 8), flag(8), flag(many)
    k(x, n, left)
    assert list(x.to_numpy()) == [sum(8 - r > i for r in range(many)) for i in range(8)]


def test_rounds_draw_other_numbers():
    @qd.kernel(graph=True)
    def k(x: F1, left: A0):
        while qd.graph.do_while(left):
            for i in range(2):
                x[2 * left[()] + i] = qd.random()
            left[()] -= 1

    x, left = qd.ndarray(qd.f32, 22), flag(10)
    k(x, left)
    values = list(x.to_numpy()[2:])
    assert len(set(values)) == 20
    left.fill(10)
    k(x, left)
    assert len({*values, *x.to_numpy()[2:]}) == 40


@dataclasses.dataclass
class State:
    x: A1
    again: A0


@qd.data_oriented
class Body:
    def __init__(self, n):
        self.step = n
        self.x = ints(0, 0)
        self.left = flag(0)
        self.stop = flag(0)

    @qd.kernel(graph=True)
    def run(self):
        while qd.graph.do_while(self.left):
            for i in self.x:
                self.x[i] += self.step
            self.left[()] -= 1

    @qd.kernel(graph=True, checkpoints=True)
    def staged(self, by: qd.i32):
        for i in self.x:
            self.x[i] += by
        with qd.checkpoint(3, yield_on=self.stop):
            for i in self.x:
                self.x[i] += 10 * by


def test_members_of_objects_and_dataclasses():
    body, other = Body(2), Body(5)
    for one in (body, other):
        one.left.fill(3)
        one.run()
        one.left.fill(1)
        one.run()
    assert list(body.x.to_numpy()) == [8, 8]
    assert list(other.x.to_numpy()) == [20, 20]
    assert body.staged(1) == qd.GraphStatus()
    assert body.staged.resume(2, from_checkpoint=3) == qd.GraphStatus()
    assert Body.staged.resume(body, 1, from_checkpoint=3) == qd.GraphStatus()
    assert list(body.x.to_numpy()) == [8 + 11 + 20 + 10] * 2
    body.stop.fill(1)
    assert body.staged(1).checkpoint == 3

    @qd.kernel(graph=True)
    def k(state: State, n: qd.i32):
        while qd.graph.do_while(state.again):
            for i in state.x:
                state.x[i] += n
            state.again[()] -= 1

    state = State(ints(1), flag(4))
    k(state, 10)
    assert list(state.x.to_numpy()) == [41]


class Stage(enum.IntEnum):
    FIRST = 1
    SECOND = 6


@qd.kernel(graph=True, checkpoints=True)
def stages(x: A1, left: A0, one: A0, two: A0):
    n = x[0]
    for i in x:
        x[i] += 1
    with qd.checkpoint(Stage.FIRST, yield_on=one):
        for i in x:
            x[i] += 10
    x[1] += n
    while qd.graph.do_while(left):
        for i in x:
            x[i] += 100
        with qd.checkpoint(Stage.SECOND, yield_on=two):
            for _ in range(1):
                x[0] += 1000
        for _ in range(1):
            left[()] -= 1
    for i in x:
        x[i] += 10000


def test_checkpoints_run_to_the_end_without_a_flag():
    for _ in range(3):
        x = ints(0, 0)
        status = stages(x, flag(2), flag(0), flag(0))
        assert (status.yielded, status.checkpoint) == (False, None)
        assert list(x.to_numpy()) == [12211, 10211]
        assert repr(status) == "GraphStatus(yielded=False)"


def test_a_launch_stops_at_a_checkpoint_whose_flag_is_set():
    x = ints(0, 0)
    for n in range(1, 4):
        status = stages(x, flag(2), flag(5), flag(0))
        assert status.yielded
        assert status.checkpoint is Stage.FIRST
        assert list(x.to_numpy()) == [11 * n, 11 * n]
    assert repr(status) == "GraphStatus(yielded=True, checkpoint=<Stage.FIRST: 1>)"
    x, left = ints(0, 0), flag(2)
    assert stages(x, left, flag(0), flag(1)).checkpoint is Stage.SECOND
    assert list(x.to_numpy()) == [1111, 111]
    assert left.to_numpy() == 2


def test_resume_runs_the_block_again_and_all_that_follows():
    x = ints(5, 0)
    status = stages.resume(x, flag(2), flag(0), flag(0), from_checkpoint=Stage.FIRST)
    assert status == qd.GraphStatus()
    assert list(x.to_numpy()) == [5 + 12210, 10210 + 5]


def test_resume_enters_a_loop_at_the_block():
    x = ints(5, 0)
    status = stages.resume(x, flag(3), flag(1), flag(0), from_checkpoint=6)
    assert status == qd.GraphStatus()
    # Two whole rounds; of the first one the block and what follows it. x[1] += n always runs.
    assert list(x.to_numpy()) == [5 + 10000 + 3000 + 200, 10000 + 200 + 5]
    x = ints(0, 0)
    assert stages.resume(x, flag(3), flag(1), flag(1), from_checkpoint=6).checkpoint == 6
    assert list(x.to_numpy()) == [1000, 0]
    x = ints(0, 0)
    assert not stages(x, flag(1), flag(0), flag(0)).yielded


def test_a_loop_before_the_block_is_passed_over():
    @qd.kernel(graph=True, checkpoints=True)
    def k(x: A1, left: A0, stop: A0):
        while qd.graph.do_while(left):
            x[0] += 1
            left[()] -= 1
        with qd.checkpoint(0, yield_on=stop):
            for i in x:
                x[i] += 10

    x, left = ints(0, 0), flag(3)
    k.resume(x, left, flag(0), from_checkpoint=0)
    assert list(x.to_numpy()) == [10, 10]
    assert left.to_numpy() == 3
    k(x, left, flag(0))
    assert list(x.to_numpy()) == [23, 20]


def test_a_kernel_without_named_checkpoints_returns_nothing():
    @qd.kernel(graph=True, checkpoints=True)
    def k(x: A1):
        for i in x:
            x[i] += 1

    x = ints(1)
    assert k(x) is None
    assert meta_of(k).flow == ()


def test_sections_in_and_outside_of_loops():
    @qd.kernel(graph=True)
    def k(x: A1, y: A1, z: A1, left: A0):
        with qd.graph.parallel_context():
            for n in qd.static(range(2)):
                with qd.graph.parallel():
                    for i in range(2):
                        x[2 * n + i] = n + 1
            if qd.static(True):
                with qd.graph.parallel():
                    y[0] = 3
                    for i in y:
                        y[i] += 1
        while qd.graph.do_while(left):
            with qd.graph.parallel_context():
                with qd.graph.parallel():
                    for i in x:
                        x[i] += 10
                with qd.graph.parallel():
                    s = 0
                    for i in y:
                        s += y[i]
                    z[0] += s
            left[()] -= 1
        for i in z:
            z[i] += x[i]

    for _ in range(3):
        x, y, z, left = ints(0, 0, 0, 0), ints(0, 0), ints(0, 0), flag(3)
        k(x, y, z, left)
        assert list(x.to_numpy()) == [31, 31, 32, 32]
        assert list(z.to_numpy()) == [31 + 3 * 5, 31]
    kinds = [item.kind for item in meta_of(k).flow if not isinstance(item, int)]
    assert kinds == ["parallel", "do_while"]


def test_streams_are_parts_of_an_ordinary_kernel():
    @qd.kernel
    def k(x: A1, y: A1):
        """Blocks with streams of their own."""
        with qd.stream_parallel():
            for i in x:
                x[i] += 1
            for i in x:
                x[i] *= 2
        with qd.stream_parallel():
            y[0] = 5
            for i in y:
                y[i] += 1

    x, y = ints(1, 2), ints(0, 0)
    k(x, y)
    k(np.zeros(2, np.int32), y)
    assert list(x.to_numpy()) == [4, 6]
    assert list(y.to_numpy()) == [6, 2]
    meta = meta_of(k)
    assert not meta.graph
    assert [(p.kind, [s.kind for s in p.items]) for p in meta.flow] == [
        ("parallel", ["section", "section"])
    ]


def test_sections_and_streams_are_differentiated_as_what_they_hold():
    x = qd.field(qd.f32, shape=2, needs_grad=True)
    y = qd.field(qd.f32, shape=2, needs_grad=True)
    loss = qd.field(qd.f32, shape=(), needs_grad=True)

    @qd.kernel(graph=True)
    def squares():
        with qd.graph.parallel_context():
            with qd.graph.parallel():
                for i in x:
                    loss[None] += x[i] * x[i]
            with qd.graph.parallel():
                for i in y:
                    loss[None] += 3.0 * y[i]

    @qd.kernel
    def streams():
        with qd.stream_parallel():
            for i in x:
                loss[None] += x[i] * x[i]
        with qd.stream_parallel():
            for i in y:
                loss[None] += 3.0 * y[i]

    for kernel in (squares, streams):
        x.from_numpy(np.array([1, 2], np.float32))
        x.grad.fill(0)
        y.grad.fill(0)
        loss.grad[None] = 1
        kernel()
        kernel.grad()
        assert list(x.grad.to_numpy()) == [2, 4]
        assert list(y.grad.to_numpy()) == [3, 3]


def test_blocks_and_functions_within_a_loop():
    @qd.func
    def halve(x, at):
        for i in x:
            if x[i] > at:
                x[i] //= 2

    @qd.kernel(graph=True)
    def k(x: A1, again: A0):
        while qd.graph.do_while(again):
            halve(x, 10)
            again[()] = 0
            qd.loop_config(block_dim=4)
            for i in range(8):
                shared = qd.simt.block.SharedArray((4,), qd.i32)
                t = qd.simt.block.thread_idx()
                shared[t] = x[i]
                qd.simt.block.sync()
                if shared[3 - t] > 10:
                    again[()] = 1

    x = ints(*range(0, 80, 10))
    k(x, flag(0))
    want = np.arange(0, 80, 10)
    while (want > 10).any():
        want[want > 10] //= 2
    assert (x.to_numpy() == want).all()


def test_asserts_in_rounds():
    qd.init(arch=qd.cpu, debug=True)

    @qd.kernel(graph=True)
    def k(x: A1, left: A0):
        while qd.graph.do_while(left):
            for i in x:
                x[i] += 1
                assert x[i] < 3
            left[()] -= 1

    x, left = ints(0), flag(100)
    with pytest.raises(qd.QuadrantsAssertionError):
        k(x, left)
        qd.sync()


def test_the_profiler_times_the_launch_as_a_whole():
    qd.init(arch=qd.cpu, kernel_profiler=True)

    @qd.kernel(graph=True)
    def looped(x: A1, left: A0):
        while qd.graph.do_while(left):
            for i in x:
                x[i] += 1
            left[()] -= 1

    for _ in range(3):
        looped(ints(0), flag(4))
    found = qd.profiler.query_kernel_profiler_info("looped")
    assert found.counter == 3
    assert found.min >= 0
