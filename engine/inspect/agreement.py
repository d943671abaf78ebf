"""Do two backends agree? Results and written arrays, compared element by element.

Integers and bools must be equal. Reals may differ by a stated tolerance, since threads add in
another order and `fast_math` allows rewriting: relative to the larger of the two values, or
relative to the largest value of the array (sums that cancel lose digits). f32 values may differ
by less than the smallest normal one: GPUs flush such values under `fast_math`, the CPU does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, cast

import numpy as np

__all__ = ["Comparison", "Named", "compare"]

# relative to the values, relative to the array's largest value
_TOLERANCE: Final = {2: (2e-2, 2e-2), 4: (1e-4, 1e-5), 8: (1e-9, 1e-10)}
_NAMES: Final = {2: "f16", 4: "f32", 8: "f64"}
_HUGE: Final = float(np.finfo(np.float64).max)
_NORMAL: Final = {4: float(np.finfo(np.float32).tiny)}
"""The smallest normal number of the types whose smaller ones some backends flush to 0."""


class Comparison(NamedTuple):
    """What `compare` found. The three errors are the largest over all numbers, finite always.

    max_ulp: over reals only. elements, differing: how many numbers were compared, and how many of
    them are too far apart.
    """

    agrees: bool
    max_abs: float
    max_rel: float
    max_ulp: float
    tolerance: str
    first_difference: str
    elements: int = 0
    differing: int = 0


class Named(NamedTuple):
    """How the user calls the elements of an array of values.

    ndim: axes of the array or field; those behind them are of the vector or matrix in an element.
    origin: the first index of each axis; empty for zeros.
    """

    name: str
    ndim: int
    origin: tuple[int, ...] = ()

    def element(self, index: tuple[int, ...]) -> str:
        """``velocity[3, 4][1]`` for an element given by its indices from 0."""
        own = index[: self.ndim]
        if self.origin:
            own = tuple([i + o for i, o in zip(own, self.origin, strict=True)])
        text = f"{self.name}[{', '.join(map(str, own)) if own else None}]"
        inside = index[self.ndim :]
        return text + (f"[{', '.join(map(str, inside))}]" if inside else "")


def compare(names: Sequence[str | Named], ours: Sequence[Any], theirs: Sequence[Any]) -> Comparison:
    """Compare values (arrays or numbers) pairwise; ``theirs`` are the interpreter's.

    names: of each value; a text is the name of a number, or of an array of numbers.
    """
    max_abs = max_rel = max_ulp = 0.0
    elements = differing = 0
    first = ""
    sizes: set[int] = set()
    for name, a, b in zip(names, ours, theirs, strict=True):
        x, y = np.asarray(a), np.asarray(b)
        if x.shape != y.shape:
            called = name.name if isinstance(name, Named) else name
            first = first or f"{called}: shape {x.shape}, interpreter {y.shape}"
            continue
        if x.dtype.kind != "f" and y.dtype.kind != "f":
            bad = x != y
            errors = _integers(x, y, bad)
        else:
            size = min(x.dtype.itemsize, y.dtype.itemsize) if x.dtype.kind == "f" else 8
            sizes.add(size)
            bad, errors = _reals(x, y, size)
        max_abs = max(max_abs, errors[0])
        max_rel = max(max_rel, errors[1])
        max_ulp = max(max_ulp, errors[2])
        elements += x.size
        wrong = int(np.count_nonzero(bad))
        differing += wrong
        if wrong and not first:
            first = _first(name, x, y, bad)
    tolerance = _tolerance(sizes)
    return Comparison(
        not first, max_abs, max_rel, max_ulp, tolerance, first, elements, differing
    )  # fmt: skip


def _integers(
    x: np.ndarray[Any, Any], y: np.ndarray[Any, Any], bad: np.ndarray[Any, Any]
) -> tuple[float, float, float]:
    """The largest absolute and relative error of those that differ."""
    if not bool(np.any(bad)):
        return 0.0, 0.0, 0.0
    a, b = x[bad], y[bad]
    with np.errstate(all="ignore"):
        apart = np.abs(a.astype(np.float64) - b.astype(np.float64))
        larger = np.maximum(np.abs(a.astype(np.float64)), np.abs(b.astype(np.float64)))
        # Two large ones may differ by less than doubles show; then they do by less than 1e-15.
        rel = float(np.max(np.divide(apart, larger, out=np.zeros_like(apart), where=larger > 0)))
    at = int(np.argmax(apart))
    gap = abs(int(a[at]) - int(b[at]))  # 65 bits, where both have 64
    return float(gap), rel, 0.0


def _reals(
    x: np.ndarray[Any, Any], y: np.ndarray[Any, Any], size: int
) -> tuple[np.ndarray[Any, Any], tuple[float, float, float]]:
    """Which elements are too far apart, and the largest absolute, relative and ulp error."""
    rel, of_largest = _TOLERANCE[size]
    with np.errstate(all="ignore"):
        a, b = x.astype(np.float64), y.astype(np.float64)
        finite = np.isfinite(a) & np.isfinite(b)
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        if not bool(np.any(finite)):
            return ~same, (0.0, 0.0, 0.0)
        gap = np.where(finite & ~same, np.minimum(np.abs(a - b), _HUGE), 0.0)
        larger = np.where(finite, np.maximum(np.abs(a), np.abs(b)), 0.0)
        largest = float(np.max(np.where(finite, np.abs(b), 0.0)))
        bad = ~same & (~finite | (gap > np.maximum(rel * larger, of_largest * largest)))
        bad &= ~finite | (gap >= _NORMAL.get(size, 0.0))
        relative = np.divide(gap, larger, out=np.zeros_like(gap), where=larger > 0)
    errors = float(np.max(gap)), float(np.max(relative)), _ulps(x, y, size, finite & ~same)
    return bad, errors


def _ulps(
    x: np.ndarray[Any, Any], y: np.ndarray[Any, Any], size: int, where: np.ndarray[Any, Any]
) -> float:
    """The largest number of representable values between two finite elements."""
    if not bool(np.any(where)):
        return 0.0
    kind: Any = f"f{size}"
    sign = 1 << (8 * size - 1)
    ordered: list[np.ndarray[Any, Any]] = []
    for values in (x, y):
        picked = np.ascontiguousarray(values.astype(kind)[where])
        bits = picked.view(f"u{size}").astype(np.uint64)
        # Unsigned numbers in the order of the reals: negative patterns count downwards to 0.
        magnitude = bits & np.uint64(sign - 1)
        ordered.append(np.where(bits >= sign, sign - magnitude, sign + magnitude))
    low, high = np.minimum(*ordered), np.maximum(*ordered)
    return float(np.max(high - low))


def _first(
    name: str | Named, x: np.ndarray[Any, Any], y: np.ndarray[Any, Any], bad: np.ndarray[Any, Any]
) -> str:
    index = tuple(int(i) for i in np.unravel_index(int(np.argmax(bad)), x.shape)) if x.ndim else ()
    if isinstance(name, str):
        name = Named(name, x.ndim) if x.ndim else name
    called = name if isinstance(name, str) else name.element(index)
    return f"{called}: got {cast(Any, x)[index]!s}, interpreter {cast(Any, y)[index]!s}"


def _tolerance(sizes: set[int]) -> str:
    parts = ["integers exact"]
    for size in sorted(sizes):
        rel, of_largest = _TOLERANCE[size]
        parts.append(
            f"{_NAMES[size]} {rel:g} relative, or {of_largest:g} of the array's largest value"
        )
        if size in _NORMAL:
            parts[-1] += f", or less than {_NORMAL[size]:.2g}"
    return "; ".join(parts)
