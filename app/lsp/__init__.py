"""``qd-studio lsp``: a language server for editors, over standard input and output.

The server needs the package pygls, of the extra ``lsp``.
"""

from __future__ import annotations

from importlib.util import find_spec

from ..options import compile_settings, positive
from ..usage import EXIT_ENVIRONMENT, EXIT_OK, Failure, Parser

__all__ = ["main", "parser"]


def parser() -> Parser:
    """The arguments."""
    made = Parser(
        prog="qd-studio lsp",
        description="A language server: errors of kernels while you type, hover, inlay hints, "
        "fixes, and the IR of an expression after each pass. docs/editors.md has the settings of "
        "editors.",
    )
    add = made.add_argument
    add("--backend", action="append", default=[], metavar="NAMES",
        help="backends to compile for, separated by commas or repeated; default: cpu")  # fmt: skip
    add("--config", action="append", default=[], metavar="KEY=VALUE",
        help="a compile option, such as fast_math=0; may be repeated")  # fmt: skip
    add("--run", action="store_true",
        help="after a save, also run each file as a script for a while, and launch its kernels "
        "with the arguments of the recorded calls")  # fmt: skip
    add("--no-launch", action="store_true", help="only compile: no times, also after a save")
    add("--unsaved", choices=("kernels", "all", "none"), default="kernels",
        help="the text that is compiled before it is saved: that which differs from its file "
        "only inside of kernels (default), all, or none")  # fmt: skip
    add("--time-limit", type=positive, metavar="SECONDS",
        help="limit for importing a file, for compiling a kernel, and for each launch")  # fmt: skip
    add("--stdio", action="store_true",
        help="use standard input and output, which is the only way; editors pass this")  # fmt: skip
    return made


def main(words: list[str]) -> int:
    """Run the command and return the exit code."""
    options = parser().parse_args(words)
    options.backend = options.backend or ["cpu"]
    from ..worker.protocol import Opening

    chosen = {**compile_settings(options), "opening": Opening()}
    if find_spec("pygls") is None or find_spec("lsprotocol") is None:
        text = "the language server needs the package pygls: pip install 'qd-studio[lsp]'"
        raise Failure(EXIT_ENVIRONMENT, text)
    from .server import serve

    serve(chosen, launch=not options.no_launch, unsaved=options.unsaved)
    return EXIT_OK
