"""The app under Textual's pilot, on a record made of real passes and no worker."""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import textual.app
import textual.pilot
from qd_studio.app.tui import run
from qd_studio.app.tui.app import StudioApp
from qd_studio.app.tui.widgets.lines import LineView
from qd_studio.engine import inspect
from qd_studio.engine.inspect import record as rec


async def _idle(least: float = 0.004, most: float = 1.0) -> None:
    """Wait until this process needs hardly any time for 4 ms. Textual's own wait, which is three
    times in a key, judges 20 ms: most of what a test takes."""
    ends = time.monotonic() + most
    while time.monotonic() < ends:
        used = time.process_time()
        await asyncio.sleep(max(least, 0.004))
        if time.process_time() - used < 0.0005:
            return


textual.app.wait_for_idle = textual.pilot.wait_for_idle = _idle

SIZES = [(80, 24), (120, 40), (200, 60)]
SOURCE = '''\
from qd_studio import engine as qd


@qd.kernel
def scale(x: qd.types.NDArray[qd.f32, 1], a: qd.f32):
    """Multiply by a sum."""
    for i in range(x.shape[0]):
        s = a * 3.25
        for j in range(3):
            s = s + a * a
        x[i] = x[i] * s


@qd.kernel
def shift(x: qd.types.NDArray[qd.f32, 1]):
    for i in range(x.shape[0]):
        x[i] = x[i] + 1.0
'''


@functools.cache
def record(folder: str) -> rec.Record:
    """Both kernels, compiled by the engine."""
    import importlib.util
    from pathlib import Path

    path = Path(folder) / "scale.py"
    path.write_text(SOURCE)
    spec = importlib.util.spec_from_file_location("pilot_kernels", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    kernels = tuple(
        inspect.capture_kernel(kernel, backends=("cpu", "interp"))
        for kernel in (module.scale, module.shift)
    )
    return rec.Record(
        kernels=kernels,
        files=(rec.FileRecord(path=str(path), sha256="", text=SOURCE),),
        config=(
            rec.ConfigEntry(name="fast_math", value=True, default=True),
            rec.ConfigEntry(name="opt_level", value=3, default=3),
        ),
        log=(rec.LogLine(stream="stdout", text="hello \x1b[31m\tworld"),),
    )


@asynccontextmanager
async def studio(record: rec.Record, size=(120, 40), **more) -> AsyncIterator:
    """(app, pilot) with ``record`` open."""
    run.prepare(None, False)
    app = StudioApp(["scale.py"], None, record, **more)
    async with app.run_test(size=size) as pilot:
        painted = asyncio.Event()
        app.call_after_refresh(painted.set)
        await painted.wait()
        await pilot.pause()
        yield app, pilot


def text_of(app: StudioApp) -> str:
    """What the screen shows."""
    height = app.size.height
    strips = app.screen._compositor.render_strips()
    return "\n".join(strip.text.rstrip() for strip in strips[:height])


def view(app: StudioApp, name: str) -> LineView:
    return app.screen.query_one(f"#{name}", LineView)


async def press(pilot, *keys: str) -> None:
    """Press keys one by one, each when the one before is done."""
    for key in keys:
        await pilot.press(key)
        await pilot.pause()


async def until(pilot, app: StudioApp, text: str) -> None:
    """Wait until the screen shows a text."""
    for _ in range(200):
        if text in text_of(app):
            return
        await pilot.pause(0.02)
    raise AssertionError(text_of(app))
