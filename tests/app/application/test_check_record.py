"""`qd-studio check` of a recorded application: proofs and launches without the program."""

import json

import pytest
from qd_studio.app import check
from qd_studio.app.usage import Failure
from qd_studio.engine.inspect import Caches
from qd_studio.engine.inspect.application.store import ApplicationFile
from qd_studio.engine.inspect.checking import recorded as of_records
from qd_studio.engine.inspect.checking.recorded import check_application

from tests.app.application.kit import program, script

PROGRAM = """
import numpy as np
import quadrants as qd

qd.init(arch=qd.cpu)


@qd.kernel
def shift(x: qd.types.ndarray(qd.f32, 1)):
    for i in range(x.shape[0] - 1):
        x[i] = x[i + 1] + 1.0


@qd.kernel
def scale(x: qd.types.ndarray(qd.f32, 1), y: qd.types.ndarray(qd.f32, 1)):
    for i in x:
        y[i] = x[i] * 2.0


shift(np.ones(6, np.float32))
scale(np.ones(6, np.float32), np.ones(8, np.float32))
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("check")
    target = folder / "app.qds"
    path = script(folder, PROGRAM)
    done = program("run", "--record", target, path)
    assert done.returncode == 0, done.stderr
    path.unlink()  # the program is not needed any more
    return target


def test_kernels_of_a_record_are_checked(recorded):
    found = {one.kernel: one.check for one in check_application(ApplicationFile(recorded))}
    assert set(found) == {"shift", "scale"}
    assert {n: c.of("race").outcome for n, c in found.items()} == {
        "shift": "fault",
        "scale": "safe",
    }
    assert found["shift"].of("race").findings[0].workload == "launch 1"
    assert found["shift"].of("bounds").outcome == "safe"
    needed = found["scale"].of("bounds")
    assert needed.reason == "safe if x.shape[0] <= y.shape[0]; no fault in 1 launch of the workload"
    assert found["scale"].launches == ("launch 1",)


def test_verdicts_of_a_record_are_kept(recorded, monkeypatch):
    first = list(check_application(ApplicationFile(recorded)))
    assert [e.kernel for e in Caches().entries() if e.layer == "checks"] == ["scale", "shift"]
    monkeypatch.setattr(of_records, "parse", lambda text: pytest.fail("it was checked again"))
    assert list(check_application(ApplicationFile(recorded))) == first
    monkeypatch.setenv("QD_OFFLINE_CACHE", "0")
    with pytest.raises(pytest.fail.Exception, match="checked again"):
        list(check_application(ApplicationFile(recorded)))


def test_the_command_checks_a_record(recorded, capsys):
    assert check.main([str(recorded), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert sorted(one["kernel"].split()[1] for one in found) == ["scale", "shift"]
    assert check.main([str(recorded), "--kernel", "scale"]) == 0
    out = capsys.readouterr().out
    assert "races                    safe" in out
    assert "shift" not in out
    with pytest.raises(Failure, match="no kernel 'other'"):
        check.main([str(recorded), "--kernel", "other"])
