"""A backend whose code is wrong, from the capture to every place where a person would see it."""

import contextlib
import json
import re
import sys
from pathlib import Path

import msgspec
import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.app.cli import main
from qd_studio.app.core import format as fmt
from qd_studio.app.core.lines import plain
from qd_studio.app.core.views import comparison, matrix
from qd_studio.app.report import render
from qd_studio.app.show import show
from qd_studio.engine import inspect
from qd_studio.engine.config import CompileConfig
from qd_studio.engine.inspect import record as rec

from tests.app import wrong
from tests.app.pages import unpacked
from tests.app.tui.pilot import press, studio, text_of

REPO = str(Path(__file__).resolve().parents[2])
FILE = f"""\
import sys
sys.path.insert(0, {REPO!r})
import numpy as np
from qd_studio import engine as qd
from tests.app import wrong
wrong.install()


@qd.kernel
def offset(x: qd.types.NDArray[qd.f32, 1], y: qd.types.NDArray[qd.f32, 1]):
    for i in range(x.shape[0]):
        if x[i] > 2.0:
            y[i] = x[i] + 0.5


@offset.workload(n=[4, 8])
def numbers(n):
    return np.arange(n, dtype=np.float32), np.zeros(n, np.float32)
"""


@qd.kernel
def offset(x: qd.types.NDArray[qd.f32, 1], y: qd.types.NDArray[qd.f32, 1]):
    for i in range(x.shape[0]):
        if x[i] > 2.0:
            y[i] = x[i] + 0.5


@offset.workload(n=[4, 8])
def numbers(n):
    return np.arange(n, dtype=np.float32), np.zeros(n, np.float32)


FIRST = "y[3]: got 2.5, interpreter 3.5"
CELL = "≠ differs max 1.0e+00 at y[3]"
HELD = re.compile(r"x of cpu by (wall clock|CPU time), band 0\.")
"""CPU time decides where other programs kept the wall clock from it."""


@pytest.fixture(scope="module", autouse=True)
def installed():
    wrong.install()
    yield
    wrong.remove()


@pytest.fixture(scope="module")
def record():
    names = ("cpu", "interp", "wrong")
    kernel = inspect.capture_kernel(offset, names, CompileConfig(), budget_s=0.005)
    return rec.Record(kernels=(kernel,))


def test_the_record_says_how_far_off_it_is_and_where_first(record):
    cpu, interp, wrong_ = record.kernels[0].backends
    assert (cpu.agreement.state, interp.agreement.state) == ("ok", "unknown")
    found = wrong_.agreement
    assert (found.state, found.workload, found.first_difference) == ("differs", "n=4", FIRST)
    assert (found.max_abs, found.differing, found.elements) == (1.0, 1, 4)
    # 2.5 and 3.5 are 2 ** 22 steps apart.
    assert found.max_rel == pytest.approx(1 / 3.5) and found.max_ulp == 1 << 22
    assert wrong_.status == "ok" and len(wrong_.launches) == 2


def test_every_backend_is_held_against_the_first(record):
    kernel = record.kernels[0]
    assert [(v.workload, v.backend, v.against) for v in kernel.verdicts] == [
        ("n=4", "wrong", "cpu"), ("n=8", "wrong", "cpu"),
    ]  # fmt: skip
    for v in kernel.verdicts:
        # "unknown" is what a busy machine gives: launch times then vary too much to compare.
        assert v.ratio > 0 and v.band > 0
        assert v.verdict in ("faster", "slower", "within noise") or v.reason
    assert comparison.verdict_of(kernel, "cpu") is None
    assert comparison.verdict_of(kernel, "wrong").workload == "n=8"
    texts = comparison.verdict_texts(kernel)
    assert texts[0].startswith("wrong ") and HELD.search(texts[0])
    cpu = kernel.backends[0].compile
    assert cpu.code_bytes > 100 and 0 < cpu.warm_ms < cpu.cold_ms


