"""Edited IR: verified, compiled on, compared with the unedited kernel."""

from __future__ import annotations

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine.config import CompileConfig
from qd_studio.engine.inspect.edit_file import (
    EditFileError,
    edit_text,
    last_of_group,
    listing_digest,
    read_edit,
)
from qd_studio.engine.inspect.edited import CONFLICT, EditedCapture


@qd.kernel
def scale(x: qd.types.NDArray[qd.f32, 1], y: qd.types.NDArray[qd.f32, 1], a: qd.f32):
    for i in range(x.shape[0]):
        y[i] = x[i] * a + 2.5
    for i in range(y.shape[0]):
        y[i] = y[i] * 3.0


@scale.workload(n=[16])
def arguments(n):
    return np.linspace(0, 1, n, dtype=np.float32), np.zeros(n, np.float32), 1.5


CONFIG = CompileConfig(arch="cpu", random_seed=0)


@pytest.fixture(scope="module")
def compiled():
    from qd_studio.engine import inspect

    qd.init(arch=qd.cpu)
    found = inspect.capture_kernel(scale, ("cpu",), CONFIG, launch=False).backends[0].compile
    assert found is not None
    return found


def at(compiled, name: str) -> int:
    return next(r.index for r in reversed(compiled.runs) if r.name == name)


def captured(compiled, index, *replaced: tuple[str, str], force=False, launch=True):
    text = edit_text(compiled, index, "k.py:scale", "k.py", "cpu")
    for old, new in replaced:
        assert old in text
        text = text.replace(old, new, 1)
    capture = EditedCapture(scale, ("cpu",), CONFIG, read_edit(text, "k.qdir", force))
    capture.compile()
    return capture.launch(0.01) if launch else capture.record


def agreements(record) -> dict[str, str]:
    return {b.backend: b.agreement.verdict for b in record.backends if b.agreement is not None
            and not b.backend.endswith(" unedited")}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("point", ["front end", "cfg_optimization", "simplify"])
def test_what_was_not_edited_is_the_same(compiled, point):
    record = captured(compiled, None if point == "front end" else at(compiled, point))
    assert not record.errors
    assert agreements(record) == {"interp": "ok", "cpu": "ok"}
    ours, theirs = (record.backend(n).compile for n in ("cpu", "cpu unedited"))
    assert ours.snapshots[-1].lines == theirs.snapshots[-1].lines
    assert [v.verdict for v in record.verdicts] and record.verdicts[0].against == "cpu unedited"


def test_an_edit_after_a_pass_over_many_tasks(monkeypatch):
    """The runs over the tasks are one run of the record; the IR is replaced after the last."""
    from qd_studio.engine import inspect
    from qd_studio.engine.inspect import recorder

    monkeypatch.setattr(recorder, "MANY_TASKS", 2)
    qd.init(arch=qd.cpu)
    found = inspect.capture_kernel(scale, ("cpu",), CONFIG, launch=False).backends[0].compile
    index = at(found, "make_cpu_multithreaded_range_for")
    assert found.runs[index].task is None and found.runs[index].state == "changed"
    record = captured(found, index, ("const 2.5", "const 4.5"), launch=False)
    assert not record.errors
    assert any("const 4.5" in line for line in record.backend("cpu").compile.snapshots[-1].lines)


def test_an_edit_is_compiled_launched_and_compared(compiled):
    record = captured(compiled, at(compiled, "offload"), ("const 2.5", "const 4.5"))
    assert agreements(record) == {"interp": "differs", "cpu": "differs"}
    assert any("const 4.5" in line for line in record.backend("cpu").compile.snapshots[-1].lines)
    assert record.backend("cpu").launches and record.backend("cpu unedited").launches


@pytest.mark.slow
def test_new_operations_and_source_lines_are_kept(compiled):
    index = at(compiled, "offload")
    text = edit_text(compiled, index, "k.py:scale", "k.py", "cpu")
    line = next(x for x in text.splitlines() if " = mul " in x)
    number = line.split("$")[1].split()[0]
    twice = f"{line}\n{line.split('<')[0]}<f32> $9000 = add ${number}, ${number}"
    record = captured(compiled, index, (line, twice))
    assert not record.errors and agreements(record) == {"interp": "ok", "cpu": "ok"}, "it is unused"
    shot = record.backend("cpu").compile.snapshots
    assert any("$9000 = add" in x for s in shot for x in s.lines)
    locs = {loc for s in shot for i, loc in zip(s.ids, s.locs, strict=True) if i == 9000}
    assert locs and -1 not in locs


