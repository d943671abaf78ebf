"""``qd-studio cache``: what the caches on disk hold, whether it is good, and removing it.

    qd-studio cache ls              a line an entry
    qd-studio cache show KEY        one entry: what it was made from, and what it holds
    qd-studio cache verify          check every entry
    qd-studio cache clean           remove what the policy allows, or what options choose
    qd-studio cache remote          the shared cache: whether it answers, and what came of it

Only ``clean`` changes anything: the others leave every byte and timestamp as they are.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from ..engine import inspect
from . import streams
from .core.format import counted, duration_ms, size
from .usage import EXIT_ENVIRONMENT, EXIT_FAILED, EXIT_OK, EXIT_USAGE, Failure, Parser

__all__ = ["Outcome", "main", "parser", "run"]

_SHORT: Final = 12
"""Digits of a key that a list shows; any beginning that is unique will do."""
_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_INDENT: Final = "  "

Info = Any
"""An entry as the engine's `inspect.Caches` describes it."""


class Outcome(NamedTuple):
    """The text to print; ``fine``: all is well; talk: lines for standard error."""

    text: str
    fine: bool = True
    talk: Sequence[str] = ()


# ---- arguments


def parser() -> Parser:
    """The arguments: a command of its own for each action."""
    made = Parser(
        prog="qd-studio cache", description="List, show, check and clean the caches on disk."
    )
    commands = made.add_subparsers(dest="action", metavar="COMMAND", required=True)
    texts = {
        "ls": "List all entries by layer, the last used first.",
        "show": "Show one entry: the parts of its key, sources, captured values, sizes, times.",
        "verify": "Check every byte of every entry; the exit code is 1 if one is invalid.",
        "clean": "Remove invalid entries, entries of other versions of the engine, and, at the "
        "size limit, what the policy selects. With options, remove exactly what they select.",
        "remote": "Ask the shared cache that QD_REMOTE_CACHE names: whether it answers, which keys "
        "are trusted, and the hits, misses and refusals of programs that ended here; the exit code "
        "is 1 if it cannot be used.",
    }
    for name, text in texts.items():
        command = commands.add_parser(name, help=text.split(":")[0], description=text)
        add = command.add_argument
        if name == "show":
            add("key", metavar="KEY", help="a key, or a unique prefix of it")
        if name == "clean":
            add("--all", action="store_true", help="remove all entries of all layers")
            add("--layer", metavar="NAME", help="only entries of this layer, such as offline")
            add("--kernel", metavar="NAME",
                help="only entries of this kernel: qualified name, or its last part")  # fmt: skip
            add("--older-than", metavar="AGE", type=_age,
                help="only entries not used for this time: 30d, 12h, 90m, 45s, 2w")  # fmt: skip
        if name == "remote":
            add("--push", action="store_true",
                help="first send the entries that the root has, made by this engine")  # fmt: skip
        add("-p", "--path", metavar="FOLDER", default="",
            help="the root of the caches; default: QD_OFFLINE_CACHE_FILE_PATH, else the user's "
            "cache directory")  # fmt: skip
        add("--json", action="store_true", help="print one JSON object")
    return made


def _age(text: str) -> float:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhdw])", text.strip())
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not an age such as 30d, 12h, 90m, 45s or 2w")
    return float(found[1]) * _UNITS[found[2]]


def run(options: argparse.Namespace) -> Outcome:
    """Do what was asked for. Failure if that cannot be done."""
    try:
        caches = inspect.Caches(options.path)
    except ValueError as error:
        raise Failure(EXIT_USAGE, str(error)) from None
    command = {"ls": _ls, "show": _show, "verify": _verify, "clean": _clean,
               "remote": _remote}[options.action]  # fmt: skip
    return command(caches, options)


def _usable(caches: inspect.Caches) -> None:
    """Failure for a root that may not be used; one that is not there is merely empty."""
    for fault in caches.faults():
        if fault.path == caches.root:
            text = f"{fault.path} {fault.why}; remedy: {fault.remedy}"
            raise Failure(EXIT_ENVIRONMENT, text)


# ---- ls


