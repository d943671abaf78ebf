"""Damages saved sessions, opens them, and draws every panel of what still opens.

    python -m tests.app.damage --count 2000 --seed 1     0 tracebacks
    python -m tests.app.damage --count 1 --seed 1234     one of them again, with its traceback

Half of them are damaged as files: bits flipped, cut off, parts moved. The other half are whole
files whose content is changed: numbers that lead elsewhere, texts that steer terminals, lists of
another length, values of another kind, nesting without end. A file may be refused, in one sentence;
what opens must be drawn by every panel and every report.
"""

from __future__ import annotations

import argparse
import copy
import functools
import io
import json
import random
import sys
import tempfile
import traceback
import zipfile
from pathlib import Path

import msgspec
from qd_studio.app import show
from qd_studio.app.core import cfg_export, metrics, rules, state
from qd_studio.app.core.views import (
    adstacks,
    changes,
    errors,
    home,
    machine,
    matrix,
    misc,
    option_forms,
    reversal,
)
from qd_studio.app.panels import Asked, autodiff, caches, cfg, code, launch, panels, passes, source
from qd_studio.app.report import render
from qd_studio.engine import inspect
from qd_studio.engine.inspect.record import Record

from tests.app import devices, gradients, records

NASTY = (
    "", "\x1b[31mred", "a\rb", "\x08\x07", "\x9b2J", "\u202eevil", "[bold]x[/bold]",
    "[@click=quit]", "<script>", "x" * 3000, "a\nb\n", "\ufeff", "..", "../../etc/x", "%s{0}",
    "no such word", "0.2",
)  # fmt: skip
RULES = ("ir.statements>+5%", "launch.cpu.median_us>+20%", "agreement!=ok", "cache.offline!=hit",
         "task.*.loads>0@cfg", "require ir.loads<=0@die", "ir.op.mul>0")  # fmt: skip


@functools.cache
def healthy() -> tuple[bytes, ...]:
    """Records with everything in them, as JSON."""
    made = (records.make_record(), gradients.make_record(), devices.LAUNCHED, devices.with_cuda())
    error = inspect.record.ErrorRecord(
        kind="KernelError", message="no\nyes", stage="frontend", file="scale.py", line=6, col=4,
        end_line=6, end_col=9, source="    for i in x:", rendered="at line 6", chain=("a:1 in f",),
    )  # fmt: skip
    out = []
    for record in made:
        kernel = msgspec.structs.replace(record.kernels[0], errors=(error,))
        log = (inspect.record.LogLine(stream="stdout", text="hello"),)
        record = msgspec.structs.replace(
            record, kernels=(kernel, *record.kernels[1:]), errors=(error,), log=log
        )
        out.append(inspect.dumps(record))
    return tuple(out)


# ---- damage


def damaged(seed: int) -> tuple[str, bytes]:
    """(what was done, a file)."""
    chance = random.Random(seed)
    data = chance.choice(healthy())
    if seed % 2:
        how, data = _changed(chance, data)
        return how, zipped(data) if chance.random() < 0.3 else data
    method = chance.choice((zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2, None))
    file = data if method is None else zipped(data, method)
    return _broken(chance, file)


