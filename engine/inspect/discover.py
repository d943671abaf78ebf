"""Kernels of a file, the options it asks for, and the calls it makes."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from ..config import OPTIONS, CompileConfig, resolve
from ..lang.func import FunctionOfKernels
from ..lang.kernel import Kernel
from ..named_tuple import NamedTuple
from ..runtime import program
from ..types import is_data_oriented
from .argument_values import bytes_of, copied, form_of
from .arguments import Call
from .contents import remember
from .record import ConfigEntry

__all__ = [
    "LaunchReached", "RecordedCalls", "Subject", "call_key", "effective_config", "ensure_program",
    "has_functions", "kernels_called", "kernels_in", "recorded_calls",
]  # fmt: skip

_ORIGINS = {"argument": "init", "environment": "env", "implied": "init", "default": "default"}
_MAX_CALLS: Final = 3
_MAX_BYTES: Final = 256 << 20
_DEEPEST: Final = 3
"""The depth to which objects that methods belong to are looked for in each other."""


class Subject(NamedTuple):
    """A kernel of a file, and the object that it is captured for.

    name: of the function, or ``Class.method``. instance: for a method, the first object of its
    class that the file's names lead to; None without. called: how the file calls that object, and
    which others there are.
    """

    kernel: Kernel
    name: str
    instance: Any = None
    called: str = ""

    @property
    def source(self) -> str:
        """The kernel's own lines."""
        return self.kernel.decl.source


def kernels_in(namespace: Mapping[str, Any], file: str) -> list[Subject]:
    """The kernels defined in ``file`` that a module's names lead to, in source order.

    Among them are methods of data-oriented classes.
    """
    found: dict[int, Subject] = {}
    objects = dict(_objects(namespace.items(), "", set(), _DEEPEST))
    classes = [v for v in namespace.values() if isinstance(v, type)]
    classes += [cls for value in objects.values() for cls in type(value).__mro__]
    for value in list(namespace.values()):
        if isinstance(value, Kernel) and _same_file(value.decl.file, file):
            found.setdefault(id(value), Subject(value, value.name))
    for cls in dict.fromkeys(classes):
        for value in list(vars(cls).values()):
            kernel: Any = getattr(value, "__func__", value)  # of static and class methods
            if isinstance(kernel, Kernel) and _same_file(kernel.decl.file, file):
                found.setdefault(id(kernel), _method(kernel, cls, objects))
    return sorted(found.values(), key=lambda s: (s.kernel.decl.line, s.name))


def _method(kernel: Kernel, cls: type, objects: Mapping[str, Any]) -> Subject:
    name = f"{cls.__qualname__}.{kernel.name}"
    if not kernel.decl.is_method:
        return Subject(kernel, name)
    mine = {called: value for called, value in objects.items() if isinstance(value, cls)}
    first, *others = mine or ("",)
    called = f"{first} (also: {', '.join(others)})" if others else first
    return Subject(kernel, name, mine.get(first), called)


def _objects(
    members: Iterable[tuple[str, Any]], path: str, seen: set[int], deep: int
) -> Iterator[tuple[str, Any]]:
    """Objects of data-oriented classes, by how a file calls them; also those that others hold."""
    inner: list[tuple[str, Any]] = []
    for name, value in list(members):
        if is_data_oriented(value) and not isinstance(value, type) and id(value) not in seen:
            seen.add(id(value))
            yield path + name, value
            inner.append((f"{path}{name}.", value))
    for prefix, value in inner if deep else ():
        held = getattr(value, "__dict__", {})
        yield from _objects(held.items(), prefix, seen, deep - 1)


def has_functions(namespace: Mapping[str, Any], file: str) -> bool:
    """True if ``file`` defines functions for kernels: it is a helper module then."""
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
    """Start a program if the file did not: arrays that a workload makes belong to one."""
    if program.peek() is None:
        program.init("cpu", log_level="warn")


def call_key(kernel: Kernel) -> str:
    """The key under which the calls of a kernel are recorded."""
    return f"{os.path.realpath(kernel.decl.file)}:{kernel.decl.qualname}"


class LaunchReached(BaseException):
    """Raised when a recorded run is at the launch where it must stop."""


class RecordedCalls(dict[str, list[Call]]):
    """Calls by `call_key`: the first few of different form.

    launches: how many there were. kernels: the first kernel of each key.
    """

    def __init__(self) -> None:
        super().__init__()
        self.launches = 0
        self.kernels: dict[str, Kernel] = {}


def kernels_called(calls: RecordedCalls, file: str, known: Iterable[Subject]) -> list[Subject]:
    """The kernels of ``file`` that were called and are not ``known``: those made in functions."""
    have = {(subject.kernel.name, subject.kernel.decl.line) for subject in known}
    return [
        Subject(kernel, kernel.decl.qualname.replace(".<locals>", ""))
        for kernel in calls.kernels.values()
        if _same_file(kernel.decl.file, file) and (kernel.name, kernel.decl.line) not in have
    ]


@contextmanager
def recorded_calls(
    note: Callable[[int], object] = lambda count: None, stop: int = 0
) -> Generator[RecordedCalls, None, None]:
    """Within this, calls of kernels are noted.

    Arguments are copied, and so is what fields hold before the call. Copies stop when they would
    need more than 256 MiB. note: called with the number of each launch before it starts. stop: the
    number of the launch that is recorded last and not made: `LaunchReached` is raised in its place.
    """
    calls = RecordedCalls()
    taken = 0
    original = Kernel.__call__

    def call(self: Kernel, *args: Any, **kwargs: Any) -> Any:
        nonlocal taken
        calls.launches += 1
        if kwargs:
            args = self.launchers.bind(args, kwargs)
            kwargs = {}
        key = call_key(self)
        known = calls.setdefault(key, [])
        calls.kernels.setdefault(key, self)
        if len(known) < _MAX_CALLS and _is_new(known, args):
            size = bytes_of(args)
            if taken + size <= _MAX_BYTES:
                contents = remember(limit=_MAX_BYTES - taken - size)
                taken += size + sum(data.nbytes for data in contents.values())
                known.append(Call(copied(args), contents))
        note(calls.launches)
        if calls.launches == stop:
            raise LaunchReached
        return original(self, *args)

    Kernel.__call__ = call
    try:
        # A script may well end with `qd.reset()`: the fields of its calls are still wanted.
        with program.outliving_reset():
            yield calls
    finally:
        Kernel.__call__ = original


def _is_new(known: list[Call], args: tuple[Any, ...]) -> bool:
    """True if no call already kept has arguments of this form."""
    form = tuple(map(form_of, args))
    return all(tuple(map(form_of, call.args)) != form for call in known)
