"""Lines, their laziness and memory, and panels as plain text."""

import itertools

from hypothesis import given
from hypothesis import strategies as st
from qd_studio.app.core import lines as ln
from qd_studio.app.core.memo import by_identity
from qd_studio.app.core.views import changes, errors, home, matrix, misc
from qd_studio.app.panels import passes, source
from qd_studio.engine.inspect import record as rec

from tests.app.records import make_record

TEXT = st.text("$0123 abc<>*='\"(),.:{}[]-#;@%e\t", max_size=60)


@given(TEXT)
def test_highlighting_changes_no_character(text):
    for spans in (
        ln.ir_spans(text), ln.python_spans(text), ln.code_spans(text, "llvm"),
        *(ln.code_spans(text, name) for name in ("asm", "ptx", "sass", "c", "gcn", "spirv", "")),
    ):  # fmt: skip
        assert "".join(t for t, _ in spans) == text
        assert {s for _, s in spans} <= set(ln.STYLES)


@given(TEXT, st.lists(st.tuples(st.integers(0, 60), st.integers(1, 9)), max_size=4))
def test_marking_changes_no_character(text, marks):
    cuts = []
    at = 0
    for start, size in sorted(marks):
        if start >= at:
            cuts.append((start, start + size))
            at = start + size
    spans = ln.mark_spans(ln.ir_spans(text), cuts, "add-mark")
    assert "".join(t for t, _ in spans) == text
    marked = "".join(t for t, s in spans if s == "add-mark")
    assert marked == "".join(text[a:b] for a, b in cuts)


@given(st.lists(st.integers(0, 9)), st.integers(0, 9))
def test_lazy_lines_are_a_sequence_that_finds_keys(keys, key):
    built = []

    def build(i):
        built.append(i)
        return ln.Line(((f"line {i}", ""),), keys[i])

    lazy = ln.LazyLines(keys, build, lambda i: f"line {i}", 9)
    assert ln.index_of(lazy, key) == (keys.index(key) if key in keys else None)
    assert not built
    assert [x.key for x in lazy] == keys
    assert [x.key for x in lazy[1:3]] == keys[1:3]
    list(lazy)
    assert built == list(range(len(keys)))


def test_results_are_remembered_by_identity_and_the_oldest_are_forgotten():
    count = itertools.count()

    @by_identity(2)
    def make(record, *, width=0):
        return next(count)

    one, two = rec.Snapshot(lines=(), ids=(), locs=()), rec.Snapshot(lines=(), ids=(), locs=())
    assert one == two
    assert make(one) == make(one) == 0
    assert make(two) == 1
    assert make(one, width=5) == 2
    assert make.has(two) and not make.has(one)
    assert make(one) == 3


def compiled_of(record):
    return record.kernels[0].backends[0].compile


def test_the_list_of_passes_as_text():
    text = ln.plain(passes.list_lines(compiled_of(make_record()), ascii_only=True))
    assert text.splitlines() == [
        "simplify_I",
        " r1    * alg_simp                                -2 ~1 !  40.0 us",
        "       . 1 without effect",
    ]
    narrow = passes.list_lines(compiled_of(make_record()), width=40)
    assert ln.width_of(narrow) <= 40


def test_a_diff_as_text_has_source_lines_signs_and_hunks():
    compiled = compiled_of(make_record())
    run = compiled.runs[0]
    lines = changes.run_lines(compiled, run, 0, False, -1)
    signs = [ln.text_of(x)[5:7] for x in lines]
    assert signs.count("- ") == 3 and signs.count("+ ") == 1
    assert {x.line for x in lines if ln.text_of(x)[5:7] in ("- ", "+ ")} == {7}
    assert [signs[i] in ("- ", "+ ") for i in lines.hunks] == [True] * len(lines.hunks)
    split = changes.run_lines(compiled, run, 40, True, -1)
    assert all(ln.text_of(x)[5 + 40] == "│" for x in split)
    # A pass without effect shows the listing as it is.
    assert len(changes.run_lines(compiled, compiled.runs[1], 0, False, -1)) == len(
        compiled.snapshots[1].lines
    )


