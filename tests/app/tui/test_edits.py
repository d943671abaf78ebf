"""The line below a row that states what a save did, and the screen behind it."""

import msgspec
import pytest
from qd_studio.app.core.edits import Edits, looked

from tests.app.records import make_record
from tests.app.tui.pilot import SIZES, press, studio, text_of, until
from tests.inspect.test_compare import timed


def saved(app, *records):
    """As if these were the records of finished looks."""
    app.edits = Edits()
    for record in records:
        app.edits = looked(app.edits, record)
    app.record = records[-1]
    app.settle()
    app.repaint()


@pytest.mark.parametrize("size", SIZES)
async def test_a_save_is_explained_on_the_row_and_by_one_key(size):
    before, after = timed(100), timed(80, text="other")
    async with studio(before, size) as (app, pilot):
        await press(pilot, "d")
        assert "what the last save did" not in text_of(app)  # there was none
        saved(app, before, after)
        await until(pilot, app, "us (better)")
        row, line = (
            y for y, t in enumerate(text_of(app).splitlines()) if "scale  " in t or "bett" in t
        )
        assert line == row + 1
        await press(pilot, "d")
        await until(pilot, app, "code differs: llvm_ir")
        assert "what the last save did" in text_of(app)
        await press(pilot, "escape", "down", "enter")  # the line itself opens it, too
        await until(pilot, app, "code differs: llvm_ir")


async def test_no_change_is_stated_and_a_failed_save_is_not_explained():
    record = make_record()
    (kernel,) = record.kernels
    async with studio(record) as (app, pilot):
        saved(app, record, msgspec.structs.replace(record))
        await until(pilot, app, "no change")
        stale = msgspec.structs.replace(kernel, stale=True)
        saved(app, record, msgspec.structs.replace(record, kernels=(stale,)))
        await press(pilot, "d")
        await until(pilot, app, "The last save has no result for this kernel")
        await press(pilot, "escape")
        assert "no change" not in text_of(app)
