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

    GPU = "gpu"
    """A thread runs single iterations, and waits for the others of its block."""

    TENSOR_GPU = "tensor_gpu"
    """A GPU on which subgroups of 32 threads multiply fragments of matrices (`fragment_mma`)."""

    INTERP = "interp"
    """Loops stay as they are written; one thread runs them."""

    @property
    def is_gpu(self) -> bool:
        """True for GPUs with and without tensor cores."""
        return self in (PipelineKind.GPU, PipelineKind.TENSOR_GPU)