def _ls(caches: inspect.Caches, options: argparse.Namespace) -> Outcome:
    _usable(caches)
    faults = caches.faults()
    found = sorted(caches.entries(), key=lambda info: (info.layer, -info.used))
    talk = [f"{fault.path} {fault.why}; remedy: {fault.remedy}" for fault in faults]
    if options.json:
        value = {**_place(caches), "entries": [_brief(info) for info in found]}
        return Outcome(_json(value), talk=talk)
    now = time.time()
    rows = [("layer", "key", "kernel", "backend", "size", "made", "last use")]
    rows += [
        (info.layer, info.key[:_SHORT], info.kernel or "?", str(info.about.get("backend", "")),
         size(info.size), _ago(info.created, now), _ago(info.used, now))
        for info in found
    ]  # fmt: skip
    lines = [_printable(line) for line in _table(rows, right={4})]
    for at, info in enumerate(found, 1):
        if info.problem:
            lines[at] += f"   {info.problem}" if info.foreign else f"   BAD: {info.problem}"
    total = sum(info.size for info in found)
    end = "1 entry" if len(found) == 1 else f"{len(found)} entries"
    limit = f"limit {size(caches.rules.limit)}, policy {caches.rules.policy}"
    lines = [*(lines if found else []), f"{end}, {size(total)} in {caches.root} ({limit})"]
    return Outcome("\n".join(lines) + "\n", talk=talk)


def _place(caches: inspect.Caches) -> dict[str, Any]:
    rules = caches.rules
    return {"path": caches.root, "policy": rules.policy, "limit": rules.limit}


def _brief(info: Info) -> dict[str, Any]:
    return {
        "layer": info.layer,
        "key": info.key,
        "kernel": info.kernel,
        "path": info.path,
        "size": info.size,
        "created": info.created,
        "used": info.used,
        "problem": info.problem,
    }


# ---- show


def _show(caches: inspect.Caches, options: argparse.Namespace) -> Outcome:
    _usable(caches)
    info = _one(caches, options.key)
    if options.json:
        about, load, code = info.sections
        sizes = {"about": about, "load": load, "code": code}
        value = {**_brief(info), "sections": sizes, "about": info.about}
        return Outcome(_json({**value, "load": caches.load_of(info)}), not info.problem)
    lines = [_printable(line) for line in (*_facts(info), *_lists(info.about))]
    return Outcome("\n".join(lines) + "\n", not info.problem)


def _one(caches: inspect.Caches, key: str) -> Info:
    found = caches.matching(key)
    exact = [info for info in found if info.key == key.lower()]
    found = exact if len(exact) == 1 else found
    if len(found) == 1:
        return found[0]
    if not found:
        why = f"no entry in {caches.root} has a key that begins with {key!r}"
        raise Failure(EXIT_USAGE, why)
    names = [f"{_INDENT}{info.layer} {info.key} {info.kernel}" for info in found[:10]]
    more = [f"{_INDENT}..."] if len(found) > 10 else []
    text = f"{len(found)} entries have keys that begin with {key!r}:"
    raise Failure(EXIT_USAGE, "\n".join([text, *names, *more]))


def _facts(info: Info) -> list[str]:
    """The facts that are known of every entry."""
    now = time.time()
    about = info.about
    at, load, code = info.sections
    where = f"{about['file']}:{about.get('line', '?')}" if about.get("file") else ""
    ms = _of(about, "ms", dict)
    facts = {
        "key": info.key,
        "layer": info.layer,
        "kernel": info.kernel or "?",
        "source": where,
        "backend": str(about.get("backend", "")),
        "engine": str(about.get("engine", "")),
        "file": info.path,
        "size": f"{size(info.size)}: about {size(at)}, load {size(load)}, code {size(code)}",
        "made": _when(info.created, now),
        "last use": _when(info.used, now),
        "made in": ", ".join(f"{name} {duration_ms(x)}" for name, x in ms.items()),
        "state": f"BAD: {info.problem}" if info.problem else "good",
    }
    if not any(info.sections):
        facts["size"] = size(info.size)
    return [f"{name:<9} {text}" for name, text in facts.items() if text]


