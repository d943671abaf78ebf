"""A sample of the programs that try to run stale code; `attacks` runs as many as one likes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("count", [22, pytest.param(66, marks=pytest.mark.slow)])
def test_a_sample_runs_no_stale_code(count):
    """In a process of its own: each program runs in a forked child."""
    command = [sys.executable, "-m", "tests.caches.attacks", "--json", "--count", str(count)]
    done = subprocess.run(
        [*command, "--seed", "11"], cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert found["programs"] == count and not found["stale"] and not found["faults"]
    # Programs that are never cached would show nothing.
    assert not found["expected in the cache, and not there"]
    assert found["cached when nothing changed"] >= count // 5
    assert found["changed result"] >= count // 3
