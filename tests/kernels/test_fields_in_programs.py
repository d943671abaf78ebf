"""Fields and the kernels that use them over the life of a program, and mistakes with them."""

import numpy as np
import pytest
from qd_studio import engine as qd

from tests.lang import opaque


@pytest.fixture(params=["cpu", "interp", "device"], autouse=True)
def arch(request):
    with opaque.program(request.param) as arch:
        yield arch


@pytest.fixture
def still_fine():
    """After a mistake a correct kernel works."""
    yield
    f = qd.field(qd.i32, shape=4)
    count(f)
    assert f.to_numpy().tolist() == [0, 1, 2, 3]


@qd.kernel
def count(f: qd.template()):
    for i in f:
        f[i] = i


def test_a_component_and_its_field_in_one_kernel():
    v = qd.Vector.field(2, qd.i32, shape=8)
    part = v.get_scalar_field(1)

    @qd.kernel
    def both():
        for i in v:
            v[i][1] = i
            part[i] += 10
            v[i][0] = v[i][1] + part[i]

    both()
    assert v.to_numpy().tolist() == [[2 * (i + 10), i + 10] for i in range(8)]


@opaque.near_only("arch")
def test_a_field_and_a_view_of_it_in_one_kernel():
    f = qd.field(qd.i32, shape=8)
    view = f.to_numpy(copy=False)

    @qd.kernel
    def both(a: qd.types.NDArray[qd.i32, 1]):
        for _ in range(1):
            for i in range(1, 8):
                a[i] = f[i - 1] + 1
                f[i] += 1

    both(view)
    assert f.to_numpy().tolist() == [0, 2, 4, 6, 8, 10, 12, 14]


def test_one_kernel_for_many_fields():
    fields = [qd.field(qd.i32, shape=n, offset=n) for n in range(1, 12)]
    for _ in range(3):
        for f in fields:
            count(f)
    for f in fields:
        assert f.to_numpy().tolist() == list(range(f.shape[0], 2 * f.shape[0]))


# Mistakes


def test_a_field_that_is_not_placed(still_fine):
    f = qd.field(qd.i32, name="mass")
    with pytest.raises(RuntimeError, match=r"(?s)not placed: mass.*specifying a shape"):
        count(f)
    qd.root.dense(qd.i, 3).place(f)
    count(f)
    assert f[2] == 2


def test_fields_of_an_ended_program(arch):
    f = qd.field(qd.i32, shape=3)

    @qd.kernel
    def captured():
        for i in f:
            f[i] = i

    captured()
    qd.init(arch=getattr(qd, arch))
    for use in (captured, lambda: count(f)):
        with pytest.raises(qd.QuadrantsRuntimeError, match="a program that has ended"):
            use()
    g = qd.field(qd.i32, shape=3)
    count(g)
    assert g.to_numpy().tolist() == [0, 1, 2]


def test_a_wrong_number_of_loop_variables(still_fine):
    f = qd.field(qd.i32, shape=(2, 3))

    @qd.kernel
    def use():
        for i in f:
            f[i, 0] = 1

    with pytest.raises(qd.QuadrantsCompilationError, match="grouped"):
        use()


@pytest.mark.parametrize("index", [(-3, 2), (3, 2), (0, 1), (0, 10)])
def test_indices_out_of_range(arch, index):
    qd.init(arch=getattr(qd, arch), check_out_of_bound=True)
    f = qd.field(qd.i32, shape=(5, 8), offset=(-2, 2))

    @qd.kernel
    def write(i: qd.i32, j: qd.i32):
        f[i, j] = 7

    write(-2, 9)
    assert f[-2, 9] == 7
    f.fill(0)
    with pytest.raises(qd.QuadrantsAssertionError, match=r"field \(f\) of size \(5, 8\) offset"):
        write(*index)
    assert not f.to_numpy().any()


def test_rescale_index():
    fine, coarse = qd.field(qd.i32, shape=(8, 8)), qd.field(qd.i32, shape=(4, 4))
    odd = qd.field(qd.i32, shape=(3, 5))
    host = [
        qd.rescale_index(fine, coarse, qd.Vector([5, 3])), qd.rescale_index(coarse, fine, [2, 3]),
        qd.rescale_index(fine, odd, [7, 7]), qd.rescale_index(odd, fine, [2, 4]),
        qd.rescale_index(fine.parent(), coarse.parent(), [5]),
        qd.rescale_index(fine, coarse, [5, 3, 9]),
    ]  # fmt: skip
    assert [v.to_list() for v in host] == [[2, 1], [4, 6], [3, 7], [4, 4], [2], [2, 1, 9]]

    @qd.kernel
    def both_ways():
        for at in qd.grouped(fine):
            coarse[qd.rescale_index(fine, coarse, at)] += 1
        for at in qd.grouped(coarse):
            fine[qd.rescale_index(coarse, fine, at)] = 9

    both_ways()
    assert (coarse.to_numpy() == 4).all()
    wanted = np.zeros((8, 8))
    wanted[::2, ::2] = 9
    np.testing.assert_array_equal(fine.to_numpy(), wanted)
