"""The progress of long work in words, with an estimate of the time that is left.

An estimate is shown only where it has a basis: what the same steps took before, or what has been
done of the whole. It never counts up: one that turns out too short is no longer shown, and the time
so far takes its place.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

__all__ = ["Countdown", "Rate", "State", "fitting", "forms", "left_text", "time_text"]

_SLACK: Final = 1.15
_SLACK_S: Final = 1.0
_PULL: Final = 0.3
_LONG_S: Final = 2.0


class State(NamedTuple):
    """text: what is done now. whole: how far all of it is, such as "kernel 2 of 5". part: how far
    the present step is, such as "pass 34 of 80". left_s: seconds left, None if that is not known.
    so_far_s: seconds of the present step."""

    text: str
    whole: str = ""
    part: str = ""
    left_s: float | None = None
    so_far_s: float = 0.0


class Countdown:
    """Makes a steady clock of estimates that come again and again."""

    def __init__(self) -> None:
        self._end: float | None = None

    def shown(self, now: float, left_s: float | None) -> float | None:
        """The seconds to show for an estimate made ``now``; None for none."""
        if left_s is None:
            return None
        end = now + left_s
        if self._end is None:
            self._end = end
        elif end < self._end:
            # In parts: one step that was short by chance says little about the others.
            self._end += _PULL * (end - self._end)
        rest = self._end - now
        if rest <= 0.0 or left_s > rest * _SLACK + _SLACK_S:
            return None
        return rest


class Rate:
    """Estimates the rest of work in equal parts from those that are done."""

    def __init__(self, began: float) -> None:
        self._began: Final = began
        self._last = began
        self._countdown: Final = Countdown()
        self._done = 0

    def left(self, now: float, done: int, total: int) -> float | None:
        """Seconds left when ``done`` of ``total`` parts are; None before the first is done."""
        if done != self._done:
            self._done, self._last = done, now
        if not 0 < done <= total:
            return None
        each = (self._last - self._began) / done
        rest = max(0.0, each * (total - done) - (now - self._last))
        return self._countdown.shown(now, rest)


def forms(state: State) -> Sequence[str]:
    """A state as text, the longest form first; each keeps the time."""
    time = left_text(state.left_s)
    if not time and state.so_far_s >= _LONG_S:
        time = f"{time_text(state.so_far_s)} so far"
    parts = (
        (state.text, state.part, state.whole, time),
        (state.text, state.whole, time),
        (state.text, time),
        (state.part, state.whole, time),
        (state.whole, time),
        (time,),
    )
    texts = [", ".join(part for part in several if part) for several in parts]
    found = [text for text in dict.fromkeys(texts) if text]
    return sorted(found, key=len, reverse=True) or [""]


def fitting(several: Sequence[str], width: int) -> str:
    """The first of several texts that fits into ``width`` columns; the last one cut, if none."""
    found = next((text for text in several if len(text) <= width), None)
    return found if found is not None else (several[-1] if several else "")[: max(0, width)]


def left_text(seconds: float | None) -> str:
    """``about 12 s left``; empty if that is not known. Rounded up, so that it counts down."""
    return "" if seconds is None else f"about {time_text(_rounded(seconds))} left"


def _rounded(seconds: float) -> float:
    step = 1 if seconds <= 10 else 5 if seconds <= 60 else 10 if seconds <= 120 else 60
    return max(1, math.ceil(seconds / step) * step)


def time_text(seconds: float) -> str:
    """``12 s``, ``1 min 20 s``, ``5 min``."""
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes} min {rest} s" if rest else f"{minutes} min"
