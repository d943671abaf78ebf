"""Kernels compiled to OpenCL C and launched on the embedded device, without the backend's runtime.

Small and slow on purpose: every launch makes new buffers and waits.
"""

import struct

import numpy as np
from qd_studio.engine.backends.kernarg import abi, grids, packing
from qd_studio.engine.backends.opencl import capabilities, facts, hardware
from qd_studio.engine.backends.opencl.arguments import settle
from qd_studio.engine.backends.opencl.source.kernel import lower_opencl
from qd_studio.engine.config import CompileConfig

CPU = capabilities.GENERIC_CPU._replace(exact_division=False)
BASE = 1 << 20
STEP = 1 << 40


def config(**options):
    return CompileConfig().replace(**options)


class Cl:
    """The device, once."""

    context = queue = None

    @classmethod
    def get(cls):
        if cls.context is None:
            import pyopencl as cl

            device = hardware.chosen().handle
            cls.context = cl.Context([device])
            cls.queue = cl.CommandQueue(cls.context)
        return cls


def lower(func, caps=CPU, **options):
    return lower_opencl(func, config(**options), caps)


class Loaded:
    """A built kernel."""

    def __init__(self, text, groups=2):
        import pyopencl as cl

        self.cl, self.text, self.groups = cl, text, groups
        self.meta = text.meta
        here = Cl.get()
        self.program = cl.Program(here.context, text.text)
        self.program.build(text.options.split())

    def launch(self, values, seed=0, stacks=None, print_bytes=1 << 16):
        """Run every task in order; results, and prints as (site, raw values)."""
        cl, meta, layout, here = self.cl, self.meta, self.text.layout, Cl.get()
        flags = cl.mem_flags
        buffers, addresses = {}, []
        for number, (param, value) in enumerate(zip(meta.params, values, strict=True)):
            if param.kind == "scalar":
                addresses.append(0)
                continue
            data = np.ascontiguousarray(value)
            raw = np.zeros(max(data.nbytes, 1) + 64, np.uint8)
            raw[: data.nbytes] = data.reshape(-1).view(np.uint8)
            buffer = cl.Buffer(here.context, flags.READ_WRITE | flags.COPY_HOST_PTR, hostbuf=raw)
            address = BASE + STEP * (number + 1)
            buffers[address // STEP] = buffer
            addresses.append(address)
        kernarg = bytearray(layout.size)
        out, fields = packing.params_of(meta, values, addresses, seed)
        packing.packer(meta).pack_into(kernarg, abi.SEED if meta.seeded else abi.PARAMS, *out)
        if fields:
            struct.pack_into(f"<{len(fields)}Q", kernarg, layout.fields, *fields)
        if stacks is not None:
            buffers |= stacks(kernarg)
        device_kernarg = cl.Buffer(
            here.context, flags.READ_WRITE | flags.COPY_HOST_PTR, hostbuf=bytearray(layout.size)
        )
        head = bytearray(print_bytes + 16)
        struct.pack_into("<QQ", head, 0, 0, print_bytes)
        prints = cl.Buffer(here.context, flags.READ_WRITE | flags.COPY_HOST_PTR, hostbuf=head)
        for task in self.text.tasks:
            self.task(task, kernarg, device_kernarg, prints, buffers)
        for (param, value), address in zip(
            zip(meta.params, values, strict=True), addresses, strict=True
        ):
            if param.kind != "scalar" and value.size:
                raw = np.zeros(value.nbytes, np.uint8)
                cl.enqueue_copy(here.queue, raw, buffers[address // STEP])
                value[...] = raw.view(value.dtype).reshape(value.shape)
        back = bytearray(layout.size)
        cl.enqueue_copy(here.queue, back, device_kernarg)
        cl.enqueue_copy(here.queue, head, prints)
        self.kernarg, self.printed = back, head
        return packing.unpacker(meta.results).unpack_from(back, layout.results)

    def task(self, task, kernarg, device_kernarg, prints, buffers):
        cl, here = self.cl, Cl.get()
        kernel = cl.Kernel(self.program, task.symbol)
        args = dict(enumerate([device_kernarg] + ([prints] if task.prints else [])))
        settle(kernel, task, device_kernarg)
        at, places = len(args), iter(task.positions)
        for kind, offset in task.args:
            at = next(places, at)
            if kind == facts.MEMORY:
                (address,) = struct.unpack_from("<Q", kernarg, offset)
                args[at] = buffers[address // STEP]
                args[at + 1] = struct.pack("<Q", address % STEP - BASE)
                at += 2
            else:
                args[at] = struct.pack("<" + kind, *struct.unpack_from("<" + kind, kernarg, offset))
                at += 1
        for k, arg in args.items():
            kernel.set_arg(k, arg)
        blocks = 1
        if task.grid != grids.ONE:
            blocks = self.groups
            if task.blocks:
                read = [struct.unpack_from("<i", kernarg, at)[0] for at in task.reads]
                blocks = grids.blocks_of(task, *read)
        size = task.block_dim
        cl.enqueue_nd_range_kernel(here.queue, kernel, (blocks * size,), (size,)).wait()


def execute(func, values, seed=0, **options):
    """Compile ``func`` and launch it once; its results. As `irkit.execute` on the CPU."""
    options.pop("debug", None)
    return Loaded(lower(func, **options)).launch(values, seed)
