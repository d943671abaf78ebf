"""check_autodiff: an op without a derivative is an error where a derivative goes through it.

::

    $5 : while body { ... }        WhileStmt is not supported in AutoDiff ...  (with file and line)

Both modes refuse, where floats with adjoints or duals are involved,

* calls of real functions, and ``bit_cast``;
* atomics on an array or field other than additions, also on a variable that a parallel loop shares;
* the use of the old value that an atomic on an array or field returns.

Reverse mode recomputes values of the kernel from the contents of the arrays after the kernel. It
therefore also refuses

* ``while``, ``break`` (`lower_continue` has removed each ``continue``), barriers and shared arrays;
* random numbers, results of atomics on memory and of real functions that write memory, where a
  derivative or the control flow depends on them: a second computation would return other values;
* conflicting reads and writes of one array, which `access_rules` finds.

It changes nothing, and leaves alone all of this where no derivative is involved, as in a ``while``
that searches for an index.
"""

from __future__ import annotations

import linecache
from functools import cached_property
from typing import Final, NoReturn

from ...analysis import SUBGROUP_OPS
from ...errors import QuadrantsCompilationError
from ...ir import Callee, Func, Op, base_of, walk
from ...ir import codes as C
from ..manager import PassCx
from ..registry import register
from .access_rules import check_accesses
from .activity import Activity
from .independent_blocks import is_parallel
from .rerun import Rerun

__all__ = ["check_autodiff"]

_ADDITION: Final = frozenset({C.ATOMIC_ADD})


@register("check_autodiff")
def check_autodiff(func: Func, cx: PassCx) -> bool:
    """Refuse what cannot be differentiated (reverse and forward mode)."""
    if func.autodiff not in ("reverse", "forward") or isinstance(func, Callee):
        return False
    checker = _Checker(func)
    checker.both()
    if func.autodiff == "reverse":
        checker.reverse()
    return False


class RandomNumberError(QuadrantsCompilationError, RuntimeError):
    """The gradient needs a random number again. Quadrants raises a RuntimeError here."""


def _refuse(
    op: Op, text: str, hint: str | None = None,
    kind: type[QuadrantsCompilationError] = QuadrantsCompilationError,
) -> NoReturn:  # fmt: skip
    raise kind.from_loc(text, op.loc, hint=hint)


