"""The readable form of IR on the tab Passes."""

import pytest
from qd_studio.app.tui.kept import kept

from tests.app.tui import pilot as p
from tests.app.tui.pilot import press, studio, view


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    return p.record(str(tmp_path_factory.mktemp("kernels")))


async def test_one_key_switches_the_form_of_ir_and_keeps_the_operation(record):
    async with studio(record, (160, 50)) as (app, pilot):
        await press(pilot, "enter", "2", "x", "w")
        diff = view(app, "diff")
        compiled = record.kernels[0].backends[0].compile
        product = next(
            id for text, id in zip(compiled.snapshots[0].lines, compiled.snapshots[0].ids,
                                   strict=True) if " mul " in text
        )  # fmt: skip
        diff.move(next(i for i, x in enumerate(diff.lines) if x.key == product))
        await pilot.pause()
        exact = diff.lines
        await press(pilot, "f")
        assert app.sel.readable and len(diff.lines) < len(exact)
        assert "a * " in diff.current.copy and "$" not in diff.current.copy
        here = diff.current.key
        await press(pilot, "D")
        assert diff.current.key != here and "s" in diff.current.copy
        await press(pilot, "d")
        assert diff.current.copy.strip() in ("var s", "for j in 0..3 {")
        await press(pilot, "f")
        assert not app.sel.readable and [x.copy for x in diff.lines] == [x.copy for x in exact]


async def test_the_chosen_form_is_kept_for_the_next_start(record, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert kept() == {}
    async with studio(record, (160, 50)) as (app, pilot):
        await press(pilot, "enter", "2", "f")
        assert kept() == {}  # not started by a user
        app.keeps = True
        await press(pilot, "f", "f")
        assert kept() == {"readable": True}
        await press(pilot, "f")
        assert kept() == {"readable": False}
