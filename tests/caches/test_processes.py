"""Processes that share a folder, and processes that die in the middle of something.

Whatever happens, each entry is there as it was written or is not there, and no process waits.
"""

import json
import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from qd_studio.engine.cache import cleaning, folder

from tests.caches import shelf
from tests.hygiene.tree import ROOT

PRELUDE = """
import json, os, signal, sys
from qd_studio.engine.cache import cleaning, folder
from tests.caches import shelf
root = sys.argv[1]
s = shelf.store(root)
"""


def start(code: str, root, *arguments) -> subprocess.Popen:
    command = [sys.executable, "-c", PRELUDE + textwrap.dedent(code), str(root)]
    return subprocess.Popen(
        [*command, *map(str, arguments)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen) -> str:
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert err == ""
    return out


def temporaries(root) -> list[str]:
    return [n for n in shelf.file_names(root) if folder.is_temporary(os.path.basename(n))]


# ---- killed

WRITER = """
first = int(sys.argv[2])
print("ready", flush=True)
for number in range(first, first + 200):
    assert s.write(shelf.entry(number % 300, 20_000))
    print(number, flush=True)
"""


@pytest.mark.parametrize("rounds", [3, pytest.param(12, marks=pytest.mark.slow)])
def test_killed_at_random_points_during_200_writes(root, rounds):
    """Every write that was reported done is there, and nothing is damaged."""
    rng = random.Random(7)
    s = shelf.store(root)
    done: set[int] = set()
    for round_ in range(rounds):
        first = round_ * 60  # later rounds replace what earlier ones wrote
        process = start(WRITER, root, first)
        assert process.stdout.readline() == "ready\n"
        for _ in range(rng.randrange(180)):
            done.add(int(process.stdout.readline()) % 300)
        time.sleep(rng.random() * 0.003)
        process.kill()
        done |= {int(line) % 300 for line in process.stdout.read().splitlines()}
        process.wait()
        process.stdin.close()
        process.stdout.close()
        assert process.stderr.read() == ""
        process.stderr.close()
        assert all(info.problem == "" for info in s.all())
    assert len(done) > 15 * rounds
    assert all(shelf.is_right(s, number, 20_000) for number in done)
    assert s.statistics.damaged == 0


DIES = """
call, at = sys.argv[2], int(sys.argv[3])
real, count = getattr(os, call), 0

def dies(*arguments, **named):
    global count
    count += 1
    if count == at:
        if call == "write":  # a part of it only
            real(arguments[0], bytes(arguments[1][:1000]))
        if call.endswith("mkdir"):
            real(*arguments, **named)
        os.kill(os.getpid(), signal.SIGKILL)
    if call == "write":
        return real(arguments[0], bytes(arguments[1][:1000]))
    return real(*arguments, **named)

setattr(os, call, dies)
for number in (1, 2):
    s.write(shelf.entry(number, 5000)._replace(load="new"))
"""


STEPS = [
    ("open", 1), ("open", 2), ("open", 3), ("write", 1), ("write", 3), ("write", 8),
    ("replace", 1), ("replace", 2), ("close", 1), ("close", 2),
]  # fmt: skip


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("call", "at", "before"),
    [("mkdir", 1, False), ("mkdir", 2, False), *((*step, b) for step in STEPS for b in (0, 1))],
)
def test_killed_at_each_step_of_a_write(root, call, at, before):
    s = shelf.store(root)
    if before:
        for number in (1, 2):
            s.write(shelf.entry(number, 5000))
    process = start(DIES, root, call, at)
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    for number in (1, 2):
        found = shelf.read(s, number)
        new = ("new", shelf.code(number, 5000))
        assert found in ([(shelf.load(number), new[1]), new] if before else [None, new])
    assert s.statistics.damaged == 0
    for number in (1, 2):
        assert s.write(shelf.entry(number, 5000))
        assert shelf.is_right(s, number, 5000)


