"""One panel of a record as text or JSON: what ``qd-studio show`` prints.

The text is that of the studio's own panels without colour. The JSON is made of the record's own
parts, as the schema describes them, in one object per kernel and backend::

    passes   {"kernel", "backend", "runs": [PassRun], "diffs": {run index: [lines]}}
    ir       {"kernel", "backend", "run": index or null, "snapshot": Snapshot, "locs": [LocRecord]}
    cfg      {"kernel", "backend", "cfgs": [CfgRecord]}
    code     {"kernel", "backend", "artefacts": [Artefact], "machine": MachineRecord or null}
    launch   {"kernel", "backend", "status": text, "reason": text, "launches": [LaunchRecord],
              "agreement": AgreementRecord, "verdicts": [VerdictRecord] (against the first backend),
              "workloads": [WorkloadRecord], "unlaunched": text, "device": DeviceRecord or null,
              "flow": FlowRecord or null, "options": [ConfigEntry] (other than the defaults)}
    adstack  {"kernel", "backend", "autodiff": AutodiffRecord, "forward": Snapshot or null,
              "reverse": Snapshot or null}; of gradient kernels only
    caches   {"kernel", "backend", "caches": [CacheLayer]}
    source   {"kernel", "backend", "file": FileRecord, "statements": {line: [before, after]},
              "params": [LeafRecord]}
    log      a list of LogLine, of the whole record
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from ..engine.inspect.record import (
    BackendRecord,
    CompileRecord,
    KernelRecord,
    PassRun,
    Record,
)
from .core.format import error_text
from .core.lines import Line, plain, text_of
from .core.panels import (
    adstack_text,
    caches,
    cfg,
    changes,
    code,
    launch,
    machine,
    misc,
    passes,
    source,
)
from .core.panels.reversal import FORWARD, REVERSE, listing
from .core.visible import visible_json

__all__ = ["NothingToShow", "show"]

_WIDTH: Final = 100
Part = tuple[KernelRecord, BackendRecord]


_SHORT: Final = {"cse": "per_task_cse", "licm": "loop_invariant_code_motion"}
"""Names by which everybody knows a pass."""


class NothingToShow(ValueError):
    """No kernel, backend or pass of the record is what was asked for; the message says why."""


def show(
    record: Record,
    panel: str,
    kernel: str | None = None,
    pass_name: str | None = None,
    *,
    as_json: bool = False,
) -> str:
    """The panel as text that ends in a line end.

    kernel: a name or an id; None: all. pass_name: for passes, ir and cfg, only what this pass did,
    ``NAME`` or ``NAME@STAGE``.
    """
    if panel == "log":
        if as_json:
            return _json([msgspec.to_builtins(line) for line in record.log])
        return plain(misc.log_lines(record))
    kernels = _kernels(record, kernel)
    if panel == "adstack":
        kernels = adstack_text.kernels_told(record, kernels)
    if as_json:
        make = _JSON[panel]
        return _json([x for k in kernels for x in make(record, k, pass_name)])
    blocks = [_text(record, panel, k, pass_name) for k in kernels]
    return "\n".join(blocks)


def _kernels(record: Record, wanted: str | None) -> list[KernelRecord]:
    found = [k for k in record.kernels if wanted is None or wanted in (k.name, k.id)]
    if found:
        return found
    if not record.kernels:
        raise NothingToShow("there are no kernels to show")
    names = ", ".join(k.name for k in record.kernels)
    raise NothingToShow(f"there is no kernel {wanted!r}; there are: {names}")


def _parts(kernel: KernelRecord) -> list[tuple[BackendRecord, CompileRecord]]:
    return [(b, b.compile) for b in kernel.backends if b.compile is not None]


def _runs(compiled: CompileRecord, wanted: str | None) -> list[PassRun]:
    """The runs of the pass called ``wanted`` ("name" or "name@stage"); None: all of them."""
    if wanted is None:
        return list(compiled.runs)
    name, _, stage = wanted.partition("@")
    name = _SHORT.get(name, name)
    found = [r for r in compiled.runs if r.name == name and stage in ("", r.stage)]
    if not found:
        known = sorted({r.name for r in compiled.runs})
        raise NothingToShow(f"no pass {wanted!r} ran; there are: {', '.join(known)}")
    return found


# ---- text


def _text(record: Record, panel: str, kernel: KernelRecord, pass_name: str | None) -> str:
    if panel == "launch":
        lines = [*launch.launch_lines(kernel, _width()), *_agreement(kernel)]
        return _headed(kernel.id, [*_options(record, kernel), *lines])
    if panel == "caches":
        return _headed(kernel.id, _caches(kernel))
    if panel == "adstack":
        return _headed(kernel.id, adstack_text.told_lines(record, kernel, _width()))
    parts = _parts(kernel)
    if panel == "source":
        compiled = parts[0][1] if parts else None
        return _headed(kernel.id, source.source_lines(record, kernel, compiled))
    if not parts:
        return _headed(kernel.id, _why_not(kernel))
    make = _TEXT[panel]
    return "\n".join(
        _headed(f"{kernel.id} on {backend.backend}", make(backend, compiled, pass_name))
        for backend, compiled in parts
    )


def _why_not(kernel: KernelRecord) -> list[Line]:
    """What kept a kernel from being compiled: its errors, else what the backends say."""
    errors = [*kernel.errors, *(e for b in kernel.backends for e in b.errors)]
    texts = dict.fromkeys(error_text(e) for e in errors)
    if not texts:
        texts = dict.fromkeys(f"{b.backend}: {b.reason}" for b in kernel.backends if b.reason)
    lines = [line for text in texts for line in text.splitlines()]
    return [Line(((line, ""),)) for line in lines or ["not compiled"]]


def _headed(title: str, lines: list[Line]) -> str:
    return f"== {title}\n" + plain(lines)


def _width() -> int:
    return shutil.get_terminal_size((_WIDTH, 24)).columns


def _options(record: Record, kernel: KernelRecord) -> list[Line]:
    """The options of the kernel's file, other than the defaults."""
    entries = misc.options_of(record, kernel.file)
    text = ", ".join(f"{e.name}={e.value} ({e.origin})" for e in entries)
    return [Line(((f"options: {text}", ""),))] if text else []


