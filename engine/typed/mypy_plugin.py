"""A plugin for mypy: ``plugins = ["qd_studio.engine.typed.mypy_plugin"]``.

Annotations of kernels may be calls, ``x: qd.types.ndarray(qd.f32, 2)``, and names of types that
were computed, ``vec7 = qd.types.vector(7, qd.f32)``. Neither is a type to mypy. With the plugin
such parameters are of any type, and the data types, the vector types and ``NDArray`` have the types
that pyright sees in `annotations`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
from mypy.plugin import AnalyzeTypeContext, ClassDefContext, Plugin
from mypy.types import (
    AnyType,
    CallableType,
    RawExpressionType,
    Type,
    TypeOfAny,
    UnboundType,
    UnionType,
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


def _open(function: FuncDef) -> None:
    """Let parameters and results that are annotated by a call have any type."""
    for signature in (function.type, function.unanalyzed_type):
        if isinstance(signature, CallableType):
            signature.arg_types = [_any() if _is_call(t) else t for t in signature.arg_types]
            if _is_call(signature.ret_type):
                signature.ret_type = _any()
    for argument in function.arguments:
        if _is_call(argument.type_annotation):
            argument.type_annotation = _any()


def _makes_type(value: Expression) -> bool:
    """True for ``qd.types.vector(3, qd.f32)`` and ``qd.types.NDArray[qd.f32, 2]``."""
    callee = value.callee if isinstance(value, CallExpr) else None
    if isinstance(value, IndexExpr):
        callee = value.base
    if not isinstance(callee, MemberExpr) or callee.name not in _MAKERS:
        return False
    owner = callee.expr
    return isinstance(owner, NameExpr | MemberExpr) and owner.name == "types"


def _lower(statement: Statement) -> None:
    if isinstance(statement, Decorator):
        _open(statement.func)
    elif isinstance(statement, FuncDef):
        _open(statement)
    elif isinstance(statement, AssignmentStmt) and (
        _is_call(statement.type) or (statement.type is None and _makes_type(statement.rvalue))
    ):
        statement.type = statement.unanalyzed_type = _any()


def _named(context: AnalyzeTypeContext, name: str) -> Type:
    api = cast(Any, context.api)
    class_name = "NDArray" if name == "ndarray" else name
    return api.named_type(f"{_STUB}.{_HOMES[name]}.{class_name}", [])


def _struct(context: ClassDefContext) -> None:
    """A class under ``@qd.dataclass`` has members such as ``field``, and any constructor."""
    context.cls.info.fallback_to_any = True


class _KernelPlugin(Plugin):
    def get_additional_deps(self, file: MypyFile) -> list[tuple[int, str, int]]:
        """Called with each parsed file, before its names are looked up."""
        for statement in _statements(file.defs):
            _lower(statement)
        return []

    def get_type_analyze_hook(self, fullname: str) -> Callable[[AnalyzeTypeContext], Type] | None:
        module, _, name = fullname.rpartition(".")
        if module == f"{_STUB}.unchecked" and name in _HOMES:
            return lambda context: _named(context, name)
        return None

    def get_class_decorator_hook_2(self, fullname: str) -> Callable[[ClassDefContext], bool] | None:
        if fullname != f"{_STUB}.values.dataclass":
            return None

        def hook(context: ClassDefContext) -> bool:
            _struct(context)
            return True

        return hook


def plugin(version: str) -> type[Plugin]:
    """The entry point that mypy calls."""
    return _KernelPlugin
