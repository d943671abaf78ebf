"""The source of a function: found, cut out and parsed, once per function.

The text is taken from `linecache` when the function is decorated, so that a file that is edited
later cannot shift the lines under a kernel that is compiled lazily. Where there is no file,
`kept_text` finds it. The block of the function is cut out and parsed at its own position, never the
whole file: an indented function is put under an ``if 1:`` so that all columns stay those of the
file.

Indentation says where nearly every function ends. It does not where a string, a bracket or a
backslash goes on at a lower column; `_is_whole` finds these without parsing, and only then are
tokens read, which takes longer than all the rest. So the text of a function, from which caches make
their keys, is known exactly before anything is parsed.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import re
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, Final, cast

from ..errors import QuadrantsSyntaxError, SourceSpan

if TYPE_CHECKING:
    from ..ir import Loc

__all__ = [
    "FunctionSource", "LambdaSource", "keep_source", "nodes_of", "root_name", "stored_places",
]  # fmt: skip

_HINT = (
    "define it with `def` in a file or a notebook cell, or pass the text that was executed: "
    "@qd.kernel(source=TEXT), @qd.func(source=TEXT)"
)
_SOURCE = "_qd_source"
"""The attribute of a function that holds the text passed to its decorator."""
_PROMPTS = "<string>", "<stdin>", "<console>"
"""File names that more than one text of a process may have."""


def keep_source(fn: Any, text: str | None) -> None:
    """Make ``text`` the source of ``fn``: that of a decorator's option ``source``, unless None."""
    if text is None:
        return
    if not isinstance(cast(Any, text), str):
        raise TypeError(f"source must be text, not {type(text).__name__}: what exec() was given")
    if isinstance(fn, FunctionType):
        setattr(fn, _SOURCE, text)


class _ChildFields(dict[type[ast.AST], tuple[str, ...]]):
    """The fields of a class of nodes that hold nodes or None; filled when asked."""

    def __missing__(self, node_class: type[ast.AST]) -> tuple[str, ...]:
        names = () if node_class in _CONSTANTS else node_class._fields
        found = self[node_class] = tuple([name for name in names if name not in _NO_NODES])
        return found


_CONSTANTS: Final = frozenset((ast.Constant, ast.MatchSingleton))
_NO_NODES: Final = frozenset((
    "arg", "asname", "attr", "conversion", "ctx", "id", "is_async", "kind", "kwd_attrs", "level",
    "module", "name", "names", "op", "ops", "rest", "simple", "str", "tag", "type_comment",
))  # fmt: skip
"""Fields without nodes, and those of contexts, operators and imports."""
_GAPS: Final = frozenset(("keys", "kw_defaults"))
"""Lists that may have None in place of a node."""
_CHILD_FIELDS: Final = _ChildFields()


def nodes_of(tree: ast.AST) -> list[ast.AST]:
    """The nodes of a tree in the order of `ast.walk`, in a fifth of its time: without contexts and
    operators, which have no parts, and without imports."""
    found = [tree]
    fields = _CHILD_FIELDS
    for node in found:  # which grows
        for name in fields[node.__class__]:
            value: Any = getattr(node, name, None)
            if value.__class__ is list:
                found += [v for v in value if v is not None] if name in _GAPS else value
            elif value is not None:
                found.append(value)
    return found


def root_name(node: ast.AST) -> str:
    """The name at the start of ``name[i].x``; "" for other expressions."""
    while node.__class__ in _PARTS:
        node = cast(ast.Attribute, node).value
    return node.id if isinstance(node, ast.Name) else ""


def stored_places(nodes: list[ast.AST]) -> list[ast.AST]:
    """The names, elements and attributes among ``nodes`` that are assigned to."""
    places: list[Any] = [node for node in nodes if node.__class__ in _PLACES]
    return [place for place in places if place.ctx.__class__ is not ast.Load]


_PARTS: Final = frozenset[type]((ast.Subscript, ast.Attribute))
_PLACES: Final = _PARTS | {ast.Name}


