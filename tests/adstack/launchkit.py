"""Kernels with adstacks as IR text, launched as the runtime launches them."""

import numpy as np
from qd_studio.engine import passes
from qd_studio.engine.ir import parse
from qd_studio.engine.lang.ndarray import Ndarray
from qd_studio.engine.runtime import program
from qd_studio.engine.runtime.compile import Compiled
from qd_studio.engine.types import FieldHandle

from tests.kernels.stackkit import CHAIN

RAGGED = """\
kernel ragged(x: ndarray<f32, 1>, gx: ndarray<f32, 1>, gy: ndarray<f32, 1>, a: ndarray<i32, 1>, n: i32) stage=ast {
  <i32> $0 = const 0
  <i32> $1 = const 1
  <f32> $2 = const 1.0
  <i32> $3 = arg_load [4]
  <i32> $4 = external_tensor_shape_along_axis [(0, 0)]
  $5 : range_for $0, $4 {LOOP} body {
    <i32> $6 = loop_index $5 [0]
    <*f32> $7 = arg_addr [(0, False)]
    <*f32> $8 = external_ptr $7, $6 ['unsafe']
    <f32> $9 = global_load $8
    <*i32> $39 = arg_addr [(3, False)]
    <*i32> $40 = external_ptr $39, $6 ['unsafe']
    <i32> $42 = global_load $40
    <i32> $41 = add $42, $3
CHAIN  }
}
""".replace("CHAIN", CHAIN)  # noqa: E501
"""``y[i] = x[i] ** (a[i] + n)`` by a loop: ``gx[i] += gy[i] * dy / dx``."""

EXACT = "(add (maxover 0 0 (shape 3 0) (max 0 (add (arg 4) (read 3 (var 0))))) 1)"


def compiled(text, predicates=False):
    """The kernel of an IR text, which holds its reverse already, in the current program."""
    owner = program.current()
    func = parse(text)
    cx = passes.PassCx(func, owner.config)
    passes.compile_to_offloads(func, cx)
    if predicates:
        cx.run_pass("recognize_predicates")
    passes.offload_to_executable(func, cx, owner.backend.pipeline(owner.config))
    return owner.backend.load(owner.backend.lower(func, owner.config))


def ragged(size=EXACT, loop=""):
    """`RAGGED` with this size; a number is that of its entries."""
    attr = f"size={size!r}" if isinstance(size, str) else f"max_size={size}"
    text = RAGGED.replace("SIZE", attr).replace(" {LOOP}", f" {{{loop}}}" if loop else "")
    return compiled(text)


def launch(executable, *args):
    """Launch with ndarrays, fields, NumPy arrays and numbers."""
    values, sources = [], []
    for arg in args:
        source = None
        if isinstance(arg, Ndarray):
            source, arg = arg._writes, arg._live()
        elif isinstance(arg, FieldHandle):
            source, arg = arg.writes, arg.flat()
        values.append(arg)
        sources.append(source)
    return program.current().stacks.launch(executable, values, 0, sources)


class Case:
    """`RAGGED` with arguments, and what its gradients should be."""

    def __init__(self, qd, counts, size=EXACT, array=True, loop=""):
        self.counts = np.array(counts, np.int32)
        self.n = len(counts)
        self.kernel = ragged(size, loop)
        self.x = np.linspace(0.5, 1.5, self.n).astype(np.float32)
        self.gy = np.arange(1, self.n + 1).astype(np.float32)
        self.a = self.counts.copy()
        if array:
            self.a = qd.ndarray(qd.i32, (self.n,))
            self.a.from_numpy(self.counts)

    def run(self, n=0):
        gx = np.zeros(self.n, np.float32)
        launch(self.kernel, self.x, gx, self.gy, self.a, n)
        return gx

    def right(self, n=0):
        counts = self.a if isinstance(self.a, np.ndarray) else self.a.to_numpy()
        e = np.maximum(counts + n, 0).astype(np.float64)
        return (e * self.x ** np.maximum(e - 1, 0) * self.gy).astype(np.float32)

    def check(self, n=0):
        np.testing.assert_allclose(self.run(n), self.right(n), rtol=1e-4)

    @property
    def sizer(self):
        return program.current().stacks.sizer(self.kernel)


def installed(kernel, text, *args):
    """Let the kernel, called with these arguments once, be that of an IR text.

    Its parameters must be those of the kernel.
    """
    kernel(*args)
    (variant,) = set(kernel.launchers.variants.values())
    was = variant.compiled
    variant.compiled = Compiled(was.artifact, compiled(text), {}, was.plan)
    kernel.forget_launchers()
    return variant
