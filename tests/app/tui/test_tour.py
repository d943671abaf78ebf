"""The tour, walked through by its own keys; and its offer at the first start."""

import re

import pytest
from qd_studio.app.core.tour import OFFER, STEPS
from qd_studio.app.tui.commands import command
from qd_studio.app.tui.tour import Tour, first_start

from tests.app.tui.pilot import SIZES, press, studio, text_of
from tests.app.tui.pilot import record as compiled
from tests.app.tui.terminal import Terminal
from tests.app.tui.test_terminal import STUDIO


def test_every_key_that_a_step_names_exists():
    for text in (OFFER, *(step.text for step in STEPS)):
        for id in re.findall(r"\{([a-z-]+)\}", text):
            assert command(id)


@pytest.mark.parametrize("size", SIZES)
async def test_steps_are_shown_whole_and_go_on_when_done(size, tmp_path_factory):
    record = compiled(str(tmp_path_factory.getbasetemp()))
    changed = []
    async with studio(record, size) as (app, pilot):
        app.tour = Tour(offered=True, change=lambda: changed.append(True))
        app.tour_moved()
        await pilot.pause()
        assert "first time" in text_of(app)
        await press(pilot, "full_stop")
        for keys, step in (
            ("", 1), ("enter", 2), ("2", 3), ("right_square_bracket", 4), ("f", 5), ("5", 6),
            ("4", 7), ("escape", 8),
        ):  # fmt: skip
            await press(pilot, *[keys] * bool(keys))
            await pilot.pause()
            text = text_of(app)
            assert f"{step}/{len(STEPS)}" in text, (keys, step, text)
            shown = " ".join(text[text.index(f"{step}/{len(STEPS)}") :].split())
            assert "ends the tour" in shown
        await press(pilot, "full_stop")
        assert changed == [True]
        app._looks += 1
        app.repaint()
        await pilot.pause()
        assert "9/10" in text_of(app)
        await press(pilot, "comma")
        await pilot.pause()
        assert "9/10" not in text_of(app)


def test_it_is_offered_at_the_first_start_only(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert first_start()
    assert not first_start()
    (tmp_path / "state" / "qd-studio" / "studio.json").write_text("[1")
    assert first_start()  # what cannot be read counts as nothing
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))  # cannot be written
    assert not first_start()


@pytest.mark.slow
def test_the_tour_in_a_terminal(tmp_path):
    with Terminal([*STUDIO, "tour"], *SIZES[0], XDG_CONFIG_HOME=str(tmp_path)) as t:
        t.shows("1/10", "smooth", "ready", "✓", seconds=60)
        for keys, step in (("\r", 2), ("2", 3), ("]", 4), ("f", 5), ("5", 6), ("4", 7)):
            t.press(keys)
            t.shows(f"{step}/10")
        t.press("\x1b")
        t.shows("8/10")
        t.press(".")
        t.shows("9/10")
        t.press("d")
        t.shows("10/10", "what the last save did")
        t.press(".")
        t.wait(lambda text: "10/10" not in text)
        t.press("q")
        assert t.end() == 0 and t.clean() == []
