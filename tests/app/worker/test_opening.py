"""Files as strangers write them: imports that end early, windows, and kinds of files.

The files of one test are opened by one worker, since a worker takes longer to start than they do.
"""

import ast
import json
import os
import subprocess
import sys

import pytest
from qd_studio.app.worker.loader import _RELATIVE, _statements
from qd_studio.app.worker.once import collect
from qd_studio.app.worker.protocol import Limits, Opening

from tests.hygiene.tree import ROOT

from .live import LONG_S, Live

LIMITS = Limits(measure_s=0.01, import_s=2.0, run_s=2.0, grace_s=LONG_S / 2)

HEAD = """\
import quadrants as qd

qd.init(arch=qd.cpu)
x = qd.field(qd.f32, shape=16)


@qd.kernel
def step(f: qd.template(), a: qd.f32):
    for i in f:
        f[i] += a


"""
LATER = """

@qd.kernel
def later(f: qd.template()):
    for i in f:
        f[i] = 0.0
"""
PLAIN = """\
import quadrants as qd

@qd.kernel
def step(x: qd.types.ndarray(dtype=qd.f32, ndim=1)):
    for i in x:
        x[i] = x[i] * 2.0
"""


def opened(folder, files, limits=LIMITS, **options):
    """The record of ``files`` (name -> text), and a function: name -> kernels by name."""
    paths = []
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        paths.append(path)
    options.setdefault("backends", ("cpu",))
    record = collect(paths, limits=limits, **options)

    def kernels(name):
        return {k.name: k for k in record.kernels if k.file == str(folder / name)}

    return record, kernels


def origins(kernel):
    return [w.origin for w in kernel.workloads]


# name -> (what follows the kernel and a launch, kind of the error, its line, part of its message)
ENDINGS = {
    "raises": ("raise ValueError('no data')\n", "ValueError", 14, "no data"),
    "deeper": ("def f():\n    return 1 / 0\n\nf()\n", "ZeroDivisionError", 15, "division"),
    "exits": ("import sys\nsys.exit(3)\n", "SystemExit", 15, "sys.exit(3)"),
    "interrupts": ("raise KeyboardInterrupt\n", "KeyboardInterrupt", 14, "KeyboardInterrupt"),
    "loops": ("while True:\n    step(x, 0.5)\n", "StepLimit", None, "launches until then count"),
    "segfault": ("import ctypes\nctypes.string_at(0)\n", "WorkerCrash", 15, "SIGSEGV"),
    "leaves": ("import os\nos._exit(7)\n", "WorkerCrash", 15, "exited with status 7"),
}  # fmt: skip


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ended")
    texts = {f"{n}.py": HEAD + "step(x, 2.0)\n" + e[0] + LATER for n, e in ENDINGS.items()}
    texts["fine.py"] = HEAD + "step(x, 2.0)\n" + "raise SystemExit" + LATER
    return opened(folder, texts, run=True)


@pytest.mark.parametrize("name", ENDINGS)
def test_an_import_that_ends_early_keeps_its_kernels_and_launches(ended, name):
    record, kernels = ended
    _, kind, line, message = ENDINGS[name]
    (error,) = [e for e in record.errors if e.file.endswith(f"/{name}.py")]
    assert (error.kind, error.stage) == (kind, "import")
    assert message in error.message
    assert line in (None, error.line)
    assert f"line {error.line}" in error.rendered and "^" in error.rendered
    found = kernels(f"{name}.py")
    assert list(found) == ["step"]
    assert set(origins(found["step"])) == {"recorded"}
    assert found["step"].backend("cpu").launches


def test_leaving_with_status_0_is_no_error(ended):
    record, kernels = ended
    assert not [e for e in record.errors if e.file.endswith("/fine.py")]
    assert origins(kernels("fine.py")["step"]) == ["recorded"]


