"""Verdicts on the kernels of a recorded application, from its IR and its launches.

The program is not needed: proofs are made from the IR that the record keeps of each compile, and
the interpreter follows the launches that were kept with their arguments. A kernel that was compiled
for several kinds of arguments is checked for each. Verdicts are kept on disk (`kept`). Expressions
in findings are those of the source files, if these are still where they were.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from ...config import resolve
from ...errors import IRParseError, QuadrantsRuntimeError, QuadrantsUnsupportedError
from ...ir import Func, parse
from ...named_tuple import NamedTuple
from ...runtime.compile import collector_pause
from ..application.relaunch import values_of
from ..application.replay import compiles_in
from ..record_check import CheckRecord
from ..trials import UnjudgedError
from .kept import KeptVerdicts, recorded_parts
from .launches import ACCESSES, STEPS, Launched
from .shadow import Followed
from .verdicts import hurried, unknown, verdicts_of

if TYPE_CHECKING:
    from ..application.model import Compile, KeptLaunch, Kernel
    from ..application.store import ApplicationFile

__all__ = ["RecordedCheck", "check_application"]

_ORIGIN: Final = "recorded"
_MOST: Final = 2
"""Launches of a compile that are followed, those with the smallest arrays first; one if it is
long."""


class RecordedCheck(NamedTuple):
    """kernel: qualified name. place: FILE:LINE. specialization: of the compile."""

    kernel: str
    place: str
    specialization: tuple[str, ...]
    check: CheckRecord


def check_application(
    file: ApplicationFile, names: Sequence[str] = (),
    progress: Callable[[str, int, int], object] = lambda text, done, total: None,
) -> Iterator[RecordedCheck]:  # fmt: skip
    """Check the kernels of a record, one result for each compiled form.

    names: only kernels with one of these names; all if empty. progress: called with what comes
    next, how many results there are, and of how many.
    """
    chosen = list(compiles_in(file, names))
    for done, (kernel, compiled) in enumerate(chosen):
        progress(f"checking {kernel.qualname}", done, len(chosen))
        yield RecordedCheck(
            kernel.qualname, f"{kernel.file}:{kernel.line}", compiled.specialization,
            _checked(file, kernel, compiled),
        )  # fmt: skip


def _checked(file: ApplicationFile, kernel: Kernel, compiled: Compile) -> CheckRecord:
    if not compiled.ir:
        return unknown("the record does not have its IR")
    text = file.content(compiled.ir).decode()
    chosen = [launch for launch in compiled.kept if not launch.reason and launch.values]
    chosen.sort(key=_size)
    del chosen[_MOST:]
    given = [(_label(launch), _ORIGIN, _digests(launch)) for launch in chosen]
    config = resolve({}, os.environ).config
    kept = KeptVerdicts(config, kernel.name, recorded_parts(kernel.name, text, given))
    found = kept.read()
    if found is not None:
        return found
    with collector_pause:
        try:
            func = _parsed(text)
        except IRParseError as error:
            return unknown(f"its IR cannot be read: {error.message}")
        followed = Followed(func)
        launched: list[Launched] = []
        for launch in chosen:
            if launched and launched[0].accesses > ACCESSES:
                break
            launched.append(_follow(file, followed, launch))
        found = verdicts_of(func, launched)
        func.release()
    if not hurried(found):
        kept.write(found)
    return found


def _parsed(text: str) -> Func:
    func = parse(text)
    # Of a gradient, what is checked is the kernel that it is made from.
    func.autodiff = "none"
    return func


def _size(launch: KeptLaunch) -> int:
    """Elements of all arrays."""
    return sum(int(np.prod(value.shape)) for value in launch.values if value.dtype)


def _label(launch: KeptLaunch) -> str:
    return f"launch {launch.number}"


def _digests(launch: KeptLaunch) -> list[str]:
    """A text for each argument of a launch."""
    return [repr((v.dtype, v.shape, v.same, v.number, v.before)) for v in launch.values]


def _follow(file: ApplicationFile, followed: Followed, launch: KeptLaunch) -> Launched:
    label = _label(launch)
    try:
        shadow = followed.launch(lambda: values_of(file, launch), STEPS)
    except UnjudgedError as error:
        return Launched(label, _ORIGIN, why=str(error))
    except (QuadrantsUnsupportedError, QuadrantsRuntimeError) as error:
        return Launched(label, _ORIGIN, why=error.message.splitlines()[0])
    whole = shadow.complete or shadow.found
    return Launched(
        label, _ORIGIN, shadow.found, followed.func, shadow.complete, shadow.steps,
        "" if whole else "it needs too many steps",
    )  # fmt: skip
