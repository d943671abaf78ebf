"""The example of the page about the language runs."""

import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "language.md"


def test_the_example_runs(tmp_path):
    (example,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    path = tmp_path / "example.py"
    path.write_text(example)
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "12.0\n"), done.stderr


def test_the_functions_it_names_are_there():
    from qd_studio import engine as qd

    text = PAGE.read_text(encoding="utf-8")
    section = text[text.index("## Functions and operators") : text.index("## Not in this version")]
    for line in section.split("\n- "):
        for names in re.findall(r"`qd\.([a-z0-9_ ]+)`", line):
            first, *rest = names.split()
            prefix = "atomic_" if first.startswith("atomic_") else ""
            assert all(hasattr(qd, n) for n in (first, *(prefix + n for n in rest))), names
    names = re.search(r"`qd.math`: `([a-z0-9 ]+)`", section).group(1)
    assert all(hasattr(qd.math, name) for name in names.split())
