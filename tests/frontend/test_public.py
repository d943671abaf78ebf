"""The public names, what looking up others says, and the alias for existing programs."""

import subprocess
import sys

import pytest
from qd_studio import engine as qd
from qd_studio.engine import alias
from qd_studio.engine.config import LANGUAGE_VERSION


@pytest.mark.parametrize("name", ["field", "Vector", "data_oriented", "ad"])
def test_names_of_later_parts_say_so(name):
    with pytest.raises(qd.QuadrantsUnsupportedError, match=f"qd.{name} is not supported in this"):
        getattr(qd, name)
    assert not hasattr(qd, name)


def test_later_names_of_submodules():
    with pytest.raises(qd.QuadrantsUnsupportedError, match=r"qd\.math\.vec3"):
        _ = qd.math.vec3
    with pytest.raises(qd.QuadrantsUnsupportedError, match=r"qd\.types\.vector"):
        _ = qd.types.vector


def test_unknown_names_are_attribute_errors():
    for module in (qd, qd.math, qd.types):
        with pytest.raises(AttributeError, match="nonsense") as caught:
            _ = module.nonsense
        assert type(caught.value) is AttributeError


def test_star_import_gives_the_public_names():
    names = {}
    exec("from qd_studio.engine import *", names)
    assert set(qd.__all__) <= set(names)


def test_type_names():
    assert (qd.int8, qd.uint64, qd.float16, qd.uint1) == (qd.i8, qd.u64, qd.f16, qd.u1)


def test_functions_compute_in_python_too():
    assert qd.round(2.5) == 3.0 and qd.round(-2.5) == -3.0
    assert (qd.raw_div(-7, 2), qd.raw_mod(-7, 2)) == (-3, -1)
    assert qd.select(1, 2, 3) == 2
    assert qd.cast(300, qd.u8) == 44
    assert list(qd.ndrange(2, (1, 3), axes=(1, 0))) == [(0, 1), (1, 1), (0, 2), (1, 2)]
    assert len(qd.ndrange(2, (1, 3), (5, 2))) == 0
    assert qd.static(3) == 3 and qd.static(1, 2) == (1, 2)
    assert qd.math.smoothstep(0.0, 1.0, 0.5) == 0.5
    with pytest.raises(TypeError, match="Every argument of ndrange"):
        qd.ndrange(2.5)
    with pytest.raises(AssertionError, match="only be used in a kernel"):
        qd.atomic_add(1, 2)


@pytest.fixture
def installed():
    alias.install("quadrants_for_tests")
    yield
    alias.remove("quadrants_for_tests")


def test_alias(installed):
    import quadrants_for_tests as other
    import quadrants_for_tests.types as other_types
    from quadrants_for_tests import kernel, math
    from quadrants_for_tests.lang import func as other_func

    assert other is qd
    assert other_types is qd.types
    assert kernel is qd.kernel and math is qd.math
    assert other_func.func is qd.func
    assert qd.__name__ == "qd_studio.engine"
    assert qd.__spec__.name == "qd_studio.engine"
    alias.install("quadrants_for_tests")
    assert sum(f.alias == "quadrants_for_tests" for f in sys.meta_path if hasattr(f, "alias")) == 1


def test_alias_of_what_is_not_there(installed):
    with pytest.raises(ModuleNotFoundError):
        import quadrants_for_tests.nonsense  # noqa: F401


def test_alias_can_be_removed():
    alias.install("quadrants_gone")
    import quadrants_gone

    assert quadrants_gone is qd
    alias.remove("quadrants_gone")
    with pytest.raises(ModuleNotFoundError):
        import quadrants_gone


PROGRAM = """\
import quadrants as qd
import numpy as np

qd.init(arch=qd.interp, log_level=qd.ERROR)

@qd.kernel
def k(x: qd.types.NDArray[qd.f32, 1]):
    for i in x:
        x[i] = i

x = np.zeros(3, np.float32)
k(x)
print(x.tolist())
"""


def test_a_program_for_quadrants_runs_unchanged(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    code = (
        "from qd_studio.engine import alias; alias.install('quadrants'); import runpy; "
        f"runpy.run_path({str(program)!r}, run_name='__main__')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[0.0, 1.0, 2.0]\n", "")


def test_the_version_is_that_of_the_language():
    assert qd.__version__ == LANGUAGE_VERSION
