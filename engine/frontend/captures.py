"""What a kernel reads from outside of itself while it is compiled.

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
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import numpy as np

from ..ir import Loc, get_loc
from ..types import (
    ArrayHandle,
    CompoundType,
    FieldHandle,
    NodeHandle,
    StructFieldHandle,
    TensorHandle,
)
from .purity import Severity, of_attribute, of_name, tell
from .registry import INTRINSICS
from .signature import FuncDecl, KernelDecl, ParamDecl

if TYPE_CHECKING:
    from .frame import Frame
    from .walk import Walk

__all__ = ["ABSENT", "Capture", "Captures", "Origin"]

Origin = Literal["global", "closure", "builtin", "argument", "default", "annotation", "call", ""]


class _Absent:
    """The value of a capture for an attribute that an object was asked for and lacks."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = _Absent()


class Capture(NamedTuple):
    """Something that a kernel, or a function it inlines, read from outside.

    decl: the function in which ``path`` begins. path: a name, and the attributes to follow from it.
    value: what was found, before the language gives it a meaning; `ABSENT` if ``hasattr`` said no.
    loc: where it was read first; outside of ``qd.static``, if it ever was. static: it was read in
        ``qd.static(...)`` only.
    origin: what ``path[0]`` is:
        global, closure, builtin   a name as the function sees it
        argument     a parameter of the kernel: ``value`` is found by following the argument
        default      a parameter of the function ``decl``; the value is its default
        annotation   a parameter of the function ``decl``, or ``return``; the value is its
                     `ParamDecl`, or the annotated types
        call         not a name: the text of a call that ran while the kernel was compiled; the
                     value is what was called
        ""           not a name: the text of an expression
    opaque: why the same value here does not mean the same code; "" if it does.
    impure: what the rules of `purity` say to it.
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
_Place = tuple[_Decl, Origin, tuple[str, ...], Any]
"""How an object was reached, and the object: its id stays its own as long as it is kept."""
_Record = tuple[Origin, Any, _Decl, ast.AST, Loc | None, bool, str, Severity]
"""A capture without its key: origin, value, the function that reads it, the node, the call that
inlined the function, static, opaque, impure. The place in the source is made when somebody asks."""
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
"""What the names of the engine's own modules start with, and a dot."""
_WITH_STATE: Final = tuple([
    f"{_ENGINE}{room}." for room in ("cache", "inspect", "lang.fields", "lang.profiler", "runtime")
])  # fmt: skip
"""Modules of the engine whose objects and functions tell of the program that runs."""
_WHOLE: Final[dict[type, bool]] = {}
"""Classes whose objects `_is_whole` has been asked about."""


def _is_whole(value: Any) -> bool:
    """Whether a path ends here: what attributes of ``value`` give, its own value decides."""
    kind: Any = value.__class__
    if kind in _PLAIN:
        return True
    found = _WHOLE.get(kind)
    if found is None:
        values = INTRINSICS.get(kind) in ("Vector", "Matrix", "Struct")
        found = _WHOLE[kind] = values or issubclass(kind, _HANDLES)
    return found


_OF_LANGUAGE: Final[dict[str, bool]] = {}
"""Names of modules that `is_of_language` has been asked about."""


def is_of_language(module: ModuleType) -> bool:
    """Whether a module is part of the engine."""
    found = _OF_LANGUAGE.get(module.__name__)
    if found is None:
        found = _OF_LANGUAGE[module.__name__] = f"{module.__name__}.".startswith(_ENGINE)
    return found


def _is_own(name: str, value: Any) -> bool:
    """Whether an attribute of a module of the language is what the language put there."""
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


def _is_derived(value: Any) -> bool:
    """Whether ``value``, which no path leads to, cannot hold state that was not seen otherwise."""
    if isinstance(value, enum.Enum | MethodType | BuiltinFunctionType):
        return True
    kind: Any = value if isinstance(value, type) else value.__class__
    return f"{getattr(kind, '__module__', '')}.".startswith(_ENGINE)


_PURE_MODULES: Final = frozenset(("cmath", "math", "operator"))
_PURE_BUILTINS: Final = frozenset((
    abs, all, any, bin, bool, bytes, chr, complex, dict, divmod, enumerate, float, format,
    frozenset, hex, int, isinstance, issubclass, len, list, max, min, oct, ord, pow, range,
    reversed, round, set, slice, sorted, str, sum, tuple, zip,
))  # fmt: skip


