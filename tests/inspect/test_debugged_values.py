"""What the debugger shows of fields, arrays, structs and blocks, and the writes that it finds."""

import linecache

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine import inspect
from qd_studio.engine.inspect.debugging import shown

V2 = qd.types.vector(2, qd.f32)
M2 = qd.types.matrix(2, 2, qd.f32)


@pytest.fixture(scope="module")
def filled():
    """A run, at its end, of a kernel over fields and arrays of numbers, vectors and structs."""
    qd.init(arch=qd.cpu)
    n = 4
    pos = V2.field(shape=n)
    part = qd.types.struct(mass=qd.f32, at=V2).field(shape=n)
    count = qd.field(qd.i32, shape=())
    grid = qd.field(qd.f32, shape=(2, 3), offset=(1, -1))

    @qd.kernel
    def fill(x: qd.types.NDArray[V2, 1], m: qd.types.NDArray[M2, 1]):
        for i in pos:
            pos[i] = V2(i, 2.0 * i)
            part[i].mass = 3.0 + i
            part[i].at[1] = 7.0 + i
            count[None] += 1
            x[i].y = 5.0 + i
            m[i][0, 1] = 6.0 + i
        for i, j in grid:
            grid[i, j] = 10.0 * i + j

    x, m = qd.ndarray(V2, (n,)), qd.ndarray(M2, (n,))
    d = inspect.debug(fill, x, m)
    d.cont()
    yield d
    qd.reset()


@pytest.mark.parametrize(
    ("text", "start", "old", "new"),
    [
        ("pos[2].y", "pos[i] = V2", 0.0, 4.0),
        ("pos[2][0]", "pos[i] = V2", 0.0, 2.0),
        ("part[1].mass", "part[i].mass = ", 0.0, 4.0),
        ("part.mass[1]", "part[i].mass = ", 0.0, 4.0),
        ("part[3].at[1]", "part[i].at[1] = ", 0.0, 10.0),
        ("part[3].at.y", "part[i].at[1] = ", 0.0, 10.0),
        ("part[3].at[0]", "", None, None),
        ("count[None]", "count[None] += 1", 3, 4),
        ("count", "count[None] += 1", 3, 4),
        ("x[1].y", "x[i].y = ", 0.0, 6.0),
        ("x[1].x", "", None, None),
        ("m[3][0, 1]", "m[i][0, 1] = ", 0.0, 9.0),
        ("grid[1, -1]", "grid[i, j] = ", 0.0, 9.0),
    ],
)
def test_the_write_of_one_cell_is_found_and_no_other(filled, text, start, old, new):
    found = filled.who_wrote(text)
    if not start:
        assert found is None
        return
    assert linecache.getline(found.file, found.line).strip().startswith(start)
    assert (found.old, found.new) == (old, new)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("pos[2]", "[2., 4.]"),
        ("pos[2].yx", "[4.0, 2.0]"),
        ("pos[2] * 2", "[4., 8.]"),
        ("pos[3].norm() > 6.7 and count[None] == 4", "True"),
        ("part[1]", "(mass=4.0, at=[0., 8.])"),
        ("part[1].at.y", "8.0"),
        ("m[1][0, 1]", "7.0"),
        ("m[1]", "[[0., 7.], [0., 0.]]"),
        ("part.mass.sum()", "18.0"),
    ],
)
def test_values_are_as_kernels_write_them(filled, text, value):
    assert shown(filled.value(text)) == value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x.fill(9)", "x.fill.9.: assignment destination is read-only"),
        ("x.sort()", "read-only"),
        ("pos[9].x", "index 9 is out of bounds"),
        ("x[0].z", "index 2 is out of bounds"),
        ("__import__('os')", "no variable '__import__'"),
        ("part[0].weight", "weight"),
    ],
)
def test_an_expression_changes_nothing_and_says_what_is_wrong(filled, text, message):
    before = filled.value("x").copy()
    with pytest.raises(inspect.DebugError, match=message):
        filled.value(text)
    assert (filled.value("x") == before).all()


def test_members_of_a_struct_of_arrays_are_named(filled):
    with pytest.raises(inspect.DebugError, match="'part' has the members mass, at: name one"):
        filled.who_wrote("part[1]")


@qd.real_func
def tripled(a: qd.i32) -> qd.i32:
    b = a * 3
    return b


@qd.kernel
def calls(x: qd.types.NDArray[qd.i32, 1]):
    for i in range(2):
        is_odd = x[i] % 2 == 1
        x[i] = tripled(x[i]) + is_odd


def test_the_end_is_in_the_kernel_and_truth_values_are_shown_as_such():
    d = inspect.debug(calls, np.arange(2, dtype=np.int32))
    d.next()
    d.next()
    assert d.locals() == {"i": 0, "is_odd": False}
    d.step()
    assert [f.function for f in d.frames] == ["tripled", "calls"] and d.locals(1)["i"] == 0
    assert d.cont().reason == "end" and [f.function for f in d.frames] == ["calls"]


@qd.kernel
def turns(x: qd.types.NDArray[qd.f32, 1]):
    qd.loop_config(block_dim=4)
    for i in range(4):
        pad = qd.simt.block.SharedArray((4,), qd.f32)
        t = x[i]
        pad[i] = t
        qd.simt.block.sync()
        x[i] = pad[3 - i]


def test_shared_arrays_and_locals_of_one_iteration_of_a_block():
    d = inspect.debug(turns, np.arange(1, 5, dtype=np.float32))
    d.break_at(turns.decl.line + 8, "i == 2")
    d.cont()
    assert d.locals() == {"i": 2, "t": 3.0, "pad": [1.0, 2.0, 3.0, 4.0]}
    assert d.who_wrote("t").new == 3.0 and d.who_wrote("pad[1]").new == 2.0
    with pytest.raises(inspect.DebugError, match="is no element of pad, which has 4"):
        d.who_wrote("pad[4]")


@qd.kernel
def beyond(v: qd.types.NDArray[V2, 1]):
    for i in range(9):
        v[i].y = 1.0


def test_an_access_outside_of_an_array_of_vectors_names_the_element():
    d = inspect.debug(beyond, np.zeros((5, 2), np.float32))
    assert d.cont() == ("error", "v[5] is outside of v, which has the shape (5,)")
