"""The passes of a compile: the list of runs, next to it the diff of the selected one.

Two panes are shown side by side when there is room, else one at a time. A diff of long listings is
computed on another thread; until it is ready, the pane says so and keys go on working.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical

from ....engine.inspect.record import CompileRecord, KernelRecord, PassRun, RunName
from ...core.lines import Line, index_of
from ...core.pending import state_of
from ...core.state import backend_of, compiled_of, kernel_of, name_of, names_of, run_of
from ...core.views.changes import (
    UNSEEN,
    DiffLines,
    Files,
    diff_size,
    readable_of,
    run_lines,
    shown_op,
    unseen,
)
from ...core.views.misc import remark_lines
from ...panels.passes import list_lines, run_title
from ...panels.source import source_lines
from .lines import LineView
from .pane import Pane

__all__ = ["PassesPane"]

TWO_PANES = 116
THREE_PANES = 176
# Lines up to which a diff is made at once: a few hundredths of a second.
AT_ONCE = 12_000
_LEAST_LIST, _LEAST_DIFF = 34, 40


class PassesPane(Pane, Horizontal):
    """See the module docstring."""

    DEFAULT_CSS = """
    PassesPane { width: 1fr; height: 1fr; }
    PassesPane #runs { width: 1fr; height: 1fr; }
    PassesPane #changes { width: 1fr; height: 1fr; }
    PassesPane #diff { height: 1fr; }
    PassesPane #remarks { height: auto; max-height: 5; display: none; }
    PassesPane #remarks { border-top: solid $panel-lighten-2; }
    PassesPane #side { display: none; width: 58; border-left: solid $panel-lighten-2; }
    PassesPane.two #changes { border-left: solid $panel-lighten-2; }
    PassesPane.three #side { display: block; }
    PassesPane.alone #side { width: 1fr; border-left: none; }
    """

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.diff_shown = False
        self.zoomed = False
        self._side_alone = False
        self._wider = 0
        self._kernel: str = ""
        self._run: RunName | None = None
        self._op = -1
        self._anchor = -1
        self._readable = False

    def compose(self) -> ComposeResult:
        yield LineView(id="runs")
        with Vertical(id="changes"):
            yield LineView(id="diff")
            yield LineView(id="remarks", idle_cursor=False)
        yield LineView(id="side")

    def on_mount(self) -> None:
        self.query_one("#runs", LineView).unfold = self._unfold_runs
        self.query_one("#diff", LineView).unfold = self._unfold_diff

    def _unfold_runs(self) -> None:
        self.flip("fold_noops")

    def _unfold_diff(self) -> None:
        """Now, also where a diff is otherwise made on another thread: the search goes on in it."""
        state = self.studio
        compiled = compiled_of(state.record, state.sel)
        run = run_of(compiled, state.sel)
        if compiled is not None and run is not None:
            width = self._column(self.query_one("#diff", LineView)) if state.sel.split else 0
            run_lines(compiled, run, width, True, self._anchor, self._files)
        self.flip("whole")

    # --- painting --------------------------------------------------------------------------

    def paint(self) -> None:
        """Show the app's selection."""
        state = self.studio
        sel = state.sel
        compiled = compiled_of(state.record, sel)
        run = run_of(compiled, sel)
        self._lay_out()
        if compiled is None or run is None:
            text = "No passes were recorded: this kernel has not been compiled."
            self.query_one("#runs", LineView).show([Line(((text, "dim"),))])
            for name in ("#diff", "#remarks"):
                self.query_one(name, LineView).show([])
            return
        self._paint_runs(compiled, run)
        self._paint_diff(compiled, run)
        self._paint_remarks(run)
        kernel = kernel_of(state.record, sel)
        if self.has_class("three") and kernel is not None:
            self._paint_side(kernel, compiled)

    @property
    def state(self) -> str:
        """``pending`` or ``stale`` if the passes that are shown are those of an older save."""
        record, sel = self.studio.record, self.studio.sel
        kernel = kernel_of(record, sel)
        return "" if kernel is None else state_of(kernel, backend_of(record, sel), "passes")

    def _lay_out(self) -> None:
        width = self.studio.size.width
        two = width >= TWO_PANES and not self.zoomed
        self.set_class(two, "two")
        # A split diff needs the space of the source.
        split = self.studio.sel.split
        alone = self._side_alone
        self.set_class(alone or (width >= THREE_PANES and not self.zoomed and not split), "three")
        self.set_class(alone, "alone")
        runs = self.query_one("#runs", LineView)
        runs.display = two or not self.diff_shown
        self.query_one("#changes").display = (two or self.diff_shown) and not alone
        runs.styles.width = self.list_width if two else "1fr"

    @property
    def list_width(self) -> int:
        """Columns of the list of runs when the diff is next to it."""
        width = self.studio.size.width
        usual = 66 if width >= 150 else 54
        return max(_LEAST_LIST, min(usual + self._wider, width - _LEAST_DIFF))

    def _paint_runs(self, compiled: CompileRecord, run: PassRun) -> None:
        state = self.studio
        view = self.query_one("#runs", LineView)
        room = self.list_width if self.has_class("two") else state.size.width
        lines = list_lines(
            compiled, fold_noops=state.sel.fold_noops, ascii_only=state.ascii_only, width=room - 1
        )
        name = name_of(compiled, run)
        if name == self._run and state.sel.kernel == self._kernel and view.lines:
            view.show(lines, state=self.state)
        elif index_of(lines, name) is not None:
            view.show(lines, (), name, self.state)
        else:
            view.show(lines, state=self.state)
            view.put(_line_of_folded(compiled, lines, name))

    def _paint_diff(self, compiled: CompileRecord, run: PassRun) -> None:
        state = self.studio
        sel = state.sel
        view = self.query_one("#diff", LineView)
        name = name_of(compiled, run)
        other_run = name != self._run or sel.kernel != self._kernel
        if other_run:
            self._anchor = sel.op
        width = self._column(view) if sel.split else 0
        request = (compiled, run, width, sel.whole, self._anchor, self._files)
        header = [run_title(run, state.ascii_only)]
        size = diff_size(compiled, run)
        if sel.readable and not size:
            size = len(compiled.snapshots[run.after].lines)
        if size > AT_ONCE // (4 if sel.readable else 1) and not run_lines.has(*request):
            view.show([Line(((f"Comparing {size:,} lines ...", "dim"),))], header)
            # With the places of all keys, which the screen asks for as soon as it has the lines.
            state.compute(lambda: index_of(run_lines(*request), name))
            return
        lines = run_lines(*request)
        if self._files is not None and unseen(compiled, run, self._files):
            header.append(Line(((UNSEEN, "dim"),)))
        waited = view.lines and view.lines[0].spans[0][0].startswith("Comparing")
        turned = self._readable != sel.readable
        moved = other_run or turned or sel.op != self._op or waited
        place = shown_op(compiled, run, self._files, sel.op) if sel.op >= 0 and moved else None
        view.show(lines, header, place, self.state)
        if (other_run or waited) and index_of(lines, place) is None:
            hunks = self.hunks
            view.put(hunks[0] if hunks else 0)
        self._run, self._kernel, self._op = name, sel.kernel, sel.op
        self._readable = sel.readable

    @property
    def _files(self) -> Files | None:
        """The files of the record for the readable form of IR; None for the exact one."""
        state = self.studio
        return state.record.files if state.sel.readable else None

    def readable_names(self, op: int, uses: bool) -> list[int] | None:
        state = self.studio
        compiled = compiled_of(state.record, state.sel)
        run = run_of(compiled, state.sel)
        if self._files is None or compiled is None or run is None:
            return None
        from ....engine.inspect.readable_uses import operands, users

        ask = users if uses else operands
        snapshot = compiled.snapshots[run.after]
        return ask(readable_of(compiled, snapshot, self._files), snapshot, op)

    def _column(self, view: LineView) -> int:
        """Columns of each side of a split diff; 0 if there is too little room for two."""
        room = view.size.width - 8
        return room // 2 if room >= 70 else 0

    def _paint_remarks(self, run: PassRun) -> None:
        remarks = self.query_one("#remarks", LineView)
        found = remark_lines(run)
        remarks.display = bool(found)
        remarks.show(found, state=self.state)

    def _paint_side(self, kernel: KernelRecord, compiled: CompileRecord) -> None:
        state = self.studio
        view = self.query_one("#side", LineView)
        line = state.sel.line or kernel.line
        now = view.current
        lines = source_lines(state.record, kernel, compiled, state.ascii_only)
        view.show(lines, (), None if now is not None and now.line == line else line)

    @property
    def hunks(self) -> Sequence[int]:
        """The lines where changes begin in the diff that is shown."""
        lines = self.query_one("#diff", LineView).lines
        return lines.hunks if isinstance(lines, DiffLines) else ()

    # --- what the person does --------------------------------------------------------------

    @on(LineView.Moved, "#runs")
    def _run_picked(self, event: LineView.Moved) -> None:
        event.stop()
        compiled = compiled_of(self.studio.record, self.studio.sel)
        key = event.line.key if event.line is not None else None
        if compiled is None or key not in names_of(compiled):
            return  # the name of a stage, or folded runs: what is selected stays
        run = compiled.runs[names_of(compiled).index(cast("RunName", key))]
        self.studio.select(run=cast("RunName", key))
        self._paint_diff(compiled, run)
        self._paint_remarks(run)

    @on(LineView.Moved, "#diff")
    def _op_picked(self, event: LineView.Moved) -> None:
        event.stop()
        if event.line is None:
            return
        key = event.line.key
        if isinstance(key, int):
            self.studio.select(op=key)
            self._op = key
        if event.line.line:
            self.studio.select(line=event.line.line)
            side = self.query_one("#side", LineView)
            at = index_of(side.lines, event.line.line)
            if at is not None:
                side.put(at)

    @on(LineView.Moved, "#remarks")
    def _remark_picked(self, event: LineView.Moved) -> None:
        event.stop()
        view = self.query_one("#diff", LineView)
        key = event.line.key if event.line is not None else None
        compiled = compiled_of(self.studio.record, self.studio.sel)
        run = run_of(compiled, self.studio.sel)
        if isinstance(key, int) and compiled is not None and run is not None:
            key = shown_op(compiled, run, self._files, key)
        at = index_of(view.lines, key)
        if at is not None:
            view.move(at)

    @on(LineView.Moved, "#side")
    def _line_picked(self, event: LineView.Moved) -> None:
        event.stop()
        if event.line is not None and event.line.line:
            self.studio.select(line=event.line.line)

    @on(LineView.Chosen, "#runs")
    def _run_opened(self, event: LineView.Chosen) -> None:
        event.stop()
        key = event.line.key if event.line is not None else None
        if isinstance(key, tuple) and cast("tuple[object, ...]", key)[0] == "noops":
            self.flip("fold_noops")
        else:
            self.to_pane(diff=True)

    @on(LineView.Chosen, "#diff")
    def _op_opened(self, event: LineView.Chosen) -> None:
        key = event.line.key if event.line is not None else None
        if isinstance(key, tuple) and cast("tuple[object, ...]", key)[0] == "fold":
            event.stop()
            self.flip("whole")

    def flip(self, name: str) -> None:
        """Turn a way of showing on or off."""
        self.studio.select(**{name: not getattr(self.studio.sel, name)})
        self.paint()
        if name == "split":
            self.call_after_refresh(self._paint_split)

    def _paint_split(self) -> None:
        """Once more, now that the pane knows the room it has."""
        self.paint()
        if self.studio.sel.split and not self._column(self.query_one("#diff", LineView)):
            zoom = self.studio.key_name("zoom")
            text = f"Two columns need more room; {zoom} shows the diff alone."
            self.notify(text, timeout=3)

    def to_pane(self, diff: bool) -> None:
        """Show and focus the diff or the list."""
        self.diff_shown = diff
        self.paint()
        self.query_one("#diff" if diff else "#runs", LineView).focus()

    def focus_first(self) -> None:
        self.query_one("#diff" if self.diff_shown else "#runs", LineView).focus()

    def ir_view(self) -> LineView | None:
        return self.query_one("#diff", LineView)

    def back(self) -> bool:
        """Out of the only list, or from the diff where it hides the list. False at the top."""
        focused = self.studio.focused
        if self.zoomed:
            self.zoom()
        elif focused is not None and focused.id in ("diff", "remarks", "side"):
            self.to_pane(diff=False)
        else:
            return False
        return True

    def other_pane(self) -> None:
        """Go from the list to the diff, or back."""
        self.to_pane(diff=not self.query_one("#diff", LineView).has_focus)

    def hunk(self, step: int) -> None:
        """Go to the next or previous change."""
        view = self.query_one("#diff", LineView)
        if step > 0:
            target = next((h for h in self.hunks if h > view.cursor), None)
        else:
            target = next((h for h in reversed(self.hunks) if h < view.cursor), None)
        self.to_pane(diff=True)
        if target is not None:
            view.move(target)

    def widen(self, step: int) -> None:
        """Move the border between list and diff."""
        before = self.list_width
        self._wider += step
        if self.list_width == before:
            self._wider -= step
        self.paint()
        self.call_after_refresh(self.paint)

    def zoom(self) -> None:
        """Only the focused pane, or both."""
        self.zoomed = not self.zoomed
        self._side_alone = self.zoomed and self.query_one("#side", LineView).has_focus
        self.diff_shown = not self.query_one("#runs", LineView).has_focus
        self.paint()
        self.call_after_refresh(self.paint)


def _line_of_folded(compiled: CompileRecord, lines: Sequence[Line], name: RunName) -> int:
    """The line that hides a run: the last one of a run that is not after it."""
    order = {n: i for i, n in enumerate(names_of(compiled))}
    here = order[name]
    at = 0
    for i, line in enumerate(lines):
        key = cast("tuple[object, ...]", line.key)
        if len(key) == len(name):
            first = order[cast("RunName", key)]
        elif key[0] == "noops":
            first = order[cast("RunName", key[1:])]
        else:
            continue
        if first <= here:
            at = i
    return at
