"""What a save and a key cost in the studio: CPU time of one process, with room to spare."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from bench import studio_parts


def test_a_save_of_500_statements():
    parts = studio_parts.save_parts(500, 2)
    assert sum(parts.values()) < 400, parts  # 48 ms where it was written; the limit is 100


@pytest.mark.slow
def test_a_save_of_10_000_statements():
    parts = studio_parts.save_parts(10_000, 2)
    assert sum(parts.values()) < 4000, parts  # 0.95 s; the limit is 1 s
    assert parts["reading it"] < 400, parts  # 30 to 50 ms; ten times as long with the collector


@pytest.mark.slow
@pytest.mark.parametrize(("tab", "readable"), [("passes", False), ("passes", True), ("code", True)])
def test_a_key_with_100_000_lines(tab, readable):
    times = sorted(studio_parts.key_to_paint(keys=20, readable=readable, tab=tab))
    assert studio_parts.percentile(times, 0.5) < 60, times  # 13 ms
    assert studio_parts.percentile(times, 0.94) < 250, times  # 28 to 47 ms; the limit is 50
