"""A small script that shows a wrong result: `reproducer_of`, and what such a script calls.

The script has the part of the user's file that the kernel needs, the options, the arguments, and
the IR before the pass at fault. Statements, expressions, extents and values are dropped as long as
a bisection names the same culprit. `check_reproducer` is what the script runs: it bisects again,
and its result is the exit status.
"""

from __future__ import annotations

import linecache
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np

from ..config import OPTIONS, CompileConfig
from ..ir import parse, to_text
from ..lang.ndarray import Ndarray, ndarray
from ..runtime import program
from ..types import FieldHandle, TensorHandle
from ..types.dtypes import dtype_of
from .arguments import Call, LaunchCase
from .bisect import bisect_backends, bisect_capture, same_fault
from .contents import installed
from .differentiable import gradient_features
from .gradients import GradientCapture
from .record_bisection import SCRIPT, Bisection, ChangedOp, Reproducer
from .small_values import (
    Composite,
    NamedField,
    argument_of,
    is_plain,
    plain_arguments,
    smaller_arguments,
    text_of,
)
from .source_slice import (
    NotSlicedError,
    Slice,
    kernel_lines,
    slice_of,
    smaller,
    used_statements,
    without_members,
)
from .steps import Steps
from .value_slice import slice_of_values

if TYPE_CHECKING:
    from .capture import KernelCapture
    from .trials import Predicate

__all__ = ["Reproducer", "captured", "check_reproducer", "reproducer_of"]

_SHRINK_S: Final = 25.0
_EXITS: Final = {"agrees": 0, "found": 1}
_NOT_JUDGED: Final = 4
_MODULE: Final = "qd_studio_reproducer"


def reproducer_of(
    capture: KernelCapture, backend: str = "", predicate: Predicate | None = None,
    seconds: float = _SHRINK_S,
) -> Reproducer:  # fmt: skip
    """A script for what `bisect_backends` finds. seconds: for making it small."""
    found = bisect_backends(capture, backend, predicate)
    if found.state != "found":
        return Reproducer(bisection=found, reason=found.reason)
    if found.part == "frontend" or predicate is not None:
        why = "a script judges with the interpreter, and the predicate is another judge"
        return Reproducer(bisection=found, reason=why)
    case = next(case for case in capture.cases if case.label == found.workload)
    try:
        return _Maker(capture, found, case, seconds).made()
    except NotSlicedError as error:
        return Reproducer(bisection=found, reason=str(error))
    finally:
        sys.modules.pop(_MODULE, None)


def captured(
    kernel: Any, arguments: Sequence[Any], backend: str, config: CompileConfig,
    differentiable: Sequence[int] | None = None,
) -> KernelCapture:  # fmt: skip
    """The prepared capture of a kernel with these arguments; of its gradient if
    ``differentiable`` is not None: the indices of arrays that get gradients."""
    from .capture import KernelCapture

    args = list(arguments)
    for i in differentiable or ():
        array = np.asarray(args[i])
        args[i] = ndarray(dtype_of(array.dtype), array.shape, needs_grad=True)
        args[i].from_numpy(array)
    capture = KernelCapture(kernel, (backend,), config, Steps(), [Call(tuple(args))])
    if differentiable is None:
        capture.prepare()
        return capture
    capture.compile()
    keys = gradient_features(capture, make=True)
    if keys is None:
        raise ValueError(f"{kernel.decl.name} has no gradient for these arguments")
    gradient = GradientCapture(capture, keys)
    gradient.prepare()
    return gradient


def check_reproducer(
    kernel: Any, arguments: Sequence[Any], backend: str, pass_name: str = "",
    differentiable: Sequence[int] | None = None,
) -> int:  # fmt: skip
    """Bisect again and print what is found; the exit status of a script.

    pass_name: the culprit when the script was made. differentiable: for the kernel's gradient, the
    indices of arrays that get gradients; None for the kernel itself.
    """
    capture = captured(kernel, arguments, backend, program.current().config, differentiable)
    capture.compile()
    found = bisect_capture(capture, backend)
    word = {"found": f"wrong because of {found.title()}", "agrees": "the result is right"}
    print(f"{found.kernel} on {backend}: {word.get(found.state, 'unknown')}")
    if found.part == "pass" and pass_name and found.pass_name != pass_name:
        print(f"  it was {pass_name} when this script was made")
    for text in (found.reason, found.difference):
        if text:
            print(f"  {text}")
    for change in found.changes:
        print(
            f"  line {change.line}: {change.before or '(nothing)'} -> {change.after or '(nothing)'}"
        )
    return _EXITS.get(found.state, _NOT_JUDGED)


