"""Queries of the record, one a tool, and the form of their answers."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from ...engine import inspect
from ...engine.inspect.record import BackendRecord, CompileRecord, KernelRecord, Record
from .. import bisect as bisecting
from .. import difference
from ..core.failing import failing
from ..core.lines import plain
from ..core.views.home import param_text
from ..core.views.machine import facts
from ..panels import Asked, NothingToShow, find, panels
from ..panels.code import code_lines, in_order
from ..worker.once import CancelledError
from .answers import LIMIT, ToolError, answer, error_of
from .project import Call, Project

__all__ = ["bisect", "code", "cost", "diff", "kernels", "report", "show", "verdicts", "why_miss"]

Arguments = dict[str, Any]
Answer = dict[str, Any]

_WIDTH: Final = 120
_NARROW: Final = "name a file, kernel or backend"
_QUIET_STATES: Final = ("hit", "not_applicable")


# ---- looks


def _config(given: Arguments) -> dict[str, Any]:
    try:
        return dict(
            inspect.parse_setting(f"{name}={_word(value)}")
            for name, value in given.get("config", {}).items()
        )
    except ValueError as error:
        raise ToolError(str(error)) from None


def _word(value: Any) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


def _backends(given: Arguments, default: str = "") -> tuple[str, ...]:
    names = given.get("backend", default).split(",")
    try:
        return inspect.expand([name.strip() for name in names if name.strip()])
    except ValueError as error:
        raise ToolError(str(error)) from None


def _look(
    project: Project, call: Call, given: Arguments, default: str = "", **settings: Any
) -> Record:
    """The record that a tool answers from. default: the backends if none was named."""
    kernel = given.get("kernel")
    record = project.look(
        call, given.get("file", ""), _config(given), _backends(given, default),
        only=(kernel,) if kernel else (), run=given.get("run", False), **settings,
    )  # fmt: skip
    if not record.kernels:
        errors = [found.error for found in failing(record) if found.error is not None]
        hint = "call kernels for the whole project" if not errors else "mend the file"
        raise ToolError(_why_none(record, kernel), hint, "failed", errors)
    return record


def _why_none(record: Record, kernel: str | None) -> str:
    if record.errors:
        return record.errors[0].message or record.errors[0].kind
    return f"there is no kernel {kernel!r}" if kernel else "there are no kernels"


def _answered(project: Project, given: Arguments, record: Record | None, found: Sequence[Any],
              narrow: str = _NARROW, **more: Any) -> Answer:  # fmt: skip
    """An answer with the failures of the kernels that it is about."""
    if record is not None:
        one = given.get("kernel")
        names = {k.id for k in record.kernels if one in (None, k.id, k.name)}
        errors = [f.error for f in failing(record) if f.kernel in ("", *names)]
        known = {(e.kind, e.message, e.file, e.line): e for e in errors if e is not None}
        more["errors"] = [
            {**error_of(e), "file": project.shown(e.file) if e.file else ""}
            for e in list(known.values())[:5]
        ]
    return answer(found, given.get("start", 0), given.get("limit", LIMIT), narrow, **more)


def _chosen(record: Record, given: Arguments) -> list[KernelRecord]:
    return Asked(record, given.get("kernel"), None, _WIDTH).kernels()


def _panel_lines(record: Record, panel: str, given: Arguments, form: str = "exact") -> list[str]:
    """A panel as text."""
    from ..show import show as shown

    try:
        text = shown(
            record, panel, given.get("kernel"), given.get("pass_name"), form=form,
            line=given.get("line", 0),
        )  # fmt: skip
    except NothingToShow as error:
        errors = [found.error for found in failing(record) if found.error is not None]
        raise ToolError(str(error), kind="failed" if errors else "usage", errors=errors) from None
    return text.splitlines()


# ---- tools


def kernels(project: Project, call: Call, given: Arguments) -> Answer:
    record = _look(project, call, given, "cpu", launch=False)
    found = [_kernel(project, kernel, "backend" in given) for kernel in record.kernels]
    return _answered(project, given, record, found)


def _kernel(project: Project, kernel: KernelRecord, named: bool) -> Answer:
    return {
        "id": kernel.id,
        "name": kernel.name,
        "file": project.shown(kernel.file),
        "line": kernel.line,
        "end_line": kernel.end_line,
        "parameters": [param_text(p) for p in kernel.params],
        "returns": kernel.returns,
        "doc": kernel.doc.strip().partition("\n")[0],
        "workloads": [w.label for w in kernel.workloads if w.origin != "none"],
        "no_workload": next((w.reason for w in kernel.workloads if w.origin == "none"), ""),
        "backends": {
            b.backend: b.status if b.status == "ok" else f"{b.status}: {b.reason}"
            for b in kernel.backends
            if named or b.status != "absent"
        },
        "gradient": kernel.gradient,
    }


def diff(project: Project, call: Call, given: Arguments) -> Answer:
    if "against" in given:
        return _compared(project, call, given)
    record = _look(project, call, given, "cpu", launch=False)
    if "pass_name" in given:
        lines = _panel_lines(record, "passes", given, given.get("form", "exact"))
        return _answered(project, given, record, lines, "name a kernel, backend or NAME@STAGE")
    found = [
        {
            "kernel": kernel.id, "backend": backend.backend, "index": run.index,
            "pass_name": f"{run.name}@{run.stage}", "round": run.round, "task": run.task,
            "added": run.added, "removed": run.removed, "rewritten": run.rewritten,
            "moved": run.moved, "us": round(run.us, 1),
        }
        for kernel, backend, compiled in _compiles(record, given)
        for run in compiled.runs
        if run.state == "changed"
    ]  # fmt: skip
    return _answered(project, given, record, found)


def _compiles(
    record: Record, given: Arguments
) -> Iterable[tuple[KernelRecord, BackendRecord, CompileRecord]]:
    for kernel in _chosen(record, given):
        for backend in kernel.backends:
            if backend.compile is not None:
                yield kernel, backend, backend.compile


def _words(project: Project, given: Arguments, default: str) -> list[str]:
    """The arguments that tools share as words of a command line, but for the file."""
    names = ",".join(_backends(given, default))
    words = [f"--backend={names}"] if names else []
    words += [f"--config={name}={_word(value)}" for name, value in given.get("config", {}).items()]
    if "kernel" in given:
        words.append(f"--kernel={given['kernel']}")
    if project.limits is not None:
        words.append(f"--time-limit={project.limits.launch_s}")
    return words


def _options(call: Call, made: argparse.ArgumentParser, words: list[str]) -> argparse.Namespace:
    options = made.parse_args(words)
    options.arguments, options.cancelled = (), call.cancelled
    return options


def _compared(project: Project, call: Call, given: Arguments) -> Answer:
    """Two compiles compared, as ``qd-studio diff`` does."""
    path, against = project.path(given["file"]), given["against"]
    _config(given)
    words = [path, "--no-launch", "--ir"]
    if re.fullmatch(r"\w+=.*", against, re.DOTALL):
        _setting(against)
        words += [f"--b-config={against}", *_words(project, given, "cpu")]
    elif against.partition(":")[0] in inspect.every_backend():
        first = given.get("backend", "cpu")
        shared = {name: value for name, value in given.items() if name != "backend"}
        _backends({"backend": f"{first},{against}"})
        words += [f"--a-backend={first}", f"--b-backend={against}", *_words(project, shared, "")]
    else:
        words[:1] = [f"{path}@{against}", path]
        words += _words(project, given, "cpu")
    with project.busy:
        try:
            found, records = difference.compared(_options(call, difference.parser(), words))
        except CancelledError:
            raise ToolError("the call was cancelled", kind="cancelled") from None
    lines = difference.text_of(found, records, True).splitlines()
    errors = [one.error for record in records for one in failing(record) if one.error is not None]
    return _answered(project, given, None, lines, state=found.state,
                     errors=[error_of(error) for error in errors[:5]])  # fmt: skip


def _setting(text: str) -> None:
    try:
        inspect.parse_setting(text)
    except ValueError as error:
        raise ToolError(str(error)) from None


def why_miss(project: Project, call: Call, given: Arguments) -> Answer:
    record = _look(project, call, given, "cpu", launch=False, again=True)
    found = [
        {
            "kernel": kernel.id, "backend": backend.backend, "layer": layer.name,
            "state": layer.state, "reason": layer.reason, "advice": layer.advice,
            "differences": [
                {"part": d.part, "text": d.text, "before": d.before, "after": d.after,
                 "file": project.shown(d.file) if d.file else "", "line": d.line,
                 "lines": list(d.lines)}
                for d in layer.differences
            ],
            "miss_costs_ms": round(layer.cost_ms, 3), "nearest": layer.nearest,
            "nearest_made": layer.entry_created, "entry": layer.path,
        }
        for kernel in _chosen(record, given)
        for backend in kernel.backends
        for layer in backend.caches
        if given.get("hits") or layer.state not in _QUIET_STATES
    ]  # fmt: skip
    return _answered(project, given, record, found)


def cost(project: Project, call: Call, given: Arguments) -> Answer:
    record = _look(project, call, given, "cpu", launch=True, peaks=True)
    lines = _panel_lines(record, "cost", given)
    return _answered(project, given, record, lines, measured=record.created)


def verdicts(project: Project, call: Call, given: Arguments) -> Answer:
    record = _look(project, call, given, launch=True)
    chosen = _chosen(record, given)
    found = [
        _verdict(kernel, backend)
        for kernel in chosen
        for backend in kernel.backends
        if "backend" in given or backend.status != "absent"
    ]
    times = [
        {"kernel": kernel.id, "workload": v.workload, "backend": v.backend, "against": v.against,
         "verdict": v.verdict, "ratio": round(v.ratio, 3), "noise_band": round(v.band, 3),
         "clock": v.clock}
        for kernel in chosen for v in kernel.verdicts
    ]  # fmt: skip
    return _answered(project, given, record, found, measured=record.created, times=times[:40])


def _verdict(kernel: KernelRecord, backend: BackendRecord) -> Answer:
    agreement = backend.agreement
    verdict = "unknown" if agreement is None else agreement.verdict
    if backend.backend == "interp" and backend.launches:
        verdict = "ran"  # the others are compared with it
    return {
        "kernel": kernel.id,
        "backend": backend.backend,
        "status": backend.status,
        "reason": backend.reason or backend.unlaunched,
        "verdict": verdict,
        "agreement": None if agreement is None else msgspec.to_builtins(agreement),
        "launches": [
            {"workload": x.workload, "median_us": x.median_us, "min_us": x.min_us,
             "max_us": x.max_us, "n": x.n}
            for x in backend.launches
        ],
    }  # fmt: skip


def bisect(project: Project, call: Call, given: Arguments) -> Answer:
    words = [project.path(given["file"]), *_words(project, given, "")]
    words += [f"--{name}={given[name]}" for name in ("metric", "good", "bad") if name in given]
    _config(given)
    with project.busy:
        try:
            found, texts = bisecting.bisected(_options(call, bisecting.parser(), words))
        except CancelledError:
            raise ToolError("the call was cancelled", kind="cancelled") from None
    lines = bisecting.text_of(found, texts).splitlines()
    return _answered(project, given, None, lines, state=found.state, reason=found.reason,
                     part=found.part, pass_name=found.pass_name, stage=found.stage)  # fmt: skip


def code(project: Project, call: Call, given: Arguments) -> Answer:
    record = _look(project, call, given, "cpu", launch=False)
    text, form = given.get("text"), given.get("form", "exact")
    if text == "ir":
        return _answered(project, given, record, _panel_lines(record, "ir", given, form))
    if text == "source":
        return _answered(project, given, record, _sources(project, record, given))
    compiles = list(_compiles(record, given))
    listed = [_texts(kernel, backend, compiled) for kernel, backend, compiled in compiles]
    if text is None:
        return _answered(project, given, record, listed)
    known = sorted({x.name for *_, compiled in compiles for x in compiled.artefacts})
    if text not in known:
        raise ToolError(f"there is no text {text!r}; there are: source, ir, {', '.join(known)}")
    files = record.files if form == "readable" else None
    lines: list[str] = []
    for kernel, backend, compiled in compiles:
        for index, artefact in enumerate(in_order(compiled.artefacts)):
            if artefact.name == text:
                lines.append(f"== {kernel.id} on {backend.backend}")
                shown = list(code_lines(backend, index, files, False))
                lines += plain(shown).splitlines()
    return _answered(project, given, record, lines)


def _texts(kernel: KernelRecord, backend: BackendRecord, compiled: CompileRecord) -> Answer:
    machine = compiled.machine
    return {
        "kernel": kernel.id,
        "backend": backend.backend,
        "texts": {x.name: f"{len(x.text.splitlines())} lines" for x in compiled.artefacts},
        "machine": [] if machine is None else facts(machine),
        "code_bytes": compiled.code_bytes,
    }


def _sources(project: Project, record: Record, given: Arguments) -> list[str]:
    texts = {file.path: file.text.splitlines() for file in record.files}
    out: list[str] = []
    for kernel in _chosen(record, given):
        out.append(f"== {kernel.id} ({project.shown(kernel.file)})")
        lines = texts.get(kernel.file, [])
        end = kernel.end_line or kernel.line
        numbered = enumerate(lines[kernel.line - 1 : end], kernel.line)
        out += [f"{number:5} {line}" for number, line in numbered]
    return out


def show(project: Project, call: Call, given: Arguments) -> Answer:
    name = given["panel"]
    known = {panel.id: panel for panel in panels() if panel.text is not None}
    if name not in known:
        raise ToolError(f"there is no panel {name!r}; there are: {', '.join(known)}")
    panel = find(name)
    if panel.fault:
        raise ToolError(panel.fault, kind="environment")
    record = _look(project, call, given, "cpu", launch=panel.launches, peaks=panel.peaks)
    return _answered(project, given, record, _panel_lines(record, name, given))


def report(project: Project, call: Call, given: Arguments) -> Answer:
    from ..report import render

    record = _look(project, call, given, launch=True)
    return _answered(project, given, record, render(record, ".md").splitlines())
