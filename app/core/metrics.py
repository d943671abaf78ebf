"""Named metrics of a record: what rules test, reports tabulate and comparisons compare.

A metric's name is a dotted path. Deterministic ones are tested by default; times only against a
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
    agreement.<backend>                         ok, differs, unknown; of all but the interpreter
    adstack.bytes, .stacks, .slots              heap that a gradient kernel's launch needed, its
                                                adstacks, and the slots of one row of each, summed;
                                                of the first backend that reported them
    adstack.overflow                            1 if a stack was too small at a launch, else 0
    adstack.<backend>.bytes, ...                ... of the named one
    cache.<layer>                               what it would answer for the first backend that
                                                knows it: hit (or loaded), miss, bypass, off,
                                                damaged
    cache.<layer>.<backend>                     ... for the named one
    check.race, check.bounds,                   safe, fault or unknown
    check.uninitialised

`located` has those that are counted for a rule: of tasks, after a pass, and of analyses.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from ...engine.inspect.record import (
    CHECKS,
    AutodiffRecord,
    BackendRecord,
    KernelRecord,
    LaunchRecord,
    MachineRecord,
    Record,
)
from . import format as fmt

__all__ = [
    "FAMILIES", "Metric", "UnknownMetric", "check_backend", "check_name", "has_noise", "is_time",
    "kernel_metrics", "missing", "record_metrics",
]  # fmt: skip

Value = int | float | str
FAMILIES: Final = (
    "adstack", "agreement", "cache", "check", "code", "compile", "gradient", "ir", "launch",
)  # fmt: skip
"""The first parts of metric names."""
_LAYERS: Final = ("in_process", "fastcache", "offline", "ptx", "driver")
_STACKS: Final = ("bytes", "overflow", "slots", "stacks")
_TIMES: Final = ("_ms", "_us")
_COMPILE: Final = frozenset({"frontend", "passes", "codegen", "load", "compile"})


class Metric(NamedTuple):
    """A value; why: the reason for it, where it has one.

    launch: of a time that was measured several times, what it is from; samples: all of them.
    """

    value: Value
    why: str = ""
    launch: LaunchRecord | None = None
    samples: Sequence[float] = ()


class UnknownMetric(ValueError):
    """No kernel can have a metric of this name; the message says which is near."""


def has_noise(name: str) -> bool:
    """True for times of launches, which are measured many times in each run."""
    return name.startswith("launch.") and name.endswith((".median_us", ".wall_us"))


def is_time(name: str) -> bool:
    """True if the metric is a duration, which depends on the machine and the moment."""
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
    for verdict in kernel.check.verdicts if kernel.check is not None else ():
        first = verdict.findings[0].message if verdict.findings else ""
        out[f"check.{verdict.check}"] = Metric(verdict.outcome, why=verdict.reason or first)
    # That a kernel cannot be differentiated is no failure of the kernel.
    out["gradient.error" if kernel.primal else "compile.error"] = Metric(int(failed))
    return out


def _stack_metrics(autodiff: AutodiffRecord | None) -> Iterator[tuple[str, Metric]]:
    """The cost of a gradient kernel's adstacks; bytes and slots only if there was a launch."""
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
        metric = Metric(launch.median_us, "", launch, launch.samples_us)
        wall = None if launch.by_device else metric
        if launch.wall_us is not None:
            wall = Metric(launch.wall_us, "", launch, launch.wall_samples_us)
        for place in [f"{name}.{launch.workload}", *([name] if i == 0 else [])]:
            yield f"launch.{place}.median_us", metric
            if wall is not None:
                yield f"launch.{place}.wall_us", wall
        if i == 0 and launch.host_us is not None:
            yield f"launch.{name}.host_us", Metric(launch.host_us)
    if backend.agreement is not None and name != "interp":
        # The interpreter is what the others are compared with.
        found = backend.agreement
        why = found.check_message if found.check == "failed" else found.reason
        yield f"agreement.{name}", Metric(found.verdict, why)


def _machine_metrics(name: str, machine: MachineRecord | None) -> Iterator[tuple[str, Metric]]:
    """The resources of code for a GPU; all but its size is known only where it was assembled."""
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


# ---- names


def check_name(name: str) -> None:
    """Raise UnknownMetric if no record can have the metric ``name``.

    ``agreement`` stands for several. Names of workloads are not checked: only a record knows them.
    """
    family, _, rest = name.partition(".")
    if family not in FAMILIES:
        known = f"metrics begin with {', '.join((*FAMILIES, 'task'))}"
        raise UnknownMetric(f"there is no metric {name!r}{_near(family, FAMILIES)}; {known}")
    if name == "agreement" or name in _plain_names():
        return
    backend, dot, last = rest.partition(".")
    ends = _OF_BACKENDS[family]
    if family == "ir" and rest.startswith("ops."):
        return
    if family == "cache":  # cache.<layer>.<backend>
        if backend in _LAYERS and dot:
            check_backend(name, last)
            return
    elif family == "agreement" or last in ends:
        check_backend(name, rest if family == "agreement" else backend)
        return
    elif family == "launch" and last.rpartition(".")[2] in _OF_WORKLOAD:
        check_backend(name, backend)
        return
    names = [*_plain_names(), *(f"{family}.{backend}.{end}" for end in ends)]
    near = _near(name, [x for x in names if x.startswith(f"{family}.")])
    raise UnknownMetric(f"there is no {name}{near}; there are {_listed(family)}")


