"""The result of a compile by a backend."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..ir import Loc
    from .base import Target
    from .meta import KernelMeta
    from .tiers import FirstCode

__all__ = ["Artifact"]


class Artifact:
    """The result of one compile.

    texts: generated text by name (``llvm_ir``, ``asm``, ...), complete ones. lazy: texts that are
    made when first asked for. languages: for highlighting, by text.
    lines: for a text, the id of the IR op that each line came from, -1 for none; empty where that
    is not known. Those of a lazy text come with the text. remarks: for a text, what the compiler
    that made it says about it (`llvm.remarks.OpRemark`); known when ``lines`` are.
    code: machine code, as the toolchain returned it. later: returns it where `code` is still empty,
    because it costs less after a launch; see `machine_code`. first: code that can be launched
    until then. facts: what the backend's own `load` needs. locations: source locations that the
    code refers to by index (see `Backend.keeps_locations`).
    """

    __slots__ = (
        "backend", "code", "facts", "first", "languages", "later", "lazy", "lines", "locations",
        "meta", "remarks", "target", "texts",
    )  # fmt: skip

    def __init__(
        self, backend: str, target: Target, meta: KernelMeta, texts: dict[str, str] | None = None,
        code: bytes = b"", lines: dict[str, tuple[int, ...]] | None = None,
        languages: dict[str, str] | None = None, lazy: dict[str, Callable[[], str]] | None = None,
        facts: dict[str, Any] | None = None, locations: tuple[Loc, ...] = (),
        remarks: dict[str, tuple[tuple[str, int, str], ...]] | None = None,
        later: Callable[[], bytes] | None = None, first: FirstCode | None = None,
    ) -> None:  # fmt: skip
        self.backend = backend
        self.target = target
        self.meta = meta
        self.texts = {} if texts is None else texts
        self.code = code
        self.lines = {} if lines is None else lines
        self.languages = {} if languages is None else languages
        self.lazy = {} if lazy is None else lazy
        self.facts = {} if facts is None else facts
        self.locations = locations
        self.remarks = {} if remarks is None else remarks
        self.later = later
        self.first = first

    def replaced(self, **changes: Any) -> Artifact:
        """A copy with other values in some attributes; the rest is shared."""
        made = Artifact.__new__(Artifact)
        for name in self.__slots__:
            setattr(made, name, changes.pop(name) if name in changes else getattr(self, name))
        if changes:
            raise TypeError(f"an artifact has no {', '.join(changes)}")
        return made

    def machine_code(self) -> bytes:
        """The code, made now if need be."""
        later = self.later  # once: another thread may make it, too
        if later is not None:
            self.code, self.later = later(), None
        return self.code

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all texts, in the order in which they are made."""
        return (*self.texts, *(name for name in self.lazy if name not in self.texts))

    def text(self, name: str) -> str:
        """The text called ``name``, made now if need be. KeyError if there is none."""
        found = self.texts.get(name)
        if found is None:
            found = self.texts[name] = self.lazy[name]()
        return found
