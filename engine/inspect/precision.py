"""The precision that a kernel loses, by line of its source: `lost_precision`.

The interpreter runs the kernel once, with two numbers for each float of f16 and f32: the one of its
type, which decides branches and indices as always, and one that has been f64 from the start::

    <f32> $6 = sub $4, $5      v6 = single(v4 - v5).value
                               s6 = s4 - s5
                               cx_note(op6, v6, s6, v4 - v5, (i2_0,))

The difference of the two, in units in the last place of the type (ulps), is what all operations up
to there have lost; that to the f64 result of the same operands is what this one has lost itself. A
subtraction of close numbers is exact, and shows what its operands lost. Elements of arrays have a
number of f64, too, from the first store on. Real functions, bits and random numbers count as exact.
(`widened` runs a whole kernel in f64 for verdicts, so that its branches may go other ways.)
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from ..backends import interp
from ..backends.interp.emit import Emitter
from ..ir import Func, Op
from ..ir import codes as C
from ..ir.semantics import ATOMIC_OPERATION, binary_fn, unary_fn
from ..runtime.nan_checks import traced_ir
from ..types import DataType, f16, f32, f64
from .faults import error_record
from .interpreting import TooLong, counted, discard
from .record_nans import LinePrecision, NanReport
from .steps import StepLimit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .capture import KernelCapture

__all__ = ["line_precision", "lost_precision", "ulp"]

_LEAST: Final = {f16: (-14, 10), f32: (-126, 23)}
"""By type: the exponent of the smallest normal number, and the bits of a fraction."""
_STEPS: Final = 3_000_000


def ulp(value: float, t: DataType) -> float:
    """The distance of neighbours of ``t`` at ``value``."""
    least, bits = _LEAST[t]
    return math.ldexp(1.0, max(math.frexp(value)[1] - 1, least) - bits)


class _Shadows:
    """The callbacks of the emitted code: the worst difference of each op, and memory in f64."""

    def __init__(self) -> None:
        self.worst: Final[dict[Op, tuple[float, float, float, float, tuple[int, ...]]]] = {}
        self._of: Final[dict[tuple[str, int], float]] = {}

    def note(self, op: Op, value: float, exact: float, own: float, at: tuple[int, ...]) -> None:
        if value - value != 0 or exact - exact != 0:
            return
        assert isinstance(op.type, DataType)
        unit = ulp(exact, op.type)
        ulps = abs(value - exact) / unit
        held = self.worst.get(op)
        if held is None or ulps > held[0]:
            made = abs(value - own) / unit if own - own == 0 else 0.0
            self.worst[op] = ulps, made, value, exact, at

    def get(self, value: float, memory: str, offset: int) -> float:
        return self._of.get((memory, offset), value)

    def put(self, exact: float, memory: str, offset: int) -> None:
        self._of[memory, offset] = exact


class _ShadowEmitter(Emitter):
    """Emits the second number of each float. shadows: gets what is noted."""

    shadows: _Shadows

    def run(self) -> str:
        self._exact: dict[Op, str] = {}
        self._at = "()"
        for name in ("note", "get", "put"):
            self.names[f"cx_{name}"] = getattr(self.shadows, name)
        return super().run()

    def exact(self, op: Op) -> str:
        """The expression of the f64 number of a value."""
        return self._exact.get(op, self.values.get(op, "0.0"))

    def emit(self, op: Op) -> None:
        if op.code == C.OFFLOADED:
            n = len(op.regions[0].ops[-1].args) // 2
            order = op.attr.axes or tuple(range(n))
            self._at = f"({''.join(f'i{op.id}_{axis}, ' for axis in order)})"
            super().emit(op)
            self._at = "()"
            return
        super().emit(op)
        if self.callee is not None:
            return
        if C.STACK[op.code] or op.code == C.AD_STACK_ALLOCA:
            self._stack(op)
        elif op.code in (C.LOCAL_STORE, C.GLOBAL_STORE):
            if op.args[1].type.is_real:
                self._put(op.args[0], self.exact(op.args[1]))
        elif op.code == C.ALLOCA:
            self.line(f"sa{op.id} = 0.0")
        elif _is_float(op):
            self._float(op)

    def _float(self, op: Op) -> None:
        """Emit the f64 number of a float that was just computed."""
        code = op.code
        if code in (C.LOCAL_LOAD, C.GLOBAL_LOAD):
            self._set(op, self._get(op.args[0], self.values[op]))
        elif C.ATOMIC[code]:
            self._atomic(op)
        elif code == C.SELECT:
            cond, a, b = op.args
            self._set(op, f"{self.exact(a)} if {self.values[cond]} else {self.exact(b)}")
        elif code == C.CAST_VALUE:
            x = op.args[0]
            self._set(op, f"float({self.exact(x)})", f"float({self.values[x]})")
        elif C.UNARY[code] and code != C.CAST_BITS:
            fn = self.function(unary_fn(code, f64, f64))
            x = op.args[0]
            self._set(op, f"{fn}({self._as_f64(x)})", f"{fn}(float({self.values[x]}))")
        elif C.BINARY[code]:
            fn = self.function(binary_fn(code, f64, f64, f64))
            a, b = op.args
            own = f"{fn}(float({self.values[a]}), float({self.values[b]}))"
            self._set(op, f"{fn}({self._as_f64(a)}, {self._as_f64(b)})", own)

    def _as_f64(self, op: Op) -> str:
        return self.exact(op) if op.type.is_real else f"float({self.values[op]})"

    def _set(self, op: Op, exact: str, own: str = "") -> None:
        """Bind the f64 number; note it if ``own``, the f64 result of the operands, is there."""
        name = self._exact[op] = f"s{op.id}"
        self.line(f"{name} = {exact}")
        if own and op.type in _LEAST:
            self._note(op, self.values[op], name, own)

    def _note(self, op: Op, value: str, exact: str, own: str) -> None:
        self.names[f"op{op.id}"] = op
        self.line(f"cx_note(op{op.id}, {value}, {exact}, {own}, {self._at})")

    def _get(self, pointer: Op, value: str) -> str:
        if pointer.code == C.ALLOCA:
            return f"sa{pointer.id}"
        return f"cx_get({value}, {self.memory(pointer)!r}, {self.values[pointer]})"

    def _put(self, pointer: Op, exact: str) -> None:
        if pointer.code == C.ALLOCA:
            self.line(f"sa{pointer.id} = {exact}")
        else:
            self.line(f"cx_put({exact}, {self.memory(pointer)!r}, {self.values[pointer]})")

    def _atomic(self, op: Op) -> None:
        pointer, value = op.args[0], op.args[1]
        old = self.values[op]
        self._set(op, self._get(pointer, old))
        place = self.place(op)
        if op.code not in ATOMIC_OPERATION:
            self._put(pointer, place)
            return
        fn = self.function(binary_fn(ATOMIC_OPERATION[op.code], f64, f64, f64))
        self.line(f"n{op.id} = {fn}(s{op.id}, {self.exact(value)})")
        self._put(pointer, f"n{op.id}")
        if op.type in _LEAST:
            self._note(op, place, f"n{op.id}", f"{fn}({old}, {self.values[value]})")

    def _stack(self, op: Op) -> None:
        stack = op if op.code == C.AD_STACK_ALLOCA else op.args[0]
        w, d = f"sw{stack.id}", f"sd{stack.id}"
        if op.code == C.AD_STACK_ALLOCA:
            self.line(f"{w}, {d} = [], []")
        elif op.code == C.AD_STACK_PUSH:
            self.line(f"{w}.append({self.exact(op.args[1])})")
            self.line(f"{d}.append(0.0)")
        elif op.code == C.AD_STACK_POP:
            self.line(f"{w}.pop()")
            self.line(f"{d}.pop()")
        elif op.code == C.AD_STACK_ACC_ADJOINT:
            self.line(f"{d}[-1] += {self.exact(op.args[1])}")
        elif _is_float(op):
            self._set(op, f"{w if op.code == C.AD_STACK_LOAD_TOP else d}[-1]")


def _is_float(op: Op) -> bool:
    return isinstance(op.type, DataType) and op.type.is_real


def line_precision(func: Func, values: Sequence[Any]) -> tuple[LinePrecision, ...]:
    """The lines of ``func`` by what is lost up to them, the worst first.

    values: as for `interp.run`; they are changed. Raises TooLong.
    """
    shadows = _Shadows()

    class Emitting(_ShadowEmitter):
        pass

    Emitting.shadows = shadows
    program = interp.InterpretedKernel(func, False, True, None, Emitting)
    counted(program, values, discard, _STEPS)
    lines: dict[tuple[str, int], Op] = {}
    for op, worst in shadows.worst.items():
        key = op.loc.file, op.loc.line
        if key not in lines or worst[0] > shadows.worst[lines[key]][0]:
            lines[key] = op
    rows = [_row(op, *shadows.worst[op]) for op in lines.values() if op.loc.line]
    return tuple(sorted(rows, key=lambda row: (-row.ulps, row.file, row.line)))


def _row(
    op: Op, ulps: float, made: float, value: float, exact: float, at: tuple[int, ...]
) -> LinePrecision:
    loc = op.loc
    return LinePrecision(
        file=loc.file, line=loc.line, col=loc.col,
        end_col=loc.end_col if loc.end_line == loc.line else 0, ulps=ulps,
        bits=math.log2(1.0 + ulps), op=op.name, dtype=str(op.type), iteration=at, value=value,
        exact=exact, made=made,
    )  # fmt: skip


def lost_precision(capture: KernelCapture) -> NanReport:
    """The precision that a captured kernel loses with its first case that can be run."""
    kernel = capture.record.name
    launcher = capture.launcher(0.0)
    reason = "no arguments"
    for found in launcher.rounds():
        case = found.case
        try:
            _, given = launcher.ready("interp", found)
            request = capture.request("interp", tuple(found.spec_keys))
            func = traced_ir(request._replace(noalias=not given.overlap()))
            rows = line_precision(func, given.values)
        except TooLong:
            reason = f"{case.label}: the interpreter takes too long; give it a smaller workload"
            continue
        except (Exception, StepLimit) as error:
            reason = f"{case.label}: {error_record(error, 'precision').message}"
            continue
        if not rows:
            reason = "it computes no f16 and no f32"
            return NanReport(kernel=kernel, state="none", reason=reason, workload=case.label)
        return NanReport(kernel=kernel, state="measured", workload=case.label, precision=rows)
    return NanReport(kernel=kernel, state="unknown", reason=reason)
