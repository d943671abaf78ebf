"""The list of pass runs. What a run changed is drawn by `changes`."""

from __future__ import annotations

from ....engine.inspect.record import CompileRecord, PassRun
from .. import format as fmt
from ..lines import Line, Span, cell
from ..memo import by_identity
from ..state import names_of

__all__ = ["list_lines", "run_title"]

_LEAST_NAME = 12


@by_identity(24)
def list_lines(
    compiled: CompileRecord, *, fold_noops: bool = True, ascii_only: bool = False, width: int = 0
) -> list[Line]:
    """One line a run, keyed by its name; neighbouring runs without effect folded into one.

    A stage's name stands on a line of its own where the stage begins. width: columns to fit in;
    times, then parts of names are left out for it; 0 for as many as it takes.
    """
    out: list[Line] = []
    stage: str | None = None
    quiet: list[int] = []
    names = names_of(compiled)

    def flush() -> None:
        if quiet:
            n = len(quiet)
            text = f"{'':7}{fmt.GLYPHS['noop'][ascii_only]} {n} without effect"
            hidden = "\n".join(fmt.pass_label(compiled.runs[i]) for i in quiet)
            out.append(Line(((text, "dim"),), ("noops", *names[quiet[0]]), folded=hidden))
            quiet.clear()

    for i, run in enumerate(compiled.runs):
        if run.stage != stage:
            flush()
            stage = run.stage
            out.append(Line(((stage, "head"),), ("stage", *names[i])))
        if run.state == "noop" and fold_noops and not run.remarks:
            quiet.append(i)
            continue
        flush()
        out.append(_run_line(run, names[i], ascii_only, width))
    flush()
    return out


def _run_line(run: PassRun, key: object, ascii_only: bool, width: int) -> Line:
    style = {"changed": "accent", "failed": "bad"}.get(run.state, "dim")
    round = f"r{run.round}" if run.round else ""
    task = f"t{run.task}" if run.task is not None else ""
    timed = not width or width >= 62
    room = 34 if not width else min(34, max(_LEAST_NAME, width - 23 - (8 if timed else 0)))
    spans: tuple[Span, ...] = (
        (f"{round:>3} {task:<2} ", "dim"),
        (fmt.GLYPHS[run.state][ascii_only] + " ", style),
        (cell(run.name, room), "" if run.state != "noop" else "dim"),
        (_counts(run).rjust(11) + " ", "num" if run.state == "changed" else "dim"),
        ("! " if run.remarks else "  ", "warn"),
        (fmt.duration_us(run.us).rjust(8) if timed else "", "dim"),
    )
    return Line(spans, key, fmt.pass_label(run))


def _counts(run: PassRun) -> str:
    return " ".join(
        f"{sign}{n}"
        for sign, n in (
            ("+", run.added), ("-", run.removed), ("~", run.rewritten), (">", run.moved),
        )
        if n
    )  # fmt: skip


def run_title(run: PassRun, ascii_only: bool = False) -> Line:
    """The run above its diff: place, counts, time."""
    style = {"changed": "accent", "failed": "bad"}.get(run.state, "dim")
    counts = _counts(run) or ("no effect" if run.state == "noop" else "")
    return Line(
        (
            (fmt.GLYPHS[run.state][ascii_only] + " ", style),
            (run.name, "title"),
            (f"  {fmt.run_place(run)}", "dim"),
            (f"  {counts}", "num"),
            (f"  {fmt.duration_us(run.us)}", "dim"),
        )
    )
