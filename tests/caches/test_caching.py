"""The section on caching of the page on `init`, statement by statement.

Each docstring names the statement. The programs run in processes of their own, over a cache
directory that they share.
"""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.caches.programs import program
from tests.caches.ptx_kit import make_ptx
from tests.caches.two_runs import Run, Runs


@pytest.fixture
def runs(tmp_path) -> Runs:
    return Runs(tmp_path, env={"QD_SHOW_COMPILING": "1"})


SUM = """
@qd.kernel
def total(a: F32) -> qd.f32:
    s = 0.0
    for i in range(a.shape[0]):
        s += a[i] * 2.0
    return s


def main():
    out = []
    for _ in range(ROUNDS):
        qd.init(arch=qd.cpu OPTIONS)
        out.append(total(ones()))
        out.append(total(ones()))
    return out
"""


def write(runs: Runs, options: str = "", rounds: int = 1) -> None:
    runs.write(program(SUM.replace("ROUNDS", str(rounds)).replace(" OPTIONS", options)))


def compiles(run: Run) -> int:
    """How many kernels were compiled; the result was right."""
    assert set(run.result) == {8.0}
    return run.stderr.count("Compiling kernel 'total'")


def answer(run: Run) -> tuple[str, str]:
    """State and source of the offline cache for the last compile."""
    layer = run.of("total").layers["offline"]
    return layer["state"], layer["source"]


COLD = {"QD_OFFLINE_CACHE": "0"}


# ---- offline_cache


@pytest.mark.sampled(3)
@pytest.mark.parametrize("arch", ["", "x64", "interp"])
def test_the_caches_persist_across_processes_by_default(runs, arch):
    """The second process reuses the artifacts of the first, on every backend; default True.

    Kernel IR and config -> compiled kernel: the entire compile pipeline is skipped. They are below
    the user's cache directory, under our own name, and nothing else is there.
    """
    write(runs)
    env = {"QD_ARCH": arch} if arch else {}
    first, second = runs.run(**env), runs.run(**env)
    assert (compiles(first), compiles(second)) == (1, 0)
    assert (answer(first), answer(second)) == (("miss", ""), ("hit", "disk"))
    assert first.ran_passes and (first.ran_llvm or arch == "interp")
    assert not second.ran_passes and not second.ran_llvm
    assert not {name for name in second.modules if name.startswith("qd_studio.engine.passes.")}
    assert runs.files("offline")
    inside = {path.relative_to(runs.home).parts[:2] for path in runs.home.rglob("*.*")}
    assert inside == {("qd-studio", "qdcache")}


def test_the_flag_decides_only_what_the_next_process_finds(runs):
    """... only whether the next invocation sees a warm or a cold disk.

    Compile-time profiles and first-run behaviour: no run without the cache warms up another one,
    and it leaves no folder behind, not even an empty one.
    """
    write(runs)
    cold = [runs.run(**COLD) for _ in range(2)]
    assert [compiles(run) for run in cold] == [1, 1]
    assert not runs.home.exists()
    assert compiles(runs.run()) == 1
    assert compiles(runs.run()) == 0
    cold.append(runs.run(**COLD))
    assert compiles(cold[2]) == 1
    assert len({frozenset(run.modules) for run in cold}) == 1
    assert compiles(runs.run()) == 0


def test_the_argument_wins_over_the_environment(runs):
    """Options are arguments and environment variables; an argument counts more."""
    write(runs, ", offline_cache=True")
    assert compiles(runs.run(**COLD)) == 1
    run = runs.run(**COLD)
    assert compiles(run) == 0
    assert 'QD_OFFLINE_CACHE=0 overridden by qd.init argument "offline_cache"' in run.stderr


# ---- the layers


@pytest.mark.sampled(3)
@pytest.mark.parametrize("by", ["argument", "environment"])
def test_the_folder_can_be_chosen(runs, by):
    """offline_cache_file_path, or its variable: entries are there and nowhere else."""
    place = runs.folder / "my place"
    option = f", offline_cache_file_path={str(place)!r}" if by == "argument" else ""
    env = {} if by == "argument" else {"QD_OFFLINE_CACHE_FILE_PATH": str(place)}
    write(runs, option)
    assert compiles(runs.run(**env)) == 1
    assert list((place / "offline").iterdir()) and not runs.files()
    assert compiles(runs.run(**env)) == 0


