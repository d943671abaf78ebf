"""Prepared launchers: Python source made for one kernel and one set of argument features.

What is generated for ``k(x: ndarray<f32, 1>, a: f32)`` reads, in essence::

    def launch(a0=MISSING, a1=MISSING, *rest):
        c = a0.__class__
        if c is Ndarray:
            if a0._key is not K0: return miss(a0, a1, *rest)
            p0 = a0._address; s0 = a0._extents
        elif c is ndarray:
            if a0.dtype is not D0 or a0.ndim != 1 or not a0.flags.carray: return miss(...)
            p0 = address_at(id(a0) + 16).value; s0 = a0.shape
        else: return miss(...)
        c = a1.__class__
        if (c is not float and c is not int) or rest: return miss(...)
        try: frame = free.pop()
        except IndexError: frame = new_frame()
        buffer, pointer = frame
        try: pack(buffer, 128, p0, *s0, a1)
        except RANGE: return slow(...)
        if enter(pointer): return failed(frame, ...)
        free.append(frame)

Frames are kept in a list, so that launches from several threads, and launches from a callback of a
launch, each have one of their own. A data pointer is read where NumPy keeps it (checked once when
this module is imported); NumPy's own ways to ask for it cost as much as a whole launch.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from .launch import Launchers, Variant

__all__ = ["MISSING", "prepare"]

MISSING: Final = object()
"""Stands for an argument that a call leaves out."""

_DATA_OFFSET: Final = object.__basicsize__


def _data_pointer_is_readable() -> bool:
    """Whether the data pointer of a NumPy array lies right behind the object header."""
    for sample in (np.zeros(5), np.zeros((3, 4), np.int8)[1:, 1:], np.zeros(())):
        seen = ctypes.c_void_p.from_address(id(sample) + _DATA_OFFSET).value
        if seen != sample.ctypes.data:
            return False
    return True


def _slow_address(array: np.ndarray[Any, Any]) -> int:
    return array.ctypes.data


_FAST_ADDRESS: Final = _data_pointer_is_readable()


def _guard(lines: list[str], test: str, again: str) -> None:
    lines.append(f"    if {test}: return miss({again})")


def _array(lines: list[str], name: str, i: int, ndim: int, again: str) -> None:
    """Check array argument ``name`` and put its address and extents into ``p`` and ``s``."""
    pointer = f"address_at(id({name}) + {_DATA_OFFSET}).value" if _FAST_ADDRESS else (
        f"slow_address({name})")  # fmt: skip
    lines += [
        f"    c = {name}.__class__",
        "    if c is Ndarray:",
        f"        if {name}._key is not K{i}: return miss({again})",
        f"        p{i} = {name}._address; s{i} = {name}._extents",
        "    elif c is ndarray:",
        f"        if {name}.dtype is not D{i} or {name}.ndim != {ndim} or not {name}.flags.carray:"
        f" return miss({again})",
        f"        p{i} = {pointer}; s{i} = {name}.shape",
        f"    else: return miss({again})",
    ]


def prepare(
    owner: Launchers, variant: Variant, args: tuple[Any, ...], miss: Callable[..., Any]
) -> Callable[..., Any] | None:
    """The launcher for ``variant``, which passes other calls to ``miss``.

    None if the executable has no native frame (another backend than the CPU), or for what only the
    long way takes (arrays with gradients, kernels that have something to report after a launch).
    """
    frame = getattr(variant.executable, "frame", None)
    if frame is None or variant.executable.meta.reports:
        return None
    if any(leaf.field is not None or leaf.path for leaf in variant.compiled.build.leaves):
        return None
    params = owner.decl.params
    names = [f"a{i}" for i in range(len(params))]
    again = ", ".join([*names, "*rest"])
    env: dict[str, Any] = {
        "MISSING": MISSING, "Ndarray": owner.array_class, "ndarray": np.ndarray, "miss": miss,
        "address_at": ctypes.c_void_p.from_address, "slow_address": _slow_address,
        "RANGE": (struct.error, OverflowError), "free": frame.free, "new_frame": frame.new,
        "pack": frame.pack, "enter": variant.executable.enter, "unpack": frame.unpack,  # type: ignore[attr-defined]
        # The last: a thread inside of the code keeps it mapped while another ends the program.
        "next_seed": variant.program.next_seed, "running": variant.executable,
    }  # fmt: skip
    head = ", ".join([*(f"{n}=MISSING" for n in names), "*rest"])
    lines = [f"def launch({head}):"]
    values: list[str] = []
    native = iter(variant.executable.meta.params)
    for i, (param, name) in enumerate(zip(params, names, strict=True)):
        if param.kind == "template":
            env[f"T{i}"], env[f"C{i}"] = args[i], args[i].__class__
            _guard(
                lines,
                f"{name} is not T{i} and ({name}.__class__ is not C{i} or {name} != T{i})",
                again,
            )
            continue
        p = next(native)
        if p.kind == "scalar":
            lines.append(f"    c = {name}.__class__")
            test = "c is not float and c is not int" if p.dtype.is_real else "c is not int"
            _guard(lines, test if p.dtype.bits > 1 else f"{test} and c is not bool", again)
            values.append(name)
            continue
        if p.needs_grad:
            return None
        feature = variant.features[i]
        env[f"K{i}"], env[f"D{i}"] = feature, np.dtype(p.dtype.np)
        _array(lines, name, i, p.ndim, again)
        values.append(f"p{i}")
        if p.ndim:
            values.append(f"*s{i}")
    _guard(lines, "rest", again)
    lines += _launch_lines(variant, values, again, frame)
    env["slow"] = env["failed"] = None

    def slow(*args: Any) -> Any:
        return owner.patient(args)

    def failed(used: Any, *args: Any) -> Any:
        frame.check(used)
        return owner.patient(args)

    env["slow"], env["failed"] = slow, failed
    exec("\n".join(lines), env)
    return env["launch"]


def _launch_lines(variant: Variant, values: list[str], again: str, frame: Any) -> list[str]:
    """The part after the checks: fill a frame, enter the kernel, read results."""
    lines = [
        "    try: frame = free.pop()",
        "    except IndexError: frame = new_frame()",
        "    buffer, pointer = frame",
    ]
    if variant.executable.meta.seeded:
        values = ["next_seed()", *values]
    if values:
        lines += [
            f"    try: pack(buffer, {frame.start}, {', '.join(values)})",
            f"    except RANGE: return slow({again})",
        ]
    lines.append(f"    if enter(pointer): return failed(frame, {again})")
    results = variant.executable.meta.results
    if results:
        lines.append(f"    result = unpack(buffer, {frame.results_at})")
    lines.append("    free.append(frame)")
    if results:
        lines.append(f"    return result{'[0]' if len(results) == 1 else ''}")
    return lines