class FunctionSource:
    """The location of a function's text, and its syntax tree.

    name: as written after ``def``. qualname: with its enclosing classes and functions.
    file, line: of its first line, decorators included. locs: the locations of nodes of the tree, as
    the last build found them; the next one is mostly of other types alone.
    """

    __slots__ = ("_lines", "_text", "_tree", "file", "fn", "line", "locs", "name", "qualname")

    def __init__(self, fn: FunctionType) -> None:
        code = fn.__code__
        self.fn: Any = fn
        self.name = code.co_name
        self.qualname = fn.__qualname__
        self.file = code.co_filename
        self.line = code.co_firstlineno
        self._lines: list[str] = self._read()
        self._text: list[str] | None = None
        self._tree: ast.FunctionDef | None = None
        self.locs: Mapping[ast.AST, Loc] = {}

    def _read(self) -> list[str]:
        """The lines of the file, or of the text that is in place of one."""
        text = self.fn.__dict__.get(_SOURCE)
        if text is not None or self.file in _PROMPTS:
            from .kept_text import kept_lines, lines_of_source

            if text is None:
                return kept_lines(self.fn)
            lines = lines_of_source(self.fn, text)
            if not lines:
                raise self._missing("`source` has no function of that name, parameters and body")
            return lines
        linecache.checkcache(self.file)
        lines = linecache.getlines(self.file, self.fn.__globals__)
        if not lines and self.file.startswith("<"):  # newer prompts number what was typed
            from .kept_text import kept_lines

            lines = kept_lines(self.fn)
        return lines

    def _block(self) -> list[str]:
        text = self._text
        if text is None:
            if not self._lines[self.line - 1 :]:
                gone = "" if self.file.startswith("<") else f": there is no file {self.file}"
                raise self._missing(f"its source text cannot be found{gone}")
            text = _by_indentation(self._lines, self.line - 1)
            last = _last_line(self.fn.__code__)
            if last >= self.line + len(text) or not _is_whole("".join(text)):
                text = _by_tokens(self._lines, self.line - 1)
            self._text = text
        return text

    def _parsed(self, text: list[str]) -> ast.Module:
        """The tree of ``text``, which starts at this function's line."""
        indented = text[0][:1] in " \t"
        above = self.line - 1 - indented
        # Empty lines are cheaper than renumbering every node. Warnings name the file.
        padded = "\n" * above + ("if 1:\n" if indented else "") + "".join(text)
        return ast.parse(padded, self.file)

    @property
    def text(self) -> str:
        """The lines of the function, decorators included, as they are in the file."""
        return "".join(self._block())

    @property
    def identity(self) -> str:
        """The input of the syntax tree, without its position: equal inputs make equal trees."""
        return self.text

    @property
    def end_line(self) -> int:
        """The last line of the function."""
        return self.line + len(self._block()) - 1

    @property
    def tree(self) -> ast.FunctionDef:
        """The syntax tree, with the line numbers and columns of the file.

        Raises QuadrantsSyntaxError if there is no source, or it is not this function's.
        """
        if self._tree is None:
            self._tree = self._parse()
        return self._tree

    @property
    def is_parsed(self) -> bool:
        """True if the tree has been made."""
        return self._tree is not None

    def forget_tree(self) -> None:
        """Free the tree; see `trees`."""
        self._tree, self.locs = None, {}

    def _parse(self) -> ast.FunctionDef:
        text = self._text
        if text is None and self._lines[self.line - 1 :]:
            # A text that ends in a string, a bracket or a continued line has no tree: what has one
            # is whole, and `_block` need not look.
            text = _by_indentation(self._lines, self.line - 1)
            with suppress(SyntaxError, QuadrantsSyntaxError):
                node = self._function(text)
                self._text = text
                return node
        return self._function(self._block())

    def _function(self, text: list[str]) -> ast.FunctionDef:
        """The node of the function in ``text``, which starts at this function's line."""
        try:
            module = self._parsed(text)
        except SyntaxError as error:
            raise self._missing(f"the text at this place is no function ({error.msg})") from None
        body = module.body
        if text[0][:1] in " \t" and body and isinstance(body[0], ast.If):
            body = body[0].body
        node = body[0] if body else None
        if not isinstance(node, ast.FunctionDef) or not self._is_mine(node):
            raise self._missing("the text at this place is not that function")
        return node

    def _is_mine(self, node: ast.FunctionDef) -> bool:
        a = node.args
        names = [p.arg for p in (*a.posonlyargs, *a.args, *a.kwonlyargs)]
        code = self.fn.__code__
        count = code.co_argcount + code.co_kwonlyargcount
        return node.name == self.name and tuple(names) == code.co_varnames[:count]

    def _missing(self, why: str) -> QuadrantsSyntaxError:
        return QuadrantsSyntaxError(
            f"Cannot read the source of {self.name!r}: {why}",
            span=SourceSpan(self.file, self.line, function=self.name),
            hint=_HINT,
        )

    def source_line(self, line: int) -> str:
        """The text of a line of the file, as it was when the function was decorated."""
        return self._lines[line - 1] if 0 < line <= len(self._lines) else ""


