"""Questions about the accesses of a kernel that z3 answers for all sizes at once.

An access is out of bounds if its conditions hold in some iteration and an index is not below its
limit. A parallel loop has a race if the conditions of two accesses hold in two different
iterations, the indices are equal, and one of them is a plain write (two atomics never race, and two
writes of an equal value do no harm).

If z3 shows that this cannot be, there is a proof. If it can be, a `Doubt` says when:

``always``   in every launch with arrays and loops of four or more elements that gets there. That
             is a fault of the kernel, and any launch shows it.
``depends``  for some sizes or arguments, and not for others, which the caller may rule out
``values``   it hangs on something that is not known: a value from memory, a float
``late``     z3 ended without an answer

`always` is found by instantiation: if the first and last iterations alone are wrong for all sizes,
no size is right. A size without a wrong iteration, found in at most `_ROUNDS` rounds, is an example
that the kernel can be right.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice, product
from typing import Any, Final

from ...analysis import enclosing_loops
from ...ir import base_of
from ...ir import codes as C
from ...named_tuple import NamedTuple
from .accesses import Access, Scope, Traced
from .late import Late, made
from .loops import names_of
from .renaming import Renaming

__all__ = ["Doubt", "Prover"]

_EFFORT: Final = 300_000
"""z3's own count of what a query may cost, about 0.1 s: unlike seconds, it repeats."""
_ALL: Final = 3_500_000
_ROUNDS: Final = 6
_GENERIC: Final = 4
_PAIRS: Final = 40
_DOUBTS: Final = 8
_COUNTERS: Final = 6

Place = tuple[Any, Any, Any]


class Doubt(NamedTuple):
    """See the module docstring. other: of a race, the access of another iteration. axis: the index
    that is outside. example: values of sizes, then of the loops' indices. needs: what would rule it
    out, as an expression of the user's; empty if that is not known."""

    state: str
    access: Access
    other: Access | None = None
    axis: int = -1
    example: tuple[tuple[str, str], ...] = ()
    indices: tuple[dict[Any, int], ...] = ()
    needs: str = ""


