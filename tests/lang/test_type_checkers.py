"""Programs of users under pyright and mypy: no errors for right ones, an error for each mistake."""

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from qd_studio.app import stubs

from tests.hygiene.test_language_pages import EXAMPLES
from tests.hygiene.tree import ROOT

RIGHT = '''
import numpy as np
import quadrants as qd
from quadrants.types import f64

vec7 = qd.types.vector(7, qd.f32)
Grid = qd.types.NDArray[qd.f32, 2]
dtype: qd.types.DataType = qd.f32


@qd.dataclass
class Particle:
    pos: qd.math.vec3
    mass: qd.f32

    @qd.func
    def weight(self):
        return 9.8 * self.mass


@qd.func
def scaled(v: qd.template(), factor: qd.f32):
    w = 2.0 * v
    return w.norm() * factor


@qd.kernel
def run(x: Grid, y: qd.types.ndarray(qd.f32, 2), v: qd.math.vec3, w: vec7, n: qd.i32,
        s: f64, t: qd.Template, u: qd.types.vector(3, qd.f32)) -> qd.f32:
    """Documented."""
    total = qd.f32(0)
    for i, j in x:
        y[i, j] = x[i, j] + v.x + v[1] + w[0] + x.shape[0]
        qd.atomic_add(total, scaled(1.0 * v, s) + (n >> 1) + t.anything)
    n = n * 0.5
    u *= 2
    for I in qd.grouped(qd.ndrange(3, (1, n))):
        total += I[0] + u.norm()
    return total


@qd.kernel(fastcache=True)
def options(p: Particle, x: qd.types.NDArray) -> None:
    p.pos[0] += p.weight()
    x[0] = qd.cast(p.mass, qd.i32)


@qd.data_oriented
class Solver:
    def __init__(self):
        self.x = qd.field(qd.f32, shape=(4, 4), needs_grad=True)
        self.v = qd.Vector.field(3, qd.f32, shape=4)

    @qd.func
    def speed(self, i):
        return self.v[i].z

    @qd.kernel
    def step(self, dt: qd.f32):
        for i, j in self.x:
            self.x[i, j] += dt * self.speed(i)


@qd.data_oriented
class Faster(Solver):
    """Overrides a function of kernels, as methods are overridden."""

    @qd.func
    def speed(self, i):
        return 2 * super().speed(i)


@qd.kernel
def assigned(n: qd.i32, s: qd.f32) -> qd.i32:
    half: float = s
    if n == 3 and s != 2.0:
        half = max(abs(s) + n, round(s), s, n)
    for i in range(n):
        half += i
    return n


@qd.func(source="")
def generated(x): ...


a = np.zeros((3, 3), np.float32)
count: int = assigned(3, 1)
total: float = assigned(3, 1)
precise = qd.f64 == dtype or qd.f32 != qd.f64 or qd.f32 in (qd.i32, qd.f64)
print(qd.types.primitive_types.real_types, qd._logging.INFO, qd.cfg, qd.is_active)
result: float = run(a, a, [1, 2, 3], [0.0] * 7, 2, np.float32(1), 5, (1, 2, 3))
run.grad(a, a, [1, 2, 3], [0.0] * 7, 2, 1.5, t=a, u=a)
options(Particle(mass=1.0), a, qd_stream=None)
Solver().step(0.1)
Solver().step.grad(0.1)
field = Particle.field(shape=3)
solver = Solver()
solver.x.fill(0)
solver.x.grad[0, 0] = 1
print(solver.v.to_numpy().shape, f"{result:.3f}")
'''

WRONG = """
import numpy as np
from qd_studio import engine as qd


Grid = qd.types.NDArray[qd.f32, 2]


@qd.kernel
def run(x: qd.types.NDArray[qd.f32, 2], n: qd.i32, s: qd.f32, v: qd.math.vec3): ...


@qd.kernel
def total(x: Grid, n: int) -> qd.f32:
    return 1.0


@qd.func
def weight(x: float, y: qd.f32) -> float:
    return x


@qd.data_oriented
class Solver:
    @qd.kernel
    def step(self, dt: qd.f32) -> None: ...


a = np.zeros((3, 3), np.float32)
run(a, 1, 2.0, [1, 2, 3])
run()  # wrong
run(a, 1, 2.0)  # wrong
run("a", 1, 2.0, a)  # wrong
run(1, 1, 2.0, a)  # wrong
run(a, 1.5, 2.0, a)  # wrong
run(a, 1, "s", a)  # wrong
run(a, 1, 2.0, 3)  # wrong
run(a, 1, 2.0, a, other=1)  # wrong
Solver().step("s")  # wrong
Solver().step()  # wrong
total("a", 1)  # wrong
total(a, n="b")  # wrong
text: str = total(a, 1)  # wrong
count: int = total(a, 1)  # wrong
nothing: int = Solver().step(0.5)  # wrong
weight(1.0)  # wrong
weight(1.0, "y")  # wrong
"""

