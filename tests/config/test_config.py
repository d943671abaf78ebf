"""The option table and how an option gets its value."""

import os
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from qd_studio.engine import config as cfg
from qd_studio.engine import logs as log
from qd_studio.engine.cache.parts import config_parts
from qd_studio.engine.config import OPTIONS, CompileConfig, DebugSwitches, of_environment, resolve
from qd_studio.engine.option_table import OptionTable
from qd_studio.engine.options import why_hidden

# Fields of Quadrants' CompileConfig with their defaults, those that a machine decides left out.
REFERENCE = {
    "ad_stack_experimental_enabled": False,
    "ad_stack_size": 0,
    "ad_stack_sparse_threshold_bytes": 104857600,
    "advanced_optimization": True,
    "auto_mesh_local_default_occupacy": 4,
    "cache_loop_invariant_global_vars": True,
    "cfg_optimization": True,
    "check_out_of_bound": False,
    "cuda_stack_limit": 0,
    "debug": False,
    "debug_dump_path": "/tmp/ir/",
    "default_cpu_block_dim": 32,
    "default_gpu_block_dim": 128,
    "default_fp": "f32",
    "default_ip": "i32",
    "demote_dense_struct_fors": True,
    "demote_no_access_mesh_fors": True,
    "detect_read_only": True,
    "device_memory_GB": 1.0,
    "device_memory_fraction": 0.0,
    "experimental_auto_mesh_local": False,
    "external_metal_command_queue": 0,
    "external_metal_command_queue_is_torch_queue": False,
    "fast_math": True,
    "flatten_if": False,
    "force_scalarize_matrix": False,
    "half2_vectorization": False,
    "kernel_profiler": False,
    "make_block_local": True,
    "make_cpu_multithreading_loop": True,
    "make_mesh_block_local": True,
    "make_thread_local": True,
    "max_block_dim": 1024,
    "mesh_localize_all_attr_mappings": False,
    "mesh_localize_from_end_mapping": False,
    "mesh_localize_to_end_mapping": True,
    "move_loop_invariant_outside_if": False,
    "num_compile_threads": 4,
    "offline_cache": True,
    "offline_cache_cleaning_factor": 0.25,
    "offline_cache_cleaning_policy": "lru",
    "offline_cache_max_size_of_files": 104857600,
    "opt_level": 1,
    "optimize_mesh_reordered_mapping": True,
    "print_accessor_ir": False,
    "print_ir": False,
    "print_ir_dbg_info": False,
    "print_kernel_asm": False,
    "print_kernel_amdgcn": False,
    "print_kernel_llvm_ir": False,
    "print_kernel_llvm_ir_optimized": False,
    "print_preprocessed_ir": False,
    "print_struct_llvm_ir": False,
    "quant_opt_atomic_demotion": True,
    "quant_opt_store_fusion": True,
    "raise_on_templated_floats": False,
    "random_seed": 0,
    "real_matrix_scalarize": True,
    "saturating_grid_dim": 0,
    "timeline": False,
    "vk_api_version": "",
    "log_level": "info",
    "gdb_trigger": False,
    "short_circuit_operators": True,
    "print_full_traceback": False,
    "unrolling_limit": 32,
    "external_optimization_level": 2,  # 3 in Quadrants: the same code, later
    "max_vector_width": 0,  # 8 in Quadrants, which leaves half of a 512-bit machine unused
    "gpu_max_reg": 0,
    "constant_folding": True,
    "validate_autodiff": False,
    "_test_mode": False,
    "_code_target": "",
    "enable_fallback": True,
    "print_non_pure": False,
    "src_ll_cache": True,
    "remote_cache_mode": "read_write",
    **dict.fromkeys(("remote_cache", "remote_cache_key_file", "remote_cache_trust"), ""),
    "remote_cache_deadline": 100.0, "remote_cache_max_age": 30.0,
}  # fmt: skip
MACHINE = {"arch", "cpu_max_num_threads", "offline_cache_file_path", "require_version"}
BOOLS = sorted(name for name, opt in OPTIONS.items() if opt.type is bool and opt.env)
INTS = sorted(name for name, opt in OPTIONS.items() if opt.type is int)
OURS = {
    "ad_stack_budget_bytes", "amdgpu_arch", "cuda_arch", "debug_nan", "gpu_tile", "graph",
    "opencl_device", "opencl_il", "opencl_mapping", "opencl_target", "skip_passes", "tiered",
    *(n for n in REFERENCE if n.startswith("remote_")),
}  # fmt: skip


