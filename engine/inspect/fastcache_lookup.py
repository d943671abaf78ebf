"""Predicts fastcache's answer: makes its key and entry as a program of the user would make them.

Two things differ between this process and that program, and neither is a reason to miss:

* The module. A program runs the file as ``__main__`` or imports it; here it has another name, so
  that its ``__main__`` part does not run. The look-up is for the modules of that program
  (`_Renamed`), where it has the name that it has there.
* Arrays. A NumPy array here may be an ndarray or a tensor there; their keys differ.

The names of modules and the forms of arrays that a program uses are read from the entries that it
has left. Where there is none, it is the main module, and the arrays are those of the capture.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from ..cache import explain
from ..cache.observe import BYPASS, HIT, MISS
from ..cache.parts import Part, key_of
from ..cache.store import open_store
from ..named_tuple import NamedTuple
from ..runtime.about import about_of
from ..runtime.fastcache import CODE_GONE, captures_text, parts_for
from ..runtime.fastcache.arguments import Bypass
from ..runtime.fastcache.captures import LIVE, Modules
from ..runtime.fastcache.entry import Uncacheable, record
from . import shared
from .caches import Asked, answer, layer_of, missed, of_entry, trouble_of

if TYPE_CHECKING:
    from ..cache.offline import Offline
    from ..cache.store import Info
    from ..config import CompileConfig
    from ..frontend.build import BuildResult
    from ..frontend.signature import KernelDecl
    from ..runtime.args import Argument
    from .record import CacheLayer

__all__ = ["FastcacheLookup"]

Swap = Callable[[Mapping[str, Any]], "dict[str, Any] | None"]
_MAIN: Final = "__main__"
_ARRAY: Final = re.compile(r"\[(?:nd|(np|pt)|nd[vm]-([\d-]+))-([a-z]\w*)-([^\]]*)\]")
"""Its owner, or the extents of vectors or matrices in it, the last first; dtype; the rest."""
_CHANGED: Final = "what the entry was made of is not the same any more"


class _Made(NamedTuple):
    """The request and the entry of a program: parts of the key, and what it would write."""

    parts: tuple[Part, ...]
    load: Any
    about: dict[str, Any]


class FastcacheLookup:
    """One look-up of a kernel in fastcache.

    found: arguments of a call. offline: the cache of code for a backend; code: what it answered.
    swap: keeps this request and returns the last one. synthetic: no program and no workload passed
    the arguments, so that the arrays of a program may differ.
    """

    def __init__(
        self, decl: KernelDecl, found: Sequence[Argument], config: CompileConfig,
        offline: Offline, code: CacheLayer, swap: Swap, synthetic: bool = False,
    ) -> None:  # fmt: skip
        self.synthetic: Final = synthetic
        self.decl: Final = decl
        self.found: Final = found
        self.config: Final = config
        self.offline: Final = offline
        self.code: Final = code
        self.swap: Final = swap
        self.store: Final = open_store(config, "fastcache")

    def ask(self, build: BuildResult, layer: CacheLayer) -> CacheLayer:
        """``layer`` with the answer. build: what the frontend makes of the kernel."""
        backend = dict(self.offline.common)["backend"]
        there = self.store.of_kernel(self.decl.qualname)
        infos = [info for info in there if info.about.get("backend") == backend]
        bad = {info.key for info in there if info.problem}
        last = shared.last(self.store, self.decl.qualname)
        theirs = [last.info] if last and last.info.about.get("backend") == backend else []
        try:
            made: dict[tuple[Part, ...], _Made] = {}
            for module in self._modules([*infos, *theirs]):
                own = self._made(build, module)
                for info in [*infos, *theirs, None]:
                    adapted = self._adapted(own, info)
                    made.setdefault(adapted.parts, adapted)
                if bad:  # which say nothing of the arrays that they are for
                    adapted = self._of_engine(own)
                    made.setdefault(adapted.parts, adapted)
        except _Unasked as unasked:
            return replace(layer, state=BYPASS, reason=str(unasked))
        damaged = next((m for m in made.values() if key_of(m.parts) in bad), None)
        best = damaged or min(made.values(), key=lambda m: self._distance(m, [*infos, *theirs]))
        asked = Asked("fastcache", self.decl.qualname, best.parts, best.about, layer.cost_ms)
        before = self.swap(best.about)
        key = key_of(best.parts)
        info = next((x for x in infos if x.key == key), None)
        if info is None or info.problem or trouble_of(self.store):
            found = answer(asked, self.store, before)
            if found.source == "remote":
                found = self._of_shared(found, best)
            return self._advised(found, best)
        return self._validated(of_entry(layer_of(asked), info), best, info)

    def _of_shared(self, layer: CacheLayer, made: _Made) -> CacheLayer:
        """The answer for an entry of the shared cache, which is compared before it is used."""
        load = shared.load_of(self.store, layer.key, self.decl.qualname)
        if load is None or made.load not in load:
            last = shared.last(self.store, self.decl.qualname)
            found = None if last is None else explain.nearest([last.info], made.about)
            why = _CHANGED
            if found is not None and found.differences:
                layer = missed(layer, "entry", found.about, made.about)
                why = layer.reason
            reason = f"shared entry {'' if last is None else last.made_on}: {why}"
            return replace(layer, state=MISS, source="", reason=reason)
        if self.code.state != HIT:
            return replace(layer, state=MISS, source="", reason=CODE_GONE)
        return layer

    def _advised(self, layer: CacheLayer, made: _Made) -> CacheLayer:
        """``layer``, with the arrays that its key is for where no program has passed them."""
        arrays = any(_ARRAY.search(value) for name, value in made.parts if name.startswith("arg."))
        if not self.synthetic or not arrays or layer.advice:
            return layer
        return replace(layer, advice="the key is for the arrays of the inspection: a program that "
                       "passes arrays of another library has another key")  # fmt: skip

    # ---- parts

    def _modules(self, infos: Sequence[Info]) -> list[str]:
        """Names that the kernel's module has in programs."""
        name = str(self.decl.fn.__globals__.get("__name__", ""))
        if not name.startswith("_studio_"):
            return [name]  # a module that the file imports has its own name
        out = dict[str, None]()
        for info in infos:
            module = str(info.about.get("parts", {}).get("module", "")).partition(" ")[0]
            if info.about.get("file") == self.decl.file and module:
                out[module] = None
        return list(out) or [_MAIN]

    def _made(self, build: BuildResult, module: str) -> _Made:
        namespace = self.decl.fn.__globals__
        here = str(namespace.get("__name__", ""))
        modules = LIVE if here == module else _Renamed(here, module, namespace)
        parts = parts_for(self.offline, self.decl, True, self.found, modules)
        if isinstance(parts, Bypass):
            raise _Unasked(parts.reason)
        try:
            spec_keys = [argument.spec_key for argument in self.found]
            load = record(build, spec_keys, self.config, self.code.key, modules)
        except Uncacheable as error:
            raise _Unasked(str(error)) from None
        about = {**about_of(build, parts, {}), "captures": captures_text(build, load)}
        return _Made(parts, json.loads(json.dumps(load)), about)

    def _adapted(self, made: _Made, info: Info | None) -> _Made:
        """``made`` with the forms of arrays that an entry has."""
        theirs: Any = {} if info is None else info.about.get("parts", {})

        def form(name: str, value: str) -> str:
            other = str(theirs.get(name, ""))
            return other if _form(other) == _form(value) else value

        return self._reformed(made, form)

    def _of_engine(self, made: _Made) -> _Made:
        """Return ``made`` with arrays of the engine."""
        return self._reformed(made, lambda _, value: _engine_form(value))

    def _reformed(self, made: _Made, form: Callable[[str, str], str]) -> _Made:
        parts = tuple([
            Part(name, form(name, value) if name.startswith("arg.") else value)
            for name, value in made.parts
        ])  # fmt: skip
        return made._replace(parts=parts, about={**made.about, "parts": dict(parts)})

    def _distance(self, made: _Made, infos: Sequence[Info]) -> int:
        """The number of differences from the nearest entry; a large number if there is none."""
        found = explain.nearest(infos, made.about)
        return 1000 if found is None else len(found.differences)

    def _validated(self, layer: CacheLayer, made: _Made, info: Info) -> CacheLayer:
        """The answer for an entry of this very key, which is compared before it is used."""
        held = self.store.peek(info.key, self.decl.qualname)
        if held is None or made.load not in held[0]:
            found = explain.nearest([info], made.about)
            if found is not None and found.differences:
                return missed(layer, "entry", found.about, made.about)
            return replace(layer, state=MISS, reason=_CHANGED)
        if self.code.state != HIT:
            return replace(layer, state=MISS, reason=CODE_GONE)
        return replace(layer, state=HIT, source="disk")


