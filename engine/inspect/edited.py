"""A kernel with edited IR: verified, compiled on from there, launched next to the unedited one.

    edit = read_edit(Path("k.qdir").read_text(), "k.qdir")
    capture = EditedCapture(kernel, ("cpu", "opencl"), config, edit)
    capture.compile()
    capture.launch()
    capture.record

The record has two entries for each backend: ``cpu`` with the edit and ``cpu unedited`` without it.
The agreement of the former, and of ``interp``, compares the results with those that the interpreter
has of the *unedited* kernel; ``interp`` interprets the edited kernel. Both are timed in turns, and
the verdict between them is among the verdicts of the record.

If the IR at that point is another one than the edit was made from, the source or an option has
changed. That is an error with the kind `CONFLICT`; nothing edited is then compiled or launched.
Where only the pipeline of another backend differs there, that backend is left out, with the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from ..backends import interp
from ..config import CompileConfig
from ..errors import IRParseError, QuadrantsRuntimeError, SourceSpan
from ..ir import Func, Op, VerifyError, all_ops, listing, parse, verify
from ..ir.printer import header, trailer
from ..passes.manager import Instrument, PassCx, Run
from .agreement import judged
from .capture import KernelCapture
from .edit_file import IrEdit, listing_digest
from .launching import (
    ORACLE,
    ORACLE_STEPS,
    ORACLE_STEPS_FIRST,
    Launcher,
    Round,
    TooLong,
    counted,
    discard,
)
from .measuring import Started
from .placing import placed
from .record import BackendRecord, ErrorRecord, KernelRecord, RunNames, VerdictRecord
from .steps import StepLimit, Steps
from .verdicts import Rival, verdicts_of

if TYPE_CHECKING:
    from ..lang.kernel import Kernel
    from ..runtime.compile import FullCompile
    from .arguments import Call
    from .discover import Subject

__all__ = ["CONFLICT", "UNEDITED", "EditedCapture", "replace_ir"]

CONFLICT: Final = "IrEditConflict"
UNEDITED: Final = " unedited"
"""The suffix of the name of a backend without the edit."""


# ---- the IR


def replace_ir(func: Func, edit: IrEdit) -> None:
    """Replace the IR of ``func`` by that of an edit. Raises IRParseError at a line of that text."""
    lines = edit.text.split("\n")
    for one in (func, *func.callees.values()):
        head = header(one)
        shown = f"{head}{trailer(one)} {{"
        at = next((i for i, line in enumerate(lines) if line.rstrip() == shown), None)
        if at is None:
            what = head.partition("(")[0]
            at = next((i for i, line in enumerate(lines) if line.startswith(f"{what}(")), 0)
            message = "the line of the kernel itself cannot be edited; it must be"
            raise _error(edit, at, f"{message}\n    {shown}")
        lines[at] = f"{head} stage={one.stage}{trailer(one)} {{"
    try:
        new = parse("\n".join(lines), edit.path)
    except IRParseError as error:
        raise _with_carets(error) from None
    if new.callees.keys() != func.callees.keys():
        raise _error(edit, 0, "functions cannot be added, renamed or removed")
    _keep_locations(func, new)
    problems = verify(new)
    if problems:
        raise _broken(edit, problems)
    func.body = new.body
    for name, callee in func.callees.items():
        callee.body = new.callees[name].body
    func.next_id, func.shared = max(func.next_id, new.next_id), None
    func.version += 1


def _with_carets(error: IRParseError) -> IRParseError:
    """An error of the parser, which names a column, with the word there."""
    span = error.span
    if span is None or span.end_col > span.col:
        return error
    rest = span.source_line.encode()[span.col :].decode(errors="replace")
    width = len(rest.split(" ", 1)[0].encode()) or 1
    column = min(span.col, max(0, len(span.source_line.encode()) - 1))
    return IRParseError(error.message, span=span._replace(col=column, end_col=column + width))


def _keep_locations(old: Func, new: Func) -> None:
    """Ops that were there keep their source line; new ones have that of the op before."""
    known = {op.id: op.loc for op in all_ops(old)}
    last = new.loc = old.loc
    for op in all_ops(new):
        last = op.loc = known.get(op.id, last)


def _broken(edit: IrEdit, problems: Sequence[VerifyError]) -> IRParseError:
    """The error for IR that parses but breaks a rule, at the line of the op at fault."""
    op, message = problems[0]
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return _error(edit, _line_of(edit, op), message + more)


def _line_of(edit: IrEdit, op: Op | None) -> int:
    if op is None:
        return 0
    signs = (f"${op.id} = ", f"${op.id} : ")
    lines = edit.text.split("\n")
    return next((i for i, line in enumerate(lines) if any(s in line for s in signs)), 0)


def _error(edit: IrEdit, at: int, message: str) -> IRParseError:
    source = edit.text.split("\n")[at]
    start = len(source) - len(source.lstrip(" "))
    span = SourceSpan(edit.path, at + 1, start, at + 1, len(source.rstrip()), "", source)
    return IRParseError(f"line {at + 1}: {message}", span=span)


class _Replacing(Instrument):
    """Replaces the IR at one point of a compile; the one instrument that changes what it sees.

    state: ``edited``, ``differs`` (the IR there is another one), or empty while the compile has not
    come to the point. found: the listing there.
    """

    shares_from = 1

    def __init__(self, edit: IrEdit) -> None:
        self.edit: Final = edit
        self.state = ""
        self._names: Final = RunNames()
        self._cx: PassCx

    def begin(self, func: Func, cx: PassCx) -> None:
        self._cx = cx
        if self.edit.after is None:
            self._replace(func)

    def after(self, run: Run, func: Func) -> None:
        tasks = [run.task]
        if run.task is not None and run.task == max(func.numbered_tasks()):
            tasks.append(None)  # in a record of many tasks their runs are one
        for task in tasks:
            name = self._names.next(run.stage, run.round, task, run.name)
            if name == self.edit.after and self._replace(func):
                run.changed = True  # what follows is to look again

    def _replace(self, func: Func) -> bool:
        same = listing_digest(listing(func).lines) == self.edit.digest
        self.state = "edited" if same or self.edit.force else "differs"
        if self.state == "edited":
            replace_ir(func, self.edit)
            self._cx.held.clear()  # it is about tasks that are gone
        return self.state == "edited"


# ---- the capture


class EditedCapture(KernelCapture):
    """See the module docstring. base: the capture of the unedited kernel."""

    def __init__(
        self,
        kernel: Kernel | Subject,
        backends: Iterable[str],
        config: CompileConfig,
        edit: IrEdit,
        steps: Steps | None = None,
        calls: Sequence[Call] = (),
        described: KernelRecord | None = None,
        recorded: bool = False,
    ) -> None:
        """backends: the edit's own is added. The others: see `KernelCapture`."""
        names = [name for name in backends if name != ORACLE]
        home = edit.backend
        names = [home, *(name for name in names if name != home)]
        super().__init__(
            kernel, names, config, steps, calls, described, asked=True, recorded=recorded
        )
        self.edit: Final = edit
        self.base: Final = KernelCapture(
            kernel, (*names, ORACLE) if ORACLE not in names else names, config, steps, calls,
            described, asked=True, recorded=recorded,
        )  # fmt: skip
        self._replacing: dict[str, _Replacing] = {}
        self._edited: set[FullCompile] = set()

    def compile(self) -> KernelRecord:
        self.base.compile()
        super().compile()
        self._judge()
        return self._with_unedited()

    def instruments(self, name: str) -> tuple[Instrument, ...]:
        made = self._replacing[name] = _Replacing(self.edit)
        return (made,)

    def compiled(
        self, backend: str, spec_keys: tuple[Any, ...], noalias: bool = True
    ) -> FullCompile:
        found = super().compiled(backend, spec_keys, noalias)
        main = noalias and spec_keys == self.spec_keys
        if not main or self._replacing[backend].state != "edited":
            raise QuadrantsRuntimeError(
                "the edited IR is for arguments of other types, or for arrays that do not overlap",
                kernel=self.kernel.name,
            )
        return found

    def launch(self, budget_s: float = 0.4) -> KernelRecord:
        if any(b.status == "ok" for b in self.backends):
            self.base.generate_texts(binary=False)
            super().launch(budget_s)
        return self._with_unedited()

    def launcher(self, budget_s: float) -> Launcher:
        return _EditedLauncher(self, budget_s)

    def _judge(self) -> None:
        """Record the reason for each backend whose IR was not replaced."""
        home = self._replacing.get(self.edit.backend)
        if home is None:
            return  # its error, or reason, is in the record
        if not home.state and not self._failed_at_home():
            self.add_error(self._problem(
                "IrEditError", "the compile has no such pass run: "
                f"{self.edit.after}; take the IR from this kernel and these options again",
            ))  # fmt: skip
        elif home.state == "differs":
            self.add_error(self._problem(
                CONFLICT, "the source has changed since the IR was taken: the IR at this point is "
                "another one now",
            ))  # fmt: skip
        for backend in self.backends:
            state = self._replacing.get(backend.backend)
            if backend.status == "ok" and (state is None or state.state != "edited"):
                reason = "not edited, see the error"
                if home.state == "edited":
                    reason = f"its IR at this point is another one than on {self.edit.backend}"
                self.put(BackendRecord(backend=backend.backend, status="not_run", reason=reason))

    def _failed_at_home(self) -> bool:
        return any(b.backend == self.edit.backend and b.status != "ok" for b in self.backends)

    def _problem(self, kind: str, message: str) -> ErrorRecord:
        edit = self.edit
        text = f'File "{edit.path}", line 1:\n{message}'
        return ErrorRecord(
            kind=kind, message=message, stage="passes", kernel=self.kernel.name,
            backend=edit.backend, file=edit.path, line=1, rendered=text,
        )  # fmt: skip

    def _with_unedited(self) -> KernelRecord:
        """The record, with the unedited compiles where launches have not put them yet."""
        there = {b.backend for b in self.record.backends}
        more = [
            msgspec.structs.replace(b, backend=b.backend + UNEDITED)
            for b in self.base.backends
            if b.backend != ORACLE and b.backend + UNEDITED not in there
        ]
        backends = (*self.record.backends, *more)
        self.record = msgspec.structs.replace(self.record, backends=backends)
        return self.record


