"""Under debug every launch of OpenCL waits, so that its own call raises what went wrong."""

import pytest
from qd_studio import engine as qd

A1 = qd.types.ndarray(qd.f32, 1)


@qd.kernel
def chain(x: A1, y: A1, n: qd.i32):
    for i in range(x.shape[0]):
        v = x[i]
        for _ in range(n):
            v = v * v * 0.5
        y[i] += v


@pytest.mark.parametrize("debug", [True, False])
def test_a_full_adstack_is_raised_by_its_own_call_under_debug(debug):
    qd.init(
        arch=qd.opencl, enable_fallback=False, offline_cache=False, debug=debug,
        ad_stack_experimental_enabled=True, ad_stack_size=2,
    )  # fmt: skip
    try:
        x, y = (qd.ndarray(qd.f32, (3,), needs_grad=True) for _ in range(2))
        for _ in range(3):
            chain.grad(x, y, 1)
            if debug:
                with pytest.raises(qd.QuadrantsAssertionError, match="Adstack overflow"):
                    chain.grad(x, y, 5)
            else:
                chain.grad(x, y, 5)
                with pytest.raises(qd.QuadrantsAssertionError, match="Adstack overflow"):
                    qd.sync()
    finally:
        qd.reset()
