"""The studio as a person uses it: the real program, a real file, a pseudo-terminal."""

import os
import re
import signal
import subprocess
import sys

import pytest
from qd_studio.app.tui.commands import all_commands

from tests.app.tui.terminal import Terminal

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs a pty")

KERNEL = """\
import numpy as np
from qd_studio import engine as qd


@qd.kernel
def scale(x: qd.types.NDArray[qd.f32, 1], a: qd.f32):
    for i in range(x.shape[0]):
        s = a * FACTOR
        for j in range(3):
            s = s + a * a
        x[i] = x[i] * s


@scale.workload(n=[8])
def arguments(n):
    return np.ones(n, np.float32), 0.5
"""
STUDIO = ["-c", "import sys; from qd_studio.app.cli import main; sys.exit(main())"]


def save(path, factor):
    """As editors do: write another file, put it in the place of the old one."""
    new = path.with_suffix(".new")
    new.write_text(KERNEL.replace("FACTOR", factor))
    os.replace(new, path)


def title(screen: str) -> str:
    """The title of the diff: the second pane's first line."""
    return screen.splitlines()[2][54:].strip(" │")


def test_open_walk_edit_break_mend_quit(tmp_path):
    path = tmp_path / "kernels.py"
    save(path, "3.25")
    with Terminal([*STUDIO, str(path)], XDG_CONFIG_HOME=str(tmp_path)) as t:
        t.shows("scale", "ready", "exact")
        t.press("\r")
        t.shows("1 source", "x[i] = x[i] * s")
        t.press("2")
        t.shows("simplify_I", "offload")
        seen = [title(t.settle())]
        while "lower_access" not in seen[-1]:
            t.press("]")
            seen.append(t.changed(title, seen[-1]))
            assert seen[-1] != seen[-2]
        names = {line.split()[1] for line in seen}
        assert len(seen) > 5
        assert {"extract_constant", "offload"} <= names

        # Back to the first pass, all lines: the constant is there, and changes with the file.
        t.press("[" * len(seen) + "x")
        t.wait(lambda text: "3.25" in text and title(text) == seen[0])
        save(path, "7.125")
        t.wait(lambda text: "7.125" in text and "3.25" not in text)
        t.shows("ready")
        first = seen[0].split()[1]
        assert title(t.settle()).split()[1] == first

        path.write_text(KERNEL.replace("FACTOR", "7.125 +"))
        t.shows("SyntaxError", "s = a * 7.125 +", "stale", "import")
        assert f"● {first}" in t.screen.text
        save(path, "9.5")
        t.wait(lambda text: "9.5" in text and "SyntaxError" not in text and "stale" not in text)

        t.press("q")
        assert t.end() == 0
        assert t.clean() == []


@pytest.fixture
def record_path(tmp_path):
    from qd_studio.engine import inspect

    from tests.app.records import make_record

    path = tmp_path / "saved.qds"
    inspect.save(make_record(), path)
    return str(path)


def opened(record_path, tmp_path, *more, **env):
    arguments = [*STUDIO, "open", record_path, *more]
    return Terminal(arguments, XDG_CONFIG_HOME=str(tmp_path), **env)


def test_ctrl_z_gives_the_terminal_back_and_fg_takes_it_again(record_path, tmp_path):
    with opened(record_path, tmp_path) as t:
        t.shows("scale")
        t.press("\x1a")
        assert t.stopped()
        t.settle()
        assert t.clean() == []
        t.output = b""
        os.kill(t.pid, signal.SIGCONT)
        # Written once keys are read raw again: one pressed before that would arrive as another.
        t.wait(lambda _: b"\x1b[?2004h" in t.output)
        t.press("\r")
        t.shows("1 source")
        t.press("q")
        assert t.end() == 0


@pytest.mark.sampled(3)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_politely(record_path, tmp_path, number):
    with opened(record_path, tmp_path) as t:
        t.shows("scale", "quit")
        t.settle()
        os.kill(t.pid, number)
        assert t.end() == 128 + number
        assert t.clean() == []


ELSEWHERE = """
import os, sys
os.dup2(os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT), 2)
from qd_studio.app.cli import main
sys.exit(main(["open", sys.argv[1]]))
"""


def test_the_screen_is_not_drawn_into_a_log_of_errors(record_path, tmp_path):
    log = tmp_path / "log"
    with Terminal(["-c", ELSEWHERE, record_path, str(log)], XDG_CONFIG_HOME=str(tmp_path)) as t:
        t.shows("scale", "quit")
        t.press("q")
        assert t.end() == 0
        assert t.clean() == []
    assert log.read_text() == ""


CRASH = """
import sys
from qd_studio.app.tui.screens.kernel import KernelScreen
from qd_studio.app.cli import main

def fall_over(self):
    raise ZeroDivisionError("the studio itself is at fault")

KernelScreen.paint = fall_over
sys.exit(main(["open", sys.argv[1]]))
"""


def test_a_crash_of_the_app_gives_the_terminal_back(record_path, tmp_path):
    with Terminal(["-c", CRASH, record_path], XDG_CONFIG_HOME=str(tmp_path)) as t:
        t.shows("scale")
        t.press("\r")
        assert t.end() == 1
        assert b"the studio itself is at fault" in t.output.rpartition(b"\x1b[?1049l")[2]
        assert t.clean() == []


