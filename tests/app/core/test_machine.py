"""Machine code of GPUs and the order of tasks, as panels, metrics and reports show them."""

import pytest
from msgspec.structs import replace
from qd_studio.app.core.flow_layout import draw, to_svg
from qd_studio.app.core.lines import code_spans, plain
from qd_studio.app.core.rules import evaluate
from qd_studio.app.core.views import flow, home, machine, matrix
from qd_studio.app.panels import launch
from qd_studio.app.report import render
from qd_studio.app.show import show
from qd_studio.engine.inspect import record as rec

from tests.app.devices import FLOW, LAUNCHED, MACHINE, NAME, NO_DEVICE
from tests.app.pages import unpacked
from tests.app.records import make_record

NODE = rec.FlowNode


def drawn(width: int, **more) -> list[str]:
    return [row.text for row in draw(FLOW, width, **more)]


@pytest.mark.parametrize("width", [24, 40, 60, 80, 200])
def test_a_drawing_keeps_to_its_width_and_shows_every_node(width):
    rows = draw(FLOW, width)
    assert max(len(row.text) for row in rows) <= max(24, width)
    assert {row.node for row in rows} - {-1} >= {node.id for node in FLOW.nodes} - {8, 9}
    assert drawn(width, ascii_only=True)[0].isascii()


def test_loops_hold_their_bodies_and_branches_are_side_by_side():
    text = drawn(80)
    assert text[0].startswith("┌─ 0 serial ─") and "one thread" in text[1]
    outer = next(i for i, line in enumerate(text) if "do while left" in line)
    assert text[outer + 1].startswith("│ ┌►┌─ 1 range_for ")
    assert "2,048 x 128 threads" in text[outer + 2]
    assert any("│ └─ again while left is not 0; 1,200 rounds so far" in t for t in text)
    beside = next(line for line in text if "3 range_for" in line)
    assert "4 range_for" in beside
    narrow = drawn(40)
    assert "4 range_for" not in next(line for line in narrow if "3 range_for" in line)
    assert any("ends the launch if flag is not 0" in line for line in narrow)


def test_what_waits_for_another_than_the_one_above_says_so():
    nodes = tuple(NODE(id=i, kind="task", name="range_for", task=i) for i in range(3))
    found = draw(rec.FlowRecord(nodes=nodes, edges=((0, 2),)), 60)
    assert "after 0" in "\n".join(row.text for row in found)
    assert not any(row.kind == "link" for row in found)


def test_the_picture_has_the_same_and_escapes_what_the_user_wrote():
    svg = to_svg(FLOW)
    assert svg.count("<rect") == len(FLOW.nodes)
    assert "checkpoint &lt;7&gt;" in svg and "<7>" not in svg
    assert svg.count('class="cfg-edge cfg-back"') == 2


def test_the_launch_tab_shows_why_nothing_was_launched_and_the_tasks():
    text = plain(launch.launch_lines(NO_DEVICE.kernels[0], 100))
    assert f"{NAME} not launched: no driver found" in text
    assert "a graph of the device" in text and "3 replays, 1 update, 1 rebuild, 2 streams" in text
    assert "do while left" in text and "host " not in text.splitlines()[0]


def test_times_of_a_device_are_next_to_those_of_the_host():
    texts = plain(launch.launch_lines(LAUNCHED.kernels[0], 140)).splitlines()
    head = next(line for line in texts if line.startswith("backend") and "workload" in line)
    row = next(line for line in texts[texts.index(head) :] if line.startswith(NAME))
    assert "host" in head and "memory" in head
    assert "5.00 us ± 0.10" in row and "3.50 us" in row and "8 MiB" in row and "4.35 TB/s" in row
    assert "NVIDIA H200, compute capability 9.0, 132 SMs, 140 GiB, driver 13.0" in "\n".join(texts)


def test_flow_lines_know_the_source():
    lines = flow.flow_lines(NO_DEVICE.kernels[0], 80)
    assert {line.line for line in lines} == {0, 6, 7}
    assert flow.flow_lines(make_record().kernels[0], 80) == []


