"""A sweep: one kernel compiled and launched with several values of a compile option. Pure.

The first value is the reference. Values are visited in rounds, the reference first, the others in
every other round backwards. The launches of each are made in turns with those of the reference. A
value is ``better`` or ``worse`` only if it is in every round, beyond the noise (`compare_figures`).
Its times, and those of the reference in turns with it, are of one round, with the middle ratio:
the reference alone, at another moment, can be faster or slower by more than the difference.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape as esc
from statistics import median
from typing import Final

import msgspec

from ...engine.inspect.compare import BackendComparison, compare_kernels
from ...engine.inspect.compare_figures import Timing
from ...engine.inspect.record import BackendRecord, KernelRecord, LaunchRecord, Record
from . import format as fmt
from .lines import Line, Span, table

__all__ = [
    "Point", "Sweep", "paste_line", "plot_svg", "reference_first", "sweep_lines", "sweep_of",
    "visits",
]  # fmt: skip

Value = str | int | float | bool
_STYLES: Final = {"better": "ok", "worse": "warn", "reference": "dim"}
_LINES: Final = {"default_cpu_block_dim": "qd.cpu", "default_gpu_block_dim": "qd.gpu"}


class Point(msgspec.Struct, frozen=True):
    """A value and what came of it.

    us: of its launches; None where nothing was launched, for ``reason``. reference_us: of the
    reference in turns with it; None if they were not compared. ratio: of these two. verdict:
    against the reference: reference, better, worse, within noise, unknown. same_code: as the
    reference.
    """

    value: Value
    us: float | None
    reference_us: float | None = None
    spread_us: float = 0.0
    ratio: float | None = None
    verdict: str = "unknown"
    reason: str = ""
    same_code: bool = False
    agreement: str = ""
    statements: int = 0
    code_bytes: int = 0


class Sweep(msgspec.Struct, frozen=True):
    """The points of one kernel on one backend, the reference first. winner: the index of the best
    point; 0 if none is better than the reference."""

    kernel: str
    backend: str
    option: str
    workload: str
    clock: str
    rounds: int
    points: tuple[Point, ...]
    winner: int = 0


def visits(values: Sequence[Value], rounds: int) -> list[list[Value]]:
    """The order in which values are visited, by round."""
    first, others = values[:1], values[1:]
    return [[*first, *(others if i % 2 == 0 else reversed(others))] for i in range(rounds)]


def reference_first(values: Sequence[Value], now: Value) -> list[Value]:
    """The values without repetitions; the present one is the first, also if it was not named."""
    return list(dict.fromkeys([now, *values]))


def _kernel(record: Record, kernel: str) -> KernelRecord | None:
    return next((k for k in record.kernels if kernel in (k.id, k.name)), None)


def sweep_of(
    option: str,
    values: Sequence[Value],
    records: Sequence[Sequence[Record]],
    kernel: str,
    backend: str,
) -> Sweep:
    """The sweep of a kernel. records: by round, then by value, in the order of ``values``."""
    points = tuple(_point(value, i, records, kernel, backend) for i, value in enumerate(values))
    good = [
        i for i, p in enumerate(points)
        if i == 0 or (p.verdict == "better" and p.agreement in ("ok", "", points[0].agreement))
    ]  # fmt: skip
    winner = min(good, key=lambda i: (points[i].ratio or math.inf, i))
    if points[0].us is None:
        winner = 0
    launch = _launch(_kernel(records[0][0], kernel), backend)
    workload = launch.workload if launch is not None else ""
    clock = "device time" if launch is not None and launch.by_device else "wall clock"
    return Sweep(kernel, backend, option, workload, clock, len(records), points, winner)


def _launch(kernel: KernelRecord | None, backend: str) -> LaunchRecord | None:
    found = kernel.backend(backend) if kernel is not None else None
    return found.launches[-1] if found is not None and found.launches else None


def _point(
    value: Value, index: int, records: Sequence[Sequence[Record]], kernel: str, backend: str
) -> Point:
    pairs = [(_kernel(r[0], kernel), _kernel(r[index], kernel)) for r in records]
    found = pairs[0][1].backend(backend) if pairs[0][1] is not None else None
    if found is None or found.compile is None:
        return Point(value, None, reason=_why_not(pairs[0][1], found, backend))
    launches = [x for _, k in pairs if (x := _launch(k, backend)) is not None]
    shots = found.compile.snapshots
    agreement = found.agreement.verdict if found.agreement is not None else ""
    base = Point(
        value, None, agreement=agreement, statements=shots[-1].ops if shots else 0,
        code_bytes=found.compile.code_bytes,
    )  # fmt: skip
    if not launches:
        assert pairs[0][1] is not None
        reason = fmt.unlaunched_reason(pairs[0][1], found)
        return msgspec.structs.replace(base, reason=reason)
    us = median(x.median_us if x.by_device else fmt.waited(x) for x in launches)
    spread = max(x.mad_us for x in launches)
    base = msgspec.structs.replace(base, us=us, spread_us=spread)
    if index == 0:
        return msgspec.structs.replace(base, verdict="reference", ratio=1.0, same_code=True)
    return _judged(base, [_compared(a, b, backend) for a, b in pairs], pairs, backend)


def _why_not(kernel: KernelRecord | None, found: BackendRecord | None, backend: str) -> str:
    if kernel is None:
        return "the kernel was not found"
    if kernel.errors:
        return fmt.first_line(kernel.errors[0].message)
    if found is None:
        return f"was not compiled for {backend}"
    if found.errors:
        return fmt.first_line(found.errors[0].message)
    return fmt.first_line(fmt.backend_reason(kernel, found)) or "was not compiled"


def _compared(
    old: KernelRecord | None, new: KernelRecord | None, backend: str
) -> BackendComparison | None:
    if old is None or new is None:
        return None
    found = compare_kernels(old, new)
    return next((b for b in found.backends if b.after == backend), None)


def _judged(
    base: Point, found: Sequence[BackendComparison | None],
    pairs: Sequence[tuple[KernelRecord | None, KernelRecord | None]], backend: str,
) -> Point:  # fmt: skip
    """The verdict over all rounds; one round that says something else makes it noise."""
    verdicts: list[str] = []
    reasons: list[str] = []
    timings: list[Timing] = []
    same = all(b is not None and b.code.state == "same" for b in found)
    for one, (old, new) in zip(found, pairs, strict=True):
        timing = one.timings[-1] if one is not None and one.timings else None
        if timing is None:
            verdicts.append("unknown")
            a, b = _launch(old, backend), _launch(new, backend)
            reasons.append("was not launched in every round" if a is None or b is None else "")
            continue
        verdicts.append(timing.verdict)
        timings.append(timing)
        reasons += [timing.reason] if timing.reason else []
    verdict = verdicts[0] if len(set(verdicts)) == 1 else "within noise"
    if "unknown" in verdicts and verdict != "unknown":
        verdict = "unknown"
    if len(set(verdicts)) > 1 and not reasons:
        reasons.append(f"rounds differ: {', '.join(verdicts)}")
    base = msgspec.structs.replace(
        base, verdict=verdict, same_code=same,
        reason="; ".join(dict.fromkeys(r for r in reasons if r)),
    )  # fmt: skip
    if not timings:
        return base
    middle = sorted(timings, key=lambda t: t.ratio)[(len(timings) - 1) // 2]
    us, before = middle.after_us, middle.before_us
    return msgspec.structs.replace(base, us=us, reference_us=before, ratio=us / before)


# ---- output


def paste_line(sweep: Sweep) -> str:
    """The line of the best value, to paste into a program."""
    value = sweep.points[sweep.winner].value
    if sweep.option in _LINES:
        arch = _LINES[sweep.option]
        return (
            f"qd.loop_config(block_dim={value})    # above a loop; for all loops: "
            f"qd.init(arch={arch}, {sweep.option}={value})"
        )
    return f"qd.init({sweep.option}={value!r})"


def sweep_lines(sweep: Sweep, width: int = 80, ascii_only: bool = False) -> list[Line]:
    """A row a value with a bar of its time, then the best value as a line to paste."""
    title = f"{sweep.kernel} on {sweep.backend}, {sweep.option}"
    out = [Line(((title, "head"),))]
    if sweep.workload:
        rounds = fmt.counted(sweep.rounds, "round")
        about = f"workload {sweep.workload}, {sweep.clock}, middle of {rounds}"
        if any(p.reference_us is not None for p in sweep.points):
            about += "; launch: the reference -> the value"
        out.append(Line(((about, "dim"),)))
    room = max(8, min(40, width - 86))
    shares = _shares(sweep.points)
    rows = [_row(sweep, i, room * shares[i], ascii_only) for i in range(len(sweep.points))]
    head, lines = table(
        ("value", "launch", "", "times", "verdict", "agreement", "statements", "code"), rows,
        list(range(len(rows))), (True, True, False, True, False, False, True, True),
        (14, 20, room, 7, 12, 9, 10, 9),
    )  # fmt: skip
    out += [head, *lines]
    reasons: dict[str, list[str]] = {}
    for p in sweep.points:
        if p.reason:
            reasons.setdefault(p.reason, []).append(str(p.value))
    out += [Line(((f"{', '.join(v)}: {why}", "dim"),)) for why, v in reasons.items()]
    return [*out, _outcome(sweep)]


def _outcome(sweep: Sweep) -> Line:
    """The best value as a line to paste, or why there is none."""
    points = sweep.points
    launched = [p for p in points if p.us is not None]
    if points[0].us is None:
        return Line((("No winner: the present value was not launched.", "warn"),))
    if len(launched) > 1 and all(p.same_code for p in launched):
        text = "The code is the same for every value: the option changes nothing here."
        return Line(((text, "warn"),))
    if sweep.winner:
        line = paste_line(sweep)
        return Line((("best: ", "dim"), (line, "ok")), copy=line)
    unknown = sum(p.verdict == "unknown" for p in points)
    if unknown:
        text = f"No value was shown to be better; {unknown} could not be judged. Measure again."
        return Line(((text, "warn"),))
    return Line((("No value is better than the present one, beyond the noise.", ""),))


def _shares(points: Sequence[Point]) -> list[float]:
    """Times as shares of the longest, by their ratios to the reference where these are known."""
    first = points[0].us
    found = [
        p.ratio if p.ratio is not None else (p.us or 0.0) / (first or 1.0) for p in points
    ]  # fmt: skip
    most = max(found)
    return [x / most if most else 0.0 for x in found]


def _row(sweep: Sweep, index: int, length: float, ascii_only: bool) -> list[Span]:
    p = sweep.points[index]
    mark = "*" if index == sweep.winner and index else " "
    time = "" if p.us is None else fmt.duration_us(p.us)
    if p.reference_us is not None:
        time = f"{fmt.duration_us(p.reference_us)} -> {time}"
    elif p.us is not None:
        time += f" ± {fmt.duration_us(p.spread_us)}"
    bar = "" if not length else ("#" if ascii_only else "▇") * max(1, round(length))
    return [
        (f"{p.value}{mark}", "accent"), (time, "num"), (bar, _STYLES.get(p.verdict, "dim")),
        ("" if p.ratio is None else f"{p.ratio:.2f}x", "num"),
        (p.verdict if p.us is not None else "not launched", _STYLES.get(p.verdict, "")),
        (p.agreement, "bad" if p.agreement == "differs" else ""),
        (f"{p.statements:,}" if p.statements else "", ""),
        (fmt.size(p.code_bytes) if p.code_bytes else "", ""),
    ]  # fmt: skip


def plot_svg(sweep: Sweep) -> str:
    """The times as bars, with the spread and the verdict; for a report."""
    pairs = zip(sweep.points, _shares(sweep.points), strict=True)
    points = [(p, share) for p, share in pairs if p.us]
    if not points:
        return ""
    most = max(share * (1 + p.spread_us / (p.us or 1.0)) for p, share in points)
    left, width, step = 150, 480, 26
    height = step * len(points) + 10
    out = [
        f'<svg class="plot" viewBox="0 0 {left + width + 190} {height}" role="img" '
        f'aria-label="launch times by {esc(sweep.option)}">'
    ]
    best = sweep.points[sweep.winner]
    for i, (p, share) in enumerate(points):
        assert p.us is not None
        y, length, spread = 5 + step * i, width * share / most, p.spread_us / p.us
        low, high = left + length * max(0.0, 1 - spread), left + length * (1 + spread)
        fill = "var(--run)" if p is best else "var(--run0)"
        text = f"{fmt.duration_us(p.us)}, {p.verdict}"
        if p.reference_us is not None and p.ratio is not None:
            text = f"{fmt.duration_us(p.us)}, {p.ratio:.2f}x, {p.verdict}"
        out.append(
            f'<text class="label" x="{left - 8}" y="{y + 15}">{esc(str(p.value))}</text>'
            f'<path fill="{fill}" d="M{left} {y + 3}h{length:.1f}v16h-{length:.1f}z"/>'
            f'<path class="median" d="M{low:.1f} {y + 11}H{high:.1f}"/>'
            f'<text class="tick" x="{high + 8:.1f}" y="{y + 15}">{esc(text)}</text>'
        )
    return "".join(out) + "</svg>"
