"""Where a function's text ends: indentation says the same as tokens, or is not asked."""

import ast
import inspect
import linecache
from types import FunctionType
from typing import Any

import pytest
from qd_studio.engine.frontend import source

TRICKY = '''
@decorated(
    "a",
)
def first(
    a,
    b=")",
):
    x = 1
# a comment at the margin
    y = 2

    # the last comment of the body

# a comment of nobody
def second(): return 1
class Holder:
    @staticmethod
    def third(a):
        """Text
at the margin
        """
        return (a +
1)

    def fourth(self):
        return 1 + \\
2
    fifth = 5
async def sixth():
    pass
'''


def functions(text: str) -> list[ast.FunctionDef]:
    return [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]


def made(text: str, name: str) -> list[FunctionType]:
    """The functions in ``text``, with their source in `linecache`."""
    spaces: dict[str, Any] = {"decorated": lambda *_: lambda fn: fn}
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    exec(compile(text, name, "exec"), spaces)
    holder = spaces["Holder"]
    return [spaces["first"], spaces["second"], holder.third, holder.fourth]


def test_every_function_ends_where_its_tokens_end() -> None:
    name = "<tricky source>"
    lines = TRICKY.splitlines(keepends=True)
    for fn in made(TRICKY, name):
        found = source.FunctionSource(fn)
        start = fn.__code__.co_firstlineno
        assert found.text == "".join(inspect.getblock(lines[start - 1 :]))


def test_the_tree_stands_where_the_function_stands() -> None:
    expected = {node.name: node for node in functions(TRICKY)}
    for fn in made(TRICKY, "<standing source>"):
        found = source.FunctionSource(fn).tree
        assert ast.dump(found, include_attributes=True) == ast.dump(
            expected[fn.__name__], include_attributes=True
        )


def test_plain_functions_need_no_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(lines: list[str]) -> list[str]:
        raise AssertionError("tokens were asked")

    monkeypatch.setattr(inspect, "getblock", refuse)
    found = [source.FunctionSource(fn) for fn in made(TRICKY, "<plain source>")[:2]]
    assert [(f.line, f.end_line) for f in found] == [(2, 13), (16, 16)]
