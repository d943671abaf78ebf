"""Every option of the engine, once: default, environment name, meaning, place in cache keys.

`CompileConfig` is the table and the object at the same time: each field is declared with
`option(default, doc, ...)`, and `OPTIONS` is that table read back (see `options.py` for what the
columns mean). A program holds one config, made by `resolve` at `init` and frozen from then on:

    config, origins, warnings = resolve({"debug": True}, os.environ)

A value comes from the keyword argument, else from `QD_<NAME>`, else from the default. Options
whose machinery is not there yet are declared all the same, with `later=<area>`: they are accepted,
and say once a process that they have no effect.

Data types are stored by name (`"f32"`): this layer lies below `types`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, Self, cast

from . import logs as log
from .errors import QuadrantsRuntimeError
from .options import Option, did_you_mean, option, parse_switch

Origin = Literal["argument", "environment", "default", "implied"]

LANGUAGE_VERSION = (1, 3, 3)
"""The version of Quadrants whose language and options this engine follows.

`require_version` asks for it.
"""

ARCHES = (
    "cpu",
    "x64",
    "arm64",
    "interp",
    "cuda",
    "opencl",
    "amdgpu",
    "gpu",
    "metal",
    "vulkan",
    "python",
)
"""Names `arch` may have. Which of them this machine can run is for the runtime to say."""

CPU_ARCHES = frozenset({"cpu", "x64", "arm64", "interp", "python"})


def available_cpus() -> int:
    """CPUs this process may run on; a container or `taskset` can allow fewer than there are."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0)) or 1
    return os.cpu_count() or 1


