"""Every screen at the three sizes, keys and clicks, and a selection that stays where it is."""

from contextlib import asynccontextmanager
from dataclasses import replace

import msgspec
import pytest
import textual
from qd_studio.app.core import pending
from qd_studio.app.panels import tabs
from qd_studio.app.tui.commands import all_commands
from qd_studio.app.tui.link import Link
from qd_studio.app.worker import events as ev
from qd_studio.engine.inspect import record as rec

from tests.app.tui import pilot as p
from tests.app.tui.pilot import SIZES, press, studio, text_of, view

TABS = [panel.id for panel in tabs()]


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    return p.record(str(tmp_path_factory.mktemp("kernels")))


def key_of(tab):
    """The key of a tab."""
    return next(c.keys for c in all_commands() if c.id == f"tab-{tab}")


@pytest.mark.sampled(5)
@pytest.mark.parametrize("size", SIZES)
async def test_every_screen_draws_at_every_size(record, size):
    async with studio(record, size) as (app, pilot):
        home = text_of(app)
        assert "scale" in home and "shift" in home and "statements" in home
        assert "agreement" in home
        await press(pilot, "enter")
        wanted = {
            "source": "x[i] = x[i] * s", "passes": "simplify_I", "cfg": "before and after",
            "launch": "backend" if record.kernels[0].backends[0].launches else "launched",
            "code": "text 1 of 3", "caches": "layer", "autodiff": "has no gradient",
        }  # fmt: skip
        for tab in TABS:
            await press(pilot, key_of(tab))
            text = text_of(app)
            assert app.sel.tab == tab
            assert wanted.get(tab, "") in text or tab in ("launch", "caches"), tab
            # Help and the way out are shown on every screen.
            assert "? help" in text and "esc back" in text
        for key, word in (("o", "hello"), ("c", "fast_math"), ("question_mark", "Everywhere")):
            await press(pilot, key)
            assert word in text_of(app)
            await press(pilot, "escape")


@pytest.mark.sampled(5)
@pytest.mark.parametrize("size", SIZES)
async def test_no_line_is_wider_than_the_screen_and_what_is_cut_is_reported(record, size):
    async with studio(record, size) as (app, pilot):
        await press(pilot, "enter", "2", "w", "x")
        shown = view(app, "diff")
        rows = range(len(shown.header), shown.size.height)
        drawn = {
            y: shown.lines[shown.scroll_offset.y + y - 1] for y in rows if y <= len(shown.lines)
        }
        for y, line in drawn.items():
            text = shown.render_line(y).text
            assert len(text) == shown.room
            long = sum(len(t) for t, _ in line.spans) > shown.room
            assert text.endswith("›") == long
        before = shown.render_line(1).text
        await press(pilot, "l")
        most = max(0, shown.virtual_size.width - shown.room)
        assert shown.scroll_offset.x == min(8, most)
        await press(pilot, "h", "h")
        assert shown.render_line(1).text == before


async def test_passes_can_be_walked_from_either_end(record):
    async with studio(record) as (app, pilot):
        await press(pilot, "enter", "2")
        walked = [app.sel.run]
        for _ in range(100):
            await pilot.press("right_square_bracket")
            if app.sel.run == walked[-1]:
                break
            walked.append(app.sel.run)
        compiled = record.kernels[0].backends[0].compile
        changed = [r for r in compiled.runs if r.state != "noop"]
        assert len(walked) == len(changed)
        assert len(set(walked[1:])) == len(walked) - 1
        for run in reversed(walked[1:-1]):
            await pilot.press("left_square_bracket")
            assert app.sel.run == run


async def test_a_selected_statement_is_held_while_passes_are_walked(record):
    async with studio(record) as (app, pilot):
        await press(pilot, "enter", "2", "w", "x")
        diff = view(app, "diff")
        op = next(x.key for x in diff.lines if x.copy and "mul" in x.copy and x.key is not None)
        diff.move(next(i for i, x in enumerate(diff.lines) if x.key == op))
        await pilot.pause()
        assert app.sel.op == op
        compiled = record.kernels[0].backends[0].compile
        for _ in range(6):
            await press(pilot, "right_square_bracket")
            assert app.sel.op == op
            run = next(r for r in compiled.runs if app.screen.pane._run[3] == r.name)
            there = any(x.key == op for x in diff.lines)
            assert not there or diff.current.key == op, run


