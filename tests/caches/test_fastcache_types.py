"""The page on fastcache, statement by statement: the types of parameters that it supports.

Each docstring names the statement. Where the documented system does something else than its page,
or worse, it says so.
"""

import pytest

from tests.caches.programs import NEVER, NEW, WARM, cases, letters, program, values

pytestmark = pytest.mark.slow  # in-process: `test_fastcache_arguments`


MODE = "\n\nclass Mode(enum.Enum):\n    SLOW = 1\n    FAST = 2\n"
FILL = """
{before}

@qd.kernel(fastcache=True)
def fill({parameters}) -> None:
    {body}


def main():
    qd.init(arch=qd.cpu)
    return calls(fill, {arguments})
"""

# What of a type is in the key -> lines before the kernel, its parameters, its body, its arguments
# in each call, which of the keys are new (`cases`), and the values.
TYPES = {
    "qd.types.NDArray: dtype and ndim; not values, not shapes": (
        "", "a: qd.types.NDArray", "for I in qd.grouped(a):\n        a[I] = a[I] + 0.5",
        ("ones()", "array([7.0, 8.0, 9.0])", "array([1.0, 2.0], qd.f64)", "array([[1.0, 2.0]])",
         "array([[1.0, 2.0]], qd.f64)", "np.ones(1, np.float32)"),
        "n=nnnn", [[1.5] * 4, [7.5, 8.5, 9.5], [1.5, 2.5], [[1.5, 2.5]], [[1.5, 2.5]], [1.5]],
    ),
    "... and layout": (
        "\n\ndef made(**more):\n"
        "    return qd.tensor(qd.f32, (2, 3), backend=qd.Backend.NDARRAY, **more)\n",
        "a: qd.Tensor", "for i, j in qd.ndrange(2, 3):\n        a[i, j] = 10.0 * i + j",
        ("made()", "made()", "made(layout=(1, 0))", "made(layout=(0, 1))"),
        "n=n=", [[[0.0, 1.0, 2.0], [10.0, 11.0, 12.0]]] * 4,
    ),
    "arrays of vectors and matrices: the shape of the elements, too": (
        "", "a: qd.types.NDArray",
        "for i in range(a.shape[0]):\n        a[i] = a[i] * 0.0 + 3.0",
        ("qd.Vector.ndarray(2, qd.f32, (2,))", "qd.Vector.ndarray(3, qd.f32, (2,))",
         "qd.Matrix.ndarray(2, 2, qd.f32, (1,))", "qd.Vector.ndarray(2, qd.f32, (5,))"),
        "nnn=", [[[3.0] * 2] * 2, [[3.0] * 3] * 2, [[[3.0] * 2] * 2], [[3.0] * 2] * 5],
    ),
    "NumPy arrays: dtype and ndim; not shape, values, or whose memory it is": (
        "", "a: qd.types.ndarray()", "for I in qd.grouped(a):\n        a[I] += 1",
        ("np.zeros(3, np.float32)", "np.ones(5, np.float32)", "np.zeros(3, np.float64)",
         "np.zeros(3, np.int32)", "np.zeros((1, 2), np.float32)"),
        "n=nnn", [[1.0] * 3, [2.0] * 5, [1.0] * 3, [1] * 3, [[1.0] * 2]],
    ),
    "torch tensors: dtype and ndim": (
        "import torch\n", "a: qd.types.ndarray()", "for I in qd.grouped(a):\n        a[I] += 1",
        ("torch.zeros(3)", "torch.ones(5)", "torch.zeros(3, dtype=torch.float64)",
         "torch.zeros(1, 2)"),
        "n=nn", [[1.0] * 3, [2.0] * 5, [1.0] * 3, [[1.0] * 2]],
    ),
    "template primitives: type and value, which are baked into the kernel": (
        "", "a: F32, t: qd.template()", "for i in range(a.shape[0]):\n        a[i] = t / 2",
        [f"ones(1), {t}" for t in (1, 3, 1, 1.0, True, 1.5, -1)],
        "nn=nnnn", [[0.5], [1.5], [0.5], [0.5], [0.5], [0.75], [-0.5]],
    ),
    "other primitives: type only": (
        "", "a: F32, n: qd.i32, x: float, b: bool",
        "for i in range(n):\n        a[i] = x\n        if b:\n            a[i] = -x",
        ("ones(2), 1, 5.0, False", "ones(2), 2, 5.0, False", "ones(2), 2, 7.5, False",
         "ones(2), 2, 7.5, True"),
        "n===", [[5.0, 1.0], [5.0] * 2, [7.5] * 2, [-7.5] * 2],
    ),
    "enum.Enum: name and value": (
        MODE, "a: F32, mode: qd.template()",
        "for i in range(a.shape[0]):\n        a[i] = 9.0 if qd.static(mode == Mode.FAST) else 4.0",
        ("ones(1), Mode.SLOW", "ones(1), Mode.FAST", "ones(1), Mode.SLOW"),
        "nn=", [[4.0], [9.0], [4.0]],
    ),
    "None is a value like others": (
        "", "a: F32, t: qd.template()",
        "for i in range(a.shape[0]):\n        a[i] = 9.0 if qd.static(t is None) else t",
        ("ones(1), None", "ones(1), 2", "ones(1), None"), "nn=", [[9.0], [2.0], [9.0]],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TYPES)
def test_what_the_key_has_of_a_type(runs, name):
    before, parameters, body, arguments, expected, results = TYPES[name]
    if "torch" in before:
        pytest.importorskip("torch")
    arguments = ", ".join(f"lambda: ({each},)" for each in arguments)
    text = FILL.format(before=before, parameters=parameters, body=body, arguments=arguments)
    assert cases(runs, text, expected) == results
    if before == MODE:
        runs.edit("FAST = 2", "FAST = 3")
        run = runs.run()
        assert values(run) == results
        assert letters(run)[1] == NEW


FIELD = """
@qd.kernel(fastcache=True)
def fill(f: ANNOTATION) -> None:
    for i in range(4):
        f[i] = 2.0


def main():
    qd.init(arch=qd.cpu)
    f = qd.field(qd.f32, 4)
    fill(f)
    first = flags(fill)
    return f.to_numpy().tolist(), first
"""


def test_fields_disable_fastcache_with_a_warning(runs):
    """qd.field is not supported: normal compilation, a warning that names the parameter."""
    runs.write(program(FIELD.replace("ANNOTATION", "qd.template()")))
    for _ in range(2):
        run = runs.run()
        assert run.result == [[2.0] * 4, NEVER]
        assert "[FASTCACHE][PARAM_INVALID] Parameter with path f and type" in run.stderr
        assert "[FASTCACHE][INVALID_FUNC] The pure function fill could not be" in run.stderr
        assert "warning" in run.stderr
        seen = run.of("fill").layers["fastcache"]
        assert seen["state"] == "bypass" and "f" in seen["reason"].split()
    assert run.of("fill").layers["offline"]["source"] == "disk"


def test_the_warning_has_the_level_warn(runs):
    """... logged at the warn level."""
    body = FIELD.replace("ANNOTATION", "qd.template()")
    runs.write(program(body.replace("arch=qd.cpu", "arch=qd.cpu, log_level='error'")))
    assert "FASTCACHE" not in runs.run().stderr
    runs.write(program(body.replace("arch=qd.cpu", "arch=qd.cpu, log_level='warn'")))
    assert "FASTCACHE" in runs.run().stderr


OBJECT = """
@qd.kernel(fastcache=True)
def fill(a: F32, t: qd.template()) -> None:
    for i in range(a.shape[0]):
        a[i] = t[1]


def main():
    return calls(fill, lambda: (ones(1), (1, 2)), lambda: (ones(1), (1, 3)))
"""


def test_unsupported_types_never_fail_a_call_nor_mislead(runs):
    """Any unsupported type: disabled for that call, normal compilation, a warning with its name."""
    runs.write(program(OBJECT))
    for _ in range(2):
        run = runs.run()
        assert values(run) == [[2.0], [3.0]] and letters(run) == [NEVER] * 2
        named = "[FASTCACHE][PARAM_INVALID] Parameter with path t and type <class 'tuple'>"
        assert named in run.stderr


def test_it_is_disabled_for_that_call_only(runs):
    """... for that call: another call of the same kernel is cached."""
    body = """
@qd.kernel(fastcache=True)
def fill(t: qd.Tensor) -> None:
    for i in range(4):
        t[i] = 2.0


def main():
    return calls(fill, lambda: (qd.field(qd.f32, 4),), lambda: (ones(),))
"""
    runs.write(program(body))
    first, second = runs.run(), runs.run()
    assert values(first) == values(second) == [[2.0] * 4] * 2
    assert (letters(first), letters(second)) == ([NEVER, NEW], [NEVER, WARM])
