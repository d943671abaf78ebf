"""Generated code, linked to the user's lines where the backend knows them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape as esc
from typing import TYPE_CHECKING, Any, Final, cast

from ...engine.inspect.record import (
    Artefact,
    BackendRecord,
    CompileRecord,
    FileRecord,
    KernelRecord,
)
from ..core import format as fmt
from ..core.lines import LazyLines, Line, code_form_spans, code_spans
from ..core.memo import by_identity
from ..core.views.machine import facts, machine_lines, machine_table
from ..core.views.source_lines import gutter, user_lines
from ..markup import markdown as md
from ..markup.html import Page, inner, table, td
from ._panel import (
    Asked,
    Changes,
    Job,
    Look,
    Panel,
    Shown,
    Tab,
    json_of_compiles,
    of_backend,
    text_of_compiles,
    to_line,
)  # fmt: skip

if TYPE_CHECKING:
    from ...engine.inspect.code_forms import ReadableCode

__all__ = ["PANEL", "CodeLines", "artefacts_of", "code_lines", "in_order", "readable_of"]

_READABLE: Final = ("llvm", "ptx", "asm")
"""Languages of texts that have a readable form."""


def artefacts_of(backend: BackendRecord | None) -> list[str]:
    """Names of the texts that a backend kept."""
    if backend is None or backend.compile is None:
        return []
    return [a.name for a in in_order(backend.compile.artefacts)]


def in_order(artefacts: Sequence[Artefact]) -> list[Artefact]:
    """The texts in the order in which each is made from the one before."""
    return sorted(artefacts, key=lambda a: fmt.text_rank(a.name))


@by_identity(16)
def code_lines(
    backend: BackendRecord | None, index: int, files: tuple[FileRecord, ...] | None = None,
    whole: bool = True,
) -> Sequence[Line]:  # fmt: skip
    """Artefact ``index``, keyed by the line number of its text, with `Line.line` where the backend
    reports it. files: those of the record, for the readable form; None for the text as it is.
    whole: fold nothing of the readable form."""
    names = artefacts_of(backend)
    if backend is None or backend.compile is None or not names:
        return [Line((("This backend made no code that can be shown.", "dim"),))]
    artefact = in_order(backend.compile.artefacts)[index % len(names)]
    if files is not None and artefact.language in _READABLE:
        return _readable_lines(backend.compile, artefact, files, whole)
    texts = artefact.text.expandtabs(8).splitlines()
    lines = _user_lines(backend.compile, artefact, len(texts))

    def build(i: int) -> Line:
        spans = code_spans(texts[i], artefact.language)
        return Line((gutter(lines[i]), *spans), i, texts[i], line=lines[i])

    width = 5 + max(map(len, texts), default=0)
    out = CodeLines(range(len(texts)), build, texts.__getitem__, width)
    out.begin(lines)
    return out


@by_identity(16)
def readable_of(
    compiled: CompileRecord, artefact: Artefact, files: tuple[FileRecord, ...], whole: bool
) -> ReadableCode:
    """The readable form of a text; see `engine.inspect.code_forms`."""
    # Imported with the IR, which the first screen does without.
    from ...engine.inspect.code_forms import readable_code

    return readable_code(compiled, artefact, files, whole=whole)


def _readable_lines(
    compiled: CompileRecord, artefact: Artefact, files: tuple[FileRecord, ...], whole: bool
) -> CodeLines:
    found = readable_of(compiled, artefact, files, whole)
    known = _user_lines(compiled, artefact, found.ends[-1] if found.ends else 0)
    texts = [text.expandtabs(8) for text in found.lines]
    lines = [0 if hidden else known[row]
             for row, hidden in zip(found.rows, found.folded, strict=True)]  # fmt: skip

    def build(i: int) -> Line:
        if found.folded[i]:
            spans = (gutter(0), (f"{'':>7}{texts[i]}", "dim"))
            return Line(spans, ("fold", found.rows[i]), texts[i], folded=found.folded[i])
        spans = code_form_spans(texts[i])
        types = (f"{found.types[i]:>6} ", "type")
        return Line((gutter(lines[i]), types, *spans), found.rows[i], texts[i], line=lines[i])

    def text(i: int) -> str:
        return f"{texts[i]}\n{found.folded[i]}" if found.folded[i] else texts[i]

    keys = [("fold", row) if hidden else row
            for row, hidden in zip(found.rows, found.folded, strict=True)]  # fmt: skip
    out = CodeLines(keys, build, text, 12 + max(map(len, texts), default=0))
    out.row_of = found.place
    out.begin(lines)
    return out


def _user_lines(compiled: CompileRecord, artefact: Artefact, count: int) -> list[int]:
    """The user's line of each of the ``count`` lines of a text; 0 where it is not known."""
    known = user_lines(compiled)
    lines = [known[loc] if loc >= 0 else 0 for loc in artefact.lines[:count]]
    return lines + [0] * (count - len(lines))


