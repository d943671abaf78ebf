"""Parameters of a compiled kernel in the Source tab, in text and in reports."""

import json

from msgspec.structs import replace
from qd_studio.app.core import format as fmt
from qd_studio.app.core.lines import plain, text_of
from qd_studio.app.core.views.home import detail
from qd_studio.app.panels.source import source_lines
from qd_studio.app.report import html, markdown
from qd_studio.app.show import show
from qd_studio.engine.inspect import record as rec

from tests.app.pages import unpacked
from tests.app.records import make_record

LAYOUT = rec.LayoutRecord(
    shape=(128, 128), element_shape=(2,), origin=(-64, 0), digits=("j", "i", "c"),
    strides=(1536, 12, 4), arrangement="AOS", bytes=131072, span=196604,
)  # fmt: skip
PARAMS = (
    rec.BindingRecord(name="x", kind="ndarray", dtype="f32", ndim=1, argument="x", written=True),
    rec.BindingRecord(
        name="tank.v<i>", kind="ndarray", dtype="f32", ndim=2, element_shape=(2, 2),
        origin="member", argument="tank", axes=(1, 0),
    ),
    rec.BindingRecord(
        name="p.vel[1]", kind="scalar", dtype="f32", origin="part", argument="p", used=False
    ),
    rec.BindingRecord(name="self.n", kind="scalar", dtype="i32", origin="member", argument="self"),
    rec.BindingRecord(
        name="momentum", kind="field", dtype="f32", ndim=2, element_shape=(2,), origin="field",
        layout=LAYOUT,
    ),
)  # fmt: skip


def record_with(params, **changes):
    record = make_record()
    (kernel,) = record.kernels
    cpu, *others = kernel.backends
    cpu = replace(cpu, compile=replace(cpu.compile, params=params))
    kernel = replace(kernel, backends=(cpu, *others), **changes)
    return replace(record, kernels=(kernel,))


def rows(text):
    return [line.split() for line in text.splitlines()]


def test_parameters_are_below_the_signature():
    record = record_with(PARAMS, instance="cloth (also: other)", line=4)
    (kernel,) = record.kernels
    lines = source_lines(record, kernel, kernel.backends[0].compile)
    text = plain(lines)
    at = next(i for i, line in enumerate(text.splitlines()) if "def scale" in line)
    below = text.splitlines()[at + 1 : at + 8]
    assert below[0].split() == ["parameter", "type", "comes", "from", "memory"]
    assert below[1].split() == ["x", "f32[:]", "argument", "written"]
    assert "matrix(2, 2, f32)[:, :]" in below[2] and "member of tank" in below[2]
    assert below[2].endswith("read, axes in memory: j i")
    assert below[3].split() == ["p.vel[1]", "f32", "part", "of", "p", "not", "used"]
    assert "member of self (cloth)" in below[4]
    assert "vector(2, f32)[128, 128]" in below[5]
    assert (
        "read, 128 KiB spread over 192 KiB, AOS, strides j:1536 i:12 c:4 B, indices from -64, 0"
        in below[5]
    )
    assert "for i in x" in below[6]
    assert all(line.line == 4 for line in lines[at + 1 : at + 7])
    assert lines[at + 6].copy.split("\t")[:3] == ["momentum", "vector(2, f32)[128, 128]", "field"]


def test_a_signature_of_several_lines_ends_at_its_colon():
    record = record_with(PARAMS, line=1, end_line=6)
    source = "@qd.kernel\ndef scale(\n    x: F[1:2],  # f(\n    a: qd.f32,\n):\n    pass\n"
    record = replace(record, files=(replace(record.files[0], text=source),))
    text = plain(source_lines(record, record.kernels[0], record.kernels[0].backends[0].compile))
    found = text.splitlines()
    assert found[4].endswith("):") and "parameter" in found[5] and "pass" in found[11]


def test_plain_arguments_are_not_repeated():
    record = record_with(PARAMS[:1])
    (kernel,) = record.kernels
    assert "argument" not in plain(source_lines(record, kernel, kernel.backends[0].compile))


def test_reports_and_queries_have_them():
    record = record_with(PARAMS, instance="cloth")
    page = unpacked(record)
    assert "5 parameters" in page and "tank.v&lt;i&gt;" in page and "tank.v<i>" not in page
    assert "For the object cloth." in page
    text = markdown.render(record)
    assert "| p.vel\\[1\\] | f32 | part of p |" in text
    assert "For the object cloth." in text
    (found,) = json.loads(show(record, "source", as_json=True))
    assert found["params"][4]["layout"]["strides"] == [1536, 12, 4]
    assert "momentum" in show(record, "source")


def test_sizes():
    assert [fmt.size(n) for n in (0, 1023, 1024, 65536, 1572864, 3 << 30, 5 << 50)] == [
        "0 B", "1023 B", "1 KiB", "64 KiB", "1.50 MiB", "3 GiB", "5,120 TiB",
    ]  # fmt: skip


def test_one_parameter_is_no_parameters():
    record = record_with(PARAMS[4:])
    assert "1 parameter<" in html.render(record)
    assert "<summary>1 parameter</summary>" in markdown.render(record)


def test_most_of_the_table_is_seen_in_80_columns():
    record = record_with((replace(PARAMS[4], layout=replace(LAYOUT, span=131072)),))
    (kernel,) = record.kernels
    lines = source_lines(record, kernel, kernel.backends[0].compile)
    row = next(text_of(line) for line in lines if "momentum" in text_of(line))
    assert "read, 128 KiB, AOS" in row[:80]


def test_missing_arguments_are_explained_once():
    reason = "parameter f is a template; " + ", ".join(["declare a workload"] * 9)
    record = record_with(())
    (kernel,) = record.kernels
    none = rec.WorkloadRecord(label="none", origin="none", reason=reason)
    backends = tuple(
        rec.BackendRecord(backend=name, status="not_run", reason=reason)
        for name in ("cpu", "interp")
    )
    kernel = replace(kernel, workloads=(none,), backends=backends)
    record = replace(record, kernels=(kernel,))
    for page in (html.render(record), markdown.render(record)):
        assert page.count(reason) == 1
        assert page.count("no arguments") == (1 if page.startswith("<!doctype") else 2)
    failed = replace(backends[0], status="error", reason="a fault")
    assert fmt.backend_reason(kernel, failed) == "a fault"


def test_a_workload_is_not_named_twice():
    record = record_with(())
    (kernel,) = record.kernels
    synthetic = rec.WorkloadRecord(label="synthetic", origin="synthetic", args=("0.5",))
    text = plain(detail(replace(kernel, workloads=(synthetic,))))
    assert text.count("synthetic") == 1
