"""Edits that break a file of kernels in all ways, and requests between them.

    python -m tests.app.lsp.broken_edits --count 10000 --seed 1

The server must answer every request, complain of nothing, and know all again once the text is
whole.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import tempfile
from pathlib import Path
from typing import NamedTuple

from lsprotocol import types

from tests.app.lsp.kit import Editor
from tests.app.worker.live import SCALE

TOKENS = (
    "(", ")", "[", "]", "{", "}", ":", ",", ".", "=", "==", "*", "**", "@", "@qd.kernel\n", "\n",
    "\t", "    ", "def ", "class ", "for ", "while True:", "if ", "else:", "return ", "yield ",
    "lambda: ", "'", '"', '"""', "\\", "#", "\0", "\r", "\r\n", "\f", "\u2028", "\U0001f600", "é",
    "x[", "qd.", "qd.static(", "1e400", "-1", "0x", "import os\n", "from . import ", "*args",
    "async ", "(" * 300, "[" * 300, "-" * 500, "x." * 300, "\ud7ff", "i = i\n", "x = x\n",
)  # fmt: skip


class Report(NamedTuple):
    """The edits and requests of a run, and how often errors were sent."""

    edits: int
    requests: int
    looks: int


def _position(chance: random.Random, lines: list[str]) -> types.Position:
    """A position in the text, or somewhat outside of it."""
    line = chance.randrange(len(lines) + 2)
    width = len(lines[line]) if line < len(lines) else 0
    return types.Position(line, chance.randrange(width + 3))


def _change(chance: random.Random, text: str):
    """A change; whole, if the text has grown."""
    lines = text.split("\n")
    start, end = _position(chance, lines), _position(chance, lines)
    if chance.random() < 0.7:
        end = start
    elif (end.line, end.character) < (start.line, start.character):
        start, end = end, start
    new = "" if chance.random() < 0.3 else "".join(chance.choices(TOKENS, k=chance.randint(1, 3)))
    return types.TextDocumentContentChangePartial(types.Range(start, end), new)


async def run(folder: Path, count: int, seed: int = 1) -> Report:
    """Make ``count`` edits. AssertionError if the server does anything wrong."""
    chance = random.Random(seed)
    path = folder / "kernels.py"
    path.write_text(SCALE)
    requests = looks = 0
    async with Editor(folder, "--no-launch", "--time-limit", "2") as editor:
        editor.open(path)
        await editor.until(lambda: path.as_uri() in editor.diagnostics)
        for number in range(count):
            if number % 10 == 0:
                editor.change(path, SCALE)
            editor.change(path, _change(chance, SCALE))
            if number % 25 == 0:
                at = _position(chance, SCALE.split("\n"))
                await editor.hover(path, at.line, at.character)
                await editor.hints(path)
                await editor.actions(path, at.line)
                await editor.definition(path, at.line, at.character)
                requests += 4
            if number % 100 == 99:
                before = editor.diagnostics.pop(path.as_uri(), None)
                await asyncio.sleep(0.25)
                looks += before is not None
        editor.change(path, SCALE)
        await editor.until(lambda: not editor.diagnostics.get(path.as_uri(), [True]))
        line = next(n for n, x in enumerate(SCALE.split("\n")) if "x[i] * a" in x)
        assert "f32" in await editor.hover(path, line, 16)
        assert editor.complaints == [], editor.complaints
    return Report(count, requests, looks)


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(asyncio.run(run(Path(folder), options.count, options.seed)))


if __name__ == "__main__":
    main()
