"""Loops on the device: conditional nodes of graphs, and the kernel that decides whether they go on.

A WHILE node runs its body graph as long as the value of a *handle* is not 0. The value is 1 when
the graph is launched (`CU_GRAPH_COND_ASSIGN_DEFAULT`), and the last node of each body is a kernel
of one thread that sets it::

    value = error word of the device buffer is 0 and the i32 that the slot points to is not 0

The slot is that of a parameter in the device buffer, so that a replay with another array needs no
other graph. The error word is tested because tasks of a failed kernel do nothing any more, so that
the flag would never become 0. The kernel also counts the rounds.

A loop within another one is reached several times in one launch: there a node of its own sets the
value to 1 before.

Setting the value is a function of NVIDIA's, in ``libcudadevrt.a``, which must be linked with our
PTX: by nvJitLink where that is installed, else by the driver's own linker. `toolkit` searches for
both. The result is the same for every program: an `InjectedCache` keeps it across processes.

Compute capability 9.0 and a driver of CUDA 12.4 are needed. `functions` raises `Unavailable`, with
the reason, where something is missing; loops run on the host then.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from ...errors import CudaError
from ..injected import InjectedCache
from . import nvptx, toolkit
from .driver import binding, check
from .targets import TRIPLE

if TYPE_CHECKING:
    from .context import Context
    from .device import CudaDevice

__all__ = [
    "ARM", "IR", "SYMBOL", "Unavailable", "add_while", "functions", "handle", "libraries", "link",
]  # fmt: skip

SYMBOL: Final = "qd_condition"
ARM: Final = "qd_arm"

IR: Final = f"""\
target triple = "{TRIPLE}"

declare void @cudaGraphSetConditional(i64, i32)

define ptx_kernel void @{SYMBOL}(i64 %handle, ptr addrspace(1) %kernarg, i64 %slot, \
ptr addrspace(1) %rounds) {{
entry:
  %error = load i64, ptr addrspace(1) %kernarg
  %where = getelementptr i8, ptr addrspace(1) %kernarg, i64 %slot
  %flag = load ptr addrspace(1), ptr addrspace(1) %where
  %value = load i32, ptr addrspace(1) %flag
  %count = load i64, ptr addrspace(1) %rounds
  %more = add i64 %count, 1
  store i64 %more, ptr addrspace(1) %rounds
  %wanted = icmp ne i32 %value, 0
  %fine = icmp eq i64 %error, 0
  %again = and i1 %wanted, %fine
  %set = zext i1 %again to i32
  call void @cudaGraphSetConditional(i64 %handle, i32 %set)
  ret void
}}

define ptx_kernel void @{ARM}(i64 %handle) {{
entry:
  call void @cudaGraphSetConditional(i64 %handle, i32 1)
  ret void
}}
"""
"""The two kernels. slot: offset in the device buffer of the address of the flag."""

_CAPABILITY: Final = 9, 0
_DRIVER: Final = 12040
_ASSIGN_DEFAULT: Final = 1


class Unavailable(Exception):
    """Raised when loops on the device are unavailable; the text says why."""


_functions: Final[weakref.WeakKeyDictionary[Context, tuple[Any, Any]]] = weakref.WeakKeyDictionary()
_reasons: Final[weakref.WeakKeyDictionary[Context, str]] = weakref.WeakKeyDictionary()


def functions(device: CudaDevice, cache: InjectedCache) -> tuple[Any, Any]:
    """The kernels `SYMBOL` and `ARM`, loaded in the device's context once. Unavailable."""
    context = device.context
    found = _functions.get(context)
    if found is not None:
        return found
    reason = _reasons.get(context) or _too_old(device)
    if not reason:
        try:
            with context.active():
                found = _functions[context] = _load(device.hardware.arch, cache)
            return found
        except Unavailable as error:
            reason = str(error)
    _reasons[context] = reason
    raise Unavailable(reason)


def _too_old(device: CudaDevice) -> str:
    hardware = device.hardware
    if hardware.capability < _CAPABILITY:
        have = "{}.{}".format(*hardware.capability)
        return f"{hardware.name} has compute capability {have}, and 9.0 is needed"
    driver = binding()
    version = int(check(driver.cuDriverGetVersion(), "asking for its version"))
    if version < _DRIVER or not hasattr(driver, "cuGraphConditionalHandleCreate"):
        return (
            f"the driver is of CUDA {version // 1000}.{version % 1000 // 10} and cuda-python may be"
            " older, and 12.4 is needed"
        )
    return ""


def _load(arch: str, cache: InjectedCache) -> tuple[Any, Any]:
    """The kernels, from code that was kept or made now."""
    digest = hashlib.sha256(IR.encode()).hexdigest()[:16]
    name = f"cuda condition {arch} {digest} {binding().__name__}"

    def use(code: bytes) -> tuple[Any, Any]:
        try:
            return _loaded(code)
        except CudaError as error:  # damaged, or not for this driver
            if error.fatal:
                raise
            raise ValueError(str(error)) from None

    try:
        return cache.library(name, lambda: link(nvptx.make_ptx(IR, arch, 3), arch), use)
    except CudaError as error:
        if error.fatal:
            raise
        why = str(error)
    except ValueError as error:  # of what was made now
        why = str(error)
    raise Unavailable(f"the driver refuses the kernel that decides about it: {why}")


