"""Arguments for launches: where they come from, and what is made up."""

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine.config import CompileConfig
from qd_studio.engine.inspect import arguments
from qd_studio.engine.inspect.argument_values import describe
from qd_studio.engine.inspect.arguments import Call

CONFIG = CompileConfig()
F32 = qd.types.ndarray(dtype=qd.f32, ndim=1)


@qd.kernel
def many(
    x: F32,
    m: qd.types.ndarray(dtype=qd.i8, ndim=2),
    mask: qd.types.ndarray(dtype=qd.u1, ndim=3),
    free: qd.types.ndarray(),
    n: qd.i32,
    row_count: qd.u8,
    k: int,
    flag: bool,
    where: qd.i32,
    scale: float,
):
    x[0] = scale


@qd.kernel
def sized(size: qd.Template, x: F32):
    x[0] = size


def test_made_up_arguments_fit_the_signature_and_each_other():
    x, m, mask, free, n, row_count, k, flag, where, scale = arguments.synthetic(many.decl, CONFIG)
    assert (x.shape, x.dtype) == ((64,), np.float32)
    assert (m.shape, m.dtype) == ((32, 32), np.int8)
    assert (mask.shape, mask.dtype) == ((16, 16, 16), np.bool_)
    assert (free.shape, free.dtype) == ((64,), np.float32)
    # Usable as indices into any of the arrays.
    assert m.min() >= 0 and m.max() < 16
    assert x.min() >= 0.0 and x.max() < 1.0
    # What is called like a bound is one, other integers are small.
    assert (n, row_count, k, flag, where) == (16, 16, 16, 1, 1)
    assert scale == 0.5


def test_they_are_the_same_every_time():
    one, two = (arguments.synthetic(many.decl, CONFIG) for _ in range(2))
    assert all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))


def test_a_template_cannot_be_made_up():
    assert arguments.why_none(many.decl) == ""
    assert "parameter size is a template" in arguments.why_none(sized.decl)
    assert arguments.cases_of(sized.decl, [], [], CONFIG) == []


def test_declared_comes_before_recorded_before_made_up():
    calls = [Call((np.zeros(3), 2)), Call((np.zeros(5), 2))]
    declared = qd.kernel(many.decl.fn)
    declared.workload(n=[1, 2])(lambda n: ())
    declared.workload(n=[2])(lambda n: ())

    def labels(kernel, calls):
        cases = arguments.cases_of(kernel.decl, kernel.workloads, calls, CONFIG)
        return [(case.label, case.origin) for case in cases]

    assert labels(declared, calls) == [
        ("n=1", "workload"), ("n=2", "workload"), ("n=2 (2)", "workload"),
    ]  # fmt: skip
    assert labels(many, calls) == [("call 1 (3,)", "recorded"), ("call 2 (5,)", "recorded")]
    assert labels(many, []) == [("synthetic", "synthetic")]


def test_recorded_arguments_are_fresh_each_time():
    (case,) = arguments.cases_of(many.decl, [], [Call((np.zeros(3),))], CONFIG)
    one, two = case.make(), case.make()
    one[0][0] = 7
    assert two[0][0] == 0


def test_copies_keep_what_is_one_array_one_array():
    x = np.zeros(3)
    a, b, c, d = arguments.copied((x, x, x.copy(), "text"))
    assert a is b
    assert a is not x
    assert c is not a
    assert d == "text"


def test_arrays_of_the_engine_are_copied_to_numpy():
    qd.init(arch=qd.interp, log_level="error")
    try:
        (copy,) = arguments.copied((qd.ndarray(qd.i32, (2, 3)),))
        assert (type(copy), copy.shape, copy.dtype) == (np.ndarray, (2, 3), np.int32)
    finally:
        qd.reset()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.zeros((2, 3), np.float16), "f16[2, 3]"),
        (np.zeros(4, np.uint8), "u8[4]"),
        (np.zeros((), bool), "u1[]"),
        (2.5, "2.5"),
        ("x" * 100, "'" + "x" * 36 + "..."),
    ],
)
def test_arguments_are_reported_briefly(value, text):
    assert describe(value) == text
