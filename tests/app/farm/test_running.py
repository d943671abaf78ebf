"""Jobs are handed out again when their worker is lost, a bounded number of times."""

from concurrent.futures import BrokenExecutor, Future

import pytest
from qd_studio.app.farm.executors import Farm, FarmError
from qd_studio.app.farm.jobs import variables
from qd_studio.app.farm.running import TRIES, JobRun


class Fake:
    """An executor without workers. outcomes: of a job, by its argument and its turn, an error or
    None; all in flight fail with a `BrokenExecutor`, as those of a pool of processes do."""

    def __init__(self, outcomes):
        self.outcomes, self.turns, self.log, self.flight = outcomes, {}, [], []
        self.opened = self.closed = 0

    def farm(self, window):
        self.opened += 1
        self.broken = None
        return Farm(self, window, self.close)

    def close(self, wait):
        self.closed += 1

    def submit(self, fn, arg):
        if self.broken is not None:
            raise self.broken
        turn = self.turns[arg] = self.turns.get(arg, 0) + 1
        future = Future()
        self.log.append(arg)
        error = self.outcomes(arg, turn)
        if isinstance(error, BrokenExecutor):
            self.broken = error
            for one, _ in [*self.flight, (future, arg)]:
                one.set_exception(error)
            self.flight.clear()
        elif error == "waits":
            self.flight.append((future, arg))
        elif error is not None:
            future.set_exception(error)
        else:
            future.set_result(fn(arg))
        return future


def run(fake, count=4, window=2):
    results, losses = {}, []
    JobRun(
        lambda x: x * 10, [(i,) for i in range(count)], lambda: fake.farm(window),
        results.__setitem__, lambda i, why, final: losses.append((i, why, final)),
    ).run()  # fmt: skip
    return results, losses


def test_a_lost_job_runs_again():
    fake = Fake(lambda arg, turn: OSError("gone") if arg == 2 and turn == 1 else None)
    results, losses = run(fake)
    assert results == {i: i * 10 for i in range(4)}
    assert losses == [(2, "OSError: gone", False)] and fake.opened == fake.closed == 1


def test_a_job_that_is_lost_each_time_is_named_and_the_others_are_done():
    fake = Fake(lambda arg, turn: OSError("gone") if arg == 1 else None)
    results, losses = run(fake)
    assert sorted(results) == [0, 2, 3] and fake.turns[1] == TRIES
    assert [final for _, _, final in losses] == [False] * (TRIES - 1) + [True]


def test_a_broken_pool_is_opened_again_and_the_job_at_fault_runs_alone():
    def outcome(arg, turn):
        if arg == 1:
            return BrokenExecutor("a process ended")
        return "waits" if arg == 0 and turn < 2 else None

    fake = Fake(outcome)
    results, losses = run(fake)
    assert sorted(results) == [0, 2, 3], losses
    assert [i for i, _, final in losses if final] == [1] and fake.turns[0] == 2


def test_an_executor_that_accepts_nothing_is_an_error():
    fake = Fake(lambda arg, turn: None)

    def farm(window):
        fake.broken = RuntimeError("shut down")
        return Farm(fake, window, fake.close)

    fake.farm = farm
    with pytest.raises(FarmError, match="not accepted: RuntimeError: shut down"):
        run(fake)


def test_secrets_are_not_sent():
    kept = {"QD_REMOTE_CACHE": "http://x"}
    assert variables({**kept, "QD_REMOTE_CACHE_KEY": "k", "QD_REMOTE_CACHE_TOKEN": "t"}) == kept
