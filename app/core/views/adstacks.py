"""The differentiation of a kernel and the cost of its adstacks: tables and details.

The listings before and after differentiation are drawn by `reversal`.
"""

from __future__ import annotations

from textwrap import wrap
from typing import Final, NamedTuple

from ....engine.inspect.record import AutodiffRecord, BackendRecord, KernelRecord, Record
from ....engine.inspect.record_autodiff import PredicateRecord, SizeRow, StackRecord, StackTask
from .. import format as fmt
from ..lines import Line, Span, cell, table, trimmed
from .errors import why_uncompiled

__all__ = [
    "REDUCER_HEAD", "STACK_HEADS", "Shown", "chosen_stack", "fact_lines", "fact_texts",
    "failure_lines", "number", "predicate_text", "reducer_rows", "shown_of", "slots_text",
    "stack_key", "stack_lines", "stack_rows", "stacks_of", "summary", "tree_texts", "type_text",
    "why_none",
]  # fmt: skip

_NARROWEST: Final = 24
_NAMES: Final = 13
"""Columns of the names before texts."""
_ROOMY: Final = 110


class Shown(NamedTuple):
    """The subject of the panel: a gradient kernel on one backend."""

    kernel: KernelRecord
    backend: BackendRecord
    autodiff: AutodiffRecord


def shown_of(record: Record, kernel: KernelRecord, backend: str = "") -> Shown | None:
    """The gradient to show for a kernel: itself, or the kernel that differentiates it; on
    ``backend`` if it has one there, else on the first that has."""
    chosen = kernel
    if kernel.gradient:
        chosen = next((k for k in record.kernels if k.id == kernel.gradient), kernel)
    found = [b for b in chosen.backends if b.autodiff is not None]
    best = next((b for b in found if b.backend == backend), found[0] if found else None)
    if best is None or best.autodiff is None:
        return None
    return Shown(chosen, best, best.autodiff)


def failure_lines(shown: Shown) -> list[Line]:
    """The errors of the gradient, with the user's line; an overflow is among the facts."""
    errors = [e for e in shown.backend.errors if e.message != shown.autodiff.overflow]
    texts = dict.fromkeys(fmt.error_text(e) for e in errors)
    return [
        Line(((line, "bad"),), ("error", i, n), line)
        for i, text in enumerate(texts)
        for n, line in enumerate(text.splitlines())
    ]


def why_none(record: Record, kernel: KernelRecord) -> list[str]:
    """The reasons why there is nothing to show, in lines."""
    chosen = next((k for k in record.kernels if k.id == kernel.gradient), None)
    chosen = chosen or (kernel if kernel.primal else None)
    if chosen is None:
        return [
            "This kernel has no gradient: neither its arguments nor the fields it uses have one.",
            "Arrays and fields made with needs_grad=True do; a workload can return such arrays.",
        ]
    return [f"{chosen.name} has not been compiled.", *why_uncompiled(chosen)]


def stacks_of(autodiff: AutodiffRecord) -> list[tuple[StackTask, StackRecord, str]]:
    """Every stack, with its task and the key of its row."""
    return [
        (task, stack, stack_key(task, i))
        for task in autodiff.tasks
        for i, stack in enumerate(task.stacks)
    ]


def stack_key(task: StackTask, index: int) -> str:
    """The key of a row: ``0.2``, stack 2 of task 0."""
    return f"{task.index}.{index}"


def chosen_stack(autodiff: AutodiffRecord, chosen: str = "") -> str:
    """The key of the stack that is shown in full: ``chosen``, else the largest one."""
    rows = stacks_of(autodiff)
    if any(key == chosen for _, _, key in rows):
        return chosen
    peak = next((key for _, stack, key in rows if stack.peak), None)
    return peak or (rows[0][2] if rows else "")


def number(n: int) -> str:
    """A count in full: ``16,777,217``."""
    return f"{n:,}"


def type_text(stack: StackRecord) -> str:
    """``f32 + adjoint``."""
    return f"{stack.dtype} + adjoint" if stack.adjoint else stack.dtype


def slots_text(stack: StackRecord, sized: bool) -> str:
    """The entries of a row; before a launch those that the compiler knew."""
    if sized:
        return number(stack.slots)
    return number(stack.max_size) if stack.max_size else ""


def summary(autodiff: AutodiffRecord) -> str:
    """``reverse: 3 stacks, 1.25 MiB of heap with n=1024``."""
    n = len(stacks_of(autodiff))
    if not n and autodiff.reason:
        return f"{autodiff.mode}: {fmt.first_line(autodiff.reason)}"
    if not n:
        none = "no adstack is needed" if autodiff.mode == "reverse" else "without adstacks"
        return f"{autodiff.mode}: {none}"
    text = f"{autodiff.mode}: {fmt.counted(n, 'stack')}"
    if not autodiff.sized:
        return f"{text}; {fmt.first_line(autodiff.reason) or 'not launched yet'}"
    of = f" with {autodiff.workload}" if autodiff.workload else ""
    full = "; one of them was too small" if autodiff.overflow else ""
    return f"{text}, {fmt.size(autodiff.bytes)} of heap{of}{full}"


