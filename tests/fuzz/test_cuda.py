"""Generated kernels and gradients agree on CUDA: on a device if there is one, else simulated."""

from __future__ import annotations

import pytest
from qd_studio import engine as qd

from tests import cuda_sim
from tests.cuda_sim import launching

from . import campaign, gradients, mappings
from .configs import CUDA_VARIANTS

BATCHES = [range(start, start + 6) for start in range(0, 60, 6)]


@pytest.mark.slow
@pytest.mark.cuda(share=True)
@pytest.mark.parametrize("seeds", BATCHES, ids=lambda r: f"{r.start}-{r.stop - 1}")
def test_kernels_agree_on_cuda(seeds, capsys):
    with cuda_sim.cuda():
        device = launching.opened()
        tally, failures = campaign.run(
            seeds, tell=lambda text: None, small=False, variants=CUDA_VARIANTS, thorough=True
        )
        device.end()
    capsys.readouterr()  # divisions by zero are meant: their warnings say nothing here
    assert not failures, "\n".join(failures)
    assert tally.programs + tally.skipped == len(seeds)
    assert {v.name for v in CUDA_VARIANTS if not v.fast} <= set(tally.by_config)


@pytest.mark.slow
@pytest.mark.cuda(share=True)
@pytest.mark.parametrize("parts", [False, True], ids=["plain", "parts"])
@pytest.mark.parametrize("start", range(0, 16, 4))  # a kernel takes 5 s on the simulator
def test_gradients_are_right_on_cuda(start, parts, capsys):
    with cuda_sim.cuda():
        tally, failures = gradients.run(
            range(start, start + 2), lambda text: None, small=False, parts=parts, arch=qd.cuda
        )
    capsys.readouterr()
    assert not failures, "\n".join(failures)
    assert tally.kinds["ok"] >= 1 and tally.compared > 20


@pytest.mark.sampled(3)
@pytest.mark.cuda(share=True)
@pytest.mark.parametrize("start", range(0, 30, 10))
def test_mapped_loops_agree(start):
    tally, failures = mappings.run_mappings(range(start, start + 10))
    assert not failures, "\n".join(failures)
    assert tally.programs == 10
