"""The command line's contract: what goes to which stream, and the exit codes."""

import json
import os
import signal
import subprocess
import sys
import time
import zipfile

import jsonschema
import pytest
from qd_studio.app import cli
from qd_studio.engine import inspect

from tests.app.records import make_record
from tests.app.worker.live import SCALE

FAST = ["--backend", "cpu"]


def program(*words, cwd=None, **options):
    """Run the installed program; nothing of it is a terminal."""
    return subprocess.run(
        [sys.executable, "-m", "qd_studio.app.cli", *map(str, words)],
        capture_output=True, text=True, timeout=300, cwd=cwd, stdin=subprocess.DEVNULL, **options,
    )  # fmt: skip


@pytest.fixture
def command(capsys):
    """Runs the program in this process, which takes half as long."""

    def run(*words):
        status = cli.main([*map(str, words)])
        return subprocess.CompletedProcess(words, status, *capsys.readouterr())

    return run


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "old.json"
    inspect.save(make_record(), path)
    return path


def test_a_report_goes_to_stdout_and_talk_to_stderr(path):
    done = program("--report", *FAST, path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("# ")
    assert "scale" in done.stdout
    assert "kernels.py:scale: cpu ok" in done.stderr


def test_without_a_terminal_the_studio_is_a_report(command, path):
    done = command(*FAST, path)
    assert done.returncode == 0
    assert done.stdout.startswith("# ")
    assert "no terminal to draw on" in done.stderr


def test_outputs_by_suffix(command, path, tmp_path):
    outs = [tmp_path / name for name in ("r.json", "r.md", "r.html")]
    done = command("--report", *FAST, *(f"--out={out}" for out in outs), path)
    assert (done.returncode, done.stdout) == (0, "")
    assert all(out.read_text() for out in outs)
    data = json.loads(outs[0].read_text())
    jsonschema.validate(data, inspect.schema())
    assert data["command"][:2] == ["qd-studio", "--report"]
    assert data["kernels"][0]["backends"][0]["agreement"]["check"] == "passed"


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("", "no kernels"),
        ("def broken(:\n", "SyntaxError"),
        ("import os; os._exit(0)\n", "the worker process exited with status 0"),
        (SCALE.replace("* a", "* missing"), 'Name "missing" is not defined'),
        (SCALE.replace("== before", "!= before"), "check"),
    ],
)
def test_a_report_on_what_fails_exits_1_with_the_error(command, path, tmp_path, content, line):
    path.write_text(content)
    out = tmp_path / "r.md"
    done = command("--report", *FAST, "--out", out, path)
    assert done.returncode == 1
    assert line in done.stderr
    assert "FAILED" in done.stderr
    assert out.read_text()


@pytest.mark.slow
def test_rules_decide_the_exit_code(command, path, tmp_path):
    out = tmp_path / "old.json"
    assert command("--report", *FAST, "--out", out, path).returncode == 0
    same = ["--report", *FAST, "--out", tmp_path / "new.json", "--baseline", out]
    done = command(*same, "--fail-on", "ir.statements>+0%", "--fail-on", "agreement!=ok", path)
    assert done.returncode == 0, done.stderr
    done = command(*same, "--fail-on", "ir.statements>3", path)
    assert done.returncode == 1
    assert "FAILED rule ir.statements>3: kernels.py:scale" in done.stderr


@pytest.mark.slow
def test_formats_of_standard_output_and_requirements(command, path, tmp_path):
    place = tmp_path / "report.xml"
    words = ("--report", *FAST, "--require", "task.0.loads<=0@cfg in scale", "--format", "html")
    done = command(*words, "--out", "-", "--out", place, "--out", tmp_path / "page", path)
    assert done.returncode == 1 and done.stdout.startswith("<!doctype html>")
    assert "FAILED rule require task.0.loads<=0@cfg in scale: kernels.py:scale" in done.stderr
    assert "= global_load $" in done.stderr and f"{path}:" in done.stderr
    assert '<failure message="task.0.loads@cfg is 1"' in place.read_text()
    assert (tmp_path / "page").read_text().startswith("<!doctype html>")
    content = '[tool.qd-studio]\nrequire = ["task.0.loads<=1@cfg"]\n'
    (tmp_path / "pyproject.toml").write_text(content)
    assert command("--report", *FAST, "--format", "json", path).stdout.startswith("{")


