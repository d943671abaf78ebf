"""Launches after something has changed; `relaunches` runs as many programs as one likes."""

import pytest

from tests.runtime import relaunches


@pytest.mark.parametrize(
    "seed", [*range(2), *[pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 60)]]
)
def test_what_is_kept_between_launches_changes_nothing(seed):
    found = {mode: relaunches.run(seed, mode) for mode in relaunches.MODES}
    slow = found.pop("the slow path")
    assert len(slow[1]) > 20
    for mode, log in found.items():
        assert repr(log) == repr(slow), mode
