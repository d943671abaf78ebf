"""Pieces of programs as people write them, each of which once went wrong."""

import numpy as np
import pytest
from qd_studio import engine as qd

F1 = qd.types.ndarray(dtype=qd.f32, ndim=1)


pytestmark = pytest.mark.usefixtures("arch")


def test_members_called_like_methods_of_a_field():
    """A tree's nodes have a parent, an optimiser's parameters a grad."""
    node = qd.types.struct(parent=qd.i32, grad=qd.types.vector(2, qd.f32), fill=qd.f32)
    nodes = node.field(shape=3)

    @qd.kernel
    def build():
        for i in nodes:
            nodes[i].parent = i - 1
            nodes.parent[i] += 10
            nodes[i].grad = qd.Vector([i, 2 * i])
            nodes.fill[i] = nodes.grad[i].y + 0.5

    build()
    assert nodes.parent.to_numpy().tolist() == [9, 10, 11]
    assert nodes.grad.to_numpy().tolist() == [[0, 0], [1, 2], [2, 4]]
    assert nodes.fill.to_numpy().tolist() == [0.5, 2.5, 4.5]
    assert nodes[1].parent == 10
    assert nodes[2].grad.y == 4


@qd.kernel
def medians(src: F1, out: F1):
    for i in range(4, src.shape[0] - 4):
        v = qd.Vector([0.0] * 9)
        for k in qd.static(range(9)):
            v[k] = src[i + k - 4]
        for p in range(9):
            for q in range(8 - p):
                if v[q] > v[q + 1]:
                    v[q], v[q + 1] = v[q + 1], v[q]
        out[i] = v[4]


def test_sorting_a_local_vector():
    src = np.random.default_rng(0).random(64).astype(np.float32)
    out = np.zeros(64, np.float32)
    medians(src, out)
    assert out[4:60].tolist() == [np.median(src[i - 4 : i + 5]) for i in range(4, 60)]


TABLE = np.array([0.5, 0.25], dtype=np.float32)
COUNTS = np.array([1, 2])


@qd.kernel
def numpy_numbers() -> qd.types.vector(2, qd.f32):
    v = qd.Vector([TABLE[1], COUNTS[1]]) * TABLE[0]
    w = qd.Vector([np.float32(1.5), COUNTS.sum()]) * np.float32(2.0)
    for i in qd.static(range(2)):
        v[i] += TABLE[i] * COUNTS[i]
    return v + w


def test_numbers_of_numpy_in_vectors():
    assert list(numpy_numbers()) == [0.125 + 0.5 + 3, 1 + 0.5 + 6]


@qd.kernel
def cholesky(a: qd.types.matrix(7, 7, qd.f32)) -> qd.types.matrix(7, 7, qd.f32):
    low = qd.Matrix.zero(qd.f32, 7, 7)
    qd.loop_config(serialize=True)  # each column needs those before it
    for j in range(7):
        for i in range(j, 7):
            s = a[i, j]
            for k in range(j):
                s -= low[i, k] * low[j, k]
            low[i, j] = qd.sqrt(s) if i == j else s / low[j, j]
    return low


def test_large_matrices_indexed_at_run_time():
    a = np.random.default_rng(0).random((7, 7))
    a = (a @ a.T + np.eye(7)).astype(np.float32)
    low = cholesky(qd.Matrix(a.tolist())).to_numpy()
    assert np.allclose(low, np.linalg.cholesky(a), atol=1e-4)


@qd.kernel
def rows_and_columns(out: qd.types.ndarray(qd.f32, 2)):
    for i in range(out.shape[0]):
        at = i * 0.015625
        out[i, 0] = at % 0.8
        out[i, 1] = at // 0.8
        out[i, 2] = qd.cast(i, qd.f32) // 49.0


