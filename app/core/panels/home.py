"""The home matrix: a row a kernel, a group of columns a backend."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Final

from ....engine.inspect.record import (
    BackendRecord,
    CompileRecord,
    KernelRecord,
    ParamRecord,
    Record,
)
from .. import format as fmt
from ..lines import Line, Span, table
from .machine import registers, spills
from .sides import amounts_text, last_launch, launch_text, verdict_of, verdict_texts

__all__ = [
    "absent", "absent_lines", "backends_of", "detail", "devices_of", "matrix", "unlaunched",
]  # fmt: skip


def backends_of(record: Record) -> list[str]:
    """Every backend some kernel has a record for, in order of appearance."""
    return list(dict.fromkeys(b.backend for k in record.kernels for b in k.backends))


# What is shown, from the widest screen to the narrowest: columns of each backend that runs kernels,
# of the interpreter (the oracle of agreement, not a rival), and of the kernel itself.
_RIVALS: Final = ("launch", "against", "agreement")
"""Only where several backends launch."""
_DIFFERENCES: Final = ("median", "agreement")
"""Only where a result differs: how far matters more than what was compiled only."""
_PLANS: Final = (
    (("launch", "against", "agreement", "cold", "warm", "size", "rate"), ("launch", "cold"),
     ("caches",)),
    (("launch", "against", "agreement", "cold", "warm", "size", "rate"), ("launch",), ("caches",)),
    (("launch", "against", "agreement", "cold", "warm", "size"), ("launch",), ("caches",)),
    (("launch", "against", "agreement", "cold", "rate"), ("launch",), ("caches",)),
    (("launch", "against", "agreement", "cold", "rate"), (), ("caches",)),
    (("launch", "agreement", "cold", "rate"), (), ()),
    (_RIVALS, (), ()),
    (("launch", "agreement", "cold"), (), ()),
    (("launch", "agreement"), (), ()),
    (("median", "agreement"), (), ()),
    (_DIFFERENCES, (), ()),
    (("median", "verdict"), (), ()),
    (("median", "verdict"), (), ()),
)  # fmt: skip


def matrix(
    record: Record,
    width: int,
    history: Mapping[str, Sequence[float]] | None = None,
    ascii_only: bool = False,
) -> tuple[list[Line], list[Line]]:
    """(header lines, one line a kernel); columns are dropped, not squeezed, when room is short.

    Kernels of several files stand under their file's name. A backend that is absent for every
    kernel has no columns: `absent` tells its reason once.
    """
    missing = {name for name, _ in absent(record)}
    names = [n for n in backends_of(record) if n not in missing]
    held = {name for name, _ in unlaunched(record)}
    kept = {k: v for k, v in (history or {}).items() if len(v) > 1}
    head: list[Line] = []
    lines: list[Line] = []
    rivals = any(kernel.verdicts for kernel in record.kernels)
    differs = any(_state(kernel) == "differs" for kernel in record.kernels)
    for (columns, oracle, extra), compiled in zip(_PLANS, _UNLAUNCHED, strict=True):
        if (columns is _RIVALS and not rivals) or (columns is _DIFFERENCES and not differs):
            continue
        groups: list[tuple[str, Sequence[str]]] = []
        for name in names:
            if name in held:
                groups.append((name, _that_hold(record, name, compiled)))
            elif name == "interp" and len(names) > 1:
                groups.append((name, oracle))
            else:
                groups.append((name, _that_hold(record, name, columns)))
        groups = [(n, c) for n, c in groups if c]
        head, lines = _matrix(record, groups, extra, kept, ascii_only)
        if sum(len(t) for t, _ in head[-1].spans) <= width:
            break
    return head, _under_files(record, lines)


def _under_files(record: Record, lines: list[Line]) -> list[Line]:
    """The rows with a line above those of each file, if there are several."""
    files = list(dict.fromkeys(k.file for k in record.kernels))
    if len(files) < 2:
        return lines
    from ..session import labels_of

    out: list[Line] = []
    labels = labels_of(files)
    at = ""
    for kernel, line in zip(record.kernels, lines, strict=True):
        if kernel.file != at:
            at = kernel.file
            out.append(Line(((labels[at], "head"),), ("file", at), at))
        out.append(line)
    return out


# The same for a backend that compiled what cannot be launched here.
_UNLAUNCHED: Final = (
    ("cold", "finished", "size", "registers", "launch"),
    ("cold", "finished", "size", "registers", "launch"),
    ("cold", "finished", "size", "registers", "launch"),
    ("cold", "finished", "size", "registers"),
    ("cold", "finished", "size", "registers"),
    ("cold", "size", "registers"),
    ("cold", "size", "registers"),
    ("cold", "size", "registers"),
    ("cold", "registers"),
    ("registers",),
    (),
    ("registers",),
    (),
)
_LIMITS: Final = {
    "cold": 8, "warm": 8, "launch": 26, "median": 8, "rate": 24, "agreement": 34, "verdict": 1,
    "finished": 10, "size": 9, "registers": 9, "against": 20,
}  # fmt: skip
# What usually comes is given its room before it is there.
_LEAST: Final = {"cold": 7, "warm": 7, "launch": 14, "median": 7, "rate": 9, "agreement": 13}
_RIGHT: Final = ("cold", "warm", "launch", "median", "rate", "finished", "size", "registers")
_HEADS: Final = {"verdict": "", "finished": "statements"}


def absent(record: Record) -> list[tuple[str, str]]:
    """(backend, reason) of the backends that no kernel could use."""
    out: list[tuple[str, str]] = []
    for name in backends_of(record):
        found = [b for k in record.kernels for b in k.backends if b.backend == name]
        if all(b.status == "absent" for b in found):
            reason = found[0].reason
            out.append((name, reason.removeprefix(f"{name}: ")))
    return out


def _that_hold(record: Record, name: str, columns: Sequence[str]) -> Sequence[str]:
    """The columns that a backend has something for.

    Nobody is compared with itself; one whose code has registers has a column more, if there is
    room.
    """
    kernels = record.kernels
    compared = any(v.backend == name for k in kernels for v in k.verdicts)
    out = [c for c in columns if c != "against" or compared]
    machines = [b.compile.machine for k in kernels if (b := k.backend(name)) and b.compile]
    if not any(registers(m) for m in machines):
        out = [c for c in out if c != "registers"]
    elif "rate" in out:
        out.append("registers")
    return out


def unlaunched(record: Record) -> list[tuple[str, str]]:
    """(backend, reason) of the backends that were compiled for and cannot launch."""
    out: list[tuple[str, str]] = []
    for name in backends_of(record):
        found = [b for k in record.kernels for b in k.backends if b.backend == name]
        reasons = [b.unlaunched for b in found if b.unlaunched]
        if reasons and not any(b.launches for b in found):
            out.append((name, reasons[0]))
    return out


def devices_of(record: Record) -> list[str]:
    """What kernels were launched on beside the host, a line each."""
    found = (b.device for k in record.kernels for b in k.backends if b.device is not None)
    return list(dict.fromkeys(fmt.device(device) for device in found))


def absent_lines(record: Record) -> list[Line]:
    """The backends that are absent or launch nothing, those with the same reason on one line."""
    reasons: dict[str, list[str]] = {}
    for name, reason in absent(record):
        reasons.setdefault(reason, []).append(name)
    for name, reason in unlaunched(record):
        reasons.setdefault(f"compiled, not launched: {reason}", []).append(name)
    return [
        Line(((f"   {', '.join(names)}: ", "accent"), (reason, "dim")))
        for reason, names in reasons.items()
    ]


def _matrix(
    record: Record,
    groups: Sequence[tuple[str, Sequence[str]]],
    extra: Sequence[str],
    history: Mapping[str, Sequence[float]],
    ascii_only: bool,
) -> tuple[list[Line], list[Line]]:
    saves = bool(history) and not ascii_only
    header = ["", "kernel", "statements", *(["saves"] if saves else [])]
    right = [False, False, True, *([False] if saves else [])]
    limits = [1, 28, 14, *([10] if saves else [])]
    least = [1, 0, 0, *([0] if saves else [])]
    fixed = len(header)
    for name, columns in groups:
        header += [_HEADS.get(c, c) for c in columns]
        right += [c in _RIGHT for c in columns]
        limits += [_LIMITS[c] for c in columns]
        room = [_LEAST.get(c, 0) for c in columns]
        if len(columns) == 1:  # room for the name of the group
            room = [max(*room, len(name) + 3)]
        least += room
    header += extra
    right += [False] * len(extra)
    limits += [8] * len(extra)
    least += [0] * len(extra)
    rows = [_row(k, groups, extra, history, ascii_only, saves) for k in record.kernels]
    head, lines = table(header, rows, [k.id for k in record.kernels], right, limits, 2, least)
    top: list[Span] = [(" " * sum(len(t) for t, _ in head.spans[:fixed]), "")]
    rule = "-" if ascii_only else "─"
    at = fixed
    for name, columns in groups:
        size = sum(len(t) for t, _ in head.spans[at : at + len(columns)])
        at += len(columns)
        top.append((f"{rule} {name} ".ljust(size - 2, rule)[: size - 2] + "  ", "accent"))
    return [Line(tuple(top)), head], lines


def _row(
    kernel: KernelRecord,
    groups: Sequence[tuple[str, Sequence[str]]],
    extra: Sequence[str],
    history: Mapping[str, Sequence[float]],
    ascii_only: bool,
    saves: bool,
) -> list[Span]:
    compiled = next((b.compile for b in kernel.backends if b.compile is not None), None)
    state = _state(kernel)
    style = {"ok": "ok", "error": "bad", "differs": "bad", "stale": "warn"}.get(state, "dim")
    out: list[Span] = [
        (fmt.GLYPHS.get(state, (" ", " "))[ascii_only], style),
        (kernel.name, "title"),
        (fmt.statements(compiled), ""),
    ]
    if saves:
        out.append((fmt.spark(list(history.get(kernel.id, ())), 10), "accent"))
    for name, columns in groups:
        out += _cells(kernel, kernel.backend(name), columns, ascii_only)
    if extra:
        primary = next((b for b in kernel.backends if b.caches), None)
        caches = primary.caches if primary else ()
        out.append(("".join(fmt.GLYPHS[c.state][ascii_only] for c in caches), "dim"))
    return out


def _state(kernel: KernelRecord) -> str:
    if kernel.errors or any(b.status == "error" for b in kernel.backends):
        return "stale" if kernel.stale else "error"
    if kernel.stale:
        return "stale"
    found = [b.agreement for b in kernel.backends if b.agreement is not None]
    if any(a.state == "differs" or a.check == "failed" for a in found):
        return "differs"
    return "ok" if any(b.status == "ok" for b in kernel.backends) else ""


def _cells(
    kernel: KernelRecord, backend: BackendRecord | None, columns: Sequence[str], ascii_only: bool
) -> list[Span]:
    if backend is None or (backend.status != "ok" and backend.compile is None):
        reason = "…" if backend is None else fmt.backend_reason(kernel, backend)
        style = "bad" if backend is not None and backend.status == "error" else "dim"
        # The reason takes the first column; the others of the group stay empty.
        return [(fmt.first_line(reason) if i == 0 else "", style) for i in range(len(columns))]
    launch = last_launch(backend)
    compiled = backend.compile
    found = backend.agreement
    bad = found is not None and (found.state == "differs" or found.check == "failed")
    agrees = "bad" if bad else "ok" if found is not None and found.state == "ok" else "dim"
    oracle = backend.backend == "interp"
    verdict = "oracle" if oracle else fmt.agreement(found, ascii_only)
    mark = fmt.GLYPHS["differs" if bad else found.state][ascii_only] if found else ""
    values: dict[str, Span] = {
        # A compile that failed on the way has no times.
        "cold": (fmt.duration_ms(compiled.cold_ms) if compiled and compiled.cold_ms else "", ""),
        "warm": (fmt.duration_ms(compiled.warm_ms) if compiled and compiled.warm_ms else "", ""),
        "launch": (launch_text(kernel, launch, spread=not oracle) if launch else "", "num"),
        "median": (fmt.duration_us(launch.median_us) if launch else "", "num"),
        "rate": (fmt.throughput(launch) if launch else "", ""),
        "against": _against(kernel, backend),
        "agreement": (verdict, agrees),
        "verdict": (mark, agrees),
        **_of_code(compiled),
    }
    if backend.unlaunched:
        values["launch"] = (backend.unlaunched, "dim")
    old = _awaited(backend.earlier)
    return [(values[c][0], "dim") if c in old else values[c] for c in columns]


def _of_code(compiled: CompileRecord | None) -> dict[str, Span]:
    """Cells about the code; of code for a GPU registers of the task that takes the most."""
    machine = compiled.machine if compiled is not None else None
    shots = compiled.snapshots if compiled is not None else ()
    size = compiled.code_bytes if compiled is not None else 0
    return {
        "finished": (str(shots[-1].ops) if shots else "", ""),
        "size": (fmt.size(size) if size else "", ""),
        "registers": (registers(machine), "warn" if spills(machine) else "num"),
    }


def _awaited(earlier: Sequence[str]) -> frozenset[str]:
    """Columns whose values are those of the save before while new ones are made."""
    columns: set[str] = set()
    if "launches" in earlier:
        columns |= {"launch", "median", "rate", "agreement", "verdict", "against"}
    if "passes" in earlier:
        columns |= {"cold", "warm"}
    return frozenset(columns)


def _against(kernel: KernelRecord, backend: BackendRecord) -> Span:
    found = verdict_of(kernel, backend.backend)
    words = {"slower": "warn", "faster": "ok"}
    style = words.get(found.verdict, "dim") if found is not None else ""
    return fmt.against(found), style


def detail(kernel: KernelRecord, ascii_only: bool = False) -> list[Line]:
    """What the matrix has no room for: signature, workloads, reasons, what differs."""
    signature = ", ".join(map(_param, kernel.params))
    returns = f" -> {kernel.returns}" if kernel.returns else ""
    out = [Line(((kernel.name, "title"), (f"({signature}){returns}", "")))]
    place = f"{os.path.basename(kernel.file)}:{kernel.line}"
    of = f"  object: {kernel.instance}" if kernel.instance else ""
    about = fmt.first_line(kernel.doc)
    out.append(Line(((place, "accent"), (of, ""), (f"  {about}" if about else "", "dim"))))
    for backend in kernel.backends:
        found = backend.agreement
        if found is not None and found.first_difference:
            more = f"  ({found.differing:,} of {found.elements:,})" if found.differing else ""
            out.append(Line(((f"{backend.backend} differs ", "bad"),
                             (found.first_difference, ""), (more, "dim"))))  # fmt: skip
        if found is not None and found.check == "failed":
            out.append(Line(((f"{backend.backend} check failed ", "bad"),
                             (found.check_message, ""))))  # fmt: skip
        if backend.status == "not_run":
            out.append(Line(((f"{backend.backend} ", "accent"), (backend.reason, "dim"))))
    out += _missed(kernel, ascii_only)
    out += [Line(((text, ""),)) for text in verdict_texts(kernel)]
    width = max((len(w.label) for w in kernel.workloads), default=0)
    for workload in kernel.workloads:
        if workload.origin == "none":
            out.append(Line((("no arguments ", "warn"), (workload.reason, ""))))
        else:
            args = _counted(workload.args)
            twice = workload.origin == workload.label
            origin = "" if twice else f"{workload.origin:<9} "
            label = f"{workload.label:<{width}}"
            amounts = amounts_text(workload)
            amounts = f"  {amounts}" if amounts else ""
            out.append(Line(((origin, "dim"), (label, ""), (amounts, ""), (f"  {args}", "dim"))))
    return out


def _missed(kernel: KernelRecord, ascii_only: bool) -> list[Line]:
    """Why the caches would not have the kernel, by layer, for the backend that comes first."""
    primary = next((b for b in kernel.backends if b.caches), None)
    return [
        Line(((f"{fmt.GLYPHS[x.state][ascii_only]} {x.name} {x.state} ", "warn"), (x.reason, "")))
        for x in (primary.caches if primary is not None else ())
        if x.state in ("miss", "damaged") or (x.state == "bypass" and x.name == "fastcache")
    ]


def _counted(args: Sequence[str]) -> str:
    """``7 x f32[32], 0.05``: equal neighbours told once."""
    parts = [(text, len(list(group))) for text, group in groupby(args)]
    return ", ".join(text if n == 1 else f"{n} x {text}" for text, n in parts)


def _param(param: ParamRecord) -> str:
    """``x: f32[:,:]``, ``n: i32``, ``tank: Tank``, ``self``."""
    if param.kind == "instance":
        return param.name
    if param.kind == "ndarray":
        return f"{param.name}: {param.dtype}[{','.join(':' * param.ndim)}]"
    text = param.annotation if param.kind in ("matrix", "record", "struct", "tensor") else ""
    return f"{param.name}: {text or param.dtype or param.kind}"
