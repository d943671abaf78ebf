"""The search over everything, from each kind of list."""

import pytest
from qd_studio.app.panels._finding import MOST, find, hit_lines

from tests.app.tui.pilot import SIZES, press, studio, text_of
from tests.app.tui.pilot import record as compiled
from tests.app.tui.test_edits import until


@pytest.fixture
def record(tmp_path_factory):
    return compiled(str(tmp_path_factory.getbasetemp()))


def test_a_line_of_ir_counts_once_where_it_appears_first(record):
    hits = find(record, "x[i] = x[i] *")
    assert [h.place for h in hits] == ["line 11"]
    texts = [h.text for h in find(record, "global_store") if h.changes["tab"] == "passes"]
    assert texts and len(texts) == len(set(texts))
    first = next(h for h in find(record, "range_for") if h.changes["tab"] == "passes")
    assert first.kernel.endswith("scale") and first.changes["backend"] == "cpu"
    assert any(h.changes.get("tab") == "code" for h in find(record, "define"))
    assert [h.kernel for h in find(record, "HELLO")] == [""]
    assert find(record, "   ") == [] and find(record, "nowhere to be found") == []


def test_more_hits_than_are_listed_are_announced(record):
    lines = hit_lines(record, "e")
    assert (len(lines) == MOST + 1) == (len(find(record, "e")) > MOST)


@pytest.mark.parametrize("size", SIZES)
async def test_the_text_is_found_and_shown_at_its_place(record, size):
    async with studio(record, size) as (app, pilot):
        await press(pilot, "F", *"x[i] + 1")
        await until(pilot, app, "1 lines")
        await press(pilot, "enter")
        await until(pilot, app, "x[i] + 1.0")
        assert app.sel.line == 17 and app.sel.kernel.endswith("shift")
        await press(pilot, "F", *"global_store")
        await until(pilot, app, "cpu ")
        await press(pilot, "enter", "enter")
        await pilot.pause()
        assert app.sel.tab == "passes" and app.focused.id == "diff"
        assert "global_store" in app.screen.view.copied()
        await press(pilot, "F", *"define")
        await until(pilot, app, "LLVM IR")
        await press(pilot, "enter", "enter")
        await pilot.pause()
        assert app.sel.tab == "code" and "define" in app.screen.view.copied()
        await press(pilot, "F", *"hello", "enter")
        await pilot.pause()
        assert "hello" in app.screen.view.copied()
        await press(pilot, "escape")
        assert app.sel.tab == "code"


@pytest.mark.parametrize("size", SIZES)
async def test_letters_lead_to_lines_of_every_list(record, size):
    async with studio(record, size) as (app, pilot):
        await press(pilot, "semicolon")
        assert "asdf"[:1] in text_of(app)
        await press(pilot, "s")  # the second line
        assert app.screen.view.cursor == 1
        await press(pilot, "enter", "2", "semicolon", "escape")
        assert app.screen.query("KernelScreen #runs") or app.sel.tab == "passes"
        await press(pilot, "semicolon", "a")
        before = app.screen.view.cursor
        assert (app.labels is None) == (size == SIZES[0])  # two letters: there are many lines
        if app.labels is not None:
            await press(pilot, "d")
            assert app.labels is None and app.screen.view.cursor != before


async def test_a_match_under_the_cursor_can_be_read(record):
    async with studio(record) as (app, pilot):
        await press(pilot, "enter", "1", "slash", *"kernel", "enter")
        source = app.screen.view
        strip = source.render_line(source.cursor - source.scroll_offset.y + len(source.header))
        (match,) = [s for s in strip if s.text == "kernel"]
        assert (match.style.color.name, match.style.bgcolor.name) == ("#000000", "#f2cc60")
