"""Do two backends agree? Results and written arrays, compared element by element.

`compare` looks at one launch, `judged` makes the verdict of all launches of a backend.

Integers and bools must be equal. Floats may differ by a stated tolerance, since threads add in
another order and `fast_math` allows rewriting: relative to the larger of the two values, or
relative to the largest value of the array (sums that cancel lose digits). f32 values may differ
by less than the smallest normal one: GPUs flush such values under `fast_math`, the CPU does not.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import Any, Final, cast

import numpy as np

from ..named_tuple import NamedTuple
from .record_launch import AgreementRecord

__all__ = [
    "AGAINST", "Comparison", "Named", "apart", "compare", "element_name", "judged",
]  # fmt: skip

AGAINST: Final = "the interpreter"

# relative to the values, relative to the array's largest value
_TOLERANCE: Final = {2: (2e-2, 2e-2), 4: (1e-4, 1e-5), 8: (1e-9, 1e-10)}
_OWN: Final = {2: 0.1, 4: 1e-2}
"""The largest distance of the interpreter from f64, relative to the value, that can be rounding."""
_NAMES: Final = {2: "f16", 4: "f32", 8: "f64"}
_HUGE: Final = float(np.finfo(np.float64).max)
_NORMAL: Final = {4: float(np.finfo(np.float32).tiny)}
"""The smallest normal number of the types whose smaller ones some backends flush to 0."""


class Comparison(NamedTuple):
    """The result of `compare`. The three errors are the largest over all numbers, always finite.

    max_ulp: over floats only. elements: the numbers of results that were compared. differing: the
    numbers, of results and of what the kernel only reads, that are too far apart. nans: the
    elements that are NaN on both sides. rounding: if the comparison agrees only because the
    interpreter's own rounding is as large, how large that is, relative to the values; else 0.
    """

    agrees: bool
    max_abs: float
    max_rel: float
    max_ulp: float
    tolerance: str
    first_difference: str
    elements: int = 0
    differing: int = 0
    nans: int = 0
    rounding: float = 0.0
    reordered: bool = False


class Named(NamedTuple):
    """The names by which the user knows the elements of an array of values.

    ndim: axes of the array or field; those after them are of the vector or matrix in an element.
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


def compare(
    names: Sequence[str | Named],
    ours: Sequence[Any],
    theirs: Sequence[Any],
    results: Container[int] | None = None,
    exact: Callable[[], Sequence[Any] | None] | None = None,
) -> Comparison:
    """Compare values (arrays or numbers) pairwise; ``theirs`` are the interpreter's.

    names: of each value; a text is the name of a number, or of an array of numbers. results: the
    indices of the values that the kernel writes or returns, all if None. Others must be equal too,
    but that they are shows nothing, so they are not among `Comparison.elements`. exact: returns
    the values computed in f64 throughout, if there are any; called if the comparison differs.
    """
    max_abs = max_rel = max_ulp = 0.0
    elements = differing = nans = 0
    first = ""
    sizes: set[int] = set()
    for i, (name, a, b) in enumerate(zip(names, ours, theirs, strict=True)):
        x, y = np.asarray(a), np.asarray(b)
        if x.shape != y.shape:
            called = name.name if isinstance(name, Named) else name
            first = first or f"{called}: shape {x.shape}, interpreter {y.shape}"
            continue
        size = _float_size(x, y)
        if not size:
            bad = x != y
            errors = _integers(x, y, bad)
        else:
            sizes.add(size)
            bad, errors = _floats(x, y, size)
        max_abs = max(max_abs, errors[0])
        max_rel = max(max_rel, errors[1])
        max_ulp = max(max_ulp, errors[2])
        wrong = int(np.count_nonzero(bad))
        if results is None or i in results or wrong:
            elements += x.size
            nans += _nans(x, y)
        differing += wrong
        if wrong and not first:
            first = _first(name, x, y, bad)
    tolerance = _tolerance(sizes)
    found = Comparison(
        not first, max_abs, max_rel, max_ulp, tolerance, first, elements, differing, nans
    )  # fmt: skip
    precise = exact() if first and exact is not None else None
    return found if precise is None else _reconsidered(found, ours, theirs, precise)


def _reconsidered(
    found: Comparison, ours: Sequence[Any], theirs: Sequence[Any], exact: Sequence[Any]
) -> Comparison:
    """``found``, which differs, judged once more with results computed in f64 throughout.

    It agrees if each number that is too far from the interpreter's is close to that of f64, or no
    more than twice as far from it as the interpreter's, which must be close to it, too (`_OWN`).
    """
    rounding = 0.0
    for a, b, c in zip(ours, theirs, exact, strict=True):
        x, y, e = np.asarray(a), np.asarray(b), np.asarray(c)
        if x.shape != y.shape or x.shape != e.shape:
            return found
        size = _float_size(x, y)
        if not size and bool(np.any(x != y)):
            return found
        bad = _floats(x, y, size)[0] if size else np.zeros(x.shape, bool)
        if not bool(np.any(bad)):
            continue
        far = _floats(x, e, size)[0] & bad
        with np.errstate(all="ignore"):
            a64, b64, e64 = (v[bad].astype(np.float64) for v in (x, y, e))
            own, scale = np.abs(b64 - e64), np.maximum(np.abs(e64), np.abs(b64))
            fits = (np.abs(a64 - e64) <= 2 * own) & (own <= _OWN.get(size, 0.0) * scale)
            if not bool(np.all(np.isfinite(e64) & (fits | ~far[bad]))):
                return found
            relative = np.divide(own, scale, out=np.zeros_like(own), where=scale > 0)
        rounding = max(rounding, float(np.max(relative)))
    return found._replace(agrees=True, first_difference="", differing=0, rounding=rounding)


