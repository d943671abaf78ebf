"""The kinds of machine that passes prepare kernels for."""

from __future__ import annotations

from enum import Enum

__all__ = ["PipelineKind"]


class PipelineKind(Enum):
    """The part of a loop that a thread of a backend runs; see `backends.base.Backend.pipeline`.

    A backend is not a kind: devices of one backend, such as OpenCL's, may be of several.
    """

    CPU = "cpu"
    """A thread runs chunks of a loop, and whole blocks."""

    WIDE_CPU = "cpu with wide vectors"
    """The same; it has 32 registers of 64 bytes."""

    GPU = "gpu"
    """A thread runs single iterations, and waits for the others of its block."""

    GPU_NO_SUBGROUPS = "gpu without subgroups"
    """The same; threads exchange values through shared memory alone."""

    TENSOR_GPU = "gpu with tensor cores"
    """The same as a GPU; subgroups of 32 threads multiply fragments of matrices, too."""

    VECTOR_ATOMICS_GPU = "gpu with tensor cores and vector atomics"
    """The same as a GPU with tensor cores; it adds to two or four neighbouring floats at once."""

    WARPGROUP_GPU = "gpu with tensor cores for warpgroups, and vector atomics"
    """The same; four subgroups multiply matrices in shared memory, too."""

    INTERP = "interp"
    """Loops stay as they are written; one thread runs them."""

    @property
    def is_cpu(self) -> bool:
        """True for all kinds of CPU."""
        return self in (PipelineKind.CPU, PipelineKind.WIDE_CPU)

    @property
    def is_gpu(self) -> bool:
        """True for all kinds of GPU."""
        return self.has_subgroups or self is PipelineKind.GPU_NO_SUBGROUPS

    @property
    def has_subgroups(self) -> bool:
        """True for GPUs whose subgroups exchange values."""
        return self is PipelineKind.GPU or self.has_tensor_cores

    @property
    def has_tensor_cores(self) -> bool:
        """True for GPUs whose subgroups multiply fragments of matrices."""
        return self is PipelineKind.TENSOR_GPU or self.has_vector_atomics

    @property
    def has_vector_atomics(self) -> bool:
        """True for GPUs that add to several neighbouring floats at once."""
        return self is PipelineKind.VECTOR_ATOMICS_GPU or self.has_warpgroups

    @property
    def has_warpgroups(self) -> bool:
        """True for GPUs on which four subgroups multiply matrices in shared memory."""
        return self is PipelineKind.WARPGROUP_GPU
