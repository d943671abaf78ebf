"""Imports point down, never up.

The order of the engine's packages, from the top:

    {inspect, typed} -> lang -> runtime -> {cache, frontend} -> backends -> passes -> adstack
    -> analysis -> ir -> types -> {config, errors}

Packages in one brace do not import each other. `engine/__init__.py`, `engine/alias.py` and
`engine/windows.py` may import every package. The app sees these and `engine.inspect`, nothing else.
Imports inside the two packages are relative. An import under TYPE_CHECKING counts: knowing a type
is knowing the package.

Inside a package imports point down as well: no modules form a circle. Here an import inside a
function counts, and one under TYPE_CHECKING does not: modules may know each other's types, but
calls go one way. Where code below calls code above, a table that the module above fills is between
them, such as those of `engine.frontend.registry`.
"""

from functools import cache

import pytest

from tests.hygiene.tree import ROOT, Import, imports_of, module_name, python_files

ORDER = [
    {"inspect", "typed"},
    {"lang"},
    {"runtime"},
    {"cache", "frontend"},
    {"backends"},
    {"passes"},
    {"adstack"},
    {"analysis"},
    {"ir"},
    {"types"},
    {
        "config",
        "errors",
        "frozen",
        "imports",
        "_logging",
        "logs",
        "named_tuple",
        "option_table",
        "options",
        "pipeline_kind",
        "signals",
        "version",
    },
]
RANK = {package: rank for rank, packages in enumerate(ORDER) for package in packages}
BASE = ORDER[-1]
PUBLIC = {"", "alias", "windows"}

APP_CORE = {"core"}
# Packages of the app that the key may import, beside itself and `core`.
APP_MAY = {
    "worker": {"watch"},
    "watch": set(),
    "markup": set(),
    "panels": {"markup"},
    "report": {"markup", "panels"},
    "tui": {"dap", "worker", "watch", "panels", "report", "ending", "sweeping", "history"},
    "batch": {"worker"},
    "opening": set(),
    "options": {"batch", "opening", "progress", "streams", "usage", "worker"},
    "open": {"application", "options", "report", "streams", "tui", "usage"},
    "show": {"batch", "opening", "options", "panels", "streams", "usage"},
    "check": {"application", "batch", "options", "streams", "usage"},
    "whatif": {"batch", "opening", "options", "streams", "usage", "worker"},
    "lsp": {"options", "usage", "worker"},
    "dap": {"options", "usage", "worker"},
    "debug": {"dap", "streams", "usage"},
    "difference": {"batch", "opening", "options", "streams", "usage", "worker"},
    "tour": {"options", "streams", "tui", "usage"},
    "plain": {"panels", "plain_work", "show", "streams", "usage", "worker"},
    "plain_work": {"revisions", "worker"},
    "edit": {"opening", "options", "progress", "streams", "usage", "worker"},
    "bisect": {
        "farming",
        "history",
        "opening",
        "options",
        "progress",
        "revisions",
        "streams",
        "usage",
        "worker",
    },
    "history": {"revisions"},
    "mcp": {
        "bisect",
        "difference",
        "opening",
        "options",
        "panels",
        "report",
        "revisions",
        "show",
        "usage",
        "worker",
    },
    "repro": {"bisect", "opening", "options", "streams", "usage", "worker"},
    "nan": {"bisect", "options", "usage", "worker"},
    "check_grad": {"bisect", "options", "usage", "worker"},
    "notebook": {"markup", "panels", "report", "show"},
    "doctor": {"conformance", "streams", "usage"},
    "conformance": set(),
    "cache": {"streams", "usage"},
    "ending": set(),
    "streams": set(),
    "progress": {"streams", "worker"},
    "usage": {"streams"},
    "startup": set(),
    "application": {"progress", "streams", "usage", "worker", "tui"},
    "stubs": {"streams", "usage"},
    "commands": {"usage"},
    "parsers": {"commands", "farming", "options", "streams", "usage"},
    "spec": {"commands", "parsers", "tui", "usage"},
    "completion": {"application", "opening", "parsers", "spec", "streams", "usage", "worker"},
    "plugins": {"markup", "panels", "report"},
    "sweep": {
        "farming",
        "opening",
        "options",
        "progress",
        "report",
        "streams",
        "sweeping",
        "usage",
        "worker",
    },
    "sweeping": {"worker"},
    "farm": {"worker"},
    "farming": {"batch", "farm", "progress", "streams", "usage", "worker"},
    "reporting": {"batch", "farming", "options", "report", "streams", "usage"},
    "cli": {
        "commands",
        "ending",
        "opening",
        "options",
        "parsers",
        "plain",
        "reporting",
        "spec",
        "streams",
        "tui",
        "usage",
    },
    "": set(),
}
ENGINE_NEVER = {"textual", "rich", "watchdog", "quadrants", "taichi"}
APP_NEVER = {"llvmlite", "cuda", "pyopencl", "quadrants", "taichi"}
CORE_NEVER = APP_NEVER | {"textual", "rich", "watchdog"}


