"""Frames, the flight recorder, cutting output into lines, how ends are reported."""

import signal
import tempfile

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from qd_studio.app.worker import exit_status, protocol
from qd_studio.app.worker.process import LineCutter
from qd_studio.engine.inspect.record import ErrorRecord

from tests.app.records import make_record

JOB = protocol.Job(
    id=3, files=("a.py", "b.py"), config={"fast_math": False, "opt_level": 0, "x": "y"},
    quarantined=(
        protocol.Quarantined(
            file="a.py", stage="launch", error=ErrorRecord(kind="K", message="m")
        ),
    ),
)  # fmt: skip
MESSAGES = [
    JOB,
    protocol.Hello(pid=1, tool=make_record().tool),
    protocol.Working(job=1, stage="import", text="importing", limit_s=2.0),
    protocol.FileLoaded(job=1, path="a.py", ok=True, files=make_record().files),
    protocol.KernelDone(job=1, kernel=make_record().kernels[0], final=True),
    protocol.Problem(job=1, path="a.py", error=ErrorRecord(kind="K", message="m")),
    protocol.JobDone(job=1, elapsed_ms=1.5),
]
EVERYTHING = msgspec.msgpack.Decoder(protocol.ToWorker | protocol.FromWorker)


@given(st.lists(st.integers(1, 4000), max_size=30))
def test_messages_survive_however_they_are_cut(cuts):
    data = b"".join(map(protocol.frame, MESSAGES))
    unframer, got, at = protocol.Unframer(), [], 0
    for size in [*cuts, len(data)]:
        got += unframer.feed(data[at : at + size])
        at += size
    assert [EVERYTHING.decode(body) for body in got] == MESSAGES


def test_another_stream_is_refused():
    with pytest.raises(ValueError, match="a message of"):
        protocol.Unframer().feed(b"Traceback (most recent call last)")


def test_the_flight_recorder_is_shared_and_bounded():
    with tempfile.TemporaryFile() as file:
        file.truncate(protocol.FlightRecorder.SIZE)
        ours, theirs = (protocol.FlightRecorder(file.fileno()) for _ in range(2))
    assert ours.read() == ""
    theirs.note("simplify_I/die")
    assert ours.read() == "simplify_I/die"
    theirs.note("x")
    assert ours.read() == "x"
    theirs.note("é" * 1000)
    assert ours.read().startswith("é" * 100)
    assert ours.counts() == protocol.Counts()
    theirs.count(protocol.Counts(3, 80, 1 << 40, "pass"))
    assert ours.counts() == (3, 80, (1 << 32) - 1, "pass") and ours.read().startswith("é" * 100)


@given(st.lists(st.text("ab\n", min_size=1, max_size=40), max_size=10))
def test_lines_do_not_depend_on_how_they_come(pieces):
    cutter = LineCutter("stdout")
    got = [line.text for piece in pieces for line in cutter.feed(piece.encode())]
    got += [line.text for line in cutter.feed(b"")]
    whole = "".join(pieces)
    assert got == (whole.removesuffix("\n").split("\n") if whole else [])


def test_output_is_cut_at_the_limit_and_counts_again_for_the_next_job():
    cutter = LineCutter("stderr")
    lines = cutter.feed(b"x\n" * 5000)
    assert len(lines) == LineCutter.MAX_LINES + 1
    assert (lines[-1].stream, lines[-2].stream) == ("engine", "stderr")
    assert cutter.feed(b"more\nhal") == []
    assert cutter.feed(b"") == []
    cutter.reset()
    # The rest of the line that was cut off is no line.
    assert [line.text for line in cutter.feed(b"f\nnew\n")] == ["new"]


def test_long_lines_and_bad_bytes_are_shown_as_far_as_they_go():
    cutter = LineCutter("stdout")
    (line,) = cutter.feed(b"y" * 100_000)
    assert line.text == "y" * LineCutter.MAX_LINE + " ..."
    assert [x.text for x in cutter.feed(b"\xff\r\n")] == ["\ufffd"]


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (0, "exited with status 0"),
        (-signal.SIGSEGV, "SIGSEGV (segmentation fault)"),
        (-signal.SIGUSR1, "SIGUSR1 (signal)"),
        (-63, "signal 63"),
    ],
)
def test_ends_in_words(status, text):
    assert text in exit_status.how_it_ended(status)


def test_a_crash_is_an_error_of_the_step():
    step = protocol.Working(
        job=1, stage="compile", text="compiling k for cpu", limit_s=1.0, file="k.py", kernel="k:k",
        kernel_name="k", backend="cpu", line=5,
    )  # fmt: skip
    error = exit_status.crash_error("the worker died", step, "simplify_I/die")
    assert error.message == "the worker died during compiling k for cpu, pass simplify_I/die"
    assert (error.kind, error.stage, error.kernel, error.line) == (
        "WorkerCrash", "compile", "k", 5,
    )  # fmt: skip
    assert error.rendered.startswith('File "k.py", line 5:\n')
    assert exit_status.crash_error("stopped after 1 s: x", step, "").kind == "TimeLimit"
    assert exit_status.crash_error("gone", None, "").stage == "worker"