class CodeLines(LazyLines):
    """Lines of generated code. first: where each of the user's lines begins. row_of: the line that
    shows a line of the text, where that is not the line of that number."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.first: dict[int, int] = {}
        self.row_of: Callable[[int], int] | None = None

    def begin(self, lines: Sequence[int]) -> None:
        """Note where each of the user's ``lines`` begins."""
        for i in range(len(lines) - 1, -1, -1):
            self.first[lines[i]] = i
        self.first.pop(0, None)

    def place(self, key: object) -> int | None:
        if isinstance(key, tuple):
            key = cast("tuple[object, ...]", key)[-1]
        if not isinstance(key, int) or not len(self):
            return None
        return self.row_of(key) if self.row_of is not None else min(key, len(self) - 1)


# ---- the panel


def _request(
    look: Look,
) -> tuple[BackendRecord | None, int, tuple[FileRecord, ...] | None, bool]:
    """The arguments of `code_lines` for the tab."""
    sel = look.sel
    files = look.record.files if sel.readable else None
    return look.backend, sel.artefact, files, sel.whole or not sel.readable


_AT_ONCE: Final = 1500
"""Lines of a text up to which its readable form is made before the next paint."""


def _job(look: Look) -> Job | None:
    compiled = look.compiled
    if compiled is None or not compiled.artefacts or not look.sel.readable:
        return None
    found = in_order(compiled.artefacts)
    size = found[look.sel.artefact % len(found)].text.count("\n")
    wanted = _request(look)
    if size <= _AT_ONCE or code_lines.has(*wanted):
        return None
    return f"Reading {size:,} lines ...", lambda: code_lines(*wanted)


def _draw(look: Look) -> Shown:
    lines = code_lines(*_request(look))
    if not isinstance(lines, CodeLines):
        return Shown(lines)
    names = artefacts_of(look.backend)
    at = look.sel.artefact % len(names)
    header = Line((
        (f"text {at + 1} of {len(names)}  ", "dim"), (fmt.text_title(names[at]), "title"),
        (f"  {len(lines):,} lines", "dim"),
        ("  readable form" if lines.row_of is not None else "", "dim"),
    ))  # fmt: skip
    # The resources of the machine code stay at the top, where there is room for both.
    table = machine_lines(look.backend) if names[at] in ("ptx", "sass") else []
    room = look.rows // 2 - 4
    return Shown(
        lines,
        [header, *(table if len(table) <= room else table[:1])],
        at=(at, look.sel.line),
        row=lines.first.get(look.sel.line),
        state=_state(look),
    )


def _chosen(look: Look, line: Line) -> Changes:
    """Unfold."""
    return {"whole": True, "tab": "code"} if line.folded else {}


def _step(look: Look, step: int) -> Changes:
    return {"artefact": look.sel.artefact + step}