def texts(resolved):
    return [notice.text for notice in resolved.warnings]


# The table


def test_every_reference_option_is_there_with_its_default():
    config = CompileConfig()
    assert {name: getattr(config, name) for name in REFERENCE} == REFERENCE
    assert set(OPTIONS) == set(REFERENCE) | MACHINE | OURS


def test_the_table_is_well_formed():
    envs = [opt.env for opt in OPTIONS.values() if opt.env]
    assert len(envs) == len(set(envs))
    for opt in OPTIONS.values():
        assert opt.doc.endswith("."), opt.name
        assert opt.type in (bool, int, float, str), opt.name
        assert opt.coerce(opt.default) == opt.default
        assert (opt.effect == "never") == bool(opt.why_not), opt.name
        assert "backends" not in opt.why_not  # which exist
        assert opt.env in (None, "QD_" + opt.name.upper())


def test_types_annotated_are_types_declared():
    annotated = OptionTable.__annotations__
    assert list(annotated) == list(OPTIONS)
    for name, opt in OPTIONS.items():
        assert annotated[name] == opt.type.__name__


def test_threads_follow_the_affinity_of_the_process():
    if hasattr(os, "sched_getaffinity"):
        assert CompileConfig().cpu_max_num_threads == len(os.sched_getaffinity(0))
    assert cfg.available_cpus() >= 1


# The object


def test_config_can_be_set_until_frozen():
    config = CompileConfig()
    config.debug = True
    with pytest.raises(AttributeError):
        config.no_such_option = 1
    assert config.freeze() is config
    with pytest.raises(AttributeError, match="frozen, debug cannot be set"):
        config.debug = False
    copied = config.copy()
    assert copied == config
    copied.debug = False
    assert copied != config


def test_replace_checks_and_leaves_the_original():
    config = CompileConfig().freeze()
    changed = config.replace(opt_level=0, default_fp=SimpleNamespace(name="f64"))
    assert (changed.opt_level, changed.default_fp) == (0, "f64")
    assert config == CompileConfig()
    assert config.replace(debug=True).check_out_of_bound
    with pytest.raises(TypeError, match="opt_level must be an integer, at least 0, not 'fast'"):
        config.replace(opt_level="fast")
    with pytest.raises(KeyError, match="fast_mth"):
        config.replace(fast_mth=True)


def test_default_up_follows_default_ip():
    assert CompileConfig().default_up == "u32"
    assert CompileConfig(default_ip="i64").default_up == "u64"
    with pytest.raises(KeyError, match="default_up"):
        resolve({"default_up": "u64"}, {})


def test_as_dict_is_the_whole_table():
    assert list(CompileConfig().as_dict()) == list(OPTIONS)
    assert CompileConfig(**CompileConfig(opt_level=0).as_dict()) == CompileConfig(opt_level=0)


# Cache keys


def other_value(opt):
    """A valid value of `opt` that is not its default."""
    if opt.choices:
        return next(choice for choice in opt.choices if choice != opt.default)
    if opt.type is bool:
        return not opt.default
    return opt.default + ("x" if opt.type is str else 1)


@pytest.mark.parametrize("name", [name for name in OPTIONS if name != "arch"])
@pytest.mark.parametrize("arch", ["cpu", "cuda"])
def test_exactly_the_options_that_change_code_change_the_key(name, arch):
    opt = OPTIONS[name]
    base = CompileConfig(arch=arch)
    changed = base.copy()
    setattr(changed, name, other_value(opt))
    pairs = zip(config_parts(base, arch), config_parts(changed, arch), strict=True)
    differing = {a.name.removeprefix("config.") for a, b in pairs if a != b}
    kind = "cpu" if arch == "cpu" else "gpu"
    expected = {name} if opt.in_cache_key and opt.scope in ("any", kind) else set()
    assert differing == expected


def test_keys_hold_what_the_reference_forgets_and_nothing_that_only_prints():
    names = {name.removeprefix("config.") for name, _ in config_parts(CompileConfig(), "cpu")}
    assert {"cache_loop_invariant_global_vars", "constant_folding", "fast_math"} <= names
    assert "arch" not in names, "a name of what the parts `backend` and `target` say"
    assert not {n for n in names if n.startswith(("print_", "offline_cache", "log_"))}
    assert "debug_dump_path" not in names


# Where a value comes from


