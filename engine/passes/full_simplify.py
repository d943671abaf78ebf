"""The group of simplifying passes, in rounds to a fixed point.

A group, not a pass: it runs its passes through the manager, so that an instrument sees each of
them with the number of its round. One round is, in this order and for these reasons:

    extract_constant                 constants are where every rule finds them
    unreachable_code_elimination     before anything is spent on code that cannot run
    binary_op_simplify               brings constants together,
    constant_fold                    computes them (if ``constant_folding``),
    die                              and clears away what that left
    alg_simp
    loop_invariant_code_motion       after alg_simp: fewer operands tie an op to a loop
    die
    simplify
    die
    per_task_cse                     once there are tasks, ``opt_level`` > 0
    cfg_optimization                 once there are tasks, in the first round, ``opt_level`` > 0 and
                                     ``cfg_optimization``: the most expensive by far

The group stops when every pass of a round in a row had nothing to do, so a last round may end
early. ``advanced_optimization=False`` runs constant_fold, die, simplify and die once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .. import logs as log
from ..ir import Func

if TYPE_CHECKING:
    from .manager import PassCx

__all__ = ["MAX_ROUNDS", "ROUND", "full_simplify"]

ROUND: Final = (
    "extract_constant", "unreachable_code_elimination", "binary_op_simplify", "constant_fold",
    "die", "alg_simp", "loop_invariant_code_motion", "die", "simplify", "die",
)  # fmt: skip
"""The passes of a round that run at every stage."""

_WITHOUT_FOLDING: Final = tuple([name for name in ROUND if name != "constant_fold"])

MAX_ROUNDS: Final = 20
"""More than any kernel needs; a bound for rules that undo each other."""

_TASK_STAGES: Final = frozenset({"offloaded", "accesses"})


def full_simplify(func: Func, cx: PassCx) -> bool:
    """Simplify ``func`` until nothing changes; True if anything did.

    The phase is that of the manager (``cx.begin``). If the bound on rounds is reached, the result
    is still right; a debug message reports it.
    """
    config = cx.config
    if not config.advanced_optimization:
        changed = config.constant_folding and cx.run_pass("constant_fold", 1)
        for name in ("die", "simplify", "die"):
            changed |= cx.run_pass(name, 1)
        return changed
    names = ROUND if config.constant_folding else _WITHOUT_FOLDING
    with_cfg = False
    if func.stage in _TASK_STAGES and config.opt_level > 0:
        names = (*names, "per_task_cse")
        with_cfg = config.cfg_optimization
    changed = False
    quiet = 0  # passes in a row that had nothing to do
    for number in range(1, MAX_ROUNDS + 1):
        for name in names:
            if cx.run_pass(name, number):
                changed = True
                quiet = 0
            else:
                quiet += 1
                if quiet >= len(names) and (number > 1 or not with_cfg):
                    return changed
        if number == 1 and with_cfg and cx.run_pass("cfg_optimization", number):
            changed = True
            quiet = 0
        if quiet >= len(names):
            return changed
    log.debug(f"{func.name}: {cx.phase} still changes after {MAX_ROUNDS} rounds")
    return changed
