"""Hands out jobs, and again those that were lost with their worker.

A job is lost if its future fails: `jobs.work` itself raises nothing. It is tried `TRIES` times. A
pool of processes that lost one of them fails all jobs in flight and is opened again; a job that was
in flight twice then runs alone, so that the one at fault is known.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Future, wait
from typing import Any, Final

from .executors import Farm, FarmError

__all__ = ["TRIES", "JobRun"]

TRIES: Final = 3
"""The number of times that a job is handed out before it is given up."""
_REOPENED: Final = 3
_POLL_S: Final = 0.5


class JobRun:
    """Calls ``fn`` with each of ``tasks`` and passes the results to ``done``, as they come.

    opened: opens the farm. lost: called with (index, reason, True if it was given up). waiting:
    called with (finished, in flight) from time to time.
    """

    def __init__(
        self,
        fn: Callable[..., Any],
        tasks: Sequence[tuple[Any, ...]],
        opened: Callable[[], Farm],
        done: Callable[[int, Any], object],
        lost: Callable[[int, str, bool], object],
        waiting: Callable[[int, int], object] = lambda finished, running: None,
    ) -> None:
        self._fn: Final = fn
        self._tasks: Final = tasks
        self._opened: Final = opened
        self._done: Final = done
        self._lost: Final = lost
        self._waiting: Final = waiting
        self._queue = deque(range(len(tasks)))
        self._tries = [0] * len(tasks)
        self._suspects: set[int] = set()
        self._flight: dict[Future[Any], int] = {}
        self._finished = 0
        self._refused = 0
        self._farm: Farm | None = None

    def run(self) -> None:
        """Run all to their end. FarmError if no farm can be opened."""
        complete = False
        try:
            while self._queue or self._flight:
                self._submit()
                self._waiting(self._finished, len(self._flight))
                ready, _ = wait(self._flight, timeout=_POLL_S, return_when=FIRST_COMPLETED)
                if ready:
                    self._take(ready)
            complete = True
        finally:
            self._close(complete)

    def _close(self, complete: bool) -> None:
        farm, self._farm = self._farm, None
        if farm is not None:
            farm.close(complete)

    def _submit(self) -> None:
        """Fill the window; a suspect has it alone."""
        if self._farm is None:
            self._farm = self._opened()
        while self._queue and len(self._flight) < self._farm.window:
            if self._flight and not self._suspects.isdisjoint((self._queue[0], *self._running())):
                return
            index = self._queue[0]
            try:
                future = self._farm.executor.submit(self._fn, *self._tasks[index])
            except Exception as error:
                if not self._flight:
                    self._again(error)
                return
            self._queue.popleft()
            self._tries[index] += 1
            self._flight[future] = index

    def _running(self) -> list[int]:
        return list(self._flight.values())

    def _again(self, error: Exception) -> None:
        """Open the farm again: it accepts no jobs any more."""
        self._refused += 1
        self._close(False)
        if self._refused > _REOPENED:
            raise FarmError(f"jobs are not accepted: {_reason(error)}") from error

    def _take(self, ready: set[Future[Any]]) -> None:
        broken = False
        for future in ready:
            index = self._flight.pop(future)
            error: BaseException | None
            try:
                error = future.exception()
            except CancelledError as cancelled:
                error = cancelled
            if error is not None:
                broken |= self._fail(index, error)
                continue
            self._finished += 1
            self._refused = 0
            self._suspects.discard(index)
            self._done(index, future.result())
        if broken:
            # The others in flight fail for the same reason, each of them in its turn.
            while self._flight:
                self._take(set(wait(self._flight).done))
            self._close(False)

    def _fail(self, index: int, error: BaseException) -> bool:
        """Note a lost job; return True if the whole executor is broken."""
        broken = isinstance(error, BrokenExecutor)
        given_up = self._tries[index] >= TRIES
        if given_up:
            self._finished += 1
            self._suspects.discard(index)
        else:
            self._queue.appendleft(index)
            if broken and self._tries[index] > 1:
                self._suspects.add(index)
        self._lost(index, _reason(error), given_up)
        return broken


def _reason(error: BaseException) -> str:
    while error.__cause__ is not None:  # of wrappers, such as of what cannot be loaded
        error = error.__cause__
    text = (str(error).strip().splitlines() or [""])[0]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
