"""The public names, what looking up others says, and the alias for existing programs."""

import importlib
import subprocess
import sys

import pytest
from qd_studio import engine as qd
from qd_studio.engine import alias
from qd_studio.engine.config import LANGUAGE_VERSION
from qd_studio.engine.types.later import LATER


@pytest.mark.parametrize("name", ["AutodiffMode", "stream"])
def test_names_of_later_parts_say_so(name):
    with pytest.raises(qd.QuadrantsUnsupportedError, match=f"qd.{name} is not supported in this"):
        getattr(qd, name)
    assert not hasattr(qd, name)


def test_unknown_names_are_attribute_errors():
    for module in (qd, qd.math, qd.types):
        with pytest.raises(AttributeError, match="nonsense") as caught:
            _ = module.nonsense
        assert type(caught.value) is AttributeError


@pytest.mark.parametrize("name", ["GUI", "ui"])
def test_windows_say_what_to_do_instead(name):
    with pytest.raises(AttributeError, match=f"qd.{name}: there are no windows; draw .*--run"):
        getattr(qd, name)
    assert not hasattr(qd, name)


def test_star_import_gives_the_public_names():
    names = {}
    exec("from qd_studio.engine import *", names)
    assert set(qd.__all__) <= set(names)


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
    assert other_func is qd.func
    assert qd.__name__ == "qd_studio.engine"
    assert qd.__spec__.name == "qd_studio.engine"
    alias.install("quadrants_for_tests")
    assert sum(f.alias == "quadrants_for_tests" for f in sys.meta_path if hasattr(f, "alias")) == 1


def test_files_import_from_modules_that_only_quadrants_has(installed):
    import quadrants_for_tests as other
    import quadrants_for_tests.lang.impl as impl
    from quadrants_for_tests.lang import exception
    from quadrants_for_tests.lang.exception import QuadrantsSyntaxError
    from quadrants_for_tests.lang.kernel_impl import func, kernel
    from quadrants_for_tests.lang.misc import cpu, loop_config
    from quadrants_for_tests.math.mathimpl import clamp
    from quadrants_for_tests.types.annotations import template
    from quadrants_for_tests.types.ndarray_type import NDArray
    from quadrants_for_tests.types.primitive_types import f32

    assert QuadrantsSyntaxError is qd.QuadrantsSyntaxError
    assert exception.QuadrantsIndexError is other.lang.exception.QuadrantsIndexError
    assert (kernel, func, loop_config) == (qd.kernel, qd.func, qd.loop_config)
    assert (cpu, template, NDArray, f32) == (qd.cpu, qd.template, qd.types.NDArray, qd.f32)
    assert clamp is qd.math.clamp
    assert impl.static is qd.static


def test_a_module_of_the_engine_is_not_hidden(installed):
    import quadrants_for_tests  # noqa: F401
    from qd_studio.engine.lang import kernel, math

    assert kernel.__name__ == "qd_studio.engine.lang.kernel"
    assert math is qd.math


def test_alias_of_what_is_not_there(installed):
    with pytest.raises(ModuleNotFoundError):
        import quadrants_for_tests.nonsense
    with pytest.raises(ModuleNotFoundError, match=r"quadrants_for_tests\.examples"):
        import quadrants_for_tests.examples  # noqa: F401
    for later in sorted(LATER["qd"])[:1]:
        with pytest.raises(ModuleNotFoundError, match=f"{later} is not supported in this version"):
            importlib.import_module(f"quadrants_for_tests.{later}")
    with pytest.raises(ImportError, match="nonsense"):
        from quadrants_for_tests.lang.impl import nonsense  # noqa: F401


def test_alias_can_be_removed():
    alias.install("quadrants_gone")
    import quadrants_gone

    assert quadrants_gone is qd
    assert quadrants_gone.lang.exception.QuadrantsIndexError is qd.QuadrantsIndexError
    alias.remove("quadrants_gone")
    assert not hasattr(sys.modules["qd_studio.engine.lang"], "exception")
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
    program.write_text(f"import beside\n{PROGRAM}import sys\nprint(sys.argv[1:], beside.x)\n")
    (tmp_path / "beside.py").write_text("x = 7\n")
    command = [sys.executable, "-m", "qd_studio.engine.alias", str(program), "a", "b"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[0.0, 1.0, 2.0]\n['a', 'b'] 7\n", "")


def test_running_nothing_is_an_error():
    command = [sys.executable, "-m", "qd_studio.engine.alias"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "usage:" in done.stderr


def test_the_version_is_that_of_the_language():
    assert qd.__version__ == LANGUAGE_VERSION
