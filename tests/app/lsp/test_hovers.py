"""Hover, hints and listings over the record of a real compile."""

from pathlib import Path

import pytest
from msgspec.structs import replace
from qd_studio import engine as qd
from qd_studio.app.lsp.hints import hints
from qd_studio.app.lsp.hovers import hover_at
from qd_studio.app.lsp.listings import Listings
from qd_studio.engine import inspect
from qd_studio.engine.inspect import record as rec


@qd.func
def twice(v):
    return v + v


@qd.kernel
def shown(x: qd.types.ndarray(dtype=qd.f32, ndim=1), a: qd.f32):
    for i in range(x.shape[0]):
        unused = a * 7.0  # noqa: F841
        x[i] = twice(x[i]) * (2.0 + 3.0)
    for i in range(x.shape[0]):
        x[i] = twice(x[i])


LINES = Path(__file__).read_text().split("\n")


def position(code, nth=0):
    """The line (from 1) and column of some code of the kernel."""
    found = [(n, x.index(code)) for n, x in enumerate(LINES, 1) if code in x and n > 15]
    return found[nth]


@pytest.fixture(scope="module")
def record():
    kernel = inspect.capture_kernel(shown, ("cpu",), launch=False)
    file = rec.FileRecord(path=kernel.file, sha256="", text="\n".join(LINES))
    return rec.Record(files=(file,), kernels=(kernel,))


def hover(record, code, timed=None):
    line, col = position(code)
    found = hover_at(record, record.kernels[0].file, line, col, timed or {})
    return found.text if found else ""


def test_an_expression_has_its_type_and_its_ir_before_and_after_the_passes(record):
    text = hover(record, "x.shape[0]")
    assert text.startswith(
        "`x.shape[0]`: `i32`\n\nIR before the passes\n```\nfor i in 0..x.shape[0]"
    )
    assert "IR after the passes, for cpu" in text
    assert hover(record, "LINES = ") == ""


def test_an_expression_that_no_pass_leaves_has_the_pass_that_removed_it(record):
    text = hover(record, "a * 7.0")
    assert text.startswith("`a * 7.0`: `f32`") and "It was removed in `" in text


def test_an_inlined_function_has_one_kernel_with_all_calls(record):
    text = hover(record, "v + v")
    assert text.startswith("`v + v`: `f32`")
    assert text.count("= ") >= 2


def test_a_parameter_has_its_declaration(record):
    text = hover(record, "a: qd.f32")
    assert text == "`a`: scalar f32, a parameter of shown"


def test_times_are_at_loops_and_earlier_ones_say_so(record):
    kernel = record.kernels[0]
    (backend,) = kernel.backends
    tasks = tuple(
        rec.TaskCost(task=task.index, us=2.5, timed="measured", limited_by="bandwidth",
                     because="why")
        for task in backend.compile.tasks if task.kind == "range_for"
    )  # fmt: skip
    line = position("twice(x[i]) * ")[0]
    lines = (rec.LineCost(task=0, file=kernel.file, line=line, runs=9, flops=18),)
    cost = rec.CostRecord(workload="n=9", tasks=tasks, lines=lines)
    launched = replace(kernel, backends=(replace(backend, costs=(cost,)),))
    now = replace(record, kernels=(launched,))
    loops = [position("for i in", n)[0] for n in (0, 1)]
    found = [h for h in hints(now, {}) if "us" in h.text]
    assert [(h.line, h.text) for h in found] == [
        (n, "2.50 us, limited by bandwidth") for n in loops
    ]
    earlier = [h for h in hints(record, {kernel.id: launched}) if "us" in h.text]
    assert [h.text for h in earlier] == ["2.50 us, limited by bandwidth earlier"] * 2
    assert "Line" in hover(now, "twice(x[i]) * ", {kernel.id: launched})
    assert "18 operations" in hover(record, "twice(x[i]) * ", {kernel.id: launched})


def test_a_kernel_without_arguments_says_so(record):
    none = rec.WorkloadRecord(label="", origin="none", reason="x is a template")
    kernel = replace(record.kernels[0], backends=(), workloads=(none,))
    (found,) = hints(replace(record, kernels=(kernel,)), {})
    assert (found.line, found.text) == (kernel.line, "no arguments")
    assert found.tip.endswith("errors in it are not found: x is a template")


def test_definitions_are_the_passes_that_changed_an_expression(record):
    line, col = position("x.shape[0]")
    listings = Listings()
    places = listings.places(record, record.kernels[0].file, line, col)
    names = [Path(place.path).name for place in places]
    assert names[0] == "shown.cpu.00 before the passes.qdir" and len(names) == len(set(names)) > 1
    texts = [Path(place.path).read_text().split("\n")[place.line] for place in places]
    assert all("x.shape[0]" in text or "for" in text for text in texts)
    assert listings.source_of(places[0].path, places[0].line).line == line
    assert listings.source_of(places[0].path, 10_000) is None
    listings.close()
    assert not Path(places[0].path).exists()
