"""Executors over libraries whose jobs are no `concurrent.futures.Future`."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Final

__all__ = ["RayExecutor", "SlurmExecutor"]

_POLL_S: Final = 0.2


class SlurmExecutor:
    """Jobs of submitit: one thread asks for their states. made: a `submitit.AutoExecutor`."""

    def __init__(self, made: Any) -> None:
        self._made: Final = made
        self._lock: Final = threading.Lock()
        self._jobs: dict[Future[Any], Any] = {}
        self._closed = threading.Event()
        threading.Thread(target=self._watch, name="slurm-jobs", daemon=True).start()

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Future[Any]:
        """Queue a job."""
        future: Future[Any] = Future()
        job = self._made.submit(fn, *args)
        future.set_running_or_notify_cancel()
        with self._lock:
            self._jobs[future] = job
        return future

    def _watch(self) -> None:
        while not self._closed.wait(_POLL_S):
            with self._lock:
                now = list(self._jobs.items())
            for future, job in now:
                try:
                    if not job.done():
                        continue
                    result = job.result()
                except Exception as error:
                    future.set_exception(error)
                else:
                    future.set_result(result)
                    _removed(job)
                with self._lock:
                    del self._jobs[future]

    def close(self, wait: bool) -> None:
        """Cancel what is left: no one waits for it."""
        self._closed.set()
        with self._lock:
            left, self._jobs = list(self._jobs.values()), {}
        for job in left:
            with contextlib.suppress(Exception):
                job.cancel()


def _removed(job: Any) -> None:
    """Remove the files of a job that is done: a report has many, of a megabyte each. Those of a
    job that failed stay, for people."""
    paths = job.paths
    for path in (paths.submitted_pickle, paths.result_pickle, paths.stdout, paths.stderr):
        with contextlib.suppress(OSError):
            os.unlink(path)


class RayExecutor:
    """Tasks of Ray. address: empty for a cluster on this machine, which ends with it."""

    def __init__(self, ray: Any, address: str) -> None:
        self._ray: Final = ray
        ray.init(
            address=address or None, log_to_driver=False, configure_logging=False,
            include_dashboard=False if not address else None,
        )  # fmt: skip
        self._refs: list[Any] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Future[Any]:
        """Start a task as soon as a processor is free."""
        # Lost tasks are handed out again by `running`, which counts them.
        ref = self._ray.remote(max_retries=0)(fn).remote(*args)
        self._refs.append(ref)
        return ref.future()

    def close(self, wait: bool) -> None:
        """Give up what is left, and leave the cluster."""
        for ref in () if wait else self._refs:
            with contextlib.suppress(Exception):
                self._ray.cancel(ref, force=True)
        self._ray.shutdown()
