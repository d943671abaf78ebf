"""Captures: the values that a kernel reads from outside itself while it is compiled.

The compiled code depends on the values of globals and closure cells, on attributes of modules,
classes and objects reached from these, on defaults and annotations of the functions it inlines, on
the functions themselves, and on what the object a method is called on has besides its arrays. All
of these are recorded, always, in the order of their first use: a cache may use the code again only
where the same paths lead to the same values.

One `Capture` is one path from a name, as far as names lead: ``settings.solver.steps`` is one
capture, not three. A list, an array, a field, a vector is the end of a path: what is done with it
depends on its whole value. So are the modules of the language, which are what they are: ``qd.sin``
is a capture of ``qd``, and only the functions in them that are inlined are captures themselves.
Where a value comes from is known by its identity, so a module that is given another name or passed
to a function is still the module.

Some things cannot be looked at again, such as what a Python function returned that ran while the
kernel was compiled. Such a capture has a reason in ``opaque``.
"""

from __future__ import annotations

import ast
import enum
from collections.abc import Mapping, Sequence
from types import FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any, Final, Literal, cast

import numpy as np

from ..imports import Later
from ..ir import Loc, get_loc
from ..named_tuple import NamedTuple
from ..types import (
    ArrayHandle,
    CompoundType,
    FieldHandle,
    NodeHandle,
    StructFieldHandle,
    TensorHandle,
)
from .registry import INTRINSICS, is_of_language, returns_program
from .signature import FuncDecl, KernelDecl, ParamDecl
from .values import DATA

if TYPE_CHECKING:
    from . import computed, purity
    from .func_builder import FuncBuilder
    from .purity import Severity
else:
    computed, purity = Later(__package__, "computed"), Later(__package__, "purity")

__all__ = ["ABSENT", "Capture", "Captures", "Origin"]

Origin = Literal[
    "global", "closure", "builtin", "argument", "default", "annotation", "program", "call", ""
]  # fmt: skip


class _Absent:
    """The value of a capture for an attribute that an object lacks."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = _Absent()


class Capture(NamedTuple):
    """Something that a kernel, or a function it inlines, read from outside.

    decl: the function in which ``path`` begins. path: a name, and the attributes to follow from it.
    value: what was found, before the language interprets it; `ABSENT` if ``hasattr`` said no.
    loc: where it was read first; outside of ``qd.static``, if it ever was. static: it was read in
        ``qd.static(...)`` only.
    origin: what ``path[0]`` is:
        global, closure, builtin   a name as the function sees it
        argument     a parameter of the kernel: ``value`` is found by following the argument; a
                     ``?`` after the last name asks whether that is there
        default      a parameter of the function ``decl``; the value is its default
        annotation   a parameter of the function ``decl``, or ``return``; the value is its
                     `ParamDecl`, or the annotated types
        program      a function of the language that returns the running program or its options,
            with ``()``: ``get_runtime().default_fp``
        call         not a name: the text of a call that ran while the kernel was compiled; the
                     value is what was called
        ""           not a name: the text of an expression
    opaque: why the same value here does not mean the same code; "" if it does.
    impure: the severity by the rules of `purity`.
    """

    decl: KernelDecl | FuncDecl
    path: tuple[str, ...]
    value: Any
    loc: Loc
    static: bool = False
    origin: Origin = "global"
    opaque: str = ""
    impure: Severity = ""

    @property
    def name(self) -> str:
        """The path as it is written in the source."""
        return ".".join(self.path)


_Decl = KernelDecl | FuncDecl
_Route = tuple[_Decl, Origin, tuple[str, ...], Any]
"""The path to an object, and the object: its id stays unique as long as the object is kept."""
_Record = tuple[Origin, Any, _Decl, ast.AST, Loc | None, bool, str, "Severity"]
"""A capture without its key: origin, value, the function that reads it, the node, the call that
inlined the function, static, opaque, impure. The source location is made on demand."""
_RANKS: Final = {"": 0, "warning": 1, "error": 2}


_PLAIN: Final = frozenset((
    bool, bytes, complex, dict, float, frozenset, int, list, range, set, slice, str, tuple,
    type(None), type(...),
))  # fmt: skip
_HANDLES: Final = (
    ArrayHandle, FieldHandle, NodeHandle, StructFieldHandle, TensorHandle, np.generic, np.ndarray,
    np.dtype,
)  # fmt: skip
_ENGINE: Final = __name__.removesuffix("frontend.captures")
"""The prefix of the names of the engine's own modules, with a dot."""
_WITH_STATE: Final = tuple([
    f"{_ENGINE}{room}." for room in ("cache", "inspect", "lang.fields", "lang.profiler", "runtime")
])  # fmt: skip
"""Modules of the engine whose objects and functions report on the running program."""
_WHOLE: Final[dict[type, bool]] = {}
"""Classes whose objects `_is_whole` has been asked about."""


