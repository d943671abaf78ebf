"""Compare with ...: any two saves, revisions of git, options, and backends with each other."""

import pathlib
import subprocess

import msgspec
import pytest
from qd_studio.app.core.saves import Saves, changed_by
from qd_studio.engine.inspect import record as rec
from qd_studio.engine.inspect.record_launch import EarlierRecord

from tests.app.records import make_record
from tests.app.tui.pilot import SIZES, press, record, studio, text_of, until, view

replace = msgspec.structs.replace


def saved(app, *records):
    """As if these were the records of finished looks."""
    app.saves = Saves()
    for number, each in enumerate(records):
        app.saves.add(each, f"12:00:0{number}")
    app.saves.pack()
    app.record = records[-1]
    app.settle()
    app.repaint()


def edited(record, old, new):
    (file,) = record.files
    return replace(record, files=(replace(file, text=file.text.replace(old, new)),))


@pytest.mark.parametrize("size", SIZES)
async def test_any_two_saves_are_compared_and_the_diff_opens_at_a_pass(size, tmp_path):
    first = record(str(tmp_path))
    scale, shift = first.kernels
    second = edited(first, "+ 1.0", "+ 2.0")
    # As if scale had become what shift was.
    third = replace(second, kernels=(replace(shift, id=scale.id, name=scale.name), shift))
    async with studio(first, size) as (app, pilot):
        saved(app, first, second, third)
        await press(pilot, "D")
        await until(pilot, app, "save 3")
        assert "line 17: x[i] = x[i] + 2.0" in text_of(app)
        # The cursor is on save 2; from there, the first one: nothing but the other kernel differs.
        await press(pilot, "m", "down", "enter")
        await until(pilot, app, "save 1 -> save 2")
        await until(pilot, app, "no change")
        await press(pilot, "escape", "up", "up", "enter")
        await until(pilot, app, "first difference: ")
        assert "save 2 -> save 3" in text_of(app)
        assert view(app, "list").current.key == ("pass", 0)
        await press(pilot, "enter")
        await until(pilot, app, "the IR after front end")
        await until(pilot, app, "- ")
        assert ("external_ptr" in text_of(app)) != app.sel.readable
        await press(pilot, "f")
        await until(pilot, app, "x[i] = x[i]" if app.sel.readable else "external_ptr")
        assert ("external_ptr" in text_of(app)) != app.sel.readable
        await press(pilot, "escape", "b")
        await until(pilot, app, "Passes on interp")
        await press(pilot, "x")
        await until(pilot, app, "no effect")


async def test_backends_of_one_record_are_compared_by_launches_made_in_turns(tmp_path):
    async with studio(record(str(tmp_path)), (120, 40)) as (app, pilot):
        await press(pilot, "D")
        await until(pilot, app, "cpu against interp")
        line = next(i for i, x in enumerate(view(app, "list").lines)
                    if x.key == ("backends", "cpu", "interp"))  # fmt: skip
        view(app, "list").put(line)
        await press(pilot, "enter")
        await until(pilot, app, "cpu -> interp")
        await until(pilot, app, "slower")
        assert "matrix compares launches" not in text_of(app)


async def test_a_revision_is_compiled_apart_and_can_be_cancelled(tmp_path):
    kernel = record(str(tmp_path)).kernels[0]
    path = tmp_path / "scale.py"
    git = ["git", "-C", str(tmp_path), "-c", "user.name=n", "-c", "user.email=e@e"]
    path.write_text("# older\n")
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "the first"]):
        subprocess.run([*git, *words], check=True)
    seen, waits = [], [True]

    def measure(file, config, only, on_event, cancelled):
        seen.append((pathlib.Path(file).read_text(), config, only))
        if waits:
            assert cancelled.wait(5)
            raise CancelledError
        return replace(now, kernels=(replace(kernel, name="old", id="scale.py:old"),))

    from qd_studio.app.worker.once import CancelledError

    now = replace(record(str(tmp_path)), kernels=(kernel,))
    async with studio(now) as (app, pilot):
        app.files, app.measure = [str(path)], measure
        await press(pilot, "D")
        await until(pilot, app, "changed  the first")
        view(app, "list").put(next(
            i for i, x in enumerate(view(app, "list").lines) if x.key == ("revision", "HEAD")
        ))  # fmt: skip
        await press(pilot, "enter")
        await until(pilot, app, "cancels")
        assert "compiling scale as of HEAD" in text_of(app)
        await press(pilot, "C")
        await until(pilot, app, "It was cancelled.")
        assert seen == [("# older\n", {}, "scale")]
        waits.clear()
        await press(pilot, "escape", "enter")
        # Renamed since: found by its IR, after all kernels were compiled.
        await until(pilot, app, "old -> scale")
        assert [only for _, _, only in seen] == ["scale", "scale", ""]


