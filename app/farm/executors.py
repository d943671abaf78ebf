"""``--executor SPEC``: opens what runs jobs, or says what is missing.

processes                 processes of this machine (default)
dask:ADDRESS              a Dask scheduler, such as tcp://host:8786, or its scheduler file
mpi                       MPI ranks, of mpiexec python -m mpi4py.futures -m qd_studio.app.cli
slurm[:KEY=VALUE,...]     Slurm, by submitit; cluster=local needs no Slurm
ray[:ADDRESS]             a Ray cluster; without an address one on this machine
call:MODULE.FUNCTION      the `concurrent.futures.Executor` that this function returns
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import re
import signal
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from importlib import import_module
from typing import Any, Final, NamedTuple, Protocol

__all__ = ["CONNECT_S", "EXECUTORS", "WORKERS_S", "Farm", "FarmError", "Spec", "SpecError"]

EXECUTORS: Final = ("processes", "dask", "mpi", "slurm", "ray", "call")
CONNECT_S: Final = 10.0
"""Seconds until a scheduler that does not answer is an error."""
WORKERS_S: Final = 60.0
"""Seconds until a scheduler without workers is an error."""
_MANY: Final = 100_000


class SpecError(ValueError):
    """An ``--executor`` that means nothing; the message says what there is."""


class FarmError(RuntimeError):
    """Jobs cannot be run there; the message says why, and what to do."""


class _Submits(Protocol):
    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Future[Any]: ...


class Farm(NamedTuple):
    """An open executor. window: the most jobs that it is given at once. close: called once; with
    False, jobs that run are given up."""

    executor: _Submits
    window: int
    close: Callable[[bool], object]


class Spec(NamedTuple):
    """A parsed ``--executor``, and ``--jobs``, 0 for the default."""

    kind: str
    rest: str
    jobs: int

    @classmethod
    def parse(cls, text: str, jobs: int = 0) -> Spec:
        """SpecError if ``text`` is none, or lacks something."""
        kind, _, rest = text.partition(":")
        if kind not in EXECUTORS:
            known = "processes, dask:ADDRESS, mpi, slurm[:KEY=VALUE,...], ray[:ADDRESS]"
            raise SpecError(f"there is no executor {text!r}; there are: {known}, call:MODULE.NAME")
        if kind in ("processes", "mpi") and rest:
            raise SpecError(f"--executor {kind} has no {rest!r}; --jobs N sets the number")
        if kind == "dask" and not rest:
            more = "such as dask:tcp://host:8786, or dask:scheduler.json"
            raise SpecError(f"--executor dask needs the address of a scheduler, {more}")
        if kind == "call" and not re.fullmatch(r"[\w.]+\.\w+", rest):
            raise SpecError("--executor call needs a function: call:MODULE.FUNCTION")
        if kind == "slurm":
            settings_of(rest)
        return cls(kind, rest, jobs)

    @property
    def text(self) -> str:
        """As it is written."""
        return self.kind + (f":{self.rest}" if self.rest else "")

    def open(self) -> Farm:
        """FarmError if it cannot be used now."""
        return _OPENERS[self.kind](self)


def settings_of(text: str) -> dict[str, str | int]:
    """``partition=gpu,timeout_min=30`` as keyword arguments."""
    out: dict[str, str | int] = {}
    for part in filter(None, text.split(",")):
        name, equals, value = part.partition("=")
        if not (equals and name.isidentifier()):
            raise SpecError(f"--executor slurm: {part!r} is not KEY=VALUE, as in partition=gpu")
        out[name] = int(value) if value.isdecimal() else value
    return out


def _imported(name: str, package: str, spec: Spec, extra: str = "farm") -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != name.partition(".")[0]:
            raise FarmError(f"--executor {spec.text}: {error}") from error
        how = f"pip install 'qd-studio[{extra}]'"
        raise FarmError(f"--executor {spec.text} needs the package {package}: {how}") from None
    except (ImportError, RuntimeError, OSError) as error:
        fault = f"--executor {spec.text}: {package}: {_first_line(error)}"
        if package == "mpi4py":
            fault += "; for example: pip install mpich"
        raise FarmError(fault) from error


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


# ---- one function for each kind


def _processes(spec: Spec) -> Farm:
    jobs = spec.jobs or len(_affinity())
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(jobs, mp_context=context, initializer=_quiet)

    def close(wait: bool) -> None:
        # A process that runs a job would keep this one from ending.
        started: dict[int, Any] = getattr(pool, "_processes", None) or {}
        processes = list(started.values())
        pool.shutdown(wait=wait, cancel_futures=True)
        for process in () if wait else processes:
            process.terminate()

    return Farm(pool, jobs, close)


def _affinity() -> list[int]:
    from ..worker.locks import processors

    return processors()


def _quiet() -> None:
    """Keys such as ctrl+c are for the process that hands out jobs."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _dask(spec: Spec) -> Farm:
    distributed = _imported("distributed", "distributed", spec)
    file = spec.rest.endswith(".json")
    where: dict[str, str] = {"scheduler_file" if file else "address": spec.rest}
    if file and not os.path.isfile(spec.rest):
        raise FarmError(f"--executor {spec.text}: there is no file {spec.rest}")
    try:
        client = distributed.Client(**where, timeout=CONNECT_S, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        why = f"no scheduler answered within {CONNECT_S:.0f} s"
        why = f"{_first_line(error)}" if isinstance(error, ValueError) else why
        more = "start one with: dask scheduler"
        raise FarmError(f"--executor {spec.text}: {why}; {more}") from None
    try:
        client.wait_for_workers(1, timeout=WORKERS_S)
    except TimeoutError:
        _closed(client.close)
        why = f"the scheduler had no worker for {WORKERS_S:.0f} s"
        raise FarmError(f"--executor {spec.text}: {why}; start some with: dask worker") from None
    # pure: a job with the same data as an earlier one is another job.
    executor = client.get_executor(pure=False)
    return Farm(executor, spec.jobs or _MANY, _closing(client))


def _closing(client: Any) -> Callable[[bool], object]:
    def close(wait: bool) -> None:
        _closed(client.close)

    return close


def _ending(pool: Any) -> Callable[[bool], object]:
    def close(wait: bool) -> None:
        pool.shutdown(wait=wait, cancel_futures=True)

    return close


def _closed(close: Callable[[], object]) -> None:
    """The jobs are done: a scheduler that is gone by now is no failure."""
    with contextlib.suppress(Exception):
        close()


def _mpi(spec: Spec) -> Farm:
    futures = _imported("mpi4py.futures", "mpi4py", spec)
    _imported("mpi4py.MPI", "mpi4py", spec)
    pool: Any = futures.MPIPoolExecutor(max_workers=spec.jobs or None)
    window = spec.jobs or max(1, pool.num_workers)
    return Farm(pool, window, _ending(pool))


def _slurm(spec: Spec) -> Farm:
    from .adapters import SlurmExecutor

    submitit = _imported("submitit", "submitit", spec)
    settings = settings_of(spec.rest)
    folder = str(settings.pop("folder", "")) or _shared_folder()
    cluster = settings.pop("cluster", None)
    try:
        made = submitit.AutoExecutor(folder=folder, cluster=cluster)
        made.update_parameters(**{"name": "qd-studio", "timeout_min": 60, **settings})
    except Exception as error:
        more = "cluster=local needs no Slurm"
        raise FarmError(f"--executor {spec.text}: {_first_line(error)}; {more}") from None
    if cluster is None and made.cluster != "slurm":
        why = "there is no Slurm here (no command srun)"
        raise FarmError(f"--executor {spec.text}: {why}; try slurm:cluster=local")
    executor = SlurmExecutor(made)
    return Farm(executor, spec.jobs or (len(_affinity()) if cluster else _MANY), executor.close)


def _shared_folder() -> str:
    """The folder of the jobs' files: in the home, which machines of a cluster share."""
    from platformdirs import user_cache_path

    return str(user_cache_path("qd-studio", appauthor=False) / "slurm")


def _ray(spec: Spec) -> Farm:
    from .adapters import RayExecutor

    ray = _imported("ray", "ray", spec, "farm-ray")
    try:
        executor = RayExecutor(ray, spec.rest)
    except Exception as error:
        raise FarmError(f"--executor {spec.text}: {_first_line(error)}") from None
    return Farm(executor, spec.jobs or _MANY, executor.close)


def _call(spec: Spec) -> Farm:
    module, _, name = spec.rest.rpartition(".")
    try:
        made: Any = getattr(import_module(module), name)()
    except Exception as error:
        raise FarmError(f"--executor {spec.text}: {type(error).__name__}: {error}") from error
    if not isinstance(made, Executor):
        what = type(made).__name__
        raise FarmError(
            f"--executor {spec.text}: it returns {what}, no concurrent.futures.Executor"
        )
    window = spec.jobs or getattr(made, "_max_workers", None) or _MANY
    return Farm(made, window, _ending(made))


_OPENERS: Final[dict[str, Callable[[Spec], Farm]]] = {
    "processes": _processes, "dask": _dask, "mpi": _mpi, "slurm": _slurm, "ray": _ray,
    "call": _call,
}  # fmt: skip
