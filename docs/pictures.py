"""Take the pictures of the studio: `python docs/pictures.py [NAME ...]`.

Makes a report over one sample and opens it in the studio, as `qd-studio open` does. Presses keys
through Textual's pilot and writes the screen to `docs/pictures/NAME.svg`. Times and the name of the
processor are those of the machine that takes the pictures, so no test compares them; the release
checklist says when to run this.
"""

import argparse
import asyncio
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from qd_studio.app.tui.app import StudioApp
from qd_studio.engine.inspect.record import Record
from qd_studio.engine.inspect.store import load

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "pictures"
SAMPLE = "sample_kernels/jacobi.py"
BACKENDS = "cpu,opencl,cuda:sm_90"
SIZE = (120, 40)


class Picture(NamedTuple):
    """keys: pressed on the first screen, one after another; `t` switches to the light theme."""

    name: str
    keys: tuple[str, ...]


PICTURES = (
    Picture("matrix", ()),
    Picture("source", ("enter", "1")),
    Picture("passes", ("enter", "2")),
    Picture("passes-light", ("enter", "2", "t")),
    Picture("launch", ("enter", "4")),
    Picture("code", ("enter", "5")),
)


def made_record(folder: Path) -> Record:
    """The record of a report over the sample."""
    out = folder / "record.json"
    command = [sys.executable, "-c", "from qd_studio.app.cli import main; main()", "--report"]
    command += ["--backend", BACKENDS, "--out", str(out), SAMPLE]
    subprocess.run(command, cwd=ROOT, check=True)
    return load(out)


async def taken(record: Record, picture: Picture) -> str:
    """The screen as SVG."""
    app = StudioApp([SAMPLE], None, record)
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        for key in picture.keys:
            await pilot.press(key)
            await pilot.pause()
        return app.export_screenshot(title="qd-studio")


def smaller(svg: str) -> str:
    """The same picture in half the bytes, and with no font from the network."""
    svg = re.sub(r"@font-face \{.*?\}\n?", "", svg, flags=re.S)
    svg = re.sub(r"terminal-\d+-", "t-", svg)
    svg = svg.replace(' shape-rendering="crispEdges"', "")
    svg = svg.replace("<style>", "<style>rect { shape-rendering: crispEdges }", 1)
    # A line is clipped so that no glyph of a fallback font reaches the next one; ours fit.
    svg = re.sub(r' clip-path="url\(#t-line-\d+\)"', "", svg)
    svg = re.sub(r'<clipPath id="t-line-\d+">.*?</clipPath>\s*', "", svg, flags=re.S)
    svg = svg.replace("Fira Code", "ui-monospace, Menlo, Consolas")
    svg = re.sub(r"(\d+\.\d)\d+", r"\1", svg)
    return "\n".join(line.strip() for line in svg.splitlines() if line.strip()) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME")
    names = parser.parse_args().names
    if unknown := set(names) - {picture.name for picture in PICTURES}:
        parser.error(f"no picture is called {', '.join(sorted(unknown))}")
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        record = made_record(Path(folder))
    for picture in PICTURES:
        if not names or picture.name in names:
            svg = smaller(asyncio.run(taken(record, picture)))
            (FOLDER / f"{picture.name}.svg").write_text(svg, encoding="utf-8")
            print(f"{picture.name}.svg: {len(svg) // 1024} KiB")


if __name__ == "__main__":
    main()
