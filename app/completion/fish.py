"""The completion script for fish, from version 3.0."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from .scripts import Level

__all__ = ["script"]

_READER: Final = r"""
function __qd_studio_read  # path, a tab, the words after the commands
    set -l path ''
    set -l given
    set -l skip 0
    set -l tokens (commandline -opc)
    for word in $tokens[2..-1]
        if test $skip = 1
            set skip 0
            continue
        end
        switch $word
            case '--'
                set given $given --
                break
            case '-*=*'
            case '-*'
                if contains -- "$path $word" $__qd_studio_valued
                    set skip 1
                end
            case '*'
                set -l next (string trim -- "$path $word")
                if test (count $given) = 0; and contains -- $next $__qd_studio_paths
                    set path $next
                else
                    set given $given $word
                    if contains -- "$path" $__qd_studio_passing
                        set given $given --
                        break
                    end
                end
        end
    end
    echo $path
    printf '%s\n' $given
end

function __qd_studio_at  # true at a path, before words that are passed on
    set -l found (__qd_studio_read)
    test "$found[1]" = "$argv[1]"; and not contains -- -- $found[2..-1]
end

function __qd_studio_first  # true at a path, before its first argument
    set -l found (__qd_studio_read)
    test "$found[1]" = "$argv[1]"; and test -z "$found[2]"
end

function __qd_studio_rest  # true among words that are passed on
    set -l found (__qd_studio_read)
    contains -- -- $found[2..-1]
end

function __qd_studio_kernels
    set -l tokens (commandline -opc)
    set -l found (__qd_studio_read)
    $tokens[1] completion --kernels $found[2..-1] 2>/dev/null
end

function __qd_studio_backends  # a list with commas
    set -l before (string match -r -- '^.*,' (string replace -r -- '^-[^=]*=' '' (commandline -ct)))
    printf "$before%s\n" $__qd_studio_backends
end

complete -c qd-studio -f
complete -c qd-studio -n __qd_studio_rest -F
"""
_VALUES: Final = {
    "file": "-r -F", "folder": "-x -a '(__fish_complete_directories)'", "record": "-r -F",
    "kernel": "-x -a '(__qd_studio_kernels)'", "setting": "-x -a '$__qd_studio_settings'",
    "backends": "-x -a '(__qd_studio_backends)'", "text": "-x", "number": "-x", "": "",
}  # fmt: skip
_ARGUMENTS: Final = {
    "file": "-F", "record": "-F", "folder": "-a '(__fish_complete_directories)'",
}  # fmt: skip


def script(levels: Sequence[Level], settings: Sequence[str], backends: Sequence[str]) -> str:
    """The script. settings: ``name=value`` of compile options. backends: their names."""
    valued = [
        f"{level.path} {name}"
        for level in levels
        for option in level.options
        if option["kind"]
        for name in option["names"]
    ]
    passing = [level.path for level in levels if level.passes_on]
    lines = [
        "# Completion of qd-studio for fish, made by: qd-studio completion fish",
        f"set -g __qd_studio_paths {_list(level.path for level in levels if level.path)}",
        f"set -g __qd_studio_passing {_list(passing)}",
        f"set -g __qd_studio_valued {_list(valued)}",
        f"set -g __qd_studio_settings {_list(settings)}",
        f"set -g __qd_studio_backends {_list(backends)}",
        _READER,
        *(line for level in levels for line in _level(level)),
    ]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _list(words: Iterable[str]) -> str:
    return " ".join(map(_quoted, words))


def _level(level: Level) -> Iterator[str]:
    at = f"complete -c qd-studio -n {_quoted(f'__qd_studio_at {_quoted(level.path)}')}"
    first = f"complete -c qd-studio -n {_quoted(f'__qd_studio_first {_quoted(level.path)}')}"
    for name, help in level.commands.items():
        yield f"{first} -a {name} -d {_quoted(help)}"
    for argument in level.arguments[:1]:
        if argument["kind"] == "choice":
            yield f"{first} -a {_quoted(' '.join(argument['choices']))}"
        elif argument["kind"] in _ARGUMENTS:
            yield f"{at} {_ARGUMENTS[argument['kind']]}"
    for option in level.options:
        yield f"{at} {_names(option)} {_value(option)} -d {_quoted(option['help'])}"


def _names(option: dict[str, Any]) -> str:
    return " ".join(f"-l {n[2:]}" if n.startswith("--") else f"-s {n[1:]}" for n in option["names"])


def _value(option: dict[str, Any]) -> str:
    if option["kind"] == "choice":
        return f"-x -a {_quoted(' '.join(option['choices']))}"
    return _VALUES[option["kind"]]