@pytest.mark.parametrize(
    ("old", "new", "message", "carets"),
    [
        ("const 2.5", "const 2.5 2.5", "expected", True),
        (" = mul ", " = mull ", "unknown opcode 'mull'", True),
        (" = mul $", " = mul $7777", "no op has the id", True),
        (" = const 2.5", " = const true", "", False),
        ("a: f32", "a: f64", "cannot be edited", True),
    ],
)
def test_errors_show_the_line_of_the_file(compiled, old, new, message, carets):
    record = captured(compiled, at(compiled, "offload"), (old, new))
    errors = [*record.errors, *(e for b in record.backends for e in b.errors)]
    assert len(errors) == 1, errors
    error = errors[0]
    assert error.file == "k.qdir" and error.line > 6 and message in error.message
    assert not carets or "^" in error.rendered
    assert agreements(record) == {}


@pytest.mark.slow
def test_an_access_outside_of_an_array_is_not_launched(compiled):
    index = at(compiled, "offload")
    text = edit_text(compiled, index, "k.py:scale", "k.py", "cpu")
    line = next(x for x in text.splitlines() if "loop_index" in x)
    pad, number = line.split("<")[0], line.split("$")[1].split()[0]
    body = text[text.index(line) + len(line) :].split("} body {")[0]
    moved = body.replace(f"${number},", "$9001,").replace(f", ${number} ", ", $9001 ")
    more = f"\n{pad}<i32> $9000 = const 1000000\n{pad}<i32> $9001 = add ${number}, $9000{moved}"
    record = captured(compiled, index, (line + body, line + more))
    assert not record.backend("cpu").launches
    assert "out of" in record.backend("cpu").reason or "outside" in record.backend("cpu").reason


CHANGED = (("const 2.5", "const 4.5"), ("; taken from: ", "; taken from: 0"))


def test_a_changed_source_is_a_conflict(compiled):
    record = captured(compiled, at(compiled, "offload"), *CHANGED)
    assert [e.kind for e in record.errors] == [CONFLICT] and agreements(record) == {}
    assert record.backend("cpu").status == "not_run"
    assert record.backend("cpu unedited").compile.snapshots, "the IR as it is now"


@pytest.mark.slow
def test_force_overrides_a_conflict(compiled):
    record = captured(compiled, at(compiled, "offload"), *CHANGED, force=True)
    assert not record.errors and agreements(record)["cpu"] == "differs"


def test_a_pass_that_does_not_run_any_more_is_an_error(compiled):
    record = captured(compiled, at(compiled, "offload"), ('"offload",', '"onload",'))
    assert "no such pass run" in record.errors[0].message and agreements(record) == {}


def test_ir_is_replaced_after_all_tasks(compiled):
    runs = [r for r in compiled.runs if r.name == "cfg_optimization" and r.task is not None]
    first = next(r for r in runs if r.task == 0)
    last = compiled.runs[last_of_group(compiled.runs, first.index)]
    assert last.task == 1 and (last.stage, last.round) == (first.stage, first.round)


def test_a_file_without_its_head_is_refused():
    with pytest.raises(EditFileError, match="no line '; kernel"):
        read_edit("kernel k() {\n}\n", "k.qdir")
    text = "; kernel: a\n; file: b\n; backend: cpu\n; after: [1]\n; taken from: 0\n"
    with pytest.raises(EditFileError, match="interpreter"):
        read_edit(text.replace("cpu", "interp"), "k.qdir")
    with pytest.raises(EditFileError, match="names no run"):
        read_edit(text, "k.qdir")


def test_the_digest_ignores_the_numbers_of_operations():
    assert listing_digest(["$1 : add $2, $2"]) == listing_digest(["$7 : add $3, $3"])
    assert listing_digest(["$1 : add $2, $2"]) != listing_digest(["$1 : add $2, $3"])
