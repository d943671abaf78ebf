"""Backends as a person names them: ``cpu``, ``cuda``, ``cuda:sm_75``.

A name may say which machine to compile for (`base.Backend.targets`). What cannot be launched here
may still be compiled: a backend that has targets needs no device to make code. `Target` says what
can be done, `compile_for` does it; without a device the kernel is not loaded, and launching it is
an error that says why.

    name          on a machine with an sm_90a device      without a device
    cuda          compiled for sm_90a, launched           compiled for the default, not launched
    cuda:sm_90    compiled for sm_90, launched            compiled for sm_90, not launched
    cuda:sm_75    compiled for sm_75, not launched        compiled for sm_75, not launched
"""

from __future__ import annotations

import atexit
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from ..backends import base
from ..backends.injected import InjectedCache, PtxJob
from ..cache.driver import submitted
from ..config import CompileConfig
from ..errors import BackendUnavailableError
from ..named_tuple import NamedTuple
from ..options import did_you_mean
from ..runtime import program
from ..runtime.compile import Clock, CompileRequest, FullCompile, Layers, compile_kernel

if TYPE_CHECKING:
    from ..backends.base import Artifact, Executable, KernelMeta, StackPlan

__all__ = [
    "NoCaches", "Target", "compile_for", "config_for", "find", "opened", "options_of", "split",
    "target_of",
]  # fmt: skip


class Target(NamedTuple):
    """The abilities of the target of a name. compiles, launches: if it can; reason: why not.

    arch: the machine that was asked for, empty for that of the device.
    """

    backend: str
    arch: str
    compiles: bool
    launches: bool
    reason: str = ""


def split(name: str) -> tuple[str, str]:
    """``("cuda", "sm_75")`` for ``cuda:sm_75``, ``("cpu", "")`` for ``cpu``.

    Raises ValueError for an unknown backend or target, with all that exist.
    """
    backend, colon, arch = name.partition(":")
    known = base.names()
    if backend not in known:
        raise ValueError(f"there is no backend {backend!r}{did_you_mean(backend, known)}")
    if not colon:
        return backend, ""
    if not arch:
        raise ValueError(f"{name!r} names no target: write {backend}, or one of {_known(backend)}")
    base.find(backend).with_target(CompileConfig(arch=backend), arch)
    return backend, arch


def _known(backend: str) -> str:
    named = base.find(backend).targets() if backend in base.BUILT else ()
    return ", ".join(f"{backend}:{each}" for each in named) or ", ".join(base.with_targets())


def find(name: str) -> base.Backend:
    """The backend of a name. Raises BackendUnavailableError if this version has none."""
    return base.find(split(name)[0])


def config_for(config: CompileConfig, name: str) -> CompileConfig:
    """The options with which code is made under a name."""
    backend, arch = split(name)
    config = config.replace(arch=backend)
    return base.find(backend).with_target(config, arch) if arch else config


def options_of(config: CompileConfig | None) -> CompileConfig:
    """``config``; for None those of the running program, or the defaults where none runs."""
    running = program.peek()
    return config or (running.config if running is not None else CompileConfig())


def _wanted(backend: base.Backend, config: CompileConfig) -> str:
    """The target that the options ask for; empty for the device's own.

    Raises ValueError, with all that exist, if there is no such target.
    """
    if not backend.targets() or backend.with_target(config, "") == config:
        return ""
    for name in backend.targets():
        if backend.with_target(config, name) == config:
            return name
    return backend.target(config).cpu


def _can_compile(backend: base.Backend) -> tuple[bool, str]:
    """Return True if it can make code without a device and, if not, the reason."""
    if not backend.targets():
        return False, ""
    try:
        backend.toolchain()
    except ImportError as error:
        return False, f"{error.name or error} is not installed"
    return True, ""


