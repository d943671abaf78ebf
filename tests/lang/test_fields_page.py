"""The examples of the page about fields print what it says, and it names everything there is."""

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest
from qd_studio import engine as qd

PAGE = (Path(__file__).parents[2] / "docs" / "fields.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", PAGE, re.S)
ROOMS = [
    "fields.axes",
    "fields.builder",
    "fields.field",
    "fields.make",
    "fields.indices",
    "ndarray",
    "fields.placed",
    "fields.snode",
    "fields.struct_field",
    "tensor",
]
PUBLIC = [n for n in qd.__all__ if qd._HOME.get(n, "").removeprefix("lang.") in ROOMS]


def test_every_example_says_what_it_prints():
    assert len(EXAMPLES) == PAGE.count("```python") >= 5


@pytest.mark.parametrize("k", range(len(EXAMPLES)))
def test_the_example_prints_that(k, tmp_path):
    code, printed = EXAMPLES[k]
    path = tmp_path / "example.py"
    path.write_text(code, encoding="utf-8")
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, printed), done.stderr


def test_every_public_name_is_on_the_page():
    assert len(PUBLIC) > 30
    axes = {name for name in PUBLIC if set(name) <= set("ijkl")}
    missing = [n for n in PUBLIC if f"qd.{n}" not in PAGE and n not in axes]
    assert not missing
    assert {f"qd.{n}" in PAGE for n in ("i", "j", "k", "l", "ij", "ijk")} == {True}


def test_everything_public_has_a_docstring():
    classes = [qd.ScalarField, qd.MatrixField, qd.StructField, qd.Ndarray, qd.Tensor, qd.SNode]
    classes += [qd.FieldsBuilder, type(qd.root)]
    silent = [
        f"{cls.__name__}.{name}"
        for cls in classes
        for name in dir(cls)
        if not name.startswith("_") and callable(getattr(cls, name))
        and not inspect.getdoc(getattr(cls, name))
    ]  # fmt: skip
    assert not silent
