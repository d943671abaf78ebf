"""The backends that tests have variants on.

Within `VariantBackend.within` the backend is available; programs end with it. `plugin` sets the
OpenCL device and the mapping of loops in the environment.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

from tests.cuda_sim import cuda, on_device

from .reasons import NOT_ON_CUDA, NOT_ON_OPENCL

__all__ = ["BACKENDS", "CUDA", "MAPPINGS", "OPENCL", "VariantBackend", "mapping_of", "opencl"]

MAPPINGS = ("chunks", "lanes")
_SLOW_AS_LANES = "tests/kernels/test_algorithms.py::test_parallel_sort["
"""Tests whose code PoCL compiles for a minute if it has one work-item per iteration."""


@dataclass(frozen=True, eq=False)
class VariantBackend:
    """One backend.

    Attributes:
        share: By default one in this many variants runs.
        reasons: Why tests have no variant, by test, file or folder.
        possible: True if programs can run there.
        where: What they run on, for the summary, from the options of pytest.
    """

    name: str
    title: str
    share: int
    reasons: dict[str, str]
    possible: Callable[[], bool]
    within: Callable[[], AbstractContextManager[Any]]
    where: Callable[[Callable[[str], Any]], str]


def _has_cuda() -> bool:
    """Whether the bindings are there."""
    try:
        return importlib.util.find_spec("cuda.bindings.driver") is not None
    except ModuleNotFoundError:
        return False


def _has_opencl() -> bool:
    from qd_studio.engine.backends import base

    return "opencl" in base.BUILT and base.availability("opencl")[0]


@contextmanager
def opencl() -> Generator[None]:
    """Within this, programs may use OpenCL; they end with it."""
    from qd_studio import engine as qd

    try:
        yield
    finally:
        qd.reset()


def mapping_of(choice: str, number: int, nodeid: str) -> str:
    """How loops are mapped in the variant with this number; empty: as the device has it."""
    if choice == "mixed":
        return MAPPINGS[number // OPENCL.share % 2 and not nodeid.startswith(_SLOW_AS_LANES)]
    return "" if choice == "auto" else choice


def _cuda_where(option: Callable[[str], Any]) -> str:
    return "the device" if on_device() else "the simulator"


def _opencl_where(option: Callable[[str], Any]) -> str:
    how = "SPIR-V" if option("--opencl-il") else f"mapping {option('--opencl-mapping')}"
    return f"{option('--opencl-device') or 'PoCL'}, {how}"


CUDA = VariantBackend("cuda", "CUDA", 8, NOT_ON_CUDA, _has_cuda, cuda, _cuda_where)
OPENCL = VariantBackend("opencl", "OpenCL", 16, NOT_ON_OPENCL, _has_opencl, opencl, _opencl_where)
BACKENDS = (CUDA, OPENCL)
