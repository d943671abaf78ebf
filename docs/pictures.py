"""Take the pictures of the pages: `python docs/pictures.py [NAME ...]`.

Opens a copy of `docs/tour_kernels.py` in the studio, with a worker and measurements, and walks
through it as `docs/tour.md` does: presses keys through Textual's pilot, edits the file, and writes
the screen to `docs/pictures/NAME.svg`. Times and the name of the processor are those of the machine
that takes the pictures, so no test compares them; take them on a machine that is idle. The release
checklist says when. With names, only these pictures are written; the walk is the same.

A second walk, on `docs/fault_kernels.py`, takes those of the pages about races, NaNs, the debugger,
gradient checks and checkpoints. They have no times, so each run draws the same, except for the
number of launches in the last one.
"""

import argparse
import asyncio
import functools
import os
import re
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "pictures"
SAMPLE = ROOT / "docs" / "tour_kernels.py"
BACKENDS = ("cpu", "opencl")
SIZE = (120, 32)
EDIT = (
    """            if d * d < 0.25:
                pull += d / (d * d + reach[0])
""",
    """            pull += qd.select(d * d < 0.25, d / (d * d + reach[0]), 0.0)
""",
)
SAVE = "save"
"""In place of a key: change the file as the tour does."""


class Stop(NamedTuple):
    """keys: pressed one after another. until: a text that the screen then shows. find: a text whose
    line is then selected. name: of the picture; empty: none is taken."""

    name: str
    keys: tuple[str, ...] = ()
    until: str = ""
    find: str = ""


STOPS = (
    Stop("matrix", (), "ready"),
    Stop("bisect", ("j", "A"), "wrong because of"),
    Stop("", ("escape", "k", "enter", "8", "M"), "GFLOP/s"),
    Stop("cost", (), "ready"),
    Stop("", ("0",), "stays in loop", "is in an if"),
    Stop("explain", ("W",), "what if hoist"),
    Stop("edit", ("escape", "escape", SAVE), "code bytes"),
    Stop("changes", ("d",), "IR first differs"),
    Stop("passes", ("escape", "enter", "2", *("right_square_bracket",) * 2), "simplify_I"),
    Stop("", ("1",), "Pull", "d = x[j]"),
    Stop("track", ("9",), "born"),
    Stop("cfg", ("3",), "block"),
    Stop("launch", ("4",), "median"),
    Stop("code", ("5",), "text"),
    Stop("", ("escape", "c"), "accepts", "fast_math"),
    Stop("options", ("enter",), "ready"),
    Stop("compare", ("escape", "D"), "Revisions of git"),
    Stop("find", ("escape", "F", *"reach"), "lines"),
)
FAULTS = ROOT / "docs" / "fault_kernels.py"
FAULT_EDIT = ("x[i] * 0.5", "x[i] * 0.25")
FAULT_STOPS = (
    Stop("", (), "ready"),
    Stop("nan", ("j", "Z"), "makes an infinity"),
    Stop("", ("escape", "enter", "alt+2"), "enter runs"),
    Stop("", ("enter",), "moment"),
    Stop("debug", ("right_square_bracket", "greater_than_sign"), "tension"),
    Stop("gradient", ("escape", "j", "V"), "overwritten"),
    Stop("check", ("escape", "k", "k", "enter", "alt+1", SAVE), "race on"),  # after a save
    Stop("", ("escape", *("j",) * 8, "c"), "accepts", "ad_stack_budget_bytes"),
    Stop("", ("enter", "backspace", *"2048", "enter"), "ready"),
    Stop("checkpoints", ("escape", "enter", "7"), "plan"),
)
WALKS = ((SAMPLE, STOPS), (FAULTS, FAULT_STOPS))


