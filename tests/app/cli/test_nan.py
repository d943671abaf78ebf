"""`qd-studio nan`: the origin of a NaN on the user's source, and the precision by line.

Also `qd-studio check-grad`, which asks about one kernel in the same way."""

import json

import pytest
from qd_studio.app import cli

TEXT = """import numpy as np
from qd_studio import engine as qd


@qd.func
def tension(length):
    return qd.log(length) * 0.5


@qd.kernel
def pull(x: qd.types.NDArray[qd.f32, 1], force: qd.types.NDArray[qd.f32, 1]):
    for i in force:
        length = x[i + 1] - x[i]
        force[i] = 3.0 * tension(length) + 1.0


@pull.workload(n=[64])
def knots(n):
    x = np.linspace(0.0, 1.0, n + 1).astype(np.float32)
    x[18] = x[17]
    return x, np.zeros(n, np.float32)


@qd.kernel
def variance(x: qd.types.NDArray[qd.f32, 1], out: qd.types.NDArray[qd.f32, 1]):
    for i in out:
        out[i] = x[i] * x[i] - out[i]


@variance.workload(n=[8])
def heights(n):
    x = np.linspace(3000.1, 4000.3, n).astype(np.float32)
    return x, np.floor(x * x - 8.0)
"""


@pytest.fixture
def words(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rope.py").write_text(TEXT)
    return ["nan", "rope.py", "--backend", "cpu", "--kernel"]


def test_the_origin_is_shown_on_the_source(words, capsys):
    assert cli.main([*words, "pull"]) == 1
    text = capsys.readouterr().out
    for part in (
        "pull on cpu: log(0) makes an infinity",
        "rope.py:7  return qd.log(length) * 0.5",
        "task 0, iteration 17",
        "force[17], line 14",
        "x[18] = 0.265625",
        "0.265625 - 0.265625 = 0",
        "with fast_math=True, as without checks",
    ):
        assert part in text, text
    source, carets = text.splitlines()[1:3]
    start, end = carets.index("^"), carets.rindex("^") + 1
    assert source[start:end] == "qd.log(length)"


def test_the_same_as_data_and_a_kernel_without(words, capsys):
    assert cli.main([*words, "pull", "--json"]) == 1
    data = json.loads(capsys.readouterr().out)
    assert (data["state"], data["kind"], data["line"]) == ("found", "made", 7)
    assert data["iteration"] == [17]
    assert [row["line"] for row in data["steps"]] == [7, 14, 14]
    assert cli.main([*words, "variance"]) == 0
    assert "stores no NaN and no infinity" in capsys.readouterr().out


def test_the_precision_of_lines(words, capsys):
    assert cli.main([*words, "variance", "--precision", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["precision"]
    assert (row["line"], row["op"], row["dtype"]) == (27, "sub", "f32")
    # The product has its last place at 1, the difference, 7.6, at 2**-21; it is exact itself.
    assert row["made"] == 0.0
    assert row["value"] == round(row["value"])
    assert 1e4 < row["ulps"] == abs(row["value"] - row["exact"]) * 2.0**21


GRADIENT = """import numpy as np
from qd_studio import engine as qd


@qd.kernel
def settle(x: qd.types.NDArray[qd.f32, 1], to: qd.types.NDArray[qd.i32, 1],
           loss: qd.types.NDArray[qd.f32, 1]):
    for i in x:
        loss[0] += x[i] * x[i] * qd.sin(x[i])
    for i in x:
        x[to[i]] = 0.5


@settle.workload(n=[8])
def points(n):
    x = qd.ndarray(qd.f32, (n,), needs_grad=True)
    x.from_numpy(np.linspace(0.0, 1.0, n, dtype=np.float32))
    return x, np.arange(n, dtype=np.int32), qd.ndarray(qd.f32, (1,), needs_grad=True)
"""


def test_a_wrong_gradient_is_shown_with_its_cause(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "settle.py").write_text(GRADIENT)
    assert cli.main(["check-grad", "settle.py", "--backend", "cpu"]) == 1
    text = capsys.readouterr().out
    for part in ("settle.grad on cpu: the gradient of x[7] is wrong", "an overwritten value",
                 "settle.py:11  x[to[i]] = 0.5", "x[7] = 1  iteration 7"):  # fmt: skip
        assert part in text, text
    right = GRADIENT.replace("x[to[i]] = 0.5", "loss[0] += x[to[i]]")
    (tmp_path / "settle.py").write_text(right)
    words = ["check-grad", "settle.py", "--backend", "cpu", "--kernel", "settle", "--json"]
    assert cli.main(words) == 0
    assert json.loads(capsys.readouterr().out)["state"] == "right"
    (tmp_path / "settle.py").write_text(GRADIENT.replace(", needs_grad=True", ""))
    assert cli.main(["check-grad", "settle.py"]) == 4
    assert "has no gradient" in capsys.readouterr().out
