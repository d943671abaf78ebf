"""Vectors and matrices in Python scope. What they print is what Quadrants prints."""

import copy
import pickle

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine.lang.values.live import live
from qd_studio.engine.types import WriteCounter

VEC3 = qd.types.vector(3, qd.f32)
MAT2 = qd.types.matrix(2, 2, float)


def v():
    return qd.Vector([1, 2, 3])


def f():
    return qd.Vector([1.5, -2.0, 3.0])


def m():
    return qd.Matrix([[1, 2], [3, 4]])


PRINTED = {
    "f": "[ 1.5 -2.   3. ]",
    "v.zzyx": "[3 3 2 1]",
    "v.stp": "[1 2 3]",
    "v.b": "3",
    "v * 2.5": "[2.5 5.  7.5]",
    "2 % v": "[0 0 2]",
    "v << 1": "[2 4 6]",
    "1 << v": "[2 4 8]",
    "v == f": "[False False  True]",
    "v @ v": "14",
    "qd.Vector([1, 2]) @ m": "[ 7 10]",
    "[[1, 0], [0, 1]] @ m": "[[1 2]\n [3 4]]",
    "qd.Vector([1, 2]).cross(qd.Vector([3, 4]))": "-2",
    "m.inverse()": "[[-2.   1. ]\n [ 1.5 -0.5]]",
    "m[:, 0]": "[1 3]",
    "v[1:]": "[2 3]",
    "f.cast(bool)": "[ True  True  True]",
    "qd.Vector.unit(3, 1)": "[0 1 0]",
    "qd.Vector.unit(3, 1, qd.f32)": "[0. 1. 0.]",
    "qd.Matrix.cols([v, f])": "[[ 1.   1.5]\n [ 2.  -2. ]\n [ 3.   3. ]]",
    "qd.Vector([1.7, 2, 3], dt=qd.i32)": "[1 2 3]",
    "qd.Vector((1, 2))": "[1 2]",
    "VEC3(1.1)": "[1.1 1.1 1.1]",
    "MAT2([1, 2], [3, 4])": "[[1. 2.]\n [3. 4.]]",
    "MAT2(m)": "[[1. 2.]\n [3. 4.]]",
    "qd.round(f)": "[ 2. -2.  3.]",
    "qd.select(v > 1, v, 0)": "[0 2 3]",
    "qd.cast(f, qd.i8)": "[ 1 -2  3]",
    "qd.pow(v, 2)": "[1 4 9]",
    "qd.zero(f)": "[0. 0. 0.]",
    "qd.one(m)": "[[1 1]\n [1 1]]",
}


@pytest.mark.parametrize("text", PRINTED)
def test_values_and_how_they_print(text):
    names = {"v": v(), "f": f(), "m": m(), "qd": qd, "np": np, "VEC3": VEC3, "MAT2": MAT2}
    assert str(eval(text, names)) == PRINTED[text]


NUMBERS = {
    "f.norm(0.01)": 15.26**0.5,
    "f.normalized(0.5).x": 1.5 / (15.25**0.5 + 0.5),
    "qd.Matrix([[2, 0, 1], [1, 3, 2], [1, 1, 1]]).determinant()": 0,
    "qd.Matrix([[2, 0, 1, 0], [1, 3, 2, 1], [1, 1, 1, 4], [0, 5, 1, 2]]).determinant()": 33,
    "m.frobenius_inner(m)": 30,
    "v[-1]": 3,
    "max(v)": 3,
    "qd.max(v)": 3,
}


@pytest.mark.parametrize("text", NUMBERS)
def test_numbers(text):
    assert eval(text, {"v": v(), "f": f(), "m": m(), "qd": qd}) == pytest.approx(NUMBERS[text])


def test_inverses_of_up_to_four_rows_keep_the_type():
    rng = np.random.default_rng(3)
    for n in (1, 2, 3, 4):
        array = rng.standard_normal((n, n)).astype(np.float32)
        found = qd.Matrix(array).inverse()
        assert found.entries.dtype == np.float32
        np.testing.assert_allclose(found.to_numpy() @ array, np.eye(n), atol=1e-4)


def test_a_singular_matrix_has_an_inverse_that_is_not_finite():
    assert not np.isfinite(qd.Matrix([[1.0, 2.0], [2.0, 4.0]]).inverse().to_numpy()).any()


def test_results_have_the_classes_of_their_shapes():
    assert isinstance(v() + 1, qd.Vector) and isinstance(v() + 1, qd.Matrix)
    assert not isinstance(m() @ m(), qd.Vector)
    assert isinstance(m()[0, :], qd.Vector)
    assert isinstance(np.float64(2) * v(), qd.Vector)
    assert isinstance(np.array([1, 2, 3]) + v(), qd.Vector)


