"""The records of jobs become that of one process; jobs without a result are named."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest
from msgspec.structs import replace
from qd_studio.app.farm.jobs import FarmJob, Outcome
from qd_studio.app.farm.records import merged
from qd_studio.engine import inspect
from qd_studio.engine.inspect.store import canonical

from tests.app.records import make_record
from tests.app.worker.live import SCALE

BIN = os.path.dirname(sys.executable)


MPIEXEC = shutil.which("mpiexec", path=os.pathsep.join([BIN, os.environ.get("PATH", "")]))


def split(record):
    """A job for each backend, as workers return them."""
    names = [b.backend for b in record.kernels[0].backends]
    path = record.kernels[0].file
    out = []
    for name in names:
        kernels = [
            replace(k, backends=tuple(b for b in k.backends if b.backend == name))
            for k in record.kernels
        ]
        part = replace(record, kernels=tuple(kernels))
        out.append((FarmJob(file=path, backends=(name,)), Outcome(records=(part,))))
    return names, out


def test_the_parts_are_the_whole():
    record = make_record()
    names, parts = split(record)
    whole = merged(parts, record.command, names)
    assert len(names) > 1 and whole.kernels == record.kernels
    assert whole.errors == record.errors and whole.log == record.log and not whole.extra


def test_a_job_without_a_result_is_named():
    record = make_record()
    names, parts = split(record)
    parts[-1] = (parts[-1][0], Outcome(error="lost 3 times with its worker"))
    whole = merged(parts, (), names)
    (error,) = [e for e in whole.errors if e.kind == "FarmError"]
    assert error.message.endswith(f"on {names[-1]}: lost 3 times with its worker")
    lost = whole.kernels[0].backend(names[-1])
    assert lost is not None and lost.status == "error" and lost.reason == error.message
    assert inspect.loads(inspect.dumps(whole)).errors == whole.errors


def test_another_machine_is_in_the_record():
    record = make_record()
    names, parts = split(record)
    (job, one) = parts[-1]
    tool = replace(record.tool, cpu="another one")
    parts[-1] = (job, Outcome(records=(replace(one.records[0], tool=tool),), host="far"))
    assert merged(parts, (), names).extra["other_machines"]["far"]["cpu"] == "another one"


def program(*words, **more):
    return [sys.executable, "-m", "qd_studio.app.cli", *map(str, words)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "executor",
    ["processes", pytest.param("slurm:cluster=local", marks=pytest.mark.extra("submitit"))],
)
def test_a_report_of_several_workers_is_that_of_one_process(tmp_path, executor):
    if executor.startswith("slurm"):
        executor += f",folder={tmp_path / 'jobs'}"
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text(SCALE)
    files = ("--report", "a.py", "b.py", "--backend", "cpu,interp,cross")
    records = []
    for words in ([], ["--jobs", "2", "--executor", executor]):
        done = subprocess.run(
            program(*files, "--out", "r.json", *words), cwd=tmp_path, capture_output=True,
            text=True, timeout=300, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        records.append(replace(canonical(inspect.load(tmp_path / "r.json")), command=()))
    assert records[0] == records[1]
    left = [path.name for path in tmp_path.glob("jobs/*") if path.suffix != ".sh"]
    assert not left, "files of jobs that are done"


@pytest.mark.slow
@pytest.mark.extra("mpi4py")
@pytest.mark.skipif(MPIEXEC is None, reason="no mpiexec on PATH")
def test_the_ranks_of_mpi_are_workers(tmp_path):
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text(SCALE)
    words = ["--report", "a.py", "b.py", "--backend", "cpu,interp", "--out"]
    python = [sys.executable, "-m", "mpi4py.futures", "-m", "qd_studio.app.cli"]
    ranks = [MPIEXEC, "-n", "3", *python, *words, "mpi.json", "--executor", "mpi"]
    for command in (program(*words, "serial.json"), ranks):
        done = subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, done.stderr
    one, other = (
        replace(canonical(inspect.load(tmp_path / name)), command=())
        for name in ("serial.json", "mpi.json")
    )
    assert one == other


@pytest.mark.slow
def test_the_jobs_of_a_killed_process_run_again(tmp_path):
    waits = tmp_path / "waits"
    head = "import os, signal, time\nfrom pathlib import Path\n"
    # The first import kills what runs the worker.
    kill = (
        f"if not Path({str(waits)!r}).exists():\n    Path({str(waits)!r}).touch()\n"
        "    os.kill(os.getppid(), signal.SIGKILL)\n    time.sleep(60)\n"
    )
    (tmp_path / "a.py").write_text(head + kill + SCALE)
    (tmp_path / "b.py").write_text(SCALE)
    started = time.monotonic()
    done = subprocess.run(
        program("--report", "a.py", "b.py", "--backend", "cpu", "--jobs", "2", "--out", "r.json"),
        cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, (done.stderr, signal.SIGKILL)
    assert "a.py on cpu: lost with its worker" in done.stderr
    assert len(inspect.load(tmp_path / "r.json").kernels) == 2 and time.monotonic() > started


@pytest.mark.slow
@pytest.mark.extra("distributed")
def test_a_cluster_of_eight_workers_loses_one(tmp_path):
    dask, python = "tcp://127.0.0.1:0", [sys.executable, "-m", "dask"]
    scheduler_file = tmp_path / "scheduler.json"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": tmp_path}
    several = [
        subprocess.Popen(
            [*python, "scheduler", "--host", dask, "--no-dashboard", "--scheduler-file",
             str(scheduler_file)], **quiet,
        )
    ]  # fmt: skip
    try:
        several += [
            subprocess.Popen(
                [*python, "worker", "--scheduler-file", str(scheduler_file), "--nthreads", "1",
                 "--no-nanny", "--no-dashboard"], **quiet,
            )
            for _ in range(8)
        ]  # fmt: skip
        deadline = time.monotonic() + 60
        while not scheduler_file.exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        for number in range(6):
            (tmp_path / f"k{number}.py").write_text(SCALE)
        files = [f"k{number}.py" for number in range(6)]
        words = program(
            "--report", *files, "--backend", "cpu,interp,cross", "--out", "r.json",
            "--executor", f"dask:{scheduler_file}",
        )  # fmt: skip
        with subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as done:
            for line in done.stderr:
                if "k0.py" in line:
                    several[1].kill()
                    break
            done.stderr.read()
        assert done.returncode == 0
        record = inspect.load(tmp_path / "r.json")
        assert len(record.kernels) == 6 and not record.errors
    finally:
        for process in several:
            process.kill()
            process.wait()


NOTES = """
import time


