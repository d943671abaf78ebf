"""Copying: what the terminal is sent, which tool is used, and the file that is always there."""

import base64
import os
import re
import stat

import pytest
from qd_studio.app.tui import clipboard

TEXT = "line one\n\tüber $1 = mul \x1b"


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.setattr(clipboard.tempfile, "gettempdir", lambda: str(tmp_path))
    for name in ("WAYLAND_DISPLAY", "DISPLAY", "SSH_TTY", "TMUX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def tool(folder, name, script):
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def test_the_terminal_gets_the_exact_bytes_also_through_tmux():
    plain = clipboard.osc52(TEXT, tmux=False)
    assert re.fullmatch("\x1b]52;c;([A-Za-z0-9+/=]*)\x07", plain)
    assert base64.b64decode(plain[7:-1]).decode() == TEXT
    wrapped = clipboard.osc52(TEXT, tmux=True)
    assert wrapped.startswith("\x1bPtmux;") and wrapped.endswith("\x1b\\")
    assert wrapped[7:-2].replace("\x1b\x1b", "\x1b") == plain


def test_without_a_tool_there_is_the_terminal_and_a_file(place):
    sent = []
    said = clipboard.copy(TEXT, sent.append)
    assert sent == [clipboard.osc52(TEXT, tmux=False)]
    (path,) = place.iterdir()
    assert said == f"copied to the terminal clipboard; also in {path}"
    assert path.read_text() == TEXT
    assert path.stat().st_mode & 0o077 == 0


def test_a_local_tool_is_used_unless_the_shell_is_remote(place, monkeypatch):
    monkeypatch.setenv("DISPLAY", ":0")
    tool(place, "xclip", f'while read -r l; do echo "$l" >> {place}/got; done')
    assert "clipboard (xclip)" in clipboard.copy("a\nb\n", lambda _: None)
    assert (place / "got").read_text() == "a\nb\n"
    monkeypatch.setenv("SSH_TTY", "/dev/pts/0")
    assert "terminal clipboard" in clipboard.copy("c\n", lambda _: None)
    assert (place / "got").read_text() == "a\nb\n"


def test_a_tool_that_fails_is_passed_over(place, monkeypatch):
    monkeypatch.setenv("DISPLAY", ":0")
    tool(place, "xclip", "exit 1")
    assert "terminal clipboard" in clipboard.copy("a", lambda _: None)


def test_no_room_for_the_file_is_no_reason_to_fail(place, monkeypatch):
    monkeypatch.setattr(clipboard.tempfile, "gettempdir", lambda: os.fspath(place / "nowhere"))
    assert clipboard.copy("a", lambda _: None) == "copied to the terminal clipboard"
