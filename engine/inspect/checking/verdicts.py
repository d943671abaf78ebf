"""Races, indices that leave their array, and reads of what was not set: proved, seen or unknown.

    found = check(capture)
    found.of("race").outcome        "safe", "fault" or "unknown"

Two sources make a verdict. `proofs` asks z3 about the frontend's IR (`symbolic`), for all sizes;
`launches` follows launches in the interpreter with shadow memory (`shadow`)::

    safe      z3 proved it under the assumptions that the verdict lists
    fault     a launch had it: with arguments that the author declared or a program passed, or, of
              a fault that z3 finds at every size, with any arguments
    unknown   neither; the reason says what prevented a proof

A fault with synthetic arguments only says nothing of the kernel: that `y` is as long as `x` is for
the caller to see to. So such a fault counts only where z3 shows that no size avoids it.

Arrays of `qd.field` and `qd.ndarray` hold 0 before they are set, and so do local variables: a read
of them is no fault. Values that are not set are those of the caller's `numpy.empty`, and of arrays
that iterations of a block share, whose 0 other compilers do not promise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from ...errors import QuadrantsCompilationError, QuadrantsRuntimeError
from ...ir import Func, Op, all_ops
from ...ir import codes as C
from ...runtime.compile import collector_pause, make_ir
from ..launching import ORACLE
from ..record_check import CHECKS, CheckFinding, CheckRecord, CheckVerdict
from ..steps import StepLimit
from .accesses import Traced
from .kept import KeptVerdicts, key_parts
from .launches import SLOW, Launched, follow, follow_example, given_to
from .proofs import Doubt, Prover
from .symbolic import Tracer
from .terms import NO_OVERFLOW, TOOK, MissingSolverError, TooSlowError
from .wording import Words

if TYPE_CHECKING:
    from ..capture import KernelCapture

__all__ = ["check", "check_capture", "hurried", "unknown", "verdicts_of"]

_OWN: Final = ("workload", "recorded")
"""Origins of arguments that a user chose for this kernel."""
_SLOW: Final = "the proof needs too much time"
_MORE: Final = "what other indices need"
_APART: Final = "arrays of a launch do not overlap"
_SET: Final = "arrays that the caller passes hold values"


def check_capture(capture: KernelCapture) -> None:
    """Add the verdicts to the record of a capture, after `prepare`."""
    capture.record = msgspec.structs.replace(capture.record, check=check(capture))


def check(capture: KernelCapture) -> CheckRecord:
    """The verdicts on a kernel, kept ones if nothing has changed; see `kept`. capture: after
    `prepare`."""
    kept = _kept(capture)
    found = kept.read() if kept is not None else None
    if found is not None:
        return found
    found = _checked(capture)
    # Limits of time make verdicts that a second try may better.
    if kept is not None and not hurried(found):
        kept.write(found)
    return found


def _kept(capture: KernelCapture) -> KeptVerdicts | None:
    """The place on disk of verdicts on a kernel; None if it cannot be compiled or launched."""
    if not capture.config.offline_cache:
        return None
    try:
        func = _func(capture, [])
    except (QuadrantsCompilationError, QuadrantsRuntimeError):
        return None
    given = given_to(capture) if func is not None else None
    if func is None or given is None:
        return None
    return KeptVerdicts(capture.config, func.name, key_parts(func, capture.config, given))


def hurried(found: CheckRecord) -> bool:
    """True if a limit of time, which depends on the machine, decided."""
    return found.unfollowed == SLOW or any(
        v.reason.startswith((_SLOW, TOOK)) for v in found.verdicts
    )


def _checked(capture: KernelCapture) -> CheckRecord:
    """The verdicts on a kernel."""
    launched = follow(capture)
    try:
        func = _func(capture, launched)
    except (QuadrantsCompilationError, QuadrantsRuntimeError) as error:
        return unknown(f"the kernel does not compile: {error.message.splitlines()[0]}")
    if func is None:
        return unknown("there are no arguments to compile it for")
    text = f"checking {capture.kernel.name}"
    try:
        with capture.steps.step("check", text, kind="launch"):
            made = _Verdicts(func, launched)
        for sizes in made.unconfirmed():
            launched += filter(None, [follow_example(capture, sizes)])
        return _record(made)
    except StepLimit:
        return unknown(_SLOW)


def verdicts_of(func: Func, launched: list[Launched]) -> CheckRecord:
    """The verdicts on IR of the frontend, with launches that were followed."""
    return _record(_Verdicts(func, launched))


def _record(made: _Verdicts) -> CheckRecord:
    launched = made.launched
    whys = [one.why for one in launched if one.why]
    return CheckRecord(
        verdicts=made.all(),
        launches=tuple([one.label for one in launched if one.complete]),
        accesses=sum(one.accesses for one in launched),
        unfollowed=next(iter(sorted(whys, key=lambda why: why != SLOW)), ""),
    )


def unknown(why: str) -> CheckRecord:
    """No verdict, for this reason."""
    return CheckRecord(
        verdicts=tuple([CheckVerdict(check=c, outcome="unknown", reason=why) for c in CHECKS])
    )


def _func(capture: KernelCapture, launched: list[Launched]) -> Func | None:
    """The frontend's IR."""
    for one in launched:
        if one.func is not None:
            return one.func
    if not capture.spec_keys and capture.kernel.decl.params:
        return None
    return make_ir(capture.request(ORACLE, capture.spec_keys)._replace(quiet=True)).func


