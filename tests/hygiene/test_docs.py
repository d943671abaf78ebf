"""The README's promises, and that generated pages and links are good."""

import ast
import builtins
import functools
import importlib.util
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from qd_studio import engine
from qd_studio.app.panels import tabs
from qd_studio.engine import errors
from qd_studio.engine.cache.folder import is_layer
from qd_studio.engine.option_table import OptionTable

from tests.hygiene.tree import ROOT, committed_files, python_files

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
    "compatibility.md",
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


def test_the_site_has_every_page():
    """`mkdocs build --strict` says the same, where mkdocs is installed."""
    listed = set(
        re.findall(r"^ +- (?:.+: )?([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.M)
    )
    pages = {p.relative_to(ROOT / "docs").as_posix() for p in PAGES if "docs" in p.parts}
    assert listed == pages


def test_every_decision_is_numbered_and_listed():
    folder = ROOT / "docs" / "decisions"
    index = (folder / "index.md").read_text(encoding="utf-8")
    records = sorted(p.name for p in PAGES if p.parent == folder and p.name != "index.md")
    assert [int(name[:3]) for name in records] == list(range(1, len(records) + 1))
    assert re.findall(r"^\| \[\d+\]\((.+?)\) \|", index, re.M) == records


# ---- what pages say of the source can be looked up in it

SOURCES = {
    path: path.read_text(encoding="utf-8") for path in python_files("engine", "app", "tests")
}
NOT_OF_THE_TREE = {
    "qd-studio/qdcache": "a folder below the user's cache directory",
    "lib/libintelocl.so": "of Intel's runtime",
    "keymap.toml": "of the user",
    "random.py": "of the user",
    "numpy.py": "of the user",
    "i/8": "an expression",
    "engine/passes/cancel_double_negation.py": "the example of CONTRIBUTING.md",
    "tests/passes/cancel_double_negation.qdir": "the example of CONTRIBUTING.md",
}
"""What looks like a path of the tree in a page, and is none."""


def inline(page) -> list[str]:
    """The texts in backticks of a page, outside of code blocks."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    return re.findall(r"`([^`\n]+)`", text)


def ids(path):
    return path.relative_to(ROOT).as_posix()


@cache
def files_and_folders() -> tuple[list[str], set[str]]:
    files = [path.relative_to(ROOT).as_posix() for path in committed_files()]
    return files, {parent.as_posix() for name in files for parent in Path(name).parents}


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_files_that_a_page_names_exist(page):
    files, folders = files_and_folders()

    def exists(name):
        pattern = re.compile(r"(?:.*/)?" + re.escape(name.rstrip("/")).replace(r"\*", "[^/]*"))
        return any(map(pattern.fullmatch, files)) or any(map(pattern.fullmatch, folders))

    paths = [
        text
        for text in inline(page)
        if re.fullmatch(r"[\w.*-]+\.(py|md|toml|json)|[\w.-]+/[\w./*-]*", text)
    ]
    assert [name for name in paths if name not in NOT_OF_THE_TREE and not exists(name)] == []


@functools.cache
def variables_of_sources():
    return {v for source in SOURCES.values() for v in re.findall(r"\bQD_[A-Z0-9_]+\b", source)}


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_options_that_a_page_names_exist(page):
    options = set(OptionTable.__annotations__)
    options |= {"arch", "default_fp", "default_ip", "enable_fallback", "require_version"}
    text = page.read_text(encoding="utf-8")
    keywords = {
        name
        for call in re.findall(r"qd\.init\(([^()]*)\)", text)
        for name in re.findall(r"(?<![\w.])(\w+)=", call)
    }
    variables = set(re.findall(r"\bQD_[A-Z][A-Z0-9_]*\b", text))
    known = {f"QD_{name.upper()}" for name in options}
    known |= variables_of_sources()
    assert sorted(keywords - options - {"name"}) == []
    assert sorted(variables - known) == []


STAND_INS = {"GUI", "ui", "tools"}
"""Names of the language that only the studio has: see `windows`."""


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_names_of_the_language_that_a_page_uses_exist(page):
    if page.name == "compatibility.md":  # names of Quadrants, whether they are here or not
        return
    unknown = []
    for text in inline(page):
        for dotted in re.findall(r"\bqd((?:\.[A-Za-z_]\w*)+)", text):
            if dotted[1:].split(".")[0] in STAND_INS:
                continue
            found = engine
            for name in dotted[1:].split("."):
                if not hasattr(found, name):
                    unknown.append("qd" + dotted)
                    break
                found = getattr(found, name)
    assert unknown == []


NAMES_OF_OTHERS = {"EnumMeta", "IntEnum", "PhysicalStorageBuffer64"} | set(dir(builtins))


@cache
def definitions(path) -> set[str]:
    """What a file defines: classes, functions, parameters and whatever is assigned to."""
    found = set()
    for node in ast.walk(ast.parse(SOURCES[path])):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.keyword) and node.arg == "kind":
            found |= {getattr(node.value, "value", "")}
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.add(node.id if isinstance(node, ast.Name) else node.attr)
    return found


@cache
def defined(name: str) -> bool:
    files = [path for path, source in SOURCES.items() if name in source]
    files.sort(key=lambda path: f"class {name}" not in SOURCES[path])
    return any(name in definitions(path) for path in files)


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_classes_that_a_page_names_exist(page):
    named = {t for t in inline(page) if re.fullmatch(r"[A-Z][a-z0-9]+[A-Z]\w*(\.\w+)?", t)}
    missing = [
        text for text in sorted(named - NAMES_OF_OTHERS) if not all(map(defined, text.split(".")))
    ]
    assert missing == []


FLAGS = re.compile(r"(?<![\w-])--[a-z][a-z-]+")


@cache
def flags_of_the_command() -> set[str]:
    sources = [text for path, text in SOURCES.items() if path.is_relative_to(ROOT / "app")]
    return {flag for source in sources for flag in FLAGS.findall(source)}


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_flags_of_the_command_that_a_page_shows_exist(page):
    """In what begins with ``qd-studio``, up to a remark or the arguments of a file."""
    text = page.read_text(encoding="utf-8")
    lines = [
        line for line in inline(page) + text.splitlines() if line.strip().startswith("qd-studio ")
    ]
    used = {
        flag
        for line in lines
        for flag in FLAGS.findall(re.split(r"\s{3,}|\s#|\s--\s", line.strip())[0])
    }
    assert sorted(used - flags_of_the_command()) == []


def test_the_table_of_errors_is_whole_and_true():
    text = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`[^|]*Error`) \|([^|]*)\|", text, re.M)
    named = set()
    for classes, bases in rows:
        for name in re.findall(r"`(\w+)`", classes):
            named.add(name)
            for base in re.findall(r"`(\w+)`", bases):
                above = getattr(errors, base, None) or getattr(builtins, base)
                assert issubclass(getattr(errors, name), above), f"{name} is no {base}"
    known = {k for k, v in vars(errors).items() if isinstance(v, type) and k.endswith("Error")}
    assert known - named == {"IRParseError", "IRVerificationError"}  # of the compiler's own


def test_the_tabs_of_a_kernel_are_those_of_the_page():
    text = (ROOT / "docs" / "studio.md").read_text(encoding="utf-8")
    part = text[text.index("**A kernel** has") :]
    names = re.findall(r"^(\d+)\. \*(\w+)\*", part[: part.index("Each cache layer")], re.M)
    assert [int(number) for number, _ in names] == list(range(1, len(names) + 1))
    assert [name.lower() for _, name in names] == [panel.id for panel in tabs()]


def test_layers_of_the_caches_are_those_of_the_page():
    text = (ROOT / "docs" / "caches.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)(?:_<arch>)?` \|", text[: text.index("## When code")], re.M)
    assert rows == ["offline", "fastcache", "ptx_cache", "runtime", "checks"]
    assert all(is_layer(name) for name in rows)


def test_tests_that_the_table_of_features_names_exist():
    page = (ROOT / "docs" / "features.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+)\. .*$", page, re.M)
    assert [int(n) for n in rows] == list(range(1, 27))
    named = re.findall(r"`([\w/]+\.py)::(test_\w+)`", page)
    assert len({row for row in page.splitlines() if "::test_" in row}) == 26
    for path, name in named:
        text = SOURCES.get(ROOT / "tests" / path, "")
        assert re.search(rf"^(async )?def {name}\(", text, re.M), f"{path}::{name}"
