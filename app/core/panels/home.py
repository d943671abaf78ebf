"""The home matrix: a row a kernel, a group of columns a backend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ....engine.inspect.record import BackendRecord, KernelRecord, LaunchRecord, Record
from .. import format as fmt
from ..lines import Line, Span, table

__all__ = ["absent", "absent_lines", "backends_of", "detail", "matrix"]


def backends_of(record: Record) -> list[str]:
    """Every backend some kernel has a record for, in order of appearance."""
    return list(dict.fromkeys(b.backend for k in record.kernels for b in k.backends))


def matrix(
    record: Record,
    width: int,
    history: Mapping[str, Sequence[float]] | None = None,
    ascii_only: bool = False,
) -> tuple[list[Line], list[Line]]:
    """(header lines, one line a kernel); columns are dropped, not squeezed, when room is short.

    A backend that is absent for every kernel has no columns: `absent` tells its reason once.
    """
    missing = {name for name, _ in absent(record)}
    names = [n for n in backends_of(record) if n not in missing]
    # Columns in the order in which they are given up: from the last on.
    for columns in (
        ("cold", "warm", "launch", "rate", "agreement"),
        ("cold", "launch", "rate", "agreement"),
        ("cold", "launch", "agreement"),
        ("launch", "agreement"),
        ("launch",),
    ):
        head, lines = _matrix(record, names, columns, history or {}, ascii_only)
        if sum(len(t) for t, _ in head[-1].spans) <= width:
            break
    return head, lines


_LIMITS = {"cold": 9, "warm": 9, "launch": 28, "rate": 24, "agreement": 22}


def absent(record: Record) -> list[tuple[str, str]]:
    """(backend, reason) of the backends that no kernel could use."""
    out: list[tuple[str, str]] = []
    for name in backends_of(record):
        found = [b for k in record.kernels for b in k.backends if b.backend == name]
        if all(b.status == "absent" for b in found):
            reason = found[0].reason
            out.append((name, reason.removeprefix(f"{name}: ")))
    return out


def absent_lines(record: Record) -> list[Line]:
    """The absent backends, those with the same reason on one line."""
    reasons: dict[str, list[str]] = {}
    for name, reason in absent(record):
        reasons.setdefault(reason, []).append(name)
    return [
        Line(((f"  {', '.join(names)}: ", "accent"), (reason, "dim")))
        for reason, names in reasons.items()
    ]


def _matrix(
    record: Record,
    names: Sequence[str],
    columns: Sequence[str],
    history: Mapping[str, Sequence[float]],
    ascii_only: bool,
) -> tuple[list[Line], list[Line]]:
    header = ["", "kernel", "statements"]
    right = [False, False, True]
    limits = [1, 34, 14]
    if history and not ascii_only:
        header, right, limits = [*header, "saves"], [*right, False], [*limits, 10]
    fixed = len(header)
    for _ in names:
        header += columns
        right += [c in ("cold", "warm", "launch", "rate") for c in columns]
        limits += [_LIMITS[c] for c in columns]
    header.append("caches")
    right.append(False)
    limits.append(8)
    many = len({k.file for k in record.kernels}) > 1
    saves = "saves" in header
    rows = [_row(k, names, columns, history, ascii_only, many, saves) for k in record.kernels]
    keys = [k.id for k in record.kernels]
    head, lines = table(header, rows, keys, right, limits)
    groups: list[Span] = [("".join(t for t, _ in head.spans[:fixed]), "")]
    groups = [(" " * len(groups[0][0]), "")]
    for i, name in enumerate(names):
        part = head.spans[fixed + i * len(columns) : fixed + (i + 1) * len(columns)]
        size = sum(len(t) for t, _ in part)
        rule = "-" if ascii_only else "─"
        groups.append((f"{rule} {name} ".ljust(size - 2, rule) + "  ", "accent"))
    return [Line(tuple(groups)), head], lines


def _row(
    kernel: KernelRecord,
    names: Sequence[str],
    columns: Sequence[str],
    history: Mapping[str, Sequence[float]],
    ascii_only: bool,
    many: bool,
    saves: bool,
) -> list[Span]:
    compiled = next((b.compile for b in kernel.backends if b.compile is not None), None)
    state = _state(kernel)
    style = {"ok": "ok", "error": "bad", "stale": "warn"}.get(state, "dim")
    out: list[Span] = [
        (fmt.GLYPHS.get(state, (" ", " "))[ascii_only], style),
        (kernel.id if many else kernel.name, "title"),
        (fmt.statements(compiled), ""),
    ]
    if saves:
        out.append((fmt.spark(list(history.get(kernel.id, ())), 10), "accent"))
    for name in names:
        out += _cells(kernel, kernel.backend(name), columns, ascii_only)
    primary = next((b for b in kernel.backends if b.caches), None)
    glyphs = "".join(fmt.GLYPHS[c.state][ascii_only] for c in primary.caches) if primary else ""
    out.append((glyphs, "dim"))
    return out


def _state(kernel: KernelRecord) -> str:
    if kernel.errors or any(b.status == "error" for b in kernel.backends):
        return "stale" if kernel.stale else "error"
    if kernel.stale:
        return "stale"
    return "ok" if any(b.status == "ok" for b in kernel.backends) else ""


def _cells(
    kernel: KernelRecord, backend: BackendRecord | None, columns: Sequence[str], ascii_only: bool
) -> list[Span]:
    if backend is None or (backend.status != "ok" and backend.compile is None):
        reason = "…" if backend is None else fmt.backend_reason(backend)
        style = "bad" if backend is not None and backend.status == "error" else "dim"
        # The reason takes the widest column; the others of the group stay empty.
        at = columns.index("launch")
        return [(fmt.first_line(reason) if i == at else "", style) for i in range(len(columns))]
    launch = backend.launches[-1] if backend.launches else None
    compiled = backend.compile
    found = backend.agreement
    agrees = {"ok": "ok", "differs": "bad"}.get(found.state, "dim") if found else "dim"
    verdict = "oracle" if backend.backend == "interp" else fmt.agreement(found, ascii_only)
    values: dict[str, Span] = {
        "cold": (fmt.duration_ms(compiled.cold_ms) if compiled else "", ""),
        "warm": (fmt.duration_ms(compiled.warm_ms) if compiled else "", ""),
        "launch": (_launch(kernel, launch) if launch else "", "num"),
        "rate": (fmt.throughput(launch) if launch else "", ""),
        "agreement": (verdict, agrees),
    }
    return [values[c] for c in columns]


def _launch(kernel: KernelRecord, launch: LaunchRecord) -> str:
    """The time of the largest workload that ran; which one, if a larger was left out."""
    text = fmt.launch_time(launch)
    if kernel.workloads and launch.workload != kernel.workloads[-1].label:
        return f"{launch.workload}: {text}"
    return text


def detail(kernel: KernelRecord, ascii_only: bool = False) -> list[Line]:
    """What the matrix has no room for: errors, reasons, workloads, cache layers."""
    out: list[Line] = []
    for error in (*kernel.errors, *(e for b in kernel.backends for e in b.errors)):
        out += [Line(((text, "bad"),)) for text in fmt.error_text(error).splitlines()]
    signature = ", ".join(_param(p.name, p.dtype, p.ndim, p.kind) for p in kernel.params)
    returns = f" -> {kernel.returns}" if kernel.returns else ""
    out.append(
        Line(((kernel.name, "title"), (f"({signature}){returns}", ""),
              (f"   {kernel.file}:{kernel.line}", "dim")))
    )  # fmt: skip
    if kernel.doc:
        out.append(Line(((fmt.first_line(kernel.doc), "dim"),)))
    for workload in kernel.workloads:
        if workload.origin == "none":
            out.append(Line((("no arguments: ", "warn"), (workload.reason, ""))))
        else:
            args = ", ".join(workload.args)
            out.append(Line(((f"{workload.origin} ", "dim"), (workload.label, ""),
                             (f"   {args}", "dim"))))  # fmt: skip
    for backend in kernel.backends:
        if backend.status == "not_run":
            out.append(Line(((f"{backend.backend} ", "accent"), (backend.reason, "dim"))))
        found = backend.agreement
        if found is not None and found.first_difference:
            out.append(Line(((f"{backend.backend} differs ", "bad"), (found.first_difference, ""))))
        if found is not None and found.check == "failed":
            out.append(Line(((f"{backend.backend} check failed ", "bad"),
                             (found.check_message, ""))))  # fmt: skip
    return out


def _param(name: str, dtype: str, ndim: int, kind: str) -> str:
    if kind == "ndarray":
        return f"{name}: {dtype}[{','.join(':' * ndim)}]"
    return f"{name}: {dtype or kind}"
