"""Whole programs over caches in every bad state: right results, no error, few words."""

import os
import random
import shutil
import subprocess

import pytest

from tests.caches.two_runs import Runs

PROGRAM = """
import numpy as np

import quadrants as qd

F32 = qd.types.NDArray[qd.f32, 1]


@qd.func
def helped(x):
    return x * 3


@qd.kernel
def triple(x: F32):
    for i in range(x.shape[0]):
        x[i] = helped(x[i])


@qd.kernel(fastcache=True)
def shifted(x: F32, by: qd.f32):
    for i in range(x.shape[0]):
        x[i] += by


@qd.kernel
def total(x: F32) -> qd.f32:
    s = 0.0
    for i in range(x.shape[0]):
        s += x[i]
    return s


def main():
    qd.init(arch=qd.cpu)
    x = np.arange(8, dtype=np.float32)
    triple(x)
    shifted(x, 0.5)
    return [*x.tolist(), total(x)]
"""
RIGHT = [*[3.0 * i + 0.5 for i in range(8)], 88.0]


@pytest.fixture
def runs(tmp_path):
    made = Runs(tmp_path)
    made.write(PROGRAM)
    assert made.run().result == RIGHT
    return made


def reported(run) -> list[str]:
    return [line for line in run.stderr.splitlines() if "[qd-studio]" in line]


def entries(runs):
    return [path for path in runs.files() if path.suffix == ".qd1"]


def root_of(runs):
    return runs.home / "qd-studio" / "qdcache"


def each(change):
    """Does something to every entry."""

    def apply(runs):
        for path in entries(runs):
            change(path)

    return apply


def flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0x10
    path.write_bytes(data)


def swap_names(runs):
    """Every entry is under the name of the next one of its layer."""
    for layer in ("offline", "fastcache"):
        paths = [path for path in entries(runs) if path.parent.name == layer]
        texts = [path.read_bytes() for path in paths]
        for path, text in zip(paths, [*texts[1:], texts[0]], strict=True):
            path.write_bytes(text)


def link(path):
    kept = path.with_suffix(".kept")
    path.rename(kept)
    path.symlink_to(kept)


def pipe(path):
    path.unlink()
    os.mkfifo(path, 0o600)


ENTRY_FAULTS = {
    "flipped": each(flip),
    "cut": each(lambda path: os.truncate(path, path.stat().st_size // 2)),
    "empty": each(lambda path: os.truncate(path, 0)),
    "text": each(lambda path: path.write_text("not an entry")),
    "link": each(link),
    "pipe": each(pipe),
    "world": each(lambda path: path.chmod(0o666)),
    "of another format": each(lambda path: path.write_bytes(b"QDSE\2\0" + path.read_bytes()[6:])),
    "newest first": each(lambda path: os.utime(path, (4e9, 4e9))),
    "very old": each(lambda path: os.utime(path, (0, 0))),
}
HARMLESS = {"newest first", "very old"}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("fault", ENTRY_FAULTS)
def test_bad_entries(runs, fault):
    """One warning for each entry that was asked for; the next process finds them mended."""
    before = len(entries(runs))
    ENTRY_FAULTS[fault](runs)
    again = runs.run()
    assert again.result == RIGHT
    lines = reported(again)
    assert len(lines) == len(set(lines))
    if fault in HARMLESS:
        assert lines == []
    else:
        assert 3 <= len(lines) <= before
        assert all(line.startswith("[qd-studio] warning: cache entry ") for line in lines)
    healed = runs.run()
    assert (healed.result, reported(healed)) == (RIGHT, [])
    assert not healed.ran_passes


def test_entries_under_names_of_others(runs):
    """Another kernel's code is never run in place of one's own."""
    swap_names(runs)
    again = runs.run()
    assert again.result == RIGHT
    assert all("holds the entry of another key" in line for line in reported(again))
    assert reported(again)
    healed = runs.run()
    assert (healed.result, reported(healed)) == (RIGHT, [])
    assert not healed.ran_passes


def strangers(runs):
    os.chown(root_of(runs), 65534, 65534)


def moved(runs):
    kept = runs.home / "kept"
    root_of(runs).rename(kept)
    root_of(runs).symlink_to(kept)


def replaced_by_a_file(runs):
    shutil.rmtree(root_of(runs))
    root_of(runs).write_text("mine")


FOLDER_FAULTS = {
    "world": lambda runs: root_of(runs).chmod(0o777),
    "group": lambda runs: root_of(runs).chmod(0o770),
    "stranger": strangers,
    "link": moved,
    "file": replaced_by_a_file,
}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("fault", FOLDER_FAULTS)
def test_a_bad_folder(runs, fault):
    """One warning in all, whatever number of kernels and layers."""
    if fault == "stranger" and os.geteuid():
        pytest.skip("only root can give folders away")
    FOLDER_FAULTS[fault](runs)
    for _ in range(2):
        again = runs.run()
        assert again.result == RIGHT
        (line,) = reported(again)
        assert str(root_of(runs)) in line
        assert again.ran_passes


def test_a_folder_that_is_gone(runs):
    shutil.rmtree(runs.home)
    again = runs.run()
    assert (again.result, reported(again)) == (RIGHT, [])
    assert entries(runs)


@pytest.mark.slow
def test_programs_that_are_killed_leave_a_good_cache(runs):
    rng = random.Random(11)
    shutil.rmtree(runs.home)
    for _ in range(6):
        process = subprocess.Popen(
            runs.command(), env=runs.environment(), cwd=runs.folder,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            process.wait(timeout=0.2 + rng.random())
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    for _ in range(2):
        again = runs.run()
        assert (again.result, reported(again)) == (RIGHT, [])
    assert not again.ran_passes
