"""The parameters of a compiled kernel: every part of aggregates by its own name, field layouts."""

from __future__ import annotations

from typing import Final

from ....engine.inspect.record import BindingRecord, CompileRecord, KernelRecord, LayoutRecord
from .. import format as fmt
from ..lines import Line, table

__all__ = ["HEADER", "memory_text", "origin_text", "param_lines", "param_rows", "type_text"]

HEADER: Final = ("parameter", "type", "comes from", "memory")
_LIMITS: Final = (36, 34, 34, 160)


def param_rows(kernel: KernelRecord, compiled: CompileRecord) -> list[tuple[str, str, str, str]]:
    """A row a parameter of the compiled function, under `HEADER`."""
    return [(p.name, type_text(p), origin_text(p, kernel), memory_text(p)) for p in compiled.params]


def type_text(binding: BindingRecord) -> str:
    """``f32``, ``f32[:, :]`` for an array, ``vector(2, f32)[8192]`` for a field."""
    element = binding.dtype
    if binding.element_shape:
        kind = "vector" if len(binding.element_shape) == 1 else "matrix"
        element = f"{kind}({', '.join(map(str, binding.element_shape))}, {binding.dtype})"
    if binding.kind == "scalar":
        return element
    extents = (
        [":"] * binding.ndim if binding.layout is None else [str(n) for n in binding.layout.shape]
    )
    return f"{element}[{', '.join(extents)}]"


def origin_text(binding: BindingRecord, kernel: KernelRecord) -> str:
    """``argument``, ``member of tank``, ``part of p``, ``field``."""
    if binding.origin in ("argument", "field"):
        return binding.origin
    whole = binding.argument
    if whole == "self" and kernel.instance:
        whole = f"self ({kernel.instance.partition(' ')[0]})"
    return f"{binding.origin} of {whole}"


def memory_text(binding: BindingRecord) -> str:
    """The text ``read``, ``written`` or ``not used``, and for a field: bytes, arrangement, strides
    by axis."""
    out: list[str] = []
    if not binding.used:
        out.append("not used")
    elif binding.kind != "scalar":
        out.append("written" if binding.written else "read")
    if binding.axes:
        out.append(f"axes in memory: {' '.join('ijklmnopqrst'[a] for a in binding.axes)}")
    if binding.layout is not None:
        out.append(_layout_text(binding.layout))
    return ", ".join(out)


def _layout_text(layout: LayoutRecord) -> str:
    size = fmt.size(layout.bytes)
    if layout.span > layout.bytes:
        size += f" spread over {fmt.size(layout.span)}"
    parts = [size]
    if layout.arrangement:
        parts.append(layout.arrangement)
    if layout.digits:
        steps = " ".join(f"{d}:{s}" for d, s in zip(layout.digits, layout.strides, strict=True))
        parts.append(f"strides {steps} B")
    if any(layout.origin):
        parts.append(f"indices from {', '.join(map(str, layout.origin))}")
    return ", ".join(parts)


def param_lines(kernel: KernelRecord, compiled: CompileRecord | None, indent: int) -> list[Line]:
    """The table for below a kernel's signature; nothing for plain arguments that say it all."""
    if compiled is None or all(p.origin == "argument" for p in compiled.params):
        return []
    rows = param_rows(kernel, compiled)
    head, lines = table(
        HEADER,
        [((n, "accent"), (t, "type"), (o, "dim"), (m, "dim")) for n, t, o, m in rows],
        [("param", kernel.id, n) for n, *_ in rows],
        (False,) * len(HEADER),
        _LIMITS,
    )
    pad = ((" " * indent, ""),)
    return [
        line._replace(spans=(*pad, *line.spans), key=line.key or ("params", kernel.id),
                      line=kernel.line)
        for line in (head, *lines)
    ]  # fmt: skip
