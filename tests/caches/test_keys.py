"""Keys of the offline cache: all that changes code is in them, what does not change it is not."""

import ast
import functools
import itertools
import os
from pathlib import Path

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine.cache import keys
from qd_studio.engine.cache.parts import key_of
from qd_studio.engine.config import OPTIONS
from qd_studio.engine.version import VERSION

from tests.caches.offline_kit import differing, module, numbers, parts, seen, start
from tests.caches.shelf import store
from tests.hygiene.tree import ROOT

KERNEL = """
@qd.kernel
def scale(a: qd.types.NDArray[qd.f32, 1], f: qd.f32):
    for i in a:
        a[i] = a[i] * f
"""


@pytest.fixture
def scale(tmp_path):
    yield module(tmp_path / "kernels.py", KERNEL).scale
    qd.reset()


# --- options ----------------------------------------------------------------------------------

ROOMS = ("frontend", "passes", "backends", "analysis", "ir")


def files_of_rooms() -> list[Path]:
    return [path for room in ROOMS for path in sorted((ROOT / "engine" / room).rglob("*.py"))]


NOT_IN_KEYS = {
    "unrolling_limit": "warns, and unrolls all the same",
    "print_ir": "prints; no cache is asked then",
    "print_preprocessed_ir": "prints; no cache is asked then",
    "print_ir_dbg_info": "what printed IR looks like",
    "debug_dump_path": "where dumps go; no cache is asked then",
    "offline_cache": "whether a program binary is asked for, and how a driver's cache is kept out",
    "opencl_device": "which device is meant: the fingerprint has it",
    "_code_target": "which target is meant: the fingerprint has it",
    "num_compile_threads": "how many threads compile the parts, which the text alone decides",
    "tiered": "which code runs first: caches have full code alone",
    "device_memory_GB": "how much memory a device's programs keep",
    "device_memory_fraction": "how much memory a device's programs may have",
}
"""Options that what makes code reads, and that no code depends on."""

HOLDERS = ("config", "_config")


def is_config(node: ast.expr) -> bool:
    name = node.id if isinstance(node, ast.Name) else getattr(node, "attr", "")
    return name in HOLDERS


@functools.cache
def options_read() -> dict[str, set[str]]:
    """Option -> files of the rooms that read it."""
    found: dict[str, set[str]] = {}
    for path in files_of_rooms():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and is_config(node.value):
                found.setdefault(node.attr, set()).add(str(path.relative_to(ROOT)))
    return found


def test_every_option_that_code_may_depend_on_is_in_keys():
    read = {name for name in options_read() if name in OPTIONS}
    keyed = {name for name, option in OPTIONS.items() if option.in_cache_key}
    assert {"fast_math", "cpu_max_num_threads", "default_fp"} <= read  # the scan sees something
    assert read - keyed == set(NOT_IN_KEYS)


OF_GPUS = ("engine/backends/cuda/", "engine/backends/llvm/gpu", "engine/backends/llvm/schedule.py",
           "engine/backends/llvm/tile", "engine/backends/opencl/",
           "engine/backends/amdgpu/", "engine/backends/device_launch/executable.py",
           "engine/passes/grid.py", "engine/passes/map_to_grid.py",
           "engine/passes/subgroup_reduce.py", "engine/passes/tensor_products.py")  # fmt: skip
"""What only GPUs have, or devices whose memory the host does not see."""
ASKS_FOR_GPUS = {"engine/frontend/real_functions.py": {"cuda_stack_limit"}}
"""What all backends share and reads options of GPUs, if the program is for one."""


def test_options_of_gpus_are_not_read_by_what_all_backends_share():
    gpu = {name for name, option in OPTIONS.items() if option.scope == "gpu"}
    found: dict[str, set[str]] = {}
    for name, files in options_read().items():
        for file in files:
            if name in gpu and not file.startswith(OF_GPUS):
                found.setdefault(file, set()).add(name)
    assert found == ASKS_FOR_GPUS


def test_the_rooms_that_make_code_ask_nothing_else():
    """Options are not read by computed names, and the environment is not read at all."""
    wrong = []
    for path in files_of_rooms():
        text = path.read_text(encoding="utf-8")
        wrong += [
            f"{path}:{node.lineno}"
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.Call)
            and getattr(node.func, "id", "") == "getattr"
            and is_config(node.args[0])
        ]
        if path.parent.name in ("cuda", "opencl"):
            continue  # which look for toolkits and devices, not for how to make code
        if path.name == "background.py":
            continue  # which starts a process with it
        wrong += [f"{path} reads {word}" for word in ("os.environ", "os.getenv") if word in text]
    assert wrong == []


