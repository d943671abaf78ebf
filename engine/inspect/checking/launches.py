"""Launches of a kernel with shadow memory: which faults its own arguments show.

Elements that the caller did not give a value are known by their bits: while the arguments are made,
`numpy.empty` and `numpy.empty_like` fill what they return with a pattern. An element that still has
it when the kernel starts was never set. Only elements of four bytes or more are followed so.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from ...cache.keys import ir_digest
from ...errors import QuadrantsCompilationError, QuadrantsRuntimeError
from ...named_tuple import NamedTuple
from ..arguments import LaunchCase
from ..interpreting import TooLong
from ..launching import ORACLE
from ..steps import StepLimit
from ..synthetic import synthetic, why_none
from ..trials import Trials, UnjudgedError
from .shadow import Followed, Seen

if TYPE_CHECKING:
    from ...ir import Func
    from ..capture import KernelCapture

__all__ = ["ACCESSES", "SLOW", "STEPS", "Launched", "follow", "follow_example", "given_to"]

SLOW: Final = "it needs too much time or memory"
"""The reason of a launch that another machine might follow."""
_CASES: Final = 3
ACCESSES: Final = 40_000
"""Of another launch, estimated by its sizes: about a quarter of a second."""
_FAILURES: Final = (
    QuadrantsCompilationError, QuadrantsRuntimeError, TooLong, StepLimit, MemoryError,
)  # fmt: skip
_LARGEST: Final = 1 << 16
"""Elements of an array of an example."""
STEPS: Final = 150_000
"""Of each launch."""
_PATTERN: Final = np.frombuffer(b"\xa5\x5a\xc3\x3c\x96\x69\xf0\x0f", np.uint8)


class Launched(NamedTuple):
    """label, origin: of the case. seen: faults. func: the IR that ran. complete: to its end.
    why: why it was not followed; else empty."""

    label: str
    origin: str
    seen: Sequence[Seen] = ()
    func: Func | None = None
    complete: bool = False
    accesses: int = 0
    why: str = ""


def follow(capture: KernelCapture) -> list[Launched]:
    """Launch with the smallest arguments that there are: larger ones cost more than they show."""
    cases = sorted(capture.cases, key=_size)[:_CASES]
    out: list[Launched] = []
    for case, following in zip(cases, [*cases[1:], None], strict=False):
        out.append(_follow(capture, case))
        growth = _size(following) / max(1.0, _size(case)) if following is not None else 1.0
        if out[-1].seen or (out[-1].accesses or ACCESSES) * growth > ACCESSES:
            break
    return out


def given_to(capture: KernelCapture) -> list[tuple[str, str, Sequence[Any]]] | None:
    """Label and IR, origin and values of each case that `follow` may launch: what its findings
    depend on. None if some cannot be made."""
    cases = sorted(capture.cases, key=_size)[:_CASES]
    out: list[tuple[str, str, Sequence[Any]]] = []
    for case in cases:
        if _size(case) > ACCESSES * max(1.0, _size(cases[0])):
            break  # a first launch of one access would not be followed by this one
        try:
            launcher = capture.launcher(0.0)
            with _marked():
                found = launcher.round_of(case, False)
            if found is None:
                return None
            trials = Trials(capture, launcher, found, ORACLE, light=True)
        except (UnjudgedError, *_FAILURES):
            return None
        assert trials.build is not None
        label = f"{case.label} {ir_digest(trials.build.func)}"
        out.append((label, case.origin, trials.values()))
    return out


def follow_example(capture: KernelCapture, sizes: dict[str, str]) -> Launched | None:
    """Launch with the sizes of an example: synthetic arguments, resized. None if they cannot be
    made."""
    decl, instance = capture.kernel.decl, capture.instance
    if not sizes or why_none(decl, instance):
        return None
    made: list[Any] = []
    for param, value in zip(
        decl.params, synthetic(decl, capture.config, instance), strict=True
    ):  # fmt: skip
        if isinstance(value, np.ndarray):
            array = cast("np.ndarray[Any, Any]", value)
            extents: list[int] = list(array.shape)
            for axis in range(array.ndim):
                given = sizes.get(f"{param.name}.shape[{axis}]")
                extents[axis] = extents[axis] if given is None else int(given)
            if math.prod(extents) > _LARGEST or min(extents, default=1) < 0:
                return None
            value = np.resize(array, extents) if array.size else array
        elif param.kind == "scalar" and param.name in sizes:
            value = int(sizes[param.name])
        made.append(value)
    label = ", ".join(f"{k} = {v}" for k, v in sizes.items())
    return _follow(capture, LaunchCase(label, "example", {}, lambda: tuple(made)))


def _size(case: LaunchCase) -> float:
    total = 1.0
    for value in case.sizes.values():
        total *= value if isinstance(value, int | float) else 1
    return total


def _follow(capture: KernelCapture, case: LaunchCase) -> Launched:
    none = Launched(case.label, case.origin)
    launcher = capture.launcher(0.0)
    try:
        with _marked() as made:
            found = launcher.round_of(case, False)
        if found is None:
            return none._replace(why="its arguments cannot be made")
        trials = Trials(capture, launcher, found, ORACLE, light=True)
        assert trials.build is not None
        func = trials.build.func
        # Of a gradient, what is followed is the kernel that it is made from.
        func.autodiff = "none"
        text = f"following {capture.kernel.name} {case.label}"
        with capture.steps.step("check", text, kind="launch"):
            shadow = Followed(func).launch(trials.given, STEPS, empty_of if made else None)
    except UnjudgedError as error:
        return none._replace(why=str(error))
    except (StepLimit, MemoryError):
        return none._replace(why=SLOW)
    except _FAILURES as error:
        text = (str(error) or type(error).__name__).splitlines()
        return none._replace(why=text[-1])
    return Launched(
        case.label, case.origin, shadow.found, func, shadow.complete, shadow.steps,
        "" if shadow.complete or shadow.found else "it needs too many steps",
    )  # fmt: skip


@contextmanager
def _marked() -> Generator[list[int]]:
    """Within it, new NumPy arrays without contents have a pattern. Yields how many were made."""
    empty, empty_like = np.empty, np.empty_like
    made: list[int] = []

    def marked(make: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            array = make(*args, **kwargs)
            if array.dtype.kind in "fiu" and array.flags.c_contiguous and array.size:
                flat = array.reshape(-1).view(np.uint8)
                flat[:] = np.resize(_PATTERN, flat.size)
                made.append(array.size)
            return array

        return call

    np.empty, np.empty_like = marked(empty), marked(empty_like)
    try:
        yield made
    finally:
        np.empty, np.empty_like = empty, empty_like


def empty_of(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any] | None:
    """For each element, in the order of memory, True if it was not set; None if all were."""
    size = array.dtype.itemsize
    if size < 4 or array.dtype.kind not in "fiu" or not array.flags.c_contiguous:
        return None
    raw = np.frombuffer(array.tobytes(), np.uint32 if size == 4 else np.uint64)
    if raw.size == 0:
        return None
    words = np.frombuffer(np.resize(_PATTERN, array.nbytes).tobytes(), raw.dtype)
    mask: np.ndarray[Any, Any] = raw == words
    return mask if mask.any() else None