class _EditedLauncher(Launcher):
    """Launches the edited kernel and the unedited one on the same arguments."""

    recompiles = False  # the edit is of the IR that these options gave

    def __init__(self, capture: EditedCapture, budget_s: float) -> None:
        super().__init__(capture, budget_s)
        self._edited: Final = capture
        self._pairs: Final = list(self._names)
        new = type(self._state[ORACLE])
        self._state.update({name + UNEDITED: new() for name in self._pairs})

    def run(self) -> None:
        super().run()
        edited, mine = self._edited, self._state[ORACLE]
        verdicts: list[VerdictRecord] = []
        for name in self._pairs:
            plain = self._state[name + UNEDITED]
            for ours, theirs in zip(self._state[name].launches, plain.launches, strict=False):
                if ours.workload == theirs.workload:
                    rivals = [Rival(name + UNEDITED, theirs, plain.device),
                              Rival(name, ours, self._state[name].device)]  # fmt: skip
                    verdicts += verdicts_of(rivals)
            before = next(b for b in edited.base.backends if b.backend == name)
            edited.put(msgspec.structs.replace(
                before, backend=name + UNEDITED, launches=tuple(plain.launches),
                device=plain.device, errors=(*before.errors, *plain.errors),
                status="error" if plain.errors else before.status,
            ))  # fmt: skip
        edited.put_verdicts(verdicts)
        agreement = judged(mine.compared, mine.uncompared, mine.unchecked, "none", "")
        failed = bool(mine.errors)
        edited.put(BackendRecord(
            backend=ORACLE, status="error" if failed else "ok", agreement=agreement,
            errors=tuple(mine.errors), reason=mine.errors[0].message if failed else "",
        ))  # fmt: skip

    def rival_of(self, name: str, names: Sequence[str]) -> str:
        return name.removesuffix(UNEDITED)

    def ready(self, name: str, found: Round) -> tuple[FullCompile, Any]:
        capture = self._edited
        if name != ORACLE and not name.endswith(UNEDITED):
            return super().ready(name, found)
        real = name.removesuffix(UNEDITED)
        compiled = capture.base.compiled(real, found.spec_keys)
        given = self.inputs(compiled, found)
        if given.overlap():
            compiled = capture.base.compiled(real, found.spec_keys, False)
        return compiled, given

    def _interpret(self, found: Round) -> None:
        """The unedited kernel, whose results are the reference; then the edited one."""
        super()._interpret(found)
        if found.unfit is not None or not self._pairs:
            return
        state = self._state[ORACLE]
        home = self._edited.edit.backend
        try:
            compiled, given = Launcher.ready(self, home, found)
            program = interp.compile_func(compiled.func, counted=True)
            with self.limited(ORACLE, found, "interpret"):
                most = ORACLE_STEPS_FIRST if found.first else ORACLE_STEPS
                results = counted(program, given.values, discard, most)
            ours = self.outcome(compiled, given.values, results)
        except (TooLong, StepLimit):
            state.uncompared.append(found.case.label)
            return
        except Exception as raised:
            # Compiled code would write outside of its arrays, or fail as well.
            found.unfit = found.failure = self._error(raised, ORACLE)
            state.fail(found.failure)
            return
        if found.oracle is None:
            state.uncompared.append(found.case.label)
            return
        state.compared.append((found.case.label, ours.compared(found.oracle)))

    def _launch(self, name: str, found: Round) -> None:
        super()._launch(name, found)
        if not (found.started and found.started[-1].name == name):
            return
        plain = name + UNEDITED
        try:
            compiled, given = self.ready(plain, found)
            place = placed(compiled, given)
            start = self.starter(compiled, place, found)
            with self.limited(plain, found, "launch"):
                _, first_us = place.launched(start)
        except (Exception, StepLimit) as raised:
            self._state[plain].errors.append(self._error(raised, plain))
            return
        found.started.append(Started(plain, compiled, first_us, "launch"))