def test_argument_beats_environment_beats_default():
    assert resolve({}, {}).config.fast_math is True
    from_env = resolve({}, {"QD_FAST_MATH": "0"})
    assert from_env.config.fast_math is False
    assert from_env.origins["fast_math"] == "environment"
    assert texts(from_env) == []
    both = resolve({"fast_math": True}, {"QD_FAST_MATH": "0"})
    assert both.config.fast_math is True
    assert both.origins["fast_math"] == "argument"
    assert texts(both) == [
        'Environment variable QD_FAST_MATH=0 overridden by qd.init argument "fast_math"'
    ]
    assert both.origins["debug"] == "default"


def test_no_conflict_when_both_agree_or_the_argument_is_none():
    assert texts(resolve({"fast_math": False}, {"QD_FAST_MATH": "0"})) == []
    absent = resolve({"fast_math": None}, {"QD_FAST_MATH": "0"})
    assert absent.config.fast_math is False
    assert texts(absent) == []


def test_an_empty_variable_is_unset():
    resolved = resolve({}, {"QD_DEBUG": "", "QD_ARCH": "", "QD_DEFAULT_FP": ""})
    assert resolved.config == CompileConfig()
    assert set(resolved.origins.values()) == {"default"}


@pytest.mark.parametrize("name", BOOLS)
def test_every_switch_reads_its_variable(name):
    flipped = not OPTIONS[name].default
    resolved = resolve({}, {f"QD_{name.upper()}": str(int(flipped))})
    assert getattr(resolved.config, name) is flipped


@given(name=st.sampled_from(INTS), value=st.integers(-(2**40), 2**40))
def test_integers_are_read_in_full_or_refused(name, value):
    opt = OPTIONS[name]
    environ = {f"QD_{name.upper()}": str(value)}
    fits = (opt.minimum is None or value >= opt.minimum) and value in (opt.choices or [value])
    if fits:
        assert getattr(resolve({}, environ).config, name) == value
    else:
        with pytest.raises(ValueError, match=f"Invalid QD_{name.upper()}={value}, should be"):
            resolve({}, environ)


def test_unrolling_limit_is_a_number_also_in_the_environment():
    assert resolve({}, {"QD_UNROLLING_LIMIT": "100"}).config.unrolling_limit == 100


@pytest.mark.parametrize("bits", ["32", "64"])
def test_default_types_take_bits_from_the_environment(bits):
    config = resolve({}, {"QD_DEFAULT_FP": bits, "QD_DEFAULT_IP": bits}).config
    assert (config.default_fp, config.default_ip) == (f"f{bits}", f"i{bits}")


@pytest.mark.parametrize("text", ["16", "f32", "half"])
@pytest.mark.parametrize("name", ["QD_DEFAULT_FP", "QD_DEFAULT_IP"])
def test_other_bits_are_refused(name, text):
    with pytest.raises(ValueError, match=f"^Invalid {name}={text}, should be 32 or 64$"):
        resolve({}, {name: text})


def test_an_empty_choice_can_be_seen_in_messages():
    with pytest.raises(ValueError, match="opencl_target must be one of '', cpu, gpu, not 'dsp'"):
        resolve({"opencl_target": "dsp"}, {})


def test_types_may_be_given_as_objects():
    f16 = SimpleNamespace(name="f16")
    assert resolve({"default_fp": f16}, {}).config.default_fp == "f16"
    with pytest.raises(ValueError, match="default_fp must be one of f16, f32, f64, not 'i32'"):
        resolve({"default_fp": SimpleNamespace(name="i32")}, {})


@pytest.mark.parametrize(
    ("kwargs", "environ", "message"),
    [
        ({}, {"QD_DEBUG": "maybe"}, "Invalid QD_DEBUG=maybe, should be 0 or 1"),
        ({}, {"QD_DEBUG": "2"}, "Invalid QD_DEBUG=2, should be 0 or 1"),
        ({}, {"QD_OPT_LEVEL": "high"}, "Invalid QD_OPT_LEVEL=high, should be an integer"),
        ({}, {"QD_DEVICE_MEMORY_GB": "lots"}, "Invalid QD_DEVICE_MEMORY_GB=lots, should be a num"),
        ({}, {"QD_LOG_LEVEL": "loud"}, "Invalid QD_LOG_LEVEL=loud, should be one of trace, debug"),
        ({"log_level": "wran"}, {}, 'log_level must be one of .*; did you mean "warn"'),
        ({"cpu_max_num_threads": 0}, {}, "cpu_max_num_threads must be an integer, at least 1"),
        ({"arch": "cdua"}, {}, 'Unknown arch "cdua"; did you mean "cuda"'),
        ({"arch": []}, {}, "arch is an empty list"),
    ],
)
def test_bad_values_say_what_is_wanted(kwargs, environ, message):
    with pytest.raises(ValueError, match=message):
        resolve(kwargs, environ)


