"""``qd.lang.impl``: what programs ask the running engine for by the reference's internal names.

Public programs (Genesis, for one) read the defaults of the program that runs, its config and its
limits through this module, and replace `PyQuadrants.materialize` and `PyQuadrants.clear` to act
when fields get their memory and when a program ends. The engine calls both through the class, so
that replacements take effect. Every public name of the language is available here, too.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, Final

from ..config import CompileConfig
from ..errors import QuadrantsRuntimeError
from ..runtime import program
from ..runtime.arch import ARCHS, Arch
from ..types import DataType, dtype_of, i64, u32, u64
from .fields import builder

__all__ = [
    "Config", "PyQuadrants", "current_cfg", "default_cfg", "get_cuda_compute_capability",
    "get_max_shared_memory_bytes", "get_runtime", "is_python_backend", "on_reset", "pyquadrants",
]  # fmt: skip


class Config:
    """The options of a program, to read, with types in place of their names.

    Every field of `CompileConfig` is an attribute; ``default_up`` is the unsigned type as large as
    ``default_ip``.
    """

    def __init__(self, config: CompileConfig) -> None:
        self._config: Final = config

    @property
    def arch(self) -> Arch:
        return ARCHS[self._config.arch]

    @property
    def default_fp(self) -> DataType:
        return dtype_of(self._config.default_fp)

    @property
    def default_ip(self) -> DataType:
        return dtype_of(self._config.default_ip)

    @property
    def default_up(self) -> DataType:
        return u64 if self.default_ip is i64 else u32

    def __getattr__(self, name: str) -> Any:
        return getattr(self._config, name)


class _Program:
    """The program that runs, as ``get_runtime().prog``."""

    def config(self) -> Config:
        """Its options."""
        return Config(program.current().config)

    def synchronize(self) -> None:
        """Wait for the device; see ``qd.sync``."""
        program.sync()


class PyQuadrants:
    """The state of the engine in this process; there is one, see `get_runtime`."""

    @property
    def prog(self) -> _Program:
        """The program that runs. QuadrantsRuntimeError if there is none."""
        program.current()
        return _Program()

    @property
    def arch(self) -> Arch:
        """The arch that the program runs on."""
        return self.prog.config().arch

    @property
    def default_fp(self) -> DataType:
        """The type of Python's floats in kernels; f32 while no program runs."""
        return current_cfg().default_fp

    @property
    def default_ip(self) -> DataType:
        """The type of Python's integers in kernels; i32 while no program runs."""
        return current_cfg().default_ip

    @property
    def default_up(self) -> DataType:
        """The unsigned type of the same size as `default_ip`."""
        return current_cfg().default_up

    def materialize(self) -> None:
        """Give all fields below ``qd.root`` that have none yet their memory.

        Called by the engine when the first of them is used. Programs may replace this method.
        """
        builder.materialize()

    def clear(self) -> None:
        """End the program. ``qd.reset`` and ``qd.init`` call it; programs may replace it."""
        if not _ending:
            program.reset()

    def sync(self) -> None:
        """Allocate the fields that wait for it, and wait for the device."""
        self.materialize()
        program.sync()


pyquadrants: Final = PyQuadrants()
_ending: list[bool] = []


def _program_ends() -> None:
    _ending.append(True)
    try:
        pyquadrants.clear()
    finally:
        _ending.pop()


builder.first_use[0] = lambda: pyquadrants.materialize()  # by its name: programs replace it
program.ending.append(_program_ends)


def get_runtime() -> PyQuadrants:
    """The one `PyQuadrants` of this process."""
    return pyquadrants


def current_cfg() -> Config:
    """The options of the program that runs; the defaults while none does."""
    found = program.peek()
    return default_cfg() if found is None else Config(found.config)


def default_cfg() -> Config:
    """Every option at its default."""
    return Config(CompileConfig())


def is_python_backend() -> bool:
    """True if kernels of this program run in the interpreter."""
    found = program.peek()
    return found is not None and found.backend.name == "interp"


def on_reset(hook: Callable[[], None]) -> None:
    """Call `hook` whenever a program ends."""
    program.ending.append(hook)


def get_cuda_compute_capability() -> int:
    """The compute capability of the CUDA device, as 90 for 9.0; 0 if the program has none."""
    found = program.current()
    if found.backend.name != "cuda":
        return 0
    device: Any = found.device
    return 10 * device.cc[0] + device.cc[1]


def get_max_shared_memory_bytes(*, is_lowerbound_ok: bool) -> int:
    """The bytes of shared memory that one block can have on this program's device.

    is_lowerbound_ok: return 0 where blocks have no shared memory of their own, instead of raising
    QuadrantsRuntimeError.
    """
    found = program.current()
    known = found.device.shared_bytes
    if known or is_lowerbound_ok:
        return known
    raise QuadrantsRuntimeError(
        f"blocks of the arch {found.config.arch} have no shared memory of their own",
        hint="pass is_lowerbound_ok=True to get 0",
    )


def __getattr__(name: str) -> Any:
    engine = importlib.import_module("...", __name__)
    if name in engine.__all__:
        return getattr(engine, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
