"""A plugin for mypy: ``plugins = ["qd_studio.engine.typed.mypy_plugin"]``.

Annotations of kernels may be calls, ``x: qd.types.ndarray(qd.f32, 2)``, and names of types that
were computed, ``vec7 = qd.types.vector(7, qd.f32)``. Neither is a type to mypy. With the plugin
such parameters are of any type, and the data types, the vector types and ``NDArray`` have the types
that pyright sees in `annotations`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, cast

from mypy.nodes import (
    AssignmentStmt,
    Block,
    CallExpr,
    ClassDef,
    Decorator,
    Expression,
    FuncDef,
    IfStmt,
    IndexExpr,
    MemberExpr,
    MypyFile,
    NameExpr,
    Statement,
)
from mypy.plugin import (
    AnalyzeTypeContext,
    ClassDefContext,
    MethodContext,
    Plugin,
    ReportConfigContext,
)
from mypy.types import (
    AnyType,
    CallableType,
    Instance,
    RawExpressionType,
    Type,
    TypeOfAny,
    UnboundType,
    UnionType,
    get_proper_type,
)

__all__ = ["plugin"]

_STUB: Final = "qd_studio.engine.typed"
_NUMBERS: Final = "f16 f32 f64 i8 i16 i32 i64 u1 u8 u16 u32 u64"
_VALUES: Final = "vec2 vec3 vec4 ivec2 ivec3 ivec4 uvec2 uvec3 uvec4 mat2 mat3 mat4"
_HOMES: Final = {
    **dict.fromkeys(_NUMBERS.split(), "numbers"),
    **dict.fromkeys(_VALUES.split(), "values"),
    "NDArray": "containers",
    "ndarray": "containers",
}
_MAKERS: Final = frozenset({"NDArray", "matrix", "ndarray", "struct", "vector"})
"""Members of ``qd.types`` whose results annotate parameters."""
_ARRAYS: Final = ("NDArray", "ndarray")
_LANGUAGE: Final = (b"quadrants", b"taichi", b"qd_studio", b"qd.", b"ti.")


def _any() -> AnyType:
    return AnyType(TypeOfAny.special_form)


def _statements(body: list[Statement]) -> Iterator[Statement]:
    """The statements of a module that define something, also those in classes and conditions."""
    for one in body:
        yield one
        blocks: list[Block] = []
        if isinstance(one, ClassDef):
            blocks = [one.defs]
        elif isinstance(one, Decorator):
            blocks = [one.func.body]
        elif isinstance(one, FuncDef):
            blocks = [one.body]
        elif isinstance(one, IfStmt):
            blocks = [*one.body, *([one.else_body] if one.else_body else [])]
        for block in blocks:
            yield from _statements(block.body)


def _is_call(t: Type | None) -> bool:
    """True for an annotation that is a call, or a union or tuple with one."""
    if isinstance(t, UnionType):
        return any(_is_call(item) for item in t.items)
    if isinstance(t, UnboundType):
        return any(_is_call(item) for item in t.args)
    # The parser keeps what it cannot read as a type; of a call it suggests an index instead.
    return isinstance(t, RawExpressionType) and t.base_type_name == "typing.Any"


def _open(function: FuncDef, arrays: Mapping[str, str]) -> None:
    """Let parameters and results that are annotated by a call have any type.

    arrays: names that the module assigns to array types, and the names of the types.
    """

    def opened(t: Any) -> Any:
        if isinstance(t, UnboundType) and t.name in arrays:
            return UnboundType(arrays[t.name], line=t.line, column=t.column)
        return _any() if _is_call(t) else t

    for signature in (function.type, function.unanalyzed_type):
        if isinstance(signature, CallableType):
            signature.arg_types = [opened(t) for t in signature.arg_types]
            signature.ret_type = opened(signature.ret_type)
    for argument in function.arguments:
        argument.type_annotation = opened(argument.type_annotation)


def _maker(value: Expression) -> MemberExpr | None:
    """The callee of ``qd.types.vector(3, qd.f32)`` or ``qd.types.NDArray[qd.f32, 2]``."""
    callee = value.callee if isinstance(value, CallExpr) else None
    if isinstance(value, IndexExpr):
        callee = value.base
    if not isinstance(callee, MemberExpr) or callee.name not in _MAKERS:
        return None
    owner = callee.expr
    return callee if isinstance(owner, NameExpr | MemberExpr) and owner.name == "types" else None


def _dotted(value: Expression) -> str:
    if isinstance(value, MemberExpr):
        return f"{_dotted(value.expr)}.{value.name}"
    return value.name if isinstance(value, NameExpr) else ""


def _lower(statement: Statement, arrays: dict[str, str]) -> None:
    if isinstance(statement, Decorator):
        _open(statement.func, arrays)
    elif isinstance(statement, FuncDef):
        _open(statement, arrays)
    elif isinstance(statement, AssignmentStmt):
        maker = _maker(statement.rvalue) if statement.type is None else None
        if maker is not None and maker.name in _ARRAYS:
            for name in statement.lvalues:
                arrays[_dotted(name)] = _dotted(maker)
        if maker is not None or _is_call(statement.type):
            statement.type = statement.unanalyzed_type = _any()


def _named(context: AnalyzeTypeContext, name: str) -> Type:
    api = cast(Any, context.api)
    class_name = "NDArray" if name == "ndarray" else name
    return api.named_type(f"{_STUB}.{_HOMES[name]}.{class_name}", [])


def _result(context: MethodContext) -> Type:
    """The type of a kernel's result in Python: ``float`` or ``int`` for a number."""
    found = get_proper_type(context.default_return_type)
    if not isinstance(found, Instance) or not found.type.fullname.startswith(f"{_STUB}.numbers."):
        return found
    kind = "float" if found.type.name.startswith("f") else "int"
    return cast(Any, context.api).named_generic_type(f"builtins.{kind}", [])


