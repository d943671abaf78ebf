"""GPUs on the screen: the matrix, machine code with what it takes, the order of tasks, times."""

import pytest

from tests.app.devices import LAUNCHED, NAME, NO_DEVICE, many
from tests.app.tui.pilot import SIZES, press, studio, text_of, view


@pytest.mark.parametrize("size", SIZES)
async def test_what_is_only_compiled_is_shown_at_every_size(size):
    async with studio(NO_DEVICE, size) as (app, pilot):
        home = text_of(app)
        assert f"─ {NAME}" in home and "24 B" in home
        assert "compiled, not launched: no driver found" in home
        await press(pilot, "enter", "b", "5")
        code = text_of(app)
        assert "text 1 of 1  PTX" in code and "mov.u32" in code
        assert "sm_90 (Hopper), PTX 8.0, 2 KiB" in code
        if size[1] > 24:
            assert "registers" in code and "75%, 12 blocks, limited by registers" in code
        await press(pilot, "4")
        launch = view(app, "launch")
        text = "\n".join("".join(t for t, _ in line.spans) for line in launch.lines)
        assert f"{NAME} not launched: no driver found" in text and "do while left" in text
        drawn = [line for line in launch.lines if line.key and line.key[0] == "flow"]
        assert max(sum(len(t) for t, _ in line.spans) for line in drawn) <= size[0]


async def test_lines_of_machine_code_and_tasks_lead_to_the_source():
    async with studio(NO_DEVICE, (120, 40)) as (app, pilot):
        await press(pilot, "enter", "b", "5", "G")
        assert app.sel.line == 7
        await press(pilot, "enter")
        assert (app.sel.tab, app.sel.line) == ("source", 7)
        await press(pilot, "4")
        shown = view(app, "launch")
        at = next(i for i, line in enumerate(shown.lines) if line.line == 6)
        shown.move(at)
        await press(pilot, "enter")
        assert (app.sel.tab, app.sel.line) == ("source", 6)


async def test_without_unicode_the_drawing_is_made_of_plain_characters():
    async with studio(NO_DEVICE, (120, 40), ascii_only=True) as (app, pilot):
        await press(pilot, "enter", "4")
        lines = view(app, "launch").lines
        drawn = ["".join(t for t, _ in x.spans) for x in lines if x.key and x.key[0] == "flow"]
        assert len(drawn) > 20 and all(text.isascii() for text in drawn)


async def test_times_of_a_device_and_its_name():
    async with studio(LAUNCHED, (200, 60)) as (app, pilot):
        assert "5.00 us ± 0.10" in text_of(app)
        await press(pilot, "enter", "b", "4")
        text = text_of(app)
        assert f"scale  {NAME} on NVIDIA H200" in text.splitlines()[0]
        assert "host" in text and "3.50 us" in text and "8 MiB" in text and "132 SMs" in text
        await press(pilot, "t")
        assert "3.50 us" in text_of(app)


async def test_b_goes_on_to_the_backends_that_have_no_room():
    record = many()
    async with studio(record, (80, 24)) as (app, pilot):
        first = text_of(app)
        assert "2 of 7 backends; b shows amdgpu" in first and "b backends" in first
        assert "─ opencl" in first and "─ amdgpu" not in first
        await press(pilot, "b")
        second = text_of(app)
        assert "─ cpu" in second and "─ amdgpu" in second and "─ opencl" not in second
        assert "spills" in second and "24 B" in second
        for _ in range(10):
            await press(pilot, "b")
            if "─ opencl" in text_of(app):
                break
        assert text_of(app) == first
    async with studio(record, (200, 60)) as (app, pilot):
        text = text_of(app)
        assert "backends;" not in text and "b backends" not in text and "─ interp" in text


async def test_the_key_of_that_is_reported_as_it_was_chosen():
    async with studio(many(), (80, 24), keymap={"more-backends": "v"}) as (app, pilot):
        assert "2 of 7 backends; v shows amdgpu" in text_of(app)
        await press(pilot, "v")
        assert "─ amdgpu" in text_of(app)