@pytest.mark.parametrize(
    ("name", "value"),
    [("debug", "yes"), ("debug", 2), ("opt_level", 1.5), ("opt_level", True), ("log_level", 3)],
)
def test_arguments_of_the_wrong_type(name, value):
    with pytest.raises(TypeError, match=f"{name} must be"):
        resolve({name: value}, {})


def test_unknown_arguments_name_themselves_and_the_closest_option():
    with pytest.raises(KeyError) as caught:
        resolve({"foo": 1}, {})
    assert caught.value.args[0] == "Unrecognized keyword argument(s) for qd.init: foo"
    with pytest.raises(KeyError) as caught:
        resolve({"fast_mth": 1, "foo": 2}, {})
    assert caught.value.args[0] == (
        'Unrecognized keyword argument(s) for qd.init: fast_mth, foo; did you mean "fast_math"?'
    )
    with pytest.raises(KeyError):
        resolve({"_frozen": True}, {})


def test_arch_from_argument_list_and_environment():
    cuda = SimpleNamespace(name="cuda")
    assert resolve({}, {}).config.arch == "cpu"
    assert resolve({"arch": [cuda, "cpu"]}, {}).config.arch == "cuda"
    assert cfg.wanted_arches([cuda, "cpu"], {}) == ("cuda", "cpu")
    assert cfg.wanted_arches(None, {}) == ("cpu",)
    forced = resolve({"arch": cuda}, {"QD_ARCH": "interp"})
    assert forced.config.arch == "interp"
    assert forced.origins["arch"] == "environment"


def test_debug_implies_bounds_checks():
    resolved = resolve({"debug": True}, {})
    assert resolved.config.check_out_of_bound
    assert resolved.origins["check_out_of_bound"] == "implied"
    assert texts(resolved) == []
    reported = resolve({"debug": True, "check_out_of_bound": False}, {})
    assert reported.config.check_out_of_bound
    assert texts(reported) == ["debug=True turns check_out_of_bound on"]


@pytest.mark.parametrize("required", ["1.0.0", "1.3.0", "1.3.3", "1.2.9+g1234"])
def test_require_version_that_is_met(required):
    resolve({"require_version": required}, {})


@pytest.mark.parametrize("required", ["1.4.0", "2.0.0", "0.9.0"])
def test_require_version_that_is_not_met(required):
    with pytest.raises(RuntimeError, match=f"Quadrants {required} is required"):
        resolve({"require_version": required}, {})


def test_require_version_that_is_no_version():
    with pytest.raises(ValueError, match="must look like"):
        resolve({"require_version": "latest"}, {})


# Options without effect


def test_an_option_without_counterpart_says_why_once_a_process(capsys, monkeypatch):
    monkeypatch.setattr(log, "_said", set())
    for _ in range(2):
        resolve({"timeline": True, "vk_api_version": "1.1"}, {}).issue_warnings()
    said = capsys.readouterr().err.splitlines()
    assert said == [
        "[qd-studio] warning: timeline=True has no effect: `kernel_profiler=True` times every task,"
        " and the studio's Launch tab draws launches",
        "[qd-studio] warning: vk_api_version='1.1' has no effect: there is no Vulkan backend",
    ]


def test_an_option_without_meaning_says_that(capsys, monkeypatch):
    monkeypatch.setattr(log, "_said", set())
    resolve({"make_mesh_block_local": False}, {}).issue_warnings()
    assert capsys.readouterr().err == (
        "[qd-studio] warning: make_mesh_block_local=False has no effect: it is accepted so that"
        " programs written for Quadrants start; nothing here corresponds to it\n"
    )


# Options for Vulkan and Metal


@pytest.mark.parametrize("version", ["", "1.0", "1.4", "1.3.275"])
def test_versions_of_vulkan(version):
    assert resolve({"vk_api_version": version}, {}).config.vk_api_version == version


@pytest.mark.parametrize("version", ["abc", "1", "1.5", "2.0", "1.2 ", "v1.2"])
def test_what_is_no_version_of_vulkan(version):
    with pytest.raises(ValueError, match="vk_api_version must be empty, or a version of Vulkan"):
        resolve({"vk_api_version": version}, {})
    with pytest.raises(ValueError, match="Invalid QD_VK_API_VERSION=x, should be empty, or a"):
        resolve({}, {"QD_VK_API_VERSION": "x"})