class LambdaSource(FunctionSource):
    """The source of a lambda: the tree is that of a function that returns its value.

    Its text is the lines that contain it, whole ones; the file is parsed as a whole.
    """

    __slots__ = ()

    def _block(self) -> list[str]:
        ends = [end for _, end, _, _ in self.fn.__code__.co_positions() if end is not None]
        return self._lines[self.line - 1 : max([self.line, *ends])]

    @property
    def identity(self) -> str:
        """See `FunctionSource.identity`; several lambdas may be in one line."""
        code, first = self.fn.__code__, self.line
        places = {
            (line - first, start, end_line - first, end)
            for line, end_line, start, end in code.co_positions()
            if line is not None and end_line is not None
        }
        return f"{code.co_varnames}{sorted(places, key=str)}\n{self.text}"

    def _parse(self) -> ast.FunctionDef:
        try:
            module = ast.parse("".join(self._lines), self.file)
        except SyntaxError as error:
            raise self._missing(f"its file cannot be parsed ({error.msg})") from None
        found = [n for n in ast.walk(module) if isinstance(n, ast.Lambda) and self._is_of(n)]
        if len(found) != 1:
            raise self._missing("the text at this place is not that function")
        node = found[0]
        body: ast.stmt = ast.copy_location(ast.Return(node.body), node.body)
        made = ast.FunctionDef(self.name, node.args, [body], [], None, None)
        return ast.copy_location(made, node)

    def _is_of(self, node: ast.Lambda) -> bool:
        """True if the code of the function was made from ``node``."""
        a = node.args
        names = [p.arg for p in (*a.posonlyargs, *a.args, *a.kwonlyargs)]
        code = self.fn.__code__
        count = code.co_argcount + code.co_kwonlyargcount
        if node.lineno != self.line or tuple(names) != code.co_varnames[:count]:
            return False
        body = node.body
        ends = {(end_line, end) for _, end_line, _, end in code.co_positions()}
        return (body.end_lineno, body.end_col_offset) in ends


@cache
def _piece() -> re.Pattern[str]:
    """A piece of source text in which no string or bracket begins or ends, or one that is one.

    Making the pattern takes a millisecond; most functions do without.
    """
    return re.compile(_PIECE, re.VERBOSE | re.DOTALL)


_PIECE = r"""
    [^'"\#()\[\]{}\\]+ | \#[^\n]* | \\\r?\n | (?P<open>[(\[{]) | (?P<close>[)\]}])
    | (?P<string>(?:\"{3}(?:[^"\\]|\\.|\"(?!\"\"))*\"{3}) | (?:'{3}(?:[^'\\]|\\.|'(?!''))*'{3})
    | (?:"(?:[^"\\\n]|\\.)*") | (?:'(?:[^'\\\n]|\\.)*'))
"""


def _is_whole(text: str) -> bool:
    """True if no string, bracket or continued line is open at the end of ``text``.

    False also if that cannot be seen from here: an f-string may hold its own quotes.
    """
    if '"' not in text and "'" not in text and "\\" not in text:
        if "#" in text:
            text = "\n".join([line.partition("#")[0] for line in text.split("\n")])
        opened = text.count("(") + text.count("[") + text.count("{")
        return opened == text.count(")") + text.count("]") + text.count("}")
    depth, at, size = 0, 0, len(text)
    match = _piece().match
    while at < size:
        piece = match(text, at)
        if piece is None:
            return False
        kind = piece.lastgroup
        if kind == "open":
            depth += 1
        elif kind == "close":
            depth -= 1
        elif kind == "string":
            string = piece.group()
            prefix = text[max(at - 2, 0) : at].lower()
            if ("f" in prefix or "t" in prefix) and string.count("{") != string.count("}"):
                return False
        at = piece.end()
    return depth == 0 and not text.rstrip("\r\n").endswith("\\")


def _last_line(code: CodeType) -> int:
    """The last line where a node of the code begins."""
    lines = [line for _, _, line in code.co_lines() if line is not None]
    last = max(lines, default=code.co_firstlineno)
    inner = [_last_line(one) for one in code.co_consts if isinstance(one, CodeType)]
    return max(last, *inner) if inner else last


def _by_indentation(lines: list[str], start: int) -> list[str]:
    """The lines of the function at ``lines[start]``: up to the next code that is no deeper."""
    first = lines[start]
    column = len(first) - len(first.lstrip())
    inside = False  # past the line with the ``def``
    last, body = start, -1
    for index in range(start, len(lines)):
        line = lines[index]
        code = line.lstrip()
        if not code:
            continue
        at = len(line) - len(code)
        if code[0] == "#":
            if inside and index > start and body >= 0 and at >= body:
                last = index
            continue
        if inside and at <= column and code[0] not in ")]}":
            break
        if inside and body < 0 and at > column:
            body = at
        inside = inside or code.startswith(("def ", "async ", "class "))
        last = index
    return lines[start : last + 1] if inside else _by_tokens(lines, start)


def _by_tokens(lines: list[str], start: int) -> list[str]:
    """The lines of the function at ``lines[start]``, whatever its layout."""
    rest = lines[start:]
    try:
        return inspect.getblock(rest)
    except (SyntaxError, IndentationError):
        return rest
