"""Mathematical functions, casts, select, random numbers, the clock and atomics."""

from __future__ import annotations

import ast
import math
from typing import Any, Final

from ..errors import QuadrantsUnsupportedError
from ..ir import Op
from ..ir import codes as C
from ..types import DataType, FieldHandle, StructFieldHandle, i64, u1
from .arguments import arguments, cast_to, dtype_argument
from .augment import add_atomically, atomically
from .func_builder import FuncBuilder
from .lvalues import lvalue
from .matrices import as_matrix, elementwise
from .operators import Binary, binary, unused
from .registry import handler
from .values import DynamicElement, MatrixValue, StructValue, dtype_in, is_static

__all__ = ["real", "select", "unary_op"]

_ROUNDING: Final = {"floor": C.FLOOR, "ceil": C.CEIL, "round": C.ROUND}
_UNARY: Final = {
    C.NAME[code]: code
    for code in range(C.COUNT)
    if C.UNARY[code] and (C.LIBM[code] or C.BITWISE[code] or code in (C.ABS, C.RSQRT))
    and code not in (C.BIT_NOT, *_ROUNDING.values())
}  # fmt: skip
"""Functions that are called by the name of their op."""


def unary_op(fb: FuncBuilder, node: ast.AST, code: int, x: Any, name: str) -> Any:
    """A function of one number; ``name`` is the function that the user called."""
    if isinstance(x, MatrixValue):
        return elementwise(fb, node, name, lambda v: unary_op(fb, node, code, v, name), x)
    x = fb.op(x, node)
    if C.REAL_ONLY[code] and not x.type.is_real:
        text = f"'{name}' takes real inputs only, however '{x.type}' is provided"
        raise fb.type_error(text, node, f"convert it: qd.{name}(qd.cast(x, qd.f32))")
    if C.BITWISE[code] and x.type.is_real:
        text = f"'{name}' takes integral inputs only, however '{x.type}' is provided"
        raise fb.type_error(text, node, "read the bits with qd.bit_cast(x, qd.u32)")
    return fb.emit(node, code, (x,))


def real(fb: FuncBuilder, value: Any, node: ast.AST) -> Op:
    """``value`` as a real value of run time."""
    op = fb.op(value, node)
    return op if op.type.is_real else fb.cast(op, fb.default_fp, node)


@handler(*_UNARY)
def _unary(fb: FuncBuilder, node: ast.Call, name: str, fn: Any) -> Any:
    (x,) = arguments(fb, node, name, ("x",))
    code = _UNARY[name]
    if is_static(x) and not C.BITWISE[code] and not isinstance(x, MatrixValue):
        return fb.python(node, fn, x)
    return unary_op(fb, node, code, x, name)


@handler(*_ROUNDING)
def _round(fb: FuncBuilder, node: ast.Call, name: str, fn: Any) -> Any:
    x, dtype = arguments(fb, node, name, ("x", "dtype"), dtype=None)
    if is_static(x) and dtype is None:
        return fb.python(node, _half_away if name == "round" else fn, x)
    result = unary_op(fb, node, _ROUNDING[name], x, name)
    return result if dtype is None else cast_to(fb, result, dtype_argument(fb, dtype, node), node)


def _half_away(x: float) -> float:
    """The nearest integer, half away from zero, as `qd.round` has it."""
    return math.copysign(math.floor(abs(x) + 0.5), x)


_BINARY: Final = {
    **{
        C.NAME[code]: Binary(C.NAME[code], code, getattr(math, C.NAME[code]))
        for code in range(C.COUNT)
        if C.BINARY[code] and C.LIBM[code]
    },
    "pow": Binary("**", C.POW, pow),
    "raw_div": Binary("raw_div", C.DIV, unused),
    "raw_mod": Binary("raw_mod", C.MOD, unused),
    "bit_shr": Binary("bit_shr", C.BIT_SHR, unused),
}


@handler(*_BINARY)
def _two(fb: FuncBuilder, node: ast.Call, name: str, fn: Any) -> Any:
    a, b = only_two(fb, node, name)
    row = _BINARY[name]
    na, nb = (node.args[0], node.args[1]) if len(node.args) == 2 else (node, node)
    if is_static(a) and is_static(b):
        if row.fn is not unused:
            return fb.python(node, fn, a, b)
        a = fb.op(a, na)
    return binary(fb, node, row, a, b, na, nb)


def only_two(fb: FuncBuilder, node: ast.Call, name: str) -> list[Any]:
    return arguments(fb, node, name, ("a", "b"))


@handler("first_index")
def _first_index(fb: FuncBuilder, node: ast.Call, name: str, fn: Any) -> int:
    """The offset that library code adds to the index of an element, as fields may begin at one."""
    (x,) = arguments(fb, node, name, ("x",))
    while isinstance(x, StructFieldHandle):
        x = next(iter(x.members.values()))
    return x.memory_layout().origin[0] if isinstance(x, FieldHandle) else 0


