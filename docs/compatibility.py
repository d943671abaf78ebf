"""The page of the names that the reference has: which are here, which differ, which are not.

`tests/reference/names.py` has recorded the names; `DIFFERS` and `MISSING` state what cannot be seen
by looking: why, and what to write instead. A test finds entries that are missing or too many.
"""

import importlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from qd_studio import engine as qd
from qd_studio.engine import alias

ALIAS = "quadrants_of_the_page"
NAMES = Path(__file__).parents[1] / "tests" / "reference" / "recorded_names.json"

HEAD = """\
# Compatibility

Programs that are written for Quadrants {version} run unchanged with
`python -m qd_studio.engine.alias FILE`, in which `import quadrants` means this engine; see
[the decision](decisions/009-alias.md). This page lists every public name of Quadrants and what
differs here. Names without a remark mean the same; [all names](language/names.md) explains them.

Where a result differs on purpose, `tests/reference/differences.py` states it and the reason; a test
compares each with what Quadrants returned. Options of `qd.init` are in [Configuration](config.md).

Of {count} names, {same} are here and mean the same, {differ} are here and differ, {missing} are not
here. A name that is not here raises an `AttributeError` that names it.

`qd.lang` has the names of `qd` as well, but `qd.lang.kernel` and `qd.lang.func` are modules here;
its own names are listed below. Of the native module `qd._lib.core`, the queries are here
(`with_cuda()`, `host_arch()`, `is_extension_supported()`, ...), and of `qd.lang.impl` what programs
ask the running program for (`get_runtime()`, `current_cfg()`, ...).
"""

_SPARSE = "there are no sparse nodes: every cell is active. It raises an error at the line"
_MESH = "there are no meshes; using it is an error. Keep the indices of elements in fields"
_HINT = "a hint that has no effect: the compiler decides by itself"
_COUNTERS = "counters of CUDA devices are not read; it warns once. Use NVIDIA Nsight Compute"

DIFFERS = {
    "BitpackedFields": "making one raises `QuadrantsUnsupportedError`: types are whole bytes",
    "DeviceCapability": "names only: nothing is compiled ahead of time",
    "Format": "names only: there are no textures",
    "Mesh": _MESH,
    "MeshInstance": _MESH,
    "activate": "without effect, as on dense nodes there",
    "append": _SPARSE,
    "assume_in_range": "returns its first argument; nothing is assumed",
    "block_local": _HINT,
    "cache_read_only": _HINT,
    "clock_freq_hz": "works on `interp`, too: 1e9",
    "deactivate": "without effect, as on dense nodes there",
    "deactivate_all_snodes": "without effect, as on dense nodes there",
    "extension": "`sparse`, `quant`, `quant_basic`, `mesh` and `extfunc` are never enabled",
    "interop.get_mps_command_queue": "0: there is no Metal backend",
    "is_active": _SPARSE,
    "length": _SPARSE,
    "linalg": "sparse matrices are on the host, in NumPy, on every backend; factors are in f64",
    "linalg.SparseMatrixBuilder": "more elements than `max_num_triplets` are an error in `build`; "
    "there they overwrite other memory",
    "linalg.SparseSolver": "needs SciPy above 4096 unknowns; `ordering` is left to it",
    "mesh_local": _MESH,
    "mesh_patch_idx": _MESH,
    "metal": "not available: `qd.init` falls back to the CPU and says so",
    "no_activate": _HINT,
    "profiler.CuptiMetric": _COUNTERS,
    "profiler.clear_scoped_profiler_info": "without effect: see `print_scoped_profiler_info`",
    "profiler.collect_kernel_profiler_metrics": _COUNTERS,
    "profiler.get_predefined_cupti_metrics": _COUNTERS,
    "profiler.print_memory_profiler_info": "prints fields with their bytes, in another form",
    "profiler.print_scoped_profiler_info": "names `qd-studio FILE`, which times each pass",
    "profiler.set_kernel_profiler_metrics": _COUNTERS,
    "profiler.set_kernel_profiler_toolkit": "only `default` exists",
    "python": "kernels run in the interpreter of the IR, with the results of the other backends",
    "sparse": "there are no sparse grids: its functions raise `QuadrantsUnsupportedError`",
    "sparse.grid": "raises `QuadrantsUnsupportedError`: use `qd.Struct.field(members, shape)`",
    "sparse.usage": "raises `QuadrantsUnsupportedError`",
    "tools.write_vtk": "needs no other package; the file is text, `FILENAME.vtr`",
    "vulkan": "not available: `qd.init` falls back to the CPU and says so",
}
"""Name that is here, as after ``qd.`` -> what differs."""

