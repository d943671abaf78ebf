"""The README's promises, and that generated pages and links are good."""

import importlib.util
import re
import subprocess
import sys

import pytest

from tests.hygiene.tree import ROOT, committed_files

README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = sorted(path for path in committed_files() if path.suffix == ".md")


def blocks(language: str) -> list[str]:
    """The fenced code blocks of the README in one language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.M | re.S)


def generator():
    spec = importlib.util.spec_from_file_location("docs_generate", ROOT / "docs" / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_readme_has_both_one_liners_word_for_word():
    lines = [line for block in blocks("bash") for line in block.splitlines()]
    assert lines.count("python -m pip install . && qd-studio sample_kernels/nbody.py") == 1
    assert lines.count('python -m pip install -e ".[test]" && python -m pytest') == 1


def test_the_library_example_of_the_readme_runs(tmp_path):
    (example,) = blocks("python")
    path = tmp_path / "example.py"
    path.write_text(example, encoding="utf-8")
    result = subprocess.run(
        [sys.executable, "-W", "error", str(path)], cwd=tmp_path, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout == "[ 1.  3.  5.  7.  9. 11. 13. 15.]\n"


GENERATED = [
    "config.md",
    "conformance.md",
    "ir.md",
    "language/names.md",
    "ops.md",
    "passes.md",
    "studio.md",
]


@pytest.mark.parametrize("name", GENERATED)
def test_generated_pages_are_current(name):
    module = generator()
    committed = (ROOT / "docs" / name).read_text(encoding="utf-8")
    assert committed == module.PAGES[name](), "run: python docs/generate.py"


def test_all_generated_pages_are_compared():
    assert sorted(generator().PAGES) == GENERATED


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page):
    links = re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8"))
    local = [link.split("#")[0] for link in links if "://" not in link and link[0] != "#"]
    missing = [link for link in local if not (page.parent / link).exists()]
    assert not missing


def test_the_index_lists_every_page():
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    pages = {path.name for path in PAGES if path.parent == ROOT / "docs"} - {"index.md"}
    assert not {name for name in pages if f"({name})" not in index}
