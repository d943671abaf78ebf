"""Every panel of the registry, and panels of other distributions."""

import importlib.metadata
import json
import sys
import types

import pytest
from qd_studio.app import cli, panels, report
from qd_studio.app.core.lines import Line
from qd_studio.app.core.state import Selection, settle
from qd_studio.app.panels import Asked, Look, NothingToShow, Panel, Shown, Tab
from qd_studio.app.show import show
from qd_studio.app.tui.commands import all_commands, by_scope
from qd_studio.engine.inspect.store import save

from tests.app import devices, gradients, records, repeated
from tests.app.tui.pilot import press, studio, text_of

RECORDS = {
    "basic": records.make_record(),
    "devices": devices.with_cuda(),
    "gradients": gradients.make_record(),
    "repeated tasks": repeated.make_record(),
}


@pytest.fixture
def plugins(monkeypatch):
    """Installs (name, value) as entry points; the panels are found again, also afterwards."""

    def forget():
        panels.panels.cache_clear()
        all_commands.cache_clear()

    def install(*entries, **modules):
        for name, content in modules.items():
            module = types.ModuleType(name)
            vars(module).update(content)
            monkeypatch.setitem(sys.modules, name, module)
        found = importlib.metadata.EntryPoints(
            importlib.metadata.EntryPoint(name, value, "qd_studio.panels")
            for name, value in entries
        )
        monkeypatch.setattr(
            importlib.metadata, "entry_points", lambda *, group: found.select(group=group)
        )
        forget()

    yield install
    forget()


def theirs(**more):
    """A panel as another distribution would make it."""
    shown = Shown([Line((("two notes", ""),))])
    members = {
        "id": "their-notes",
        "help": "Notes of others.",
        "order": 900,
        "tab": Tab(draw=lambda look: shown),
        "text": lambda asked: [("their-notes", shown.lines)],
        "json": lambda asked: [{"their-notes": 2}],
        "markdown": {80: lambda kernel: ["two notes in Markdown", ""]},
        "html": {80: lambda kernel, page: "<p>two notes in HTML</p>"},
    }
    return Panel(**{**members, **more})


async def last_tab(record):
    """What the last tab of a kernel shows."""
    async with studio(record) as (app, pilot):
        await press(pilot, "enter", "shift+tab")
        return text_of(app)


def test_names_and_places_are_unique():
    found = panels.panels()
    names = [name for panel in found for name in (panel.id, *panel.old_names)]
    assert len(set(names)) == len(names)
    orders = [panel.order for panel in found]
    assert orders == sorted(set(orders))
    assert all(panel.help.endswith(".") for panel in found)
    assert {"source", "log"} <= {panel.id for panel in found}


def test_every_tab_has_a_number_key_and_is_found_by_its_old_name():
    keys = {c.id: c.keys for c in by_scope("kernel") if c.id.startswith("tab-")}
    assert keys == {
        f"tab-{p.id}": f"{'alt+' if i > 10 else ''}{i % 10}" for i, p in enumerate(panels.tabs(), 1)
    }
    assert panels.find("adstack") is panels.find("autodiff")
    with pytest.raises(KeyError):
        panels.find("no such panel")


@pytest.mark.parametrize("name", RECORDS)
@pytest.mark.parametrize("panel", panels.panels(), ids=lambda panel: panel.id)
def test_every_panel_draws_every_record(panel, name):
    record = RECORDS[name]
    sel = settle(record, Selection())
    assert isinstance(show(record, panel.id), str)
    assert show(record, panel.id, as_json=True).startswith(("[", "{"))
    for kernel in record.kernels:
        look = Look(record, kernel, sel, 80, 24, 80)
        assert panel.tab is None or panel.tab.state(look) in ("", "pending", "stale")
        if panel.tab is not None and panel.tab.draw is not None:
            shown = panel.tab.draw(look)
            assert len(shown.lines)
            changes = panel.tab.moved(look, shown.lines[0]) if panel.tab.moved else {}
            assert set(changes) <= set(Selection.__slots__)
        for make in panel.markdown.values():
            assert all(isinstance(line, str) for line in make(kernel))


async def test_a_panel_of_another_distribution_is_everywhere(plugins):
    plugins(("their-notes", "their_panels:PANEL"), their_panels={"PANEL": theirs()})
    record = RECORDS["basic"]
    assert [panel.id for panel in panels.tabs()][-1] == "their-notes"
    assert show(record, "their-notes") == "== their-notes\ntwo notes\n"
    assert '"their-notes": 2' in show(record, "their-notes", as_json=True)
    assert "two notes in Markdown" in report.render(record, ".md")
    assert "<p>two notes in HTML</p>" in report.render(record, ".html")
    assert "two notes" in await last_tab(record)


