"""Sizing from arrays that the host does not see, rows for the threads of a device, its heaps."""

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine.adstack import predicate as predicates
from qd_studio.engine.adstack import reducer_kernels
from qd_studio.engine.adstack.host_eval import Env, evaluate
from qd_studio.engine.adstack.max_reducer import recognise
from qd_studio.engine.adstack.predicate_kernels import PredicateCounter
from qd_studio.engine.adstack.size_expr import Const, Var, parse
from qd_studio.engine.backends.array_memory import DeviceArray
from qd_studio.engine.errors import QuadrantsRuntimeError
from qd_studio.engine.ir import Param
from qd_studio.engine.runtime import program
from qd_studio.engine.runtime.sizer import FETCH
from qd_studio.engine.runtime.stacks import Heaps
from qd_studio.engine.types import f32, i32, row_major

from .launchkit import compiled
from .test_max_reducer import PARAMS, values


class Far:
    """Memory of this process that must not be read. reads: (offset, bytes) of each copy."""

    host = None

    def __init__(self, data):
        self.data = np.ascontiguousarray(data).reshape(-1).view(np.uint8).copy()
        self.address, self.nbytes, self.reads = self.data.ctypes.data, self.data.nbytes, []

    def read(self, offset, out):
        self.reads.append((offset, out.nbytes))
        out.reshape(-1).view(np.uint8)[...] = self.data[offset : offset + out.nbytes]

    def free(self):
        self.address = 0


def far(value, offset=0):
    if not isinstance(value, np.ndarray):
        return value
    memory = Far(np.concatenate([np.zeros(offset, np.uint8), value.reshape(-1).view(np.uint8)]))
    return DeviceArray(memory.address + offset, value.shape, value.dtype, memory, offset)


def near(value):
    """What a kernel of the host takes for a far array."""
    if not isinstance(value, DeviceArray):
        return value
    part = value.memory.data[value.offset : value.offset + value.nbytes]
    return part.view(value.dtype).reshape(value.shape)


class OnHost:
    """A kernel of the host that takes far arrays."""

    def __init__(self, func):
        self.executable = program.current().stacks._compile(func)
        self.meta = self.executable.meta

    def launch(self, given):
        return self.executable.launch([near(v) for v in given])


EXPRS = [
    "(shape 1 1)", "(read 0 3)", "(read 1 3 5)", "(read 4 -2)", "(read 4 3)", "(read 5 5 4)",
    "(read 7 2 1)", "(add (arg 2) (read 3 (read 0 2)))",
    "(maxover 0 0 (shape 5 0) (maxover 1 0 (shape 5 1) (read 5 (var 0) (var 1))))",
    "(maxover 0 0 (read 0 1) (maxover 1 0 (add (var 0) 1) (read 1 (min 3 (var 0)) (var 1))))",
]  # fmt: skip


@pytest.mark.parametrize("source", EXPRS)
@pytest.mark.parametrize("offset", [0, 40])
def test_expressions_are_the_same_over_memory_that_is_not_seen(source, offset):
    here = values()
    there = [far(v, offset) for v in here]
    found = evaluate(parse(source), Env(PARAMS, there, "", FETCH))
    assert found == evaluate(parse(source), Env(PARAMS, here))


def test_single_elements_are_fetched_alone():
    there = [far(v) for v in values()]
    evaluate(parse("(read 1 2 3)"), Env(PARAMS, there, "", FETCH))
    assert there[1].memory.reads == [((2 * 6 + 3) * 4, 4)]


def test_an_index_outside_is_reported_before_anything_is_read():
    there = [far(v) for v in values()]
    with pytest.raises(QuadrantsRuntimeError, match="with the index 6"):
        evaluate(parse("(read 0 6)"), Env(PARAMS, there, "", FETCH))
    assert not there[0].memory.reads


def test_maxima_over_large_arrays_do_not_fetch_them():
    qd.init(arch=qd.cpu)
    params = (Param("a", "ndarray", i32, 1),)
    data = np.random.default_rng(3).integers(0, 1 << 20, 1 << 19, np.int32)
    there = far(data)
    (spec,) = recognise([parse("(maxover 0 5 (shape 0 0) (add (read 0 (var 0)) 2))")])
    found = reducer_kernels.reduce_by_kernel(
        spec,
        Env(params, [there], "", FETCH),
        {},
        lambda: reducer_kernels.Reducer(spec, params, OnHost),
    )
    assert found == int(data[5:].max()) + 2
    assert not there.memory.reads


FIELD = row_major((4, 6), (-2, 1))