class Prover:
    """Asks z3 about one kernel."""

    def __init__(self, traced: Traced) -> None:
        self.traced: Final = traced
        self.terms: Final = traced.terms
        self.z3: Final = traced.terms.z3
        self._left = _ALL
        self._spent = 0
        self.equal_writes = False
        """True if a proof relies on writes of equal values."""
        self.more = False
        """True if indices of some accesses were not looked at: there are enough doubts."""
        self._looked = 0
        self._doubts: Final[list[Doubt]] = []
        self._done: Final[set[tuple[int, ...]]] = set()
        self._kept: Final[list[Any]] = []
        """Keeps terms alive: z3 uses the number of one again once it is gone."""
        self._needed: Final[list[Any]] = []
        """The conditions that bounds need, each granted to later accesses."""
        self._granted: list[Any] = []
        self._fact: tuple[int, list[Any], Any] | None = None
        self._few: tuple[int, Any] | None = None
        self._sizes: list[Any] = []

    # ---- z3

    def ask(self, *parts: Any) -> tuple[str, Any]:
        """("yes", a model), ("no", None) or ("late", None)."""
        self.terms.go_on()
        if self._left <= 0:
            return "late", None
        solver = self.z3.Solver()
        solver.set("rlimit", _EFFORT)
        solver.add(self._known(), *parts)
        state = solver.check()
        total = _cost(solver)
        self._left -= max(total - self._spent, 0) if self._spent else 0
        self._spent = total
        if state == self.z3.sat:
            return "yes", solver.model()
        return ("no" if state == self.z3.unsat else "late"), None

    def _known(self) -> Any:
        """The facts of every launch, as one term: to add some hundred takes longer than z3."""
        count = len(self.traced.facts)
        if self._fact is None or self._fact[:2] != (count, self._granted):
            known = self.z3.And(*self.traced.facts, *self._granted)
            self._fact = count, list(self._granted), known
        return self._fact[2]

    def small(self, *parts: Any) -> tuple[str, Any]:
        """`ask`, with a model of small sizes if there is one."""
        if self._few is None or self._few[0] != len(self._sizes):
            few = [s <= 8 for s in self._sizes if self.terms.is_whole(s)]
            self._few = len(self._sizes), self.z3.And(*few)
        found = self.ask(*parts, self._few[1])
        return found if found[0] == "yes" else self.ask(*parts)

    # ---- bounds

    def bounds(self) -> list[Doubt]:
        """The doubts about indices. What one needs is granted to those after it, so that each is
        named once: if all doubts have needs, these together are enough, unless `more`."""
        self.settled()
        return self._doubts

    def settled(self) -> bool:
        """Look at the indices of the accesses that were found since the last call. Returns True if
        there are as many doubts as are listed, so that no further access matters to bounds."""
        self._spent, self._granted = 0, self._needed
        self._sizes = list(self.traced.sizes.values())
        for access in islice(self.traced.accesses, self._looked, None):
            wrong = self._outside(access)
            ids = tuple([t.get_id() for t in (*access.when, *wrong)])
            known = not wrong or ids in self._done
            if not known and len(self._doubts) >= _DOUBTS:
                self.more = True
                break
            self._looked += 1
            if known:
                continue
            self._done.add(ids)
            self._kept.append(wrong)
            if self.ask(*access.when, self.z3.Or(*wrong))[0] != "no":
                self._doubts.extend(self._which(access, wrong))
        self._granted = []
        return self.more

    def _outside(self, access: Access) -> list[Any]:
        """For each side of each axis, the condition that its index is outside."""
        out: list[Any] = []
        for index, (first, end) in zip(access.indices, access.limits, strict=False):
            out += [index < first, index >= end]
        return out

    def _which(self, access: Access, wrong: list[Any]) -> list[Doubt]:
        """The doubts about one access."""
        out: list[Doubt] = []
        for side, each in enumerate(wrong):
            state, model = self.small(*access.when, each)
            if state == "no":
                continue
            axis = side // 2
            if state == "late":
                return [*out, Doubt("late", access, None, axis)]
            violation = self.z3.And(*access.when, each)
            example, indices = self._example(model, access.around)
            state = self._kind(violation, access.when, _ends(access.around), access.around)
            needs = "" if state == "always" else self._needs(access, axis, each)
            out.append(Doubt(state, access, None, axis, example, (indices,), needs))
            if not needs:
                break
        return out

    def _needs(self, access: Access, axis: int, wrong: Any) -> str:
        """The condition on sizes for the side ``wrong`` to be impossible; empty if not known.
        It is granted from now on."""
        z3 = self.z3
        if self.terms.is_opaque(wrong):
            return ""
        end, index = access.limits[axis][1], access.indices[axis]
        swaps: list[list[tuple[Any, Any]]] = [[], []]
        for i, first, last in reversed(access.around):
            swaps[0].append((i, first))
            swaps[1].append((i, last - 1))
        hidden = {i.decl().name() for i, _, _ in access.around}
        for chosen in swaps[::-1]:
            good = z3.Not(wrong)
            if access.around and index.eq(access.around[-1][0]):
                good = access.around[-1][2] <= end
            for swap in chosen:
                good = z3.substitute(good, swap)
            good = z3.simplify(good)
            if self.terms.is_opaque(good) or names_of(good) & hidden or z3.is_true(good):
                continue
            text = _text(good, z3)
            if "If(" in text or z3.is_false(good) or self.ask(*access.when, wrong, good)[0] != "no":
                continue
            self._granted.append(good)
            return text
        return ""

    # ---- races

    def races(self) -> list[Doubt]:
        """The doubts about iterations of parallel loops."""
        out: list[Doubt] = []
        for scope in self.traced.scopes:
            shared: dict[str, list[Access]] = {}
            for access in self.traced.accesses:
                if access.scope is scope and not self._private(access, scope):
                    shared.setdefault(access.memory, []).append(access)
            self._granted += self._counted(scope, shared)
            for accesses in shared.values():
                out += self._race(scope, accesses)
            self._granted.clear()
        return out

    def _counted(self, scope: Scope, shared: dict[str, list[Access]]) -> list[Any]:
        """Facts about two iterations that add to a counter which only grows: the ranges that their
        additions reserve do not overlap."""
        z3, other = self.z3, Renaming(self.z3, scope.own)
        growing = {
            memory for memory, accesses in shared.items()
            if sum(a.kind != "r" for a in accesses)
            == sum(t.memory == memory and t.by >= 0 for t in scope.taken)
        }  # fmt: skip
        out: list[Any] = []
        several = [t for t in scope.taken if t.memory in growing][:_COUNTERS]
        for a, b in product(several, several):
            if a.memory == b.memory and len(a.indices) == len(b.indices):
                old, *index = [other(t) for t in (b.old, *b.indices)]
                same = [x == y for x, y in zip(a.indices, index, strict=True)]
                apart = z3.Or(a.old + a.by <= old, old + b.by <= a.old)
                out.append(z3.Implies(z3.And(*same), apart))
        return out

    @staticmethod
    def _private(access: Access, scope: Scope) -> bool:
        """True if each iteration has its own memory."""
        base = base_of(access.op.args[0])
        if base.code != C.ARRAY_ALLOCA:
            return False
        return base.attr.space == "private" and scope.loop in enclosing_loops(base.block)

    def _race(self, scope: Scope, accesses: list[Access]) -> list[Doubt]:
        pairs = _pairs(accesses)
        if not pairs:
            return []
        if self._apart_by_index(scope, accesses):
            return []
        if any(b.kind == "w" for _, b in pairs):
            # Constants of floats are the iteration's own from the time when they are made.
            accesses = [a._replace(value=made(a.value)) for a in accesses]
            pairs = _pairs(accesses)
        other = Renaming(self.z3, scope.own)
        different = self.z3.Or(*[i != other(i) for i in scope.index])
        if self._together(pairs, other, different) == "no":
            return []
        out: list[Doubt] = []
        for a, b in islice(pairs, _PAIRS):
            doubt = self._pair(scope, a, b, other, different)
            if doubt is not None:
                out.append(doubt)
            if len(out) >= 2 or (doubt is not None and doubt.state == "always"):
                break
        else:
            if len(pairs) > _PAIRS and not out:
                out.append(Doubt("late", *pairs[_PAIRS]))
        return out

    def _apart_by_index(self, scope: Scope, accesses: list[Access]) -> bool:
        """True if each index of the loop is an index of the same axis of all accesses: the usual
        case, which needs no solver."""

        def axis_of(i: Any) -> bool:
            places = [{k for k, x in enumerate(a.indices) if x.eq(i)} for a in accesses]
            return bool(set[int].intersection(*places))

        return bool(scope.index) and all(axis_of(i) for i in scope.index)

    def _together(self, pairs: list[tuple[Access, Access]], other: Renaming, different: Any) -> str:
        """The answer for all pairs at once."""
        if len(pairs) > 2 * _PAIRS:
            return "late"
        parts = [self._conflict(a, b, other) for a, b in pairs]
        return self.ask(different, self.z3.Or(*parts))[0]

    def _conflict(self, a: Access, b: Access, other: Renaming) -> Any:
        """Two iterations touch one element."""
        same = [x == other(y) for x, y in zip(a.indices, b.indices, strict=True)]
        return self.z3.And(*a.when, *[other(t) for t in b.when], *same)

    def _pair(
        self, scope: Scope, a: Access, b: Access, other: Renaming, different: Any
    ) -> Doubt | None:
        z3 = self.z3
        plain: Any = None
        violation = z3.And(different, self._conflict(a, b, other))
        if a.kind == b.kind == "w" and a.value is not None and b.value is not None:
            value = other(b.value)
            if a.value.sort() == value.sort():
                plain, violation = violation, z3.And(violation, a.value != value)
        state, model = self.small(violation)
        if state == "no":
            if plain is not None and self.ask(plain)[0] != "no":
                self.equal_writes = True
            return None
        if state == "late":
            return Doubt("late", a, b)
        around = tuple([(other(i), other(begin), other(end)) for i, begin, end in b.around])
        example, mine = self._example(model, a.around)
        theirs = self._example(model, around)[1]
        count = len(scope.index)
        several = [z3.simplify(end - begin) >= _GENERIC for begin, end in scope.bounds]
        # If values differ is for a launch to show.
        kind = self._kind(
            violation if plain is None else plain,
            (*a.when, *several),
            _two(a.around, around, count),
            (*a.around, *around),
        )
        if scope.hidden and kind != "late":
            kind = "values"
        return Doubt(kind, a, b, -1, example, (mine, theirs))

    # ---- always or not

    def _kind(
        self, violation: Any, reached: Iterable[Any], choices: list[Choice],
        around: Sequence[Place],
    ) -> str:  # fmt: skip
        """always, depends or values; see the module docstring.

        reached: the access is made at all. choices: replacements of indices by those of first and
        last iterations, inner loops first."""
        if self.terms.is_opaque(violation):
            return "values"
        z3 = self.z3
        generic = [s >= _GENERIC for n, s in self.traced.sizes.items() if ".shape[" in n]
        inner = {i.decl().name() for i, _, _ in around}
        spans = [end - begin for _, begin, end in around]
        wide = [n >= _GENERIC for n in spans if not names_of(n) & inner]
        rename = [(i, z3.Int(f"{i.decl().name()}?")) for i, _, _ in around]
        some = [z3.substitute(t, *rename) if rename else t for t in reached]
        # Where no launch has such sizes, everything would be `always`.
        for sized in ([*generic, *wide], generic, []):
            if self.ask(*sized, *some)[0] == "yes":
                break
        else:
            return "depends"
        right = [*sized, *some]
        for choice in choices:
            wrong = violation
            for swap in choice:
                wrong = z3.substitute(wrong, swap)
            right.append(z3.Not(wrong))
        for _ in range(_ROUNDS):
            state, model = self.ask(*right)
            if state == "no":
                return "always"
            if state == "late":
                return "depends"
            fixed = [s == model.eval(s, model_completion=True) for s in self._sizes]
            state, wrong = self.ask(*fixed, violation)
            if state != "yes":
                return "depends"
            point = [(i, wrong.eval(i, model_completion=True)) for i, _, _ in around]
            right.append(z3.Not(z3.substitute(violation, *point) if point else violation))
        return "depends"

    # ---- examples

    def _example(
        self, model: Any, around: Sequence[Place]
    ) -> tuple[tuple[tuple[str, str], ...], dict[Any, int]]:
        """(sizes by name, index terms' values by name of their constant)."""
        sizes = tuple([
            (name, str(model[s])) for name, s in self.traced.sizes.items()
            if model[s] is not None and s.sort() == self.z3.IntSort()
        ])  # fmt: skip
        indices: dict[Any, int] = {}
        for i, _, _ in around:
            value = model.eval(i, model_completion=True)
            if self.z3.is_int_value(value):
                indices[i.decl().name().rstrip("'")] = value.as_long()
        return sizes, indices