def _is_pure(fn: Any) -> bool:
    """Whether calling ``fn`` with known values gives a result that only they decide."""
    if isinstance(fn, MethodType):
        return False
    owner = getattr(fn, "__self__", None)
    if owner is not None and not isinstance(owner, ModuleType):  # a method of a list, a text, ...
        return owner.__class__ in _PLAIN or isinstance(owner, np.generic | np.ndarray)
    try:
        if fn in _PURE_BUILTINS:
            return True
    except TypeError:  # not hashable
        return False
    if isinstance(fn, np.ufunc | enum.EnumMeta):
        return True
    module = str(getattr(fn, "__module__", None) or "")
    if module == "numpy" or module.startswith("numpy."):
        return not module.startswith("numpy.random")
    if f"{module}.".startswith(_WITH_STATE):
        return False
    return module in _PURE_MODULES or f"{module}.".startswith(_ENGINE)


def _is_local(w: Walk, node: ast.AST) -> bool:
    """Whether what ``node`` takes an attribute of came through a local name or an expression."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return not isinstance(node, ast.Name) or w.has_local(node.id)


def _origin(frame: Frame, name: str) -> Origin:
    """Where ``frame`` finds a name that is none of its own."""
    if name in frame.closure:
        return "closure"
    return "global" if name in frame.globals else "builtin"


class Captures:
    """The captures of one walk; ``kernel``: its declaration.

    Recording is part of every compile: it keeps what it is given and makes nothing of it.
    """

    __slots__ = ("_bases", "_found", "_places", "kernel", "seen", "seen_static")

    def __init__(self, kernel: KernelDecl) -> None:
        self.kernel: Final = kernel
        self._found: dict[tuple[_Decl, tuple[str, ...]], _Record] = {}
        self._places: dict[int, list[_Place]] = {}
        self.seen: dict[ast.AST, Any] = {}
        """What nodes gave the last time; a loop that is unrolled asks the same again and again."""
        self.seen_static: dict[ast.AST, Any] = {}
        """The same, for nodes in ``qd.static``."""
        self._bases: dict[ast.AST, Any] = {}

    def all(self) -> tuple[Capture, ...]:
        """The captures so far, in order of first use."""
        out: list[Capture] = []
        for (decl, path), record in self._found.items():
            origin, value, reader, node, call, static, opaque, impure = record
            at: Any = node
            loc = get_loc(
                reader.file, at.lineno, at.col_offset, at.end_lineno, at.end_col_offset,
                reader.name, call,
            )  # fmt: skip
            out.append(Capture(decl, path, value, loc, static, origin, opaque, impure))
        return tuple(out)

    def _add(
        self, place: _Place, w: Walk, node: ast.AST, opaque: str = "", impure: Severity = ""
    ) -> None:
        decl, origin, path, value = place
        key = decl, path
        old = self._found.get(key)
        static = w.static > 0
        if old is not None:
            if _RANKS[impure] < _RANKS[old[7]]:
                impure = old[7]
            if impure == old[7] and (static or not old[5]):
                return
            static = static and old[5]
        frame = w.frame
        self._found[key] = origin, value, frame.decl, node, frame.call, static, opaque, impure
        if impure and self.kernel.fastcache and (old is None or impure != old[7]):
            tell(w, path, value, node, impure)

    # Names

    def name(self, w: Walk, name: str, value: Any, node: ast.AST, keep: bool) -> None:
        """A name was found outside of the function.

        keep: False where only an attribute of the value is taken, which will be recorded.
        """
        frame = w.frame
        language = isinstance(value, ModuleType) and is_of_language(value)
        path = (name,)
        if language and (frame.decl, path) in self._found:
            return
        place = (frame.decl, _origin(frame, name), path, value)
        whole = not language and _is_whole(value)
        if not whole:
            self._put(place)
        if keep or whole or language:
            self._add(place, w, node, "", of_name(w, name, value))

    def named(
        self, w: Walk, path: tuple[str, ...], root: Any, value: Any, node: ast.AST
    ) -> None:  # fmt: skip
        """A path of names was followed from ``root`` without evaluating anything to ``value``."""
        language = isinstance(root, ModuleType) and is_of_language(root)
        if language:
            path, value = path[:1], root
        place = (w.frame.decl, _origin(w.frame, path[0]), path, value)
        if language:
            self._put(place)
        self._add(place, w, node)

    # Attributes

    def attribute(
        self, w: Walk, base: Any, name: str, value: Any, node: ast.AST, keep: bool
    ) -> None:
        """``value`` was read from a Python object; see `name`."""
        if isinstance(base, ModuleType) and is_of_language(base) and _is_own(name, value):
            self._of_language(w, base, name, value, node)
            return
        seen = self.seen_static if w.static else self.seen
        if seen.get(node, self) is value and self._bases.get(node) is base:
            return
        seen[node], self._bases[node] = value, base
        known = self._places.get(id(base))
        if known is not None:
            whole = value is ABSENT or _is_whole(value)
            # A local name may stand for the object by any of the paths that lead to it.
            for decl, origin, path, _ in known if _is_local(w, node) else known[-1:]:
                place = (decl, origin, (*path, name), value)
                if not whole:
                    self._put(place)
                if keep or whole:
                    self._add(place, w, node, "", of_attribute(w, node, base, value))
        elif not (_is_whole(base) or _is_derived(base)):
            text = ast.unparse(node)
            place = (w.frame.decl, "", (text,), value)
            self._note(place)
            why = f"{text} is an attribute of an object that no name leads to"
            self._add(place, w, node, why)

    def _of_language(
        self, w: Walk, base: ModuleType, name: str, value: Any, node: ast.AST
    ) -> None:  # fmt: skip
        """``value`` was read from a module of the language, which is recorded itself."""
        inlined = isinstance(getattr(value, "decl", None), FuncDecl)
        if inlined or isinstance(value, ModuleType):
            known = self._places.get(id(base))
            if known is not None:
                decl, origin, path, _ = known[-1]
                place = (decl, origin, (*path, name), value)
                self._put(place)
                if inlined:
                    self._add(place, w, node)

    def _note(self, place: _Place) -> None:
        if not _is_whole(place[3]):
            self._put(place)

    def _put(self, place: _Place) -> None:
        """``place`` is the last that led to its object."""
        known = self._places.setdefault(id(place[3]), [])
        if not known or known[-1][:3] != place[:3]:
            known[:] = [one for one in known if one[:3] != place[:3]]
            known.append(place)

    def member(
        self, w: Walk, arg: int, path: tuple[str, ...], value: Any, node: ast.AST, keep: bool = True
    ) -> None:
        """``value`` was read from inside of argument ``arg`` of the kernel; see `name`."""
        place = (self.kernel, "argument", (self.kernel.params[arg].name, *path), value)
        self._note(place)
        if keep or value is ABSENT or _is_whole(value):
            self._add(place, w, node)

    def argument(self, name: str, value: Any) -> None:
        """Parameter ``name`` of the kernel is a Python object known at compile time."""
        self._note((self.kernel, "argument", (name,), value))

    # Functions

    def function(self, w: Walk, decl: FuncDecl, node: ast.AST) -> None:
        """``decl`` is inlined or called for the first time: its annotations are part of it."""
        for param in decl.params:
            if param.kind not in ("value", "self"):
                self._add((decl, "annotation", (param.name,), param), w, node)
        if decl.returns:
            self._add((decl, "annotation", ("return",), decl.returns), w, node)

    def default(self, w: Walk, decl: FuncDecl, param: ParamDecl, node: ast.AST) -> None:
        """The call of ``decl`` at ``node`` leaves out ``param``."""
        place = (decl, "default", (param.name, "default"), param.default)
        self._note(place)
        self._add(place, w, node)

    def ran(self, w: Walk, fn: Any, node: ast.Call) -> None:
        """``fn`` ran while the kernel was compiled."""
        if not _is_pure(fn):
            name = getattr(fn, "__qualname__", None) or type(fn).__qualname__
            why = f"the Python function {name} ran while the kernel was compiled"
            self.opaque(w, fn, node, why)

    def opaque(self, w: Walk, fn: Any, node: ast.Call, why: str) -> None:
        """What the call of ``fn`` gave cannot be looked at again."""
        self._add((w.frame.decl, "call", (ast.unparse(node),), fn), w, node, why)