class _Checker:
    def __init__(self, func: Func) -> None:
        self.func: Final = func
        self.activity: Final = Activity(func)
        self.shared: Final = _shared_variables(func)

    def name(self, ptr: Op) -> str:
        """The user's name for the memory at an address."""
        root = base_of(ptr)
        if root.code == C.ARG_ADDR:
            return self.func.params[int(root.attr[0])].name
        name = root.attr if root.code == C.ALLOCA else getattr(root.attr, "name", "")
        return str(name) or "a local variable"

    def both(self) -> None:
        """Refuse the ops that neither mode supports."""
        varied = self.activity.varied
        for op in self.activity.flat:
            code = op.code
            if code == C.CALL:
                self.call(op)
            elif code == C.CAST_BITS and op.args[0] in varied:
                _refuse(op, "bit_cast of a value that is differentiated has no derivative",
                        "exclude its array with qd.stop_grad, or use qd.cast")  # fmt: skip
            elif C.ATOMIC[code]:
                self.atomic(op)

    def call(self, op: Op) -> None:
        varied = self.activity.varied
        touched = self.touched(op.attr)
        if touched is None and not any(a in varied or base_of(a) in varied for a in op.args):
            return
        what = f"which reads or writes {touched}" if touched else "with values that depend on them"
        _refuse(
            op,
            f"Real functions cannot be differentiated: {op.attr} is called {what}, "
            "and gradients are requested",
            "define it with @qd.func, which inlines it",
        )  # fmt: skip

    def touched(self, name: str) -> str | None:
        """An array with adjoints that a real function, or one that it calls, touches."""
        callees, seen, left = self.func.callees, {name}, [name]
        while left:
            for op in walk(callees[left.pop()].body):
                if op.code == C.ARG_ADDR and op.attr[0] in self.activity.with_adjoint:
                    return self.func.params[int(op.attr[0])].name
                if op.code == C.CALL and op.attr not in seen:
                    seen.add(op.attr)
                    left.append(op.attr)
        return None

    def atomic(self, op: Op) -> None:
        """An atomic on memory that has adjoints, or may have."""
        activity = self.activity
        ptr = op.args[0]
        root = base_of(ptr)
        array = activity.has_adjoint(ptr)
        if not array and root not in activity.varied:
            return
        plain = root.code == C.ALLOCA and root not in self.shared
        if op.code not in _ADDITION and not plain:
            _refuse(
                op,
                f"{op.name} on {self.name(ptr)} cannot be differentiated: of atomic operations "
                "only additions and subtractions can",
                "compute the value in a local variable and store it",
            )
        live = activity.active if self.func.autodiff == "reverse" else self.used
        if not plain and op in live:
            _refuse(
                op,
                f"the value that {op.name} returns (what {self.name(ptr)} held before) cannot be "
                "differentiated",
                "read the element in a separate statement, before or after the atomic",
            )

    @cached_property
    def used(self) -> set[Op]:
        """Every op that another one reads."""
        return {a for op in self.activity.flat for a in op.args}

    # --- reverse mode ----------------------------------------------------------------------

    def reverse(self) -> None:
        effects = self.activity.effects
        for op in self.activity.flat:
            if op not in effects:
                continue
            if op.code == C.WHILE:
                self.leaves_early(op)
            elif op.regions and C.LOOP[op.code]:
                self.barriers(op)
        rerun = Rerun(self.func, self.activity)
        for op in self.activity.flat:
            if op in rerun.needed:
                self.again(op, rerun)
        check_accesses(self.func, self.activity, rerun)

    def leaves_early(self, loop: Op) -> NoReturn:
        """A ``while`` loop, or what became of a ``for`` with a ``break``."""
        for op in walk(loop.regions[0]):
            if op.code == C.WHILE_CONTROL and _reads(op, "break"):
                _refuse(
                    op,
                    "WhileControlStmt (break) is not supported in AutoDiff: a loop that is run "
                    "backwards has to know where it began",
                    "put the statements after it into an `if`, and let the loop run to its end",
                )
        _refuse(
            loop,
            "WhileStmt is not supported in AutoDiff: a loop that is run backwards has to know how "
            "often it ran",
            "use `for i in range(n)` with an `if` inside",
        )

    def barriers(self, loop: Op) -> None:
        """Barriers and shared arrays order iterations in a way that cannot be turned around."""
        for op in walk(loop.regions[0]):
            shared = op.code == C.ARRAY_ALLOCA and op.attr.space == "shared"
            if op.code in SUBGROUP_OPS:
                _refuse(op, "an operation of a subgroup is not supported in reverse-mode autodiff",
                        "differentiate a version of the loop without subgroups")  # fmt: skip
            if op.code == C.BLOCK_SYNC or (shared and op in self.activity.active):
                what = "a shared array" if shared else "qd.simt.block.sync()"
                _refuse(op, f"{what} is not supported in reverse-mode autodiff",
                        "differentiate a version of the loop without blocks")  # fmt: skip

    def again(self, op: Op, rerun: Rerun) -> None:
        """A value that the gradient needs, and could only have by doing something once more."""
        why = rerun.why(op)
        if op.code == C.RAND:
            _refuse(
                op,
                f"RandStmt not supported in AutoDiff for now: {why}, and the gradient would draw "
                "another number",
                "draw the numbers in a separate kernel, and read them from an array",
                RandomNumberError,
            )
        if op.code == C.CLOCK:
            _refuse(
                op,
                f"{why}, and the gradient would read another time",
                "read the clock in a separate kernel, and store the time to an array",
            )
        if C.ATOMIC[op.code] and op.args[0].code != C.ALLOCA:
            _refuse(
                op,
                f"{why}, and the gradient cannot compute it again: {op.name} on "
                f"{self.name(op.args[0])} would happen twice",
                "store it to an array, and differentiate a kernel that reads it from there",
            )
        if op.code == C.CALL and self.writes(op.attr):
            _refuse(
                op,
                f"{why}, and the gradient cannot compute it again: {op.attr} writes memory, which "
                "must not happen twice",
                "store its result to an array, and differentiate a kernel that reads it from there",
            )

    def writes(self, name: str) -> bool:
        """True if a real function, or one that it calls, writes memory of the launch."""
        callees, seen, left = self.func.callees, {name}, [name]
        while left:
            for op in walk(callees[left.pop()].body):
                if op.code == C.GLOBAL_STORE or C.ATOMIC[op.code]:
                    if base_of(op.args[0]).code not in (C.ALLOCA, C.ARRAY_ALLOCA):
                        return True
                elif op.code == C.CALL and op.attr not in seen:
                    seen.add(op.attr)
                    left.append(op.attr)
        return False


def _reads(op: Op, word: str) -> bool:
    """True if the user's source at an op begins with ``word``."""
    loc = op.loc
    line = linecache.getline(loc.file, loc.line).encode("utf-8", "surrogatepass")
    return line[loc.col :].startswith(word.encode())


def _shared_variables(func: Func) -> set[Op]:
    """Variables of the root that a parallel loop uses."""
    own = {op for op in func.body.ops if op.code == C.ALLOCA}
    found: set[Op] = set()
    for root in func.body.ops:
        if is_parallel(root):
            for op in walk(root.regions[0]):
                found.update([a for a in op.args if a in own])
    return found
