"""A device whose memory the host does not see, without a device.

Its memory is that of this process, so that kernels of the CPU and of the interpreter run on it; but
it does not show its bytes: ``host`` is None, and all goes through `read`, `write`, `fill`, `copy`.
Within `installed` programs on the CPU or the interpreter have such a device::

    with opaque.installed():
        qd.init(arch=qd.cpu)
"""

import ctypes
from contextlib import contextmanager

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine.backends import base
from qd_studio.engine.backends.array_memory import DeviceArray, aligned_zeros

ARCHES = ("cpu", "interp")
MEMORIES = ("host", "device")


def host_only(fixture):
    """For tests about views of memory: ``fixture`` is called with "host" alone."""
    return _only(fixture, ["host"])


def near_only(fixture):
    """For tests about views of memory, with a fixture that calls `program`."""
    return _only(fixture, ARCHES)


def _only(fixture, values):
    given = pytest.mark.parametrize(fixture, values, indirect=True)
    return lambda test: pytest.mark.not_on_device("it is about views of memory")(given(test))


class OpaqueMemory:
    """See `backends.array_memory.Memory`. A freed one is of no use to anybody."""

    host = None

    def __init__(self, device, nbytes):
        self._device, self._bytes = device, aligned_zeros(nbytes)
        self.address, self.nbytes = self._bytes.ctypes.data, nbytes
        device.used += nbytes

    def _part(self, offset, nbytes):
        assert self.address, "the memory was freed"
        assert offset >= 0 and nbytes >= 0 and offset + nbytes <= self.nbytes
        return self._bytes[offset : offset + nbytes]

    def _count(self, what, nbytes):
        self._device.copies.append((what, nbytes))

    def read(self, offset, out):
        assert out.flags.c_contiguous
        self._count("read", out.nbytes)
        out.reshape(-1).view(np.uint8)[...] = self._part(offset, out.nbytes)

    def write(self, offset, data):
        assert data.flags.c_contiguous
        self._count("write", data.nbytes)
        self._part(offset, data.nbytes)[...] = data.reshape(-1).view(np.uint8)

    def fill(self, offset, pattern, count):
        assert len(pattern) in (1, 2, 4, 8)
        self._count("fill", len(pattern) * count)
        part = self._part(offset, len(pattern) * count).reshape(count, len(pattern))
        part[...] = np.frombuffer(pattern, np.uint8)

    def copy(self, offset, source, begin, nbytes):
        assert source.host is None and source.address
        self._count("copy", nbytes)
        there = (ctypes.c_uint8 * nbytes).from_address(source.address + begin)
        assert begin + nbytes <= source.nbytes
        self._part(offset, nbytes)[...] = np.ctypeslib.as_array(there)

    def free(self):
        if self.address:
            self._device.used -= self.nbytes
        self.address, self._bytes = 0, None

    def __del__(self):
        self.free()


class OpaqueDevice:
    """See `backends.base.Device`. copies: (what, bytes) of each that was made. used: bytes."""

    name, host_arrays, dlpack = "opaque", False, (2, 0)
    max_threads, stack_budget = 64, 1 << 30
    limit = 1 << 30

    def __init__(self):
        self.copies, self.used, self.syncs = [], 0, 0

    def allocate(self, nbytes):
        if nbytes > self.limit - self.used:
            raise MemoryError(f"{self.limit - self.used} bytes are free on the device opaque")
        return OpaqueMemory(self, nbytes)

    def sync(self):
        self.syncs += 1

    def stop(self):
        pass

    def end(self):
        pass


def on_host(value):
    """What a kernel of the host takes in place of an array on the device."""
    if not isinstance(value, DeviceArray):
        return value
    assert value.address and value.memory is not None
    if not value.nbytes:
        return np.empty(value.shape, value.dtype)
    there = (ctypes.c_uint8 * value.nbytes).from_address(value.address)
    found = np.ctypeslib.as_array(there).view(value.dtype).reshape(value.shape)
    found.flags.writeable = value.writeable
    return found


class _Over:
    """Stands for ``inner`` in all that it does not do itself."""

    def __init__(self, inner):
        self.inner = inner

    def __getattr__(self, name):
        return getattr(self.inner, name)


class _Executable(_Over):
    """Takes arrays of the device."""

    def launch(self, values, *args, **options):
        return self.inner.launch([on_host(v) for v in values], *args, **options)


class _Backend(_Over):
    def open(self, config):
        return OpaqueDevice()

    def load(self, artifact, *cache):
        return _Executable(self.inner.load(artifact, *cache))


@contextmanager
def installed(memory="device"):
    """Within this, programs have a device; not with ``memory="host"``."""
    if memory == "host":
        yield
        return
    before = {arch: base.find(arch) for arch in ARCHES}
    base._found.update({arch: _Backend(backend) for arch, backend in before.items()})
    try:
        yield
    finally:
        base._found.update(before)


@contextmanager
def program(name, **options):
    """A program on the arch ``name``, which is given; "device" is the CPU with such memory."""
    with installed("device" if name == "device" else "host"):
        arch = "cpu" if name == "device" else name
        qd.init(arch=getattr(qd, arch), **options)
        yield arch
        qd.reset()


def copies(device, act):
    """What is copied by ``act``."""
    device.copies.clear()
    act()
    return list(device.copies)