def package_of(module: str) -> str:
    """The package of `engine.ir.op` is `ir`; of `engine` itself, the empty string."""
    return [*module.split("."), ""][1]


def engine_targets(imp: Import) -> list[str]:
    """The packages an import reaches: `from .. import ir, errors` reaches two."""
    if imp.target == "engine":
        return [name for name in imp.names if name in RANK] or [""]
    return [package_of(imp.target)]


def engine_faults(module: str, imports: list[Import]) -> list[str]:
    """What is wrong with the imports of one module of the engine."""
    here, faults = package_of(module), []
    if here not in RANK and here not in PUBLIC:
        return [f"{module}: the package {here!r} has no layer"]
    for imp in imports:
        top = imp.target.split(".")[0]
        at = f"{module}:{imp.line}"
        if top in ENGINE_NEVER:
            faults.append(f"{at} imports {top}: the engine knows nothing of it")
        elif top == "app":
            faults.append(f"{at} imports the app")
        elif top == "engine":
            if not imp.relative:
                faults.append(f"{at} imports {imp.target} absolutely")
            if here in PUBLIC:
                continue
            for package in engine_targets(imp):
                if package in PUBLIC:
                    faults.append(f"{at} imports the engine's face")
                elif package not in RANK:
                    faults.append(f"{at} imports {imp.target}, which has no layer")
                elif package != here and not _is_below(package, here):
                    faults.append(f"{at} in {here} imports {package}, which is not below it")
    return faults


def _is_below(package: str, here: str) -> bool:
    return RANK[package] > RANK[here] or (package in BASE and here in BASE)


def app_faults(module: str, imports: list[Import], exported: frozenset[str]) -> list[str]:
    """What is wrong with the imports of one module of the app."""
    here, faults = package_of(module), []
    never = CORE_NEVER if here in APP_CORE else APP_NEVER
    for imp in imports:
        top = imp.target.split(".")[0]
        at = f"{module}:{imp.line}"
        if top in never:
            faults.append(f"{at} imports {top}, which {here or 'the app'} must not")
        if top in ("engine", "app") and not imp.relative:
            faults.append(f"{at} imports {imp.target} absolutely")
        if top == "engine":
            if imp.target == "engine":
                packages = [name for name in imp.names if name in RANK and name not in exported]
            else:
                packages = [package_of(imp.target)]
            faults += [
                f"{at} reaches into engine.{package}; only engine and engine.inspect are open"
                for package in packages
                if package != "inspect"
            ]
        elif top == "app":
            allowed = {here, *APP_CORE} | (set() if here in APP_CORE else APP_MAY.get(here, set()))
            packages = list(imp.names) if imp.target == "app" else [package_of(imp.target)]
            known = {*APP_MAY, *APP_CORE} - {""}
            faults += [
                f"{at} in {here} imports app.{package}"
                for package in packages
                if package in known and package not in allowed
            ]
    return faults


@cache
def read(path) -> tuple[str, list[Import]]:
    module, is_package = module_name(path)
    return module, imports_of(path.read_text(encoding="utf-8"), module, is_package)


def test_engine_imports_point_down():
    faults = [fault for path in python_files("engine") for fault in engine_faults(*read(path))]
    assert not faults, "\n".join(faults)


def test_app_sees_only_the_public_api_of_the_engine():
    from qd_studio import engine

    exported = frozenset(getattr(engine, "__all__", ()))
    faults = [f for path in python_files("app") for f in app_faults(*read(path), exported)]
    assert not faults, "\n".join(faults)


def circles(sources: dict[str, list[Import]]) -> list[set[str]]:
    """The largest sets of modules that import each other; imports of types alone do not count."""
    graph = {name: reached_by(imports, sources) - {name} for name, imports in sources.items()}
    below: dict[str, set[str]] = {}
    for module in graph:
        found: set[str] = set()
        new = graph[module]
        while new:
            found |= new
            new = {inner for one in new for inner in graph[one]} - found
        below[module] = found
    sets = {
        frozenset(other for other in below[module] if module in below[other])
        for module in graph
        if module in below[module]
    }
    return sorted(map(set, sets), key=sorted)


