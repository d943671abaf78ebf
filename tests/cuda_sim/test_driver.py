"""The simulated driver is as hard on programs as a device: what was not waited for has not
happened, memory holds garbage, errors come late and stay, threads meet where they say."""

import ctypes
import re

import numpy as np
import pytest

from tests import cuda_sim
from tests.cuda_sim import code, translate
from tests.cuda_sim import simulated_driver as driver
from tests.cuda_sim.state import Configuration, state

Result = driver.CUresult

HEAD = """
target triple = "nvptx64-nvidia-cuda"
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.laneid()
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)
declare void @llvm.nvvm.bar.warp.sync(i32)
declare i32 @llvm.nvvm.activemask()
declare i32 @llvm.nvvm.shfl.sync.{up,down,bfly,idx}.i32(i32, i32, i32, i32)
declare { i32, i1 } @llvm.nvvm.shfl.sync.down.i32p(i32, i32, i32, i32)
declare float @llvm.nvvm.shfl.sync.bfly.f32(i32, float, i32, i32)
declare i32 @llvm.nvvm.vote.ballot.sync(i32, i1)
declare i1 @llvm.nvvm.vote.{any,all,uni}.sync(i32, i1)
declare i32 @llvm.nvvm.match.any.sync.i32(i32, i32)
declare { i32, i1 } @llvm.nvvm.match.all.sync.i32p(i32, i32)
declare i32 @llvm.nvvm.redux.sync.{add,min,max,umin,umax,and,or,xor}(i32, i32)
declare i1 @llvm.nvvm.barrier.cta.red.{and,or}.aligned.all(i32, i1)
declare i32 @llvm.nvvm.barrier.cta.red.popc.aligned.all(i32, i1)
declare float @__nv_sinf(float)
declare void @llvm.trap()
@row = internal addrspace(3) global [64 x i32] undef, align 4
"""


def _expanded(line):
    found = re.search(r"\{([\w,]+)\}", line)
    if not found or "," not in found[1] or " " in found[0]:
        return [line]
    return [line.replace(found[0], one) for one in found[1].split(",")]


HEAD = "\n".join(text for line in HEAD.splitlines() for text in _expanded(line)) + "\n"
PLACE = """
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %b = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %d = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %o = mul i32 %b, %d
  %i = add i32 %o, %t
  %p = getelementptr i32, ptr addrspace(1) %a, i32 %i
"""


def image(body, name="k", target=90, version="8.0"):
    """What a compile gives for a kernel ``k(ptr %a, i32 %n)`` with this body."""
    ir = f"{HEAD}define ptx_kernel void @{name}(ptr addrspace(1) %a, i32 %n) {{{PLACE}{body}\n}}\n"
    ptx = f".version {version}\n.target sm_{target}\n.visible .entry {name}(\n"
    return code.with_ir(ptx, ir).encode() + b"\0"


def given(result):
    assert result[0] == Result.CUDA_SUCCESS, result
    return result[1] if len(result) == 2 else result[1:]


@pytest.fixture
def device(request):
    """A fresh device with its context current."""
    state.reset(Configuration(**getattr(request, "param", {})))
    given(driver.cuInit(0))
    given(driver.cuCtxSetCurrent(given(driver.cuDevicePrimaryCtxRetain(0))))
    yield state
    state.reset(Configuration())


class Kernel:
    def __init__(self, body, **more):
        self.module = given(driver.cuModuleLoadData(image(body, **more)))
        self.function = given(driver.cuModuleGetFunction(self.module, b"k"))

    def __call__(self, address, n=0, blocks=1, threads=32, stream=None):
        values = (ctypes.c_uint64 * 2)(int(address), n)
        at = ctypes.addressof(values)
        params = (ctypes.c_void_p * 2)(at, at + 8)
        done = driver.cuLaunchKernel(
            self.function, blocks, 1, 1, threads, 1, 1, 0, stream, ctypes.addressof(params), 0
        )
        values[:] = 0, 0  # they were read by the launch
        return done[0]


def ints(count, fill=0):
    address = given(driver.cuMemAlloc(4 * count))
    if fill is not None:
        given(driver.cuMemsetD32(address, fill, count))
    return address


