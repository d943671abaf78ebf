"""The user's editor at the line: the command, and the screen before and after it."""

import os
import signal

import pytest
from qd_studio.app.tui.editor import NoEditorError, editor_command
from qd_studio.engine import inspect

from tests.app.tui import pilot
from tests.app.tui.test_terminal import opened

EDITOR = """\
#!/bin/sh
echo "$@" > {folder}/given
printf 'THE EDITOR IS HERE\\n'
read line
echo "$line" > {folder}/typed
"""


@pytest.mark.parametrize(
    ("editor", "command"),
    [
        ("vim", "vim +7 /k/a.py"),
        ("/usr/bin/nvim -p", "/usr/bin/nvim -p +7 /k/a.py"),
        ("emacs -nw", "emacs -nw +7 /k/a.py"),
        ("nano", "nano +7 /k/a.py"),
        ("kak", "kak +7 /k/a.py"),
        ("micro", "micro +7 /k/a.py"),
        ("hx", "hx /k/a.py:7"),
        ("code --wait", "code --wait --goto /k/a.py:7"),
        ("unheard-of", "unheard-of /k/a.py"),
    ],
)
def test_editors_are_given_the_line_in_their_form(editor, command):
    words, known = editor_command({"EDITOR": editor, "VISUAL": " "}, "/k/a.py", 7)
    assert " ".join(words) == command
    assert known == (editor != "unheard-of")


def test_visual_comes_first_and_paths_are_one_word():
    both = {"VISUAL": "'my editor/vim'", "EDITOR": "nano"}
    assert editor_command(both, "/a b/{x}.py", 3)[0] == ["my editor/vim", "+3", "/a b/{x}.py"]
    assert os.path.isabs(editor_command(both, "-c.py", 3)[0][-1])


@pytest.mark.parametrize("editor", ["", "'vim"])
def test_without_an_editor_it_says_what_to_do(editor):
    with pytest.raises(NoEditorError, match="EDITOR"):
        editor_command({"EDITOR": editor}, "a.py", 1)


@pytest.fixture
def session(tmp_path):
    """A saved session whose source file exists, and an editor that waits for a line."""
    program = tmp_path / "vim"
    program.write_text(EDITOR.format(folder=tmp_path))
    program.chmod(0o755)
    path = tmp_path / "saved.qds"
    found = pilot.record.__wrapped__(str(tmp_path))
    inspect.save(found, path)
    return path, str(program)


def test_the_editor_has_the_terminal_and_then_the_screen_comes_back(session, tmp_path):
    path, program = session
    with opened(path, tmp_path, EDITOR=program, VISUAL="") as t:
        t.shows("scale", "quit")
        t.press("v")
        t.shows("THE EDITOR IS HERE")
        t.press("abc q\n")
        t.shows("scale", "statements", "quit")
        t.settle()
        assert (tmp_path / "typed").read_text() == "abc q\n"
        assert (tmp_path / "given").read_text() == f"+4 {tmp_path / 'scale.py'}\n"
        t.press("\r")
        t.shows("Multiply")
        t.settle()
        t.press("jj")
        t.settle()
        t.press("v")
        t.shows("THE EDITOR IS HERE")
        t.press("\n")
        t.shows("Multiply")
        t.settle()
        assert (tmp_path / "given").read_text().startswith("+6 ")
        t.press("q")
        assert t.end() == 0
        assert t.clean() == []


def test_a_signal_ends_the_studio_and_its_editor(session, tmp_path):
    path, program = session
    with opened(path, tmp_path, EDITOR=program, VISUAL="") as t:
        t.shows("scale", "quit")
        t.press("v")
        t.shows("THE EDITOR IS HERE")
        os.kill(t.pid, signal.SIGTERM)
        assert t.end() == 128 + signal.SIGTERM
        assert t.clean() == []


def test_what_prevents_editing_is_said(session, tmp_path):
    path, _ = session
    with opened(path, tmp_path, EDITOR="", VISUAL="") as t:
        t.shows("scale", "quit")
        t.press("v")
        t.shows("Set VISUAL or EDITOR")
        (tmp_path / "scale.py").unlink()
        t.press("v")
        t.shows("does not exist here")
        t.press("q")
        assert t.end() == 0
