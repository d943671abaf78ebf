"""Programs for Taichi: the alias, names that only Taichi has, graphs of launches, windows."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine import alias

PROGRAM = """\
import taichi as ti
import taichi.math as tm
from taichi.lang.exception import TaichiRuntimeError
from taichi.lang.kernel_impl import func

ti.init(arch=ti.opengl, log_level=ti.ERROR)
x = ti.Vector.field(2, ti.f32, shape=4)

@ti.kernel
def step():
    for i in x:
        x[i] += tm.vec2(i, 1)

assert issubclass(TaichiRuntimeError, RuntimeError)
"""
WINDOW = """\
gui = ti.GUI("points")
while gui.running:
    step()
    gui.circles(x.to_numpy(), color=ti.rgb_to_hex((1, 0, 0)))
    gui.show()
print(x[3])
window = ti.ui.Window("more", (32, 32))
while True:
    window.show()
"""


@pytest.fixture
def run(tmp_path):
    """Run a program through the alias."""

    def run(text, *options, folders=()):
        path = tmp_path / "program.py"
        path.write_text(text)
        command = [sys.executable, "-m", "qd_studio.engine.alias", *options, str(path)]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, folders))}
        return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)

    return run


def test_a_program_for_taichi_runs_with_stand_ins_for_windows(run, tmp_path):
    # A package of that name does not win over the alias, but its examples are found.
    package = tmp_path / "elsewhere" / "taichi"
    (package / "examples").mkdir(parents=True)
    (package / "__init__.py").write_text("raise ImportError('the wrong one')\n")
    (package / "examples" / "patterns.py").write_text("import taichi as ti\nLOGO = ti.kernel\n")
    text = "from taichi.examples.patterns import LOGO\n" + PROGRAM + WINDOW
    done = run(text, "--frames", "3", folders=[package.parent])
    assert (done.returncode, done.stdout) == (0, "[9. 3.]\n"), done.stderr
    assert "'points' was closed after 3 frames; --frames changes that" in done.stderr
    done = run("from taichi.examples.patterns import LOGO\n")
    assert "no package 'taichi' with examples is on sys.path" in done.stderr


FILES = """\
import os
os.chdir(os.path.dirname(__file__))
ti.tools.imshow(x)
name = ti.tools.imwrite(x.to_numpy().clip(0, 1), "a.png")
video = ti.tools.VideoManager("out")
video.write_frame(x.to_numpy()[:, :1].repeat(2, 1))
ti.ui.Window("one", (8, 8)).show()
print(ti.tools.imread(name).shape, sorted(os.listdir("out/frames")))
"""


def test_with_stand_ins_for_windows_files_are_written(run, tmp_path):
    done = run(PROGRAM + FILES, "--frames", "1")
    assert done.stdout == "(4, 2, 1) ['000000.png']\n", done.stderr
    assert (tmp_path / "a.png").is_file()


def test_without_stand_ins_a_window_is_an_error_at_its_line(run):
    done = run(PROGRAM + WINDOW)
    last = done.stderr.splitlines()[-1]
    assert done.returncode == 1
    assert last.startswith("AttributeError: qd.GUI: there are no windows; draw field.to_numpy()")
    assert "--frames 8 FILE" in last
    assert 'gui = ti.GUI("points")' in done.stderr


@pytest.mark.parametrize("options", [["--frames"], ["--frames=0"], ["--frames", "x"], ["--other"]])
def test_wrong_options_are_usage_errors(options):
    command = [sys.executable, "-m", "qd_studio.engine.alias", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "usage:" in done.stderr or "--frames needs a number of frames" in done.stderr


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("ui", "there are no windows"),
        ("Texture", "keep the picture in a field of vectors"),
        ("types.texture", "textures are not supported"),
        ("aot", "the offline cache keeps what is compiled"),
        ("ArgPack", "argument packs are dataclasses"),
    ],
)
def test_names_without_an_equal_say_what_to_write_instead(path, text):
    parent, _, name = f"qd.{path}".rpartition(".")
    holder = qd.types if parent == "qd.types" else qd
    with pytest.raises(AttributeError, match=rf"{parent}\.{name}: .*{text}"):
        getattr(holder, name)
    assert not hasattr(holder, name)


def test_names_with_an_equal():
    assert qd.TaichiCompilationError is qd.QuadrantsCompilationError
    assert qd.TaichiTypeError is qd.QuadrantsTypeError
    assert not hasattr(qd, "TaichiNonsenseError")
    assert qd.x86_64 == qd.x64 and repr(qd.opengl) == "qd.opengl"
    assert qd.rgb_to_hex((1.0, 0.5, 0.0)) == 0xFF7F00
    assert qd.hex_to_rgb(0xFF0000) == (1.0, 0.0, 0.0)


def test_modules_without_an_equal_say_why():
    alias.install("taichi_for_tests")
    try:
        with pytest.raises(ModuleNotFoundError, match="offline cache"):
            import taichi_for_tests.aot  # noqa: F401
        from taichi_for_tests.lang.exception import TaichiTypeError

        assert TaichiTypeError is qd.QuadrantsTypeError
    finally:
        alias.remove("taichi_for_tests")


def test_a_name_without_an_alias_has_a_hint(monkeypatch):
    monkeypatch.setattr(sys, "path", [])
    alias.install("quadrants_for_tests")
    try:
        assert importlib.util.find_spec("taichi") is None
        with pytest.raises(ModuleNotFoundError, match=r"alias\.install\('taichi'\)"):
            import taichi
    finally:
        alias.remove("quadrants_for_tests")
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'taichi'$"):
        import taichi  # noqa: F401


@qd.kernel
def add(x: qd.types.ndarray(dtype=qd.f32, ndim=1), by: qd.f32):
    for i in x:
        x[i] += by


@qd.kernel
def shift(x: qd.types.ndarray(dtype=qd.math.vec2, ndim=1), by: qd.math.vec2):
    for i in x:
        x[i] += by


def test_graphs_of_launches():
    qd.init(arch=qd.cpu)
    graph = qd.graph
    x = graph.Arg(graph.ArgKind.NDARRAY, "x", qd.f32, ndim=1)
    y = graph.Arg(graph.ArgKind.NDARRAY, "y", dtype=qd.math.vec2, ndim=1)
    by = graph.Arg(graph.ArgKind.SCALAR, "by", qd.f32)
    to = graph.Arg(graph.ArgKind.MATRIX, "to", qd.math.vec2)
    builder = graph.GraphBuilder()
    twice = builder.create_sequential()
    twice.dispatch(add, x, by)
    twice.dispatch(shift, y, to)
    builder.append(twice)
    builder.append(twice)
    builder.dispatch(add, x, by)
    a = qd.ndarray(qd.f32, shape=3)
    b = qd.Vector.ndarray(2, qd.f32, shape=3)
    whole = builder.compile()
    values = {"x": a, "y": b, "by": 2.0, "to": qd.Vector([1.0, 0.5])}
    whole.run(values)
    assert np.array_equal(a.to_numpy(), [6, 6, 6])
    assert np.array_equal(b.to_numpy(), [[2, 1]] * 3)
    wrong = {
        "x": (b, "'x' must be elements of shape"),
        "y": (np.zeros((3, 2)), "'y' must be an ndarray, got ndarray"),
        "by": ("text", "'by' must be a number"),
        "to": (1, "'to' must be a vector"),
    }
    for name, (value, text) in wrong.items():
        with pytest.raises(RuntimeError, match=text):
            whole.run({**values, name: value})
    with pytest.raises(RuntimeError, match="no value for by, to"):
        whole.run({"x": a, "y": b})
    with pytest.raises(RuntimeError, match="the graph has no z"):
        whole.run({**values, "z": a})
    with pytest.raises(RuntimeError, match=r"arguments are ti\.graph\.Arg, got float"):
        builder.dispatch(add, x, 2.0)
    with pytest.raises(RuntimeError, match="textures are not supported"):
        graph.Arg(graph.ArgKind.TEXTURE, "t", ndim=2)
    assert np.array_equal(a.to_numpy(), [6, 6, 6])


def test_options_of_taichi_are_accepted():
    qd.init(arch=qd.cpu, verbose=False, lower_access=True, use_llvm=True)
    with pytest.raises(KeyError, match="verbosity"):
        qd.init(arch=qd.cpu, verbosity=1)


def test_grouped_indices_of_python_scope_are_vectors():
    found = list(qd.grouped(qd.ndrange(2, (1, 2))))
    assert [str(v) for v in found] == ["[0 1]", "[1 1]"] and isinstance(found[0], qd.Vector)
    qd.init(arch=qd.cpu)
    places = qd.grouped(qd.ndrange(2, 2))

    @qd.kernel
    def total() -> qd.i32:
        s = 0
        for v in qd.static(found):
            s += v[0] * 10 + v[1]
        for w in qd.static(places):
            s += w.x * 100
        return s

    assert total() == 212


def test_argument_packs_are_dataclasses():
    qd.init(arch=qd.cpu)
    inner = qd.types.argpack(k=qd.f32, n=qd.i32)
    pack = qd.types.argpack(
        x=qd.types.ndarray(dtype=qd.f32, ndim=1), by=qd.math.vec2, s=qd.types.struct(a=qd.f32),
        inner=inner,
    )  # fmt: skip

    @qd.kernel
    def fill(p: pack) -> qd.f32:
        for i in p.x:
            p.x[i] = i * p.by.y + p.s.a * p.inner.n
        return p.inner.k

    x = qd.ndarray(qd.f32, shape=3)
    made = pack(x=x, by=qd.Vector([0.0, 2.0]), s=qd.Struct(a=0.5), inner=inner(k=0.25, n=2))
    assert fill(made) == 0.25 and x.to_numpy().tolist() == [1, 3, 5]
    made.by = qd.Vector([0.0, 3.0])
    made.inner.k = 0.5
    assert fill(made) == 0.5 and x.to_numpy().tolist() == [1, 4, 7]
    with pytest.raises(TypeError):
        pack(x=x)
    with pytest.raises(qd.QuadrantsTypeError, match="at least one member"):
        qd.types.argpack()


def test_the_runner_of_examples_names_its_child():
    folder = Path(__file__).parents[2] / "benchmarks"
    assert (folder / "children" / "taichi_example.py").is_file()
    command = [sys.executable, str(folder / "taichi_examples.py"), "--help"]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0
