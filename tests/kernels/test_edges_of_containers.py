"""Containers without axes, arrays of unusual kinds, values that are no numbers."""

import gc
import weakref

import numpy as np
import pytest
from qd_studio import engine as qd

from tests.lang import opaque


@pytest.fixture(params=["cpu", "interp", "device"], autouse=True)
def arch(request):
    with opaque.program(request.param) as arch:
        yield arch


@qd.kernel
def add_everywhere(x: qd.Tensor, by: qd.f32) -> qd.i32:
    axes = 0
    for at in qd.grouped(x):
        x[at] += by
        axes += at.n
    return axes


@pytest.mark.parametrize("make", [qd.field, qd.ndarray, qd.tensor])
@pytest.mark.parametrize("shape", [(), (3,), (2, 2)])
def test_grouped_loops_take_containers_without_axes(make, shape):
    x = make(qd.f32, shape)
    visited = add_everywhere(x, 1.5)
    assert (x.to_numpy() == 1.5).all()
    assert visited == len(shape) * x.to_numpy().size


def test_a_grouped_loop_inside_of_another_takes_a_field_without_axes():
    total = qd.field(qd.i32, shape=())

    @qd.kernel
    def count():
        for i in range(5):
            for at in qd.grouped(total):
                total[at] += i

    count()
    assert total[None] == 10


def test_a_field_without_axes_has_no_single_index():
    total = qd.field(qd.i32, shape=())

    @qd.kernel
    def wrong():
        for i in total:
            total[None] += i

    with pytest.raises(qd.QuadrantsCompilationError, match=r"\(1 != 0\)"):
        wrong()


@qd.kernel
def double(x: qd.types.NDArray[qd.i32, 1]):
    for i in x:
        x[i] *= 2


def test_subclasses_of_numpy_arrays_are_their_memory(tmp_path):
    mapped = np.memmap(tmp_path / "numbers", np.int32, "w+", shape=3)
    masked = np.ma.array([1, 2, 3], mask=[0, 1, 0], dtype=np.int32)
    for x in (mapped, masked):
        np.asarray(x)[...] = [1, 2, 3]
        double(x)
        assert np.asarray(x).tolist() == [2, 4, 6]


@pytest.mark.parametrize(
    "bad", [np.array([None, 1]), np.array(["1", "2"]), np.array([1j, 2]), ["a", "b"]]
)
def test_what_holds_no_numbers_is_no_content(bad):
    for x in (qd.field(qd.f32, shape=2), qd.ndarray(qd.f32, 2)):
        x.fill(3)
        with pytest.raises(TypeError, match="elements must be integers or real numbers"):
            x.from_numpy(bad)
        assert x.to_numpy().tolist() == [3, 3]


def test_components_of_an_element_take_numbers_only():
    v = qd.Vector.field(2, qd.f32, shape=1)
    with pytest.raises(TypeError, match="cannot be set to 'q'"):
        v[0][0] = "q"
    with pytest.raises(TypeError, match="cannot be set to None"):
        v[0].x = None


def test_vectors_of_truth_values_read_as_integers():
    v = qd.Vector.field(3, qd.u1, shape=1)
    v[0] = [1, 0, 1]
    listed = v[0].to_list()
    assert listed == [1, 0, 1]
    assert [type(x) for x in listed] == [int] * 3


@qd.data_oriented
class Holder:
    def __init__(self, n):
        self.n = n
        self.x = qd.ndarray(qd.i32, 4)


@qd.kernel
def first(holder: qd.template()) -> qd.i32:
    return holder.x[0] + holder.n


def test_launchers_keep_no_object_alive_that_was_a_template():
    holder = Holder(3)
    assert [first(holder), first(holder), first(Holder(4)), first(holder)] == [3, 3, 4, 3]
    seen = weakref.ref(holder)
    del holder
    gc.collect()
    assert seen() is None


@qd.data_oriented
class Optional:
    def __init__(self):
        self.extra = None

    @qd.kernel
    def total(self) -> qd.i32:
        found = 1
        if qd.static(self.extra):
            found = self.extra[0]
        return found


def test_what_an_object_gets_in_the_place_of_none_is_seen():
    of = Optional()
    assert [of.total(), of.total()] == [1, 1]
    for make in (qd.field, qd.ndarray):
        of.extra = make(qd.i32, 2)
        of.extra[0] = 7
        assert [of.total(), of.total()] == [7, 7]
        of.extra = None
        assert [of.total(), of.total()] == [1, 1]
