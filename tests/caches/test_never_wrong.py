"""Nothing that a cache answers is wrong: programs in several processes, over one cache.

Each program of `misleading` has variants that share the cache, and each of
them runs twice, so that every one finds the entries of the others. A wrong result is a failure;
what could not be cached is compiled. All programs of one variant share a process.
"""

import subprocess

import pytest

from tests.caches.misleading import PICK, PROGRAMS, text_of
from tests.caches.programs import HEAD, WARM, assign, letters, values
from tests.caches.two_runs import Runs, read

ALL = """
import importlib
import os


def main():
    out = {}
    for name in os.environ["NAMES"].split():
        try:
            out[name] = importlib.import_module(name).main()
        except Exception as error:
            out[name] = f"{type(error).__name__}: {error}"
    return out
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """What each variant of each program gave, in two rounds: (name, variant) -> [first, second]."""
    runs = Runs(tmp_path_factory.mktemp("never_wrong"))
    modules = {f"program_{n}": name for n, name in enumerate(PROGRAMS)}
    for module, name in modules.items():
        runs.write(text_of(PROGRAMS[name][0]), module)
    runs.write(ALL)
    picks = sorted({pick for _, variants in PROGRAMS.values() for pick in variants})
    out = {}
    for _ in range(2):
        for pick in picks:
            names = [module for module, name in modules.items() if pick in PROGRAMS[name][1]]
            reported = runs.run(PICK=pick, NAMES=" ".join(names)).result
            for module, result in reported.items():
                out.setdefault((modules[module], pick), []).append(result)
    return out


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_variant_gives_its_own_result(results, name):
    for pick, expected in PROGRAMS[name][1].items():
        for result in results[name, pick]:
            assert isinstance(result, list), result
            assert [value for value, _ in result] == [[expected]], f"variant {pick}"


def test_most_of_them_are_cached(results):
    """The second round is no sequence of compiles: what can be compared is found again."""
    warm = [result[0][1] == WARM for _, (_, result) in sorted(results.items())]
    assert sum(warm) > len(warm) * 0.7


MANY = """
import threading

SPEED = {"a": 1.0, "b": 2.0, "c": 3.0}[PICK]


@qd.kernel(fastcache=True)
def one(a: F32) -> None:
    for i in range(a.shape[0]):
        a[i] = a[i] * SPEED


@qd.kernel(fastcache=True)
def two(a: F32, t: qd.template()) -> None:
    for i in range(a.shape[0]):
        a[i] = a[i] * SPEED + t


def main():
    qd.init(arch=qd.cpu)
    out = [0.0] * 16

    def work(j):
        a = ones(3)
        one(a) if j % 2 else two(a, j)
        out[j] = a.to_numpy().tolist()

    threads = [threading.Thread(target=work, args=(j,)) for j in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return out
"""


@pytest.mark.slow
def test_processes_and_threads_at_once_give_their_own_results(runs):
    """Six processes of 16 threads and three variants fill one cache at the same time."""
    runs.write(HEAD + PICK + MANY)
    for _ in range(2):
        started = [
            (speed, subprocess.Popen(
                runs.command(), env=runs.environment(PICK=pick), cwd=runs.folder,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            ))
            for speed, pick in ((1.0, "a"), (2.0, "b"), (3.0, "c")) * 2
        ]  # fmt: skip
        for speed, process in started:
            out, err = process.communicate(timeout=200)
            run = read(subprocess.CompletedProcess((), process.returncode, out, err))
            assert run.error == "" and "warning" not in run.stderr, run.message or run.stderr
            assert run.result == [[speed + (0.0 if j % 2 else j)] * 3 for j in range(16)]


@pytest.mark.slow
def test_projects_with_equal_files_and_other_helpers(tmp_path):
    """Two folders with one program, which imports another module of one name in each."""
    text = HEAD + "import helper\n\n\n" + assign("helper.scale(a[i])")
    projects = []
    for name, factor in (("first", 2.0), ("second", 5.0)):
        (tmp_path / name).mkdir()
        runs = Runs(tmp_path / name, env={"XDG_CACHE_HOME": str(tmp_path / "cache")})
        runs.write(text)
        head = "import quadrants as qd\n\n\n@qd.func\ndef scale(x):\n"
        runs.write(f"{head}    return x * {factor}\n", "helper")
        projects.append((runs, factor))
    for runs, factor in projects * 2:
        assert values(runs.run()) == [[factor]]
    assert all(letters(runs.run()) == [WARM] for runs, _ in projects)
