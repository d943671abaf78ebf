"""A `WorkerClient` whose events tests can wait for, and files for it to work on."""

from __future__ import annotations

import queue
import textwrap

from msgspec.structs import replace
from qd_studio.app.worker import events
from qd_studio.app.worker.client import WorkerClient
from qd_studio.app.worker.protocol import Limits

# Long enough for any machine: a test that waits this long fails, none measures.
LONG_S = 120.0

HEAD = """\
import numpy as np
from qd_studio import engine as qd

"""

SCALE = (
    HEAD
    + """
@qd.kernel
def scale(x: qd.types.ndarray(dtype=qd.f32, ndim=1), a: qd.f32):
    for i in range(x.shape[0]):
        x[i] = x[i] * a


@scale.workload(n=[64, 1000], bytes=lambda n: 8 * n)
def ones(n):
    return np.ones(n, np.float32), 3.0


@scale.check
def threefold(before, after, result):
    assert (after[0] == before[0] * before[1]).all()
"""
)


def kernel_file(body: str) -> str:
    """A file with one kernel ``k(x)`` over a vector of f32; ``body`` is its text."""
    kernel = "@qd.kernel\ndef k(x: qd.types.ndarray(dtype=qd.f32, ndim=1)):\n"
    return HEAD + kernel + textwrap.indent(textwrap.dedent(body).strip("\n"), "    ") + "\n"


class Live:
    """Starts a client and gathers its events."""

    def __init__(self, *paths, limits=None, backends=("cpu", "interp"), **options):
        self.queue: queue.Queue = queue.Queue()
        self.seen: list = []
        self.client = WorkerClient(
            paths,
            options.pop("config", None),
            backends,
            self.queue.put,
            limits=limits or Limits(measure_s=0.01),
            **options,
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.client.stop()

    def wait(self, wanted):
        """The next event for which ``wanted(event)`` is true."""
        while True:
            event = self.queue.get(timeout=LONG_S)
            self.seen.append(event)
            if wanted(event):
                return event

    def complete(self):
        """The record of the next job that is over."""
        return self.wait(
            lambda e: isinstance(e, events.RecordUpdated) and e.complete and not e.again
        ).record

    def save(self, path, text):
        """Save a file and ask for a look at it."""
        path.write_text(text)
        self.client.request_refresh([str(path)])

    def after(self, path, text):
        """The record once a save has been looked at."""
        self.save(path, text)
        return self.complete()

    def of(self, kind):
        """All events of one kind so far."""
        return [e for e in self.seen if isinstance(e, kind)]

    def forget(self):
        self.seen.clear()


def backend(record, name="cpu", kernel=0):
    """The record of a backend of one kernel."""
    return record.kernels[kernel].backend(name)


def two_kernels(body: str, workload: str = "np.ones(64, np.float32)") -> str:
    """``k`` with ``body`` and a workload, then the harmless `scale`."""
    declared = f"\n\n@k.workload(n=[1])\ndef args(n):\n    return {workload}\n\n"
    return kernel_file(body) + declared + SCALE.removeprefix(HEAD)


QUICK = Limits(
    measure_s=0.01, import_s=1.0, run_s=1.0, compile_s=30.0, launch_s=1.0, interpret_s=1.0,
    grace_s=0.5,
)  # fmt: skip
# For what the worker itself has to stop: on a busy machine that takes it longer than the grace
# above, and being killed is another error.
PATIENT = replace(QUICK, grace_s=LONG_S / 2)
