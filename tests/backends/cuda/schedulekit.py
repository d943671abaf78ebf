"""What tests of schedules share: a CUDA program, and device arrays that begin anywhere."""

import contextlib

import numpy as np
from qd_studio import engine as qd

from tests.cuda_sim import on_device, simulated

DTYPES = {
    np.dtype(name): getattr(qd, short)
    for name, short in (
        ("int8", "i8"), ("int16", "i16"), ("int32", "i32"), ("int64", "i64"),
        ("uint8", "u8"), ("uint16", "u16"), ("uint32", "u32"), ("uint64", "u64"),
        ("float16", "f16"), ("float32", "f32"), ("float64", "f64"),
    )
}  # fmt: skip


@contextlib.contextmanager
def cuda(**options):
    """A program on the device, or on the simulated one."""
    with contextlib.ExitStack() as stack:
        if not on_device():
            stack.enter_context(simulated())
        qd.init(arch=qd.cuda, offline_cache=False, enable_fallback=False, **options)
        try:
            yield
        finally:
            qd.reset()


class Placed:
    """An array of the device that begins ``off`` elements behind a multiple of 256 bytes."""

    def __init__(self, values, off=0):
        self.shape, self.off = values.shape, off
        flat = np.zeros(values.size + off + 1, values.dtype)
        flat[off : off + values.size] = values.ravel()
        self.held = qd.ndarray(DTYPES[values.dtype], flat.shape)
        self.held.from_numpy(flat)

    @property
    def __cuda_array_interface__(self):
        of = self.held.__cuda_array_interface__
        size = np.dtype(of["typestr"]).itemsize
        address, _ = of["data"]
        data = (address + self.off * size, False)
        return {"shape": self.shape, "typestr": of["typestr"], "data": data, "version": 3}

    def values(self):
        """What is there now; nothing before or behind it may have changed."""
        flat = self.held.to_numpy()
        size = int(np.prod(self.shape))
        assert not flat[: self.off].any()
        assert not flat[self.off + size :].any()
        return flat[self.off : self.off + size].reshape(self.shape)


def ptx_of(kernel, form="ptx"):
    """The PTX of a kernel's last compile, or another of its texts."""
    variant = list(kernel.launchers.variants.values())[-1]
    return variant.compiled.artifact.text(form)
