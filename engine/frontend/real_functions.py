"""Calls of real functions: compiled once, called at run time, and so free to call themselves.

The first call of a function walks its body into a `Callee` of the kernel. Numbers, vectors and
structs are passed by value, number by number; a ``ref`` is passed as an address, and so are the
variables that receive a result of several numbers. Values known at compile time (templates,
arrays, fields) are no arguments at all: other values make other functions. Arrays and fields
belong to the launch, where a function finds them as the kernel does.

Every call passes its depth. When the kernel is complete, `finish` removes that
argument from functions that cannot recurse, and makes the others check it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any, Final

from ..config import CompileConfig
from ..errors import QuadrantsCompilationError
from ..ir import Arg, AssertAttr, Builder, Callee, Func, Op, all_ops, get_loc, walk
from ..ir import codes as C
from ..ir.attrs import GPU_STACK, RECURSION_LIMIT
from ..types import FieldHandle, StructFieldHandle, Type, flat_names, i32, pointer_to, void
from .func_builder import FuncBuilder
from .func_context import FuncContext
from .inline import NO_OWNER, arguments_of, array_argument, number_argument
from .params import compound
from .signature import FuncDecl, ParamDecl
from .stmts import local_copy
from .values import (
    InstanceValue,
    MatrixValue,
    NdarrayRef,
    RecordValue,
    StructValue,
    describe,
    is_static,
)  # fmt: skip

__all__ = ["RealFunction", "finish", "real_call"]

_STACK: Final = 4 << 20
"""Bytes of stack that recursion may take on the host. `_frame_size` is generous: not optimised and
with all checks, code needs less than half of its result, else about a tenth."""
_NUMBERS: Final = frozenset(("scalar", "matrix", "struct"))


class RealFunction:
    """A real function while it is compiled, and after that.

    callee: its IR. outputs: in its body, where to put a result of several numbers.
    """

    __slots__ = ("callee", "outputs")

    def __init__(self, callee: Callee) -> None:
        self.callee = callee
        self.outputs: list[Op] = []


def real_call(fb: FuncBuilder, node: ast.Call, decl: FuncDecl, owner: Any = NO_OWNER) -> Any:
    """The value of a call of a real function; ``owner``: the object whose method it is."""
    given = arguments_of(fb, node, decl, owner)
    if decl.is_method and owner is NO_OWNER:
        raise fb.syntax_error(f"{decl.name} is a method: call it on an object", node)
    operands: list[Op] = []
    known: list[Any] = []
    for param in decl.params:
        value, at = given[param.name]
        if param.kind in _NUMBERS:
            _flatten(fb, number_argument(fb, decl, param, value, at), at, operands)
        elif param.kind == "ref":
            operands.append(_reference(fb, decl, param, value, at))
        else:
            known.append(_known(fb, decl, param, value, at))
    real = _function(fb, node, decl, known)
    types = decl.result_types(fb.config)
    flat = decl.flat_results(fb.config)
    outputs: list[Op] = []
    if len(flat) > 1:
        outputs = [fb.emit(node, C.ALLOCA, (), "", pointer_to(t)) for t in flat]
    depth = _depth(fb, node)
    result: Type = flat[0] if len(flat) == 1 else void
    call = fb.emit(
        node, C.CALL, (depth, *operands, *outputs), real.callee.name, result
    )  # fmt: skip
    if not types:
        return None
    numbers = iter([fb.load(ptr, node) for ptr in outputs] or [call])
    values = [compound(t, numbers) for t in types]
    return tuple(values) if decl.returns_tuple and len(values) > 1 else values[0]


def _flatten(fb: FuncBuilder, value: Any, at: ast.AST, out: list[Op]) -> None:
    """The numbers of a value, in the order of `types.flat_names`."""
    if isinstance(value, StructValue):
        for member in value.members.values():
            _flatten(fb, member, at, out)
    elif isinstance(value, MatrixValue):
        out += [fb.op(fb.loaded(part, at), at) for part in fb.parts(value, at)]
    else:
        out.append(fb.op(value, at))


def _reference(fb: FuncBuilder, decl: FuncDecl, param: ParamDecl, value: Any, at: ast.AST) -> Op:
    """The address of the variable that is passed."""
    want = param.scalar_type(fb.config)
    if not isinstance(value, Op) or not value.type.is_ptr:
        raise fb.type_error(
            f"Argument '{param.name}' of {decl.name} is a reference: it needs a variable or an "
            "element of an array or field", at, "put the value into a variable first",
        )  # fmt: skip
    if value.type is not pointer_to(want):
        got = value.type.name.lstrip("*")
        raise fb.type_error(
            f"Argument '{param.name}' of {decl.name} must be a variable of type {want}, got {got}",
            at,
        )
    return value


def _known(fb: FuncBuilder, decl: FuncDecl, param: ParamDecl, value: Any, at: ast.AST) -> Any:
    """An argument that is known at compile time."""
    if param.kind == "ndarray":
        return array_argument(fb, param, value, at)
    static = isinstance(
        value, NdarrayRef | FieldHandle | StructFieldHandle | RecordValue | InstanceValue
    )
    if not static and not is_static(value):
        raise fb.type_error(
            f"Argument '{param.name}' of {decl.name} must be known at compile time, got "
            f"{describe(value)}", at, "annotate it with its type to pass a run-time value",
        )  # fmt: skip
    return value


def _key(value: Any) -> Any:
    """A key that two equal compile-time arguments share."""
    if isinstance(value, InstanceValue | RecordValue):
        return type(value), value.arg, value.path
    try:
        hash(value)
    except TypeError:
        return id(value)
    return type(value), value


def _function(fb: FuncBuilder, node: ast.Call, decl: FuncDecl, known: list[Any]) -> RealFunction:
    """The function for these compile-time arguments, compiled now if it is not."""
    key = (decl, *map(_key, known))
    found = fb.real_functions.get(key)
    if found is None:
        kernel = fb.func.kernel if isinstance(fb.func, Callee) else fb.func
        tree = decl.src.tree
        loc = get_loc(
            decl.file, tree.lineno, tree.col_offset, tree.lineno,
            tree.col_offset + 4 + len(decl.name), decl.name,
        )  # fmt: skip
        flat = decl.flat_results(fb.config)
        name = _free_name(kernel, decl.name)
        callee = Callee(kernel, name, _args(fb, decl), flat if len(flat) == 1 else (), loc)
        callee.noalias = not any(arg.type.is_ptr for arg in callee.args)
        found = fb.real_functions[key] = RealFunction(callee)
        kernel.callees[name] = callee
        # Alive as long as their ids are keys.
        fb.real_functions[id(known)] = known
        fb.captures.function(fb, decl, node)
        _walk(fb, decl, found, iter(known))
    return found


def _free_name(kernel: Func, name: str) -> str:
    found, count = name, 1
    while found in kernel.callees:
        count += 1
        found = f"{name}_{count}"
    return found


def _args(fb: FuncBuilder, decl: FuncDecl) -> tuple[Arg, ...]:
    """The arguments of a call: the depth, the numbers and addresses, the targets of results."""
    args = [Arg("depth", i32)]
    for param in decl.params:
        if param.kind == "ref":
            args.append(Arg(param.name, pointer_to(param.scalar_type(fb.config))))
        elif param.kind in _NUMBERS:
            t: Any = (
                param.scalar_type(fb.config)
                if param.kind == "scalar"
                else param.value_type(fb.config)
            )
            args += [Arg(name, part) for name, part in flat_names(t, param.name)]
    flat = decl.flat_results(fb.config)
    if len(flat) > 1:
        args += [Arg(f"result[{k}]", pointer_to(t)) for k, t in enumerate(flat)]
    return tuple(args)


def _walk(fb: FuncBuilder, decl: FuncDecl, real: RealFunction, known: Iterator[Any]) -> None:
    """Compile the body of a real function, apart from the function being compiled."""
    callee = real.callee
    saved = fb.func, fb.block, fb.ops, fb.depth, fb.static, fb.context, fb.prologue, fb.bound_values
    fb.func, fb.block, fb.ops = callee, callee.body, callee.body.ops
    fb.depth, fb.static, fb.prologue = 1, 0, {}  # not the top level of a kernel
    fb.bound_values = {k: v for k, v in saved[-1].items() if not _of_run_time(v)}
    context = fb.context = FuncContext(decl, None, None, 1)
    context.real = real
    fb.funcs.setdefault(decl, None)
    tree = decl.src.tree
    ops = [fb.emit(tree, C.CALL_ARG, (), k, arg.type) for k, arg in enumerate(callee.args)]
    numbers = iter(ops[1:])
    for param in decl.params:
        if param.kind in _NUMBERS:
            scalar = param.kind == "scalar"
            t: Any = param.scalar_type(fb.config) if scalar else param.value_type(fb.config)
            value = compound(t, numbers)
            value = value if scalar else local_copy(fb, value, param.name, tree)
        elif param.kind == "ref":
            value = next(numbers)
        else:
            value = next(known)
            context.templates[param.name] = value
        context.scopes[0][param.name] = value
    real.outputs = list(numbers)
    context.scopes.append({})
    fb.body(tree.body)
    if decl.returns and not context.returned:
        raise fb.error(
            QuadrantsCompilationError,
            "Function has a return type but does not have a return statement", tree,
        )  # fmt: skip
    callee.body.ops[:0] = fb.prologue.values()
    bound = {k: v for k, v in fb.bound_values.items() if not _of_run_time(v)}
    fb.func, fb.block, fb.ops, fb.depth, fb.static, fb.context, fb.prologue, fb.bound_values = saved
    fb.bound_values = {**bound, **fb.bound_values}


def _of_run_time(value: Any) -> bool:
    """True if ``value`` consists of ops, which belong to one function."""
    return isinstance(value, Op | MatrixValue | StructValue)


def _depth(fb: FuncBuilder, node: ast.AST) -> Op:
    """The depth of the function that is called now."""
    zero = fb.typed(0, i32, node)
    if not isinstance(fb.func, Callee):
        return zero
    mine = fb.func.body.ops[0] if fb.func.body.ops else zero
    return fb.emit(node, C.ADD, (mine, fb.typed(1, i32, node)))


def finish(kernel: Func, config: CompileConfig) -> None:
    """Complete the functions of a kernel whose parameters are known by now."""
    stack = _STACK if config.is_cpu else config.cuda_stack_limit or GPU_STACK
    callees = kernel.callees
    calls = {
        name: {op.attr for op in walk(callee.body) if op.code == C.CALL}
        for name, callee in callees.items()
    }
    recursive = {name for name in callees if name in _reached(name, calls)}
    size = sum(_frame_size(callees[name]) for name in recursive)
    limit = max(16, min(RECURSION_LIMIT, 2 * stack // max(size, 1)))
    for op in all_ops(kernel):
        if op.code == C.CALL and op.attr not in recursive:
            op.args = op.args[1:]
    for name, callee in callees.items():
        ops = callee.body.ops
        at = next(k for k, op in enumerate(ops) if op.code == C.CALL_ARG)
        depth = ops[at]
        if name not in recursive:
            callee.args = callee.args[1:]
            depth.code, depth.attr = C.CONST, 0
            for op in walk(callee.body):
                if op.code == C.CALL_ARG:
                    op.attr -= 1
            continue
        b = Builder(callee, callee.body, callee.loc, [])
        fine = b.binary(C.CMP_LT, depth, b.const(limit, i32))
        text = f"{name} calls itself more than {limit} levels deep"
        if not config.is_cpu:
            text += "; qd.init(cuda_stack_limit=...) sets the bytes of stack of a thread"
        b.emit(C.ASSERT, (fine,), AssertAttr("check", text))
        ops[at + 1 : at + 1] = b.ops


def _reached(name: str, calls: dict[str, set[str]]) -> set[str]:
    """The functions that ``name`` calls, and those that they call."""
    found: set[str] = set()
    new = list(calls[name])
    while new:
        one = new.pop()
        if one not in found:
            found.add(one)
            new += calls[one]
    return found


def _frame_size(callee: Callee) -> int:
    """An upper bound, about, of the bytes of stack that a call needs."""
    size = 128
    for op in walk(callee.body):
        if op.code == C.ARRAY_ALLOCA:
            elem: Any = op.type
            size += op.attr.count * elem.elem.size
        elif op.type is not void:
            size += 8
    return size
