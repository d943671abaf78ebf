"""Plain English in everything that people read: the words of `words.toml` are not used.

Some words are right in one meaning and wrong in another; the patterns catch the wrong use:

- *takes* passes with arguments, times and sizes ("takes two operands", "takes 20 ms"), not for
  needs, accepts or uses;
- *gives* passes in "gives up" and "gives way"; *given* passes always;
- *stands* passes in "stands for"; *has not* in the perfect tense ("has not run");
- *room* passes where it is space ("room for six"), not where it is a package.

Code is not prose: fenced blocks, indented blocks of pages and text in backticks are not read. The
decision records and the change log are free, because they may quote old names.
"""

import pytest
from qd_studio.app import cli
from qd_studio.app.commands import COMMANDS

from tests.hygiene import wording
from tests.hygiene.tree import ROOT, committed_files, python_files

KINDS = {
    "messages": (wording.messages, ("prose",)),
    "docstrings": (wording.docstrings, ("prose", "opening")),
    "names": (wording.names, ("name",)),
}
FREE = ("CHANGELOG.md", "docs/decisions/")
PAGES = [
    name
    for name in (path.relative_to(ROOT).as_posix() for path in committed_files())
    if name.endswith(".md") and not name.startswith(FREE)
]
HELP = [
    [],
    *([name] for name in COMMANDS),
    *(["cache", action] for action in ("ls", "show", "verify", "clean")),
]


def package(path) -> str:
    """The package of a file: two levels, or the folder of files at the top of one."""
    parts = path.relative_to(ROOT).parts
    return "/".join(parts[:2]) if len(parts) > 2 else parts[0]


PACKAGES = sorted({package(path) for path in python_files("engine", "app")})


def found_in(name):
    """The faults in a package, for each kind of text."""
    found = {kind: [] for kind in KINDS}
    for path in python_files("engine", "app"):
        if package(path) == name:
            source = path.read_text(encoding="utf-8")
            for kind, (collect, places) in KINDS.items():
                for where in places:
                    for line, what in wording.faults(collect(source), where):
                        found[kind].append(f"{path.relative_to(ROOT).as_posix()}:{line}: {what}")
    return found


def page_faults(name):
    source = (ROOT / name).read_text(encoding="utf-8")
    return [f"{name}:{line}: {what}" for line, what in wording.faults(wording.page(source))]


@pytest.mark.parametrize("name", PAGES)
def test_pages(name):
    found = page_faults(name)
    assert not found, "\n".join(found)


@pytest.mark.parametrize("name", PACKAGES)
def test_packages(name):
    found = [fault for faults in found_in(name).values() for fault in faults]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("path", python_files("sample_kernels"), ids=lambda path: path.name)
def test_samples(path):
    source = path.read_text(encoding="utf-8")
    for collect in (wording.docstrings, wording.messages, wording.comments):
        assert not list(wording.faults(collect(source)))


@pytest.mark.parametrize("command", HELP, ids=lambda words: " ".join(words) or "qd-studio")
def test_help(command, capsys):
    assert cli.main([*command, "--help"]) == 0
    text = capsys.readouterr().out
    assert "usage" in text.lower()
    assert not list(wording.faults(iter([wording.Text(1, text)])))


# ---- the test of the test


EXAMPLES = [
    (pattern, text, caught)
    for where in ("prose", "opening", "name")
    for pattern in wording.patterns(where)
    for text, caught in [(t, True) for t in pattern.bad] + [(t, False) for t in pattern.good]
]


@pytest.mark.parametrize(("pattern", "text", "caught"), EXAMPLES, ids=lambda value: str(value)[:40])
def test_each_pattern_finds_its_bad_examples_and_no_good_one(pattern, text, caught):
    text = wording._split(text) if pattern.where == "name" else text
    assert bool(pattern.find.search(text)) == caught
    assert pattern.write


def test_texts_are_found_where_they_are():
    source = '"""Nobody\n\nwaits anew."""\nraise ValueError(f"it {x} tells so")\n'
    lines = {line for line, _ in wording.faults(wording.docstrings(source))}
    assert lines == {1, 3}
    assert [line for line, _ in wording.faults(wording.messages(source))] == [4]
    assert not list(wording.faults(wording.names(source), "name"))
    assert list(wording.faults(wording.names("def synthetic(told): ..."), "name"))
    assert (
        len(list(wording.faults(wording.page("Text `anew`.\n\n```\nanew\n```\n\nIt is\nanew.\n"))))
        == 1
    )
    assert list(wording.faults(wording.comments("x = 1  # made anew\n")))
