"""What importing loads. A library that is needed later, or by few, is imported where it is used."""

import json
import os
import subprocess
import sys

import pytest
from qd_studio.engine.backends.cpu import host

CODE = """
import json, sys
before = set(sys.modules)
import {module}
print(json.dumps(sorted({{name.split(".")[0] for name in set(sys.modules) - before}})))
"""


def loaded_by(module: str, tmp_path) -> set[str]:
    """Top-level names that a fresh interpreter has loaded after importing `module`."""
    command = [sys.executable, "-W", "error", "-c", CODE.format(module=module)]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    return set(json.loads(result.stdout))


SCREEN = {"textual", "rich", "watchdog", "pygments"}
DEVICES = {"cuda", "pyopencl"}


@pytest.mark.parametrize(
    ("module", "never"),
    [
        ("qd_studio.engine", SCREEN | DEVICES | {"llvmlite", "msgspec"}),
        ("qd_studio.engine.inspect", SCREEN | DEVICES | {"llvmlite"}),
        ("qd_studio.engine.ir", SCREEN | DEVICES | {"llvmlite", "msgspec"}),
        ("qd_studio.app.cli", SCREEN | DEVICES | {"llvmlite"}),
        ("qd_studio.app.tui.app", DEVICES | {"llvmlite", "numpy", "watchdog", "pygments"}),
    ],
)
def test_importing_loads_nothing_it_does_not_need(module, never, tmp_path):
    assert not loaded_by(module, tmp_path) & never


def test_the_check_sees_what_is_loaded(tmp_path):
    assert "textual" in loaded_by("textual.app", tmp_path)


def test_importing_the_engine_says_nothing(tmp_path):
    command = [sys.executable, "-c", "import qd_studio.engine"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert (result.stdout, result.stderr) == ("", "")


# ---- a program whose kernels are in a cache

images = pytest.mark.skipif(
    not host.maps_objects(), reason="LLVM brings code into memory here: there is no linker for it"
)

KERNELS = """
from qd_studio import engine as qd


@{decorator}
def scale(x: qd.types.NDArray[qd.f32, 1], a: qd.f32) -> qd.f32:
    for i in x:
        x[i] = qd.sqrt(x[i]) * a + 1.0
    return x[0]
"""

PROGRAM = """
import json, sys
import numpy

before = set(sys.modules)
stages = {}
result = None


def reached(stage):
    stages[stage] = sorted(set(sys.modules) - before)


from qd_studio import engine as qd

reached("import")
qd.init(arch=qd.cpu)
reached("init")
from kernels import scale

reached("decorate")
x = qd.ndarray(qd.f32, 8)
reached("arrays")
result = scale(x, 2.0)
reached("call")
layers = [(seen.layer, seen.state) for seen in scale.launchers.observed.layers]
print(json.dumps([stages, result, layers]))
"""

HEAVY = {
    "_hashlib", "argparse", "asyncio", "concurrent", "ctypes.util", "difflib", "email", "filelock",
    "hashlib", "importlib.metadata", "importlib.resources", "llvmlite", "logging", "msgspec",
    "pathlib", "platformdirs", "random", "shutil", "socket", "ssl", "subprocess", "tempfile",
    "tokenize", "traceback", "unicodedata", "urllib", "zipfile",
}  # fmt: skip
"""Libraries that cost a warm start more than they would give it."""

WITHOUT_IR = {
    "analysis": set(),
    "frontend": {"", "declared", "plain", "registry", "signature", "source", "specialization"},
    "ir": {"", "attrs", "loc"},
    "passes": set(),
    "backends.llvm": {"", "abi", "frames", "toolchain"},
    "runtime.stub": set(),
    "backends.stub": set(),
    "inspect": set(),
    "lang.workload": set(),
}
"""What a kernel that is known by its source may load of these packages."""

WITHOUT_PASSES = {
    "analysis": set(),
    "passes": set(),
    "backends.llvm": {"", "abi", "frames", "toolchain"},
    "runtime.stub": set(),
    "backends.stub": set(),
    "inspect": set(),
}
"""The same for a kernel that is known by its IR."""


def warm_stages(tmp_path, decorator) -> tuple[dict[str, list[str]], list[list[str]]]:
    """What has been loaded when, in the second run of a program; and what the layers answered."""
    (tmp_path / "kernels.py").write_text(KERNELS.format(decorator=decorator))
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path / "caches"), "QD_TIERED": "off"}
    command = [sys.executable, "-W", "error", str(program)]
    for _ in range(2):
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        assert (done.returncode, done.stderr) == (0, "")
    stages, result, layers = json.loads(done.stdout)
    assert result == 1.0
    return stages, layers


def unwanted(loaded: list[str], packages: dict[str, set[str]]) -> set[str]:
    """Modules that are heavy, or are in one of the packages and not among those allowed of it."""
    found = {name for name in loaded if name in HEAVY or name.partition(".")[0] in HEAVY}
    for package, allowed in packages.items():
        package = f"qd_studio.engine.{package}"
        inside = [name for name in loaded if name == package or name.startswith(f"{package}.")]
        found |= {n for n in inside if n.removeprefix(package).removeprefix(".") not in allowed}
    return found


