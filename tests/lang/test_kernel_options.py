"""The options of `qd.kernel` for kernels that are looked up by their source, and `qd.pure`."""

import subprocess
import sys
import warnings

import pytest
from qd_studio import engine as qd
from qd_studio.engine.lang import kernel as kernels

pytestmark = pytest.mark.usefixtures("program")


def test_marks():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = {
            "plain": qd.kernel(one),
            "called": qd.kernel()(one),
            "marked": qd.kernel(fastcache=True)(one),
            "in one call": qd.kernel(one, fastcache=True),
            "not marked": qd.kernel(fastcache=False)(one),
            "old": qd.kernel(pure=True)(one),
            "old, off": qd.kernel(pure=False)(one),
            "both": qd.kernel(pure=True, fastcache=False)(one),
            "decorated": qd.pure(qd.kernel(one)),
            "decorated below": qd.kernel(qd.pure(two)),
        }
    marked = {name for name, kernel in made.items() if kernel.decl.fastcache}
    assert marked == {"marked", "in one call", "old", "both", "decorated", "decorated below"}
    assert all(kernel() == 1 for kernel in made.values())


def one() -> qd.i32:
    return 1


def two() -> qd.i32:
    return 1


def test_unknown_options():
    with pytest.raises(TypeError, match=r"no option 'fastcash'.*fastcache.*pure"):
        qd.kernel(fastcash=True)
    assert qd.kernel(graph=False)(one)() == 1


def test_pure_decorates_what_can_be_called():
    with pytest.raises(TypeError, match="decorates a kernel, not 3"):
        qd.pure(3)


def test_old_spellings_warn_once(monkeypatch):
    monkeypatch.setattr(kernels, "_warned", set())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            qd.pure(qd.kernel(one))
            qd.kernel(pure=True)(one)
            qd.kernel(pure=False)(one)
            qd.kernel(fastcache=True)(one)
    texts = [(w.category, str(w.message), w.filename) for w in caught]
    removed = "is deprecated and will be removed in 4.0.0"
    assert texts == [
        (UserWarning, f"@qd.pure {removed}: use @qd.kernel(fastcache=True)", __file__),
        (UserWarning, f"The option `pure` of @qd.kernel {removed}: use `fastcache`", __file__),
    ]


# Kernels that are not marked


def test_kernels_that_are_not_marked_are_named(capsys):
    qd.init(arch=qd.cpu, offline_cache=False, print_non_pure=True)
    capsys.readouterr()

    @qd.kernel
    def scale(a: qd.template(), x: qd.types.NDArray[qd.i32, 1], y: qd.types.NDArray[qd.i32, 1]):
        for i in x:
            x[i] = a * y[i]

    @qd.kernel(fastcache=True)
    def marked() -> qd.i32:
        return 1

    x, y = qd.ndarray(qd.i32, 2), qd.ndarray(qd.i32, 2)
    for a, b in ((x, y), (x, x)):  # the second needs another variant for arrays that overlap
        scale(2, a, b)
        scale(3, a, b)
    marked()
    line = "[NOT_PURE] Debug information: not pure: scale"
    assert capsys.readouterr().out.splitlines() == [line, line]


def test_kernels_are_not_named_unless_asked(capsys):
    qd.kernel(one)()
    assert "NOT_PURE" not in capsys.readouterr().out


def test_the_option_says_nothing_at_the_start():
    code = "from qd_studio import engine as qd; qd.init(arch=qd.cpu, print_non_pure=True)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert "print_non_pure" not in done.stdout + done.stderr
