"""How long the event loop does not turn, beside how long this machine lets any process wait."""

from __future__ import annotations

import asyncio
import faulthandler
import subprocess
import sys
import time
from typing import NamedTuple, TextIO

STEP_S = 0.01
LEAST_S = 0.05
_OTHER = """
import time
while True:
    began = time.monotonic()
    time.sleep(0.04)
    woken, cpu = time.monotonic(), time.thread_time()
    while time.thread_time() - cpu < 0.005:
        pass
    ended = time.monotonic()
    late, stretch = woken - began - 0.04, (ended - woken) / 0.005
    if late > 0.02 or stretch > 1.5:
        print(began, ended, late, stretch, flush=True)
"""


class Pause(NamedTuple):
    """A time in which the loop did not turn. cpu_s: what this process computed meanwhile."""

    at: float
    wall_s: float
    cpu_s: float


class Clock:
    """Measures from `run` on.

    ``with`` also runs a process that sleeps and computes a little, to compare with: how late it is
    woken, and how much longer than alone it computes, is what the machine does to everybody.

    stacks: where the stacks of all threads are written when the loop does not turn for so long.
    """

    def __init__(self, stacks: TextIO | None = None) -> None:
        self._stacks = stacks
        self.pauses: list[Pause] = []
        self.most_cpu_s = 0.0
        self._others: list[tuple[float, ...]] = []

    def __enter__(self) -> Clock:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _OTHER], stdout=subprocess.PIPE, text=True
        )
        return self

    def __exit__(self, *_: object) -> None:
        faulthandler.cancel_dump_traceback_later()
        self._process.kill()
        text, _ = self._process.communicate()
        lines = [line.split() for line in text.splitlines(True) if line.endswith("\n")]
        self._others = [tuple(map(float, line)) for line in lines]

    async def run(self) -> None:
        """Measure until cancelled."""
        while True:
            if self._stacks is not None:
                faulthandler.dump_traceback_later(0.2, file=self._stacks)
            began, cpu, own = time.monotonic(), time.process_time(), time.thread_time()
            await asyncio.sleep(STEP_S)
            wall_s, cpu_s = time.monotonic() - began - STEP_S, time.process_time() - cpu
            self.most_cpu_s = max(self.most_cpu_s, time.thread_time() - own)
            if wall_s > LEAST_S:
                self.pauses.append(Pause(began, wall_s, min(cpu_s, wall_s)))

    @property
    def longest(self) -> float:
        """Seconds of the longest pause, whatever held it up."""
        return max((p.wall_s for p in self.pauses), default=0.0)

    @property
    def machine(self) -> float:
        """Seconds that the other process was late at most."""
        return max((late for _, _, late, _ in self._others), default=0.0)

    @property
    def own(self) -> float:
        """Seconds of the longest pause without what the machine was late at the same time."""
        return max(map(self._own, self.pauses), default=0.0)

    def _own(self, pause: Pause) -> float:
        end = pause.at + pause.wall_s
        near = [x for x in self._others if x[0] < end + 0.1 and x[1] > pause.at - 0.1]
        late = sum(late for _, _, late, _ in near)
        stretch = max((stretch for *_, stretch in near), default=1.0)
        return pause.cpu_s + max(0.0, pause.wall_s - pause.cpu_s * stretch - late)