class _Renamed(Modules):
    """The modules of a program in which the module ``here`` is called ``there``.

    namespace: of that module. Its definitions name ``there`` as their module, and are found there.
    """

    def __init__(self, here: str, there: str, namespace: Mapping[str, Any]) -> None:
        self._here: Final = here
        self._there: Final = there
        self._module: Final = ModuleType(there)
        vars(self._module).update(namespace)

    def name(self, name: str) -> str:
        return self._there if name == self._here else name

    def find(self, name: str) -> Any:
        return self._module if name == self._there else super().find(name)


class _Unasked(Exception):
    """Raised when a kernel is not looked up by its source; the message says why."""


def _form(text: str) -> str:
    """Return an argument's part, in the same form for arrays of any library."""

    def plain(match: re.Match[str]) -> str:
        foreign, extents, dtype, rest = match.groups()
        if foreign:
            import numpy as np

            kind = np.dtype(dtype)
            letter = {"f": "f", "i": "i", "u": "u", "b": "u"}.get(kind.kind, kind.kind)
            dtype = f"{letter}{1 if kind.kind == 'b' else kind.itemsize * 8}"
        if extents:
            rest += f"-of{tuple(int(n) for n in reversed(extents.split('-')))}"
        return f"[{dtype}-{rest}]"

    return _ARRAY.sub(plain, text)


def _engine_form(text: str) -> str:
    """An argument's part, if its arrays were the engine's."""

    def own(match: re.Match[str]) -> str:
        dtype, rest, shape = match.groups()
        if shape is None:
            return f"[nd-{dtype}-{rest}]"
        extents = re.findall(r"\d+", shape)
        kind = "ndv" if len(extents) == 1 else "ndm"
        return f"[{kind}-{'-'.join(reversed(extents))}-{dtype}-{rest}]"

    return re.sub(r"\[([a-z]\w*)-(\d+[^\]]*?)(?:-of(\([^)]*\)))?\]", own, _form(text))
