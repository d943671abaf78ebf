"""The order of passes, top to bottom, with the reason for each position.

A kernel goes through two halves. `compile_to_offloads` works on the kernel as a whole and ends
with a list of tasks; `offload_to_executable` prepares the tasks for one kind of backend. Between
passes that open up new possibilities there is a group of simplification rounds (`full_simplify`),
named simplify_I to simplify_IV in their order. At named points (``cx.stage``) dumps are written,
and ``run(..., upto=...)`` can stop: `POINTS` lists them.

`run` does both halves; nothing else outside of this package needs to know about passes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import partial
from typing import Any, Final

from ..config import CompileConfig
from ..ir import Func, Op
from ..ir import codes as C
from ..pipeline_kind import PipelineKind
from .full_simplify import full_simplify
from .manager import Instrument, PassCx, StopPipeline

__all__ = ["POINTS", "compile_to_offloads", "offload_to_executable", "prepared", "run"]

POINTS: Final = (
    "from_ast", "quadrants1", "before_simplify_I", "after_simplify_I", "after_simplify_II",
    "after_offload", "after_simplify_III", "start_offload_to_executable", "before_lower_access",
    "after_lower_access", "final",
)  # fmt: skip
"""Names of the points of the pipeline, in order; all but the last are passed on the way."""

_LOOPS: Final = 32
"""Operations at the top of a kernel that may hold alike loops: see `task_templates.MANY`."""

_AUTODIFF: Final[dict[str, tuple[str, ...]]] = {
    "forward": ("check_autodiff", "make_dual"),
    "reverse": (
        # No iteration is left early: all else may rely on it.
        "lower_continue",
        # What loops do not change is a value of around them from here on.
        "forward_local_values",
        # Knows what depends on what: less does, now that few values go through variables.
        "check_autodiff",
        "reverse_segments",
        "reverse_outer_loops",
        # What the reverse needs of inner loops: all, on stacks, but what it can compute again.
        "promote_ssa_to_local_var",
        "replace_local_var_with_stacks",
        "eliminate_recomputable_ad_stack_pushes",
        # Before make_adjoint, which reads what these have kept.
        "backup_ssa",
        "make_adjoint",
        # Sees which loop reverses which, and no stack of a loop is used outside of both.
        "checkpoint_loops",
        "coalesce_ad_stack_loads",
    ),
    "validation": ("insert_access_checks",),
}
"""The passes that differentiate, in order. They find the root simplified, with no task cut out."""


def compile_to_offloads(func: Func, cx: PassCx) -> None:
    """Frontend IR to a simplified list of tasks."""
    _lower(func, cx)
    _to_tasks(func, cx)
    _simplify_tasks(func, cx)


def _lower(func: Func, cx: PassCx) -> None:
    config = cx.config
    cx.begin("lower")
    cx.stage("from_ast")
    # First of all: everything else may rely on `while` being the only loop that is left early.
    cx.run_pass("lower_ast")
    cx.stage("quadrants1")
    # Before anything is derived from their conditions.
    cx.run_pass("remove_user_asserts")
    # Most names in a kernel are bound once: without their variables there is less to type and
    # simplify, and simplify_I sees through them although cfg_optimization does not run yet.
    cx.run_pass("eliminate_immutable_local_vars")
    cx.run_pass("type_check")
    if config.debug:
        # Before anything may be moved: a check is exactly where the user's operation is.
        cx.run_pass("insert_debug_checks")
        if func.autodiff != "reverse":  # the kernel itself has reported what it does
            # After it: the divisions made here cannot be by zero and need no check.
            cx.run_pass("insert_overflow_reports")


def _to_tasks(func: Func, cx: PassCx) -> None:
    config = cx.config
    cx.stage("before_simplify_I")
    _simplify(cx, "simplify_I")
    cx.stage("after_simplify_I")

    cx.begin("checks")
    # Before the bounds checks: the clamped index is what an access has. It is outside of an empty
    # array, which only a check finds.
    cx.run_pass("handle_external_ptr_boundary")
    if config.check_out_of_bound:
        # After simplify_I, so that equal addresses are checked once; on typed i32 indices.
        cx.run_pass("check_out_of_bound")
    # One address for the read and the write of an element: later passes compare addresses.
    cx.run_pass("merge_global_ptrs")
    _simplify(cx, "simplify_II")
    cx.stage("after_simplify_II")

    if func.autodiff != "none":
        _differentiate(func, cx)

    cx.begin("offload")
    # On simplified IR: the fewer values cross between tasks, the fewer go through memory.
    cx.run_pass("offload")
    cx.stage("after_offload")


def _simplify_tasks(func: Func, cx: PassCx) -> None:
    # Values carried into a task may equal what it computes itself.
    cx.run_pass("per_task_cse")
    # From here on cfg_optimization runs too, on one graph a task.
    _simplify(cx, "simplify_III")
    if func.autodiff == "reverse":
        # Whatever decides whether an iteration has something to differentiate is simple by now.
        cx.run_pass("recognize_predicates")
    cx.stage("after_simplify_III")


def _differentiate(func: Func, cx: PassCx) -> None:
    """Make of the kernel what ``func.autodiff`` says."""
    cx.begin("autodiff")
    for name in _AUTODIFF[func.autodiff]:
        cx.run_pass(name)
    # Forward work that no derivative needs goes here.
    _simplify(cx, "post_autodiff")
    if func.autodiff == "reverse":
        # The stacks that are left; before offload, which cuts the values that bound them apart.
        cx.run_pass("determine_ad_stack_size")


def _to_chunks(cx: PassCx) -> None:
    """Iterations to chunks that a thread of a processor runs."""
    # Before the chunks: a chunk holds whole blocks. After demote_random, whose state is of an
    # iteration.
    # What it makes waits at barriers of the block, which the next one splits the loop at.
    cx.run_pass("demote_subgroups")
    cx.run_pass("demote_block_sync")
    # After all passes that need loop indices in the addresses, before the outermost axis is
    # cut into chunks.
    cx.run_pass("split_blocked_axes")
    cx.run_pass("make_cpu_multithreaded_range_for")
    if cx.config.make_thread_local:
        # Needs the chunks: an accumulator belongs to one chunk.
        cx.run_pass("make_thread_local")
    # Second round: updates of the accumulators are private.
    cx.run_pass("demote_atomics")
    # After all passes that search for the one loop over the iterations of a chunk; before
    # addresses are offsets, in which clamps and indices could not be seen.
    cx.run_pass("index_set_splitting")
    # Accumulators, which iterations in another order would change, are known by now.
    cx.run_pass("pack_products")
    cx.run_pass("mask_loops")
    cx.run_pass("tile_iterations")


def _to_blocks(cx: PassCx, kind: PipelineKind) -> None:
    """Iterations to threads of blocks that work together."""
    # After cache_loop_invariant_global_vars: sums in an element of an array are sums in a local.
    cx.run_pass("tensor_products")
    # After it, since it shares its plan: what has a block size is done.
    cx.run_pass("tile_products")
    cx.run_pass("stage_shared")
    if cx.config.make_thread_local and cx.run_pass("make_thread_local"):
        # Updates of the accumulators are private.
        cx.run_pass("demote_atomics")
    if kind.has_subgroups:
        # After them: a product is faster in tiles, and an update for each block than for each
        # iteration.
        cx.run_pass("subgroup_reduce")


def offload_to_executable(func: Func, cx: PassCx, kind: PipelineKind) -> None:
    """Tasks to what a backend generates code from for this kind of machine."""
    config = cx.config
    cx.kind = kind
    cx.begin("offload_to_executable")
    cx.stage("start_offload_to_executable")
    # Needs array addresses as written, before copies in locals hide reads.
    if config.detect_read_only:
        cx.run_pass("detect_read_only")
    # While an iteration of a task still is one of the user's loop: it seeds the generator.
    cx.run_pass("demote_random")
    if config.debug_nan:
        # After it: iterations are run again, and draw the same numbers then. Before all that fits
        # iterations to a machine.
        cx.run_pass("insert_nan_checks")
    # First round: what is private to a task or an iteration needs no atomics, and
    # cache_loop_invariant_global_vars leaves targets of atomics alone.
    cx.run_pass("demote_atomics")
    if kind is not PipelineKind.INTERP and config.make_thread_local:
        # Before serialize_scatter, which is for what has no copies, and before addresses are
        # offsets; what it makes for a GPU runs in blocks, as below.
        cx.run_pass("privatize_scatter")
    # Weighs the atomics that are left; a serial task needs none.
    if kind.is_cpu and cx.run_pass("serialize_scatter"):
        cx.run_pass("demote_atomics")
    if config.cache_loop_invariant_global_vars:
        cx.run_pass("cache_loop_invariant_global_vars")
    if kind.is_gpu:
        _to_blocks(cx, kind)
    if kind.is_cpu:
        _to_chunks(cx)

    _simplify(cx, "before_lower_access")
    cx.stage("before_lower_access")

    cx.begin("lower_access")
    # As late as possible: array indices say more about aliasing than offsets do.
    cx.run_pass("lower_access")
    cx.run_pass("die")
    # Late as well: x // 8 says more than the shift that it becomes. The arithmetic made here and
    # by lower_access is simplified by the last group.
    cx.run_pass("demote_operations")
    cx.stage("after_lower_access")
    _simplify(cx, "simplify_IV")

    cx.begin("final")
    if kind.has_vector_atomics:
        # Needs offsets, of which the last index is a constant.
        cx.run_pass("vectorize_atomics")
    if kind.is_gpu:
        # Last: it counts operations, and compares addresses to the byte.
        cx.run_pass("map_to_grid")
        cx.run_pass("unroll_inner_loops")
    cx.stage("final")


def run(
    func: Func,
    config: CompileConfig,
    kind: PipelineKind,
    instruments: Iterable[Instrument] = (),
    upto: str | None = None,
    share_tasks: bool = False,
    in_full: bool = False,
) -> Func:
    """Run the whole pipeline on ``func``, in place; return ``func``.

    kind: of `backends.base.Backend.pipeline`, and never the name of a backend. upto: one of
    `POINTS` to stop at. share_tasks: equal tasks may have the same blocks in the end, which are of
    use for the CPU's code generation alone; else `Func.repeats` has them (see `share_tasks`).
    in_full: each task keeps its own blocks also in records, for other generators of code.
    Under ``config.debug`` the IR is verified after each pass. Raises an error in the kernel as a
    QuadrantsCompilationError with the line, a fault of a pass as a QuadrantsInternalError.
    """
    # A name such as "opencl" would compare unequal to every kind, and compile for no machine.
    if kind.__class__ is not PipelineKind:
        raise TypeError(f"passes.run needs a PipelineKind, not {kind!r}")
    if upto is not None and upto not in POINTS:
        raise ValueError(f"no point of the pipeline is called {upto!r}: use one of {POINTS}")
    watching = tuple(instruments)
    if config.debug:
        from .instruments import VerifyEach

        if not any(isinstance(i, VerifyEach) for i in watching):
            watching = (VerifyEach(), *watching)
    cx = PassCx(func, config, watching, upto)
    for instrument in watching:
        instrument.begin(func, cx)
    equal: dict[Op, Op] = {}
    # Checks of NaN number what they report, and add tasks.
    may_share = upto is None and not config.debug_nan
    unwatched = may_share and share_tasks and not watching
    if may_share and not in_full and not unwatched and (share_tasks or kind.is_cpu):
        cx.shares_from = 1 if share_tasks else _shares_from(watching)
        # What the numbers of a task decide is known of all passes, not of some.
        some = share_tasks or any(instrument.skips for instrument in watching)
        cx.prepare = None if some else partial(prepared, config=config, kind=kind)
    try:
        _lower(func, cx)
        if cx.shares_from and cx.prepare and _loops(func) >= max(cx.shares_from, _LOOPS):
            # As soon as types are known: all that follows lists fewer of them.
            cx.run_pass("share_loops")
        if unwatched:
            _run_unwatched(func, cx, kind)
        else:
            _to_tasks(func, cx)
            several = may_share and len(func.body.ops) > 1
            _simplify_tasks(func, cx)
            if several and kind.is_cpu and not share_tasks:
                from .share_tasks import equal_tasks

                equal = equal_tasks(func)
            offload_to_executable(func, cx, kind)
    except StopPipeline:
        pass
    for instrument in watching:
        instrument.end(func)
    if equal:
        from .share_tasks import repeats

        func.repeats = repeats(func, equal)
    if func.shared is not None:
        from .share_tasks import put_back

        put_back(func)
        if share_tasks:
            func.shared = None
    return func


def _run_unwatched(func: Func, cx: PassCx, kind: PipelineKind) -> None:
    """Do all that follows `_lower` once for alike loops and tasks, where only the code matters.

    Kernels with one task load none of that.
    """

    def prepare(templates: Collection[Op] = ()) -> None:
        _to_tasks(func, cx)
        if len(func.body.ops) > 1:
            from .task_templates import once_per_template

            once_per_template(func, cx, lambda: _prepare(func, cx, kind), templates)
        else:
            _simplify_tasks(func, cx)
            offload_to_executable(func, cx, kind)

    if len(func.body.ops) >= _LOOPS:
        from .loop_templates import once_per_loop

        if once_per_loop(func, cx, prepare):
            return
    prepare()


def _prepare(func: Func, cx: PassCx, kind: PipelineKind) -> None:
    """Run the passes that come after offload, unwatched."""
    from .task_batches import in_batches

    _simplify_tasks(func, cx)
    in_batches(func, lambda: offload_to_executable(func, cx, kind))


def prepared(
    func: Func, held: Mapping[Any, Any], config: CompileConfig, kind: PipelineKind
) -> PassCx:
    """Run the passes that are left on a function of stage typed or offloaded, unwatched. held: of
    `PassCx`."""
    cx = PassCx(func, config)
    cx.held.update(held)
    if func.stage == "typed":
        _to_tasks(func, cx)
    _prepare(func, cx, kind)
    return cx


def _loops(func: Func) -> int:
    """The number of loops at the top."""
    return [op.code for op in func.body.ops].count(C.RANGE_FOR)


def _shares_from(instruments: tuple[Instrument, ...]) -> int:
    """The number of tasks from which all ``instruments`` let equal ones be set aside, or 0."""
    least = [instrument.shares_from for instrument in instruments]
    return max(least, default=0) if all(least) else 0


def _simplify(cx: PassCx, phase: str) -> None:
    cx.begin(phase)
    full_simplify(cx.func, cx)
