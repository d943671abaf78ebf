"""The completion script for bash, from version 3.2."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from .scripts import Level

__all__ = ["script", "values"]

_READER: Final = r"""
_qd_studio_kind() {  # the completions of a value; sets COMPREPLY
    local one
    case $kind in
        file) compopt -o filenames 2>/dev/null
            while IFS= read -r one; do COMPREPLY+=("$one"); done < <(compgen -f -- "$cur") ;;
        folder) compopt -o filenames 2>/dev/null
            while IFS= read -r one; do COMPREPLY+=("$one"); done < <(compgen -d -- "$cur") ;;
        record) compopt -o filenames 2>/dev/null
            while IFS= read -r one; do
                if [[ -d $one || $one == *.qds || $one == *.json ]]; then COMPREPLY+=("$one"); fi
            done < <(compgen -f -- "$cur") ;;
        choice) COMPREPLY+=($(compgen -W "$choices" -- "$cur")) ;;
        kernel) if ((${#given[@]})); then
                one=$("${words[0]}" completion --kernels "${given[@]}" 2>/dev/null)
                COMPREPLY+=($(compgen -W "$one" -- "$cur"))
            fi ;;
        setting) COMPREPLY+=($(compgen -W "$settings" -- "$cur"))
            if [[ ${#COMPREPLY[@]} == 1 && $COMPREPLY == *= ]]; then
                compopt -o nospace 2>/dev/null
            fi ;;
        backends) one=''
            if [[ $cur == *,* ]]; then one=${cur%,*},; fi
            COMPREPLY+=($(compgen -P "$one" -W "$backends" -- "${cur##*,}")) ;;
    esac
}

_qd_studio() {
    local words=() given=() word path='' after='' rest='' placed='' kind='' choices='' before=''
    local commands='' flags='' position='' position_choices='' passes_on='' cur i last
    COMPREPLY=()
    for ((i = 0; i <= COMP_CWORD; i++)); do  # bash splits words at =
        word=${COMP_WORDS[i]}
        last=$((${#words[@]} - 1))
        if ((i > 1)) && [[ $word == = || (-n $word && ${words[last]} == *=) ]]; then
            words[last]+=$word
        else
            words+=("$word")
        fi
    done
    last=$((${#words[@]} - 1))
    cur=${words[last]}
    _qd_studio_words ''
    for ((i = 1; i < last; i++)); do
        word=${words[i]}
        if [[ -n $after ]]; then after=''; continue; fi
        case $word in
            --) rest=1; break ;;
            -*=*) ;;
            -*) _qd_studio_value "$path $word"
                if [[ -n $kind ]]; then after=$word; fi ;;
            *) if [[ -z $placed && " $commands " == *" $word "* ]]; then
                    path=${path:+$path }$word
                    _qd_studio_words "$path"
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
        _qd_studio_value "$path $after"
    elif [[ $cur == -*=* ]]; then
        _qd_studio_value "$path ${cur%%=*}"
        if [[ $COMP_WORDBREAKS != *=* ]]; then before=${cur%%=*}=; fi
        cur=${cur#*=}
    elif [[ $cur == -* ]]; then
        COMPREPLY=($(compgen -W "$flags" -- "$cur"))
    else
        if [[ -z $placed ]]; then COMPREPLY=($(compgen -W "$commands" -- "$cur")); fi
        kind=$position choices=$position_choices
    fi
    _qd_studio_kind
    if [[ $COMP_WORDBREAKS == *=* && $cur == *=* ]]; then
        COMPREPLY=("${COMPREPLY[@]#"${cur%=*}="}")
    elif [[ -n $before ]]; then
        COMPREPLY=("${COMPREPLY[@]/#/$before}")
    fi
}

complete -F _qd_studio qd-studio
"""


def script(levels: Sequence[Level], settings: Sequence[str], backends: Sequence[str]) -> str:
    """The script. settings: ``name=value`` of compile options. backends: their names."""
    return "\n".join([
        "# Completion of qd-studio for bash, made by: qd-studio completion bash",
        "_qd_studio_words() {  # what may be written at a path",
        '    case "$1" in',
        *_words(levels),
        "    esac",
        "}",
        "",
        "_qd_studio_value() {  # the kind of value of an option at a path",
        "    kind='' choices=''",
        '    case "$1" in',
        *values(levels),
        "    esac",
        "}",
        "",
        "_qd_studio_kind() {",
        f"    local settings={shlex.quote(' '.join(settings))}",
        f"    local backends={shlex.quote(' '.join(backends))}",
        _READER.strip().partition("\n")[2],
        "",
    ])  # fmt: skip


def _quoted(words: Sequence[str]) -> str:
    return shlex.quote(" ".join(words))


def _words(levels: Sequence[Level]) -> Iterator[str]:
    for level in levels:
        flags = " ".join(name for option in level.options for name in option["names"])
        yield (
            f"        {shlex.quote(level.path)})"
            f" commands={_quoted(list(level.commands))} flags={shlex.quote(flags)}"
            f" position={shlex.quote(level.first['kind'])}"
            f" position_choices={_quoted(level.first['choices'])}"
            f" passes_on={'1' if level.passes_on else shlex.quote('')} ;;"
        )


def values(
    levels: Sequence[Level], choices: Callable[[Sequence[str]], str] = _quoted
) -> Iterator[str]:
    """The branches of a case by a path and an option. choices: words as a value of the shell."""
    for level in levels:
        for option in level.options:
            if option["kind"]:
                names = "|".join(shlex.quote(f"{level.path} {n}") for n in option["names"])
                chosen = choices(option["choices"])
                yield f"        {names}) kind={option['kind']} choices={chosen} ;;"