def readable_record():
    """``x[0] = x[0] * (a * 1.0)``; then its constant is moved; then it is ``x[0] * a``."""
    lines = (
        "kernel k(x: ndarray<f32, 1>, a: f32) {", "  <*f32> $0 = arg_addr [(0, False)]",
        "  <i32> $1 = const 0", "  <*f32> $2 = external_ptr $0, $1 ['unsafe']",
        "  <f32> $3 = global_load $2", "  <f32> $4 = arg_load [1]", "  <f32> $5 = const 1.0",
        "  <f32> $6 = mul $4, $5", "  <f32> $7 = mul $3, $6", "  $8 : global_store $2, $7", "}",
    )  # fmt: skip
    ids = (-1, *range(9), -1)

    def shot(order, operand="$6"):
        return rec.Snapshot(
            lines=tuple([lines[i].replace("$3, $6", f"$3, {operand}") for i in order]),
            ids=tuple([ids[i] for i in order]),
            locs=(-1,) * len(order),
        )

    moved = [0, 6, *[i for i in range(1, 11) if i != 6]]
    less = [i for i in range(11) if i not in (6, 7)]
    runs = [
        rec.PassRun(index=i, stage="s", name="p", state="changed", before=i, after=i + 1)
        for i in (0, 1)
    ]
    return rec.CompileRecord(
        runs=tuple(runs), snapshots=(shot(range(11)), shot(moved), shot(less, "$4"))
    )


def test_a_diff_in_the_readable_form_has_types_and_follows_ops():
    compiled = readable_record()
    lines = changes.run_lines(compiled, compiled.runs[1], 0, True, -1, ())
    assert [ln.text_of(x)[5:] for x in lines if "x[0]" in ln.text_of(x)] == [
        " f32 -   x[0] = x[0] * (a * 1.0)",
        " f32 +   x[0] = x[0] * a",
    ]
    assert [x.key for x in lines] == [None, 8, 8, None]
    assert lines[1].copy == "  x[0] = x[0] * (a * 1.0)"
    split = changes.run_lines(compiled, compiled.runs[1], 40, True, -1, ())
    assert any("(a * 1.0)" in ln.text_of(x) and "│" in ln.text_of(x) for x in split)


def test_a_change_that_the_readable_form_does_not_show_is_reported():
    compiled = readable_record()
    assert [changes.unseen(compiled, run, ()) for run in compiled.runs] == [True, False]


def test_the_anchor_of_a_readable_diff_is_the_line_that_shows_it():
    lines = ["kernel k(a: f32) {"]
    ids = [-1]
    for i in range(60):
        lines += [f"  <f32> ${2 * i} = arg_load [0]", f"  ${2 * i + 1} : print ${2 * i} ['v']"]
        ids += [2 * i, 2 * i + 1]
    old = rec.Snapshot(lines=(*lines, "}"), ids=(*ids, -1), locs=(-1,) * (len(ids) + 1))
    changed = (*lines[:-1], lines[-1].replace("'v'", "'w'"), "}")
    new = rec.Snapshot(lines=changed, ids=old.ids, locs=old.locs)
    run = rec.PassRun(index=0, stage="s", name="p", state="changed", before=0, after=1)
    compiled = rec.CompileRecord(runs=(run,), snapshots=(old, new))
    assert ln.index_of(changes.run_lines(compiled, run, 0, False, -1, ()), 21) is None
    # Op 20 is inside the line of op 21.
    assert ln.index_of(changes.run_lines(compiled, run, 0, False, 20, ()), 21) is not None


def test_the_anchor_is_never_folded_away():
    n = 60
    old = rec.Snapshot(
        lines=tuple(f"  ${i} : return" for i in range(n)), ids=tuple(range(n)), locs=(-1,) * n
    )
    new = rec.Snapshot(lines=(*old.lines[:-1], "  $59 : other"), ids=old.ids, locs=old.locs)
    run = rec.PassRun(index=0, stage="s", name="p", state="changed", before=0, after=1)
    compiled = rec.CompileRecord(runs=(run,), snapshots=(old, new))
    without = changes.run_lines(compiled, run, 0, False, -1)
    assert ln.index_of(without, 10) is None
    assert ln.index_of(changes.run_lines(compiled, run, 0, False, 10), 10) is not None