@pytest.mark.slow
def test_without_colour_no_colour_is_sent(record_path, tmp_path):
    for more, env in (((), {"NO_COLOR": "1"}), (("--no-color",), {})):
        with opened(record_path, tmp_path, *more, **env) as t:
            t.shows("scale")
            t.press("\r")
            t.shows("1 source")
            t.press("2?")
            t.shows("Everywhere")
            t.press("q")
            assert t.end() == 0
            codes = set()
            for match in re.finditer(rb"\x1b\[([0-9;:]*)m", t.output):
                codes |= {int(c or 0) for c in re.split(rb"[;:]", match[1])}
            # Reset, bold, dim, italic, underline, reverse, the terminal's own two colours.
            assert codes <= {0, 1, 2, 3, 4, 7, 9, 39, 49}
            assert {1, 7} <= codes


def walk(t):
    """Every tab, and what is drawn over it."""
    t.press("\r")
    t.shows("1 source")
    for key in "23456172oct?\x1b/":
        t.press(key)
        t.settle(0.1)


@pytest.mark.slow
def test_a_locale_without_utf_8_gets_ascii_and_nothing_else(record_path, tmp_path):
    for locale in ({"LC_ALL": "C"}, {"LC_ALL": "", "LC_CTYPE": "", "LANG": "de_DE.ISO-8859-1"}):
        with opened(record_path, tmp_path, **locale) as t:
            t.shows("scale", "ok max")
            walk(t)
            t.press("\x1b\x1bq")
            t.settle()
            assert t.output.isascii(), re.findall(rb"[\x80-\xff]+", t.output)


@pytest.mark.slow
def test_a_terminal_of_few_colours_gets_its_own_colours(record_path, tmp_path):
    few = {"TERM": "xterm", "COLORTERM": ""}
    with opened(record_path, tmp_path, **few) as t:
        t.shows("scale")
        walk(t)
        assert not re.search(rb"[34]8;[25];", t.output)
        assert re.search(rb"\x1b\[(?:\d+;)*3[1-6][;m]", t.output)
    with opened(record_path, tmp_path, "--theme", "dark", **few) as t:
        t.shows("scale")
        assert re.search(rb"\x1b\[(?:\d+;)*4[0-7][;m]", t.output)  # a ground of its own
    with opened(record_path, tmp_path) as t:
        t.shows("scale")
        assert re.search(rb"[34]8;2;", t.output)


COLOURS = """
import os
from qd_studio.app.tui.run import few_colors
for environment in ENVIRONMENTS:
    if not os.fork():
        os._exit(few_colors(environment))
    print(bool(os.wait()[1]))
"""


def test_how_many_colours_there_are_is_read_from_the_environment():
    # In processes of their own: curses reads the description of the first terminal only.
    few = [
        ({"TERM": "xterm-256color"}, False),
        ({"TERM": "xterm", "COLORTERM": "truecolor"}, False),
        ({"TERM": "xterm-direct"}, False),
        ({"TERM": "no-such-terminal"}, False),
        ({}, False),
        ({"TERM": "linux"}, True),
    ]
    code = COLOURS.replace("ENVIRONMENTS", repr([environment for environment, _ in few]))
    done = subprocess.run([sys.executable, "-uc", code], capture_output=True, text=True)
    assert done.stdout.split() == [str(expected) for _, expected in few], done.stderr


def test_too_little_room_is_reported_and_more_room_brings_it_back(record_path, tmp_path):
    with opened(record_path, tmp_path) as t:
        t.shows("scale", "quit")
        t.press("\r")
        t.shows("1 source")
        t.press("2")
        t.shows("alg_simp", "without effect")
        t.resized(50, 12)
        t.shows("needs 60 x 16", "has 50 x 12")
        t.resized(80, 24)
        t.shows("alg_simp", "without effect")
        assert "needs" not in t.screen.text
        t.press("q")
        assert t.end() == 0


def test_a_key_map_changes_keys_and_says_what_is_wrong_with_it(record_path, tmp_path):
    folder = tmp_path / "qd-studio"
    folder.mkdir()
    (folder / "keymap.toml").write_text('next-tab = "f6"\nquit = "X"\nnext-pas = "f7"\n')
    with opened(record_path, tmp_path) as t:
        t.shows("unknown command 'next-pas'; the nearest is 'next-pass'", "X quit")
        t.press("\r")
        t.shows("f6 tab")
        t.press("\x1b[17~")
        t.shows("alg_simp")
        t.press("q")
        t.settle()
        t.press("X")
        assert t.end() == 0


def test_another_key_map_is_chosen_by_name(record_path, tmp_path):
    with opened(record_path, tmp_path, "--keymap", "emacs") as t:
        t.settle()
        t.press("\x1bx")  # alt+x
        t.shows("Search for commands")
        t.press("\x1b")
        t.settle()
        t.press("\x13")  # ctrl+s
        t.shows("search, enter to go on")
        t.press("q\x07")  # ctrl+g leaves the search, in which q is text
        t.settle()
        t.press("q")
        assert t.end() == 0


def test_every_command_has_a_key_of_its_own_in_its_scope():
    owners = {}
    for command in all_commands():
        for key in command.keys.split(","):
            for scope in {command.scope, *(("list",) if command.scope == "kernel" else ())}:
                assert owners.setdefault((scope, key), command.id) == command.id
            if command.scope == "everywhere":
                clash = [c.id for c in all_commands() if key in c.keys.split(",") and c != command]
                assert not clash


def test_terminals_can_send_every_key_with_alt():
    """Terminals send escape and the key; parsers have other meanings for some of these."""
    from qd_studio.app.tui import driver
    from textual._xterm_parser import XTermParser

    keys = {key for command in all_commands() for key in command.keys.split(",")}
    keys = sorted(key for key in keys if re.fullmatch("alt[+].", key))
    assert driver and keys
    for key in keys:
        parser = XTermParser()
        found = [*parser.feed("\x1b" + key[-1]), *parser.feed("")]
        assert [event.key for event in found] == [key]
