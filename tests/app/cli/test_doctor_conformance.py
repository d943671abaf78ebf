"""`qd-studio doctor --conformance`: the table, its JSON, and the exit codes."""

import io
import json

import pytest
from qd_studio.app import cli
from qd_studio.app.conformance import process
from qd_studio.app.conformance.progress import watching
from qd_studio.app.conformance.run import FAILED, OK, Cell
from qd_studio.app.conformance.table import Column


def test_a_few_features_in_processes_of_their_own(capsys):
    words = ["doctor", "--conformance", "--backend", "interp,cpu", "--feature", "operators.shifts"]
    assert cli.main([*words, "--feature", "streams", "--json"]) == 0
    out, err = capsys.readouterr()
    value = json.loads(out)
    assert value["ok"]
    assert [b["name"] for b in value["backends"]] == ["interp", "cpu"]
    assert value["features"][0]["id"] == "operators.shifts"
    assert all(c["state"] == "ok" for f in value["features"] for c in f["cells"].values())
    assert err == ""  # no terminal, no progress


COLUMNS = (Column("cpu"), Column("metal", "not here"), Column("interp"))
CELLS = [Cell("math.sin", "cpu", OK), Cell("math.[cos]", "cpu", FAILED, "result is 1")]


class Stream(io.StringIO):
    """Takes what is written, as a terminal or not."""

    def __init__(self, terminal):
        super().__init__()
        self.terminal = terminal

    def isatty(self):
        return self.terminal


def watched(stream, cells=CELLS):
    with watching(COLUMNS, 2, stream) as watch:
        watch("cpu", None)
        for cell in cells:
            watch("cpu", cell)
    return stream.getvalue()


def test_progress_is_shown_on_a_terminal_and_gone_in_the_end(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "90")
    text = watched(Stream(True))
    assert "cpu" in text and "interp" in text and "metal" not in text
    assert "2/2" in text and "1 failed  math.[cos]" in text and "0/2" in text
    assert "\x1b[2K" in text.rpartition("2/2")[2] and text.endswith("\x1b[2K")


def test_a_terminal_that_cannot_move_its_cursor_has_a_line_a_backend(monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    assert watched(Stream(True)) == "cpu: 2 features\n"


def test_without_a_terminal_there_is_no_progress():
    assert watched(Stream(False)) == ""


def test_options_reach_the_programs(capsys):
    words = ["doctor", "--conformance", "--backend", "cpu", "--feature", "checks.bounds"]
    assert cli.main([*words, "--config", "check_out_of_bound=0"]) == 1
    out = capsys.readouterr().out
    assert "FAILED on cpu: checks.bounds" in out and "cpu: 0 ok, 0 no, 1 failed" in out


def test_a_failure_is_shown_and_reported_by_the_exit_code(capsys, monkeypatch):
    def column(backend, wanted, options, limit_s):
        for f in wanted:
            yield Cell(f.id, backend, FAILED, "result is 1, expected 2")

    monkeypatch.setattr(process, "_column", column)
    assert cli.main(["doctor", "--conformance", "--backend", "cpu", "--feature", "math"]) == 1
    out = capsys.readouterr().out
    assert "math.sin_f32" in out and "result is 1, expected 2" in out


def test_a_backend_that_is_not_here_is_named_with_the_reason(capsys):
    assert cli.main(["doctor", "--conformance", "--backend", "metal", "--feature", "math"]) == 3
    out = capsys.readouterr().out
    assert out.startswith("metal: absent, ") and len(out.splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--conformance", "--backend", "nonsense"], "nonsense"),
        (["--conformance", "--backend", "cuda:sm_90"], "name the backend alone"),
        (["--conformance", "--feature", "nonsense"], "no conformance feature 'nonsense'"),
        (["--conformance", "--config", "nonsense=1"], "nonsense"),
        (["--backend", "cpu"], "go with --conformance"),
    ],
)
def test_wrong_words(words, text, capsys):
    assert cli.main(["doctor", *words]) == 2
    assert text in capsys.readouterr().err
