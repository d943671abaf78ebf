"""Positions of records in the units of editors, and lines of old texts in new ones."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from qd_studio.app.lsp.positions import LineMap, Region, Text

LINE = "a = 'é\U0001f600' + b"


@pytest.mark.parametrize(("encoding", "column"), [("utf-8", 13), ("utf-16", 10), ("utf-32", 9)])
def test_columns_are_counted_in_the_units_of_the_editor(encoding, column):
    byte = LINE.encode().index(b"+")
    text = Text(f"first\r\n{LINE}", encoding)
    assert text.units(2, byte) == column
    assert text.byte(2, column) == byte


@given(st.text(), st.sampled_from(["utf-8", "utf-16", "utf-32"]), st.integers(-2, 9))
def test_any_column_of_any_line_is_somewhere_in_it(line, encoding, column):
    text = Text(line, encoding)
    for number in range(-1, len(text.lines) + 2):
        assert 0 <= text.units(number, column) <= text.end(number)
        assert text.units(number, text.byte(number, column)) <= text.end(number)


def test_the_text_of_a_region():
    text = Text(LINE)
    assert text.cut(Region("f", 1, 0, 1, 1)) == "a"
    assert text.cut(Region("f", 1, 0, 2, 1)) == ""


def test_lines_of_an_old_text_in_a_new_one():
    moved = LineMap(["a", "b", "c"], ["a", "x", "y", "b", "c"])
    assert [moved.to_new(n) for n in (1, 2, 3)] == [1, 4, 5]
    assert [moved.to_old(n) for n in (1, 2, 3, 4, 5)] == [1, 0, 0, 2, 3]
    changed = LineMap(["a", "b", "c"], ["a", "B", "c"])
    assert changed.to_new(2) == 2 and not changed.same
    assert LineMap(["a"], ["a"]).same


@given(st.lists(st.sampled_from("ab")), st.lists(st.sampled_from("ab")))
def test_lines_that_are_not_between_changes_are_the_same(old, new):
    lines = LineMap(old, new)
    if len(old) != len(new):
        for number in range(1, len(old) + 1):
            there = lines.to_new(number)
            assert there == 0 or new[there - 1] == old[number - 1]
