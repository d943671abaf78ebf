"""The section on caching of the page on `init`, statement by statement.

Each docstring names the statement. The programs run in processes of their own, over a cache
directory that they share.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

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


def test_the_caches_persist_across_processes_by_default(runs):
    """Whether the caches persist on disk across Python invocations; default True."""
    write(runs)
    first, second = runs.run(), runs.run()
    assert (compiles(first), compiles(second)) == (1, 0)
    assert runs.files("offline")


def test_the_second_start_is_cheap(runs):
    """The second process reuses the artifacts of the first: no passes, no LLVM."""
    write(runs)
    first, second = runs.run(), runs.run()
    assert first.ran_passes and first.ran_llvm
    assert not second.ran_passes and not second.ran_llvm
    assert (answer(first), answer(second)) == (("miss", ""), ("hit", "disk"))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("by", ["argument", "environment"])
def test_false_emulates_a_cold_start(runs, by):
    """offline_cache=False, or QD_OFFLINE_CACHE=0: as if nothing had been on disk."""
    write(runs)
    runs.run()
    write(runs, ", offline_cache=False" if by == "argument" else "")
    for _ in range(2):
        run = runs.run(**({} if by == "argument" else COLD))
        assert compiles(run) == 1 and run.ran_passes and run.ran_llvm
        assert answer(run) == ("off", "")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("options", ["", ", offline_cache=False"])
def test_identical_kernels_are_never_compiled_twice_in_one_process(runs, options):
    """In-process caches work independently of the flag, also through new programs."""
    write(runs, options, rounds=3)
    run = runs.run()
    assert compiles(run) == 1 and len(run.result) == 6
    assert answer(run) == ("hit", "memory")


def test_the_flag_decides_only_what_the_next_process_finds(runs):
    """... only whether the next invocation sees a warm or a cold disk."""
    write(runs)
    assert compiles(runs.run(**COLD)) == 1
    assert not runs.files()
    assert compiles(runs.run()) == 1
    assert compiles(runs.run()) == 0
    assert compiles(runs.run(**COLD)) == 1
    assert compiles(runs.run()) == 0


def test_the_argument_wins_over_the_environment(runs):
    """Options are arguments and environment variables; an argument counts more."""
    write(runs, ", offline_cache=True")
    assert compiles(runs.run(**COLD)) == 1
    run = runs.run(**COLD)
    assert compiles(run) == 0
    assert 'QD_OFFLINE_CACHE=0 overridden by qd.init argument "offline_cache"' in run.stderr


# ---- the layers


def test_the_default_folder_is_in_the_cache_directory_of_the_user(runs):
    """offline_cache_file_path: by default below the user's cache directory, under our own name."""
    write(runs)
    runs.run()
    assert runs.files("offline")
    inside = {path.relative_to(runs.home).parts[:2] for path in runs.home.rglob("*.*")}
    assert inside == {("qd-studio", "qdcache")}


def test_without_an_xdg_directory_the_default_is_below_the_home(runs):
    """... ~/.cache where nothing else is set."""
    write(runs)
    home = runs.folder / "home"
    home.mkdir()
    assert compiles(runs.run(XDG_CACHE_HOME="", HOME=str(home))) == 1
    below = "Library/Caches" if sys.platform == "darwin" else ".cache"
    assert list((home / below / "qd-studio" / "qdcache" / "offline").iterdir())
    assert compiles(runs.run(XDG_CACHE_HOME="", HOME=str(home))) == 0


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


def ptx_process(runs: Runs, offline_cache: bool) -> tuple[int, list[str], list[str]]:
    """A process that needs the PTX of one text twice: PTX made, answers, what is submitted."""
    make_ptx()  # or skip
    done = subprocess.run(
        [sys.executable, "-c", PTX, str(offline_cache)], env=runs.environment(),
        capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    return tuple(json.loads(done.stdout))


def test_the_first_two_layers_share_the_directory(runs):
    """Layers 1 and 2 are below one root; the PTX of each architecture has its own folder there."""
    write(runs)
    runs.run()
    ptx_process(runs, True)
    root = runs.home / "qd-studio" / "qdcache"
    assert {"offline", "ptx_cache_sm_90"} <= {path.name for path in root.iterdir()}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("arch", ["x64", "interp"])
def test_layer_1_is_active_for_every_backend(runs, arch):
    """Kernel IR and config -> compiled kernel, loaded from disk, for every backend."""
    write(runs)
    first, second = runs.run(QD_ARCH=arch), runs.run(QD_ARCH=arch)
    assert (compiles(first), compiles(second)) == (1, 0)
    assert answer(second) == ("hit", "disk") and not second.ran_passes


def test_layer_1_skips_the_entire_pipeline(runs):
    """... the entire compile pipeline is skipped."""
    write(runs)
    runs.run()
    second = runs.run()
    assert not {name for name in second.modules if name.startswith("qd_studio.engine.passes.")}
    assert not second.ran_llvm


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


def test_layer_1_sees_through_changes_of_the_text_alone(runs):
    """It is the IR that counts: comments, names of variables and places are none of it."""
    write(runs)
    runs.run()
    runs.edit("    s = 0.0\n", "    # a comment\n\n    s = 0.0\n")
    runs.edit("@qd.kernel", "\n\n@qd.kernel")
    assert compiles(runs.run()) == 0


def test_layer_2_skips_what_makes_ptx(runs):
    """When the hash of the LLVM IR hits, the PTX made earlier is loaded from disk."""
    assert ptx_process(runs, True)[:2] == (1, ["miss", "hit memory"])
    assert ptx_process(runs, True)[:2] == (0, ["hit disk", "hit memory"])


def test_layer_3_is_keyed_by_the_text_of_the_ptx(runs):
    """The driver's cache is keyed by PTX content: warm, each process submits the same text."""
    (one,), (two,) = ptx_process(runs, True)[2], ptx_process(runs, True)[2]
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


def test_false_leaves_no_folder_behind(runs):
    """... not even an empty one."""
    write(runs)
    assert compiles(runs.run(**COLD)) == 1
    assert not runs.home.exists()


def test_false_falls_back_to_memory_on_layer_2(runs):
    """Layer 2: PTX is shared within one process, nothing is read from or written to disk."""
    ptx_process(runs, True)
    before = runs.files()
    for _ in range(2):
        assert ptx_process(runs, False)[:2] == (1, ["off", "hit memory"])
    assert runs.files() == before


def test_false_makes_layer_3_miss_with_a_nonce(runs):
    """Layer 3: a comment with a nonce, constant within a process, different between them."""
    (warm,) = ptx_process(runs, True)[2]
    seen = set()
    for _ in range(3):
        texts = ptx_process(runs, False)[2]
        assert len(texts) == 1  # both times the same
        added = texts[0].removeprefix(warm.rstrip("\0")).rstrip("\0")
        assert re.fullmatch(r"// qd-session-nonce: \d+-[0-9a-f]{8}\n", added)
        seen.add(added)
    assert len(seen) == 3


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


def test_false_gives_the_same_costs_each_time(runs):
    """Compile-time profiles and first-run behaviour: no run warms up another one."""
    write(runs)
    seen = [runs.run(**COLD) for _ in range(3)]
    assert [compiles(run) for run in seen] == [1, 1, 1]
    assert len({frozenset(run.modules) for run in seen}) == 1
