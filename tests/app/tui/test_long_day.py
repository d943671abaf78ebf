"""The studio's memory over a day of saves: it grows until its memories are full, and no further."""

import gc
import sys

import msgspec
import pytest
from qd_studio.app.tui.link import EventsReady
from qd_studio.app.worker import events as ev
from qd_studio.engine.inspect.record import Record

from tests.app.tui import pilot as p
from tests.app.tui.pilot import press, studio, view


class Link:
    """Hands events to the app; there is no worker."""

    client = None

    def __init__(self):
        self.events = []

    def take(self):
        out, self.events = self.events, []
        return out

    def close(self):
        pass


def saved(body: bytes, number: int) -> Record:
    """The record as a worker sends it after another save: new objects, a constant that differs."""
    text = body.replace(b"const 3.25", f"const {1000 + number % 9000}".encode())
    return msgspec.msgpack.decode(text, type=Record)


@pytest.mark.slow
async def test_memory_does_not_grow_with_saves(tmp_path):
    saves = 300
    record = p.record.__wrapped__(str(tmp_path))
    body = msgspec.msgpack.encode(record)
    assert b"const 3.25" in body
    async with studio(record, (120, 40), keep_saves=20) as (app, pilot):
        app.link = Link()
        await press(pilot, "enter", "2")
        blocks = []
        for number in range(saves):
            if number % 5 == 0:
                await press(pilot, ("2", "3", "1", "right_square_bracket")[number // 5 % 4])
            app.link.events.append(ev.RecordUpdated(saved(body, number), complete=True))
            app.on_events_ready(EventsReady())
            await pilot.pause()
            if number % 10 == 9:
                gc.collect()
                blocks.append(sys.getallocatedblocks())
        assert any(f"const {1000 + saves - 1}" in text for k in app.record.kernels
                   for b in k.backends if b.compile for s in b.compile.snapshots
                   for text in s.lines)  # fmt: skip
        assert view(app, "diff") is not None
        # Half of the saves fill what is remembered; a save has several thousand objects.
        middle = blocks[len(blocks) // 2 - 1]
        assert blocks[-1] < 1.1 * middle, blocks
        kept = app.saves.all()
        assert len(kept) == 20 and kept[-1].number == saves + 1
        app.link = None
