"""Kernels with adstacks in IR: the gradients of small programs, written by hand."""

from qd_studio.engine.ir import parse

POWER = """\
kernel power(x: ndarray<f32, 1>, gx: ndarray<f32, 1>, gy: ndarray<f32, 1>, n: i32) stage=lowered {
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
  }
}
"""
"""``y[i] = x[i] ** (n * (i + 1))`` by a loop: ``gx[i] += gy[i] * dy / dx``."""


def power(size=""):
    """`POWER` with attributes for its stack."""
    return parse(POWER.replace(" SIZE", size and " " + size))
