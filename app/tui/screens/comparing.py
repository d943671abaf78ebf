"""Screens that compare a kernel: what with, the aligned passes of both, and the diff at one."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any, cast

from textual import on

from ...core.lines import Line, index_of
from ...core.saves import Save
from ...core.state import kernel_of
from ...core.views.compared import compiles_of, parted_lines
from ...core.views.comparing import choices, shown_backend, versus_lines
from ..commands import bindings
from ..link import Computed
from ..versus import Given, Result, Sides, compiled_side
from ..widgets.bars import KeyBar
from ..widgets.lines import LineView
from .lists import AskScreen, IrScreen, ListScreen

if TYPE_CHECKING:
    from ....engine.inspect.compare import BackendComparison
    from ....engine.inspect.record import KernelRecord, Record

__all__ = ["AtPassScreen", "CompareScreen", "VersusScreen"]

_SPLIT = 160
_LOOKING = "looking ..."


class CompareScreen(AskScreen):
    """The list of what the selected kernel can be compared with."""

    BINDINGS = bindings("compare")
    scope = "compare"
    KEYS = (("choose", "compare"), ("compare-from", "compare from here"), ("search", "search"),
            ("help", "help"), ("back", "back"))  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        self._marked = 0
        self._asked = ""
        self._revisions: Sequence[Any] | str = _LOOKING

    def on_mount(self) -> None:
        kernel = self._kernel
        self.heading = f"compare {kernel.name if kernel is not None else 'a kernel'} with ..."
        super().on_mount()
        view = self.query_one("#list", LineView)
        # The save before the newest is what is most often asked for.
        saves = self.studio.saves.all()
        view.put((index_of(view.lines, ("save", saves[-2].number)) or 1) if saves[1:] else 1)

    @property
    def _kernel(self) -> KernelRecord | None:
        return kernel_of(self.studio.record, self.studio.sel)

    @property
    def _path(self) -> str:
        """The file that was opened and has the kernel."""
        kernel, files = self._kernel, self.studio.files
        own = kernel.file if kernel is not None else ""
        return own if own in files or len(files) != 1 else files[0]

    def _look(self) -> None:
        """On another thread: ask git."""
        if self._revisions is not _LOOKING:
            return
        from ...revisions import NoRevisionError, commits

        if self.studio.measure is None:
            self._revisions = "This is a saved session: nothing can be compiled here."
            return
        try:
            self._revisions = commits(self._path) or "There are no commits yet."
        except (NoRevisionError, OSError) as error:
            self._revisions = f"none: {error}"

    def content(self) -> tuple[Sequence[Line], list[Line]]:
        state = self.studio
        saves = state.saves.all()
        if self._revisions is _LOOKING:
            state.compute(self._look)
        if not any(save.number == self._marked for save in saves):
            self._marked = 0  # it is too old to be kept any longer
        return choices(
            saves, self._base.number if saves else 0, self._revisions, self._kernel,
            state.sel.backend, state.measure is not None,
        ), []  # fmt: skip

    @property
    def _base(self) -> Save:
        """The save that the others are compared with."""
        saves = self.studio.saves.all()
        return next((s for s in saves if s.number == self._marked), saves[-1])

    def action_mark(self) -> None:
        """Compare the others with the save under the cursor."""
        line = self.query_one("#list", LineView).current
        key = cast("tuple[Any, ...]", line.key) if line is not None else None
        if isinstance(key, tuple) and key[0] == "save":
            self._marked = key[1]
            self.paint()
        else:
            self.studio.notify("Put the cursor on a save first.", timeout=3)

    # --- choosing --------------------------------------------------------------------------

    @on(LineView.Chosen, "#list")
    def _chosen(self, event: LineView.Chosen) -> None:
        key = cast("tuple[Any, ...]", event.line.key) if event.line is not None else None
        if not isinstance(key, tuple):
            return
        if key[0] == "ask":
            self._ask(key[1])
        elif not self.studio.saves.all() or self._kernel is None:
            self.studio.notify("Nothing is compiled yet.", timeout=3)
        elif key[0] == "save":
            self._with_save(key[1])
        elif key[0] == "revision":
            self._with_revision(key[1])
        elif key[0] == "backends":
            newest = self._given_save(self.studio.saves.all()[-1])
            self._open(newest, newest, (key[1], key[2]))

    def _with_save(self, number: int) -> None:
        base = self._base
        other = next((s for s in self.studio.saves.all() if s.number == number), None)
        if other is None or other.number == base.number:
            text = f"Save {number} is what is compared: choose another one."
            self.studio.notify(text, timeout=4)
            return
        old, new = sorted((base, other), key=lambda save: save.number)
        self._open(self._given_save(old), self._given_save(new))

    def _given_save(self, save: Save) -> Given:
        note = "" if save.listings else (
            f"The IR of {save.name} was dropped to save memory: passes are not compared."
        )  # fmt: skip
        saves = self.studio.saves

        def record(talk: object, cancelled: object) -> Record:
            return saves.record(save)

        return Given(save.name, record, note, lambda: self._saved_file(saves.record(save)))

    @contextlib.contextmanager
    def _saved_file(self, record: Record) -> Generator[tuple[str, dict[str, Any]]]:
        """The file as a save had it, and the options of the studio at that time."""
        from ...revisions import file_in

        own = os.path.abspath(self._path)
        config = next((f.config for f in record.files if f.path == own), ())
        options = {e.name: e.value for e in config or record.config if e.origin == "studio"}
        with file_in(record, own) as path:
            yield path, options

    def _with_revision(self, revision: str) -> None:
        """Before: the revision; after: what the others are compared with, too."""
        kernel, measure = self._kernel, self.studio.measure
        if kernel is not None and measure is not None:
            config = dict(self.studio.options)
            side = compiled_side(measure, self._path, revision, config, kernel)
            self._open(
                Given(revision, side, again=lambda: _file_of(revision, self._path, config)),
                self._given_save(self._base),
            )

    def _with_option(self, text: str) -> None:
        from ....engine import inspect

        kernel, measure = self._kernel, self.studio.measure
        try:
            name, value = inspect.parse_setting(text)
        except ValueError as error:
            self.studio.notify(str(error), severity="error", markup=False)
            return
        if kernel is not None and measure is not None:
            config = {**self.studio.options, name: value}
            side = compiled_side(measure, self._path, "", config, kernel)
            again = Given(
                f"{name}={value}", side, again=lambda: _file_of("", self._path, config)
            )  # fmt: skip
            self._open(self._given_save(self._base), again)

    def _open(
        self, before: Given, after: Given, backends: tuple[str, str] | None = None
    ) -> None:  # fmt: skip
        studio = self.studio
        able = studio.link is not None and studio.link.client is not None
        settings = {**studio.look_settings, "backends": studio.backends} if able else None
        sides = Sides(before, after, studio.sel.kernel, backends, settings)
        studio.push_screen(VersusScreen(sides))

    # --- the line that asks ----------------------------------------------------------------

    def _ask(self, what: str) -> None:
        self._asked = what
        self.bar.ask("", {
            "revision": "a revision of git, such as a tag, a branch or HEAD~30; esc to leave",
            "option": "an option and its other value, such as fast_math=0; esc to leave",
        }[what])  # fmt: skip

    def _given(self, text: str) -> None:
        self.back()
        if text.strip() and self._asked == "revision":
            self._with_revision(text.strip())
        elif text.strip():
            self._with_option(text.strip())


@contextlib.contextmanager
def _file_of(
    revision: str, path: str, config: dict[str, Any]
) -> Generator[tuple[str, dict[str, Any]]]:
    """The file as of a revision (empty: as it is now), and the options for it."""
    from ...revisions import file_at

    if not revision:
        yield path, config
        return
    with file_at(path, revision) as file:
        yield file, config


class VersusScreen(ListScreen):
    """Two compiles of a kernel, their passes aligned."""

    BINDINGS = bindings("versus")
    scope = "versus"
    KEYS = (("choose", "diff there"), ("versus-backend", "backend"), ("versus-whole", "all passes"),
            ("search", "search"), ("copy-all", "copy all"), ("help", "help"),
            ("back", "back"))  # fmt: skip

    def __init__(self, sides: Sides) -> None:
        super().__init__()
        self.heading = sides.title
        self._sides = sides
        self._step = 0
        self._whole = False
        self._placed = False

    def on_mount(self) -> None:
        super().on_mount()
        self.query_one(KeyBar).set(self.KEYS)
        app = self.studio
        self._sides.begin(lambda: app.post_message(Computed()))

    def on_unmount(self) -> None:
        self._sides.cancelled.set()

    def cancel(self) -> bool:
        """Give up what is compiled for this comparison; False if nothing is."""
        if self._sides.result is not None or self._sides.fault:
            return False
        self._sides.cancelled.set()
        return True

    @property
    def _shown(self) -> tuple[Result, BackendComparison | None] | None:
        result = self._sides.result
        if result is None:
            return None
        return result, shown_backend(result.found, self.studio.sel.backend, self._step)

    def content(self) -> tuple[Sequence[Line], list[Line]]:
        sides = self._sides
        if sides.fault:
            return [Line(((sides.fault, "warn"),))], []
        shown = self._shown
        if shown is None:
            key = self.studio.key_name("cancel")
            return [Line(((f"{sides.progress[0]} ...", ""), (f"  {key} cancels", "dim")))], []
        result, backend = shown
        notes = [Line(((note, "warn"),)) for note in result.notes]
        if backend is None:
            from ...core.views.compared import kernel_lines

            return list(kernel_lines(result.found)), notes
        return versus_lines(
            result.found, result.old, result.new, backend, self._whole, sides.names
        ), notes  # fmt: skip

    def paint(self) -> None:
        sides = self._sides
        self.activity = () if sides.fault or sides.result is not None else sides.progress
        super().paint()
        shown = self._shown
        if shown is not None and shown[1] is not None and not self._placed:
            self._placed = True
            view = self.query_one("#list", LineView)
            at = index_of(view.lines, ("pass", shown[1].parting))
            # With some of the passes after it.
            view.put((at or 0) + view.size.height // 2)
            view.put(at or 0)

    def action_step(self) -> None:
        """The passes of the next backend."""
        self._step += 1
        self._placed = False
        self.paint()

    def action_whole(self) -> None:
        """Also the passes without an effect."""
        self._whole = not self._whole
        self.paint()

    @on(LineView.Chosen, "#list")
    def _chosen(self, event: LineView.Chosen) -> None:
        key = cast("tuple[str, int]", event.line.key) if event.line is not None else None
        shown = self._shown
        if isinstance(key, tuple) and shown is not None and shown[1] is not None:
            self.studio.push_screen(AtPassScreen(shown[0], shown[1], key[1], self._sides.names))


class AtPassScreen(IrScreen):
    """The IR of both compiles after one of the aligned passes, as a diff."""

    def __init__(
        self, result: Result, backend: BackendComparison, at: int, names: tuple[str, str]
    ) -> None:
        super().__init__()
        each = backend.passes[at]
        self.heading = f"the IR after {each.title()}: {names[0]} -> {names[1]}"
        self._result, self._backend, self._at = result, backend, at
        self._lines: tuple[tuple[int, bool], Sequence[Line]] | None = None

    def content(self) -> tuple[Sequence[Line], list[Line]]:
        width = self.studio.size.width
        asked = (width - 8) // 2 if width >= _SPLIT else 0, self.studio.sel.readable
        if self._lines is None or self._lines[0] != asked:
            self.studio.compute(lambda: self._compute(*asked))
            return (self._lines[1] if self._lines else [Line((("Comparing ...", "dim"),))]), []
        head: list[Line] = []
        if self._backend.passes[self._at].same:
            head = [Line((("The same in both, apart from the numbers of operations.", "ok"),))]
        return self._lines[1], head

    def _compute(self, column: int, readable: bool) -> None:
        asked = column, readable
        if self._lines is not None and self._lines[0] == asked:
            return
        compiles = compiles_of(self._backend, self._result.old, self._result.new)
        lines: Sequence[Line] = ()
        if compiles is not None:
            files = self._result.files if readable else None
            lines = parted_lines(self._backend, *compiles, column, self._at, files)
        self._lines = asked, lines
