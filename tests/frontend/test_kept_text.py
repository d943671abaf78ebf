"""Kernels that are in no file: ``python -c``, standard input, the prompt, ``exec``."""

import linecache
import py_compile
import subprocess
import sys
import zipfile
from types import SimpleNamespace
from typing import Any

import pytest
from qd_studio import engine as qd
from qd_studio.engine.errors import QuadrantsSyntaxError

PROGRAM = '''
from qd_studio import engine as qd
qd.init(qd.cpu, offline_cache=False)

@qd.func
def twice(x):
    return 2 * x

less = qd.func(lambda x: x - 1)

@qd.kernel
def total(n: qd.i32) -> qd.i32:
    """The sum of twice the numbers."""
    s = 0
    for i in range(n):
        s += twice(less(i + 1))
    return s

print(total(5))
exec("@qd.kernel\\ndef made() -> qd.i32:\\n    return 3\\n")
try:
    made()
except Exception as error:
    print(error.hint)
'''
ASKS = "@qd.kernel(source=TEXT)"


def run(*words: str, **options: Any) -> list[str]:
    done = subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, check=True, **options
    )
    return done.stdout.splitlines()


@pytest.mark.parametrize("words", [("-c", PROGRAM, "-c", "x"), ("-Xdev", "-Bc" + PROGRAM)])
def test_the_argument_of_python(words: tuple[str, ...]) -> None:
    first, second = run(*words)
    assert first == "20"
    assert ASKS in second


def test_a_file_as_standard_input(tmp_path: Any) -> None:
    file = tmp_path / "program.txt"
    file.write_text(PROGRAM, encoding="utf-8")
    with file.open() as stream:
        first, second = run("-", stdin=stream)
    assert first == "20"
    assert ASKS in second


MODULE = PROGRAM.split("exec(")[0]


def test_a_module_and_a_program_in_an_archive(tmp_path: Any) -> None:
    archive = tmp_path / "program.pyz"
    with zipfile.ZipFile(archive, "w") as made:
        made.writestr("module.py", MODULE)
        made.writestr("__main__.py", "import module\n" + MODULE)
    assert run(str(archive)) == ["20", "20"]


def test_a_module_without_its_source(tmp_path: Any) -> None:
    """The error names the file that is missing."""
    (tmp_path / "source.py").write_text(MODULE, encoding="utf-8")
    py_compile.compile(str(tmp_path / "source.py"), str(tmp_path / "module.pyc"), "module.py")
    program = "try:\n    import module\nexcept Exception as error:\n    print(error)"
    text = "\n".join(run("-c", program, cwd=tmp_path))
    assert "there is no file module.py" in text
    assert ASKS in text


@pytest.mark.parametrize("name", ["<ipython-input-3-0123456789ab>", "/tmp/ipykernel_7/1234.py"])
def test_cells_of_notebooks(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """IPython keeps their text in linecache, under names of its own."""
    import linecache

    text = "@qd.kernel\ndef k(n: qd.i32) -> qd.i32:\n    return less(n) * 2\n"
    text += "less = qd.func(lambda x: x - 1)\n"
    entry = len(text), None, text.splitlines(keepends=True), name
    monkeypatch.setitem(linecache.cache, name, entry)
    names: dict[str, Any] = {"qd": qd}
    exec(compile(text, name, "exec"), names)
    qd.init(qd.interp)
    assert names["k"](4) == 6


TYPED = ["qd.init()", "@qd.kernel", "def k() -> qd.i32:", "    return 3", "    ", "k = k"]


@pytest.mark.parametrize("name", ["<stdin>-2", "<python-input-3>"])
def test_what_newer_prompts_keep(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    typed = "@qd.kernel\ndef seven() -> qd.i32:\n    return 7\n"
    kept = {("seven", name): typed}

    def lines(code: Any) -> list[str]:
        return kept.get((code.co_name, code.co_filename), "").splitlines(keepends=True)

    monkeypatch.setattr(linecache, "_getlines_from_code", lines, raising=False)
    scope: dict[str, Any] = {"qd": qd}
    exec(compile(typed, name, "exec"), scope)
    qd.init(qd.cpu)
    assert scope["seven"]() == 7


@pytest.mark.parametrize("name", ["<stdin>", "<console>"])
def test_the_history_of_a_prompt(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    history = ["def k() -> qd.i32:", "    return 4", *TYPED]
    readline = SimpleNamespace(
        get_current_history_length=lambda: len(history),
        get_history_item=lambda at: history[at - 1],
    )
    monkeypatch.setitem(sys.modules, "readline", readline)
    names: dict[str, Any] = {"qd": qd}
    exec(compile("\n".join(TYPED[1:4]), name, "exec"), names)
    qd.init(qd.interp)
    assert names["k"]() == 3


TEXT = """
import math

@qd.func(source=TEXT)
def scaled(x):
    return x * math.pi

@qd.real_func(source=TEXT)
def deep(x: qd.i32) -> qd.i32:
    return 0 if x < 1 else 1 + deep(x - 1)

@qd.pyfunc(source=TEXT)
def both(x):
    return x + 1

@qd.kernel(source=TEXT)
def k(a: qd.i32) -> qd.f32:
    return scaled(1.0) + both(deep(a))

@qd.data_oriented
class Holder:
    @qd.kernel(source=TEXT)
    def method(self) -> qd.i32:
        return 8
"""


def test_text_that_was_executed() -> None:
    names: dict[str, Any] = {"qd": qd, "TEXT": TEXT}
    exec(TEXT, names)
    qd.init(qd.interp)
    assert names["k"](3) == pytest.approx(7.14159265)
    assert names["Holder"]().method() == 8
    assert names["both"](1) == 2


ONE = "def g(x: qd.i32) -> qd.i32:\n    return x + 1\n"


@pytest.mark.parametrize("above", [0, 3])
@pytest.mark.parametrize("source", [ONE, "\n\n\n\n\n" + ONE, "    " + ONE.replace("\n", "\n    ")])
def test_text_that_holds_the_function_at_another_line(above: int, source: str) -> None:
    names: dict[str, Any] = {"qd": qd}
    exec("\n" * above + ONE, names)
    qd.init(qd.interp)
    made = qd.kernel(names["g"], source=source)
    assert made(4) == 5
    assert made.decl.line == above + 1


@pytest.mark.parametrize(
    "source", ["", "a b", ONE.replace("1", "2"), ONE.replace("x", "y"), ONE + ONE]
)
def test_text_of_another_function(source: str) -> None:
    names: dict[str, Any] = {"qd": qd}
    exec("\n" * 7 + ONE, names)
    with pytest.raises(QuadrantsSyntaxError, match="no function of that name"):
        qd.kernel(names["g"], source=source)


def test_the_source_is_text() -> None:
    with pytest.raises(TypeError, match="source must be text, not int"):
        qd.kernel(lambda: 3, source=3)  # type: ignore[arg-type]


def test_another_text_of_the_same_name_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    import linecache

    other = "@qd.kernel\ndef k() -> qd.i32:\n    return 4\n"
    lines = other.splitlines(keepends=True)
    monkeypatch.setitem(linecache.cache, "<string>", (1, None, lines, "<string>"))
    names: dict[str, Any] = {"qd": qd}
    exec(other.replace("4", "3"), names)
    qd.init(qd.interp)
    with pytest.raises(QuadrantsSyntaxError, match="Cannot read the source"):
        names["k"]()
