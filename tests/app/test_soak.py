"""A few edits of the soak, and that it would see what it looks for."""

from __future__ import annotations

import pytest

from tests.app.soak.run import Soak

KINDS = ("differs", "syntax", "outside", "renamed", "unknown", "crash", "deleted", "right")


@pytest.fixture
def soak(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some keys write files
    return lambda kinds: Soak(tmp_path, kinds, seed=4)


@pytest.mark.slow
async def test_no_verdict_is_drawn_that_is_not_so_and_the_end_is_the_last_save(soak):
    out = await soak(KINDS).run()
    assert not out.faults
    assert out.verdicts and out.settled >= 2
    assert sum(out.edits.values()) == len(KINDS)


async def test_the_judge_sees_a_verdict_that_is_not_so(soak, monkeypatch):
    run = soak(["right"])
    # As if no version were one that a backend gets right.
    monkeypatch.setattr(run.judge, "_truth", lambda number: frozenset())
    out = await run.run()
    assert out.faults and all("is called ok" in fault for fault in out.faults)