PTX = """
from qd_studio.engine.cache.driver import submitted
from qd_studio.engine.cache.ptx import PtxCache
from qd_studio.engine.config import CompileConfig
from tests.caches.ptx_kit import llvm_ir, make_ptx
import json, sys

made = []


def make():
    made.append(1)
    return make_ptx()


config = CompileConfig(offline_cache=sys.argv[1] == "True")
states = []
for _ in range(2):
    found = PtxCache(config, "sm_90").ptx(llvm_ir(), make, "LLVM")
    states.append(" ".join([found.observation.state, found.observation.source]).strip())
texts = {submitted(found.text, config).decode() for _ in range(2)}
print(json.dumps([len(made), states, sorted(texts)]))
"""


class Ptx(NamedTuple):
    """What a process that needs the PTX of one text twice says: PTX made, answers, submitted."""

    made: int
    answers: list[str]
    texts: list[str]


@pytest.fixture(scope="module")
def ptx(tmp_path_factory):
    """A cold and two warm processes, what they left, and two without the cache on disk."""
    make_ptx()  # or skip
    runs = Runs(tmp_path_factory.mktemp("ptx"))

    def process(offline_cache: bool) -> Ptx:
        done = subprocess.run(
            [sys.executable, "-c", PTX, str(offline_cache)], env=runs.environment(),
            capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2],
        )  # fmt: skip
        return Ptx(*json.loads(done.stdout))

    on = [process(True) for _ in range(2)]
    files = runs.files()
    off = [process(False) for _ in range(2)]
    return on, off, files, runs.files()


def test_layer_1_is_keyed_by_ir_and_config(runs):
    """When IR or config differ it misses; when both are as before it hits again."""
    write(runs)
    runs.run()
    for old, new in (("* 2.0", "/ 0.5"), ("arch=qd.cpu", "arch=qd.cpu, fast_math=False")):
        runs.edit(old, new)
        assert compiles(runs.run()) == 1
        assert compiles(runs.run()) == 0
        runs.edit(new, old)
        assert compiles(runs.run()) == 0


def test_layer_2_skips_what_makes_ptx(ptx):
    """When the hash of the LLVM IR hits, the PTX made earlier is loaded from disk.

    It is below the same root as layer 1; the PTX of each architecture has its own folder there.
    """
    (cold, warm), _, files, _ = ptx
    assert cold[:2] == (1, ["miss", "hit memory"])
    assert warm[:2] == (0, ["hit disk", "hit memory"])
    assert {(path.parents[1].name, path.parent.name) for path in files} == {
        ("qdcache", "ptx_cache_sm_90"),
    }  # fmt: skip


def test_layer_3_is_keyed_by_the_text_of_the_ptx(ptx):
    """The driver's cache is keyed by PTX content: warm, each process submits the same text."""
    (one,), (two,) = (process.texts for process in ptx[0])
    assert one == two and "nonce" not in one


# ---- offline_cache=False on each layer


def test_false_falls_back_to_memory_on_layer_1(runs):
    """Layer 1: the disk is not consulted, nothing new is written, every process compiles."""
    write(runs)
    runs.run()
    files = runs.files()
    before = [(path, path.read_bytes(), path.stat()) for path in files]
    write(runs, rounds=2)
    for _ in range(2):
        run = runs.run(**COLD)
        assert compiles(run) == 1 and answer(run) == ("hit", "memory")
    after = [(path, path.read_bytes(), path.stat()) for path in runs.files()]
    assert [(p, data, s.st_mtime_ns, s.st_atime_ns) for p, data, s in before] == [
        (p, data, s.st_mtime_ns, s.st_atime_ns) for p, data, s in after
    ]


def test_false_falls_back_to_memory_on_layer_2(ptx):
    """Layer 2: PTX is shared within one process, nothing is read from or written to disk."""
    _, off, before, after = ptx
    assert [process[:2] for process in off] == [(1, ["off", "hit memory"])] * 2
    assert before == after


def test_false_makes_layer_3_miss_with_a_nonce(ptx):
    """Layer 3: a comment with a nonce, constant within a process, different between them."""
    on, off, *_ = ptx
    (warm,) = on[1].texts
    seen = set()
    for process in off:
        (text,) = process.texts  # both times the same
        added = text.removeprefix(warm.rstrip("\0")).rstrip("\0")
        assert re.fullmatch(r"// qd-session-nonce: \d+-[0-9a-f]{8}\n", added)
        seen.add(added)
    assert len(seen) == 2


# ---- when to set it to False


def test_false_helps_with_a_suspected_corruption(runs):
    """Investigating suspected corruption: damaged entries are not looked at, nor warned of."""
    write(runs)
    runs.run()
    for path in runs.files("offline"):
        path.write_bytes(b"damaged" * 20)
    run = runs.run(**COLD)
    assert compiles(run) == 1 and "damaged" not in run.stderr and "warning" not in run.stderr
    warned = runs.run()
    assert compiles(warned) == 1 and warned.stderr.count("warning") == 1
    assert compiles(runs.run()) == 0