async def test_another_value_of_an_option_is_compiled_with_those_of_the_session(tmp_path):
    now = record(str(tmp_path))
    seen = []

    def measure(file, config, only, on_event, cancelled):
        seen.append((config, only))
        return replace(now, config=(replace(now.config[0], value=False), *now.config[1:]))

    async with studio(now) as (app, pilot):
        app.measure = measure
        app.options["debug"] = True
        await press(pilot, "D")
        await until(pilot, app, "another revision")
        await press(pilot, "G", "enter")
        await press(pilot, *"nothing", "enter")
        assert "is no setting" in next(iter(app._notifications)).message
        await press(pilot, "enter", *"fast_math=0", "enter")
        await until(pilot, app, "fast_math: True -> False")
        assert seen == [({"debug": True, "fast_math": False}, "scale")]


def test_a_file_as_a_record_has_it(tmp_path):
    from qd_studio.app.revisions import NoRevisionError, file_in

    main, helper = tmp_path / "main.py", tmp_path / "parts" / "helper.py"
    helper.parent.mkdir()
    main.write_text("now")
    helper.write_text("help")

    def files(text):
        return tuple(
            rec.FileRecord(path=str(p), sha256="", text=t)
            for p, t in ((main, text), (helper, "help"))
        )

    base = make_record()
    with file_in(replace(base, files=files("now")), str(main)) as path:
        assert path == str(main)
    with file_in(replace(base, files=files("before")), str(main)) as path:
        found = pathlib.Path(path)
        assert found.read_text() == "before" and found.name == "main.py"
        assert (found.parent / "parts" / "helper.py").read_text() == "help"
    assert not found.exists() and main.read_text() == "now"
    with pytest.raises(NoRevisionError, match="no file"), file_in(base, str(main)):
        pass


def test_times_of_two_runs_are_replaced_by_those_in_turns(monkeypatch, tmp_path):
    """The sides of two saves are launched again; if that fails, the reason is said."""
    import contextlib

    from qd_studio.app.tui.versus import Given, Sides
    from qd_studio.app.worker import turns

    old, new = make_record(cpu_us=100.0), edited(make_record(cpu_us=104.0), "(a * 1.0)", "a")
    new = replace(new, kernels=tuple(_other_code(k) for k in new.kernels))
    seen = []

    def collected(looks, cancelled, **settings):
        seen.append((looks, settings))
        if len(seen) > 1:
            raise OSError("no more processes")
        kernels = [[_in_turns(k, i) for k in r.kernels] for i, r in enumerate((old, new))]
        return [replace(r, kernels=tuple(k)) for r, k in zip((old, new), kernels, strict=True)]

    monkeypatch.setattr(turns, "collect_in_turns", collected)
    name = old.kernels[0].id

    def sides():
        return Sides(
            *(Given(n, lambda *_, r=r: r, again=lambda: contextlib.nullcontext(("f.py", {})))
              for n, r in (("save 1", old), ("save 2", new))),
            name, settings={"backends": ("cpu",), "run": True},
        )  # fmt: skip

    def timing(found):
        return next(b for b in found.result.found.backends if b.after == "cpu").timings[-1]

    found = sides()
    states = []
    found._run(lambda: states.append((found.result and found.result.notes, timing(found).in_turns)
                                     if found.result else None))  # fmt: skip
    assert any(s and s[0] and "Launching both in turns" in s[0][-1] and not s[1] for s in states)
    assert timing(found).in_turns and timing(found).verdict == "worse"
    ((looks, settings),) = seen
    assert [x.keep for x in looks] == [True, False] and settings == {"run": True}
    failed = sides()
    failed._run(lambda: None)
    assert not timing(failed).in_turns and "no more processes" in failed.result.notes[-1]


