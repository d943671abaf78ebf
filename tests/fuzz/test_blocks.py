"""Random kernels with barriers: the CPU's phases give what the interpreter's generators give."""

import importlib.util

import numpy as np
import pytest
from qd_studio import engine as qd

from .blocks import source

SEEDS = range(8)


def run(path, arch, **options):
    qd.init(arch=arch, log_level="error", **options)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    results = []
    for size, m in ((13, 0), (16, 3), (1, 6)):
        out = np.zeros(size, np.int32)
        module.k(out, m)
        results.append(out.tolist())
    qd.reset()
    return results


@pytest.mark.sampled(5)
@pytest.mark.parametrize("seed", SEEDS)
def test_phases_agree_with_generators(seed, tmp_path):
    path = tmp_path / f"blocks_{seed}.py"
    path.write_text(source(seed))
    expected = run(path, qd.interp)
    for options in ({}, {"opt_level": 0}, {"debug": True}):
        assert run(path, qd.cpu, **options) == expected, options
