"""The page on fastcache, statement by statement: the types of parameters that it supports.

Each docstring names the statement. Where the documented system does something else than its page,
or worse, it says so.
"""

import pytest

from tests.caches.programs import NEVER, NEW, WARM, cases, letters, program, values
from tests.caches.two_runs import Runs

pytestmark = pytest.mark.slow  # in-process: `test_fastcache_arguments`


@pytest.fixture
def runs(tmp_path) -> Runs:
    return Runs(tmp_path)


# ---- Constraints: supported parameter types


def test_ndarray_parameters(runs):
    """qd.types.NDArray: the key includes dtype and ndim; values and shapes are none of it."""
    body = """
@qd.kernel(fastcache=True)
def fill(a: qd.types.NDArray) -> None:
    for I in qd.grouped(a):
        a[I] = a[I] + 0.5


def main():
    return calls(
        fill,
        lambda: (ones(),),
        lambda: (array([7.0, 8.0, 9.0]),),
        lambda: (array([1.0, 2.0], qd.f64),),
        lambda: (array([[1.0, 2.0]]),),
        lambda: (array([[1.0, 2.0]], qd.f64),),
    )
"""
    found = cases(runs, body, "n=nnn")
    assert found == [[1.5] * 4, [7.5, 8.5, 9.5], [1.5, 2.5], [[1.5, 2.5]], [[1.5, 2.5]]]


def test_the_layout_of_an_ndarray_is_in_the_key(runs):
    """... and layout."""
    body = """
@qd.kernel(fastcache=True)
def fill(a: qd.Tensor) -> None:
    for i, j in qd.ndrange(2, 3):
        a[i, j] = 10.0 * i + j


def made(**options):
    return (qd.tensor(qd.f32, (2, 3), backend=qd.Backend.NDARRAY, **options),)


def main():
    return calls(fill, made, made, lambda: made(layout=(1, 0)), lambda: made(layout=(0, 1)))
"""
    found = cases(runs, body, "n=n=")
    assert found == [[[0.0, 1.0, 2.0], [10.0, 11.0, 12.0]]] * 4


def test_vector_and_matrix_ndarrays(runs):
    """Arrays of vectors and matrices: dtype, ndim and the shape of the elements."""
    body = """
@qd.kernel(fastcache=True)
def fill(a: qd.types.NDArray) -> None:
    for i in range(a.shape[0]):
        a[i] = a[i] * 0.0 + 3.0


def main():
    qd.init(arch=qd.cpu)
    return calls(
        fill,
        lambda: (qd.Vector.ndarray(2, qd.f32, (2,)),),
        lambda: (qd.Vector.ndarray(3, qd.f32, (2,)),),
        lambda: (qd.Matrix.ndarray(2, 2, qd.f32, (1,)),),
        lambda: (qd.Vector.ndarray(2, qd.f32, (5,)),),
    )
"""
    found = cases(runs, body, "nnn=")
    assert found[0] == [[3.0] * 2] * 2 and found[2] == [[[3.0] * 2] * 2]


def test_numpy_arrays(runs):
    """NumPy arrays: dtype and ndim; not shape, values, or whose memory it is."""
    body = """
@qd.kernel(fastcache=True)
def add(a: qd.types.ndarray()) -> None:
    for I in qd.grouped(a):
        a[I] += 1


def main():
    return calls(
        add,
        lambda: (np.zeros(3, np.float32),),
        lambda: (np.ones(5, np.float32),),
        lambda: (np.zeros(3, np.float64),),
        lambda: (np.zeros(3, np.int32),),
        lambda: (np.zeros((1, 2), np.float32),),
    )
"""
    found = cases(runs, body, "n=nnn")
    assert found == [[1.0] * 3, [2.0] * 5, [1.0] * 3, [1] * 3, [[1.0] * 2]]