def test_what_killed_writers_left_is_removed_at_once(root):
    s = shelf.store(root)
    s.write(shelf.entry(1, 5000))
    start(DIES, root, "replace", 1).communicate(timeout=60)
    (left,) = temporaries(root)
    content = Path(root, left).read_bytes()
    for old in (0, 3600, -3600):  # the clock may have been set back
        path = Path(root, left)
        path.write_bytes(content)
        os.utime(path, (time.time() - old,) * 2)
        cleaning.files(root)
        assert temporaries(root) == [left], "listing alone removes nothing"
        cleaning.files(root, sweep=True)
        assert temporaries(root) == []
    assert shelf.is_right(s, 1, 5000)


def test_the_first_write_of_a_process_removes_them(root, s):
    path = f"{s.folder}/.0123456789abcdef.tmp"
    with open(path, "w"):
        os.utime(path, (1e9, 1e9))
    cleaning._roots.clear()
    s.write(shelf.entry(2))
    assert temporaries(root) == []


HOLDS = """
real = os.replace

def waits(source, target):
    os.utime(source, (1e9, 1e9))
    print("writing", flush=True)
    sys.stdin.readline()
    real(source, target)

os.replace = waits
assert s.write(shelf.entry(2))
"""


def test_a_file_that_is_being_written_is_never_removed_however_old(root, s):
    process = start(HOLDS, root)
    assert process.stdout.readline() == "writing\n"
    assert len(temporaries(root)) == 1
    cleaning.files(root, sweep=True)
    assert len(temporaries(root)) == 1
    process.stdin.write("\n")
    finish(process)
    assert shelf.is_right(s, 2)


def test_a_writer_whose_file_was_removed_writes_it_again(s, monkeypatch):
    real, done = os.replace, []

    def replace(source, target):
        if not done:
            done.append(os.unlink(source))
        real(source, target)

    monkeypatch.setattr(folder.os, "replace", replace)
    assert s.write(shelf.entry(2))
    assert shelf.is_right(s, 2)
    assert done


CLEANER = """
import time
from pathlib import Path
with folder.locked(root + "/lock", make=True) as held:
    assert held
    print("locked", flush=True)
    time.sleep(600)
"""


def test_a_lock_ends_with_its_process_and_no_one_waits_for_it(root):
    rules = cleaning.Rules("lru", 20_000, 0.5)
    s = shelf.store(root, rules=rules)
    s.write(shelf.entry(1))
    process = start(CLEANER, root)
    assert process.stdout.readline() == "locked\n"
    started = time.monotonic()
    for number in range(10):
        assert s.write(shelf.entry(number))
    assert time.monotonic() - started < 10
    assert len(list(s.all())) == 10, "who holds the lock cleans"
    process.kill()
    process.communicate()
    assert s.write(shelf.entry(10))
    assert sum(info.size for info in s.all()) <= 10_000


# ---- many

FILLER = """
who = int(sys.argv[2])
sys.stdin.readline()
wrong, shared = [], 0
for step in range(60):
    number = (who * 7 + step * 11) % 100
    found = shelf.read(s, number)
    shared += found is not None
    if found is None:
        if not s.write(shelf.entry(number, 2000 + 100 * number)):
            wrong.append(("write", number))
        if not shelf.is_right(s, number, 2000 + 100 * number):
            wrong.append(("after write", number))
    elif found != (shelf.load(number), shelf.code(number, 2000 + 100 * number)):
        wrong.append(("read", number))
print(json.dumps({"wrong": wrong, "damaged": s.statistics.damaged, "shared": shared}))
"""


def together(code: str, root, count: int, *arguments) -> list[dict]:
    """What so many processes say that begin at once, each with its number; nothing was wrong."""
    processes = [start(code, root, who, *arguments) for who in range(count)]
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    results = [json.loads(finish(process)) for process in processes]
    assert all(result["wrong"] == [] and result["damaged"] == 0 for result in results)
    return results


