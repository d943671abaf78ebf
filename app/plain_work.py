"""Commands of ``qd-studio --plain`` that compile or compare: what the studio does with `D`, `A`,
`P` and `W`. Each returns text, or None if it was cancelled with ctrl+c."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from .core.lines import plain
from .core.saves import Saves
from .core.views.bisection import bisection_lines
from .core.views.gradients import gradient_lines
from .core.views.nans import nan_lines

if TYPE_CHECKING:
    from ..engine.inspect.compare import Comparison
    from ..engine.inspect.record import KernelRecord, Record
    from .worker.client import WorkerClient
    from .worker.events import Event

__all__ = ["choices", "compared", "studied"]

Heard = Callable[["Event"], object]


def choices(saves: Saves, path: str) -> str:
    """The sides that `compared` can be given."""
    from .revisions import NoRevisionError, commits

    out = [f"{s.number}  {s.when}  {s.about}" for s in saves.all()]
    try:
        out += [f"{c.revision}  {c.when}  {c.subject}" for c in commits(path, 10)]
    except (NoRevisionError, OSError) as error:
        out.append(f"no revisions: {error}")
    return "\n".join([*out, "or NAME=VALUE, or two backends"])


def compared(words: Sequence[str], saves: Saves, client: WorkerClient, heard: Heard) -> str | None:
    """Compare two sides, the second one the newest save if it is not named.

    Raises ValueError with a sentence for a side that is not there.
    """
    from ..engine.inspect.compare import compare_records
    from .core.views.compared import WORDS, comparison_lines

    newest = saves.all()[-1]
    record = saves.record(newest)
    names = {b.backend for k in record.kernels for b in k.backends}
    found: Comparison
    if len(words) == 2 and set(words) <= names:
        return _backends(record, words[0], words[1])
    sides = [*words, str(newest.number)][:2]
    if len(words) == 1 and "=" in words[0]:  # the other option is what changes
        sides.reverse()
    records: list[Record] = []
    for side in sides:
        one = _side(side, saves, client, heard)
        if one is None:
            return None
        records.append(one)
    found = compare_records(records[0], records[1])
    return f"{sides[0]} -> {sides[1]}: {WORDS[found.state]}\n{plain(list(comparison_lines(found)))}"


def _backends(record: Record, before: str, after: str) -> str:
    from ..engine.inspect.compare import compare_backends
    from .core.views.compared import kernel_lines

    out: list[str] = []
    for kernel in record.kernels:
        if {before, after} <= {b.backend for b in kernel.backends}:
            found = compare_backends(kernel, before, after)
            out.append(f"{kernel.name}:\n{plain(list(kernel_lines(found)))}")
    return "".join(out)


def _side(name: str, saves: Saves, client: WorkerClient, heard: Heard) -> Record | None:
    """The record of a side; compiled now if it is a revision or an option."""
    from ..engine import inspect
    from .revisions import NoRevisionError, file_at

    save = next((s for s in saves.all() if str(s.number) == name), None)
    if save is not None:
        return saves.record(save)
    if "=" in name:
        option, value = inspect.parse_setting(name)
        return _looked(client, client.template.files, {option: value}, heard)
    path = client.template.files[0]
    try:
        with file_at(path, name) as file:
            return _looked(client, [file], {}, heard)
    except NoRevisionError as error:
        raise ValueError(f"no save, option or revision {name!r}: {error}") from None


def _looked(
    client: WorkerClient, files: Sequence[str], config: dict[str, Any], heard: Heard
) -> Record | None:
    from .worker.once import collect

    job = client.template
    try:
        return collect(
            files, {**job.config, **config}, job.backends, heard, run=job.run, limits=job.limits,
            opening=job.opening,
        )  # fmt: skip
    except KeyboardInterrupt:
        return None


def studied(
    kind: str, kernel: KernelRecord, client: WorkerClient, heard: Heard, record: Record, out: str
) -> str | None:
    """Bisect, or write a script that shows the wrong result to the path ``out``."""
    from ..engine.inspect.record_bisection import SCRIPT, Bisection, Reproducer
    from ..engine.inspect.record_gradient import GradientReport
    from ..engine.inspect.record_nans import NanReport
    from .worker.events import RecordUpdated, Studied
    from .worker.protocol import Study
    from .worker.studying import start_study

    answers: list[bytes] = []
    done = threading.Event()

    def listen(event: Event) -> None:
        heard(event)
        if isinstance(event, Studied):
            answers.append(event.answer)
        if isinstance(event, RecordUpdated) and event.complete:
            done.set()

    wrong = [b.backend for b in kernel.backends
             if b.agreement is not None and b.agreement.state == "differs"]  # fmt: skip
    study = Study(kind=kind, backend=wrong[0] if wrong else "")
    worker = start_study(client, kernel.id, study, listen)
    try:
        while not done.wait(0.1) and worker.alive:
            pass
    except KeyboardInterrupt:
        return None
    finally:
        worker.stop()
    if not answers:
        return "the worker ended without an answer"
    texts = {file.path: file.text for file in record.files}
    if kind == "nan":
        return plain(list(nan_lines(msgspec.json.decode(answers[0], type=NanReport), texts)))
    if kind == "check-grad":
        found = msgspec.json.decode(answers[0], type=GradientReport)
        return plain(list(gradient_lines(found, texts)))
    if kind == "bisect":
        return plain(list(bisection_lines(msgspec.json.decode(answers[0], type=Bisection), texts)))
    made = msgspec.json.decode(answers[0], type=Reproducer)
    texts[SCRIPT] = made.script
    return plain(list(bisection_lines(made.bisection, texts))) + _written(made.script, out)


def _written(script: str, path: str) -> str:
    if not script:
        return "no script was made"
    try:
        with open(path, "x", encoding="utf-8") as file:
            file.write(script)
    except OSError as error:
        return f"cannot write {path}: {error.strerror}"
    return f"wrote {os.path.abspath(path)}"
