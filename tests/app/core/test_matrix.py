"""The home matrix: for which backends and columns there is room; kernels without launches."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace
from qd_studio.app.core.lines import plain, text_of
from qd_studio.app.core.views.comparison import comparison_lines
from qd_studio.app.core.views.matrix import matrix
from qd_studio.app.report import render
from qd_studio.engine.inspect import record as rec

from tests.app.devices import ONLY, many
from tests.app.records import make_record

WIDTHS = (60, 80, 100, 120, 200, 250)
WHY = (
    "parameter f is a template: it cannot be generated; declare a workload with "
    "@scale.workload(...)"
)
SHORT = "no arguments: give a workload, or --run"


def names_in(head):
    """The backends whose groups are shown."""
    return re.findall(r"─ (\w+)", plain(head).splitlines()[-2])


@pytest.mark.parametrize("width", WIDTHS)
def test_every_backend_is_on_some_page_and_each_page_says_what_is_not_on_it(width):
    record = many()
    seen = []
    page = 0
    while True:
        found = matrix(record, width, page=page, key="b")
        shown = names_in(found.head)
        assert shown[0] == "cpu" and not set(shown) & set(found.hidden)
        assert len(shown) + len(found.hidden) == 7
        reported = plain(found.head).splitlines()[0].strip()
        if found.hidden:
            assert reported.startswith(f"{len(shown)} of 7 backends; b shows {found.hidden[0]}")
        else:
            assert "backends" not in reported
        # Nothing is cut off at the edge, blanks included.
        assert max(map(len, map(text_of, [*found.head, *found.rows]))) <= width
        new = [name for name in shown if name not in seen]
        if not new:
            break
        seen += new
        page += 1
    assert len(seen) == 7
    assert page == 1 if width >= 200 else page > 1


def test_those_that_launch_come_first_and_the_oracle_last():
    head = plain(matrix(many(), 400).head)
    order = ["cpu", "opencl", *ONLY, "interp"]
    assert sorted(order, key=lambda name: head.index(f"─ {name}")) == order


def test_the_verdict_names_clock_and_band_and_the_device_is_next_to():
    found = matrix(many(), 400)
    head, (row,) = plain(found.head).splitlines()[-1], plain(found.rows).splitlines()
    assert "against cpu, wall" in head and "0.60x ±0.06 faster" in row
    assert "60.0 us ± 2.00" in row and "4.70 us ± 1.00" in row
    at = head.rindex("device", 0, head.index("against"))
    assert row[: at + 6].endswith("4.70 us ± 1.00")
    kernel = many().kernels[0]
    other = replace(
        kernel, name="other", verdicts=(replace(kernel.verdicts[0], clock="device time"),)
    )
    found = matrix(replace(many(), kernels=(kernel, kernel, other)), 400)
    assert plain(found.rows).count("faster (cpu, device)") == 1


def test_a_time_of_a_smaller_workload_has_a_star_where_its_name_has_no_room():
    record = many()
    kernel = record.kernels[0]
    large = rec.WorkloadRecord(label="n=4096", origin="workload")
    launched = replace(kernel.backends[0].launches[0], workload="n=4096")
    backends = tuple(
        replace(b, launches=(*b.launches, launched)) if b.backend in ("cpu", "opencl") else b
        for b in kernel.backends
    )
    kernel = replace(kernel, workloads=(*kernel.workloads, large), backends=backends)
    record = replace(record, kernels=(kernel,))
    tight, wide = matrix(record, 120, page=1), matrix(record, 400)
    assert plain(tight.rows).count("us*") == 1 and "smaller workload" in tight.notes[0]
    assert "n=1024: 100 us" in plain(wide.rows) and "*" not in plain(wide.rows)
    assert not wide.notes and not matrix(many(), 120, page=1).notes


def test_the_table_of_a_kernel_states_reasons_where_there_is_room():
    text = plain(comparison_lines(many().kernels[0]))
    head, cpu, *_ = text.splitlines()
    assert "against cpu, wall" in head and "0.60x ±0.06 faster" in text
    assert "opencl 0.60x of cpu by wall clock, band 0.06: faster" in text
    kernel = without_arguments("ok", True).kernels[1]
    rows = plain(comparison_lines(kernel)).splitlines()
    assert sum(SHORT in row for row in rows) == 3 and cpu.index("12.5 ms") > 0
    assert all("12.5 ms" in row for row in rows[1:4])


def test_a_matrix_without_backends_is_drawn_at_any_width():
    kernel = replace(make_record().kernels[0], backends=())
    found = matrix(replace(make_record(), kernels=(kernel,)), 5)
    assert "scale" in plain(found.rows) and not found.hidden


# ---- without launches


def without_arguments(status, compile_):
    record = many()
    kernel = record.kernels[0]
    none = rec.WorkloadRecord(label="none", origin="none", reason=WHY)
    backends = tuple(
        replace(b, status=status, reason=WHY if status == "not_run" else "", launches=(),
                agreement=None, compile=b.compile if compile_ else None,
                unlaunched=b.unlaunched if compile_ else "")
        for b in kernel.backends
    )  # fmt: skip
    bare = replace(kernel, name="bare", workloads=(none,), backends=backends, verdicts=())
    return replace(record, kernels=(kernel, bare))


@pytest.mark.parametrize("width", WIDTHS)
def test_a_kernel_without_arguments_says_so_across_all_backends(width):
    rows = plain(matrix(without_arguments("not_run", False), width).rows).splitlines()
    (row,) = [line for line in rows if "bare" in line]
    assert row.startswith("–  bare ") and row.count("no arguments") == 1
    assert SHORT in row or width == 60


def test_one_that_was_compiled_says_it_where_its_time_would_are():
    record = without_arguments("ok", True)
    rows = plain(matrix(record, 400).rows).splitlines()
    assert rows[1].count(SHORT[:25]) == 3  # cpu, opencl, interp; the others name their own reason
    for suffix in (".md", ".html"):
        text = render(record, suffix).replace("\\", "")
        assert text.count(SHORT) >= 3, suffix


@pytest.mark.parametrize(
    ("reason", "help"),
    [
        ("hang is a method: decorate class Cloth with @qd.data_oriented", "@qd.data_oriented"),
        ("hang is a method, and no object of Cloth is at the top level", "make an object"),
        (WHY, "give a workload, or --run"),
    ],
)
def test_what_helps_depends_on_what_is_missing(reason, help):
    record = without_arguments("not_run", False)
    kernel = record.kernels[1]
    backends = tuple(replace(b, reason=reason) for b in kernel.backends)
    none = replace(kernel.workloads[0], reason=reason)
    kernel = replace(kernel, backends=backends, workloads=(none,))
    text = plain(matrix(replace(record, kernels=(kernel,)), 200).rows)
    assert "no arguments: " in text and help in text


def test_a_reason_of_one_backend_takes_the_room_of_that_one_alone():
    record = many()
    kernel = record.kernels[0]
    backends = list(kernel.backends)
    at = next(i for i, b in enumerate(backends) if b.backend == "opencl")
    backends[at] = rec.BackendRecord(
        backend="opencl", status="error", reason="no f64 on this device"
    )
    other = replace(kernel, name="other", backends=tuple(backends), verdicts=())
    rows = plain(matrix(replace(record, kernels=(kernel, other)), 400).rows).splitlines()
    assert "no f64 on this device" in rows[1] and "100 us ± 1.00" in rows[1]
    assert rows[0].index("24 B") == rows[1].index("24 B")


LONG = "no device could be opened: clGetDeviceIDs says DEVICE_NOT_FOUND; `doctor` says what to do"


@pytest.mark.parametrize("width", (78, 118, 198))
def test_a_long_reason_takes_no_room_from_other_rows(width):
    kernel = many().kernels[0]
    usual = plain(comparison_lines(kernel, False, width)).splitlines()
    failed = rec.BackendRecord(backend="metal", status="error", reason=LONG)
    backends = tuple(
        replace(b, unlaunched=LONG) if b.backend == "amdgpu" else b for b in kernel.backends
    )
    kernel = replace(kernel, backends=(*backends, failed))
    lines = plain(comparison_lines(kernel, False, width)).splitlines()
    heads = [line for line in lines if line.startswith("backend")]
    assert heads == usual[:1]
    assert next(x for x in lines if x.startswith("opencl ")) == next(
        x for x in usual if x.startswith("opencl ")
    )
    cold = heads[0].index("cold") + 4
    assert all(x[:cold].endswith("ms") for x in lines if x.startswith(("amdgpu ", "cpu ")))
    # The whole reason is there, below.
    assert f"metal {LONG}" in lines or any(x.endswith(LONG) for x in lines)


def test_cells_are_not_cut_where_there_is_room():
    record = many()
    name = "Solver.advect_particles_with_vorticity_confinement_and_more"
    cpu, *_, interp = record.kernels[0].backends
    failed = rec.BackendRecord(backend="opencl", status="error", reason=LONG)
    kernel = replace(record.kernels[0], name=name, backends=(cpu, failed, interp), verdicts=())
    one = replace(record, kernels=(replace(record.kernels[0], backends=(cpu, interp)), kernel))
    text = plain(matrix(one, 340).rows)
    assert name in text and LONG in text
    for width in WIDTHS:
        found = matrix(one, width)
        assert max(map(len, map(text_of, [*found.head, *found.rows]))) <= max(width, 70)
    assert "…" in plain(matrix(one, 80).rows)