async def test_the_cursor_may_rest_on_stage_names_and_folded_passes(record):
    async with studio(record) as (app, pilot):
        await press(pilot, "enter", "2")
        runs = view(app, "runs")
        special = [i for i, x in enumerate(runs.lines) if x.key[0] in ("stage", "noops")]
        for at in special[:6]:
            before = app.sel.run
            runs.move(at)
            await pilot.pause()
            assert app.sel.run == before
            app.repaint()
            assert runs.cursor == at
        folded = next(i for i in special if runs.lines[i].key[0] == "noops")
        runs.move(folded)
        await press(pilot, "enter")
        assert not app.sel.fold_noops
        assert not any(x.key[0] == "noops" for x in runs.lines)


async def test_esc_backs_out_one_level_at_a_time(record):
    async with studio(record, (80, 24)) as (app, pilot):
        await press(pilot, "enter", "2", "enter")
        diff = view(app, "diff")
        assert diff.has_focus
        await press(pilot, "slash", *"mul")
        assert diff.needle == "mul"
        await press(pilot, "escape")
        assert diff.has_focus and diff.needle == "mul"
        await press(pilot, "escape")
        assert diff.needle == ""
        await press(pilot, "escape")
        assert view(app, "runs").has_focus
        await press(pilot, "escape")
        assert type(app.screen).__name__ == "HomeScreen"
        await press(pilot, "escape")
        assert type(app.screen).__name__ == "HomeScreen"


@pytest.mark.sampled(5)
@pytest.mark.parametrize("tab", [*TABS, "home", "log", "config", "help"])
async def test_search_works_in_every_list(record, tab):
    async with studio(record) as (app, pilot):
        if tab in TABS:
            await press(pilot, "enter", str(TABS.index(tab) + 1))
        elif tab != "home":
            await press(pilot, {"log": "o", "config": "c", "help": "question_mark"}[tab])
        shown = app.screen.view
        await press(pilot, "slash", "a", "enter")
        assert shown.needle == "a"
        found = [i for i, x in enumerate(shown.lines) if "a" in "".join(t for t, _ in x.spans)]
        if found:
            assert shown.cursor in found
            before = shown.current
            await press(pilot, "n", "N")
            assert shown.current.key == before.key


async def test_clicks_do_what_keys_do(record):
    async with studio(record) as (app, pilot):
        await pilot.click("#matrix", offset=(6, 3), times=2)
        await pilot.pause()
        assert app.sel.kernel.endswith("shift")
        assert type(app.screen).__name__ == "KernelScreen"
        await pilot.click("TabBar", offset=(14, 0))
        assert app.sel.tab == "passes"
        row = next(i for i, x in enumerate(view(app, "runs").lines) if len(x.key) == 5 and i > 4)
        await pilot.click("#runs", offset=(12, row))
        await pilot.pause()
        assert app.sel.run == view(app, "runs").lines[row].key
        bar = app.screen.query_one("KeyBar")
        at = str(bar.render()).index("back")
        await pilot.click("KeyBar", offset=(at + 1, 0))
        await pilot.pause()
        assert type(app.screen).__name__ == "HomeScreen"


async def test_the_palette_lists_and_runs_commands(record):
    async with studio(record) as (app, pilot):
        await press(pilot, "enter", "2")
        titles = {c.title for c in app.get_system_commands(app.screen)}
        there = {c.id for c in all_commands() if c.scope in ("everywhere", "list", "kernel")}
        assert len(titles) == len(there - {"palette"})
        split = next(c for c in app.get_system_commands(app.screen) if c.title.startswith("Split"))
        await split.callback()
        assert app.sel.split
        down = next(c for c in app.get_system_commands(app.screen) if "Line down" in c.title)
        before = view(app, "runs").cursor
        await down.callback()
        assert view(app, "runs").cursor == before + 1


