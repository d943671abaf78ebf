"""What caches know of kernels that are differentiated: each mode has entries of its own."""

import pytest
from qd_studio import engine as qd

from tests.caches import offline_kit as kit
from tests.caches.lab import Lab

PROGRAM = """
GRADS = qd.types.NDArray[qd.f32, 1]

@qd.kernel(fastcache=True)
def k(a: GRADS, b: GRADS):
    for i in a:
        v = 1.0
        for j in range(i):
            v *= a[i]
        b[i] = v * 2.0

def modes():
    return {mode: k.in_mode(mode) for mode in ("reverse", "forward", "validation")}

def main():
    a, b = (qd.ndarray(qd.f32, 4, needs_grad=True, needs_dual=True) for _ in range(2))
    a.fill(3.0)
    a.dual.fill(1.0)
    k(a, b)
    out = [b.to_numpy().tolist()]
    b.grad.fill(1.0)
    k.grad(a, b)
    out.append(a.grad.to_numpy().tolist())
    modes()["forward"](a, b)
    out.append(b.dual.to_numpy().tolist())
    modes()["validation"](a, b)
    return out
"""


@pytest.fixture
def lab(tmp_path):
    found = Lab(tmp_path)
    found.options = {"ad_stack_experimental_enabled": True}
    return found


def states(lab):
    with lab.started() as module:
        value = module.main()
        kernels = {"none": module.k, **module.modes()}
        return value, {mode: lab.seen(kernel).state for mode, kernel in kernels.items()}


EXPECTED = [[2.0, 6.0, 18.0, 54.0], [0.0, 2.0, 12.0, 54.0], [0.0, 2.0, 12.0, 54.0]]


def test_fastcache_finds_each_mode_again(lab):
    lab.write(PROGRAM)
    modes = ("none", "reverse", "forward", "validation")
    assert states(lab) == (EXPECTED, dict.fromkeys(modes, "miss"))
    assert states(lab) == (EXPECTED, dict.fromkeys(modes, "hit"))
    lab.edit("v * 2.0", "v * 4.0")
    doubled = [[2 * x for x in row] for row in EXPECTED]
    assert states(lab) == (doubled, dict.fromkeys(modes, "miss"))


def test_arrays_with_and_without_duals_are_distinguished(lab):
    lab.write(PROGRAM)
    states(lab)
    lab.edit("needs_grad=True, needs_dual=True", "needs_grad=True, needs_dual=(_ == 0)")
    lab.edit("    a.dual.fill(1.0)\n", "    a.dual.fill(1.0)\n")
    lab.edit("out.append(b.dual.to_numpy().tolist())", "out.append(b.dual)")
    value, found = states(lab)
    assert value == [*EXPECTED[:2], None]
    assert found["forward"] == "miss"


def test_modes_differ_in_the_key_of_the_offline_cache(tmp_path):
    text = """
x, y = (qd.field(qd.f32, 3, needs_grad=True, needs_dual=True) for _ in range(2))

@qd.kernel
def k():
    for i in x:
        y[i] = 2.0 * x[i]
"""
    options = {"offline_cache": True, "offline_cache_file_path": str(tmp_path / "cache")}

    def run():
        kit.start(**options)
        kernel = kit.module(tmp_path / "program.py", text).k
        of = {mode: kernel.in_mode(mode) for mode in ("reverse", "forward", "validation")}
        of["none"] = kernel
        for one in of.values():
            one()
        return {mode: kit.seen(one) for mode, one in of.items()}

    first = run()
    assert {one.state for one in first.values()} == {"miss"}
    assert len({one.key for one in first.values()}) == 4
    kit.forget()
    assert {one.state for one in run().values()} == {"hit"}
    qd.reset()