def _agreement(kernel: KernelRecord) -> list[Line]:
    out: list[Line] = []
    for backend in kernel.backends:
        found = backend.agreement
        if found is None:
            continue
        text = f"{backend.backend}: {found.state}"
        if found.state != "unknown":
            text += f" over {found.elements:,} elements of {found.workload}, compared with "
            text += f"{found.against or 'the interpreter'} (largest error {found.max_abs:.3g}, "
            text += f"relative {found.max_rel:.3g}, {found.max_ulp:g} ulp; {found.tolerance})"
            text += f"; {found.nans:,} of them NaN" if found.nans else ""
        wrong = f"{found.differing:,} of {found.elements:,} differ" if found.differing else ""
        for extra in (found.reason, wrong, found.first_difference):
            text += f"; {extra}" if extra else ""
        if found.check != "none":
            text += f"; check {found.check}" + (
                f": {found.check_message}" if found.check_message else ""
            )
        out.append(Line(((text, ""),)))
    return out


def _caches(kernel: KernelRecord) -> list[Line]:
    """The table of layers, then what is known of each that has something to tell."""
    head, lines = caches.cache_lines(kernel)
    out = [*head, *lines]
    for backend, layer in caches.layers_of(kernel):
        if layer.parts or layer.advice or layer.differences:
            key = caches.layer_key(backend, layer)
            out += [Line(()), *caches.layer_lines(kernel, key, _width())]
    return out


def _passes_text(
    backend: BackendRecord, compiled: CompileRecord, pass_name: str | None
) -> list[Line]:
    if pass_name is None:
        return passes.list_lines(compiled)
    out: list[Line] = []
    for run in _runs(compiled, pass_name):
        task = "" if run.task is None else f", task {run.task}"
        round = f", round {run.round}" if run.round else ""
        head = f"-- {run.name} in {run.stage}{round}{task}: {run.state}"
        out.append(Line(((head, "title"),)))
        out += misc.remark_lines(run)
        if run.before != run.after:
            old, new = compiled.snapshots[run.before], compiled.snapshots[run.after]
            out += changes.diff_lines(compiled, old, new, changes.pass_diff(compiled, run))
    return out


def _ir_text(backend: BackendRecord, compiled: CompileRecord, pass_name: str | None) -> list[Line]:
    if not compiled.snapshots:
        return [Line((("no IR was recorded", ""),))]
    index = _runs(compiled, pass_name)[-1].after if pass_name else _last(compiled)
    return list(changes.listing_lines(compiled, compiled.snapshots[index]))


def _last(compiled: CompileRecord) -> int:
    return compiled.runs[-1].after if compiled.runs else len(compiled.snapshots) - 1


def _cfg_text(backend: BackendRecord, compiled: CompileRecord, pass_name: str | None) -> list[Line]:
    out: list[Line] = []
    for index, graph in enumerate(compiled.cfgs):
        if _of_pass(compiled, graph.run, pass_name):
            out.append(Line(((cfg.title(graph), "title"),)))
            out += cfg.cfg_lines(compiled, index, _width())
    return out or [Line((("no control-flow graph was recorded", ""),))]


def _of_pass(compiled: CompileRecord, run: int, pass_name: str | None) -> bool:
    return pass_name is None or any(r.index == run for r in _runs(compiled, pass_name))


def _code_text(
    backend: BackendRecord, compiled: CompileRecord, pass_name: str | None
) -> list[Line]:
    out = machine.machine_lines(backend)
    for index, artefact in enumerate(code.in_order(compiled.artefacts)):
        out.append(Line(((f"-- {artefact.name}", "title"),)))
        out += code.code_lines(backend, index)
    return out or [Line((("this backend keeps no code", ""),))]