VALUES = {
    "default_fp": "f64", "default_ip": "i64", "opt_level": 0,
    "external_optimization_level": 1, "max_vector_width": 4, "cpu_max_num_threads": 3,
    "default_cpu_block_dim": 64, "default_gpu_block_dim": 64, "max_block_dim": 512,
    "amdgpu_arch": "gfx90a", "cuda_arch": "sm_75", "opencl_mapping": "lanes",
    "opencl_target": "gpu", "skip_passes": "die", "cuda_stack_limit": 4096, "gpu_max_reg": 64,
    "saturating_grid_dim": 5, "ad_stack_size": 7, "ad_stack_budget_bytes": 4096, "gpu_tile": "4x2",
    "ad_stack_sparse_threshold_bytes": 5,
}  # fmt: skip
ALSO = {"debug": {"config.check_out_of_bound", "places"}, "check_out_of_bound": {"places"}}
"""Parts that change with an option, because of what it means."""

# Another arch is another backend, see below: x64 is what cpu means on such a machine.
KEYED = [name for name, option in OPTIONS.items() if option.in_cache_key and name != "arch"]


def other_value(name):
    value = OPTIONS[name].default
    return not value if isinstance(value, bool) else VALUES[name]


@pytest.mark.parametrize("name", KEYED)
def test_an_option_that_changes_code_changes_the_key_and_is_named(scale, name):
    before = parts(scale, numbers(), 2.0, cpu_max_num_threads=2)
    options = {"cpu_max_num_threads": 2, name: other_value(name)}
    after = parts(scale, numbers(), 2.0, **options)
    if OPTIONS[name].scope == "gpu":
        assert before == after
        return
    assert differing(before, after) == {f"config.{name}", *ALSO.get(name, set())}
    assert after[f"config.{name}"] == str(other_value(name))
    assert key_of(before.items()) != key_of(after.items())


@pytest.mark.parametrize(
    "options",
    [
        {"random_seed": 9}, {"unrolling_limit": 3}, {"offline_cache_max_size_of_files": 1 << 20},
        {"offline_cache_cleaning_policy": "fifo"}, {"print_full_traceback": True},
        {"num_compile_threads": 0}, {"default_gpu_block_dim": 64}, {"log_level": "error"},
    ],
    ids=str,
)  # fmt: skip
def test_other_options_do_not_change_it(scale, options):
    assert parts(scale, numbers(), 2.0) == parts(scale, numbers(), 2.0, **options)


def test_types_of_literals_change_the_code_they_are_in(tmp_path):
    text = KERNEL.replace("a[i] * f", "a[i] * f + i / 3")
    kernel = module(tmp_path / "kernels.py", text).scale
    before = parts(kernel, numbers(), 2.0)
    after = parts(kernel, numbers(), 2.0, default_fp=qd.f64)
    assert {"config.default_fp"} < differing(before, after) <= {"config.default_fp", "ir"}
    qd.reset()


# --- the other parts --------------------------------------------------------------------------


def test_the_parts_are_in_order_with_their_names(scale):
    start()
    scale(numbers(), 2.0)
    names = [part.name for part in seen(scale).parts]
    config = [name for name in names if name.startswith("config.")]
    assert names == [
        "kernel", "engine", "backend", "target", "toolchain", *config,
        "noalias", "graph", "signature", "ir", "places",
    ]  # fmt: skip
    assert seen(scale).key == key_of(seen(scale).parts)
    found = dict(seen(scale).parts)
    assert found["kernel"] == "scale"
    assert found["backend"] == "cpu"
    assert found["signature"] == "(a: ndarray<f32, 1>, f: f32)"
    assert found["engine"] == VERSION  # a key that never leaves the process


def test_backends_differ_in_their_own_parts(scale):
    before = parts(scale, numbers(), 2.0)
    after = parts(scale, numbers(), 2.0, arch=qd.interp)
    named = differing(before, after)
    assert named == {"backend", "target", "toolchain", "places"}


def test_types_of_arguments_change_the_signature(tmp_path):
    text = KERNEL.replace("NDArray[qd.f32, 1]", "NDArray")
    kernel = module(tmp_path / "kernels.py", text).scale
    before = parts(kernel, numbers(), 2.0)
    after = parts(kernel, numbers(dtype=np.float64), 2.0)
    assert "signature" in differing(before, after) <= {"signature", "ir"}
    qd.reset()