def test_kernels_below_an_error_stay_as_they_were(tmp_path):
    path = tmp_path / "k.py"
    below = PLAIN.split("\n", 2)[2].replace("step", "below")
    path.write_text(PLAIN + below)
    with Live(path, backends=("cpu",)) as live:
        live.complete()
        record = live.after(path, PLAIN + "oops\n" + below)
        assert [e.kind for e in record.errors] == ["NameError"]
        assert [(k.name, k.stale) for k in record.kernels] == [("step", False), ("below", True)]
        assert [k.stale for k in live.after(path, PLAIN + below).kernels] == [False, False]


@pytest.mark.slow
def test_a_launch_of_main_that_does_not_return_keeps_those_before_it(tmp_path):
    endless = """
@qd.kernel
def endless(f: qd.template(), n: qd.i32):
    for i in f:
        k = 0
        while k < n:
            f[i] = f[i] * 0.5 + 1.0
            k = k + 1
            if k > 1000:
                k = 1


def main():
    for _ in range(3):
        step(x, 2.0)
    endless(x, 1000000)
"""
    limits = Limits(measure_s=0.01, run_s=1.0, launch_s=1.0, grace_s=0.5)
    record, kernels = opened(tmp_path, {"k.py": HEAD + endless}, limits, run=True)
    (error,) = record.errors
    assert (error.kind, error.stage) == ("TimeLimit", "run")
    assert "stopped after 1 s" in error.message and "launch 4 began" in error.message
    found = kernels("k.py")
    assert [origins(k) for k in found.values()] == [["recorded"], ["recorded"]]
    assert found["step"].backend("cpu").launches
    assert found["endless"].backend("cpu").status == "error"


MADE = """\
import quadrants as qd


def main():
    qd.init(arch=qd.cpu)

    @qd.data_oriented
    class Sim:
        def __init__(self):
            self.x = qd.field(qd.f32, shape=16)

        @qd.kernel
        def step(self, a: qd.f32):
            for i in self.x:
                self.x[i] += a

    Sim().step(2.0)
    raise ValueError("late")
"""


def test_kernels_that_functions_make_are_listed_when_they_are_called(tmp_path):
    guarded = "\n\nif __name__ == '__main__':\n    main()\n"
    helper = "import quadrants as qd\n\n\n@qd.func\ndef f(x):\n    return x\n"
    files = {"a.py": MADE, "b.py": MADE + guarded, "c.py": MADE + "\n\nmain()\n", "d.py": helper}
    # What the import made is of a program that ends when the file runs as a script.
    inner = "    @qd.kernel\n    def k():\n        for i in x:\n            x[i] += 1.0\n"
    made = f"def make():\n{inner}    k()\n\n\nmake()\nif __name__ == '__main__':\n    make()\n"
    files["e.py"] = HEAD.partition("@qd.kernel")[0] + made
    record, kernels = opened(tmp_path, files, run=True)
    for name, stage in (("a.py", "run"), ("b.py", "run"), ("c.py", "import")):
        (kernel,) = kernels(name).values()
        assert (kernel.name, origins(kernel)) == ("main.Sim.step", ["recorded"])
        assert kernel.backend("cpu").launches
        (error,) = [e for e in record.errors if e.file.endswith(name)]
        assert (error.kind, error.stage, error.line) == ("ValueError", stage, 18)
    assert not [e for e in record.errors if e.file.endswith(("d.py", "e.py"))]
    (kernel,) = kernels("e.py").values()
    assert origins(kernel) == ["recorded"]
    assert kernel.backend("cpu").status == "ok" and kernel.backend("cpu").launches
    record, _ = opened(tmp_path, {"b.py": MADE + guarded})
    assert "kernels that functions make are listed with --run" in record.errors[0].message


# ---- windows

