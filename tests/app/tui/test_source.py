"""The Source tab on kernels over fields: parameters below the signature, in view at once."""

import pytest
from msgspec.structs import replace
from qd_studio.engine.inspect import record as rec

from tests.app.core.test_params import PARAMS
from tests.app.records import SOURCE, make_record
from tests.app.tui.pilot import SIZES, press, studio, text_of, view

ABOVE = 57


def far_down() -> rec.Record:
    """A kernel whose first line is below the first screenful, in a long file."""
    record = make_record()
    (kernel,) = record.kernels
    cpu, *others = kernel.backends
    cpu = replace(cpu, compile=replace(cpu.compile, params=PARAMS))
    kernel = replace(
        kernel, backends=(cpu, *others), line=ABOVE + 4, end_line=ABOVE + 7, instance="tank"
    )
    text = "#\n" * ABOVE + SOURCE + "#\n" * 80
    return replace(record, kernels=(kernel,), files=(replace(record.files[0], text=text),))


@pytest.mark.parametrize("size", SIZES)
async def test_what_a_kernel_takes_is_in_view_when_it_is_opened(size):
    async with studio(far_down(), size) as (app, pilot):
        assert "object: tank" in text_of(app)
        await press(pilot, "enter", "1")
        text = text_of(app)
        assert "without a line: " in text
        for word in ("@qd.kernel", "def scale", "comes from", "momentum", "x[i] = x[i]"):
            assert word in text, word
        source = view(app, "source")
        assert source.current.line == ABOVE + 4


async def test_a_parameter_is_copied_and_leads_to_its_kernel():
    async with studio(far_down(), (120, 40)) as (app, pilot):
        await press(pilot, "enter", "1", "down", "down", "down")
        current = view(app, "source").current
        assert current.copy.startswith("x\tf32[:]\targument")
        assert current.line == ABOVE + 4
