"""Targets by name, and how many blocks a multiprocessor holds, against the toolkit's calculator."""

import pytest
from qd_studio.engine.backends.cuda import archs
from qd_studio.engine.config import CompileConfig


def test_a_name_that_is_none_is_reported_with_all_there_are():
    with pytest.raises(ValueError, match=r"'sm_9'.*did you mean \"sm_90\".*known: sm_60, sm_61"):
        archs.check("sm_9")
    assert archs.wanted(CompileConfig(cuda_arch="sm_80")) == "sm_80"
    assert archs.wanted(CompileConfig()) == ""


@pytest.mark.parametrize(
    ("capability", "name"),
    [
        ((7, 5), "sm_75"),
        ((9, 0), "sm_90a"),
        ((8, 8), "sm_87"),
        ((13, 0), "sm_121"),
        ((5, 0), "sm_60"),
    ],
)
def test_a_device_runs_code_of_the_newest_target_that_is_not_newer(capability, name):
    assert archs.of_capability(*capability) == name


@pytest.mark.parametrize(
    ("arch", "block_dim", "registers", "shared", "blocks", "limit"),
    [
        ("sm_90", 128, 10, 0, 16, "threads"),
        ("sm_90", 128, 33, 0, 12, "registers"),
        ("sm_90", 32, 16, 0, 32, "blocks"),
        ("sm_90", 128, 255, 0, 2, "registers"),
        ("sm_90", 128, 32, 50_000, 4, "shared memory"),
        ("sm_90", 128, 32, 240_000, 0, "shared memory"),
        ("sm_75", 1024, 64, 0, 1, "threads"),
        ("sm_75", 1024, 72, 0, 0, "registers"),
        ("sm_75", 128, 32, 0, 8, "threads"),
        ("sm_86", 33, 32, 0, 16, "blocks"),
    ],
)
def test_occupancy(arch, block_dim, registers, shared, blocks, limit):
    found = archs.occupancy(archs.check(arch), block_dim, registers, shared)
    assert (found.blocks, found.limit) == (blocks, limit)
    assert found.warps == blocks * -(-block_dim // 32)
    assert found.share == found.warps / archs.check(arch).warps