def target_of(config: CompileConfig, name: str) -> Target:
    """Return the target of a name, with what it can do here."""
    known, arch = split(name)
    works, reason = base.availability(known)
    if known not in base.BUILT:
        return Target(known, arch, False, False, reason)
    backend = base.find(known)
    config = config.replace(arch=known)
    arch = arch or _wanted(backend, config)
    if works and arch:
        own = backend.target(backend.with_target(config, "")).cpu
        if arch not in (own, own.removesuffix("a")):  # sm_90a runs code for sm_90, too
            return Target(known, arch, True, False, f"compiled for {arch}, the device is {own}")
    if works:
        return Target(known, arch, True, True)
    can, why_not = _can_compile(backend)
    return Target(known, arch, can, False, why_not or reason)


class _Unloaded:
    """A compiled kernel that is not launched."""

    def __init__(self, meta: KernelMeta, backend: str, reason: str) -> None:
        self.meta = meta
        self._backend: Final = backend
        self._reason: Final = reason

    def arguments(self, stream: int = 0) -> None:
        """Return no arguments."""

    def launch(
        self, values: Sequence[Any], seed: int = 0, stacks: StackPlan | None = None,
        stream: int = 0, resume: int = 0, times: list[int] | None = None,
    ) -> tuple[Any, ...]:  # fmt: skip
        raise BackendUnavailableError(self._backend, self._reason)


class NoCaches(InjectedCache):
    """The cache that a capture injects: PTX is always made, and the driver gets it with a nonce.

    job: the last one that the backend had; None if it makes no PTX. With it the caches can be asked
    afterwards what they would have answered. load_ms: the time that the driver needed to make
    machine code and load it; None if nothing was loaded.
    """

    def __init__(self, config: CompileConfig) -> None:
        self._config: Final = config.replace(offline_cache=False)
        self.job: PtxJob | None = None
        self.load_ms: float | None = None

    def ptx(self, job: PtxJob) -> str:
        self.job = job
        return job.make()

    def submitted(self, ptx: str) -> bytes:
        return submitted(ptx, self._config)

    def loaded(self, compiled: bool, ms: float) -> None:
        self.load_ms = ms


def compile_for(
    request: CompileRequest,
    target: Target,
    instruments: Sequence[Any] = (),
    began: Callable[[str], object] | None = None,
) -> tuple[FullCompile, NoCaches]:
    """Compile for a target, asking no cache; see `runtime.compile.compile_kernel`.

    request: of `KernelCapture.request`. began: of `Clock`. Returns the injected cache, too.
    """
    if target.launches:
        open_device(request.backend, request.config)
    cache = NoCaches(request.config)
    found = compile_kernel(request, _ForTarget(target, Clock(began), cache), instruments)
    assert isinstance(found, FullCompile)  # no layer has anything
    return found, cache


_opened: Final[dict[str, base.Device]] = {}
"""Devices of captures, by backend, where the program of the user runs on another backend."""


def open_device(backend: base.Backend, config: CompileConfig) -> None:
    """Ensure that there is a device to load for."""
    current = program.peek()
    if current is not None and current.backend.name == backend.name:
        return
    if backend.name not in _opened:
        # Launches are timed by the device's own queue, which keeps times only on request.
        device = _opened[backend.name] = backend.open(config.replace(kernel_profiler=True))
        atexit.register(device.end)


def opened(backend: str) -> base.Device | None:
    """The device that is open for a backend: the program's, or that of captures; None if none."""
    current = program.peek()
    if current is not None and current.backend.name == backend:
        return current.device
    return _opened.get(backend)


class _ForTarget(Layers):
    """No caches; and what cannot be launched here is not loaded."""

    def __init__(self, target: Target, clock: Clock, cache: NoCaches) -> None:
        super().__init__(clock, cache)
        self._target: Final = target

    def load(self, request: CompileRequest, artifact: Artifact) -> Executable:
        if self._target.launches:
            return super().load(request, artifact)
        return _Unloaded(artifact.meta, self._target.backend, self._target.reason)
