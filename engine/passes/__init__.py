"""Passes over the IR: what each does, in which order they run, and what can watch them.

`pipeline` holds the order, `manager` runs passes, `registry` knows them by name. Importing this
package registers them, explicitly, by the list below, but for those that differentiate: they, and
dumps, are loaded when asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from .instruments import Fuel, Remarks, SkipPasses, Timer, VerifyEach
from .manager import Instrument, PassCx, PassRemark, Run
from .pipeline import POINTS, compile_to_offloads, offload_to_executable, run
from .registry import PassFn, PassInfo, all_passes, get, register, register_later

if TYPE_CHECKING:
    from .dump import DumpToFiles, PrintIr, instruments_for

MODULES: Final = (
    "alg_simp",
    "autodiff.backup_ssa",
    "autodiff.check_autodiff",
    "autodiff.coalesce_ad_stack_loads",
    "autodiff.determine_ad_stack_size",
    "autodiff.eliminate_recomputable_ad_stack_pushes",
    "autodiff.forward_local_values",
    "autodiff.insert_access_checks",
    "autodiff.lower_continue",
    "autodiff.make_adjoint",
    "autodiff.make_dual",
    "autodiff.promote_ssa_to_local_var",
    "autodiff.recognize_gates",
    "autodiff.replace_local_var_with_stacks",
    "autodiff.reverse_outer_loops",
    "autodiff.reverse_segments",
    "binary_op_simplify",
    "cache_loop_invariant_global_vars",
    "cfg_optimization",
    "check_out_of_bound",
    "constant_fold",
    "demote_atomics",
    "demote_block_sync",
    "demote_subgroups",
    "demote_operations",
    "demote_random",
    "detect_read_only",
    "die",
    "eliminate_immutable_local_vars",
    "extract_constant",
    "handle_external_ptr_boundary",
    "index_set_splitting",
    "insert_debug_checks",
    "insert_overflow_reports",
    "loop_invariant_code_motion",
    "lower_access",
    "lower_ast",
    "make_cpu_multithreaded_range_for",
    "make_thread_local",
    "merge_global_ptrs",
    "offload",
    "per_task_cse",
    "remove_user_asserts",
    "serialize_scatter",
    "simplify",
    "split_blocked_axes",
    "type_check",
    "unreachable_code_elimination",
)
"""The modules of this package that hold passes, each called like its pass; some have a room."""


def _load(rooms: bool) -> None:
    """Register the passes that have a room of their own, or those that have none."""
    for module in MODULES:
        if ("." in module) == rooms:
            import_module(f".{module}", __name__)


_load(rooms=False)
register_later(lambda: _load(rooms=True))

__all__ = [
    "MODULES", "POINTS", "DumpToFiles", "Fuel", "Instrument", "PassCx", "PassFn", "PassInfo",
    "PassRemark", "PrintIr", "Remarks", "Run", "SkipPasses", "Timer", "VerifyEach", "all_passes",
    "compile_to_offloads", "get", "instruments_for", "offload_to_executable", "register", "run",
]  # fmt: skip

_DUMPS: Final = frozenset({"DumpToFiles", "PrintIr", "instruments_for"})


def __getattr__(name: str) -> Any:
    if name in _DUMPS:
        value = globals()[name] = getattr(import_module(".dump", __name__), name)
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
