"""One kernel: tabs over one selection.

The selection (backend, pass run, op, source line) belongs to the app and outlives the screen, a
recompile and a change of tab; this screen paints it and tells the app when the person moves.
"""

from __future__ import annotations

import re
from typing import Final

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Horizontal

from ...core.format import GLYPHS
from ...core.lines import Line, index_of, search_text
from ...core.panels.cfg import cfg_lines, graph_of_run
from ...core.panels.cfg import title as cfg_title
from ...core.panels.code import CodeLines, artefacts_of, code_lines, title_of
from ...core.panels.errors import error_lines, errors_of
from ...core.panels.launch import launch_lines
from ...core.panels.machine import machine_lines
from ...core.panels.places import user_lines
from ...core.panels.source import source_lines
from ...core.pending import SENTENCES, all_of, state_of
from ...core.state import TABS, backend_of, compiled_of, kernel_of, run_of, step_run
from ..commands import bindings
from ..widgets.autodiff import AutodiffPane
from ..widgets.bars import KeyBar, TabBar, TitleBar
from ..widgets.caches import CachesPane
from ..widgets.lines import LineView
from ..widgets.passes import PassesPane
from .base import StudioScreen

__all__ = ["KernelScreen"]

_STEP = "previous-pass+next-pass"
_ENDS = (("palette", "commands"), ("help", "help"), ("back", "back"))
_KEYS: Final = {
    "source": (("next-tab", "tab"), ("choose", "its IR"), ("previous-kernel+next-kernel", "kernel"),
               ("search", "search")),
    "passes": ((_STEP, "pass"), ("pane", "pane"), ("previous-hunk+next-hunk", "change"),
               ("split", "split"), ("whole", "all"), ("noops", "no-ops")),
    "cfg": ((_STEP, "graph"), ("definition+use", "def/use"), ("export", "export"),
            ("search", "search")),
    "launch": (("refresh", "measure again"), ("next-tab", "tab"), ("copy-all", "copy")),
    "code": ((_STEP, "text"), ("backend", "backend"), ("search", "search"), ("copy-all", "copy")),
    "caches": (("pane", "pane"), ("search", "search"), ("next-tab", "tab"), ("copy-all", "copy")),
    "autodiff": (("pane", "pane"), ("choose", "counterpart"), ("zoom", "zoom"),
                 ("search", "search"), ("backend", "backend")),
}  # fmt: skip
# Lists whose lines lead to the source.
_LEADING: Final = ("diff", "cfg", "code", "launch", "layer", "adstack")
_OPERAND: Final = re.compile(r"\$(\d+)")
# A drawing wider than this is no easier to read.
_WIDEST_GRAPH = 110
# The parts of a backend's record that a tab shows.
_PARTS_OF_TAB: Final = {"source": ("passes",), "passes": ("passes",), "cfg": ("passes",),
                       "code": ("code",)}  # fmt: skip


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
        # What of the selection each list was last put on, so that it is put there only once.
        self._put: dict[str, object] = {}
        self._operand = (-1, 0)

    def body(self) -> ComposeResult:
        yield TabBar(TABS)
        yield LineView(id="errors", idle_cursor=False)
        with Horizontal(id="body"):
            yield LineView(id="source")
            yield PassesPane(id="passes")
            for name in ("cfg", "launch", "code"):
                yield LineView(id=name)
            yield CachesPane(id="caches")
            yield AutodiffPane(id="autodiff")

    @property
    def pane(self) -> PassesPane:
        """The tab of passes."""
        return self.query_one(PassesPane)

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
        for other in TABS:
            self.query_one(f"#{other}").display = other == tab
        self.query_one(TabBar).set(tab)
        wrong = (("error", "error"),) if self.query_one("#errors").display else ()
        self.query_one(KeyBar).set((*wrong, *_KEYS[tab], *_ENDS))
        if kernel_of(state.record, state.sel) is None:
            gone = Line((("This kernel is no longer in the file.", "dim"),))
            for view in self.query(LineView):
                view.show([gone])
            return
        getattr(self, f"_paint_{tab}")()

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
        old = self._state
        if old:
            sign = GLYPHS[old][state.ascii_only]
            style = "bold reverse" if old == "stale" else "bold"
            left.append((f"  {sign} {SENTENCES[old]}", style))
        self.query_one(TitleBar).set(left, state.status)

    @property
    def _state(self) -> str:
        """``pending`` or ``stale`` if something that the tab shows is of an older save."""
        record, sel = self.studio.record, self.studio.sel
        kernel, tab = kernel_of(record, sel), sel.tab
        if kernel is None:
            return ""
        if tab in _PARTS_OF_TAB:
            return state_of(kernel, backend_of(record, sel), *_PARTS_OF_TAB[tab])
        if tab == "autodiff":
            return self.query_one(AutodiffPane).state
        part = "launches" if tab == "launch" else "caches"
        return all_of(state_of(kernel, backend, part) for backend in kernel.backends)

    def _paint_errors(self) -> None:
        state = self.studio
        kernel = kernel_of(state.record, state.sel)
        found = errors_of(state.record, kernel)
        view = self.query_one("#errors", LineView)
        view.display = bool(found)
        view.show(error_lines(found, state.ascii_only))
        if not found and view.has_focus:
            self._focus_tab()

    def _key(self, name: str, value: object) -> object:
        """``value`` if list ``name`` was not put there yet, else None."""
        if self._put.get(name) == value:
            return None
        self._put[name] = value
        return value

    def _paint_source(self) -> None:
        state = self.studio
        kernel = kernel_of(state.record, state.sel)
        if kernel is not None:
            compiled = compiled_of(state.record, state.sel)
            lines = source_lines(state.record, kernel, compiled, state.ascii_only)
            line = state.sel.line or kernel.line
            key = line if self._key("source", (kernel.id, line)) else None
            self.query_one("#source", LineView).show(lines, (), key)

    def _paint_passes(self) -> None:
        self.pane.paint()

    def _paint_cfg(self) -> None:
        state = self.studio
        compiled = compiled_of(state.record, state.sel)
        view = self.query_one("#cfg", LineView)
        if compiled is None or not compiled.cfgs:
            text = "No control-flow graph: this kernel was not compiled."
            if compiled is not None:
                text = "No control-flow graph: cfg_optimization did not run."
            view.show([Line(((text, "dim"),))])
            return
        width = min(_WIDEST_GRAPH, (view.size.width or state.size.width) - 2)
        at = state.sel.cfg % len(compiled.cfgs)
        lines = cfg_lines(compiled, at, width, state.ascii_only)
        key = state.sel.op if self._key("cfg", (at, state.sel.op)) else None
        where = f"graph {at + 1} of {len(compiled.cfgs)}  "
        header = Line(((where, "dim"), (cfg_title(compiled.cfgs[at]), "title")))
        view.show(lines, [header], key if key != -1 else None, self._state)

    def _paint_launch(self) -> None:
        state = self.studio
        kernel = kernel_of(state.record, state.sel)
        if kernel is not None:
            history = {
                name: past for (k, name), past in state.history.launches.items() if k == kernel.id
            }
            lines = launch_lines(kernel, state.size.width - 2, history, state.ascii_only)
            self.query_one("#launch", LineView).show(lines)

    def _paint_code(self) -> None:
        state = self.studio
        backend = backend_of(state.record, state.sel)
        lines = code_lines(backend, state.sel.artefact)
        names = artefacts_of(backend)
        view = self.query_one("#code", LineView)
        if not isinstance(lines, CodeLines):
            view.show(lines)
            return
        at = state.sel.artefact % len(names)
        header = Line((
            (f"text {at + 1} of {len(names)}  ", "dim"), (title_of(names[at]), "title"),
            (f"  {len(lines):,} lines", "dim"),
        ))  # fmt: skip
        # What the machine code takes stays on top, where there is room for both.
        facts = machine_lines(backend) if names[at] in ("ptx", "sass") else []
        room = state.size.height // 2 - 4
        view.show(lines, [header, *(facts if len(facts) <= room else facts[:1])], None, self._state)
        place = lines.first.get(state.sel.line)
        if self._key("code", (at, state.sel.line)) and place is not None:
            view.put(place)

    def _paint_caches(self) -> None:
        self.query_one(CachesPane).paint()

    def _paint_autodiff(self) -> None:
        self.query_one(AutodiffPane).paint()

    # --- what the person does --------------------------------------------------------------

    @on(LineView.Moved)
    def _moved(self, event: LineView.Moved) -> None:
        if event.line is None:
            return
        sel = self.studio.sel
        key, line, name = event.line.key, event.line.line, event.view.id
        if name == "cfg" and isinstance(key, int):
            self.studio.select(op=key, line=line or sel.line)
            compiled = compiled_of(self.studio.record, sel)
            if compiled is not None and compiled.cfgs:
                self._put["cfg"] = (sel.cfg % len(compiled.cfgs), key)
        elif name == "source" and line:
            self.studio.select(line=line)
            self._put["source"] = (sel.kernel, line)
        elif name == "code" and line:
            self.studio.select(line=line)
            names = artefacts_of(backend_of(self.studio.record, sel))
            self._put["code"] = (sel.artefact % max(1, len(names)), line)

    @on(LineView.Chosen)
    def _chosen(self, event: LineView.Chosen) -> None:
        line = event.line.line if event.line is not None else 0
        if event.view.id == "errors":
            self.action_error()
        elif event.view.id in ("source", "side"):
            self._open_line()
        elif event.view.id in _LEADING and line:
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
        tab = self.studio.sel.tab
        name = ("diff" if self.pane.diff_shown else "runs") if tab == "passes" else tab
        name = "layers" if tab == "caches" else name
        if tab == "autodiff":
            self.query_one(AutodiffPane).focus_first()
            return
        self.query_one(f"#{name}", LineView).focus()

    def action_tab(self, step: int) -> None:
        self.action_show_tab(TABS[(TABS.index(self.studio.sel.tab) + step) % len(TABS)])

    def action_show_tab(self, name: str) -> None:
        sel = self.studio.sel
        if name == "cfg" and sel.tab != "cfg":
            compiled = compiled_of(self.studio.record, sel)
            graph = graph_of_run(compiled, run_of(compiled, sel)) if compiled is not None else None
            self.studio.select(cfg=sel.cfg if graph is None else graph)
        self.studio.select(tab=name)
        self.paint()
        self._focus_tab()

    def action_step(self, step: int) -> None:
        sel = self.studio.sel
        if sel.tab == "cfg":
            self.studio.select(cfg=sel.cfg + step)
        elif sel.tab == "code":
            self.studio.select(artefact=sel.artefact + step)
        else:
            compiled = compiled_of(self.studio.record, sel)
            if compiled is not None:
                self.studio.select(run=step_run(compiled, sel, step).run)
            if sel.tab != "passes":
                self.action_show_tab("passes")
        self.paint()

    def _on_passes(self) -> PassesPane:
        if self.studio.sel.tab != "passes":
            self.action_show_tab("passes")
        return self.pane

    def action_hunk(self, step: int) -> None:
        self._on_passes().hunk(step)

    def _one_pane(self) -> bool:
        """Whether the tab has a single pane; then that is said."""
        if self.studio.sel.tab in ("passes", "caches", "autodiff"):
            return False
        self.notify("This tab has one pane.", timeout=2)
        return True

    def action_other_pane(self) -> None:
        if self._one_pane():
            return
        if self.studio.sel.tab == "caches":
            self.query_one(CachesPane).other_pane()
        elif self.studio.sel.tab == "autodiff":
            self.query_one(AutodiffPane).other_pane()
        else:
            self._on_passes().other_pane()

    def action_flip(self, name: str) -> None:
        self._on_passes().flip(name)

    def action_widen(self, step: int) -> None:
        if self.studio.sel.tab != "passes":
            self.notify("Only the tab of passes has a list beside a diff.", timeout=2)
        else:
            self.pane.widen(step)

    def action_zoom(self) -> None:
        if self._one_pane():
            return
        panes = {"autodiff": AutodiffPane, "caches": CachesPane, "passes": PassesPane}
        self.query_one(panes[self.studio.sel.tab]).zoom()

    def _ir_view(self) -> LineView | None:
        """The list of IR that is shown."""
        tab = self.studio.sel.tab
        if tab == "autodiff":
            return self.query_one(AutodiffPane).side_view()
        name = {"passes": "diff", "cfg": "cfg"}.get(tab)
        return self.query_one(f"#{name}", LineView) if name is not None else None

    def action_definition(self) -> None:
        view = self._ir_view()
        line = view.current if view is not None else None
        if view is None or line is None or line.copy is None:
            self.notify("There is no operation under the cursor.", timeout=2)
            return
        op = line.key if isinstance(line.key, int) else -1
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
        view = self._ir_view()
        line = view.current if view is not None else None
        if view is None or line is None or not isinstance(line.key, int):
            self.notify("There is no operation under the cursor.", timeout=2)
            return
        wanted = re.compile(rf"\${line.key}\b")
        n = len(view.lines)
        for k in range(1, n):
            at = (view.cursor + k) % n
            if view.lines[at].key != line.key and wanted.search(search_text(view.lines, at)):
                view.move(at)
                return
        self.notify(f"Nothing that is shown uses ${line.key}.", timeout=3)

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

    def action_kernel(self, step: int) -> None:
        ids = [k.id for k in self.studio.record.kernels]
        if ids:
            at = ids.index(self.studio.sel.kernel) if self.studio.sel.kernel in ids else 0
            self.studio.select_kernel(ids[(at + step) % len(ids)])
            self.paint()

    def back(self) -> bool:
        """Out of the errors, the only pane, the diff where it hides the list. False at the top."""
        where = self.focused.id if self.focused is not None else ""
        if where == "errors":
            self._focus_tab()
        elif self.studio.sel.tab == "caches":
            return self.query_one(CachesPane).back()
        elif self.studio.sel.tab == "autodiff":
            return self.query_one(AutodiffPane).back()
        elif self.studio.sel.tab == "passes" and self.pane.zoomed:
            self.pane.zoom()
        elif where in ("diff", "remarks", "side"):
            self.pane.to_pane(diff=False)
        else:
            return False
        return True
