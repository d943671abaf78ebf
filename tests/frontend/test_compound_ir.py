"""The IR of vectors, matrices and structs: only the parts that are used, under the user's names."""

from collections import Counter

import pytest
from qd_studio import engine as qd
from qd_studio.engine.config import CompileConfig
from qd_studio.engine.frontend.build import build
from qd_studio.engine.frontend.specialization import NdarrayKey
from qd_studio.engine.ir import codes as C
from qd_studio.engine.ir import verify, walk

from .harness import load, names_of, ops_of

vec2, vec3 = qd.types.vector(2, qd.f32), qd.types.vector(3, qd.f32)
Point = qd.types.struct(a=qd.i32, v=vec2)


@qd.kernel
def named():
    v = qd.Vector([1, 2])
    m = qd.Matrix([[1.0, 2], [3, 4]])
    p = Point(1, v)
    w = [v, v]
    q = qd.Struct(inner=p)
    print(v, m, p, w, q)


def test_parts_of_locals_have_the_names_that_users_write():
    names = [op.attr for op in ops_of(named) if op.code == C.ALLOCA]
    assert names[:2] == ["v[0]", "v[1]"]
    assert names[2:6] == ["m[0, 0]", "m[0, 1]", "m[1, 0]", "m[1, 1]"]
    assert names[6:9] == ["p.a", "p.v[0]", "p.v[1]"]
    assert names[9:13] == ["w[0][0]", "w[0][1]", "w[1][0]", "w[1][1]"]
    assert names[13:] == ["q.inner.a", "q.inner.v[0]", "q.inner.v[1]"]


def array_ops(text, tmp_path, shape):
    """Counts of the ops of kernel ``k``, whose argument holds vectors or matrices."""
    names = load(f"@qd.kernel\ndef k(x: qd.types.ndarray(qd.f32, ndim=1)):\n{text}", tmp_path)
    spec_key = NdarrayKey(qd.f32, 1, False, shape)
    func = build(names["k"].decl, (spec_key,), CompileConfig()).func
    assert verify(func) == []
    return Counter(op.name for op in walk(func.body))


@pytest.mark.parametrize("text, shape, loads", [
    ("    y = x[0].y\n", (3,), 1),
    ("    y = x[0][2]\n", (3,), 1),
    ("    y = x[0][1, 0]\n", (2, 2), 1),
    ("    y = x[0].xy\n", (3,), 2),
    ("    y = x[0][1, :]\n", (2, 3), 3),
    ("    y = x[0].norm()\n", (3,), 3),
    ("    x[0].y = 1\n", (3,), 0),
    ("    x[0] += 1\n", (3,), 0),
    ("    x[0].z *= 2\n", (3,), 1),
    ("    y = x[0].n + len(x[0])\n", (3,), 0),
])  # fmt: skip
def test_only_the_parts_that_are_used_are_read(text, shape, loads, tmp_path):
    assert array_ops(text, tmp_path, shape)["global_load"] == loads


def test_an_index_of_run_time_into_an_array_is_an_address(tmp_path):
    ops = array_ops("    for i in range(3):\n        y = x[0][i]\n", tmp_path, (3,))
    assert (ops["global_load"], ops["external_ptr"], ops["select"]) == (1, 1, 0)


@qd.kernel
def element(i: qd.i32):
    v = vec3(1)
    v[1] = 2
    y = v[2] + v.x
    print(y)


def test_elements_of_locals_are_single_variables():
    ops = names_of(element)
    assert ops.count("local_load") == 3 and ops.count("local_store") == 5


@qd.kernel
def picked(i: qd.i32):
    v = vec3(1)
    v[i] += 2
    print(v[i])


def test_an_index_of_run_time_into_a_local_selects():
    ops = names_of(picked)
    assert ops.count("if") == 0 and ops.count("array_alloca") == 0
    assert ops.count("select") == 2 + 3 + 2


@qd.kernel
def indexed(i: qd.i32):
    v = qd.Vector([0.0] * 10)
    v[i] = 1
    w = qd.Vector([0.0] * 10)
    for k in qd.static(range(3)):
        w[k] = v[i]


def test_large_locals_that_are_indexed_at_run_time_are_in_memory():
    ops = ops_of(indexed)
    arrays = [op.attr for op in ops if op.code == C.ARRAY_ALLOCA]
    assert [(a.name, a.count) for a in arrays] == [("v", 10)]
    assert sum(op.code == C.ALLOCA for op in ops) == 10
    assert all(op.code != C.SELECT for op in ops)


@qd.func
def shifted(v, by):
    return v + by


@qd.kernel
def once(x: qd.types.NDArray[qd.f32, 1]):
    for i in range(3):
        x[i] = shifted(vec2(x[i]), 1.0).norm()
    print(shifted(vec2(1), 2).x)


def test_the_owner_of_a_method_is_evaluated_once():
    ops = names_of(once)
    assert ops.count("sqrt") == 1
    assert ops.count("global_load") == 1
    assert ops.count("add") == 2 + 1 + 2


@qd.kernel
def constants():
    v = qd.Vector([0.0, 0.0, 1.0, 0.0])
    print(v)


def test_equal_constants_of_a_literal_are_one_op():
    assert names_of(constants).count("const") == 2


@pytest.mark.parametrize("text, dtype", [
    ("qd.Vector([1, 2])", qd.i32),
    ("qd.Vector([1, 2.0])", qd.f32),
    ("qd.Vector([1, 2], dt=qd.u8)", qd.u8),
    ("qd.Vector([True, 2])", qd.i32),
    ("qd.Vector([n, 2])", qd.i64),
    ("qd.Vector([n, 0.5])", qd.f32),
    ("qd.Matrix.identity(float, 2)", qd.f32),
    ("qd.Matrix.unit(2, 0)", qd.i32),
    ("qd.types.vector(2, qd.f64)(n)", qd.f64),
])  # fmt: skip
def test_types_of_literals(text, dtype, tmp_path):
    names = load(f"@qd.kernel\ndef k(n: qd.i64):\n    v = {text}\n", tmp_path)
    assert {op.type.elem for op in ops_of(names["k"]) if op.code == C.ALLOCA} == {dtype}
