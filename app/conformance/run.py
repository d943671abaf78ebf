"""One feature on one backend: run it, compare its result, answer in one of three ways.

    ok          the result is the expected one, and that of the interpreter
    no          the backend reports that it lacks something the feature needs: the reason
    failed      the result differs, or an error is raised: the first difference, the error

The backend itself reports what it lacks, in `inspect.lacking` for the whole backend or in a
`QuadrantsUnsupportedError` for this device. Anything else that goes wrong is a failure.
"""

from __future__ import annotations

import contextlib
import io
import math
import time
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, cast

from ... import engine as qd
from ...engine import inspect
from .feature import ANY, Feature

__all__ = ["FAILED", "NO", "OK", "Cell", "Runner", "difference", "plain"]

OK: Final = "ok"
NO: Final = "no"
FAILED: Final = "failed"


class Cell(NamedTuple):
    """One answer. detail: the reason, or the first difference; empty for ok."""

    feature: str
    backend: str
    state: str
    detail: str = ""
    seconds: float = 0.0


class _Outcome(NamedTuple):
    """The outcome of a run: a value, or a state and the reason."""

    value: Any = None
    state: str = OK
    detail: str = ""


def plain(value: Any) -> Any:
    """Arrays, vectors and tuples as lists, NumPy's numbers as Python's."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if hasattr(value, "to_list"):
        return plain(value.to_list())
    if isinstance(value, list | tuple):
        return [plain(item) for item in cast("Sequence[Any]", value)]
    return value


def difference(found: Any, wanted: Any, rtol: float, place: str = "") -> str:
    """The first difference of ``found`` from ``wanted``, in words; empty if there is none."""
    at = place or "result"
    if wanted is ANY:
        return ""
    if isinstance(wanted, list):
        items = cast("list[Any]", wanted)
        if not isinstance(found, list):
            return f"{at} is {_short(found)}, expected {_short(items)}"
        others = cast("list[Any]", found)
        if len(others) != len(items):
            return f"{at} has {len(others)} elements, expected {len(items)}: {_short(others)}"
        for number, (x, y) in enumerate(zip(others, items, strict=True)):
            what = difference(x, y, rtol, f"{at}[{number}]")
            if what:
                return what
        return ""
    return (
        "" if _same(found, wanted, rtol) else f"{at} is {_short(found)}, expected {_short(wanted)}"
    )


def _same(found: Any, wanted: Any, rtol: float) -> bool:
    if isinstance(found, int | float) and isinstance(wanted, int | float):
        if isinstance(wanted, float) and math.isnan(wanted):
            return math.isnan(found)
        if not rtol or math.isinf(wanted):
            return found == wanted
        return abs(found - wanted) <= rtol * max(1.0, abs(wanted))
    return type(found) is type(wanted) and found == wanted


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


class Runner:
    """Runs features on one backend, in this process, each in a program of its own.

    options: of `qd.init`, such as the device.
    """

    def __init__(self, backend: str, options: Mapping[str, Any] | None = None) -> None:
        self.backend = backend
        self.options = dict(options or {})
        self.lacking = inspect.lacking(backend)

    def run(self, feature: Feature) -> Cell:
        """The answer of the backend for a feature. Ends the current program."""
        began = time.perf_counter()
        found = self._answer(feature)
        seconds = time.perf_counter() - began
        return Cell(feature.id, self.backend, found.state, found.detail, round(seconds, 4))

    def _answer(self, feature: Feature) -> _Outcome:
        for need in feature.needs:
            if need in self.lacking:
                return _Outcome(state=NO, detail=self.lacking[need])
        found = _outcome(feature, self.backend, self.options)
        if found.state != OK:
            return found
        what = difference(found.value, feature.gives, feature.rtol)
        if what:
            return _Outcome(state=FAILED, detail=what)
        if self.backend == "interp":
            return found
        oracle = _outcome(feature, "interp", {})
        what = oracle.detail or difference(found.value, oracle.value, feature.rtol)
        return _Outcome(state=FAILED, detail=f"interp: {what}") if what else found


def _outcome(feature: Feature, backend: str, options: Mapping[str, Any]) -> _Outcome:
    """Run the feature on a backend; its prints and warnings are dropped, its program is reset."""
    quiet: dict[str, Any] = {
        "fast_math": False, "offline_cache": False, "log_level": "error", "enable_fallback": False,
    }  # fmt: skip
    try:
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            qd.init(arch=backend, **{**quiet, **feature.options, **options})
            value = feature.run()
            qd.sync()
        return _Outcome(plain(value))
    except (qd.QuadrantsUnsupportedError, qd.BackendUnavailableError) as error:
        return _Outcome(state=NO, detail=_first_line(error))
    except Exception as error:
        return _Outcome(state=FAILED, detail=f"{type(error).__name__}: {_first_line(error)}")
    finally:
        with contextlib.suppress(Exception):
            qd.reset()


def _first_line(error: Exception) -> str:
    text = str(getattr(error, "message", "") or error)
    return text.strip().split("\n")[0] if text.strip() else "no text"
