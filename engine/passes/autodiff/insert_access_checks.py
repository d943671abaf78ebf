"""insert_access_checks: under validation, an element that was read must not be overwritten.

::

    <f32> $3 = global_load $2             <f32> $3 = global_load $2
                                          $9 : global_store $8, <1>       (the element's flag)
    $5 : global_store $4, $3              <f32> $11 = global_load $10
                                          <u1> $12 = cmp_eq $11, <0>
                                          $13 : assert $12 {kind='check' text='...'}
                                          $5 : global_store $4, $3

Gradients are computed from the contents of arrays and fields after the kernels ran, so an element
whose value a gradient needs must keep it: this is the global data access rule. Each differentiated
array or field has a second one of the same type for flags, `Param.grad`. A flag of 0 means that
nothing has read the element yet. The runtime clears the flags once, before the first kernel. A read
sets the flag; a store and an atomic check it first. The kernel keeps all of its effects.

It leaves alone arrays and fields without flags, local variables, and kernels that are not
validated. The check is per element: reading one and writing another is allowed.
"""

from __future__ import annotations

from typing import Final

from ...ir import AssertAttr, Block, Builder, Callee, Func, Op
from ...ir import codes as C
from ...ir.edit import all_blocks
from ...types import DataType
from ..manager import PassCx
from ..registry import register

_TEXT: Final = (
    "Breaks the global data access rule. {what} {name} is overwritten unexpectedly. "
    "Gradients need the value that was read from it before."
)


@register("insert_access_checks")
def insert_access_checks(func: Func, cx: PassCx) -> bool:
    """Assert that no element is overwritten after it was read (validation mode)."""
    if func.autodiff != "validation" or isinstance(func, Callee):
        return False
    changed = False
    for block in all_blocks(func.body):
        if any(_marked(func, op) >= 0 for op in block.ops):
            _check_block(func, block)
            changed = True
    return changed


def _marked(func: Func, op: Op) -> int:
    """The number of the parameter that ``op`` reads or writes, -1 if it has no flags."""
    code = op.code
    if code not in (C.GLOBAL_LOAD, C.GLOBAL_STORE) and not C.ATOMIC[code]:
        return -1
    ptr = op.args[0]
    if ptr.code != C.EXTERNAL_PTR or ptr.args[0].code != C.ARG_ADDR or ptr.args[0].attr[1]:
        return -1
    number = int(ptr.args[0].attr[0])
    return number if func.params[number].grad >= 0 else -1


def _check_block(func: Func, block: Block) -> None:
    b = Builder(func, block, ops=[])
    for op in block.ops:
        number = _marked(func, op)
        if number < 0:
            b.ops.append(op)
            continue
        b.loc = op.loc
        param = func.params[number]
        one = b.const(1, param.dtype)
        if op.code == C.GLOBAL_LOAD or _reads_again(op):
            b.ops.append(op)
            b.store(_read_flag(func, b, op.args[0], number), one)
            continue
        flag = b.load(_read_flag(func, b, op.args[0], number))
        assert isinstance(flag.type, DataType)
        fine = b.binary(C.CMP_EQ, flag, b.const(0, flag.type))
        what = "Field" if param.kind == "field" else "Array"
        text = _TEXT.format(what=what, name=param.name)
        b.emit(C.ASSERT, (fine,), AssertAttr("check", text))
        b.ops.append(op)
    block.ops = b.ops


def _read_flag(func: Func, b: Builder, ptr: Op, number: int) -> Op:
    """The address of the flag of the element at ``ptr``."""
    base = ptr.args[0]
    flags = b.emit(C.ARG_ADDR, (), (func.params[number].grad, False), base.type)
    return b.emit(C.EXTERNAL_PTR, (flags, *ptr.args[1:]), ptr.attr, ptr.type)


def _reads_again(op: Op) -> bool:
    """True if an atomic stands for a read that must happen each time: it changes nothing."""
    value = op.args[1]
    return op.code == C.ATOMIC_ADD and value.code == C.CONST and value.attr == 0
