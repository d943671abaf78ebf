"""The Debug tab: a kernel is run in child processes, and keys go forward and back."""

import re
from types import SimpleNamespace

import msgspec
import pytest
from qd_studio.app.tui.commands import by_scope
from qd_studio.app.tui.screens.kernel import KernelScreen
from qd_studio.app.tui.widgets.debugger import DebugPane
from qd_studio.engine.inspect import record as rec

from tests.app.debugged import PROGRAM
from tests.app.tui.pilot import SIZES, press, studio, text_of, view


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


def record_of(path):
    """A record with the kernels of a file, without anything compiled."""
    kernels = tuple(
        rec.KernelRecord(id=f"program.py:{name}", name=name, file=str(path), line=30, end_line=36)
        for name in ("turned", "fails", "leaves")
    )
    file = rec.FileRecord(path=str(path), sha256="", text=path.read_text())
    return rec.Record(kernels=kernels, files=(file,))


def watched(app):
    """The app has a worker, which this tab does not need."""
    app.link = SimpleNamespace(client=None, take=list, close=lambda: None)


async def settled(app, pilot):
    """Wait until the debugger has nothing to do; returns what the screen shows."""
    pane = app.screen.query_one(DebugPane)
    for _ in range(1500):
        await pilot.pause(0.01)
        session = pane.session
        if session is not None and not session.view.busy and session.is_idle:
            await pilot.pause()
            return text_of(app)
    raise AssertionError(text_of(app))


async def keys(app, pilot, *names):
    """Press keys, each when the debugger is done; returns what the screen shows then."""
    for name in names:
        await press(pilot, name)
        await settled(app, pilot)
    return text_of(app)


async def typed(app, pilot, key, text):
    """Answer what a key asks for."""
    await press(pilot, key)
    app.screen.query_one("#debug-text").value = ""
    await press(pilot, *text, "enter")
    return await settled(app, pilot)


def moment_of(app):
    found = re.search(r"moment (\d+)", text_of(app))
    assert found is not None, text_of(app)
    return int(found[1])


def current(app):
    """The number of the marked line."""
    found = re.search(r"▶ +(\d+) ", text_of(app))
    assert found is not None, text_of(app)
    return int(found[1])


async def test_forward_back_breakpoints_and_writes(program):
    async with studio(record_of(program)) as (app, pilot):
        watched(app)
        await press(pilot, "enter", "alt+2")
        assert "enter runs the first iteration" in text_of(app)
        assert "iteration 0" in await keys(app, pilot, "enter")
        assert "iteration 3" in await typed(app, pilot, "I", "3")
        assert current(app) == 33
        text = await keys(app, pilot, "right_square_bracket", "greater_than_sign")
        assert current(app) == 12 and "a  3.0" in text and "half program.py:12" in text
        assert "b  1.5" in await keys(app, pilot, "right_square_bracket")
        await keys(app, pilot, "left_square_bracket")
        assert current(app) == 12
        text = await keys(app, pilot, "less_than_sign")
        assert current(app) == 34 and re.search(r"v +\[1\.0, 2\.0\]", text)
        # One op forward and back.
        before = moment_of(app)
        await keys(app, pilot, "plus")
        assert moment_of(app) == before + 1
        await keys(app, pilot, "minus")
        assert moment_of(app) == before
        # A breakpoint at the cursor; the one before it has a condition that is not true.
        view(app, "debugged").put(35)
        text = await keys(app, pilot, "b")
        assert re.search(r"● +36 ", text)
        view(app, "debugged").put(34)
        assert "if i == 4" in await typed(app, pilot, "U", "i == 4")
        text = await keys(app, pilot, "right_curly_bracket")
        assert current(app) == 36 and "breakpoint" in text
        assert "x[3] + 1  3.5" in await typed(app, pilot, "p", "x[3] + 1")
        now = moment_of(app)
        text = await typed(app, pilot, "W", "x[3]")
        assert "program.py:35 wrote x[3]: 3.0 -> 2.5" in text
        await keys(app, pilot, "L")
        assert current(app) == 35 and moment_of(app) < now
        await keys(app, pilot, "L")
        assert current(app) == 36 and moment_of(app) == now
        await keys(app, pilot, "b")
        text = await keys(app, pilot, "right_curly_bracket", "right_square_bracket")
        assert "The kernel has ended" in text and "of" in text
        text = await typed(app, pilot, "H", "x[3]")
        assert "program.py:36 changed x[3]: 2.5 -> 4.5" in text
        text = await keys(app, pilot, "left_curly_bracket")
        assert current(app) == 33 and moment_of(app) == 0


