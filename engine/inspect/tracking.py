"""The history of a value: from a Python line through all passes to LLVM IR, PTX and assembly.

    compiled = inspect.capture_kernel(k, ("cpu",), launch=False).backends[0].compile
    for track in inspect.tracks(compiled, line=12):
        for event in track.events:
            print(event.kind, event.pass_name, event.how, event.after)

A track begins where an op is born and follows its value. When a pass replaces the op by another
one (common-subexpression elimination, forwarding, a rule of algebra), the track goes on with that
op, the survivor; it ends where the value is deleted, or in the generated code. Passes report what
they replace, and why (`record.Rewrite`). Where one does not, the history is read from the
listings: the survivor is what the users of the op use afterwards, or an op that was made for it;
`Event.sure` is False then.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, cached_property
from typing import Final

import msgspec

from .readable_ops import literal, read_line
from .record import Artefact, CompileRecord, PassRun, Remark

__all__ = ["CodePlace", "Event", "Track", "Tracker", "track", "tracks"]

_ID: Final = re.compile(r"\$(\d+)")
_VECTOR: Final = re.compile(r"<(\d+) x (?!\d)")
_LIMIT: Final = 400
"""The most events of a track: damaged records may go round in circles."""


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """One step in the history of a value.

    kind: ``born``, ``made`` (other ops were made for it), ``rewritten`` in place, ``operands`` (one
    of its operands was replaced), ``merged`` into another op, ``moved`` to another block,
    ``deleted``, ``remark`` (the pass says why it left it alone), ``failed``. run: index of the run;
    -1 for the frontend. op, into: the op before and after; -1 for none. how: the rule or the
    reason. before, after: the text of the op. sure: False if it was read from the listings.
    """

    kind: str
    run: int
    pass_name: str = ""
    stage: str = ""
    round: int = 0
    task: int | None = None
    op: int = -1
    into: int = -1
    how: str = ""
    before: str = ""
    after: str = ""
    sure: bool = True


class CodePlace(msgspec.Struct, frozen=True, kw_only=True):
    """The lines of a generated text that are from the value, from 0. lanes: widths of vectors, of
    LLVM IR; 1 for scalars."""

    text: str
    lines: tuple[int, ...] = ()
    lanes: tuple[int, ...] = ()


class Track(msgspec.Struct, frozen=True, kw_only=True):
    """The history of one value.

    op: the op that it began as. last: the op that has it at the end; -1 if it was deleted. name: of
    the user's variable, if there is one. line: the user's line, 0 for none. text: of the op when it
    was born. events: in order. code: where it is in the generated texts that know it; a text
    without a line of it is not empty by mistake: the compiler after the passes folded it away.
    remarks: what that compiler says of it and of the loops around it.
    """

    op: int
    last: int
    name: str = ""
    line: int = 0
    text: str = ""
    events: tuple[Event, ...] = ()
    code: tuple[CodePlace, ...] = ()
    remarks: tuple[Remark, ...] = ()

    def held(self, run: int) -> int:
        """The op that has the value after the run with this index; -1: it is deleted or not yet
        made there."""
        now = -1
        for event in self.events:
            if event.run > run:
                break
            if event.kind != "remark":
                now = event.into
        return now


def tracks(compiled: CompileRecord, line: int = 0, file: str = "") -> list[Track]:
    """The histories of all values that begin at a line of the user's, in program order.

    line: as the user counts, 0 for all lines. file: for lines of inlined functions in other files.
    """
    return Tracker(compiled).of_line(line, file)


def track(compiled: CompileRecord, op: int) -> Track:
    """The history of the value of the op with this id. KeyError if no listing has it."""
    return Tracker(compiled).of_op(op)


class Tracker:
    """Histories of one compile; what several of them need is found once."""

    def __init__(self, compiled: CompileRecord) -> None:
        self.compiled: Final = compiled
        self.of_op: Final = cache(self._made)
        """See `track`."""
        self.at: Final = cache(self._at)
        """By index of a listing: the line of each op in it."""
        self.owner: Final = cache(self._owner)
        """By index of a listing: the op whose block each op is in; -1 for the outermost block."""
        self._users: Final = cache(self._used)

    # ---- which values

    def of_line(self, line: int = 0, file: str = "") -> list[Track]:
        """See `tracks`."""
        return [self.of_op(op) for op in self._born_at(line, file)]

    def _born_at(self, line: int, file: str) -> list[int]:
        """The ops of the first listing at a line; then those that passes made there of nothing."""
        out: list[int] = []
        made, seen = self.compiled.origins, set[int]()
        there = {i for i in range(len(self.compiled.locs)) if self._is_at(i, line, file)}
        for n, shot in enumerate(self.compiled.snapshots):
            places = self.at(n)
            fresh = places.keys() - seen
            seen |= fresh
            for op in sorted(fresh, key=places.__getitem__):
                if shot.locs[places[op]] in there and str(op) not in made:
                    out.append(op)
        return out

    def _is_at(self, loc: int, line: int, file: str) -> bool:
        if not line:
            return loc >= 0
        locs = self.compiled.locs
        while loc >= 0:
            place = locs[loc]
            if place.line == line and (place.file == file if file else place.parent < 0):
                return True
            loc = place.parent
        return False

    # ---- listings

    def _at(self, shot: int) -> dict[int, int]:
        return {op: i for i, op in enumerate(self.compiled.snapshots[shot].ids) if op >= 0}

    def text(self, shot: int, op: int) -> str:
        """The line of an op in a listing, without indentation; empty if it is not there."""
        line = self.at(shot).get(op)
        return "" if line is None else self.compiled.snapshots[shot].lines[line].strip()

    def _owner(self, shot: int) -> dict[int, int]:
        out: dict[int, int] = {}
        stack = [-1]
        listing = self.compiled.snapshots[shot]
        for text, op in zip(listing.lines, listing.ids, strict=True):
            opens = text.endswith("{")
            if op >= 0:
                out[op] = stack[-1]
                if opens:
                    stack.append(op)
            elif text.lstrip().startswith("}"):
                if not opens and len(stack) > 1:
                    stack.pop()
            elif opens:
                stack = [-1]
        return out

    @cached_property
    def _made_of(self) -> dict[int, list[int]]:
        """By op: the ops that were made for it, or in its place."""
        out: dict[int, list[int]] = {}
        for new, old in self.compiled.origins.items():
            out.setdefault(old, []).append(int(new))
        return out

    @cached_property
    def _names(self) -> dict[int, str]:
        """By op: the variable that its value was first stored to, or that it is."""
        names: dict[int, str] = {}
        variables: dict[int, str] = {}
        shots = self.compiled.snapshots
        for text, op in zip(shots[0].lines, shots[0].ids, strict=True) if shots else ():
            if "local_store" not in text and " alloca" not in text:
                continue
            line = read_line(text)
            if line is None or op < 0:
                continue
            if line.name == "alloca":
                variables[op] = names[op] = _word(line.attr)
            elif line.name == "local_store" and line.args and line.args[0] in variables:
                names[op] = variables[line.args[0]]
                if len(line.args) > 1:
                    names.setdefault(line.args[1], variables[line.args[0]])
        return names

    @cached_property
    def _rewrites(self) -> list[dict[int, tuple[list[str], int, str]]]:
        """By position of the run and op: the rules that changed it in place, then what replaced it
        (-1: nothing, -2: it was not replaced) and why."""
        out: list[dict[int, tuple[list[str], int, str]]] = []
        for run in self.compiled.runs:
            found: dict[int, tuple[list[str], int, str]] = {}
            for one in run.rewrites:
                rules, into, how = found.get(one.op, ([], -2, ""))
                if one.into == one.op:
                    found[one.op] = ([*rules, one.how], into, how)
                else:
                    found[one.op] = (rules, one.into, one.how)
            out.append(found)
        return out

    # ---- histories

    def _made(self, op: int) -> Track:
        compiled = self.compiled
        birth = next((i for i in range(len(compiled.snapshots)) if op in self.at(i)), None)
        if birth is None:
            raise KeyError(op)
        events: list[Event] = []
        start = next((n for n, run in enumerate(compiled.runs)
                      if run.after == birth and run.before != birth), -1)  # fmt: skip
        if birth == 0 or start < 0:
            events.append(Event(kind="born", run=-1, into=op, after=self.text(birth, op)))
            start = -1
        else:
            source = compiled.origins.get(str(op), -1)
            how = f"made for ${source}" if source >= 0 else ""
            events.append(self._event("born", start, -1, op, how, after=self.text(birth, op)))
        last = self._follow(op, start + 1, events)
        place = compiled.root(compiled.snapshots[birth].locs[self.at(birth)[op]])
        return Track(
            op=op,
            last=last,
            name=self._name_of(op),
            line=place.line if place is not None else 0,
            text=self.text(birth, op),
            events=tuple(events),
            code=tuple(self._code(last)) if last >= 0 else (),
            remarks=self._remarks(last) if last >= 0 else (),
        )

    def _name_of(self, op: int) -> str:
        seen = 0
        names, origins = self._names, self.compiled.origins
        while op not in names and str(op) in origins and seen < _LIMIT:
            op, seen = origins[str(op)], seen + 1
        return names.get(op, "")

    def _event(
        self, kind: str, at: int, op: int, into: int, how: str = "", *, before: str = "",
        after: str = "", sure: bool = True,
    ) -> Event:  # fmt: skip
        run = self.compiled.runs[at]
        return Event(
            kind=kind, run=run.index, pass_name=run.name, stage=run.stage, round=run.round,
            task=run.task, op=op, into=into, how=how, before=before, after=after, sure=sure,
        )  # fmt: skip

    def _follow(self, op: int, start: int, events: list[Event]) -> int:
        """Add the events of ``op`` from a run on; return the op that has its value at the end."""
        said: set[str] = set()
        for at in range(start, len(self.compiled.runs)):
            run = self.compiled.runs[at]
            for remark in run.remarks:
                if remark.op == op and remark.text not in said and len(events) < _LIMIT:
                    said.add(remark.text)
                    events.append(self._event("remark", at, op, op, remark.text))
            if run.state == "failed":
                events.append(self._event("failed", at, op, op, "the pass failed"))
                return op
            if run.before == run.after or len(events) >= _LIMIT:
                continue
            op = self._step(at, run, op, events)
            if op < 0:
                return -1
        return op

    def _step(self, at: int, run: PassRun, op: int, events: list[Event]) -> int:
        """The events of one run that changed something; the op that has the value afterwards."""
        now = self.at(run.after)
        seen = {op}  # a damaged record may lead round in a circle
        for _ in range(_LIMIT):
            rules, into, how = self._rewrites[at].get(op, ([], -2, ""))
            before = self.text(run.before, op)
            if op in now:
                self._stayed(at, run, op, rules, events)
                return op
            if into >= 0 and into not in seen:
                seen.add(into)
                if rules:
                    events.append(
                        self._event("rewritten", at, op, op, _several(rules), before=before)
                    )
                after = self.text(run.after, into)
                events.append(self._event("merged", at, op, into, how, before=before, after=after))
                op = into
                continue
            if into == -2:
                found, why = self._survivor(run, op)
                if found >= 0:
                    after = self.text(run.after, found)
                    events.append(self._event(
                        "merged", at, op, found, why, before=before, after=after, sure=False
                    ))  # fmt: skip
                    return found
                how = self._why_dead(at, op)
            events.append(self._event("deleted", at, op, -1, how, before=before))
            return -1
        return -1

    def _stayed(
        self, at: int, run: PassRun, op: int, rules: Sequence[str], events: list[Event]
    ) -> None:
        """The events of an op that both listings have."""
        before, after = self.text(run.before, op), self.text(run.after, op)
        if not before:  # it was made in this run, as the survivor of another
            return
        if before != after or rules:
            old, new = _ID.sub("$", before), _ID.sub("$", after)
            kind = "rewritten" if rules or old != new else "operands"
            how = _several(rules) if rules else _operands(before, after) if old == new else ""
            events.append(self._event(kind, at, op, op, how, before=before, after=after))
        made = [x for x in self._made_of.get(op, ())
                if x in self.at(run.after) and x not in self.at(run.before)]  # fmt: skip
        if made:
            events.append(self._event("made", at, op, op, f"made {_listed(made)} for it"))
        where = self._moved(run, op)
        if where:
            events.append(self._event("moved", at, op, op, where, before=before, after=after))

    def _moved(self, run: PassRun, op: int) -> str:
        """Return where a pass has moved an op to, in words; empty if it is in the same block."""
        old, new = self.owner(run.before), self.owner(run.after)
        outside = list(_chain(old, op, self.at(run.after)))
        inside = list(_chain(new, op, self.at(run.before)))
        if outside == inside:
            return ""
        left = [x for x in outside if x not in inside]
        entered = [x for x in inside if x not in outside]
        parts = [f"out of {self._title(run.before, x)}" for x in left[:2]]
        parts += [f"into {self._title(run.after, x)}" for x in entered[:2]]
        return ", ".join(parts)

    def _title(self, shot: int, op: int) -> str:
        line = read_line(self.text(shot, op))
        name = line.name if line is not None else "op"
        kind = {"range_for": "loop", "while": "loop", "offloaded": "task"}.get(name, name)
        place = self.compiled.root(self.compiled.snapshots[shot].locs[self.at(shot)[op]])
        where = f" (line {place.line})" if place is not None else ""
        return f"{kind} ${op}{where}"

    # ---- where no pass reported anything

    def _survivor(self, run: PassRun, op: int) -> tuple[int, str]:
        """The op that has the value of a deleted one, as its users show; -1 for none."""
        before, after = self.at(run.before), self.at(run.after)
        old, new = (self.compiled.snapshots[x].lines for x in (run.before, run.after))
        found: dict[int, int] = {}
        for user in self._users(run.before).get(op, ()):
            if user not in after:
                continue
            a, b = read_line(old[before[user]]), read_line(new[after[user]])
            if a is not None and b is not None and len(a.args) == len(b.args) and a.name == b.name:
                for x, y in zip(a.args, b.args, strict=True):
                    if x == op and y != op:
                        found.setdefault(y, user)
        if len(found) == 1:
            ((survivor, user),) = found.items()
            return survivor, f"${user} uses it instead"
        made = [x for x in self._made_of.get(op, ()) if x in after and x not in before]
        if made:
            chosen = next((x for x in made if x in found), made[-1])
            return chosen, "made in its place"
        return -1, ""

    def _why_dead(self, at: int, op: int) -> str:
        """Return why the run at this position deleted an op that nothing replaces."""
        runs = self.compiled.runs
        users = self._users(runs[at].before).get(op)
        if users:
            return f"deleted with {_listed(users)}, which used it"
        for earlier in range(at - 1, -1, -1):
            run = runs[earlier]
            users = self._users(run.before).get(op) if run.before != run.after else None
            if users:
                return f"nothing uses it; the last use, in {_listed(users)}, went in {run.name}"
        return "nothing uses it"

    def _used(self, shot: int) -> dict[int, list[int]]:
        """By op of a listing: the ops that use it."""
        found: dict[int, list[int]] = {}
        listing = self.compiled.snapshots[shot]
        for op, text in zip(listing.ids, listing.lines, strict=True):
            if op >= 0:
                for name in dict.fromkeys(_ID.findall(text)[1:]):
                    found.setdefault(int(name), []).append(op)
        return found

    # ---- generated code

    def _code(self, op: int) -> Iterator[CodePlace]:
        for artefact in self.compiled.artefacts:
            if artefact.ops:
                lines = tuple([i for i, x in enumerate(artefact.ops) if x == op])
                yield CodePlace(text=artefact.name, lines=lines, lanes=_lanes(artefact, lines))

    def _remarks(self, op: int) -> tuple[Remark, ...]:
        """The remarks about an op of the last listing and the loops around it, innermost first."""
        if not self.compiled.runs:
            return ()
        last = self.compiled.runs[-1].after
        around = [op, *_chain(self.owner(last), op, self.at(last))]
        found = [r for a in self.compiled.artefacts for r in a.remarks if r.op in around]
        return tuple(sorted(found, key=lambda r: around.index(r.op)))


# ---- lines of listings


def _word(attr: str) -> str:
    try:
        return str(literal(attr))
    except (ValueError, SyntaxError):
        return ""


def _listed(ops: Sequence[int]) -> str:
    """``$3, $5``; the first few."""
    return ", ".join(f"${x}" for x in ops[:4]) + (" ..." if len(ops) > 4 else "")


def _several(rules: Sequence[str]) -> str:
    return ", then ".join(rules)


def _operands(before: str, after: str) -> str:
    """``$5 is now $7``."""
    a, b = (_ID.findall(text)[1:] for text in (before, after))
    changed = {x: y for x, y in zip(a, b, strict=False) if x != y}
    return ", ".join(f"${x} is now ${y}" for x, y in changed.items())


def _chain(owners: Mapping[int, int], op: int, known: Mapping[int, int]) -> Iterator[int]:
    """The ops around ``op``, innermost first, that ``known`` has as well."""
    for _ in owners:  # a damaged record may lead round in a circle
        op = owners.get(op, -1)
        if op < 0:
            return
        if op in known:
            yield op


def _lanes(artefact: Artefact, lines: Sequence[int]) -> tuple[int, ...]:
    if not artefact.name.startswith("llvm_ir"):
        return ()
    texts = artefact.text.splitlines()
    found: set[int] = set()
    for i in lines:
        widths = [int(n) for n in _VECTOR.findall(texts[i])] if i < len(texts) else []
        found.add(max(widths, default=1))
    return tuple(sorted(found))
