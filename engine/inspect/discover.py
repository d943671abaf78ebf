"""Kernels of a file, the options it asks for, and the calls it makes."""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

from ..config import OPTIONS, CompileConfig, resolve
from ..lang.func import FunctionOfKernels
from ..lang.kernel import Kernel
from ..runtime import program
from .arguments import Call, bytes_of, copied, shape_of
from .contents import remember
from .record import ConfigEntry

__all__ = ["effective_config", "ensure_program", "has_functions", "kernels_in", "recorded_calls"]

_ORIGINS = {"argument": "init", "environment": "env", "implied": "init", "default": "default"}
_MAX_CALLS = 3
_MAX_BYTES = 256 << 20


def kernels_in(namespace: Mapping[str, Any], file: str) -> list[Kernel]:
    """The kernels defined in ``file`` that a module's names lead to, in source order."""
    found: dict[int, Kernel] = {}
    for value in list(namespace.values()):
        if isinstance(value, Kernel) and _same_file(value.decl.file, file):
            found[id(value)] = value
    return sorted(found.values(), key=lambda kernel: (kernel.decl.line, kernel.name))


def has_functions(namespace: Mapping[str, Any], file: str) -> bool:
    """Whether ``file`` defines functions for kernels: a helper module, then."""
    return any(
        isinstance(value, FunctionOfKernels) and _same_file(value.decl.file, file)
        for value in list(namespace.values())
    )


def _same_file(a: str, b: str) -> bool:
    return os.path.realpath(a) == os.path.realpath(b)


def effective_config(
    chosen: Mapping[str, Any],
) -> tuple[CompileConfig, tuple[ConfigEntry, ...]]:
    """The options to compile with, and where each came from.

    What the file's own `init` settled when it was imported, with ``chosen`` on top. KeyError,
    TypeError or ValueError for a chosen option that does not exist or does not fit.
    """
    current = program.peek()
    if current is None:
        found = resolve({}, os.environ)
        config, origins = found.config, dict(found.origins)
    else:
        config, origins = current.config.copy(), dict(current.origins)
    config = config.replace(**chosen)
    entries = tuple(
        ConfigEntry(
            name=name,
            value=getattr(config, name),
            default=option.default,
            origin="studio" if name in chosen else _ORIGINS[origins.get(name, "default")],
        )
        for name, option in OPTIONS.items()
        if not name.startswith("_") and name != "arch"
    )
    return config, entries


def ensure_program() -> None:
    """Start a program if the file has not: arrays that a workload makes belong to one."""
    if program.peek() is None:
        program.init("cpu", log_level="warn")


@contextmanager
def recorded_calls() -> Generator[dict[str, list[Call]], None, None]:
    """Within this, calls of kernels are noted: "file:kernel" -> the first few, arguments copied.

    Copies stop when they would take more than 256 MiB.
    """
    calls: dict[str, list[Call]] = {}
    taken = 0
    original = Kernel.__call__

    def call(self: Kernel, *args: Any, **kwargs: Any) -> Any:
        nonlocal taken
        if kwargs:
            args = self.launchers.bind(args, kwargs)
            kwargs = {}
        known = calls.setdefault(f"{os.path.realpath(self.decl.file)}:{self.name}", [])
        size = bytes_of(args)
        if len(known) < _MAX_CALLS and taken + size <= _MAX_BYTES and _is_new(known, args):
            contents = remember(limit=_MAX_BYTES - taken - size)
            taken += size + sum(data.nbytes for data in contents.values())
            known.append(Call(copied(args), contents))
        return original(self, *args)

    Kernel.__call__ = call
    try:
        yield calls
    finally:
        Kernel.__call__ = original


def _is_new(known: list[Call], args: tuple[Any, ...]) -> bool:
    """Whether the arguments have another form than those already kept."""
    return all(_form(call.args) != _form(args) for call in known)


def _form(args: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(a if (shape := shape_of(a)) is None else shape for a in args)
