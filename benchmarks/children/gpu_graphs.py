"""Kernels of the GPU benchmark that are graphs."""

from qd_studio import engine as qd

Row = qd.types.NDArray[qd.f32, 1]
Flag = qd.types.NDArray[qd.i32, 0]


@qd.kernel(graph=True)
def four_tasks_graph(x: Row):
    for i in range(x.shape[0]):
        x[i] = x[i] + 1.0
    for i in range(x.shape[0]):
        x[i] = x[i] * 1.5
    for i in range(x.shape[0]):
        x[i] = x[i] - 0.25
    for i in range(x.shape[0]):
        x[i] = x[i] * 0.5


@qd.kernel(graph=True)
def rounds(x: Row, left: Flag):
    while qd.graph.do_while(left):
        for i in range(x.shape[0]):
            x[i] = x[i] + 1.0
        for _i in range(1):
            left[()] = left[()] - 1