_INSIDE = "a module inside of Quadrants; its public names are those of "
MISSING = {
    "Event.handle": "events of the host have no handle",
    "Ndarray.get_type": "use `element_shape`, `dtype` and `shape`",
    "Stream.handle": "streams of the host have no handle",
    "lang.ast": _INSIDE + "no other module: it translates Python",
    "lang.kernel_arguments": _INSIDE + "no other module: it declares parameters",
    "lang.mesh": "there are no meshes",
    "lang.shell": _INSIDE + "no other module: it prints",
    "lang.source_builder": "kernels cannot call functions of other languages",
    "linalg.matrixfree_cg": _INSIDE + "`qd.linalg`; `import` finds it",
    "linalg.sparse_cg": _INSIDE + "`qd.linalg`; `import` finds it",
    "linalg.sparse_matrix": _INSIDE + "`qd.linalg`; `import` finds it",
    "linalg.sparse_solver": _INSIDE + "`qd.linalg`; `import` finds it",
    "profiler.kernel_metrics": _INSIDE + "`qd.profiler`; `import` finds it",
    "profiler.kernel_profiler": _INSIDE + "`qd.profiler`; `import` finds it",
    "profiler.memory_profiler": _INSIDE + "`qd.profiler`; `import` finds it",
    "profiler.scoped_profiler": _INSIDE + "`qd.profiler`; `import` finds it",
    "simt.reductions": _INSIDE + "`qd.simt.subgroup`; `import` finds it",
    "simt.sorting": _INSIDE + "`qd.simt.subgroup`; `import` finds it",
    "simt.tile_slicing": _INSIDE + "`qd.simt`",
    "tools.PLYWriter.print_header": "`export` and `export_ascii` write whole files",
    "tools.diagnose": "`qd-studio doctor` reports on the machine",
    "types.quant": "there are no quantised types: use whole integer types, such as `qd.u8`",
    "types.quant.fixed": "see `qd.types.quant`",
    "types.quant.float": "see `qd.types.quant`",
    "types.quant.int": "see `qd.types.quant`",
}
"""Name that is not here, as after ``qd.`` -> why, and what to use instead."""

OBJECTS: dict[str, Callable[[], Any]] = {
    "MatrixField": lambda: qd.Vector.field(2, qd.f32, shape=2),
    "ScalarField": lambda: qd.field(qd.f32, shape=2),
    "StructField": lambda: qd.Struct.field({"a": qd.f32}, shape=2),
}
"""Classes whose attributes objects have, and an object of each."""


class Entry(NamedTuple):
    """A name of the reference: `where` is its module or class, `path` follows ``qd.``."""

    where: str
    path: str
    here: bool

    @property
    def remark(self) -> str:
        """What differs, or why it is missing; empty if it is here and means the same."""
        if not self.here:
            return MISSING.get(self.path, "")
        return DIFFERS.get(self.path, "")


def at(path: str) -> Any:
    """The object at a path of attributes, for a program that imports the alias. AttributeError."""
    value: Any = importlib.import_module(ALIAS)
    for part in path.split(".") if path else ():
        value = getattr(value, part)
    return value


def recorded() -> dict[str, Any]:
    """What `tests/reference/names.py` has recorded."""
    return json.loads(NAMES.read_text(encoding="utf-8"))


def entries() -> Iterator[Entry]:
    """Every recorded name, with what the engine has."""
    qd.init(arch=qd.cpu, offline_cache=False, log_level="error")
    found = recorded()
    alias.install(ALIAS)
    top = set(found["modules"][""])
    for where, names in (found["modules"] | found["classes"]).items():
        try:
            owner = OBJECTS[where]() if where in OBJECTS else at(where)
        except AttributeError:
            owner = None
        for name in sorted(set(names) - top) if where == "lang" else names:
            yield Entry(where, f"{where}.{name}".lstrip("."), hasattr(owner, name))
    alias.remove(ALIAS)
    qd.reset()
    qd.set_logging_level("info")


def page() -> str:
    """The page in Markdown."""
    listed = list(entries())
    missing = sum(not one.here for one in listed)
    differ = sum(one.here and bool(one.remark) for one in listed)
    head = HEAD.format(
        version=recorded()["recorded with"], count=len(listed), missing=missing, differ=differ,
        same=len(listed) - missing - differ,
    )  # fmt: skip
    lines = head.splitlines()
    for where in dict.fromkeys(one.where for one in listed):
        lines += ["", f"## qd.{where}".rstrip("."), "", "| name | here | remark |", "|---|---|---|"]
        for one in listed:
            if one.where == where:
                remark = one.remark.replace("|", "\\|")
                status = "differs" if one.here and remark else "yes" if one.here else "no"
                lines.append(f"| `qd.{one.path}` | {status} | {remark} |")
    return "\n".join(lines) + "\n"
