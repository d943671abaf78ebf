"""Numbers and states as short text, the same in the studio, the reports and the queries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ...engine.inspect.record import (
    AgreementRecord,
    BackendRecord,
    CompileRecord,
    DeviceRecord,
    ErrorRecord,
    KernelRecord,
    LaunchRecord,
    PassRun,
    VerdictRecord,
)
from ...engine.inspect.verdicts import CPU_TIME, DEVICE_TIME, WALL_CLOCK

__all__ = [
    "GLYPHS", "against", "against_heading", "against_short", "agreement", "backend_reason",
    "changed_ops", "count", "counted", "device", "device_time", "duration_ms", "duration_us",
    "error_text", "first_line", "launch_time", "marks", "number", "pass_label", "placed",
    "run_place", "samples_of", "size", "spark", "statements", "text_rank", "text_title",
    "throughput", "throughput_waited", "ulps", "unlaunched_reason", "verdict", "waited",
]  # fmt: skip

# Glyph of a state, and its ASCII form.
GLYPHS: Final[dict[str, tuple[str, str]]] = {
    "changed": ("●", "*"), "noop": ("○", "."), "failed": ("✗", "x"), "skipped": ("–", "-"),
    "ok": ("✓", "ok"), "differs": ("≠", "!="), "unknown": ("?", "?"),
    "hit": ("◆", "H"), "miss": ("◇", "M"), "bypass": ("▹", "B"), "off": ("·", "o"),
    "damaged": ("!", "!"),
    "not_applicable": (" ", " "), "absent": ("–", "-"), "error": ("✗", "x"), "stale": ("◌", "~"),
    "pending": ("◔", ":"),
}  # fmt: skip
_UNITS: Final = ((10, "KiB"), (20, "MiB"), (30, "GiB"), (40, "TiB"))
_CLOCKS: Final = {WALL_CLOCK: ", wall", DEVICE_TIME: ", device", CPU_TIME: ", CPU"}
_BARS: Final = "▁▂▃▄▅▆▇█"


def marks(ascii_only: bool = False) -> dict[str, str]:
    """The glyph before a cell that is pending or stale, by the name of its style; see `table`."""
    return {state: GLYPHS[state][ascii_only] for state in ("pending", "stale")}


def duration_us(us: float | None) -> str:
    """Microseconds with three digits and a fitting unit: ``812 ns``, ``3.62 ms``."""
    if us is None:
        return ""
    for limit, scale, unit in ((1, 1e3, "ns"), (1e3, 1, "us"), (1e6, 1e-3, "ms")):
        if us < limit:
            return f"{_digits(us * scale)} {unit}"
    return f"{_digits(us * 1e-6)} s"


def duration_ms(ms: float | None) -> str:
    return "" if ms is None else duration_us(ms * 1e3)


def _digits(value: float) -> str:
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def number(value: float) -> str:
    """Three digits, and all of those before the point: ``0.0156``, ``42.3``, ``1,020``."""
    return f"{value:,.0f}" if value >= 999.5 else f"{value:.3g}"


def count(n: float) -> str:
    """``1,234``; from 10,000 on ``12.3k``, ``4.5M``."""
    if n < 10_000:
        return f"{n:,.0f}"
    for limit, unit in ((1e6, "k"), (1e9, "M"), (1e12, "G")):
        if n < limit:
            return f"{_digits(n / (limit / 1e3))}{unit}"
    return f"{_digits(n / 1e12)}T"


def size(n: int) -> str:
    """Bytes: ``512 B``, ``64 KiB``, ``1.50 MiB``."""
    if n < 1 << 10:
        return f"{n} B"
    bits, unit = next((b, u) for b, u in _UNITS if n < 1 << (b + 10) or u == "TiB")
    whole, rest = divmod(n, 1 << bits)
    return f"{whole:,} {unit}" if not rest else f"{_digits(n / (1 << bits))} {unit}"


def counted(n: int, thing: str) -> str:
    """``1 parameter``, ``2 parameters``."""
    return f"{n:,} {thing}" if n == 1 else f"{n:,} {thing}s"


def device(found: DeviceRecord) -> str:
    """``NVIDIA H200, compute capability 9.0, 132 SMs, 140 GiB, driver 13.0``."""
    units = "SMs" if found.capability else "compute units"
    parts = [
        found.name,
        f"compute capability {found.capability}" if found.capability else "",
        f"{found.multiprocessors} {units}" if found.multiprocessors else "",
        size(found.total_bytes) if found.total_bytes else "",
        f"driver {found.driver}" if found.driver else "",
    ]
    return ", ".join(part for part in parts if part)


def launch_time(launch: LaunchRecord) -> str:
    """``3.62 ms ± 0.04``, what a caller waits for, by the wall clock on every backend.

    The spread is the median absolute deviation in the same unit; a single launch has none. Of a
    record that knows no more than a device's own time, this is that.
    """
    if launch.wall_us is None:
        return _spread(launch.median_us, launch.mad_us, launch.n)
    return _spread(launch.wall_us, launch.wall_mad_us or 0.0, launch.n)


def device_time(launch: LaunchRecord) -> str:
    """The same of a device's own time; empty for launches on the host."""
    return _spread(launch.median_us, launch.mad_us, launch.n) if launch.by_device else ""


