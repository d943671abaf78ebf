"""The pages about the language: entries for all names, examples that print what they show."""

import importlib.util
import inspect
import re
import sys
from types import ModuleType

import pytest
from qd_studio import engine as qd

from tests.hygiene.tree import ROOT


def module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"docs_{name}", ROOT / "docs" / f"{name}.py")
    loaded = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


EXAMPLES = module("examples")
NAMES = list(module("names").names())
PAGES = EXAMPLES.pages()
ENTRIES = {
    name: shown for page in PAGES for shown in EXAMPLES.examples(page) for name in shown.names
}

CLASSES = {
    "Matrix": (qd.Matrix, "Matrix"),
    "Struct": (qd.Struct, "Struct"),
    "ScalarField": (qd.ScalarField, "Field"),
    "MatrixField": (qd.MatrixField, "Field"),
    "StructField": (qd.StructField, "Field"),
    "Ndarray": (qd.Ndarray, "Ndarray"),
    "Tensor": (qd.Tensor, "Tensor"),
    "SNode": (qd.SNode, "SNode"),
    "FieldsBuilder": (qd.FieldsBuilder, "FieldsBuilder"),
    "Stream": (qd.Stream, "Stream"),
    "Event": (qd.Event, "Event"),
}
"""Classes whose methods users call, and the class under which an entry may stand as well."""

INTERNAL = {
    "Matrix": "plain",
    "Struct": "struct_type",
    "ScalarField": "address block flat grouped is_freed is_late label make_companion memory_layout "
    "owner release settle",
    "MatrixField": "address block flat grouped is_freed label memory_layout release",
    "Ndarray": "program_ended",
    "SNode": "axes below builder children dims field kind path up",
    "FieldsBuilder": "check_open face fields release",
    "Stream": "live program_ended",
    "Event": "live program_ended",
}
"""What the engine uses of them, and users do not."""

UNSUPPORTED = {
    "bit_array", "bit_struct", "bitmasked", "dynamic", "hash", "pointer",
    "quant_array",
}  # fmt: skip
"""Sparse and quantised structures: each raises an error that says so."""


def methods(name: str) -> list[str]:
    cls, _ = CLASSES[name]
    letters = [set("xyzw"), set("rgba"), set("stpq")]
    return [
        attr
        for attr in dir(cls)
        if not attr.startswith("_")
        and attr not in INTERNAL.get(name, "").split()
        and attr not in UNSUPPORTED
        and not any(set(attr) <= s for s in letters)
    ]


RUN = [pytest.param(p, marks=pytest.mark.slow) if p.stem == "simt" else p for p in PAGES]
"""Examples of blocks and subgroups take ten seconds to compile."""


@pytest.mark.sampled(3)
@pytest.mark.parametrize("page", RUN, ids=lambda page: page.stem)
def test_every_example_prints_what_the_page_shows(page):
    shown = list(EXAMPLES.examples(page))
    printed = EXAMPLES.run(shown)
    for example, output in zip(shown, printed, strict=True):
        assert output == example.output, f"{page.name}: {' '.join(example.names)}"


@pytest.mark.parametrize("page", EXAMPLES.WALK_THROUGHS, ids=lambda page: page.stem)
def test_every_block_of_a_walk_through_prints_what_the_page_shows(page):
    shown = [output for _, output in EXAMPLES.steps(page)]
    assert EXAMPLES.walk(page) == shown
    assert all(shown) and page.read_text("utf-8").count("```python") == len(shown)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_entry_has_an_example_that_uses_its_names(page):
    found = [name for shown in EXAMPLES.examples(page) for name in shown.names]
    assert found == EXAMPLES.headings(page), "an entry without an example"
    for shown in EXAMPLES.examples(page):
        unused = [n for n in shown.names if not re.search(rf"\b{n.split('.')[-1]}\b", shown.code)]
        assert not unused, f"{page.name}: the example does not use {unused}"


def test_every_public_name_has_an_entry():
    missing = [name.path for name in NAMES if name.entry not in ENTRIES]
    assert not missing, "write entries for these names in docs/language"


@pytest.mark.parametrize("name", CLASSES)
def test_every_method_has_an_entry(name):
    _, other = CLASSES[name]
    missing = [m for m in methods(name) if not {f"{name}.{m}", f"{other}.{m}"} & set(ENTRIES)]
    assert not missing, f"write entries for these methods of {name} in docs/language"


def test_entries_are_of_names_that_exist():
    known = {name.entry for name in NAMES}
    known |= {
        f"{cls}.{m}" for cls, pair in CLASSES.items() for c in (cls, pair[1]) for m in dir(pair[0])
    }
    known |= {f"Field.{m}" for m in (*dir(qd.ScalarField), "name", "dtype", "layout")}
    assert not sorted(set(ENTRIES) - known)


def test_every_public_name_has_a_docstring():
    silent = [name.path for name in NAMES if not name.about]
    assert not silent


def own_docstring(cls: type, attr: str) -> str:
    for base in cls.__mro__:
        value = base.__dict__.get(attr)
        if value is not None and (doc := inspect.getdoc(value)):
            return doc
    return ""


@pytest.mark.parametrize("name", CLASSES)
def test_every_method_has_a_docstring(name):
    cls, _ = CLASSES[name]
    found = {m: inspect.getattr_static(cls, m) for m in methods(name)}
    silent = [
        m
        for m, value in found.items()
        if (callable(value) or isinstance(value, property | classmethod | staticmethod))
        and not own_docstring(cls, m)
    ]
    assert not silent
