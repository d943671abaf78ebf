"""Lines of styled text, the content of every panel, for a terminal with or without colour.

A `Line` is a tuple of spans, each a text and the name of a style (`STYLES`); the studio maps the
names to colours of its theme, plain output drops them. `Line.key` says what the line stands for
(an op id, a kernel id, the index of a pass run, a source line), so that a selection can be held
while the lines around it change. `Line.copy` is the text that copying the line yields, without a
gutter. `Line.line` is the user's source line that the line belongs to, 0 for none.

A panel is any sequence of lines. `LazyLines` builds its lines when they are looked at, so that a
listing of 100,000 lines costs no more than the screenful that is shown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, overload

__all__ = [
    "STYLES", "LazyLines", "Line", "Span", "cell", "code_form_spans", "code_spans", "copy_text",
    "index_of", "ir_spans", "mark_spans", "plain", "prose_spans", "python_spans", "readable_spans",
    "search_text", "table", "text_of", "trimmed", "used_columns", "width_of", "wrapped",
]  # fmt: skip

Span = tuple[str, str]

STYLES: Final = (
    "", "dim", "title", "head", "num", "ok", "bad", "warn", "accent", "add", "del", "move",
    "add-mark", "del-mark", "op", "type", "id", "const", "str", "kw", "comment", "gutter", "heat1",
    "heat2", "heat3", "pending", "stale",
)  # fmt: skip
"""Names of styles. ``add``/``del``/``move`` colour a whole row of a diff, ``*-mark`` the part of
it that differs, ``heat1`` to ``heat3`` a bar next to source lines. ``pending`` and ``stale`` mark
results of an older save (see `pending`)."""


class Line(NamedTuple):
    """One line; see the module docstring."""

    spans: tuple[Span, ...]
    key: object = None
    copy: str | None = None
    row: str = ""
    """Style of the whole row, under those of the spans."""
    line: int = 0
    folded: str = ""
    """The text of the lines that the line hides, if any, so that a search finds it. The rest of
    such a line's key is that of the first line it hides."""


class LazyLines(Sequence[Line]):
    """Lines built one by one when asked for.

    keys: `Line.key` of each. build: makes line ``i``. text: what a search sees of it, without
    building it. width: columns of the widest, or more.
    """

    def __init__(
        self,
        keys: Sequence[object],
        build: Callable[[int], Line],
        text: Callable[[int], str],
        width: int,
    ) -> None:
        self.keys = keys
        self.text = text
        self.width = width
        self._build = build
        self._built: dict[int, Line] = {}
        self._places: dict[object, int] | None = None

    def __len__(self) -> int:
        return len(self.keys)

    @overload
    def __getitem__(self, index: int) -> Line: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Line]: ...
    def __getitem__(self, index: int | slice) -> Line | Sequence[Line]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self.keys)))]
        if index < 0:
            index += len(self.keys)
        if not 0 <= index < len(self.keys):
            raise IndexError(index)
        line = self._built.get(index)
        if line is None:
            line = self._built[index] = self._build(index)
        return line

    def place(self, key: object) -> int | None:
        """The first line with ``key``."""
        if self._places is None:
            n = len(self.keys)
            # Backwards, so that the first of equal keys stays.
            self._places = {self.keys[i]: i for i in range(n - 1, -1, -1)}
        return self._places.get(key)


def index_of(lines: Sequence[Line], key: object) -> int | None:
    """The first line with this key; None if there is none, or for the key None."""
    if key is None:
        return None
    if isinstance(lines, LazyLines):
        return lines.place(key)
    return next((i for i, line in enumerate(lines) if line.key == key), None)


def trimmed(line: Line) -> Line:
    """The line without blanks at the end of its last span."""
    *spans, (text, style) = line.spans
    return line._replace(spans=(*spans, (text.rstrip(), style)))


def width_of(lines: Sequence[Line]) -> int:
    """Columns of the widest line."""
    if isinstance(lines, LazyLines):
        return lines.width
    return max((sum(len(text) for text, _ in line.spans) for line in lines), default=0)


def search_text(lines: Sequence[Line], index: int) -> str:
    """The text of line ``index`` that a search looks at."""
    if isinstance(lines, LazyLines):
        return lines.text(index)
    line = lines[index]
    return f"{text_of(line)}\n{line.folded}" if line.folded else text_of(line)


def text_of(line: Line) -> str:
    """The line as plain text, gutters included."""
    return "".join([text for text, _ in line.spans])


