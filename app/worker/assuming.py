"""A worker client that also tries assumptions: what a kernel would gain if one held.

    client.what_if([Assume(text="fast_math", kernel="k.py:step", backend="cpu")])

Such a request waits until the job in work is done, and looks again at its kernel only. The results
are in the kernel's record (`KernelRecord.what_ifs`) until its next look.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from .client import WorkerClient
from .protocol import Assume, JobDone

__all__ = ["AssumingClient"]


class AssumingClient(WorkerClient):
    """See the module docstring."""

    def __init__(self, *args: Any, assume: Iterable[Assume] = (), **settings: Any) -> None:
        """assume: assumptions to try with every look. The others are those of `WorkerClient`."""
        self._every = tuple(assume)
        self._now: tuple[Assume, ...] = ()
        self._waiting: list[Assume] = []
        super().__init__(*args, **settings)

    def what_if(self, assumed: Iterable[Assume]) -> None:
        """Try assumptions on the kernels that they name."""
        self._ask(lambda several=tuple(assumed): self._add(several))

    # ---- the thread

    def _add(self, several: tuple[Assume, ...]) -> None:
        self._waiting += several
        self._start_waiting()

    def _start_waiting(self) -> None:
        """Look at the kernel of the first assumption that waits, if there is no other work."""
        while self._waiting and self._job is None and not self._wanted:
            kernel = self._waiting[0].kernel
            chosen = tuple(one for one in self._waiting if one.kernel == kernel)
            self._waiting = [one for one in self._waiting if one.kernel != kernel]
            ids_in = self._session.ids_in
            paths = {s.path for s in self._session.states if kernel in ids_in({s.path})}
            if not paths:
                continue  # the kernel is no longer there
            self._final.discard(kernel)
            self._quarantined, self._job_restarts, self._looks_before = (), 0, self._looks
            self._now = chosen
            self._send_job(paths, sorted(self._final.intersection(ids_in(paths))), set())

    def _start_job(self) -> None:
        if self._now:  # its job is given up for a newer one, and tried again after that
            self._waiting = [*self._now, *self._waiting]
            self._now = ()
        super()._start_job()

    def _send_job(self, files: set[str], skip: list[str], once_more: set[str]) -> None:
        before = self.template
        self.template = replace(before, assume=self._now or self._every)
        try:
            super()._send_job(files, skip, once_more)
        finally:
            self.template = before

    def _cancel(self) -> None:
        self._waiting.clear()
        self._now = ()
        super()._cancel()

    def _done(self, message: JobDone) -> None:
        self._now = ()
        super()._done(message)
        self._start_waiting()
