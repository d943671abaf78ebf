"""Diff by op identity: what counts as a change, and what does not."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from qd_studio.engine.inspect import diff_listings, diff_renumbered
from qd_studio.engine.inspect.diff import fold, intraline
from qd_studio.engine.inspect.record import Snapshot


def snapshot(lines, ids, locs):
    return Snapshot(lines=tuple(lines), ids=tuple(ids), locs=tuple(locs), ops=len(ids))


def lines(*texts: str) -> Snapshot:
    ids = [int(t.split("$")[1].split()[0]) if "$" in t.split("=")[0] else -1 for t in texts]
    return snapshot(list(texts), ids, [-1] * len(texts))


BASE = lines(
    "kernel k() stage=ast {",
    "  <i32> $0 = const 3",
    "  <i32> $1 = add $0, $0",
    "  $2 : if $1 then {",
    "    <i32> $3 = const 4",
    "  } else {",
    "  }",
    "}",
)


def kinds(d):
    return [(r.kind, r.op) for r in d.rows if r.kind != "same"]


def test_equal_listings_have_no_changes():
    d = diff_listings(BASE, BASE)
    assert d.empty and d.summary() == "0 changes"
    assert len(d.rows) == len(BASE.lines)


def test_inserted_op_is_one_added_row():
    new = snapshot(
        [*BASE.lines[:2], "  <i32> $9 = const 1", *BASE.lines[2:]],
        [*BASE.ids[:2], 9, *BASE.ids[2:]],
        [-1] * 9,
    )
    d = diff_listings(BASE, new)
    assert kinds(d) == [("added", 9)]
    assert d.summary() == "+1"


def test_op_that_leaves_a_region_is_moved_not_removed_and_added():
    new = lines(
        "kernel k() stage=ast {",
        "  <i32> $0 = const 3",
        "  <i32> $3 = const 4",
        "  <i32> $1 = add $0, $0",
        "  $2 : if $1 then {",
        "  } else {",
        "  }",
        "}",
    )
    d = diff_listings(BASE, new)
    assert kinds(d) == [("moved", 3)]
    assert d.summary() == "moved 1"


def test_changed_operand_is_a_changed_row():
    new = snapshot([t.replace("add $0, $0", "mul $0, $0") for t in BASE.lines], BASE.ids, BASE.locs)
    assert kinds(diff_listings(BASE, new)) == [("changed", 1)]


def test_replacement_is_paired_with_its_origin():
    new = snapshot(
        [t.replace("$1 = add $0, $0", "$7 = mul $0, $0").replace("if $1", "if $7")
         for t in BASE.lines],
        [7 if i == 1 else i for i in BASE.ids],
        BASE.locs,
    )  # fmt: skip
    d = diff_listings(BASE, new, {7: 1})
    assert kinds(d) == [("replaced", 7), ("changed", 2)]
    row = next(r for r in d.rows if r.kind == "replaced")
    assert (row.old, row.new) == (2, 2)


def test_renumbered_listings_of_two_compiles_are_equal():
    new = snapshot(
        [t.replace("$0", "$10").replace("$1 ", "$11 ").replace("if $11", "if $11")
         .replace("$2 ", "$12 ").replace("$3 ", "$13 ") for t in BASE.lines],
        [i + 10 if i >= 0 else i for i in BASE.ids],
        BASE.locs,
    )  # fmt: skip
    d, renamed = diff_renumbered(BASE, new)
    assert d.empty, [r for r in d.rows if r.kind != "same"]
    assert list(renamed.lines) == list(new.lines)


def test_intraline_marks_the_token():
    old, new = "  <i32> $1 = add $0, $0", "  <i32> $1 = add $0, $5"
    a, b = intraline(old, new)
    assert [old[s:e] for s, e in a] == ["$0"]
    assert [new[s:e] for s, e in b] == ["$5"]


def test_fold_keeps_context_around_changes():
    n = 40
    old = snapshot([f"  $%d : return {i}" % i for i in range(n)], list(range(n)), [-1] * n)
    new = snapshot([t if i != 20 else t + "0" for i, t in enumerate(old.lines)], old.ids, old.locs)
    d = diff_listings(old, new)
    shown = [h for h in fold(d.rows, 3) if not h.folded]
    assert [(h.start, h.end) for h in shown] == [(17, 24)]


@given(st.permutations(range(12)), st.sets(st.integers(0, 11)), st.sets(st.integers(0, 11)))
def test_every_line_of_both_sides_is_in_exactly_one_row(order, drop_old, drop_new):
    def listing(ids):
        return snapshot([f"  ${i} : return" for i in ids], ids, [-1] * len(ids))

    old = listing([i for i in range(12) if i not in drop_old])
    new = listing([i for i in order if i not in drop_new])
    d = diff_listings(old, new)
    assert sorted(r.new for r in d.rows if r.new >= 0) == list(range(len(new.ids)))
    assert sorted(r.old for r in d.rows if r.old >= 0) == list(range(len(old.ids)))
    assert [r.new for r in d.rows if r.new >= 0] == list(range(len(new.ids)))


def test_one_more_op_in_1_000_is_one_change_whatever_the_numbers():
    texts = ["kernel k() stage=ast {", *(f"  <i32> ${i} = const {i}" for i in range(1000)), "}"]
    more = [*texts[:500], "  <i32> $499 = const -1"]
    more += [f"  <i32> ${i + 1} = const {i}" for i in range(499, 1000)] + ["}"]
    old, new = lines(*texts), lines(*more)
    assert kinds(diff_renumbered(old, new)[0]) == [("added", 499)]
