"""Code that another process has made runs without LLVM, passes or the frontend."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine.backends import base
from qd_studio.engine.backends.cpu import host, native, processor
from qd_studio.engine.backends.injected import InjectedCache
from qd_studio.engine.config import CompileConfig
from qd_studio.engine.runtime.compile import CompileRequest, compile_kernel

from tests.frontend.harness import spec_keys_of

pytestmark = pytest.mark.skipif(
    not host.maps_objects(), reason="relocatable objects need Linux x86-64"
)

COMMON = """
import json, os, sys
from pathlib import Path
from qd_studio.engine.backends import base
from qd_studio.engine.backends.injected import InjectedCache
folder = Path(sys.argv[1])

def name_of(name):
    return folder / name.replace(" ", "-")

class Kept(InjectedCache):
    def library(self, name, make, use):
        asked.append(name)
        try:
            return use(name_of(name).read_bytes())
        except (FileNotFoundError, ValueError):
            given.append(name)
            name_of(name).write_bytes(made := make())
            return use(made)

asked, given = [], []

def heavy():
    return sorted(
        m for m in sys.modules
        if m.endswith(".llvm.library") or ".passes" in m or ".interp" in m or ".cpu.linker" in m
        or m.endswith((".llvm.kernel", ".cpu.orc", ".frontend.build", ".frontend.walk"))
    )
"""

# The parts of an artifact as someone who keeps it would write them.
LAUNCH = (
    COMMON
    + """
import numpy as np
from qd_studio.engine import types as T
from qd_studio.engine.backends.base import Artifact, AssertSite, KernelMeta, Target, TaskMeta
from qd_studio.engine.backends.kernarg.abi import ArgumentLayout
from qd_studio.engine.errors import QuadrantsAssertionError
from qd_studio.engine.ir import Param
from qd_studio.engine.ir.loc import get_loc

kept = json.loads((folder / "kernel.json").read_text())
here = get_loc("file.py", 7, 4)
meta = KernelMeta(
    "k",
    (Param("x", "ndarray", T.f32, 1), Param("a", "scalar", T.f32)),
    (T.f32,),
    kept["tmp"],
    (0,),
    tasks=tuple(TaskMeta(n, k, "chunk", "", 1, here, 1) for n, k in kept["tasks"]),
    asserts=tuple(AssertSite(k, t, (T.f32,) * n, here) for k, t, n in kept["asserts"]),
)
layout = ArgumentLayout(tuple(kept["layout"][0]), *kept["layout"][1:])
artifact = Artifact(
    "cpu", Target("cpu"), meta, code=(folder / "kernel.code").read_bytes(),
    facts={"symbol": kept["symbol"], "threads": 4, "layout": layout},
)
kernel = base.find("cpu").load(artifact, Kept())
x = np.arange(100000, dtype=np.float32)
results = kernel.launch((x, 2.0))
def workers():
    from qd_studio.engine.backends.cpu import native
    return native.native().workers()
out = {"sum": float(x.sum()), "results": results, "workers": workers(), "heavy": heavy()}
try:
    kernel.launch((np.full(100000, 5e9, np.float32), 2.0))
except QuadrantsAssertionError as error:
    out["failed"] = str(error)
out["heavy after"] = heavy()
if os.fork() == 0:
    y = np.arange(100000, dtype=np.float32)
    kernel.launch((y, 2.0))
    os._exit(0 if (x == y).all() and workers() == 3 else 1)
out["child"] = os.wait()[1]
print(json.dumps({**out, "asked": asked, "given": given}))
"""
)


@qd.kernel
def k(x: qd.types.ndarray(qd.f32, 1), a: qd.f32) -> qd.f32:
    for i in x:
        assert x[i] < 1e9, f"much: {x[i]}"
        x[i] = qd.sqrt(x[i]) * a
    return x[4]


@pytest.fixture
def folder(tmp_path):
    """A folder that holds a kernel and what its launches need."""
    config = CompileConfig().replace(debug=True, cpu_max_num_threads=4, fast_math=False)
    request = CompileRequest(k.decl, spec_keys_of(k.decl), config, base.find("cpu"))
    made = compile_kernel(request).artifact
    layout = made.facts["layout"]
    (tmp_path / "kernel.code").write_bytes(made.code)
    (tmp_path / "kernel.json").write_text(json.dumps({
        "symbol": made.facts["symbol"],
        "tmp": made.meta.global_tmp_size,
        "layout": [layout.params, layout.fields, layout.results, layout.failed, layout.reports,
                   layout.stamps, layout.stacks, layout.tmp, layout.size],
        "tasks": [(t.name, t.kind) for t in made.meta.tasks],
        "asserts": [(s.kind, s.text, len(s.types)) for s in made.meta.asserts],
    }))  # fmt: skip
    return tmp_path


def launched(folder):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", LAUNCH, str(folder)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def check(out):
    x = np.sqrt(np.arange(100000, dtype=np.float32)) * np.float32(2)
    assert out["sum"] == float(x.sum())
    assert out["results"] == [4.0]
    assert out["workers"] == 3
    assert "much: " in out["failed"]
    assert out["child"] == 0


def test_a_kernel_made_elsewhere_runs_without_llvm(folder):
    first = launched(folder)
    check(first)
    assert any(m.endswith(".llvm.library") for m in first["heavy"])  # for the pool's code
    assert first["given"] == first["asked"]
    (name,) = first["asked"]
    assert name.startswith("cpu.native ")
    second = launched(folder)
    check(second)
    assert second["heavy"] == second["heavy after"] == []
    assert (second["asked"], second["given"]) == ([name], [])


@pytest.mark.sampled(5)
@pytest.mark.parametrize("damage", ["cut", "empty", "other", "object"])
def test_damaged_library_code_is_made_again(folder, damage):
    (name,) = launched(folder)["asked"]
    path = folder / name.replace(" ", "-")
    good = path.read_bytes()
    path.write_bytes(
        {
            "cut": good[: len(good) // 2],
            "empty": b"",
            "other": (folder / "kernel.code").read_bytes(),
            "object": b"\x7fELF" + bytes(100),
        }[damage]
    )
    out = launched(folder)
    check(out)
    assert out["given"] == [name]
    assert path.read_bytes() == good


class Names(InjectedCache):
    """Notes what is asked for."""

    def __init__(self):
        self.asked = []

    def library(self, name, make, use):
        self.asked.append(name)
        return super().library(name, make, use)


def test_library_code_is_kept_under_all_that_it_depends_on(monkeypatch):
    names = Names()
    for threads in (True, False):
        native.make_native(threads, names)
    usual = processor.fingerprint()
    monkeypatch.setattr(processor, "fingerprint", lambda: usual + "!")
    native.make_native(True, names)
    monkeypatch.setattr(processor, "fingerprint", lambda: usual)
    monkeypatch.setattr(native.toolchain, "identity", lambda: "another")
    native.make_native(True, names)
    assert len(set(names.asked)) == 4


def test_what_is_kept_holds_no_place_of_this_process(folder):
    """Two processes make the same bytes."""
    script = COMMON + "from qd_studio.engine.backends.cpu import native\nnative.native(Kept())\n"
    for part in ("a", "b"):
        (folder / part).mkdir()
        subprocess.run([sys.executable, "-c", script, str(folder / part)], check=True)
    a, b = (sorted(Path(folder, part).iterdir()) for part in "ab")
    assert [p.name for p in a] == [p.name for p in b]
    assert [p.read_bytes() for p in a] == [p.read_bytes() for p in b]