class CompileConfig:
    """The options of a program.

    Attributes can be set until `freeze`; a name that is no option is an error. The class's own
    attributes are the options' descriptions, which the values of an object hide.
    """

    # What runs, and where
    arch: str = option(
        "cpu", "Backend to compile for; a list at `init` means the first that works.", key=True
    )
    enable_fallback: bool = option(
        True, "Fall back to the CPU, with a warning, if `arch` is not available."
    )
    require_version: str = option(
        "",
        "Quadrants version a program asks for; `init` fails if this engine follows an older one.",
        env=False,
    )
    _test_mode: bool = option(
        False, "Only resolve the options and return them; start no program.", env=False
    )

    # Language
    default_fp: str = option(
        "f32",
        "Type of float literals and of true division of integers.",
        key=True,
        choices=("f16", "f32", "f64"),
    )
    default_ip: str = option(
        "i32", "Type of integer literals and loop indices.", key=True, choices=("i32", "i64")
    )
    short_circuit_operators: bool = option(
        True, "`and` and `or` evaluate their right side only when needed, as in Python.", key=True
    )
    unrolling_limit: int = option(
        32,
        "Warn when `qd.static` unrolls a loop to more iterations than this; 0 never warns.",
        minimum=0,
    )
    raise_on_templated_floats: bool = option(
        False, "Reject float values for template arguments: each new value compiles anew.", key=True
    )
    random_seed: int = option(0, "Seed of `qd.random`; read at launch, so no code depends on it.")

    # Checks
    debug: bool = option(
        False,
        "Kernel asserts, bounds and overflow checks; the IR is verified after each pass.",
        key=True,
    )
    check_out_of_bound: bool = option(
        False,
        "Indices out of range raise, with file, line and kernel. `debug` turns it on.",
        key=True,
    )
    validate_autodiff: bool = option(
        False,
        "Check the rules that gradients rest on: `qd.ad.Tape(validation=True)` does.",
        never=True,
    )

    # Optimisation
    opt_level: int = option(
        1,
        "0 leaves out common-subexpression elimination and the control-flow graph; 1 has both.",
        key=True,
        minimum=0,
    )
    advanced_optimization: bool = option(
        True,
        "Simplify in rounds to a fixed point; off, one short round each time.",
        key=True,
    )
    cfg_optimization: bool = option(
        True, "Store-to-load forwarding and dead-store removal on the control-flow graph.", key=True
    )
    constant_folding: bool = option(
        True, "Compute operations on constants at compile time.", key=True
    )
    fast_math: bool = option(
        True, "Reassociate and contract float operations, assume no NaN and no infinity.", key=True
    )
    move_loop_invariant_outside_if: bool = option(
        False, "Hoist loop invariants out of an `if` inside the loop too.", key=True
    )
    cache_loop_invariant_global_vars: bool = option(
        True, "Keep an element that a loop always uses in a local variable.", key=True
    )
    detect_read_only: bool = option(
        True, "Mark arrays a task only reads, so that loads may be cached.", key=True
    )
    flatten_if: bool = option(False, "Turn small branches into selects.", key=True)
    make_thread_local: bool = option(
        True, "Reductions accumulate per thread and are merged at the end.", key=True
    )
    make_cpu_multithreading_loop: bool = option(
        True, "Split top-level loops over the threads of the CPU pool.", key=True, scope="cpu"
    )
    make_block_local: bool = option(
        True,
        "Stage blocks of fields that `loop_config` names in fast memory.",
        key=True,
        later="gpu",
    )
    demote_dense_struct_fors: bool = option(
        True, "Turn loops over dense fields into plain ranges: they always are.", never=True
    )
    real_matrix_scalarize: bool = option(
        True, "Break matrices into scalars before code is generated: they are.", never=True
    )
    force_scalarize_matrix: bool = option(
        False,
        "Break matrices into scalars where they are built: they are.",
        never=True,
        quiet=(True,),
    )
    external_optimization_level: int = option(
        2, "Level of LLVM's own pipeline.", key=True, choices=(0, 1, 2, 3)
    )
    max_vector_width: int = option(
        0,
        "Most 32-bit lanes a CPU vector may have; 0 leaves it to LLVM.",
        key=True,
        scope="cpu",
        minimum=0,
    )
    half2_vectorization: bool = option(
        False, "Pair f16 atomics on CUDA.", key=True, scope="gpu", later="gpu"
    )
    num_compile_threads: int = option(
        4,
        "Threads that compile the tasks of one kernel.",
        minimum=0,
        later="compile threads",
        quiet=(0, 1),
    )

    # CPU
    cpu_max_num_threads: int = option(
        available_cpus,
        "Threads of the CPU pool.",
        key=True,
        scope="cpu",
        minimum=1,
        default_text="CPUs available to the process",
    )
    default_cpu_block_dim: int = option(
        32,
        "Cells a CPU thread takes at a time, at least; at 32 the cost of the body decides.",
        key=True,
        scope="cpu",
        minimum=1,
    )

    # GPU
    cuda_arch: str = option(
        "",
        "Processor that CUDA code is made for, such as sm_90; empty asks the device.",
        key=True,
        scope="gpu",
    )
    amdgpu_arch: str = option(
        "",
        "Processor that AMDGPU code is made for; empty is gfx942.",
        key=True,
        scope="gpu",
        choices=("", "gfx90a", "gfx942", "gfx1100"),
    )
    default_gpu_block_dim: int = option(
        128,
        "Threads in a block of a GPU launch; left at 128, light loops take 256.",
        key=True,
        scope="gpu",
        minimum=1,
    )
    graph: bool = option(
        True,
        "Record kernels with `graph=True` as graphs of the device; else they are launched task by"
        " task.",
        key=True,
    )
    max_block_dim: int = option(
        1024, "Upper limit of a block size.", key=True, scope="gpu", minimum=0
    )
    gpu_max_reg: int = option(
        0,
        "Registers a GPU thread may use; 0 is no limit.",
        key=True,
        scope="gpu",
        minimum=0,
    )
    saturating_grid_dim: int = option(
        0,
        "Blocks that fill the device; 0 asks the device.",
        key=True,
        scope="gpu",
        minimum=0,
    )
    cuda_stack_limit: int = option(
        0,
        "Bytes of stack a CUDA thread has; 0 is the default, 32 KB where functions are recursive.",
        key=True,
        scope="gpu",
        minimum=0,
    )
    opencl_device: str = option(
        "",
        "Device of OpenCL: numbers of platform and device (1:0), or part of a name (nvidia,"
        " nvidia:1); empty is PoCL, else the first one.",
    )
    opencl_mapping: str = option(
        "auto",
        "How OpenCL work-items share a loop: pieces of it, or single cells; auto asks the device.",
        key=True,
        scope="gpu",
        choices=("auto", "chunks", "lanes"),
    )
    opencl_il: bool = option(
        False,
        "Hand OpenCL devices SPIR-V, made by LLVM, in place of OpenCL C; an error on those that"
        " take none.",
        key=True,
        scope="gpu",
    )
    opencl_target: str = option(
        "",
        "Make OpenCL C without a device, for processors of a kind; such code is never launched.",
        key=True,
        scope="gpu",
        choices=("", "cpu", "gpu"),
    )
    device_memory_GB: float = option(
        1.0,
        "Freed device memory that a program keeps for its next arrays, in GiB; the rest goes back.",
        minimum=0,
    )
    device_memory_fraction: float = option(
        0.0,
        "Most device memory that a program may have, as a share of the whole, all of which it keeps"
        " when freed; 0 sets no limit and uses `device_memory_GB`.",
        minimum=0,
    )

    # Gradients
    ad_stack_experimental_enabled: bool = option(
        False,
        "Allow loops inside of loops in gradients: values that they overwrite are kept on stacks.",
        key=True,
    )
    ad_stack_size: int = option(
        0,
        "Entries in each stack; 0 sizes every stack by itself.",
        key=True,
        minimum=0,
    )
    ad_stack_sparse_threshold_bytes: int = option(
        104857600,
        "From this size on the stacks of reals of a task, for 131072 threads, are kept only for as"
        " many threads as iterations pass its condition.",
        key=True,
        minimum=0,
    )

    # Caches
    offline_cache: bool = option(
        True, "Keep compiled kernels on disk; without, in the memory of the process only."
    )
    offline_cache_file_path: str = option(
        "",
        "Where; empty is the cache directory of the user.",
        default_text="user cache directory",
    )
    offline_cache_cleaning_policy: str = option(
        "lru",
        "What goes first when the cache is full.",
        choices=("never", "version", "lru", "fifo"),
    )
    offline_cache_cleaning_factor: float = option(
        0.25, "Share of that size that one cleaning frees.", minimum=0
    )
    offline_cache_max_size_of_files: int = option(104857600, "Bytes the cache may take.", minimum=0)
    src_ll_cache: bool = option(
        True, "Look kernels marked `fastcache` up by their source; needs `offline_cache`."
    )
    print_non_pure: bool = option(
        False, "Print the name of every compiled kernel that is not marked `fastcache`."
    )

    # Seeing what happens
    log_level: str = option("info", "Least important message that is shown.", choices=log.LEVELS)
    print_full_traceback: bool = option(False, "Show the engine's own frames in errors.")
    print_preprocessed_ir: bool = option(False, "Print the IR as the front end made it.")
    print_ir: bool = option(False, "Print the IR after every stage.")
    print_ir_dbg_info: bool = option(False, "Add source positions to printed IR.")
    print_kernel_llvm_ir: bool = option(False, "Print LLVM IR before LLVM optimises it.")
    print_kernel_llvm_ir_optimized: bool = option(False, "Print LLVM IR after LLVM optimised it.")
    print_kernel_asm: bool = option(False, "Print the assembly.")
    print_kernel_amdgcn: bool = option(False, "Print the AMD GPU assembly.", later="gpu")
    print_accessor_ir: bool = option(
        False, "Print the IR of field accessors: kernels hold that arithmetic.", never=True
    )
    print_struct_llvm_ir: bool = option(
        False, "Print the LLVM IR of field layouts: kernels hold their arithmetic.", never=True
    )
    debug_dump_path: str = option("/tmp/ir/", "Directory of dump files.")
    kernel_profiler: bool = option(False, "Time every task.", key=True)
    timeline: bool = option(False, "Record a timeline of launches.", later="timeline")
    gdb_trigger: bool = option(False, "Stop in gdb at a crash.", never=True)

    # Accepted for Quadrants programs, without meaning here
    quant_opt_store_fusion: bool = option(True, "Quantised types: fuse stores.", never=True)
    quant_opt_atomic_demotion: bool = option(
        True, "Quantised types: plain stores for atomics.", never=True
    )
    make_mesh_block_local: bool = option(
        True, "Meshes: stage attributes in fast memory.", never=True
    )
    mesh_localize_to_end_mapping: bool = option(
        True, "Meshes: which mappings are staged.", never=True
    )
    mesh_localize_from_end_mapping: bool = option(
        False, "Meshes: which mappings are staged.", never=True
    )
    mesh_localize_all_attr_mappings: bool = option(
        False, "Meshes: which mappings are staged.", never=True
    )
    optimize_mesh_reordered_mapping: bool = option(True, "Meshes: order of elements.", never=True)
    demote_no_access_mesh_fors: bool = option(
        True, "Meshes: plain loops where possible.", never=True
    )
    experimental_auto_mesh_local: bool = option(False, "Meshes: choose what is staged.", never=True)
    auto_mesh_local_default_occupacy: int = option(4, "Meshes: blocks per processor.", never=True)
    vk_api_version: str = option(
        "",
        "Version of Vulkan to ask for, such as 1.2; empty takes what there is.",
        later="vulkan",
        pattern=r"(1\.[0-4](\.\d{1,4})?)?",
        form="empty, or a version of Vulkan from 1.0 to 1.4 such as 1.2",
    )
    external_metal_command_queue: int = option(
        0,
        "Address of an `MTLCommandQueue` to launch on; 0 makes a queue of its own.",
        later="metal",
        minimum=0,
        maximum=(1 << 64) - 1,
        form="the address of a Metal command queue as an integer, or 0",
    )
    external_metal_command_queue_is_torch_queue: bool = option(
        False,
        "That queue is PyTorch's: no waits where arrays are shared with it.",
        later="metal",
    )

    _frozen = False

    def __init__(self, **values: Any) -> None:
        """The given options, by name and unchecked, and the defaults of the others."""
        if unknown := [name for name in values if name not in OPTIONS]:
            raise TypeError(f"CompileConfig has no option {', '.join(unknown)}")
        own = self.__dict__
        for name, opt in OPTIONS.items():
            own[name] = values[name] if name in values else opt.initial()

    def __setattr__(self, name: str, value: Any) -> None:
        if self._frozen:
            raise AttributeError(
                f"the config is frozen, {name} cannot be set; use replace() for a copy"
            )
        if name not in OPTIONS:
            raise AttributeError(f"CompileConfig has no option {name}")
        self.__dict__[name] = value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CompileConfig):
            return NotImplemented
        return self.as_dict() == other.as_dict()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = ", ".join([f"{name}={value!r}" for name, value in self.as_dict().items()])
        return f"CompileConfig({shown})"

    @property
    def default_up(self) -> str:
        """The unsigned type that goes with `default_ip`; it cannot be set on its own."""
        return "u64" if self.default_ip == "i64" else "u32"

    @property
    def is_cpu(self) -> bool:
        return self.arch in CPU_ARCHES

    def freeze(self) -> Self:
        """Allow no further change. Returns itself."""
        self.__dict__["_frozen"] = True
        return self

    def as_dict(self) -> dict[str, Any]:
        """All options by name, in the order of the table."""
        return {name: getattr(self, name) for name in OPTIONS}

    def copy(self) -> Self:
        """An equal config that can be changed."""
        return type(self)(**self.as_dict())

    def replace(self, **changes: Any) -> Self:
        """A changed copy; the values are checked like those of `init`."""
        result = self.copy()
        for name, value in changes.items():
            setattr(result, name, _known(name).coerce(value))
        if result.debug:
            result.check_out_of_bound = True
        return result

    def key_parts(self) -> tuple[tuple[str, str], ...]:
        """The options that change generated code for this `arch`: (name, value) in table order.

        Cache keys hash these pairs and keep them, so that a miss can name the option that differs.
        """
        kinds = ("any", "cpu" if self.is_cpu else "gpu")
        if self.arch == "opencl":  # whose devices may be of either kind
            kinds = ("any", "cpu", "gpu")
        return tuple(
            (opt.name, str(getattr(self, opt.name)))
            for opt in OPTIONS.values()
            if opt.in_cache_key and opt.scope in kinds
        )


