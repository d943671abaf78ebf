"""Tasks and loops that differ in numbers are prepared once; the IR is that of all, one by one."""

import random

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine import ir, passes
from qd_studio.engine.analysis import users
from qd_studio.engine.backends.cpu.backend import BACKEND
from qd_studio.engine.cache.in_process import IN_PROCESS
from qd_studio.engine.config import CompileConfig
from qd_studio.engine.frontend import build
from qd_studio.engine.frontend.specialization import ndarray_key
from qd_studio.engine.ir import codes as C
from qd_studio.engine.passes import loop_templates, pipeline, task_copies, task_templates
from qd_studio.engine.types import f32, f64, i32

from .random_ir import FLOATS, random_func

F32 = qd.types.ndarray(qd.f32, 1)
F64 = qd.types.ndarray(qd.f64, 1)


@qd.kernel
def simple(x: F32, y: F32, z: F64):
    for k in qd.static(range(32)):
        for i in x:
            y[i] = y[i] * (k + 0.3) + x[i] / (0.7 + k)
        for i in range(2, x.shape[0] - 1):
            x[i] = qd.max(x[i - 1] - (0.1 * k - 0.25), 3.0 * k + 0.6)


@qd.kernel
def nested(x: F32, y: F32, z: F64):
    for k in qd.static(range(32)):
        for i in x:
            s = 0.3 * k + 0.2
            for _ in range(3):
                if s < 5.5 + k:
                    s = s * (k + 1.3) + x[i]
                    y[0] += 0.3
                else:
                    s = -s if x[i] > k + 0.4 else s
            y[i] = s
            z[i] += qd.f64(s) * (k + 0.1)
        for i in x:
            y[0] += x[i] * (0.6 + k)


@qd.kernel
def meeting(x: F32, y: F32, z: F64):
    """Numbers of two products, which come together when a load of what was stored goes."""
    for k in qd.static(range(32)):
        for i in x:
            y[i] = x[i] * (k + 1.7)
            z[i] = qd.f64(y[i] * (k + 0.3))
        for i in x:
            x[i] = y[i] - (k + 0.6)


@qd.kernel
def stored(x: F32, y: F32, z: F64):
    """A number that is loaded again, and one of a condition that is then known."""
    for k in qd.static(range(32)):
        for i in x:
            y[i] = k + 0.3
            if y[i] < 20.1:
                x[i] += y[i] * 0.9


@qd.kernel
def special(x: F32, y: F32, z: F64):
    for k in qd.static((0.0, -0.0, 1.0, -1.0, 2.0, 0.5, 4.0, 1e9, -1e-9, qd.math.inf, qd.math.nan)):
        for _ in qd.static(range(4)):
            for i in x:
                y[i] = qd.max(x[i], k)
            for i in x:
                x[i] = y[i] * k
            for i in x:
                y[i] = x[i] / (y[i] + k)


@qd.kernel
def drawn(x: F32, y: F32, z: F64):
    for k in qd.static(range(20)):
        for i in x:
            y[i] = x[i] * (k + 0.3)
        for i in x:
            x[i] = qd.random(qd.f32) * (k + 0.3)


@qd.kernel
def unread(x: F32, y: F32, z: F64):
    """The first tasks vanish, and so do those that are like them."""
    for k in qd.static(range(32)):
        for i in x:
            s = x[i] * (k + 0.3)
            if s > k + 0.7:
                s = s - (k + 0.1)
    for i in x:
        y[i] = x[i] * 0.3