def test_remainder_and_quotient_of_floats_fit_together():
    """Also at multiples of the divisor, and under fast_math."""
    out = np.zeros((3000, 3), np.float32)
    rows_and_columns(out)
    i = np.arange(3000)
    whole = np.floor((i / np.float32(64)).astype(np.float32) / np.float32(0.8))
    assert np.array_equal(out[:, 1], whole)
    assert np.allclose(out[:, 1] * 0.8 + out[:, 0], i / 64, atol=1e-5)
    assert np.array_equal(out[:, 2], i // 49)


class TestMessages:
    def test_an_attribute_with_a_typing_mistake(self):
        @qd.kernel
        def wrong() -> qd.f32:
            return qd.math.clammp(1.0, 2.0, 3.0)

        with pytest.raises(qd.QuadrantsCompilationError, match=r"(?i)did you mean.*clamp"):
            wrong()

    def test_arrays_that_do_not_fit_show_no_frames_of_the_engine(self):
        with pytest.raises(ValueError, match="required array has dtype=f32") as caught:
            medians(np.zeros(9), np.zeros(9, np.float32))
        frames = [str(entry.path) for entry in caught.traceback]
        assert sum("engine" in path and "tests" not in path for path in frames) <= 2


@qd.kernel
def increase(x: qd.template()):
    for i in x:
        x[i] += 1.0


def test_trees_that_come_and_go_leave_no_code_behind():
    stays = qd.field(qd.f32, shape=3)
    increase(stays)
    for n in range(4):
        builder = qd.FieldsBuilder()
        x = qd.field(qd.f32)
        builder.dense(qd.i, n + 2).place(x)
        with pytest.raises(RuntimeError, match="not finalized"):
            increase(x)
        tree = builder.finalize()
        increase(x)
        tree.destroy()
        with pytest.raises(qd.QuadrantsRuntimeError, match="has been destroyed"):
            increase(x)
    increase(stays)
    assert stays.to_numpy().tolist() == [2, 2, 2]
    assert len(increase.launchers.variants) == 1


@qd.kernel
def builtin_truth(k: qd.i32) -> qd.types.vector(5, qd.i32):
    v = qd.Vector([1, k])
    m = qd.Matrix([[1, 2], [3, k]])
    r = qd.Vector.zero(qd.i32, 5)
    r[0] = 1 if all(v < 3) else 0
    r[1] = 1 if any(v > 4) else 0
    r[2] = 1 if all(m > 0) and not any(m > 9) else 0
    r[3] = 1 if all([k > 1, k < 5]) else 0
    r[4] = 1 if qd.static(any([False, True])) else 0
    return r


@pytest.mark.parametrize(
    ("k", "want"), [(2, [1, 0, 1, 1, 1]), (5, [0, 1, 1, 0, 1]), (11, [0, 1, 0, 0, 1])]
)
def test_builtin_all_and_any(k, want):
    assert list(builtin_truth(k)) == want


@qd.kernel
def across_rows(
    x: qd.types.ndarray(qd.i32, 2), y: qd.types.ndarray(qd.i32, 2),
    rows: qd.types.vector(2, qd.i32), columns: qd.types.vector(2, qd.i32),
):  # fmt: skip
    for i, j in qd.ndrange((rows[0], rows[1]), (columns[0], columns[1])):
        y[j, i] = 2 * y[j, i] + x[i, j]


@pytest.mark.parametrize("shape", [(65, 70), (64, 129), (3, 200), (1, 1), (0, 80)], ids=str)
def test_arrays_read_across_their_rows(shape):
    """In tiles, with edges, in a part of the array, and of one array twice, which is a race."""
    x = np.arange(shape[0] * shape[1], dtype=np.int32).reshape(shape)
    y = np.ones(shape[::-1], np.int32)
    across_rows(x, y, [0, shape[0]], [0, shape[1]])
    assert (y == 2 + x.T).all()
    across_rows(x, y, [1, shape[0]], [2, shape[1] - 1])
    expected = 2 + x.T
    expected[2:-1, 1:] = 2 * expected[2:-1, 1:] + x.T[2:-1, 1:]
    assert (y == expected).all()
    square = x[:64, :64].copy()
    if square.shape == (64, 64):
        across_rows(square, square, [0, 64], [0, 64])  # one array twice, a race: it only ends
    across_rows(square, square, [5, 2], [0, 64])  # no iteration
