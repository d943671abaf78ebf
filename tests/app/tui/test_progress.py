"""The progress of the worker and of screens in the title; keys meanwhile."""

from qd_studio.app.core.progress import State
from qd_studio.app.worker import events as ev

from tests.app.records import make_record
from tests.app.tui.pilot import press, text_of
from tests.app.tui.test_screens import played, reported


async def test_the_time_left_is_in_the_title_and_escape_cancels_at_the_top():
    state = State("compiling big for cpu", "kernel 2 of 5", "pass 34 of 80", 11.0)
    async with played(make_record()) as (app, pilot, client):
        moment = app._now()
        app._now = lambda: moment
        await reported(app, pilot, client, ev.Progress("compiling big for cpu", 1, 9, state))
        whole = "compiling big for cpu, pass 34 of 80, kernel 2 of 5, about 15 s left"
        assert whole in text_of(app) and "cancels" not in text_of(app)
        await press(pilot, "escape")  # too early: the work has only begun
        assert ("cancel",) not in client.asked
        moment += 1.0
        await press(pilot, "enter", "escape")  # out of the kernel
        assert ("cancel",) not in client.asked and "esc cancels" in text_of(app)
        await press(pilot, "escape")
        assert client.asked == [("cancel",)]
        await pilot.resize_terminal(80, 24)
        await pilot.pause(0.15)
        await reported(app, pilot, client, ev.Progress("compiling big for cpu", 1, 9, state))
        assert "kernel 2 of 5, about 15 s left" in text_of(app) and "pass" not in text_of(app)


async def test_keys_typed_while_progress_streams_in_are_kept():
    async with played(make_record()) as (app, pilot, client):
        painted, paint = [], app.screen.paint
        app.screen.paint = lambda: painted.append(1) or paint()
        events = [ev.Progress("step", i, 300) for i in range(300)]
        for i, key in enumerate(("slash", *"shift")):
            for event in events[50 * i : 50 * i + 50]:
                client.tell(event)
            await pilot.press(key)
        await pilot.pause()
        assert app.screen.query_one("#search").value == "shift"
        assert "step 299/300" in text_of(app) and not painted


async def test_a_screen_with_work_of_its_own_shows_that():
    async with played(make_record()) as (app, pilot, client):
        await reported(app, pilot, client, ev.Progress("compiling scale for cpu", 1, 9))
        app.screen.activity = ("look 3 of 8, about 1 min left",)
        app._show_progress()
        await pilot.pause()
        assert "look 3 of 8, about 1 min left  esc cancels" in text_of(app)
        app.screen.activity = ()
        app._show_progress()
        await pilot.pause()
        assert "compiling scale for cpu 1/9" in text_of(app)