def _cost(solver: Any) -> int:
    """The cost of all queries of the process have cost; z3 counts them together."""
    return next((int(v) for k, v in solver.statistics() if k == "rlimit count"), 0)


def _pairs(accesses: list[Access]) -> list[tuple[Access, Access]]:
    """The pairs of accesses that would be a race."""
    seen: set[tuple[Any, ...]] = set()
    unique: list[Access] = []
    for a in accesses:
        value = a.value if a.kind == "w" else None
        if value is not None:
            value = id(value) if isinstance(value, Late) else -value.get_id()
        key = (a.kind, value, *[t.get_id() for t in (*a.indices, *a.when)])
        if key not in seen:
            seen.add(key)
            unique.append(a)
    writes = [a for a in unique if a.kind == "w"]
    out = [(w, a) for w in writes for a in unique if a.kind != "w"]
    out += [(w, v) for i, w in enumerate(writes) for v in writes[i:]]
    atomics = [a for a in unique if a.kind == "a"]
    return out + [(a, r) for a in atomics for r in unique if r.kind == "r"]


Choice = list[tuple[Any, Any]]


def _ends(around: Sequence[Place]) -> list[Choice]:
    """First and last iterations of a nest of loops."""
    choices: list[Choice] = []
    for i, begin, end in around:
        several = [begin, end - 1, begin + 1, end - 2] if len(around) <= 3 else [begin, end - 1]
        choices.append([(i, t) for t in several])
    return [list(reversed(c)) for c in islice(product(*choices), 64)]


