"""`qd-studio run`: a script runs as Python runs it, with our engine under the names of others."""

import signal
import subprocess
import sys

import pytest

from tests.app.application.kit import program, script

SHOW = """
import sys
import {name} as qd
print(sys.argv, __name__, __file__, qd.__name__, sys.path[0], any("startup" in p for p in sys.path))
"""


@pytest.mark.parametrize("name", ["quadrants", "taichi"])
def test_a_script_sees_what_python_shows_it(tmp_path, name):
    path = script(tmp_path, SHOW.format(name=name))
    done = program("run", path, "--size", "4", "--help")
    expected = f"{[str(path), '--size', '4', '--help']} __main__ {path} qd_studio.engine {tmp_path}"
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{expected} False\n", "")


def test_names_of_others_stay_what_they_are(tmp_path):
    (tmp_path / "taichi.py").write_text("mine = True\n")
    path = script(tmp_path, "import taichi\nprint(taichi.mine)\n")
    for words in (["--engine-only", path], [path, "--engine-only"]):
        done = program("run", *words)
        assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr


def test_after_dashes_all_words_are_the_scripts(tmp_path):
    path = script(tmp_path, "import sys\nprint(sys.argv[1:])\n")
    done = program("run", "--", path, "--engine-only")
    assert done.stdout == "['--engine-only']\n"


@pytest.mark.parametrize(
    "text",
    ["import sys; sys.exit(7)", "raise ValueError('no')", "def f(:", "import os; os._exit(9)"],
)
def test_ends_as_python_ends(tmp_path, text):
    path = script(tmp_path, text)
    plain = subprocess.run([sys.executable, path], capture_output=True, text=True, check=False)
    done = program("run", path)
    assert (done.returncode, done.stdout, done.stderr) == (
        plain.returncode, plain.stdout, plain.stderr,
    )  # fmt: skip


def test_a_signal_ends_it(tmp_path):
    path = script(tmp_path, "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)\n")
    assert program("run", path).returncode == -signal.SIGTERM


def test_a_module_and_standard_input(tmp_path):
    (tmp_path / "pack").mkdir()
    script(tmp_path / "pack", "", "__init__.py")
    script(tmp_path / "pack", "import sys, taichi\nprint(__package__, sys.argv[1:])\n", "main.py")
    done = program("run", "-m", "pack.main", "-m", "x", cwd=tmp_path)
    assert (done.stdout, done.stderr) == ("pack ['-m', 'x']\n", "")


CHILDREN = """
import multiprocessing, subprocess, sys
import quadrants as qd

qd.init(qd.cpu)

@qd.kernel
def double(n: qd.i32) -> qd.i32:
    return 2 * n

def work(n):
    print(n, double(n), __name__, flush=True)

if __name__ == "__main__":
    for number, method in enumerate(multiprocessing.get_all_start_methods()):
        child = multiprocessing.get_context(method).Process(target=work, args=(number,))
        child.start()
        child.join()
    subprocess.run([sys.executable, "-c", "import taichi; print(taichi.__name__)"])
"""


def test_children_have_the_engine_too(tmp_path):
    done = program("run", script(tmp_path, CHILDREN))
    lines = done.stdout.splitlines()
    assert [line.split()[:2] for line in lines[:-1]] == [
        [str(i), str(2 * i)] for i in range(len(lines) - 1)
    ]
    assert len(lines) > 2
    assert (lines[-1], done.stderr, done.returncode) == ("qd_studio.engine", "", 0)


def test_a_sitecustomize_of_the_user_is_imported(tmp_path):
    folder = tmp_path / "site"
    folder.mkdir()
    script(folder, "print('mine')\n", "sitecustomize.py")
    path = script(tmp_path, "import sys; print(sys.modules['sitecustomize'].__file__)")
    done = program("run", path, PYTHONPATH=str(folder))
    assert done.stdout.splitlines()[-2:] == ["mine", str(folder / "sitecustomize.py")]


WINDOW = """
import taichi as ti
gui = ti.GUI("w")
while True:
    gui.show()
    print("frame", flush=True)
"""


def test_windows_have_stand_ins_only_if_asked_for(tmp_path):
    path = script(tmp_path, WINDOW)
    without = program("run", path)
    assert without.returncode == 1
    assert "GUI" in without.stderr
    done = program("run", "--windows", "--frames", "3", path)
    assert (done.returncode, done.stdout.count("frame")) == (0, 3), done.stderr


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ([], "no script given"),
        (["nowhere.py"], "there is no file nowhere.py"),
        (["--frames", "3", "x.py"], "--frames goes with --windows"),
        (["--frames", "0", "x.py"], "not a number of 1 or more"),
        (["--what", "x.py"], "--what"),
    ],
)
def test_usage(words, text):
    done = program("run", *words)
    assert done.returncode == 2
    assert text in done.stderr
