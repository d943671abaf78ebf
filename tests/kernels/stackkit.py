"""Kernels with adstacks: what a launch gives them, and gradients of small programs by hand."""

import numpy as np
from qd_studio.engine import passes
from qd_studio.engine.backends import base
from qd_studio.engine.backends.base import StackPlan, TaskPlan
from qd_studio.engine.config import CompileConfig
from qd_studio.engine.ir import parse

CHAIN = """\
    <*f32> $10 = ad_stack_alloca {name='p' SIZE}
    $11 : ad_stack_push $10, $2
    $12 : range_for $0, $41 body {
      <f32> $13 = ad_stack_load_top $10
      <f32> $14 = mul $13, $9
      $15 : ad_stack_push $10, $14
    }
    <*f32> $20 = arg_addr [(2, False)]
    <*f32> $21 = external_ptr $20, $6 ['unsafe']
    <f32> $22 = global_load $21
    $23 : ad_stack_acc_adjoint $10, $22
    <*f32> $24 = arg_addr [(1, False)]
    <*f32> $25 = external_ptr $24, $6 ['unsafe']
    $26 : range_for $0, $41 {reversed=True} body {
      <f32> $27 = ad_stack_load_top_adj $10
      $28 : ad_stack_pop $10
      <f32> $29 = mul $27, $9
      $30 : ad_stack_acc_adjoint $10, $29
      <f32> $31 = ad_stack_load_top $10
      <f32> $32 = mul $27, $31
      <f32> $33 = atomic_add $25, $32
    }
    $34 : ad_stack_pop $10
"""
"""Of an element $9 the power $41 on a stack, and backwards again; $6 is the index."""

POWER = """\
kernel power(x: ndarray<f32, 1>, gx: ndarray<f32, 1>, gy: ndarray<f32, 1>, n: i32) stage=ast {
  <i32> $0 = const 0
  <i32> $1 = const 1
  <f32> $2 = const 1.0
  <i32> $3 = arg_load [3]
  <i32> $4 = external_tensor_shape_along_axis [(0, 0)]
  $5 : range_for $0, $4 body {
    <i32> $6 = loop_index $5 [0]
    <*f32> $7 = arg_addr [(0, False)]
    <*f32> $8 = external_ptr $7, $6 ['unsafe']
    <f32> $9 = global_load $8
    <i32> $40 = add $6, $1
    <i32> $41 = mul $40, $3
CHAIN  }
}
""".replace("CHAIN", CHAIN)
"""``y[i] = x[i] ** (n * (i + 1))`` by a loop: ``gx[i] += gy[i] * dy / dx``."""


def power(size=""):
    """`POWER` with attributes for its stack."""
    return parse(POWER.replace(" SIZE", size and " " + size))


def compiled(func, target="cpu", predicate="", **options):
    """``func`` (stage ast) run through all passes and loaded. predicate: of its tasks."""
    config = CompileConfig().replace(
        **{"debug": True, "fast_math": False, "cpu_max_num_threads": 3, **options}
    )
    passes.run(func, config, base.find(target).pipeline(config))
    for task in func.tasks():
        task.attr = task.attr._replace(predicate=predicate)
    backend = base.find(target)
    return backend.load(backend.lower(func, config))


class Heaps:
    """Memory for the stacks of a kernel, laid out without gaps, between guards.

    capacities: of each stack of each task; a number for all. rows, real_rows: of each task.
    predicated: whether tasks with a predicate claim their rows.
    """

    GUARD = 0xA5

    def __init__(self, meta, capacities, rows=3, real_rows=None, predicated=True):
        self.size = 0
        tasks = []
        for t, task in enumerate(meta.tasks):
            if not task.stacks:
                tasks.append(None)
                continue
            given = capacities if isinstance(capacities, int) else capacities[t]
            given = (given,) * len(task.stacks) if isinstance(given, int) else tuple(given)
            tasks.append(self._task(task, given, rows, real_rows or rows, predicated))
        self.memory = np.full(2 * self.size + 192, self.GUARD, np.uint8)
        start = self.memory.ctypes.data + 64
        start += -start % 64
        self.real = start - self.memory.ctypes.data
        self.integer = self.real + self.size
        self.plan = StackPlan(tuple(tasks), start, start + self.size)

    def _task(self, task, capacities, rows, real_rows, predicated):
        ends = {True: 0, False: 0}
        offsets = [0] * len(task.stacks)
        order = sorted(range(len(offsets)), key=lambda i: -task.stacks[i].dtype.size)
        for i in order:
            stack = task.stacks[i]
            offsets[i] = ends[stack.real]
            ends[stack.real] += stack.entry * capacities[i]
        real, integer = (-(-ends[kind] // 8) * 8 for kind in (True, False))
        self.size = max(self.size, -(-(rows + real_rows) * max(real, integer) // 64) * 64)
        return TaskPlan(
            real_rows, rows, real, integer, capacities, tuple(offsets),
            predicated and bool(task.predicate),
        )  # fmt: skip

    def is_whole(self):
        """Whether nothing has been written before the heaps or behind them."""
        outside = [self.memory[: self.real], self.memory[self.integer + self.size :]]
        return all((part == self.GUARD).all() for part in outside)


PREDICATED = """\
kernel predicated(x: ndarray<f64, 1>, gx: ndarray<f64, 1>, steps: ndarray<i32, 1>) stage=ast {
  <i32> $0 = const 0
  <f64> $2 = const 0.0
  <i32> $4 = external_tensor_shape_along_axis [(0, 0)]
  $5 : range_for $0, $4 body {
    <i32> $6 = loop_index $5 [0]
    <*f64> $7 = arg_addr [(0, False)]
    <*f64> $8 = external_ptr $7, $6 ['unsafe']
    <f64> $9 = global_load $8
    <*i32> $11 = arg_addr [(2, False)]
    <*i32> $12 = external_ptr $11, $6 ['unsafe']
    <i32> $13 = global_load $12
    <*f64> $10 = ad_stack_alloca {name='y'}
    <*i32> $15 = ad_stack_alloca {name='j' adjoint=False}
    $16 : ad_stack_push $15, $13
    <u1> $17 = cmp_gt $9, $2
    $18 : if $17 then {
      $19 : ad_stack_claim
      $20 : ad_stack_push $10, $9
      <i32> $21 = ad_stack_load_top $15
      $22 : range_for $0, $21 body {
        <f64> $23 = ad_stack_load_top $10
        <f64> $24 = sin $23
        $25 : ad_stack_push $10, $24
      }
      <f64> $30 = const 1.0
      $31 : ad_stack_acc_adjoint $10, $30
      $32 : range_for $0, $21 {reversed=True} body {
        <f64> $33 = ad_stack_load_top_adj $10
        $34 : ad_stack_pop $10
        <f64> $35 = ad_stack_load_top $10
        <f64> $36 = cos $35
        <f64> $37 = mul $33, $36
        $38 : ad_stack_acc_adjoint $10, $37
      }
      <f64> $39 = ad_stack_load_top_adj $10
      <*f64> $40 = arg_addr [(1, False)]
      <*f64> $41 = external_ptr $40, $6 ['unsafe']
      <f64> $42 = atomic_add $41, $39
    } else {
    }
  }
}
"""
"""``y = sin(sin(... x))``, ``steps`` times, where ``x > 0``: ``gx += dy / dx``."""

PREDICATE = "(predicate gt 0.0 0 0 (var 0))"
