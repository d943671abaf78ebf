"""A sample of `tests.app.damage`, and the damage that once was a traceback."""

import io
import json
import zipfile

import pytest
from qd_studio.app import cli
from qd_studio.app.report import render
from qd_studio.engine import inspect
from qd_studio.engine.inspect import store

from tests.app import damage, devices, gradients, records


def test_damaged_sessions_are_refused_or_drawn(tmp_path):
    came = [(seed, *damage.try_one(seed, tmp_path)) for seed in range(3000, 3150)]
    assert [one for one in came if one[2] not in ("refused", "drawn")] == []
    # Both happen: else this shows nothing.
    assert {what for *_, what in came} == {"refused", "drawn"}


def test_healthy_sessions_are_drawn():
    for data in damage.healthy():
        assert damage.draw(inspect.loads(data))


def with_change(change):
    """A saved record with ``change`` made to its JSON."""
    value = json.loads(inspect.dumps(records.make_record()))
    change(value)
    return json.dumps(value).encode()


def bomb():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("record.json", b" " * (2 << 20))
    return file.getvalue()


def flipped(method):
    data = bytearray(damage.zipped(inspect.dumps(records.make_record()), method))
    data[300] ^= 0x10
    return bytes(data)


def loop(value):
    value["shared"]["locs"][0] = [["a.py", 1, 0, 0, 0, "", 1], ["a.py", 2, 0, 0, 0, "", 0]]


def state(value):
    value["shared"]["runs"][0]["state"] = "no such word"


def leads_nowhere(value):
    value["shared"]["runs"][0]["after"] = 9


def huge(value):
    value["kernels"][0]["backends"][0]["compile"]["code_bytes"] = 10**400


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: with_change(loop), "a location is called from itself"),
        (lambda: with_change(state), "PassRun.state is 'no such word'"),
        (lambda: with_change(leads_nowhere), "has no place or no snapshot"),
        (lambda: with_change(huge), "is not a valid record"),
        (lambda: b'{"version":3,"extra":{"x":' + b"[" * 100_000, "nested too deeply"),
        (lambda: b'{"version":3,"extra":{"x":' + b"[" * 99 + b"]" * 99 + b"}}", "too deeply"),
        (lambda: b'{"version":1' + b"0" * 400 + b"}", "is not a qd-studio record"),
        (bomb, "is too large"),
        (lambda: flipped(zipfile.ZIP_DEFLATED), "is not a qd-studio session"),
        (lambda: flipped(zipfile.ZIP_LZMA), "is not a qd-studio session"),
        (lambda: flipped(zipfile.ZIP_BZIP2), "is not a qd-studio session"),
        (lambda: b"PK", "is not a qd-studio session"),
        (lambda: b"", "is not a qd-studio record"),
    ],
)
@pytest.mark.parametrize("words", [["open"], ["show", "--panel", "ir"], ["--report", "--baseline"]])
def test_what_is_damaged_is_one_sentence_and_a_usage_error(
    tmp_path, capsys, monkeypatch, make, said, words
):
    monkeypatch.setattr(store, "_MAX_BYTES", 1 << 20)
    path = tmp_path / "session.qds"
    path.write_bytes(make())
    if words[-1] == "--baseline":
        words = [*words, str(path), "none.py"]
    else:
        words = [words[0], str(path), *words[1:]]
    assert cli.main(words) == 2
    out, talk = capsys.readouterr()
    assert out == ""
    assert said in talk and len(talk.splitlines()) == 1


@pytest.mark.parametrize("make", [records.make_record, gradients.make_record, devices.with_cuda])
def test_what_is_healthy_is_not_refused(make):
    record = make()
    assert inspect.loads(inspect.dumps(record)) == record
    assert inspect.loads(render(record, ".json").encode()) == record