def _loaded(code: bytes) -> tuple[Any, Any]:
    driver = binding()
    doing = "loading the condition of loops"
    module = check(driver.cuModuleLoadDataEx(code, 0, [], []), doing)
    condition = check(driver.cuModuleGetFunction(module, SYMBOL.encode()), doing)
    return condition, check(driver.cuModuleGetFunction(module, ARM.encode()), doing)


# Linking


def libraries() -> tuple[str, ...]:
    """The paths of ``libcudadevrt.a``. Unavailable, with the remedy, if there is none."""
    try:
        found = toolkit.libraries("libcudadevrt")
    except CudaError as error:  # a variable that names a file that is not there
        raise Unavailable(_first(error)) from None
    if not found:
        raise Unavailable(
            "libcudadevrt.a was not found: set CUDA_HOME, or pip install nvidia-cuda-runtime"
        )
    return found


def link(ptx: str, arch: str) -> bytes:
    """Machine code of the PTX with NVIDIA's device library. Unavailable where that fails."""
    found = libraries()
    reasons: list[str] = []
    linkers: tuple[Callable[[str, str, str], bytes], ...] = (_by_nvjitlink, _by_driver)
    for linker in linkers:
        for library in found:
            try:
                return linker(ptx, arch, library)
            except Unavailable as error:
                reasons.append(str(error))
    raise Unavailable("; ".join(dict.fromkeys(reasons)))


def _load_linker() -> None:
    """Load nvJitLink from where `toolkit` says: the binding looks at variables too late."""
    for path in toolkit.libraries("nvjitlink"):
        try:
            ctypes.CDLL(path, ctypes.RTLD_GLOBAL)
            return
        except OSError:
            continue


def _by_nvjitlink(ptx: str, arch: str, library: str) -> bytes:
    try:
        _load_linker()
        linker: Any = importlib.import_module("cuda.bindings.nvjitlink")
        handle = linker.create(1, [f"-arch={arch}"])
    except Exception as error:  # whatever the ways of not finding a library raise
        raise Unavailable(f"nvJitLink cannot be used ({_first(error)})") from None
    try:
        data = ptx.encode()
        linker.add_data(handle, linker.InputType.PTX, data, len(data), SYMBOL)
        linker.add_file(handle, linker.InputType.LIBRARY, library)
        linker.complete(handle)
        out = bytearray(linker.get_linked_cubin_size(handle))
        linker.get_linked_cubin(handle, out)
        return bytes(out)
    except Exception as error:
        raise Unavailable(f"nvJitLink failed with {library} ({_first(error)})") from None
    finally:
        linker.destroy(handle)


def _by_driver(ptx: str, arch: str, library: str) -> bytes:
    driver = binding()
    kinds: Any = driver.CUjitInputType
    data = ptx.encode() + b"\0"
    try:
        state = check(driver.cuLinkCreate(0, [], []))
        try:
            check(
                driver.cuLinkAddData(
                    state, kinds.CU_JIT_INPUT_PTX, data, len(data), SYMBOL.encode(), 0, [], []
                )
            )
            check(
                driver.cuLinkAddFile(state, kinds.CU_JIT_INPUT_LIBRARY, library.encode(), 0, [], [])
            )
            place, size = check(driver.cuLinkComplete(state))
            return ctypes.string_at(int(place), int(size))
        finally:
            driver.cuLinkDestroy(state)
    except (CudaError, AttributeError) as error:
        raise Unavailable(f"the driver cannot link {library} ({_first(error)})") from None


def _first(error: BaseException) -> str:
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0]


# Nodes


def handle(device: CudaDevice, graph: Any) -> int:
    """A new handle, for a loop inside ``graph``; its value is 1 when ``graph`` is launched."""
    made = device.call(
        "making the handle of a loop", "cuGraphConditionalHandleCreate",
        graph, device.context.handle, 1, _ASSIGN_DEFAULT,
    )  # fmt: skip
    return int(made)


def add_while(device: CudaDevice, graph: Any, handle: int, before: list[Any]) -> tuple[Any, Any]:
    """A WHILE node of ``graph`` after the nodes ``before``: the node, and its body."""
    driver = device.driver
    params = driver.CUgraphNodeParams()
    params.type = driver.CUgraphNodeType.CU_GRAPH_NODE_TYPE_CONDITIONAL
    loop = params.conditional
    loop.handle = driver.CUgraphConditionalHandle(handle)
    loop.type = driver.CUgraphConditionalNodeType.CU_GRAPH_COND_TYPE_WHILE
    loop.size = 1
    loop.ctx = device.context.handle
    doing = "adding a loop to a graph"
    many = len(before)
    try:
        node = device.call(doing, "cuGraphAddNode", graph, before or None, None, many, params)
    except TypeError:  # the binding of CUDA 12, whose function knows no data of edges
        node = device.call(doing, "cuGraphAddNode", graph, before or None, many, params)
    return node, params.conditional.phGraph_out[0]