def test_a_metal_queue_is_an_address():
    given = {"external_metal_command_queue": 0x600000C00000}
    config = resolve(given | {"external_metal_command_queue_is_torch_queue": True}, {}).config
    assert config.external_metal_command_queue == 0x600000C00000
    environ = {"QD_EXTERNAL_METAL_COMMAND_QUEUE": "0x10"}
    assert resolve({}, environ).config.external_metal_command_queue == 16
    for wrong in (-1, 1 << 64):
        with pytest.raises(ValueError, match="must be the address of a Metal command queue"):
            resolve({"external_metal_command_queue": wrong}, {})
    with pytest.raises(TypeError, match="must be the address of a Metal command queue"):
        resolve({"external_metal_command_queue": "queue"}, {})
    alone = resolve({"external_metal_command_queue_is_torch_queue": True}, {})
    assert alone.config.external_metal_command_queue_is_torch_queue
    assert any("says whose queue" in text for text in texts(alone))
    assert not any("says whose queue" in text for text in texts(resolve(given, {})))


def test_defaults_and_requests_that_are_met_anyway_are_silent():
    assert texts(resolve({"kernel_profiler": False, "offline_cache": False}, {})) == []
    assert texts(resolve({"offline_cache": True, "half2_vectorization": False}, {})) == []
    assert texts(resolve({"force_scalarize_matrix": True}, {})) == []
    assert len(texts(resolve({}, {"QD_TIMELINE": "1"}))) == 1


@pytest.mark.parametrize("name", [n for n, opt in OPTIONS.items() if opt.effect == "now"])
def test_effective_options_never_warn(name):
    assert OPTIONS[name].without_effect(other_value(OPTIONS[name])) is None


# Logging and the switches of the environment


def test_log_level_comes_from_the_config(capsys, monkeypatch):
    monkeypatch.setattr(log, "_threshold", log.LEVELS.index("info"))
    resolve({"log_level": "error"}, {}).issue_warnings()
    log.warn("unseen")
    log.error("seen")
    resolve({}, {"QD_LOG_LEVEL": "debug"}).issue_warnings()
    log.debug("seen too")
    out = capsys.readouterr()
    assert out.err == "[qd-studio] error: seen\n[qd-studio] debug: seen too\n"
    assert out.out == ""
    with pytest.raises(ValueError, match="log level must be one of"):
        log.set_level("loud")


def test_debug_switches():
    assert DebugSwitches.read({"QD_DEBUG_ADSTACK": "1"}) == DebugSwitches(debug_adstack=True)
    assert DebugSwitches.read({}) == DebugSwitches()
    switches = DebugSwitches.read({"QD_DUMP_CFG": "1", "QD_DUMP_IR": "0", "QD_SHOW_COMPILING": ""})
    assert switches == DebugSwitches(dump_cfg=True)
    assert switches.dumps
    assert not DebugSwitches(show_compiling=True).dumps
    with pytest.raises(ValueError, match="Invalid QD_DUMP_SIMPLIFY=all, should be 0 or 1"):
        DebugSwitches.read({"QD_DUMP_SIMPLIFY": "all"})


@pytest.mark.parametrize("backend", ["cuda", "opencl"])
@pytest.mark.parametrize(
    ("text", "why"),
    [("", ""), ("1", ""), ("on", ""), ("0", "=0 hides it"), ("off", "=0 hides it"),
     ("False", "=0 hides it"), (" no ", "=0 hides it"), ("maybe", "=maybe, should be 0 or 1")],
)  # fmt: skip
def test_one_reading_of_the_variables_that_hide_backends(backend, text, why, monkeypatch):
    variable = f"QD_ENABLE_{backend.upper()}"
    monkeypatch.setenv(variable, text)
    assert why_hidden(variable).endswith(why)
    assert bool(why_hidden(variable)) == bool(why)


def test_an_option_as_a_variable_sets_it(monkeypatch):
    assert of_environment("opencl_device") == ""
    monkeypatch.setenv("QD_OPENCL_DEVICE", " 1:0 ")
    assert of_environment("opencl_device") == "1:0"
    monkeypatch.setenv("QD_OPT_LEVEL", "x")
    with pytest.raises(ValueError, match="Invalid QD_OPT_LEVEL=x"):
        of_environment("opt_level")
