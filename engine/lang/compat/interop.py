"""``qd.interop``: handles of the device for other libraries."""

from __future__ import annotations

__all__ = ["get_mps_command_queue"]


def get_mps_command_queue() -> int:
    """The address of the Metal command queue of PyTorch: 0, as there is no Metal backend."""
    return 0
