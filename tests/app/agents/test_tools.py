"""The tools of ``qd-studio mcp``, without the package that serves them."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from qd_studio.app.mcp import tools
from qd_studio.app.mcp.answers import MOST, answer
from qd_studio.app.mcp.project import Project

from tests.hygiene.tree import ROOT

KERNELS = """\
import numpy as np
from qd_studio import engine as qd


@qd.kernel
def scale(x: qd.types.NDArray[qd.f32, 1], factor: qd.f32):
    for i in x:
        x[i] = x[i] * (factor * 2.0) + 0.0


@scale.workload()
def small():
    return np.ones(8, np.float32), 2.0


@qd.kernel
def broken(x: qd.types.NDArray[qd.f32, 1]):
    for i in x:
        x[i] = undefined_name
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    folder = tmp_path_factory.mktemp("project")
    (folder / "some.py").write_text(KERNELS)
    return Project(str(folder))


def asked(project: Project, tool: str, **given):
    found, is_error = tools.call(project, tool, given)
    json.dumps(found)
    if not is_error:
        jsonschema.validate(found, tools.output_schema())
        assert found["truncated"] == (
            found["next_start"] is not None or "shortened" in found["more"]
        )
    return found, is_error


SCALE = {"file": "some.py", "kernel": "scale", "backend": "cpu"}


def test_kernels_have_their_parameters_and_errors_their_place(project):
    found, is_error = asked(project, "kernels", backend="cpu")
    assert not is_error and found["total"] == 2
    scale, broken = found["items"]
    assert (scale["id"], scale["file"], scale["line"]) == ("some.py:scale", "some.py", 5)
    assert scale["parameters"] == ["x: f32[:]", "factor: f32"] and scale["workloads"] == ["small"]
    assert scale["backends"] == {"cpu": "ok"} and broken["backends"]["cpu"].startswith("error: ")
    (error,) = found["errors"]
    assert (error["file"], error["line"], error["kernel"]) == ("some.py", 19, "broken")
    line, caret = error["caret"].splitlines()
    assert line == KERNELS.splitlines()[18] and caret.strip("^ ") == ""
    at = caret.index("^")
    assert line[at : len(caret)] == "undefined_name" and error["column"] == at + 1


def test_a_pass_has_a_diff_and_long_answers_continue(project):
    found, _ = asked(project, "diff", **SCALE)
    names = [run["pass_name"] for run in found["items"]]
    assert "extract_constant@simplify_I" in names
    given = {**SCALE, "pass_name": names[0]}
    whole, _ = asked(project, "diff", **given)
    assert any(" -   " in line or " > " in line for line in whole["lines"])
    pages: list[str] = []
    start = 0
    while start is not None:
        page, _ = asked(project, "diff", **given, start=start, limit=3)
        assert len(page["lines"]) <= 3 and page["total"] == whole["total"]
        pages += page["lines"]
        start = page["next_start"]
        assert (start is None) == (not page["more"])
    assert pages == whole["lines"]


def test_code_lists_its_texts_and_then_one_of_them(project):
    found, _ = asked(project, "code", **SCALE)
    assert {"asm", "llvm_ir"} <= set(found["items"][0]["texts"])
    text, _ = asked(project, "code", **SCALE, text="asm", limit=1000)
    assert any("scale" in line for line in text["lines"])
    source, _ = asked(project, "code", **SCALE, text="source")
    assert source["lines"][1] == "    5 @qd.kernel"
    ir, _ = asked(project, "code", **SCALE, text="ir", form="readable")
    assert any("x[" in line for line in ir["lines"])
    wrong, is_error = asked(project, "code", **SCALE, text="ptx")
    assert is_error and "there are: source, ir, " in wrong["error"]["message"]


def test_a_changed_file_is_looked_at_again(project):
    path = Path(project.root) / "some.py"
    try:
        path.write_text(KERNELS.replace("factor * 2.0", "factor * 3.0"))
        source, _ = asked(project, "code", **SCALE, text="source")
        assert "factor * 3.0" in source["lines"][-1]
    finally:
        path.write_text(KERNELS)


@pytest.mark.parametrize(
    ("tool", "given", "message"),
    [
        ("nope", {}, "there is no tool 'nope'; there are: kernels, diff"),
        ("diff", {"file": "some.py", "kernel": "scal"}, "there is no kernel 'scal'"),
        ("kernels", {"files": "x"}, "kernels has no argument 'files'"),
        ("diff", {}, "diff needs the argument file"),
        ("kernels", {"file": 3}, "file must be a text"),
        ("kernels", {"limit": MOST + 1}, f"limit must be {MOST} or less"),
        ("kernels", {"limit": True}, "limit must be a whole number"),
        ("kernels", {"file": "../some.py"}, "is outside of the project"),
        ("kernels", {"file": "/etc/passwd"}, "is outside of the project"),
        ("bisect", {"file": "/etc/passwd"}, "is outside of the project"),
        ("diff", {"file": "../x.py", "against": "HEAD"}, "is outside of the project"),
        ("kernels", {"file": "none.py"}, "there is no file none.py"),
        ("kernels", {"backend": "nope"}, "there is no backend 'nope'"),
        ("kernels", {"config": {"fast_maths": 1}}, "there is no option 'fast_maths'"),
        ("kernels", {"config": {"fast_math": [1]}}, "config must be an object of texts"),
        ("show", {"file": "some.py", "panel": "x"}, "there is no panel 'x'; there are: source"),
        ("diff", {"file": "some.py", "form": "x"}, "form must be one of exact, readable"),
        ("bisect", {"file": "some.py", "metric": "x"}, "bisect: "),
    ],
)  # fmt: skip
def test_a_wrong_call_is_an_error_that_says_what_is_possible(project, tool, given, message):
    found, is_error = asked(project, tool, **given)
    assert is_error and message in found["error"]["message"]


