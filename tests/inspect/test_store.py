"""Saving, loading, the shipped schema, and equality of two runs."""

import json
import zipfile
from typing import get_type_hints

import jsonschema
import msgspec
import pytest
from qd_studio.engine.inspect import consistency, record_autodiff, store
from qd_studio.engine.inspect import record as rec
from qd_studio.engine.inspect.record import Snapshot
from qd_studio.engine.inspect.record_base import RecordPart

from tests.app.records import make_record


def test_a_record_without_the_clocks_of_launches_loads():
    """Records of version 3 were written before there were any."""
    launch = {
        "workload": "n", "method": "m", "n": 1, "warmup": 1, "first_us": 2.0, "median_us": 1.0,
        "mad_us": 0.0, "min_us": 1.0, "max_us": 1.0, "samples_us": [1.0], "host_us": 3.0,
    }  # fmt: skip
    verdict = {
        "workload": "n", "backend": "b", "against": "a", "ratio": 1.0, "band": 0.1,
        "verdict": "within noise",
    }  # fmt: skip
    kernel = {
        "id": "k", "name": "k", "file": "f", "line": 1, "verdicts": [verdict],
        "backends": [{"backend": "b", "status": "ok", "launches": [launch]}],
    }  # fmt: skip
    (found,) = store.loads(json.dumps({"version": 3, "kernels": [kernel]}).encode()).kernels
    (loaded,) = found.backends[0].launches
    assert (loaded.wall_us, loaded.waits_us, loaded.by_device) == (None, (), True)
    assert found.verdicts[0].clock == ""


def test_the_shipped_schema_is_current():
    assert store.SCHEMA_FILE.read_text(encoding="utf-8") == store.schema_text()


def test_every_attribute_of_a_record_is_described():
    parts = RecordPart.__subclasses__()
    silent = [
        f"{part.__name__}.{name}"
        for part in parts
        for name, hint in get_type_hints(part, include_extras=True).items()
        if not getattr(hint, "__metadata__", None)
    ]
    assert len(parts) > 30 and not silent


def test_a_record_validates_and_a_broken_one_does_not():
    data = json.loads(store.dumps(make_record()))
    jsonschema.Draft202012Validator.check_schema(store.schema())
    jsonschema.validate(data, store.schema())
    data["kernels"][0]["backends"][0]["launches"][0]["n"] = "many"
    with pytest.raises(jsonschema.ValidationError, match="'many'"):
        jsonschema.validate(data, store.schema())


@pytest.mark.parametrize("name", ["r.json", "r.qds"])
def test_what_is_saved_is_loaded(tmp_path, name):
    record = make_record()
    store.save(record, tmp_path / name)
    assert store.load(tmp_path / name) == record
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_content_decides_not_the_name(tmp_path):
    store.save(make_record(), tmp_path / "r.json")
    (tmp_path / "r.json").rename(tmp_path / "r.qds")
    assert store.load(tmp_path / "r.qds") == make_record()


def test_a_session_is_zipped(tmp_path):
    store.save(make_record(), tmp_path / "r.qds")
    assert zipfile.ZipFile(tmp_path / "r.qds").namelist() == ["record.json"]


def test_a_newer_version_is_refused_by_name(tmp_path):
    newer = {"version": rec.VERSION + 1, "tool": {"version": "9.9"}, "unheard": [1]}
    (tmp_path / "r.json").write_text(json.dumps(newer))
    said = rf"version {rec.VERSION + 1}, made by 9\.9; .*reads up to {rec.VERSION}"
    with pytest.raises(store.RecordFileError, match=said):
        store.load(tmp_path / "r.json")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not a qd-studio record"),
        (b"hello", "not a qd-studio record"),
        (b"[1, 2]", "not a qd-studio record"),
        (b'{"tool": {}}', "not a qd-studio record"),
        (b"\xff\xfe{}", "not a qd-studio record"),
        (b'{"version": 1, "kernels": [{"name": "k"}]}', "not a valid record"),
        (b"PK\x03\x04 broken", "not a qd-studio session"),
    ],
)
def test_other_files_are_refused(tmp_path, content, message):
    path = tmp_path / "r.qds"
    path.write_bytes(content)
    with pytest.raises(store.RecordFileError, match=message):
        store.load(path)


def test_a_zip_without_a_record_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "r.qds", "w") as archive:
        archive.writestr("other.txt", "x")
    with pytest.raises(store.RecordFileError, match="not a qd-studio session"):
        store.load(tmp_path / "r.qds")


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    store.save(make_record(), tmp_path / "r.json")

    def fail(*args):
        raise OSError("no space")

    monkeypatch.setattr(store.os, "replace", fail)
    with pytest.raises(OSError, match="no space"):
        store.save(make_record(cpu_us=1.0), tmp_path / "r.json")
    assert store.load(tmp_path / "r.json") == make_record()
    assert [p.name for p in tmp_path.iterdir()] == ["r.json"]


def test_times_do_not_make_records_differ_but_anything_else_does():
    one, two = make_record(cpu_us=100.0), make_record(cpu_us=250.0, mad_us=7.0)
    assert one != two
    assert store.canonical(one) == store.canonical(two)
    (kernel, *rest) = two.kernels
    verdict = rec.VerdictRecord(
        workload="n=1", backend="opencl", against="cpu", ratio=2.0, band=0.1, verdict="slower"
    )
    busy = msgspec.structs.replace(verdict, verdict="unknown", reason="the machine was busy")
    one, two = (
        msgspec.structs.replace(
            two, kernels=(msgspec.structs.replace(kernel, verdicts=(found,)), *rest)
        )
        for found in (verdict, busy)
    )
    assert one != two
    assert store.canonical(one) == store.canonical(two)
    other = msgspec.structs.replace(two, extra={"x": 1})
    assert store.canonical(one) != store.canonical(other)


def test_every_volatile_name_is_a_field():
    found = [*vars(rec).values(), *vars(record_autodiff).values()]
    classes = [cls for cls in found if isinstance(cls, type)]
    fields = {
        name for cls in classes if issubclass(cls, msgspec.Struct) for name in cls.__struct_fields__
    }
    assert fields >= rec.VOLATILE


def test_long_lists_of_numbers_and_texts_are_not_checked_one_by_one():
    fields = {field.name: field.kind for field in consistency._fields(Snapshot)}
    assert fields["ids"] == fields["locs"] == tuple[int, ...]
    assert "lines" not in fields  # any text is right
