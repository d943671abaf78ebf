"""A pass that another one keeps without work has none: in the pipeline, with real kernels."""

import pytest
from qd_studio.engine import passes
from qd_studio.engine.config import CompileConfig
from qd_studio.engine.frontend.build import build
from qd_studio.engine.ir import codes as C
from qd_studio.engine.lang.kernel import Kernel
from qd_studio.engine.passes import PassCx, registry
from qd_studio.engine.pipeline_kind import PipelineKind
from qd_studio.engine.types import f32, f64, i32

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


@pytest.mark.parametrize("kind", [PipelineKind.CPU, PipelineKind.INTERP])
def test_passes_keep_what_they_say_in_the_sample_kernels(kind, kept, monkeypatch):
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


@pytest.mark.parametrize("fields", [False, True])
def test_passes_keep_what_they_say_in_random_kernels(fields, kept):
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
