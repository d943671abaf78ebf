"""Arrays with gradients, for tests of `inspect.check_gradient`."""

import numpy as np
from qd_studio import engine as qd

F32 = qd.types.ndarray(qd.f32, 1)
F64 = qd.types.ndarray(qd.f64, 1)
I32 = qd.types.ndarray(qd.i32, 1)


def f32(*values):
    return array(qd.f32, np.float32, values)


def f64(*values):
    return array(qd.f64, np.float64, values)


def array(dtype, numpy, values):
    made = qd.ndarray(dtype, (len(values),), needs_grad=True)
    made.from_numpy(np.asarray(values, numpy))
    return made


def i32(*values):
    made = qd.ndarray(qd.i32, (len(values),))
    made.from_numpy(np.asarray(values, np.int32))
    return made
