"""The errors of adstacks at a launch: one was full, or there is not enough memory for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..adstack import predicate as predicates
from ..adstack.formulas import formula
from ..adstack.host_eval import evaluate
from ..adstack.size_expr import Read, parse, walk
from ..backends.base import StackMeta, StackPlan, TaskPlan
from ..errors import AdStackOverflowError, QuadrantsRuntimeError

if TYPE_CHECKING:
    from .sizer import Sizer

__all__ = ["diagnosis", "label", "largest", "out_of_memory", "over_budget"]

_MUTATION = (
    "Cause: an array or field that bounds a loop has other contents now than when the launch was"
    " sized{where}. It was changed while the kernel ran, or in a way that is not seen: through a"
    " pointer, or by code that knows the memory from elsewhere. Write it through the array itself"
    " (x[i] = v, fill, from_numpy, a kernel), and before the launch."
)
_FAULT = (
    "Cause: the sizes are what they should be by their formulas. Either an integer that bounds a"
    " loop is too large for its type, so that it wraps around, which formulas do not; or a formula"
    " is wrong. That is a fault of the engine: please report it with the kernel. Meanwhile"
    " qd.init(ad_stack_size=N), with N large enough for all pushes, goes around it."
)
_BOTH = (
    "Cause: either an array or field that bounds a loop was changed unseen while the kernel ran, or"
    " the engine has sized the stack too small. Sizes that could be computed again are no larger"
    " than before."
)
_FIXED = (
    "Cause: the option ad_stack_size={size} sets the entries of every adstack. Make it larger, or"
    " set it to 0: then each stack is sized before each launch."
)
_AFTER = (
    "Note: gradients that this launch has computed in part stay as they are: clear them. The next"
    " launch is sized afresh."
)


def label(stack: StackMeta, number: int) -> str:
    """The name of a stack in messages."""
    return f"{stack.name!r}" if stack.name else f"number {number}"


def diagnosis(
    error: AdStackOverflowError, sizer: Sizer, values: Sequence[Any], plan: StackPlan
) -> AdStackOverflowError:
    """The error of a launch with ``plan`` that found a stack full, with its possible causes."""
    meta, number = sizer.meta, error.task
    task = plan.tasks[number] if 0 <= number < len(plan.tasks) else None
    if task is None:
        return error
    stacks = meta.tasks[number].stacks
    required, rows = _required(sizer, values, number)
    lines = [
        "Adstack overflow: a reverse-mode autodiff kernel pushed more elements than the adstack"
        " capacity allows.",
        f"  Offending task: kernel `{meta.name}` offload task #{number};"
        f" per-stack allocated max_size = {list(task.capacities)}.",
    ]
    if 0 <= error.stack < len(stacks):
        lines.append(f"  Offending stack: {_described(sizer, stacks[error.stack], error.stack)}.")
    else:
        lines.append(
            "  Offending rows: more threads passed the predicate than the launch was given rows"
            f" for, {task.real_rows}."
        )
    if required is not None:
        lines.append(f"  Synchronous sizer rerun: required max_size = {required}.")
    fixed = sizer.stacks.fixed_size
    if fixed:
        lines.append(_FIXED.format(size=fixed))
    elif required is None:
        lines.append(_BOTH)
    elif rows > task.real_rows or _larger(required, task):
        lines.append(_MUTATION.format(where=_names(sizer, number)))
    else:
        lines.append(_FAULT if sizer.known else _BOTH)
    lines.append(_AFTER)
    explained = AdStackOverflowError("\n".join(lines), hint=error.hint, kernel=meta.name)
    explained.span, explained.chain = error.span, error.chain
    explained.task, explained.stack = error.task, error.stack
    return explained


def _required(sizer: Sizer, values: Sequence[Any], task: int) -> tuple[list[int] | None, int]:
    """The sizes of a task's stacks as the arrays are now, and its rows; None if that fails."""
    sizer.forget()
    try:
        if sizer.stacks.fixed_size:
            return _unfixed(sizer, values, task), 0
        now = sizer.sized_now(values)[task]
    except QuadrantsRuntimeError:
        return None, 0
    return None if now is None else list(now.capacities), 0 if now is None else now.real_rows


