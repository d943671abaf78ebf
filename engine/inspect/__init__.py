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
    "ASSUMPTIONS",
    "SUGGESTED",
    "BackendComparison",
    "BackendInfo",
    "Bisection",
    "CacheFault",
    "CacheFolder",
    "CacheRemoval",
    "Caches",
    "CachesBusyError",
    "Call",
    "Comparison",
    "CudaComponent",
    "CudaDeviceInfo",
    "CudaMachine",
    "DebugError",
    "Debugger",
    "Diff",
    "DiffRow",
    "Explanation",
    "GradientCapture",
    "GradientReport",
    "GradientStep",
    "KernelCapture",
    "KernelComparison",
    "LaunchReached",
    "LayerFolder",
    "Listing",
    "OpenclDeviceInfo",
    "OpenclMachine",
    "OptionInfo",
    "PastLookups",
    "Readable",
    "ReadableCode",
    "RecordFileError",
    "RecordedCalls",
    "Recorder",
    "Reproducer",
    "SharedCache",
    "ShownRun",
    "StepLimit",
    "Steps",
    "Subject",
    "Track",
    "Tracker",
    "assumption",
    "backends",
    "bisect_capture",
    "bisect_kernel",
    "cache_folder",
    "call_key",
    "canonical",
    "capture_ir",
    "capture_kernel",
    "check_gradient",
    "check_reproducer",
    "compare_compiles",
    "compare_kernels",
    "compare_records",
    "count_as_user",
    "cpu_features",
    "cuda_machine",
    "debug",
    "describe",
    "diff_listings",
    "diff_pass",
    "diff_renumbered",
    "diff_text",
    "dry_caches",
    "dumps",
    "effective_config",
    "ensure_peaks",
    "ensure_program",
    "error_at",
    "error_record",
    "every_backend",
    "expand",
    "explanations",
    "gradient_features",
    "gradient_name",
    "has_functions",
    "is_user_file",
    "kernel_id",
    "kernels_called",
    "kernels_in",
    "lacking",
    "load",
    "loads",
    "lost_device",
    "opencl_machine",
    "options",
    "parse_setting",
    "pass_page",
    "pass_summary",
    "push",
    "readable_code",
    "readable_ir",
    "record",
    "recorded_calls",
    "reproducer_of",
    "save",
    "schema",
    "schema_text",
    "self_test",
    "shared_cache",
    "suggested",
    "tool_info",
    "track",
    "tracks",
    "try_assumptions",
    "what_if",
]  # fmt: skip

_LAZY: Final = {
    "DebugError": "debugging",
    "Debugger": "debugging",
    "debug": "debugging",
    "BackendInfo": "settings",
    "Bisection": "record_bisection",
    "Reproducer": "record_bisection",
    "check_reproducer": "reproducer",
    "reproducer_of": "reproducer",
    "bisect_capture": "bisect",
    "bisect_kernel": "bisect",
    "CacheFolder": "folders",
    "SharedCache": "shared",
    "push": "shared",
    "shared_cache": "shared",
    "LayerFolder": "folders",
    "cache_folder": "folders",
    "CacheFault": "stores",
    "CacheRemoval": "stores",
    "Caches": "stores",
    "CachesBusyError": "stores",
    "Call": "arguments",
    "CudaDeviceInfo": "hardware",
    "CudaMachine": "hardware",
    "CudaComponent": "hardware",
    "KernelCapture": "capture",
    "OpenclDeviceInfo": "hardware",
    "OpenclMachine": "hardware",
    "OptionInfo": "settings",
    "ShownRun": "recorder",
    "PastLookups": "caches",
    "LaunchReached": "discover",
    "Readable": "readable",
    "ReadableCode": "code_forms",
    "readable_code": "code_forms",
    "readable_ir": "readable",
    "RecordedCalls": "discover",
    "Recorder": "recorder",
    "StepLimit": "steps",
    "Steps": "steps",
    "Subject": "discover",
    "backends": "settings",
    "call_key": "discover",
    "capture_ir": "capture",
    "capture_kernel": "capture",
    "cpu_features": "tool",
    "cuda_machine": "hardware",
    "BackendComparison": "compare",
    "Comparison": "compare",
    "KernelComparison": "compare",
    "compare_compiles": "compare",
    "compare_kernels": "compare",
    "compare_records": "compare",
    "describe": "describing",
    "Diff": "diff",
    "DiffRow": "diff",
    "Listing": "diff",
    "diff_listings": "diff",
    "diff_pass": "diff",
    "diff_renumbered": "diff",
    "diff_text": "diff",
    "dry_caches": "caches",
    "effective_config": "discover",
    "ensure_peaks": "peak_bench",
    "ensure_program": "discover",
    "count_as_user": "faults",
    "error_at": "faults",
    "error_record": "faults",
    "Earlier": "earlier",
    "KeptLooks": "earlier",
    "Unclear": "earlier",
    "EditedCapture": "edited",
    "every_backend": "settings",
    "expand": "settings",
    "Explanation": "explaining",
    "explanations": "explaining",
    "pass_page": "explaining",
    "pass_summary": "explaining",
    "GradientCapture": "gradients",
    "GradientReport": "record_gradient",
    "GradientStep": "record_gradient",
    "check_gradient": "gradient_check",
    "gradient_features": "differentiable",
    "gradient_name": "differentiable",
    "has_functions": "discover",
    "is_user_file": "faults",
    "kernel_id": "describing",
    "kernels_called": "discover",
    "kernels_in": "discover",
    "lost_device": "hardware",
    "opencl_machine": "hardware",
    "lacking": "settings",
    "options": "settings",
    "parse_setting": "settings",
    "recorded_calls": "discover",
    "self_test": "settings",
    "tool_info": "tool",
    "Track": "tracking",
    "Tracker": "tracking",
    "track": "tracking",
    "tracks": "tracking",
    "ASSUMPTIONS": "assuming",
    "assumption": "assuming",
    "what_if": "assuming",
    "SUGGESTED": "assuming",
    "suggested": "assuming",
    "try_assumptions": "assuming",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        value = getattr(import_module(f".{_LAZY[name]}", __name__), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