def _is_whole(value: Any) -> bool:
    """True if a path ends here: the value decides the results of its attributes."""
    kind: Any = value.__class__
    if kind in _PLAIN:
        return True
    found = _WHOLE.get(kind)
    if found is None:
        values = INTRINSICS.get(kind) in ("Vector", "Matrix", "Struct")
        found = _WHOLE[kind] = values or issubclass(kind, _HANDLES)
    return found


def _is_own(name: str, value: Any) -> bool:
    """True if an attribute of a module of the language is the one that the language put there."""
    if isinstance(value, CompoundType):
        return False
    of: Any = value if isinstance(value, FunctionType | type) else value.__class__
    if isinstance(value, FunctionType | type) and value.__name__ != name:
        return False
    if isinstance(value, ModuleType):
        return is_of_language(value)
    module = f"{of.__module__}."
    stateful = module.startswith(_WITH_STATE) and not isinstance(value, FunctionType | type)
    return module.startswith(_ENGINE) and not stateful


def _is_derived(value: Any, name: str) -> bool:
    """True if attribute ``name`` of ``value``, which no path leads to, was seen otherwise."""
    if isinstance(value, enum.Enum):  # compared with these, and with its own attributes
        return name in ("name", "value") or name in getattr(value, "__dict__", ())
    kind: Any = value if isinstance(value, type) else type(value)
    return f"{getattr(kind, '__module__', '')}.".startswith(_ENGINE)


def _alike(a: Any, b: Any) -> bool:
    """True if two reads of one path found the same; values that end no path may be made each time.

    A property can return a new value at each read; only the first one is compared later.
    """
    if a is b:
        return True
    kind: Any = cast(Any, type)(a)
    if kind is not type(b):
        return False
    if kind in _PLAIN:
        return repr(a) == repr(b)
    if kind is np.ndarray:
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    return not isinstance(a, type | FunctionType | enum.Enum)