@pytest.mark.slow
def test_a_sweep_measures_and_writes(command, path, tmp_path):
    page, option = tmp_path / "s.html", "fast_math=1,0"
    done = command("sweep", *FAST, "--option", option, "--out", page, path, "--json")
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)["sweeps"]
    assert [p["value"] for p in found["points"]] == [True, False] and found["rounds"] == 2
    assert found["line"].startswith("qd.init(fast_math=")
    assert "<svg" in page.read_text() and "<script" not in page.read_text()
    done = command("sweep", *FAST, "--option", option, "--kernel", "other", path)
    assert (done.returncode, "there is no kernel 'other'" in done.stderr) == (2, True)


@pytest.mark.slow
def test_the_gate_on_agreement_is_about_those_that_are_compared(command, path):
    done = command("--report", "--fail-on", "agreement!=ok", path)
    assert done.returncode == 0, done.stderr


def test_a_backend_that_is_not_here_is_a_matter_of_the_environment(command, path):
    done = command("--report", "--backend", "metal", path)
    assert done.returncode == 3
    assert "qd-studio: metal: " in done.stderr
    assert "scale" in done.stdout
    done = command("--report", "--backend", "metal,cpu", path)
    assert done.returncode == 0, done.stderr


def test_a_target_is_compiled_for_without_a_device(command, path, tmp_path, monkeypatch):
    monkeypatch.setenv("QD_ENABLE_CUDA", "0")
    out = tmp_path / "r.json"
    rule = "code.cuda:sm_75.ptx_bytes>1"
    done = command("--report", "--backend", "cuda:sm_75", "--out", out, "--fail-on", rule, path)
    assert done.returncode == 1
    assert "FAILED rule code.cuda:sm_75.ptx_bytes>1: kernels.py:scale" in done.stderr
    (backend,) = inspect.load(out).kernels[0].backends
    assert (backend.status, backend.backend) == ("ok", "cuda:sm_75")
    assert backend.unlaunched == "QD_ENABLE_CUDA=0 hides it" and not backend.launches
    done = command("show", "--backend", "cuda:sm_75", out, "--panel", "code")
    assert done.returncode == 0, done.stderr
    assert "-- ptx" in done.stdout and ".target sm_75" in done.stdout


def test_show_says_why_there_is_nothing_to_show(command, path):
    path.write_text(SCALE.replace("* a", "* missing"))
    done = command("show", *FAST, path, "--panel", "ir")
    assert done.returncode == 1
    assert "* missing" in done.stdout
    assert "^^^^^^" in done.stdout


def test_show_knows_passes_by_their_short_names(command, saved, path):
    done = command("show", *FAST, path, "--panel", "passes", "--pass", "licm")
    assert done.returncode == 0, done.stderr
    assert "loop_invariant_code_motion in simplify_I" in done.stdout


def test_show_prints_ir_in_either_form(command, saved):
    exact = command("show", saved, "--panel", "ir").stdout
    assert exact == command("show", saved, "--panel", "ir", "--form", "exact").stdout
    readable = command("show", saved, "--panel", "ir", "--form", "readable").stdout
    assert readable and len(readable.splitlines()) < len(exact.splitlines())
    done = command("show", saved, "--panel", "ir", "--form", "readable", "--json")
    found = json.loads(done.stdout)[0]
    shown = sorted(op for ops in found["readable"]["ops"] for op in ops)
    assert shown == sorted(id for id in found["snapshot"]["ids"] if id >= 0)
    done = command("show", saved, "--panel", "launch", "--form", "readable")
    assert (done.returncode, "--form is for ir, passes, code, track, cfg" in done.stderr) == (
        2,
        True,
    )