NOT_USABLE = {
    "fails to import": (("their-notes", "no_such_module:PANEL"), "ModuleNotFoundError"),
    "has no such member": (("their-notes", "their_panels:NONE"), "AttributeError"),
    "is no panel": (("their-notes", "their_panels:OTHER"), "is no Panel with this id"),
    "has another id": (("other", "their_panels:PANEL"), "is no Panel with this id"),
    "takes a name that is taken": (("source", "their_panels:PANEL"), "there is a panel of this"),
    "takes the name of a widget": (("errors", "their_panels:PANEL"), "there is a panel of this"),
    "has a name for no key": (("My Panel", "their_panels:PANEL"), "use letters, digits"),
}


@pytest.mark.parametrize("why", NOT_USABLE)
async def test_a_panel_that_cannot_be_used_says_why(plugins, why, tmp_path, capsys):
    entry, words = NOT_USABLE[why]
    plugins(entry, their_panels={"PANEL": theirs(), "OTHER": 1})
    record = RECORDS["basic"]
    panel = panels.panels()[-1]
    assert panel.fault.startswith(f"panel {entry[0]!r}") and words in panel.fault
    with pytest.raises(NothingToShow, match=entry[0]):
        show(record, panel.id)
    save(record, tmp_path / "a.qds")
    assert cli.main(["show", str(tmp_path / "a.qds"), "--panel", panel.id]) == 3
    assert words in capsys.readouterr().err
    assert words in report.render(record, ".md").replace("\\", "")
    assert report.render(record, ".html").count('<p class="bad">panel ') == 1
    async with studio(record) as (app, pilot):
        await press(pilot, "enter", "shift+tab")  # to the last tab
        assert entry[0] in text_of(app)
        await press(pilot, "1")
        assert app.sel.tab == "source"


async def test_an_exception_in_a_panel_costs_that_panel_only(plugins):
    def fail(*args):
        raise RuntimeError("not today")

    broken = theirs(
        text=fail, json=fail, markdown={80: fail}, html={80: fail}, html_of_compile=fail,
        tab=Tab(
            draw=fail, state=fail, moved=fail, step=fail, opened=fail, files=fail,
            keys=(("no-such-command", "zap"),),
        ),
    )  # fmt: skip
    plugins(("their-notes", "their_panels:PANEL"), their_panels={"PANEL": broken})
    record = RECORDS["basic"]
    wanted = "panel 'their-notes' failed: RuntimeError: not today"
    for as_json in (False, True):
        with pytest.raises(NothingToShow, match=wanted):
            show(record, "their-notes", as_json=as_json)
    assert wanted in report.render(record, ".md").replace("\\", "")
    assert "RuntimeError: not today" in report.render(record, ".html")
    assert wanted in await last_tab(record)


async def test_a_panel_that_returns_something_else_costs_that_panel_only(plugins):
    broken = theirs(
        text=lambda asked: [("their-notes", (1 / 0 for _ in "x"))],
        json=lambda asked: [object()],
        markdown={80: lambda kernel: [None]},
        html={80: lambda kernel, page: None},
        tab=Tab(draw=lambda look: ["a line"], state=lambda look: "unheard"),
    )
    plugins(("their-notes", "their_panels:PANEL"), their_panels={"PANEL": broken})
    record = RECORDS["basic"]
    for as_json in (False, True):
        with pytest.raises(NothingToShow, match="panel 'their-notes' failed: "):
            show(record, "their-notes", as_json=as_json)
    for suffix in (".md", ".html"):
        assert "TypeError: it returns NoneType, not text" in report.render(record, suffix)
    assert "panel 'their-notes' failed: " in await last_tab(record)


def test_parts_of_a_record_can_be_the_json_of_a_panel(plugins):
    mine = theirs(json=lambda asked: asked.kernels())
    plugins(("their-notes", "their_panels:PANEL"), their_panels={"PANEL": mine})
    record = RECORDS["basic"]
    found = json.loads(show(record, "their-notes", as_json=True))
    assert [kernel["name"] for kernel in found] == [kernel.name for kernel in record.kernels]


def test_a_panel_whose_import_exits_or_prints_costs_that_panel_only(plugins, monkeypatch, capsys):
    def leave(entry):
        print("hello")
        sys.exit(5)

    plugins(("their-notes", "their_panels:PANEL"))
    monkeypatch.setattr(importlib.metadata.EntryPoint, "load", leave)
    panel = next(panel for panel in panels.panels() if panel.id == "their-notes")
    assert "cannot be imported: SystemExit: 5" in panel.fault
    assert capsys.readouterr().out == ""


async def test_a_widget_that_cannot_be_made_says_why(plugins):
    broken = theirs(tab=Tab(pane="no_such_module:Pane"))
    plugins(("their-notes", "their_panels:PANEL"), their_panels={"PANEL": broken})
    shown = await last_tab(RECORDS["basic"])
    assert "no_such_module:Pane cannot be used: ModuleNotFoundError" in shown


def test_what_a_panel_is_asked_for_is_checked():
    asked = Asked(RECORDS["basic"], "missing", None, 80)
    with pytest.raises(NothingToShow, match="there is no kernel 'missing'"):
        asked.kernels()
