"""``qd._lib``: programs ask its ``core`` which backends the machine can run."""

from . import core

__all__ = ["core"]
