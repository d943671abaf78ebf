"""Dump files and printed IR: what is written, under which names, and that it changes nothing."""

import re

import pytest
from qd_studio.engine import passes
from qd_studio.engine.config import CompileConfig
from qd_studio.engine.ir import parse, to_text
from qd_studio.engine.pipeline_kind import PipelineKind

KERNEL = """kernel two(x: ndarray<f32, 1>) stage=ast {
  <i32> $0 = const 0
  <i32> $1 = external_tensor_shape_along_axis [(0, 0)]
  <*f32> $2 = arg_addr [(0, False)]
  $3 : range_for $0, $1 body {
    <i32> $4 = loop_index $3 [0]
    <*f32> $5 = external_ptr $2, $4 ['unsafe']
    <*f32> $6 = alloca ['t']
    <f32> $7 = global_load $5
    $8 : local_store $6, $7
    <f32> $9 = local_load $6
    $10 : local_store $6, $9
    <f32> $11 = local_load $6
    <f32> $18 = mul $11, $11
    $12 : global_store $5, $18
  }
  $13 : range_for $0, $1 body {
    <i32> $14 = loop_index $13 [0]
    <*f32> $15 = external_ptr $2, $14 ['unsafe']
    <f32> $16 = const 2.0
    $17 : global_store $15, $16
  }
}
"""


def run(*instruments, kind=PipelineKind.INTERP):
    return passes.run(parse(KERNEL), CompileConfig(), kind, instruments)


def plain(path):
    """The name of a file without the key of the specialisation."""
    return re.sub(r"^two_[0-9a-f]{8}", "two", path.name)


def test_ir_files(tmp_path):
    folder = tmp_path / "not" / "there"
    run(passes.DumpToFiles(folder, ir=True))
    points = ["after_offload", "after_simplify_I", "after_simplify_III", "before_simplify_I",
              "from_ast", "quadrants1"]  # fmt: skip
    assert sorted(map(plain, folder.iterdir())) == [f"two_{point}.ll" for point in points]
    (first,) = folder.glob("two_*_from_ast.ll")
    assert first.read_text() == KERNEL
    for path in folder.iterdir():
        assert to_text(parse(path.read_text())) == path.read_text()


def test_files_of_simplification_steps(tmp_path):
    log = []

    class Log(passes.Instrument):
        def after(self, run, func):
            if run.round:
                log.append((run.stage, run.round, run.name))

    run(passes.DumpToFiles(tmp_path, simplify=True), Log())
    names = sorted(map(plain, tmp_path.iterdir()))
    form = re.compile(r"two\.simplify_I_call(\d+)_iter(\d+)_(\d\d)_(\w+)\.ir")
    found = [form.fullmatch(name) for name in names]
    assert all(found)
    calls = sorted({int(m[1]) for m in found})
    stages = list(dict.fromkeys(stage for stage, _, _ in log))
    assert len(calls) == len(stages) == 5
    assert calls == list(range(calls[0], calls[0] + 5))
    steps = {(m[3], m[4]) for m in found if m[2] != "0"}
    assert steps == {
        ("01", "extract_constant"), ("02", "unreachable_code_elimination"),
        ("03", "binary_op_simplify"), ("04", "constant_fold"), ("05", "die"), ("06", "alg_simp"),
        ("07", "loop_invariant_code_motion"), ("08", "die"), ("09", "simplify"), ("10", "die"),
        ("11", "per_task_cse"), ("12", "cfg_optimization"),
    }  # fmt: skip
    assert [m[4] for m in found if m[2] == "0"] == ["start"] * 5
    for stage, call in zip(stages, calls, strict=True):
        rounds = {number for name, number, _ in log if name == stage}
        assert {int(m[2]) for m in found if int(m[1]) == call} == rounds | {0}


def test_other_options_and_other_ir_have_other_files(tmp_path):
    dump = passes.DumpToFiles(tmp_path, ir=True)
    for options in ({}, {"fast_math": False}, {}, {"debug_dump_path": "/elsewhere"}):
        passes.run(parse(KERNEL), CompileConfig(**options), PipelineKind.INTERP, (dump,))
    passes.run(parse(KERNEL.replace("2.0", "3.0")), CompileConfig(), PipelineKind.INTERP, (dump,))
    assert len(list(tmp_path.glob("two_*_from_ast.ll"))) == 3


def test_files_of_graphs(tmp_path):
    run(passes.DumpToFiles(tmp_path, cfg=True))
    phases = ("simplify_III", "before_lower_access", "simplify_IV")
    expected = {
        f"two_CFG_{phase}_task{task}_{when}_cfg_opt.txt"
        for phase in phases
        for task in (0, 1)
        for when in ("before", "post")
    }
    assert set(map(plain, tmp_path.iterdir())) == expected
    (path,) = tmp_path.glob("two_*_CFG_simplify_III_task0_post_cfg_opt.txt")
    text = path.read_text()
    first = text.splitlines()[0]
    assert first.startswith("Node 0 : empty; prev={}; next={1}")
    assert re.search(r"^Node 1 : \$\d+~\$\d+ \(size=\d+\); prev=\{0\}; next=\{2\}", text, re.M)


@pytest.mark.parametrize("kinds", [{"ir": True}, {"simplify": True}, {"cfg": True}])
def test_dumping_changes_nothing(tmp_path, kinds):
    for kind in (PipelineKind.CPU, PipelineKind.INTERP):
        dumped = run(passes.DumpToFiles(tmp_path, **kinds), kind=kind)
        assert to_text(dumped, locs=True) == to_text(run(kind=kind), locs=True)


def test_printed_ir(capsys):
    run(passes.PrintIr(), kind=PipelineKind.CPU)
    text = capsys.readouterr().out
    labels = re.findall(r"^\[two\] (.*):$", text, re.M)
    assert labels == [
        "Initial IR", "Simplified I", "Simplified II", "Offloaded", "Simplified III",
        "Start offload_to_executable", "Detect read-only accesses", "Random numbers demoted",
        "Atomics demoted I", "Cache loop-invariant global vars",
        "Make CPU multithreaded range-for", "Make thread local", "Atomics demoted II",
        "Simplified before lower access", "Access lowered", "DIE", "Operations demoted",
        "Simplified IV",
    ]  # fmt: skip
    assert f"[two] Initial IR:\n{KERNEL}" in text


def test_printed_preprocessed_ir(capsys):
    run(passes.PrintIr(all_stages=False))
    assert capsys.readouterr().out == f"[two] Initial IR:\n{KERNEL}"