def waited(launch: LaunchRecord) -> float:
    """The median, in microseconds, of what `launch_time` shows."""
    return launch.median_us if launch.wall_us is None else launch.wall_us


def _spread(median_us: float, mad_us: float, n: int) -> str:
    text = duration_us(median_us)
    if n == 1:
        return text
    number, _, unit = text.partition(" ")
    scale = float(number) / median_us if median_us else 0.0
    return f"{number} {unit} ± {_digits(mad_us * scale)}"


def throughput(launch: LaunchRecord) -> str:
    """``47.1 GB/s 8.0 GFLOP/s``, whichever is known and not nothing; with ``device`` where that is
    over a device's own time."""
    rates = _rates(launch, 1.0)
    return f"{rates} device" if rates and launch.by_device else rates


def throughput_waited(launch: LaunchRecord) -> str:
    """The same over `launch_time`, so that backends compare."""
    if not launch.wall_us:
        return throughput(launch)
    return _rates(launch, launch.median_us / launch.wall_us)


def _rates(launch: LaunchRecord, factor: float) -> str:
    parts: list[str] = []
    if launch.gbps:
        parts.append(_rate(launch.gbps * factor) + "B/s")
    if launch.gflops:
        parts.append(_rate(launch.gflops * factor) + "FLOP/s")
    return " ".join(parts)


def verdict(found: VerdictRecord) -> str:
    """``opencl 1.12x of cpu by wall clock, band 0.06: slower``."""
    by = f" by {found.clock}" if found.clock else ""
    why = f" ({found.reason})" if found.reason else ""
    return (
        f"{found.backend} {_times(found.ratio)} of {found.against}{by}, "
        f"band {_band(found.band)}: {found.verdict}{why}"
    )


def against(found: VerdictRecord | None) -> str:
    """``1.12x ± 0.06 cpu, wall clock: slower``; empty where there is no verdict."""
    if found is None:
        return ""
    clock = f", {found.clock}" if found.clock else ""
    return f"{_banded(found)} {found.against}{clock}: {_word(found)}"


def against_short(found: VerdictRecord | None, heading: str) -> str:
    """``1.12x ±0.06 slower``, ``1.01x ±0.03 noise``; its base follows if ``heading`` differs."""
    if found is None:
        return ""
    own = against_heading(found)
    rest = "" if own == heading else f" ({own.removeprefix('against ')})"
    return f"{_banded(found, '±')} {_word(found)}{rest}"


def against_heading(found: VerdictRecord) -> str:
    """The backend and clock that a verdict compares with: ``against cpu, wall``."""
    return f"against {found.against}{_CLOCKS.get(found.clock, '')}"


def _word(found: VerdictRecord) -> str:
    return "noise" if found.verdict == "within noise" else found.verdict


