"""The screen of a bisection: its progress, the culprit, the script that shows it, and more to ask.

It looks for what makes the result wrong at once. Below the answer are the other questions: what
makes the kernel larger or slower. `enter` on one asks it. Another key asks which commit did it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from textual import on

from ....engine.inspect.record_bisection import SCRIPT, Bisection, Reproducer
from ....engine.inspect.record_gradient import GradientReport
from ....engine.inspect.record_nans import NanReport
from ...core.lines import Line
from ...core.views.bisection import bisection_lines
from ...core.views.gradients import gradient_lines
from ...core.views.nans import nan_lines
from ...worker.events import Event, Exited, Failed, Progress, RecordUpdated, Studied
from ...worker.protocol import Study
from ...worker.studying import judge_file, start_study
from ..commands import bindings
from ..free_path import free_path
from ..widgets.lines import LineView
from .lists import AskScreen

if TYPE_CHECKING:
    from ....engine.inspect.record import KernelRecord

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
_NAN = "where the first NaN or infinity comes from"
_NAN_QUESTIONS = {"nan": _NAN, "precision": "which lines lose precision against f64"}
"""By kind of study."""
_GRADIENT = "check-grad"


class _Ask(NamedTuple):
    """The key of a line that asks another question. kind: of the study, empty for the same."""

    metric: str
    kind: str = ""


class CommitSearch:
    """Bisects revisions of git on a thread of its own.

    said: called on that thread, with the commits judged so far and what is done now, and at the end
    with the result, or the reason why there is none.
    """

    def __init__(
        self, client: Any, kernel: KernelRecord, metric: str, ends: tuple[str, str],
        said: Callable[[Sequence[str], str], object],
        done: Callable[[Bisection | str], object],
    ) -> None:  # fmt: skip
        self._client = client
        self._kernel = kernel
        self._study = Study(kind="judge", metric=metric)
        self._ends = ends
        self._said = said
        self._done = done
        self._cancelled = threading.Event()
        self._judged: list[str] = []
        threading.Thread(target=self._run, name="studio-commits", daemon=True).start()

    def stop(self) -> None:
        """Give up; the worker ends."""
        self._cancelled.set()

    def _run(self) -> None:
        from ...history import bisect_commits
        from ...worker.once import CancelledError, WorkerError

        files = self._client.template.files
        own = self._kernel.file
        path = str(own if own in files or len(files) != 1 else files[0])
        try:
            found = bisect_commits(
                path, *self._ends, self._judge, self._study.metric, self._judged_one
            )
            self._done(msgspec.structs.replace(found, kernel=self._kernel.name))
        except CancelledError:
            return
        except (WorkerError, OSError, ValueError) as error:
            self._done(str(error) or type(error).__name__)

    def _judge(self, path: str) -> Any:
        def heard(event: Event) -> None:
            if isinstance(event, Progress):
                self._said(tuple(self._judged), event.text)

        return judge_file(
            self._client, path, self._kernel.name, self._study, heard, self._cancelled
        )

    def _judged_one(self, text: str) -> None:
        self._judged.append(text)
        self._said(tuple(self._judged), "the next revision ...")


class StudyScreen(AskScreen):
    """Finds what makes a kernel wrong or worse, in a worker of its own.

    kind: as in `Study`. Leaving the screen cancels the work.
    """

    BINDINGS = bindings("study")
    scope = "study"
    heading = "what makes the result wrong"
    prompt = "a good revision, such as HEAD~20 or v1.2; GOOD..BAD for both ends"
    KEYS = (("reproduce", "script"), ("which-commit", "which commit"), *AskScreen.KEYS)

    def __init__(self, client: Any, kernel: str, kind: str) -> None:
        super().__init__()
        self._client = client
        self._kernel = kernel
        self.kind = kind
        self._worker: Any = None
        self._metric = ""
        self._doing = "starting a worker ..."
        self._faults: list[str] = []
        self._judged: Sequence[str] = ()
        # The search between revisions that is at work: what others report comes too late.
        self._search: object = None
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
            self.kind = key.kind or self.kind
            self._ask(key.metric)
            self.paint()

    def _ask(self, metric: str) -> None:
        """Start a worker for a question."""
        self.on_unmount()
        self._search = None
        self._lines, self._faults, self._metric, self._judged = [], [], metric, ()
        self._doing = "starting a worker ..."
        self.heading = self._question
        record = self.studio.record
        kernel = next(k for k in record.kernels if k.id == self._kernel)
        wrong = [b.backend for b in kernel.backends
                 if b.agreement is not None and b.agreement.verdict == "differs"]  # fmt: skip
        backend = wrong[0] if wrong and not metric else ""
        if self.kind in (*_NAN_QUESTIONS, _GRADIENT):
            backend = self._backend_of(kernel, backend)
        study = Study(kind="bisect" if metric else self.kind, backend=backend, metric=metric)
        self._worker = start_study(self._client, kernel.id, study, self._heard)

    def _backend_of(self, kernel: KernelRecord, wrong: str) -> str:
        """The backend of the cell under the cursor of the matrix, if it was launched."""
        selected = self.studio.sel.backend
        ran = [b.backend for b in kernel.backends if b.launches]
        return selected if selected in ran else wrong

    @property
    def _question(self) -> str:
        if self.kind == _GRADIENT:
            return "how right the gradient is"
        return _NAN_QUESTIONS.get(self.kind, _QUESTIONS[self._metric])

    def on_unmount(self) -> None:
        if self._worker is not None:
            self._worker.stop()

    def content(self) -> tuple[Sequence[Line], list[Line]]:
        if self._lines:
            return self._lines, []
        asked = f"  {self._question}"
        lines = [Line(((self._kernel, "title"), (asked, "")))]
        lines += [Line(((f"  {text}", ""),)) for text in self._judged]
        lines.append(Line(((f"  {self._doing}", "dim"),)))
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
        self._add_questions()

    def _add_questions(self) -> None:
        if self.kind == _GRADIENT:
            return
        self._lines += [Line(()), Line((("enter asks another question:", "dim"),))]
        if self.kind in _NAN_QUESTIONS:
            self._lines += [
                Line(((f"  {text}", "accent"),), _Ask("", kind))
                for kind, text in _NAN_QUESTIONS.items() if kind != self.kind
            ]  # fmt: skip
            return
        for metric, text in _QUESTIONS.items():
            if metric != self._metric or self._judged:
                self._lines.append(Line(((f"  {text}", "accent"),), _Ask(metric)))
        key = self.studio.key_name("which-commit")
        self._lines.append(Line(((f"{key} finds the commit that did it.", "dim"),)))

    def _show(self, answer: bytes) -> None:
        texts = {file.path: file.text for file in self.studio.record.files}
        if self.kind == _GRADIENT:
            found = msgspec.json.decode(answer, type=GradientReport)
            self._lines = list(gradient_lines(found, texts))
            return
        if self.kind in _NAN_QUESTIONS:
            self._lines = list(nan_lines(msgspec.json.decode(answer, type=NanReport), texts))
            return
        if self.kind == "bisect" or self._metric:
            found = msgspec.json.decode(answer, type=Bisection)
            self._lines = list(bisection_lines(found, texts, self.studio.size.width))
            if self._metric or found.state != "found":
                return
            key = self.studio.key_name("reproduce")
            more = f"{key} writes a script that shows it."
            self._lines += [Line(()), Line(((more, "dim"),))]
            return
        made = msgspec.json.decode(answer, type=Reproducer)
        texts[SCRIPT] = made.script
        self._lines = list(bisection_lines(made.bisection, texts, self.studio.size.width))
        if not made.script:
            self._lines += [Line(()), Line(((f"no script: {made.reason}", "warn"),))]
            return
        path = free_path(f"repro_{made.bisection.kernel}", ".py")
        try:
            path.write_text(made.script, encoding="utf-8")
        except OSError as error:
            said = f"cannot write {path}: {error.strerror}"
        else:
            said = f"wrote {path.resolve()}: {made.lines} lines of kernel"
        self._lines += [Line(()), Line(((said, "accent"),)), Line(())]
        self._lines += [Line(((text, ""),)) for text in made.script.splitlines()]

    # ---- between revisions

    def action_commits(self) -> None:
        """Ask for a good revision."""
        self.bar.ask("")

    def _given(self, text: str) -> None:
        self.back()
        good, _, bad = text.strip().partition("..")
        if not good:
            return
        self.on_unmount()
        ends = good, bad.removeprefix(".") or "HEAD"
        self._lines, self._faults, self._judged = [], [], ()
        self.heading = f"{_QUESTIONS[self._metric]}, between revisions"
        self._doing = f"judging {ends[0]} and {ends[1]} ..."
        record = self.studio.record
        kernel = next(k for k in record.kernels if k.id == self._kernel)
        later = self.studio.call_later
        asked = self._search = object()
        self._worker = CommitSearch(
            self._client, kernel, self._metric, ends,
            lambda judged, doing: later(self._searching, asked, judged, doing),
            lambda found: later(self._found_commit, asked, found),
        )  # fmt: skip
        self.paint()

    def _searching(self, asked: object, judged: Sequence[str], doing: str) -> None:
        if self.is_attached and asked is self._search:
            self._judged, self._doing, self.activity = judged, doing, (doing,)
            self.paint()

    def _found_commit(self, asked: object, found: Bisection | str) -> None:
        if not self.is_attached or asked is not self._search:
            return
        self._search = None
        self.activity = ()
        self._lines = [Line(((text, "dim"),)) for text in self._judged]
        self._lines += [Line(())] if self._judged else []
        if isinstance(found, str):
            self._lines.append(Line(((found, "warn"),)))
        else:
            self._lines += bisection_lines(found, width=self.studio.size.width)
        self._add_questions()
        self.paint()
