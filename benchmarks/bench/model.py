"""What a benchmark hands back: a table, the targets it decides, and the raw numbers."""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Target:
    """A number the project wants to stay under."""

    claim: str
    limit: float
    measured: float | None
    unit: str = ""

    @property
    def reached(self) -> bool:
        return self.measured is not None and self.measured <= self.limit

    def verdict(self) -> str:
        if self.measured is None:
            return "not measured"
        value, limit = (f"{number:.3g}{self.unit}" for number in (self.measured, self.limit))
        if self.reached:
            return f"reached: {value}, limit {limit}"
        over = 100 * (self.measured / self.limit - 1)
        return f"missed by {over:.0f} %: {value}, limit {limit}"


@dataclass
class Section:
    """One benchmark's outcome. A cell of a row is text, or a number that the table formats."""

    title: str
    columns: Sequence[str]
    rows: list[Sequence[str | float | None]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    targets: list[Target] = field(default_factory=list)
    raw: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Options:
    """What the command line settled. An interpreter that is None leaves its columns empty."""

    ours: str
    reference: str | None
    numba: str | None
    rounds: int
    processes: int

    def engines(self) -> dict[str, str]:
        """The two kernel engines at hand, by name."""
        return {"ours": self.ours} | ({"reference": self.reference} if self.reference else {})


def ratio(numerator: float | None, denominator: float | None) -> float | None:
    """The quotient of two measurements, where both exist."""
    return numerator / denominator if numerator and denominator else None


def paired_ratio(mine: Sequence[float], others: Sequence[float]) -> float | None:
    """Median over rounds of the quotient within a round: drift of the machine cancels."""
    quotients = [a / b for a, b in zip(mine, others, strict=False) if b]
    return statistics.median(quotients) if quotients else None


def geometric_mean(values: Iterable[float]) -> float | None:
    logarithms = [math.log(value) for value in values]
    return math.exp(statistics.fmean(logarithms)) if logarithms else None
