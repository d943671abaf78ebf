"""Sizes that determine_ad_stack_size finds are enough for what random kernels push."""

import random

import numpy as np
from qd_studio.engine.adstack.host_eval import Env, evaluate
from qd_studio.engine.adstack.size_expr import parse
from qd_studio.engine.backends import interp
from qd_studio.engine.config import CompileConfig
from qd_studio.engine.errors import QuadrantsCompilationError, QuadrantsRuntimeError
from qd_studio.engine.ir import Func, verify
from qd_studio.engine.ir import codes as C
from qd_studio.engine.ir.edit import walk
from qd_studio.engine.passes import PassCx

from tests.adstack.random_kernels import PARAMS, Maker


def arguments(rng: random.Random) -> list[object]:
    size = rng.choice([0, 1, 3, 5])
    return [
        rng.randint(-2, 5),
        np.array([rng.randint(-2, 6) for _ in range(size)], dtype=np.int32),
        np.array([rng.randint(-3, 5) for _ in range(6)], dtype=np.int64).reshape(2, 3),
        np.array([rng.randint(0, 5) for _ in range(4)], dtype=np.uint8),
    ]


def give_sizes(func: Func, values: list[object]) -> None:
    """Each stack gets exactly the entries that its size asks for."""
    env = Env(PARAMS, values)
    for op in walk(func.body):
        if op.code == C.AD_STACK_ALLOCA and op.attr.size:
            entries = max(evaluate(parse(op.attr.size), env), 1)
            op.attr = op.attr._replace(max_size=entries)


def check_kernel(seed: int) -> str:
    """What became of one random kernel."""
    rng = random.Random(seed)
    func = Maker(rng).make()
    assert not verify(func), verify(func)
    try:
        PassCx(func, CompileConfig()).run_pass("determine_ad_stack_size")
    except QuadrantsCompilationError as error:
        assert "is not known before the launch" in error.message
        return "refused"
    for _ in range(4):
        values = arguments(rng)
        give_sizes(func, values)
        try:
            interp.run(func, values, max_steps=20_000)
        except QuadrantsRuntimeError as error:
            # Too many steps, or it reads outside of an empty array; not a full stack.
            assert "stack" not in error.message.lower(), (seed, error)
    return "sized"


def test_random_kernels_have_room() -> None:
    found = [check_kernel(seed) for seed in range(150)]
    assert found.count("sized") > 100
    assert "refused" in found