OPTIONS: dict[str, Option] = {
    name: declared for name, declared in vars(CompileConfig).items() if isinstance(declared, Option)
}
"""The table: every option by name, in the order of its declaration."""


def _known(name: str) -> Option:
    """The option called `name`; KeyError, with the closest name, if there is none."""
    if name not in OPTIONS:
        raise _unrecognized([name])
    return OPTIONS[name]


def _unrecognized(names: list[str]) -> KeyError:
    near = "".join(did_you_mean(name, OPTIONS) for name in names)
    text = ", ".join(names)
    return KeyError(f"Unrecognized keyword argument(s) for qd.init: {text}{near}")


class Notice(NamedTuple):
    """Something `resolve` has to tell the user. `once`: at most once a process."""

    text: str
    once: bool = False


class Resolved(NamedTuple):
    """What `resolve` found: the config (not frozen yet), each value's origin, what to tell."""

    config: CompileConfig
    origins: dict[str, Origin]
    warnings: list[Notice]

    def tell(self) -> None:
        """Apply the log level and write the warnings."""
        log.set_level(self.config.log_level)
        for notice in self.warnings:
            log.warn(notice.text, once=notice.once)


_BITS_FROM_ENV = {"default_fp": "f", "default_ip": "i"}
"""Options whose variable holds a number of bits, with the letter that makes it a type."""