def test_elements_swizzles_and_slices_are_written():
    a = v()
    a[0] = 5.7
    a.y = 8
    assert a.to_list() == [5, 8, 3]
    a.zx = [7, 9]
    assert a.to_list() == [9, 8, 7]
    a[1:] = 0
    a.rg = a.gr
    assert a.to_list() == [0, 9, 0]
    b = m()
    b[1, 0] = -3
    b[0, :] = qd.Vector([6, 7])
    assert b.to_list() == [[6, 7], [-3, 4]]
    b.fill(2)
    assert b.to_list() == [[2, 2], [2, 2]]


def test_augmented_assignment_makes_a_new_value():
    a = b = v()
    a += 1
    a /= 2
    assert a.to_list() == [1.0, 1.5, 2.0] and b.to_list() == [1, 2, 3]


def test_numpy_takes_values():
    assert np.array(v()).tolist() == [1, 2, 3]
    assert np.asarray(m()).shape == (2, 2)
    assert np.sin(f()).tolist() == np.sin(np.array([1.5, -2.0, 3.0])).tolist()
    copied = v().to_numpy()
    a = qd.Vector(copied)
    copied[0] = 9
    assert a[0] == 1


def test_values_are_copied_and_pickled():
    for value in (v(), m()):
        for other in (copy.copy(value), copy.deepcopy(value), pickle.loads(pickle.dumps(value))):
            assert type(other) is type(value) and (other == value).all()


def test_functions_of_floats_keep_the_precision():
    assert qd.sin(VEC3(1)).entries.dtype == np.float32
    assert qd.sqrt(qd.Vector([1.0, 4.0])).to_list() == [1.0, 2.0]
    assert qd.math.smoothstep(0.0, 4.0, VEC3(1, 2, 3)).to_list() == [0.15625, 0.5, 0.84375]


def test_a_live_value_is_a_window_on_memory():
    memory = np.array([[1.1, 2.0], [3.0, 4.0]], np.float32)
    window = live(memory[0], WriteCounter())
    assert str(window) == "[1.10000002 2.        ]"
    assert type(window[0]) is float and window[0] == np.float32(1.1)
    window.x = 7
    window[1] = 8
    assert memory.tolist() == [[7, 8], [3, 4]]
    assert str(window + 1) == "[8. 9.]"
    numbers = (window.norm(), window.sum(), window.dot([1, 1]), window @ window, window.norm_inv())
    assert [type(x) for x in numbers] == [float] * 5
    later = window.xy
    window.x = 1
    assert later.x == 7
    whole = live(np.arange(4, dtype=np.int32), WriteCounter())
    with pytest.raises(TypeError, match=r"integer element cannot be set to the real number 1\.5"):
        whole[0] = 1.5


MISTAKES = {
    "qd.Vector(3)": (qd.QuadrantsTypeError, "can only be initialized with an array-like object"),
    "qd.Vector([])": (qd.QuadrantsTypeError, "cannot have the shape"),
    "qd.Vector(['a'])": (qd.QuadrantsTypeError, "are no numbers"),
    "qd.Matrix([[1, 2], [3]])": (qd.QuadrantsTypeError, "cannot be the elements"),
    "qd.Matrix([v, v])": (qd.QuadrantsTypeError, "cols/rows required"),
    "qd.Matrix.rows([v, [1]])": (qd.QuadrantsTypeError, "of equal length"),
    "qd.Vector.unit(3, 3)": (ValueError, "no element 3"),
    "v + m": (qd.QuadrantsTypeError, r"'\[Tensor \(3\) i64\]' and '\[Tensor \(2, 2\) i64\]'"),
    "m + qd.Vector([1, 2])": (qd.QuadrantsTypeError, "unsupported operand"),
    "v + 'a'": (TypeError, "unsupported operand"),
    "m @ v": (qd.QuadrantsTypeError, r"dimension mismatch between \(2, 2\) and \(3,\)"),
    "v.dot(qd.Vector([1, 2]))": (qd.QuadrantsTypeError, "dot"),
    "v.cross(m)": (qd.QuadrantsTypeError, "two vectors"),
    "v.transpose()": (qd.QuadrantsTypeError, "outer_product"),
    "v.trace()": (qd.QuadrantsTypeError, "square matrix"),
    "qd.Matrix.identity(float, 5).inverse()": (qd.QuadrantsTypeError, "sizes >= 5"),
    "qd.Matrix.identity(float, 5).determinant()": (qd.QuadrantsTypeError, "sizes >= 5"),
    "m[0]": (qd.QuadrantsIndexError, "Expected 2 indices, got 1"),
    "v[3]": (qd.QuadrantsIndexError, "out of range for 3 elements"),
    "v.w": (AttributeError, r"vec3 only has attributes=\('x', 'y', 'z'\), got=\('w',\)"),
    "v.foo": (AttributeError, "no attribute 'foo'"),
    "setattr(v, 'foo', 1)": (AttributeError, "no attribute 'foo'"),
    "setattr(v, 'xy', [1, 2, 3])": (qd.QuadrantsTypeError, r"\.xy takes 2 values, got 3"),
    "bool(v < 2)": (ValueError, r"Use \.any\(\) or \.all\(\)"),
    "VEC3()": (qd.QuadrantsSyntaxError, "initial value"),
    "VEC3(1, 2)": (qd.QuadrantsTypeError, "takes 3 elements, got 2"),
    "VEC3(1, 2, 3, 4)": (qd.QuadrantsTypeError, "takes 3 elements, got 4"),
    "VEC3('a')": (qd.QuadrantsTypeError, "are no elements"),
    "qd.max(v, m)": (qd.QuadrantsTypeError, "of values of shapes"),
}


