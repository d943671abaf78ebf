"""The AMD processors that code can be made for, and what a compute unit of each holds.

Needs no device and no library. The limits are those of LLVM's "User Guide for AMDGPU Backend" and
of its model of occupancy (`AMDGPUSubtarget`), which `occupancy` follows.
"""

from __future__ import annotations

from typing import Final

from ...named_tuple import NamedTuple

__all__ = ["ARCHS", "DEFAULT", "Arch", "Occupancy", "occupancy"]

_K: Final = 1024


class Arch(NamedTuple):
    """A processor. wave: lanes of a wave. simds: that the waves of a block are spread over.

    waves: that a SIMD holds. vgprs: registers of a lane in the file of a SIMD; agprs are taken of
    the same. vgpr_grain: registers that a wave is given at a time. sgprs_limit: whether scalar
    registers keep waves away. lds: bytes for the blocks on these SIMDs; lds_grain: given at a time.
    block_lds: most that a block may have. barriers: blocks of several waves at a time.
    """

    name: str
    title: str
    wave: int
    simds: int
    waves: int
    vgprs: int
    vgpr_grain: int
    sgprs_limit: bool
    lds: int
    lds_grain: int
    block_lds: int
    barriers: int


ARCHS: Final = {
    arch.name: arch
    for arch in (
        Arch("gfx90a", "CDNA 2, MI200", 64, 4, 8, 512, 8, True, 64 * _K, 512, 64 * _K, 16),
        Arch("gfx942", "CDNA 3, MI300", 64, 4, 8, 512, 8, True, 64 * _K, 512, 64 * _K, 16),
        Arch("gfx1100", "RDNA 3, RX 7900", 32, 4, 16, 1536, 24, False, 128 * _K, 1024, 64 * _K, 32),
    )
}
"""By name."""

DEFAULT: Final = "gfx942"
"""The processor that kernels are compiled for if no option names one."""


class Occupancy(NamedTuple):
    """The waves of a kernel that a SIMD can hold at a time, and the most that it can hold of any.

    limit: the resource that prevents more: waves, vgprs, sgprs, LDS, blocks.
    """

    waves: int
    most: int
    limit: str


def occupancy(arch: Arch, block_dim: int, vgprs: int, sgprs: int, lds: int) -> Occupancy:
    """The occupancy of blocks of ``block_dim`` threads.

    vgprs: with the agprs. lds: bytes of a block.
    """
    of_block = max(1, -(-block_dim // arch.wave))
    given = max(1, -(-vgprs // arch.vgpr_grain)) * arch.vgpr_grain
    room = arch.waves * arch.simds
    limits = {
        "waves": arch.waves,
        "vgprs": min(arch.waves, arch.vgprs // given),
        # A SIMD of the processors with a limit has 800 scalar registers.
        "sgprs": min(arch.waves, 800 // max(1, sgprs)) if arch.sgprs_limit else arch.waves,
        "blocks": -(-min(room // of_block, arch.barriers if of_block > 1 else room)
                    * of_block // arch.simds),
    }  # fmt: skip
    if lds:
        blocks = arch.lds // (-(-lds // arch.lds_grain) * arch.lds_grain)
        limits["LDS"] = min(arch.waves, -(-blocks * of_block // arch.simds))
    waves = min(limits.values())
    limit = next(name for name, value in limits.items() if value == waves)
    return Occupancy(waves, arch.waves, limit)
