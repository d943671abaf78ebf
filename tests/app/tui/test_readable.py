"""The readable forms of IR and code in the studio, in `show` and in reports."""

import base64
import html
import json
import re
import zlib

import pytest
from qd_studio.app.core.views.changes import readable_of
from qd_studio.app.markup.html import Page
from qd_studio.app.markup.packed import Pack
from qd_studio.app.panels import find
from qd_studio.app.show import show
from qd_studio.app.tui.kept import kept
from qd_studio.engine.inspect.graphs import pass_graphs
from qd_studio.engine.inspect.readable_graphs import readable_graphs

from tests.app.tui import pilot as p
from tests.app.tui.pilot import press, studio, view


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    return p.record(str(tmp_path_factory.mktemp("kernels")))


async def test_one_key_switches_the_form_of_ir_and_keeps_the_operation(record):
    async with studio(record, (160, 50)) as (app, pilot):
        await press(pilot, "enter", "2", "x", "w")
        diff = view(app, "diff")
        compiled = record.kernels[0].backends[0].compile
        product = next(
            id for text, id in zip(compiled.snapshots[0].lines, compiled.snapshots[0].ids,
                                   strict=True) if " mul " in text
        )  # fmt: skip
        diff.move(next(i for i, x in enumerate(diff.lines) if x.key == product))
        await pilot.pause()
        exact = diff.lines
        await press(pilot, "f")
        assert app.sel.readable and len(diff.lines) < len(exact)
        assert "a * " in diff.current.copy and "$" not in diff.current.copy
        here = diff.current.key
        await press(pilot, "D")
        assert diff.current.key != here and "s" in diff.current.copy
        await press(pilot, "d")
        assert diff.current.copy.strip() in ("var s", "for j in 0..3 {")
        await press(pilot, "f")
        assert not app.sel.readable and [x.copy for x in diff.lines] == [x.copy for x in exact]


async def test_the_chosen_form_is_kept_for_the_next_start(record, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert kept() == {}
    async with studio(record, (160, 50)) as (app, pilot):
        await press(pilot, "enter", "2", "f")
        assert kept() == {}  # not started by a user
        app.keeps = True
        await press(pilot, "f", "f")
        assert kept() == {"readable": True}
        await press(pilot, "f")
        assert kept() == {"readable": False}


def test_show_prints_code_and_graphs_in_the_readable_form(record):
    exact, readable = (show(record, "code", form=form) for form in ("exact", "readable"))
    assert "getelementptr" in exact and "getelementptr" not in readable
    assert "x[i] = " in readable and "loop: for " in readable
    found = json.loads(show(record, "code", form="readable", as_json=True))[0]
    assert found["readable"]["llvm_ir"]["ends"][-1] == len(
        found["artefacts"][0]["text"].splitlines()
    )
    exact, readable = (show(record, "cfg", form=form) for form in ("drawing", "readable"))
    assert " = mul $" in exact and " = mul $" not in readable and " * " in readable


async def test_one_key_switches_the_form_of_code_and_keeps_the_line(record):
    async with studio(record, (160, 50)) as (app, pilot):
        await press(pilot, "enter")
        app.select(tab="code", artefact=0)
        app.screen.action_show_tab("code")
        await pilot.pause()
        pane = app.screen.shown
        raw = pane.lines
        load = next(i for i, x in enumerate(raw) if "getelementptr inbounds float" in x.copy)
        folded = next(i for i, x in enumerate(raw) if x.copy.startswith("declare"))
        for row, text in ((load, "x[i]"), (folded, "declarations")):
            pane.move(row)
            await pilot.pause()
            await press(pilot, "f")
            assert app.sel.readable and text in pane.current.copy
            assert "readable form" in "".join(x for x, _ in pane.header[0].spans)
            await press(pilot, "f")
            assert not app.sel.readable and pane.lines is raw
        assert pane.lines[pane.cursor].copy.startswith("declare") or pane.cursor <= folded
        # A search finds what is folded, and unfolds it.
        await press(pilot, "f")
        assert pane.search("attributes #0")
        assert app.sel.whole and "attributes #0" in pane.current.copy
        await press(pilot, "x")
        assert not app.sel.whole


async def test_one_key_switches_the_form_of_graphs(record):
    async with studio(record, (160, 50)) as (app, pilot):
        await press(pilot, "enter")
        app.screen.action_show_tab("cfg")
        await pilot.pause()
        await press(pilot, "x")
        pane = app.screen.shown
        at = next(i for i, x in enumerate(pane.lines) if " = mul " in (x.copy or ""))
        pane.move(at)
        await pilot.pause()
        await press(pilot, "f")
        text = "\n".join(x.copy or "" for x in pane.lines)
        assert " = mul " not in text and " * " in pane.current.copy


def test_graphs_have_the_lines_of_the_readable_form(record):
    for kernel in record.kernels:
        compiled = kernel.backends[0].compile
        for run in compiled.runs:
            old, new = (
                readable_of(compiled, compiled.snapshots[i], record.files)
                for i in (run.before, run.after)
            )
            exact = pass_graphs(compiled, run)
            found = readable_graphs(exact, old, new, compiled.origins)
            texts = [{op: text.strip() for op, text in zip(x.ids, x.lines, strict=True)}
                     for x in (old, new)]  # fmt: skip
            for graph, raw in zip(found, exact, strict=True):
                ops = {x.op for block in raw.blocks for x in block.lines}
                for block in graph.blocks:
                    for line in block.lines:
                        gone = line.kind in ("removed", "left")
                        assert line.op in ops and line.text == texts[not gone][line.op]
                        assert not line.before or line.before in texts[0].values()
                        assert line.before != line.text
                kept = [x.op for block in graph.blocks for x in block.lines
                        if x.kind not in ("removed", "left")]  # fmt: skip
                assert sorted(kept) == sorted(
                    x.op for block in raw.blocks for x in block.lines
                    if x.kind not in ("removed", "left") and x.op in texts[1]
                )  # fmt: skip


def test_reports_show_the_finished_ir_in_both_forms(record):
    kernel = record.kernels[0]
    pack = Pack("z")
    page = Page(kernel, pack, record)
    first, second = (
        find("ir").html_of_compile(kernel, x.backend, kernel.backends[0].compile, page)
        for x in kernel.backends
    )
    assert "The IR after all passes" in first and "one operation a line" in first
    assert "as for cpu" in second
    packed = re.search(r">([^<]+)</script>", pack.block())[1]
    bodies = dict(json.loads(zlib.decompress(base64.b64decode(packed))))
    text = html.unescape(re.sub(r"<[^>]+>", "", bodies[0]))
    assert "&x[i]" in text and " = mul $" not in text
    assert "global_store" in bodies[1]
    text = "\n".join(find("ir").markdown[32](kernel))
    assert "&x[i]" in text and "global_store" in text
