"""The readable form of IR on the tab Passes."""

import json

import pytest
from qd_studio.app.show import show
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


def test_show_prints_code_and_graphs_in_the_readable_form(record):
    exact, readable = (show(record, "code", form=form) for form in ("exact", "readable"))
    assert "getelementptr" in exact and "getelementptr" not in readable
    assert "x[i] = " in readable and "loop: for " in readable
    found = json.loads(show(record, "code", form="readable", as_json=True))[0]
    assert found["readable"]["llvm_ir"]["ends"][-1] == len(
        found["artefacts"][0]["text"].splitlines()
    )
    exact, readable = (show(record, "cfg", form=form) for form in ("drawing", "readable"))
    assert " = mul $" in exact and " = mul $" not in readable and " * " in readable


async def test_one_key_switches_the_form_of_code_and_keeps_the_line(record):
    async with studio(record, (160, 50)) as (app, pilot):
        await press(pilot, "enter")
        app.select(tab="code", artefact=0)
        app.screen.action_show_tab("code")
        await pilot.pause()
        pane = app.screen.shown
        raw = pane.lines
        load = next(i for i, x in enumerate(raw) if "getelementptr inbounds float" in x.copy)
        folded = next(i for i, x in enumerate(raw) if x.copy.startswith("declare"))
        for row, text in ((load, "x[i]"), (folded, "declarations")):
            pane.move(row)
            await pilot.pause()
            await press(pilot, "f")
            assert app.sel.readable and text in pane.current.copy
            assert "readable form" in "".join(x for x, _ in pane.header[0].spans)
            await press(pilot, "f")
            assert not app.sel.readable and pane.lines is raw
        assert pane.lines[pane.cursor].copy.startswith("declare") or pane.cursor <= folded
        # A search finds what is folded, and unfolds it.
        await press(pilot, "f")
        assert pane.search("attributes #0")
        assert app.sel.whole and "attributes #0" in pane.current.copy
        await press(pilot, "x")
        assert not app.sel.whole


async def test_one_key_switches_the_form_of_graphs(record):
    async with studio(record, (160, 50)) as (app, pilot):
        await press(pilot, "enter")
        app.screen.action_show_tab("cfg")
        await pilot.pause()
        await press(pilot, "x")
        pane = app.screen.shown
        at = next(i for i, x in enumerate(pane.lines) if " = mul " in (x.copy or ""))
        pane.move(at)
        await pilot.pause()
        await press(pilot, "f")
        text = "\n".join(x.copy or "" for x in pane.lines)
        assert " = mul " not in text and " * " in pane.current.copy