_files = itertools.count()


def same_kernel(tmp_path, one: str, other: str, args=lambda: (numbers(), 2.0), **options):
    """The parts in which the keys of the kernel ``scale`` of two texts differ."""
    found = []
    for text in (one, other):
        # A name of its own: bytecode of a text as long, of the same second, would be taken for it.
        kernel = module(tmp_path / f"kernels_{next(_files)}.py", text).scale
        found.append(parts(kernel, *args(), **options))
    qd.reset()
    return differing(*found)


OTHER = """
@qd.kernel
def other(a: qd.types.NDArray[qd.f32, 1]):
    for i in a:
        a[i] = 1.0
"""


@pytest.mark.parametrize("debug", [False, True])
def test_moving_a_kernel_or_editing_another_one_changes_nothing(tmp_path, debug):
    longer = OTHER.replace("1.0", "1.0  # one\n        a[i] += 2.0")
    for one, other in (
        (KERNEL, "\n\n# moved\n" + KERNEL),
        (OTHER + KERNEL, longer + KERNEL),
        (KERNEL + OTHER, KERNEL + longer),
    ):
        assert same_kernel(tmp_path, one, other, debug=debug) == set()


HELPER = """
@qd.func
def twice(x):
    return x * 2.0
"""
REAL = HELPER.replace("func", "real_func").replace("(x)", "(x: qd.f32) -> qd.f32")
USES = KERNEL.replace("a[i] * f", "twice(a[i]) * f")
CALLS, REALLY = HELPER + USES, REAL + USES
DOUBLES = KERNEL.replace("* f", "* 2.0")
CAPTURES = "FACTOR = 2.0" + KERNEL.replace("* f", "* FACTOR")
LONGER = KERNEL.replace("    for", "    # a line more\n    for")
RENAMED = KERNEL.replace("def scale", "def scaled") + "\nscale = scaled\n"