@pytest.mark.slow
def test_rules_of_pyproject_count(command, path, tmp_path):
    (tmp_path / "pyproject.toml").write_text('[tool.qd-studio]\nfail-on = ["ir.statements>3"]\n')
    assert command("--report", *FAST, path).returncode == 1
    (tmp_path / "pyproject.toml").write_text("[tool.qd-studio]\nfailon = []\n")
    done = command("--report", *FAST, path)
    assert (done.returncode, "has no 'failon'" in done.stderr) == (2, True)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"tool = 1", "must be a table"),
        (b"[tool]\nqd-studio = 3", "must be a table"),
        (b"x = '\xff'", "cannot read"),
        (b"x = " + b"[" * 5000, "nested too deeply"),
        (b"x = [", "cannot read"),
    ],
)
def test_rules_that_cannot_be_read_are_a_sentence(path, tmp_path, capsys, content, said):
    (tmp_path / "pyproject.toml").write_bytes(content)
    assert cli.main(["--report", str(path)]) == 2
    talk = capsys.readouterr().err
    assert said in talk and len(talk.splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        ([], 2, "no files given"),
        (["--nonsense"], 2, "--nonsense"),
        (["--report", "k.py", "--config", "fast_mth=1"], 2, 'did you mean "fast_math"'),
        (["--report", "k.py", "--config", "fast_math=maybe"], 2, "fast_math=maybe does not fit"),
        (["--report", "k.py", "--config", "fast_math"], 2, "write NAME=VALUE"),
        (["--report", "k.py", "--config", "arch=cpu"], 2, "--backend"),
        (["--report", "k.py", "--backend", "cpuu"], 2, "there is no backend 'cpuu'"),
        (["--report", "k.py", "--backend", "cuda:sm_91"], 2, "there is no CUDA target 'sm_91'"),
        (["--report", "k.py", "--backend", "cpu:sm_90"], 2, "cpu has no targets; others have: "),
        (["--report", "k.py", "--config", "cuda_arch=sm_9"], 2, 'did you mean "sm_90"'),
        (["--report", "k.py", "--out", "r.txt"], 2, "the suffix must be one of"),
        (["--report", "k.py", "--out", "-", "--out", "-"], 2, "standard output holds one report"),
        (["--report", "k.py", "--require", "task.loads<=4"], 2, "the number of a task"),
        (["--report", "k.py", "--require", "ir.loads<=+5%"], 2, "give --baseline FILE"),
        (["k.py", "--format", "xml"], 2, "--format"),
        (["sweep", "k.py"], 2, "give --option KEY or --block-dim"),
        (["sweep", "k.py", "--option", "fast_mth"], 2, 'did you mean "fast_math"'),
        (["sweep", "k.py", "--option", "unrolling_limit=a"], 2, "does not fit"),
        (["sweep", "k.py", "--option", "validate_autodiff"], 2, "has no effect here"),
        (["sweep", "k.py", "--block-dim", "--out", "a.txt"], 2, "the suffix must be"),
        (["--report", "k.py", "--out", "no/such/folder/r.json"], 3, "there is no such folder"),
        (["--report", "k.py", "--fail-on", "???"], 2, "cannot read rule"),
        (["--report", "k.py", "--fail-on", "ir.loads>+5%"], 2, "give --baseline FILE"),
        (["--report", "k.py", "--fail-on", "foo>1"], 2, "there is no metric 'foo'"),
        (["--report", "k.py", "--baseline", "nothing.json"], 2, "cannot read nothing.json"),
        (["--report", "k.py", "--time-limit", "-1"], 2, "--time-limit"),
        (["open"], 2, "SESSION"),
        (["open", "nothing.qds"], 2, "cannot read nothing.qds"),
        (["show", "k.py", "--panel", "nothing"], 2, "--panel"),
        (["doctor", "--nonsense"], 2, "--nonsense"),
        (["diff", "a.json", "b.json"], 2, "cannot read a.json"),
        (["diff"], 2, "FILE"),
        (["diff", "a.py"], 2, "one side: name a second one, or give an option of one side"),
    ],
)
def test_usage_and_environment_errors(tmp_path, monkeypatch, capsys, words, status, message):
    monkeypatch.chdir(tmp_path)
    assert cli.main(words) == status
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err


