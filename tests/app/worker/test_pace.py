"""What a client reports of how far a job is, and what it keeps of that for the next start."""

import tempfile

import pytest
from qd_studio.app.worker.pace import Pace
from qd_studio.app.worker.protocol import Counts, FlightRecorder, Job, Working
from qd_studio.engine.inspect.record import BackendRecord, CompileRecord, KernelRecord, PassRun

BIG = KernelRecord(id="k.py:big", name="big", file="/k.py", line=1, end_line=9)
RUNS = tuple(PassRun(index=i, stage="s", name="die") for i in range(80))


class Played:
    """A `Pace` with a clock of its own and a flight recorder."""

    def __init__(self, path):
        self.now = 100.0
        self.pace = Pace(path, lambda: self.now)
        with tempfile.TemporaryFile() as file:
            file.truncate(FlightRecorder.SIZE)
            self.flight = FlightRecorder(file.fileno())

    def step(self, stage, text, kernel="k.py:big", backend=""):
        self.flight.count(Counts())
        place = {"file": "/k.py", "kernel": kernel, "backend": backend}
        return self.pace.working(Working(job=1, stage=stage, text=text, limit_s=0, **place))

    def after(self, seconds, counts=None):
        self.now += seconds
        if counts is not None:
            self.flight.count(counts)
        return self.pace.poll(self.flight)

    def look(self, **job):
        """A look of six seconds; the texts that it shows."""
        self.pace.begin(Job(id=1, files=("/k.py",), **job))
        shown = [self.step("import", "importing k.py", ""), self.after(1.0)]
        self.pace.loaded("/k.py", [BIG])
        shown.append(self.step("compile", "compiling big for cpu", backend="cpu"))
        shown.append(self.after(2.0, Counts(40, 0, 9000, "pass")))
        self.now += 2.0
        done = BackendRecord(backend="cpu", status="ok", compile=CompileRecord(runs=RUNS))
        full = {f: getattr(BIG, f) for f in BIG.__struct_fields__} | {"backends": (done,)}
        self.pace.updated(KernelRecord(**full), False)
        shown.append(self.step("launch", "timing big on cpu", backend="cpu"))
        self.now += 1.0
        self.pace.end(True)
        return [event.forms[0] for event in shown if event is not None]


FIRST = [
    "importing k.py", "compiling big for cpu",
    "compiling big for cpu, pass 40, 9,000 statements, 2 s so far", "timing big on cpu",
]  # fmt: skip
AGAIN = [
    "importing k.py, about 6 s left", "importing k.py, about 5 s left",
    "compiling big for cpu, about 5 s left",
    "compiling big for cpu, pass 40 of 80, 9,000 statements, about 3 s left",
    "timing big on cpu, about 1 s left",
]  # fmt: skip


def test_a_look_is_as_long_as_the_one_before(tmp_path):
    path = tmp_path / "state" / "times.json"
    played = Played(path)
    assert played.look() == FIRST
    assert played.look() == AGAIN
    # In another process, too.
    assert Played(path).look() == AGAIN
    # With other backends it is other work: of that only sizes are known.
    shown = Played(path).look(backends=("cuda",))
    assert not any("left" in text for text in shown[:2])


@pytest.mark.parametrize("text", ["", "{", '{"version": 99}', '{"steps": [1]}', "\0\0"])
def test_a_damaged_file_is_no_file(tmp_path, text):
    path = tmp_path / "times.json"
    path.write_text(text)
    assert Played(path).look() == FIRST
    assert Played(path).look() == AGAIN


def test_nothing_is_learnt_from_a_look_that_was_given_up(tmp_path):
    played = Played(tmp_path / "times.json")
    played.pace.begin(Job(id=1, files=("/k.py",)))
    played.step("import", "importing k.py", "")
    played.now += 9.0
    played.pace.end(False)
    assert not list(tmp_path.iterdir()) and played.look() == FIRST


def test_parts_of_a_step_are_counted(tmp_path):
    played = Played(tmp_path / "times.json")
    played.pace.begin(Job(id=1, files=("/k.py",)))
    played.step("bisect", "bisecting big")
    code = played.after(0.1, Counts(0, 0, 9000, "generating code"))
    assert code.forms[0] == "bisecting big, generating code, 9,000 statements"
    assert played.after(0.1, Counts(3, 30, 0, "trial")).forms[0] == "bisecting big, trial 3 of 30"
    assert played.after(0.1) is None or "trial 3 of 30" in played.after(0.1).forms[0]


def test_few_files_are_kept(tmp_path):
    path = tmp_path / "times.json"
    played = Played(path)
    for number in range(30):
        played.look(only=(f"k{number}", "big"), run=bool(number % 2), backends=(str(number),))
    assert path.stat().st_size < 20_000