class _Maker:
    """Makes one script."""

    def __init__(
        self, capture: KernelCapture, found: Bisection, case: LaunchCase, seconds: float
    ) -> None:  # fmt: skip
        self._capture = capture
        self._found = found
        self._end = time.monotonic() + seconds
        self._trials = 0
        self._tried: set[str] = set()
        self._gradient: Final = isinstance(capture, GradientCapture)
        args, contents = _made(capture, case)
        args = list(args)
        try:
            if capture.kernel.decl.is_method or any(not _is_stated(a) for a in args):
                raise NotSlicedError("values are needed")
            self._slice = slice_of(capture.kernel)
            names = {name for s in self._slice.body for name in _bound_names(s)}
            module = capture.kernel.decl.fn.__globals__
            self._fields = _contents_of({n: module.get(n) for n in sorted(names)}, contents)
        except NotSlicedError:
            self._slice, fields, args = slice_of_values(capture.kernel, args)
            self._fields = _contents_of(fields, contents)
        if self._gradient and any(isinstance(a, Composite) for a in args):
            raise NotSlicedError("a script of a gradient has no dataclasses and arrays of objects")
        grads = [i for i, a in enumerate(args) if self._gradient and _has_grad(a)]
        self._differentiable: tuple[int, ...] = tuple(grads)
        plain = plain_arguments(args)
        if plain is None:
            raise NotSlicedError(
                "a script can state numbers, arrays of numbers, fields, and dataclasses of them as "
                "arguments only"
            )
        self._args = plain

    def made(self) -> Reproducer:
        """Make it small, and write it."""
        if not self._fails(self._slice, self._args, self._fields):
            why = "cut out of its file, the kernel is right: it needs what the script lacks"
            return Reproducer(bisection=self._found, reason=why)
        before = kernel_lines(self._slice)
        self._drop_members()
        while time.monotonic() < self._end:
            size = len(self._slice.text()), sum(len(text_of(a)) for a in self._args)
            self._shrink_source()
            self._drop_parameters()
            self._shrink_values()
            if size == (len(self._slice.text()), sum(len(text_of(a)) for a in self._args)):
                break
        self._drop_members()
        self._drop_unused()
        self._found = self._again()
        script = self._script()
        return Reproducer(
            bisection=self._in_script(script), script=script, lines=kernel_lines(self._slice),
            lines_before=before, trials=self._trials,
        )  # fmt: skip

    # ---- smaller

    def _shrink_values(self) -> None:
        changed = True
        while changed and time.monotonic() < self._end:
            changed = False
            for args in smaller_arguments(self._args):
                if time.monotonic() > self._end:
                    break
                if self._fails(self._slice, args, self._fields):
                    self._args, changed = args, True
                    break
        names = list(self._fields)
        for i, value in enumerate(self._fields.values()):
            for values in smaller_arguments([value]):
                fields = {**self._fields, names[i]: values[0]}
                same = values[0].shape == value.shape
                if (
                    same
                    and time.monotonic() < self._end
                    and self._fails(self._slice, self._args, fields)
                ):
                    self._fields = fields
                    break

    def _shrink_source(self) -> None:
        skipped = 0
        changed = True
        while changed and time.monotonic() < self._end:
            changed = False
            for at, version in enumerate(_from(smaller(self._slice), skipped)):
                if time.monotonic() > self._end:
                    return
                if len(version.text()) < len(self._slice.text()) and self._fails(
                    version, self._args, self._fields
                ):
                    # What failed before is likely to fail again: go on from here, then start over.
                    self._slice, changed, skipped = version, True, skipped + at
                    break
            else:
                if skipped:
                    changed, skipped = True, 0

    def _drop_parameters(self) -> None:
        import ast
        import copy

        for i in reversed(range(len(self._args))):
            kernel = copy.deepcopy(self._slice.kernel)
            used = {n.id for s in kernel.body for n in ast.walk(s) if isinstance(n, ast.Name)}
            if kernel.args.defaults or kernel.args.args[i].arg in used:
                continue
            if i in self._differentiable:
                continue
            del kernel.args.args[i]
            body = tuple([kernel if s is self._slice.kernel else s for s in self._slice.body])
            version = self._slice._replace(body=body)
            args = [*self._args[:i], *self._args[i + 1 :]]
            known = self._differentiable
            self._differentiable = tuple([d - (d > i) for d in known])
            if self._fails(version, args, self._fields):
                self._slice, self._args = version, args
            else:
                self._differentiable = known

    def _drop_members(self) -> None:
        """Leave out members of dataclasses that no function names."""
        version, args = without_members(self._slice, self._args)
        if version is not self._slice and self._fails(version, args, self._fields):
            self._slice, self._args = version, args

    def _drop_unused(self) -> None:
        """Leave out functions and fields that nothing uses any more."""
        version, names = self._slice, set(_names_in(self._args))
        while True:
            kept = used_statements(version, names)
            if len(kept) == len(version.body):
                break
            version = version._replace(body=kept)
        bound = {name for s in version.body for name in _bound_names(s)}
        fields = {name: value for name, value in self._fields.items() if name in bound}
        if len(version.body) < len(self._slice.body) and self._fails(version, self._args, fields):
            self._slice, self._fields = version, fields

    # ---- trials

    def _fails(self, version: Slice, args: Sequence[Any], fields: dict[str, Any]) -> bool:
        """True if the same culprit is found for this version."""
        tried = version.text() + repr([text_of(v) for v in (*args, *fields.values())])
        if tried in self._tried:
            return False
        self._tried.add(tried)
        self._trials += 1
        try:
            with self._capture.steps.step(
                "bisect", f"making {self._capture.record.name} smaller: trial {self._trials}",
                backend=self._found.backend, kind="compile",
            ):  # fmt: skip
                capture = self._captured(version, args, fields)
                return same_fault(capture, self._found)
        except Exception:  # no kernel
            return False

    def _captured(
        self, version: Slice, args: Sequence[Any], fields: dict[str, Any]
    ) -> KernelCapture:
        name = f"<reproducer {self._trials}>"
        text = version.text()
        lines = text.splitlines(keepends=True)
        linecache.cache[name] = (len(text), None, lines, name)
        # Dataclasses look their module up.
        kept = sys.modules[_MODULE] = ModuleType(_MODULE)
        module = kept.__dict__
        module["__file__"] = name
        try:
            exec(compile(text, name, "exec"), module)
            for field, values in fields.items():
                module[field].from_numpy(values)
            given = [argument_of(value, module) for value in args]
            return captured(
                module[version.name], given, self._found.backend, self._capture.config,
                self._differentiable if self._gradient else None,
            )  # fmt: skip
        finally:
            linecache.cache.pop(name, None)

    def _again(self) -> Bisection:
        """The bisection of the small version; of the whole kernel if that says something else."""
        capture = self._captured(self._slice, self._args, self._fields)
        capture.compile()
        found = bisect_capture(capture, self._found.backend)
        same = found.state == "found" and found.pass_name == self._found.pass_name
        return found if same else self._found

    # ---- the script

    def _in_script(self, script: str) -> Bisection:
        """The finding with lines of the script, where it is about the cut-out kernel."""
        own, lines = self._slice.text().splitlines(), script.splitlines()

        def moved(change: ChangedOp) -> ChangedOp:
            if not change.file.startswith("<reproducer ") or not 0 < change.line <= len(own):
                return change
            text = own[change.line - 1]
            places = [i for i, line in enumerate(lines, 1) if line == text]
            at = places[min(own[: change.line - 1].count(text), len(places) - 1)] if places else 0
            return msgspec.structs.replace(change, file=SCRIPT, line=at)

        changes = tuple(map(moved, self._found.changes))
        return msgspec.structs.replace(self._found, changes=changes)

    def _script(self) -> str:
        found = self._found
        qd = self._engine()
        init = [f"arch={qd}.{found.backend.partition(':')[0]}"]
        init += [f"{name}={value!r}" for name, value in _options(self._capture.config)]
        text = self._slice.text(f"\n{qd}.init({', '.join(init)})")
        if f"import engine as {qd}" not in text:
            text = f"from qd_studio import engine as {qd}\n{text}"
        values = [f"    {text_of(value)}," for value in self._args]
        fields = [f"{name}.from_numpy({text_of(value)})" for name, value in self._fields.items()]
        packed = any("b85decode" in value for value in (*values, *fields))
        head = ["import base64", "import sys", "import zlib"] if packed else ["import sys"]
        if "import numpy as np\n" not in text:
            head += ["", "import numpy as np"]
        out = [*_docstring(found), *head, text.rstrip(), "", ""]
        out += [*fields, "arguments = [", *values, "]", ""]
        where = f"The IR before {found.title()}" if found.part == "pass" else "The finished IR"
        before = to_text(parse(found.before)) if found.before else ""
        out += [f"# {where}.", f"IR = {_quoted(before)}", "", 'if __name__ == "__main__":']
        culprit = f", {found.pass_name!r}" if found.pass_name else ""
        if self._gradient:
            culprit += f", differentiable={self._differentiable!r}"
        call = f"{self._slice.name}, arguments, {found.backend!r}{culprit}"
        out += ["    from qd_studio.engine.inspect import check_reproducer", ""]
        return "\n".join([*out, f"    sys.exit(check_reproducer({call}))", ""])

    def _engine(self) -> str:
        """The name of the engine in the script."""
        for line in self._slice.text().splitlines():
            if line.startswith("from qd_studio import engine"):
                return line.rpartition(" ")[2]
        return "qd"


