"""The kinds of machine that passes prepare kernels for."""

from __future__ import annotations

from enum import Enum

__all__ = ["PipelineKind"]


class PipelineKind(Enum):
    """What a backend's threads take of a loop; `backends.base.Backend.pipeline` says which.

    A backend is not a kind: devices of one backend, such as OpenCL's, may be of several.
    """

    CPU = "cpu"
    """A thread takes chunks of a loop, and whole blocks."""

    GPU = "gpu"
    """A thread takes single iterations, and waits for the others of its block."""

    INTERP = "interp"
    """Loops stay as they are written; one thread runs them."""
