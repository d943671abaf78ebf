"""``qd-studio debug FILE --kernel K``: a prompt that steps through a kernel, forward and back."""

from __future__ import annotations

import contextlib
import json
import linecache
import os
import sys
from typing import Any, Final

from . import streams
from .dap.client import AdapterError, Client, Position
from .usage import EXIT_FAILED, EXIT_OK, Failure, Parser

__all__ = ["main", "parser"]

_MOTIONS: Final = {
    "n": "next", "s": "stepIn", "o": "stepOut", "b": "stepBack", "c": "continue",
    "rc": "reverseContinue",
}  # fmt: skip
_HELP: Final = """\
n, s, o       next line; into functions; out of the function
b, rc         back a line; back to a breakpoint or change
c             continue to a breakpoint, a change, an error or the end
i, bi         one op forward; one op back
br 12 [if C]  stop at line 12, if condition C is true; br lists, br - 12 removes
watch x[3]    stop where x[3] changes
p EXPR        the value of an expression; an empty p shows all values
who x[3]      the last write of x[3]
l, w          the lines around; the functions that run
q             quit"""


def parser() -> Parser:
    """The arguments."""
    made = Parser(
        prog="qd-studio debug",
        description="Step through one iteration of a kernel, forward and back, at a prompt. "
        "docs/debugging.md describes it, and the settings of editors.",
    )
    add = made.add_argument
    add("file", metavar="FILE", help="the file with the kernel")
    add("--kernel", default="", metavar="K", help="the name of the kernel; default: the only one")
    add("--iteration", default="", metavar="I,J",
        help="the iteration to run; default: all, one after the other")  # fmt: skip
    add("--workload", default="0", metavar="NAME", help="the label or number of the workload; "
        "default: the first")  # fmt: skip
    add("--stage", default="", metavar="PASS", help="run the IR after this pass; default: the IR "
        "of the frontend")  # fmt: skip
    return made


def main(words: list[str]) -> int:
    """Run the command and return the exit code."""
    options = parser().parse_args(words)
    given: dict[str, Any] = {
        "program": options.file, "kernel": options.kernel, "stage": options.stage,
        "workload": int(options.workload) if options.workload.isdecimal() else options.workload,
    }  # fmt: skip
    if options.iteration:
        try:
            given["iteration"] = json.loads(f"[{options.iteration}]")
        except ValueError:
            raise Failure(EXIT_FAILED, f"{options.iteration} is no iteration: 3 or 3,4") from None
        if len(given["iteration"]) == 1:
            given["iteration"] = given["iteration"][0]
    client = Client(lambda text: streams.write(text))
    try:
        _Prompt(client, client.launch(given)).run()
    except AdapterError as error:
        raise Failure(EXIT_FAILED, str(error)) from None
    finally:
        client.close()
    return EXIT_OK


class _Prompt:
    """Reads commands until the end."""

    def __init__(self, client: Client, at: Position) -> None:
        self._client: Final = client
        self._at = at
        self._breaks: Final[dict[str, dict[int, str]]] = {}
        self._watches: Final[list[str]] = []

    def run(self) -> None:
        """Answer commands; an empty line repeats the last one."""
        self._show()
        last = ""
        while True:
            streams.write("(kernel) ")
            line = sys.stdin.readline()
            if not line:
                return
            last = line.strip() or last
            word, _, rest = last.partition(" ")
            if word == "q":
                return
            try:
                if not self._do(word, rest.strip()):
                    return
            except AdapterError as error:
                streams.write(f"{error}\n")

    def _do(self, word: str, rest: str) -> bool:
        """Carry out one command; False at the end of the session."""
        if word in _MOTIONS or word in ("i", "bi"):
            command = _MOTIONS.get(word) or ("next" if word == "i" else "stepBack")
            more = {} if word in _MOTIONS else {"granularity": "instruction"}
            at = self._client.move(command, **more)
            if at is None:
                return False
            self._at = at
            self._show()
        elif word == "br":
            self._break(rest)
        elif word == "watch":
            self._watches.append(self._client.cell(rest)[0])
            self._client.stop_at_changes(self._watches)
        elif word == "p" and rest:
            streams.write(self._client.evaluate(rest) + "\n")
        elif word == "p":
            for heading, values in self._at.values.items():
                streams.write(f"{heading}\n")
                for name, value in values:
                    streams.write(f"  {name} = {value}\n")
        elif word == "who":
            streams.write(self._client.evaluate(f"who {rest}") + "\n")
        elif word == "l":
            self._list()
        elif word == "w":
            for name, file, line in self._at.frames:
                streams.write(f"{name} {os.path.basename(file)}:{line}\n")
        else:
            streams.write(_HELP + "\n")
        return True

    def _break(self, rest: str) -> None:
        file = self._at.frames[-1][1]
        known = self._breaks.setdefault(file, {})
        words, _, condition = rest.partition(" if ")
        number = words.removeprefix("-").strip()
        if number.isdecimal():
            if words.startswith("-"):
                known.pop(int(number), None)
            else:
                known[int(number)] = condition.strip()
        elif rest:
            streams.write(f"{rest!r} names no line: br 12, or br 12 if i == 3\n")
        try:
            found = self._client.break_at(file, known)
        except AdapterError:
            known.pop(int(number) if number.isdecimal() else 0, None)
            raise
        for (_, condition), at in zip(list(known.items()), found, strict=True):
            streams.write(f"line {at}" + (f" if {condition}" if condition else "") + "\n")

    def _show(self) -> None:
        name, file, line = self._at.frames[0]
        if self._at.text:
            streams.write(f"{self._at.text}\n")
        text = linecache.getline(file, line).rstrip()
        streams.write(f"{name} {os.path.basename(file)}:{line}  {text}\n")
        values = self._at.values.get("Locals", [])
        if values:
            streams.write("  " + "  ".join(f"{k}={v}" for k, v in values) + "\n")

    def _list(self) -> None:
        _, file, line = self._at.frames[0]
        with contextlib.suppress(OSError):
            for n in range(max(1, line - 5), line + 6):
                text = linecache.getline(file, n).rstrip()
                mark = ">" if n == line else " "
                if text or n == line:
                    streams.write(f"{mark}{n:5} {text}\n")
