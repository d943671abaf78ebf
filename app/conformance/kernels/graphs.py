"""Graphs, and streams with their events."""

import enum

from .... import engine as qd
from ..feature import Group
from .kit import I32, error_of, of

graph = Group("graphs", "Graphs", ("graphs",))
A0 = qd.types.NDArray[qd.i32, 0]


def _ints(*values):
    x = qd.ndarray(qd.i32, len(values))
    x.from_numpy(of(qd.i32, *values))
    return x


def _flag(value=0):
    x = qd.ndarray(qd.i32, ())
    x.fill(value)
    return x


@graph("several loops recorded once, replayed with other arrays", [[11, 12, 13], [11, 11, 11]])
def recorded():
    @qd.kernel(graph=True)
    def k(x: I32, a: qd.i32):
        for i in x:
            x[i] += 1
        for i in x:
            x[i] += a

    x, y = _ints(0, 1, 2), _ints(0, 0, 0)
    k(x, 10)
    for a in (1, 2, 4):
        k(y, a)
    y.from_numpy(of(qd.i32, 0, 0, 0))
    k(y, 10)
    return [x.to_numpy(), y.to_numpy()]


@graph("do_while on the device or by the host", [[100, 100], 0])
def repeated():
    @qd.kernel(graph=True)
    def k(x: I32, again: A0):
        while qd.graph.do_while(again):
            for i in x:
                x[i] += 1
            again[()] = 1 if x[0] < 100 else 0

    x, again = _ints(0, 0), _flag()
    k(x, again)
    return [x.to_numpy(), again.to_numpy()]


@graph("do_while in do_while, statements around them", [[12, 12], [3]])
def nested_repeats():
    @qd.kernel(graph=True)
    def k(x: I32, rounds: I32, outer: A0, inner: A0):
        outer[()] = 3
        while qd.graph.do_while(outer):
            inner[()] = 4
            while qd.graph.do_while(inner):
                for i in x:
                    x[i] += 1
                inner[()] -= 1
            rounds[0] += 1
            outer[()] -= 1

    x, rounds = _ints(0, 0), _ints(0)
    k(x, rounds, _flag(), _flag())
    return [x.to_numpy(), rounds.to_numpy()]


@graph("local variables keep their values from round to round", 15)
def carried():
    @qd.kernel(graph=True)
    def k(x: I32, left: A0):
        total = 0
        while qd.graph.do_while(left):
            total += left[()]
            left[()] -= 1
        x[0] = total

    x = _ints(0)
    k(x, _flag(5))
    return x[0]


@graph("graph_while in the decorator", [[7, 7]])
def decorated():
    @qd.kernel(graph_while="left")
    def k(x: I32, left: A0):
        for i in x:
            x[i] += 1
        left[()] -= 1

    x = _ints(0, 0)
    k(x, _flag(7))
    return [x.to_numpy()]


@graph("parallel sections", [[3, 3]])
def sections():
    @qd.kernel(graph=True)
    def k(x: I32, y: I32):
        with qd.graph.parallel_context():
            with qd.graph.parallel():
                for i in x:
                    x[i] = 1
            with qd.graph.parallel():
                for i in y:
                    y[i] = 2
        for i in x:
            x[i] += y[i]

    x = _ints(0, 0)
    k(x, _ints(0, 0))
    return [x.to_numpy()]


@graph("checkpoints: a launch yields and is resumed", [True, 1, [1, 1], False, [11, 11]])
def checkpoints():
    class At(enum.IntEnum):
        ROOM = 1

    @qd.kernel(graph=True, checkpoints=True)
    def k(x: I32, room: qd.i32, full: A0):
        for i in x:
            x[i] = 1
        with qd.checkpoint(At.ROOM, yield_on=full):
            for _ in range(1):
                full[()] = 1 if room < 3 else 0
        for i in x:
            x[i] += 10

    x, full = _ints(0, 0), _flag()
    first = k(x, 2, full)
    seen = x.to_numpy()
    full.fill(0)
    second = k.resume(x, 3, full, from_checkpoint=At.ROOM)
    return [first.yielded, int(first.checkpoint), seen, second.yielded, x.to_numpy()]


@graph("checkpoints in a do_while", [True, [3], False, [4]])
def checkpoints_in_loops():
    @qd.kernel(graph=True, checkpoints=True)
    def k(x: I32, left: A0, stop: A0):
        while qd.graph.do_while(left):
            for i in x:
                x[i] += 1
            with qd.checkpoint(7, yield_on=stop):
                for _ in range(1):
                    left[()] -= 1
                    stop[()] = 1 if left[()] == 2 else 0

    x, left, stop = _ints(0), _flag(5), _flag()
    first = k(x, left, stop)
    seen = x.to_numpy()
    stop.fill(0)
    second = k.resume(x, left, stop, from_checkpoint=7)
    return [first.yielded, seen, second.yielded, x.to_numpy()]


@graph("what a graph must not do is an error", ["QuadrantsRuntimeError"])
def refused():
    @qd.kernel(graph=True)
    def k(x: I32):
        for i in x:
            x[i] = 1

    return [error_of(qd.QuadrantsRuntimeError, lambda: k(of(qd.i32, 0)))]


# ---- streams

streams = Group("streams", "Streams", ("streams",))


@streams("kernels on a stream, one after the other", [[3, 3], [5, 5]])
def on_a_stream():
    @qd.kernel
    def add(x: I32, a: qd.i32):
        for i in x:
            x[i] += a

    x, y = _ints(0, 0), _ints(0, 0)
    stream = qd.create_stream()
    add(x, 1, qd_stream=stream)
    add(x, 2, qd_stream=stream)
    add(y, 5)
    stream.synchronize()
    stream.destroy()
    return [x.to_numpy(), y.to_numpy()]


@streams("events between two streams", [[6, 6]])
def events():
    @qd.kernel
    def add(x: I32, a: qd.i32):
        for i in x:
            x[i] += a

    @qd.kernel
    def twice(x: I32):
        for i in x:
            x[i] *= 2

    x = _ints(0, 0)
    written = qd.create_event()
    with qd.create_stream() as one, qd.create_stream() as two:
        add(x, 3, qd_stream=one)
        written.record(one)
        written.wait(two)
        twice(x, qd_stream=two)
        written.record(two)
        written.synchronize()
    written.destroy()
    return [x.to_numpy()]


@streams("stream_parallel: blocks on streams of their own", [[3, 3], [4, 4]])
def parallel_blocks():
    @qd.kernel
    def two(x: I32, y: I32):
        with qd.stream_parallel():
            for i in x:
                x[i] = 3
        with qd.stream_parallel():
            for i in y:
                y[i] = 4

    x, y = _ints(0, 0), _ints(0, 0)
    two(x, y)
    return [x.to_numpy(), y.to_numpy()]
