"""Where a function's text ends: indentation says the same as tokens, or is not asked."""

import ast
import inspect
import linecache
from pathlib import Path
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

# a comment of no function
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


def test_the_tree_is_where_the_function_is_listed() -> None:
    expected = {node.name: node for node in functions(TRICKY)}
    for fn in made(TRICKY, "<standing source>"):
        found = source.FunctionSource(fn).tree
        assert ast.dump(found, include_attributes=True) == ast.dump(
            expected[fn.__name__], include_attributes=True
        )


def test_a_parsed_function_has_the_same_text() -> None:
    for fn in made(TRICKY, "<parsed source>"):
        found = source.FunctionSource(fn)
        assert found.tree.name == fn.__name__
        assert found.text == source.FunctionSource(fn).text


EVERY_NODE = """
import os.path as p
from a import b as c
@deco(1)
async def f(a, /, b: int = 1, *c, d, e=2, **g) -> str:
    global h
    nonlocal i
    x: list[int] = [*c, -a, not b, a if b else d]
    x[1:2, ...] += (y := lambda q: q @ 2)
    del x[0], y.z
    {**g, 1: 2, "k": {3}}
    print(f"{a!r:>{b}}", [k for k in x if k async for l in m], {k: v for k, v in g})
    try:
        raise E from None
    except (A, B) as err:
        pass
    else:
        assert a < b <= 3, "no"
    finally:
        yield
    while a and b or d:
        break
    async with a as b, c:
        await b
    match a:
        case {"x": 1, **rest} | None | [1, *more] | Point(x=0) as whole:
            return
"""


def test_nodes_are_those_of_walk_but_for_operators_contexts_and_imports() -> None:
    left_out = (
        ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.alias,
    )  # fmt: skip
    for text in (EVERY_NODE, TRICKY, Path(source.__file__).read_text()):
        tree = ast.parse(text)
        wanted = [node for node in ast.walk(tree) if not isinstance(node, left_out)]
        assert source.nodes_of(tree) == wanted


def test_plain_functions_need_no_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(lines: list[str]) -> list[str]:
        raise AssertionError("tokens were asked")

    monkeypatch.setattr(inspect, "getblock", refuse)
    found = [source.FunctionSource(fn) for fn in made(TRICKY, "<plain source>")[:2]]
    assert [(f.line, f.end_line) for f in found] == [(2, 13), (16, 16)]


def test_text_ends_where_the_parser_says_without_asking_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **options: object) -> None:
        raise AssertionError("parsed")

    wanted = {}
    for node in ast.walk(ast.parse(TRICKY)):
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            wanted[node.name] = first, node.end_lineno
    functions = made(TRICKY, "<unparsed source>")
    monkeypatch.setattr(ast, "parse", refuse)
    for fn in functions:
        found = source.FunctionSource(fn)
        first, last = wanted[fn.__name__]
        assert found.line == first
        lines = TRICKY.splitlines()
        assert found.end_line >= last
        assert all(not t.strip() or t.strip()[0] == "#" for t in lines[last : found.end_line])


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("def f():\n    return 1\n", True),
        ("def f():\n    '''a\n", False),
        ("def f(a,\n", False),
        ("def f(): # (\n    return 1\n", True),
        ("def f():\n    return 'it\\'s ('\n", True),
        ("def f():\n    return 1 + \\\n", False),
        ('def f():\n    return """a "quoted" ( """\n', True),
        ("def f(d):\n    return f'{d}'\n", True),
        ("def f(d):\n    return f'{d['\n", False),
        ("def f():\n    return 'unended\n", False),
    ],
)
def test_open_strings_and_brackets_are_seen(text: str, whole: bool) -> None:
    assert source._is_whole(text) is whole


def test_lambdas_in_one_line_are_distinguished() -> None:
    namespace: dict[str, Any] = {}
    text = "a, b = (lambda x: x + 1), (lambda x: x + 1)\nc = (\n    lambda x: x +\n    1)\n"
    linecache.cache["<lambdas>"] = len(text), None, text.splitlines(True), "<lambdas>"
    exec(compile(text, "<lambdas>", "exec"), namespace)
    a, b, c = (source.LambdaSource(namespace[name]) for name in "abc")
    assert a.identity != b.identity
    assert c.text == "    lambda x: x +\n    1)\n"
    assert c.end_line == 4


def test_a_warning_about_the_text_names_its_place(tmp_path):
    """Python warns of a backslash that means nothing, once more where a function is parsed."""
    path = tmp_path / "warned.py"
    path.write_text('X = 1\n\n\ndef warned():\n    "\\d"\n')
    names: dict[str, Any] = {}
    with pytest.warns((SyntaxWarning, DeprecationWarning)):
        exec(compile(path.read_text(), str(path), "exec"), names)
    with pytest.warns((SyntaxWarning, DeprecationWarning)) as found:
        assert source.FunctionSource(names["warned"]).tree
    assert [(one.filename, one.lineno) for one in found] == [(str(path), 5)]