def _two(a: Sequence[Place], b: Sequence[Place], count: int) -> list[Choice]:
    """Two iterations of a parallel loop that differ in one axis."""
    return [
        _chosen(a, count, axis, first, base, inner) + _chosen(b, count, axis, second, base, inner)
        for axis in range(count)
        for first, second in ((0, 1), (0, -1), (-2, -1), (0, 2), (1, 0), (2, 0), (-1, 0), (1, -1))
        for inner in (0, -1)
        for base in (0, -1)
    ]


def _chosen(
    around: Sequence[Place], count: int, axis: int, at: int, base: int, inner: int
) -> Choice:
    out: Choice = []
    for k, (i, begin, end) in enumerate(around):
        step = at if k == axis else base if k < count else inner
        out.append((i, begin + step if step >= 0 else end + step))
    return out[::-1]


def _text(term: Any, z3: Any) -> str:
    """A comparison as the user would write it."""
    swapped = {z3.Z3_OP_LE: ">=", z3.Z3_OP_LT: ">", z3.Z3_OP_GE: "<=", z3.Z3_OP_GT: "<"}
    if term.decl().kind() in swapped and z3.is_int_value(term.children()[0]):
        a, b = term.children()
        return " ".join(f"{b} {swapped[term.decl().kind()]} {a}".split())
    if z3.is_not(term):
        inner = term.children()[0]
        flipped = {z3.Z3_OP_LE: ">", z3.Z3_OP_GE: "<", z3.Z3_OP_EQ: "!="}
        sign = flipped.get(inner.decl().kind())
        if sign is not None:
            a, b = inner.children()
            return f"{a} {sign} {b}".replace("\n", " ")
    return " ".join(str(term).split())
