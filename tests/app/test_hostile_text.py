"""Nothing that somebody put into a file, a name or a message steers a terminal or a page."""

import json
import os
import re
import subprocess
import sys

import pytest
from qd_studio.app import cli
from qd_studio.app.core.visible import visible, visible_json, visible_line
from qd_studio.app.report import render
from qd_studio.engine import inspect

from tests.app import damage, pages
from tests.app.tui.terminal import Terminal

# A window title, a cleared screen by one C1 character, a hidden text, overrides of the direction.
NASTY = "\x1b]0;HOST\x07\x9b2J\x08\rx\u202e\u2066\u200b\x7f[bold]b[/bold][@click=app.quit]<i>"
# What may not come out; of a line end and a tab, only those that are the studio's own do.
RAW = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]"
)
# Words that panels go by.
KEPT = {"state", "status", "by", "mode"}


def poisoned(data):
    """A saved record with ``NASTY`` at the end of every text in it, so that all still refers."""

    def change(value, name=""):
        if isinstance(value, dict):
            return {key: change(part, key) for key, part in value.items()}
        if isinstance(value, list):
            return [change(part, name) for part in value]
        return value + NASTY if isinstance(value, str) and name not in KEPT else value

    value = json.loads(data)
    # Of a link the last part is a word.
    links = [b.get("autodiff") for k in value["kernels"] for b in k["backends"]]
    words = [link[2] for found in links if found for link in found["links"]]
    value = change(value)
    for found in (b.get("autodiff") for k in value["kernels"] for b in k["backends"]):
        for link in found["links"] if found else ():
            link[2] = words.pop(0)
    return json.dumps(value).encode()


@pytest.mark.parametrize("number", range(len(damage.healthy())))
def test_no_report_or_panel_of_a_hostile_session_has_a_control_in_it(tmp_path, capsys, number):
    path = tmp_path / f"s{NASTY.replace('/', '')}.json"
    path.write_bytes(poisoned(damage.healthy()[number]))
    record = inspect.load(path)
    page = render(record, ".html")
    for text in (render(record, ".md"), render(record, ".json"), page, pages.unpacked(record)):
        assert RAW.findall(text) == []
    assert "<i>" not in re.sub(r"<script.*?</script>", "", pages.unpacked(record), flags=re.S)
    for panel in damage.show_panels():
        for more in ([], ["--json"]):
            cli.main(["show", str(path), "--panel", panel, *more])
            out, talk = capsys.readouterr()
            assert RAW.findall(out + talk) == [], panel
            assert "HOST" in out + talk or panel in ("cfg", "adstack")
            if more:
                json.loads(out)
    cli.main(["open", str(path)])
    assert RAW.findall("".join(capsys.readouterr())) == []


HOSTILE = """\
import numpy as np
from qd_studio import engine as qd

NASTY = "\\x1b]0;HOST\\x07\\x9b2J\\x08\\rx\\u202e\\u2066\\u200b\\x7f[bold]\\udc80\\n"
print(NASTY)


def scale(x: qd.types.ndarray(dtype=qd.f32, ndim=1)):
    for i in range(x.shape[0]):
        x[i] = x[i] * 2.0


scale.__doc__ = NASTY
scale = qd.kernel(scale)


@scale.workload(n=[64])
def ones(n):
    return (np.ones(n, np.float32),)


@scale.check
def wrong(before, after, result):
    raise ValueError(NASTY)


raise RuntimeError(NASTY)
"""