def test_home_gives_up_columns_but_not_agreement():
    record = make_record()
    for width in (200, 120, 100, 80, 60):
        lines = matrix.matrix(record, width).rows
        text = ln.text_of(lines[0])
        assert len(text.rstrip()) <= width
        assert "scale" in text and "✓" in text and "100 us" in text
    assert "no driver found" in ln.plain(home.absent_lines(record))


def test_errors_are_reported_once_with_stage_pass_and_place():
    error = rec.ErrorRecord(
        kind="Oops", message="it broke\nbadly", stage="passes", pass_name="die", file="scale.py",
        kernel="scale.py:scale", line=7, col=8, end_col=12, source="        x[i] = 1", hint="mend",
    )  # fmt: skip
    record = make_record()
    backends = tuple(
        rec.BackendRecord(backend=name, status="error", errors=(error,)) for name in "ab"
    )
    kernel = rec.KernelRecord(
        id="scale.py:scale", name="scale", file="scale.py", line=5, backends=backends
    )
    record = rec.Record(kernels=(kernel,), files=record.files)
    text = ln.plain(errors.error_lines(errors.errors_of(record, kernel), ascii_only=True))
    assert text.count("it broke") == 1
    for words in ("x passes die of scale failed", 'File "scale.py", line 7', "^^^^", "mend"):
        assert words in text
    marked = ln.plain(source.source_lines(record, kernel, None))
    rows = marked.splitlines()
    assert rows[7].index("^^^^") == rows[6].index("x[i]")


def test_an_error_in_another_kernels_file_does_not_concern_this_one():
    def kernel(name):
        return rec.KernelRecord(id=f"{name}.py:k", name="k", file=f"{name}.py", line=1)

    def failed(file):
        return rec.ErrorRecord(kind="E", message=file, file=file)

    record = rec.Record(
        kernels=(kernel("a"), kernel("b")),
        errors=(failed("a.py"), failed("b.py"), failed("helper.py"), failed("")),
    )
    assert [e.message for e in errors.errors_of(record, record.kernels[0])] == [
        "a.py", "helper.py", "",
    ]  # fmt: skip
    assert len(errors.errors_of(record)) == 4


def test_the_log_as_text_expands_tabs():
    record = rec.Record(log=(rec.LogLine(stream="stdout", text="a\tb"),))
    assert ln.plain(misc.log_lines(record)) == "stdout a       b\n"
    assert misc.log_lines(record)[0].copy == "a\tb"


def test_code_for_other_devices_is_coloured():
    def styles(text, language):
        return {part.strip(): style for part, style in ln.code_spans(text, language) if style}

    found = styles("__kernel void f(__global float *restrict x) { x[0] = fma(1.5f, y, 2); }", "c")
    assert found["__kernel"] == found["restrict"] == "kw" and found["float"] == "type"
    assert found["fma"] == "op" and found["1.5f"] == found["2"] == "const"
    assert styles("/* nbody.py:12 */ v += 1.0f;", "c")["/* nbody.py:12 */"] == "comment"
    found = styles("\tglobal_load_dword v4, v[2:3], s0 ; 16-byte", "gcn")
    assert found["global_load_dword"] == "op" and found["v[2:3]"] == found["v4"] == "id"
    assert found["; 16-byte"] == "comment"
    found = styles("%4 = OpTypeInt 32 0 ; i32", "spirv")
    assert found == {
        "%4": "id",
        "OpTypeInt": "type",
        "32": "const",
        "0": "const",
        "; i32": "comment",
    }


def test_long_lines_are_broken_at_blanks_and_lose_nothing():
    line = ln.Line((("one two ", "dim"), ("three", "ok"), (" four", "")), "key", line=3)
    found = ln.wrapped(line, 14)
    assert [ln.text_of(x) for x in found] == ["one two three", "    four"]
    assert found[0].spans == (("one two ", "dim"), ("three", "ok")) and {x.key for x in found} == {
        "key"
    }
    assert ln.wrapped(line, 40) == [line]
    assert ln.wrapped(ln.Line((("x" * 25, ""),)), 12)[0].spans == (("x" * 12, ""),)


def test_sentences_about_ir_mark_values_only():
    spans = ln.prose_spans("$15 stays in loop $9: loads are not moved")
    assert [text for text, style in spans if style] == ["$15", "$9"]