class _Verdicts:
    """Makes the verdicts of one kernel."""

    def __init__(self, func: Func, launched: list[Launched]) -> None:
        self.func: Final = func
        self.launched: Final = launched
        self.words: Final = Words(func)
        self.doubts: dict[str, list[Doubt]] = {}
        self.traced: Traced | None = None
        self.equal_writes = self.more = False
        self.missing = ""
        try:
            with collector_pause:
                self._prove()
        except (MissingSolverError, TooSlowError) as error:
            self.traced, self.missing = None, str(error)

    def _prove(self) -> None:
        tracer = Tracer(self.func)
        prover = Prover(tracer.out)
        tracer.run(prover.settled)
        self.traced = tracer.out
        self.doubts = {"bounds": prover.bounds(), "race": prover.races()}
        self.equal_writes, self.more = prover.equal_writes, prover.more

    def unconfirmed(self) -> list[dict[str, str]]:
        """Sizes that show the faults that z3 is sure of and no launch has had."""
        out: list[dict[str, str]] = []
        for name, doubts in self.doubts.items():
            sure = [d for d in doubts if d.state == "always"]
            if sure and not self._faults(name):
                out.append(dict(sure[0].example))
        return out

    def all(self) -> tuple[CheckVerdict, ...]:
        return tuple([self._one(name) for name in CHECKS])

    def _one(self, name: str) -> CheckVerdict:
        faults = self._faults(name)
        if faults:
            return CheckVerdict(check=name, outcome="fault", findings=faults)
        if name == "uninitialised":
            return self._unset()
        if self.traced is None:
            return CheckVerdict(check=name, outcome="unknown", reason=self._but(self.missing))
        doubts = self.doubts[name]
        hidden = self.traced.hidden if name == "bounds" else self._hidden()
        if not doubts and not hidden:
            return CheckVerdict(check=name, outcome="safe", assumptions=self._assumptions(name))
        findings = tuple([self.words.doubt(d) for d in doubts])
        reason = self._reason(doubts, hidden)
        return CheckVerdict(
            check=name, outcome="unknown", reason=self._but(reason), findings=findings,
            assumptions=self._assumptions(name),
        )  # fmt: skip

    def _hidden(self) -> str:
        """The reason why races were not followed; empty if they were."""
        assert self.traced is not None
        whys = [self.traced.unfollowed, *(scope.unfollowed for scope in self.traced.scopes)]
        return next(filter(None, whys), "")

    def _reason(self, doubts: list[Doubt], hidden: str) -> str:
        """The reason for an unknown outcome."""
        if hidden:
            return hidden
        if all(d.needs for d in doubts):
            needs = [*dict.fromkeys(d.needs for d in doubts), *[_MORE] * self.more]
            return "safe if " + " and ".join(needs)
        states = {d.state for d in doubts if not d.needs}
        if "always" in states:
            return "z3 finds it at every size, and no launch has confirmed it"
        if "values" in states:
            scopes = [s.hidden for d in doubts if (s := d.access.scope) is not None and s.hidden]
            return next(iter(scopes), "it depends on values in memory")
        if "late" in states:
            return "z3 ended without an answer"
        return "it depends on arguments or extents"

    def _but(self, reason: str) -> str:
        """The reason, and what launches have shown."""
        done = [one.label for one in self.launched if one.complete and one.origin in _OWN]
        if done:
            count = f"{len(done)} launch{'es' if len(done) > 1 else ''}"
            return f"{reason}; no fault in {count} of the workload"
        return reason

    def _unset(self) -> CheckVerdict:
        shared = any(
            op.code == C.ARRAY_ALLOCA and op.attr.space == "shared" for op in all_ops(self.func)
        )
        if shared:
            reason = "arrays that a block shares are followed in launches only"
            return CheckVerdict(check="uninitialised", outcome="unknown", reason=self._but(reason))
        arrays = any(p.kind == "ndarray" for p in self.func.params)
        assumed = (_SET,) if arrays else ()
        return CheckVerdict(check="uninitialised", outcome="safe", assumptions=assumed)

    def _assumptions(self, name: str) -> tuple[str, ...]:
        out = [NO_OVERFLOW]
        arrays = sum(p.kind == "ndarray" for p in self.func.params)
        if arrays > 1 if name == "race" else self._reads_what_stays():
            out.append(_APART)
        if name == "race" and self.equal_writes:
            out.append("iterations that write one element an equal value do no harm")
        assert self.traced is not None
        out += [f"{op.attr.text} (assert, line {op.loc.root.line})" for op in self.traced.asserts]
        return tuple(out)

    def _reads_what_stays(self) -> bool:
        """True if a proof may rely on arrays that the kernel writes through no other array."""
        assert self.traced is not None
        arrays = {
            str(number) for number, p in enumerate(self.func.params) if p.kind == "ndarray"
        }  # fmt: skip
        written = {memory.removesuffix(".grad") for memory in self.traced.written}
        read = {memory.removesuffix(".grad") for memory in self.traced.read}
        return bool(arrays & read and arrays & written)

    def _faults(self, name: str) -> tuple[CheckFinding, ...]:
        """The faults that launches showed."""
        sure = {_lines(d.access.op, d.other) for d in self.doubts.get(name, ())
                if d.state == "always"}  # fmt: skip
        out: list[CheckFinding] = []
        for one in self.launched:
            for seen in one.seen:
                own = one.origin in _OWN
                if seen.what == name and (own or _lines(seen.op, seen.other) in sure):
                    out.append(self.words.seen(seen, one))
        return tuple(out)


def _lines(op: Op, other: Any) -> frozenset[Any]:
    """The source lines of a fault."""
    second = other if isinstance(other, Op) or other is None else other.op
    return frozenset({op.loc} | ({second.loc} if second is not None else set()))
