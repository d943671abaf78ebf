"""The dialogue in lines of text."""

import re
import subprocess
import sys

import pytest
from qd_studio.app.plain import Dialogue, _Stop
from qd_studio.app.tui.commands import all_commands
from qd_studio.app.worker import events as ev
from qd_studio.app.worker.protocol import Job

from tests.app.records import make_record
from tests.hygiene.tree import ROOT
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


class Client:
    """Takes what the dialogue asks for, and answers at once."""

    alive = True

    def __init__(self, dialogue, record):
        self.asked, self._dialogue, self._record = [], dialogue, record
        self.template = Job(id=1, files=("/nowhere/scale.py",))

    def __getattr__(self, name):
        def ask(*values):
            self.asked.append((name, *values))
            self._dialogue.heard(ev.RecordUpdated(self._record, True))

        return ask


def test_any_two_saves_and_backends_are_compared(dialogue):
    record = make_record()
    for each in (timed(100), timed(80, text="other"), record):
        dialogue.heard(ev.RecordUpdated(each, True))
    dialogue.client = Client(dialogue, record)
    listed = dialogue.ask("compare")
    assert "\n2  " in listed and "3  " in listed and "no revisions: " in listed
    assert "1 -> 2: differs" in dialogue.ask("compare 1 2")
    assert "code differs: llvm_ir" in dialogue.ask("compare 1 2")
    assert dialogue.ask("compare 3").startswith("3 -> 3: no change")
    old, new = [b.backend for b in record.kernels[0].backends][:2]
    assert f"{old} -> {new}" in dialogue.ask(f"compare {old} {new}")
    assert "no save, option or revision '9'" in dialogue.ask("compare 9")
    assert "there is no option 'fast_mat'" in dialogue.ask("compare fast_mat=0")


def test_what_keys_do_in_the_studio_words_do_here(dialogue):
    record = make_record()
    dialogue.heard(ev.RecordUpdated(record, True))
    dialogue.client = client = Client(dialogue, record)
    name = record.kernels[0].name
    dialogue.ask("cancel")
    dialogue.ask("measure")
    dialogue.ask(f"whatif {name} fast_math")
    assert [asked[0] for asked in client.asked] == ["cancel", "measure_peaks", "what_if"]
    assert client.asked[2][1][0].text == "fast_math"
    assert "name an assumption" in dialogue.ask(f"whatif {name}")
    assert "there is no kernel 'gone'" in dialogue.ask("bisect gone")
    assert (
        dialogue.ask("options")
        == "".join(f"{e.name}={e.value} ({e.origin})\n" for e in record.config)
        or record.files[0].config
    )
    # Of a graph a reader of lines gets the outline.
    assert "┌" not in dialogue.ask("show cfg") and "block 0" in dialogue.ask("show cfg")


def test_every_command_of_the_studio_is_a_word_or_has_a_reason():
    """`docs/studio.md` has the table of both."""
    page = (ROOT / "docs" / "studio.md").read_text(encoding="utf-8")
    table = page.partition("<!-- plain -->")[2].partition("<!-- end -->")[0]
    rows = [[cell.strip() for cell in row.split("|")[1:-1]] for row in table.splitlines()
            if row.startswith("| `")]  # fmt: skip
    named = [id.strip("` ") for row in rows for id in row[0].split(",")]
    assert len(named) == len(set(named))
    ids = {command.id for command in all_commands()}
    assert set(named) == ids, f"the table in docs/studio.md differs: {set(named) ^ ids}"
    known = set(Dialogue([])._commands)
    for row in rows:
        word = re.match(r"`(\w+)|no: |", row[1])
        assert word[1] in known if word[1] else word[0], row


@pytest.mark.slow
def test_commands_from_a_pipe_wait_for_the_results(path):
    done = subprocess.run(
        [sys.executable, "-m", "qd_studio.app.cli", "--plain", str(path), "--backend", "cpu"],
        input="list\nset fast_math=0\nlist\n", capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "fast_math True -> False" in done.stdout and "\x1b" not in done.stdout
