"""The pool's protocol, under many orders of the steps of its threads."""

from collections import Counter

import pytest
from qd_studio.engine.backends.cpu import pool
from qd_studio.engine.backends.cpu.overlap import OVERLAP
from qd_studio.engine.backends.kernarg import abi

from tests.backends.pool_model import Machine, Steps

TASKS = (0x1000, 0x2000)


class Launches:
    """Launches of one Python thread, and what their chunks have seen."""

    def __init__(self, machine: Machine, number: int, threads: int) -> None:
        self.machine = machine
        self.kernarg = (1 << 30) + (number << 16)
        self.threads = threads
        self.ran: Counter[int] = Counter()
        self.inside: list[int] = []
        self.fails = -1
        self.done = 0

    def task(self, kernarg: int, chunk: int, thread: int) -> Steps:
        assert kernarg == self.kernarg
        assert thread not in self.inside
        assert 0 <= thread < self.threads
        self.inside.append(thread)
        for _ in range(self.machine.random.choice((0, 1, 3, 30))):
            yield
        self.ran[chunk] += 1
        if chunk == self.fails:
            self.machine.memory[kernarg + abi.ERROR] = 1
        self.inside.remove(thread)
        return 0

    def run(self, task: int) -> Steps:
        machine, draw = self.machine, self.machine.random
        for _ in range(draw.randrange(1, 5)):
            self.kernarg += 256
            self.ran.clear()
            self.fails = draw.choice((-1, -1, -1, 1))
            machine.memory[self.kernarg + abi.THREADS] = self.threads
            begin, end = draw.choice((0, 3)), 3 + draw.choice((0, 1, 2, 3, 3, 20))
            yield from machine.call("qd_parallel", [self.kernarg, task, begin, end])
            machine.dead.add(self.kernarg)
            assert not self.inside, "a launch ends while a chunk runs"
            if self.fails < 0 or not begin <= self.fails < end:
                assert self.ran == dict.fromkeys(range(begin, end), 1)
            else:
                assert max(self.ran.values()) == 1
        self.done += 1
        return 0


@pytest.fixture(params=["Linux", ""])
def text(request, monkeypatch):
    for name, value in (("_SPINS", 2), ("_WAITS", 1), ("_YIELDS", 1)):
        monkeypatch.setattr(pool, name, value)
    return pool.module_text("x64", request.param, True).removeprefix(OVERLAP)


def explore(text: str, seed: int) -> Machine:
    machine = Machine(text, seed)
    draw = machine.random
    several = [Launches(machine, k, draw.choice((2, 3, 4))) for k in range(draw.choice((1, 2)))]
    for task, launches in zip(TASKS, several, strict=False):
        machine.tasks[task] = launches.task
        machine.ready.append(launches.run(task))
    machine.run()
    assert all(launches.done for launches in several), "a launch never ends"
    _at_rest(machine)
    return machine


def _at_rest(machine: Machine) -> None:
    """Every worker sleeps, and is counted; nothing is left over that would wake one."""
    at, memory = machine.globals, machine.memory
    sleeping = {semaphore: len(threads) for semaphore, threads in machine.asleep.items()}
    workers = memory.get(at["@workers"], 0)
    assert sleeping == ({at["@wake"]: workers} if workers else {})
    assert memory.get(at["@sleepers"], 0) == workers
    assert not any(machine.posted.values())
    for name in ("@busy", "@waiting"):
        assert memory.get(at[name], 0) == 0
    assert memory.get(at["@state"], 0) & 0x8000FFFF == 0


def test_launches_end_and_workers_sleep_in_any_order(text):
    slept = 0
    for seed in range(300):
        machine = explore(text, seed)
        slept += machine.waits[machine.globals["@left"]]
    assert slept > 10, "no launch has had to wait"


@pytest.mark.parametrize(("good", "bad"), [
    # A launch that does not wait for those who joined.
    ("call void @join.all()", "fence seq_cst"),
    # A worker that joins with what it read long ago.
    ("cmpxchg ptr @state, i64 %seen, i64 %less", "cmpxchg ptr @state, i64 %again, i64 %less"),
    # A worker that sleeps although a launch has already claimed it, and the other way round.
    ("br i1 %now.ok, label %retract, label %sleep", "br i1 %now.ok, label %up, label %sleep"),
    ("br i1 %awaited, label %notify, label %out", "br i1 %awaited, label %out, label %out"),
    # A launch that takes the wake-up of an earlier job for its own.
    ("label %again\nagain:\n  br label %look", "label %again\nagain:\n  br label %done"),
])  # fmt: skip
def test_faults_of_the_protocol_are_found(text, good, bad):
    assert text.count(good) >= 1
    broken = text.replace(good, bad)
    if "%again, i64 %less" in bad:
        broken = broken.replace(
            "  %less = sub i64 %seen, 65535",
            "  %again = load atomic i64, ptr @state acquire, align 8\n"
            "  %less = sub i64 %again, 65535",
        )
    with pytest.raises((AssertionError, KeyError)):
        for seed in range(2_000):
            explore(broken, seed)
