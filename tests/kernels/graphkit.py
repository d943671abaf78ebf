"""Arrays of graph kernels' tests."""

import numpy as np
from qd_studio import engine as qd


def ints(*values):
    array = qd.ndarray(qd.i32, (len(values),))
    array.from_numpy(np.array(values, np.int32))
    return array


def flag(value):
    array = qd.ndarray(qd.i32, ())
    array.fill(value)
    return array