@pytest.mark.parametrize("op", sorted(predicates.OPS))
@pytest.mark.parametrize("negated", [False, True])
@pytest.mark.parametrize("param, indices", [
    (Param("m", "ndarray", f32, 1), (Var(0),)),
    (Param("m", "ndarray", i32, 2), (Const(3), Var(0))),
    (Param("m", "ndarray", i32, 2, axes=(1, 0)), (Var(0), Const(2))),
    (Param("m", "field", f32, 2, layout=FIELD), (Var(1), Var(0))),
    (Param("m", "field", i32, 2, layout=FIELD), (Const(-1), Var(0))),
])  # fmt: skip
def test_kernels_count_what_passes_a_predicate(op, negated, param, indices):
    qd.init(arch=qd.cpu)
    rng = np.random.default_rng(7)
    shape = (24,) if param.layout is not None else (30,) if param.ndim == 1 else (5, 6)
    data = rng.integers(-3, 4, shape).astype(param.dtype.np)
    if param.dtype is f32:
        data.reshape(-1)[3] = np.nan
    predicate = predicates.Predicate(op, 1, negated, 0, indices)
    env = Env((param,), [data])
    free = [k for k, at in enumerate(predicates.fixed_indices(predicate, env)) if at is None]
    counter = PredicateCounter(predicate, (param,), free, OnHost)
    for most in (1000, 3):
        assert counter.run(env, most) == predicates.count(predicate, env, most)


class Pretended:
    """A device as sizing sees it."""

    name, host_arrays, max_threads = "pretended", False, 512

    def __init__(self, budget):
        self.stack_budget, self.given = budget, []

    def allocate(self, nbytes):
        if nbytes > 1 << 20:
            raise MemoryError
        memory = Far(np.zeros(nbytes, np.uint8))
        self.given.append(memory)
        return memory


TEXT = """\
kernel k(x: ndarray<f32, 1>, n: i32) stage=ast {
  <i32> $0 = const 0
  <i32> $4 = external_tensor_shape_along_axis [(0, 0)]
  $5 : range_for $0, $4 {trip='(shape 0 0)'} body {
    <i32> $6 = loop_index $5 [0]
    <*f32> $7 = arg_addr [(0, False)]
    <*f32> $8 = external_ptr $7, $6 ['unsafe']
    <f32> $9 = global_load $8
    <*f32> $10 = ad_stack_alloca {name='p' size='(arg 1)' adjoint=False}
    $11 : ad_stack_push $10, $9
    <f32> $12 = ad_stack_load_top $10
    $13 : global_store $8, $12
    $14 : ad_stack_pop $10
  }
}
"""


class Elsewhere:
    """A kernel of a device with blocks of 64 threads, which keeps the plan it was launched with."""

    block_dims = (64,)
    diagnose = None

    def __init__(self, device):
        self.meta, self.device = compiled(TEXT).meta, device

    def launch(self, given, seed=0, stacks=None, times=None):
        self.plan = stacks
        return ()


@pytest.mark.parametrize("cells, entries, budget, rows", [
    (1, 3, 1 << 20, 64), (64, 3, 1 << 20, 64), (65, 3, 1 << 20, 128), (5000, 3, 1 << 20, 512),
    (5000, 100, 512 * 400, 512), (5000, 100, 512 * 400 - 1, 256), (5000, 1000, 100, 64),
])  # fmt: skip
def test_a_device_has_rows_for_whole_blocks_within_its_budget(cells, entries, budget, rows):
    qd.init(arch=qd.cpu)
    device = Pretended(budget)
    kernel = Elsewhere(device)
    program.current().stacks.launch(kernel, [far(np.zeros(cells, np.float32)), entries])
    (task,) = kernel.plan.tasks
    assert (task.integer_rows, task.real_rows, task.capacities) == (rows, rows, (entries,))
    heap = kernel.plan.real_heap
    assert heap == device.given[-1].address and device.given[-1].nbytes >= rows * 4 * entries
    assert callable(kernel.diagnose)


def test_heaps_of_a_device_say_what_they_could_not_get():
    qd.init(arch=qd.cpu)
    kernel = Elsewhere(Pretended(1 << 40))
    with pytest.raises(
        QuadrantsRuntimeError, match=r"Failed to allocate \d+ bytes for the adstack"
    ):
        program.current().stacks.launch(kernel, [far(np.zeros(500, np.float32)), 1 << 20])


def test_heaps_of_a_device_grow_and_are_given_back():
    device = Pretended(0)
    heaps = Heaps(device)
    heaps.real.grow(100)
    first = device.given[0]
    heaps.real.grow(150)
    assert first.address == 0 and heaps.real.size == 200
    heaps.free()
    assert (
        heaps.real.address == 0 and device.given[-1].address == 0 and heaps.memory == (None, None)
    )
