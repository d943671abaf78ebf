"""The caches tab under the pilot."""

import msgspec
import pytest
from qd_studio.engine.inspect import record as rec

from tests.app.records import LAYERS
from tests.app.tui import pilot as p
from tests.app.tui.pilot import SIZES, press, studio, text_of, view


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    found = p.record(str(tmp_path_factory.mktemp("kernels")))
    kernel = found.kernels[0]
    source = msgspec.structs.replace(LAYERS[2].differences[1], file=kernel.file)
    offline = msgspec.structs.replace(
        LAYERS[2], differences=(LAYERS[2].differences[0], source), parts=parts()
    )
    layers = (LAYERS[0], LAYERS[1], offline, LAYERS[3])
    cpu = msgspec.structs.replace(kernel.backends[0], caches=layers)
    kernel = msgspec.structs.replace(kernel, backends=(cpu, *kernel.backends[1:]))
    return msgspec.structs.replace(found, kernels=(kernel, *found.kernels[1:]))


def parts():
    return {"config.fast_math": "False", **{f"part{n}": str(n) for n in range(60)}}


@pytest.mark.parametrize("size", SIZES)
async def test_the_layer_with_most_to_state_is_open(record, size):
    async with studio(record, size) as (app, pilot):
        await press(pilot, "enter", "6")
        text = text_of(app)
        assert view(app, "layers").current.key == "cpu offline"
        assert view(app, "layers").has_focus
        for wanted in ("fastcache", "≠ config.fast_math: True -> False", "- 12", "+ 12"):
            assert wanted in text
        assert text.splitlines()[0].split()[0] == "scale"


async def test_moving_in_the_list_shows_another_layer_and_is_remembered(record):
    async with studio(record) as (app, pilot):
        await press(pilot, "enter", "6", "k")
        assert app.sel.layer == "cpu fastcache"
        assert "could be marked fastcache=True: it is pure" in text_of(app)
        await press(pilot, "1", "6")
        assert view(app, "layers").current.key == "cpu fastcache"
        assert "could be marked" in text_of(app)
        await press(pilot, "j", "J", "K")
        assert view(app, "layers").current.key == "cpu offline"


async def test_the_details_are_a_pane_of_their_own(record):
    async with studio(record, (80, 24)) as (app, pilot):
        await press(pilot, "enter", "6", "w")
        assert view(app, "layer").has_focus
        assert "part59" not in text_of(app)
        await press(pilot, "G")
        assert "part59" in text_of(app)
        await press(pilot, "w")
        assert view(app, "layers").has_focus
        await press(pilot, "enter")
        assert view(app, "layer").has_focus
        await press(pilot, "escape")
        assert view(app, "layers").has_focus


async def test_a_changed_line_leads_to_the_source(record):
    async with studio(record) as (app, pilot):
        await press(pilot, "enter", "6", "w")
        lines = view(app, "layer")
        lines.move(next(i for i, line in enumerate(lines.lines) if line.row == "add"))
        await pilot.pause()
        await press(pilot, "enter")
        assert app.sel.tab == "source" and app.sel.line == 12


async def test_colours_and_signs_both_state_what_changed(record):
    async with studio(record) as (app, pilot):
        await press(pilot, "enter", "6")
        lines = view(app, "layer")
        rows = {x.row: i for i, x in enumerate(lines.lines) if x.row}
        grounds = set()
        for kind, sign in (("del", "-"), ("add", "+")):
            strip = lines.render_line(rows[kind])
            assert strip.text.strip().startswith(sign)
            grounds.add(next(s.style.bgcolor for s in strip if s.style and s.style.bgcolor))
        assert len(grounds) == 2


async def test_a_kernel_without_layers_says_so(record):
    bare = tuple(
        msgspec.structs.replace(
            k, backends=tuple(msgspec.structs.replace(b, caches=()) for b in k.backends)
        )
        for k in record.kernels
    )
    async with studio(rec.Record(kernels=bare)) as (app, pilot):
        await press(pilot, "enter", "6", "w", "enter")
        assert "No cache was asked." in text_of(app)
