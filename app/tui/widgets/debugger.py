"""The Debug tab: the source with the current line, next to it the values at this moment.

The run itself is a `debugging.DebugSession`; this paints its view, and turns keys into requests.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.widgets import Static

from ....engine.inspect.record import KernelRecord
from ...core.lines import Line, Span, python_spans
from ...core.state import kernel_of
from ..commands import bindings
from ..debugging import DebugSession, View
from ..link import Computed
from .bars import PromptBar
from .debug_lines import op_lines, status_lines, value_lines, wrapped_text
from .lines import LineView
from .pane import Pane

__all__ = ["DebugPane"]

_SIDE_BY_SIDE: Final = 100
_PRIMAL: Final = "The kernel of a gradient is debugged, not the gradient: open {name}."
_SAVED: Final = "This is a saved session: the debugger runs kernels of a file that is watched."


class DebugPane(Pane, Vertical):
    """See the module docstring."""

    BINDINGS = bindings("debug")
    DEFAULT_CSS = """
    DebugPane #debug-panes { layout: vertical; height: 1fr; }
    DebugPane #debugged { height: 3fr; width: 1fr; }
    DebugPane #values { height: 2fr; width: 1fr; border-top: solid $panel-lighten-2; }
    DebugPane.wide #debug-panes { layout: horizontal; }
    DebugPane.wide #debugged { height: 1fr; width: 3fr; }
    DebugPane.wide #values { height: 1fr; width: 2fr; border-top: none;
        border-left: solid $panel-lighten-2; }
    DebugPane #debug-question { height: 1; padding: 0 1; display: none; background: $boost; }
    DebugPane.asking #debug-question { display: block; }
    """
    scope = "debug"

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.session: DebugSession | None = None
        self.zoomed = False
        self._kernel = ""
        self._ops = False
        self._put: object = None
        self._answer: Callable[[str], object] | None = None

    def compose(self) -> ComposeResult:
        with Horizontal(id="debug-panes"):
            yield LineView(id="debugged")
            yield LineView(id="values", idle_cursor=False)
        yield Static(id="debug-question", markup=False)
        yield PromptBar("", self._given, id="debug-text")

    @property
    def _source(self) -> LineView:
        return self.query_one("#debugged", LineView)

    @property
    def _values(self) -> LineView:
        return self.query_one("#values", LineView)

    @property
    def _record(self) -> KernelRecord | None:
        return kernel_of(self.studio.record, self.studio.sel)

    def _mine(self) -> DebugSession | None:
        """The session of the selected kernel."""
        kernel = self._record
        return self.session if kernel is not None and kernel.id == self._kernel else None

    # --- the session -------------------------------------------------------------------------

    def start(self, **changes: Any) -> None:
        """Start, or start again, the selected kernel. changes: of the iteration and the workload
        of the session before."""
        kernel = self._record
        fault = self._fault(kernel)
        if kernel is None or fault:
            self.notify(fault, timeout=4, markup=False)
            return
        old = self._mine()
        if self.session is not None:
            self.session.close()
        app = self.studio
        given = {
            "program": kernel.file, "kernel": kernel.name, "config": dict(app.options),
            "iteration": "first", "workload": "",
        }  # fmt: skip
        if old is not None:
            given |= {name: old.configuration[name] for name in ("iteration", "workload")}
        self._kernel, self._put = kernel.id, None
        self.session = DebugSession({**given, **changes}, lambda: app.post_message(Computed()), old)
        self.paint()

    def _fault(self, kernel: KernelRecord | None) -> str:
        """The reason why the kernel cannot be debugged; empty if it can."""
        if kernel is None:
            return "There is no kernel."
        if self.studio.link is None:
            return _SAVED
        if kernel.primal:
            return _PRIMAL.format(name=kernel.primal.rpartition(":")[2])
        return "" if os.path.exists(kernel.file) else f"{kernel.file} does not exist here."

    def on_unmount(self) -> None:
        if self.session is not None:
            self.session.close()

    def cancel(self) -> bool:
        session = self._mine()
        return session is not None and session.interrupt()

    # --- painting ----------------------------------------------------------------------------

    def paint(self) -> None:
        """Show the session of the selected kernel, or how to start one."""
        kernel, session = self._record, self._mine()
        self.set_class((self.size.width or self.studio.size.width) >= _SIDE_BY_SIDE, "wide")
        started = session is not None and session.view.position is not None
        both = started and not self.zoomed
        self._values.display = both or (started and self._values.has_focus)
        self._source.display = both or not self._values.display
        if kernel is None:
            return
        if session is None:
            self._source.show(self._offer(kernel))
        elif session.view.failed:
            self._source.show(self._failure(session.view))
        elif not started:
            key = self.studio.key_name("cancel")
            self._source.show([Line(((f"{session.view.busy} ...  {key} cancels", "dim"),))])
        else:
            self._paint_source(session)
            self._values.show(value_lines(session.view, self.studio.ascii_only))

    def _offer(self, kernel: KernelRecord) -> list[Line]:
        fault = self._fault(kernel)
        if fault:
            return [Line(((fault, "dim"),))]
        label = kernel.workloads[0].label if kernel.workloads else ""
        case = f" of the workload {label}" if label else ""
        key = self.studio.key_name
        texts = (
            f"{key('choose')} runs the first iteration{case} under the debugger.",
            f"{key('debug-iteration')} sets the iteration, {key('debug-workload')} the workload.",
            "It runs in the interpreter, on copies of arrays and fields, forward and back.",
        )
        return [Line(((text, "dim" if n else ""),)) for n, text in enumerate(texts)]

    def _failure(self, view: View) -> list[Line]:
        key = self.studio.key_name
        lines = [Line((("The kernel cannot be debugged:", "bad"),))]
        lines += [
            Line(((part, ""),))
            for text in view.failed.splitlines()
            for part in wrapped_text(text, self._source.room)
        ]
        again = (
            f"{key('debug-restart')} starts again; {key('debug-iteration')} chooses an iteration."
        )
        return [*lines, Line(()), Line(((again, "dim"),))]

    def _paint_source(self, session: DebugSession) -> None:
        view = session.view
        assert view.position is not None and view.moment is not None
        _, file, line = view.position.frames[view.frame]
        texts = session.lines_of(file)
        mine = view.breakpoints.get(file, {})
        kernel = self._record
        own = kernel is not None and file == kernel.file
        plain = self.studio.ascii_only
        dot, arrow = ("*", ">") if plain else ("●", "▶")
        out: list[Line] = []
        for n, text in enumerate(texts, 1):
            here = n == line
            spans: list[Span] = [
                (dot if n in mine else " ", "bad"), (arrow if here else " ", "accent"),
                (f"{n:>4} ", "gutter"), *python_spans(text.expandtabs(8)),
            ]  # fmt: skip
            if mine.get(n):
                spans.append((f"  if {mine[n]}", "dim"))
            out.append(Line(tuple(spans), n, text, "move" if here else "", n if own else 0))
        if self._ops and not view.frame:
            out[line:line] = op_lines(view, plain)
        at = file, line, view.moment.time, self._ops, view.frame
        key = line if at != self._put else None
        self._put = at
        status = status_lines(session, self.studio.key_name, self._source.room)
        self._source.show(out, status, key)

    # --- keys --------------------------------------------------------------------------------

    def _live(self) -> DebugSession | None:
        """The session, if it has started; else a notice."""
        session = self._mine()
        if session is not None and session.view.position is not None and not session.view.failed:
            return session
        if session is None:
            text = f"{self.studio.key_name('choose')} starts the debugger."
        else:
            text = "The debugger is starting." if session.view.busy else "The debugger has ended."
        self.notify(text, timeout=2)
        return None

    def run(self, command: str, *more: Any) -> None:
        """Do what a key of this tab asks for: ``command`` is one of the commands of `debug`."""
        getattr(self, f"do_{command}")(*more)

    def do_motion(self, name: str, op: bool = False) -> None:
        """Step or run, forward or back."""
        session = self._live()
        if session is not None:
            session.move(name, op)

    def do_restart(self) -> None:
        """Start again with the same iteration."""
        self.start()

    def do_iteration(self) -> None:
        """Ask for the iteration, and start."""
        session = self._mine()
        moment = session.view.moment if session is not None else None
        at = moment.iteration if moment is not None else 0
        text = (
            ", ".join(map(str, at)) if isinstance(at, tuple) else "all" if at is None else str(at)
        )
        self._ask("iteration: 3, or 3, 4; all for all", text, self._chosen_iteration)

    def _chosen_iteration(self, text: str) -> None:
        if text in ("all", "first"):
            self.start(iteration=None if text == "all" else text)
            return
        try:
            parts = [int(part) for part in text.strip("()").split(",") if part.strip()]
        except ValueError:
            parts = []
        if not parts:
            self.notify(f"{text!r} is no iteration: 3, or 3, 4; all for all.", timeout=4)
            return
        self.start(iteration=parts if len(parts) > 1 else parts[0])

    def do_workload(self) -> None:
        """Ask for the workload, and start."""
        kernel, session = self._record, self._mine()
        labels = [w.label for w in kernel.workloads if w.label] if kernel is not None else []
        if len(labels) < 2:
            text = f"The only workload is {labels[0]}." if labels else "There is no workload."
            self.notify(text, timeout=4, markup=False)
            return
        at = session.configuration["workload"] if session is not None else ""
        chosen = labels[(labels.index(at) + 1) % len(labels) if at in labels else 1]
        self._ask(f"workload: {'; '.join(labels)}", chosen, self._chosen_workload)

    def _chosen_workload(self, text: str) -> None:
        """Start with the first iteration: the one before may not exist."""
        self.start(workload=text, iteration="first")

    def _at_cursor(self) -> tuple[str, int] | None:
        """The file and line under the cursor of the source."""
        session = self._live()
        line = self._source.current
        if session is None or session.view.position is None or line is None:
            return None
        _, file, number = session.view.position.frames[session.view.frame]
        return file, line.key if isinstance(line.key, int) else number

    def do_breakpoint(self) -> None:
        """Set or remove a breakpoint."""
        at, session = self._at_cursor(), self._mine()
        if at is not None and session is not None:
            there = at[1] in session.view.breakpoints.get(at[0], {})
            session.set_breakpoint(*at, None if there else "")

    def do_condition(self) -> None:
        """Set a breakpoint with a condition."""
        at, session = self._at_cursor(), self._mine()
        if at is None or session is None:
            return
        old = session.view.breakpoints.get(at[0], {}).get(at[1], "")
        self._ask(f"stop at line {at[1]} if this is true", old,
                  lambda text: session.set_breakpoint(*at, text))  # fmt: skip

    def do_who(self, changed: bool) -> None:
        """Find the last write of the selected value; of an array, ask for the element."""
        session = self._live()
        if session is not None:
            self._ask_cell(session, lambda name: session.who(name, changed) if name else None)

    def do_change(self) -> None:
        """Stop where the selected value changes; of an array, ask for the element."""
        session = self._live()
        if session is not None:
            self._ask_cell(session, session.stop_at_change)

    def _ask_cell(self, session: DebugSession, answer: Callable[[str], object]) -> None:
        """Ask for a cell, unless a local is selected."""
        line = self._values.current
        key: Any = line.key if line is not None else None
        heading, name = key or ("", "")
        if heading == "Locals" and self._values.display:
            answer(name)
            return
        if heading == "Functions":
            name = ""
        assert session.view.position is not None
        _, file, number = session.view.position.frames[session.view.frame]
        here = "".join(session.lines_of(file)[number - 1 : number])
        pattern = rf"\b{re.escape(name)}\[[^\]]*\]" if name else r"\b\w+\[[^\]]*\]"
        found = re.search(pattern, here)
        text = name if heading == "Expressions" else found[0] if found else name
        self._ask("a local, or an element such as x[3]", text, answer)

    def do_go(self) -> None:
        """Go to the write that was found, or back."""
        session = self._live()
        if session is not None:
            session.go()

    def do_ask_value(self) -> None:
        """Show the value of an expression."""
        session = self._live()
        if session is not None:
            self._ask("an expression, such as x[i] + 1; nothing removes all", "",
                      session.show_value)  # fmt: skip

    def do_ops(self) -> None:
        """Show or hide the IR."""
        self._ops = not self._ops
        self.paint()

    # --- the line of text --------------------------------------------------------------------

    def _ask(self, what: str, text: str, answer: Callable[[str], object]) -> None:
        self.query_one("#debug-question", Static).update(f"{what}:")
        self._answer = answer
        self.add_class("asking")
        self.query_one("#debug-text", PromptBar).ask(text)

    def _given(self, text: str) -> None:
        answer, self._answer = self._answer, None
        self.back()
        if answer is not None:
            answer(text.strip())

    # --- the interface of a tab --------------------------------------------------------------

    @on(LineView.Chosen)
    def _chosen(self, event: LineView.Chosen) -> None:
        event.stop()
        if self._mine() is None:
            self.start()
        elif event.view.id == "values" and (session := self._live()) is not None:
            key: Any = event.line.key if event.line is not None else None
            if key is not None and key[0] == "Functions":
                session.show_function(int(key[1]))
            else:
                self.do_who(False)

    @on(LineView.Moved)
    def _moved(self, event: LineView.Moved) -> None:
        event.stop()

    def focus_first(self) -> None:
        self._source.focus()

    def other_pane(self) -> None:
        views: Sequence[LineView] = (self._source, self._values)
        other = views[0] if views[1].has_focus else views[1]
        if self.zoomed:
            other.display = True
        if other.display:
            other.focus()
        self.paint()

    def zoom(self) -> None:
        self.zoomed = not self.zoomed
        self.paint()

    def back(self) -> bool:
        if self.query_one("#debug-text", PromptBar).leave(self._source):
            self.remove_class("asking")
            return True
        if self.zoomed:
            self.zoom()
        elif self._values.has_focus:
            self._source.focus()
        else:
            return False
        return True
