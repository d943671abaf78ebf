"""The matrix of kernels and backends, with what is known of the one under the cursor."""

from __future__ import annotations

import os
from typing import cast

from textual import events, on
from textual.app import ComposeResult

from ...core.edits import changes, with_edits
from ...core.lines import Line, wrapped
from ...core.views.errors import error_lines, errors_of
from ...core.views.home import absent_lines, detail
from ...core.views.matrix import matrix
from ..commands import bindings
from ..widgets.bars import KeyBar, TitleBar
from ..widgets.lines import LineView
from .base import StudioScreen

__all__ = ["HomeScreen"]


class HomeScreen(StudioScreen):
    """See the module docstring."""

    BINDINGS = bindings("home")
    DEFAULT_CSS = """
    HomeScreen #errors {
        height: auto; max-height: 40%; display: none; border-bottom: solid $panel-lighten-2;
    }
    HomeScreen #matrix { height: 1fr; min-height: 4; }
    HomeScreen #detail { height: auto; max-height: 35%; border-top: solid $panel-lighten-2; }
    """
    KEYS = (
        ("choose", "open"), ("changes", "changes"), ("compare", "compare"), ("search", "search"),
        ("config", "options"), ("log", "log"), ("save", "save"),
        ("palette", "commands"), ("help", "help"), ("quit", "quit"),
    )  # fmt: skip
    MORE = (("choose", "open"), ("more-backends", "backends"), *KEYS[1:])
    """The same where the matrix has no room for all backends."""
    scope = "home"

    def __init__(self) -> None:
        super().__init__()
        self._page = 0
        self._hidden = False

    def body(self) -> ComposeResult:
        yield LineView(id="errors", idle_cursor=False)
        yield LineView(id="matrix")
        yield LineView(id="detail", idle_cursor=False)

    def on_mount(self) -> None:
        self.query_one("#matrix", LineView).focus()
        self.paint()

    def on_resize(self, event: events.Resize) -> None:
        super().on_resize(event)
        self.paint()

    def on_screen_resume(self) -> None:
        self.paint()

    def paint(self) -> None:
        state = self.studio
        record = state.record
        names = " ".join(os.path.basename(f) for f in state.files)
        left = (("qd-studio", "bold"), ("  ", ""), (names, ""))
        self.query_one(TitleBar).set(left, state.status)
        errors = error_lines(errors_of(record, gradients=False), state.ascii_only)
        top = self.query_one("#errors", LineView)
        top.display = bool(errors)
        top.show(errors)
        view = self.query_one("#matrix", LineView)
        if record.kernels:
            width = state.size.width - 1
            saves, key = state.history.statements, state.key_name("more-backends")
            found = matrix(record, width, saves, state.ascii_only, self._page, key)
            notes = [Line(((f"   {text}", "dim"),)) for text in found.notes]
            lines = [*self._rows(found.rows), Line(()), *notes, *absent_lines(record)]
            view.show(lines, found.head, self._wanted(view))
            self._hidden = bool(found.hidden)
        else:
            view.show(self._empty(bool(errors)))
        self._paint_detail()
        self._paint_keys()

    def _paint_keys(self) -> None:
        """The keys that matter; for a kernel with a wrong result, the one that explains it."""
        keys = self.MORE if self._hidden else self.KEYS
        sel = self.studio.sel.kernel
        kernel = next((k for k in self.studio.record.kernels if k.id == sel), None)
        if kernel is not None and any(
            b.agreement is not None and b.agreement.verdict == "differs" for b in kernel.backends
        ):
            keys = (keys[0], ("bisect", "why wrong"), *keys[1:])
        self.query_one(KeyBar).set(keys)

    def _rows(self, rows: list[Line]) -> list[Line]:
        """The rows with what the last save did, as soon as that is known."""
        edits = self.studio.edits
        before, now = edits.before, edits.now
        if before is None or now is None:
            return rows
        if not changes.has(before, now):
            self.studio.compute(lambda: changes(before, now))
            return rows
        return with_edits(rows, edits, self.studio.record, changes(before, now))

    def action_edit(self) -> None:
        """Show what the last save did to the selected kernel."""
        from .lists import EditScreen

        if self.studio.edits.before is None:
            self.studio.notify("Save the file: it is compared with what is shown now.", timeout=4)
        else:
            self.studio.push_screen(EditScreen())

    def action_compare(self) -> None:
        """Choose what to compare the selected kernel with."""
        from .comparing import CompareScreen

        self.studio.push_screen(CompareScreen())

    def action_more_backends(self) -> None:
        """The next page of the matrix; after the last one the first."""
        self._page += 1
        self.paint()

    def _wanted(self, view: LineView) -> object:
        """The key of the selected kernel for the cursor; None if the user moved it elsewhere."""
        line = view.current
        key = line.key if line is not None else None
        return None if isinstance(key, tuple) else self.studio.sel.kernel or None

    def _empty(self, failed: bool) -> list[Line]:
        keys = self.studio.key_name
        if failed:
            text = "Nothing to show until this is mended: save the file, and it is tried again."
        elif not self.studio.complete:
            text = "Waiting for the worker to import the file ..."
        else:
            text = "No kernels here yet. Mark a function with @qd.kernel and save the file."
        hint = (
            f"{keys('help')} shows all keys, {keys('log')} what was printed, {keys('quit')} quits."
        )
        return [Line(()), Line(((f"   {text}", ""),)), Line(((f"   {hint}", "dim"),))]

    def _paint_detail(self) -> None:
        view = self.query_one("#detail", LineView)
        sel = self.studio.sel.kernel
        kernel = next((k for k in self.studio.record.kernels if k.id == sel), None)
        found = detail(kernel, self.studio.ascii_only) if kernel is not None else []
        room = self.studio.size.width - 1
        lines = [part for line in found for part in wrapped(line, room)]
        view.display = bool(lines)
        # It may have what the matrix leaves free, and a third of the screen in any case.
        matrix = self.query_one("#matrix", LineView)
        height = self.studio.size.height
        free = height - len(matrix.lines) - len(matrix.header) - 3
        view.styles.max_height = max(free, height * 35 // 100)
        view.show(lines)

    @on(LineView.Moved, "#matrix")
    def _moved(self, event: LineView.Moved) -> None:
        kernel, _ = _kernel_at(event.line)
        if kernel:
            self.studio.select_kernel(kernel)
            self._paint_detail()
            self._paint_keys()

    @on(LineView.Chosen, "#matrix")
    def _chosen(self, event: LineView.Chosen) -> None:
        kernel, edit = _kernel_at(event.line)
        if edit:
            self.studio.select_kernel(kernel)
            self.action_edit()
        elif kernel:
            self.studio.open_kernel(kernel)


def _kernel_at(line: Line | None) -> tuple[str, bool]:
    """(the id of the kernel on a line, True if the line is about what a save did to it)."""
    key = line.key if line is not None else None
    if isinstance(key, str):
        return key, False
    if isinstance(key, tuple):
        kind, name = cast("tuple[str, str]", key)
        if kind == "edit":
            return name, True
    return "", False
