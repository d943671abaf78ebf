"""The table of options: every one once, with its default, meaning, and place in cache keys.

`config.CompileConfig` takes its fields from here, and `config.OPTIONS` is the table read back. See
`options.py` for what the columns mean. Options of Quadrants that have no counterpart are declared
all the same, with `never=<why>`: they are accepted, and say once a process that they do nothing.

Data types are stored by name (`"f32"`): this layer is below `types`.
"""

from __future__ import annotations

import os

from . import logs as log
from .options import option

__all__ = ["OptionTable", "available_cpus"]


def available_cpus() -> int:
    """CPUs this process may run on; a container or `taskset` can allow fewer than there are."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0)) or 1
    return os.cpu_count() or 1


class OptionTable:
    """Each option is a field, declared with `option(default, doc, ...)`, under its name."""

    # What runs, and where
    arch: str = option(
        "cpu",
        "Backend to compile for; `init` accepts a list and uses the first that works.",
        key=True,
    )
    enable_fallback: bool = option(
        True, "Fall back to the CPU, with a warning, if `arch` is not available."
    )
    require_version: str = option(
        "",
        "Quadrants version that a program needs; `init` fails if this engine follows an older one.",
        env=False,
    )
    _test_mode: bool = option(
        False, "Only resolve the options and return them; start no program.", env=False
    )

    _code_target: str = option(
        "",
        "Target of a backend that launches nothing, the part of its name after the colon.",
        env=False,
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
        False,
        "Reject float values for template arguments: each new value compiles the kernel again.",
        key=True,
    )
    random_seed: int = option(0, "Seed of `qd.random`; read at launch, so no code depends on it.")

    # Checks
    debug: bool = option(
        False,
        "Kernel asserts, bounds and overflow checks; the IR is verified after each pass, and every "
        "launch waits for its end.",
        key=True,
    )
    check_out_of_bound: bool = option(
        False,
        "An index out of range raises an error at its launch, with file, line and kernel. `debug` "
        "turns it on.",
        key=True,
    )
    debug_nan: bool = option(
        False,
        "A launch that stores a NaN or an infinity raises an error that shows the operation, the "
        "iteration and the values that made it; see docs/nan.md. Every launch waits for its end.",
        key=True,
    )
    validate_autodiff: bool = option(
        False,
        "Check the rules that gradients depend on.",
        never="`qd.ad.Tape(validation=True)` checks the rules that gradients depend on",
    )

    # Optimisation
    opt_level: int = option(
        1,
        "1 runs all passes. 0 runs no optional pass, and LLVM at level 0: code as written, for "
        "comparisons. In Quadrants 0 only omits common-subexpression elimination, the control-flow "
        "graph and one merge: `cfg_optimization=False` comes closest.",
        key=True,
        minimum=0,
    )
    advanced_optimization: bool = option(
        True, "Simplify in rounds to a fixed point; if off, in one short round each time.", key=True
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
        True, "Mark arrays that a task only reads, so that loads may be cached.", key=True
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
        never="the compiler itself decides what a block of a GPU keeps in fast memory",
    )
    demote_dense_struct_fors: bool = option(
        True,
        "Turn loops over dense fields into plain ranges.",
        never="all fields are dense, and every loop over one is a plain range",
    )
    real_matrix_scalarize: bool = option(
        True,
        "Break matrices into scalars before code is generated.",
        never="matrices are always broken into scalars",
    )
    force_scalarize_matrix: bool = option(
        False,
        "Break matrices into scalars where they are built.",
        never="matrices are always broken into scalars",
        quiet=(True,),
    )
    skip_passes: str = option(
        "", "Optional passes that do not run, with commas between: `die,constant_fold`.", key=True
    )
    external_optimization_level: int = option(
        2,
        "Level of LLVM's own pipeline; 0 under `opt_level=0`. Below 3 large serial code for the "
        "CPU, and simple kernels for CUDA, get a short pipeline.",
        key=True,
        choices=(0, 1, 2, 3),
    )
    max_vector_width: int = option(
        0,
        "Maximum number of 32-bit lanes of a CPU vector; 0 leaves it to LLVM.",
        key=True,
        scope="cpu",
        minimum=0,
    )
    half2_vectorization: bool = option(
        False,
        "Pair f16 atomics on CUDA.",
        key=True,
        scope="gpu",
        never="atomics on f16 are done one by one",
    )
    num_compile_threads: int = option(
        4,
        "Threads that compile the tasks of one large kernel on the CPU. The code is the same.",
        minimum=0,
    )

    tiered: str = option(
        "auto",
        "Launch quickly generated code first, while LLVM optimises in the background. `auto`, "
        "`on`: for all kernels; with `fast_math` the last digits of floats may depend on when the "
        "code is replaced. `exact`: where both return the same bits, which is so without "
        "`fast_math`, and for kernels that compute with no floats. `off`: the first call waits "
        "for LLVM.",
        scope="cpu",
        choices=("auto", "on", "exact", "off"),
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
        "Minimum iterations in a chunk of a CPU thread; at 32 the cost of the body decides.",
        key=True,
        scope="cpu",
        minimum=1,
    )

    # GPU
    cuda_arch: str = option(
        "",
        "Processor that CUDA code is generated for, such as sm_90; empty: that of the device.",
        key=True,
        scope="gpu",
    )
    amdgpu_arch: str = option(
        "",
        "Processor that AMDGPU code is generated for; empty: gfx942.",
        key=True,
        scope="gpu",
        choices=("", "gfx90a", "gfx942", "gfx1100"),
    )
    default_gpu_block_dim: int = option(
        128,
        "Threads in a block of a GPU launch; at 128, light loops and sums use 256.",
        key=True,
        scope="gpu",
        minimum=1,
    )
    gpu_tile: str = option(
        "",
        "Neighbouring iterations of a GPU thread along each axis, from the fastest: 4x2x4; empty:"
        " the compiler chooses.",
        key=True,
        scope="gpu",
    )
    graph: bool = option(
        True,
        "Record kernels with `graph=True` as graphs of the device; if off, launch them task by"
        " task.",
        key=True,
    )
    max_block_dim: int = option(
        1024, "Upper limit of a block size.", key=True, scope="gpu", minimum=0
    )
    gpu_max_reg: int = option(
        0, "Registers that a GPU thread may use; 0: no limit.", key=True, scope="gpu", minimum=0
    )
    saturating_grid_dim: int = option(
        0,
        "Number of blocks that fill the device; 0: computed from the device.",
        key=True,
        scope="gpu",
        minimum=0,
    )
    cuda_stack_limit: int = option(
        0,
        "Bytes of stack of a CUDA thread; 0: the default, or 32 KB if functions are recursive.",
        key=True,
        scope="gpu",
        minimum=0,
    )
    opencl_device: str = option(
        "",
        "OpenCL device: index of platform and device (1:0), or part of a name (nvidia,"
        " nvidia:1); empty: PoCL, else the first device.",
    )
    opencl_mapping: str = option(
        "auto",
        "Mapping of loops to OpenCL work-items: `chunks` or single iterations (`lanes`); `auto`"
        " depends on the kind of device.",
        key=True,
        scope="gpu",
        choices=("auto", "chunks", "lanes"),
    )
    opencl_il: bool = option(
        False,
        "Pass SPIR-V, generated by LLVM, to OpenCL devices in place of OpenCL C; an error on"
        " devices that do not accept it.",
        key=True,
        scope="gpu",
    )
    opencl_target: str = option(
        "",
        "Generate OpenCL C for this kind of device, without one; such code is never launched.",
        key=True,
        scope="gpu",
        choices=("", "cpu", "gpu"),
    )
    device_memory_GB: float = option(
        1.0,
        "Freed device memory that a program keeps for its next arrays, in GiB; the rest is freed.",
        minimum=0,
    )
    device_memory_fraction: float = option(
        0.0,
        "Limit of a program's device memory, as a share of the whole; the program keeps all freed"
        " memory below the limit. 0 sets no limit and uses `device_memory_GB`.",
        minimum=0,
    )

    # Gradients
    ad_stack_experimental_enabled: bool = option(
        False,
        "Allow loops inside of loops in gradients: stacks keep the values that they overwrite.",
        key=True,
    )
    ad_stack_size: int = option(
        0, "Number of entries of every stack; 0: computed for each stack.", key=True, minimum=0
    )
    ad_stack_budget_bytes: int = option(
        0,
        "Bytes of adstacks that one thread may use: loops that need more keep checkpoints, and run"
        " again in parts. 0: no limit.",
        key=True,
        minimum=0,
    )
    ad_stack_sparse_threshold_bytes: int = option(
        104857600,
        "Threshold for the float adstacks of a task, counted for 131072 threads: above it, only as"
        " many rows are allocated as iterations pass the adstack predicate.",
        key=True,
        minimum=0,
    )

    # Caches
    offline_cache: bool = option(
        True, "Keep compiled kernels on disk; if off, only in the memory of the process."
    )
    offline_cache_file_path: str = option(
        "",
        "Folder of the caches on disk; empty: the user's cache directory.",
        default_text="user cache directory",
    )
    offline_cache_cleaning_policy: str = option(
        "lru",
        "Entries that are removed when the caches reach their size limit.",
        choices=("never", "version", "lru", "fifo"),
    )
    offline_cache_cleaning_factor: float = option(
        0.25, "Share of the size limit that one cleaning frees.", minimum=0
    )
    offline_cache_max_size_of_files: int = option(
        104857600, "Size limit of all caches on disk together, in bytes.", minimum=0
    )
    remote_cache: str = option(
        "",
        "URL of a cache that machines share, below the caches on disk: HTTP as bazel-remote speaks "
        "it, or any URL of fsspec; empty: none. The key is in `QD_REMOTE_CACHE_KEY`.",
    )
    remote_cache_mode: str = option(
        "read_write",
        "Whether entries are also sent to the shared cache; without a key to sign they never are.",
        choices=("read", "read_write"),
    )
    remote_cache_key_file: str = option(
        "", "File of the key that signs and checks shared entries; not the key itself."
    )
    remote_cache_trust: str = option(
        "", "Files of public ed25519 keys whose shared entries are used, separated as in `PATH`."
    )
    remote_cache_deadline: float = option(
        100.0, "Milliseconds that a look-up in the shared cache may take.", minimum=0
    )
    remote_cache_max_age: float = option(
        30.0, "Days after which a shared entry is not used.", minimum=0
    )
    src_ll_cache: bool = option(
        True, "Look up kernels marked `fastcache` by their source; needs `offline_cache`."
    )
    print_non_pure: bool = option(
        False, "Print the name of every compiled kernel that is not marked `fastcache`."
    )

    # Seeing what happens
    log_level: str = option("info", "Lowest level of messages that are shown.", choices=log.LEVELS)
    print_full_traceback: bool = option(False, "Show the engine's own frames in errors.")
    print_preprocessed_ir: bool = option(False, "Print the IR from the frontend.")
    print_ir: bool = option(False, "Print the IR after every stage.")
    print_ir_dbg_info: bool = option(False, "Add source positions to printed IR.")
    print_kernel_llvm_ir: bool = option(False, "Print LLVM IR before LLVM optimises it.")
    print_kernel_llvm_ir_optimized: bool = option(False, "Print LLVM IR after LLVM optimised it.")
    print_kernel_asm: bool = option(False, "Print the assembly.")
    print_kernel_amdgcn: bool = option(
        False, "Print the AMD GPU assembly.",
        never="no program runs on an AMD GPU; `qd-studio FILE --report --backend amdgpu` shows it",
    )  # fmt: skip
    print_accessor_ir: bool = option(
        False,
        "Print the IR of field accessors.",
        never="kernels hold the arithmetic of fields, and `print_ir` shows it",
    )
    print_struct_llvm_ir: bool = option(
        False,
        "Print the LLVM IR of field layouts.",
        never="kernels hold the arithmetic of fields: `print_kernel_llvm_ir` shows it",
    )
    debug_dump_path: str = option("/tmp/ir/", "Directory of dump files.")
    kernel_profiler: bool = option(False, "Time every task.", key=True)
    timeline: bool = option(
        False, "Record a timeline of launches.",
        never="`kernel_profiler=True` times every task, and the studio's Launch tab draws launches",
    )  # fmt: skip
    gdb_trigger: bool = option(
        False,
        "Stop in gdb at a crash.",
        never="no debugger is started; run `gdb --args python FILE`",
    )

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
        "Version of Vulkan to ask for, such as 1.2; empty accepts any.",
        never="there is no Vulkan backend",
        pattern=r"(1\.[0-4](\.\d{1,4})?)?",
        form="empty, or a version of Vulkan from 1.0 to 1.4 such as 1.2",
    )
    external_metal_command_queue: int = option(
        0,
        "Address of an `MTLCommandQueue` to launch on; 0 creates a new queue.",
        never="there is no Metal backend",
        minimum=0,
        maximum=(1 << 64) - 1,
        form="the address of a Metal command queue as an integer, or 0",
    )
    external_metal_command_queue_is_torch_queue: bool = option(
        False,
        "That queue belongs to PyTorch: no waits for arrays that are shared with it.",
        never="there is no Metal backend",
    )
