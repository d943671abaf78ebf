"""Completion in shells, and the description of all words: both follow the parsers."""

import json
import os
import shutil
import subprocess
import sys

import pytest
from qd_studio.app import cli
from qd_studio.app.commands import COMMANDS, is_command, load
from qd_studio.app.completion import SHELLS, kernels, scripts
from qd_studio.app.spec import KINDS
from qd_studio.app.tui.commands import all_commands
from qd_studio.engine import inspect

from tests.app.records import make_record

KERNELS = """\
import quadrants as qd
from quadrants import kernel
@qd.kernel
def one(): pass
@kernel(fastcache=True)
def two(): pass
class Cloth:
    @qd.kernel
    def step(self): pass
@qd.func
def helper(): pass
"""


@pytest.fixture
def folder(tmp_path):
    """Files to complete, and the program on the path."""
    (tmp_path / "my kernels.py").write_text(KERNELS)
    (tmp_path / "inner").mkdir()
    inspect.save(make_record(), tmp_path / "old.qds")
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "qd-studio"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m qd_studio.app.cli "$@"\n')
    program.chmod(0o755)
    return tmp_path


def ran(folder, shell, code, *arguments):
    """What a shell prints; skipped where it is not installed."""
    path = shutil.which(shell)
    if path is None:
        pytest.skip(f"{shell} is not installed")
    script = folder / f"completion.{shell}"
    script.write_text(scripts.script(shell))
    env = {**os.environ, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "HOME": str(folder)}
    flag = {"bash": ["--norc"], "zsh": ["-f"], "fish": ["--no-config"]}[shell]
    done = subprocess.run(
        [path, *flag, "-c", code, *arguments],
        capture_output=True, text=True, cwd=folder, env=env, timeout=60,
    )  # fmt: skip
    assert done.stderr == ""
    return done.stdout.splitlines()


BASH = """\
source completion.bash; compopt() { :; }
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"
_qd_studio; printf '%s\\n' "${COMPREPLY[@]}"
"""
# Outside of the line editor zsh has none of these: each prints what it would offer.
ZSH = """\
compdef() { :; }
compset() { if [[ $1 == -P ]]; then PREFIX=${PREFIX#${~@[-1]}}; fi; }
compadd() { local -a all=(${(P)@[-1]}); local end=''
  if [[ $1 == -S ]]; then end=$2; fi
  print -rl -- ${(M)${all/%/$end}:#$PREFIX*}; }
_describe() { local -a all=(${(P)@[-1]}); print -rl -- ${(M)${all%%:*}:#$PREFIX*}; }
_files() { if [[ $1 == -g ]]; then print -rl -- $PREFIX*.(qds|json)(N)
  elif [[ $1 == -/ ]]; then print -rl -- $PREFIX*(N/); else print -rl -- $PREFIX*(N); fi; }
source completion.zsh
words=("$@") CURRENT=$# PREFIX=${@[-1]}
_qd_studio
"""
FISH = "source completion.fish; complete -C $argv[1]"


def completed(folder, shell, *words):
    """The words that a shell offers in place of the last one."""
    if shell == "bash":
        split = [part for word in words for part in _at_equals(word)]
        out = ran(folder, shell, BASH, "bash", "qd-studio", *split)
    elif shell == "zsh":
        out = ran(folder, shell, ZSH, "zsh", "qd-studio", *words)
    else:
        line = " ".join(word.replace(" ", "\\ ") for word in ("qd-studio", *words))
        out = [text.partition("\t")[0] for text in ran(folder, shell, FISH, line)]
    return {word.replace("\\", "") for word in out if word}


def _at_equals(word):
    """A word as bash splits it: at the signs of equality."""
    first, *others = word.split("=")
    parts = [first] if first or not others else []
    for other in others:
        parts += ["=", other] if other else ["="]
    return parts or [""]


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("words", "offered", "never"),
    [
        (["sh"], {"show"}, {"open"}),
        (["cache", ""], {"ls", "show", "verify", "clean"}, {"run"}),
        (["cache", "clean", "--o"], {"--older-than"}, {"--json"}),
        (["cache", "ls", "--a"], set(), {"--all"}),
        (["show", "--panel", "c"], {"cfg", "caches", "code"}, {"ir"}),
        (["completion", ""], set(SHELLS), {"run"}),
        (["--theme", ""], {"dark", "light"}, {"run"}),
        (["old.qds", "sh"], set(), {"show"}),
        (["my"], {"my kernels.py"}, {"inner"}),
        (["open", ""], {"old.qds"}, {"my kernels.py"}),
        (["show", "my kernels.py", "--kernel", ""], {"one", "two", "step"}, {"helper"}),
        (["replay", "old.qds", "--kernel", "sc"], {"scale"}, {"run"}),
        (["run", "--eng"], {"--engine-only"}, {"--engine"}),
        (["run", "my kernels.py", "--eng"], set(), {"--engine-only"}),
        (["run", "my kernels.py", "old"], {"old.qds"}, set()),
        (["--backend", "interp,cp"], {"interp,cpu"}, {"cuda"}),
    ],
)
def test_words_are_completed(folder, shell, words, offered, never):
    found = completed(folder, shell, *words)
    if shell != "bash" and words[-1].endswith(",cp"):  # these may complete the last part alone
        found |= {f"interp,{word}" for word in found}
    if words[0] == "open" and shell == "fish":  # fish shows all files
        never = set()
    assert offered <= found
    assert not never & found


