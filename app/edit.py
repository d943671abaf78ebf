"""``qd-studio edit``: run IR that a person has edited, next to the unedited kernel."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from . import options as common
from . import streams
from .core.edit_conflict import newer_path, newer_text
from .core.lines import plain
from .core.views.edited import conflict, edited_lines, failed, wrong
from .usage import EXIT_ENVIRONMENT, EXIT_FAILED, EXIT_OK, EXIT_USAGE, Failure, Parser

if TYPE_CHECKING:
    from ..engine.inspect.edit_file import IrEdit
    from ..engine.inspect.record import KernelRecord, Record

__all__ = ["main", "parser", "run_edit"]


def parser() -> Parser:
    """The arguments."""
    made = Parser(
        prog="qd-studio edit",
        description="Compile, check and time a kernel with edited IR, next to the unedited one. "
        "'qd-studio show FILE --panel ir --kernel K --pass NAME --form edit > K.qdir' writes a "
        "file to edit. The exit code is 0 if the results are the same, 1 if they differ or "
        "something failed.",
    )
    add = made.add_argument
    add("files", nargs="*", metavar="FILE",
        help="the edited file, and the Python file of the kernel if it has moved")  # fmt: skip
    add("--force", action="store_true",
        help="use the edited IR although the source has changed since it was taken")  # fmt: skip
    add("--json", action="store_true", help="print the record of the kernel as JSON")
    common.common(made)
    return made


def main(words: list[str]) -> int:
    """Run the command and return the exit code."""
    from ..engine.inspect.edit_file import EditFileError, read_edit
    from .worker.once import collect

    options = common.parsed(parser(), words)
    if not 1 <= len(options.files) <= 2:
        raise Failure(EXIT_USAGE, "edit: name one edited file, and at most one Python file")
    path, *moved = options.files
    try:
        with open(path, encoding="utf-8") as file:
            edit = read_edit(file.read(), path, options.force)
    except (OSError, UnicodeDecodeError) as error:
        raise Failure(EXIT_USAGE, f"edit: cannot read {path}: {error}") from None
    except EditFileError as error:
        raise Failure(EXIT_USAGE, f"edit: {error}") from None
    source = moved[0] if moved else edit.file
    if not os.path.exists(source):
        raise Failure(EXIT_USAGE, f"edit: there is no file {source}; name it after {path}")
    options.files = [source]
    settings = run_edit(edit, common.settings(options))
    with common.working() as line:
        record = collect([source], on_event=line.heard, command=("qd-studio", "edit"), **settings)
    kernel = next((k for k in record.kernels if k.id == edit.kernel), None)
    if kernel is None or not (kernel.backends or kernel.errors):
        raise Failure(EXIT_FAILED, _missing(record, edit))
    if options.json:
        import msgspec

        streams.write(msgspec.json.encode(kernel).decode() + "\n", True)
    else:
        streams.write(plain(edited_lines(kernel)), False)
    if conflict(kernel):
        streams.talk(_keep_newer(kernel, edit))
        return EXIT_FAILED
    if not failed(kernel) and all(b.status == "absent" for b in kernel.backends):
        return EXIT_ENVIRONMENT
    return EXIT_FAILED if failed(kernel) or wrong(kernel) else EXIT_OK


def run_edit(edit: IrEdit, settings: dict[str, Any]) -> dict[str, Any]:
    """The settings of a `WorkerClient` that runs an edit."""
    return {**settings, "edit": edit, "only": [edit.kernel], "launch": True}


def _missing(record: Record, edit: IrEdit) -> str:
    known = ", ".join(k.id for k in record.kernels) or "none"
    errors = [e.rendered or e.message for e in record.errors]
    text = f"edit: {edit.file} has no kernel {edit.kernel}; there are: {known}"
    return "\n".join([*errors, text])


def _keep_newer(kernel: KernelRecord, edit: IrEdit) -> str:
    """Write the IR as it is now next to the edited file; say where both are."""
    text = newer_text(kernel, edit)
    path = newer_path(edit.path)
    if text is None:
        return f"qd-studio: your edit is in {edit.path}; --force uses it all the same"
    try:
        with open(path, "x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise Failure(EXIT_FAILED, f"edit: cannot write {path}: {error}") from None
    return (
        f"qd-studio: your edit is kept in {edit.path}, the IR as it is now is in {path}: edit "
        "that one, or use --force"
    )