def test_backends_with_the_same_order_share_a_drawing():
    kernel = NO_DEVICE.kernels[0]
    host = rec.FlowRecord(how="host", why="the cpu backend has no graphs", nodes=FLOW.nodes,
                          edges=FLOW.edges)  # fmt: skip
    cpu = replace(kernel.backends[0], flow=host)
    both = plain(flow.flow_lines(replace(kernel, backends=(cpu, *kernel.backends[1:])), 80))
    assert both.count("do while left") == 1
    assert "cpu tasks   the host goes from task to task: the cpu backend has no graphs" in both
    assert f"{NAME} tasks   a graph of the device; 3 replays" in both


def test_registers_spills_and_occupancy():
    text = plain(machine.machine_lines(NO_DEVICE.kernels[0].backend(NAME)))
    assert "sm_90 (Hopper), PTX 8.0, 2 KiB; ptxas 13.0.88, 20.0 ms" in text
    assert "no machine code as text: neither <nvdisasm> nor cuobjdump is installed" in text
    row = next(line for line in text.splitlines() if line.startswith("0 range_for"))
    assert row.split()[2:5] == ["128", "40", "8"] and "75%, 12 blocks, limited by registers" in row
    assert machine.machine_lines(NO_DEVICE.kernels[0].backend("cpu")) == []
    assert (machine.registers(MACHINE), machine.spills_text(MACHINE)) == ("40", "24 B")
    unknown = replace(MACHINE, kernels=(rec.MachineKernel(symbol="k"),), assembler="", reason="no")
    assert machine.registers(unknown) == "" and "no registers" in machine.facts(unknown)[1]


AMD = rec.MachineKernel(
    symbol="k0", task=0, block_dim=256, known=True, registers=23, scalar_registers=24,
    accumulators=4, spilled_registers=2, stack=16, shared=1024, wave=64, waves=5, most_waves=8,
    limit="vgprs", occupancy=0.625, code=1200, grid="cover",
)  # fmt: skip


def test_what_amds_code_takes():
    found = rec.MachineRecord(arch="gfx942", title="CDNA 3", kernels=(AMD,), notes=("not linked",))
    backend = NO_DEVICE.kernels[0].backend(NAME)
    backend = replace(backend, compile=replace(backend.compile, machine=found))
    text = plain(machine.machine_lines(backend))
    assert "gfx942 (CDNA 3), waves of 64 lanes" in text and "not linked" in text
    assert "PTX" not in text and "constant" not in text and "barriers" not in text
    head, ((*row,),) = machine.machine_table(backend.compile)
    reported = dict(zip(head, row, strict=True))
    assert (reported["registers"], reported["scalar"], reported["accumulators"]) == (
        "23",
        "24",
        "4",
    )
    assert (reported["spills"], reported["stack"], reported["code"]) == ("2", "16 B", "1.17 KiB")
    assert reported["occupancy"] == "5 of 8 waves, limited by vgprs"
    assert (machine.registers(found), machine.spills_text(found)) == ("23", "2 regs")


def cells(record, width):
    head, rows, *_ = matrix.matrix(record, width)
    return plain(head), plain(rows)


def under(head, rows, name, text):
    """A number is at the right edge of its heading."""
    end = head.splitlines()[-1].index(name) + len(name)
    row = next(line for line in rows.splitlines() if "scale" in line)
    assert row[:end].endswith(f" {text}") and row[end : end + 1] in ("", " ")


def test_the_matrix_has_columns_of_its_own_for_what_is_only_compiled():
    head, rows = cells(NO_DEVICE, 200)
    assert f"─ {NAME} ─" in head and head.count("statements") == 2 and "size" in head
    assert "2 KiB" in rows and "no driver found" in rows
    under(head, rows, "registers", "40")
    under(head, rows, "spills", "24 B")
    assert "compiled, not launched: no driver found" in plain(home.absent_lines(NO_DEVICE))
    for width in (60, 80, 100, 120):
        head, rows = cells(NO_DEVICE, width)
        assert f"─ {NAME}" in head
        under(head, rows, "registers", "40")
        under(head, rows, "spills", "24 B")
        assert max(map(len, head.splitlines())) <= max(width, 80)