def note(kind):
    begin = time.monotonic()
    time.sleep(0.2)
    with open({path!r}, "a") as file:
        file.write(f"{{kind}} {{begin}} {{time.monotonic()}}\\n")


note("import")
"""


@pytest.mark.slow
def test_launches_are_alone_on_the_machine(tmp_path):
    log = tmp_path / "log"
    text = SCALE.replace("    assert", '    note("launch")\n    assert')
    for name in ("a.py", "b.py", "c.py"):
        (tmp_path / name).write_text(NOTES.format(path=str(log)) + text)
    done = subprocess.run(
        program("--report", "a.py", "b.py", "c.py", "--backend", "cpu,cross", "--jobs", "4",
                "--out", "r.json"),
        cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False,
        env={**os.environ, "QD_FARM_LOCKS": str(tmp_path / "locks")},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    spans = [
        (kind, float(a), float(b)) for kind, a, b in map(str.split, log.read_text().splitlines())
    ]
    launches = [span for span in spans if span[0] == "launch"]
    assert len(launches) >= 3 and len(spans) >= 9
    for one in launches:
        others = [span for span in spans if span is not one]
        assert all(other[2] <= one[1] or one[2] <= other[1] for other in others)


@pytest.mark.slow
def test_a_sweep_and_a_bisection_have_the_same_options(tmp_path):
    (tmp_path / "a.py").write_text(SCALE)
    for words in (
        ["sweep", "a.py", "--option", "fast_math", "--rounds", "1", "--json"],
        ["bisect", "a.py", "--kernel", "scale", "--json"],
    ):
        done = subprocess.run(
            program(*words, "--backend", "cpu", "--jobs", "2"), cwd=tmp_path, text=True,
            capture_output=True, timeout=300, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        (sweep,) = found.get("sweeps") or [{"kernel": "a.py:scale"}]
        assert sweep["kernel"] == "a.py:scale" and found.get("state", "agrees") == "agrees"
