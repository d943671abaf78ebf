"""Faults that depend on the order of iterations and on sizes; see `verdicts`."""

from .verdicts import check, check_capture

__all__ = ["check", "check_capture"]