@handler("cast")
def _cast(fb: FuncBuilder, node: ast.Call, name: str, fn: Any) -> Any:
    value, dtype = arguments(fb, node, "cast", ("obj", "dtype"))
    return cast_to(fb, value, dtype_argument(fb, dtype, node), node)


@handler("bit_cast")
def _bit_cast(fb: FuncBuilder, node: ast.Call, name: str, fn: Any) -> Any:
    value, dtype = arguments(fb, node, "bit_cast", ("obj", "dtype"))
    return _bits_as(fb, node, value, dtype_argument(fb, dtype, node))


def _bits_as(fb: FuncBuilder, node: ast.Call, value: Any, t: DataType) -> Any:
    if isinstance(value, MatrixValue):
        return elementwise(fb, node, "bit_cast", lambda v: _bits_as(fb, node, v, t), value)
    op = fb.op(value, node)
    if op.type.bits != t.bits or u1 in (op.type, t):
        raise fb.type_error(
            f"bit_cast needs types of the same size: {op.type} has {op.type.bits} bits, {t} has "
            f"{t.bits}", node, "convert the value with qd.cast",
        )  # fmt: skip
    return op if op.type is t else fb.emit(node, C.CAST_BITS, (op,), None, t)


@handler("select")
def _select(fb: FuncBuilder, node: ast.Call, name: str, fn: Any) -> Any:
    return select(fb, node, *arguments(fb, node, "select", ("cond", "x1", "x2")))


def select(fb: FuncBuilder, node: ast.AST, cond: Any, a: Any, b: Any) -> Any:
    """``a`` where ``cond``, else ``b``, part by part."""
    if any(isinstance(v, MatrixValue | list | tuple) for v in (cond, a, b)):
        values = [as_matrix(fb, v, node) or v for v in (cond, a, b)]
        return elementwise(fb, node, "select", lambda c, x, y: select(fb, node, c, x, y), *values)
    c = fb.op(cond, node)
    if c.type.is_real:
        text = f"'select' takes an integral condition only, however '{c.type}' is provided"
        raise fb.type_error(text, node, "write `x != 0` for a real x")
    return fb.emit(node, C.SELECT, (c, fb.op(a, node), fb.op(b, node)))


@handler("random")
def _random(fb: FuncBuilder, node: ast.Call, name: str, fn: Any) -> Op:
    (dtype,) = arguments(fb, node, "random", ("dtype",), dtype=float)
    return fb.emit(node, C.RAND, (), None, dtype_argument(fb, dtype, node))


@handler("randn")
def _randn(fb: FuncBuilder, node: ast.Call, name: str, fn: Any) -> Op:
    """A normally distributed number, by the method of Box and Muller."""
    (dtype,) = arguments(fb, node, "randn", ("dt",), dt=float)
    t = dtype_argument(fb, dtype, node)
    if not t.is_real:
        raise fb.type_error(f"randn needs a real type, not {t}", node)
    one = fb.typed(1.0, t, node)
    # 1 - u is in (0, 1], so that the logarithm is finite.
    u = fb.emit(node, C.SUB, (one, fb.emit(node, C.RAND, (), None, t)))
    log = fb.emit(node, C.LOG, (u,))
    radius = fb.emit(node, C.SQRT, (fb.emit(node, C.MUL, (fb.typed(-2.0, t, node), log)),))
    turn = fb.typed(2.0 * math.pi, t, node)
    angle = fb.emit(node, C.MUL, (turn, fb.emit(node, C.RAND, (), None, t)))
    return fb.emit(node, C.MUL, (radius, fb.emit(node, C.COS, (angle,))))


@handler("clock_counter")
def _clock_counter(fb: FuncBuilder, node: ast.Call, name: str, fn: Any) -> Op:
    arguments(fb, node, name, ())
    return fb.emit(node, C.CLOCK, (), None, i64)


@handler("clock_freq_hz")
def _clock_freq_hz(fb: FuncBuilder, node: ast.Call, name: str, fn: Any) -> Any:
    """A number of the device, which code in a cache on disk does not depend on."""
    arguments(fb, node, name, ())
    if fb.config.arch not in ("cuda", "interp"):
        text = f"qd.clock_freq_hz is not known on the {fb.config.arch} backend"
        hint = "time tasks with qd.init(kernel_profiler=True)"
        raise fb.error(QuadrantsUnsupportedError, text, node, hint)
    return fb.call(node, fn, [], {})


# Atomics

_ATOMIC: Final = {
    "atomic_add": C.ATOMIC_ADD,
    "atomic_sub": C.ATOMIC_ADD,
    "atomic_mul": C.ATOMIC_MUL,
    "atomic_min": C.ATOMIC_MIN,
    "atomic_max": C.ATOMIC_MAX,
    "atomic_and": C.ATOMIC_BIT_AND,
    "atomic_or": C.ATOMIC_BIT_OR,
    "atomic_xor": C.ATOMIC_BIT_XOR,
    "atomic_exchange": C.ATOMIC_XCHG,
    "atomic_cas": C.ATOMIC_CAS,
}