@qd.kernel
def handed_on(x: F32, y: F32, z: F64):
    """Values that later tasks read: some of them in the first half only."""
    most, count, last = 0.0, 0, 1.0
    for k in qd.static(range(32)):
        if qd.static(k < 21):
            for i in x:
                x[i] = qd.min(x[i] * (k + 0.4), last)
        for i in x:
            qd.atomic_max(most, x[i] * (k + 0.3))
        for i in x:
            if x[i] > k + 0.2:
                count += 1
        if qd.static(k < 20):
            last = last * 0.7 + qd.cast(count, qd.f32)
        if qd.static(k % 12 == 7):
            y[k // 12] = most


FIELDS = []


@qd.kernel
def fields(x: F32, y: F32, z: F64):
    """Tasks that differ in fields, which some read, some write, and some both."""
    for k in qd.static(range(32)):
        for i in x:
            FIELDS[k % 20][i] = FIELDS[(7 * k + 3) % 20][i + 1] * (k + 0.3) + x[i]
        for i in FIELDS[k % 19]:
            FIELDS[k % 19][i] = qd.min(FIELDS[k % 7][i], 5.3)
        for i in x:
            FIELDS[k % 20][i] = x[i] * (k + 1.7)
            z[i] = qd.f64(FIELDS[k % 20][i] * (k + 0.3))
        for i in x:
            for j in range(3):
                qd.atomic_max(FIELDS[k % 17][0], FIELDS[k % 13][i + j] * (k + 0.4))


def place():
    """New fields, which a program needs."""
    FIELDS[:] = [qd.field(qd.f32, 12) for _ in range(20)]


@qd.kernel
def differentiated(x: F32, y: F32, z: F64):
    """Loops of which some need adstacks in the gradient: these stay on their own."""
    for k in qd.static(range(32)):
        for i in x:
            y[i] += x[i] * x[i] * (k + 0.3)
        for i in x:
            if x[i] > k + 0.1:
                y[0] += qd.exp(x[i] * (k + 0.7))
    for k in qd.static(range(4)):
        for i in x:
            a = x[i]
            for _ in range(4):
                a = qd.sin(a) * (k + 0.4)
            z[i] += qd.f64(a)


KERNELS = [
    simple, nested, meeting, stored, special, drawn, unread, handed_on, fields,
    differentiated.grad,
]  # fmt: skip


@pytest.fixture(autouse=True)
def program():
    IN_PROCESS.clear()
    qd.init(arch=qd.cpu, offline_cache=False)
    place()
    yield
    IN_PROCESS.clear()


@pytest.fixture(params=["loops", "tasks"])
def found(request, monkeypatch):
    """Of each time that alike loops or tasks are made, the number of templates, of their tasks, and
    of templates given up."""
    counts = []
    if request.param == "tasks":
        monkeypatch.setattr(pipeline, "_LOOPS", 1 << 30)
    differing = task_templates.differing

    def counted(func, cx, templates, left):
        given_up = differing(func, cx, templates, left)
        opened = [t for t in templates if t.numbers]
        counts.append((len(opened), sum(len(t.values) for t in opened), len(given_up)))
        return given_up

    for module in (loop_templates, task_templates):
        monkeypatch.setattr(module, "differing", counted)
    return counts


def ast_of(kernel, config):
    grad = kernel is differentiated.grad
    array = ndarray_key(qd.f32, 1, needs_grad=grad)
    keys = (array, array, ndarray_key(qd.f64, 1, needs_grad=grad))
    return build.build(kernel.decl, keys, config).func


def finished(func, config, monkeypatch, templates):
    with monkeypatch.context() as patch:
        if not templates:
            patch.setattr(task_templates, "alike_tasks", lambda *_, **_options: [])
            patch.setattr(pipeline, "_LOOPS", 1 << 30)
        passes.run(func, config, BACKEND.pipeline(config), share_tasks=True)
    task_copies.write_out(func)
    for region in {region for task in func.body.ops for region in task.regions}:
        consts = [op for op in region.ops if op.code == C.CONST]
        first = [op.code for op in region.ops[: len(consts)]]
        assert first == [C.CONST] * len(consts)
        consts.sort(key=lambda op: (op.type.name, repr(op.attr)))
        region.ops = [*consts, *region.ops[len(consts) :]]
    return func


def without_equal(func):
    """``func`` with blocks for each task, for comparisons that follow operands."""
    for task in func.body.ops:
        mapping = {op.args[0]: task for r in task.regions for op in ir.walk(r)
                   if op.code == C.LOOP_INDEX and op.args[0].code == C.OFFLOADED}  # fmt: skip
        regions = tuple(ir.Block(task) for _ in task.regions)
        for source, target in zip(task.regions, regions, strict=True):
            ir.edit.clone_into(func, source.ops, mapping, target)
        task.regions = regions
    return func


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("fast_math", [False, True])
def test_the_ir_is_that_of_tasks_that_are_all_prepared(kernel, fast_math, found, monkeypatch):
    for threads in (1, 4):
        config = CompileConfig(fast_math=fast_math, cpu_max_num_threads=threads)
        once = finished(ast_of(kernel, config), config, monkeypatch, True)
        every = finished(ast_of(kernel, config), config, monkeypatch, False)
        once, every = without_equal(once), without_equal(every)
        ir.verify(once)
        assert once.params == every.params
        assert ir.difference(once, every, ids=False) is None
    templates, tasks, given_up = found[-1]
    if kernel is special:
        assert not templates
    elif kernel is not unread:
        assert templates <= 8
        assert tasks >= 18
        assert bool(given_up) == (kernel is stored or (kernel in (meeting, fields) and fast_math))


OPEN = {C.ADD, C.SUB, C.MUL, C.DIV, C.MIN, C.MAX, C.GLOBAL_STORE, C.LOCAL_STORE}


def copies(seed, ops):
    """A random function as the body of a loop, and copies of that with other numbers."""
    func = random_func(seed, (i32, f32, f64) if seed % 2 else FLOATS, ops)
    func.stage = "ast"
    inside = [op for op in func.body.ops if op.code != C.RETURN]
    b = ir.Builder(func, func.body, ops=[])
    loop = b.range_for((b.const(0, i32), b.const(5, i32)), ir.ForAttr())
    loop.regions[0].ops = inside
    ir.set_block(inside, loop.regions[0])
    rng = random.Random(seed)
    using = users(loop.regions[0])
    numbers = [op for op in ir.walk(loop.regions[0]) if op.code == C.CONST and op.type.is_real]
    for op in numbers:
        op.attr = rng.choice((op.attr, *[rng.randrange(1, 999) / 16 for _ in range(5)]))
    free = [op for op in numbers if all(user.code in OPEN for user in using.get(op, ()))]
    for _ in range(3):
        mapping = {}
        b.ops.append(ir.clone(func, loop, mapping, func.body))
        for op in free if rng.random() < 0.8 else numbers:
            if rng.random() < 0.7:
                mapping[op].attr = rng.randrange(1, 999) / 16
    func.body.ops = b.ops
    return func


@pytest.mark.parametrize("first", range(0, 80, 20))
def test_random_tasks(first, found, monkeypatch):
    for module in (loop_templates, task_templates):
        monkeypatch.setattr(module, "MANY", 2)
    for seed in range(first, first + 20):
        config = CompileConfig(cpu_max_num_threads=1 + seed % 4, fast_math=seed % 3 > 0)
        once = without_equal(finished(copies(seed, 40), config, monkeypatch, True))
        every = without_equal(finished(copies(seed, 40), config, monkeypatch, False))
        ir.verify(once)
        assert ir.difference(once, every, ids=False) is None, seed
    assert sum(templates for templates, _, _ in found) >= 5


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "kernel", [simple, nested, meeting, stored, special, unread, handed_on, fields]
)
@pytest.mark.parametrize("options", [{}, {"tiered": "off"}], ids=str)
def test_results_are_those_of_the_interpreter(kernel, options):
    results = []
    for arch in ("interp", qd.cpu):
        more = options if arch == qd.cpu else {}
        qd.init(arch=arch, fast_math=False, offline_cache=False, **more)
        place()
        x, y, z = (qd.ndarray(t, 9) for t in (qd.f32, qd.f32, qd.f64))
        x.from_numpy(np.linspace(-1.0, 1.0, 9, dtype=np.float32))
        kernel(x, y, z)
        results.append([array.to_numpy() for array in (x, y, z, *FIELDS)])
        IN_PROCESS.clear()
    for expected, got in zip(*results, strict=True):
        np.testing.assert_array_equal(got, expected)