GUI = """
gui = ti.GUI("points", res=(64, 64), background_color=0x112F41)
speed = gui.slider("speed", 1, 10)
shown = 0
while gui.running and not gui.get_event(ti.GUI.ESCAPE):
    for e in gui.get_events(ti.GUI.PRESS):
        raise SystemExit(1)
    if gui.is_pressed("a", ti.GUI.LEFT):
        raise SystemExit(2)
    mouse = gui.get_cursor_pos()
    step(x, 0.25 * speed.value)
    gui.circles(x.to_numpy().reshape(8, 2), radius=1.5, color=0xFFFFFF)
    gui.set_image(x)
    gui.show(f"{shown:03}.png")
    shown += 1
print("shown", shown)
"""
UI = """
def main():
    window = ti.ui.Window("mesh", (64, 64), vsync=True)
    canvas, scene, camera = window.get_canvas(), window.get_scene(), ti.ui.Camera()
    camera.position(1.0, 2.0, 3.0)
    a, on, shown = 0.75, True, 0
    while True:
        with window.GUI.sub_window("options", 0, 0, 0.5, 0.5) as w:
            a = w.slider_float("a", a, 0.0, 1.0)
            on = w.checkbox("on", on)
            assert not w.button("reset")
        camera.track_user_inputs(window, movement_speed=0.03, hold_key=ti.ui.RMB)
        scene.set_camera(camera)
        scene.particles(x, radius=0.1)
        if on and not window.is_pressed(ti.ui.SPACE):
            step(x, a)
        canvas.scene(scene)
        canvas.set_background_color((0, 0, 0))
        print("frame", camera.curr_position[2])
        window.show()


if __name__ == "__main__":
    main()
"""
OTHER_LOOPS = """
video = ti.tools.VideoManager("out", framerate=24)
for frame in range(3):
    step(x, 1.5)
    video.write_frame(x.to_numpy())
video.make_video(gif=True)
ti.tools.imwrite(x, "x.png")
gui = ti.GUI("waits")
gui.get_key_event()
raise ValueError("after the window")
"""


def test_windows_close_after_some_frames_and_their_loops_are_recorded(tmp_path):
    texts = {"gui.py": GUI, "ui.py": UI, "other.py": OTHER_LOOPS}
    head = HEAD.replace("import quadrants as qd", "import taichi as ti").replace("qd.", "ti.")
    files = {name: head + text for name, text in texts.items()}
    record, kernels = opened(tmp_path, files, run=True, opening=Opening(frames=3))
    assert record.errors == ()
    printed = [line.text for line in record.log]
    assert "shown 3" in printed
    # The loop without a test ends with the frame that would be one too many.
    assert printed.count("frame 3.0") == 4
    assert any("'points' was closed after 3 frames" in text for text in printed)
    for name, value in (("gui.py", "0.25"), ("ui.py", "0.75"), ("other.py", "1.5")):
        (workload,) = kernels(name)["step"].workloads
        assert workload.origin == "recorded"
        assert any(value in arg for arg in workload.args), workload.args
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(files)


# ---- kinds of files

