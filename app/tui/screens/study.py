"""The screen of a bisection: its progress, the culprit, the script that shows it, and more to ask.

It looks for what makes the result wrong at once. Below the answer are the other questions: what
makes the kernel larger or slower. `enter` on one asks it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from textual import on

from ....engine.inspect.record_bisection import Bisection, Reproducer
from ...core.lines import Line
from ...core.views.bisection import bisection_lines
from ...worker.events import Event, Exited, Failed, Progress, RecordUpdated, Studied
from ...worker.protocol import Study
from ...worker.studying import start_study
from ..widgets.lines import LineView
from .lists import ListScreen

__all__ = ["StudyScreen"]


_QUESTIONS = {
    "": "what makes the result wrong",
    "time": "what makes a launch slower",
    "statements": "what makes the IR larger",
    "loads": "what makes it load more",
    "stores": "what makes it store more",
    "atomics": "what makes it use more atomics",
    "instructions": "what makes the code longer",
    "vector-width": "what makes vectors narrower",
}
"""By metric. Each optional run of a pass is left out in turn."""


class _Ask(NamedTuple):
    """The key of a line that asks another question."""

    metric: str


class StudyScreen(ListScreen):
    """Finds what makes a kernel wrong or worse, in a worker of its own.

    kind: as in `Study`. free: returns a path for a file of this name and suffix. Leaving the
    screen cancels the work.
    """

    heading = "what makes the result wrong"
    KEYS = (("reproduce", "script"), *ListScreen.KEYS)

    def __init__(self, client: Any, kernel: str, kind: str, free: Any) -> None:
        super().__init__()
        self._client = client
        self._kernel = kernel
        self.kind = kind
        self._free = free
        self._worker: Any = None
        self._metric = ""
        self._doing = "starting a worker ..."
        self._faults: list[str] = []
        self._lines: list[Line] = []

    def on_mount(self) -> None:
        super().on_mount()
        self._ask("")

    @on(LineView.Chosen, "#list")
    def _chosen(self, event: LineView.Chosen) -> None:
        event.stop()
        current = self.query_one("#list", LineView).current
        key = None if current is None else current.key
        if isinstance(key, _Ask):
            self._ask(key.metric)
            self.paint()

    def _ask(self, metric: str) -> None:
        """Start a worker for a question."""
        self.on_unmount()
        self._lines, self._faults, self._metric = [], [], metric
        self._doing = "starting a worker ..."
        record = self.studio.record
        kernel = next(k for k in record.kernels if k.id == self._kernel)
        wrong = [b.backend for b in kernel.backends
                 if b.agreement is not None and b.agreement.verdict == "differs"]  # fmt: skip
        backend = wrong[0] if wrong and not metric else ""
        study = Study(kind="bisect" if metric else self.kind, backend=backend, metric=metric)
        self._worker = start_study(self._client, kernel.id, study, self._heard)

    def on_unmount(self) -> None:
        if self._worker is not None:
            self._worker.stop()

    def content(self) -> tuple[Sequence[Line], list[Line]]:
        if self._lines:
            return self._lines, []
        asked = f"  {_QUESTIONS[self._metric]}"
        lines = [Line(((self._kernel, "title"), (asked, ""))), Line(((f"  {self._doing}", "dim"),))]
        lines += [Line(((f"  {text}", "bad"),)) for text in self._faults]
        leave = self.studio.key_name("back")
        return [*lines, Line(()), Line(((f"  {leave} cancels.", "dim"),))], []

    # ---- on the thread of the worker's client

    def _heard(self, event: Event) -> None:
        if isinstance(event, Progress | Failed | Studied | Exited | RecordUpdated):
            self.studio.call_later(self._take, event)

    def _take(self, event: Event) -> None:
        if not self.is_attached:
            return
        match event:
            case Progress():
                self._doing = event.text
                self.activity = event.forms
            case Failed():
                self._faults += (event.error.rendered or event.error.message).splitlines()
            case Studied():
                self.activity = ()
                self._answered(event.answer)
            case Exited(expected=False):
                self.activity = ()
                self._doing = f"the worker ended: {event.reason}"
            case RecordUpdated(complete=True) if not self._lines:
                self.activity = ()
                self._doing = "the worker ended without an answer"
            case _:
                return
        self.paint()

    def _answered(self, answer: bytes) -> None:
        self._show(answer)
        self._lines += [Line(()), Line((("enter asks another question:", "dim"),))]
        for metric, text in _QUESTIONS.items():
            if metric != self._metric:
                self._lines.append(Line(((f"  {text}", "accent"),), _Ask(metric)))
        more = "qd-studio bisect FILE --kernel K --good REVISION finds the commit"
        self._lines.append(Line(((f"  {more}", "dim"),)))

    def _show(self, answer: bytes) -> None:
        texts = {file.path: file.text for file in self.studio.record.files}
        if self.kind == "bisect" or self._metric:
            self._lines = list(
                bisection_lines(msgspec.json.decode(answer, type=Bisection), texts)
            )  # fmt: skip
            if self._metric:
                return
            key = self.studio.key_name("reproduce")
            more = f"{key} writes a script that shows it."
            self._lines += [Line(()), Line(((more, "dim"),))]
            return
        made = msgspec.json.decode(answer, type=Reproducer)
        self._lines = list(bisection_lines(made.bisection, texts))
        if not made.script:
            self._lines += [Line(()), Line(((f"no script: {made.reason}", "warn"),))]
            return
        path: Path = self._free(f"repro_{made.bisection.kernel}", ".py")
        try:
            path.write_text(made.script, encoding="utf-8")
        except OSError as error:
            said = f"cannot write {path}: {error.strerror}"
        else:
            said = f"wrote {path.resolve()}: {made.lines} lines of kernel"
        self._lines += [Line(()), Line(((said, "accent"),)), Line(())]
        self._lines += [Line(((text, ""),)) for text in made.script.splitlines()]
