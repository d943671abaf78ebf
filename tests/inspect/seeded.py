"""Kernels with a fault planted in a pass, each from its own seed."""

import random
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from qd_studio.engine.inspect.arguments import Call
from qd_studio.engine.inspect.bisect import bisect_kernel

from tests.fuzz import frontends
from tests.fuzz.cases import arguments
from tests.fuzz.generate import generate
from tests.samples.sample_files import KERNELS, kernel_of

from .miscompiles import FAULTS, planted

PASSES = ("die", "alg_simp", "constant_fold", "extract_constant", "cfg_optimization", "simplify",
          "loop_invariant_code_motion", "demote_atomics", "type_check")  # fmt: skip
PHASES = ("simplify_I", "simplify_II", "simplify_III", "before_lower_access", "simplify_IV",
          "offload_to_executable", "lower")  # fmt: skip
TRIES = 60


class Seeded(NamedTuple):
    """A kernel with its calls, and the fault: a context manager that plants it."""

    kernel: Any
    calls: list[Call]
    kind: str
    pass_name: str
    phase: str
    plant: Any


def _kernel(rng: random.Random, folder: Path) -> tuple[Any, list[Call]]:
    if rng.random() < 0.5:
        return kernel_of(*rng.choice(KERNELS)), []
    for _ in range(20):
        program = generate(rng.randrange(10_000), pairs=False)._replace(records=(), method=None)
        if not (program.groups or program.bundles):
            break
    else:
        return kernel_of(*rng.choice(KERNELS)), []
    name = f"{program.name}_{rng.randrange(1 << 30)}"
    module = frontends.load([program], folder, name)
    return getattr(module, program.name), [Call(tuple(arguments(program)))]


def _matches(phase: str, cx: Any) -> bool:
    return cx.phase == phase


def seeded(seed: int, folder: Path) -> tuple[Seeded, Any]:
    """The fault of this seed, and what a bisection finds: the first one that makes a difference."""
    rng = random.Random(seed)
    kinds = list(FAULTS)
    for turn in range(TRIES):
        kind = kinds[(seed + turn) % len(kinds)]
        kernel, calls = _kernel(rng, folder)
        pass_name, phase = rng.choice(PASSES), rng.choice(PHASES)
        make = partial(random.Random, rng.randrange(1 << 30))
        plant = partial(planted, pass_name, FAULTS[kind], partial(_matches, phase), make)
        with plant():
            found = bisect_kernel(kernel, "cpu", calls=calls)
        late = "takes too long" in found.reason or "fails on the kernel itself" in found.reason
        if found.state == "agrees" or (found.state == "unknown" and late):
            continue
        return Seeded(kernel, calls, kind, pass_name, phase, plant), found
    raise AssertionError(f"seed {seed}: no fault makes a difference")