class Walk:
    """The studio on a copy of a sample. stops: made one after another."""

    def __init__(self, app: Any, pilot: Any, path: Path, stops: tuple[Stop, ...]) -> None:
        self.app, self.pilot, self.path, self.stops = app, pilot, path, stops

    async def walk(self, stopped: Callable[[Stop], Awaitable[None]]) -> None:
        """Make every stop in turn."""
        for stop in self.stops:
            await self.make(stop)
            await stopped(stop)

    async def make(self, stop: Stop) -> None:
        """Press the keys of a stop, and wait until the screen is as it should be."""
        for key in stop.keys:
            if key == SAVE:
                text = self.path.read_text(encoding="utf-8")
                old, new = FAULT_EDIT if self.stops is FAULT_STOPS else EDIT
                assert old in text
                self.path.write_text(text.replace(old, new), encoding="utf-8")
            else:
                await self.pilot.press(key)
            await self.pilot.pause(0.1)
        await self.shows(stop.until)
        if stop.find:
            view = self.app.screen.view
            texts = ["".join(text for text, _ in line.spans) for line in view.lines]
            view.move(next(i for i, text in enumerate(texts) if stop.find in text))
            await self.pilot.pause(0.2)

    async def shows(self, text: str, seconds: float = 40) -> None:
        """Wait until the screen shows ``text``, and whatever is computed for it is there."""
        end = time.monotonic() + seconds
        while text not in (shown := self.text()) or "Comparing ..." in shown:
            if time.monotonic() > end:
                raise SystemExit(f"the screen does not show {text!r}:\n{shown}")
            await self.pilot.pause(0.1)
        await self.pilot.pause(0.3)

    def text(self) -> str:
        """The text of the screen."""
        strips = self.app.screen._compositor.render_strips()
        return "\n".join(strip.text.rstrip() for strip in strips)


async def walked(
    stopped: Callable[[Walk, Stop], Awaitable[None]],
    size: tuple[int, int] = SIZE,
    theme: str | None = "dark",
    no_color: bool = False,
    sample: Path = SAMPLE,
    stops: tuple[Stop, ...] = STOPS,
) -> None:
    """Walk through a new studio."""
    # Textual settles its colours when it is imported.
    from qd_studio.app.tui import run

    ascii_only = run.prepare(theme, no_color)
    from qd_studio.app.tui.app import StudioApp
    from qd_studio.app.worker.assuming import AssumingClient
    from qd_studio.app.worker.once import collect

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / sample.name
        path.write_bytes(sample.read_bytes())
        os.chdir(folder)

        def start(on_event: Any) -> AssumingClient:
            return AssumingClient(
                [str(path)], backends=BACKENDS, on_event=on_event, watch=True,
                command=("qd-studio", path.name), check=stops is FAULT_STOPS,
            )  # fmt: skip

        def measure(path: str, config: Any, only: str, on_event: Any, cancelled: Any) -> Any:
            return collect(
                [path], config, BACKENDS, on_event, only=[only] if only else [],
                cancelled=cancelled,
            )  # fmt: skip

        app = StudioApp([str(path)], start, ascii_only=ascii_only, theme=run.own_theme(theme))
        app.measure = measure
        app.backends = BACKENDS
        app.sel = replace(app.sel, readable=True)  # as at the first start
        async with app.run_test(size=size) as pilot:
            walk = Walk(app, pilot, path, stops)
            await walk.walk(functools.partial(stopped, walk))
        if app.link is not None:
            app.link.close()
        os.chdir(ROOT)


def _rounded(tag: re.Match[str]) -> str:
    """A tag with numbers of one place after the point; the text of the screen is between tags."""
    return re.sub(r"(\d+\.\d)\d+", r"\1", tag[0])


def _without_folder(found: re.Match[str]) -> str:
    """A text without the temporary folder of the sample, which is another one each time."""
    text = re.sub(r"/[^ ;&]*/(?=\w+\.py)", "", found[2])
    if text == found[2]:
        return found[0]
    width = float(found[1]) * len(unescape(text)) / len(unescape(found[2]))
    return f' textLength="{width:.1f}">{text}'


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
    svg = re.sub(r' textLength="([\d.]+)">([^<]*)', _without_folder, svg)
    svg = re.sub(r"<[^>]*>", _rounded, svg)
    return "\n".join(line.strip() for line in svg.splitlines() if line.strip()) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME")
    names = parser.parse_args().names
    known = {stop.name for _, stops in WALKS for stop in stops if stop.name}
    if unknown := set(names) - known:
        parser.error(f"no picture is called {', '.join(sorted(unknown))}")
    FOLDER.mkdir(exist_ok=True)

    async def stopped(walk: Walk, stop: Stop) -> None:
        if stop.name and (not names or stop.name in names):
            svg = smaller(walk.app.export_screenshot(title="qd-studio"))
            (FOLDER / f"{stop.name}.svg").write_text(svg, encoding="utf-8")
            print(f"{stop.name}.svg: {len(svg) // 1024} KiB")

    for sample, stops in WALKS:
        if not names or any(stop.name in names for stop in stops):
            asyncio.run(walked(stopped, sample=sample, stops=stops))


if __name__ == "__main__":
    main()
