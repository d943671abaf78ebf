"""Operations on arrays of iterations give what `semantics` says, to the bit."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from qd_studio.engine import ir
from qd_studio.engine.backends import interp
from qd_studio.engine.ir import codes as C
from qd_studio.engine.ir.semantics import binary_fn, unary_fn
from qd_studio.engine.types import PRIMITIVE_TYPES, f16, f32, f64, i8, i16, i32, i64, u1, u8, u64

from .arraykit import bits, both, specials

OPERATIONS = [c for c in range(C.COUNT) if C.UNARY[c] or C.BINARY[c]]
TEXT = """  $0 : offloaded {{kind='range_for'}} header {{
    <i32> $1 = const 0
    <i32> $2 = external_tensor_shape_along_axis [(0, 0)]
    $3 : bounds $1, $2
  }} body {{
    <i32> $4 = loop_index $0 [0]
{loads}
    <{target}> $20 = {name} {operands}
    <*{target}> $21 = arg_addr [({out}, False)]
    <*{target}> $22 = external_ptr $21, $4 ['unsafe']
    $23 : global_store $22, $20
  }}"""


def operation(code, types, target, single=None):
    """A kernel that applies an operation to arrays; operand ``single`` is a scalar parameter."""
    loads, operands, params = [], [], []
    for k, t in enumerate(types):
        at = 5 + 3 * k
        operands.append(f"${at + 2}")
        if k == single:
            loads.append(f"    <{t}> ${at + 2} = arg_load [{k}]")
            params.append(f"a{k}: {t}")
        else:
            loads.append(f"    <*{t}> ${at} = arg_addr [({k}, False)]")
            loads.append(f"    <*{t}> ${at + 1} = external_ptr ${at}, $4 ['unsafe']")
            loads.append(f"    <{t}> ${at + 2} = global_load ${at + 1}")
            params.append(f"a{k}: ndarray<{t}, 1>")
    body = TEXT.format(
        loads="\n".join(loads), target=target, name=C.NAME[code], operands=", ".join(operands),
        out=len(types),
    )  # fmt: skip
    if single == 0:
        body = body.replace("[(0, 0)]", "[(0, 1)]")
    params = ", ".join([*params, f"out: ndarray<{target}, 1>"])
    return ir.parse(f"kernel k({params}) stage=offloaded {{\n{body}\n}}\n")


def check_operation(code, types, target):
    try:
        fn = unary_fn(code, *types, target) if len(types) == 1 else binary_fn(code, *types, target)
    except TypeError:
        return 0
    cases = list(itertools.product(*map(specials, types)))
    columns = [np.array(c, t.np) for c, t in zip(zip(*cases, strict=True), types, strict=True)]
    out = np.zeros(len(cases), target.np)
    interp.run(operation(code, types, target), [*columns, out], least=1)
    exact = np.array([fn(*case) for case in cases], target.np)
    assert bits(out) == bits(exact), [
        (case, a, b)
        for case, a, b in zip(cases, out, exact, strict=True) if bits(a) != bits(b)
    ][:5]  # fmt: skip
    for single in range(len(types)) if len(types) > 1 else ():
        value = specials(types[single])[-1]
        func = operation(code, types, target, single)
        both(func, lambda c=columns, s=single, v=value: [
            *(v if k == s else x for k, x in enumerate(c)), np.zeros(len(cases), target.np)
        ])  # fmt: skip
    return 1


@pytest.mark.sampled(3)
@pytest.mark.parametrize("code", OPERATIONS, ids=lambda c: C.NAME[c])
def test_operations_on_arrays(code):
    """On every type, and on some pairs of types, for all pairs of their special values."""
    checked = 0
    pairs = [(t, t) for t in PRIMITIVE_TYPES]
    pairs += [(i32, f32), (f32, i32), (f64, f16), (u8, i64), (i8, u64), (i16, u1), (f32, i64)]
    casts = code in (C.CAST_VALUE, C.CAST_BITS)
    if C.UNARY[code]:
        some = itertools.product(PRIMITIVE_TYPES, PRIMITIVE_TYPES) if casts else pairs[:11]
        for source, other in some:
            target = other if casts else ir.result_type(code, (source,)) or source
            checked += check_operation(code, (source,), target)
    else:
        for types in pairs:
            checked += check_operation(code, types, ir.result_type(code, types))
    assert checked