def _lists(about: dict[str, Any]) -> list[str]:
    """The inputs of an entry: parts of its key, parameters, sources, captured values."""
    lines: list[str] = []
    parts = _of(about, "parts", dict)
    if parts:
        width = max(map(len, parts))
        lines += ["", "parts of the key"]
        lines += [f"{_INDENT}{name:<{width}}  {value}" for name, value in parts.items()]
    params = _of(about, "params", list)
    if params:
        lines += ["", "parameters", *(f"{_INDENT}{text}" for text in params)]
    for source in _of(about, "sources", list):
        first = source.get("line") or 1
        digest = f"  digest {source['digest']}" if source.get("digest") else ""
        lines += ["", f"source of {source.get('name')}  {source.get('file')}:{first}{digest}"]
        text = str(source.get("text", "")).rstrip("\n")
        lines += [f"{n:>6}  {line}" for n, line in enumerate(text.split("\n"), first)]
    captures = _of(about, "captures", list)
    if captures:
        lines += ["", "captured values"]
        for c in captures:
            shown = f"{c.get('name')} = {c.get('value')} ({c.get('kind')})"
            lines.append(f"{_INDENT}{shown} in {c.get('in')}")
    return lines


def _of(about: dict[str, Any], name: str, kind: type) -> Any:
    """A member of what an entry says; empty if it, or another version, says something else."""
    value = about.get(name)
    return value if isinstance(value, kind) else kind()


# ---- verify


def _verify(caches: inspect.Caches, options: argparse.Namespace) -> Outcome:
    faults = caches.faults()
    count = total = skipped = 0
    for info in caches.entries():
        count, total, skipped = count + 1, total + info.size, skipped + info.foreign
        if (fault := caches.fault_of(info)) is not None:
            faults.append(fault)
    unfinished = caches.unfinished()
    if options.json:
        value = {
            **_place(caches), "entries": count, "bytes": total, "other_formats": skipped,
            "unfinished": unfinished, "faults": [fault._asdict() for fault in faults],
        }  # fmt: skip
        return Outcome(_json(value), not faults)
    lines = [f"BAD  {f.path} {f.why}\n     remedy: {f.remedy}" for f in faults]
    lines += [f"note {path} is being written, or was left by a process that was killed"
              for path in unfinished]  # fmt: skip
    if skipped:
        lines.append(f"note {skipped} in formats of other versions were not checked")
    verdict = f"{len(faults)} bad" if faults else "all good" if count else "nothing to check"
    lines.append(f"{count} checked, {size(total)} in {caches.root}: {verdict}")
    return Outcome("\n".join(lines) + "\n", not faults)


# ---- clean


def _clean(caches: inspect.Caches, options: argparse.Namespace) -> Outcome:
    chooser = _chooser(options)
    _usable(caches)
    try:
        removed = caches.clean() if chooser is None else caches.remove(chooser)
    except OSError as error:
        text = f"cannot clean {caches.root}: {error.strerror or error}"
        raise Failure(EXIT_ENVIRONMENT, text) from None
    except inspect.CachesBusyError as error:
        raise Failure(EXIT_ENVIRONMENT, str(error)) from None
    freed = sum(r.entry.size for r in removed)
    left = list(caches.entries())
    kept = [f for info in left if (f := caches.fault_of(info))] if chooser is None else []
    talk = [f"{f.path} {f.why} and is not ours to remove: {f.remedy}" for f in kept]
    if options.json:
        gone = [{**_brief(r.entry), "why": r.why} for r in removed]
        value = {**_place(caches), "removed": gone, "freed": freed, "left": len(left)}
        return Outcome(_json(value), not kept, talk)
    rows = [
        ("removed", r.entry.layer, r.entry.key[:_SHORT], r.entry.kernel or "?",
         size(r.entry.size), r.why)
        for r in removed
    ]  # fmt: skip
    what = f"{len(removed)} removed, {size(freed)} freed" if removed else "nothing to remove"
    rest = f"{len(left)} left, {size(sum(info.size for info in left))} in {caches.root}"
    lines = [*map(_printable, _table(rows, right={4})), f"{what}; {rest}"]
    return Outcome("\n".join(lines) + "\n", not kept, talk)


def _chooser(options: argparse.Namespace) -> Callable[[Info], bool] | None:
    """Return the filter of entries that the options describe; None if no option is given.

    An entry must match all options that are given."""
    layer, kernel, age = options.layer, options.kernel, options.older_than
    if options.all:
        if layer or kernel or age is not None:
            raise Failure(EXIT_USAGE, "--all goes with no other choice of entries")
        return lambda info: True
    if not (layer or kernel or age is not None):
        return None
    oldest = time.time() - (age or 0.0)

    def chosen(info: Info) -> bool:
        named = not kernel or kernel in (info.kernel, info.kernel.rsplit(".", 1)[-1])
        return bool(
            (not layer or info.layer == layer) and named and (age is None or info.used <= oldest)
        )

    return chosen


