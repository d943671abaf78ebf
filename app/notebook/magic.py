"""The cell magic ``%%qd_inspect``."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Generator
from contextlib import contextmanager
from html import escape as esc
from importlib import import_module
from typing import Any, Final, NoReturn, cast

from ...engine import inspect
from ...engine.inspect.record import Record
from ..core.lines import plain
from ..core.views.errors import error_lines, errors_of
from .capture import Cell, captured
from .sections import OVERVIEW, summary

__all__ = ["register"]

_HEIGHT: Final = 640


def register(shell: Any) -> None:
    """Add the magic to an interactive shell of IPython."""

    def qd_inspect(line: str, cell: str) -> None:
        _inspect(shell, line, cell)

    qd_inspect.__doc__ = _parser().format_help()
    shell.register_magic_function(qd_inspect, "cell", "qd_inspect")


class _MagicParser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ValueError(f"%%qd_inspect: {message}\n{self.format_usage()}")


def _parser() -> argparse.ArgumentParser:
    made = _MagicParser(
        prog="%%qd_inspect", add_help=False,
        description="Run the cell, and show the passes, diffs, times and control flow of its "
        "kernels. They are launched with their workloads, else with the arguments of the cell's "
        "own calls, on copies.",
    )  # fmt: skip
    add = made.add_argument
    add("--backend", action="append", default=[], metavar="NAMES",
        help="backends separated by commas; 'all': every one; default: the program's")  # fmt: skip
    add("--config", action="append", default=[], metavar="KEY=VALUE", help="a compile option")
    add("--kernel", metavar="K", default="", help="only the kernel of this name")
    add("--panel", metavar="PANEL", default="", help="the panel to open: passes, cfg, launch, ...")
    add("--no-launch", action="store_true", help="compile only")
    add("--static", action="store_true", help="show the HTML report in place of a widget")
    add("--text", action="store_true", help="print the panel as text")
    add("--help", action="store_true", help="print this; the cell is not run")
    return made


def _inspect(shell: Any, line: str, text: str) -> None:
    try:
        options = _parser().parse_args(shlex.split(line))
        if options.help:
            print(_parser().format_help())
            return
        names = inspect.expand([n for one in options.backend for n in one.split(",") if n])
        config = dict(inspect.parse_setting(one) for one in options.config)
        _check_panel(options.panel)
    except ValueError as error:
        raise _usage_error(error) from None
    cell = _run(shell, text)
    try:
        record = captured(
            cell, config, names, options.kernel, not options.no_launch, ("%%qd_inspect", line)
        )
    except ValueError as error:
        raise _usage_error(error) from None
    if options.text:
        print(_panel_text(record, options.panel))
        return
    import_module("IPython.display").display(_bundle(record, options), raw=True)


def _usage_error(error: ValueError) -> Exception:
    return import_module("IPython.core.error").UsageError(str(error))


def _check_panel(name: str) -> None:
    from ..panels import panels

    known = [OVERVIEW]
    known += [panel.id for panel in panels() if panel.html or panel.html_of_compile or panel.text]
    if name and name not in known:
        raise ValueError(f"%%qd_inspect: there is no panel {name!r}; there are: {', '.join(known)}")


def _panel_text(record: Record, panel: str) -> str:
    from ..show import NothingToShow, show

    if panel in ("", OVERVIEW) or not record.kernels:
        return summary(record)
    errors = plain(error_lines(errors_of(record)))
    try:
        return (errors + show(record, panel)).rstrip("\n")
    except NothingToShow as error:
        return f"{errors}{error}"


def _run(shell: Any, text: str) -> Cell:
    """Run the cell as the notebook does; an exception of it is raised, and nothing is shown."""
    count = shell.execution_count
    # The same name that `run_cell` uses, and under which tracebacks find the lines.
    file = shell.compile.cache(shell.transform_cell(text), count, raw_code=text)
    with _quiet(shell), inspect.recorded_calls() as calls:
        done = shell.run_cell(text, store_history=False)
    done.raise_error()
    # Some versions of IPython have already counted on: the list of inputs ends with this cell.
    number = max(0, len(shell.user_ns.get("In", ())) - 1) or count
    return Cell(file, shell.transform_cell(text), f"cell {number}", shell.user_ns, calls)


@contextmanager
def _quiet(shell: Any) -> Generator[None]:
    """No traceback is printed by the inner run: the outer one raises it again, and prints it."""
    names = ("showtraceback", "showsyntaxerror")
    for name in names:
        setattr(shell, name, lambda *args, **kwargs: None)  # pyright: ignore[reportUnknownLambdaType]
    try:
        yield
    finally:
        for name in names:
            delattr(shell, name)


def _bundle(record: Record, options: argparse.Namespace) -> dict[str, Any]:
    """The answer in the forms that frontends choose from: a widget, a page, text."""
    bundle: dict[str, Any] = {"text/plain": summary(record)}
    if not record.kernels:
        return bundle
    bundle["text/html"] = _frame(record)
    if options.static:
        return bundle
    from .widget import MissingError, widget

    try:
        shown = widget(record, options.panel)
    except MissingError:
        return bundle
    found: Any = shown._repr_mimebundle_()
    own = cast("dict[str, Any]", found[0] if isinstance(found, tuple) else found)
    return {**bundle, **{kind: data for kind, data in own.items() if kind not in bundle}}


def _frame(record: Record) -> str:
    """The HTML report within the notebook, apart from its styles and scripts."""
    from ..report import render

    page = esc(render(record, ".html"), quote=True)
    return (
        f'<iframe sandbox="allow-scripts" title="Kernel report" srcdoc="{page}" '
        f'style="width:100%;height:{_HEIGHT}px;border:1px solid #d1d9e0"></iframe>'
    )