def _unfixed(sizer: Sizer, values: Sequence[Any], task: int) -> list[int] | None:
    """The sizes of a task's stacks without `ad_stack_size`; None if they are not known."""
    env = sizer.env(values)
    sizes = [stack.size for stack in sizer.meta.tasks[task].stacks]
    return [max(evaluate(parse(size), env), 1) for size in sizes] if all(sizes) else None


def _larger(required: Sequence[int], task: TaskPlan) -> bool:
    return any(need > has for need, has in zip(required, task.capacities, strict=True))


def _described(sizer: Sizer, stack: StackMeta, number: int) -> str:
    more: list[str] = []
    if stack.size:
        more.append(f"entries: {formula(parse(stack.size), sizer.meta.params)}")
    if stack.forced_by:
        more.append(f"forced by {stack.forced_by}")
    return label(stack, number) + (f" ({'; '.join(more)})" if more else "")


def _names(sizer: Sizer, task: int) -> str:
    """The arrays that the sizes and the adstack predicate of a task are read from."""
    meta, params = sizer.meta.tasks[task], sizer.meta.params
    found = {
        params[node.param].name
        for stack in meta.stacks if not stack.max_size
        for node in walk(parse(stack.size)) if isinstance(node, Read)
    }  # fmt: skip
    if meta.predicate:
        found.add(params[predicates.parse(meta.predicate).param].name)
    return f" ({', '.join(sorted(found))})" if found else ""


def largest(stacks: Sequence[StackMeta], plan: TaskPlan, real: bool) -> int:
    """The index of the largest stack of one kind; -1 if there is none."""
    sizes = [
        stack.entry * n if stack.real is real else -1
        for stack, n in zip(stacks, plan.capacities, strict=True)
    ]
    return sizes.index(max(sizes)) if max(sizes, default=-1) >= 0 else -1


def out_of_memory(
    kind: str, needed: int, sizer: Sizer, tasks: Sequence[TaskPlan | None]
) -> QuadrantsRuntimeError:
    """The error for a heap that cannot grow to ``needed`` bytes."""
    real = kind == "real"
    heap = "float" if real else "int"
    text = f"Failed to allocate {needed} bytes for the adstack {heap} heap."
    hint = (
        "the gradient needs fewer values that inner loops overwrite, shorter inner loops, or fewer"
        " threads (cpu_max_num_threads); or compute it in parts, running forward parts again in a"
        " qd.ad.grad_for function. Consider lowering `ad_stack_size` if it is set."
    )
    loc = None
    for number, (meta, plan) in enumerate(zip(sizer.meta.tasks, tasks, strict=True)):
        if plan is None:
            continue
        rows, stride = plan.real_rows, plan.real_stride
        if not real:
            rows, stride = plan.integer_rows, plan.integer_stride
        worst = largest(meta.stacks, plan, real)
        if rows * stride != needed or worst < 0:
            continue
        stack, entries = meta.stacks[worst], plan.capacities[worst]
        text += (
            f" Task #{number} has {rows} rows of {stride} bytes; the largest stack is"
            f" {_described(sizer, stack, worst)}: {entries} entries of {stack.entry} bytes."
        )
        loc = stack.loc
        break
    return QuadrantsRuntimeError.from_loc(text, loc, hint=hint, kernel=sizer.meta.name)


def over_budget(
    sizer: Sizer, task: int, capacities: Sequence[int], needed: int
) -> QuadrantsRuntimeError:
    """The error for stacks of one thread that are larger than `ad_stack_budget_bytes`."""
    stacks = sizer.meta.tasks[task].stacks
    sizes = [stack.entry * n for stack, n in zip(stacks, capacities, strict=True)]
    worst = sizes.index(max(sizes))
    stack = stacks[worst]
    text = (
        f"Task #{task} needs {needed:,} bytes of adstacks for one thread, and the option"
        f" ad_stack_budget_bytes allows {sizer.stacks.budget:,}; the largest stack is"
        f" {_described(sizer, stack, worst)}: {capacities[worst]:,} entries of {stack.entry} bytes."
    )
    hint = (
        "set a larger ad_stack_budget_bytes, or 0 for no limit. Segments of a loop over"
        " range(n) are chosen before n is known; a loop over a constant range always fits"
    )
    return QuadrantsRuntimeError.from_loc(text, stack.loc, hint=hint, kernel=sizer.meta.name)
