"""Pictures of the screen."""

import re
from xml.etree import ElementTree

import pytest

from tests.app.tui import pilot as p
from tests.app.tui.pilot import SIZES, press, studio


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    return p.record(str(tmp_path_factory.mktemp("kernels")))


@pytest.mark.parametrize("size", SIZES)
async def test_the_screen_is_written_as_svg_and_the_path_is_shown(
    record, size, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    async with studio(record, size) as (app, pilot):
        await press(pilot, "enter", "S")
        first, second = tmp_path / "scale-screen.svg", tmp_path / "scale-screen-2.svg"
        await until(pilot, first.exists)
        await until(pilot, lambda: "wrote " in " ".join(n.message for n in app._notifications))
        assert str(first) in [n.message for n in app._notifications][-1]
        await press(pilot, "S")  # never over another one
        await until(pilot, second.exists)
        shown = "".join(ElementTree.parse(first).getroot().itertext()).replace("\xa0", " ")
        assert "Multiply by a sum" in shown and "qd-studio scale.py" in shown
        # Addresses are names of formats and a comment; nothing is fetched.
        assert not re.search(r"url\(['\"]?http|@font-face|href", first.read_text())


async def test_the_palette_writes_the_screen_and_not_itself(record, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    async with studio(record) as (_app, pilot):
        await press(pilot, "colon", *"Screenshot")
        await pilot.pause(0.3)
        await press(pilot, "enter")
        await until(pilot, (tmp_path / "scale-screen.svg").exists)
        text = (tmp_path / "scale-screen.svg").read_text()
        assert "agreement" in text and "Write&#160;the&#160;screen" not in text


async def test_a_folder_that_cannot_be_written_is_reported(record, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("pathlib.Path.write_text", _refused)
    async with studio(record) as (app, pilot):
        await press(pilot, "S")
        await until(pilot, lambda: len(app._notifications) > 0)
        assert "cannot write scale-screen.svg: Permission denied" in [
            n.message for n in app._notifications
        ]


def _refused(*_words, **_options):
    raise PermissionError(13, "Permission denied")


async def until(pilot, true):
    """Wait for what another thread does."""
    for _ in range(200):
        if true():
            return
        await pilot.pause(0.02)
    raise AssertionError("it did not come")