def _from_env(opt: Option, environ: Mapping[str, str]) -> Any:
    """The value that the environment gives `opt`, or None. An empty variable counts as unset."""
    text = environ.get(opt.env, "") if opt.env else ""
    if not text:
        return None
    if opt.name in _BITS_FROM_ENV:
        if text not in ("32", "64"):
            raise ValueError(f"Invalid {opt.env}={text}, should be 32 or 64")
        return _BITS_FROM_ENV[opt.name] + text
    return opt.parse(text)


def wanted_arches(arch: Any, environ: Mapping[str, str]) -> tuple[str, ...]:
    """The arch names to try, in order.

    `arch` is None, a name, an object with a `name`, or a list of these; `QD_ARCH` overrides it.
    ValueError for a name that is no arch.
    """
    if environ.get("QD_ARCH"):
        arch = environ["QD_ARCH"]
    if arch is None:
        arch = OPTIONS["arch"].default
    wanted = list(cast("list[Any]", arch)) if isinstance(arch, list | tuple) else [arch]
    if not wanted:
        raise ValueError("arch is an empty list: name at least one")
    names = tuple(str(OPTIONS["arch"].coerce(item)).lower() for item in wanted)
    for name in names:
        if name not in ARCHES:
            raise ValueError(f'Unknown arch "{name}"{did_you_mean(name, ARCHES)}')
    return names