def _other_code(kernel):
    """The kernel with generated code that differs."""
    backends = []
    for b in kernel.backends:
        if b.compile is not None:
            texts = tuple(replace(a, text=a.text + "more ") for a in b.compile.artefacts)
            b = replace(b, compile=replace(b.compile, artefacts=texts))
        backends.append(b)
    return replace(kernel, backends=tuple(backends))


def _in_turns(kernel, side):
    found = EarlierRecord(stamp="s", before_us=100.0, after_us=104.0, n=200, ratio=1.04,
                              band=0.02, verdict="slower", clock="wall clock")  # fmt: skip
    more = {"earlier": found} if side else {"stamp": "s"}
    backends = [replace(b, launches=tuple(replace(x, **more) for x in b.launches))
                for b in kernel.backends]  # fmt: skip
    return replace(kernel, backends=tuple(backends))


def test_old_saves_are_packed_then_lose_their_ir_then_go():
    saves = Saves(most=4)
    for number in range(6):
        saves.add(make_record(cpu_us=float(100 + number)), "12:00:00")
        saves.pack()
    assert [save.number for save in saves.all()] == [3, 4, 5, 6]
    assert all(save.record is None and save.packed for save in saves.all()[:-1])
    assert saves.record(saves.all()[0]).kernels == make_record(cpu_us=float(102)).kernels
    small = Saves(budget=saves.bytes)
    for number in range(6):
        small.add(make_record(cpu_us=float(100 + number)), "12:00:00")
        small.pack()
    listings = [save.listings for save in small.all()]
    assert listings == sorted(listings) and not listings[0] and listings[-1]
    assert small.bytes <= saves.bytes
    old, new = (small.record(small.all()[i]) for i in (0, -1))
    from qd_studio.engine.inspect.compare import compare_records

    (kernel,) = compare_records(old, new).kernels
    (backend,) = kernel.backends
    # What was dropped is not taken for a difference.
    assert (backend.state, backend.reason) == ("unknown", "there is no IR to compare")
    assert not backend.figures and backend.timings


def test_the_memory_of_300_saves_is_that_of_the_newest():
    saves, sizes = Saves(most=12), []
    for number in range(300):
        saves.add(make_record(cpu_us=float(1000 + number)), "12:00:00")
        saves.pack()
        sizes.append(saves.bytes)
    assert [save.number for save in saves.all()] == list(range(289, 301))
    assert max(sizes[20:]) < 1.02 * sizes[20]
    # With little room the oldest have no IR any more, and the rest is there.
    small = Saves(most=12, budget=sizes[-1] * 3 // 4)
    for number in range(300):
        small.add(make_record(cpu_us=float(1000 + number)), "12:00:00")
        small.pack()
    assert len(small.all()) == 12 and not small.all()[0].listings
    assert small.bytes <= sizes[-1] * 3 // 4


def test_what_a_save_changed_is_said_in_a_line():
    base = make_record()
    assert changed_by(base, base) == "the same source, compiled again"
    other = edited(base, "(a * 1.0)", "a")
    assert changed_by(base, other) == "line 7: x[i] = x[i] * a  # <b>&"
    option = replace(base, config=(replace(base.config[0], value=True),))
    assert changed_by(base, option) == "option fast_math False -> True"
    cut = edited(base, "        x[i] = x[i] * (a * 1.0)  # <b>&\n", "")
    assert changed_by(base, cut) == "line 7 removed"
