"""The offline cache between processes: a warm one gives what a cold one gives, bit for bit."""

import json
import re

import pytest

from tests.caches.programs import corpus_cases
from tests.caches.two_runs import Runs
from tests.reference import corpus
from tests.samples.sample_files import KERNELS, SAMPLES

# --- many kernels -----------------------------------------------------------------------------

ADDRESS = re.compile(r"0x[0-9a-f]+")


def cases(runs: Runs, program: str, arch: str, **options) -> tuple[dict, dict]:
    """What each case of a program of the corpus gives, as text, and what the store did."""
    names = [case.name for case in corpus.cases(program)]
    found = corpus_cases(runs, program, names, arch, CORPUS_OPTIONS=json.dumps(options))
    store = found.pop("<store>")
    assert set(found) == set(names)
    # The place of an object in memory is the one thing that may differ.
    return {name: ADDRESS.sub("0x", json.dumps(given)) for name, given in found.items()}, store


PROGRAMS = [
    "aggregates_more", "arrays", "atomics", "classes_more", "control_more", "dataclasses_args",
    "fields_in_kernels", "functions", "layouts", "loops", "maths", "operators", "prints",
    "promises", "real_functions", "references", "results", "scalar_types", "structs", "tensors",
    "tools", "vector_elements", "vectors", "warned",
]  # fmt: skip
"""Those of the corpus that compile much, or what others do not.

Kernels that are found by their source, which gives no warnings, are in `test_purity_caches`.
"""

WAYS = {
    "cpu": ("cpu", {}, PROGRAMS),
    "debug": ("cpu", {"debug": True}, ["arrays", "functions", "mistakes", "operators", "prints"]),
    "interp": ("interp", {"debug": True}, ["fields_in_kernels", "prints", "real_functions"]),
}


@pytest.mark.sampled(8)
@pytest.mark.parametrize(
    ("way", "program"), [(way, p) for way, (_, _, programs) in WAYS.items() for p in programs]
)
def test_warm_and_cold_give_the_same(runs, way, program):
    """Values, errors with their lines, and what is printed, of every case of the corpus."""
    arch, options, _ = WAYS[way]
    cold, first = cases(runs, program, arch, **options)
    warm, second = cases(runs, program, arch, **options)
    assert warm == cold
    assert (first["hits"], first["damaged"], second["damaged"]) == (0, 0, 0)
    # Equal kernels of several cases have an entry each, and are found in memory after the first.
    assert first["stored"] >= second["hits"] >= first["misses"] > 0 or not first["stored"]
    assert (second["misses"], second["stored"]) == (0, 0)


@pytest.mark.slow
def test_the_samples_give_the_same(runs):
    runs.write(SAMPLE_RUN)
    (runs.folder / "kernels.json").write_text(json.dumps([str(SAMPLES), KERNELS]))
    cold, warm = runs.run(), runs.run()
    assert (cold.error, warm.error) == ("", "")
    assert len(cold.result) == len(KERNELS) > 10
    assert warm.result == cold.result
    assert cold.ran_llvm
    assert cold.ran_passes
    assert not warm.ran_llvm
    assert not warm.ran_passes
    assert warm.stdout == cold.stdout


SAMPLE_RUN = """
import hashlib
import importlib
import json
import sys
from pathlib import Path

import numpy as np
import quadrants as qd


def digest(value):
    if isinstance(value, np.ndarray):
        return hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
    if hasattr(value, "to_numpy"):
        return digest(value.to_numpy())
    return repr(value)


def main():
    samples, kernels = json.loads(Path(__file__).with_name("kernels.json").read_text())
    sys.path.insert(0, samples)
    qd.init(arch=qd.cpu, cpu_max_num_threads=1, random_seed=5)
    found = {}
    for sample, name in kernels:
        kernel = getattr(importlib.import_module(sample), name)
        args = kernel.workloads[0].cases()[0].make()
        result = kernel(*args)
        found[f"{sample}.{name}"] = [digest(result), *map(digest, args)]
    return found
"""


# --- what a warm process does not do ----------------------------------------------------------

PROGRAM = """
import numpy as np
import quadrants as qd

qd.init(arch=qd.ARCH, debug=DEBUG, kernel_profiler=True, log_level="info")

@qd.func
def checked(x, k):
    assert k < 6, f"too far: {k}"
    return x * k

@qd.kernel
def work(a: qd.types.NDArray[qd.f32, 1], n: qd.i32) -> qd.f32:
    s = 0.0
    for i in range(n):
        a[i] = checked(a[i], i) + qd.random()
    for i in range(n):
        s += a[i]
    print("sum", s, n)
    return s

@qd.kernel
def wraps(n: qd.i32) -> qd.i32:
    return n * n

def main():
    a = np.arange(8, dtype=np.float32)
    found = [work(a, 5), a.tolist(), wraps(3), wraps(1 << 20)]
    try:
        work(a, 8)
    except Exception as error:
        found.append([type(error).__name__, str(error), error.span.line])
    from qd_studio.engine.runtime.program import current

    found.append([task.name for task in current().profiler.trace()])
    return found
"""


