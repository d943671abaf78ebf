"""One kernel: tabs over one selection.

The selection (backend, pass run, op, source line) belongs to the app and outlives the screen, a
recompile and a change of tab; this screen paints it and reports moves to the app.
"""

from __future__ import annotations

import re
from typing import Final, cast

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Horizontal

from ...core.format import GLYPHS
from ...core.lines import Line, index_of, search_text
from ...core.pending import SENTENCES
from ...core.state import backend_of, compiled_of, kernel_of, run_of, step_run
from ...core.views.errors import error_lines, errors_of
from ...core.views.explained import assumptions_at, explained
from ...core.views.source_lines import user_lines
from ...core.views.tracks import held_op
from ...panels import Changes, Tab, tabs
from ...panels.code import CodeLines
from ..commands import bindings, is_known
from ..widgets.bars import KeyBar, TabBar, TitleBar
from ..widgets.lines import LineView
from ..widgets.pane import LinesPane, Pane, make_pane
from ..widgets.passes import PassesPane
from .base import StudioScreen

__all__ = ["KernelScreen"]

_ENDS = (("palette", "commands"), ("help", "help"), ("back", "back"))
_OPERAND: Final = re.compile(r"\$(\d+)")


class KernelScreen(StudioScreen):
    """See the module docstring."""

    BINDINGS = bindings("kernel")
    DEFAULT_CSS = """
    KernelScreen #errors {
        height: auto; max-height: 9; display: none; border-bottom: solid $panel-lighten-2;
    }
    KernelScreen #body { height: 1fr; }
    KernelScreen #body > * { display: none; width: 1fr; height: 1fr; }
    """
    scope = "kernel"

    def __init__(self) -> None:
        super().__init__()
        self._tabs = {panel.id: panel for panel in tabs()}
        self._widgets = {id: make_pane(panel) for id, panel in self._tabs.items()}
        self._operand = (-1, 0)

    def body(self) -> ComposeResult:
        yield TabBar(tuple(self._tabs))
        yield LineView(id="errors", idle_cursor=False)
        with Horizontal(id="body"):
            yield from self._widgets.values()

    @property
    def pane(self) -> PassesPane:
        """The tab of passes."""
        return self.query_one(PassesPane)

    @property
    def shown(self) -> Pane:
        """The tab that is shown."""
        return cast(Pane, self._widgets[self.studio.sel.tab])

    @property
    def scopes(self) -> tuple[str, ...]:
        return (self.scope, *filter(None, (self.shown.scope,)))

    @property
    def tab(self) -> Tab:
        """The tab, as its panel defines it."""
        tab = self._tabs[self.studio.sel.tab].tab
        assert tab is not None
        return tab

    def on_mount(self) -> None:
        self.paint()
        self._focus_tab()

    def on_screen_resume(self) -> None:
        self.paint()
        if self.focused is None or not self.focused.display:
            self._focus_tab()

    def on_resize(self, event: events.Resize) -> None:
        super().on_resize(event)
        self.paint()
        # Once more when the lists know their own size, which split diffs and graphs go by.
        self.call_after_refresh(self.paint)

    # --- painting --------------------------------------------------------------------------

    def paint(self) -> None:
        state = self.studio
        tab = state.sel.tab
        self._paint_title()
        self._paint_errors()
        for name, widget in self._widgets.items():
            widget.display = name == tab
        self.query_one(TabBar).set(tab)
        wrong = (("error", "error"),) if self.query_one("#errors").display else ()
        self.query_one(KeyBar).set((*wrong, *filter(is_known, self.tab.keys), *_ENDS))
        if kernel_of(state.record, state.sel) is None:
            gone = Line((("This kernel is no longer in the file.", "dim"),))
            for view in self.query(LineView):
                view.show([gone])
            return
        self.shown.paint()

    def _paint_title(self) -> None:
        state = self.studio
        kernel = kernel_of(state.record, state.sel)
        if kernel is None:
            self.query_one(TitleBar).set((("qd-studio", "bold"),), state.status)
            return
        backend = backend_of(state.record, state.sel)
        name = backend.backend if backend is not None else "no backend"
        left = [(kernel.name, "bold"), (f"  {name}", "")]
        if backend is not None and backend.device is not None:
            left.append((f" on {backend.device.name}", ""))
        look = self.shown.subject()
        old = self.tab.state(look) if look is not None else ""
        if old:
            sign = GLYPHS[old][state.ascii_only]
            style = "bold reverse" if old == "stale" else "bold"
            left.append((f"  {sign} {SENTENCES[old]}", style))
        self.query_one(TitleBar).set(left, state.status)

    def _paint_errors(self) -> None:
        state = self.studio
        kernel = kernel_of(state.record, state.sel)
        found = errors_of(state.record, kernel)
        view = self.query_one("#errors", LineView)
        view.display = bool(found)
        view.show(error_lines(found, state.ascii_only))
        if not found and view.has_focus:
            self._focus_tab()

    # --- what the person does --------------------------------------------------------------

    @on(LineView.Moved)
    def _moved(self, event: LineView.Moved) -> None:
        if event.line is not None and isinstance(event.view, LinesPane):
            event.view.follow(event.line)

    @on(LineView.Chosen)
    def _chosen(self, event: LineView.Chosen) -> None:
        line = event.line.line if event.line is not None else 0
        look = self.shown.subject()
        changes: Changes = {}
        if self.tab.chosen is not None and look is not None and event.line is not None:
            changes = self.tab.chosen(look, event.line)
        if event.view.id == "errors":
            self.action_error()
        elif changes:
            self.studio.select(**{**changes, "tab": self.studio.sel.tab})
            self.action_show_tab(changes["tab"])
        elif event.view.id in ("source", "side"):
            self._open_line()
        elif line:  # of any list that did not handle it
            self.studio.select(line=line)
            self.action_show_tab("source")

    def action_error(self) -> None:
        kernel = kernel_of(self.studio.record, self.studio.sel)
        errors = errors_of(self.studio.record, kernel)
        if not errors:
            self.notify("Nothing has failed.", timeout=2)
            return
        here = [e.line for e in errors if kernel is not None and e.file == kernel.file and e.line]
        if not here:
            self.query_one("#errors", LineView).focus()
            return
        self.studio.select(line=here[0])
        self.action_show_tab("source")

    def _open_line(self) -> None:
        """From a source line to its first op in the diff of the selected pass."""
        compiled = compiled_of(self.studio.record, self.studio.sel)
        run = run_of(compiled, self.studio.sel)
        if compiled is None or run is None:
            self.notify("This kernel has not been compiled.", timeout=2)
            return
        lines = user_lines(compiled)
        for shot in (compiled.snapshots[run.after], compiled.snapshots[0]):
            for op, loc in zip(shot.ids, shot.locs, strict=True):
                if op >= 0 and loc >= 0 and lines[loc] == self.studio.sel.line:
                    self.studio.select(op=op, whole=True)
                    self.pane.diff_shown = True
                    self.action_show_tab("passes")
                    return
        self.notify(f"No IR comes from line {self.studio.sel.line}.", timeout=2)

    @on(TabBar.Picked)
    def _picked(self, event: TabBar.Picked) -> None:
        self.action_show_tab(event.name)

    def _focus_tab(self) -> None:
        self.shown.focus_first()

    def show_at(self, row: int) -> None:
        """Show the selection with its tab focused. row: the line of its list; -1: as selected."""
        if self.studio.sel.tab == "passes":
            self.pane.diff_shown = True
        self.paint()
        self._focus_tab()
        if row >= 0 and isinstance(self.shown, LinesPane):
            lines = self.shown.lines
            at = lines.place(row) if isinstance(lines, CodeLines) else row
            self.shown.move(row if at is None else at)

    def action_tab(self, step: int) -> None:
        names = list(self._tabs)
        at = names.index(self.studio.sel.tab)
        self.action_show_tab(names[(at + step) % len(names)])

    def action_show_tab(self, name: str) -> None:
        before = self.studio.sel.tab
        self.studio.select(tab=name)
        look = self.shown.subject()
        if name != before and self.tab.opened is not None and look is not None:
            self.studio.select(**self.tab.opened(look))
        self.paint()
        self._focus_tab()

    def action_step(self, step: int) -> None:
        sel = self.studio.sel
        look = self.shown.subject()
        if self.tab.step is not None and look is not None:
            self.studio.select(**self.tab.step(look, step))
        else:
            compiled = compiled_of(self.studio.record, sel)
            if compiled is not None:
                run = step_run(compiled, sel, step).run
                self.studio.select(run=run, op=held_op(compiled, sel.op, run))
            if sel.tab != "passes":
                self.action_show_tab("passes")
        self.paint()

    def _on_passes(self) -> PassesPane:
        if self.studio.sel.tab != "passes":
            self.action_show_tab("passes")
        return self.pane

    def action_hunk(self, step: int) -> None:
        if not self.shown.next_change(step):
            self._on_passes().hunk(step)

    def _one_list(self) -> bool:
        """True, with a notice, if the tab has a single list."""
        if self.shown.one_list:
            self.notify("This tab has one pane.", timeout=2)
        return self.shown.one_list

    def action_other_pane(self) -> None:
        if not self._one_list():
            self.shown.other_pane()

    def action_flip(self, name: str) -> None:
        if name in self.tab.flips:
            self.studio.select(**{name: not getattr(self.studio.sel, name)})
            self.paint()
        elif not self.shown.turn(name):
            self._on_passes().flip(name)
        if name == "readable":
            self.studio.keep_form()

    def action_graph_form(self) -> None:
        if self.studio.sel.tab != "cfg":
            self.action_show_tab("cfg")
        self.shown.turn("graph")

    def action_widen(self, step: int) -> None:
        if self.studio.sel.tab != "passes":
            self.notify("Only the tab of passes has a list next to a diff.", timeout=2)
        else:
            self.pane.widen(step)

    def action_zoom(self) -> None:
        if not self._one_list():
            self.shown.zoom()

    def action_definition(self) -> None:
        view = self.shown.ir_view()
        line = view.current if view is not None else None
        if view is None or line is None or line.copy is None:
            self.notify("There is no operation under the cursor.", timeout=2)
            return
        op = line.key if isinstance(line.key, int) else -1
        named = self.shown.readable_names(op, uses=False)
        if named is None:
            named = [int(n) for n in _OPERAND.findall(line.copy) if int(n) != op]
        places = [at for n in dict.fromkeys(named) if (at := index_of(view.lines, n)) is not None]
        if not places:
            self.notify("No operand of this line is shown; x shows all lines.", timeout=3)
            return
        # Asked again at the op that it came from, it goes to the next operand.
        last, turn = self._operand
        turn = (turn + 1) % len(places) if last == op else 0
        self._operand = (op, turn)
        view.move(places[turn % len(places)])

    def action_use(self) -> None:
        view = self.shown.ir_view()
        line = view.current if view is not None else None
        if view is None or line is None or not isinstance(line.key, int):
            self.notify("There is no operation under the cursor.", timeout=2)
            return
        wanted = re.compile(rf"\${line.key}\b")
        users = self.shown.readable_names(line.key, uses=True)
        n = len(view.lines)
        for k in range(1, n):
            at = (view.cursor + k) % n
            key = view.lines[at].key
            if users is not None:
                found = key in users
            else:
                found = key != line.key and wanted.search(search_text(view.lines, at))
            if found:
                view.move(at)
                return
        self.notify(f"Nothing that is shown uses ${line.key}.", timeout=3)

    def action_what_if(self) -> None:
        if self.studio.sel.tab != "explain":
            self.action_show_tab("explain")
            self.notify("W on a remark tries the assumptions below it.", timeout=3)
            return
        look = self.shown.subject()
        view = self.shown
        line = view.current if isinstance(view, LineView) else None
        if look is not None and look.compiled is not None and line is not None:
            self.studio.try_assumptions(assumptions_at(explained(look.compiled), line))
            if isinstance(view, LineView):  # what is found appears below the remark
                view.reveal_block(3)

    def action_next_backend(self) -> None:
        kernel = kernel_of(self.studio.record, self.studio.sel)
        names = [b.backend for b in kernel.backends if b.compile is not None] if kernel else []
        if len(names) < 2:
            self.notify("No other backend has compiled this kernel.", timeout=2)
            return
        here = backend_of(self.studio.record, self.studio.sel)
        at = names.index(here.backend) if here is not None and here.backend in names else -1
        self.studio.select(backend=names[(at + 1) % len(names)])
        self.studio.settle()
        self.paint()

    def action_measure(self) -> None:
        """Measure what the machine can do, if that is not known."""
        link = self.studio.link
        if link is None or link.client is None:
            self.notify("This is a saved session: nothing can be measured here.", timeout=3)
        else:
            link.client.measure_peaks()

    def action_kernel(self, step: int) -> None:
        ids = [k.id for k in self.studio.record.kernels]
        if ids:
            at = ids.index(self.studio.sel.kernel) if self.studio.sel.kernel in ids else 0
            self.studio.select_kernel(ids[(at + step) % len(ids)])
            self.paint()

    def action_debug(self, command: str, what: object = None, op: object = None) -> None:
        """Carry out a command of the Debug tab; what, op: its arguments, None for none."""
        # Textual passes no more arguments than it counts parameters: *more would lose some.
        if self.shown.scope == "debug":
            self.shown.run(command, *[each for each in (what, op) if each is not None])

    def cancel(self) -> bool:
        return self.shown.cancel()

    def back(self) -> bool:
        """Out of the errors, the only pane, the diff where it hides the list. False at the top."""
        where = self.focused.id if self.focused is not None else ""
        if where == "errors":
            self._focus_tab()
        else:
            return self.shown.back()
        return True