def zipped(data: bytes, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """``data`` as a session file has it."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        archive.writestr("record.json", data)
    return file.getvalue()


def _broken(chance: random.Random, data: bytes) -> tuple[str, bytes]:
    out, kind = bytearray(data), chance.choice(("flip", "flips", "cut", "splice", "head"))
    if kind in ("flip", "flips"):
        for _ in range(1 if kind == "flip" else chance.randrange(2, 40)):
            out[chance.randrange(len(out))] ^= 1 << chance.randrange(8)
    elif kind == "cut":
        del out[chance.randrange(len(out)) :]
    elif kind == "splice":
        a, b = sorted(chance.randrange(len(out)) for _ in range(2))
        at = chance.randrange(len(out))
        out[at:at] = out[a : min(b, a + 500)]
    else:
        # The heads of an archive are short, and say how long and where everything is.
        at = chance.randrange(60)
        at = at if chance.random() < 0.5 else len(out) - 1 - at
        out[at] = chance.randrange(256)
    return kind, bytes(out)


def _changed(chance: random.Random, data: bytes) -> tuple[str, bytes]:
    value = json.loads(data)
    done = []
    for _ in range(chance.choice((1, 1, 1, 2, 5))):
        holder, key, path = _somewhere(chance, value)
        new = _other(chance, holder[key], value)
        done.append(f"{path} = {str(new)[:40]!r}")
        if new is _GONE:
            del holder[key]
        else:
            holder[key] = new
    return "; ".join(done), json.dumps(value).encode()


_GONE = object()


def _somewhere(chance, value):
    """A place in a tree: (what holds it, its key, its path)."""
    if chance.random() < 0.5:
        return chance.choice(list(_places({"": value}, "")))
    holder, key, path = {"": value}, "", ""
    while True:
        here = holder[key]
        if not isinstance(here, dict | list) or not here or (path and chance.random() < 0.08):
            return holder, key, path
        key = chance.choice(list(here)) if isinstance(here, dict) else chance.randrange(len(here))
        holder, path = here, f"{path}.{key}"


def _places(holder, path):
    keys = list(holder) if isinstance(holder, dict) else range(len(holder))
    for key in keys:
        yield holder, key, f"{path}.{key}"
        if isinstance(holder[key], dict | list):
            yield from _places(holder[key], f"{path}.{key}")


def _other(chance, value, whole):
    if chance.random() < 0.06:
        return chance.choice((_GONE, None, [], {}, 0, "", True, _deep(chance)))
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        near = (value + 1, value - 1, value + 7, -value, value * 2)
        return chance.choice((*near, -1, -2, 0, 1, 2, 10**6, 2**31, 2**63, 10**30, 10**400))
    if isinstance(value, float):
        return chance.choice((0.0, -0.0, -1.0, value * 1e6, 1e-300, 5e17, 1e19, 1e300, 3, None))
    if isinstance(value, str):
        holder, key, _ = _somewhere(chance, whole)
        there = holder[key]
        return there if isinstance(there, str) and chance.random() < 0.4 else chance.choice(NASTY)
    if isinstance(value, list):
        return _other_list(chance, value)
    return {} if value is None else dict(chance.sample(list(value.items()), len(value) // 2))


def _other_list(chance, value):
    out = copy.deepcopy(value)
    kind = chance.choice(("none", "twice", "swapped", "shorter", "longer"))
    if kind == "none" or not out:
        return []
    if kind == "swapped":
        chance.shuffle(out)
    elif kind == "shorter":
        del out[chance.randrange(len(out))]
    elif kind == "longer":
        out.append(copy.deepcopy(chance.choice(out)))
    else:
        out += copy.deepcopy(out)
    return out


def _deep(chance):
    out: object = 0
    for _ in range(chance.choice((50, 300, 900))):
        out = [out] if chance.random() < 0.5 else {"x": out}
    return out


# ---- drawing


def draw(record: Record) -> list[str]:
    """Every panel and report of a record, as text; raises what any of them raises."""
    out = [render(record, suffix) for suffix in (".md", ".html", ".json", ".xml")]
    out += [_show(record, panel, as_json) for panel in show_panels() for as_json in (False, True)]
    history = state.remember(state.remember(state.History(), record), record)
    for width, ascii_only in ((60, True), (120, False), (200, False)):
        for page in range(2):
            drawn = matrix.matrix(record, width, history.statements, ascii_only, page, "b")
            out += [_text([*drawn.head, *drawn.rows]), *drawn.notes]
    out += [_text(home.absent_lines(record)), _text(misc.log_lines(record))]
    out += [
        _text(option_forms.form_lines(record.config, inspect.options())[1]),
        _text(_failed(record)),
    ]
    out += [repr(rules.evaluate(record, RULES, record)), repr(metrics.record_metrics(record))]
    sel = state.settle(record, state.Selection())
    for kernel in record.kernels:
        sel = state.settle(record, state.replace(sel, kernel=kernel.id))
        out += _kernel(record, kernel, history)
        for backend in kernel.backends:
            out += _backend(record, kernel, backend, state.replace(sel, backend=backend.backend))
    return out


def show_panels() -> tuple[str, ...]:
    return tuple(panel.id for panel in panels() if panel.text is not None)


def _show(record, panel, as_json):
    try:
        return show.show(record, panel, as_json=as_json)
    except show.NothingToShow as error:
        return str(error)


def _failed(record):
    found = errors.errors_of(record)
    return [*errors.error_lines(found), *errors.error_lines(found, True)]


def _text(lines):
    if hasattr(lines, "text"):
        for i in range(len(lines)):
            lines.text(i)
    return "\n".join("".join(text for text, _ in line.spans) for line in lines)


def _kernel(record, kernel, history):
    past = {name: values for (k, name), values in history.launches.items() if k == kernel.id}
    out = [_text(home.detail(kernel)), _text(errors.error_lines(errors.errors_of(record, kernel)))]
    for width in (58, 150):
        out.append(_text(launch.launch_lines(kernel, width, past)))
        out.append(_text(autodiff.gradient_lines(Asked(record, None, None, width), kernel)))
        for name, layer in caches.layers_of(kernel):
            key = caches.layer_key(name, layer)
            out.append(_text(caches.layer_lines(kernel, key, width)))
    head, lines = caches.cache_lines(kernel)
    return [*out, _text(head), _text(lines), *adstacks.why_none(record, kernel)]


def _backend(record, kernel, backend, sel):
    out = [_text(machine.machine_lines(backend))]
    out += [_text(code.code_lines(backend, i)) for i in range(len(code.artefacts_of(backend)) + 1)]
    compiled = backend.compile
    out.append(_text(source.source_lines(record, kernel, compiled)))
    if compiled is not None:
        out += _passes(compiled, sel)
        for run in compiled.runs:
            if run.state == "changed":
                out += [_text(cfg.drawn(compiled, run, 78, form, False, False))
                        for form in cfg.FORMS]  # fmt: skip
                graphs = cfg.known(compiled, run)
                out += [cfg_export.to_svg(graphs), cfg_export.to_dot(graphs)]
                out.append(cfg_export.to_mermaid(graphs))
    shown = adstacks.shown_of(record, kernel, backend.backend)
    if shown is not None:
        out += _autodiff(shown)
    return out


def _passes(compiled, sel):
    out = [_text(passes.list_lines(compiled)), _text(passes.list_lines(compiled, width=40))]
    for run in compiled.runs:
        sel = state.replace(sel, run=state.name_of(compiled, run))
        assert state.run_of(compiled, sel) is run
        state.step_run(compiled, sel, 1)
        out += [_text([passes.run_title(run)]), _text(misc.remark_lines(run))]
        for width, whole in ((0, False), (0, True), (40, False)):
            out.append(_text(changes.run_lines(compiled, run, width, whole, -1)))
            out.append(_text(changes.run_lines(compiled, run, width, whole, -1, ())))
    return out


def _autodiff(shown):
    found, compiled = shown.autodiff, shown.backend.compile
    out = [_text(adstacks.failure_lines(shown)), adstacks.summary(found)]
    head, rows = adstacks.stack_rows(found)
    out += [_text([*head, *rows]), _text(adstacks.fact_lines(found, 80))]
    out += [_text(adstacks.stack_lines(found, key)) for _, _, key in adstacks.stacks_of(found)]
    for side in (reversal.FORWARD, reversal.REVERSE) if compiled is not None else ():
        out.append(_text(reversal.linked_lines(compiled, found, side, ())))
        reversal.counterparts(found, side)
    return out


def try_one(seed: int, folder: Path) -> tuple[str, str]:
    """(what was done, what came of it: ``refused``, ``drawn``, or a traceback)."""
    how, data = damaged(seed)
    path = folder / "session.qds"
    path.write_bytes(data)
    try:
        try:
            record = inspect.load(path)
        except inspect.RecordFileError as error:
            text = str(error)
            assert "\n" not in text and len(text) < 500, text
            return how, "refused"
        draw(record)
    except Exception:
        return how, traceback.format_exc()
    return how, "drawn"


def main() -> int:
    """Damage many; 1 if any of them was a traceback."""
    parser = argparse.ArgumentParser(description="Open damaged sessions.")
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    came: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(options.seed, options.seed + options.count):
            how, what = try_one(seed, Path(folder))
            if what not in ("refused", "drawn"):
                print(f"seed {seed}: {how}\n{what}", flush=True)
                what = "tracebacks"
            came[what] = came.get(what, 0) + 1
    print(", ".join(f"{n} {what}" for what, n in sorted(came.items())))
    return 1 if "tracebacks" in came else 0


if __name__ == "__main__":
    sys.exit(main())