SETTINGS = {"reportInvalidTypeForm": False, "reportMissingModuleSource": False}
MYPY = """[mypy]
plugins = qd_studio.engine.typed.mypy_plugin
mypy_path = typings:.
follow_imports = silent
"""
DELIBERATE = {"errors_0", "errors_1", "arrays_7", "kernels_2"}
"""Examples of mistakes, of an array that is left out, and of a kernel that `exec` makes."""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder outside of the tree, with the engine where it is installed."""
    (tmp_path / "qd_studio").mkdir()
    for part in ("engine", "app"):
        (tmp_path / "qd_studio" / part).symlink_to(ROOT / part)
    stubs.write(tmp_path / "typings")
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(SETTINGS))
    (tmp_path / "mypy.ini").write_text(MYPY)
    return tmp_path


def pyright(project: Path, files: list[str]) -> list[tuple[str, int, str]]:
    """The files, lines and texts of the errors that pyright finds."""
    command = [sys.executable, "-m", "pyright", "--outputjson", *files]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    return [
        (Path(one["file"]).stem, one["range"]["start"]["line"] + 1, one["message"])
        for one in json.loads(done.stdout)["generalDiagnostics"]
        if one["severity"] == "error"
    ]


def mypy(project: Path, files: list[str]) -> list[tuple[str, int, str]]:
    """The files, lines and texts of the errors that mypy finds."""
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("mypy is not installed")
    command = [sys.executable, "-m", "mypy", "--no-error-summary", *files]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    assert not done.stderr
    found = [line.split(":", 3) for line in done.stdout.splitlines() if ": error:" in line]
    return [(Path(file).stem, int(line), text) for file, line, _, text in found]


CHECKERS = pytest.mark.parametrize("check", [pyright, mypy])


@pytest.mark.slow
def test_annotations_without_calls_need_no_settings_of_pyright(project):
    (project / "pyrightconfig.json").write_text(json.dumps({"reportMissingModuleSource": False}))
    (project / "wrong.py").write_text(WRONG)
    assert len(pyright(project, ["wrong.py"])) == WRONG.count("# wrong")


TAICHI = """
import taichi as ti
import taichi.math as tm

ti.init(arch=ti.gpu, default_fp=ti.f32)
pixels = ti.field(dtype=float, shape=(8, 8))
block = ti.root.dense(ti.ij, 4)


@ti.kernel
def paint(t: float, image: ti.types.ndarray(dtype=tm.vec3, ndim=2)):
    for i, j in pixels:
        z = tm.vec2(i, j) * t
        pixels[i, j] = 1 - z.norm() * ti.random()
        image[i, j] = tm.vec3(z.x, z.yx)
        if ti.is_active(block, [i, j]):
            ti.activate(block, [i, j])


gui = ti.GUI("window", res=(8, 8))
while gui.running:
    paint(0.5, ti.ndarray(tm.vec3, (8, 8)))
    gui.set_image(pixels)
    gui.show()
try:
    window = ti.ui.Window("window", (8, 8))
except ti.TaichiRuntimeError:
    ti.tools.imwrite(pixels, "x.png")