def resolve(kwargs: Mapping[str, Any], environ: Mapping[str, str]) -> Resolved:
    """Make the config of a program from the arguments of `init` and the environment.

    An argument that is None counts as not given. `arch` becomes the first of `wanted_arches`; the
    runtime, which knows the machine, may put another in its place before it freezes the config.

    KeyError for an unknown argument; TypeError or ValueError for a value that does not fit;
    QuadrantsRuntimeError for a `require_version` that this engine does not meet.
    """
    if unknown := [name for name in kwargs if name not in OPTIONS]:
        raise _unrecognized(unknown)
    config = CompileConfig()
    origins: dict[str, Origin] = {}
    warnings: list[Notice] = []
    for name, opt in OPTIONS.items():
        argument = kwargs.get(name)
        if name == "arch":
            from_env = bool(environ.get("QD_ARCH"))
            config.arch = wanted_arches(argument, environ)[0]
            given = argument is not None
            origins[name] = "environment" if from_env else "argument" if given else "default"
            continue
        value = _from_env(opt, environ)
        origins[name] = "default" if value is None else "environment"
        if argument is not None:
            argument = opt.coerce(argument)
            if value is not None and value != argument:
                text = environ[opt.env or ""]
                over = f'overridden by qd.init argument "{name}"'
                warnings.append(Notice(f"Environment variable {opt.env}={text} {over}"))
            value, origins[name] = argument, "argument"
        if value is not None:
            setattr(config, name, value)
            if idle := opt.without_effect(value):
                warnings.append(Notice(idle, once=True))
    if config.debug and not config.check_out_of_bound:
        if origins["check_out_of_bound"] != "default":
            warnings.append(Notice("debug=True turns check_out_of_bound on"))
        config.check_out_of_bound, origins["check_out_of_bound"] = True, "implied"
    torch_s = config.external_metal_command_queue_is_torch_queue
    if torch_s and not config.external_metal_command_queue:
        warnings.append(
            Notice(
                "external_metal_command_queue_is_torch_queue=True says whose queue"
                " external_metal_command_queue is, and that is not given",
                once=True,
            )
        )
    check_version(config.require_version)
    return Resolved(config, origins, warnings)


