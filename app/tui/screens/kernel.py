"""One kernel: tabs over one selection.

The selection (backend, pass run, op, source line) belongs to the app and outlives the screen, a
recompile and a change of tab; this screen paints it and tells the app when the person moves.
"""

from __future__ import annotations

from dataclasses import replace

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical

from ...core.format import error_text, pass_label
from ...core.lines import Line
from ...core.panels.cfg import cfg_lines
from ...core.panels.cfg import title as cfg_title
from ...core.panels.code import artefacts_of, code_lines, is_line, user_line_of
from ...core.panels.launch import launch_lines
from ...core.panels.misc import cache_lines, remark_lines
from ...core.panels.passes import diff_lines, hunks, list_lines, pass_diff, user_line
from ...core.panels.source import lines_of, source_lines
from ...core.state import TABS, backend_of, compiled_of, kernel_of, name_of, run_of, step_run
from ..commands import bindings
from ..widgets.bars import KeyBar, SearchBar, TabBar, TitleBar
from ..widgets.lines import LineView
from .base import StudioScreen

__all__ = ["KernelScreen"]

_TWO_PANES = 116
_THREE_PANES = 176


class KernelScreen(StudioScreen):
    """See the module docstring."""

    BINDINGS = bindings("kernel")
    DEFAULT_CSS = """
    KernelScreen #errors { height: auto; max-height: 6; display: none; }
    KernelScreen #body { height: 1fr; }
    KernelScreen #body > LineView { display: none; width: 1fr; height: 1fr; }
    KernelScreen #passes { display: none; width: 1fr; height: 1fr; }
    KernelScreen #runs { width: 1fr; }
    KernelScreen #changes { width: 1fr; }
    KernelScreen #diff { height: 1fr; }
    KernelScreen #remarks { height: auto; max-height: 5; display: none; border-top: solid $panel; }
    KernelScreen #side { display: none; width: 1fr; border-left: solid $panel; }
    KernelScreen.two #runs { width: 68; }
    KernelScreen.two #changes { border-left: solid $panel; }
    KernelScreen.three #side { display: block; width: 56; }
    """

    def compose(self) -> ComposeResult:
        yield TitleBar()
        yield TabBar(TABS)
        yield LineView(id="errors")
        with Horizontal(id="body"):
            yield LineView(id="source")
            with Horizontal(id="passes"):
                yield LineView(id="runs")
                with Vertical(id="changes"):
                    yield LineView(id="diff")
                    yield LineView(id="remarks")
                yield LineView(id="side")
            yield LineView(id="cfg")
            yield LineView(id="launch")
            yield LineView(id="code")
            yield LineView(id="caches")
        yield SearchBar()
        yield KeyBar(("kernel", "list"))

    def __init__(self) -> None:
        super().__init__()
        self._diff_shown = False
        self._hunks: list[int] = []

    def on_mount(self) -> None:
        self._fit()
        self.paint()
        self._focus_tab()

    def on_resize(self) -> None:
        self._fit()
        self.call_after_refresh(self.paint)

    def _fit(self) -> None:
        width = self.studio.size.width
        self.set_class(width >= _TWO_PANES, "two")
        self.set_class(width >= _THREE_PANES, "three")

    # --- painting --------------------------------------------------------------------------

    def paint(self) -> None:
        state = self.studio
        kernel = kernel_of(state.record, state.sel)
        if kernel is None:
            self.query_one(TitleBar).set(left="This kernel is no longer in the file")
            return
        backend = backend_of(state.record, state.sel)
        stale = "   ~ stale: last good result" if kernel.stale else ""
        name = backend.backend if backend is not None else "no backend"
        self.query_one(TitleBar).set(left=f"{kernel.name}  [{name}]{stale}", right=state.progress)
        self._paint_errors()
        tab = state.sel.tab
        for other in TABS:
            self.query_one(f"#{other}").display = other == tab
        self.query_one(TabBar).set(tab, self._note())
        getattr(self, f"_paint_{tab}")()

    def _note(self) -> str:
        state = self.studio
        compiled = compiled_of(state.record, state.sel)
        if state.sel.tab == "cfg" and compiled is not None and compiled.cfgs:
            n = len(compiled.cfgs)
            at = state.sel.cfg % n
            return f"{cfg_title(compiled.cfgs[at])}  ({at + 1} of {n}, [ and ] step)"
        if state.sel.tab == "code":
            names = artefacts_of(backend_of(state.record, state.sel))
            if names:
                at = state.sel.artefact % len(names)
                return f"{names[at]}  ({at + 1} of {len(names)}, [ and ] step)"
        run = run_of(compiled, state.sel)
        if state.sel.tab == "passes" and run is not None and compiled is not None:
            return f"{pass_label(run)}: {pass_diff(compiled, run).summary()}"
        return ""

    def _paint_errors(self) -> None:
        state = self.studio
        kernel = kernel_of(state.record, state.sel)
        lines: list[Line] = []
        if kernel is not None:
            errors = [e for e in state.record.errors if not e.file or e.file == kernel.file]
            errors += [*kernel.errors, *(e for b in kernel.backends for e in b.errors)]
            for error in errors:
                where = " ".join(p for p in (error.stage, error.pass_name) if p)
                head = f"while: {where}" if where else ""
                if head:
                    lines.append(Line(((head, "warn"),)))
                lines += [Line(((t, "bad"),), None, t) for t in error_text(error).splitlines()]
        view = self.query_one("#errors", LineView)
        view.display = bool(lines)
        view.show(lines)

    def _paint_source(self) -> None:
        state = self.studio
        kernel = kernel_of(state.record, state.sel)
        if kernel is not None:
            compiled = compiled_of(state.record, state.sel)
            lines = source_lines(state.record, kernel, compiled, state.ascii_only)
            self.query_one("#source", LineView).show(lines, (), state.sel.line or kernel.line)

    def _paint_passes(self) -> None:
        state = self.studio
        compiled = compiled_of(state.record, state.sel)
        runs = self.query_one("#runs", LineView)
        two = self.has_class("two")
        runs.display = two or not self._diff_shown
        self.query_one("#changes").display = two or self._diff_shown
        if compiled is None or not compiled.runs:
            text = "No passes were recorded: this kernel has not been compiled."
            runs.show([Line(((text, "dim"),))])
            self.query_one("#diff", LineView).show([])
            return
        run = run_of(compiled, state.sel)
        lines = list_lines(compiled, fold_noops=state.sel.fold_noops, ascii_only=state.ascii_only)
        runs.show(lines, (), run.index if run is not None else None)
        self._paint_diff()

    def _paint_diff(self) -> None:
        state = self.studio
        compiled = compiled_of(state.record, state.sel)
        run = run_of(compiled, state.sel)
        if compiled is None or run is None:
            return
        view = self.query_one("#diff", LineView)
        width = (view.size.width - 7) // 2 if state.sel.split and view.size.width >= 70 else 0
        old, new = compiled.snapshots[run.before], compiled.snapshots[run.after]
        lines = diff_lines(
            compiled, old, new, pass_diff(compiled, run), width=width,
            context=None if state.sel.whole else 3,
        )  # fmt: skip
        self._hunks = hunks(lines)
        view.show(lines, (), state.sel.op if state.sel.op >= 0 else None)
        if state.sel.op < 0 and self._hunks:
            view.move(self._hunks[0])
        remarks = self.query_one("#remarks", LineView)
        found = remark_lines(run)
        remarks.display = bool(found)
        remarks.show(found)
        if self.has_class("three"):
            kernel = kernel_of(state.record, state.sel)
            if kernel is not None:
                side = source_lines(state.record, kernel, compiled, state.ascii_only)
                self.query_one("#side", LineView).show(side, (), state.sel.line or kernel.line)

    def _paint_cfg(self) -> None:
        state = self.studio
        compiled = compiled_of(state.record, state.sel)
        view = self.query_one("#cfg", LineView)
        if compiled is None:
            view.show([Line((("Not compiled.", "dim"),))])
            return
        width = min(110, (view.size.width or self.studio.size.width) - 2)
        lines = cfg_lines(compiled, state.sel.cfg, width, state.ascii_only)
        view.show(lines, (), state.sel.op if state.sel.op >= 0 else None)

    def _paint_launch(self) -> None:
        state = self.studio
        kernel = kernel_of(state.record, state.sel)
        if kernel is not None:
            history = {
                name: past for (k, name), past in state.history.launches.items() if k == kernel.id
            }
            lines = launch_lines(kernel, self.studio.size.width - 2, history, state.ascii_only)
            self.query_one("#launch", LineView).show(lines)

    def _paint_code(self) -> None:
        state = self.studio
        backend = backend_of(state.record, state.sel)
        lines = code_lines(backend, state.sel.artefact)
        line = state.sel.line
        at = next((i for i, x in enumerate(lines) if line and is_line(x.key, line)), None)
        self.query_one("#code", LineView).show(lines, (), lines[at].key if at is not None else None)

    def _paint_caches(self) -> None:
        kernel = kernel_of(self.studio.record, self.studio.sel)
        if kernel is not None:
            self.query_one("#caches", LineView).show(cache_lines(kernel, self.studio.ascii_only))

    # --- what the person does --------------------------------------------------------------

    @on(LineView.Moved)
    def _moved(self, event: LineView.Moved) -> None:
        key = event.line.key if event.line is not None else None
        if event.view.id == "runs":
            self._pick_run(key)
        elif event.view.id in ("diff", "cfg") and isinstance(key, int):
            compiled = compiled_of(self.studio.record, self.studio.sel)
            line = lines_of(compiled, key) if compiled is not None else 0
            self.studio.select(op=key, line=line or self.studio.sel.line)
        elif event.view.id in ("source", "side") and isinstance(key, int):
            self.studio.select(line=key)
        elif event.view.id == "code" and (line := user_line_of(key)):
            self.studio.select(line=line)

    def _pick_run(self, key: object) -> None:
        compiled = compiled_of(self.studio.record, self.studio.sel)
        if compiled is not None and isinstance(key, int):
            self.studio.select(run=name_of(compiled.runs[key]))
            self._paint_diff()
            self.query_one(TabBar).set("passes", self._note())

    @on(LineView.Chosen)
    def _chosen(self, event: LineView.Chosen) -> None:
        key = event.line.key if event.line is not None else None
        if event.view.id == "runs":
            if isinstance(key, tuple) and key[0] == "noops":
                self.action_flip("fold_noops")
            else:
                self.action_other_pane()
        elif event.view.id == "diff" and isinstance(key, tuple) and key[0] == "fold":
            self.action_flip("whole")
        elif event.view.id == "diff" and self.studio.sel.line:
            self.action_show_tab("source")
        elif event.view.id == "source":
            self._open_line()

    def _open_line(self) -> None:
        """From a source line to its first op in the diff of the selected pass."""
        compiled = compiled_of(self.studio.record, self.studio.sel)
        run = run_of(compiled, self.studio.sel)
        if compiled is None or run is None:
            return
        shot = compiled.snapshots[run.after]
        for op, loc in zip(shot.ids, shot.locs, strict=True):
            if op >= 0 and user_line(compiled, loc) == self.studio.sel.line:
                self.studio.select(op=op, whole=True)
                break
        self._diff_shown = True
        self.action_show_tab("passes")

    @on(TabBar.Picked)
    def _picked(self, event: TabBar.Picked) -> None:
        self.action_show_tab(event.name)

    def _focus_tab(self) -> None:
        tab = self.studio.sel.tab
        name = f"#{tab}"
        if tab == "passes":
            name = "#diff" if self._diff_shown else "#runs"
        self.query_one(name, LineView).focus()

    def action_tab(self, step: int) -> None:
        self.action_show_tab(TABS[(TABS.index(self.studio.sel.tab) + step) % len(TABS)])

    def action_show_tab(self, name: str) -> None:
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
                self.studio.sel = replace(step_run(compiled, sel, step), tab="passes")
        self.paint()

    def action_hunk(self, step: int) -> None:
        view = self.query_one("#diff", LineView)
        if step > 0:
            target = next((h for h in self._hunks if h > view.cursor), None)
        else:
            target = next((h for h in reversed(self._hunks) if h < view.cursor), None)
        if target is not None:
            view.move(target)
            view.focus()

    def action_other_pane(self) -> None:
        if self.studio.sel.tab == "passes":
            runs = self.query_one("#runs", LineView)
            self._diff_shown = runs.has_focus or not self._diff_shown
            self._paint_passes()
            self._focus_tab()

    def action_flip(self, name: str) -> None:
        sel = self.studio.sel
        self.studio.sel = replace(sel, **{name: not getattr(sel, name)})
        self.paint()

    def action_next_backend(self) -> None:
        kernel = kernel_of(self.studio.record, self.studio.sel)
        if kernel is None:
            return
        names = [b.backend for b in kernel.backends if b.compile is not None]
        if len(names) < 2:
            self.notify("Only one backend has compiled this kernel.", timeout=2)
            return
        here = backend_of(self.studio.record, self.studio.sel)
        at = names.index(here.backend) if here is not None and here.backend in names else -1
        self.studio.select(backend=names[(at + 1) % len(names)], run=None, op=-1)
        self.paint()

    def action_kernel(self, step: int) -> None:
        ids = [k.id for k in self.studio.record.kernels]
        if ids:
            at = ids.index(self.studio.sel.kernel) if self.studio.sel.kernel in ids else 0
            self.studio.select(kernel=ids[(at + step) % len(ids)], run=None, op=-1, line=0)
            self.paint()

    def back(self) -> bool:
        """One level out within this screen: from the diff to the list. False at the top."""
        if self.studio.sel.tab == "passes" and self._diff_shown:
            self._diff_shown = False
            self._paint_passes()
            self._focus_tab()
            return True
        return False