CODE = PLAIN.split("\n", 2)[2]
NOTEBOOK = {
    "nbformat": 4,
    "cells": [
        {"cell_type": "markdown", "source": ["# Title"]},
        {
            "cell_type": "code",
            "source": ["%matplotlib inline\n", "!ls\n", "import quadrants as qd"],
        },
        {"cell_type": "code", "source": "%%bash\nrm -rf nothing\n"},
        {"cell_type": "code", "source": CODE},
        {
            "cell_type": "code",
            "source": [
                "if True:\n",
                "    %time\n",
                "len?\n",
                "display(get_ipython().x(1))\n",
                "1 / 0",
            ],
        },
    ],
}
RELATIVE = "from .help import FACTOR\nfrom ..above import ABOVE\n" + PLAIN
# As an editable checkout puts itself before all other ways of finding modules.
HOOK = """\
import importlib.util, os, sys
class Editable:
    def find_spec(self, name, path=None, target=None):
        if name == "quadrants":
            file = os.path.join(os.path.dirname(__file__), "quadrants", "__init__.py")
            return importlib.util.spec_from_file_location(name, file)
sys.meta_path.insert(0, Editable())
"""
ODD_FILES = {
    "random.py": PLAIN
    + "import random\nassert random.random() < 1 and not hasattr(random, 'qd')\n",
    "numpy.py": PLAIN + "import numpy\nassert numpy.zeros(3).shape == (3,)\n",
    "quadrants.py": PLAIN,
    "taichi.py": PLAIN,
    "textual.py": PLAIN,
    "with space é.py": PLAIN,
    "no_suffix": "#!/usr/bin/env python\n" + PLAIN.rstrip(),
    "bom.py": b"\xef\xbb\xbf" + PLAIN.replace("\n", "\r\n").replace("    ", "\t").encode(),
    "taichi/__init__.py": "raise ImportError('the wrong one')\n",
    "taichi/examples/patterns.py": "LOGO = 1\n",
    "taichi/examples/drawn/logo.py": "from taichi.examples.patterns import LOGO\n"
    + "import taichi\nassert taichi.kernel\n"
    + PLAIN,
    "latin.py": b"# -*- coding: latin-1 -*-\n# \xe9\n" + PLAIN.encode(),
    "pkg/sub/kernels.py": RELATIVE,
    "site-packages/inside.py": PLAIN,
    "package/quadrants/__init__.py": "raise ImportError('the wrong one')\n",
    "package/sitecustomize.py": HOOK,
    "package/own.py": PLAIN,
    "late.py": "from __future__ import annotations\n'text'\n__doc__ = 'own'\n'more'\n"
    + PLAIN.replace("qd.types.ndarray(dtype=qd.f32, ndim=1)", "qd.types.ndarray()")
    + "assert __doc__ == 'own' and step.__name__ == 'step'\n",
    "arguments.py": PLAIN + "import sys\nassert sys.argv == [__file__, '--n', '3'], sys.argv\n",
}


def test_files_of_every_kind_open(tmp_path, monkeypatch):
    (tmp_path / "pkg/sub").mkdir(parents=True)
    for name in ("pkg/__init__.py", "pkg/sub/__init__.py"):
        (tmp_path / name).write_text("")
    (tmp_path / "pkg/above.py").write_text("ABOVE = 1\n")
    (tmp_path / "pkg/sub/help.py").write_text("FACTOR = 2\n")
    (tmp_path / "link.py").symlink_to(tmp_path / "pkg/sub/kernels.py")
    (tmp_path / "notebook.ipynb").write_text(json.dumps(NOTEBOOK))
    (tmp_path / "none.ipynb").write_text("{}")
    # A checkout of Quadrants that PYTHONPATH names does not win over the alias.
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "package"))
    names = [name for name, text in ODD_FILES.items() if "@qd.kernel" in str(text)]
    for name, text in ODD_FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    paths = [tmp_path / name for name in (*names, "link.py", "notebook.ipynb", "none.ipynb")]
    opening = Opening(arguments=("--n", "3"))
    record = collect(paths, backends=("cpu",), launch=False, limits=LIMITS, opening=opening)
    found = {k.file for k in record.kernels if k.backend("cpu").status == "ok"}
    assert [p.name for p in paths[:-1] if str(p) not in found] == []
    errors = {e.file.rpartition("/")[2]: e for e in record.errors}
    assert list(errors) == ["notebook.ipynb", "none.ipynb"]
    error = errors["notebook.ipynb"]
    assert (error.kind, error.source) == ("ZeroDivisionError", "1 / 0")
    assert error.hint == "line 5 of cell 5" and "(line 5 of cell 5)" in error.rendered
    text = next(f.text for f in record.files if f.path.endswith("notebook.ipynb"))
    assert text.splitlines()[error.line - 1] == "1 / 0"
    assert "# %% cell 4\n@qd.kernel" in text and "# %matplotlib inline\n# !ls\n" in text
    assert "not a Jupyter notebook" in errors["none.ipynb"].message


BROKEN = {
    "cells": [
        {"cell_type": "code", "source": "import quadrants as qd\nqd.init()\nn = 5\n%time n = 4"},
        {"cell_type": "code", "source": "files = !ls\nx = (n\n%3)\nassert x == 1 and files == []"},
        {"cell_type": "code", "source": "@qd.kernel\ndef k() -> qd.i32:\n    return n\nk()"},
        {"cell_type": "code", "source": "n = 1\nn = = 2"},
    ]
}