_OF_WORKLOAD: Final = ("median_us", "wall_us")


_OF_BACKENDS: Final[Mapping[str, tuple[str, ...]]] = dict.fromkeys(FAMILIES, ()) | {
    "adstack": _STACKS, "code": ("bytes", "ptx_bytes", "registers", "shared", "spills"),
    "compile": ("cold_ms", "warm_ms"), "launch": (*_OF_WORKLOAD, "host_us"),
}  # fmt: skip
"""The names of metrics that each backend has, by family."""


def _plain_names() -> tuple[str, ...]:
    """The names without a backend in them."""
    from ...engine.inspect.recorder import KINDS

    return (
        "compile.error", "gradient.error", "code.bytes", "ir.statements", "ir.initial",
        *(f"ir.{kind}" for kind in KINDS), *(f"adstack.{x}" for x in _STACKS),
        *(f"cache.{x}" for x in _LAYERS), *(f"check.{x}" for x in CHECKS),
    )  # fmt: skip


def _listed(family: str) -> str:
    own = [x for x in _plain_names() if x.startswith(f"{family}.")]
    own += [f"{family}.<backend>.{x}" for x in _OF_BACKENDS[family]]
    own += [f"cache.{x}.<backend>" for x in _LAYERS] if family == "cache" else []
    own += ["agreement", "agreement.<backend>"] if family == "agreement" else []
    return ", ".join(own)


def check_backend(name: str, backend: str) -> None:
    """Raise UnknownMetric if ``backend``, in the metric ``name``, is none."""
    from ...engine.inspect.targets import split

    try:
        split(backend)
    except ValueError as error:
        raise UnknownMetric(f"there is no {name}: {error}") from None


def _near(word: str, known: Iterable[str]) -> str:
    import difflib  # for messages alone

    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f'; did you mean "{close[0]}"?' if close else ""


# ---- what has no value


def missing(kernel: KernelRecord, name: str) -> tuple[bool, str]:
    """(True if the metric does not concern this kernel, why it has no value)."""
    family, _, rest = name.partition(".")
    compiled = any(b.compile is not None for b in kernel.backends)
    reasons = (fmt.backend_reason(kernel, b) for b in kernel.backends if b.status != "ok")
    why = next((fmt.first_line(text) for text in reasons if text), "")
    if kernel.primal and not compiled:
        return True, f"has no gradient: {why}"
    if family in ("adstack", "gradient") and not kernel.primal:
        return True, "is not a gradient"
    if name == "compile.error" and kernel.primal:
        return True, "is a gradient; see gradient.error"
    if family == "cache":
        return _missing_layer(kernel, name)
    if family == "check" and kernel.primal:
        return True, "is a gradient, whose kernel is checked"
    named = name == "agreement" or name in _plain_names()
    backend = rest if family == "agreement" else rest.partition(".")[0]
    if not named and (found := _why_not_there(kernel, backend)):
        return False, found
    if name == "agreement":
        return False, f"nothing was compared with the interpreter{f': {why}' if why else ''}"
    if family == "launch":
        workload = rest.partition(".")[2].rpartition(".")[0]
        labels = [w.label for w in kernel.workloads]
        if workload and workload not in labels:
            return True, f"has no workload {workload!r}, only {', '.join(labels) or 'none'}"
        record = kernel.backend(backend)
        if record is not None and not record.launches:
            return False, f"was not launched: {fmt.unlaunched_reason(kernel, record)}"
    return False, f"has no {name}{f': {why}' if why and named else ''}"


def _missing_layer(kernel: KernelRecord, name: str) -> tuple[bool, str]:
    layer, _, backend = name.removeprefix("cache.").partition(".")
    for each in kernel.backends:
        for x in each.caches:
            if x.name == layer and backend in ("", each.backend):
                return True, f"has no {layer} cache: {x.reason}"
    if backend and (found := _why_not_there(kernel, backend)):
        return False, found
    return False, f"has no {name}"


def _why_not_there(kernel: KernelRecord, backend: str) -> str:
    """The reason why nothing is known of a backend; empty if something is."""
    if backend == "interp":
        return "the interpreter is what others are compared with"
    found = kernel.backend(backend)
    if found is None:
        return f"was not compiled for {backend}; add --backend {backend}"
    if found.status != "ok":
        reason = fmt.first_line(fmt.backend_reason(kernel, found)).removeprefix(f"{backend}: ")
        return f"{backend}: {reason or found.status}"
    return f"{backend} was not launched: {found.unlaunched}" if found.unlaunched else ""


def record_metrics(record: Record) -> dict[str, dict[str, Metric]]:
    """Metrics of every kernel, by kernel id."""
    return {kernel.id: kernel_metrics(kernel) for kernel in record.kernels}