# What is another -> two texts, options, and the parts in which the keys of the kernel differ.
OTHERS = {
    "a line inside of a kernel": (KERNEL, LONGER, {}, set()),
    "... where messages show it": (KERNEL, LONGER, {"debug": True}, {"places"}),
    "... and checks do": (KERNEL, LONGER, {"check_out_of_bound": True}, {"places"}),
    "... and the interpreter does": (KERNEL, LONGER, {"arch": qd.interp}, {"places"}),
    "a number": (DOUBLES, DOUBLES.replace("* 2.0", "* 3.0"), {}, {"ir"}),
    "an operation": (DOUBLES, DOUBLES.replace("* 2.0", "+ 2.0"), {}, {"ir"}),
    "the type of a number": (DOUBLES, DOUBLES.replace("* 2.0", "* 2"), {}, {"ir"}),
    "the name of a parameter": (
        KERNEL, KERNEL.replace("f: qd.f32", "g: qd.f32").replace("* f", "* g"), {}, {"signature"},
    ),
    "the name of a kernel": (KERNEL, RENAMED, {}, {"kernel"}),
    "an inlined function": (CALLS, CALLS.replace("2.0", "3.0"), {}, {"ir"}),
    "where an inlined function stands": (CALLS, "\n\n\n" + CALLS, {"debug": True}, set()),
    "the body of a function that is called": (REALLY, REALLY.replace("2.0", "3.0"), {}, {"ir"}),
    "whether a function is called": (REALLY, CALLS, {}, {"ir"}),
    "a captured value": (CAPTURES, CAPTURES.replace("= 2.0", "= 3.0"), {}, {"ir"}),
    # The same line of a helper, reached from two lines of the kernel.
    "a place in the chain of calls": (
        CALLS, CALLS.replace("for i in a:", "for i in a:\n        # here"), {"debug": True},
        {"places"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", OTHERS)
def test_what_is_another_is_in_the_parts_that_it_changes(tmp_path, what):
    one, other, options, parts = OTHERS[what]
    assert same_kernel(tmp_path, one, other, **options) == parts


FIELDS = """
qd.init(arch=qd.cpu, offline_cache=False, log_level="error")
f = qd.field(qd.f32, shape=8)
@qd.kernel
def scale():
    for i in f:
        f[i] = f[i] * 2.0
scale()
"""


def field_key(tmp_path, text: str) -> dict[str, str]:
    kernel = module(tmp_path / "fields.py", text).scale
    found = dict(seen(kernel).parts)
    qd.reset()
    return found


def test_a_field_is_known_by_its_layout_not_by_which_it_is(tmp_path):
    first = field_key(tmp_path, FIELDS)
    more = FIELDS.replace("f = ", "other = qd.field(qd.i32, shape=(4, 4))\nf = ")
    assert field_key(tmp_path, more) == first
    assert differing(first, field_key(tmp_path, FIELDS.replace("shape=8", "shape=9"))) == {
        "signature", "ir",
    }  # fmt: skip
    apart = FIELDS.replace("shape=8)", "shape=8, offset=2)")
    assert "signature" in differing(first, field_key(tmp_path, apart))


def test_components_that_are_together_are_elsewhere(tmp_path):
    text = FIELDS.replace(
        "f = qd.field(qd.f32, shape=8)",
        "f = qd.field(qd.f32)\ng = qd.field(qd.f32)\nqd.root.dense(qd.i, 8).place(f, g)",
    )
    apart = text.replace(".place(f, g)", ".place(f)\nqd.root.dense(qd.i, 8).place(g)")
    assert differing(field_key(tmp_path, text), field_key(tmp_path, apart)) == {"signature"}


def test_the_assumption_about_overlaps_is_a_part(tmp_path):
    text = KERNEL.replace("f: qd.f32", "b: qd.types.NDArray[qd.f32, 1]").replace("* f", "* b[i]")
    kernel = module(tmp_path / "kernels.py", text).scale
    start()
    x = numbers()
    kernel(x, x)
    variant = next(iter(kernel.launchers.variants.values()))
    one, other = (dict(c.layers[1].parts) for c in (variant.compiled, variant.overlapping()))
    assert differing(one, other) == {"noalias"}
    qd.reset()


def test_the_engine_part_follows_its_source(tmp_path):
    from qd_studio.engine.cache import engine_id

    (tmp_path / "passes").mkdir()
    (tmp_path / "inspect").mkdir()
    (tmp_path / "passes" / "die.py").write_text("x = 1\n")
    (tmp_path / "inspect" / "look.py").write_text("x = 1\n")
    digest = engine_id.source_digest(str(tmp_path))
    assert engine_id.source_digest(str(tmp_path)) == digest
    (tmp_path / "inspect" / "look.py").write_text("x = 2\n")
    assert engine_id.source_digest(str(tmp_path)) == digest
    (tmp_path / "passes" / "die.py").write_text("x = 2\n")
    edited = engine_id.source_digest(str(tmp_path))
    assert edited != digest
    (tmp_path / "passes" / "die.py").rename(tmp_path / "passes" / "live.py")
    assert engine_id.source_digest(str(tmp_path)) not in (digest, edited)


def test_the_version_is_written_once():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert 'dynamic = ["version"]' in text
    assert '[tool.setuptools.dynamic]\nversion = { attr = "engine.version.VERSION" }' in text
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"\n## [{VERSION}]" in changes, "the changelog has no section of this version"


def test_the_options_of_the_program_are_parts_of_every_key():
    start()
    from qd_studio.engine.runtime.program import current

    config = current().config
    common = keys.common_parts(config, current().backend)
    wanted = {
        f"config.{name}": str(getattr(config, name))
        for name, option in OPTIONS.items()
        if option.in_cache_key and option.scope in ("any", "cpu") and name != "arch"
    }
    assert {name: value for name, value in common if name.startswith("config.")} == wanted
    qd.reset()


def test_the_digest_of_the_source_is_remembered_as_long_as_no_file_changes(tmp_path, root):
    from qd_studio.engine.cache import engine_id

    source = tmp_path / "engine"
    (source / "passes").mkdir(parents=True)
    file = source / "passes" / "die.py"
    file.write_text("x = 1\n")
    kept = store(root, "runtime")

    def remembered():
        before = kept.statistics.hits
        found = engine_id._remembered(str(source), kept)
        assert found == engine_id.source_digest(str(source))
        return kept.statistics.hits > before

    assert [remembered(), remembered()] == [False, True]
    times = file.stat()
    file.write_text("x = 2\n")  # as long as before, and made to look as old
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert [remembered(), remembered()] == [False, True]
    other = file.with_name("other.py")
    other.write_text("x = 2\n")
    os.utime(other, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert [remembered(), remembered()] == [False, True]
    os.replace(other, file)
    assert not remembered()
    (source / "inspect").mkdir()
    (source / "inspect" / "look.py").write_text("x = 1\n")
    assert remembered()