def test_the_cells_above_one_that_is_no_python_are_executed(tmp_path):
    path = tmp_path / "broken.ipynb"
    path.write_text(json.dumps(BROKEN))
    record = collect([path], backends=("interp",), launch=False, limits=LIMITS)
    assert [kernel.name for kernel in record.kernels] == ["k"]
    (error,) = record.errors
    assert (error.kind, error.hint) == ("SyntaxError", "line 2 of cell 4")


def test_relative_imports_need_no_init_file(tmp_path):
    (tmp_path / "top/sub").mkdir(parents=True)
    (tmp_path / "top/above.py").write_text("ABOVE = 1\n")
    (tmp_path / "top/sub/help.py").write_text("FACTOR = 2\n")
    (tmp_path / "top/sub/kernels.py").write_text(RELATIVE)
    path = tmp_path / "top/sub/kernels.py"
    record = collect([path], backends=("interp",), launch=False, limits=LIMITS)
    assert not record.errors and len(record.kernels) == 1


def test_a_file_that_lacks_arguments_says_which(tmp_path):
    path = tmp_path / "needs.py"
    needs = "import argparse\np = argparse.ArgumentParser()\np.add_argument('--n', required=True)\n"
    path.write_text(PLAIN + needs + "p.parse_args()\n")
    record = collect([path], backends=("interp",), launch=False, limits=LIMITS)
    (error,) = record.errors
    assert "the following arguments are required: --n" in error.message
    assert "after --" in error.hint and error.hint in error.rendered
    assert len(record.kernels) == 1


LINKED = """
from qd_studio.engine import inspect
from qd_studio.app.worker.once import collect
from qd_studio.app.worker.protocol import Limits
import sys
assert inspect.__file__.startswith(sys.argv[1]), inspect.__file__
assert not inspect.is_user_file(inspect.__file__)
record = collect([sys.argv[2]], backends=("cpu",), launch=True, limits=Limits(measure_s=0.01))
print([(k.name, k.backend("cpu").status) for k in record.kernels], record.errors)
"""


def test_the_package_may_be_imported_through_links(tmp_path):
    """Its modules then have other names than their files; they were taken for the user's."""
    (tmp_path / "qd_studio").mkdir()
    for part in ("engine", "app"):
        (tmp_path / "qd_studio" / part).symlink_to(ROOT / part)
    kernel = tmp_path / "kernel.py"
    kernel.write_text(PLAIN)
    done = subprocess.run(
        [sys.executable, "-c", LINKED, str(tmp_path / "qd_studio"), str(kernel)],
        env=os.environ | {"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout == "[('step', 'ok')] ()\n", done.stderr


@pytest.mark.parametrize(
    "text",
    [
        "x = 1\nglobal x",
        "x = 1\nfrom __future__ import annotations",
        "x = 1\ndef f():\n    nonlocal y",
        "def f():\n    return 1\nreturn",
    ],
)
def test_a_file_that_python_refuses_does_not_run_in_part(text):
    with pytest.raises(SyntaxError):
        _statements(ast.parse(text), "k.py")


def test_statements_keep_what_the_file_imports_from_the_future():
    text = "from __future__ import annotations\n\n@str\ndef f(x: y): pass\ndef g(x: y): pass"
    found, names = _statements(ast.parse(text), "k.py"), {}
    assert [line for line, _ in found] == [1, 3, 5]
    for _, code in found:
        exec(code, names)
    assert names["g"].__annotations__ == {"x": "y"}


@pytest.mark.parametrize(
    ("text", "there"),
    [
        (b"from . import a", True),
        (b"if x:\n\tfrom\\\n ..b import a", True),
        (b"from.a import b", True),
        (b"from a.b import c", False),
        (b"x.from_.y", False),
    ],
)
def test_relative_imports_are_found_in_the_text(text, there):
    assert bool(_RELATIVE.search(text)) is there
