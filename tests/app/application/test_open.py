"""The record of an application on the screen, and as text."""

import json
import subprocess
import sys
import time
import zipfile
from contextlib import asynccontextmanager

import msgspec
import pytest
from qd_studio.app.cli import main
from qd_studio.app.core.views import applications as views
from qd_studio.app.tui import run
from qd_studio.app.tui.application import ApplicationApp
from qd_studio.engine.inspect.application.store import MEMBER, ApplicationFile

from tests.app.application.kit import program
from tests.app.application.records import application
from tests.app.tui.pilot import press, text_of

EXPENSIVE = {
    "lines": [{"kernel": "work", "file": "a.py", "line": 3, "text": "x += 1", "us": 900.0,
               "share": 0.9, "launches": 4, "limited_by": "latency"}],
    "total_us": 1000.0, "counted": 1, "left": 2, "unmapped_us": 10.0,
}  # fmt: skip


@pytest.mark.parametrize(("output", "shown"), [
    (json.dumps(EXPENSIVE), ["90%", "a.py:3", "latency", "x += 1", "1.0% has no source line"]),
    ("broken", ["the lines were not counted (exit code 0)"]),
])  # fmt: skip
async def test_the_most_expensive_lines_come_from_another_process(output, shown, monkeypatch):
    made = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda command, **more: made(
        [sys.executable, "-c", f"print({output!r})"], **more))  # fmt: skip
    async with opened(application()) as (app, pilot):
        await press(pilot, "x")
        for _ in range(200):
            if all(text in text_of(app) for text in shown):
                break
            await pilot.pause(0.05)
        assert all(text in text_of(app) for text in shown), text_of(app)
        await press(pilot, "escape")


@asynccontextmanager
async def opened(about, size=(120, 40)):
    run.prepare(None, False)
    app = ApplicationApp(about, "app.qds")
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        yield app, pilot


def order(app):
    """The numbers of the kernels, as they are listed."""
    lines = text_of(app).splitlines()
    names = [word for line in lines for word in line.split() if word.startswith("Solver.")]
    return [int(name.rpartition("_")[2]) for name in names]


@pytest.mark.parametrize("size", [(80, 24), (200, 60)])
async def test_the_most_expensive_kernels_need_no_key(size):
    about = application()
    rows = views.rows_of(about)
    expected = [row.key for row in sorted(rows, key=lambda row: -row.time_us)]
    async with opened(about, size) as (app, _):
        found = order(app)
        assert found[:10] == expected[:10]
        assert "500 kernels" in text_of(app)
        assert "main.py --size 4" in text_of(app)


async def test_sorts_by_each_column_both_ways():
    about = application(60)
    rows = {row.key: row for row in views.rows_of(about)}
    async with opened(about, (160, 80)) as (app, pilot):
        for column in views.COLUMNS:
            for turned in (False, True):
                values = [column.value(rows[key]) for key in order(app)]
                assert values == sorted(values, reverse=column.down != turned)
                await press(pilot, "R" if not turned else "right_square_bracket")
        await press(pilot, "left_square_bracket")
        assert "place" in text_of(app)


async def test_filters_as_one_types():
    async with opened(application()) as (app, pilot):
        await press(pilot, "slash", *"kernel_49")
        assert set(order(app)) == {49, *range(490, 500)}
        assert "11 of 500" in text_of(app)
        await press(pilot, "space", *"miss")
        assert set(order(app)) == {n for n in (49, *range(490, 500)) if n % 3 == 1}
        await press(pilot, "enter", "down")
        assert len(order(app)) == 5
        await press(pilot, "escape")
        assert len(order(app)) > 20
        await press(pilot, "slash", *"nowhere")
        assert "No kernel has that" in text_of(app)
        await press(pilot, "enter", "enter", "escape", "escape")
        assert len(order(app)) > 20


async def test_from_a_kernel_to_its_calls(tmp_path):
    main = tmp_path / "main.py"
    main.write_text("".join(f"call({n})\n" for n in range(1, 600)))
    async with opened(application(folder=str(tmp_path))) as (app, pilot):
        await press(pilot, "slash", *"kernel_42.", "backspace", "enter")
        await press(pilot, "home")
        name = next(word for word in text_of(app).split() if word.startswith("Solver."))
        number = int(name.rpartition("_")[2])
        await press(pilot, "enter")
        text = text_of(app)
        for part in ("Calls", f"main.py:{number + 1} caller_{number + 1}", "from main.py:9 run",
                     "not kept: too large", "passes", "Source", "ndarray<f32, 1>"):  # fmt: skip
            assert part in text, part
        await press(pilot, "down", "down", "down", "enter")
        text = text_of(app)
        assert f"main.py:{number + 1}" in text
        assert f"call({number + 1})" in text
        await press(pilot, "escape", "escape")
        assert order(app)


async def test_a_file_that_is_gone_or_has_changed(tmp_path):
    (tmp_path / "main.py").write_text("other\n" * 9)
    async with opened(application(3, str(tmp_path))) as (app, pilot):
        await press(pilot, "enter", "down", "down", "down", "enter")
        assert "the file has changed; line" in text_of(app)
        await press(pilot, "escape", "down", "enter")
        assert "cannot be read any more" in text_of(app)


async def test_an_application_without_kernels():
    async with opened(application(0), (120, 180)) as (app, pilot):
        assert "The program has compiled no kernels." in text_of(app)
        await press(pilot, "enter", "right_square_bracket", "R", "question_mark")
        assert "On the kernels of an application" in text_of(app)


def saved(folder, about):
    path = folder / "app.qds"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(MEMBER, msgspec.msgpack.encode(about))
    return path


@pytest.mark.parametrize("words", [["open"], ["--no-color", "--theme", "dark"]])
def test_as_text(tmp_path, words):
    """The word ``open`` may be missing."""
    done = program(*words, saved(tmp_path, application(20)))
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "main.py --size 4"
    assert lines[3].split()[0] == "time▾"
    assert [line.split()[-1] for line in lines[4:24]]
    assert "call(" in done.stdout


@pytest.mark.parametrize("more", [["other.py"], ["--report"], ["--", "4"]])
def test_a_record_is_no_program(tmp_path, capsys, more):
    path = saved(tmp_path, application(1))
    assert main([str(path), *more]) == 2
    assert f"{path}: a saved record, not a program; open it with: qd-studio open" in (
        capsys.readouterr().err
    )


def test_five_hundred_kernels_are_read_and_laid_out_at_once(tmp_path):
    """The whole of it takes a fiftieth of that on a machine that is not busy."""
    path = saved(tmp_path, application())
    began = time.process_time()
    about = ApplicationFile(path).about
    rows = views.shown(views.rows_of(about))
    views.kernel_table(rows)
    assert time.process_time() - began < 1.0


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"\xc1", "is not a record of an application"),
        (msgspec.msgpack.encode({"version": 2}), "A newer qd-studio can open it"),
        (msgspec.msgpack.encode({"version": 1}), "is not a record of an application"),
    ],
)
def test_files_that_cannot_be_read(tmp_path, content, text):
    path = tmp_path / "app.qds"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(MEMBER, content)
    done = program("open", path)
    assert done.returncode == 2
    assert text in done.stderr
    assert "Traceback" not in done.stderr
