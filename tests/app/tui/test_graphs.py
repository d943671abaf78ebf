"""The tab of control flow: a pass in one drawing, its forms, folds and exports."""

import pytest

from tests.app.tui import pilot as p
from tests.app.tui.pilot import press, studio, text_of, view


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    return p.record(str(tmp_path_factory.mktemp("kernels")))


async def test_a_pass_in_one_drawing_and_its_forms(record, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    async with studio(record, (120, 40)) as (app, pilot):
        await press(pilot, "enter", "3")
        pane = view(app, "cfg")
        assert "before and after" in text_of(app)
        assert any(line.folded for line in pane.lines)
        await press(pilot, "right_curly_bracket")
        assert any(style in ("add", "del", "move") for _, style in pane.current.spans)
        folded = len(pane.lines)
        await press(pilot, "x")
        assert app.sel.whole and len(pane.lines) > folded and app.sel.tab == "cfg"
        await press(pilot, "x", "O")
        assert app.sel.graph == "overview" and "loop range_for" in text_of(app)
        at = next(i for i, line in enumerate(pane.lines) if line.spans[1][0].startswith("~ block"))
        pane.move(at)
        await pilot.pause()
        key = pane.current.key
        await press(pilot, "enter")
        assert app.sel.graph == "drawing" and pane.current.key == key
        await press(pilot, "O", "O")
        assert app.sel.graph == "outline" and "┌" not in "".join(t for t, _ in pane.lines[1].spans)
        await press(pilot, "e")
        await app.workers.wait_for_complete()
        for suffix in ("svg", "dot", "mmd"):
            assert next(tmp_path.glob(f"*.{suffix}")).read_text().strip()


async def test_the_keys_of_passes_step_through_the_graphs_of_all_passes(record):
    async with studio(record, (80, 24)) as (app, pilot):
        await press(pilot, "enter", "3")
        shown = [text_of(app)]
        for _ in range(2):
            await press(pilot, "left_square_bracket")
            shown.append(text_of(app))
        assert len(set(shown)) == 3 and app.sel.run is not None and app.sel.tab == "cfg"
        await press(pilot, "2")
        assert app.sel.run[3] in text_of(app), "the tab of passes shows the same run"


async def test_enter_on_a_fold_shows_what_it_hides(record):
    async with studio(record, (120, 40)) as (app, pilot):
        await press(pilot, "enter", "3")
        pane = view(app, "cfg")
        fold = next(i for i, line in enumerate(pane.lines) if line.folded)
        op = pane.lines[fold].key[1]
        pane.move(fold)
        await press(pilot, "enter")
        assert app.sel.whole and pane.current.key == op