def program(*words, **more):
    """Run the program; (exit code, what it printed, what it said), decoded as it is."""
    environment = os.environ | more
    done = subprocess.run(
        [sys.executable, "-m", "qd_studio.app.cli", *words], stdin=subprocess.DEVNULL,
        capture_output=True, timeout=300, env=environment,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("raising", [True, False])
def test_a_hostile_file_prints_nothing_raw(tmp_path, raising):
    path = tmp_path / "k\x1b[31m\n\u202eFAILED\x9b.py"
    text = HOSTILE if raising else HOSTILE.replace("raise RuntimeError(NASTY)\n", "")
    path.write_text(text, encoding="utf-8")
    # A stream that cannot say what a file is called must not be an end of the program either.
    status, out, talk = program(
        "--report",
        "--backend",
        "cpu",
        str(path),
        PYTHONIOENCODING="latin-1" if raising else "utf-8",
    )
    encoding = "latin-1" if raising else "utf-8"
    assert status == 1
    assert b"Traceback" not in talk.replace(b"Traceback (most recent call last):\n  File", b"")
    assert RAW.findall(out.decode(encoding) + talk.decode(encoding)) == []
    assert b"HOST" in out and b"HOST" in talk
    failed = [line for line in talk.decode(encoding).splitlines() if line.startswith("FAILED")]
    assert failed and all("k" in line and "HOST" in line for line in failed), talk


@pytest.mark.parametrize(
    "words",
    [
        ["--report", "k.py", "--config", f"{NASTY}=1"],
        ["--report", "k.py", "--backend", NASTY],
        ["--report", "k.py", "--fail-on", NASTY],
        ["--report", "k.py", "--out", f"{NASTY}.txt"],
        ["--report", "k.py", "--baseline", NASTY],
        ["open", NASTY],
        ["show", f"{NASTY}.json", "--panel", "ir"],
        ["show", "k.py", "--panel", NASTY],
        [f"--{NASTY}"],
        ["open", "caf\udce9.qds"],
        ["show", "caf\udce9.py", "--panel", "ir"],
        ["caf\udce9.py"],
        ["--report", "fol\udce9der/caf.py"],
        ["cache", "show", NASTY],
        ["doctor", "--conformance", "--feature", NASTY],
    ],
)
def test_arguments_are_not_printed_raw(capsys, words):
    assert cli.main(words) in (2, 3)
    out, talk = capsys.readouterr()
    assert RAW.findall(out + talk) == []
    assert talk and "Traceback" not in talk


def test_the_studio_shows_hostile_text_and_is_not_steered_by_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a key saves the session
    path = tmp_path / "s.qds"
    path.write_bytes(poisoned(damage.healthy()[1]))
    words = ["-c", "import sys; from qd_studio.app.cli import main; sys.exit(main())", "open"]
    (tmp_path / "qd-studio").mkdir()
    (tmp_path / "qd-studio" / "keymap.toml").write_text('"a\\u001b]0;HOST\\u0007[/bold]" = "x"\n')
    with Terminal([*words, str(path)], XDG_CONFIG_HOME=str(tmp_path)) as t:
        t.shows("HOST", "unknown command")
        t.press("l")
        t.settle()
        t.press("\x1b")
        t.settle()
        t.press("\r")
        t.shows("1 source")
        for key in ("2", "]", "s", "3", "4", "5", "6", "7", "c", "\r", "?", "\x1b"):
            t.press(key)
            t.settle(0.1)
        t.press("\x03q")
        t.settle()
        painted = t.output
        for raw in (b"\x1b]0;HOST", b"HOST\x07", b"\xc2\x9b", b"\xe2\x80\xae", b"\xe2\x81\xa6"):
            assert raw not in painted
        assert b"]0;HOST" in painted and b"[bold]b[/bold][@click" in painted


def test_what_is_exported_stays_in_its_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    from qd_studio.app.tui.actions import export_name

    for kernel in ("f:../../x", "f:/etc/x", "f:..", "f:a\x1b\nb", "f:" + "x" * 999):
        name = export_name(kernel, "session", "diff")
        assert os.path.dirname(name) == "" and not name.startswith(".") and len(name) < 120
        assert RAW.findall(name) == []
    assert export_name("f.py:Tank.step", "session", "ir") == "Tank.step-ir"
    assert export_name("", "session", "ir") == "session-ir"


def test_visible_text_keeps_its_width_and_json_its_meaning():
    every = "".join(map(chr, (*range(0x250), *range(0x2000, 0x2070), 0xD800, 0xFEFF, 0xE0041)))
    line = visible_line(every)
    assert len(line) == len(every) and RAW.findall(line) == [] and "\n" not in line
    assert visible("a\tb\nc\x1b") == "a\tb\nc\u241b"
    text = visible_json(json.dumps([every], ensure_ascii=False))
    assert RAW.findall(text) == [] and json.loads(text) == [every]
    assert visible_line("ärger ≠ ✓ 日本") == "ärger ≠ ✓ 日本"
