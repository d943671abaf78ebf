"""The completion script for zsh."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from .bash import values

if TYPE_CHECKING:
    from .scripts import Level

__all__ = ["script"]

_READER: Final = r"""
_qd_studio_kind() {  # the completions of a value
    local -a found
    case $kind in
        file) _files ;;
        folder) _files -/ ;;
        record) _files -g '*.(qds|json)' ;;
        choice) compadd -a choices ;;
        kernel) if (( $#given )); then
                found=(${(f)"$($words[1] completion --kernels $given 2>/dev/null)"})
                compadd -a found
            fi ;;
        setting) if [[ $PREFIX == *=* ]]; then
                compadd -a settings
            else
                found=(${(u)settings%%=*})
                compadd -S = -a found
            fi ;;
        backends) compset -P '*,'
            compadd -a backends ;;
    esac
}

_qd_studio() {
    local place='' after='' rest='' placed='' kind='' position='' passes_on='' word
    local -a given choices position_choices commands flags
    integer i
    _qd_studio_words ''
    for (( i = 2; i < CURRENT; i++ )); do
        word=${(Q)words[i]}
        if [[ -n $after ]]; then after=''; continue; fi
        case $word in
            --) rest=1; break ;;
            -*=*) ;;
            -*) _qd_studio_value "$place $word"
                if [[ -n $kind ]]; then after=$word; fi ;;
            *) if [[ -z $placed ]] && (( ${commands[(I)$word:*]} )); then
                    place=${place:+$place }$word
                    _qd_studio_words "$place"
                else
                    placed=1
                    given+=("$word")
                    if [[ -n $passes_on ]]; then rest=1; break; fi
                fi ;;
        esac
    done
    kind=''
    if [[ -n $rest ]]; then
        kind=file
    elif [[ -n $after ]]; then
        _qd_studio_value "$place $after"
    elif [[ $PREFIX == -*=* ]]; then
        _qd_studio_value "$place ${PREFIX%%=*}"
        compset -P 1 '*='
    elif [[ $PREFIX == -* ]]; then
        _describe -o option flags
    else
        if [[ -z $placed && -n $commands ]]; then _describe command commands; fi
        kind=$position choices=($position_choices)
    fi
    _qd_studio_kind
}

compdef _qd_studio qd-studio
"""


def script(levels: Sequence[Level], settings: Sequence[str], backends: Sequence[str]) -> str:
    """The script. settings: ``name=value`` of compile options. backends: their names."""
    return "\n".join([
        "#compdef qd-studio",
        "# Completion of qd-studio for zsh, made by: qd-studio completion zsh",
        "_qd_studio_words() {  # what may be written at a path",
        "    case $1 in",
        *_words(levels),
        "    esac",
        "}",
        "",
        "_qd_studio_value() {  # the kind of value of an option at a path",
        "    kind='' choices=()",
        "    case $1 in",
        *values(levels, lambda words: f"({_list(words)})"),
        "    esac",
        "}",
        "",
        "_qd_studio_kind() {",
        f"    local -a settings=({_list(settings)}) backends=({_list(backends)})",
        _READER.strip().partition("\n")[2],
        "",
    ])  # fmt: skip


def _list(words: Iterable[str]) -> str:
    return " ".join(map(shlex.quote, words))


def _described(names: Iterable[tuple[str, str]]) -> str:
    """Names with their help, in the form of ``_describe``."""
    return _list(f"{name.replace(':', chr(92) + ':')}:{help}" for name, help in names)


def _words(levels: Sequence[Level]) -> Iterator[str]:
    for level in levels:
        flags = [(name, o["help"]) for o in level.options for name in o["names"]]
        yield f"        {shlex.quote(level.path)})"
        yield f"            commands=({_described(level.commands.items())})"
        yield f"            flags=({_described(flags)})"
        yield (
            f"            position={shlex.quote(level.first['kind'])}"
            f" position_choices=({_list(level.first['choices'])})"
            f" passes_on={'1' if level.passes_on else shlex.quote('')} ;;"
        )