def program(arch="cpu", debug=False) -> str:
    return PROGRAM.replace("ARCH", arch).replace("DEBUG", str(debug))


def compiles(run) -> int:
    return run.stderr.count("Compiling kernel")


@pytest.mark.sampled(5)
@pytest.mark.parametrize(("arch", "debug"), [("cpu", False), ("cpu", True), ("interp", True)])
def test_a_warm_process_runs_neither_passes_nor_llvm(runs, arch, debug):
    runs.write(program(arch, debug))
    cold, warm = runs.run(QD_SHOW_COMPILING="1"), runs.run(QD_SHOW_COMPILING="1")
    assert cold.error == ""
    assert warm.result == cold.result
    assert warm.stdout == cold.stdout != ""
    tasks = cold.result[-1]  # as the profiler calls them
    assert {"work", "wraps"} <= {task.split("_kernel_")[0] for task in tasks}
    assert (compiles(cold), compiles(warm)) == (2, 0)
    assert cold.ran_passes
    assert not warm.ran_passes
    assert not warm.ran_llvm
    for name in ("work", "wraps"):
        assert cold.of(name).layers["offline"]["stored"]
        seen = warm.of(name).layers["offline"]
        assert (seen["state"], seen["source"]) == ("hit", "disk")
    if debug:
        reported = [line for line in cold.stdout.splitlines() if "overflow" in line.lower()]
        assert reported
        assert [line for line in warm.stdout.splitlines() if "overflow" in line.lower()] == reported
        kind, text, line = warm.result[4]
        assert kind == "QuadrantsAssertionError"
        assert "too far: 6" in text
        assert runs.path.read_text().splitlines()[line - 1].strip().startswith("assert k < 6")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("arch", ["cpu", "interp"])
def test_a_kernel_that_moved_is_found_and_its_messages_name_the_new_lines(runs, arch):
    runs.write(program(arch, True))
    cold = runs.run()
    runs.edit("@qd.func", "# moved\n\n\n@qd.func")
    runs.edit("@qd.kernel\ndef work", "\n\n@qd.kernel\ndef work")
    runs.edit("return n * n", "return n * n * 1 + 5")  # another kernel
    warm = runs.run()
    assert warm.of("work").state("offline") == "hit"
    assert warm.of("wraps").state("offline") == "miss"
    before, after = cold.result[4], warm.result[4]
    assert after[2] == before[2] + 3
    lines = [int(n) for n in re.findall(r"line (\d+)", before[1])]
    moved = [int(n) for n in re.findall(r"line (\d+)", after[1])]
    # The assert lies in the function, which moved by 3; its call in the kernel, which moved by 5.
    assert sorted(m - n for n, m in zip(lines, moved, strict=True)) == [3, 5]
    text = runs.path.read_text().splitlines()
    assert [text[n - 1].strip() for n in sorted(moved)] == [
        'assert k < 6, f"too far: {k}"', "a[i] = checked(a[i], i) + qd.random()",
    ]  # fmt: skip


RECURSIVE = """
import quadrants as qd

qd.init(arch=qd.cpu)

@qd.real_func
def down(n: qd.i32) -> qd.i32:
    r = 0
    if n > 0:
        r = down(n - 1) + 1
    return r

@qd.kernel
def depth(n: qd.i32) -> qd.i32:
    return down(n)

def main():
    found = [depth(10)]
    try:
        depth(1 << 20)
    except Exception as error:
        found += [str(error), error.span.line]
    return found
"""


def test_checks_that_stay_without_debug_name_the_new_lines_too(runs):
    runs.write(RECURSIVE)
    cold = runs.run()
    runs.edit("@qd.real_func", "#\n#\n@qd.real_func")
    warm = runs.run()
    assert warm.of("depth").state("offline") == "hit"
    assert cold.of("depth").layers["offline"]["parts"]["places"] != "none"
    assert "levels deep" in cold.result[1]
    assert warm.result == [
        10, cold.result[1].replace(f"line {cold.result[2]}", f"line {cold.result[2] + 2}"),
        cold.result[2] + 2,
    ]  # fmt: skip
    runs.edit("def down", "# a line more\ndef down")
    assert runs.run().of("depth").state("offline") == "miss"


def test_the_same_file_elsewhere_is_the_same_kernel(runs):
    runs.write(program("cpu", True))
    cold = runs.run()
    runs.path.rename(runs.folder / "renamed.py")
    runs.name = "renamed"
    warm = runs.run()
    assert warm.of("work").state("offline") == "hit"
    assert str(runs.path) in warm.result[4][1]
    assert warm.result[:4] == cold.result[:4]