def _banded(found: VerdictRecord, sign: str = "± ") -> str:
    return f"{_times(found.ratio)} {sign}{_band(found.band)}"


def _times(ratio: float) -> str:
    return f"{ratio:.2f}x" if 0.1 <= ratio < 100 else f"{ratio:.{3 if ratio >= 1 else 2}g}x"


def _band(band: float) -> str:
    return f"{band:.2f}" if band >= 0.005 else f"{band:.1g}"


def _rate(giga: float) -> str:
    """Giga-units per second with a fitting prefix: ``47.1 G``, ``812 M``."""
    for least, scale, prefix in ((1e3, 1e-3, "T"), (1.0, 1.0, "G"), (1e-3, 1e3, "M")):
        if giga >= least:
            return f"{_digits(giga * scale)} {prefix}"
    return f"{_digits(giga * 1e6)} k"


def agreement(found: AgreementRecord | None, ascii_only: bool = False, *, full: bool = True) -> str:
    """``✓ exact over 64 elements``, ``✓ max 2e-07, 3 ulp over 64 elements``,
    ``≠ differs max 0.5 at y[3], 9 ulp``, ``? reason``.

    full: False for a narrow column: ``✓ exact of 64``; a ``+`` after the number says that some
    workloads were not compared.
    """
    if found is None:
        return ""
    mark = GLYPHS[found.verdict][ascii_only]
    check = "" if found.check != "failed" else ", check failed"
    if found.state == "unknown":
        passed = "; the author's check passed" if full and found.check == "passed" else ""
        return f"{mark} {first_line(found.reason)}".rstrip() + passed + check
    error = f"max {found.max_abs:.1e}{ulps(found)}"
    if found.state == "ok":
        text = error if found.max_abs else "exact"
        failed = "check failed, else " if check else ""
        return f"{mark} {failed}{text} {_over(found) if full else _of(found)}"
    where = found.first_difference.partition(": ")[0]
    at = f" at {where}" if where else ""
    return f"{mark} differs max {found.max_abs:.1e}{at}{ulps(found)}{check}"


_FAR_ULP: Final = 100_000


def ulps(found: AgreementRecord) -> str:
    """``, 3 ulp``; empty for none.

    From 100,000 on, the number of floats between two values says only that they have opposite
    signs or differ in order of magnitude. Then the text is ``, rel 0.5`` for values that differ;
    values that agree are that far apart only if both are near 0 compared with the largest of the
    array.
    """
    if found.max_ulp < _FAR_ULP:
        return f", {count(found.max_ulp)} ulp" if found.max_ulp else ""
    return ", near 0" if found.state == "ok" else f", rel {found.max_rel:.2g}"


def _over(found: AgreementRecord) -> str:
    """``over 64 elements (9 of them NaN); not compared: n=4096``."""
    text = f"over {counted(found.elements, 'element')}"
    text += f" ({found.nans:,} of them NaN)" if found.nans else ""
    return text + (f"; not compared: {', '.join(found.uncompared)}" if found.uncompared else "")


def _of(found: AgreementRecord) -> str:
    nans = f", {count(found.nans)} NaN" if found.nans else ""
    return f"of {count(found.elements)}{'+' if found.uncompared else ''}{nans}"


def statements(compiled: CompileRecord | None) -> str:
    """``42 -> 17``: statements before the first pass and after the last."""
    if compiled is None or not compiled.snapshots:
        return ""
    return f"{compiled.snapshots[0].ops} -> {compiled.snapshots[-1].ops}"


def run_place(run: PassRun) -> str:
    """``simplify_I, round 2, task 0``."""
    parts = [run.stage]
    if run.round:
        parts.append(f"round {run.round}")
    if run.task is not None:
        parts.append(f"task {run.task}")
    return ", ".join(parts)


def pass_label(run: PassRun) -> str:
    """``simplify_I/2 die`` with the round after the slash and the task in brackets."""
    return placed(run.stage, run.round, run.name, run.task)


def placed(stage: str, round: int, name: str, task: int | None) -> str:
    """`pass_label` of its parts."""
    where = f"{stage}/{round}" if round else stage
    return f"{where} {name}" + (f" [{task}]" if task is not None else "")


