"""Compares what the studio draws with the truth."""

from __future__ import annotations

from collections.abc import Iterator

from qd_studio.app.core.lines import Line, text_of
from qd_studio.app.tui.app import StudioApp
from qd_studio.app.tui.widgets.lines import LineView

from .versions import Truth, measured_of, version_of


class Judge:
    """faults: what was drawn and is not so, each once. verdicts: how many good ones were drawn."""

    def __init__(self, truth: Truth) -> None:
        self._truth = truth
        self.faults: dict[str, None] = {}
        self.verdicts = 0
        self._seen: object = None

    def look(self, app: StudioApp) -> None:
        """Judge the screen as it is now."""
        version = version_of(app.record)
        for kernel in app.record.kernels:
            for backend in kernel.backends:
                measured = measured_of(backend)
                if "launches" not in backend.earlier and not kernel.stale and measured - {version}:
                    self._fault(f"{backend.backend}: {measured} counts as of version {version}")
                if backend.earlier and backend.agreement is not None:
                    self._fault(f"{backend.backend}: a verdict of an older save was kept")
        good = self._truth(version)
        shown = [view for view in app.screen.query(LineView) if view.display and view.region]
        for view in shown:
            for line in _visible(view):
                for backend in _called_good(view, line):
                    self.verdicts += 1
                    wrong = backend not in good if backend else not good >= {"cpu", "wrong"}
                    if wrong:
                        text = text_of(line).strip()
                        self._fault(f"version {version} is called ok on {backend or 'all'}: {text}")

    def _fault(self, text: str) -> None:
        self.faults.setdefault(text)


def _visible(view: LineView) -> Iterator[Line]:
    """The lines on the screen; none of a list that is drawn as of an older save."""
    if view.state:
        return
    top = view.scroll_offset.y
    for i in range(top, min(len(view.lines), top + view.size.height)):
        yield view.lines[i]


def _called_good(view: LineView, line: Line) -> Iterator[str]:
    """The backends that a line says are right; "" for the sign of the whole kernel."""
    if view.id == "matrix":
        starts = _groups(view)
        at = 0
        for text, style in line.spans:
            if "✓" in text or (style == "ok" and text.strip()):
                yield next((name for start, name in reversed(starts) if at >= start), "")
            at += len(text)
    elif isinstance(line.key, tuple) and line.key and line.key[0] == "side":
        yield from (line.key[1] for text, _ in line.spans if "✓" in text)


def _groups(view: LineView) -> list[tuple[int, str]]:
    """(column, backend) of each group of columns of the matrix."""
    out: list[tuple[int, str]] = []
    at = 0
    for text, _ in view.header[-2].spans if len(view.header) > 1 else ():
        if text.strip():
            out.append((at, text.split()[1]))
        at += len(text)
    return out