def test_the_version_is_data(capsys):
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("qd-studio ")


def test_interrupting_a_report(tmp_path):
    path, marker = tmp_path / "kernels.py", tmp_path / "busy"
    path.write_text(f"open({str(marker)!r}, 'w').close()\nwhile True:\n    pass\n")
    running = subprocess.Popen(
        [sys.executable, "-m", "qd_studio.app.cli", "--report", str(path)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    while not marker.exists():
        assert running.poll() is None
        time.sleep(0.01)
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=60)
    assert (running.returncode, out) == (130, "")
    assert "interrupted" in err
    assert "Traceback" not in err


def test_a_reader_that_leaves_early_is_no_error(saved):
    command = f"{sys.executable} -m qd_studio.app.cli show {saved} --panel ir"
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command} | head -n 1"],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == 1


def test_a_saved_session_opens_without_a_terminal_as_markdown(command, tmp_path):
    session = tmp_path / "s.qds"
    inspect.save(make_record(), session)
    assert zipfile.is_zipfile(session)
    done = command("open", session)
    assert (done.returncode, done.stderr) == (0, "")
    assert "scale" in done.stdout


@pytest.mark.parametrize(
    ("panel", "words", "expected"),
    [
        ("source", [], "x[i] = x[i] * (a * 1.0)"),
        ("passes", [], "alg_simp"),
        ("passes", ["--pass", "alg_simp"], "x * 1 is x"),
        ("ir", [], "range_for"),
        ("cfg", [], "none differs"),
        ("caches", [], "config.fast_math: True -> False"),
        ("launch", [], "n=1024"),
        ("code", [], "ret void"),
        ("log", [], "Nothing was written"),
    ],
)
def test_show_prints_each_panel(saved, capsys, panel, words, expected):
    assert cli.main(["show", str(saved), "--panel", panel, *words]) == 0
    out, err = capsys.readouterr()
    assert expected in out
    assert err == ""


@pytest.mark.parametrize(
    ("panel", "key"),
    [
        ("source", "file"), ("passes", "runs"), ("ir", "snapshot"), ("cfg", "cfgs"),
        ("caches", "caches"), ("launch", "launches"), ("code", "artefacts"),
    ],
)  # fmt: skip
def test_show_json_is_made_of_the_records_parts(saved, capsys, panel, key):
    assert cli.main(["show", str(saved), "--panel", panel, "--json", "--kernel", "scale"]) == 0
    first = json.loads(capsys.readouterr().out)[0]
    assert (first["kernel"], first["backend"]) == ("scale.py:scale", "cpu")
    assert first[key]


def test_show_says_what_there_is_instead(saved, capsys):
    assert cli.main(["show", str(saved), "--panel", "ir", "--kernel", "nothing"]) == 2
    assert "there is no kernel 'nothing'; there are: scale" in capsys.readouterr().err
    assert cli.main(["show", str(saved), "--panel", "passes", "--pass", "nothing"]) == 2
    assert "no pass 'nothing' ran; there are: alg_simp, die" in capsys.readouterr().err


def test_show_compiles_a_file(path, capsys):
    words = ["show", str(path), "--panel", "passes", "--pass", "offload", "--json", *FAST]
    assert cli.main(words) == 0
    (part,) = json.loads(capsys.readouterr().out)
    assert [run["name"] for run in part["runs"]] == ["offload"]
    assert any("+ " in line and "offloaded" in line for line in part["diffs"].popitem()[1])