def changed_ops(run: PassRun) -> str:
    """``+3 -1 ~2 >1``: the ops that a run added, removed, rewrote and moved."""
    counts = (("+", run.added), ("-", run.removed), ("~", run.rewritten), (">", run.moved))
    return " ".join(f"{sign}{n}" for sign, n in counts if n)


_TEXTS: Final = {
    "opencl_c": "OpenCL C", "llvm_ir": "LLVM IR", "llvm_ir_optimized": "optimised LLVM IR",
    "spirv": "SPIR-V", "isa": "AMDGPU assembly", "ptx": "PTX", "sass": "SASS", "asm": "assembly",
}  # fmt: skip


def text_title(name: str) -> str:
    """The title of a generated text, as people call it."""
    return _TEXTS.get(name, name)


def text_rank(name: str) -> int:
    """Its place in the order in which the texts are made from each other; -1 for others."""
    return list(_TEXTS).index(name) if name in _TEXTS else -1


def spark(values: list[float], width: int = 12) -> str:
    """A sparkline of the last ``width`` values, lowest to highest."""
    values = values[-width:]
    if not values:
        return ""
    low, high = min(values), max(values)
    if high == low:
        return _BARS[3] * len(values)
    return "".join(_BARS[int((v - low) / (high - low) * 7.999)] for v in values)


def first_line(text: str) -> str:
    return text.strip().splitlines()[0] if text.strip() else ""


def error_text(error: ErrorRecord) -> str:
    """The whole error for a terminal: place, line with carets, message, hint."""
    if error.rendered:
        return f"{error.kind}: {error.rendered}"
    out = [f"{error.kind}: {error.message}"]
    if error.file:
        where = f" in {error.function}" if error.function else ""
        out.insert(0, f'File "{error.file}", line {error.line}{where}:')
        if error.source:
            stripped = error.source.lstrip()
            indent = len(error.source) - len(stripped)
            width = error.end_col - error.col if error.end_line in (0, error.line) else 1
            out.insert(1, "    " + stripped.rstrip())
            out.insert(2, "    " + " " * max(0, error.col - indent) + "^" * max(1, width))
    if error.hint:
        out.append(f"hint: {error.hint}")
    return "\n".join(out)


def backend_reason(kernel: KernelRecord, backend: BackendRecord) -> str:
    """The reason why a backend has no result, or the first error's first line.

    Missing arguments are reported with a remedy; the kernel's workloads say why they are missing.
    """
    if any(w.origin == "none" and w.reason == backend.reason != "" for w in kernel.workloads):
        return _no_arguments(backend.reason)
    if backend.reason:
        return backend.reason
    return first_line(backend.errors[0].message) if backend.errors else backend.status


def unlaunched_reason(kernel: KernelRecord, backend: BackendRecord) -> str:
    """The reason why the compiled kernel was not launched."""
    if backend.unlaunched:
        return backend.unlaunched
    for workload in kernel.workloads:
        if workload.origin == "none":
            return _no_arguments(workload.reason)
    found = backend.agreement
    if found is not None and found.reason:
        return first_line(found.reason)
    return backend_reason(kernel, backend) if backend.status != "ok" else "not launched"


def _no_arguments(reason: str) -> str:
    """A message with a remedy. reason: why no synthetic inputs could be made."""
    if "did not call" in reason:
        return "no arguments: not called in the run; give a workload"
    if "data_oriented" in reason:
        return "no arguments: decorate its class with @qd.data_oriented"
    if "no object of" in reason:
        return "no arguments: make an object at the top level, or --run"
    return "no arguments: give a workload, or --run"


def samples_of(launch: LaunchRecord) -> list[tuple[str, Sequence[float]]]:
    """The timed samples as (clock, microseconds): two series where a device timed itself. A single
    one has no clock."""
    if launch.by_device and launch.wall_samples_us:
        return [(WALL_CLOCK, launch.wall_samples_us), (DEVICE_TIME, launch.samples_us)]
    return [("", launch.samples_us)]
