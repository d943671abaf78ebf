"""The screen of options: forms, the results next to those of the start, and a sweep."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from msgspec.structs import replace
from qd_studio.app import sweeping
from qd_studio.app.core.edits import Edits, looked
from qd_studio.app.core.progress import State
from qd_studio.app.core.views.option_forms import ab_lines
from qd_studio.engine.inspect import record as rec

from tests.app.tui.pilot import SIZES, press, studio, text_of
from tests.app.tui.test_edits import until
from tests.inspect.test_compare import timed


def options(**values):
    known = {"fast_math": True, "default_fp": "f32", "unrolling_limit": 32}
    return tuple(
        rec.ConfigEntry(name=name, value=values.get(name, default), default=default)
        for name, default in known.items()
    )


BEFORE = replace(timed(100), config=options())


class Client:
    """A worker that is asked for options, and does nothing."""

    def __init__(self):
        self.asked = []

    def set_config(self, config):
        self.asked.append(dict(config))

    def focus(self, *args):
        pass


def live(app, record):
    """As if ``record`` were of a worker's finished look."""
    client = Client()
    app.link = SimpleNamespace(client=client, close=lambda: None)
    app.complete = True
    app.edits = looked(app.edits or Edits(), record)
    app.record = record
    app.settle()
    return client


@pytest.mark.parametrize("size", SIZES)
async def test_a_change_is_shown_next_to_the_start(size):
    async with studio(BEFORE, size) as (app, pilot):
        client = live(app, BEFORE)
        await press(pilot, "c")
        assert "on or off" in text_of(app) and "Change an option" in text_of(app)
        await press(pilot, "enter")
        assert client.asked == [{"fast_math": False}]
        assert "Compiling and measuring" in text_of(app)
        live(app, replace(timed(80, text="a"), config=options(fast_math=False)))
        app.repaint()
        await until(pilot, app, "A: fast_math=on    B: fast_math=off")
        text = text_of(app)
        assert "100 us" in text and "80.0 us" in text and "0.80x" in text and "better" in text


async def test_keys_step_values_and_go_back_to_the_start():
    async with studio(BEFORE) as (app, pilot):
        client = live(app, BEFORE)
        await press(pilot, "c", "down", "enter", "]", "[", "down", "]", "]", "u", "enter")
        assert [list(x.items())[-1] for x in client.asked[:3]] == [
            ("default_fp", "f64"), ("default_fp", "f16"), ("default_fp", "f64"),
        ]  # fmt: skip
        limits = [x["unrolling_limit"] for x in client.asked[3:]]
        assert limits == [64, 128, 32]
        await press(pilot, "minus", "5", "enter")
        messages = [n.message for n in app._notifications]
        assert any("unrolling_limit=-5 does not fit" in m for m in messages), messages
        assert len(client.asked) == 6


async def test_a_sweep_is_one_key(monkeypatch):
    asked = []

    def measure(files, option, values, settings, rounds, progress, cancelled):
        asked.append((option, values, settings["only"]))
        progress(State("fast_math=True", "look 1 of 2"))
        return [[timed(100), timed(80, text="a")]]

    monkeypatch.setattr(sweeping, "measure", measure)
    async with studio(BEFORE) as (app, pilot):
        live(app, BEFORE)
        await press(pilot, "c", "p")
        await until(pilot, app, "best: qd.init(fast_math=False)")
        assert asked == [("fast_math", [True, False], ["scale.py:scale"])]
        await press(pilot, "escape")
        assert "options, for this session only" in text_of(app)


def test_a_changed_source_is_stated():
    file = replace(BEFORE.files[0], text=BEFORE.files[0].text + "\n")
    now = replace(BEFORE, files=(file,))
    text = "\n".join(str(line.spans) for line in ab_lines(BEFORE, now, "scale.py:scale"))
    assert "The source changed, too" in text and "the same options" in text
