"""The saved form of a record: each thing once, and all of it back."""

import itertools
import json
import types
import typing

import msgspec
import pytest
from qd_studio.engine.inspect import packed, store
from qd_studio.engine.inspect import record as rec

from tests.app.records import make_record

RECORD = make_record()


def with_backends(times):
    """The record, its first backend as many times, each with times of its own."""
    kernel = RECORD.kernels[0]
    first = kernel.backends[0]
    several = []
    for k in range(times):
        runs = tuple(msgspec.structs.replace(r, us=r.us + k) for r in first.compile.runs)
        compiled = msgspec.structs.replace(first.compile, runs=runs)
        several.append(msgspec.structs.replace(first, backend=f"cpu{k}", compile=compiled))
    kernel = msgspec.structs.replace(kernel, backends=tuple(several))
    return msgspec.structs.replace(RECORD, kernels=(kernel,))


def test_backends_that_do_the_same_share_all_but_their_times():
    record = with_backends(3)
    saved = packed.pack(record)
    one, *others = saved.compiles
    assert one.runs and one.snapshots and one.artefacts
    for other in others:
        assert other.us != one.us
        assert msgspec.structs.replace(other, us=one.us, backend=one.backend) == one
    assert saved.shared == packed.pack(with_backends(1)).shared
    assert all(len(set(x)) == len(x) for x in (saved.shared.texts, saved.shared.rows))
    # Not `loads`, which also asks whether the made-up values fit together.
    saved = msgspec.json.decode(store.dumps(record), type=packed.SavedRecord)
    assert packed.unpack(saved) == record


def anything(hint, numbers):
    """A value of a type, other than any before it and than what a field of that type would be."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        fields = msgspec.structs.fields(hint)
        hints = typing.get_type_hints(hint)
        made = {
            f.name: f.default is not True if hints[f.name] is bool
            else anything(hints[f.name], numbers)
            for f in fields
        }  # fmt: skip
        assert not [f.name for f in fields if made[f.name] == f.default]
        return hint(**made)
    if origin is tuple:
        return tuple(anything(x, numbers) for x in (args[:1] * 2 if args[1:] == (...,) else args))
    if origin is dict:
        return {anything(args[0], numbers): anything(args[1], numbers)}
    if origin in (typing.Union, types.UnionType):
        return anything(args[0], numbers)
    return {int: int, float: float, str: "text {}".format, typing.Any: str}[hint](next(numbers))


def test_no_field_of_any_part_is_lost():
    record = anything(rec.Record, itertools.count(100))
    record = msgspec.structs.replace(record, version=rec.VERSION)
    assert packed.unpack(packed.pack(record)) == record
    # Not `loads`, which also asks whether the made-up values fit together.
    saved = msgspec.json.decode(store.dumps(record), type=packed.SavedRecord)
    assert packed.unpack(saved) == record


def test_a_field_that_the_saved_form_lacks_is_an_error_at_once():
    class Longer(rec.PassRun, frozen=True, kw_only=True):
        seen: int = 0

    with pytest.raises(TypeError, match="SavedRun would lose of Longer: seen"):
        packed.Kept(Longer, packed.SavedRun, ("us",))
    kept = packed.Kept(Longer, packed.SavedRun, ("us", "seen"))
    run = rec.PassRun(index=3, stage="s", name="n", us=2.0, added=4)
    assert rec.PassRun(us=2.0, **kept.of(run)) == run


def test_texts_come_back_to_the_last_line_end():
    record = with_backends(4)
    kernel = record.kernels[0]
    texts = ("", "\n", "a\r\nb\n\n", "end")
    several = tuple(
        msgspec.structs.replace(
            b,
            compile=msgspec.structs.replace(
                b.compile, artefacts=(rec.Artefact(name="ir", language="llvm", text=text),)
            ),
        )
        for b, text in zip(kernel.backends, texts, strict=True)
    )
    kernel = msgspec.structs.replace(kernel, backends=several)
    record = msgspec.structs.replace(record, kernels=(kernel,))
    # Not `loads`, which also asks whether the made-up values fit together.
    saved = msgspec.json.decode(store.dumps(record), type=packed.SavedRecord)
    assert packed.unpack(saved) == record


def test_files_of_before_are_read_and_saved_as_now():
    old = msgspec.structs.replace(RECORD, version=2)
    found = store.loads(msgspec.json.encode(old))
    assert found == old and found.kernels[0].backends[0].compile.runs
    assert store.loads(store.dumps(found)) == RECORD


@pytest.mark.parametrize(
    ("field", "value"),
    [("snapshots", [999]), ("runs", [-1]), ("us", []), ("kernel", 7), ("backend", 99)],
)
def test_numbers_of_what_is_not_there_are_refused(field, value):
    data = json.loads(store.dumps(RECORD))
    assert data["compiles"][0][field] != value
    data["compiles"][0][field] = value
    with pytest.raises(store.RecordFileError, match="r is not a valid record"):
        store.loads(json.dumps(data).encode(), "r")
