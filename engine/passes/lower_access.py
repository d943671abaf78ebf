"""lower_access: turns addresses of array and field elements into base plus offset.

::

    <*f32> $3 = external_ptr $0, $1, $2     <i32> $8 = external_tensor_shape_along_axis [(1, 0)]
                                            <i64> $9 = linearize $1, $2, $8 [2]
                                            <*f32> $3 = shift_ptr $0, $9

Indices are linearized in the order of memory. Extents of fields and of elements are constants, and
the first index of each axis of a field is subtracted. For a field that shares its cells with
others, ``linearize`` uses the ratios of the strides as extents, and 0 as the innermost index.

An axis that a layout divides into digits (nested blocks) needs arithmetic on the index. This
arithmetic uses shifts and masks if divisor and modulus are powers of two, and u32 if every offset
fits::

    field x: i32[16] layout(0/4*8, 0%4*1)   <u32> $5 = cast_value $1
    <*i32> $3 = external_ptr $0, $1         <u32> $7 = bit_shr $5, <2>
                                            <u32> $9 = mul $7, <8>
                                            <u32> $11 = bit_and $5, <3>
                                            <u32> $12 = add $9, $11
                                            <i64> $13 = cast_value $12
                                            <*i32> $3 = shift_ptr $0, $13

The digits of constant indices are computed here. The digits of a sum from `split_blocked_axes` are
the terms of the sum. An element that is certainly at the base needs no
``shift_ptr``: the ``external_ptr`` goes. Locals, global temporaries and `linearize` itself stay.
"""

from __future__ import annotations

from itertools import pairwise

from ..analysis.uses import code_mask
from ..ir import Block, Builder, Func, Op, Param, replace_uses
from ..ir import codes as C
from ..ir.edit import outer_first
from ..types import DataType, ElementLayout, Term, i32, i64, u32
from .linear_form import digit, form_of
from .manager import PassCx
from .registry import register

_SMALL = 1 << 31
_PTRS = code_mask(code == C.EXTERNAL_PTR for code in range(C.COUNT))


@register("lower_access")
def lower_access(func: Func, cx: PassCx) -> bool:
    """Turn array element addresses into a base and a linear offset."""
    repl: dict[Op, Op] = {}
    done = [_Lowering(func, block, repl) for block in outer_first(cx.ops().of(_PTRS))]
    for lowering in done:
        lowering.run()
    cx.keep("cfg_optimization")  # of now on it looks at locals alone, which are as they were
    if all(param.layout is None for param in func.params):
        cx.keep("die")  # each index is one of an offset
        if not repl and not any(lowering.constants for lowering in done):
            # No rule is for what was made.
            cx.keep("alg_simp", "binary_op_simplify", "constant_fold", "extract_constant")
            if all(lowering.is_distinct for lowering in done) and _are_apart(done):
                cx.keep("per_task_cse")
    replace_uses(func.body, repl)
    cx.rewrote_all(repl, "the address of the array itself")
    before, func.stage = func.stage, "accesses"
    return bool(done) or before != "accesses"


def _are_apart(done: list[_Lowering]) -> bool:
    """True if no two of the blocks are in one task, where they could have equal values."""
    tasks: set[Op | None] = set()
    for lowering in done:
        owner = lowering.block.owner
        while owner is not None and owner.code != C.OFFLOADED:
            owner = owner.block.owner if owner.block is not None else None
        tasks.add(owner)
    return len(tasks) == len(done)


