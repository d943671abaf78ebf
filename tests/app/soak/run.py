"""The run itself: edits and keys into the real app, with the real worker and watcher."""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from qd_studio.app.core.pending import kernel_state
from qd_studio.app.core.views.matrix_cells import sign_of
from qd_studio.app.tui import run as tui
from qd_studio.app.tui.app import StudioApp
from qd_studio.app.worker.client import WorkerClient
from qd_studio.app.worker.protocol import Limits

from .clock import Clock
from .judge import Judge
from .versions import BACKENDS, KINDS, save, version_of

SIZES = ((80, 24), (120, 40), (200, 60))
LIMITS = Limits(
    import_s=4.0, compile_s=30.0, launch_s=3.0, measure_s=0.01, interpret_s=3.0, grace_s=1.0
)
# Not those that leave the studio or take its terminal away, that compile for every backend, or
# that reach for the clipboard of the user who runs this.
KEYS = (
    *"jkgGhlnN123456789[]{}dDwmuzxbJK<>EotrseC", "enter", "escape", "escape", "tab", "shift+tab",
    "up", "down", "pageup", "pagedown", "slash", "question_mark", "left", "right",
)  # fmt: skip
LONGEST_S = 90.0


@dataclass
class Outcome:
    """What a run found. faults: empty if all was well. settled: how often a look was waited for to
    its end, and how often it ended in what is so."""

    edits: Counter[str] = field(default_factory=Counter[str])
    faults: list[str] = field(default_factory=list[str])
    settled: int = 0
    as_expected: int = 0
    verdicts: int = 0
    unlike: Counter[str] = field(default_factory=Counter[str])
    longest_s: float = 0.0
    own_s: float = 0.0
    machine_s: float = 0.0
    cpu_s: float = 0.0
    memory: list[tuple[int, int, int]] = field(default_factory=list[tuple[int, int, int]])


def resident(pid: int) -> int:
    """MiB that a process holds; 0 if it is gone."""
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return next((int(x.split()[1]) >> 10 for x in text.splitlines() if x.startswith("VmRSS")), 0)


