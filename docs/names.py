"""Every public name of the language, with one line of description and the page with its example.

`docs/generate.py` writes the page that is generated here; a test finds missing entries.
"""

import importlib.util
import inspect
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from qd_studio import engine
from qd_studio.engine.runtime.arch import Arch
from qd_studio.engine.types import DataType, MatrixType

HEAD = """\
# Names

This page lists every public name of the language in alphabetical order, with its meaning and the
page that has an example. Those pages list methods with their classes.
"""

# Modules that are tools around the language; only the name itself is described.
APART = {"inspect"}


_KINDS = {"i": "signed integers", "u": "unsigned integers", "f": "floats"}


@dataclass(frozen=True)
class Name:
    """A public name: `module` is the module as users write it."""

    module: str
    name: str
    value: Any

    @property
    def path(self) -> str:
        return f"{self.module}.{self.name}"

    @property
    def entry(self) -> str:
        """How headings of entries call it: by the last two parts, or as a whole."""
        if self.module in ("qd", "qd.types") or isinstance(self.value, ModuleType):
            return self.path
        return ".".join(self.path.split(".")[-2:])

    @property
    def about(self) -> str:
        """The first line of its docstring, or its value."""
        if isinstance(self.value, DataType):
            if self.value.bits == 1:
                return "The data type of booleans."
            return f"The data type of {_KINDS[self.value.name[0]]} of {self.value.bits} bits."
        if isinstance(self.value, MatrixType):
            size = " by ".join(map(str, self.value.shape))
            kind = "matrices" if len(self.value.shape) > 1 else "vectors"
            default = {"i": "default_ip", "u": "default_up"}.get(self.name[0], "default_fp")
            return f"The type of {kind} of {size} elements of type `{default}`."
        if isinstance(self.value, Arch):
            return f"The backend `{self.value}`, for `qd.init(arch=...)`."
        if isinstance(self.value, str | float):
            return f"The constant `{self.value!r}`."
        if isinstance(self.value, tuple):
            kind = "axis" if len(self.name) == 1 else "axes"
            return f"The {kind} {', '.join(self.name)} of fields, for `dense`."
        doc = inspect.getdoc(self.value) or ""
        return doc.strip().splitlines()[0] if doc.strip() else ""


def modules() -> dict[str, ModuleType]:
    """The modules of the language as users write them, found through their names."""
    found: dict[str, ModuleType] = {}

    def visit(path: str, module: ModuleType) -> None:
        found[path] = module
        for name in module.__all__:
            value = getattr(module, name)
            if isinstance(value, ModuleType) and name not in APART:
                visit(f"{path}.{name}", value)

    visit("qd", engine)
    return found


def names() -> Iterator[Name]:
    for path, module in modules().items():
        for name in sorted(module.__all__, key=lambda name: (name.lower(), name)):
            yield Name(path, name, getattr(module, name))


def examples() -> ModuleType:
    """The module `examples.py` in this folder, which reads the entries of the pages."""
    spec = importlib.util.spec_from_file_location(
        "docs_examples", Path(__file__).with_name("examples.py")
    )
    assert spec and spec.loader
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def page() -> str:
    """The table of all names."""
    tool = examples()
    where = {head: page.name for page in tool.pages() for head in tool.headings(page)}
    lines = HEAD.splitlines()
    module = ""
    for name in names():
        if name.module != module:
            module = name.module
            lines += ["", f"## {module}", "", "| name | meaning | example |", "|---|---|---|"]
        about = name.about.replace("|", "\\|")
        shown = where.get(name.entry, "")
        link = f"[{shown.removesuffix('.md')}]({shown})" if shown else ""
        lines.append(f"| `{name.path}` | {about} | {link} |")
    return "\n".join(lines) + "\n"