def test_a_link_does_not_lead_out_of_the_project(project, tmp_path):
    (tmp_path / "secret.py").write_text("x = 1\n")
    link = Path(project.root) / "link.py"
    link.symlink_to(tmp_path / "secret.py")
    try:
        found, is_error = asked(project, "kernels", file="link.py")
    finally:
        link.unlink()
    assert is_error and "outside of the project" in found["error"]["message"]


def test_answers_are_bounded():
    many = answer(["x" * 5000] * 900, 0, 900, "narrow")
    assert len(json.dumps(many)) < 30_000 and many["truncated"] and many["next_start"] > 5
    one = answer([{"long": "x" * 90_000, "list": list(range(90_000))}], 0, 10, "narrow")
    assert len(json.dumps(one)) < 30_000 and one["truncated"] and "narrow" in one["more"]
    assert answer([], 0, 10, "narrow")["items"] == []
    assert answer(["a"], 7, 10, "narrow")["lines"] == []


def test_schemas_are_valid_and_every_tool_is_documented():
    page = (ROOT / "docs/agents.md").read_text()
    for tool in tools.TOOLS.values():
        jsonschema.Draft202012Validator.check_schema(tools.input_schema(tool))
        assert f"| `{tool.name}`" in page
    jsonschema.Draft202012Validator.check_schema(tools.output_schema())


@pytest.mark.slow
def test_tools_that_launch(project):
    found, _ = asked(project, "verdicts", **{**SCALE, "backend": "cpu,interp"})
    assert [x["verdict"] for x in found["items"]] == ["ok", "ran"]
    assert found["items"][0]["launches"][0]["workload"] == "small"
    cost, _ = asked(project, "cost", **SCALE)
    assert any("some.py:8" in line for line in cost["lines"])
    bisected, _ = asked(project, "bisect", **SCALE)
    assert bisected["state"] == "agrees"
    report, _ = asked(project, "report", **SCALE)
    assert report["lines"][0] == "# Kernel report"
    shown, _ = asked(project, "show", **SCALE, panel="explain")
    assert any("x[i] = " in line for line in shown["lines"])


@pytest.mark.slow
def test_two_compiles_and_the_caches(project):
    found, _ = asked(project, "diff", **SCALE, against="opt_level=0")
    assert found["state"] == "differs" and any("opt_level" in line for line in found["lines"])
    found, _ = asked(project, "diff", file="some.py", kernel="scale", against="cuda")
    assert any("cpu -> cuda" in line for line in found["lines"])
    found, is_error = asked(project, "diff", **SCALE, against="no-such-revision")
    assert is_error
    found, _ = asked(project, "why_miss", **SCALE)
    states = {x["layer"]: x["state"] for x in found["items"]}
    assert states["offline"] == "miss" and found["items"][-1]["reason"]


def test_a_file_that_cannot_be_imported(project):
    path = Path(project.root) / "wrong.py"
    path.write_text("from qd_studio import engine as qd\n\n@qd.kernel\ndef f(:\n    pass\n")
    try:
        found, is_error = asked(project, "kernels", file="wrong.py", backend="cpu")
    finally:
        path.unlink()
    assert is_error and found["error"]["kind"] == "failed"
    (error,) = found["errors"]
    assert error["line"] == 4 and error["file"].endswith("wrong.py") and error["caret"]


@pytest.mark.slow
def test_a_crash_and_an_endless_loop_are_errors_in_the_answer(tmp_path):
    text = KERNELS.partition("@qd.kernel\ndef broken")[0]
    crash = text.replace("return np.ones", "import os; os.kill(os.getpid(), 11); return np.ones")
    (tmp_path / "crash.py").write_text(crash)
    (tmp_path / "loop.py").write_text(f"{text}\nwhile True: pass\n")
    project = Project(str(tmp_path), 2.0)
    found, _ = asked(project, "verdicts", file="crash.py", backend="cpu")
    assert [x["verdict"] for x in found["items"]] == ["unknown"]
    assert found["errors"][0]["kind"] == "WorkerCrash"
    found, _ = asked(project, "kernels", file="loop.py")
    (error,) = found["errors"]
    assert error["kind"] == "StepLimit" and error["caret"].startswith("while True: pass\n^")
