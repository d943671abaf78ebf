"""The result of `bisect`, as plain data."""

from __future__ import annotations

from typing import Final

import msgspec

from .record_launch import LaunchRecord

__all__ = ["SCRIPT", "Bisection", "ChangedOp", "Commit", "Judged", "Reproducer"]

SCRIPT: Final = "script"
"""The file of lines of a written script."""


class ChangedOp(msgspec.Struct, frozen=True, kw_only=True):
    """An op that the culprit changed. before, after: its line of IR, empty where there is none; the
    same text if it was moved. file, line, col: of the user's source, if known."""

    op: int
    before: str
    after: str
    file: str = ""
    line: int = 0
    col: int = 0
    func: str = ""


class Commit(msgspec.Struct, frozen=True, kw_only=True):
    """A commit of the user's repository. files: those of the kernel that it changed. left: commits
    that could not be judged; each may be the first bad one instead."""

    hash: str
    subject: str
    author: str = ""
    date: str = ""
    files: tuple[str, ...] = ()
    left: tuple[str, ...] = ()


class Bisection(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a bisection.

    state: found, agrees (nothing is wrong) or unknown. reason: of a state that is not found. part:
    the part at fault: frontend, pass, code, or commit. evidence: why: ir (the interpreter computes
    something else after the pass), race (iterations compete after the pass), exposed (the code is
    wrong only with the pass), differences (of the kernel, for its gradient), code, metric (a figure
    is worse with it), commit, or results (of a commit: they differ from those before, and none of
    them is wrong). run: the index among the runs of the compile. stage, round, task,
    pass_name: of the run. changes: the fewest changes that make the IR wrong. more: of them, not in
    ``changes``. difference: what is wrong after the culprit. observed: what is wrong on the
    backend. states: the states of the IR. trials: interpretations, launches and compiles. before,
    after: the IR around the culprit.

    metric: what became worse; empty for results. good, bad: the figures. sides: what was compared.
    settings: the differences of the sides that matter. commit: the first bad one.
    """

    kernel: str
    backend: str
    state: str
    reason: str = ""
    workload: str = ""
    part: str = ""
    evidence: str = ""
    run: int = -1
    stage: str = ""
    round: int = 0
    task: int | None = None
    pass_name: str = ""
    changes: tuple[ChangedOp, ...] = ()
    more: int = 0
    difference: str = ""
    observed: str = ""
    states: int = 0
    trials: int = 0
    seconds: float = 0.0
    before: str = ""
    after: str = ""
    metric: str = ""
    good: str = ""
    bad: str = ""
    sides: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    commit: Commit | None = None

    def title(self) -> str:
        """The culprit in words."""
        if self.part == "commit" and self.commit is not None:
            return f"commit {self.commit.hash} ({self.commit.subject})"
        if self.part != "pass":
            how = " under fast_math" if "fast_math" in self.settings else ""
            return {"code": f"code generation of {self.backend}{how}"}.get(self.part, self.part)
        if not self.stage:
            return f"{self.pass_name} (all its runs)"
        rounds = f", round {self.round}" if self.round else ""
        task = "" if self.task is None else f", task {self.task}"
        return f"{self.pass_name} ({self.stage}{rounds}{task})"


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict on a kernel of one revision.

    state: right, wrong, measured, or unknown with the reason. value: of the metric, for
    ``backend``. launch: of the metric ``time``. results: an archive of arrays. modules: files of
    Python that were imported.
    """

    state: str
    reason: str = ""
    backend: str = ""
    value: float = 0.0
    launch: LaunchRecord | None = None
    results: bytes = b""
    modules: tuple[str, ...] = ()


class Reproducer(msgspec.Struct, frozen=True, kw_only=True):
    """A small script that shows a wrong result.

    bisection: of the kernel in the script; the file of lines of the script is `SCRIPT`. script: its
    text; empty if there is none, then reason says why. lines: of the kernel in it,
    lines_before: of the kernel as it was. trials: versions that were tried.
    """

    bisection: Bisection
    script: str = ""
    reason: str = ""
    lines: int = 0
    lines_before: int = 0
    trials: int = 0
