"""``%%qd_inspect``: the cell magic, its widget in a browser, and its page without one.

Tests in a notebook need the extra ``clients``, those in a browser Chromium as well.
"""

from __future__ import annotations

import base64
import json
import zlib
from importlib.util import find_spec
from typing import Any

import msgspec
import pytest
from qd_studio.app.notebook import sections as parts
from qd_studio.app.notebook import widget as widgets
from qd_studio.app.notebook.script import SCRIPT

from tests.app.browser import CHROMIUM, browsed, needs_browser
from tests.app.records import make_record

needs_notebook = pytest.mark.extra("nbclient", "ipykernel", "anywidget")

SETUP = """\
import numpy as np
import quadrants as qd
qd.init(arch=qd.cpu)
"""
KERNEL = """\
@qd.kernel
def scale(x: qd.types.NDArray[qd.f32, 1], factor: qd.f32):
    for i in x:
        x[i] = x[i] * (factor * 2.0) + 1.0

y = np.ones(1000, np.float32)
scale(y, 2.0)
"""


def test_sections_are_those_of_the_report():
    record = make_record()
    found = parts.sections(record)
    kernel = record.kernels[0]
    panels = [part.panel for part in found if part.kernel == kernel.id]
    assert panels[0] == parts.OVERVIEW and {"passes", "ir", "launch", "code"} <= set(panels)
    passes = next(part for part in found if part.panel == "passes")
    assert passes.backend and "x * 1 is x" in passes.html and "data-z" not in passes.html
    assert kernel.name in parts.summary(record)
    empty = msgspec.structs.replace(record, kernels=())
    assert parts.summary(empty) == "this cell defines no kernels" and parts.sections(empty) == []


def test_text_of_users_stays_text():
    evil = "<img src=x onerror=alert(2)>"
    record = make_record()
    kernel = msgspec.structs.replace(record.kernels[0], doc=evil, instance=evil)
    record = msgspec.structs.replace(record, kernels=(kernel,))
    assert all("<img" not in part.html for part in parts.sections(record))


def test_a_part_that_is_too_large_says_so(monkeypatch):
    monkeypatch.setattr(parts, "_LARGEST", 10)
    assert all("too much for a notebook" in p.html for p in parts.sections(make_record()))


def test_the_script_loads_nothing():
    assert "import" not in SCRIPT and "http" not in SCRIPT and "url(" not in widgets._style()


def page_of(state: dict[str, Any], data: bytes, second: str = "cfg") -> str:
    """A page that renders a widget as frontends do, and puts its shadow tree into the page."""
    values = {name: value for name, value in state.items() if isinstance(value, str)}
    packed = json.dumps(values).replace("<", "\\u003c")
    return f"""<!doctype html><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline';
script-src 'unsafe-inline' blob:"><div id="el"></div><div id="out"></div><script type="module">
const values = {packed};
values.data = new DataView(Uint8Array.from({list(data)}).buffer);
const model = {{get: name => values[name], set: (name, value) => values[name] = value,
  save_changes: () => {{}}, on: () => {{}}}};
const blob = new Blob([values._esm], {{type: "text/javascript"}});
const el = document.getElementById("el"), out = document.getElementById("out");
const show = name => out.append(Object.assign(document.createElement("article"),
  {{id: name, innerHTML: el.shadowRoot.querySelector(".page").innerHTML}}));
(await import(URL.createObjectURL(blob))).default.render({{model, el}}).then(() => {{
  show("first");
  const tabs = [...el.shadowRoot.querySelectorAll("button")];
  tabs.find(x => x.textContent === "{second}")?.click();
  show("second");
}});
</script>"""


