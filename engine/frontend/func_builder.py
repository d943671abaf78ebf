"""The state of one walk over a kernel's syntax tree, and the parts that all of the walk shares.

`FuncBuilder` evaluates expressions (`expr`) and runs statements (`stmt`) through the tables of
`registry`; the modules that fill the tables hold the meaning of the nodes. It writes ops straight
into the function being built: operands may still differ in type, `type_check` inserts the casts.

Names bind to the values that `values` describes; a name first assigned in the body of an ``if``
or a loop is gone after it (see `func_context`).

Everything a user's kernel can do wrong leaves here as a Quadrants error with the user's span. An
exception of any other kind is a fault of the frontend and becomes a QuadrantsInternalError, unless
it comes out of the user's own compile-time code, which `python` wraps.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from types import BuiltinFunctionType, ModuleType
from typing import Any, Final, NoReturn, TypeVar, cast

import numpy as np

from ..config import CompileConfig
from ..errors import (
    QuadrantsCompilationError,
    QuadrantsInternalError,
    QuadrantsNameError,
    QuadrantsRuntimeError,
    QuadrantsSyntaxError,
    QuadrantsTypeError,
)
from ..ir import Block, Func, Loc, Op, get_loc, normalize, result_type
from ..ir import codes as C
from ..ir.loc import ROOTS, new_root
from ..named_tuple import NamedTuple
from ..signals import of_signal_handler
from ..types import (
    DataType,
    Type,
    parse_type,
    promote,
    u1,
    void,
)  # fmt: skip
from .captures import Captures
from .func_context import MISSING, Calls, FuncContext, RegionScope
from .memory_access import MemoryAccess, Saved
from .plain import ON_NUMBERS
from .registry import EXPR, INTRINSICS, STMT, visitor
from .signature import FuncDecl, KernelDecl
from .values import (
    InstanceValue,
    MatrixValue,
    NdarrayRef,
    RecordValue,
    StructValue,
    Text,
    describe,
    tensor_name,
)  # fmt: skip

__all__ = ["END", "RETURN", "FuncBuilder", "Notice", "Saved"]

E = TypeVar("E", bound=QuadrantsCompilationError)

END: Final = "end"
"""Flow signal of a statement after which nothing of its block is reached."""
RETURN: Final = "return"
"""Flow signal of a return: nothing of the function is reached."""

_USEFUL: Final = frozenset((
    "abs", "all", "any", "bool", "enumerate", "float", "int", "len", "list", "max", "min", "print",
    "range", "round", "sum", "tuple", "zip",
))  # fmt: skip
"""Builtins that are worth suggesting to a user who has mistyped a name."""


_PROMOTES: Final = [info.result == "promote" for info in C.CODES]
_OF_C: Final = (BuiltinFunctionType, type)
_NUMBERS: Final = frozenset((bool, float, int))
_INTEGERS: Final = (int, np.integer)
_FLOATS: Final = (float, np.floating)
_SPAN: Final = attrgetter("lineno", "col_offset", "end_lineno", "end_col_offset")


class Notice(NamedTuple):
    """A warning of the frontend. category: a Python warning class, or None for the log.

    once: it is issued once for a kernel, however often that is compiled.
    """

    text: str
    loc: Loc
    category: type[Warning] | None = None
    once: bool = False


class FuncBuilder(MemoryAccess):
    """See the module docstring.

    depth: how many regions of run time the walk is in; 0 is the top level of the kernel.
    static: how many ``qd.static(...)`` the walk is in. quiet: `static_print` prints nothing.
    checkpoints: the user's names of those met so far. calls: those that were inlined.
    """

    __slots__ = (
        "block", "calls", "captures", "checkpoints", "config", "context", "default_fp",
        "default_ip", "depth", "funcs", "notices", "ops", "quiet", "real_functions", "static",
    )  # fmt: skip

    def __init__(
        self, func: Func, config: CompileConfig, context: FuncContext, quiet: bool = False
    ) -> None:  # fmt: skip
        super().__init__(func)
        self.block = func.body
        self.ops = func.body.ops
        self.config = config
        self.default_fp = cast(DataType, parse_type(config.default_fp))
        self.default_ip = cast(DataType, parse_type(config.default_ip))
        self.context = context
        self.depth = 0
        self.static = 0
        self.quiet = quiet
        self.captures = Captures(cast(KernelDecl, context.decl))
        self.notices: list[Notice] = []
        self.funcs: dict[FuncDecl, None] = {}
        self.real_functions: dict[Any, Any] = {}
        self.checkpoints: list[int] = []
        self.calls: Final = Calls()

    # Walking

    def expr(self, node: ast.expr) -> Any:
        """The value of an expression: see `values`. Never a local variable itself."""
        try:
            visit = EXPR[node.__class__]
        except KeyError:
            visit = visitor(EXPR, node)
            if visit is None:
                self.unsupported(node)
        return visit(self, node)

    def body(self, nodes: list[ast.stmt]) -> str | None:
        """Run statements up to the first that ends the block; its flow signal."""
        for node in nodes:
            visit = STMT.get(node.__class__) or visitor(STMT, node)
            if visit is None:
                self.unsupported(node)
            try:
                flow = visit(self, node)
            except (QuadrantsCompilationError, QuadrantsRuntimeError) as error:
                raise error if error.span else error.locate(self.loc(node)) from None
            except RecursionError:
                text = "The code is nested too deeply to compile"
                raise self.error(QuadrantsCompilationError, text, node) from None
            except Exception as error:
                if of_signal_handler(error):
                    raise
                text = f"{type(error).__name__} in the frontend: {error}"
                raise self.error(QuadrantsInternalError, text, node) from error
            if flow is not None:
                return flow
        return None

    def callee(self, node: ast.expr) -> Any:
        """The object that a call calls, if it is a plain name or attribute; else None."""
        if isinstance(node, ast.Name):
            found = self.read(node)
            return None if found is MISSING else found
        return self.expr(node) if isinstance(node, ast.Attribute) else None

    def meaning(self, node: ast.expr) -> str | None:
        """The registered name of what a call node calls; None for other calls and nodes.

        Nothing is evaluated: only names, and attributes of modules and classes, have one.
        """
        if not isinstance(node, ast.Call):
            return None
        path: list[str] = []
        inner = node.func
        while isinstance(inner, ast.Attribute):
            path.append(inner.attr)
            inner = inner.value
        if not isinstance(inner, ast.Name):
            return None
        root = self.local(inner.id)
        local = root is not MISSING
        if not local:
            root = self.context.outer(inner.id)
        found = root
        names = [inner.id]
        while path and isinstance(found, ModuleType | type):
            names.append(path.pop())
            found = getattr(found, names[-1], None)
        try:
            name = None if path else INTRINSICS.get(found)
        except TypeError:  # not hashable
            return None
        if name is not None and not local:
            self.captures.named(self, tuple(names), root, found, node.func)
        return name

    def is_static_call(self, node: ast.expr) -> bool:
        """True if an expression is ``qd.static(...)``."""
        return self.meaning(node) == "static"

    # Names

    def find(self, name: str) -> Any:
        """The value of a name, `MISSING` if it has none. Local variables come as they are."""
        for scope in reversed(self.context.scopes):
            if name in scope:
                return scope[name]
        return self.context.outer(name)

    def read(self, node: ast.Name, keep: bool = True) -> Any:
        """Like `find`; a value from outside the function is recorded (see `Captures.name`)."""
        name = node.id
        for scope in reversed(self.context.scopes):
            if name in scope:
                return scope[name]
        found = self.context.outer(name)
        captures = self.captures
        seen = captures.seen_static if self.static else captures.seen
        if seen.get(node, MISSING) is not found:
            if found is MISSING:
                return found
            seen[node] = found
            captures.name(self, name, found, node, keep)
        return found

    def lookup(self, node: ast.Name, keep: bool = True) -> Any:
        """Like `read`; QuadrantsNameError if the name is not defined."""
        found = self.read(node, keep)
        if found is MISSING:
            raise self.undefined(node)
        return found

    def local(self, name: str) -> Any:
        """The value of a name of the function itself; `MISSING` if it has none."""
        for scope in reversed(self.context.scopes):
            if name in scope:
                return scope[name]
        return MISSING

    def has_local(self, name: str) -> bool:
        return self.local(name) is not MISSING

    def undefined(self, node: ast.Name) -> QuadrantsNameError:
        context = self.context
        ended = context.ended.get(node.id)
        if ended:
            what, line = ended
            hint = f'"{node.id}" lives only in the {what} at line {line}; assign it before that'
        else:
            names = {n for scope in context.scopes for n in scope}
            names.update(context.closure, context.globals, _USEFUL)
            import difflib  # for messages alone

            near = difflib.get_close_matches(node.id, names, 1)
            hint = f'did you mean "{near[0]}"?' if near else None
        return self.error(QuadrantsNameError, f'Name "{node.id}" is not defined', node, hint)

    # Places and errors

    def loc(self, node: ast.AST) -> Loc:
        """The location of a node, with the calls it was inlined through."""
        return self.context.locs.get(node) or self._new_loc(node)

    def _new_loc(self, node: ast.AST) -> Loc:
        """`loc` of a node that it was not asked for yet."""
        context = self.context
        line, col, end_line, end = _SPAN(node)
        file, name, inlined = context.file, context.name, context.inlined
        key = line, col, end_line, end, file, name  # as in `get_loc`
        if inlined is None:
            held = ROOTS.get(key)
            found = (held and held()) or new_root(key)
        else:
            found = inlined.get(key)
            if found is None:
                found = Loc(file, line, col, end_line, end, name, context.call)
                inlined[key] = found
        context.locs[node] = found
        return found

    def head(self, node: ast.AST, last: ast.AST) -> Loc:
        """The location from the start of ``node`` to the end of ``last``: a compound's head."""
        n, end = cast(Any, node), cast(Any, last)
        context = self.context
        return get_loc(
            context.file, n.lineno, n.col_offset, end.end_lineno, end.end_col_offset,
            context.name, context.call,
        )  # fmt: skip

    def error(self, cls: type[E], text: str, node: ast.AST, hint: str | None = None) -> E:
        """An error at a node, for the caller to raise."""
        line = self.context.decl.src.source_line(cast(Any, node).lineno)
        return cls.from_loc(text, self.loc(node), hint=hint, source_line=line or None)

    def type_error(self, text: str, node: ast.AST, hint: str | None = None) -> QuadrantsTypeError:
        return self.error(QuadrantsTypeError, text, node, hint)

    def syntax_error(
        self, text: str, node: ast.AST, hint: str | None = None
    ) -> QuadrantsSyntaxError:
        return self.error(QuadrantsSyntaxError, text, node, hint)

    def unsupported(self, node: ast.AST, hint: str | None = None) -> NoReturn:
        """Reject a node that the language does not have."""
        raise self.syntax_error(f'Unsupported node "{type(node).__name__}"', node, hint)

    def python(self, node: ast.AST, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Run an operation of the language on Python values; its errors get the user's location.

        Results that a cache cannot compare are recorded: see `computed`.
        """
        kind: Any = fn.__class__  # others need not be hashable
        numbers = kind in _OF_C and fn in ON_NUMBERS and _NUMBERS.issuperset(map(type, args))
        known = not numbers and self.captures.computed(self, fn, args, node)
        return self._run(node, fn, args, kwargs, known)

    def call(
        self, node: ast.Call, fn: Callable[..., Any], args: list[Any], kwargs: dict[str, Any]
    ) -> Any:
        """Call a Python function that the kernel names, as `python` runs an operation."""
        known = self.captures.ran(self, fn, args, kwargs, node)
        return self._run(node, fn, args, kwargs, known)

    def _run(
        self, node: ast.AST, fn: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any],
        known: bool,
    ) -> Any:  # fmt: skip
        try:
            if known:
                return self.captures.result(self, fn, args, kwargs, node)
            return fn(*args, **kwargs)
        except (QuadrantsCompilationError, QuadrantsRuntimeError) as error:
            # The latter is of a container, such as a field without a place.
            raise error.locate(self.loc(node)) from None
        except Exception as error:
            if of_signal_handler(error):
                raise
            of_types = isinstance(error, TypeError)
            kind = QuadrantsTypeError if of_types else QuadrantsCompilationError
            raise kind.from_foreign(error, self.loc(node)) from error

    def warn(
        self, text: str, node: ast.AST, category: type[Warning] | None = None, once: bool = False
    ) -> None:
        notice = Notice(text, self.loc(node), category, once)
        if notice not in self.notices:
            self.notices.append(notice)
            self.calls.forget()

    # Regions

    def enter(self, block: Block) -> Saved:
        """Write into ``block``, in a new scope, until `leave`."""
        saved = self.block, self.ops
        self.block, self.ops = block, block.ops
        self.context.scopes.append(RegionScope())
        self.depth += 1
        return saved

    def leave(self, saved: Saved, what: str, node: ast.AST) -> None:
        self.block, self.ops = saved
        self.depth -= 1
        self.end_scope(what, node)

    def end_scope(self, what: str, node: ast.AST) -> None:
        """Forget the innermost scope, but remember for messages what was in it."""
        names = self.context.scopes.pop()
        if names:
            self.context.ended.update(dict.fromkeys(names, (what, cast(Any, node).lineno)))

    # Ops

    def emit(
        self, node: ast.AST, code: int, args: tuple[Op, ...] = (), attr: Any = None,
        type: Type | None = None, regions: int = 0,
    ) -> Op:  # fmt: skip
        """Append an op; without ``type`` it has the one of `typerules`."""
        if type is None:
            if _PROMOTES[code]:
                type = promote(args[0].type, args[1].type)
            else:
                types = tuple([a.type for a in args])
                type = result_type(code, types, self.default_fp) or void
        loc = self.context.locs.get(node) or self._new_loc(node)
        func = self.func
        number = func.next_id
        func.next_id = number + 1
        op = Op(code, type, args, attr, (), number, self.block, loc)
        if regions:
            op.regions = tuple([Block(op) for _ in range(regions)])
        self.ops.append(op)
        return op

    def typed(self, value: Any, t: DataType, node: ast.AST) -> Op:
        """A constant of type ``t``."""
        return self.emit(node, C.CONST, (), normalize(value, t), t)

    def number(self, value: int | float, t: DataType, node: ast.AST) -> Op:
        """A constant of type ``t``: a number of its default type, converted."""
        real = isinstance(value, float)
        default = self.default_fp if real else u1 if isinstance(value, bool) else self.default_ip
        if t is default:
            return self.op(value, node)
        if real:
            value = cast(float, normalize(value, default))
            if not t.is_real and not math.isfinite(value):
                return self.cast(self.op(value, node), t, node)
        return self.typed(
            value != 0 if t is u1 else int(value) if t.is_int else float(value), t, node
        )

    def truth(self, value: Op, node: ast.AST) -> Op:
        """An op that is 1 if ``value`` is not 0."""
        t = cast(DataType, value.type)
        if t is u1:
            return value
        return self.emit(node, C.CMP_NE, (value, self.typed(0, t, node)), None, u1)

    def op(self, value: Any, node: ast.AST) -> Op:
        """``value`` as a value of run time; numbers become constants of the default types."""
        kind = value.__class__
        if kind is Op:
            return value
        if kind is bool or kind is np.bool_:
            return self.emit(node, C.CONST, (), int(value), u1)
        if issubclass(kind, _INTEGERS):
            value = int(value)
            self.check_integer(value, node)
            return self.emit(node, C.CONST, (), value, self.default_ip)
        if issubclass(kind, _FLOATS):
            t = self.default_fp
            return self.emit(node, C.CONST, (), normalize(float(value), t), t)
        raise self.not_scalar(value, node)

    def check_integer(self, value: int, node: ast.AST) -> None:
        """Raise QuadrantsTypeError for a number that is too big for the default type."""
        t = self.default_ip
        if not t.min <= value <= t.max:
            raise self.type_error(
                f"Integer literal {value} exceeded the range of default_ip: {t}, please specify "
                f"the dtype via e.g. `qd.u64({value})` or set a different `default_ip` in "
                "`qd.init()`", node,
            )  # fmt: skip

    def not_scalar(self, value: Any, node: ast.AST) -> QuadrantsTypeError:
        text = f"Invalid constant scalar data type: {describe(value)}"
        if isinstance(value, NdarrayRef):
            hint = f"use an element, such as {value.name}[0], or qd.static({value.name}) for alias"
        elif isinstance(value, RecordValue | InstanceValue):
            hint = f"qd.static({value.name}) makes another name for it"
        elif isinstance(value, tuple | list | dict | MatrixValue | StructValue):
            hint = "a number is needed here; use an element of the container"
        elif isinstance(value, str | Text):
            hint = "strings can only be printed, or used at compile time"
        elif isinstance(value, np.ndarray):
            hint = "pass the array to the kernel as an argument"
        else:
            hint = "only numbers have a value at run time"
        return self.type_error(text, node, hint)

    def cast(self, value: Op, t: DataType, node: ast.AST) -> Op:
        """``value`` converted to ``t``, by an op only where needed."""
        return value if value.type is t else self.emit(node, C.CAST_VALUE, (value,), None, t)

    def integral(self, value: Any, what: str, node: ast.AST) -> Op:
        """A condition; QuadrantsTypeError if it is real, or no number."""
        if isinstance(value, MatrixValue):
            raise self.type_error(
                f"`{what}` conditions must be an integer; found {tensor_name(self, value)}.", node,
                "reduce it to one value with `.all()` or `.any()`",
            )  # fmt: skip
        value = self.op(value, node)
        if value.type.is_real:
            raise self.type_error(
                f"`{what}` conditions must be an integer; found {value.type}. Consider using "
                f"`{what} x != 0` instead of `{what} x` for float values.",
                node,
            )
        return value

    def static_values(self, nodes: Iterable[ast.expr]) -> list[Any]:
        """The values of expressions evaluated as under ``qd.static``."""
        self.static += 1
        values = [self.expr(node) for node in nodes]
        self.static -= 1
        return values
