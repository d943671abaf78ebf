"""The options of a session as forms, and what they changed against the options at the start."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ....engine.inspect.compare import compare_records
from ....engine.inspect.record import ConfigEntry, KernelRecord, Record
from ....engine.inspect.settings import OptionInfo
from ....engine.inspect.verdicts import WALL_CLOCK
from .. import format as fmt
from ..forms import accepts
from ..lines import Line, Span, table
from ..memo import by_identity
from .compared import WORDS, kernel_lines
from .misc import config_of

__all__ = ["ab_lines", "form_lines", "same_sources"]


def form_lines(
    config: tuple[ConfigEntry, ...], infos: Iterable[OptionInfo]
) -> tuple[Line, list[Line]]:
    """(the header, a row an option, keyed by name): its value, and the values it may have."""
    known = {info.name: info for info in infos}
    rows: list[list[Span]] = []
    for e in config:
        info = known.get(e.name)
        changed = e.value != e.default
        rows.append([
            (e.name, "title" if changed else ""), (_shown(e.value), "warn" if changed else ""),
            (accepts(info) if info is not None else "", "dim"), (_shown(e.default), "dim"),
            (e.origin, "dim"), (info.doc if info is not None else "", "dim"),
        ])  # fmt: skip
    head, lines = table(
        ("option", "value", "accepts", "default", "from", ""), rows, [e.name for e in config],
        (False,) * 6, (34, 16, 30, 14, 8, 120),
    )  # fmt: skip
    return head, lines


def _shown(value: object) -> str:
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else str(value)


def same_sources(base: Record, now: Record) -> bool:
    """True if the files have not changed since ``base``."""
    return {f.path: f.text for f in base.files} == {f.path: f.text for f in now.files}


@by_identity(4)
def ab_lines(base: Record, now: Record, selected: str) -> Sequence[Line]:
    """Two records of the same files next to each other, a row a kernel and backend: A is ``base``.

    selected: the id of the kernel whose differences are listed below.
    """
    found = compare_records(base, now)
    kernels = {k.id: k for k in now.kernels}
    before = {k.id: k for k in base.kernels}
    out = [Line(((_options(base, now, selected), "head"),))]
    if not same_sources(base, now):
        out.append(Line((("The source changed, too: this is not the effect of the options alone.",
                          "warn"),)))  # fmt: skip
    rows: list[list[Span]] = []
    keys: list[object] = []
    for one in found.kernels:
        old, new = before.get(one.before), kernels.get(one.after)
        if old is None or new is None:
            continue
        for b in one.backends:
            timing = b.timings[-1] if b.timings else None
            verdict = timing.verdict if timing is not None else WORDS[b.state]
            style = {"better": "ok", "worse": "warn", "differs": "warn"}.get(verdict, "dim")
            times = _time(old, b.before), _time(new, b.after)
            if timing is not None and timing.clock != WALL_CLOCK:  # what the ratio is of
                both, clock = (timing.before_us, timing.after_us), timing.clock.split()[0]
                times = tuple([f"{fmt.duration_us(us)} {clock}" for us in both])
            rows.append([
                (one.name, "title"), (b.after, "accent"), *[(x, "num") for x in times],
                (f"{timing.ratio:.2f}x" if timing is not None else "", "num"), (verdict, style),
                (_statements(old, b.before), "num"), (_statements(new, b.after), "num"),
                (b.agreement[0], ""),
                (b.agreement[1], "bad" if b.agreement[1] == "differs" else ""),
            ])  # fmt: skip
            keys.append(one.after)
    if rows:
        heads = ("kernel", "backend", "A launch", "B launch", "B/A", "verdict", "A stmts",
                 "B stmts", "A agrees", "B agrees")  # fmt: skip
        right = (False, False, True, True, True, False, True, True, False, False)
        head, lines = table(heads, rows, keys, right, (28, 12, 20, 20, 7, 13, 8, 8, 9, 9))
        out += [head, *lines]
    chosen = next((k for k in found.kernels if k.after == selected), None)
    if chosen is not None:
        out += [Line(()), *kernel_lines(chosen)]
    return out


def _options(base: Record, now: Record, selected: str) -> str:
    old = {e.name: e.value for e in config_of(base, selected)}
    new = {e.name: e.value for e in config_of(now, selected)}
    names = [name for name in new if old.get(name) != new[name]]
    if not names:
        return "A and B have the same options"
    a = ", ".join(f"{name}={_shown(old.get(name))}" for name in names)
    b = ", ".join(f"{name}={_shown(new[name])}" for name in names)
    return f"A: {a}    B: {b}"


def _time(kernel: KernelRecord, backend: str) -> str:
    found = kernel.backend(backend)
    return fmt.launch_time(found.launches[-1]) if found is not None and found.launches else ""


def _statements(kernel: KernelRecord, backend: str) -> str:
    found = kernel.backend(backend)
    shots = found.compile.snapshots if found is not None and found.compile is not None else ()
    return f"{shots[-1].ops:,}" if shots else ""
