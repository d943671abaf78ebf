"""More programs: structs, dataclasses, parts of a kernel that hand values on, predicates,
images."""

import dataclasses

import numpy as np
import pytest
from qd_studio import engine as qd

from tests.autodiff.test_programs import agree, filled, real, whole


@pytest.fixture(params=["interp", "cpu"], autouse=True)
def backend(request):
    qd.init(
        arch=getattr(qd, request.param),
        default_fp=qd.f64,
        ad_stack_experimental_enabled=True,
        ad_stack_sparse_threshold_bytes=0,
        offline_cache=False,
    )
    yield request.param
    qd.reset()


def test_fields_of_structs():
    particle = qd.types.struct(place=qd.types.vector(2, qd.f64), mass=qd.f64)
    p, loss = particle.field(shape=3, needs_grad=True), real()
    filled(p.place, 1)
    filled(p.mass, 2)

    @qd.kernel
    def turn():
        for i in range(3):
            v = p[i].place * p[i].mass
            for _ in range(3):
                v = qd.Vector([qd.sin(v.y), v.x * v.y])
            loss[None] += v.norm_sqr()

    agree(turn, loss, p.mass, p.place)


def test_members_of_a_dataclass():
    @dataclasses.dataclass
    class State:
        x: qd.types.ndarray(dtype=qd.f64, ndim=1)
        rounds: qd.types.ndarray(dtype=qd.i32, ndim=1)

    state = State(
        x=filled(qd.ndarray(qd.f64, shape=(3,), needs_grad=True), 1),
        rounds=qd.ndarray(qd.i32, shape=(3,)),
    )
    state.rounds.from_numpy(np.array([2, 0, 5], np.int32))
    loss = real()

    @qd.kernel
    def decay(s: State):
        for i in range(3):
            v = s.x[i]
            for _ in range(s.rounds[i]):
                v = qd.exp(-v) * v + 0.2
            loss[None] += v

    agree(lambda: decay(state), loss, state.x)


def test_a_histogram_that_a_later_loop_reads():
    x, bins, loss = filled(real(8), 1), real(3), real()

    @qd.kernel
    def spread():
        for i in range(3):
            bins[i] = 0.0
        for i in range(8):
            bins[i % 3] += x[i] * x[i]
        for i in range(3):
            loss[None] += bins[i] ** 3

    agree(spread, loss, x, picks=8)


def test_continue_in_both_loops():
    x, loss, rounds = filled(real(6), 1), real(), whole([1, 0, 4, 2, 0, 3])

    @qd.kernel
    def skip():
        for i in range(6):
            if rounds[i] == 0:
                continue
            v = x[i]
            for j in range(rounds[i]):
                if j == 1:
                    continue
                v = qd.sin(v) * x[j]
            loss[None] += v

    agree(skip, loss, x, picks=6)


def test_a_predicate_whose_other_branch_is_the_long_one():
    x, loss, kind = filled(real(10), 1), real(), whole([0, 1, 2, 0, 1, 2, 0, 0, 1, 5])

    @qd.kernel
    def predicated():
        for i in range(10):
            if kind[i] > 0:
                loss[None] += x[i]
            else:
                v = x[i]
                for _ in range(30):
                    v = qd.sin(v) + 0.1
                loss[None] += v * v

    agree(predicated, loss, x, picks=10)


def test_light_through_a_cloud():
    samples = 5
    density, colour, loss = filled(real(4, samples), 1), filled(real(4, samples), 2), real()

    @qd.kernel
    def render():
        for ray in range(4):
            through, seen = 1.0, 0.0
            for s in range(samples):
                stopped = 1.0 - qd.exp(-density[ray, s])
                seen += through * stopped * colour[ray, s]
                through *= 1.0 - stopped
            loss[None] += (seen - 0.5) ** 2

    agree(render, loss, density, colour, picks=6)


def test_the_smallest_of_many():
    x, loss = filled(real(6), 1), real()

    @qd.kernel
    def smallest():
        for _ in range(1):
            least = 10.0
            for i in range(6):
                least = qd.min(least, x[i] * x[i] + 0.1 * i)
            loss[None] += least * least

    agree(smallest, loss, x, picks=6)


def test_a_local_matrix_filled_and_multiplied():
    x, loss = filled(real(3), 1), real()

    @qd.kernel
    def powers():
        for i in range(3):
            m = qd.Matrix.zero(qd.f64, 2, 2)
            for a in range(2):
                for b in range(2):
                    m[a, b] = x[(i + a) % 3] * x[b] + 0.3 * a
            for _ in range(3):
                m = m @ m * 0.3
            loss[None] += m.determinant() + m.trace()

    agree(powers, loss, x)


def test_what_would_need_an_element_that_is_overwritten_is_refused():
    x, u, loss = filled(real(4), 1), real(4), real()

    @qd.kernel
    def in_place():
        for i in range(4):
            u[i] = x[i]
            for _ in range(3):
                u[i] = u[i] * u[i]
            loss[None] += u[i]

    in_place()
    with pytest.raises(qd.QuadrantsCompilationError, match=r"Field u is overwritten") as raised:
        in_place.grad()
    assert "u[i] = u[i] * u[i]" in str(raised.value)


def test_eigenvalues_and_eigenvectors_of_symmetric_matrices_of_two_rows():
    """Also of diagonal ones, where no rotation is needed but its derivative is."""
    strain, loss = real(4, 3), real()
    strain.from_numpy(
        np.array([[2.0, 0.5, 1.0], [1.0, -0.4, 3.0], [2.0, 0.0, 1.0], [-1.0, 0.0, 0.5]])
    )

    @qd.kernel
    def stress():
        for i in range(4):
            a, b, d = strain[i, 0], strain[i, 1], strain[i, 2]
            values, vectors = qd.sym_eig(qd.Matrix([[a, b], [b, d]]))
            loss[None] += qd.max(values[1], 0.0) ** 2 - values[0]
            loss[None] += (1.0 + i) * vectors[0, 0] * vectors[1, 0] * values[1]

    agree(stress, loss, strain, picks=12)


def test_multiples_of_the_identity_have_finite_gradients_of_eigenvalues():
    x, loss = real(), real()
    x.fill(2.0)

    @qd.kernel
    def squeeze():
        values, _vectors = qd.sym_eig(qd.Matrix([[x[None], 0.0], [0.0, x[None]]]))
        loss[None] += values[0] * values[1]

    agree(squeeze, loss, x)