def _docstring(found: Bisection) -> list[str]:
    facts = [f"{text}\n" for text in (found.difference or found.observed, found.reason) if text]
    text = "\n".join([
        f"{found.kernel} on {found.backend}: wrong because of {found.title()}.", "", *facts,
        "Exit status: 1 while the result is wrong, 0 if it is right, 4 if that cannot be said.", "",
    ])  # fmt: skip
    return [_quoted(text), ""]


def _quoted(text: str) -> str:
    """A text of several lines as a literal."""
    escaped = text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    return f'"""{escaped}"""'


def _from(versions: Iterator[Slice], skipped: int) -> Iterator[Slice]:
    for _ in range(skipped):
        next(versions, None)
    return versions


def _options(config: CompileConfig) -> Iterator[tuple[str, Any]]:
    """The options that are not at their defaults."""
    plain = CompileConfig()
    for name in OPTIONS:
        value = getattr(config, name)
        if name != "arch" and value != getattr(plain, name):
            yield name, value


def _made(capture: KernelCapture, case: LaunchCase) -> tuple[tuple[Any, ...], Any]:
    made = capture.made(case)
    if made is None:
        raise NotSlicedError("the arguments cannot be made again")
    return made


def _is_stated(value: Any) -> bool:
    """True for an argument that needs no names of the file: a number or an array."""
    if isinstance(value, FieldHandle | TensorHandle):
        return False
    return plain_arguments([value]) is not None


def _names_in(values: Iterable[Any]) -> Iterator[str]:
    """The names of fields and dataclasses in arguments."""
    for value in values:
        if isinstance(value, NamedField | Composite):
            yield value.name
        if isinstance(value, Composite):
            yield from _names_in(value.members.values())


def _has_grad(value: Any) -> bool:
    return isinstance(value, Ndarray) and value.grad is not None


def _contents_of(fields: Mapping[str, Any], contents: Any) -> dict[str, Any]:
    """The values of fields, by name."""
    out: dict[str, Any] = {}
    with installed(contents or {}):
        for name, value in fields.items():
            if hasattr(value, "from_numpy") and hasattr(value, "to_numpy"):
                held = value.to_numpy()
                if not is_plain(held):
                    raise NotSlicedError(f"the field {name} holds more than an array of numbers")
                out[name] = held
    return out


def _bound_names(statement: Any) -> Iterator[str]:
    for target in getattr(statement, "targets", ()):
        if hasattr(target, "id"):
            yield target.id
