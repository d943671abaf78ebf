"""What the handler of a signal raises while a kernel is compiled goes to the program as it is."""

import functools
import signal
import threading

import numpy as np
import pytest
from qd_studio import engine as qd
from qd_studio.engine import signals
from qd_studio.engine.runtime import program

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="this system has no alarms")


class TooSlow(Exception):
    pass


def handler(number, frame):
    raise TooSlow("the time is over")


class Handler:
    def __call__(self, number, frame):
        raise TooSlow("the time is over")

    def method(self, number, frame):
        raise TooSlow("the time is over")


HANDLERS = [
    handler, lambda number, frame: handler(number, frame), functools.partial(handler), Handler(),
    Handler().method,
]  # fmt: skip


@pytest.fixture(autouse=True)
def _program():
    qd.init(arch=qd.cpu, log_level="error")
    before = signal.getsignal(signal.SIGALRM)
    yield
    signal.signal(signal.SIGALRM, before)
    qd.reset()


def alarm():
    """Run when the kernel is compiled: the signal arrives in this line."""
    signal.raise_signal(signal.SIGALRM)
    return 2


class Alarming:
    @property
    def two(self):
        return alarm()

    def __eq__(self, other):
        return bool(alarm())

    def __hash__(self):
        return 1


@pytest.mark.parametrize("made", HANDLERS, ids=lambda h: type(h).__name__)
@pytest.mark.parametrize("kind", ["call", "attribute"])
def test_it_is_passed_on_as_it_is(made, kind):
    source = Alarming()

    @qd.kernel
    def of_call(x: qd.types.NDArray[qd.i32, 1]):
        x[0] = qd.static(alarm())

    @qd.kernel
    def of_attribute(x: qd.types.NDArray[qd.i32, 1]):
        x[0] = source.two

    kernel = of_call if kind == "call" else of_attribute
    x = np.zeros(1, np.int32)
    signal.signal(signal.SIGALRM, made)
    for _ in range(2):
        with pytest.raises(TooSlow, match=r"^the time is over$"):
            kernel(x)
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    kernel(x)
    kernel(x)
    assert x[0] == 2


def test_within_a_pass_and_between_them(monkeypatch):
    class Interrupts:
        wants_remarks = wants_notes = False

        def __init__(self, name):
            self.name = name

        def __getattr__(self, name):
            def called(*args):
                if name == self.name:
                    signal.raise_signal(signal.SIGALRM)
                return True

            return called

    @qd.kernel
    def add(x: qd.types.NDArray[qd.i32, 1]):
        for i in x:
            x[i] += 1

    signal.signal(signal.SIGALRM, handler)
    x = np.zeros(2, np.int32)
    current = program.current()
    for name in ("begin", "before", "after", "stage"):
        current.instruments[:] = [Interrupts(name)]
        with pytest.raises(TooSlow):
            add(x)
    current.instruments[:] = []
    assert current.lock.acquire(blocking=False), "no lock is held"
    current.lock.release()
    add(x)
    assert x.tolist() == [1, 1]


# Python itself drops what is raised in the callback of a weak reference or of the collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_wherever_it_arrives_the_program_can_be_used_afterwards():
    """Alarms at many times of a compile: each is passed on, and the next launch is right."""
    passed = 0
    signal.signal(signal.SIGALRM, handler)
    for number in range(30):

        @qd.kernel
        def add(x: qd.types.NDArray[qd.i32, 1], n: qd.template()):
            for i in x:
                x[i] += n

        x = np.zeros(3, np.int32)
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.0005 * (number + 1))
            add(x, number)
        except TooSlow:
            passed += 1
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        before = x[0]
        assert before in (0, number)
        add(x, number)
        assert (x == before + number).all()
    assert passed


def test_errors_of_the_program_itself_are_distinguished():
    signal.signal(signal.SIGALRM, handler)

    def wrong():
        raise TooSlow("of the function")

    @qd.kernel
    def k() -> qd.i32:
        return qd.static(wrong())

    with pytest.raises(qd.QuadrantsCompilationError, match="of the function"):
        k()
    assert threading.current_thread() is threading.main_thread()
    assert not signals.of_signal_handler(ValueError())