def timed(backend, host_us=None, keep=2, wall_us=None):
    """The backend with launches that a device timed: each 4.5 us, and ``wall_us`` to wait."""
    launches = backend.launches[:keep]
    if host_us is not None:
        launches = [
            msgspec.structs.replace(x, median_us=4.5, mad_us=0.1, n=9, host_us=host_us,
                                    wall_us=wall_us, wall_mad_us=1.0,
                                    wall_samples_us=() if wall_us is None else (wall_us,) * 9)
            for x in launches
        ]  # fmt: skip
    return msgspec.structs.replace(backend, launches=tuple(launches))


def ends(kernel, clock, first, last):
    """The basis of the verdicts, with these clocks on the first and the last backend."""
    cpu, interp, other = kernel.backends
    verdicts = tuple(msgspec.structs.replace(v, clock=clock) for v in kernel.verdicts)
    backends = (timed(cpu, *first), interp, timed(other, *last))
    new = msgspec.structs.replace(kernel, backends=backends, verdicts=verdicts)
    return [text.partition("  ")[2] for text in comparison.verdict_texts(new)]


def test_a_verdict_states_the_other_clocks_times(record):
    (kernel,) = record.kernels
    host, device = (), (8.0, 2, 30.0)
    assert ends(kernel, "wall clock", host, host) == ["(n=4)", "(n=8)"]
    assert ends(kernel, "wall clock", host, device)[0] == "(n=4; wrong: device time 4.50 us)"
    assert ends(kernel, "device time", device, device)[1] == (
        "(n=8; wrong: to wait 30.0 us; cpu: to wait 30.0 us)"
    )


def test_a_verdict_of_an_earlier_version_says_what_it_left_out(record):
    (kernel,) = record.kernels
    assert ends(kernel, "", (), ()) == ends(kernel, "", (8.0,), (9.0,)) == ["(n=4)", "(n=8)"]
    assert ends(kernel, "", (), (30.0,))[0] == "(n=4; wrong: device time, host 30.0 us)"
    assert ends(kernel, "", (30.0,), ())[1] == "(n=8; cpu: device time, host 30.0 us)"


def test_what_a_caller_waits_for_comes_first_and_the_devices_time_next_to_it(record):
    (kernel,) = record.kernels
    cpu, interp, other = kernel.backends
    backends = (cpu, interp, timed(other, 8.0, 2, 30.0))
    record = rec.Record(kernels=(msgspec.structs.replace(kernel, backends=backends),))
    head, (row,) = (
        comparison.comparison_table(record.kernels[0])[0],
        comparison.comparison_table(record.kernels[0])[1][2:],
    )
    reported = dict(zip(head, row, strict=True))
    assert (reported["launch"], reported["device"]) == ("30.0 us ± 1.00", "4.50 us ± 0.10")
    launch = backends[2].launches[-1]
    launch = msgspec.structs.replace(launch, gbps=3.0, gflops=0.5)
    assert fmt.throughput(launch) == "3.00 GB/s 500 MFLOP/s device"
    assert fmt.throughput_waited(launch) == "450 MB/s 75.0 MFLOP/s"  # 4.5 us of 30
    assert fmt.throughput_waited(cpu.launches[0]) == fmt.throughput(cpu.launches[0]) != ""
    for suffix in (".md", ".html"):
        text = render(record, suffix)
        assert "30.0 us ± 1.00" in text and "4.50 us ± 0.10" in text
    assert "wrong n=8, device time" in unpacked(record)
    text = show(record, "launch")
    assert "\nwall clock" in text and "\ndevice time" in text
    head, rows, *_ = matrix.matrix(record, 250)
    assert "device" in plain(head) and "4.50 us ± 0.10" in plain(rows)
    assert re.search("against cpu, (wall|CPU)", plain(head))


def test_a_time_of_another_workload_than_the_largest_names_it(record):
    (kernel,) = record.kernels
    cpu, interp, other = kernel.backends
    short = msgspec.structs.replace(kernel, backends=(cpu, timed(interp, None, keep=1), other))
    assert [row[1].startswith("n=4: ") for row in comparison.comparison_rows(short)] == [
        False,
        True,
        False,
    ]
    short = rec.Record(kernels=(short,))
    for suffix, start in ((".md", "| n=4: "), (".html", ">n=4: ")):
        assert start in render(short, suffix)


