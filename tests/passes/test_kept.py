"""A pass that another one keeps without work has none: in the pipeline, with real kernels.

So it is with graphs that `cfg_optimization` does not make.
"""

from functools import partial

import pytest
from qd_studio.engine import passes
from qd_studio.engine.config import CompileConfig
from qd_studio.engine.frontend.build import build
from qd_studio.engine.ir import codes as C
from qd_studio.engine.ir import parse, to_text, verify
from qd_studio.engine.lang.kernel import Kernel
from qd_studio.engine.passes import PassCx, cfg_optimization, registry
from qd_studio.engine.pipeline_kind import PipelineKind
from qd_studio.engine.types import f32, f64, i32

from .qdir import run_passes
from .random_ir import FLOATS, INTS, random_func
from .test_stages import SAMPLES, arguments, load, sample_files, spec_keys

STATING = {
    "detect_read_only": {"alg_simp", "cfg_optimization", "die"},
    "lower_access": {"alg_simp", "cfg_optimization", "extract_constant", "per_task_cse"},
    "make_cpu_multithreaded_range_for": {"alg_simp", "die", "extract_constant"},
    "offload": {"alg_simp", "binary_op_simplify", "constant_fold"},
}


@pytest.fixture
def kept(monkeypatch):
    """Pass -> the passes that it has kept; each of them is run, and must have nothing to do."""
    found = {}
    run = PassCx._run_bare

    def run_bare(cx, info):
        changed = run(cx, info)
        for name in {*cx._keeps} - {info.name} if changed else ():
            if cx.was_idle(name):
                found.setdefault(info.name, set()).add(name)
                assert not called(cx, registry.get(name)), (info.name, name)
        return changed

    def called(cx, info):
        fresh = PassCx(cx.func, cx.config)
        if not info.per_task or cx.func.stage not in ("offloaded", "accesses"):
            return info.fn(cx.func, fresh)
        changed = False
        for fresh.task_index, fresh.task in cx.func.numbered_tasks().items():
            changed |= info.fn(cx.func, fresh)
        return changed

    monkeypatch.setattr(PassCx, "_run_bare", run_bare)
    return found


@pytest.fixture
def graphs(monkeypatch):
    """Stages in which no graph was needed; each is made all the same, and must change nothing."""
    spared = []

    def asked(needed, *args):
        if not needed(*args):
            spared.append(args[0])
        return True

    def run(optimizer):
        changed = optimize(optimizer)
        if optimizer.scope in spared:
            assert not changed
            spared[spared.index(optimizer.scope)] = optimizer.func.stage
        return changed

    optimize = cfg_optimization._Optimizer.run
    monkeypatch.setattr(cfg_optimization._Optimizer, "run", run)
    for name in ("may_forward", "may_forward_locals"):
        needed = getattr(cfg_optimization, name)
        monkeypatch.setattr(cfg_optimization, name, partial(asked, needed))
    return spared


@pytest.mark.parametrize("kind", [PipelineKind.CPU, PipelineKind.INTERP])
def test_passes_keep_what_they_say_in_the_sample_kernels(kind, kept, graphs, monkeypatch):
    monkeypatch.syspath_prepend(str(SAMPLES))
    modules = map(load, sample_files())
    kernels = [k for module in modules for k in vars(module).values() if isinstance(k, Kernel)]
    for kernel in kernels:
        keys = spec_keys(kernel, arguments(kernel))
        for threads in (1, 3):
            config = CompileConfig(cpu_max_num_threads=threads)
            passes.run(build(kernel.decl, keys, config).func, config, kind)
    stating = STATING if kind is PipelineKind.CPU else {"offload": STATING["offload"]}
    assert all(kept[name] >= names for name, names in stating.items())
    assert graphs.count("offloaded") > 40
    assert graphs.count("accesses") > 20


@pytest.mark.parametrize("fields", [False, True])
def test_passes_keep_what_they_say_in_random_kernels(fields, kept, graphs):
    for seed in range(60):
        types = (i32, f32, f64) if fields else INTS if seed % 2 else FLOATS
        func = random_func(800 + seed, types, fields=fields)
        func.stage = "ast"
        loops = [op for op in func.body.ops if op.code == C.RANGE_FOR]
        for op in loops[seed % 3 :]:
            op.attr = op.attr._replace(strictly_serialized=False)
        config = CompileConfig(cpu_max_num_threads=1 + seed % 4)
        passes.run(func, config, PipelineKind.CPU)
    assert kept["offload"] >= STATING["offload"]
    assert graphs.count("offloaded") > 20