@handler(*_ATOMIC)
def _atomic(fb: FuncBuilder, node: ast.Call, name: str, fn: Any) -> Any:
    names = ("x", "expected", "desired") if name == "atomic_cas" else ("x", "y")
    nodes: dict[str, ast.expr] = dict(zip(names, node.args, strict=False))
    nodes.update((k.arg, k.value) for k in node.keywords if k.arg)
    if len(node.args) + len(node.keywords) != len(names) or set(nodes) != set(names):
        raise fb.type_error(f"{name}() takes the arguments {', '.join(names)}", node)
    ptr = lvalue(fb, nodes["x"])
    if ptr is None or isinstance(ptr, StructValue):
        raise fb.syntax_error(
            f"cannot use a non-writable target as the first operand of '{name}'", nodes["x"],
            "pass a local variable or an element of an array",
        )  # fmt: skip
    values = [fb.expr(nodes[k]) for k in names[1:]]
    if isinstance(ptr, MatrixValue):
        if name == "atomic_cas":
            raise fb.type_error("atomic_cas takes a scalar", nodes["x"])
        (value,) = values
        value = as_matrix(fb, value, nodes["y"]) or value

        def update(part: Any, value: Any) -> Op:
            return _atomic_op(fb, node, name, part, nodes["y"], [value])

        whole = MatrixValue(ptr.shape, fb.parts(ptr, node))
        return elementwise(fb, node, name, update, whole, value)
    return _atomic_op(fb, node, name, ptr, nodes[names[-1]], values)


def _atomic_op(
    fb: FuncBuilder, node: ast.Call, name: str, ptr: Any, at: ast.expr, operands: list[Any]
) -> Op:
    code = _ATOMIC[name]
    target = dtype_in(fb, ptr)
    values = [fb.op(value, at) for value in operands]
    what = C.NAME[code]
    if target.is_real and (code == C.ATOMIC_CAS or what.startswith("atomic_bit")):
        raise fb.type_error(f"'{what}' requires integer operands, got {target}", node)
    if code == C.ATOMIC_CAS:
        expected, desired = values
        return atomically(fb, node, code, ptr, (desired, expected))
    if values[0].type.is_real and what.startswith("atomic_bit"):
        text = f"'{what}' requires integer operands, got {values[0].type}"
        raise fb.type_error(text, at)
    return add_atomically(fb, node, code, ptr, values[0], name == "atomic_sub")


@handler("volatile_load")
def _volatile_load(fb: FuncBuilder, node: ast.Call, name: str, fn: Any) -> Any:
    """A read that is never answered from an earlier one: an atomic that changes nothing."""
    if len(node.args) != 1 or node.keywords:
        raise fb.type_error("volatile_load() takes one argument", node)
    ptr = lvalue(fb, node.args[0])
    if ptr is None:
        text = "cannot use a non-addressable target as the operand of 'volatile_load'"
        raise fb.syntax_error(text, node.args[0])
    if _is_of_thread(fb, ptr):
        raise fb.type_error(
            "volatile_load() needs an element of a field or array: no other thread sees a local "
            "variable", node.args[0], "read the variable itself",
        )  # fmt: skip
    return _read_again(fb, node, ptr)


def _is_of_thread(fb: FuncBuilder, ptr: Any) -> bool:
    """True for a local variable."""
    if isinstance(ptr, MatrixValue):
        if ptr.location is not None:
            return (
                ptr.location.base.code == C.ARRAY_ALLOCA
                and ptr.location.base.attr.space == "private"
            )
        return any(_is_of_thread(fb, part) for part in ptr.elems)
    if isinstance(ptr, StructValue):
        return any(_is_of_thread(fb, member) for member in ptr.members.values())
    if isinstance(ptr, DynamicElement):
        return any(_is_of_thread(fb, part) for part in ptr.parts)
    return isinstance(ptr, Op) and ptr.code == C.ALLOCA


def _read_again(fb: FuncBuilder, node: ast.Call, ptr: Any) -> Any:
    if isinstance(ptr, MatrixValue):
        return MatrixValue(ptr.shape, [_read_again(fb, node, part) for part in fb.parts(ptr, node)])
    if isinstance(ptr, StructValue):
        members = {name: _read_again(fb, node, member) for name, member in ptr.members.items()}
        return StructValue(ptr.type, members)
    target = dtype_in(fb, ptr)
    code = C.ATOMIC_ADD if target.is_real else C.ATOMIC_BIT_OR
    zero = fb.typed(-0.0 if target.is_real else 0, target, node)
    return atomically(fb, node, code, ptr, (zero,))
