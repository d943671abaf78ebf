"""`qd-studio doctor --conformance`: the table, its JSON, and the exit codes."""

import json

import pytest
from qd_studio.app import cli
from qd_studio.app.conformance import process
from qd_studio.app.conformance.run import FAILED, Cell


def test_a_few_features_in_processes_of_their_own(capsys):
    words = ["doctor", "--conformance", "--backend", "interp,cpu", "--feature", "operators.shifts"]
    assert cli.main([*words, "--feature", "streams", "--json"]) == 0
    out, err = capsys.readouterr()
    value = json.loads(out)
    assert value["ok"]
    assert [b["name"] for b in value["backends"]] == ["interp", "cpu"]
    assert value["features"][0]["id"] == "operators.shifts"
    assert all(c["state"] == "ok" for f in value["features"] for c in f["cells"].values())
    assert "cpu: 4 features" in err


def test_options_reach_the_programs(capsys):
    words = ["doctor", "--conformance", "--backend", "cpu", "--feature", "checks.bounds"]
    assert cli.main([*words, "--config", "check_out_of_bound=0"]) == 1
    out = capsys.readouterr().out
    assert "FAILED on cpu: checks.bounds" in out and "cpu: 0 ok, 0 no, 1 failed" in out


def test_a_failure_is_shown_and_told_by_the_exit_code(capsys, monkeypatch):
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