def _text(asked: Asked, backend: BackendRecord, compiled: CompileRecord) -> list[Line]:
    out = machine_lines(backend)
    for index, artefact in enumerate(in_order(compiled.artefacts)):
        out += [Line(((f"-- {artefact.name}", "title"),)), *code_lines(
            backend, index, asked.readable_files, False)]  # fmt: skip
    return out or [Line((("this backend keeps no code", ""),))]


def _json(asked: Asked, kernel: KernelRecord, compiled: CompileRecord) -> dict[str, object]:
    """``{"artefacts": [Artefact], "machine": MachineRecord or null}``.

    In the readable form also ``"readable"``: by the name of a text that has one, the sequences of
    `engine.inspect.ReadableCode` by name.
    """
    out: dict[str, object] = {"artefacts": compiled.artefacts, "machine": compiled.machine}
    if asked.readable_files is not None:
        files = asked.readable_files
        out["readable"] = {
            x.name: readable_of(compiled, x, files, False)._asdict()
            for x in compiled.artefacts
            if x.language in _READABLE
        }
    return out


def _markdown(kernel: KernelRecord) -> list[str]:
    """Registers, spills and memory of code for GPUs."""
    out: list[str] = []
    for backend in kernel.backends:
        compiled = backend.compile
        if compiled is not None and compiled.machine is not None:
            out += [f"{backend.backend}: {md.text('; '.join(facts(compiled.machine)))}.", ""]
            head, rows = machine_table(compiled)
            out += md.table(head, [[md.text(t) for t in row] for row in rows])
    return ["### Machine code", "", *out] if out else []


def _html(kernel: KernelRecord, backend: str, compiled: CompileRecord, page: Page) -> str:
    """The table of the machine code, and every text that an earlier backend has not shown."""
    parts: list[str] = []
    if compiled.machine is not None:
        head, rows = machine_table(compiled)
        text = "; ".join(facts(compiled.machine))
        parts += [f'<p class="facts">{esc(text)}</p>', table(head, (map(td, row) for row in rows))]
    for artefact in in_order(compiled.artefacts):
        size = f"{len(artefact.text.splitlines()):,} lines"
        title, body = f"{fmt.text_title(artefact.name)}, {size}", _listing(compiled, artefact)
        where = page.shown_for((artefact.name, body), backend)
        if where:
            parts.append(f'<p class="facts">{esc(title)}: as for {esc(where)}.</p>')
        else:
            kind = f"{artefact.language} {artefact.name}"
            parts.append(page.pack.details(title, body, kind))
    return "".join(parts)


_TAGS: Final = {"comment": "n-", "op": "o-", "kw": "k-", "type": "t-"}
"""Elements for the styles that are coloured; a report has a hundred thousand of them."""


def _listing(compiled: CompileRecord, artefact: Artefact) -> str:
    """A text of a compile, with the user's line numbers where they are known."""
    texts = artefact.text.splitlines()
    lines = _user_lines(compiled, artefact, len(texts))
    numbered = any(lines)
    out: list[str] = []
    for text, line in zip(texts, lines, strict=True):
        if numbered:
            out.append(f"<l->{line or ''}</l->")
        for part, style in code_spans(text, artefact.language):
            tag = _TAGS.get(style)
            out.append(f"<{tag}>{inner(part)}</{tag}>" if tag else inner(part))
        out.append("\n")
    return f"<pre>{''.join(out)}</pre>"


_state: Final = of_backend("code")

PANEL: Final = Panel(
    id="code",
    help="Every text that a backend generated, with your source lines and, for GPUs, registers, "
    "spills, memory and occupancy.",
    order=50,
    tab=Tab(
        keys=(("previous-pass+next-pass", "text"), ("backend", "backend"), ("form", "form"),
              ("whole", "fold"), ("search", "search"), ("copy-all", "copy")),
        state=_state,
        chosen=_chosen,
        flips=("readable", "whole"),
        draw=_draw,
        job=_job,
        moved=to_line,
        step=_step,
    ),
    text=text_of_compiles(_text),
    json=json_of_compiles(_json),
    markdown={50: _markdown},
    html_of_compile=_html,
)  # fmt: skip
