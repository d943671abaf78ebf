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

`plugin` runs the tests of all other rooms with CUDA, on the simulator or on a device.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

__all__ = ["binding", "simulated"]


def binding() -> Any:
    """The module to call in place of ``cuda.bindings.driver``."""
    from . import simulated_driver

    return simulated_driver


@contextmanager
def simulated(**configuration: Any) -> Generator[Any]:
    """Within this the engine finds a simulated device; its `state.State`.

    The device of the last time goes on if it is of the same kind and works, as a real one would.
    """
    from qd_studio.engine.backends.cuda import context, driver, libdevice, nvptx

    from .code import with_ir
    from .state import Configuration, state

    make_ptx, link, identity = nvptx.make_ptx, libdevice.link, libdevice.identity

    def carrying(llvm_ir: str, *args: Any, **options: Any) -> str:
        return with_ir(make_ptx(llvm_ir, *args, **options), llvm_ir)

    if not state.begin(Configuration(**configuration)):
        context._known.clear()
    before = driver.install(binding())
    nvptx.make_ptx = carrying
    # Machines without a device may lack it, and the host has mathematics of its own.
    libdevice.link, libdevice.identity = (lambda *_: None), (lambda: "none")
    try:
        yield state
    finally:
        nvptx.make_ptx, libdevice.link, libdevice.identity = make_ptx, link, identity
        driver.install(before)
