"""Verdicts on disk: a kernel that has not changed is not checked again.

    <root>/checks/<kernel>-<key>.qd...      the `CheckRecord` as JSON; see `cache.store`

The key is made of all that decides a verdict: the frontend's IR with the locations of its ops, the
texts of the file that findings quote, the options that may change IR, what the engine and the
checks are made of, the version of z3, and the arguments of the launches that are followed, by the
digest of their contents. Of a recorded application it is made of the text of the IR, before that
is parsed. An entry that is damaged, or that holds no verdicts, counts as none.

A capture runs in a process whose caches are dry (`inspect.caches`). Verdicts are the studio's own
and change no answer of a program, so they are written all the same. They do not go to a shared
cache. ``offline_cache=False`` turns this off.
"""

from __future__ import annotations

import os
import re
from ast import literal_eval
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec
import numpy as np

from ...cache import cleaning, folder
from ...cache.engine_id import engine_id, source_digest
from ...cache.entry import Entry
from ...cache.keys import ir_digest, signature
from ...cache.parts import Part, config_parts, digest, key_of
from ...cache.store import Store
from ...ir import all_ops
from ..record_check import CheckRecord
from ..tool import version_of

if TYPE_CHECKING:
    from ...config import CompileConfig
    from ...ir import Func

__all__ = ["KeptVerdicts", "key_parts", "recorded_parts"]

LAYER: Final = "checks"
_FILES: Final = re.compile(
    r"""^loc @\d+ = ('[^'\\]*(?:\\.[^'\\]*)*'|"[^"\\]*(?:\\.[^"\\]*)*")""", re.MULTILINE
)
"""The files in a table of locations; see `ir.parser`."""


Cases = Sequence[tuple[str, str, Any]]
"""Label, origin and values of each launch that may be followed."""


def key_parts(func: Func, config: CompileConfig, cases: Cases) -> list[Part]:
    """The parts of a key. func: the frontend's IR."""
    places = [f"{op.loc.file}:{op.loc.line}:{op.loc.col}:{op.loc.end_col}" for op in all_ops(func)]
    return [
        *_common_parts(func.name),
        *config_parts(config, "cpu"),
        Part("signature", signature(func)),
        Part("ir", ir_digest(func)),
        Part("places", digest("\n".join(places))),
        *_given_parts({op.loc.file for op in all_ops(func)}, cases),
    ]


def recorded_parts(kernel: str, text: str, cases: Cases) -> list[Part]:
    """The parts of a key for IR that was recorded. text: with its table of locations. To parse it
    takes longer than all else that a kept verdict needs."""
    # The table is at the end: searched from there on, as it is a fifth of the text.
    start = max(0, text.find("\nloc @"))
    files = {str(literal_eval(file)) for file in set(_FILES.findall(text, start))}
    return [*_common_parts(kernel), Part("ir", digest(text)), *_given_parts(files, cases)]


def _common_parts(kernel: str) -> list[Part]:
    return [
        Part("engine", engine_id()), Part("checks", _checks_digest()),
        Part("z3", version_of("z3-solver") or "none"), Part("kernel", kernel),
    ]  # fmt: skip


def _given_parts(files: set[str], cases: Cases) -> list[Part]:
    """Parts of the sources that findings quote, and of the launches."""
    texts = {f: _text_digest(f) for f in sorted(files)}
    given = [f"{label} {origin} {_content(values)}" for label, origin, values in cases]
    return [Part("texts", digest(repr(texts))), Part("workload", digest("\n".join(given)))]


class KeptVerdicts:
    """The verdicts of one key."""

    def __init__(self, config: CompileConfig, kernel: str, parts: list[Part]) -> None:
        self.parts: Final = parts
        self.kernel: Final = kernel
        self.key: Final = key_of(parts)
        self.store: Store | None = None
        if config.offline_cache:
            rules = cleaning.Rules.of(config)
            self.store = Store(folder.root_of(config), LAYER, rules, even_dry=True)

    def read(self) -> CheckRecord | None:
        """The verdicts that were kept; None if there are none that can be used."""
        found = None if self.store is None else self.store.peek(self.key, self.kernel)
        if found is None:
            return None
        try:
            record = msgspec.json.decode(found[1], type=CheckRecord)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        return record if record.verdicts else None

    def write(self, record: CheckRecord) -> None:
        """Keep verdicts. A folder that cannot be written is left."""
        if self.store is None:
            return
        about: dict[str, Any] = {
            "engine": engine_id(), "backend": "interp", "parts": dict(self.parts),
        }  # fmt: skip
        entry = Entry(self.key, self.kernel, about, None, msgspec.json.encode(record))
        self.store.write(entry)


@lru_cache(maxsize=1)
def _checks_digest() -> str:
    """The digest of the source of everything that makes launches and verdicts."""
    return source_digest(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def _text_digest(file: str) -> str:
    try:
        with open(file, "rb") as opened:
            return digest(opened.read())
    except OSError:
        return "none"


def _content(values: Any) -> str:
    """Digest of arguments: shapes, types and bytes of arrays, else the text of the value."""
    out: list[str] = []
    for value in values:
        if isinstance(value, np.ndarray):
            array = cast("np.ndarray[Any, Any]", value)
            out.append(f"{array.dtype} {array.shape} {digest(array.tobytes())}")
        else:
            out.append(f"{type(value).__name__} {value!r}")
    return digest("\n".join(out))
