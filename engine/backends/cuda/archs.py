"""The NVIDIA processors that code can be made for, and what one multiprocessor of each holds.

Needs no device and no library. The limits are those of the table "Technical Specifications per
Compute Capability" of NVIDIA's CUDA C++ Programming Guide; the grain of register and shared memory
allocation is that of ``cuda_occupancy.h`` of the toolkit. `occupancy` computes with them what the
toolkit's occupancy calculator does.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from ...named_tuple import NamedTuple
from ...options import did_you_mean

if TYPE_CHECKING:
    from ...config import CompileConfig

__all__ = [
    "ARCHS", "DEFAULT", "Arch", "Occupancy", "check", "names", "occupancy", "of_capability",
    "wanted",
]  # fmt: skip

WARP: Final = 32
_REGISTER_GRAIN: Final = 256
"""Registers that a warp is given at a time."""


class Arch(NamedTuple):
    """A processor. Sizes in bytes; all limits but the last two are those of a multiprocessor.

    reserved: shared memory of each block that the system uses. grain: shared memory that a block
    is given at a time. block_shared: most that a block may ask for.
    """

    name: str
    title: str
    warps: int
    blocks: int
    shared: int
    block_shared: int
    reserved: int = 1024
    grain: int = 128
    registers: int = 65536
    partitions: int = 4

    @property
    def capability(self) -> tuple[int, int]:
        """(9, 0) for ``sm_90``."""
        number = int(self.name[3:].rstrip("af"))
        return number // 10, number % 10

    @property
    def multiplies_fragments(self) -> bool:
        """True if it has the instructions of `fragment_mma` and of asynchronous copies."""
        return self.capability >= (8, 0)

    @property
    def multiplies_shared(self) -> bool:
        """True if it has the instructions of `warpgroup_mma`, which no later processor has."""
        return self.name == "sm_90a"

    @property
    def adds_vectors(self) -> bool:
        """True if it has atomic sums of two and four floats."""
        return self.capability >= (9, 0)


_K: Final = 1024

ARCHS: Final = {
    arch.name: arch
    for arch in (
        Arch("sm_60", "Pascal, P100", 64, 32, 64 * _K, 48 * _K, 0, 256, partitions=2),
        Arch("sm_61", "Pascal, GTX 10", 64, 32, 96 * _K, 48 * _K, 0, 256),
        Arch("sm_70", "Volta, V100", 64, 32, 96 * _K, 96 * _K, 0, 256),
        Arch("sm_72", "Volta, Xavier", 64, 32, 96 * _K, 96 * _K, 0, 256),
        Arch("sm_75", "Turing, T4, RTX 20", 32, 16, 64 * _K, 64 * _K, 0, 256),
        Arch("sm_80", "Ampere, A100", 64, 32, 164 * _K, 163 * _K),
        Arch("sm_86", "Ampere, A10, RTX 30", 48, 16, 100 * _K, 99 * _K),
        Arch("sm_87", "Ampere, Orin", 48, 16, 164 * _K, 163 * _K),
        Arch("sm_89", "Ada, L4, L40, RTX 40", 48, 24, 100 * _K, 99 * _K),
        Arch("sm_90", "Hopper, H100, H200", 64, 32, 228 * _K, 227 * _K),
        Arch("sm_90a", "Hopper with its own features", 64, 32, 228 * _K, 227 * _K),
        Arch("sm_100", "Blackwell, B100, B200", 64, 32, 228 * _K, 227 * _K),
        Arch("sm_103", "Blackwell, B300", 64, 32, 228 * _K, 227 * _K),
        Arch("sm_120", "Blackwell, RTX 50", 48, 24, 100 * _K, 99 * _K),
        Arch("sm_121", "Blackwell, GB10", 48, 24, 100 * _K, 99 * _K),
    )
}
"""By name."""

DEFAULT: Final = "sm_90"
"""The architecture to compile for if the options name none and there is no device."""


def names() -> tuple[str, ...]:
    """Every processor, oldest first."""
    return tuple(ARCHS)


def check(name: str) -> Arch:
    """The processor called ``name``. ValueError, with all there are, if there is none."""
    found = ARCHS.get(name)
    if found is None:
        near, known = did_you_mean(name, ARCHS), ", ".join(ARCHS)
        raise ValueError(f"there is no CUDA target {name!r}{near}; known: {known}")
    return found


def wanted(config: CompileConfig) -> str:
    """The processor that the options ask for; empty for that of the device.

    ValueError, with all there are, if there is no such one.
    """
    return check(config.cuda_arch).name if config.cuda_arch else ""


def of_capability(major: int, minor: int) -> str:
    """The name of the newest processor here that code for this compute capability can run on.

    A device newer than all of them runs code of its family's, or the last one's.
    """
    own = [arch.name for arch in ARCHS.values() if arch.capability == (major, minor)]
    if own:
        return own[-1]  # with the features that no other processor has
    plain = [arch for arch in ARCHS.values() if re.fullmatch(r"sm_\d+", arch.name)]
    fitting = [arch.name for arch in plain if arch.capability <= (major, minor)]
    return fitting[-1] if fitting else plain[0].name


class Occupancy(NamedTuple):
    """The share of a multiprocessor that a kernel can keep busy.

    blocks: that it holds at a time; 0 if the block does not fit at all. warps: of these blocks.
    share: of the warps that it could hold. limit: the resource that allows no more: threads,
    blocks, registers, shared memory.
    """

    blocks: int
    warps: int
    share: float
    limit: str


def occupancy(arch: Arch, block_dim: int, registers: int, shared: int) -> Occupancy:
    """The occupancy of blocks of these threads, registers a thread, and bytes of shared memory.

    A warp's registers are rounded up and are in one partition of the multiprocessor; a block is
    refused if, with a warp in every partition, it needs more than there are.
    """
    warps = max(1, -(-block_dim // WARP))
    of_warp = -(-registers * WARP // _REGISTER_GRAIN) * _REGISTER_GRAIN
    limits = {"threads": arch.warps // warps, "blocks": arch.blocks}
    if of_warp:
        in_partition = arch.registers // arch.partitions // of_warp
        even = -(-warps // arch.partitions) * arch.partitions
        fits = of_warp * even <= arch.registers
        limits["registers"] = in_partition * arch.partitions // warps if fits else 0
    taken = -(-(shared + arch.reserved) // arch.grain) * arch.grain
    if taken:
        limits["shared memory"] = arch.shared // taken if shared <= arch.block_shared else 0
    blocks = min(limits.values())
    limit = next(name for name, value in limits.items() if value == blocks)
    held = blocks * warps
    return Occupancy(blocks, held, held / arch.warps, limit)
