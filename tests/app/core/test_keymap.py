"""Key maps of users: what is taken, and what is reported."""

import pytest
from qd_studio.app import cli
from qd_studio.app.core.keymap import KEYMAPS, keymap_of
from qd_studio.app.tui.commands import all_commands
from qd_studio.app.tui.run import read_keymap

SCOPES = {
    "quit": ("everywhere", "q"), "next-pass": ("kernel", "right_square_bracket"),
    "line-down": ("list", "down,j"), "open": ("home", "enter"),
}  # fmt: skip


def test_keys_are_taken_by_name_or_as_typed():
    found = keymap_of({"quit": "X", "next-pass": ["]", "ctrl+n", "f5"]}, SCOPES)
    assert found == ({"quit": "X", "next-pass": "right_square_bracket,ctrl+n,f5"}, (), 0)
    assert keymap_of({"keep-saves": 200}, SCOPES) == ({}, (), 200)


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"next-pas": "x"}, "unknown command 'next-pas'; the nearest is 'next-pass'"),
        ({"quit": 3}, "quit: 3 is not a key"),
        ({"quit": "ctrl+"}, "quit: 'ctrl+' is not a key"),
        ({"quit": [""]}, "quit: '' is not a key"),
        ({"keep-saves": 1}, "keep-saves: 1 is not a number of 2 or more"),
        ({"keep-saves": True}, "keep-saves: True is not a number of 2 or more"),
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


def test_the_number_of_saves_is_an_option_too(capsys):
    parse = cli.main_parser().parse_args
    assert parse(["k.py", "--keep-saves", "200"]).keep_saves == 200
    assert parse(["k.py"]).keep_saves == 0  # as the file says
    with pytest.raises(SystemExit):
        parse(["k.py", "--keep-saves", "1"])
    assert "1 is not a number of 2 or more" in capsys.readouterr().err


def test_a_file_without_end_of_nesting_is_a_problem_not_a_crash():
    from qd_studio.app.tui.run import read_keymap

    assert read_keymap("quit = " + "[" * 5000).problems == ("it is nested too deeply",)


@pytest.mark.parametrize("name", KEYMAPS)
def test_the_key_maps_name_commands_and_no_key_twice(name):
    assert read_keymap("", name).problems == ()
    usual = {c.id: c.keys for c in all_commands()}
    for id, keys in KEYMAPS[name].items():
        assert keys != usual[id]
        assert not [key for key in keys.split(",") if key.startswith("alt+") and len(key) != 5]


def test_a_file_may_start_from_a_key_map_and_the_command_line_has_precedence():
    text = 'keymap = "emacs"\nsearch = "f3"\n'
    found = read_keymap(text)
    assert found.problems == ()
    assert (found.keys["line-up"], found.keys["search"]) == ("up,ctrl+p", "f3")
    assert "line-up" not in read_keymap(text, "vim").keys
    assert read_keymap('keymap = "ed"').problems == (
        "keymap: 'ed' is not one of default, vim, emacs",
    )
    assert read_keymap("keymap = [1]").keys == {}


def test_keys_of_a_key_map_clash_too():
    assert read_keymap('keymap = "emacs"\nquit = "ctrl+n"').problems == (
        "ctrl+n means both quit and line-down",
    )
    assert read_keymap('quit = "ctrl+n"').problems == ()


@pytest.mark.parametrize(
    ("text", "status", "said"),
    [
        (None, 1, "there is no such file"),
        ('quit = "ctrl+f8"', 0, "1 commands have other keys than usual; nothing is wrong with it"),
        ('next-pas = "x"', 1, "unknown command 'next-pas'; the nearest is 'next-pass'"),
        ('quit = "j"\nhelp = "j"', 1, "j means both help and quit"),
        ("quit =", 1, "Invalid value"),
        ('"\\u001b[2J" = "x"', 1, "unknown command"),
    ],
)
def test_a_file_is_checked_without_a_screen(tmp_path, capsys, text, status, said):
    path = tmp_path / "keymap.toml"
    if text is not None:
        path.write_text(text)
    assert cli.main(["--check-config", str(path)]) == status
    out = capsys.readouterr().out
    assert said in out and "\x1b" not in out
    assert all(line.startswith(f"{path}: ") for line in out.splitlines())
