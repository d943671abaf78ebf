"""The tour: what its steps say, and when each is done. Pure.

A step is done when the user has done it, wherever it was started from; `Where` is what it is judged
by. In its text ``{id}`` is the key of a command.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from .state import Selection

__all__ = ["OFFER", "STEPS", "Step", "Where"]


class Where(NamedTuple):
    """screen: name of the class of the screen. looks: how many looks at the files are over."""

    screen: str
    sel: Selection
    looks: int


@dataclass(frozen=True, slots=True)
class Step:
    """done: for where the step began and where the user is. edits: the tour offers to change its
    own file."""

    text: str
    done: Callable[[Where, Where], bool]
    edits: bool = False


OFFER: Final = (
    "Is this your first time here? {tour-next} starts a tour of two minutes, {tour-end} hides this "
    "line. `qd-studio tour` starts it later."
)

STEPS: Final[tuple[Step, ...]] = (
    Step(
        "The matrix: a row for each kernel, columns for each backend. Launch is the median time; a "
        "✓ says that the results equal those of the interpreter. {line-down} and {line-up} move, "
        "{choose} opens a kernel: open one.",
        lambda _, now: now.screen == "KernelScreen",
    ),
    Step(
        "Source: next to each line how many IR statements it has, before and after the passes. "
        "{tab-passes} goes to the passes.",
        lambda _, now: now.sel.tab == "passes",
    ),
    Step(
        "Passes: each run of a pass, in order; ● changed the IR, and the diff shows what. "
        "{next-pass} goes to the next one that did.",
        lambda before, now: now.sel.tab == "passes" and now.sel.run != before.sel.run,
    ),
    Step(
        "{form} switches between two forms of the IR: one with your names and infix operations, "
        "and the exact one, an operation a line.",
        lambda before, now: now.sel.readable != before.sel.readable,
    ),
    Step(
        "{definition} goes to the definition of an operand, {use} to the next use, {pane} to the "
        "list and back. {tab-code} shows the code of each backend.",
        lambda _, now: now.sel.tab == "code",
    ),
    Step(
        "Code: {previous-pass} and {next-pass} step through the texts, {backend} through the "
        "backends; your lines are on the left. {tab-launch} shows times.",
        lambda _, now: now.sel.tab == "launch",
    ),
    Step(
        "Launch: the time of a launch, how much it varies, and the last saves. {back} leads "
        "out, one level at a time: back to the matrix.",
        lambda _, now: now.screen == "HomeScreen",
    ),
    Step(
        "Save the file, and everything is compiled and measured again.",
        lambda before, now: now.looks > before.looks,
        True,
    ),
    Step(
        "Below the row is what the save did. {changes} shows it in full, with the diff of the IR.",
        lambda _, now: now.screen == "EditScreen",
    ),
    Step(
        "{find} finds text in everything, {jump} shows letters to jump to a line, {palette} runs "
        "any command by name, {help} lists all keys. That is the tour; {tour-next} ends it.",
        lambda _, now: False,
    ),
)
"""The steps in order."""