def test_a_device_adds_registers_to_the_usual_columns():
    head, rows = cells(LAUNCHED, 220)
    assert "registers" in head and "5.00 us ± 0.10" in rows
    under(head, rows, "spills", "24 B")
    assert home.devices_of(LAUNCHED)[0].startswith("NVIDIA H200, ")


def test_reports_state_all_of_it_and_escape():
    text = render(NO_DEVICE, ".md")
    assert "### Tasks" in text and "do while left" in text and "### Machine code" in text
    assert "not launched" in text and "| 2 KiB | 40 | 24 B |" in text
    assert f"{NAME} registers | {NAME} spills |" in text
    page = unpacked(NO_DEVICE)
    assert "do while left" in page and "&lt;nvdisasm&gt;" in page and "<nvdisasm>" not in page
    assert "&lt;i&gt;" in page and "<l->7</l->" in page
    assert "NVIDIA H200, compute capability 9.0" in render(LAUNCHED, ".html")
    assert "| 3.50 us | 8 MiB |" in render(LAUNCHED, ".md")


def test_show_prints_code_with_what_it_takes():
    text = show(NO_DEVICE, "code", None)
    assert "-- ptx" in text and "limited by registers" in text
    assert '"machine": {' in show(NO_DEVICE, "code", as_json=True)
    reported = show(NO_DEVICE, "launch", as_json=True)
    assert '"unlaunched": "no driver found"' in reported and '"how": "graph"' in reported


def test_rules_on_machine_code():
    rules = [f"code.{NAME}.spills>0", f"code.{NAME}.registers>64", f"code.{NAME}.ptx_bytes>+5%"]
    found = evaluate(NO_DEVICE, rules, NO_DEVICE)
    assert [f.state for f in found] == ["failed", "passed", "passed"]
    found = evaluate(LAUNCHED, [f"launch.{NAME}.host_us>3"])
    assert [f.state for f in found] == ["failed"]


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        (
            "ptx",
            "\t@%p1 bra \t$L__BB0_3; // x",
            {("%p1", "id"), ("bra", "op"), ("// x", "comment")},
        ),
        (
            "ptx",
            "\tld.global.nc.v4.b32 \t{%r1, %r2}, [%rd4+16];",
            {("ld", "op"), (".b32", "type"), ("%rd4", "id"), ("16", "const")},
        ),
        ("ptx", ".version 8.0", {(".version", "kw"), ("8.0", "const")}),
        (
            "sass",
            "    /*0010*/ @P0 IADD3 R1, UR4, -0x10, RZ ;",
            {("/*0010*/", "comment"), ("IADD3", "op"), ("R1", "id"), ("-0x10", "const"),
             ("RZ", "kw"), ("P0", "id")},
        ),
        ("sass", ".L_x_1:", {(".L_x_1:", "id")}),
        ("sass", "    LDG.E R2, c[0x0][0x160] ;", {("c[0x0][0x160]", "type"), ("LDG", "op")}),
    ],
)  # fmt: skip
def test_code_is_highlighted(language, text, expected):
    spans = code_spans(text, language)
    assert "".join(part for part, _ in spans) == text
    assert expected <= set(spans)


def test_samples_that_are_medians_are_called_so():
    kernel = LAUNCHED.kernels[0]
    assert "launches in a row" not in plain(launch.launch_lines(kernel, 100))
    backends = [
        replace(b, launches=tuple(replace(x, burst=4) for x in b.launches)) for b in kernel.backends
    ]
    text = plain(launch.launch_lines(replace(kernel, backends=tuple(backends)), 100))
    assert "each sample is the median of 4 launches in a row" in text