def wrapped(line: Line, width: int) -> list[Line]:
    """A line as several that fit, broken at blanks; all but the first are indented."""
    text, out, at = text_of(line), list[Line](), 0
    while at < len(text) or not out:
        room = max(10, width - (4 if out else 0))
        end = len(text)
        if end - at > room:
            blank = text.rfind(" ", at + 1, at + room + 1)
            end = blank if blank > 0 else at + room
        part = _part(line.spans, at, end)
        out.append(line._replace(spans=(("    ", ""), *part) if out else part))
        at = end + 1 if text[end : end + 1] == " " else end
    return out


def _part(spans: Sequence[Span], start: int, end: int) -> tuple[Span, ...]:
    out: list[Span] = []
    at = 0
    for text, style in spans:
        piece = text[max(0, start - at) : max(0, end - at)]
        at += len(text)
        if piece:
            out.append((piece, style))
    return tuple(out)


def plain(lines: Iterable[Line]) -> str:
    """All lines as plain text, without trailing blanks."""
    return "\n".join(text_of(line).rstrip() for line in lines) + "\n"


def copy_text(lines: Iterable[Line]) -> str:
    """The text that copying all of the lines yields."""
    texts = [x.copy if x.copy is not None else text_of(x).rstrip() for x in lines]
    return "\n".join(texts) + "\n"


_IR: Final = re.compile(
    r"""(?P<type><\*?\w+>)|(?P<id>\$\d+)|(?P<str>'[^']*'|"[^"]*")"""
    r"""|(?P<const>(?<![\w.])-?\d[\w.+-]*|\b(?:true|false|nan|inf|None|True|False)\b)"""
    r"""|(?P<op>(?<=[=:]\s)[a-z_]\w*)|(?P<kw>\b(?:kernel|body|then|else|header)\b)"""
)


_READABLE: Final = re.compile(
    r"""(?P<id>\$\w+)|(?P<str>'[^']*'|"[^"]*")"""
    r"""|(?P<const>(?<![\w.])\d[\w+-]*(?:\.(?!\.)[\w+-]*)?|\b(?:true|false|nan|inf|None|True|False)\b)"""
    r"""|(?P<type>\b(?:[fiu](?:8|16|32|64)|u1)\b)|(?P<op>\b[a-z_]\w*(?=\())"""
    r"""|(?P<kw>\b(?:kernel|function|for|in|while|if|else|task|header|body|var|atomic|break|unless"""
    r"""|continue|return|once)\b)"""
)


def readable_spans(text: str) -> tuple[Span, ...]:
    """A line of IR in the readable form, by token."""
    return _highlight(_READABLE, text)


_CODE: Final = re.compile(
    r"""(?P<comment>(?<=:)\s\sloop.*$)|(?P<str>"[^"]*")|(?P<id>[%@$][\w.$-]+|^[\w.$-]+:)"""
    r"""|(?P<const>(?<![\w.%])-?\d[\w.+-]*)|(?P<op>\b[a-z_][\w.]*(?=\())"""
    r"""|(?P<kw>\b(?:function|goto|if|else|not|var|return|call|atomic|from)\b)"""
)


def code_form_spans(text: str) -> tuple[Span, ...]:
    """A line of generated code in the readable form, by token."""
    return _highlight(_CODE, text)


def ir_spans(text: str) -> tuple[Span, ...]:
    """A line of IR, by token."""
    return _highlight(_IR, text)


_IN_PROSE: Final = re.compile(r"""(?P<id>\$\d+)|(?P<str>'[^']*')""")


def prose_spans(text: str) -> tuple[Span, ...]:
    """A sentence about IR: only values and names in quotes are marked."""
    return _highlight(_IN_PROSE, text)


def _highlight(pattern: re.Pattern[str], text: str) -> tuple[Span, ...]:
    out: list[Span] = []
    at = 0
    for match in pattern.finditer(text):
        if match.start() > at:
            out.append((text[at : match.start()], ""))
        out.append((match[0], match.lastgroup or ""))
        at = match.end()
    if at < len(text):
        out.append((text[at:], ""))
    return tuple(out)


