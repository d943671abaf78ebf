"""Fastcache: kernels found by their source, without parsing it or loading anything that compiles.

For kernels marked ``fastcache=True``. The key is made of what is known when a kernel is called::

    kernel, module           qualified name; module and file name
    autodiff                 the mode of differentiation, such as a gradient
    engine ... config.*      as in the offline cache
    python, coverage         version of Python, which parses the source, and its limit on digits if
                             that is set; QD_KERNEL_COVERAGE
    noalias                  whether written arrays are assumed to overlap nothing
    source                   digest of the kernel's own lines, decorators included
    signature                the declarations of its parameters and results
    closure                  digest of the values in its closure that have a text
    arg.*                    each argument (`arguments`)

The value of a key is an `entry`: the key of the code in the offline cache, how to launch it, and
everything else that the compile read: functions that were inlined (`sources`), globals, closures,
members of objects (`captures`). All of it is compared with the live process before the code is
used. So a hit is equal to the result of a compile. A kernel that depends on something that cannot
be compared is not kept, and the observation names the cause.

Values that are compared, but are not part of the key, can change back and forth: a function is
edited, and the edit undone. So an entry is a list of *versions*, the latest first, and the first of
them that fits is used; a few are kept.

Nothing imported here parses, walks, or generates code.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

from ... import logs as log
from ...cache.observe import BYPASS, DAMAGED, HIT, MISS, OFF, Observation
from ...cache.parts import Part, digest, key_of
from ...cache.store import Entry, open_store
from ...errors import QuadrantsSyntaxError
from ...named_tuple import NamedTuple
from .arguments import FIELD_METADATA_CACHE_VALUE, Bypass, parts_of
from .captures import LIVE, Modules, Unknown, declared, text_of
from .entry import Live, Stale, Uncacheable, plan_of, record
from .sources import Reached

if TYPE_CHECKING:
    from ...cache.offline import Offline
    from ...cache.store import Info, Store
    from ...config import CompileConfig
    from ...frontend.build import BuildResult
    from ...frontend.signature import KernelDecl
    from ..args import Argument
    from ..compile import CompileRequest

__all__ = [
    "CODE_GONE", "FIELD_METADATA_CACHE_VALUE", "VERSIONS", "LookupResult", "captures_text", "keep",
    "look_up", "parts_for", "without_code",
]  # fmt: skip

CODE_GONE: Final = "the entry fits, but its code is no longer in the offline cache"


VERSIONS: Final = 8
"""The largest number of versions in an entry; the oldest is dropped first."""


class LookupResult(NamedTuple):
    """The result of a look-up.

    live: how to launch; None if the kernel has to be compiled. versions: those in the entry.
    """

    observation: Observation
    live: Live | None = None
    versions: Sequence[Any] = ()


def look_up(
    request: CompileRequest,
    offline: Offline,
    arguments: Sequence[Argument] | None,
    first: Observation | None = None,
) -> LookupResult:
    """Look up the kernel for these arguments. Warns of an argument that prevents caching.

    offline: of the program. arguments: None where they are no longer available; then ``first`` is
    the earlier observation for them.
    """
    began = perf_counter()
    result = _look_up(request, offline, arguments, first)
    ms = (perf_counter() - began) * 1e3
    return result._replace(observation=result.observation._replace(ms=ms))


def _look_up(
    request: CompileRequest,
    offline: Offline,
    arguments: Sequence[Argument] | None,
    first: Observation | None,
) -> LookupResult:
    decl, config, noalias = request.decl, request.config, request.noalias
    if not config.src_ll_cache or not config.offline_cache:
        name = "src_ll_cache" if config.offline_cache else "offline_cache"
        return LookupResult(Observation("fastcache", OFF, f"{name}=False"))
    if arguments is None:
        if first is None or not first.parts:
            reason = first.reason if first is not None else "the arguments are not at hand"
            return LookupResult(Observation("fastcache", BYPASS, reason))
        swapped = [Part(n, str(noalias) if n == "noalias" else v) for n, v in first.parts]
        parts: tuple[Part, ...] = tuple(swapped)
    else:
        made = parts_for(offline, decl, noalias, arguments)
        if isinstance(made, Bypass):
            for text in made.warnings:
                log.warn(text)
            return LookupResult(Observation("fastcache", BYPASS, made.reason))
        parts = made
    key = key_of(parts)
    seen = Observation("fastcache", MISS, "", "", key, parts)
    store = open_store(config, "fastcache")
    answer = store.answer(key, decl.qualname)
    if answer.state != HIT:
        return LookupResult(seen._replace(state=answer.state, reason=answer.reason))
    versions: Sequence[Any] = answer.load
    try:
        live = _fitting(versions, decl, request.specialization, config)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        why = store.spoiled(key, decl.qualname, f"cannot be read back: {error!r}")
        return LookupResult(seen._replace(state=DAMAGED, reason=why))
    if isinstance(live, Stale):
        return LookupResult(seen._replace(reason=str(live)), None, versions)
    hit = seen._replace(state=HIT, reason=answer.reason, source=answer.source)
    return LookupResult(hit, live, versions)


def _fitting(
    versions: Sequence[Any], decl: KernelDecl, spec_keys: Sequence[Any], config: CompileConfig
) -> Live | Stale:
    """The first version that fits, or the reason why the nearest does not.

    Versions are compared in the order in which the compile read things. So when one value
    has changed, the version that was in use before is equal up to that value; others differ there,
    too, or earlier. LookupError, TypeError, ValueError or AttributeError for data that is no entry.
    """
    nearest: Stale | None = None
    for load in versions:
        try:
            return plan_of(load, decl, spec_keys, config)
        except Stale as stale:
            if nearest is None or stale.passed > nearest.passed:
                nearest = stale
    if nearest is None:
        raise ValueError("an entry without versions")
    return nearest


def without_code(result: LookupResult) -> LookupResult:
    """The miss that replaces a hit whose code is not available."""
    seen = result.observation._replace(state=MISS, source="", reason=CODE_GONE)
    return LookupResult(seen, None, result.versions)


# ---- the key


def parts_for(
    offline: Offline, decl: KernelDecl, noalias: bool, found: Sequence[Argument],
    modules: Modules = LIVE,
) -> tuple[Part, ...] | Bypass:  # fmt: skip
    """The parts of the key, or the reason why there is none. offline, modules: of the program."""
    arguments = parts_of(decl, found, modules)
    if isinstance(arguments, Bypass):
        return arguments
    try:
        source = digest(decl.src.identity)
        signature = declared(decl, modules)
    except QuadrantsSyntaxError as error:
        return Bypass(error.message)
    except Unknown as unknown:
        return Bypass(f"the declaration of the kernel {unknown}")
    return (
        Part("kernel", decl.qualname),
        Part("autodiff", decl.autodiff),
        Part("graph", " ".join(map(str, decl.options))),
        Part("module", _module(decl, modules)),
        *offline.common,
        Part("python", _python()),
        Part("coverage", "kcov" if os.environ.get("QD_KERNEL_COVERAGE") == "1" else ""),
        Part("noalias", str(noalias)),
        Part("source", source),
        Part("signature", signature if len(signature) < 200 else digest(signature)),
        Part("closure", _closure(decl, modules)),
        *arguments,
    )


def _python() -> str:
    """The version of Python; with the limit on the digits of texts, unless it is the usual one."""
    version = "{}.{}".format(*sys.version_info)
    digits = sys.get_int_max_str_digits()
    return version if digits == sys.int_info.default_max_str_digits else f"{version} {digits}"


def _module(decl: KernelDecl, modules: Modules) -> str:
    """The module and file name of the kernel, which do not change when a project is moved."""
    name = os.path.basename(decl.file)
    return f"{modules.name(decl.fn.__module__)} ({'<...>' if name.startswith('<') else name})"


def _closure(decl: KernelDecl, modules: Modules) -> str:
    """A text that distinguishes kernels made by one function; captures are compared later."""
    cells: Any = decl.fn.__closure__
    if not cells:
        return ""
    texts: list[str] = []
    numbers = Reached((), modules)
    for name, cell in zip(decl.fn.__code__.co_freevars, cells, strict=True):
        try:
            texts.append(f"{name} {text_of(cell.cell_contents, numbers)}")
        except (Unknown, ValueError):
            texts.append(name)
    return digest("\n".join(texts))


# ---- keeping


def keep(
    request: CompileRequest,
    result: LookupResult,
    build: BuildResult,
    offline: str,
    about: Callable[[Sequence[Part]], dict[str, Any]],
) -> Observation:
    """Keep how the kernel was compiled, if it was looked up and may be kept.

    offline: the key of its code. about: returns the description of the entry, from a key's parts.
    Returns the observation: that of the look-up, with ``stored``, or the reason for a bypass.
    """
    seen = result.observation
    if not seen.key or seen.state == BYPASS:
        return seen
    config = request.config
    kernel = build.decls[0].qualname
    try:
        load = record(build, request.specialization, config, offline)
    except Uncacheable as error:
        return seen._replace(state=BYPASS, reason=str(error))
    store: Store = open_store(config, "fastcache")
    facts = {**about(seen.parts), "captures": captures_text(build, load)}
    versions = [load, *[one for one in result.versions if one != load]][:VERSIONS]
    if result.versions:
        facts["older"] = _older(store.info(seen.key, kernel), result.versions, load)
    stored = store.write(Entry(seen.key, kernel, facts, versions, b""))
    return seen._replace(stored=stored)


def _older(info: Info | None, versions: Sequence[Any], load: Any) -> list[dict[str, Any]]:
    """The descriptions of the versions that an entry keeps besides ``load``."""
    about: dict[str, Any] = {} if info is None else info.about
    latest = {name: about.get(name, []) for name in ("sources", "captures")}
    known: list[dict[str, Any]] = [latest, *about.get("older", [])] if about else []
    return [facts for one, facts in zip(versions, known, strict=False) if one != load][
        : VERSIONS - 1
    ]


def captures_text(build: BuildResult, load: dict[str, Any]) -> list[dict[str, str]]:
    """The captures in an entry, for people."""
    return [
        {
            "in": build.decls[int(owner)].qualname,
            "name": ".".join(path),
            "kind": origin,
            "value": text,
        }
        for owner, origin, path, text in load["captures"]
    ]