async def test_resizing_keeps_cursor_and_selection(record):
    async with studio(record, (200, 60)) as (app, pilot):
        await press(pilot, "enter", "2", "right_square_bracket", "w", "j", "j")
        before = app.sel, view(app, "diff").cursor
        for size in ((80, 24), (30, 8), (120, 40), (200, 60)):
            await pilot.resize_terminal(*size)
            await pilot.pause()
            assert app.screen.has_class("small") == (size == (30, 8))
        assert (app.sel, view(app, "diff").cursor) == before


async def test_the_split_diff_shows_both_sides_and_fits(record):
    async with studio(record, (200, 60)) as (app, pilot):
        await press(pilot, "enter", "2", "right_square_bracket", "u")
        diff = view(app, "diff")
        sides = [x for x in diff.lines if any(t == "│" for t, _ in x.spans)]
        assert sides
        lefts = {"".join(t for t, _ in x.spans).index("│") for x in sides}
        assert len(lefts) == 1


async def test_the_theme_switches_and_terminal_colours_stay_in_their_family(record):
    async with studio(record) as (app, pilot):
        assert app.theme == "textual-dark"
        await press(pilot, "t")
        assert app.theme == "textual-light"
        await press(pilot, "t")
        assert app.theme == "textual-dark"
        app.theme = "nord"
        await press(pilot, "t")
        assert app.theme == "nord"


async def test_what_users_print_cannot_steer_the_terminal(record):
    async with studio(record) as (app, pilot):
        await press(pilot, "o")
        assert "\x1b" not in text_of(app)
        assert "␛[31m" in text_of(app)


class Client:
    """Stands in for the worker client; events are given by the test."""

    def __init__(self):
        self.asked = []

    def __getattr__(self, name):
        return lambda *args: self.asked.append((name, *args))


@asynccontextmanager
async def played(record):
    """(app, pilot, client): a studio with a worker that the test plays."""
    client = Client()

    def start(on_event):
        client.tell = on_event
        return client

    async with studio(record) as (app, pilot):
        app.link = Link(start, app.post_message)
        app.link._connect()
        yield app, pilot, client


async def reported(app, pilot, client, *events):
    for event in events:
        client.tell(event)
    await pilot.pause()


async def test_news_stream_in_without_moving_anything(record):
    async with played(record) as (app, pilot, client):
        await press(pilot, "enter", "2", "right_square_bracket", "right_square_bracket", "w", "j")
        diff, runs = view(app, "diff"), view(app, "runs")

        def where():
            views = [(v.cursor, v.scroll_offset) for v in (diff, runs)]
            return app.sel, views, app.focused

        before = where()
        fresh = msgspec.msgpack.decode(msgspec.msgpack.encode(record), type=rec.Record)
        await reported(
            app, pilot, client, ev.Progress("compile", 1, 4), ev.RecordUpdated(fresh, False)
        )
        assert where() == before
        again = msgspec.msgpack.decode(msgspec.msgpack.encode(record), type=rec.Record)
        for kernel in again.kernels:
            await reported(app, pilot, client, ev.KernelUpdated(kernel, True))
        assert where() == before
        await reported(app, pilot, client, ev.RecordUpdated(again, True))
        assert where() == before
        assert "ready" in text_of(app)


async def test_errors_are_on_top_while_the_last_result_stays(record):
    async with played(record) as (app, pilot, client):
        await press(pilot, "enter", "2")
        error = rec.ErrorRecord(
            kind="QuadrantsSyntaxError", message="no such thing", stage="passes", pass_name="die",
            kernel=record.kernels[0].id, backend="cpu", file=record.kernels[0].file, line=9,
            source="        for j in range(3):",
        )  # fmt: skip
        kernel = msgspec.structs.replace(record.kernels[0], errors=(error,), stale=True)
        await reported(app, pilot, client, ev.KernelUpdated(kernel, True))
        text = text_of(app)
        for words in ("passes die of scale on cpu failed", "for j in range(3):", "no such thing"):
            assert words in text
        assert "stale: last good result" in text and "simplify_I" in text
        view(app, "errors").focus()
        await press(pilot, "enter")
        assert app.sel.tab == "source" and app.sel.line == 9
        await reported(app, pilot, client, ev.KernelUpdated(record.kernels[0], True))
        assert "failed" not in text_of(app) and "stale" not in text_of(app)
        assert app.focused is view(app, "source")