def _float_size(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> int:
    """Bytes of the type whose tolerance holds for both; 0 if they must be equal."""
    if x.dtype.kind != "f" and y.dtype.kind != "f":
        return 0
    return min(x.dtype.itemsize, y.dtype.itemsize) if x.dtype.kind == "f" else 8


def apart(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A mask of the elements of two arrays of one shape that are too far apart."""
    size = _float_size(x, y)
    return np.asarray(_floats(x, y, size)[0] if size else x != y)


def judged(
    compared: Sequence[tuple[str, Comparison]],
    uncompared: Sequence[str] = (),
    reason: str = "",
    check: str = "none",
    check_message: str = "",
) -> AgreementRecord:
    """The verdict of a backend's launches.

    compared: by the label of each workload. uncompared: labels of what was launched and not
    compared. reason: why not, or why nothing was launched.
    """
    differing = [pair for pair in compared if not pair[1].agrees]
    worst = min(differing, key=lambda pair: pair[1].reordered, default=None)
    elements, nans = sum(c.elements for _, c in compared), sum(c.nans for _, c in compared)
    if worst is None and not compared:
        reason = reason or "it was not launched"
    elif worst is None and not elements:
        reason = "the kernel writes nothing and returns nothing that could be compared"
    elif worst is None and nans == elements:
        reason = f"NaN in all {elements:,} elements, here and in {AGAINST}, shows nothing"
    elif worst is not None and worst[1].reordered and check != "failed":
        reason = (
            f"{worst[1].first_difference}, with {worst[0]}; it agrees with fast_math=0, so this "
            "kernel amplifies the rounding of arithmetic in another order, or a rewrite is wrong"
        )
    else:
        counted = [worst[1]] if worst is not None else [c for _, c in compared]
        own = max(c.rounding for _, c in compared)
        if reason and worst is None and uncompared:
            reason = f"not compared: {reason}"
        if own and worst is None:
            found = f"the interpreter's own rounding is as large, by a run in f64: up to {own:.1e}"
            reason = f"{found}; {reason}" if reason else found
        labels = [worst[0]] if worst is not None else [label for label, _ in compared]
        return AgreementRecord(
            state="ok" if worst is None else "differs",
            reason=reason,
            workload="; ".join(labels),
            max_abs=max(c.max_abs for _, c in compared),
            max_rel=max(c.max_rel for _, c in compared),
            max_ulp=max(c.max_ulp for _, c in compared),
            tolerance=compared[0][1].tolerance,
            differing=0 if worst is None else worst[1].differing,
            elements=sum(c.elements for c in counted),
            first_difference="" if worst is None else worst[1].first_difference,
            check=check,
            check_message=check_message,
            against=AGAINST,
            nans=sum(c.nans for c in counted),
            uncompared=tuple(uncompared),
        )
    labels = [] if worst is not None else [label for label, _ in compared]
    return AgreementRecord(
        state="unknown", reason=reason, check=check, check_message=check_message,
        uncompared=tuple(dict.fromkeys([*labels, *uncompared])),
    )  # fmt: skip


def _nans(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> int:
    """The elements that are NaN in both."""
    if x.dtype.kind != "f" or y.dtype.kind != "f":
        return 0
    return int(np.count_nonzero(np.isnan(x) & np.isnan(y)))


def _integers(
    x: np.ndarray[Any, Any], y: np.ndarray[Any, Any], bad: np.ndarray[Any, Any]
) -> tuple[float, float, float]:
    """The largest absolute and relative error of those that differ."""
    if not bool(np.any(bad)):
        return 0.0, 0.0, 0.0
    a, b = x[bad], y[bad]
    with np.errstate(all="ignore"):
        distance = np.abs(a.astype(np.float64) - b.astype(np.float64))
        larger = np.maximum(np.abs(a.astype(np.float64)), np.abs(b.astype(np.float64)))
        # Two large ones may differ by less than doubles show; then they do by less than 1e-15.
        rel = float(
            np.max(np.divide(distance, larger, out=np.zeros_like(distance), where=larger > 0))
        )
    at = int(np.argmax(distance))
    gap = abs(int(a[at]) - int(b[at]))  # 65 bits, where both have 64
    return float(gap), rel, 0.0


def _floats(
    x: np.ndarray[Any, Any], y: np.ndarray[Any, Any], size: int
) -> tuple[np.ndarray[Any, Any], tuple[float, float, float]]:
    """Return a mask of elements too far apart, and the largest absolute, relative and ulp error."""
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
        # Unsigned numbers in the order of the floats: negative patterns count downwards to 0.
        magnitude = bits & np.uint64(sign - 1)
        ordered.append(np.where(bits >= sign, sign - magnitude, sign + magnitude))
    low, high = np.minimum(*ordered), np.maximum(*ordered)
    return float(np.max(high - low))


def _first(
    name: str | Named, x: np.ndarray[Any, Any], y: np.ndarray[Any, Any], bad: np.ndarray[Any, Any]
) -> str:
    index = tuple(int(i) for i in np.unravel_index(int(np.argmax(bad)), x.shape)) if x.ndim else ()
    called = element_name(name, index)
    return f"{called}: got {cast(Any, x)[index]!s}, interpreter {cast(Any, y)[index]!s}"


def element_name(name: str | Named, index: tuple[int, ...]) -> str:
    """The name of an element of a value that has this name."""
    if isinstance(name, str):
        name = Named(name, len(index)) if index else name
    return name if isinstance(name, str) else name.element(index)


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