def fetched(address, count):
    out = np.empty(count, np.int32)
    given(driver.cuMemcpyDtoH(out.ctypes.data, address, out.nbytes))
    return out


ADD_ONE = "  %v = load i32, ptr addrspace(1) %p\n  %w = add i32 %v, 1\n"
STORE = "  store i32 %w, ptr addrspace(1) %p\n  ret void\n"


def test_work_is_done_when_somebody_waits(device):
    k, a = Kernel(ADD_ONE + STORE), ints(64)
    pinned = given(driver.cuMemHostAlloc(256, 0))
    seen = np.ctypeslib.as_array((ctypes.c_int32 * 64).from_address(pinned))
    assert k(a, blocks=2) == Result.CUDA_SUCCESS
    given(driver.cuMemcpyDtoHAsync(pinned, a, 256, None))
    assert not device.launched and seen[0] != 1
    given(driver.cuStreamSynchronize(None))
    assert device.launched == ["k"] and (seen == 1).all()


def test_streams_wait_for_stream_0_unless_they_are_independent(device):
    k, a = Kernel(ADD_ONE + STORE), ints(32)
    ordinary, independent = given(driver.cuStreamCreate(0)), given(driver.cuStreamCreate(1))
    event = given(driver.cuEventCreate(2))
    given(driver.cuStreamSynchronize(None))
    k(a)
    k(a, stream=independent)
    given(driver.cuStreamSynchronize(independent))
    assert len(device.launched) == 1
    k(a, stream=ordinary)
    given(driver.cuStreamSynchronize(ordinary))
    assert len(device.launched) == 3, "with what stream 0 was given before"
    k(a)
    given(driver.cuEventRecord(event, None))
    given(driver.cuStreamWaitEvent(independent, event, 0))
    k(a, stream=independent)
    given(driver.cuStreamSynchronize(independent))
    assert len(device.launched) == 5 and (fetched(a, 32) == 5).all()


def test_memory_is_garbage_before_and_after(device):
    a = ints(8, None)
    assert (fetched(a, 8) == np.int32(0xCBCBCBCB - (1 << 32))).all()
    kept = ctypes.c_int32.from_address(int(a))
    given(driver.cuMemFree(a))
    assert kept.value & 0xFF == 0xDB
    assert driver.cuMemcpyDtoH(np.empty(8).ctypes.data, a, 8)[0] == Result.CUDA_ERROR_INVALID_VALUE
    k = Kernel(ADD_ONE + STORE)
    k(a)
    assert driver.cuStreamSynchronize(None)[0] == Result.CUDA_ERROR_ILLEGAL_ADDRESS
    assert driver.cuMemAlloc(4)[0] == Result.CUDA_ERROR_ILLEGAL_ADDRESS, "the context is lost"


@pytest.mark.parametrize("device", [{"memory": 1 << 20}], indirect=True)
def test_memory_ends(device):
    a = given(driver.cuMemAlloc(900_000))
    assert driver.cuMemAlloc(900_000)[0] == Result.CUDA_ERROR_OUT_OF_MEMORY
    given(driver.cuMemFreeAsync(a, None))
    assert given(driver.cuMemAlloc(900_000))


def test_faults_come_when_they_are_asked_for(device):
    device.fail("cuMemAlloc", Result.CUDA_ERROR_UNKNOWN, call=2)
    found = [driver.cuMemAlloc(4)[0] for _ in range(3)]
    assert found == [Result.CUDA_SUCCESS, Result.CUDA_ERROR_UNKNOWN, Result.CUDA_SUCCESS]
    k, a = Kernel(ADD_ONE + STORE), ints(32)
    device.die(Result.CUDA_ERROR_LAUNCH_FAILED, "k")
    assert k(a) == Result.CUDA_SUCCESS, "errors of kernels come late"
    assert driver.cuStreamSynchronize(None)[0] == Result.CUDA_ERROR_LAUNCH_FAILED