def engine_packages(loaded: list[str]) -> set[str]:
    """`cache` for qd_studio.engine.cache.store."""
    parts = [name.split(".") for name in loaded if name.startswith("qd_studio.engine.")]
    return {words[2] for words in parts}


@images
def test_a_kernel_known_by_its_source_loads_no_compiler(tmp_path):
    stages, layers = warm_stages(tmp_path, "qd.kernel(fastcache=True)")
    assert layers == [["fastcache", "hit"], ["offline", "hit"]]
    assert engine_packages(stages["import"]) == {"imports"}
    assert not engine_packages(stages["init"]) & {"frontend", "lang", "passes", "analysis"}
    for loaded in stages.values():
        assert not unwanted(loaded, WITHOUT_IR)


@images
def test_a_kernel_known_by_its_ir_loads_no_passes(tmp_path):
    stages, layers = warm_stages(tmp_path, "qd.kernel")
    assert layers == [["fastcache", "off"], ["offline", "hit"]]
    assert not unwanted(stages["init"], WITHOUT_IR)
    # What the first call needs in any case is loaded when such a kernel is declared.
    assert "qd_studio.engine.frontend.func_builder" in stages["decorate"]
    for loaded in stages.values():
        assert not unwanted(loaded, WITHOUT_PASSES)


FIRST = """
import json, sys
import numpy as np
from qd_studio import engine as qd
from qd_studio.engine.runtime import preload
from kernels import scale

preload.OTHERS = ()  # what is imported for others once this program waits is not its own
qd.init(arch=qd.cpu, offline_cache=False)
scale(np.zeros(8, np.float32), 2.0)
print(json.dumps(sorted(sys.modules)))
"""

OF_OTHER_KERNELS = {
    "analysis.cfg", "analysis.dataflow", "backends.array_memory", "backends.llvm.alike",
    "backends.llvm.atomics", "backends.llvm.dialect", "backends.llvm.effects",
    "backends.llvm.helpers", "backends.llvm.lines", "backends.llvm.mathematics",
    "backends.llvm.outline", "backends.llvm.regions", "backends.llvm.remarks",
    "backends.llvm.stacks", "backends.streams", "cache.folder", "cache.last_run", "frontend.blocks",
    "frontend.checkpoints", "frontend.computed", "frontend.contents", "frontend.conversion",
    "frontend.copies", "frontend.gradients", "frontend.graphs", "frontend.indexing",
    "frontend.inline", "frontend.matrices", "frontend.picked", "frontend.printing",
    "frontend.purity", "frontend.records", "frontend.regions", "frontend.view_ranges", "ir.printer",
    "lang.ndarray", "passes.cfg_optimization", "passes.demote_operations",
    "passes.index_set_splitting", "passes.insert_nan_checks", "passes.instruments",
    "passes.map_to_grid", "passes.rules.logic", "passes.rules.power", "passes.share_tasks",
    "passes.simplify", "passes.split_blocked_axes", "passes.stage_shared", "passes.subgroup_reduce",
    "passes.task_batches", "passes.task_templates", "passes.tensor_products",
    "passes.tile_iterations", "passes.tile_products", "passes.unreachable_code_elimination",
    "runtime.foreign", "runtime.status",
}  # fmt: skip


def test_a_first_kernel_loads_nothing_for_others(tmp_path):
    """For a kernel that no cache has."""
    (tmp_path / "kernels.py").write_text(KERNELS.format(decorator="qd.kernel").replace(
        "qd.sqrt(x[i]) * a", "x[i] * a"
    ).replace(" -> qd.f32", "").replace("    return x[0]\n", ""))  # fmt: skip
    (tmp_path / "program.py").write_text(FIRST)
    command = [sys.executable, "-W", "error", str(tmp_path / "program.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    loaded = set(json.loads(done.stdout))
    assert "qd_studio.engine.passes.offload" in loaded
    unwanted = {f"qd_studio.engine.{name}" for name in OF_OTHER_KERNELS} | {"llvmlite.ir"}
    assert not loaded & unwanted


NUMPY = """
import json, sys
import numpy as np
from qd_studio import engine as qd
from kernels import scale

qd.init(arch=qd.cpu, offline_cache=False)
x = np.ones(8, np.float32)
for _ in range(20):
    scale(x, 2.0)
loaded = "qd_studio.engine.lang.ndarray" in sys.modules
before = len(scale.launchers._compiled.chained)
y = qd.ndarray(qd.f32, 8)
y.fill(1)
for _ in range(20):
    scale(y, 2.0)
    scale(x, 2.0)
z = scale.launchers._compiled
print(json.dumps([loaded, before, len(z.chained), float(x[0]), float(y[0])]))
"""


def test_launches_with_numpy_arrays_load_no_ndarrays(tmp_path):
    """Their stubs know no ndarrays; the first ndarray makes new ones."""
    (tmp_path / "kernels.py").write_text(KERNELS.format(decorator="qd.kernel").replace(
        "qd.sqrt(x[i]) * a + 1.0", "x[i] + a"
    ))  # fmt: skip
    (tmp_path / "program.py").write_text(NUMPY)
    command = [sys.executable, "-W", "error", str(tmp_path / "program.py")]
    environment = os.environ | {"QD_TIERED": "off"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == [False, 1, 2, 81.0, 41.0]
