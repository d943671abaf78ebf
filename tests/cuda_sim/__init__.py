"""A CUDA driver without a device, for tests of the CUDA backend on machines that have none.

It has the functions of ``cuda.bindings.driver`` that the engine uses (enums and structs are the
real ones) and runs kernels on the host, from the LLVM IR that their PTX was made of::

    make_ptx        writes the IR behind the PTX, as a comment        code.with_ir
    load a module   IR for the device -> IR for the host -> code      translate, intrinsics, code
    launch          blocks one after the other; threads of a block in a loop, or as threads that
                    meet at barriers and in warp operations           warp
    streams         work waits until somebody waits for it            work
    memory          garbage where nothing was written or was freed    heap
    graphs          nodes in any order that their dependencies allow  api_graphs

It is meant to be harder on programs than a device: what is not waited for has not happened, fresh
memory is never zero, freed memory is spoilt, threads see each other only where they meet.

In tests::

    with cuda_sim.simulated() as sim:                  or capability=(7, 5), memory=1 << 24, ...
        qd.init(arch=qd.cuda)
        sim.fail("cuMemAllocFromPoolAsync", Result.CUDA_ERROR_OUT_OF_MEMORY)
        sim.die(Result.CUDA_ERROR_ILLEGAL_ADDRESS, "k_kernel_0_range_for")

    with cuda_sim.cuda():                              on a device, if there is one

`tests.backend_variants` runs all other tests with CUDA, on the simulator or on a device.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any

__all__ = ["binding", "cuda", "on_device", "simulated"]


@cache
def on_device() -> bool:
    """Whether this machine has a CUDA device."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
        count = ctypes.c_int(0)
        if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)):
            return False
    except (OSError, AttributeError):
        return False
    return count.value > 0


def binding() -> Any:
    """The module to call in place of ``cuda.bindings.driver``."""
    from . import simulated_driver

    return simulated_driver


@contextmanager
def simulated(**configuration: Any) -> Generator[Any]:
    """Within this the engine finds a simulated device; its `state.State`.

    The device of the last time goes on if it is of the same kind and works, as a real one would.
    """
    from qd_studio.engine.backends.cuda import (
        backend,
        conditional,
        context,
        driver,
        libdevice,
        nvptx,
    )

    from . import job
    from .code import with_ir
    from .state import Configuration, state

    CudaBackend = backend.CudaBackend
    condition, whose = conditional.link, CudaBackend.identity
    make_ptx, link, identity = nvptx.make_ptx, libdevice.link, libdevice.identity
    first_ptx, full_job = nvptx.first_ptx, nvptx.FullJob

    def carrying(llvm_ir: str, *args: Any, **options: Any) -> str:
        return with_ir(make_ptx(llvm_ir, *args, **options), llvm_ir)

    def carrying_first(llvm_ir: str, *args: Any) -> str:
        return with_ir(first_ptx(llvm_ir, *args), llvm_ir)

    if not state.begin(Configuration(**configuration)):
        context._known.clear()
    before = driver.install(binding())
    if on_device():  # neither can run the code of the other, and both find it in this process
        CudaBackend.identity = lambda self: f"{whose(self)}, simulated"
    nvptx.make_ptx, nvptx.first_ptx = carrying, carrying_first
    nvptx.FullJob = job.FullJob
    # Machines without a device may lack it, and the host has mathematics of its own.
    libdevice.link, libdevice.identity = (lambda *_: None), (lambda: "none")
    conditional.link = lambda ptx, arch: ptx.encode()
    try:
        yield state
    finally:
        nvptx.make_ptx, libdevice.link, libdevice.identity = make_ptx, link, identity
        nvptx.first_ptx, nvptx.FullJob = first_ptx, full_job
        conditional.link = condition
        driver.install(before)
        CudaBackend.identity = whose


@contextmanager
def cuda(blocking: bool = True) -> Generator[Any]:
    """Within this there is a CUDA device; its `state.State`, None where it is a real one.

    blocking: every launch waits, as tests written for the CPU expect of errors that also launches
    without checks can have (a full adstack). Programs end with it.
    """
    from qd_studio import engine as qd

    before = os.environ.pop("CUDA_LAUNCH_BLOCKING", None)
    with ExitStack() as stack:
        sim = None if on_device() else stack.enter_context(simulated())
        if blocking:
            os.environ["CUDA_LAUNCH_BLOCKING"] = "1"
        try:
            yield sim
        finally:
            qd.reset()
            os.environ.pop("CUDA_LAUNCH_BLOCKING", None)
            if before is not None:
                os.environ["CUDA_LAUNCH_BLOCKING"] = before