def _is_local(fb: FuncBuilder, node: ast.AST) -> bool:
    """True if ``node`` reads an attribute of a local name or of an expression."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return not isinstance(node, ast.Name) or fb.has_local(node.id)


def _of_name(fb: FuncBuilder, name: str, value: Any) -> Severity:
    if not isinstance(value, DATA):
        return ""
    return purity.of_name(fb, name)


def _of_attribute(fb: FuncBuilder, node: ast.AST, base: Any, value: Any) -> Severity:
    if not isinstance(value, DATA):
        return ""
    return purity.of_attribute(fb, node, base, value)


class Captures:
    """The captures of one walk; ``kernel``: its declaration.

    Recording is part of every compile: it keeps its input and computes nothing from it.
    """

    __slots__ = (
        "_all", "_bases", "_found", "_named", "_routes", "accepted", "followed", "kernel",
        "language", "seen", "seen_static",
    )  # fmt: skip

    def __init__(self, kernel: KernelDecl) -> None:
        self.kernel: Final = kernel
        self._found: dict[tuple[_Decl, tuple[str, ...]], _Record] = {}
        self._all: tuple[Capture, ...] | None = None
        """The result of `all` since the last change."""
        self._routes: dict[int, dict[tuple[Any, ...], _Route]] = {}
        """Those to each object by its id, and by what they are without it; the last one is last."""
        self.language: Final[dict[tuple[str, str], Any]] = {}
        """(module, name) -> the value that the language had there; a program may replace it."""
        self.seen: dict[ast.AST, Any] = {}
        """The last value of each node; an unrolled loop asks for the same ones again and again."""
        self.seen_static: dict[ast.AST, Any] = {}
        """The same, for nodes in ``qd.static``."""
        self._bases: dict[ast.AST, tuple[Any, int]] = {}
        """The object of the last read of each attribute node, and how many routes led to it."""
        self._named: dict[tuple[ast.AST, bool], tuple[Any, Any]] = {}
        """The root and the value of the last path of names at each node."""
        self.followed: Final[dict[Any, bool]] = {}
        """The calls of Python functions that `pure_calls` has looked at."""
        self.accepted: Any = None
        """The last function that was followed."""

    def all(self) -> tuple[Capture, ...]:
        """The captures so far, in order of first use."""
        if self._all is not None:
            return self._all
        out: list[Capture] = []
        for (decl, path), record in self._found.items():
            origin, value, reader, node, call, static, opaque, impure = record
            at: Any = node
            loc = get_loc(
                reader.file, at.lineno, at.col_offset, at.end_lineno, at.end_col_offset,
                reader.name, call,
            )  # fmt: skip
            out.append(Capture(decl, path, value, loc, static, origin, opaque, impure))
        self._all = tuple(out)
        return self._all

    def _add(
        self, route: _Route, fb: FuncBuilder, node: ast.AST, opaque: str = "", impure: Severity = ""
    ) -> None:
        decl, origin, path, value = route
        if opaque:
            fb.calls.forget()
        key = decl, path
        old = self._found.get(key)
        static = fb.static > 0
        if old is not None:
            if not old[6] and not opaque and not _alike(old[1], value):
                fb.calls.forget()
                opaque = "it has changed while the kernel was compiled"
                self._found[key] = (*old[:6], opaque, old[7])
                self._all = None
                return
            if _RANKS[impure] < _RANKS[old[7]]:
                impure = old[7]
            if impure == old[7] and (static or not old[5]):
                return
            static = static and old[5]
        context = fb.context
        self._found[key] = origin, value, context.decl, node, context.call, static, opaque, impure
        self._all = None
        if impure and self.kernel.fastcache and (old is None or impure != old[7]):
            purity.report(fb, path, value, node, impure)

    # Names

    def name(self, fb: FuncBuilder, name: str, value: Any, node: ast.AST, keep: bool) -> None:
        """Record a name that was found outside the function.

        keep: False where only an attribute of the value is taken, which will be recorded.
        """
        context = fb.context
        language = isinstance(value, ModuleType) and is_of_language(value)
        path = (name,)
        if language and (context.decl, path) in self._found:
            return
        route = (context.decl, context.origin(name), path, value)
        whole = not language and _is_whole(value)
        if not whole:
            self._put(route)
        if keep or whole or language:
            self._add(route, fb, node, "", _of_name(fb, name, value))

    def named(
        self, fb: FuncBuilder, path: tuple[str, ...], root: Any, value: Any, node: ast.AST
    ) -> None:  # fmt: skip
        """A path of names was followed from ``root`` without evaluating anything to ``value``."""
        at = node, fb.static > 0
        of, before = self._named.get(at, (None, None))
        if of is root and before is value:
            return
        self._named[at] = root, value
        language = isinstance(root, ModuleType) and is_of_language(root)
        if language:
            base = root
            for name in path[1:]:
                found = getattr(base, name)
                if isinstance(base, ModuleType):
                    self.language[base.__name__, name] = found
                base = found
            path, value = path[:1], root
        route = (fb.context.decl, fb.context.origin(path[0]), path, value)
        if language:
            self._put(route)
        self._add(route, fb, node)

    # Attributes

    def attribute(
        self, fb: FuncBuilder, base: Any, name: str, value: Any, node: ast.AST, keep: bool
    ) -> None:
        """Record that ``value`` was read from a Python object; see `name`."""
        known = self._routes.get(id(base))
        seen = self.seen_static if fb.static else self.seen
        # Another name may have been given to the object since this node was looked at.
        names = len(known or ())
        of, before = self._bases.get(node, (None, -1))
        if before == names and of is base and seen.get(node, self) is value:
            return
        seen[node], self._bases[node] = value, (base, names)
        if isinstance(base, ModuleType) and is_of_language(base) and _is_own(name, value):
            self._of_language(fb, base, name, value, node)
            return
        if isinstance(base, np.ndarray | np.generic):
            why = computed.array_attribute_doubt(name)
            if why:
                self.opaque(fb, base, node, why)
        if known is not None:
            whole = value is ABSENT or _is_whole(value)
            # A local name may stand for the object by any of the paths that lead to it.
            routes = list(known.values())
            for decl, origin, path, _ in routes if _is_local(fb, node) else routes[-1:]:
                route = (decl, origin, (*path, name), value)
                if not whole:
                    self._put(route)
                if keep or whole:
                    self._add(route, fb, node, "", _of_attribute(fb, node, base, value))
        elif not (_is_whole(base) or _is_derived(base, name)):
            text = ast.unparse(node)
            route = (fb.context.decl, "", (text,), value)
            self._note(route)
            why = f"{text} is an attribute of an object that no name leads to"
            self._add(route, fb, node, why)

    def _of_language(
        self, fb: FuncBuilder, base: ModuleType, name: str, value: Any, node: ast.AST
    ) -> None:  # fmt: skip
        """Record that ``value`` was read from a module of the language, itself recorded."""
        self.language[base.__name__, name] = value
        inlined = isinstance(getattr(value, "decl", None), FuncDecl)
        if inlined or isinstance(value, ModuleType):
            known = self._routes.get(id(base))
            if known is not None:
                decl, origin, path, _ = next(reversed(known.values()))
                route = (decl, origin, (*path, name), value)
                self._put(route)
                if inlined:
                    self._add(route, fb, node)

    def _note(self, route: _Route) -> None:
        if not _is_whole(route[3]):
            self._put(route)

    def _put(self, route: _Route) -> None:
        """``route`` is the last that led to its object."""
        known = self._routes.setdefault(id(route[3]), {})
        key = route[:3]
        known.pop(key, None)
        known[key] = route

    def routes(self, value: Any) -> tuple[_Route, ...]:
        """The routes to an object that are known so far."""
        return tuple(self._routes.get(id(value), {}).values())

    def member(
        self,
        fb: FuncBuilder,
        arg: int,
        path: tuple[str, ...],
        value: Any,
        node: ast.AST,
        keep: bool = True,
    ) -> None:
        """Record that ``value`` was read from inside argument ``arg`` of the kernel; see `name`."""
        route = (self.kernel, "argument", (self.kernel.params[arg].name, *path), value)
        self._note(route)
        if keep or value is ABSENT or _is_whole(value):
            self._add(route, fb, node)

    def presence(
        self, fb: FuncBuilder, arg: int, path: tuple[str, ...], present: bool, node: ast.AST
    ) -> None:
        """Record a ``hasattr`` for the last name of ``path`` inside argument ``arg``."""
        path = (self.kernel.params[arg].name, *path[:-1], path[-1] + "?")
        self._add((self.kernel, "argument", path, present), fb, node)

    def argument(self, name: str, value: Any) -> None:
        """Record parameter ``name`` of the kernel: a Python object known at compile time."""
        self._note((self.kernel, "argument", (name,), value))

    def instance(self, arg: int, path: tuple[str, ...], value: Any) -> None:
        """Record that ``value``, an object inside argument ``arg``, is passed to a function."""
        self._note((self.kernel, "argument", (self.kernel.params[arg].name, *path), value))

    # Functions

    def function(self, fb: FuncBuilder, decl: FuncDecl, node: ast.AST) -> None:
        """Record the annotations of ``decl``, which is inlined or called for the first time."""
        for param in decl.params:
            if param.kind not in ("value", "self"):
                self._add((decl, "annotation", (param.name,), param), fb, node)
        if decl.returns:
            self._add((decl, "annotation", ("return",), decl.returns), fb, node)

    def default(self, fb: FuncBuilder, decl: FuncDecl, param: ParamDecl, node: ast.AST) -> None:
        """Record the default of ``param``, which the call of ``decl`` at ``node`` omits."""
        route = (decl, "default", (param.name, "default"), param.default)
        self._note(route)
        self._add(route, fb, node)

    def ran(
        self,
        fb: FuncBuilder,
        fn: Any,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        node: ast.Call,
    ) -> bool:
        """``fn`` is about to be called while the kernel is compiled; True if a cache may rely on
        its result."""
        if returns_program(fn):
            return not args and not kwargs
        why = computed.call_doubt(fn, args, kwargs)
        if why and isinstance(fn, FunctionType | MethodType):
            from .pure_calls import followed

            if followed(fb, fn, args, kwargs, node):
                self.accepted, why = fn, ""
        if why:
            self.opaque(fb, fn, node, why)
        return not why

    def computed(self, fb: FuncBuilder, fn: Any, args: Sequence[Any], node: ast.AST) -> bool:
        """As `ran`, of an operation of the language."""
        why = computed.operation_doubt(fn, args)
        if why:
            self.opaque(fb, fn, node, why)
        return not why

    def result(
        self,
        fb: FuncBuilder,
        fn: Any,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        node: ast.AST,
    ) -> Any:
        """The result of a function that `ran` or `computed` accepted; it may be in doubt itself."""
        # A function that was followed may compute with NumPy.
        if fn is not self.accepted and not computed.numeric(fn, args):
            value = fn(*args, **kwargs)
        else:
            try:
                with np.errstate(all="raise"):
                    value = fn(*args, **kwargs)
            except FloatingPointError:
                self.opaque(fb, fn, node, "what NumPy does at a floating-point error is a setting")
                value = fn(*args, **kwargs)
        if returns_program(fn):
            self._put((fb.context.decl, "program", (f"{fn.__name__}()",), value))
        why = computed.result_doubt(fn, value)
        if why:
            self.opaque(fb, fn, node, why)
        return value

    def opaque(self, fb: FuncBuilder, fn: Any, node: ast.AST, why: str) -> None:
        """Record that the result of the call of ``fn`` cannot be looked at again."""
        self._add((fb.context.decl, "call", (ast.unparse(node),), fn), fb, node, why)