class _Lowering:
    """Lowers the addresses of one block. Extents, constants and the offsets of ndarrays are made
    once a block."""

    def __init__(self, func: Func, block: Block, repl: dict[Op, Op]) -> None:
        self.func = func
        self.block = block
        self.repl = repl
        self.b = Builder(func, block, ops=[])
        self.extents: dict[tuple[int, int], Op] = {}
        self.constants: dict[tuple[int, DataType], Op] = {}
        self.offsets: dict[tuple[int, tuple[Op, ...]], Op] = {}
        self.shifts: list[tuple[Op, Op]] = []

    @property
    def is_distinct(self) -> bool:
        """True if no value that was made may be one that is there, or was made twice."""
        return not self.extents and len(set(self.shifts)) == len(self.shifts)

    def run(self) -> None:
        b = self.b
        for op in self.block.ops:
            if op.code == C.EXTERNAL_PTR:
                self.lower(op)
            else:
                b.ops.append(op)
        self.block.ops = b.ops

    def lower(self, op: Op) -> None:
        base, *indices = op.args
        self.b.loc = op.loc
        number: int = base.attr[0]
        param = self.func.params[number]
        if param.layout is not None:
            offset = self.placed(indices, param.layout)
        else:
            offset = self.in_order(indices, param, number)
        if offset is None:
            self.repl[op] = base
            self.func.origins.setdefault(base.id, op.id)
            return
        op.code, op.args, op.attr = C.SHIFT_PTR, (base, offset), None
        self.shifts.append((base, offset))
        self.b.ops.append(op)

    def constant(self, value: int, t: DataType | None = None) -> Op:
        """A constant: an i32 where it fits."""
        if t is None:
            t = i32 if value < _SMALL else i64
        found = self.constants.get((value, t))
        if found is None:
            found = self.constants[value, t] = self.b.const(value, t)
        return found

    # --- arrays ------------------------------------------------------------------------------

    def in_order(self, indices: list[Op], param: Param, number: int) -> Op | None:
        """The offset in an ndarray: its axes in the order of memory, then those of an element."""
        order = param.axes or tuple(range(param.ndim))
        inputs = [*[indices[axis] for axis in order], *indices[param.ndim :]]
        if not inputs:
            return None
        inner = param.element_shape if order else param.element_shape[1:]
        inputs += [self.extent(axis, number) for axis in order[1:]]
        inputs += [self.constant(n) for n in inner]
        key = len(indices), tuple(inputs)
        found = self.offsets.get(key)
        if found is None:
            found = self.offsets[key] = self.b.emit(C.LINEARIZE, key[1], key[0])
        return found

    def extent(self, axis: int, number: int) -> Op:
        found = self.extents.get((axis, number))
        if found is None:
            found = self.extents[axis, number] = self.b.emit(
                C.EXTERNAL_TENSOR_SHAPE_ALONG_AXIS, (), (axis, number), i32
            )
        return found

    # --- fields ------------------------------------------------------------------------------

    def placed(self, indices: list[Op], layout: ElementLayout) -> Op | None:
        """The offset in a field; None for the base itself."""
        b, constant = self.b, 0
        affine: list[tuple[int, Op]] = []
        digits: list[Term] = []
        for term in layout.terms:
            axis, div, mod, stride = term
            index = indices[axis]
            if layout.shape[axis] == 1:
                continue  # the only index there is
            if div == 1 and not mod:
                affine.append((stride, self.local(index, layout.origin[axis])))
                continue
            form = form_of(index)
            form = form._replace(constant=form.constant - layout.origin[axis])
            known = digit(form, div, mod)
            if known is None or any(factor < 0 for factor in known.terms.values()):
                digits.append(term)
            else:
                affine += [(stride * factor, op) for op, factor in known.terms.items()]
                constant += stride * known.constant
        parts = [self.chain(chain) for chain in _chains(affine)]
        if digits:
            parts.append(self.digits(digits, indices, layout))
        if constant:
            parts.append(self.constant(constant, i64))
        if not parts:
            return None
        total = parts[0]
        for part in parts[1:]:
            total = b.binary(C.ADD, total, part)
        return total

    def local(self, index: Op, origin: int) -> Op:
        """An index counted from where its axis begins."""
        if not origin:
            return index
        if index.code == C.CONST:
            return self.constant(int(index.attr) - origin)
        return self.b.binary(C.SUB, index, self.constant(origin))

    def chain(self, chain: list[tuple[int, Op]]) -> Op:
        """The sum of index * stride, each stride a multiple of the next, as one `linearize`."""
        inputs = [index for _, index in chain]
        strides = [stride for stride, _ in chain]
        if strides[-1] != 1:
            inputs.append(self.constant(0))
            strides.append(1)
        ratios = [a // b for a, b in pairwise(strides)]
        return self.b.emit(C.LINEARIZE, (*inputs, *[self.constant(n) for n in ratios]), len(inputs))

    def digits(self, digits: list[Term], indices: list[Op], layout: ElementLayout) -> Op:
        """The sum of the digits of indices, as i64."""
        b = self.b
        total: Op | None = None
        t = u32 if layout.span < _SMALL else i64
        from_zero: dict[int, Op] = {}
        for axis, div, mod, stride in digits:
            value = from_zero.get(axis)
            if value is None:
                index = self.local(indices[axis], layout.origin[axis])
                value = from_zero[axis] = b.cast(index, u32)
            if div != 1:
                value = self.divided(value, div)
            if mod and mod * div < layout.shape[axis]:
                value = self.modulo(value, mod)
            value = b.cast(value, t)
            if stride != 1:
                value = b.binary(C.MUL, value, self.constant(stride, t))
            total = value if total is None else b.binary(C.ADD, total, value)
        assert total is not None
        return b.cast(total, i64)

    def divided(self, value: Op, by: int) -> Op:
        if by & (by - 1):
            return self.b.binary(C.DIV, value, self.constant(by, u32))
        return self.b.binary(C.BIT_SHR, value, self.constant(by.bit_length() - 1, u32))

    def modulo(self, value: Op, by: int) -> Op:
        if by & (by - 1):
            return self.b.binary(C.MOD, value, self.constant(by, u32))
        return self.b.binary(C.BIT_AND, value, self.constant(by - 1, u32))


def _chains(terms: list[tuple[int, Op]]) -> list[list[tuple[int, Op]]]:
    """``terms`` by stride, the largest first, cut wherever one is no multiple of the next."""
    chains: list[list[tuple[int, Op]]] = []
    for term in sorted(terms, key=_stride, reverse=True):
        if chains and chains[-1][-1][0] % term[0] == 0:
            chains[-1].append(term)
        else:
            chains.append([term])
    return chains


def _stride(term: tuple[int, Op]) -> int:
    return term[0]