class Soak:
    """One run. kinds: of the edits, in order; the last must be right."""

    def __init__(
        self, folder: Path, kinds: Sequence[str], seed: int, stacks: TextIO | None = None
    ) -> None:
        self.stacks = stacks
        self.path = folder / "kernels.py"
        self.kinds = ["right", *kinds]
        self.random = random.Random(seed)
        self.outcome = Outcome()
        self.judge = Judge(self._truth)
        self.cancelled = False

    def _truth(self, number: int) -> frozenset[str]:
        known = 0 <= number < len(self.kinds)
        return KINDS[self.kinds[number]].good if known else frozenset()

    async def run(self, say: Callable[[str], object] = lambda text: None) -> Outcome:
        """Do all edits."""
        save(self.path, "right", 0)
        tui.prepare(None, False)

        def start(on_event):
            return WorkerClient(
                [self.path], backends=BACKENDS, on_event=on_event, limits=LIMITS, watch=True
            )

        app = StudioApp([str(self.path)], start)
        out = self.outcome
        with Clock(self.stacks) as clock:
            async with app.run_test(size=self.random.choice(SIZES)) as pilot:
                self.app, self.pilot = app, pilot
                tasks = [asyncio.create_task(self._watch()), asyncio.create_task(clock.run())]
                await self._settled(0, "right")
                for number, kind in enumerate(self.kinds[1:], 1):
                    await self._edit(number, kind)
                    if number % 25 == 0 or number == 1:
                        self._weigh(number)
                        bad = [*self.judge.faults, *out.faults]
                        say(f"{number} edits, {out.settled} settled, {len(bad)} bad {bad[-1:]}")
                await self._settled(len(self.kinds) - 1, self.kinds[-1], last=True)
                self._weigh(len(self.kinds) - 1)
                for task in tasks:
                    task.cancel()
        app.link.close()
        out.faults += self.judge.faults
        out.verdicts = self.judge.verdicts
        out.longest_s, out.own_s = clock.longest, clock.own
        out.machine_s, out.cpu_s = clock.machine, clock.most_cpu_s
        return out

    async def _watch(self) -> None:
        while True:
            self.judge.look(self.app)
            await asyncio.sleep(0.02)

    async def _edit(self, number: int, kind: str) -> None:
        self.outcome.edits[kind] += 1
        save(self.path, kind, number)
        self.cancelled = False
        last = number == len(self.kinds) - 1
        for _ in range(0 if last else self.random.randrange(6)):
            key = self.random.choice(KEYS)
            self.cancelled |= key == "C"  # then the look may end without a result
            await self.pilot.press(key)
            await asyncio.sleep(self.random.random() * 0.1)
        if self.random.random() < 0.1:
            await self.pilot.resize_terminal(*self.random.choice(SIZES))
        if self.random.random() < 0.4:
            await self._settled(number, kind)
        else:
            await asyncio.sleep(self.random.random() * 0.5)

    def _idle(self, number: int, kind: str) -> bool:
        client = self.app.link.client
        if client is None or not self.app.complete or self.app._busy_since is not None:
            return False
        if client._job is not None or client._wanted or client._requests:
            return False
        kinds = {e.kind for e in self.app.record.errors}
        if KINDS[kind].save == "delete":
            return "FileNotFoundError" in kinds
        if kind in ("crash at import", "endless import"):
            return bool(kinds)  # no worker lives to send the text
        return version_of(self.app.record) == number

    async def _settled(self, number: int, kind: str, last: bool = False) -> None:
        """Wait for the end of the look at a version, and compare."""
        # A look that was given up before the file was read has nothing of this version.
        until = time.monotonic() + (3.0 if self.cancelled else LONGEST_S)
        while not self._idle(number, kind):
            if time.monotonic() > until and self.cancelled:
                return
            if time.monotonic() > until:
                shown = version_of(self.app.record), self.app.complete, self.app._busy_since
                self.outcome.faults.append(
                    f"the look at version {number} ({kind}) did not end: {shown}, {self._errors()}"
                )
                return
            await asyncio.sleep(0.02)
        out = self.outcome
        out.settled += 1
        kernel = self.app.record.kernels[0] if self.app.record.kernels else None
        if kernel is not None and kernel_state(kernel) == "pending":
            out.faults.append(f"version {number} ({kind}) is pending, and nothing goes on")
        found = "" if kernel is None else sign_of(kernel)
        good = KINDS[kind].good
        expected = "ok" if len(good) == 2 else "differs" if good else ""
        without = not expected or self.cancelled  # no result is as it should be
        if found == expected or (without and found not in ("ok", "differs")):
            out.as_expected += 1
        else:  # a busy machine may leave a right kernel without its verdict
            out.unlike[f"{kind}: {found} {self._errors()}"] += 1
            if last:
                out.faults.append(f"the end is {found!r}, not the last save's {expected!r}")
        if last and self.app.record.errors:
            out.faults.append(f"errors at the end: {self.app.record.errors}")

    def _errors(self) -> list[str]:
        record = self.app.record
        found = [*record.errors, *(e for k in record.kernels for e in k.errors)]
        return [f"{e.kind}: {e.message.splitlines()[0][:80]}" for e in found if e.message][:3]

    def _weigh(self, number: int) -> None:
        client = self.app.link.client
        worker = client._worker.pid if client is not None and client._worker is not None else 0
        self.outcome.memory.append((number, resident(os.getpid()), resident(worker)))


def kinds_of(edits: int, seed: int) -> list[str]:
    """Random kinds; each once if there is room, and the last one right."""
    chance = random.Random(seed)
    names = list(KINDS)
    out = [*names, *chance.choices(names, k=max(0, edits - len(names) - 1))][: edits - 1]
    chance.shuffle(out)
    return [*out, "right"]


def problems_of(out: Outcome) -> list[str]:
    """What is not as it must be."""
    found = list(out.faults)
    if out.own_s > 0.2:
        found.append(f"the event loop did not turn for {out.own_s * 1e3:.0f} ms")
    settled = [own for number, own, _ in out.memory if number > 50]
    if settled and settled[-1] > settled[0] * 1.3 + 64:
        found.append(f"the studio grew from {settled[0]} to {settled[-1]} MiB")
    workers = [worker for _, _, worker in out.memory if worker]
    if workers and max(workers) > 2 * min(workers) + 256:
        found.append(f"workers grew from {min(workers)} to {max(workers)} MiB")
    return found
