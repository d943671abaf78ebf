"""`qd.types` as users see it, and the mark of `qd.data_oriented`."""

import sys

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine import types as by_import
from qd_studio.engine.types import DATA_ORIENTED, is_data_oriented


def test_it_is_one_module_however_it_is_reached():
    assert qd.types is by_import is sys.modules["qd_studio.engine.lang.public_types"]
    import qd_studio.engine.types as by_name

    assert by_name is qd.types


def test_it_has_the_data_types_and_annotations():
    assert qd.types.f32 is qd.f32 and qd.types.int64 is qd.i64 and qd.types.uint1 is qd.u1
    assert qd.types.ndarray is qd.types.NDArray is qd.NDArray
    assert qd.types.template is qd.template
    assert {"vector", "matrix", "struct", "f32", "is_real"} <= set(dir(qd.types))


def test_types_of_vectors_are_one_for_each_shape_and_dtype():
    assert qd.types.vector(3, qd.f32) is qd.types.vector(n=3, dtype=qd.f32)
    assert qd.types.vector(3, float) is qd.math.vec3 is not qd.types.vector(3, qd.f32)
    assert qd.types.vector(3) is qd.types.vector(3, None) is qd.math.vec3
    assert qd.types.matrix(2, 3, int).shape == (2, 3)
    assert qd.math.mat4.n == qd.math.mat4.m == 4


def test_what_configured_types_mean_follows_the_program():
    assert qd.math.uvec2.dtype is qd.u32
    try:
        qd.init(arch=qd.interp, default_ip=qd.i64, default_fp=qd.f64)
        assert qd.math.uvec2.dtype is qd.u64
        assert qd.math.vec2(1).entries.dtype == "float64"
        assert qd.math.ivec2(1).entries.dtype == "int64"
    finally:
        qd.reset()
    assert qd.math.vec2(1).entries.dtype == "float32"


def test_questions_about_data_types():
    assert [qd.types.is_integral(t) for t in (qd.i8, qd.u1, qd.f16)] == [True, True, False]
    assert [qd.types.is_real(t) for t in (qd.i8, qd.f16)] == [False, True]
    assert [qd.types.is_signed(t) for t in (qd.i8, qd.u8)] == [True, False]
    assert qd.types.is_tensor(qd.math.vec2) and not qd.types.is_tensor(qd.f32)
    with pytest.raises(TypeError, match="is not a data type"):
        qd.types.is_real(int)


@pytest.mark.parametrize("make", [
    lambda: qd.types.vector(0, float), lambda: qd.types.vector("a", float),
    lambda: qd.types.vector(3, "a"), lambda: qd.types.vector(3, qd.types.vector(2, float)),
    lambda: qd.types.matrix(2, -1, float),
])  # fmt: skip
def test_impossible_types(make):
    with pytest.raises((ValueError, TypeError)):
        make()


@pytest.mark.parametrize("name", ["quant"])
def test_what_is_not_there_says_so(name):
    with pytest.raises(qd.QuadrantsUnsupportedError, match=rf"qd\.types\.{name} is not supported"):
        getattr(qd.types, name)


def test_data_oriented_marks_a_class_and_those_derived_from_it():
    @qd.data_oriented
    class Plain:
        @property
        def two(self):
            return 2

        @staticmethod
        def three():
            return 3

    class Derived(Plain):
        pass

    @qd.data_oriented(template_primitives=False)
    class Lifted:
        pass

    assert getattr(Plain, DATA_ORIENTED)["template_primitives"] is True
    assert getattr(Lifted, DATA_ORIENTED)["template_primitives"] is False
    assert is_data_oriented(Plain()) and is_data_oriented(Derived()) and is_data_oriented(Lifted())
    assert not is_data_oriented(3) and not is_data_oriented(Plain)
    assert (Plain().two, Plain.three()) == (2, 3)


def test_data_oriented_takes_classes_only():
    with pytest.raises(qd.QuadrantsSyntaxError, match="decorates a class, not"):
        qd.data_oriented(lambda: None)


def test_types_of_vectors_without_extents():
    anything = qd.types.ndarray(dtype=qd.types.vector(), ndim=1)
    assert (anything.dtype, anything.element_dim) == (None, 1)
    assert qd.types.NDArray[qd.types.matrix(), 2].element_dim == 2
    assert repr(qd.types.matrix()) == "matrix()"
    assert qd.types.vector(3, qd.f32, unpacked=True) is qd.types.vector(3, qd.f32)
    assert qd.types.matrix(np.int64(2), np.int32(3), qd.f32) is qd.types.matrix(2, 3, qd.f32)
    with pytest.raises(TypeError, match=r"qd\.types\.vector\(\) needs its extents"):
        qd.types.vector(dtype=qd.f32)
    with pytest.raises(TypeError, match=r"qd\.types\.matrix\(\) needs its extents"):
        qd.types.matrix(2)
    with pytest.raises(qd.QuadrantsSyntaxError, match="Invalid type annotation"):

        @qd.kernel
        def k(v: qd.types.vector()):
            pass


def test_names_of_types():
    assert [t.to_string() for t in (qd.f32, qd.u1)] == ["f32", "u1"]
    t = qd.types.matrix(2, 3, qd.f32)
    assert (t.to_string(), t.get_shape()) == ("[Tensor (2, 3) f32]", (2, 3))
    assert t.element_type() is qd.f32
