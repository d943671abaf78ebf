"""Kernels with a fault planted in a pass, each from its own seed."""

import random
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from qd_studio.engine.config import CompileConfig
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
_WHOLE = [(sample, name) for sample, name in KERNELS if sample != "geometry"]
"""Without kernels that call functions through a module, of which there are no scripts."""
TRIES = 60
PLAIN = CompileConfig(fast_math=False)
"""Under fast_math passes change floats on purpose, and generated kernels show it."""


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
        return kernel_of(*rng.choice(_WHOLE)), []
    while True:
        program = generate(rng.randrange(10_000), pairs=False)
        scalars = all(group.form == "scalar" for group in program.groups)
        if scalars and not (program.bundles or program.records or program.method):
            break
    # Every array is an argument.
    plain = {"where": "ndarray", "template": False, "layout": "order", "offset": 0}
    groups = tuple([group._replace(**plain) for group in program.groups])
    program = program._replace(groups=groups)
    name = f"{program.name}_{rng.randrange(1 << 30)}"
    kernel = getattr(frontends.load([program], folder, name), program.name, None)
    if kernel is None:  # it is a method after all
        return _kernel(rng, folder)
    return kernel, [Call(tuple(arguments(program)))]


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
            found = bisect_kernel(kernel, "cpu", PLAIN, calls=calls)
        unfit = ("takes too long", "fails on the kernel itself", "arguments are not known",
                 "arguments could not be made")  # fmt: skip
        late = any(text in found.reason for text in unfit)
        if found.state == "agrees" or (found.state == "unknown" and late):
            continue
        return Seeded(kernel, calls, kind, pass_name, phase, plant), found
    raise AssertionError(f"seed {seed}: no fault makes a difference")