_LLVM: Final = re.compile(
    r"""(?P<comment>;.*$)|(?P<str>"[^"]*")|(?P<id>[%@][\w.$-]+|^[\w.$-]+:)"""
    r"""|(?P<type>\b(?:i\d+|half|float|double|ptr|void|label|metadata)\b|<\d+\sx\s\w+>)"""
    r"""|(?P<const>(?<![\w.%@])-?\d[\w.+-]*)"""
    r"""|(?P<op>(?:(?<=^\s\s)|(?<==\s))[a-z]\w*)|(?P<kw>\b(?:define|declare|internal|fast|nsw)\b)"""
)
_ASM: Final = re.compile(
    r"""(?P<comment>[;#].*$)|(?P<id>^[\w.$]+:|%\w+)|(?P<const>\$?-?\b\d\w*)"""
    r"""|(?P<kw>^\s+\.\w+)|(?P<op>^\s+[a-z]\w+)"""
)


_PTX: Final = re.compile(
    r"""(?P<comment>//.*$)|(?P<str>"[^"]*")|(?P<id>%\w+(?:\.\w+)?|\$?\w+:)"""
    r"""|(?P<type>\.(?:[bfsu](?:8|16|32|64)x?2?|pred|v[24])\b)"""
    r"""|(?P<kw>^\s*\.\w+|(?<=\s)\.(?:entry|func|param|reg|shared|global|align|ptr)\b)"""
    r"""|(?P<op>(?<=\s)[a-z]\w*(?=[\s.;]))"""
    r"""|(?P<const>(?<![\w.%])-?\d[\w.]*)"""
)
_SASS: Final = re.compile(
    r"""(?P<comment>/\*.*?\*/)|(?P<id>^[\w.$]+:|\bU?R\d+\b|\bU?P\d\b|`\([^)]*\))"""
    r"""|(?P<const>(?<![\w.])-?0x[0-9a-f]+|(?<![\w.\[])-?\d[\d.]*\b)"""
    r"""|(?P<type>\bc\[0x\w+\]\[\w+\])|(?P<kw>\b(?:U?RZ|PT|SR_[\w.]+)\b)"""
    r"""|(?P<op>\b[A-Z][A-Z0-9_]+(?=[\s.;]))"""
)
_C: Final = re.compile(
    r"""(?P<comment>/\*.*?\*/|//.*$)|(?P<str>"(?:[^"\\]|\\.)*")"""
    r"""|(?P<kw>^\s*\#.*$|\b(?:if|else|for|while|do|return|break|continue|goto|switch|case|const"""
    r"""|restrict|volatile|static|inline|struct|typedef|__attribute__|(?:__)?(?:kernel|global|local"""
    r"""|private|constant))\b)"""
    r"""|(?P<type>\b(?:void|bool|size_t|u?(?:char|short|int|long)(?:2|3|4|8|16)?"""
    r"""|(?:half|float|double)(?:2|3|4|8|16)?)\b)"""
    r"""|(?P<const>(?<![\w.])(?:0[xX][\da-fA-F]+(?:\.[\da-fA-F]*)?(?:[pP][-+]?\d+)?"""
    r"""|\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+)[uUlLfFhH]*)|(?P<op>\b[A-Za-z_]\w*(?=\())"""
)
_GCN: Final = re.compile(
    r"""(?P<comment>[;].*$|//.*$)|(?P<str>"[^"]*")|(?P<kw>^\s*\.\w+)"""
    r"""|(?P<type>\b(?:vcc(?:_lo|_hi)?|exec(?:_lo|_hi)?|scc|m0|null|off|flat_scratch)\b)"""
    r"""|(?P<id>^[\w.$@]+:|\b[vsa](?:\d+|\[\d+:\d+\]))"""
    r"""|(?P<op>\b(?:[vs]_|ds_|buffer_|flat_|global_|scratch_|image_)\w+)"""
    r"""|(?P<const>(?<![\w.])-?(?:0x[\da-f]+|\d[\w.+]*))"""
)
_SPIRV: Final = re.compile(
    r"""(?P<comment>;.*$)|(?P<str>"[^"]*")|(?P<id>%[\w.]+)"""
    r"""|(?P<type>\bOpType\w+)|(?P<op>\bOp[A-Z]\w*)|(?P<const>(?<![\w.%])-?\d[\w.+-]*)"""
)
_LANGUAGES: Final = {
    "llvm": _LLVM, "asm": _ASM, "ptx": _PTX, "sass": _SASS, "c": _C, "gcn": _GCN, "spirv": _SPIRV,
}  # fmt: skip