async def test_callers_changes_and_workloads(program):
    record = record_of(program)
    cases = tuple(rec.WorkloadRecord(label=label, origin="workload") for label in ("n=8", "n=16"))
    kernels = (msgspec.structs.replace(record.kernels[0], workloads=cases), *record.kernels[1:])
    async with studio(msgspec.structs.replace(record, kernels=kernels)) as (app, pilot):
        watched(app)
        await press(pilot, "enter", "alt+2")
        text = await keys(app, pilot, "enter", "right_square_bracket", "greater_than_sign")
        assert current(app) == 12 and re.search(r"▶ half program\.py:12", text)
        # The caller: its line, its locals, and cells as it names them.
        await press(pilot, "w")
        rows = view(app, "values")
        rows.put(next(n for n, row in enumerate(rows.lines) if row.key == ("Functions", "1")))
        text = await keys(app, pilot, "enter")
        assert current(app) == 34 and re.search(r"v +\[1\.0, 2\.0\]", text) and "a  0.0" not in text
        assert "in turned, which calls half" in text
        assert "v.y + 1 = 3.0" in await typed(app, pilot, "p", "v.y + 1")
        assert "Continues until x[0] changes." in await typed(app, pilot, "X", "x[i]")
        text = await keys(app, pilot, "right_curly_bracket")
        assert "x[0]: 0.0 -> 1.0" in text and current(app) == 36 and "which calls" not in text
        assert "x[0]: 1.0 -> 3.0" in await keys(app, pilot, "right_curly_bracket")
        text = await keys(app, pilot, "left_curly_bracket")
        assert "line 36: 1.0 -> 3.0" in text and "x[0] changes" in text
        # Again: no longer. A new start keeps the others.
        assert "x[1] changes" in await typed(app, pilot, "X", "x[1]")
        assert "x[0] changes" not in await typed(app, pilot, "X", "x[0]")
        assert "'i' is a loop index" in await typed(app, pilot, "X", "i")
        text = await typed(app, pilot, "Q", "n=16")
        assert "program.py  n=16  iteration 0" in text and "x[1] changes" in text
        assert "15" in await typed(app, pilot, "p", "len(x) - 1")
        assert "iteration 15" not in await typed(app, pilot, "I", "5")
        assert "n=16  iteration 5" in text_of(app)
        assert "there is no 'n=9'; there are: n=8, n=16" in await typed(app, pilot, "Q", "n=9")


async def test_errors_an_older_save_and_a_new_start(program):
    async with studio(record_of(program), SIZES[0]) as (app, pilot):
        watched(app)
        await press(pilot, "enter", "alt+2", "J")
        assert "debug" in text_of(app).splitlines()[1]  # also where not all tabs fit
        text = await keys(app, pilot, "enter", "right_curly_bracket")
        assert "too large" in text
        assert "no variable 'y'" in await typed(app, pilot, "p", "y")
        view(app, "debugged").put(25)
        assert "Line 26: 'i ==' is no expression" in await typed(app, pilot, "U", "i ==")
        program.write_text(PROGRAM.replace("too large", "larger than that"))
        app.repaint()
        await pilot.pause()
        assert "belongs to the earlier save" in text_of(app)
        text = await keys(app, pilot, "a", "right_curly_bracket")
        assert "larger than that" in text and "earlier save" not in text
        assert "no parallel loop has the iteration 99" in await typed(app, pilot, "I", "99")
        program.write_text("raise ValueError('this file fails')\n")
        assert "this file fails" in await keys(app, pilot, "a")


async def test_an_index_outside_of_its_array_is_named(program):
    async with studio(record_of(program), SIZES[2]) as (app, pilot):
        watched(app)
        await press(pilot, "enter", "alt+2", "K")
        text = await keys(app, pilot, "enter", "right_curly_bracket")
        assert "x[10] is outside of x, which has the shape (8,)" in text
        assert "x[i + 10] = 1.0" in next(n for n in text.splitlines() if "▶" in n)


async def test_work_is_cancelled_and_a_saved_session_runs_nothing(program):
    text = PROGRAM.replace("    return b", "    while b >= 0:\n        b = b + 0.0\n    return b")
    program.write_text(text)
    async with studio(record_of(program)) as (app, pilot):
        await press(pilot, "enter", "alt+2")
        assert "This is a saved session" in text_of(app)
        await press(pilot, "enter")
        assert app.screen.query_one(DebugPane).session is None
        watched(app)
        await keys(app, pilot, "enter")
        await press(pilot, "right_curly_bracket")
        while "running ..." not in text_of(app):
            await pilot.pause(0.01)
        await press(pilot, "C")
        await settled(app, pilot)
        assert moment_of(app) > 0 and current(app) in (13, 14)


def test_every_command_of_the_tab_is_carried_out():
    scope = by_scope("debug")
    assert len(scope) > 10
    for command in scope:
        name = re.match(r"screen\.debug\('(\w+)'", command.action)
        assert name is not None and hasattr(DebugPane, f"do_{name[1]}"), command
    assert hasattr(KernelScreen, "action_debug")