def reached_by(imports: list[Import], modules: dict[str, list[Import]]) -> set[str]:
    """The modules that these imports load, without the packages around them."""
    found: set[str] = set()
    for imp in imports:
        if not imp.typing:
            inner = {f"{imp.target}.{name}" for name in imp.names} & modules.keys()
            found |= inner
            if len(inner) < len(imp.names) or not imp.names:
                found.add(imp.target)
    return found & modules.keys()


def test_no_modules_import_each_other_in_a_circle():
    found = circles(dict(read(path) for path in python_files("engine", "app")))
    assert not found, "\n".join(" <-> ".join(sorted(circle)) for circle in found)


@pytest.mark.parametrize(
    ("op", "loc", "closed"),
    [
        ("from .loc import Loc", "from .op import Op", True),
        ("from . import loc", "def f():\n    from .op import Op", True),
        ("from . import loc", "import_module('..ir.op', __package__)", True),
        ("from .loc import Loc", "if TYPE_CHECKING:\n    from .op import Op", False),
        ("from .loc import Loc", "if not TYPE_CHECKING:\n    from .op import Op", True),
        ("from .loc import Loc", "from . import Op", True),
        ("from .loc import Loc", "from .other import op", False),
    ],
)
def test_circles_are_seen(op, loc, closed):
    texts = {"engine.ir": "from .op import Op", "engine.ir.op": op, "engine.ir.loc": loc}
    found = circles({name: imports_of(t, name, name == "engine.ir") for name, t in texts.items()})
    assert bool(found) == closed
    assert all({"engine.ir.op", "engine.ir.loc"} <= circle for circle in found)


def test_tests_and_samples_use_the_installed_name():
    faults = [
        f"{module}:{imp.line} imports {imp.target} by its folder"
        for path in python_files("tests", "sample_kernels", "benchmarks")
        for module, imports in [read(path)]
        for imp in imports
        if imp.spelled.split(".")[0] in ("engine", "app")
    ]
    assert not faults, "\n".join(faults)


def test_every_package_has_a_layer():
    packages = {
        path.name for path in (ROOT / "engine").iterdir() if (path / "__init__.py").is_file()
    }
    files = {path.stem for path in (ROOT / "engine").glob("*.py")} - PUBLIC - {"__init__"}
    assert packages | files <= set(RANK)


@pytest.mark.parametrize(
    ("module", "source", "fault"),
    [
        ("engine.ir.op", "from ..types import f32\nfrom .loc import Loc", None),
        ("engine.ir.op", "from ..passes import die", "passes, which is not below it"),
        ("engine.passes.die", "from ..backends.cpu import jit", "backends, which is not"),
        ("engine.passes.die", "from .. import frontend", "frontend, which is not"),
        ("engine.adstack.sizer", "from ..passes import die", "passes, which is not"),
        ("engine.backends.cpu.jit", "from ...ir import Op", None),
        ("engine.backends.cpu.jit", "def f():\n    from ...lang import kernel", "lang, which"),
        ("engine.ir.op", "from qd_studio.engine.types import f32", "absolutely"),
        ("engine.ir.op", "from .. import kernel", "the engine's face"),
        ("engine.ir.op", "import textual.app", "knows nothing of it"),
        ("engine.ir.op", "import importlib\nimportlib.import_module('rich')", "nothing of it"),
        ("engine.types.dtypes", "from ..config import CompileConfig", None),
        ("engine.config", "from . import logs\nfrom .options import Option", None),
        ("engine.misc", "import os", "has no layer"),
        ("app.core.lines", "from ...engine.inspect import record", None),
        ("app.core.lines", "import rich", "core must not"),
        ("app.core.lines", "from ..tui import app", "imports app.tui"),
        ("app.tui.app", "from ..worker import client\nimport textual", None),
        ("app.report.html", "from ..tui import themes", "imports app.tui"),
        ("app.worker.child", "from ...engine import alias, inspect, kernel", None),
        ("app.worker.child", "from ...engine import passes", "reaches into engine.passes"),
        ("app.worker.child", "from ...engine.runtime import program", "into engine.runtime"),
        ("app.cli", "from ..engine.lang.kernel import Kernel", "into engine.lang"),
    ],
)
def test_the_rules_bite(module, source, fault):
    imports = imports_of(source, module, is_package=False)
    if module.startswith("engine"):
        faults = engine_faults(module, imports)
    else:
        faults = app_faults(module, imports, frozenset({"kernel", "alias"}))
    if fault is None:
        assert faults == []
    else:
        assert len(faults) == 1
        assert fault in faults[0]