def test_doctor_says_what_works(capsys):
    assert cli.main(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["works"]
    states = {(f["area"], f["name"]): f for f in found["findings"]}
    assert states["backend", "cpu"]["state"] == "ok"
    assert states["backend", "interp"]["state"] == "ok"
    assert all(f["detail"] for f in found["findings"])
    assert cli.main(["doctor"]) == 0
    assert "kernels can be compiled and launched here" in capsys.readouterr().out


def test_doctor_looks_for_cuda(monkeypatch, capsys):
    monkeypatch.setenv("QD_ENABLE_CUDA", "0")
    assert cli.main(["doctor", "--json"]) == 0
    found = [f for f in json.loads(capsys.readouterr().out)["findings"] if f["area"] == "cuda"]
    by_name = {f["name"]: f for f in found}
    assert (
        by_name["driver"]["state"] == "note" and "QD_ENABLE_CUDA=0" in by_name["driver"]["detail"]
    )
    assert {"ptxas", "nvdisasm", "libdevice", "libcudadevrt", "nvjitlink"} <= set(by_name)
    for name in ("ptxas", "nvdisasm", "libdevice"):
        assert by_name[name]["state"] == "ok" or "pip install nvidia-" in by_name[name]["hint"]
    assert by_name["QD_ENABLE_CUDA"]["detail"] == "0"


def test_doctor_fails_where_nothing_can_run(monkeypatch, capsys):
    monkeypatch.setattr(inspect, "self_test", lambda name: "no luck")
    assert cli.main(["doctor"]) == 3
    out = capsys.readouterr().out
    assert "BROKEN" in out
    assert "no luck" in out
    assert "-> reinstall" in out


def test_without_a_worker_the_environment_is_to_blame(path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    assert cli.main(["--report", str(path)]) == 3
    out, err = capsys.readouterr()
    assert out == ""
    assert "the worker cannot be run here" in err
    assert "/no/such/python" in err


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("streams", "status", "said"),
    [
        ("<&-", 0, ""),
        (">&-", 3, "standard output is closed"),
        ("2>&-", 0, ""),
        ("<&- >&- 2>&-", 3, ""),
        (">/dev/full", 3, "No space left on device"),
        ("2>/dev/full", 0, ""),
        (">/dev/full 2>/dev/full", 3, ""),
        ("</dev/zero", 0, ""),
    ],
)
def test_streams_that_are_closed_or_full(saved, tmp_path, streams, status, said):
    shell = f'"$0" -m qd_studio.app.cli open "$1" {streams}'
    done = subprocess.run(
        ["/bin/sh", "-c", shell, sys.executable, str(saved)], capture_output=True, text=True,
        timeout=300,
    )  # fmt: skip
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr and "Exception" not in done.stderr
    if status:
        assert said in done.stderr
    else:
        assert "scale" in done.stdout


@pytest.mark.sampled(3)
@pytest.mark.parametrize("streams", ["<&-", "<&- 2>&-"])
def test_a_worker_runs_without_standard_input(path, streams):
    shell = f'"$0" -m qd_studio.app.cli --backend cpu "$1" {streams}'
    done = subprocess.run(
        ["/bin/sh", "-c", shell, sys.executable, str(path)], capture_output=True, text=True,
        timeout=300,
    )  # fmt: skip
    assert (done.returncode, "Traceback" in done.stderr) == (0, False)
    assert "scale" in done.stdout


@pytest.mark.sampled(3)
@pytest.mark.parametrize("locale", [{"LC_ALL": "C"}, {"PYTHONIOENCODING": "iso-8859-1"}])
def test_a_locale_without_utf_8_gets_ascii(saved, locale):
    environment = os.environ | locale
    for words in (["open", saved], ["show", saved, "--panel", "caches"]):
        done = program(*words, env=environment)
        assert (done.returncode, done.stderr) == (0, "") and done.stdout.isascii(), done
    assert "ok max" in program("open", saved, env=environment).stdout
    done = program("show", saved, "--panel", "source", "--json", env=environment)
    assert done.stdout.isascii() and json.loads(done.stdout)
