"""Explanation of a cache miss: the nearest entry of the same kernel, and its differences.

    found = nearest(store.of_kernel(about["kernel"]), about)
    for difference in found.differences:
        print(difference.text)         # config.fast_math: True -> False
                                       # source of helper `scale` changed, lines 12-13

Both operands are the *about* of an entry: what it was made from, as plain data (see `store`). Parts
of a key are compared by name. A part that is a digest shows only that something differs; the
details are in the texts and values that an entry keeps for people: the sources of the kernel and of
every function it inlined, and the values it captured. Those are compared, too, where the key is the
same, because the values that an entry lists are checked when it is loaded.

An entry may have been written by another version of this engine: a member that is missing or has
another form counts as unknown and never raises an error.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from ..named_tuple import NamedTuple

if TYPE_CHECKING:
    from .store import Info

__all__ = ["Difference", "Nearest", "differences", "nearest", "span_of"]

_DIGESTS: Final = frozenset({"closure", "ir", "places", "source"})
"""Parts that stand for a text: explained in full only if nothing else explains the miss."""
_SURROUNDINGS: Final = frozenset({"backend", "engine", "python", "target", "toolchain"})
"""Parts that no edit of a program changes: reported last, because edits are of more interest."""
_SHOWN: Final = 12
"""Characters of a digest that are shown."""


class Difference(NamedTuple):
    """One thing that differs.

    part: the name of the part; ``source`` and ``capture`` for the contents of digests. text: the
    difference as one line. before, after: the values, None where there is none. name: of the
    function or captured value. file, line: its present location, or the former one. lines: changed
    source lines, ``-12 text`` before and ``+12 text`` after, each with its number in the file.
    """

    part: str
    text: str
    before: str | None = None
    after: str | None = None
    name: str = ""
    file: str = ""
    line: int = 0
    lines: tuple[str, ...] = ()


class Nearest(NamedTuple):
    """The entry with the fewest differences, and those differences.

    info: the entry as it was passed. about: its description, or that of its nearest version.
    """

    info: Info
    differences: tuple[Difference, ...]
    about: Mapping[str, Any]


def nearest(infos: Iterable[Info], about: Mapping[str, Any]) -> Nearest | None:
    """The entry most like ``about`` among those of the same kernel; None if there is none.

    infos: newest first; among equally near ones the first is returned. Kernels are the same if
    their names are equal, and so are their files or their texts (after a move of the file).
    """
    best: tuple[Info, Mapping[str, Any]] | None = None
    least = 0
    for info in infos:
        if not _same_kernel(info.about, about):
            continue
        for version in _versions(info.about):
            count = _count(version, about)
            if best is None or count < least:
                best, least = (info, version), count
    return None if best is None else Nearest(best[0], differences(best[1], about), best[1])


def _versions(about: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The description of an entry, then those of its older versions (see `runtime.fastcache`)."""
    yield about
    for older in _items(about.get("older")):
        yield {**about, **older}


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[Difference, ...]:
    """The differences of ``new`` from ``old``. Those that a user can change come first: sources,
    captured values, options; then the other parts of the key, and last the engine and machine."""
    parts = list(_parts(old, new))
    texts = [*_sources(old, new), *_captures(old, new)]
    plain = sorted([part for part in parts if part[0] not in _DIGESTS], key=_place)
    found = [*texts, *(_of_part(*part) for part in plain)]
    if not texts:
        found += [_of_digest(part, bool(found)) for part in parts if part[0] in _DIGESTS]
    return tuple(found)


def span_of(lines: Sequence[str]) -> str:
    """The numbers of changed lines, ``-12 text`` or ``+12 text``, for people: ``lines 12-13``.

    The numbers are those of added lines; if there are none, of removed lines.
    """
    signs = "+" if any(line.startswith("+") for line in lines) else "-"
    numbers = [int(x[1:].partition(" ")[0]) for x in lines if x.startswith(signs)]
    runs: list[list[int]] = []
    for n in numbers:
        if runs and n == runs[-1][1] + 1:
            runs[-1][1] = n
        else:
            runs.append([n, n])
    text = ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs[:4])
    text += ", ..." if len(runs) > 4 else ""
    return f"line{'' if len(numbers) == 1 else 's'} {text}" if numbers else ""


# ---- parts


