"""The dialogue in lines of text."""

import subprocess
import sys

import pytest
from qd_studio.app.plain import Dialogue, _Stop
from qd_studio.app.worker import events as ev

from tests.app.records import make_record
from tests.inspect.test_compare import timed


@pytest.fixture
def dialogue(capsys):
    made = Dialogue(["scale.py"])

    def ask(line):
        made.obey(line)
        return capsys.readouterr().out

    made.ask = ask
    return made


def test_a_look_and_a_save_are_reported_in_lines(dialogue, capsys):
    before, after = timed(100), timed(80, text="other")
    dialogue.heard(ev.Progress("importing scale.py", 0, 0))
    dialogue.heard(ev.Progress("compiling scale for cpu", 1, 9))
    assert capsys.readouterr().out == "... importing scale.py\n"  # not a line a second
    dialogue.heard(ev.RecordUpdated(before, True))
    first = capsys.readouterr().out
    assert first.startswith("scale: cpu ") and "ready: 1 kernel;" in first
    dialogue.heard(ev.RecordUpdated(after, True))
    assert "scale: cpu: launch 100 us -> 80.0 us (better)" in capsys.readouterr().out
    assert "code differs: llvm_ir" in dialogue.ask("changes scale")


def test_commands(dialogue, tmp_path, capsys):
    dialogue.heard(ev.RecordUpdated(make_record(), True))
    capsys.readouterr()
    assert "find TEXT" in dialogue.ask("help")
    assert dialogue.ask("list").startswith("scale: ")
    assert "passes" in dialogue.ask("show") and "== " in dialogue.ask("show passes scale")
    assert dialogue.ask("sh nothing").startswith("there is no panel 'nothing'")
    assert "there is no kernel 'gone'" in dialogue.ask("show passes gone")
    assert "line" in dialogue.ask("find x[i]") and dialogue.ask("find zzz") == "0 lines\n"
    assert "there is no command" in dialogue.ask("s")  # save, set, or show
    assert "there is no command 'dance'" in dialogue.ask("dance")
    assert "not understood" in dialogue.ask("find 'open")
    assert dialogue.ask("changes") == "nothing was saved yet\n"
    path = tmp_path / "a.qds"
    assert dialogue.ask(f"save {path}").startswith("saved ")
    assert "exists already" in dialogue.ask(f"save {path}")
    assert all(ord(c) < 128 for c in dialogue.ask("show launch"))
    with pytest.raises(_Stop):
        dialogue.obey("quit")


@pytest.mark.slow
def test_commands_from_a_pipe_wait_for_the_results(path):
    done = subprocess.run(
        [sys.executable, "-m", "qd_studio.app.cli", "--plain", str(path), "--backend", "cpu"],
        input="list\nset fast_math=0\nlist\n", capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "fast_math True -> False" in done.stdout and "\x1b" not in done.stdout
