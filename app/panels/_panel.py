"""The definition of a panel. A panel shows one part of a record, everywhere under one name.

    qd-studio FILE                   `Panel.tab`: a tab of a kernel's screen
    qd-studio show --panel ID        `Panel.text`; with ``--json``, `Panel.json`
    qd-studio --report               `Panel.markdown`, `Panel.html`, `Panel.html_of_compile`

Each of them is optional, and each is a pure function of the record. The tab of a panel is one list
of lines (`Tab.draw`), or a widget of its own (`Tab.pane`), named by module and class so that no
report loads a screen.

Sections of a report have ranks, and sections of all panels are ordered by rank: 10 results, 20
errors (of the report itself), 30 compiles, 40 tasks, 50 machine code, 60 gradients, 70 caches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

from ...engine.inspect.ir_counts import SHORT_PASSES
from ...engine.inspect.record import (
    BackendRecord,
    CompileRecord,
    FileRecord,
    KernelRecord,
    PassRun,
    Record,
)
from ..core.lines import Line
from ..core.pending import all_of, state_of
from ..core.state import History, Selection, backend_of, compiled_of
from ..core.views.errors import why_uncompiled
from ..markup.html import Page

__all__ = [
    "Asked", "Changes", "Look", "NothingToShow", "Panel", "Shown", "Tab", "compiles",
    "json_of_backends", "json_of_compiles", "of_backend", "of_backends", "text_of_compiles",
    "text_of_kernels", "to_line", "to_source",
]  # fmt: skip

Block = tuple[str, Sequence[Line]]
"""A heading, empty for none, and the lines below it."""


class NothingToShow(ValueError):
    """The record lacks the kernel, backend or pass that was asked for; the message says why."""


# ---- qd-studio show


class Asked(NamedTuple):
    """A request to ``qd-studio show``.

    kernel: name or id; None for all. pass_name: ``NAME`` or ``NAME@STAGE``; None for all. width: in
    columns. form: of IR, ``exact`` or ``readable``; of graphs, as `show` lists them. line: of the
    source; 0 for all.
    """

    record: Record
    kernel: str | None
    pass_name: str | None
    width: int
    form: str = "exact"
    line: int = 0

    @property
    def readable_files(self) -> tuple[FileRecord, ...] | None:
        """The files of the record if IR is asked for in the readable form, else None."""
        return self.record.files if self.form == "readable" else None

    def kernels(self) -> list[KernelRecord]:
        """The kernels asked for; NothingToShow if there are none."""
        known = self.record.kernels
        found = [k for k in known if self.kernel is None or self.kernel in (k.name, k.id)]
        if found:
            return found
        if not known:
            raise NothingToShow("there are no kernels to show")
        names = ", ".join(k.name for k in known)
        raise NothingToShow(f"there is no kernel {self.kernel!r}; there are: {names}")

    def runs(self, compiled: CompileRecord) -> list[PassRun]:
        """The runs of the pass asked for, or all; NothingToShow if it did not run."""
        if self.pass_name is None:
            return list(compiled.runs)
        name, _, stage = self.pass_name.partition("@")
        name = SHORT_PASSES.get(name, name)
        found = [r for r in compiled.runs if r.name == name and stage in ("", r.stage)]
        if not found:
            known = sorted({r.name for r in compiled.runs})
            raise NothingToShow(f"no pass {self.pass_name!r} ran; there are: {', '.join(known)}")
        return found


def compiles(kernel: KernelRecord) -> list[tuple[BackendRecord, CompileRecord]]:
    """The backends that compiled the kernel."""
    return [(b, b.compile) for b in kernel.backends if b.compile is not None]


def text_of_kernels(
    make: Callable[[Asked, KernelRecord], Sequence[Line]],
    choose: Callable[[Asked], list[KernelRecord]] = Asked.kernels,
) -> Callable[[Asked], Iterator[Block]]:
    """A block a kernel. choose: the kernels."""

    def text(asked: Asked) -> Iterator[Block]:
        for kernel in choose(asked):
            yield kernel.id, make(asked, kernel)

    return text


def text_of_compiles(
    make: Callable[[Asked, BackendRecord, CompileRecord], Sequence[Line]],
) -> Callable[[Asked], Iterator[Block]]:
    """A block a kernel and backend; of a kernel that was not compiled, why."""

    def text(asked: Asked) -> Iterator[Block]:
        for kernel in asked.kernels():
            for backend, compiled in compiles(kernel):
                yield f"{kernel.id} on {backend.backend}", make(asked, backend, compiled)
            if not compiles(kernel):
                why = why_uncompiled(kernel) or ["not compiled"]
                yield kernel.id, [Line(((line, ""),)) for line in why]

    return text


def json_of_backends(
    make: Callable[[Asked, KernelRecord, BackendRecord], Mapping[str, object] | None],
    choose: Callable[[Asked], list[KernelRecord]] = Asked.kernels,
) -> Callable[[Asked], list[Any]]:
    """An object a kernel and backend, with the names of both; None for nothing."""

    def json(asked: Asked) -> list[Any]:
        return [
            msgspec.to_builtins({"kernel": kernel.id, "backend": backend.backend, **found})
            for kernel in choose(asked)
            for backend in kernel.backends
            if (found := make(asked, kernel, backend)) is not None
        ]

    return json


def json_of_compiles(
    make: Callable[[Asked, KernelRecord, CompileRecord], Mapping[str, object] | None],
) -> Callable[[Asked], list[Any]]:
    """`json_of_backends` of those that compiled the kernel."""

    def of_backend(
        asked: Asked, kernel: KernelRecord, backend: BackendRecord
    ) -> Mapping[str, object] | None:
        return None if backend.compile is None else make(asked, kernel, backend.compile)

    return json_of_backends(of_backend)


# ---- the studio


@dataclass(frozen=True, slots=True)
class Look:
    """The state that the studio shows now.

    columns, rows: of the screen. width: columns of the pane. history: of the last saves.
    """

    record: Record
    kernel: KernelRecord
    sel: Selection
    columns: int
    rows: int
    width: int
    ascii_only: bool = False
    history: History = field(default_factory=History)

    @property
    def backend(self) -> BackendRecord | None:
        """The selected backend, or the first that compiled."""
        return backend_of(self.record, self.sel)

    @property
    def compiled(self) -> CompileRecord | None:
        """The compile of that backend."""
        return compiled_of(self.record, self.sel)


class Shown(NamedTuple):
    """The content of a tab.

    at: the part of the selection that the cursor follows. When it changes, the cursor goes to the
    line with ``key``, then to line ``row``; None for neither. state: ``pending`` or ``stale`` if
    all lines are of an older save.
    """

    lines: Sequence[Line]
    header: Sequence[Line] = ()
    at: object = None
    key: object = None
    row: int | None = None
    state: str = ""


Changes = Mapping[str, Any]
"""Fields of the `Selection` and their new values."""


Job = tuple[str, Callable[[], object]]
"""The line that is shown meanwhile, and the work."""


def of_backend(*parts: str) -> Callable[[Look], str]:
    """The state of a tab that shows these parts of the selected backend."""
    return lambda look: state_of(look.kernel, look.backend, *parts)


def of_backends(*parts: str) -> Callable[[Look], str]:
    """The state of a tab that shows these parts of all backends."""
    return lambda look: all_of(state_of(look.kernel, b, *parts) for b in look.kernel.backends)


def to_line(look: Look, line: Line) -> Changes:
    """The changes that select the source line of a line."""
    return {"line": line.line} if line.line else {}


def to_source(look: Look, line: Line) -> Changes:
    """Those that also go to the source."""
    return {"tab": "source", "line": line.line} if line.line else {}


def _current(look: Look) -> str:
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tab:
    """A tab of the studio.

    keys: (command ids, word) for the bar of keys. state: ``pending``, ``stale`` or empty. draw: the
    lines. job: what is to be done on another thread before they can be drawn at once; None if
    nothing is. pane: ``module:Class`` of a widget that replaces the list of lines. moved: the
    changes of the selection when the cursor moves to a line. step: those for the keys of the next
    and previous pass; None to step through the passes. chosen: those for `enter` on a line, with
    the ``tab`` to go to; empty for what it does elsewhere. opened: those when the tab opens. files:
    what an export writes besides the lines, by suffix. ir: the lines are ops, keyed by their ids.
    flips: parts of the selection that the keys for Passes switch here.
    """

    keys: tuple[tuple[str, str], ...] = (
        ("next-tab", "tab"), ("search", "search"), ("copy-all", "copy"),
    )  # fmt: skip
    state: Callable[[Look], str] = _current
    draw: Callable[[Look], Shown] | None = None
    job: Callable[[Look], Job | None] | None = None
    pane: str = ""
    moved: Callable[[Look, Line], Changes] | None = None
    step: Callable[[Look, int], Changes] | None = None
    chosen: Callable[[Look, Line], Changes] | None = None
    opened: Callable[[Look], Changes] | None = None
    files: Callable[[Look], Mapping[str, Callable[[], str]]] | None = None
    ir: bool = False
    flips: tuple[str, ...] = ()


# ---- all of it

Markdown = Callable[[KernelRecord], Iterable[str]]
Html = Callable[[KernelRecord, Page], str]
HtmlOfCompile = Callable[[KernelRecord, str, CompileRecord, Page], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One view of a record; see the module docstring.

    id: its name everywhere. help: what it shows, in one sentence. order: among all panels; tabs are
    numbered in this order. old_names: other names that ``show --panel`` accepts. launches: ``show``
    must launch the kernels of a file. peaks: it needs the speed of the machine. text, json: for
    ``show``. markdown, html: sections of a kernel's report by rank. html_of_compile: a section for
    each backend's compile (its name is the second argument). fault: why the panel of another
    distribution cannot be used.
    """

    id: str
    help: str
    order: int
    fault: str = ""
    old_names: tuple[str, ...] = ()
    launches: bool = False
    peaks: bool = False
    tab: Tab | None = None
    text: Callable[[Asked], Iterable[Block]] | None = None
    json: Callable[[Asked], list[Any]] | None = None
    markdown: Mapping[int, Markdown] = field(default_factory=dict[int, Markdown])
    html: Mapping[int, Html] = field(default_factory=dict[int, Html])
    html_of_compile: HtmlOfCompile | None = None