def _parts(
    old: Mapping[str, Any], new: Mapping[str, Any]
) -> Iterator[tuple[str, str | None, str | None]]:
    """Name, old and new value of the parts that differ, in the order of the new key."""
    before, after = _table(old.get("parts")), _table(new.get("parts"))
    for name in dict.fromkeys((*after, *before)):
        if before.get(name) != after.get(name):
            yield name, before.get(name), after.get(name)


def _place(part: tuple[str, str | None, str | None]) -> int:
    """The rank at which a differing part is reported; equal ranks keep the order of the key."""
    name = part[0]
    return 0 if name.startswith("config.") else 2 if name in _SURROUNDINGS else 1


def _of_part(name: str, before: str | None, after: str | None) -> Difference:
    if before is None:
        text = f"{name}: new, {_short(after)}"
    elif after is None:
        text = f"{name}: gone, was {_short(before)}"
    elif name == "signature" and (some := _changed_params(before, after)):
        text = f"{name}: {some}"
    elif name == "target" and before.count(", ") == after.count(", "):
        pairs = zip(before.split(", "), after.split(", "), strict=True)
        text = f"{name}: {', '.join([f'{a} -> {b}' for a, b in pairs if a != b])}"
    else:
        text = f"{name}: {_short(before)} -> {_short(after)}"
    return Difference(name, text, before, after)


def _of_digest(part: tuple[str, str | None, str | None], follows: bool) -> Difference:
    plain = _of_part(*part)
    if follows:
        return plain._replace(text=f"{plain.part}: differs, which may follow from the above")
    if plain.part == "ir":
        why = "the source is the same, so a compile-time value or a type it is given is another"
        return plain._replace(text=f"{plain.text} ({why})")
    return plain


def _changed_params(before: str, after: str) -> str:
    """The differences of ``(n: i32, x: f32) -> (f32)`` from another signature: ``n: i32 -> i64``.

    Empty where that would be incomplete: for texts of other forms, and names in another order.
    """
    (old, old_end), (new, new_end) = _params_in(before), _params_in(after)
    if [name for name in old if name in new] != [name for name in new if name in old]:
        return ""
    texts = [f"{n}: {old[n]} -> {t}" for n, t in new.items() if n in old and old[n] != t]
    texts += [f"{n}: {t} is new" for n, t in new.items() if n not in old]
    texts += [f"{n}: {t} is gone" for n, t in old.items() if n not in new]
    if old_end != new_end:
        texts.append(f"result {old_end or 'none'} -> {new_end or 'none'}")
    return ", ".join(texts)


def _params_in(text: str) -> tuple[dict[str, str], str]:
    """Name -> type of each parameter of a signature, and its results; empty for another text."""
    found: dict[str, str] = {}
    depth, begin = 0, 1
    for at, char in enumerate(text if text.startswith("(") else ""):
        if char in "([{<":
            depth += 1
        elif char in ")]}" or (char == ">" and text[at - 1] != "-"):
            depth -= 1
        if depth == 0 or (depth == 1 and char == ","):
            name, colon, kind = text[begin:at].strip().partition(": ")
            if colon:
                found[name] = kind
            begin = at + 1
        if depth == 0:
            return found, text[at + 1 :].removeprefix(" -> ")
    return {}, ""


def _short(value: str | None) -> str:
    """A value on one line; only the beginning of a digest."""
    if value is None:
        return "none"
    if len(value) in (32, 40, 64) and all(c in "0123456789abcdef" for c in value):
        return value[:_SHOWN]
    return " ".join(value.split()) or "(empty)"


# ---- sources


class _Source(NamedTuple):
    name: str
    file: str
    line: int
    digest: str
    text: str
    kernel: bool

    @property
    def called(self) -> str:
        return f"{'kernel' if self.kernel else 'helper'} `{self.name}`"


def _sources(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Difference]:
    for before, after in _matched(_sources_of(old), _sources_of(new)):
        if before is not None and after is not None:
            if not _same_text(before, after):
                yield _changed(before, after)
        elif after is not None:
            text = f"source of {after.called} is new"
            yield Difference("source", text, None, after.digest, after.name, after.file, after.line)
        elif before is not None:
            yield Difference(
                "source", f"{before.called} is no longer used", before.digest, None, before.name,
                before.file, before.line,
            )  # fmt: skip


def _same_text(a: _Source, b: _Source) -> bool:
    return a.digest == b.digest if a.digest and b.digest else a.text == b.text


