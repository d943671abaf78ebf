"""What kernels on CUDA print: all of it, in the order of launches, when somebody waits."""

import sys
import threading

import pytest
from qd_studio import engine as qd
from qd_studio.engine.backends.device_launch import prints

from tests.runtime.cudakit import start

pytest.importorskip("cuda.bindings.driver", reason="cuda-python is not installed")


@qd.kernel
def say(n: qd.i32, x: qd.f32):
    for i in range(n):
        print("say", i, x)


@qd.kernel
def tell(n: qd.i32):
    print(f"tell {n}")


def test_prints_come_in_the_order_of_launches(sim, capsys):
    start()
    for k in range(3):
        say(2, 0.5)
        tell(k)
        say(1, 1.5)
    qd.sync()
    first, between = "say 0 0.500000\nsay 1 0.500000\n", "say 0 1.500000\n"
    assert capsys.readouterr().out == "".join(f"{first}tell {k}\n{between}" for k in range(3))


def test_prints_are_not_lost_at_the_end(sim, capsys):
    start()
    tell(7)
    qd.reset()
    assert capsys.readouterr().out == "tell 7\n"


def test_prints_of_two_threads_are_all_shown(sim, capsys):
    start()
    say(1, 0.0)
    tell(0)
    qd.sync()
    capsys.readouterr()
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        launches = [lambda: say(1, 1.0), lambda: tell(1), qd.sync]
        threads = [threading.Thread(target=lambda f=f: [f() for _ in range(60)]) for f in launches]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    qd.sync()
    lines = capsys.readouterr().out.splitlines()
    assert sorted(lines) == ["say 0 1.000000"] * 60 + ["tell 1"] * 60


def test_prints_of_two_streams_come_in_the_order_of_launches(sim, capsys):
    start()
    one, other = qd.create_stream(), qd.create_stream()
    for k in range(3):
        say(1, 0.5 + k, qd_stream=one)
        tell(k, qd_stream=other)
    tell(9)
    one.synchronize()
    other.synchronize()
    qd.sync()
    expected = "".join(f"say 0 {k}.500000\ntell {k}\n" for k in range(3))
    assert capsys.readouterr().out == expected + "tell 9\n"


def test_prints_that_do_not_fit_are_counted(sim, capsys, monkeypatch):
    monkeypatch.setattr(prints, "SIZE", 100)
    start()
    say(50, 0.0)
    qd.sync()
    out, err = capsys.readouterr()
    assert out.count("say") == 4, out
    assert "kernel say printed more than the 100 bytes" in out + err
    say(1, 2.0)
    qd.sync()
    assert capsys.readouterr().out == "say 0 2.000000\n"
