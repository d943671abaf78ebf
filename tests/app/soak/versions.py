"""Versions of a kernel file of which the truth is known by construction.

The number of a version is in the file's first line and in the name of the workload's parameter, so
every result in a record says of which version it is.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from qd_studio.engine.inspect.record import BackendRecord, Record

from tests.hygiene.tree import ROOT

BACKENDS = ("cpu", "wrong", "interp")
GOOD = frozenset({"cpu", "wrong"})

_FILE = """\
# version {number}
import ctypes
import sys
import time

import numpy as np

sys.path.insert(0, {root!r})
from qd_studio import engine as qd
from tests.app import wrong

wrong.install()
{head}


@qd.kernel
def k(x: qd.types.ndarray(dtype=qd.f32, ndim=1)):
    for i in range(x.shape[0]):
        {body}


@k.workload(v{number}=[16])
def arguments(v{number}):
    {before}
    return (np.ones(v{number}, np.float32),)
"""
_RIGHT = "x[i] = x[i] * {factor}"


class Kind(NamedTuple):
    """A kind of version. good: the backends whose result agrees with the interpreter's.

    loads: the file can be imported, so its kernel is known. save: how it reaches the disk.
    """

    body: str = _RIGHT
    head: str = ""
    before: str = "pass"
    good: frozenset[str] = GOOD
    loads: bool = True
    save: str = "write"


_NONE: frozenset[str] = frozenset()
KINDS = {
    "right": Kind(),
    "renamed": Kind(save="rename"),
    "slow": Kind(head="time.sleep(0.8)"),
    "flood": Kind(head="for n in range(20000): print('line', n)"),
    # The wrong backend subtracts where a kernel adds; see `tests.app.wrong`.
    "differs": Kind(body="x[i] = x[i] + {factor}", good=frozenset({"cpu"})),
    "outside": Kind(body="x[i + 16] = x[i] * {factor}", good=_NONE),
    "endless": Kind(body="while x[i] < 2.0:\n            x[i] = x[i] * 1.0", good=_NONE),
    "crash": Kind(before="ctypes.string_at(0)", good=_NONE),
    "unknown": Kind(body="x[i] = x[i] * nothing", good=_NONE),
    "syntax": Kind(body="x[i] = = {factor}", good=_NONE, loads=False),
    "crash at import": Kind(head="ctypes.string_at(0)", good=_NONE, loads=False),
    "endless import": Kind(head="while True: pass", good=_NONE, loads=False),
    "exit": Kind(head="sys.exit(3)", good=_NONE, loads=False),
    "deleted": Kind(good=_NONE, loads=False, save="delete"),
}


def text_of(kind: str, number: int) -> str:
    """The file of version ``number``."""
    k = KINDS[kind]
    # Times two may be compiled as an addition.
    body = k.body.format(factor=f"{number + 3}.0")
    return _FILE.format(number=number, root=str(ROOT), head=k.head, body=body, before=k.before)


def save(path: Path, kind: str, number: int) -> None:
    """Save a version as some editor would."""
    how = KINDS[kind].save
    if how == "delete":
        path.unlink(missing_ok=True)
    elif how == "rename":
        other = path.with_suffix(".tmp")
        other.write_text(text_of(kind, number))
        os.replace(other, path)
    else:
        path.write_text(text_of(kind, number))


def version_of(record: Record) -> int:
    """The version whose text the record holds; -1 for none."""
    text = record.files[0].text if record.files else ""
    found = re.match(r"# version (\d+)", text)
    return int(found[1]) if found else -1


def measured_of(backend: BackendRecord) -> set[int]:
    """The versions that the backend's launches and its agreement are of."""
    labels = [x.workload for x in backend.launches]
    if backend.agreement is not None:
        labels.append(backend.agreement.workload)
    return {int(n) for label in labels for n in re.findall(r"\bv(\d+)=", label)}


Truth = Callable[[int], frozenset[str]]
