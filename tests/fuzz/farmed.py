"""Campaigns on several processes, or on the workers of a cluster."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from qd_studio.app.farm.executors import FarmError, Spec, SpecError
from qd_studio.app.farm.running import JobRun

__all__ = ["farmed"]


def farmed(
    part: Callable[..., tuple[Any, list[str]]], parts: Sequence[tuple[Any, ...]],
    args: argparse.Namespace, tally: Any, counted: Callable[[], str],
) -> list[str]:  # fmt: skip
    """Call `part` with each of ``parts``; the texts of failures, in their order.

    Counts are merged into ``tally``. A part that was lost again and again is a failure.
    """
    found: dict[int, list[str]] = {}

    def failures(index: int, texts: list[str]) -> None:
        found[index] = texts
        for text in texts:
            print(text, flush=True)
        print(f"{counted()}, {sum(map(len, found.values()))} failures", flush=True)

    def done(index: int, result: tuple[Any, list[str]]) -> None:
        tally.merge(result[0])
        failures(index, result[1])

    def lost(index: int, reason: str, given_up: bool) -> None:
        begin, end = parts[index][:2]
        name = f"seeds {begin} to {end - 1}"
        if given_up:
            failures(index, [f"{name}: no result: {reason}"])
        else:
            print(f"{name}: lost with their worker ({reason}); they run again", flush=True)

    name = getattr(sys.modules["__main__"].__spec__, "name", "")
    if part.__module__ == "__main__" and name:  # other machines know it by its name alone
        part = getattr(import_module(name), part.__name__)
    try:
        jobs = 0 if args.executor and args.jobs == 1 else args.jobs
        spec = Spec.parse(args.executor or "processes", jobs)
        JobRun(part, parts, spec.open, done, lost).run()
    except (SpecError, FarmError) as error:
        sys.exit(str(error))
    return [text for index in sorted(found) for text in found[index]]