@pytest.mark.slow
@needs_browser
def test_a_browser_shows_the_widget_of_a_record(tmp_path):
    record = make_record()
    found = [part._asdict() for part in parts.sections(record)]
    data = zlib.compress(json.dumps(found).encode())
    state = {"_esm": SCRIPT, "style_sheet": "", "kernel": "", "backend": "", "panel": "passes"}
    page = tmp_path / "page.html"
    page.write_text(page_of(state, data, "caches"), encoding="utf-8")
    _, first, second = browsed(page, "#second").split("<article ")
    assert 'data-panel="passes"' in first and "x * 1 is x" in first
    assert 'data-panel="caches"' in second and "<table" in second


# ---- in a notebook


def run_notebook(*cells: str) -> Any:
    import nbclient
    import nbformat

    made = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(c) for c in ("%load_ext qd_studio", *cells)]
    )
    client = nbclient.NotebookClient(made, timeout=120, kernel_name="python3", allow_errors=True)
    client.execute()
    return made


def outputs(made: Any, cell: int) -> list[Any]:
    return made.cells[cell].outputs


@pytest.mark.slow
@needs_notebook
def test_a_notebook_shows_its_kernels_in_a_browser(tmp_path):
    made = run_notebook(SETUP, "%%qd_inspect --backend cpu,interp\n" + KERNEL, "float(y[0])")
    (shown,) = outputs(made, 2)
    assert "scale(x: f32[:], factor: f32)" in shown.data["text/plain"]
    assert shown.data["text/html"].startswith('<iframe sandbox="allow-scripts"')
    # Launches for times and agreement left the array as the one call of the cell did.
    assert outputs(made, 3)[0].data["text/plain"] == "5.0"
    id = shown.data["application/vnd.jupyter.widget-view+json"]["model_id"]
    states = made.metadata["widgets"]["application/vnd.jupyter.widget-state+json"]["state"]
    state = states[id]["state"]
    (buffer,) = states[id]["buffers"]
    data = base64.b64decode(buffer["data"])
    found = json.loads(zlib.decompress(data))
    assert {"cpu", "interp"} <= {part["backend"] for part in found}
    assert any(part["panel"] == "launch" and "call 1" in part["html"] for part in found)
    if CHROMIUM and find_spec("playwright"):
        page = tmp_path / "page.html"
        page.write_text(page_of(state, data), encoding="utf-8")
        _, first, second = browsed(page, "#second").split("<article ")
        assert "extract_constant" in first and "cell 3:scale" in first
        assert 'data-panel="cfg"' in second and "<svg" in second


@pytest.mark.slow
@needs_notebook
def test_errors_of_cells_and_arguments_are_errors_of_the_notebook():
    made = run_notebook(
        SETUP,
        "%%qd_inspect\n" + KERNEL + "\n1 / 0\n",
        "%%qd_inspect --backends cpu\n1",
        "%%qd_inspect --panel nope\n1",
        "%%qd_inspect --text --panel launch --no-launch\n" + KERNEL.replace("+ 1.0", "+ unknown")
        .partition("y =")[0],
        "%%qd_inspect\nx = 1",
        "%%qd_inspect --static --no-launch\n" + KERNEL,
        "%%qd_inspect --kernel other\n" + KERNEL,
        "%%qd_inspect --help\n1 / 0",
    )  # fmt: skip
    (failed,) = outputs(made, 2)
    assert failed.output_type == "error" and failed.ename == "ZeroDivisionError"
    for cell, text in ((3, "--backends"), (4, "there is no panel 'nope'; there are: ")):
        assert text in json.dumps(outputs(made, cell))
    (found,) = outputs(made, 5)
    assert "unknown" in found.text and "^" in found.text and "line 4" in found.text
    (none,) = outputs(made, 6)
    assert none.data["text/plain"] == "this cell defines no kernels"
    (page,) = outputs(made, 7)
    assert set(page.data) == {"text/plain", "text/html"} and "Kernel report" in str(page.data)
    assert "there is no kernel 'other' in this cell; there are: scale" in str(outputs(made, 8))
    (help_text,) = outputs(made, 9)
    assert help_text.text.startswith("usage: %%qd_inspect")