@pytest.mark.parametrize("words", [["--config", "fast_math="], ["--config=fast_math="]])
def test_compile_options_are_completed_with_their_values(folder, words):
    assert completed(folder, "bash", *words) == {"0", "1"}
    assert "=fast_math=0" in {f"={w}" for w in completed(folder, "zsh", "--config", "fast_math=")}
    assert "fast_math=0" in completed(folder, "fish", "--config", "fast_m")


def test_names_of_options_end_before_the_value(folder):
    assert "fast_math=" in completed(folder, "zsh", "--config", "fast")
    assert {"fast_math=0", "fast_math=1"} <= completed(folder, "bash", "--config", "fast")


def test_kernels_are_read_and_nothing_is_run(folder, capsys):
    trap = folder / "trap.py"
    trap.write_text("import os; os._exit(9)\n@qd.kernel\ndef late(): pass\n")
    (folder / "broken.py").write_text("def (:\n")
    notebook = {"cells": [{"cell_type": "code", "source": ["%magic\n@qd.kernel\ndef c(): pass"]}]}
    (folder / "book.ipynb").write_text(json.dumps(notebook))
    paths = [folder / name for name in ("trap.py", "broken.py", "missing.py", "book.ipynb")]
    assert kernels(map(str, paths)) == ["c", "late"]
    assert set(kernels([str(folder)])) >= {"one", "two", "step", "late", "c"}
    assert cli.main(["completion", "--kernels", str(trap), str(folder / "old.qds")]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "late"


def test_a_shell_must_be_named(capsys):
    assert cli.main(["completion"]) == 2
    assert "bash, zsh, fish" in capsys.readouterr().err


# ---- --spec


def parsers(parser, name):
    """(path, parser) of a command and of those inside of it."""
    yield name, parser
    for action in parser.actions:
        if isinstance(action.choices, dict):
            for word, inner in action.choices.items():
                yield from parsers(inner, f"{name} {word}")


ALL = [found for name in COMMANDS for found in parsers(load(name).parser(), name)]


@pytest.fixture(scope="module")
def spec():
    done = subprocess.run(
        [sys.executable, "-m", "qd_studio.app.cli", "--spec"], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


@pytest.mark.parametrize(("path", "parser"), ALL, ids=[path for path, _ in ALL])
def test_every_option_is_described(spec, path, parser):
    found = spec
    for word in path.split():
        found = next(one for one in found["commands"] if one["name"] == word)
    names = {name for option in found["options"] for name in option["names"]}
    assert names == {name for action in parser.actions for name in action.option_strings}
    for option in found["options"]:
        assert option["help"], option
        assert (option["value"] == "") == (option["kind"] == "")
    for one in (*found["options"], *found["arguments"]):
        # A new kind of value needs a row in `KINDS`, so that shells can complete it.
        assert one["kind"] in ("", "choice", "kernel") or one["value"] in KINDS, one


def test_keys_and_compile_options_are_described(spec):
    assert {key["id"] for key in spec["keys"]} == {command.id for command in all_commands()}
    assert next(key for key in spec["keys"] if key["id"] == "help")["keys"] == ["?", "f1"]
    assert {o["name"] for o in spec["compile_options"]} == {o.name for o in inspect.options()}
    assert spec["backends"][:2] == ["cpu", "interp"]
    assert [one["name"] for one in spec["commands"]] == list(COMMANDS)
    run = next(one for one in spec["commands"] if one["name"] == "run")
    assert run["passes_on"] and run["arguments"][0]["value"] == "SCRIPT"


def test_scripts_name_every_option():
    for shell in SHELLS:
        text = scripts.script(shell)
        for _path, parser in ALL:
            for action in parser.actions:
                for name in action.option_strings:
                    assert (name.lstrip("-") if shell == "fish" else name) in text


def test_a_folder_named_as_a_command_does_not_hide_it(tmp_path, monkeypatch):
    """Editors and agents start servers in any project."""
    monkeypatch.chdir(tmp_path)
    for name in COMMANDS:
        (tmp_path / name).mkdir()
        assert is_command([name])
    (tmp_path / "lsp").rmdir()
    (tmp_path / "lsp").touch()
    assert not is_command(["lsp"])
