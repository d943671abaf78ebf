"""The text of functions that are in no file: what Python and the operating system keep of it.

``python -c`` keeps its argument, a redirected standard input can be read again, the interactive
prompt has a history, and newer versions of Python keep what was typed. Names such as ``<string>``
stand for many texts in one process, so a text counts only if compiling it produces exactly the
code of the function. A text that the user passes (``@qd.kernel(source=TEXT)``) may be shorter or
longer than what was executed; it must have a function of the same name, parameters, names and
constants.

Imported only for such functions.
"""

from __future__ import annotations
import __future__

import contextlib
import inspect
import linecache
import os
import re
import stat
import sys
import warnings
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any, Final

__all__ = ["kept_lines", "lines_of_source"]

_FUTURE: Final = sum(
    getattr(__future__, name).compiler_flag for name in __future__.all_feature_names
)
_TAKES_TEXT: Final = re.compile(r"-[bBdEhiIOPqRsSuvVx?]*c", re.DOTALL)
"""The word of a command line that ``-c`` is in; -X and -W before it have arguments of their own."""
_LARGEST: Final = 1 << 24
_TYPED: Final = 2000
"""The number of lines of the history that are looked at."""


def kept_lines(fn: FunctionType) -> list[str]:
    """The lines of the text that ``fn`` was compiled from; empty if it is not kept."""
    code = fn.__code__
    for text in _texts(code):
        if any(one == code for one in _codes(text, code)):
            return text.splitlines(keepends=True)
    return []


def lines_of_source(fn: FunctionType, text: str) -> list[str]:
    """The lines of ``text``, moved such that ``fn`` begins at the line that its code states.

    Empty if no function in ``text`` can be ``fn``.
    """
    code = fn.__code__
    found = [one for one in _codes(text, code) if _like(one, code)]
    exact = [one for one in found if one.co_firstlineno == code.co_firstlineno]
    if not exact and len(found) != 1:
        return []
    above = code.co_firstlineno - (exact or found)[0].co_firstlineno
    lines = text.splitlines(keepends=True)
    return ["\n"] * above + lines[max(-above, 0) :]


def _like(one: CodeType, code: CodeType) -> bool:
    """True if both are of one function, perhaps in a different scope and at different lines."""
    return _traits(one) == _traits(code)


def _traits(code: CodeType) -> tuple[Any, ...]:
    inner = [_traits(one) for one in code.co_consts if isinstance(one, CodeType)]
    consts = [repr(one) for one in code.co_consts if not isinstance(one, CodeType | str)]
    count = code.co_argcount + code.co_kwonlyargcount
    names = sorted({*code.co_names, *code.co_freevars})
    return code.co_name, code.co_varnames[:count], names, sorted(consts), inner


def _codes(text: str, code: CodeType) -> list[CodeType]:
    """The code of the functions in ``text`` that are called like ``code``."""
    if code.co_name.strip("<>") not in text:  # <lambda>
        return []
    flags = code.co_flags & _FUTURE
    # The lines of a method alone are indented.
    above = "if 1:\n" if text.lstrip("\r\n")[:1] in " \t" else ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            whole = compile(above + text, code.co_filename, "exec", flags, dont_inherit=True)
        except (SyntaxError, ValueError):
            return []
    found, left = list[CodeType](), [whole]
    while left:
        one = left.pop()
        left += [inner for inner in one.co_consts if isinstance(inner, CodeType)]
        if one.co_name == code.co_name:
            line = one.co_firstlineno - bool(above)
            found.append(one.replace(co_firstlineno=line) if above else one)
    return found


def _texts(code: CodeType) -> Iterator[str]:
    """Texts that the function may be in."""
    name = code.co_filename
    yield "".join(linecache.getlines(name))
    with contextlib.suppress(OSError, TypeError, IndexError):
        yield "".join(inspect.findsource(code)[0])
    # From 3.13 on Python keeps what was typed by its code, and `inspect` does not always ask.
    by_code: Any = getattr(linecache, "_getlines_from_code", None)
    if by_code is not None:
        yield "".join(by_code(code))
    if name == "<string>":
        yield _argument()
    elif name == "<stdin>":
        yield _standard_input()
    if name != "<string>":
        yield from _history(code)


def _argument() -> str:
    """The argument of ``python -c``, which may be in one word with its option, as in ``-Ic``."""
    words = sys.orig_argv
    for word, following in zip(words[1:], [*words[2:], ""], strict=True):
        if _TAKES_TEXT.match(word):
            return word.partition("c")[2] or following
    return ""


def _standard_input() -> str:
    """The file that standard input was redirected from."""
    try:
        about = os.fstat(0)
        if not stat.S_ISREG(about.st_mode) or about.st_size > _LARGEST:
            return ""
        return os.pread(0, about.st_size, 0).decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def _history(code: CodeType) -> Iterator[str]:
    """The end of the prompt's history, from each line where the statement may have begun."""
    readline: Any = sys.modules.get("readline")
    if readline is None:
        return
    last = readline.get_current_history_length()
    lines = [
        (readline.get_history_item(at) or "") + "\n"
        for at in range(max(last - _TYPED, 0) + 1, last + 1)
    ]
    for at in range(len(lines) - code.co_firstlineno, -1, -1):
        first = lines[at + code.co_firstlineno - 1].lstrip()
        if first.startswith(("@", "def ")):
            yield "".join(lines[at:])