STACK_HEADS: Final = (
    "variable", "type", "slots", "B/slot", "rows", "total", "size", "forced by"
)  # fmt: skip


def stack_rows(
    autodiff: AutodiffRecord, width: int = 200, ascii_only: bool = False
) -> tuple[list[Line], list[Line]]:
    """(header, a row a stack): its contents, its size, the reason for it. ▲: the largest one.

    width: in a narrow pane only columns of numbers are kept; the details show the rest.
    """
    stacks = stacks_of(autodiff)
    if not stacks:
        return [], []
    several = len({task.index for task, _, _ in stacks}) > 1
    mark = "^" if ascii_only else "▲"
    rows: list[list[Span]] = []
    for task, x, _ in stacks:
        place = f"{task.index}" if several else ""
        rows.append([
            (f"{mark if x.peak else ' '}{place}", "warn" if x.peak else "dim"),
            (x.name or "(value)", "accent"), (type_text(x), "type"),
            (slots_text(x, autodiff.sized), "num"), (str(x.entry or ""), ""),
            (number(x.rows) if autodiff.sized else "", ""),
            (fmt.size(x.total) if autodiff.sized else "", "warn" if x.peak else "num"),
            (x.formula or (number(x.max_size) if x.max_size else ""), ""),
            (x.forced_by, "dim"),
        ])  # fmt: skip
    limits = [4, 18, 14, 14, 6, 12, 10, 60, 60]
    keep = 1 + len(STACK_HEADS) if width >= _ROOMY else 8
    if width >= _ROOMY:
        limits[7:] = [max(20, (width - 96) // 2 + 8), width]
    head, lines = table(
        ("task" if several else "", *STACK_HEADS)[:keep],
        [row[:keep] for row in rows],
        [key for _, _, key in stacks],
        (False, False, False, True, True, True, True, False, False)[:keep],
        limits[:keep],
    )
    return [trimmed(head)], [trimmed(line) for line in lines]


def tree_texts(rows: tuple[SizeRow, ...], ascii_only: bool = False) -> list[tuple[str, str, str]]:
    """(branches, text, value) of each row of a tree."""
    tee, end, bar = ("|- ", "`- ", "|  ") if ascii_only else ("├─ ", "└─ ", "│  ")
    out: list[tuple[str, str, str]] = []
    for i, row in enumerate(rows):
        branches = ""
        for depth in range(1, row.depth + 1):
            more = _goes_on(rows, i, depth)
            last = depth == row.depth
            branches += (tee if more else end) if last else (bar if more else "   ")
        out.append((branches, row.text, "" if row.value is None else number(row.value)))
    return out


def _goes_on(rows: tuple[SizeRow, ...], at: int, depth: int) -> bool:
    """True if another row at ``depth`` follows below the same parent."""
    for row in rows[at + 1 :]:
        if row.depth < depth:
            return False
        if row.depth == depth:
            return True
    return False


def stack_lines(
    autodiff: AutodiffRecord, key: str, width: int = 100, ascii_only: bool = False
) -> list[Line]:
    """All facts about one stack: why it is there, its size as formula and tree, its bytes."""
    found = next(((t, x) for t, x, k in stacks_of(autodiff) if k == key), None)
    if found is None:
        return []
    task, x = found
    heap = "real heap" if x.real else "integer heap"
    where = f"  line {x.line}" if x.line else ""
    out = [
        Line(
            ((x.name or "(value)", "title"), (f"  {type_text(x)}", "type"),
             (f"  task {task.index}  {heap}{where}", "dim"),
             ("  takes the most" if x.peak else "", "warn")),
            ("stack", key), line=x.line,
        )
    ]  # fmt: skip
    if x.forced_by:
        out += _named("forced by", x.forced_by, width)
    out += _named("slots", _slots(x, autodiff.sized), width)
    if len(x.tree) > 1:
        for branches, text, value in tree_texts(x.tree, ascii_only):
            equal = f" = {value}" if value else ""
            out.append(
                Line(
                    ((f"{' ' * _NAMES}{branches}", "gutter"), (text, ""), (equal, "num")),
                    ("tree", text),
                )
            )
    for leaf in x.leaves if x.leaves and x.leaves[0].text != x.formula else ():
        value = number(leaf.value) if leaf.value is not None else "not known"
        out.append(Line(((f"{' ' * _NAMES}", ""), (leaf.text, "accent"), (f" = {value}", "num"))))
    if autodiff.sized:
        text = f"{number(x.slots)} x {x.entry} B = {fmt.size(x.bytes)} a row, "
        text += f"{fmt.counted(x.rows, 'row')}: {fmt.size(x.total)}"
        out += _named("bytes", text, width)
    return out


def _slots(x: StackRecord, sized: bool) -> str:
    """``n + 1 = 33``, ``12, known when compiled``."""
    if x.max_size:
        return f"{number(x.max_size)}, known when compiled"
    return f"{x.formula} = {number(x.slots)}" if sized else x.formula


def _named(name: str, text: str, width: int, style: str = "") -> list[Line]:
    """``name`` in a column of its own, the text wrapped next to it."""
    parts = [
        part for line in text.splitlines() for part in wrap(line, max(_NARROWEST, width - _NAMES))
    ] or [""]
    return [
        Line(
            ((cell(name if i == 0 else "", _NAMES), "dim"), (part, style)), ("fact", name, i), text
        )
        for i, part in enumerate(parts)
    ]


def predicate_text(predicate: PredicateRecord | None) -> str:
    """``captured: x[i] > 0.5; 12 iterations passed``, ``not captured: reason``."""
    if predicate is None:
        return ""
    if predicate.state == "captured":
        passed = ""
        if predicate.count is not None:
            passed = f"; {fmt.counted(predicate.count, 'iteration')} passed"
        return f"captured: {predicate.formula}{passed}"
    return f"not captured: {predicate.reason}" if predicate.reason else "not captured"


REDUCER_HEAD: Final = ("round", "task", "stack", "cells", "found by", "value", "maximum")


def reducer_rows(autodiff: AutodiffRecord) -> list[tuple[str, ...]]:
    """A row a maximum that was found before the launch, under `REDUCER_HEAD`."""
    return [
        (
            str(x.round or ""), str(x.task), x.stack, " x ".join(map(number, x.axes)), x.how,
            "" if x.value is None else number(x.value), x.formula,
        )
        for x in autodiff.reducers
    ]  # fmt: skip


def fact_texts(autodiff: AutodiffRecord) -> list[tuple[str, str]]:
    """(name, text) of what holds for the whole kernel: tasks with their predicates, maxima, caches,
    heaps, overflow. The name is empty where it is that of the line before."""
    out: list[tuple[str, str]] = []
    for task in autodiff.tasks:
        parts = [f"runs {task.trip} times"] if task.trip else []
        if autodiff.sized:
            parts.append(f"{fmt.size(task.bytes)} of heap")
        out.append(
            (f"task {task.index}", ", ".join(parts) or fmt.counted(len(task.stacks), "stack"))
        )
        if task.predicate is not None:
            out.append(("predicate", predicate_text(task.predicate)))
    for i, loop in enumerate(autodiff.plan):
        out.append(("" if i else "plan", f"line {loop.line}: {loop.choice}, {loop.text}"))
    if autodiff.reducers:
        maxima = "1 maximum" if autodiff.dispatches == 1 else f"{autodiff.dispatches} maxima"
        rounds = fmt.counted(autodiff.rounds, "round")
        out.append(("maxima", f"{maxima} found in {rounds} before the launch"))
    if autodiff.sized and stacks_of(autodiff):
        layers = [f"{x.name} {number(x.hits)} hit, {number(x.misses)} missed"
                  for x in autodiff.layers]  # fmt: skip
        if layers:
            out.append(("caches", "; ".join(layers)))
            done = fmt.counted(autodiff.evaluations, "evaluation")
            again = "1 launch" if autodiff.reused == 1 else f"{autodiff.reused} launches"
            out.append(("", f"{done} of sizes; {again} found the plan of the one before"))
        for heap in autodiff.heaps:
            text = f"{fmt.size(heap.needed)} needed, {fmt.size(heap.size)} allocated"
            out.append((f"{heap.kind} heap"[:12], text))
        out.append(("overflow", autodiff.overflow or "none; every push is checked"))
    elif autodiff.overflow:
        out.append(("overflow", autodiff.overflow))
    return out


def fact_lines(autodiff: AutodiffRecord, width: int = 100) -> list[Line]:
    """`fact_texts`, and a table of the maxima."""
    out: list[Line] = []
    for name, text in fact_texts(autodiff):
        wrong = name == "overflow" and autodiff.overflow
        good = name == "predicate" and text.startswith("captured")
        out += _named(name, text, width, "bad" if wrong else "ok" if good else "")
        if name == "maxima":
            out += _reducers(autodiff)
    return out


def _reducers(autodiff: AutodiffRecord) -> list[Line]:
    head, lines = table(
        REDUCER_HEAD,
        [
            [(text, "num" if i == 5 else "") for i, text in enumerate(row)]
            for row in reducer_rows(autodiff)
        ],
        [("reducer", i) for i in range(len(autodiff.reducers))],
        (True, True, False, True, False, True, False),
        (5, 4, 16, 24, 16, 14, 1000),
    )
    pad = ((" " * _NAMES, ""),)
    return [x._replace(spans=(*pad, *x.spans)) for x in map(trimmed, (head, *lines))]
