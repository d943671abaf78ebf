"""``@qd.func``: functions that kernels inline; ``@qd.pyfunc``: the same, for Python too."""

from __future__ import annotations

import functools
from types import MethodType
from typing import Any, cast

from ..errors import QuadrantsAssertionError, SourceSpan
from ..frontend.signature import FuncDecl, parse_func
from ..frontend.source import keep_source

__all__ = ["FunctionOfKernels", "RealFunctionOfKernels", "func", "named", "pyfunc", "real_func"]


class FunctionOfKernels:
    """A Python function that kernels may call; it is inlined at every call.

    decl: its declaration. Arguments without annotation go by value, annotated scalars are cast,
    ``qd.template()`` arguments go by reference.
    """

    def __init__(
        self, fn: Any, from_python: bool = False, requires_top_level: bool = False, name: str = ""
    ) -> None:
        self.decl: FuncDecl = parse_func(fn, requires_top_level, name=name)
        self.from_python = from_python
        functools.update_wrapper(cast(Any, self), fn)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        decl = self.decl
        if self.from_python:
            return decl.fn(*args, **kwargs)
        raise QuadrantsAssertionError(
            f"@qd.{'real_func' if decl.real else 'func'} {decl.name!r} can only be called from a "
            "kernel",
            span=SourceSpan(decl.file, decl.line, function=decl.name),
            hint="call it from a @qd.kernel, or decorate it with @qd.pyfunc",
        )

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """As a method of a class; kernels give the object for the first parameter."""
        return self if instance is None else MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<qd.func {self.decl.qualname}>"


def func(fn: Any = None, /, *, requires_top_level: bool = False, source: str | None = None) -> Any:
    """Decorate a function that kernels and other such functions inline at the call.

    requires_top_level: calling it under a runtime ``if``, ``for`` or ``while`` is an error, also
    through other functions. source: its text, if it was made by ``exec`` (see `kernel`).
    QuadrantsSyntaxError for an invalid signature.
    """

    def decorate(fn: Any) -> FunctionOfKernels:
        keep_source(fn, source)
        return FunctionOfKernels(fn, requires_top_level=requires_top_level)

    return decorate if fn is None else decorate(fn)


def named(fn: Any, name: str, text: str, *, requires_top_level: bool = False) -> FunctionOfKernels:
    """Like `func`, for one of several functions that Python code makes: its name and docstring."""
    fn.__name__, fn.__qualname__, fn.__doc__ = name, name, text
    return FunctionOfKernels(fn, requires_top_level=requires_top_level, name=name)


class RealFunctionOfKernels(FunctionOfKernels):
    """A function that kernels call at run time; see `real_func`."""

    def __init__(self, fn: Any) -> None:
        self.decl = parse_func(fn, real=True)
        self.from_python = False
        functools.update_wrapper(cast(Any, self), fn)

    def __repr__(self) -> str:
        return f"<qd.real_func {self.decl.qualname}>"


def real_func(fn: Any = None, /, *, source: str | None = None) -> Any:
    """Decorate a function that kernels call at run time instead of inlining it.

    It may call itself, and return from anywhere. Every parameter is annotated: with a number,
    vector, matrix or struct type (passed by value), with ``qd.ref(dtype)`` (a variable, or an
    element of an array or field, that the function sets), with an array type or a template (known
    at compile time). A function that calls itself more than some thousand levels deep is an error
    at run time. source: its text, if it was made by ``exec`` (see `kernel`).
    """

    def decorate(fn: Any) -> RealFunctionOfKernels:
        keep_source(fn, source)
        return RealFunctionOfKernels(fn)

    return decorate if fn is None else decorate(fn)


def pyfunc(fn: Any = None, /, *, source: str | None = None) -> Any:
    """Like `func`, for functions that Python code calls as well."""

    def decorate(fn: Any) -> FunctionOfKernels:
        keep_source(fn, source)
        return FunctionOfKernels(fn, from_python=True)

    return decorate if fn is None else decorate(fn)