@pytest.mark.parametrize("count", [4, pytest.param(16, marks=pytest.mark.slow)])
def test_processes_fill_one_folder(root, count):
    results = together(FILLER, root, count)
    assert sum(result["shared"] for result in results) > 6 * count, "they find what others wrote"
    s = shelf.store(root)
    wanted = {(who * 7 + step * 11) % 100 for who in range(count) for step in range(60)}
    assert len(list(s.all())) == len(wanted)
    assert all(shelf.is_right(s, number, 2000 + 100 * number) for number in wanted)
    assert temporaries(root) == []


CROWDED = """
who, limit, policy = int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
s = shelf.store(root, rules=cleaning.Rules(policy, limit, 0.25))
sys.stdin.readline()
wrong = []
for step in range(80):
    number = (who * 13 + step) % 400
    if not s.write(shelf.entry(number)):
        wrong.append(("write", number))
    back = (who * 13 + step * 5) % 400
    if shelf.read(s, back) not in (None, (shelf.load(back), shelf.code(back))):
        wrong.append(("read", back))
print(json.dumps({"wrong": wrong, "damaged": s.statistics.damaged}))
"""


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["lru", "fifo"])
def test_8_processes_in_a_folder_that_is_too_small(root, policy):
    limit = 300_000
    together(CROWDED, root, 8, limit, policy)
    s = shelf.store(root, rules=cleaning.Rules(policy, limit, 0.25))
    wanted = {(who * 13 + step) % 400 for who in range(8) for step in range(80)}
    assert len(list(s.all())) < len(wanted), "some were removed while all were at work"
    s.write(shelf.entry(0))
    found = list(s.all())
    assert sum(info.size for info in found) < limit
    assert found
    assert all(info.problem == "" for info in found)
    assert temporaries(root) == []


def test_threads_share_a_store(root):
    s = shelf.store(root)
    wrong = []

    def work(who: int) -> None:
        for step in range(40):
            number = (who * 3 + step) % 30
            s.write(shelf.entry(number))
            if not shelf.is_right(s, number):
                wrong.append(number)

    shelf.in_threads(work, 8)
    assert wrong == []
    assert s.statistics.damaged == s.statistics.failed == 0
    assert len(list(s.all())) == 30


# ---- forked

FORKS = """
call, who_waits = sys.argv[2], sys.argv[3]
real, child = getattr(os, call), None

def forks(*arguments):
    global child
    if child is None:
        child = os.fork()
    return real(*arguments)

setattr(os, call, forks)
done = s.write(shelf.entry(1, 20_000))
setattr(os, call, real)
mine = 10 if child else 100
for number in range(mine, mine + 10):
    assert s.write(shelf.entry(number))
    assert shelf.is_right(s, number)
if child == 0:
    os._exit(0 if s.statistics.failed == (0 if done else 1) else 1)
assert os.waitpid(child, 0)[1] == 0
assert shelf.is_right(s, 1, 20_000)
assert all(shelf.is_right(s, number) for start in (10, 100) for number in range(start, start + 10))
assert [name for name in shelf.file_names(root) if ".tmp" in name] == []
"""


@pytest.mark.sampled(3)
@pytest.mark.parametrize("call", ["lstat", "open", "replace", "close"])
def test_a_fork_in_the_middle_of_a_write(root, call):
    """Both processes go on with the same write, and then with others."""
    s = shelf.store(root)
    s.write(shelf.entry(1, 20_000))
    finish(start(FORKS, root, call, "child"))
    assert shelf.is_right(s, 1, 20_000)


FORKS_LOCKED = """
import time
from pathlib import Path
with folder.locked(root + "/lock", make=True) as held:
    assert held
    child = os.fork()
    if child == 0:
        time.sleep(600)
with folder.locked(root + "/lock") as again:
    print(again, child, flush=True)
"""


def test_a_fork_does_not_take_a_lock_with_it(root):
    os.makedirs(root, 0o700)
    process = start(FORKS_LOCKED, root)
    again, child = process.stdout.readline().split()
    os.kill(int(child), signal.SIGKILL)
    finish(process)
    assert again == "True"
