"""What may stand in the repository: no foreign paths or private notes, no file too long to read."""

import ast
import re

import pytest

from tests.hygiene.tree import ROOT, committed_files, python_files, statements

TEXT = {".py", ".md", ".toml", ".txt", ".json", ".yml", ".yaml", ".css", ".tcss", ".html", ".qdir"}

# Written so that this file does not contain what it looks for.
FORBIDDEN = {
    r"/[w]ork/|/[h]ome/\w+/|/[r]oot/": "a path of somebody's machine",
    r"\b[i]ssues? +(no\.? *)?#?\d+|\bGH-\d+|(?i:\b(fix\w*|clos\w*|see|by|in|PR) +)#\d+|\(#\d+\)": (
        "an issue number"
    ),
    r"\b[T]ODO\b|\b[F]IXME\b|\b[X]XX\b": "work left undone",
    r"\b[A]I (agent|assistant|model)|\bhelper [a]gents?\b|\bthe [l]ead\b": "how it was written",
}

MAX_LINES = 500
LONG_FILES: dict[str, str] = {}
MAX_FUNCTION = 60
LONG_FUNCTIONS: dict[str, str] = {}


def text_files():
    named = {"LICENSE", ".gitignore", "run"}
    return [p for p in committed_files() if p.suffix in TEXT or p.name in named]


def relative(path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_no_forbidden_words():
    faults = []
    for path in text_files():
        text = path.read_text(encoding="utf-8")
        for pattern, what in FORBIDDEN.items():
            for found in re.finditer(pattern, text):
                number = text.count("\n", 0, found.start()) + 1
                faults.append(f"{relative(path)}:{number}: {what}: {found.group()!r}")
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize(
    ("line", "caught"),
    [
        ("see issue" + " 12", True),
        ("fixed by" + " #12", True),
        ("a # comment 12 long", False),
        ("colour: #123;", False),
        ("attributes #0 = { nounwind }", False),
        ("done (#" + "7)", True),
        ("/wor" + "k/shared", True),
        ("a framework/thing", False),
        ("TO" + "DO later", True),
        ("the leading axis", False),
    ],
)
def test_the_patterns_bite(line, caught):
    assert any(re.search(pattern, line) for pattern in FORBIDDEN) == caught


def test_text_is_utf8_with_plain_line_ends():
    for path in text_files():
        data = path.read_bytes()
        data.decode("utf-8")
        assert b"\r" not in data, relative(path)
        assert not data or data.endswith(b"\n"), relative(path)


def test_no_file_is_too_long():
    folders = ("engine", "app", "tests", "sample_kernels", "benchmarks", "docs")
    lengths = {
        relative(p): len(p.read_text(encoding="utf-8").splitlines()) for p in python_files(*folders)
    }
    long = {name: n for name, n in lengths.items() if n > MAX_LINES and name not in LONG_FILES}
    assert not long
    assert {name for name in LONG_FILES if lengths.get(name, 0) <= MAX_LINES} == set()


def body_lines(function) -> int:
    """Lines of a function without its docstring."""
    body = function.body
    if ast.get_docstring(function) is not None:
        body = body[1:]
    return body[-1].end_lineno - body[0].lineno + 1 if body else 0


def test_no_function_is_too_long():
    long = {}
    for path in python_files("engine", "app"):
        for node in statements(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                name = f"{relative(path)}:{node.name}"
                if body_lines(node) > MAX_FUNCTION and name not in LONG_FUNCTIONS:
                    long[name] = body_lines(node)
    assert not long
