"""Checks that IR keeps its rules. Every complaint names the op that breaks one.

Rules of all stages: an operand is defined earlier in the same or an enclosing block (of a task,
only inside its header or only inside its body); a loop is named by `loop_index` alone, from inside;
every op knows its block and every block its owner; ids are unique; operands, attributes and regions
are as in the op table; `break`, `continue`, `return`, `bounds` end their block. The other rules
of a stage are in `spec`.

The verifier visits each op once. Rules that depend only on opcode and types are checked once per
signature and then looked up in a set of valid ones, so most ops cost a few dictionary lookups.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ..errors import IRVerificationError
from ..named_tuple import NamedTuple
from ..types import DataType, PointerType, Type, void
from . import codes as C
from .attrs import RECORDS, ArrayAttr, AssertAttr, Param, TaskAttr, tile_problem
from .autodiff_rules import adjoint_problem, alloca_problem, stack_problem
from .codes import CODES
from .edit import all_ops
from .fragment_rules import FRAGMENT_RULES
from .graph_rules import region_problem
from .op import Block, Callee, Func, Op
from .params import param_problem
from .signatures import COUNTS, signature_problem
from .spec import STAGES, StageSpec

__all__ = ["VerifyError", "check", "verify"]


class VerifyError(NamedTuple):
    """A broken rule. op: the op at fault, None when the function itself is."""

    op: Op | None
    message: str


def verify(func: Func) -> list[VerifyError]:
    """All rules that ``func`` breaks, in program order; empty for good IR."""
    spec = STAGES.get(func.stage)
    if spec is None:
        return [VerifyError(None, f"unknown stage {func.stage!r}")]
    return _Verifier(func, spec).run()


def check(func: Func, pass_name: str | None = None) -> None:
    """Raise IRVerificationError for the first rule that ``func`` breaks, if there is one."""
    errors = verify(func)
    if errors:
        op, message = errors[0]
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        raise IRVerificationError.from_loc(
            message + more, op.loc if op else func.loc, stage=func.stage, pass_name=pass_name,
            op_id=op.id if op else None, op_text=repr(op) if op else "",
        )  # fmt: skip


_REGIONS: Final = [len(C.REGION_NAMES.get(code, ())) for code in range(C.COUNT)]
_ATTR_CLASS: Final[list[frozenset[type]]] = [
    frozenset(
        {RECORDS[info.attr]}
        if info.attr in RECORDS
        else {"none": {type(None)}, "value": {int, float}, "int": {int}, "str": {str},
              "tuple": {tuple}}[info.attr]
    )
    for info in CODES
]  # fmt: skip


# --- rules of single opcodes ------------------------------------------------------------------

_Rule = Callable[["_Verifier", Op], "str | None"]


def _is_int(value: Any) -> bool:
    return value.__class__ is int


def _const(v: _Verifier, op: Op) -> str | None:
    t, value = op.type, op.attr
    if not isinstance(t, DataType):
        return None
    if t.is_real:
        return None if isinstance(value, float) else f"a constant of type {t} is a float"
    if not _is_int(value):
        return f"a constant of type {t} is an int"
    return None if t.min <= value <= t.max else f"{value} is out of range for {t}"


def _parameter(v: _Verifier, number: Any, *kinds: str) -> Param | str:
    """Parameter ``number``, which must be of one of these kinds, or its fault."""
    params = v.func.params
    if not _is_int(number) or not 0 <= number < len(params):
        return f"there is no parameter {number}"
    param = params[int(number)]
    if param.kind in kinds:
        return param
    return f"parameter {number} is no {kinds[0]} but a {param.kind}"


def _arg_load(v: _Verifier, op: Op) -> str | None:
    param = _parameter(v, op.attr, "scalar")
    if isinstance(param, str):
        return param
    dtype = param.dtype
    return None if op.type is dtype else f"parameter {op.attr} is {dtype}, not {op.type}"


def _arg_addr(v: _Verifier, op: Op) -> str | None:
    if len(op.attr) != 2:
        return "the attribute of arg_addr is (parameter, is_grad)"
    number, grad = op.attr
    param = _parameter(v, number, "ndarray", "field")
    if isinstance(param, str):
        return param
    if grad and not param.needs_grad:
        return f"parameter {number} has no gradient"
    good = isinstance(op.type, PointerType) and op.type.elem is param.dtype
    return None if good else f"parameter {number} holds {param.dtype}, not {op.type}"


def _external_ptr(v: _Verifier, op: Op) -> str | None:
    base = op.args[0]
    if base.code != C.ARG_ADDR:
        return "the base of external_ptr must be an arg_addr"
    if op.attr not in ("unsafe", "clamp"):
        return f"unknown boundary mode {op.attr!r}"
    count = len(op.args) - 1
    if count and not v.spec.indexed:
        return "external_ptr takes no indices in this stage"
    param = _parameter(v, base.attr[0], "ndarray", "field")
    if isinstance(param, str):
        return None  # reported at the arg_addr
    if op.attr == "clamp" and param.kind == "field":
        return "indices of a field are not clamped"
    want = param.ndim + len(param.element_shape) if v.spec.indexed else 0
    if count == want:
        return None
    held = f" of {param.element_shape} elements" if param.element_shape else ""
    return f"an array of {param.ndim} axes{held} takes {want} indices, not {count}"


def _shape(v: _Verifier, op: Op) -> str | None:
    if len(op.attr) != 2:
        return "the attribute is (axis, parameter)"
    axis, number = op.attr
    param = _parameter(v, number, "ndarray")
    if isinstance(param, str):
        return param
    good = _is_int(axis) and 0 <= axis < param.ndim
    return None if good else f"parameter {number} has {param.ndim} axes, no axis {axis}"


def _linearize(v: _Verifier, op: Op) -> str | None:
    n = op.attr
    if n < 1 or len(op.args) != 2 * n - 1:
        return f"linearize of {n} indices takes {2 * n - 1} operands, not {len(op.args)}"
    if any(not a.type.is_int for a in op.args):
        return "linearize takes integers"
    if v.spec.indexed and any(a.code != C.CONST for a in op.args[n:]):
        return "the extents of linearize are constants in this stage"
    return None


_OWN_ARRAYS: Final = frozenset([C.ARRAY_ALLOCA, C.GLOBAL_TMP])


def _shift_ptr(v: _Verifier, op: Op) -> str | None:
    base, offset = op.args
    if not offset.type.is_int:
        return "the offset of shift_ptr must be an integer"
    if v.spec.indexed and base.code not in _OWN_ARRAYS:
        return "the base of shift_ptr must be an array_alloca or a global_tmp in this stage"
    return None


def _array_alloca(v: _Verifier, op: Op) -> str | None:
    attr: ArrayAttr = op.attr
    if attr.count < 1:
        return f"an array has at least one element, not {attr.count}"
    if attr.space not in ("private", "shared"):
        return f"unknown space {attr.space!r}"
    return None


def _local(v: _Verifier, op: Op) -> str | None:
    return None if op.args[0].code == C.ALLOCA else f"{op.name} takes an alloca"


def _global(v: _Verifier, op: Op) -> str | None:
    if op.args[0].code in (C.ALLOCA, C.AD_STACK_ALLOCA):
        return f"{op.name} takes no {op.args[0].name}"
    return _element(v, op)


def _element(v: _Verifier, op: Op) -> str | None:
    if op.args[0].code == C.AD_STACK_ALLOCA:
        return f"{op.name} takes no stack"
    if op.args[0].code == C.ARRAY_ALLOCA:
        return f"{op.name} takes an element, not the array ${op.args[0].id} as a whole"
    return None


def _global_tmp(v: _Verifier, op: Op) -> str | None:
    size = op.type.elem.size if isinstance(op.type, PointerType) else 1
    if op.attr < 0 or op.attr % size:
        return f"offset {op.attr} is not a multiple of {size}"
    total = v.func.global_tmp_size
    return None if op.attr + size <= total else f"offset {op.attr} is outside {total} bytes"


def _loop_index(v: _Verifier, op: Op) -> str | None:
    loop = op.args[0]
    if loop not in v.loops:
        return f"${loop.id} is no loop around this op"
    bounds = loop
    if loop.code == C.OFFLOADED:
        ops = loop.regions[0].ops
        if v.in_header:
            return "a header cannot use the index of its own task"
        if not ops:
            return None
        bounds = ops[-1]
    axes = len(bounds.args) // 2 if loop.code != C.WHILE else 0
    good = 0 <= op.attr < axes
    return None if good else f"${loop.id} has {axes} axes, no axis {op.attr}"


def _axes_problem(axes: Any, count: int) -> str | None:
    if axes is None or sorted(axes) == list(range(count)):
        return None
    return f"axes {axes} is no order of {count} axes"


def _range_for(v: _Verifier, op: Op) -> str | None:
    if not op.args or len(op.args) % 2:
        return f"range_for takes a begin and an end of each axis, not {len(op.args)} operands"
    return _axes_problem(op.attr.axes, len(op.args) // 2)


def _leave(v: _Verifier, op: Op) -> str | None:
    loop = v.loops[-1] if v.loops else None
    if loop is None or loop.code == C.OFFLOADED:
        return f"{op.name} is outside of any loop that it could leave"
    if loop.code == C.RANGE_FOR and not v.spec.early_exit:
        return f"{op.name} cannot leave a range_for in this stage"
    return None


def _block_sync(v: _Verifier, op: Op) -> str | None:
    if any(loop.code == C.OFFLOADED and loop.attr.kind == "serial" for loop in v.loops):
        return "a barrier is outside of a parallel loop"
    return None


def _mem_fence(v: _Verifier, op: Op) -> str | None:
    if op.attr == "reverse" and v.func.autodiff == "reverse" and op.block is v.func.body:
        return None
    return None if op.attr in ("block", "grid") else f"unknown scope {op.attr!r}"


def _continue(v: _Verifier, op: Op) -> str | None:
    loop = v.loops[-1] if v.loops else None
    if loop is None or (loop.code == C.OFFLOADED and loop.attr.kind == "serial"):
        return "continue is outside of any loop"
    return None


def _offloaded(v: _Verifier, op: Op) -> str | None:
    attr: TaskAttr = op.attr
    if not v.func.is_root(op.block):
        return "a task must be at the root"
    if attr.kind not in ("serial", "range_for") or attr.unit not in ("cell", "chunk", "thread"):
        return f"unknown kind of task: {attr.kind!r}, unit {attr.unit!r}"
    ops = op.regions[0].ops
    if not ops or ops[-1].code != C.BOUNDS:
        return "the header of a task ends in bounds"
    count = len(ops[-1].args)
    if attr.kind == "serial":
        return "a serial task has no bounds" if count else None
    if not count:
        return "a parallel task has bounds"
    return _axes_problem(attr.axes, count // 2) or tile_problem(attr.tile, count // 2)


def _bounds(v: _Verifier, op: Op) -> str | None:
    if not v.in_header or op.block is None or op.block.owner is not v.loops[-1]:
        return "bounds must be in the header of a task"
    return "bounds takes a begin and an end of each axis" if len(op.args) % 2 else None


def _graph_region(v: _Verifier, op: Op) -> str | None:
    return region_problem(v.func, op)


def _assert(v: _Verifier, op: Op) -> str | None:
    attr: AssertAttr = op.attr
    if attr.kind not in ("user", "bound", "check", "overflow", "breakpoint"):
        return f"unknown kind of assert {attr.kind!r}"
    return None


def _call(v: _Verifier, op: Op) -> str | None:
    callee = v.func.callees.get(op.attr)
    if callee is None:
        return f"there is no function {op.attr!r}"
    want = tuple([arg.type for arg in callee.args])
    got = tuple([a.type for a in op.args])
    fits = len(want) == len(got) and all(
        w is g or not (v.spec.typed or w.is_ptr or g.is_ptr) for w, g in zip(want, got, strict=True)
    )
    if not fits:
        return f"{callee.name} takes {_types(want)}, not {_types(got)}"
    result = callee.results[0] if callee.results else void
    if op.type is not result:
        return f"{callee.name} returns {result}, not {op.type}"
    bad = [a for a in op.args if a.code == C.ARRAY_ALLOCA]
    return f"{callee.name} takes an element, not the array ${bad[0].id} as a whole" if bad else None


def _types(types: tuple[Type, ...]) -> str:
    return "(" + ", ".join(t.name for t in types) + ")"


def _call_arg(v: _Verifier, op: Op) -> str | None:
    if not isinstance(v.func, Callee):
        return "a kernel has no call_arg"
    args = v.func.args
    number: int = op.attr
    if not 0 <= number < len(args):
        return f"there is no argument {number}"
    want = args[number].type
    return None if op.type is want else f"argument {number} is {want}, not {op.type}"


def _return(v: _Verifier, op: Op) -> str | None:
    owner = op.block.owner if op.block else None
    if (
        owner is not None
        and not isinstance(v.func, Callee)
        and (owner.code != C.OFFLOADED or owner.attr.kind != "serial")
    ):
        return "return must be in the root or in a serial task"
    want = v.func.results
    if len(op.args) != len(want):
        return f"{v.what} has {len(want)} results, not {len(op.args)}"
    if v.spec.typed:
        for a, t in zip(op.args, want, strict=True):
            if a.type is not t:
                return f"{v.what} returns {t}, not {a.type}"
    return None


_RULES: Final[list[_Rule | None]] = [None] * C.COUNT
for _code, _rule in {
    C.CONST: _const, C.ARG_LOAD: _arg_load, C.ARG_ADDR: _arg_addr, C.EXTERNAL_PTR: _external_ptr,
    C.EXTERNAL_TENSOR_SHAPE_ALONG_AXIS: _shape, C.LINEARIZE: _linearize, C.SHIFT_PTR: _shift_ptr,
    C.ARRAY_ALLOCA: _array_alloca,
    C.LOCAL_LOAD: _local, C.LOCAL_STORE: _local, C.GLOBAL_LOAD: _global, C.GLOBAL_STORE: _global,
    C.GLOBAL_TMP: _global_tmp, C.LOOP_INDEX: _loop_index, C.RANGE_FOR: _range_for,
    C.WHILE_CONTROL: _leave, C.BREAK: _leave, C.CONTINUE: _continue, C.OFFLOADED: _offloaded,
    C.SUBGROUP_SHUFFLE: _block_sync, C.SUBGROUP_BALLOT: _block_sync, C.SUBGROUP_SYNC: _block_sync,
    C.BOUNDS: _bounds, C.BLOCK_SYNC: _block_sync, C.MEM_FENCE: _mem_fence, C.ASSERT: _assert,
    C.RETURN: _return, C.CALL: _call, C.CALL_ARG: _call_arg,
    C.AD_STACK_ALLOCA: alloca_problem, C.GRAPH_REGION: _graph_region, **FRAGMENT_RULES,
    **dict.fromkeys([code for code in range(C.COUNT) if C.STACK[code]], stack_problem),
    **dict.fromkeys([code for code in range(C.COUNT) if C.ATOMIC[code]], _element),
}.items():  # fmt: skip
    _RULES[_code] = _rule

# Signatures found good, by stage: (code, type, *operand types).
_GOOD: Final[dict[str, set[tuple[Any, ...]]]] = {name: set() for name in STAGES}


class _Verifier:
    def __init__(self, func: Func, spec: StageSpec) -> None:
        self.func = func
        self.spec = spec
        self.good = _GOOD[func.stage]
        self.errors: list[VerifyError] = []
        self.visible: set[Op] = set()
        self.loops: list[Op] = []
        """The loops and tasks around the current op, innermost last."""
        self.in_header = False
        self.what = f"function {func.name}" if isinstance(func, Callee) else "the kernel"

    def error(self, op: Op | None, message: str) -> None:
        self.errors.append(VerifyError(op, message))

    def run(self) -> list[VerifyError]:
        body = self.func.body
        if body.owner is not None:
            self.error(None, "the root block has an owner")
        for param in self.func.params:
            problem = param_problem(param) or adjoint_problem(param, self.func.params)
            if problem:
                self.error(None, problem)
        self.block(body)
        if isinstance(self.func, Callee):
            if len(self.func.results) > 1:
                self.error(None, f"{self.what} has more than one result")
            return self.errors
        if self.spec.offloaded:
            for op in [op for block in self.func.roots() for op in block.ops]:
                if op.code not in (C.OFFLOADED, C.GRAPH_REGION):
                    self.error(op, "the root holds tasks only in this stage")
        for callee in self.func.callees.values():
            self.errors += verify(callee)
        self.ids()
        return self.errors

    def ids(self) -> None:
        ops = all_ops(self.func)
        seen: dict[int, Op] = {op.id: op for op in ops}
        if len(seen) != len(ops):
            first: dict[int, Op] = {}
            for op in ops:
                other = first.get(op.id)
                first[op.id] = op
                if other is not None:
                    what = "is in two places" if other is op else "has the id of another op"
                    self.error(op, f"${op.id} {what}")
        if seen and max(seen) >= self.func.next_id:
            self.error(seen[max(seen)], f"${max(seen)} is not below next_id {self.func.next_id}")

    def block(self, block: Block) -> None:
        """Check the ops of one block; what they define is visible until its end."""
        visible, good = self.visible, self.good
        regions, rules, classes = _REGIONS, _RULES, _ATTR_CLASS
        ops = block.ops
        for op in ops:
            code = op.code
            args = op.args
            if op.block is not block:
                self.error(op, "does not know the block it is in")
            for a in args:
                if a not in visible and (code != C.LOOP_INDEX or a not in self.loops):
                    self.error(op, self.invisible(a))
            key = (code, op.type, *[a.type for a in args])
            if key not in good:
                problem = signature_problem(code, op.type, key[2:], self.spec)
                if problem:
                    self.error(op, problem)
                    if len(args) < COUNTS[code][0]:
                        continue
                else:
                    good.add(key)
            if op.attr.__class__ not in classes[code]:
                self.error(op, f"the attribute of {op.name} is {op.attr!r}")
            else:
                rule = rules[code]
                if rule is not None:
                    problem = rule(self, op)
                    if problem:
                        self.error(op, problem)
            if len(op.regions) != regions[code]:
                self.error(op, f"{op.name} has {regions[code]} regions, not {len(op.regions)}")
            elif op.regions:
                self.nested(op)
            visible.add(op)
        for op in ops[:-1]:
            if C.END[op.code]:
                self.error(op, f"{op.name} does not end its block")
        visible.difference_update(ops)

    def nested(self, op: Op) -> None:
        loop = C.LOOP[op.code]
        if loop:
            self.loops.append(op)
        for i, region in enumerate(op.regions):
            if region.owner is not op:
                self.error(op, f"region {i} does not know its owner")
            if op.code == C.OFFLOADED and i == 0:
                self.header(region)
            else:
                self.block(region)
        if loop:
            self.loops.pop()

    def header(self, region: Block) -> None:
        self.in_header = True
        self.block(region)
        self.in_header = False
        for op in region.ops:
            code = op.code
            load = code == C.GLOBAL_LOAD and op.args and op.args[0].code == C.GLOBAL_TMP
            if not (C.PURE[code] or load or code == C.BOUNDS):
                self.error(op, f"{op.name} has no place in the header of a task")

    def invisible(self, operand: Op) -> str:
        if operand in self.loops:
            return f"operand ${operand.id} is a loop; only loop_index may name it"
        return f"operand ${operand.id} is not defined before this op in a block around it"