# ---- remote

_COUNTED: Final = (
    ("hits", "found"), ("misses", "not there"), ("late", "no answer in time"),
    ("failed", "requests that failed"), ("skipped", "not asked, after trouble"),
    ("sent", "sent"), ("unsent", "not sent"),
)  # fmt: skip


def _remote(caches: inspect.Caches, options: argparse.Namespace) -> Outcome:
    sent: dict[str, Any] = {}
    if options.push:
        try:
            sent = inspect.push(options.path)
        except ValueError as error:
            raise Failure(EXIT_ENVIRONMENT, f"nothing is sent: {error}") from None
    found = inspect.shared_cache(options.path)
    if options.json:
        value = {"path": caches.root, **found._asdict(), "pushed": sent}
        return Outcome(_json(value), not found.problem and not sent.get("unsent"))
    if not found.url and not found.programs:
        return Outcome("no shared cache: QD_REMOTE_CACHE is not set\n")
    facts = {
        "URL": found.url or "QD_REMOTE_CACHE is not set",
        "state": f"BAD: {found.problem}" if found.problem
        else f"answers in {duration_ms(found.answer_ms)}" if found.url else "",
        "mode": found.mode.replace("_", " and ") if found.url else "",
        "signs": found.signer or ("nothing: there is no key to sign with" if found.trusted else ""),
        "trusts": ", ".join(found.trusted),
        "waits": f"{duration_ms(found.deadline_ms)} at most" if found.url else "",
    }  # fmt: skip
    lines = [f"{name:<9} {text}" for name, text in facts.items() if text]
    if options.push:
        lines += ["", f"sent now: {sent['sent']}; not sent: {sent['unsent']}"]
        lines += [f"{_INDENT}{n}  not sent: {why}" for why, n in sent["why_unsent"].items()]
    lines += ["", f"{counted(found.programs, 'program')} left counts in {caches.root}"]
    lines += _counts(found.counts)
    if found.last:
        lines.append(f"{_INDENT}last trouble, {_ago(found.last_time, time.time())}: {found.last}")
    fine = not found.problem and not sent.get("unsent")
    return Outcome("\n".join(map(_printable, lines)) + "\n", fine)


def _counts(counts: dict[str, Any]) -> list[str]:
    """The sums of programs: a line each, and one for each reason."""
    rows = [(str(counts.get(name, 0)), text) for name, text in _COUNTED if counts.get(name)]
    why = [("refused", "refused: "), ("why_unsent", "not sent: ")]
    for name, before in why:
        rows += [(str(n), f"{before}{reason}") for reason, n in _of(counts, name, dict).items()]
    if longest := counts.get("longest_ms"):
        rows.append((duration_ms(longest), "the longest wait of a look-up"))
    return [f"{_INDENT}{line}" for line in _table(rows, right={0})]


# ---- small things


def _table(rows: Sequence[Sequence[str]], right: set[int]) -> list[str]:
    """Rows in columns; ``right``: those that hold numbers."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)] if rows else []
    return [
        "  ".join(
            cell.rjust(width) if at in right else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _ago(then: float, now: float) -> str:
    """``3 minutes ago``; a clock that was set back makes ``just now``."""
    seconds = now - then
    for unit, name in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= unit:
            return f"{counted(int(seconds // unit), name)} ago"
    return "just now"


def _when(then: float, now: float) -> str:
    """Local time and how long ago."""
    try:
        shown = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(then))
    except (OverflowError, OSError, ValueError):
        shown = f"{then:g} s"
    return f"{shown} ({_ago(then, now)})"


def _printable(line: str) -> str:
    """A line without what would steer a terminal or cannot be encoded: names can hold anything."""
    if line.isprintable():
        return line
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode("ascii")
        for c in line.expandtabs()
    )


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, indent=1) + "\n"


def main(words: list[str]) -> int:
    """Run the command and return the exit code."""
    done = run(parser().parse_args(words))
    streams.write(done.text)
    for line in done.talk:
        streams.talk(f"qd-studio: {line}")
    return EXIT_OK if done.fine else EXIT_FAILED