@pytest.mark.parametrize("text", MISTAKES)
def test_mistakes_say_what_is_wrong(text):
    error, message = MISTAKES[text]
    with pytest.raises(error, match=message):
        eval(text, {"v": v(), "m": m(), "qd": qd, "VEC3": VEC3})


def test_a_failed_store_changes_nothing():
    a = v()
    with pytest.raises(qd.QuadrantsTypeError, match="Cannot store"):
        a[0:2] = [1, 2, 3]
    assert a.to_list() == [1, 2, 3]


def test_every_method_has_a_docstring():
    methods = [getattr(qd.Matrix, name) for name in dir(qd.Matrix) if not name.startswith("_")]
    members = [getattr(qd.Struct, name) for name in dir(qd.Struct) if not name.startswith("_")]
    assert not [m for m in (*methods, *members) if not (m.__doc__ or "").strip()]


def test_integers_must_fit():
    """A type in Python scope refuses what a cast would cut; `cast` still wraps."""
    for make in (
        lambda: qd.Vector([2**40], qd.i32), lambda: qd.Vector(np.array([1, 300]), qd.i8),
        lambda: qd.Matrix([[1, 2], [3, -1]], qd.u64), lambda: qd.Vector([float("nan")], qd.i32),
        lambda: qd.types.vector(2, qd.i8)([300, 1]), lambda: qd.types.vector(2, qd.i32)(1e10),
    ):  # fmt: skip
        with pytest.raises(qd.QuadrantsTypeError, match="its range is"):
            make()
    v = qd.Vector([1, 2], qd.i32)
    for value in (2**31, -(2**31) - 1, 2**63):
        with pytest.raises(qd.QuadrantsTypeError, match="its range is -2147483648 to 2147483647"):
            v[0] = value
    with pytest.raises(qd.QuadrantsTypeError, match="its range is"):
        v.fill(2**40)
    assert list(v) == [1, 2]
    assert list(qd.Vector([2**40 + 3, 1]).cast(qd.i32)) == [3, 1]
    assert list(qd.Vector([2.7, -1], qd.i32)) == [2, -1]
    assert list(qd.Vector([2**64 - 1], qd.u64)) == [2**64 - 1]


def test_the_truth_of_comparisons():
    a, b, c = qd.Vector([1, 2]), qd.Vector([1, 2]), qd.Vector([1, 3])
    assert a == b and a == [1, 2] and a != c and [a, c] == [b, c] and a in [c, b]
    assert [bool(a == c), bool(a != b), [a, c] == [c, a]] == [False] * 3
    assert bool(qd.Matrix([[1, 2], [3, 4]]) == [[1, 2], [3, 5]]) is False
    assert (a == c).to_list() == [True, False]
    assert qd.Vector([0, 0]) and (qd.Vector([0.0]) or None) is not None
    same = copy.deepcopy(a == b)
    assert same.all()


def test_a_copy_is_a_value_of_its_own():
    v = qd.Vector([1, 2])
    for other in (copy.copy(v), copy.deepcopy(v)):
        other[0] = 5
        assert (v.to_list(), other.to_list()) == ([1, 2], [5, 2])
    window = live(np.arange(4, dtype=np.float32), WriteCounter())
    copy.copy(window)[0] = 5
    copy.deepcopy(window)[1] = 6
    assert (window.to_list(), type(copy.deepcopy(window)[0])) == ([5, 1, 2, 3], float)