def _changed(before: _Source, after: _Source) -> Difference:
    lines = tuple(_changed_lines(before, after))
    where = span_of(lines)
    if not any(line.startswith("+") for line in lines) and where:
        where += " removed"
    text = f"source of {after.called} changed{', ' if where else ''}{where}"
    return Difference(
        "source", text, before.digest, after.digest, after.name, after.file, after.line, lines
    )


def _changed_lines(before: _Source, after: _Source) -> Iterator[str]:
    from difflib import SequenceMatcher

    old, new = before.text.splitlines(), after.text.splitlines()
    for tag, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            yield from (f"-{before.line + i} {old[i]}" for i in range(a, b))
            yield from (f"+{after.line + i} {new[i]}" for i in range(c, d))


def _matched(
    old: Sequence[_Source], new: Sequence[_Source]
) -> Iterator[tuple[_Source | None, _Source | None]]:
    """Pairs of functions with one name: the kernels, then those of the same file, then any."""
    rest = list(old)
    pairs: list[tuple[_Source | None, _Source | None]] = []
    for after in new:
        named = [x for x in rest if x.kernel == after.kernel and x.name == after.name]
        same = next((x for x in named if _same_file(x.file, after.file)), None)
        before = same or (named[0] if named else None)
        if before is not None:
            rest.remove(before)
        pairs.append((before, after))
    return iter([*pairs, *((before, None) for before in rest)])


def _sources_of(about: Mapping[str, Any]) -> list[_Source]:
    return [
        _Source(
            _text(item, "name"), _text(item, "file"), _number(item, "line"),
            _text(item, "digest"), _text(item, "text"), i == 0,
        )
        for i, item in enumerate(_items(about.get("sources")))
    ]  # fmt: skip


def _same_kernel(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    if old.get("kernel") != new.get("kernel"):
        return False
    if _same_file(_text(old, "file"), _text(new, "file")):
        return True
    first, second = _sources_of(old)[:1], _sources_of(new)[:1]
    return bool(first and second) and _same_text(first[0], second[0])


def _same_file(a: str, b: str) -> bool:
    return a == b or os.path.realpath(a) == os.path.realpath(b)


# ---- captured values


def _captures(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Difference]:
    if "captures" not in old or "captures" not in new:
        return  # not known, which is not the same as none
    before, after = _captures_of(old), _captures_of(new)
    for place in dict.fromkeys((*after, *before)):
        was, now = before.get(place), after.get(place)
        if was == now:
            continue
        owner, name = place
        head = f"capture {name} in `{owner}`"
        if was is None:
            text = f"{head} is new: {_short(now)}"
        elif now is None:
            text = f"{head} is no longer read"
        else:
            text = f"{head}: {_change(was, now)}"
        yield Difference("capture", text, was, now, name)


def _change(was: str, now: str) -> str:
    """Two values; without the type, which fastcache writes, if both are simple and of one type."""
    first, second = was.partition("="), now.partition("=")
    if first[0] == second[0] and first[0] in ("bool", "float", "int", "str"):
        was, now = first[2], second[2]
    return f"{_short(was)} -> {_short(now)}"


def _captures_of(about: Mapping[str, Any]) -> dict[tuple[str, str], str]:
    """(function, name) -> value. Functions are compared by their source, not here."""
    return {
        (_text(x, "in"), _text(x, "name")): _text(x, "value")
        for x in _items(about.get("captures"))
        if _text(x, "kind") not in ("func", "function", "kernel")
    }


# ---- what is nearest


def _count(old: Mapping[str, Any], new: Mapping[str, Any]) -> int:
    """The number of `differences`, or more; it does not compare lines."""
    count = sum(1 for _ in _parts(old, new))
    for before, after in _matched(_sources_of(old), _sources_of(new)):
        count += before is None or after is None or not _same_text(before, after)
    return count + sum(1 for _ in _captures(old, new))


# ---- plain data of unknown form


def _table(value: Any) -> dict[str, str]:
    if not isinstance(value, Mapping):
        return {}
    return {str(k): str(v) for k, v in cast("Mapping[Any, Any]", value).items()}


def _items(value: Any) -> list[Mapping[str, Any]]:
    if not isinstance(value, list | tuple):
        return []
    return [x for x in cast("Sequence[Any]", value) if isinstance(x, Mapping)]


def _text(item: Mapping[str, Any], name: str) -> str:
    value = item.get(name, "")
    return value if isinstance(value, str) else str(value)


def _number(item: Mapping[str, Any], name: str) -> int:
    value = item.get(name, 0)
    return value if isinstance(value, int) else 0
