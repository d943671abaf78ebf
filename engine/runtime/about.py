"""The description of a cache entry for people: the compiled kernel, its sources and its values.

Nothing here is part of a key, and the use of an entry needs nothing of it. It explains a later miss
(`cache.explain`), so two processes must describe equal kernels in the same way.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from ..cache.parts import Part, digest
from ..frontend.contents import content_of
from ..ir.params import param_text
from ..types import CompoundType, DataType

if TYPE_CHECKING:
    from ..frontend.build import BuildResult
    from ..frontend.captures import Capture

__all__ = ["about_of", "captures_of", "facts_of", "value_text", "with_key"]

_LONGEST: Final = 120
_ORIGINS: Final = frozenset({"global", "closure", "argument", "default"})
"""Origins of captures that are values. Annotations are described with the parameters."""
_PLAIN: Final = (bool, int, float, complex, str, bytes, range, slice, type(None))


def about_of(
    build: BuildResult, parts: Sequence[Part], timings: Mapping[str, float]
) -> dict[str, Any]:
    """The description of an entry with a key of ``parts``; see `cache.store`."""
    return with_key(facts_of(build), parts, timings)


def facts_of(build: BuildResult) -> dict[str, Any]:
    """The part of a description that all entries of a compile share."""
    kernel = build.decls[0]
    sources = [
        {"name": decl.qualname, "file": decl.file, "line": decl.line,
         "digest": digest(decl.src.text), "text": decl.src.text}
        for decl in build.decls
    ]  # fmt: skip
    return {
        "kernel": kernel.qualname,
        "file": kernel.file,
        "line": kernel.line,
        "sources": sources,
        "captures": list(captures_of(build.captures)),
        "params": [param_text(p) for p in build.func.params],
    }


def with_key(
    facts: dict[str, Any], parts: Sequence[Part], timings: Mapping[str, float]
) -> dict[str, Any]:
    """The description of an entry: `facts_of` its compile, and the parts of its key."""
    named = dict(parts)
    return {
        **facts,
        "engine": named["engine"],
        "backend": named["backend"],
        "parts": named,
        "ms": {name.removesuffix("_ms"): ms for name, ms in timings.items()},
    }


def captures_of(captures: Sequence[Capture]) -> Iterator[dict[str, str]]:
    """The values among the captures of a kernel; functions are described by their sources."""
    for capture in captures:
        text = _value_text(capture.value) if capture.origin in _ORIGINS else None
        if text is not None:
            kind = type(capture.value).__name__
            yield {"in": capture.decl.qualname, "name": capture.name, "kind": kind, "value": text}


def _value_text(value: Any) -> str | None:
    """As `value_text`, but an error in the user's code there does not stop the compile."""
    try:
        return value_text(value)
    except Exception:
        return f"an object of {type(value).__qualname__}"


def value_text(value: Any, depth: int = 4) -> str | None:
    """A value on one line, the same in every process; None for functions and modules.

    Long text is cut, and a digest of the whole text is appended.
    """
    kind = value.__class__
    if kind in _PLAIN:
        return _cut(_plain(value))
    if kind in (list, tuple, dict) and depth:
        return _cut(_container(value, depth))
    if isinstance(value, enum.Enum):
        return f"{kind.__qualname__}.{value.name} = {value_text(value.value, depth - 1)}"
    if isinstance(value, DataType | CompoundType):
        return str(getattr(value, "name", None) or value)
    if isinstance(value, np.ndarray):
        array = cast("np.ndarray[Any, Any]", value)
        return f"{array.dtype}{list(array.shape)} {digest(array.tobytes())[:12]}"
    if isinstance(value, np.generic):
        number = cast("Any", value)
        return f"{number.dtype} {number.item()!r}"
    content = content_of(value)
    if content is not None:
        return f"{kind.__qualname__} {digest(repr(content))[:12]}"
    if isinstance(value, type):
        return f"class {value.__qualname__}"
    if callable(value) or isinstance(value, ModuleType):
        return None
    return f"an object of {kind.__qualname__}"


def _plain(value: Any) -> str:
    try:
        return repr(value)
    except ValueError:  # more digits than Python converts
        return hex(value)


def _container(value: Any, depth: int) -> str:
    if isinstance(value, dict):
        table = cast("dict[Any, Any]", value)
        pairs = [f"{value_text(k, 1)}: {value_text(v, depth - 1)}" for k, v in table.items()]
        return f"{{{', '.join(pairs)}}}"
    items = ", ".join([str(value_text(item, depth - 1)) for item in value])
    return f"[{items}]" if isinstance(value, list) else f"({items})"


def _cut(text: str) -> str:
    if len(text) <= _LONGEST:
        return text
    return f"{text[: _LONGEST - 16]}... {digest(text)[:12]}"