CHANGED = {
    "the first value is what a variable holds anyway": """
$20 : local_store $10, $2
$21 : if $9 then {
  $22 : local_store $10, $5
} else {
}
<i32> $50 = local_load $10
""",
    "a branch stores what a variable holds anyway": """
$21 : if $9 then {
  $22 : local_store $10, $2
} else {
}
<i32> $50 = local_load $10
""",
    "a branch stores the first value": """
$20 : local_store $10, $5
$21 : if $9 then {
  $22 : local_store $10, $5
} else {
}
<i32> $50 = local_load $10
""",
    "a branch loads before it stores": """
$21 : if $9 then {
  <i32> $22 = local_load $10
  <i32> $23 = add $22, $5
  $24 : local_store $10, $23
} else {
}
<i32> $50 = local_load $10
""",
    "two loads in one place": """
$21 : if $9 then {
  $22 : local_store $10, $5
} else {
}
<i32> $23 = local_load $10
<i32> $24 = local_load $10
<i32> $50 = add $23, $24
""",
    "a load in the branch, after the store": """
$21 : if $9 then {
  $22 : local_store $10, $5
  $23 : if $19 then {
    <i32> $24 = local_load $10
    $25 : global_store $17, $24
  } else {
  }
} else {
}
<i32> $50 = local_load $10
""",
    "a load in the other branch": """
$21 : if $9 then {
  $22 : local_store $10, $5
} else {
  <i32> $24 = local_load $10
  $25 : global_store $17, $24
}
<i32> $50 = local_load $10
""",
    "a loop that is not left before the store": """
$21 : while body {
  $22 : local_store $10, $5
  $23 : while_control $9
}
<i32> $50 = local_load $10
""",
    "a first value that no way leads to": """
$20 : local_store $10, $5
$21 : while body {
  <i32> $22 = add $4, $5
  $23 : local_store $10, $22
  $24 : while_control $9
}
<i32> $50 = local_load $10
""",
    "the other branch ends the iteration": """
$21 : if $9 then {
  $22 : local_store $10, $5
} else {
  $23 : continue
}
<i32> $50 = local_load $10
""",
    "a loop stores what it loads": """
$21 : range_for $2, $5 body {
<i32> $22 = local_load $10
$23 : local_store $10, $22
}
<i32> $50 = local_load $10
""",
    "nothing loads": """
$21 : if $9 then {
  $22 : local_store $10, $5
} else {
}
<i32> $50 = add $4, $5
""",
}
"""What makes a variable one that is not settled, each by one detail."""


@pytest.mark.parametrize("stage", ["offloaded", "accesses"])
@pytest.mark.parametrize("body", CHANGED.values(), ids=CHANGED.keys())
def test_a_graph_is_made_where_it_changes_something(body, stage):
    name, end = ("external_ptr", " ['unsafe']") if stage == "offloaded" else ("shift_ptr", "")
    text = f"""
kernel k(x: ndarray<i32, 1>, n: i32) stage={stage} {{
  $0 : offloaded {{kind='range_for'}} header {{
    <i32> $1 = const 0
    <i32> $3 = const 7
    $8 : bounds $1, $3
  }} body {{
    <i32> $2 = const 0
    <i32> $4 = loop_index $0 [0]
    <i32> $5 = arg_load [1]
    <*i32> $6 = arg_addr [(0, False)]
    <*i32> $7 = {name} $6, $4{end}
    <*i32> $17 = {name} $6, $5{end}
    <u1> $9 = cmp_lt $4, $5
    <u1> $19 = cmp_lt $2, $4
    <*i32> $10 = alloca ['t']
{body}    $51 : global_store $7, $50
  }}
}}
"""
    func = parse(text)
    assert not verify(func)
    before = to_text(func)
    run_passes(func, ["cfg_optimization"], {})
    assert to_text(func) != before