def _struct(context: ClassDefContext) -> None:
    """A class under ``@qd.dataclass`` has members such as ``field``, and any constructor."""
    context.cls.info.fallback_to_any = True


class _KernelPlugin(Plugin):
    def get_additional_deps(self, file: MypyFile) -> list[tuple[int, str, int]]:
        """Called with each parsed file, before its names are looked up."""
        arrays: dict[str, str] = {}
        for statement in _statements(file.defs):
            _lower(statement, arrays)
        return []

    def report_config_data(self, ctx: ReportConfigContext) -> Any:
        """Mypy asks if what it has cached of a file is still true.

        It is not for files with kernels: where one of their imports has changed, mypy would parse
        them without calling `get_additional_deps`.
        """
        return time.time_ns() if ctx.path.endswith(".py") and _has_kernels(ctx.path) else None

    def get_type_analyze_hook(self, fullname: str) -> Callable[[AnalyzeTypeContext], Type] | None:
        module, _, name = fullname.rpartition(".")
        if module == f"{_STUB}.unchecked" and name in _HOMES:
            return lambda context: _named(context, name)
        return None

    def get_method_hook(self, fullname: str) -> Callable[[MethodContext], Type] | None:
        if fullname in (f"{_STUB}.decorators.{one}.__call__" for one in ("BoundKernel", "Kernel")):
            return _result
        return None

    def get_class_decorator_hook_2(self, fullname: str) -> Callable[[ClassDefContext], bool] | None:
        if fullname != f"{_STUB}.values.dataclass":
            return None

        def hook(context: ClassDefContext) -> bool:
            _struct(context)
            return True

        return hook


def _has_kernels(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            text = file.read()
    except OSError:
        return False
    return any(word in text for word in _LANGUAGE)


def plugin(version: str) -> type[Plugin]:
    """The entry point that mypy calls."""
    return _KernelPlugin
