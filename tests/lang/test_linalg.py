"""``qd.linalg``: sparse matrices and solvers, as programs of the reference use them."""

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine.lang.linalg import solver

SMALL = np.array([[2, -1, 0, 0], [-1, 2, -1, 0], [0, -1, 2, -1], [0, 0, -1, 2]], float)


@qd.kernel
def fill(A: qd.types.sparse_matrix_builder(), n: qd.i32):
    for i in range(n):
        A[i, i] += 2.5
        A[i, i] -= 0.5
        if i > 0:
            A[i, i - 1] += -1
        if i < n - 1:
            A[i, i + 1] -= 1.0


def small(dtype=None):
    qd.init(arch=qd.cpu)
    builder = qd.linalg.SparseMatrixBuilder(4, 4, max_num_triplets=20, dtype=dtype or qd.f32)
    fill(builder, 4)
    return builder.build()


def test_a_kernel_fills_a_builder_and_a_build_empties_it():
    qd.init(arch=qd.cpu)
    builder = qd.linalg.SparseMatrixBuilder(4, 4, max_num_triplets=20)
    for _ in range(2):
        fill(builder, 4)
        assert np.array_equal(builder.build().to_numpy(), SMALL)
    assert builder.build().nnz == 0


def test_operators_are_those_of_dense_matrices():
    A = small(qd.f64)
    rng = np.random.default_rng(1)
    other = qd.linalg.SparseMatrix(4, 4, dtype=qd.f64)
    triplets = qd.ndarray(qd.f64, 9)
    triplets.from_numpy(np.array([0.0, 0, 1, 1, 2, 4, 0, 0, 5]))
    other.build_from_ndarray(triplets)
    a, b = A.to_numpy(), other.to_numpy()
    assert b[0, 0] == 6.0 and b[1, 2] == 4.0 and other.nnz == 2
    vector = rng.random(4)
    field = qd.field(qd.f64, shape=4)
    field.from_numpy(vector)
    for got, wanted in (
        (A + other, a + b), (A - other, a - b), (A * other, a * b), (A @ other, a @ b),
        (other @ A, b @ a), (2.0 * A, 2 * a), (A * 3, 3 * a), (other.transpose(), b.T),
    ):  # fmt: skip
        assert np.allclose(got.to_numpy(), wanted)
    assert np.allclose(A @ vector, a @ vector) and np.allclose(A @ field, a @ vector)
    assert A[1, 0] == -1.0 and A[0, 3] == 0.0
    A[0, 3] = 7.0
    A += other
    assert A[0, 3] == 7.0 and A[0, 0] == 8.0
    with pytest.raises(IndexError, match=r"\(4, 0\)"):
        A[4, 0]
    assert str(other).splitlines()[0] == "[6, 0, 0, 0]"


@pytest.mark.parametrize("kind", ["LLT", "LDLT", "LU"])
def test_solvers_solve(kind):
    A, b = small(), np.ones(4, np.float32)
    solver = qd.linalg.SparseSolver(solver_type=kind)
    solver.analyze_pattern(A)
    solver.factorize(A)
    assert solver.info()
    array = qd.ndarray(qd.f32, 4)
    array.fill(1.0)
    for x in (solver.solve(b), solver.solve(array).to_numpy()):
        assert x.dtype == np.float32 and np.allclose(x, [2, 3, 3, 2])
    x, reached = qd.linalg.SparseCG(A, b).solve()
    assert reached and np.allclose(x, [2, 3, 3, 2], atol=1e-5)


def test_what_cannot_be_solved_says_so(monkeypatch):
    A = small()
    A[0, 0] = -5.0
    definite = qd.linalg.SparseSolver(solver_type="LLT")
    definite.compute(A)
    assert not definite.info()
    with pytest.raises(qd.QuadrantsRuntimeError, match="no LLT factorisation"):
        definite.solve(np.ones(4))
    with pytest.raises(qd.QuadrantsRuntimeError, match="call compute"):
        qd.linalg.SparseSolver().solve(np.ones(4))
    with pytest.raises(qd.QuadrantsRuntimeError, match="XX with AMD is not supported"):
        qd.linalg.SparseSolver(solver_type="XX")
    monkeypatch.setattr(solver, "DENSE_LIMIT", 3)
    monkeypatch.setitem(__import__("sys").modules, "scipy.sparse", None)
    with pytest.raises(qd.QuadrantsRuntimeError, match="needs SciPy"):
        qd.linalg.SparseSolver(solver_type="LU").compute(A)


def test_a_full_builder_and_other_uses_are_errors():
    qd.init(arch=qd.cpu)
    builder = qd.linalg.SparseMatrixBuilder(4, 4, max_num_triplets=3)
    fill(builder, 4)
    with pytest.raises(qd.QuadrantsRuntimeError, match="room for 3"):
        builder.build()

    @qd.kernel
    def scale(A: qd.types.sparse_matrix_builder()):
        A[0, 0] *= 2.0

    with pytest.raises(qd.QuadrantsTypeError, match=r"'\+=' and '-=' are supported"):
        scale(builder)


@pytest.mark.parametrize("solve", ["MatrixFreeCG", "MatrixFreeBICGSTAB"])
def test_solvers_without_a_matrix(solve):
    qd.init(arch=qd.cpu)
    n = 8
    x, b = qd.field(qd.f64, shape=(n, n)), qd.field(qd.f64, shape=(n, n))

    @qd.kernel
    def times(v: qd.template(), out: qd.template()):
        for i, j in v:
            left = v[i - 1, j] if i > 0 else 0.0
            right = v[i + 1, j] if i < n - 1 else 0.0
            out[i, j] = 4.0 * v[i, j] - left - right

    b.from_numpy(np.random.default_rng(2).random((n, n)))
    assert getattr(qd.linalg, solve)(qd.linalg.LinearOperator(times), b, x, tol=1e-10)
    dense = 4 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)
    assert np.allclose(dense @ x.to_numpy(), b.to_numpy())
    with pytest.raises(qd.QuadrantsTypeError, match="Dtype mismatch"):
        getattr(qd.linalg, solve)(None, b, qd.field(qd.i32, shape=(n, n)))
