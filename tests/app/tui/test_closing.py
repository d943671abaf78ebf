"""A sample of `tests.app.closing`: nothing is left of a studio or a report that was made to end."""

import os
import signal
import subprocess
import sys
import time

import pytest

from tests.app import closing

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")

# Much more than it takes, for a machine with much else to do; what hangs does so for ever.
LONG_S = 20.0


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("way", "kind"),
    [
        ("deaf terminal", "many"),
        ("close", "endless import"),
        ("SIGKILL", "held interpreter"),
        ("shell", "children"),
    ],
)
def test_nothing_is_left_of_a_studio_that_was_closed(tmp_path, way, kind):
    what, took, left = closing.close_one(7, tmp_path, LONG_S, way, kind)
    assert left == [], f"{what}: left after {took:.1f} s"


@pytest.mark.sampled(5)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_nothing_is_left_of_a_report_that_was_ended(tmp_path, number):
    path, mark = tmp_path / "k.py", f"report{os.getpid()}"
    path.write_text(
        "import itertools, subprocess\nsubprocess.Popen(['sleep', '1000'])\n"
        f"open({str(tmp_path / 'there')!r}, 'w').close()\nsum(itertools.repeat(0))\n"
    )
    words = [sys.executable, "-c", closing.STUDIO, "--report", "--backend", "cpu", str(path)]
    environment = os.environ | {"QD_CLOSING": mark}
    process = subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=environment,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    try:
        until = time.monotonic() + 60
        while not (tmp_path / "there").exists() and time.monotonic() < until:
            time.sleep(0.02)
        process.send_signal(number)
        out, talk = process.communicate(timeout=60)
        assert (process.returncode, out) == (128 + number, ""), talk
        assert "Traceback" not in talk
        until = time.monotonic() + LONG_S
        while closing.marked(mark) and time.monotonic() < until:
            time.sleep(0.02)
        assert closing.marked(mark) == []
    finally:
        closing.sweep(mark)