async def test_the_log_follows_its_end_and_progress_can_be_cancelled(record):
    async with played(record) as (app, pilot, client):
        await press(pilot, "o")
        lines = [ev.Log(rec.LogLine(stream="stdout", text=f"line {i}")) for i in range(500)]
        await reported(app, pilot, client, *lines)
        assert "line 499" in text_of(app)
        shown = view(app, "list")
        await press(pilot, "g")
        await reported(app, pilot, client, ev.Log(rec.LogLine(stream="stderr", text="later")))
        assert shown.cursor == 0
        await reported(app, pilot, client, ev.Progress("launch scale", 2, 9))
        assert "launch scale 2/9" in text_of(app)
        await press(pilot, "C")
        assert ("cancel",) in client.asked


async def test_options_are_changed_by_key_and_by_typing(record):
    async with played(record) as (_, pilot, client):
        await press(pilot, "c", "enter")
        assert client.asked[-1][1]["fast_math"] is False
        await press(pilot, "j", "enter", "backspace", "1", "enter")
        assert client.asked[-1][1]["opt_level"] == 1
        await press(pilot, "j", "enter", "x", "enter")
        assert len(client.asked) == 2


async def test_a_key_asks_for_every_backend_and_back(record):
    async with played(record) as (app, pilot, client):
        app.backends = ("cpu", "interp")
        await press(pilot, "B")
        name, chosen = client.asked[-1]
        assert name == "set_backends" and {"cpu", "cuda", "opencl", "metal"} <= set(chosen)
        await press(pilot, "B")
        assert client.asked[-1] == ("set_backends", ("cpu", "interp"))


async def test_many_events_are_painted_once(record, monkeypatch):
    async with played(record) as (app, pilot, client):
        count = 0
        paint = app.screen.paint

        def counted():
            nonlocal count
            count += 1
            paint()

        monkeypatch.setattr(app.screen, "paint", counted)
        await reported(app, pilot, client, *(ev.Progress("step", i, 500) for i in range(500)))
        assert count <= 3


async def test_long_listings_are_compared_on_another_thread(record, monkeypatch):
    from qd_studio.app.tui.widgets import passes

    monkeypatch.setattr(passes, "AT_ONCE", 1)
    passes.run_lines.forget()
    async with studio(record) as (app, pilot):
        asked = []
        monkeypatch.setattr(app, "compute", asked.append)
        await press(pilot, "enter", "2")
        assert "Comparing" in text_of(app)
        asked[-1]()
        app.repaint()
        await pilot.pause()
        assert "Comparing" not in text_of(app) and len(view(app, "diff").lines) > 3


async def test_every_tab_says_what_is_pending_and_what_is_stale(record):
    async with played(record) as (app, pilot, client):
        await press(pilot, "enter")
        for old, sign in ((False, "◔ pending"), (True, "◌ stale")):
            waiting = msgspec.structs.replace(pending.waiting(record.kernels[0]), stale=old)
            for number, tab in enumerate(TABS, 1):
                if tab == "autodiff":  # this kernel has no gradient
                    continue
                await press(pilot, str(number))
                await reported(app, pilot, client, ev.KernelUpdated(record.kernels[0], True))
                assert sign not in text_of(app)
                await reported(app, pilot, client, ev.KernelUpdated(waiting, True))
                assert sign in text_of(app).splitlines()[0], app.sel.tab
                # No colour of a good verdict, in any list.
                for shown in app.screen.query("LineView"):
                    good = shown._table()["ok"].color
                    strips = [shown.render_line(y) for y in range(shown.size.height)]
                    assert not any(s.style and s.style.color == good for x in strips for s in x)
        await press(pilot, "escape")
        assert "◌" in text_of(app)


