"""qd.BufferView: what differs by backend, by bounds checks and from the reference."""

import copy
import dataclasses
import pickle

import numpy as np
import pytest
from qd_studio import engine as qd


def numbers(n=8, dtype=qd.f32):
    x = qd.ndarray(dtype, n)
    x.from_numpy(np.arange(n))
    return x


@pytest.fixture(params=["cpu", "interp"])
def start(request):
    def init(**options):
        qd.init(arch=getattr(qd, request.param), **options)

    yield init
    qd.reset()


@qd.kernel
def fill(v: qd.BufferView[qd.f32], n: qd.i32, value: qd.f32):
    for i in range(n):
        v[i] = value


@qd.kernel
def fill_inner(v: qd.BufferView[qd.f32], first: qd.i32, n: qd.i32):
    s = v.subview(first, n)
    for i in range(s.size):
        s[i] = -1.0


@qd.kernel
def make(x: qd.types.ndarray(qd.f32, 1), first: qd.i32, n: qd.i32):
    v = qd.BufferView(x, first, n)
    for i in range(v.size):
        v[i] = -1.0


def test_one_compile_serves_views_of_all_ranges(start):
    start(offline_cache=False)
    x = numbers()
    for first in range(8):
        for n in range(8 - first):
            fill(x[first : first + n], n, first)
    expected = np.arange(8.0)
    for first in range(8):
        for n in range(8 - first):
            expected[first : first + n] = first
    assert x.to_numpy().tolist() == expected.tolist()
    assert len(fill.launchers.variants) == 1


def test_indices_and_ranges_are_checked_against_the_view(start):
    start(debug=True)
    x = numbers()
    fill(x[2:5], 3, 9)
    with pytest.raises(
        qd.QuadrantsAssertionError,
        match=r"Out Of Range: kernel\[fill\], view 'v', got index 3 \(offset=2, size=3\)",
    ) as caught:
        fill(x[2:5], 4, 9)
    assert caught.value.span.source_line.strip() == "v[i] = value"
    for first, n in ((1, 3), (4, 0), (-1, 2), (0, -1)):
        with pytest.raises(
            qd.QuadrantsAssertionError,
            match=rf"subview offset={first}, subview size={n}, parent size=3",
        ):
            fill_inner(x[2:5], first, n)
    fill_inner(x[2:5], 1, 2)
    fill_inner(x[2:5], 3, 0)
    with pytest.raises(qd.QuadrantsAssertionError, match="size=3, ndarray length=8"):
        make(x, 6, 3)
    make(x, 6, 2)
    assert x.to_numpy().tolist() == [0, 1, 9, -1, -1, 5, -1, -1]


def test_a_local_name_may_get_another_range(start):
    start()

    @qd.kernel
    def k(v: qd.BufferView[qd.f32], c: qd.i32):
        s = v[0:2]
        if c > 0:
            s = v[2:6]
        for i in range(s.size):
            s[i] = i + 10 * s.size

    x, y = numbers(), numbers()
    k(x[1:], 0)
    k(y[1:], 1)
    assert x.to_numpy().tolist() == [0, 20, 21, 3, 4, 5, 6, 7]
    assert y.to_numpy().tolist() == [0, 1, 2, 40, 41, 42, 43, 7]


def test_memory_other_than_of_an_ndarray(start):
    start()
    x = np.zeros(8, np.float32)
    fill(qd.BufferView(x, 2, 3), 3, 2)
    assert x.tolist() == [0, 0, 2, 2, 2, 0, 0, 0]
    t = qd.tensor(qd.f32, 8)
    fill(t[2:4], 2, 5)
    assert t.to_numpy().tolist() == [0, 0, 5, 5, 0, 0, 0, 0]
    with pytest.raises(TypeError, match="requires a 1D ndarray, got ScalarField"):
        qd.BufferView(qd.field(qd.f32, 8), 0, 2)
    with pytest.raises(TypeError, match="with gradients"):
        qd.ndarray(qd.f32, 8, needs_grad=True)[2:]


def test_a_view_in_an_object_or_none(start):
    start()

    @qd.data_oriented
    class Part:
        def __init__(self, v):
            self.v = v

        @qd.kernel
        def fill(self, value: qd.f32):
            for i in range(self.v.size):
                self.v[i] = value

    @dataclasses.dataclass
    class Pair:
        a: qd.BufferView
        n: qd.i32

    @qd.kernel
    def maybe(v: qd.BufferView[qd.f32] | None, pair: Pair):
        if qd.static(v is not None):
            v[0] += 10
        pair.a[0] = pair.n

    x = numbers()
    part = Part(x[1:3])
    part.fill(7)
    part.v = x[2:4]
    part.fill(8)
    maybe(x[5:], Pair(x[6:], 9))
    maybe(None, Pair(x[7:], 9))
    assert x.to_numpy().tolist() == [0, 7, 8, 8, 4, 15, 9, 9]


def test_a_view_is_an_object_of_python(start):
    start()
    x = numbers()
    view = x[2:5]
    assert copy.copy(view).arr is x
    again = pickle.loads(pickle.dumps(view))
    assert (again.offset, again.size, again.arr.to_numpy().tolist()) == (2, 3, [*range(8)])
    assert repr(view) == "<qd.BufferView [2:5] of <qd.ndarray f32 (8,)>>"
    assert repr(qd.BufferView[qd.f32]) == "BufferViewType(dtype=f32)"
    assert qd.BufferView[qd.f32, "clamp"].boundary == "clamp"
    assert qd.types.BufferViewType is qd.types.buffer_view_type.BufferViewType


MISTAKES = {
    "nested": ("qd.BufferView(v, 0, 1)", r"Cannot nest BufferView"),
    "attribute": ("v.size + v.stride", r'no attribute "stride" in a kernel'),
    "negative": ("v[-1]", "Negative indices are not supported"),
    "real": ("v.subview(0, 1.5)", "a size must be an integer, however 'f32'"),
    "length": ("len(v)", r"has no len\(\) in a kernel"),
    "array": ("qd.BufferView(y, 0, 1)", "requires a 1D ndarray, got 2d ndarray"),
    "argument": ("plain(y)", "must be a BufferView, got ndarray y"),
}


@qd.func
def plain(v: qd.BufferView):
    return v[0]


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_in_kernels(start, tmp_path, mistake):
    start()
    text, message = MISTAKES[mistake]
    file = tmp_path / "mistake.py"
    file.write_text(
        "from qd_studio import engine as qd\nfrom tests.lang.test_buffer_view import plain\n"
        "@qd.kernel\ndef k(v: qd.BufferView[qd.f32], y: qd.types.ndarray(ndim=2)):\n"
        f"    {text}\n"
    )
    names = {"__file__": str(file)}
    exec(compile(file.read_text(), str(file), "exec"), names)
    with pytest.raises(qd.QuadrantsCompilationError, match=message) as caught:
        names["k"](numbers()[:], qd.ndarray(qd.f32, (2, 2)))
    assert caught.value.span.line == 5


def test_a_template_cannot_be_a_view(start):
    start()

    @qd.kernel
    def k(v: qd.template()):
        v[0] = 1

    with pytest.raises(qd.QuadrantsRuntimeTypeError, match="which a template parameter cannot be"):
        k(numbers()[:])