def test_code_for_another_device_or_driver_is_refused(device):
    for more, expected in (
        ({"target": 100}, Result.CUDA_ERROR_NO_BINARY_FOR_GPU),
        ({"version": "9.9"}, Result.CUDA_ERROR_UNSUPPORTED_PTX_VERSION),
    ):
        assert driver.cuModuleLoadData(image("  ret void", **more))[0] == expected
    log = ctypes.create_string_buffer(500)
    option = driver.CUjit_option
    names = [option.CU_JIT_ERROR_LOG_BUFFER, option.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES]
    where = [ctypes.addressof(log), 500]
    done = driver.cuModuleLoadDataEx(b".version 8.0\n.target sm_90\n", 2, names, where)
    assert done[0] == Result.CUDA_ERROR_INVALID_PTX and log.value.startswith(b"ptxas fatal")


def test_threads_meet_at_barriers_and_those_that_have_ended_do_not(device):
    body = """
      %in = icmp ult i32 %t, 40
      br i1 %in, label %go, label %out
    go:
      %s = getelementptr i32, ptr addrspace(3) @row, i32 %t
      store i32 %i, ptr addrspace(3) %s
      call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
      %r = sub i32 39, %t
      %s2 = getelementptr i32, ptr addrspace(3) @row, i32 %r
      %w = load i32, ptr addrspace(3) %s2
      store i32 %w, ptr addrspace(1) %p
      br label %out
    out:
      ret void"""
    k, a = Kernel(body), ints(128)
    k(a, blocks=2, threads=64)
    found = fetched(a, 128).reshape(2, 64)
    for block in range(2):
        assert (found[block, :40] == 64 * block + np.arange(39, -1, -1)).all()
        assert (found[block, 40:] == 0).all()


def test_a_block_whose_threads_never_meet_is_reported(device):
    body = """
      %first = icmp eq i32 %t, 0
      br i1 %first, label %one, label %rest
    one:
      call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
      ret void
    rest:
      call void @llvm.nvvm.bar.warp.sync(i32 -1)
      ret void"""
    k, a = Kernel(body), ints(32)
    k(a)
    assert driver.cuStreamSynchronize(None)[0] == Result.CUDA_ERROR_LAUNCH_TIMEOUT


LANE = np.arange(32)
SHUFFLED = {
    "up": np.where(LANE >= 3, LANE - 3, LANE),
    "down": np.where(LANE + 3 < 32, LANE + 3, LANE),
    "bfly": LANE ^ 3,
    "idx": np.full(32, 3),
}


@pytest.mark.parametrize("mode", SHUFFLED)
def test_shuffles(device, mode):
    clamp = 0 if mode == "up" else 31
    body = f"""
      %w = call i32 @llvm.nvvm.shfl.sync.{mode}.i32(i32 -1, i32 %t, i32 3, i32 {clamp})
    {STORE}"""
    a = ints(32)
    Kernel(body)(a)
    assert (fetched(a, 32) == SHUFFLED[mode]).all()


FOLDS = {
    "add": LANE.sum() - 64, "min": -2, "max": 29, "umin": 0, "umax": -1, "and": 0,
    "or": -1, "xor": np.bitwise_xor.reduce(LANE - 2),
}  # fmt: skip


@pytest.mark.parametrize("mode", FOLDS)
def test_folds_of_a_warp(device, mode):
    body = f"""
      %x = sub i32 %t, 2
      %w = call i32 @llvm.nvvm.redux.sync.{mode}(i32 %x, i32 -1)
    {STORE}"""
    a = ints(32)
    Kernel(body)(a)
    assert (fetched(a, 32) == FOLDS[mode]).all()


def test_votes_and_matches_of_those_that_are_named(device):
    body = """
      %low = icmp ult i32 %t, 16
      br i1 %low, label %go, label %out
    go:
      %odd = trunc i32 %t to i1
      %vote = call i32 @llvm.nvvm.vote.ballot.sync(i32 65535, i1 %odd)
      %third = urem i32 %t, 3
      %like = call i32 @llvm.nvvm.match.any.sync.i32(i32 65535, i32 %third)
      %active = call i32 @llvm.nvvm.activemask()
      %x = xor i32 %vote, %like
      %shifted = shl i32 %active, 16
      %w = or i32 %x, %shifted
      store i32 %w, ptr addrspace(1) %p
      br label %out
    out:
      ret void"""
    a = ints(32)
    Kernel(body)(a)
    found = fetched(a, 32).view(np.uint32)
    for t in range(16):
        like = sum(1 << u for u in range(16) if u % 3 == t % 3)
        assert found[t] == (0xFFFF0000 | (0xAAAA ^ like))
    assert not found[16:].any()