async def burst(app, pilot, *keys):
    """Keys that are there before the first of them is looked at."""
    for key in keys:
        character = {"slash": "/", "enter": "\r", "escape": "\x1b"}.get(key, key)
        app.post_message(textual.events.Key(key, character))
    await pilot.pause()
    await pilot.pause()


async def test_keys_typed_in_a_burst_go_where_the_ones_before_lead(record):
    async with studio(record) as (app, pilot):
        await press(pilot, "enter")
        # Search, on the tab of passes; q, s, o and C would all be commands.
        await burst(app, pilot, "2", "slash", *"qsoC")
        assert type(app.screen).__name__ == "KernelScreen" and app.sel.tab == "passes"
        assert app.screen.query_one("#search").value == "qsoC"
        assert view(app, "runs").needle == "qsoC"
        await burst(app, pilot, "escape", "slash", *"mul", "enter", "3")
        assert app.sel.tab == "cfg" and view(app, "runs").needle == "mul"
        await burst(app, pilot, "2", "escape", "slash", *"die", "escape", "j", "G", "g")
        assert view(app, "runs").has_focus and view(app, "runs").cursor == 0
        await burst(app, pilot, "escape", "escape", "slash", *"shift", "enter")
        assert type(app.screen).__name__ == "HomeScreen" and app.sel.kernel.endswith("shift")


async def test_a_search_finds_what_is_folded_and_unfolds_it(record):
    async with studio(record, (80, 24)) as (app, pilot):
        await press(pilot, "enter", "2")
        runs = view(app, "runs")
        compiled = record.kernels[0].backends[0].compile
        quiet = {r.name for r in compiled.runs} - {
            r.name for r in compiled.runs if r.state != "noop" or r.remarks
        }
        name = sorted(quiet)[0]
        await press(pilot, "slash", *name)
        # While it is typed only the cursor shows where; enter unfolds.
        assert app.sel.fold_noops and runs.current.key[0] == "noops"
        await press(pilot, "enter")
        assert not app.sel.fold_noops
        assert runs.current.key[3] == name

        app.sel = replace(app.sel, fold_noops=True, whole=False)
        runs.move(0)
        await press(pilot, "escape", "right_square_bracket", "enter")
        diff = view(app, "diff")
        for _ in range(40):
            folds = [x for x in diff.lines if x.folded]
            if folds:
                break
            await press(pilot, "right_square_bracket")
        assert folds
        shown = "\n".join(t for x in diff.lines for t, _ in x.spans)
        hidden = next(w for x in folds for w in x.folded.split() if w not in shown and w.isascii())
        keys = {"$": "dollar_sign", "[": "left_square_bracket", ":": "colon", "=": "equals_sign"}
        await press(pilot, "slash", *(keys.get(c, c) for c in hidden), "enter")
        assert app.sel.whole
        assert hidden in "".join(t for t, _ in diff.current.spans)
        assert not any(x.folded for x in diff.lines)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("tab", TABS)
async def test_one_pane_has_all_of_the_room_only_where_there_are_several(record, tab):
    async with studio(record, (200, 60)) as (app, pilot):
        await press(pilot, "enter", key_of(tab))
        lists = [v for v in app.screen.query("LineView") if v.display and v.region]
        focused = app.focused
        await press(pilot, "m")
        assert app.sel.tab == tab and app.focused is focused
        now = [v for v in app.screen.query("LineView") if v.display and v.region]
        if tab in ("passes", "caches"):
            assert now == [focused] and len(lists) > 1
        else:
            assert now == lists
        await press(pilot, "m")
        assert [v for v in app.screen.query("LineView") if v.display and v.region] == lists
        await press(pilot, "w", "less_than_sign", "d", "D")
        assert app.sel.tab == tab
