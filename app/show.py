"""One panel of a record as text or JSON: what ``qd-studio show`` prints.

The text is that of the studio's own panels without colour. The JSON is made of the record's own
parts, as the schema describes them: a list with an object ``{"kernel", "backend", ...}`` for each
kernel and backend. The ``_json`` function of each panel in `panels` states its members.
"""

from __future__ import annotations

import shutil
from typing import Final

from ..engine.inspect.record import Record
from . import options as common
from . import streams
from .core.lines import plain
from .core.visible import json_text
from .panels import Asked, NothingToShow, find, panels
from .usage import EXIT_ENVIRONMENT, EXIT_FAILED, EXIT_USAGE, Failure, Parser, count

__all__ = ["NothingToShow", "main", "parser", "show"]

_WIDTH: Final = 100
_WITH_LINES: Final = ("track", "explain")
_IR_FORMS: Final = ("exact", "readable")
_FORMS: Final = {
    "ir": (*_IR_FORMS, "edit"),
    "passes": _IR_FORMS,
    "code": _IR_FORMS,
    "track": _IR_FORMS,
    "cfg": ("drawing", "readable", "whole", "overview", "outline", "svg", "dot", "mermaid"),
}
"""The forms of a panel, the default first."""


def show(
    record: Record,
    panel: str,
    kernel: str | None = None,
    pass_name: str | None = None,
    *,
    as_json: bool = False,
    form: str = "exact",
    line: int = 0,
) -> str:
    """The panel as text that ends in a line end.

    kernel: a name or an id; None: all. pass_name: for passes, ir and cfg, only what this pass did,
    ``NAME`` or ``NAME@STAGE``. form: of IR or graphs, one of `_FORMS`. line: of the source, for
    track; 0 for all. Raises NothingToShow, or KeyError for an unknown panel.
    """
    chosen = find(panel)
    width = shutil.get_terminal_size((_WIDTH, 24)).columns
    asked = Asked(record, kernel, pass_name, width, form, line)
    if as_json and chosen.json is not None:
        return json_text(chosen.json(asked))
    if as_json or chosen.text is None:
        form = "JSON" if as_json else "text"
        raise NothingToShow(chosen.fault or f"the panel {chosen.id} has no {form}")
    return "\n".join(
        f"== {title}\n{plain(lines)}" if title else plain(lines)
        for title, lines in chosen.text(asked)
    )


def parser() -> Parser:
    """The arguments."""
    made = Parser(
        prog="qd-studio show",
        description="Print one panel of a kernel file, a session or a report.",
    )
    add = made.add_argument
    add("files", nargs="*", metavar="FILE",
        help="a Python file, notebook or folder, or a saved record (.qds, .json)")  # fmt: skip
    _panel_argument(made)
    add("--kernel", metavar="K", help="the kernel's name or id; default: all of them")
    add("--pass", dest="pass_name", metavar="NAME",
        help="only the runs of this pass; 'NAME@STAGE': only those of one stage")  # fmt: skip
    add("--form", choices=list(dict.fromkeys(form for forms in _FORMS.values() for form in forms)),
        help="of ir, passes, track and code: 'exact', the text itself (default), or 'readable', "
             "with your names and infix; of ir also 'edit', a file for "
             "'qd-studio edit'; of cfg: 'drawing' (default), "
             "'readable' with such lines, 'whole' without folds, "
             "'overview' with loops as boxes, 'outline' as text, or 'svg', "
             "'dot' and 'mermaid' for other programs")  # fmt: skip
    add("--line", type=count, default=0, metavar="N",
        help="of track and explain: only what is about line N of the file")  # fmt: skip
    add("--json", action="store_true", help="print JSON, in the form of the record")
    common.common(made)
    return made


def _panel_argument(parser: Parser) -> None:
    old = {name: panel.id for panel in panels() for name in panel.old_names}
    names = [panel.id for panel in panels()]
    notes = ", ".join(f"{name} is an old name of {now}" for name, now in old.items())
    parser.add_argument("--panel", choices=[*names, *old], required=True, metavar="PANEL",
                        help=f"one of {', '.join(names)} ({notes})")  # fmt: skip


def _forms_of(panel: str) -> str:
    if panel in _FORMS:
        return f"--form of {panel} is one of {', '.join(_FORMS[panel])}"
    return f"--form is for {', '.join(_FORMS)}, not {panel}"


def main(words: list[str]) -> int:
    """Run the command and return the exit code."""
    options = common.parsed(parser(), words)
    panel = find(options.panel)
    if panel.fault:
        raise Failure(EXIT_ENVIRONMENT, panel.fault)
    if options.form and options.form not in _FORMS.get(panel.id, ()):
        raise Failure(EXIT_USAGE, f"show: {_forms_of(panel.id)}")
    if options.line and panel.id not in _WITH_LINES:
        raise Failure(EXIT_USAGE, f"show: --line is for {' and '.join(_WITH_LINES)}")
    if not options.files and not options.module:
        raise Failure(EXIT_USAGE, "show: no file given")
    if options.files and options.files[0].endswith((".qds", ".json")):
        if len(options.files) > 1 or options.module:
            raise Failure(EXIT_USAGE, "show: a saved record is shown alone")
        record = common.saved(options.files[0])
    else:
        settings = common.settings(options)
        settings["launch"] = panel.launches
        settings["check"] = panel.id == "check"
        settings["peaks"] = panel.peaks
        record = common.measured(options.files, ["show"], settings)
    try:
        text = show(
            record, options.panel, options.kernel, options.pass_name, as_json=options.json,
            form=options.form or "exact", line=options.line,
        )  # fmt: skip
    except NothingToShow as error:
        common.report_failures(record)
        raise Failure(EXIT_FAILED if record.errors else EXIT_USAGE, str(error)) from None
    streams.write(text, options.json)
    return EXIT_FAILED if common.report_failures(record) else common.nothing_ran(record)