def test_graphs_loop_while_a_kernel_says_so(device):
    ir = f"""{HEAD}
declare void @cudaGraphSetConditional(i64, i32)
define ptx_kernel void @k(ptr addrspace(1) %a, i64 %h) {{
      %v = load i32, ptr addrspace(1) %a
      %w = add i32 %v, 1
      store i32 %w, ptr addrspace(1) %a
      %more = icmp slt i32 %w, 10
      %c = zext i1 %more to i32
      call void @cudaGraphSetConditional(i64 %h, i32 %c)
      ret void
}}"""
    ptx = code.with_ir(".version 8.0\n.target sm_90\n.visible .entry k(\n", ir).encode()
    function = given(driver.cuModuleGetFunction(given(driver.cuModuleLoadData(ptx)), b"k"))
    a, context = ints(1), given(driver.cuCtxGetCurrent())
    graph = given(driver.cuGraphCreate(0))
    handle = given(driver.cuGraphConditionalHandleCreate(graph, context, 1, 1))
    wanted = driver.CUgraphNodeParams()
    wanted.type = driver.CUgraphNodeType.CU_GRAPH_NODE_TYPE_CONDITIONAL
    wanted.conditional.handle = handle
    wanted.conditional.type = driver.CUgraphConditionalNodeType.CU_GRAPH_COND_TYPE_WHILE
    wanted.conditional.size = 1
    wanted.conditional.ctx = context
    given(driver.cuGraphAddNode(graph, None, None, 0, wanted))
    params = driver.CUDA_KERNEL_NODE_PARAMS()
    params.func = function
    for name in ("gridDimX", "gridDimY", "gridDimZ", "blockDimX", "blockDimY", "blockDimZ"):
        setattr(params, name, 1)
    values = (ctypes.c_uint64 * 2)(int(a), int(handle))
    at = ctypes.addressof(values)
    addresses = (ctypes.c_void_p * 2)(at, at + 8)
    params.kernelParams = ctypes.addressof(addresses)
    body = wanted.conditional.phGraph_out[0]
    given(driver.cuGraphAddKernelNode(body, None, 0, params))
    ready = given(driver.cuGraphInstantiate(graph, 0))
    for rounds in (10, 11):
        given(driver.cuGraphLaunch(ready, None))
        assert fetched(a, 1)[0] == rounds


@pytest.mark.parametrize("device", [{"capability": (7, 5)}], indirect=True)
def test_older_devices_have_no_conditional_nodes(device):
    graph = given(driver.cuGraphCreate(0))
    context = given(driver.cuCtxGetCurrent())
    done = driver.cuGraphConditionalHandleCreate(graph, context, 1, 1)
    assert done[0] == Result.CUDA_ERROR_NOT_SUPPORTED


def test_what_the_simulator_lacks_is_named():
    with pytest.raises(code.NoKernel, match=r"simulator has no llvm.nvvm.cp.async.ca"):
        code.Module(image("  call void @llvm.nvvm.cp.async.ca()\n  ret void"))


def test_parameters_are_understood():
    text = f"{HEAD}define ptx_kernel void @k(ptr noalias align 64 %f, i8 %x.byte, double %y, " + (
        "float noundef %z, i32 range(i32 0, -2147483648) %n) #0 {\n  ret void\n}\n"
        'attributes #0 = { "nvvm.reqntid"="64" }\n'
    )
    (entry,) = translate.translate(text).entries
    assert entry.sizes == (8, 1, 8, 4, 4) and entry.pointers == (True, *[False] * 4)
    assert entry.most_threads == 64 and not entry.meets


def test_a_device_that_works_goes_on():
    pytest.importorskip("qd_studio.engine.backends.cuda.device")
    from qd_studio import engine as qd

    contexts = []
    for _ in range(2):
        with cuda_sim.simulated() as sim:
            qd.init(arch=qd.cuda, offline_cache=False)
            contexts.append(sim.context)
            qd.reset()
    assert contexts[0] is contexts[1] and contexts[0] is not None
