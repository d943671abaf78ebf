"""Full code for the simulator, made by the helper process."""

from __future__ import annotations

from typing import Any

from qd_studio.engine.backends.cuda import nvptx

from .code import MARK, with_ir

__all__ = ["FullJob", "made"]


class FullJob(nvptx.FullJob):
    """A job that is one of the simulator also when that has ended: its code may be kept."""

    def make(self) -> bytes:
        return made(*self)

    def plain(self) -> tuple[str, tuple[Any, ...]]:
        return __name__, tuple(self)


def made(text: str, arch: str, level: int) -> bytes:
    """The code of a job; see `FullJob.plain`."""
    ptx = nvptx.make_ptx(text, arch, level, alone=True)
    return (ptx if MARK in ptx else with_ir(ptx, text)).encode()