@pytest.mark.parametrize("size", [(120, 40), (200, 60)])
async def test_the_matrix_says_so(record, size):
    async with studio(record, size) as (app, pilot):
        text = text_of(app)
        assert "≠ differs max 1.0e+00" in text
        if size[0] > 120:
            assert CELL in text
        assert f"wrong differs {FIRST}  (1 of 4)" in text
        assert "n=8  52 B counted, 5 operations counted" in text
        await press(pilot, "enter", "4")
        text = text_of(app)
        assert CELL in text and HELD.search(text)
        assert "n=8: 52 B counted, 5 operations counted" in text


async def test_it_is_said_next_to_many_backends(record):
    (kernel,) = record.kernels
    only = [
        msgspec.structs.replace(
            kernel.backends[0], backend=name, launches=(), agreement=None, unlaunched="no runtime"
        )
        for name in ("amdgpu:gfx942", "amdgpu:gfx1100", "cuda", "spirv")
    ]
    kernel = msgspec.structs.replace(kernel, backends=(*kernel.backends, *only))
    async with studio(rec.Record(kernels=(kernel,)), (120, 40)) as (app, _):
        assert "≠ differs max 1.0e+00 at y[3]" in text_of(app)


async def test_at_80_columns_it_is_marked_and_reported_below(record):
    async with studio(record, (80, 24)) as (app, _):
        text = text_of(app)
        assert "≠" in text and f"wrong differs {FIRST}" in text


async def test_without_unicode_it_is_said_in_words(record):
    async with studio(record, (200, 60), ascii_only=True) as (app, _):
        assert "!= differs max 1.0e+00 at y[3]" in text_of(app)


def test_reports_say_so(record):
    for suffix in (".md", ".html"):
        text = render(record, suffix).replace("\\", "")
        assert CELL in text and "1 of 4 elements" in text and FIRST in text
        assert HELD.search(text) and "operations counted" in text
    (kernel,) = json.loads(render(record, ".json"))["kernels"]
    assert kernel["backends"][2]["agreement"]["first_difference"] == FIRST
    assert kernel["verdicts"][0]["against"] == "cpu"


def test_show_says_so(record):
    text = show(record, "launch")
    assert CELL in text and FIRST in text and f"{CELL}, rel 0.29" in text
    (one,) = [
        x for x in json.loads(show(record, "launch", as_json=True)) if x["backend"] == "wrong"
    ]
    assert one["agreement"]["differing"] == 1 and len(one["verdicts"]) == 2
    assert one["workloads"][0]["by_bytes"] == "counted"


def test_columns_of_the_matrix_that_no_one_needs_are_left_out(record):
    head = matrix.matrix(record, 250).head
    assert plain(head).count("against") == 1  # not for the one that others are held against


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "offset.py"
    path.write_text(FILE)
    return str(path)


def test_the_program_says_so_and_a_rule_fails(path, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    with contextlib.suppress(ValueError):
        sys.path.remove(REPO)
    status = main(["--report", "--backend", "cpu,wrong", "--fail-on", "agreement!=ok", path])
    out, err = capsys.readouterr()
    assert status == 1 and CELL in out.replace("\\", "")
    assert "rule agreement!=ok: offset.py:offset: agreement.wrong is differs" in err
    assert main(["show", path, "--panel", "launch", "--backend", "cpu,interp,wrong"]) == 0
    assert FIRST in capsys.readouterr()[0]


@pytest.mark.slow
def test_all_means_that_every_backend_says_what_it_did_or_why_not(path, tmp_path, monkeypatch):
    monkeypatch.setenv("QD_ENABLE_CUDA", "0")
    out = tmp_path / "r.json"
    status = main(["--report", "--backend", "all", "--out", str(out), path])
    found = {b.backend: b for b in inspect.load(out).kernels[0].backends}
    assert status == 0 and list(found) == list(inspect.every_backend())
    for name, one in found.items():
        if one.status == "absent":
            assert one.reason.startswith(f"{name}: "), one
        else:
            assert one.status == "ok" and one.compile.code_bytes > 0, one
            assert bool(one.launches) != bool(one.unlaunched), one
    assert found["cuda"].unlaunched == "QD_ENABLE_CUDA=0 hides it"
    assert found["amdgpu"].unlaunched == "no runtime: inspection only"
