"""Capture of compiles and launches as data: what every panel, report and query shows.

`record` is the data model and loads nothing of the compiler; so are `load`, `save`, `schema` and
`canonical`, so that saved records open where nothing can be compiled. The rest captures, and is
imported when first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from . import record
from .store import RecordFileError, canonical, dumps, load, loads, save, schema, schema_text

if TYPE_CHECKING:
    from .arguments import Call
    from .assuming import ASSUMPTIONS, SUGGESTED, assumption, suggested, try_assumptions, what_if
    from .bisect import bisect_capture, bisect_kernel
    from .caches import PastLookups, dry_caches
    from .capture import KernelCapture, capture_ir, capture_kernel
    from .code_forms import ReadableCode, readable_code
    from .compare import (
        BackendComparison,
        Comparison,
        KernelComparison,
        compare_compiles,
        compare_kernels,
        compare_records,
    )
    from .debugging import DebugError, Debugger, debug
    from .describing import describe, kernel_id
    from .diff import (
        Diff,
        DiffRow,
        Listing,
        diff_listings,
        diff_pass,
        diff_renumbered,
        diff_text,
    )
    from .differentiable import gradient_features, gradient_name
    from .discover import (
        LaunchReached,
        RecordedCalls,
        Subject,
        call_key,
        effective_config,
        ensure_program,
        has_functions,
        kernels_called,
        kernels_in,
        recorded_calls,
    )
    from .explaining import Explanation, explanations, pass_page, pass_summary
    from .faults import count_as_user, error_at, error_record, is_user_file
    from .folders import CacheFolder, LayerFolder, cache_folder
    from .gradient_check import check_gradient
    from .gradients import GradientCapture
    from .hardware import (
        CudaComponent,
        CudaDeviceInfo,
        CudaMachine,
        OpenclDeviceInfo,
        OpenclMachine,
        cuda_machine,
        lost_device,
        opencl_machine,
    )
    from .peak_bench import ensure_peaks
    from .readable import Readable, readable_ir
    from .record_bisection import Bisection, Reproducer
    from .record_gradient import GradientReport, GradientStep
    from .recorder import Recorder, ShownRun
    from .reproducer import check_reproducer, reproducer_of
    from .settings import (
        BackendInfo,
        OptionInfo,
        backends,
        every_backend,
        expand,
        lacking,
        options,
        parse_setting,
        self_test,
    )
    from .shared import SharedCache, push, shared_cache
    from .steps import StepLimit, Steps
    from .stores import CacheFault, CacheRemoval, Caches, CachesBusyError
    from .tool import cpu_features, tool_info
    from .tracking import Track, Tracker, track, tracks

__all__ = [
    "ASSUMPTIONS", "SUGGESTED", "BackendComparison", "BackendInfo", "Bisection", "CacheFault",
    "CacheFolder", "CacheRemoval", "Caches", "CachesBusyError", "Call", "Comparison",
    "CudaComponent", "CudaDeviceInfo", "CudaMachine", "DebugError", "Debugger", "Diff", "DiffRow",
    "Explanation", "GradientCapture", "GradientReport", "GradientStep", "KernelCapture",
    "KernelComparison", "LaunchReached", "LayerFolder", "Listing", "OpenclDeviceInfo",
    "OpenclMachine", "OptionInfo", "PastLookups", "Readable", "ReadableCode", "RecordFileError",
    "RecordedCalls", "Recorder", "Reproducer", "SharedCache", "ShownRun", "StepLimit", "Steps",
    "Subject", "Track", "Tracker", "assumption", "backends", "bisect_capture", "bisect_kernel",
    "cache_folder", "call_key", "canonical", "capture_ir", "capture_kernel", "check_gradient",
    "check_reproducer", "compare_compiles", "compare_kernels", "compare_records", "count_as_user",
    "cpu_features", "cuda_machine", "debug", "describe", "diff_listings", "diff_pass",
    "diff_renumbered", "diff_text", "dry_caches", "dumps", "effective_config", "ensure_peaks",
    "ensure_program", "error_at", "error_record", "every_backend", "expand", "explanations",
    "gradient_features", "gradient_name", "has_functions", "is_user_file", "kernel_id",
    "kernels_called", "kernels_in", "lacking", "load", "loads", "lost_device", "opencl_machine",
    "options", "parse_setting", "pass_page", "pass_summary", "push", "readable_code", "readable_ir",
    "record", "recorded_calls", "reproducer_of", "save", "schema", "schema_text", "self_test",
    "shared_cache", "suggested", "tool_info", "track", "tracks", "try_assumptions", "what_if",
]  # fmt: skip

_NAMES: Final = {
    "arguments": "Call",
    "assuming": "ASSUMPTIONS SUGGESTED assumption suggested try_assumptions what_if",
    "bisect": "bisect_capture bisect_kernel",
    "caches": "PastLookups dry_caches",
    "capture": "KernelCapture capture_ir capture_kernel",
    "code_forms": "ReadableCode readable_code",
    "compare": "BackendComparison Comparison KernelComparison compare_compiles compare_kernels "
    "compare_records",
    "debugging": "DebugError Debugger debug",
    "describing": "describe kernel_id",
    "diff": "Diff DiffRow Listing diff_listings diff_pass diff_renumbered diff_text",
    "differentiable": "gradient_features gradient_name",
    "discover": "LaunchReached RecordedCalls Subject call_key effective_config ensure_program "
    "has_functions kernels_called kernels_in recorded_calls",
    "earlier": "Earlier KeptLooks Unclear",
    "edited": "EditedCapture",
    "explaining": "Explanation explanations pass_page pass_summary",
    "faults": "count_as_user error_at error_record is_user_file",
    "folders": "CacheFolder LayerFolder cache_folder",
    "gradient_check": "check_gradient",
    "gradients": "GradientCapture",
    "hardware": "CudaComponent CudaDeviceInfo CudaMachine OpenclDeviceInfo OpenclMachine "
    "cuda_machine lost_device opencl_machine",
    "peak_bench": "ensure_peaks",
    "readable": "Readable readable_ir",
    "record_bisection": "Bisection Reproducer",
    "record_gradient": "GradientReport GradientStep",
    "recorder": "Recorder ShownRun",
    "reproducer": "check_reproducer reproducer_of",
    "settings": "BackendInfo OptionInfo backends every_backend expand lacking options "
    "parse_setting self_test",
    "shared": "SharedCache push shared_cache",
    "steps": "StepLimit Steps",
    "stores": "CacheFault CacheRemoval Caches CachesBusyError",
    "tool": "cpu_features tool_info",
    "tracking": "Track Tracker track tracks",
}
_MODULE_OF: Final = {name: module for module, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF:
        value = globals()[name] = getattr(import_module(f".{_MODULE_OF[name]}", __name__), name)
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