def code_spans(text: str, language: str) -> tuple[Span, ...]:
    """A line of generated code: language ``llvm``, ``asm``, ``ptx``, ``sass``, ``c`` (also OpenCL
    C), ``gcn`` (of AMD) or ``spirv``; others are left plain."""
    pattern = _LANGUAGES.get(language)
    return ((text, ""),) if pattern is None else _highlight(pattern, text)


_PYTHON: Final = re.compile(
    r"""(?P<comment>\#.*$)|(?P<str>[frb]?"(?:[^"\\]|\\.)*"|[frb]?'(?:[^'\\]|\\.)*')"""
    r"""|(?P<kw>\b(?:def|for|in|if|elif|else|while|return|import|from|as|and|or|not|is|break"""
    r"""|continue|pass|assert|class|with|None|True|False)\b)|(?P<op>@[\w.]+)"""
    r"""|(?P<const>(?<![\w.])\d[\w.]*)"""
)


def python_spans(text: str) -> tuple[Span, ...]:
    """A line of Python; strings that span lines are left plain."""
    return _highlight(_PYTHON, text)


def mark_spans(
    spans: Sequence[Span], marks: Sequence[tuple[int, int]], style: str
) -> tuple[Span, ...]:
    """``spans`` with the character ranges ``marks`` restyled."""
    if not marks:
        return tuple(spans)
    out: list[Span] = []
    at = 0
    for text, own in spans:
        start = at
        end = at + len(text)
        for low, high in marks:
            if high <= start or low >= end:
                continue
            if low > start:
                out.append((text[start - at : low - at], own))
            out.append((text[max(low, start) - at : min(high, end) - at], style))
            start = min(high, end)
        if start < end:
            out.append((text[start - at :], own))
        at = end
    return tuple(out)


def cell(text: str, width: int, right: bool = False) -> str:
    """``text`` in exactly ``width`` columns, cut with an ellipsis."""
    if len(text) > width:
        text = text[: width - 1] + "…" if width > 1 else text[:width]
    return text.rjust(width) if right else text.ljust(width)


def table(
    header: Sequence[str],
    rows: Sequence[Sequence[Span]],
    keys: Sequence[object],
    right: Sequence[bool],
    limits: Sequence[int],
    gap: int = 2,
    least: Sequence[int] = (),
    marks: Mapping[str, str] | None = None,
) -> tuple[Line, list[Line]]:
    """Columns sized to their content up to ``limits``: (header line, rows).

    least: the minimum width of each column, so that nothing moves while the table fills. marks: by
    the name of a style, the character before each cell in that style.
    """
    widths = [
        max(
            len(head),
            least[i] if least else 0,
            min(limit, max((len(row[i][0]) for row in rows), default=0)),
        )
        for i, (head, limit) in enumerate(zip(header, limits, strict=True))
    ]
    space = " " * gap
    head = Line(
        tuple(
            (cell(h, w, r) + space, "head") for h, w, r in zip(header, widths, right, strict=True)
        )
    )
    lines = [
        Line(
            tuple(
                (cell(text, w, r) + space, style)
                for (text, style), w, r in zip(row, widths, right, strict=True)
            ),
            key,
            "\t".join(text for text, _ in row),
        )
        for row, key in zip(rows, keys, strict=True)
    ]
    return head, [_with_marks(line, marks) for line in lines] if marks else lines


def used_columns(
    header: Sequence[str], rows: Sequence[Sequence[str]], always: Container[str]
) -> list[int]:
    """The columns in which a row has something, and those called ``always``, by their indices."""
    return [i for i, name in enumerate(header) if name in always or any(row[i] for row in rows)]


def _with_marks(line: Line, marks: Mapping[str, str]) -> Line:
    """A character before each cell of such a style: in its own blanks, or in the gap before it, so
    that nothing moves when it comes and goes."""
    spans = list(line.spans)
    copies = (line.copy or "").split("\t")
    for i, (text, style) in enumerate(spans):
        mark, own = marks.get(style, ""), text.strip()
        if not mark or own in ("", mark):
            continue
        if i < len(copies):
            copies[i] = mark + copies[i]
        at = len(text) - len(text.lstrip())
        if at:
            spans[i] = (text[: at - 1] + mark + text[at:], style)
        elif i and spans[i - 1][0].endswith(" "):
            before, kept = spans[i - 1]
            spans[i - 1] = (before[:-1] + mark, kept)
    return line._replace(spans=tuple(spans), copy="\t".join(copies))
