"""Generated kernels and gradients agree on OpenCL, with loops mapped for CPUs and for GPUs."""

from __future__ import annotations

import pytest
from qd_studio import engine as qd

from tests.backend_variants.backends import MAPPINGS, OPENCL, opencl
from tests.cuda_sim import launching

from . import campaign, gradients
from .configs import OPENCL_VARIANTS

pytestmark = [
    pytest.mark.opencl,
    pytest.mark.skipif(not OPENCL.possible(), reason="there is no OpenCL device here"),
]


@pytest.mark.parametrize(
    ("mapping", "seeds"), [("chunks", range(3, 4)), ("lanes", range(5, 7))], ids=MAPPINGS
)
def test_kernels_agree_on_opencl(mapping, seeds, capsys):
    with opencl():
        device = launching.opened("opencl", opencl_mapping=mapping)
        every = OPENCL_VARIANTS[mapping]
        tally, failures = campaign.run(
            seeds, tell=lambda text: None, small=False,
            variants=(*every[:2], *[variant for variant in every if variant.tiers]),
            thorough=True, arch=qd.opencl, options={"opencl_mapping": mapping},
        )  # fmt: skip
        device.end()
    capsys.readouterr()  # divisions by zero are meant: their warnings say nothing here
    assert not failures, "\n".join(failures)
    assert tally.programs + tally.skipped == len(seeds)
    assert OPENCL_VARIANTS[mapping][0].name in tally.by_config


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("mapping", "seed"), [("chunks", 0), ("lanes", 5)], ids=MAPPINGS)
def test_gradients_are_right_on_opencl(mapping, seed, capsys):
    with opencl():
        tally, failures = gradients.run(
            range(seed, seed + 1), lambda text: None, small=False, arch=qd.opencl,
            opencl_mapping=mapping,
        )  # fmt: skip
    capsys.readouterr()
    assert not failures, "\n".join(failures)
    assert tally.kinds["ok"] >= 1 and tally.compared > 20
