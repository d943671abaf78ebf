"""Two compared compiles as lines: for ``diff``, for the matrix, and for their own screen."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

import msgspec

from ....engine.inspect.compare import BackendComparison, Comparison, KernelComparison
from ....engine.inspect.compare_figures import Figure, Timing
from ....engine.inspect.diff import diff_listings, diff_renumbered
from ....engine.inspect.record import CompileRecord, KernelRecord, PassRun, Record
from ....engine.inspect.verdicts import CPU_TIME
from .. import format as fmt
from ..lines import Line, Span
from .changes import UNSEEN, Files, diff_lines, listing_lines, readable_of

__all__ = [
    "WORDS", "aligned_lines", "comparison_lines", "compiles_of", "kernel_lines", "pair_of",
    "parted", "parted_lines", "sides", "summary", "times_text", "verdict_word",
]  # fmt: skip

WORDS = {"same": "no change", "differs": "differs", "unknown": "unknown"}
_STYLES = {"same": "dim", "differs": "warn", "unknown": "warn"}
_VERDICTS = {"better": "ok", "worse": "warn", "faster": "ok", "slower": "warn"}


def _delta(figure: Figure) -> str:
    """``-3 loads``, ``loads 4 -> unknown``."""
    before, after = figure.before, figure.after
    if before is None or after is None:
        texts = ["unknown" if x is None else str(x) for x in (before, after)]
        return f"{figure.name} {texts[0]} -> {texts[1]}"
    name = figure.name
    if abs(after - before) == 1 and name.endswith("s") and " " not in name:
        name = {"branches": "branch"}.get(name, name[:-1])
    return f"{after - before:+d} {name}"


def times_text(timing: Timing, full: bool = True) -> str:
    """``launch 41.0 us -> 36.0 us (better)``. full: with the reason of what is unknown."""
    more = f", measuring, at most {timing.more_s:.0f} s" if timing.more_s else ""
    times = f"{fmt.duration_us(timing.before_us)} -> {fmt.duration_us(timing.after_us)}"
    if timing.clock == CPU_TIME:
        times += f" {CPU_TIME}"
    why = ""
    if timing.verdict == "unknown" and timing.reason:
        why = f": {timing.reason if full else timing.reason.partition(':')[0]}"
    if full and not timing.in_turns and not timing.reason:
        why = ", of two runs"
    return f"launch {times} ({timing.verdict}{why}{more})"


def parted(backend: BackendComparison) -> str:
    """``IR first differs after licm (simplify_I), the same again from die (checks) on``; empty if
    it does not differ."""
    if backend.parting < 0:
        return ""
    where = backend.passes[backend.parting].title() if backend.parting else "the front end"
    text = f"IR first differs after {where}"
    if backend.meeting >= 0:
        text += f", the same again from {backend.passes[backend.meeting].title()} on"
    return text


def summary(kernel: KernelComparison) -> list[Span]:
    """The effect of an edit in one line: that on the first backend on which it had any."""
    if kernel.state == "same":
        return [("no change", "dim")]
    if kernel.change in ("added", "removed"):
        return [(kernel.change, "warn")]
    found = next((b for b in kernel.backends if b.state == "differs"), None)
    parts: list[Span] = []
    if kernel.change == "renamed":
        parts.append((f"renamed from {kernel.before.rpartition(':')[2]}", "warn"))
    if kernel.signature:
        parts.append(("another signature", ""))
    parts += [(f"{o.name} {o.before} -> {o.after}", "") for o in kernel.options]
    if found is not None:
        parts += _of_backend(found)
    if kernel.state == "unknown":
        parts.append((f"unknown: {kernel.reason}", "warn"))
    elif kernel.reason:
        parts.append((kernel.reason, "warn"))
    out: list[Span] = []
    for part in parts:
        out += [(", ", "dim"), part] if out else [part]
    return out or [("differs", "")]


_SHORT = ("statements", "loads", "stores", "atomics", "registers", "spills", "% occupancy",
          "vector lanes", "adstack bytes", "code bytes")  # fmt: skip


def _of_backend(found: BackendComparison) -> list[Span]:
    known = {f.name: f for f in found.figures}
    parts: list[Span] = [(_delta(known[name]), "") for name in _SHORT if name in known]
    if found.code.state == "same":
        parts.append(("the same code", "dim"))
    elif timing := (found.timings[-1] if found.timings else None):
        parts.append((times_text(timing, False), _VERDICTS.get(timing.verdict, "dim")))
    before, after = found.agreement
    if before != after:
        style = "bad" if after == "differs" else "warn" if after != "ok" else "ok"
        parts.append((f"agreement {before or 'none'} -> {after or 'none'}", style))
    if found.reason:
        parts.append((found.reason, "warn"))
    if where := parted(found):
        parts.append((where, "accent"))
    if not parts:
        return [(f"{sides(found)}: ", "accent")]
    (text, style), *rest = parts
    return [(f"{sides(found)}: {text}", style), *rest]


def comparison_lines(found: Comparison) -> Iterator[Line]:
    """All of a comparison, kernel by kernel."""
    for note in found.notes:
        yield Line(((f"note: {note}", "dim"),))
    for kernel in found.kernels:
        yield from kernel_lines(kernel)
    if not found.kernels:
        yield Line((("no kernels to compare", "warn"),))


def verdict_word(kernel: KernelComparison) -> str:
    """``added``, ``removed``, or the word for its state."""
    return kernel.change if kernel.change in ("added", "removed") else WORDS[kernel.state]


def sides(found: BackendComparison) -> str:
    """The backend; both, where they differ: ``cpu -> cuda``."""
    return found.after if found.before == found.after else f"{found.before} -> {found.after}"


def kernel_lines(kernel: KernelComparison) -> Iterator[Line]:
    """A kernel and what differs on each backend."""
    name = kernel.name
    if kernel.change == "renamed":
        name = f"{kernel.before.rpartition(':')[2]} -> {kernel.name}"
    word = verdict_word(kernel)
    why = f": {kernel.reason}" if kernel.reason else ""
    yield Line(((name, "title"), (f"  {word}{why}", _STYLES[kernel.state])))
    if kernel.signature:
        yield Line((("  another signature", ""),))
    for option in kernel.options:
        yield Line(((f"  {option.name}: {option.before} -> {option.after}", ""),))
    for backend in kernel.backends:
        yield from _backend_lines(backend)


def _backend_lines(backend: BackendComparison) -> Iterator[Line]:
    why = f": {backend.reason}" if backend.reason else ""
    spans = (
        (f"  {sides(backend)}  ", "accent"),
        (WORDS[backend.state] + why, _STYLES[backend.state]),
    )
    yield Line(spans)
    if where := parted(backend):
        yield Line(((f"    {where}", ""),))
    if backend.code.state == "differs":
        yield Line(((f"    code differs: {', '.join(backend.code.texts)}", ""),))
    elif backend.code.state == "same" and backend.state == "differs":
        yield Line((("    the same code", ""),))
    width = max((len(f.name) for f in backend.figures), default=0)
    for figure in backend.figures:
        before, after = (
            "unknown" if x is None else f"{x:,}" for x in (figure.before, figure.after)
        )
        change = ""
        if figure.before is not None and figure.after is not None:
            change = f"  {figure.after - figure.before:+,}"
        yield Line(((f"    {figure.name:<{width}}  {before} -> {after}{change}", ""),))
    if backend.agreement[0] != backend.agreement[1]:
        before, after = (x or "none" for x in backend.agreement)
        yield Line(((f"    agreement  {before} -> {after}", "warn"),))
    for timing in backend.timings:
        band = "" if timing.band is None else f", band {timing.band:.2f}"
        text = f"{times_text(timing, False)}  {timing.ratio:.2f}x by {timing.clock}{band}"
        style = _VERDICTS.get(timing.verdict, "dim")
        yield Line(((f"    {timing.workload}: {text}", style),))
        if timing.verdict == "unknown":
            for part in textwrap.wrap(timing.reason, 70):
                yield Line(((f"      {part}", "dim"),))


def parted_lines(
    found: BackendComparison,
    old: CompileRecord,
    new: CompileRecord,
    width: int = 0,
    at: int | None = None,
    files: tuple[Files, Files] | None = None,
) -> Sequence[Line]:
    """The IR of both after the pass at which they part, as a diff; empty if they do not part.

    width: of each of two columns, 0 for one. at: after this of the aligned passes instead; the
    whole listing, if it is the same in both. files: those of both records, for the readable form;
    None for the exact one.
    """
    at = found.parting if at is None else at
    if at < 0:
        return ()
    before = old.snapshots[_place(old, [p.before for p in found.passes[: at + 1]])]
    after = new.snapshots[_place(new, [p.after for p in found.passes[: at + 1]])]
    if found.passes[at].same:
        return listing_lines(new, after if files is None else readable_of(new, after, files[1]))
    diff, renamed = diff_renumbered(before, after)
    # Locations of the old listing are in a table of its own.
    nowhere = (-1,) * len(renamed.lines)
    if files is None:
        renamed = msgspec.structs.replace(renamed, locs=nowhere)
        return diff_lines(new, renamed, after, diff, width=width)
    shown = readable_of(old, before, files[0], renamed)._replace(locs=nowhere)
    now = readable_of(new, after, files[1])
    diff = diff_listings(shown, now)
    if diff.empty:
        return [Line(((UNSEEN, "dim"),)), *listing_lines(new, now)]
    return diff_lines(new, shown, now, diff, width=width)


# ---- the passes of both


def aligned_lines(
    found: BackendComparison, old: CompileRecord, new: CompileRecord, whole: bool = False
) -> list[Line]:
    """The passes of both compiles side by side; the one at which they part is marked.

    Keys are ``("pass", index)``. whole: also passes that had no effect in either.
    """
    out: list[Line] = []
    hidden = 0
    for i, each in enumerate(found.passes):
        runs = _run(old, each.before), _run(new, each.after)
        turning = i in (found.parting, found.meeting)
        # The front end is no run, and is always there.
        quiet = i > 0 and all(r is None or r.state in ("noop", "skipped") for r in runs)
        if quiet and not turning and not whole:
            hidden += 1
            continue
        out += _hidden(hidden)
        hidden = 0
        sign = "=" if each.same else "≠"
        effects = [_effect(r) for r in runs] if i > 0 else ["", ""]
        mark = "first difference: " if i == found.parting else ""
        mark = "the same from here on: " if i == found.meeting else mark
        spans = (
            ("  ▶ " if i == found.parting else "    ", "warn"),
            (sign, "dim" if each.same else "warn"),
            (f" {effects[0]:<14}{effects[1]:<14}", "num"),
            (mark, "ok" if each.same else "warn"),
            (each.title(), "" if not each.same or not quiet else "dim"),
        )
        out.append(Line(spans, ("pass", i)))
    return out + _hidden(hidden)


def _hidden(count: int) -> list[Line]:
    if not count:
        return []
    word = "pass" if count == 1 else "passes"
    return [Line(((f"      … {count} {word} without an effect in either", "dim"),))]


def _run(compiled: CompileRecord, at: int) -> PassRun | None:
    return compiled.runs[at] if at >= 0 else None


def _effect(run: PassRun | None) -> str:
    if run is None:
        return "not run"
    if run.state != "changed":
        return "no effect" if run.state == "noop" else run.state
    return fmt.changed_ops(run) or "changed"


def _place(compiled: CompileRecord, runs: Sequence[int]) -> int:
    """The index of the listing after the last of these runs that this compile has."""
    last = max(runs)
    if last >= 0:
        return compiled.runs[last].after
    return compiled.runs[0].before if compiled.runs else 0


def compiles_of(
    found: BackendComparison, old: KernelRecord, new: KernelRecord
) -> tuple[CompileRecord, CompileRecord] | None:
    """The two compiles; None if one of them is missing."""
    a, b = old.backend(found.before), new.backend(found.after)
    if a is None or b is None or a.compile is None or b.compile is None:
        return None
    return a.compile, b.compile


def pair_of(
    found: KernelComparison, old: Record, new: Record
) -> tuple[KernelRecord, KernelRecord] | None:
    """The two records of a kernel; None if there are not two."""
    a = next((k for k in old.kernels if k.id == found.before), None)
    b = next((k for k in new.kernels if k.id == found.after), None)
    return (a, b) if a is not None and b is not None else None
