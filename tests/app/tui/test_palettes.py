"""Themes of high contrast and for people who confuse red and green: both are measured."""

import ast
import itertools
from pathlib import Path

import pytest
from qd_studio.app import core, panels
from qd_studio.app.tui import run
from qd_studio.app.tui.app import StudioApp
from qd_studio.app.tui.palettes import PALETTES, THEMES
from qd_studio.app.tui.styles import COUNTERPARTS, SUCCESSORS, cursor_style, styles

from tests.app.tui import pilot as p
from tests.app.tui.pilot import press, studio

BY_NAME = {theme.name: theme for theme in THEMES}
LEAST = {"high-contrast": 7.0, "high-contrast-light": 7.0, "safe": 4.5, "safe-light": 4.5}
GROUNDS = ("add", "del", "move", "add-mark", "del-mark")
# Vision without red and without green: Machado, Oliveira and Fernandes 2009, severity 1.
BLIND = {
    "red": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216),
            (-0.003882, -0.048116, 1.051998)),
    "green": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413),
              (-0.011820, 0.042940, 0.968881)),
}  # fmt: skip
TOLD_APART = [
    *itertools.combinations(("ok", "bad", "warn"), 2),
    *itertools.combinations(("heat1", "heat2", "heat3"), 2),
]
GROUNDS_APART = [*itertools.combinations(("add", "del", "move"), 2), ("add-mark", "del-mark")]


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    return p.record(str(tmp_path_factory.mktemp("kernels")))


def linear(color):
    return [
        v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4
        for v in (part / 255 for part in color)
    ]


def luminance(color):
    return sum(w * v for w, v in zip((0.2126, 0.7152, 0.0722), linear(color), strict=True))


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def lab(rgb):
    """CIE Lab of linear RGB."""
    rows = ((0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722), (0.0193, 0.1192, 0.9505))
    white = (0.9505, 1.0, 1.089)
    x, y, z = (
        sum(a * b for a, b in zip(row, rgb, strict=True)) / w
        for row, w in zip(rows, white, strict=True)
    )
    fx, fy, fz = (v ** (1 / 3) if v > 0.008856 else 7.787 * v + 16 / 116 for v in (x, y, z))
    return 116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)


def distance(one, other, blind):
    """How different two colours look (CIE 1976): 2.3 can just be noticed."""

    def seen(color):
        rgb = linear(color)
        return lab([max(0.0, sum(a * b for a, b in zip(row, rgb, strict=True))) for row in blind])

    return sum((a - b) ** 2 for a, b in zip(seen(one), seen(other), strict=True)) ** 0.5


def rgb(text):
    return tuple(int(text[at : at + 2], 16) for at in (1, 3, 5))


def of(style, ground=False):
    color = style.bgcolor if ground else style.color
    return None if color is None else tuple(color.triplet)


@pytest.mark.parametrize("name", LEAST)
def test_every_text_can_be_read_on_every_ground(name):
    theme, found = BY_NAME[name], styles(name, BY_NAME[name].dark)
    texts = {key: of(style) for key, style in found.items() if of(style)}
    texts["text"] = rgb(theme.foreground)
    assert len(texts) > 15
    grounds = {"background": rgb(theme.background), "panel": rgb(theme.panel)}
    if name.startswith("high"):
        grounds |= {key: of(found[key], ground=True) for key in GROUNDS}
    low = {
        (text, ground): round(contrast(a, b), 2)
        for text, a in texts.items()
        for ground, b in grounds.items()
        if contrast(a, b) < LEAST[name]
    }
    assert low == {}
    cursor = cursor_style(name, theme.dark, True)
    if cursor.color is not None:
        assert contrast(of(cursor), of(cursor, ground=True)) >= LEAST[name]
    else:
        ground = of(cursor, ground=True)
        assert all(contrast(color, ground) >= 3 for color in texts.values())


@pytest.mark.parametrize("blind", BLIND)
@pytest.mark.parametrize("name", ["safe", "safe-light"])
def test_colours_with_a_meaning_differ_without_red_or_green(name, blind):
    found = styles(name, BY_NAME[name].dark)
    near = {
        (a, b): round(apart, 1)
        for pairs, ground, least in ((TOLD_APART, False, 18), (GROUNDS_APART, True, 9))
        for a, b in pairs
        if (apart := distance(of(found[a], ground), of(found[b], ground), BLIND[blind])) < least
    }
    assert near == {}


def test_the_measure_finds_red_and_green_equal():
    apart = distance((0xB0, 0x50, 0x20), (0x70, 0x70, 0x20), BLIND["green"])
    assert apart < 10 < 40 < distance((0xB0, 0x50, 0x20), (0x70, 0x70, 0x20), IDENTITY)


IDENTITY = ((1, 0, 0), (0, 1, 0), (0, 0, 1))


def test_palettes_style_what_the_others_style():
    usual = set(styles("textual-dark", True))
    assert all({"", *palette} == usual for palette in PALETTES.values())
    assert set(SUCCESSORS) == {"textual-dark", "textual-light", *PALETTES}
    assert all(COUNTERPARTS[COUNTERPARTS[name]] == name for name in PALETTES)
    assert set(PALETTES) <= set(run.THEMES)


async def test_a_key_goes_through_the_themes(record):
    async with studio(record) as (app, pilot):
        seen = []
        for key in "TtTtTT":
            await press(pilot, key)
            seen.append(app.theme)
        assert seen == [
            "high-contrast", "high-contrast-light", "safe-light", "safe", "textual-dark",
            "high-contrast",
        ]  # fmt: skip
        assert app.screen.styles.background.rgb == (0, 0, 0)
        app.theme = "nord"
        await press(pilot, "T")
        assert app.theme == "nord"


@pytest.mark.parametrize("name", LEAST)
def test_a_theme_is_chosen_on_the_command_line_and_not_without_colour(name, monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TEXTUAL_THEME", "")
    run.prepare(name, False)
    assert StudioApp([], None, None, theme=run.own_theme(name)).theme == name
    monkeypatch.setenv("NO_COLOR", "1")
    assert run.own_theme(name) == "" and run.own_theme("dark") == ""


def test_every_style_of_a_view_is_in_the_palettes():
    """A style that no palette has would end the studio when a line with it is drawn."""
    known, seen = {"", *styles("textual-dark", True)}, set()
    for path in (*Path(core.__path__[0]).rglob("*.py"), *Path(panels.__path__[0]).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            targets = getattr(node, "targets", [getattr(node, "target", None)])
            names = [t.id for t in targets if isinstance(t, ast.Name)]
            named = any(n.endswith(("STYLES", "VERDICTS")) for n in names)
            if named and isinstance(node.value, ast.Dict):
                values = [v.value for v in node.value.values if isinstance(v, ast.Constant)]
                assert set(values) <= known, f"{path}:{node.lineno}"
                seen.update(values)
    assert {"ok", "bad", "warn"} <= seen