def test_torch_tensors(runs):
    """torch tensors: dtype and ndim."""
    pytest.importorskip("torch")
    body = """
import torch


@qd.kernel(fastcache=True)
def add(a: qd.types.ndarray()) -> None:
    for I in qd.grouped(a):
        a[I] += 1


def main():
    return calls(
        add,
        lambda: (torch.zeros(3),),
        lambda: (torch.ones(5),),
        lambda: (torch.zeros(3, dtype=torch.float64),),
        lambda: (torch.zeros(1, 2),),
    )
"""
    assert cases(runs, body, "n=nn")[:2] == [[1.0] * 3, [2.0] * 5]


def test_template_primitives(runs):
    """Template primitives: type and value, which are baked into the kernel."""
    body = """
@qd.kernel(fastcache=True)
def fill(a: F32, t: qd.template()) -> None:
    for i in range(a.shape[0]):
        a[i] = t / 2


def main():
    return calls(fill, *[lambda t=t: (ones(1), t) for t in (1, 3, 1, 1.0, True, 1.5, -1)])
"""
    found = cases(runs, body, "nn=nnnn")
    assert found == [[0.5], [1.5], [0.5], [0.5], [0.5], [0.75], [-0.5]]


def test_other_primitives(runs):
    """Primitives that are no templates: type only."""
    body = """
@qd.kernel(fastcache=True)
def fill(a: F32, n: qd.i32, x: float, b: bool) -> None:
    for i in range(n):
        a[i] = x
        if b:
            a[i] = -x


def main():
    return calls(
        fill,
        lambda: (ones(2), 1, 5.0, False),
        lambda: (ones(2), 2, 5.0, False),
        lambda: (ones(2), 2, 7.5, False),
        lambda: (ones(2), 2, 7.5, True),
    )
"""
    assert cases(runs, body, "n===") == [[5.0, 1.0], [5.0] * 2, [7.5] * 2, [-7.5] * 2]


def test_enums(runs):
    """enum.Enum: name and value."""
    body = """
class Mode(enum.Enum):
    SLOW = 1
    FAST = 2


@qd.kernel(fastcache=True)
def fill(a: F32, mode: qd.template()) -> None:
    for i in range(a.shape[0]):
        if qd.static(mode == Mode.FAST):
            a[i] = 9.0
        else:
            a[i] = 4.0


def main():
    return calls(fill, *[lambda m=m: (ones(1), m) for m in (Mode.SLOW, Mode.FAST, Mode.SLOW)])
"""
    assert cases(runs, body, "nn=") == [[4.0], [9.0], [4.0]]
    runs.edit("FAST = 2", "FAST = 3")
    run = runs.run()
    assert values(run) == [[4.0], [9.0], [4.0]]
    assert letters(run)[1] == NEW


def test_none(runs):
    """None is a value like others."""
    body = """
@qd.kernel(fastcache=True)
def fill(a: F32, t: qd.template()) -> None:
    for i in range(a.shape[0]):
        if qd.static(t is None):
            a[i] = 9.0
        else:
            a[i] = t


def main():
    return calls(fill, *[lambda t=t: (ones(1), t) for t in (None, 2, None)])
"""
    assert cases(runs, body, "nn=") == [[9.0], [2.0], [9.0]]


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


@pytest.mark.sampled(3)
@pytest.mark.parametrize("field", ["qd.field(qd.f32, 4)", "qd.Vector.field(1, qd.f32, 4)"])
def test_fields_through_tensor_parameters_disable_it_silently(runs, field):
    """... silent for a field that arrives through a parameter annotated qd.Tensor."""
    body = FIELD.replace("qd.field(qd.f32, 4)", field).replace("ANNOTATION", "qd.Tensor")
    runs.write(program(body.replace("f.to_numpy()", "f.to_numpy().ravel()")))
    for _ in range(2):
        run = runs.run()
        assert run.result == [[2.0] * 4, NEVER]
        assert "FASTCACHE" not in run.stderr and not run.stderr.strip()
        assert run.of("fill").state("fastcache") == "bypass"


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