"""


@pytest.mark.slow
def test_mypy_reads_annotations_again_when_only_an_import_has_changed(project):
    """It then parses a file again that it has kept."""
    (project / "right.py").write_text("import helper\n" + RIGHT)
    for version in range(2):
        (project / "helper.py").write_text(f"def version() -> {['int', 'str'][version]}: ...\n")
        assert mypy(project, ["right.py"]) == []


SHOWN = """
from right import Solver, options, run, scaled
reveal_type(run)
reveal_type(scaled)
reveal_type(Solver().step)
reveal_type(Solver().x)
reveal_type(Solver)
"""


@pytest.mark.slow
def test_editors_show_signatures_and_documentation(project):
    (project / "right.py").write_text(RIGHT)
    (project / "shown.py").write_text(SHOWN)
    (project / "pyrightconfig.json").write_text(json.dumps(SETTINGS))
    command = [sys.executable, "-m", "pyright", "--outputjson", "shown.py"]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    texts = [one["message"] for one in json.loads(done.stdout)["generalDiagnostics"]]
    run, scaled, step, field, solver = [text.partition(" is ")[2].strip('"') for text in texts]
    assert run.startswith("Kernel[(x: NDArray, y: ")
    assert run.endswith("), f32]")
    assert ", n: i32, s: f64, t: " in run
    assert scaled.startswith("(v: ")
    assert step == "BoundKernel[(dt: f32), None]"
    assert (field, solver) == ("ScalarField", "type[Solver]")
    assert hover(project, "right.py", "run(a, a").count("Documented.") == 1
    assert "Overrides a function" in hover(project, "right.py", "Faster(Solver)")


def hover(project: Path, file: str, at: str) -> str:
    """What the language server of pyright shows at a text."""
    source = (project / file).read_text()
    before = source[: source.index(at)].split("\n")
    uri = (project / file).as_uri()
    place = {"line": len(before) - 1, "character": len(before[-1]) + 1}
    opened = {"uri": uri, "languageId": "python", "version": 1, "text": source}
    folder = {"uri": project.as_uri(), "name": "project"}
    messages: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": {
            "processId": None, "rootUri": project.as_uri(), "workspaceFolders": [folder],
            "capabilities": {}}},
        {"method": "initialized", "params": {}},
        {"method": "textDocument/didOpen", "params": {"textDocument": opened}},
        {"id": 2, "method": "textDocument/hover",
         "params": {"textDocument": {"uri": uri}, "position": place}},
    ]  # fmt: skip
    with subprocess.Popen(
        [sys.executable, "-m", "pyright.langserver", "--stdio"], cwd=project,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as server:  # fmt: skip
        assert server.stdin is not None
        assert server.stdout is not None
        for message in messages:
            data = json.dumps({"jsonrpc": "2.0"} | message).encode()
            server.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(data), data))
        server.stdin.flush()
        found: dict[str, Any] = {}
        while found.get("id") != 2 or "method" in found:
            head = b""
            while not head.endswith(b"\r\n\r\n"):
                head += server.stdout.read(1)
            size = int(head.lower().split(b"content-length:")[1].split()[0])
            found = json.loads(server.stdout.read(size))
        server.kill()
    return json.dumps(found["result"])


BLOCK = re.compile(r"^```python\n(.*?)^```", re.M | re.S)


def programs() -> dict[str, str]:
    """Files with programs of users; the blocks of a page are one program."""
    named = {"right.py": RIGHT, "wrong.py": WRONG, "program.py": TAICHI}
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    blocks = {page.stem: BLOCK.findall(page.read_text(encoding="utf-8")) for page in pages}
    named |= {f"{stem}_page.py": "\n\n".join(found) for stem, found in blocks.items() if found}
    assert len(named) > 5
    for sample in sorted((ROOT / "sample_kernels").glob("*.py")):
        named[sample.name] = sample.read_text()
    for page in EXAMPLES.pages():
        for n, example in enumerate(EXAMPLES.examples(page)):
            if f"{page.stem}_{n}" not in DELIBERATE:
                named[f"{page.stem}_{n}.py"] = EXAMPLES.PRELUDE + example.code
    return named


@pytest.mark.slow
@CHECKERS
def test_each_wrong_call_is_an_error_and_nothing_else_is(project, check):
    """One run: most of its time goes into the stubs of what the programs import."""
    named = programs()
    for name, text in named.items():
        (project / name).write_text(text)
    lines = enumerate(WRONG.splitlines(), 1)
    expected = {("wrong", n) for n, line in lines if line.endswith("# wrong")}
    found = check(project, list(named))
    assert {(file, line) for file, line, _ in found} == expected, found


def test_stubs_name_every_module_that_the_alias_serves(tmp_path):
    made = stubs.write(tmp_path)
    assert [one.name for one in made] == ["quadrants", "taichi"]
    assert (tmp_path / "quadrants" / "lang" / "exception.pyi").exists()
    assert "import *" in (tmp_path / "taichi" / "__init__.pyi").read_text()