_TEXT: Final[dict[str, Callable[[BackendRecord, CompileRecord, str | None], list[Line]]]] = {
    "passes": _passes_text,
    "ir": _ir_text,
    "cfg": _cfg_text,
    "code": _code_text,
}


# ---- JSON


def _json(value: Any) -> str:
    return visible_json(json.dumps(value, indent=1, ensure_ascii=False)) + "\n"


def _head(kernel: KernelRecord, backend: BackendRecord) -> dict[str, Any]:
    return {"kernel": kernel.id, "backend": backend.backend}


def _passes_json(record: Record, kernel: KernelRecord, pass_name: str | None) -> Iterator[Any]:
    for backend, compiled in _parts(kernel):
        runs = _runs(compiled, pass_name)
        diffs: dict[str, list[str]] = {}
        for run in runs if pass_name is not None else ():
            if run.before != run.after:
                old, new = compiled.snapshots[run.before], compiled.snapshots[run.after]
                found = changes.pass_diff(compiled, run)
                lines = changes.diff_lines(compiled, old, new, found)
                diffs[str(run.index)] = [text_of(line).rstrip() for line in lines]
        yield {**_head(kernel, backend), "runs": msgspec.to_builtins(runs), "diffs": diffs}


def _ir_json(record: Record, kernel: KernelRecord, pass_name: str | None) -> Iterator[Any]:
    for backend, compiled in _parts(kernel):
        if compiled.snapshots:
            run = _runs(compiled, pass_name)[-1] if pass_name else None
            index = _last(compiled) if run is None else run.after
            yield {
                **_head(kernel, backend),
                "run": None if run is None else run.index,
                "snapshot": msgspec.to_builtins(compiled.snapshots[index]),
                "locs": msgspec.to_builtins(compiled.locs),
            }


def _cfg_json(record: Record, kernel: KernelRecord, pass_name: str | None) -> Iterator[Any]:
    for backend, compiled in _parts(kernel):
        graphs = [g for g in compiled.cfgs if _of_pass(compiled, g.run, pass_name)]
        yield {**_head(kernel, backend), "cfgs": msgspec.to_builtins(graphs)}


def _code_json(record: Record, kernel: KernelRecord, pass_name: str | None) -> Iterator[Any]:
    for backend, compiled in _parts(kernel):
        yield {
            **_head(kernel, backend),
            "artefacts": msgspec.to_builtins(compiled.artefacts),
            "machine": msgspec.to_builtins(compiled.machine),
        }


def _launch_json(record: Record, kernel: KernelRecord, pass_name: str | None) -> Iterator[Any]:
    for backend in kernel.backends:
        yield {
            **_head(kernel, backend),
            "status": backend.status,
            "reason": backend.reason,
            "launches": msgspec.to_builtins(backend.launches),
            "agreement": msgspec.to_builtins(backend.agreement),
            "verdicts": [
                msgspec.to_builtins(v) for v in kernel.verdicts if v.backend == backend.backend
            ],
            "workloads": msgspec.to_builtins(kernel.workloads),
            "unlaunched": backend.unlaunched,
            "device": msgspec.to_builtins(backend.device),
            "flow": msgspec.to_builtins(backend.flow),
            "options": msgspec.to_builtins(misc.options_of(record, kernel.file)),
        }


def _caches_json(record: Record, kernel: KernelRecord, pass_name: str | None) -> Iterator[Any]:
    for backend in kernel.backends:
        yield {**_head(kernel, backend), "caches": msgspec.to_builtins(backend.caches)}


def _adstack_json(record: Record, kernel: KernelRecord, pass_name: str | None) -> Iterator[Any]:
    for backend in kernel.backends:
        found = backend.autodiff
        if found is not None:
            sides = {side: listing(backend.compile, found, side) for side in (FORWARD, REVERSE)}
            yield {
                **_head(kernel, backend),
                "autodiff": msgspec.to_builtins(found),
                **{side: msgspec.to_builtins(shot) for side, shot in sides.items()},
            }


def _source_json(record: Record, kernel: KernelRecord, pass_name: str | None) -> Iterator[Any]:
    file = next((f for f in record.files if f.path == kernel.file), None)
    for backend, compiled in _parts(kernel):
        before, after = source.heat(compiled, 0), source.heat(compiled, -1)
        lines = sorted({n for path, n in (*before, *after) if path == kernel.file})
        yield {
            **_head(kernel, backend),
            "file": msgspec.to_builtins(file),
            "statements": {str(n): [before[kernel.file, n], after[kernel.file, n]] for n in lines},
            "params": msgspec.to_builtins(compiled.params),
        }


_JSON: Final[dict[str, Callable[[Record, KernelRecord, str | None], Iterator[Any]]]] = {
    "passes": _passes_json,
    "ir": _ir_json,
    "cfg": _cfg_json,
    "code": _code_json,
    "launch": _launch_json,
    "adstack": _adstack_json,
    "caches": _caches_json,
    "source": _source_json,
}
