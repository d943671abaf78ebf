"""What the other tests here read: the project's own files, and nothing that lies around them."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tests.hygiene.tree import ROOT, committed_files

OWN = {"pyproject.toml", "engine/ir/op.py", ".ci/run", "docs/ir.md"}
FOREIGN = (
    "venv/lib/python3.11/site-packages/thing.py", "env2/pyvenv.cfg", "env2/bin/activate.py",
    ".cache/x.py", "build/lib/engine/op.py", "dist/x.py", "engine/__pycache__/op.py",
    "qd_studio.egg-info/x.py",
)  # fmt: skip


@pytest.fixture
def tree(tmp_path):
    root = tmp_path / "project"
    for name in (*OWN, *FOREIGN):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("")
    return root


def names(root):
    return {path.relative_to(root).as_posix() for path in committed_files(root)}


def git(folder, *words):
    subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True)


def test_a_source_archive_has_its_own_files_and_no_virtual_environment(tree):
    assert names(tree) == OWN


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_a_checkout_has_what_git_tracks(tree):
    git(tree, "init")
    git(tree, "add", "-f", *OWN)
    (tree / "notes.py").write_text("")
    assert names(tree) == OWN
    (tree / "docs/ir.md").unlink()
    assert names(tree) == OWN - {"docs/ir.md"}


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_an_archive_inside_another_checkout_is_read_as_an_archive(tree):
    git(tree.parent, "init")
    assert names(tree) == OWN


def test_the_project_itself_is_found():
    found = names(ROOT)
    assert {"pyproject.toml", "engine/ir/op.py", ".ci/run"} <= found and len(found) > 500
