"""The examples of the page about vectors print what it says, and it names everything there is."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from qd_studio import engine as qd

PAGE = (Path(__file__).parents[2] / "docs" / "vectors.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", PAGE, re.S)


def test_every_example_says_what_it_prints():
    assert len(EXAMPLES) == PAGE.count("```python") >= 5


@pytest.mark.parametrize("k", range(len(EXAMPLES)))
def test_the_example_prints_that(k, tmp_path):
    code, printed = EXAMPLES[k]
    path = tmp_path / "example.py"
    path.write_text(code, encoding="utf-8")
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, printed), done.stderr


NAMED = set(re.findall(r"[a-z_][a-z0-9_]*", PAGE))
# On the page about the language: functions of numbers that stand in qd.math too.
ELSEWHERE = set(
    re.findall(
        r"\w+",
        "acos asin atan2 ceil clz cos e exp ffs floor inf log nan pi popcnt pow round rsqrt sin "
        "sqrt tan tanh",
    )
)


def test_every_public_name_is_on_the_page():
    methods = {name for name in dir(qd.Matrix) if not name.startswith("_")}
    # What only programs about the values need: the shape, and elements to compute with.
    assert methods - NAMED - {"get_shape", "plain"} == set()
    assert set(qd.math.__all__) - NAMED - ELSEWHERE == set()
    assert {"vector", "matrix", "struct"} <= NAMED


def test_everything_public_has_a_docstring():
    values = [qd.Matrix, qd.Vector, qd.Struct, qd.dataclass, qd.data_oriented]
    values += [getattr(qd.Matrix, name) for name in dir(qd.Matrix) if not name.startswith("_")]
    values += [getattr(qd.math, name) for name in qd.math.__all__]
    values += [qd.svd, qd.polar_decompose, qd.sym_eig, qd.eig, qd.make_spd, qd.solve]
    values += [getattr(qd.types, name) for name in ("vector", "matrix", "struct", "is_real")]
    assert not [v for v in values if not (v.__doc__ or "").strip()]
