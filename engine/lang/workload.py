"""Workloads: arguments that an author declares next to a kernel, and checks of its results.

::

    @saxpy.workload(n=[1 << 10, 1 << 24], bytes=lambda n: 12 * n, flops=lambda n: 2 * n)
    def line_and_noise(n):
        return np.linspace(0, 1, n, dtype=np.float32), np.ones(n, np.float32), 2.0

    @saxpy.check
    def same_as_numpy(before, after, result):
        x, y, a = before
        np.testing.assert_allclose(after[1], a * x + y, rtol=1e-6)

Each keyword is a named size with its values; several sizes give every combination, the last size
varying fastest. The function is called with the sizes by name and returns the kernel's arguments
as a tuple (a single argument needs no tuple). ``bytes`` and ``flops`` say how much a launch moves
and computes, as a number or as a function of the sizes it names.

Workloads of a kernel that is a method leave out ``self``: the studio knows the objects of a file.
A workload of a kernel that works on fields may fill them; that is undone after the launches.

A check gets the arguments before the launch (copies), the same after it, and the result; it raises
(an ``assert`` will do) or returns False when the result is wrong. While it runs, fields hold what
the launch left.
Both decorators return the function, so that one function can serve several kernels. Nothing here
runs a kernel: who launches asks `Workload.cases`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, TypeVar, cast

from ..named_tuple import NamedTuple

if TYPE_CHECKING:
    from .kernel import Kernel

__all__ = ["Amount", "Case", "Check", "Size", "Workload", "check", "declare"]

Size = int | float | str
Amount = int | Callable[..., int] | None
Check = Callable[[tuple[Any, ...], tuple[Any, ...], Any], object]
F = TypeVar("F", bound=Callable[..., Any])


class Case(NamedTuple):
    """One choice of sizes. ``make()`` builds fresh arguments, always a tuple."""

    label: str
    sizes: dict[str, Size]
    make: Callable[[], tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Workload:
    """A declared workload; see the module docstring.

    sizes: the values of each named size, in the order they were given.
    """

    name: str
    function: Callable[..., Any]
    sizes: Mapping[str, tuple[Size, ...]]
    bytes: Amount = None
    flops: Amount = None

    def cases(self) -> list[Case]:
        """Every combination of sizes, the last size varying fastest."""
        names = list(self.sizes)
        return [
            self._case(dict(zip(names, values, strict=True)))
            for values in product(*self.sizes.values())
        ]

    def _case(self, sizes: dict[str, Size]) -> Case:
        label = ", ".join(f"{name}={value}" for name, value in sizes.items()) or self.name

        def make() -> tuple[Any, ...]:
            made = self.function(**sizes)
            if made is None:
                raise TypeError(f"workload {self.name}: the function returned no arguments")
            return (
                tuple(cast("tuple[Any, ...]", made)) if isinstance(made, tuple | list) else (made,)
            )

        return Case(label, sizes, make)

    def amount(self, what: str, sizes: Mapping[str, Size]) -> int | None:
        """``bytes`` or ``flops`` of a launch with these sizes; None if the author stated none."""
        given: Amount = getattr(self, what)
        if given is None or isinstance(given, int):
            return given
        names = inspect.signature(given).parameters
        return int(given(**{name: value for name, value in sizes.items() if name in names}))


def declare(
    kernel: Kernel, *, bytes: Amount = None, flops: Amount = None, **sizes: Any
) -> Callable[[F], F]:
    """The decorator ``@kernel.workload(...)``.

    Raises TypeError or ValueError, naming the kernel, for an object that is not a function, for
    sizes that the function does not take or that have no values, and for parameters that no size
    fills.
    """
    where = f"{kernel.name}.workload"
    values = {name: _values(where, name, given) for name, given in sizes.items()}
    for what, given in (("bytes", bytes), ("flops", flops)):
        if callable(given):
            _fits(f"{where}: {what}", given, values, all_used=False)
        elif given is not None and type(given) is not int:
            raise TypeError(f"{where}: {what} must be an integer or a function, not {given!r}")

    def decorate(function: F) -> F:
        if not callable(function):
            raise TypeError(f"{where} decorates a function, not {function!r}")
        _fits(where, function, values, all_used=True)
        name = getattr(function, "__name__", "workload")
        kernel.workloads.append(Workload(name, function, values, bytes, flops))
        return function

    return decorate


def check(kernel: Kernel, function: F) -> F:
    """The decorator ``@kernel.check``. TypeError if the function cannot take three arguments."""
    where = f"{kernel.name}.check"
    if not callable(function):
        raise TypeError(f"{where} decorates a function, not {function!r}")
    try:
        inspect.signature(function).bind(None, None, None)
    except TypeError:
        name = getattr(function, "__name__", repr(function))
        raise TypeError(f"{where}: {name} must take (before, after, result)") from None
    kernel.checks.append(function)
    return function


def _values(where: str, name: str, given: Any) -> tuple[Size, ...]:
    """The values of one size, given as several values or as a single one."""
    several: list[Any] = list(given) if isinstance(given, list | tuple | range) else [given]  # pyright: ignore[reportUnknownArgumentType]
    values: list[Size] = []
    for element in several:
        value: Any = element.item() if hasattr(element, "item") else element  # NumPy scalars
        if not isinstance(value, int | float | str):
            raise TypeError(f"{where}: a value of size {name} must be a number or text: {value!r}")
        values.append(value)
    if not values:
        raise ValueError(f"{where}: size {name} has no values")
    if len(set(values)) != len(values):
        raise ValueError(f"{where}: size {name} has a value twice")
    return tuple(values)


def _fits(
    where: str, function: Callable[..., Any], sizes: Mapping[str, object], *, all_used: bool
) -> None:
    """Check that ``function`` can be called with the sizes by name."""
    parameters = inspect.signature(function).parameters.values()
    name = getattr(function, "__name__", repr(function))
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters)
    named = [p for p in parameters if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
    known = ", ".join(sizes) or "none"
    for p in named:
        if p.name not in sizes and p.default is p.empty:
            raise TypeError(
                f"{where}: {name} has a parameter {p.name}, which is not a size; sizes: {known}"
            )
    unused = [size for size in sizes if size not in {p.name for p in named}]
    if all_used and unused and not takes_any:
        raise TypeError(f"{where}: {name} does not take the size {', '.join(unused)}")
