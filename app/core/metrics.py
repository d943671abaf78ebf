"""Named metrics of a record: what gates test, reports tabulate and comparisons compare.

A metric's name is a dotted path. Deterministic ones gate by default; times gate only against a
baseline::

    ir.statements, ir.loads, ir.stores, ...     statements of the finished kernel, by kind
    ir.initial                                  statements before the first pass
    code.bytes                                  object code of the first backend that has some
    code.<backend>.bytes                        binary size: of the code that a cache would keep
    code.<backend>.registers, .spills           of code for a GPU that was assembled: of a thread
                                                of the task that takes the most, and bytes spilled
                                                by all tasks (of AMD's code: registers spilled)
    code.<backend>.shared, .ptx_bytes           shared memory of a block, likewise; size of the PTX
    compile.error                               1 if the kernel failed to compile, else 0
    gradient.error                              the same of a gradient, in place of compile.error
    compile.<backend>.cold_ms                   compile time
    launch.<backend>.median_us                  launch time of the first workload, by a device's own
                                                clock where it has one
    launch.<backend>.<workload>.median_us       ... of the named one
    launch.<backend>.wall_us                    the same by the wall clock, the wait included
    launch.<backend>.<workload>.wall_us         ... of the named one
    launch.<backend>.host_us                    of a device: what the host needs to issue it
    agreement.<backend>                         ok, differs, unchecked; of all but the interpreter
    adstack.bytes, .stacks, .slots              heap that a gradient kernel's launch needed, its
                                                adstacks, and the slots of one row of each, summed;
                                                of the first backend that told them
    adstack.overflow                            1 if a stack was too small at a launch, else 0
    adstack.<backend>.bytes, ...                ... of the named one
    cache.<layer>                               what it would answer for the first backend that
                                                knows it: hit (or loaded), miss, bypass, off,
                                                damaged
    cache.<layer>.<backend>                     ... for the named one
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from ...engine.inspect.record import (
    AutodiffRecord,
    BackendRecord,
    KernelRecord,
    MachineRecord,
    Record,
)

__all__ = ["FAMILIES", "Metric", "is_time", "kernel_metrics", "record_metrics"]

Value = int | float | str
FAMILIES: Final = ("adstack", "agreement", "cache", "code", "compile", "gradient", "ir", "launch")
"""What the name of a metric begins with."""
_TIMES: Final = ("_ms", "_us")
_COMPILE: Final = frozenset({"frontend", "passes", "codegen", "load", "compile"})


class Metric(NamedTuple):
    """A value, and for a time its spread (median absolute deviation) in the same unit.

    why: the reason for the value, where it has one.
    """

    value: Value
    spread: float = 0.0
    why: str = ""


def is_time(name: str) -> bool:
    """Whether the metric is a duration, which depends on the machine and the moment."""
    return name.endswith(_TIMES)


def kernel_metrics(kernel: KernelRecord) -> dict[str, Metric]:
    """All metrics of one kernel."""
    out: dict[str, Metric] = {}
    errors = (*kernel.errors, *(e for b in kernel.backends for e in b.errors))
    failed = any(e.stage in _COMPILE for e in errors)
    primary = next((b.compile for b in kernel.backends if b.compile is not None), None)
    for backend in kernel.backends:
        out.update(_backend_metrics(backend))
        for name, metric in _stack_metrics(backend.autodiff):
            out.setdefault(f"adstack.{name}", metric)
            out[f"adstack.{backend.backend}.{name}"] = metric
        for layer in backend.caches:
            if layer.state != "not_applicable":
                out.setdefault(f"cache.{layer.name}", Metric(layer.state, why=layer.reason))
                out[f"cache.{layer.name}.{backend.backend}"] = Metric(layer.state, why=layer.reason)
    if primary is not None:
        for name, count in primary.metrics.items():
            out[f"ir.{name}"] = Metric(count)
        out["ir.statements"] = Metric(primary.snapshots[-1].ops if primary.snapshots else 0)
        out["ir.initial"] = Metric(primary.snapshots[0].ops if primary.snapshots else 0)
        if primary.code_bytes:
            out["code.bytes"] = Metric(primary.code_bytes)
    # That a kernel cannot be differentiated is no failure of the kernel.
    out["gradient.error" if kernel.primal else "compile.error"] = Metric(int(failed))
    return out


def _stack_metrics(autodiff: AutodiffRecord | None) -> Iterator[tuple[str, Metric]]:
    """What the adstacks of a gradient kernel take; bytes and slots only if there was a launch."""
    if autodiff is None:
        return
    stacks = [stack for task in autodiff.tasks for stack in task.stacks]
    yield "stacks", Metric(len(stacks))
    yield "overflow", Metric(int(bool(autodiff.overflow)), why=autodiff.overflow)
    if autodiff.sized:
        peak = next((x.name for x in stacks if x.peak), "")
        why = f"{peak} takes the most" if peak else ""
        yield "bytes", Metric(autodiff.bytes, why=why)
        yield "slots", Metric(sum(x.slots for x in stacks))


def _backend_metrics(backend: BackendRecord) -> Iterator[tuple[str, Metric]]:
    name = backend.backend
    if backend.compile is not None:
        yield f"compile.{name}.cold_ms", Metric(backend.compile.cold_ms)
        if backend.compile.warm_ms is not None:
            yield f"compile.{name}.warm_ms", Metric(backend.compile.warm_ms)
        if backend.compile.code_bytes:
            yield f"code.{name}.bytes", Metric(backend.compile.code_bytes)
        yield from _machine_metrics(name, backend.compile.machine)
    for i, launch in enumerate(backend.launches):
        metric = Metric(launch.median_us, launch.mad_us)
        wall = None if launch.by_device else metric
        if launch.wall_us is not None:
            wall = Metric(launch.wall_us, launch.wall_mad_us or 0.0)
        for place in [f"{name}.{launch.workload}", *([name] if i == 0 else [])]:
            yield f"launch.{place}.median_us", metric
            if wall is not None:
                yield f"launch.{place}.wall_us", wall
        if i == 0 and launch.host_us is not None:
            yield f"launch.{name}.host_us", Metric(launch.host_us)
    if backend.agreement is not None and name != "interp":
        # The interpreter is what the others are compared with.
        yield f"agreement.{name}", Metric(backend.agreement.state)


def _machine_metrics(name: str, machine: MachineRecord | None) -> Iterator[tuple[str, Metric]]:
    """What the code for a GPU takes; all but its size is known only where it was assembled."""
    if machine is None:
        return
    if machine.ptx_bytes:
        yield f"code.{name}.ptx_bytes", Metric(machine.ptx_bytes)
    known = [k for k in machine.kernels if k.known]
    if known:
        spilled = sum(k.spill_stores + k.spill_loads + k.spilled_registers for k in known)
        yield f"code.{name}.registers", Metric(max(k.registers for k in known))
        yield f"code.{name}.shared", Metric(max(k.shared for k in known))
        yield f"code.{name}.spills", Metric(spilled)


def record_metrics(record: Record) -> dict[str, dict[str, Metric]]:
    """Metrics of every kernel, by kernel id."""
    return {kernel.id: kernel_metrics(kernel) for kernel in record.kernels}