def check_version(required: str) -> None:
    """Fail if a program requires a Quadrants version that this engine does not follow.

    Whatever stands after x.y.z is ignored.
    """
    if not required:
        return
    digits = required.strip().split("+")[0].split("-")[0].split(".")
    if len(digits) != 3 or not all(part.isdigit() for part in digits):
        raise ValueError(f'require_version must look like "1.3.0", not {required!r}')
    wanted = tuple(int(part) for part in digits)
    if wanted[0] != LANGUAGE_VERSION[0] or wanted > LANGUAGE_VERSION:
        have = ".".join(map(str, LANGUAGE_VERSION))
        raise QuadrantsRuntimeError(f"Quadrants {required} is required, this engine follows {have}")


class DebugSwitches(NamedTuple):
    """Switches that only the environment has, read once at `init`.

    Passes never look at the environment.
    """

    dump_ir: bool = False
    """QD_DUMP_IR: every stage's IR to files under `debug_dump_path`."""
    dump_simplify: bool = False
    """QD_DUMP_SIMPLIFY: the IR after every step of the simplification rounds."""
    dump_cfg: bool = False
    """QD_DUMP_CFG: the control-flow graph before and after its optimisation."""
    show_compiling: bool = False
    """QD_SHOW_COMPILING: say which kernel is compiled, whenever one is."""

    @property
    def dumps(self) -> bool:
        """Whether anything is written to `debug_dump_path`."""
        return self.dump_ir or self.dump_simplify or self.dump_cfg

    @classmethod
    def read(cls, environ: Mapping[str, str]) -> Self:
        """Read the switches; an unset variable is off. ValueError for one that is not 0 or 1."""
        texts = {name: environ.get(f"QD_{name.upper()}", "") for name in cls._fields}
        return cls(
            **{name: parse_switch(f"QD_{name.upper()}", text) for name, text in texts.items()}
        )
