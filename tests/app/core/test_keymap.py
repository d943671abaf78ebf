"""Key maps of users: what is taken, and what is reported."""

import pytest
from qd_studio.app.core.keymap import keymap_of
from qd_studio.app.tui.run import read_keymap

SCOPES = {
    "quit": ("everywhere", "q"), "next-pass": ("kernel", "right_square_bracket"),
    "line-down": ("list", "down,j"), "open": ("home", "enter"),
}  # fmt: skip


def test_keys_are_taken_by_name_or_as_typed():
    found = keymap_of({"quit": "X", "next-pass": ["]", "ctrl+n", "f5"]}, SCOPES)
    assert found == ({"quit": "X", "next-pass": "right_square_bracket,ctrl+n,f5"}, ())


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"next-pas": "x"}, "unknown command 'next-pas'; the nearest is 'next-pass'"),
        ({"quit": 3}, "quit: 3 is not a key"),
        ({"quit": "ctrl+"}, "quit: 'ctrl+' is not a key"),
        ({"quit": [""]}, "quit: '' is not a key"),
        ({"quit": "j"}, "j means both quit and line-down"),
        ({"next-pass": "q"}, "q means both quit and next-pass"),
    ],
)
def test_what_cannot_be_used_is_reported(values, problem):
    assert keymap_of(values, SCOPES).problems == (problem,)


def test_screens_that_never_meet_may_share_a_key():
    assert keymap_of({"next-pass": "enter"}, SCOPES).problems == ()


def test_a_file_that_is_no_toml_is_reported():
    found = read_keymap("quit = ")
    assert found.keys == {} and len(found.problems) == 1
    assert read_keymap('quit = "X"').keys == {"quit": "X"}


def test_a_file_without_end_of_nesting_is_a_problem_not_a_crash():
    from qd_studio.app.tui.run import read_keymap

    assert read_keymap("quit = " + "[" * 5000).problems == ("it is nested too deeply",)
