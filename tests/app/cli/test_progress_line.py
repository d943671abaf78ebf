"""The line on standard error that says how far a command is."""

import io
import os

from qd_studio.app import progress, streams
from qd_studio.app.worker.events import Progress


class Terminal(io.StringIO):
    """Keeps what is written to it."""

    encoding = "utf-8"

    def isatty(self):
        return True

    def screen(self):
        """Its lines as a person sees them."""
        out = []
        for line in self.getvalue().split("\n"):
            shown = ""
            for part in line.split("\r"):
                shown = part + shown[len(part) :]
            out.append(shown.rstrip())
        return out


def drawn(monkeypatch):
    """Standard error as a terminal of 40 columns."""
    made = Terminal()
    monkeypatch.setattr("sys.stderr", made)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("shutil.get_terminal_size", lambda: os.terminal_size((40, 24)))
    return made


def test_messages_take_the_place_of_the_line(monkeypatch):
    terminal = drawn(monkeypatch)
    streams.status(["compiling a kernel with a long name, about 12 s left", "about 12 s left"])
    assert terminal.screen() == ["about 12 s left"]
    streams.talk("k: cpu ok")
    assert terminal.screen() == ["k: cpu ok", ""]
    streams.status(["one"])
    streams.status(["x" * 50])
    assert terminal.screen()[1] == "x" * 39
    streams.status(["évil \x1b[2J"])
    streams.status(())
    assert terminal.screen() == ["k: cpu ok", ""] and "\x1b" not in terminal.getvalue()
    before = terminal.getvalue()
    streams.status(())
    assert terminal.getvalue() == before


def test_only_long_work_shows_a_line_and_it_is_removed(monkeypatch):
    terminal = drawn(monkeypatch)
    now = [0.0]
    monkeypatch.setattr(progress.ProgressLine.__init__, "__defaults__", (lambda: now[0],))
    with progress.line() as line:
        line.heard(Progress("importing k.py", 0, 0))
        assert terminal.getvalue() == ""
        for now[0] in (1.0, 2.0, 3.0):
            line.counted("replaying k", int(now[0]), 9, "result")
        assert terminal.screen() == ["result 4 of 9, about 6 s left"]
    assert terminal.screen() == [""]


def test_elsewhere_there_is_a_line_every_half_minute(monkeypatch, capfd):
    now = [0.0]
    monkeypatch.setattr(progress.ProgressLine.__init__, "__defaults__", (lambda: now[0],))
    with progress.line() as line:
        for now[0] in range(70):
            line.heard(Progress(f"step {now[0]}", 0, 0))
    out, err = capfd.readouterr()
    assert out == "" and err == "... step 30\n... step 60\n"
