"""Options and backends by name, for command lines and dialogs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from ..config import OPTIONS, of_environment
from ..named_tuple import NamedTuple
from ..options import did_you_mean

__all__ = [
    "EVERY", "BackendInfo", "OptionInfo", "backends", "every_backend", "expand", "lacking",
    "options", "parse_setting", "self_test",
]  # fmt: skip

EVERY: Final = "all"
"""The name that stands for every backend in a list of backends."""
# The others are compared in time with the first, and in results with the second.
_FIRST: Final = ("cpu", "interp")

# Chosen in other ways than as an option of a compile.
_ELSEWHERE: Final = {"arch": "backends are chosen with --backend"}


class OptionInfo(NamedTuple):
    """A compile option. choices: empty if any value of ``type`` (bool, int, float, str) will do.

    minimum, maximum: of a number; None for no limit. scope: ``cpu``, ``gpu`` or ``any``.
    """

    name: str
    type: str
    default: str | int | float | bool
    choices: tuple[Any, ...]
    doc: str
    works: bool
    minimum: float | None = None
    maximum: float | None = None
    scope: str = "any"


class BackendInfo(NamedTuple):
    """A backend. reason: why it does not work here. toolchain: what generates its code.

    only: it makes code that is launched nowhere.
    """

    name: str
    works: bool
    reason: str
    toolchain: str
    only: bool = False


def options() -> list[OptionInfo]:
    """Every option that can be set for a compile; ``works`` False: accepted, without effect."""
    return [
        OptionInfo(
            o.name,
            o.type.__name__,
            o.default,
            o.choices,
            o.doc,
            o.effect == "now",
            o.minimum,
            o.maximum,
            o.scope,
        )
        for o in OPTIONS.values()
        if not o.name.startswith("_") and o.name not in _ELSEWHERE
    ]


def parse_setting(text: str) -> tuple[str, str | int | float | bool]:
    """Return ``name=value`` as an option and its value. Raises ValueError with what is wrong."""
    name, equals, value = text.partition("=")
    name = name.strip()
    if not equals:
        raise ValueError(f"{text!r} is no setting: write NAME=VALUE, such as fast_math=0")
    if name in _ELSEWHERE:
        raise ValueError(f"{name} cannot be set here: {_ELSEWHERE[name]}")
    option = OPTIONS.get(name)
    if option is None or name.startswith("_"):
        known = [info.name for info in options()]
        raise ValueError(f"there is no option {name!r}{did_you_mean(name, known)}")
    if name == "cuda_arch" and value.strip():
        from ..backends.cuda import archs

        return name, archs.check(value.strip()).name
    try:
        return name, option.parse(value)
    except ValueError:
        raise ValueError(f"{name}={value.strip()} does not fit: {option.expected}") from None


def every_backend() -> tuple[str, ...]:
    """Every backend by name, also those that this version lacks; the one to compare with first."""
    from ..backends import base

    return (*_FIRST, *(name for name in base.names() if name not in _FIRST))


def expand(names: Iterable[str]) -> tuple[str, ...]:
    """The backends that a person names, once each; ``all`` stands for every one.

    Raises ValueError for a name that is no backend, or no target of one.
    """
    out: list[str] = []
    for name in names:
        out += every_backend() if name == EVERY else [name]
    if out:
        from .targets import split

        for name in out:
            split(name)
    return tuple(dict.fromkeys(out))


def backends(names: Iterable[str] | None = None) -> list[BackendInfo]:
    """Return what is known of the backends called ``names``; None: of all.

    Raises ValueError for a name that is no backend, or no target of one (``cuda:sm_90``).
    """
    from ..backends import base
    from .targets import split

    out: list[BackendInfo] = []
    for name in base.names() if names is None else names:
        backend, _ = split(name)
        works, reason = base.availability(backend)
        toolchain = base.find(backend).toolchain() if works else ""
        only = bool(backend in base.BUILT and base.find(backend).compile_only())
        out.append(BackendInfo(name, works, reason, toolchain, only))
    return out


def lacking(backend: str) -> dict[str, str]:
    """Return what every device of a backend lacks: ``checks``, ``prints``, or a data type, with the
    reason."""
    from ..backends import base

    caps = base.find(backend).caps
    out: dict[str, str] = {}
    if not caps.checks:
        out["checks"] = "kernels have no asserts and no checks of indices"
    if not caps.prints:
        out["prints"] = "kernels do not print"
    for name in ("f16", "f64"):
        if name not in {t.name for t in caps.types}:
            out[name] = f"the type {name} is not supported"
    return out


def self_test(backend: str) -> str:
    """Compile and launch a small kernel on ``backend``; return the error's text, or ``""``."""
    import numpy as np

    from ..backends import base
    from ..config import CompileConfig
    from ..ir import Builder, ForAttr, Func, Param
    from ..ir import codes as C
    from ..runtime.compile import make_code
    from ..types import i32, pointer_to

    func = Func("self_test", (Param("x", "ndarray", i32, 1),))
    build = Builder(func, func.body)
    extent = build.emit(C.EXTERNAL_TENSOR_SHAPE_ALONG_AXIS, (), (0, 0))
    loop = build.range_for((build.const(0, i32), extent), ForAttr())
    with build.inside(loop.regions[0]):
        index = build.loop_index(loop, 0)
        start = build.emit(C.ARG_ADDR, (), (0, False), pointer_to(i32))
        target = build.emit(C.EXTERNAL_PTR, (start, index), "unsafe", pointer_to(i32))
        build.store(target, build.binary(C.MUL, index, build.const(3, i32)))
    try:
        config = CompileConfig(arch=backend, opencl_device=of_environment("opencl_device"))
        found = base.find(backend)
        _, artifact = make_code(func, config, found)
        values = np.full(1000, -1, np.int32)
        device = found.open(config)
        found.load(artifact).launch([values])
        device.end()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    wrong = int(np.count_nonzero(values != 3 * np.arange(1000)))
    return f"{wrong} of 1000 values are wrong" if wrong else ""
