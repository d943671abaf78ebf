"""The caches of one kernel: every layer is asked what it would answer, for each backend.

This runs when the passes of all kernels have been shown. The frontend works once more for it, since
keys are made from its output, and the passes of the capture have changed that.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from ..cache import driver
from ..cache.locations import functions_of
from ..cache.observe import BYPASS, NOT_APPLICABLE, OFF
from ..cache.offline import Offline
from ..cache.ptx import PtxCache, symbol_of
from ..cache.store import open_store
from ..config import DebugSwitches
from ..errors import QuadrantsCompilationError
from ..frontend import purity
from ..frontend.specialization import InstanceKey, RecordKey
from ..runtime.about import about_of
from ..runtime.args import Argument
from ..runtime.compile import make_ir
from ..runtime.fastcache.arguments import Bypass, parts_of
from ..runtime.obtain import bypass_reason
from .caches import Asked, PastLookups, answer
from .record import BackendRecord, CacheLayer, CompileRecord
from .steps import StepLimit
from .targets import find, split

if TYPE_CHECKING:
    from ..frontend.build import BuildResult
    from ..frontend.captures import Capture
    from ..frontend.signature import FuncDecl, KernelDecl
    from .capture import KernelCapture

    Decl = KernelDecl | FuncDecl

__all__ = ["look_up", "purity_of"]


def look_up(capture: KernelCapture, past: PastLookups | None = None) -> None:
    """Put what the caches would answer into the record of a kernel that was compiled.

    past: what was asked before in this session; this lookup is noted there.
    """
    arguments: list[Argument] = []
    for backend in capture.backends:
        if backend.status in ("ok", "error"):
            layers = _DryLookup(capture, backend, past or PastLookups(), arguments).layers()
            capture.put(replace(backend, caches=layers))


class _DryLookup:
    """One look-up of one kernel for one backend.

    arguments: those of a call, shared by the look-ups of a kernel; empty until they were made.
    """

    def __init__(
        self, capture: KernelCapture, backend: BackendRecord, past: PastLookups,
        arguments: list[Argument],
    ) -> None:  # fmt: skip
        self.capture = capture
        self.decl = capture.kernel.decl
        self.backend = backend.backend
        self.compiled = backend.compile or CompileRecord()
        self.failed = backend.status == "error"
        self.config = capture.config_for(backend.backend)
        self.cache = Offline(self.config, find(self.backend))
        self.past = past
        self.found: list[Argument] = []
        self.shared: Final = arguments

    def layers(self) -> tuple[CacheLayer, ...]:
        """Every layer, in the order in which a program asks them."""
        first = CacheLayer(
            name="in_process",
            state=BYPASS,
            reason="an inspection always runs the whole pipeline",
        )
        rest = (_ptx(self), _driver(self))
        cost = self.compiled.passes_ms + self.compiled.codegen_ms
        fast = CacheLayer(name="fastcache", state=BYPASS, cost_ms=self.compiled.frontend_ms)
        offline = CacheLayer(name="offline", state=BYPASS, cost_ms=cost)
        steps, reason = self.capture.steps, ""
        records = any(isinstance(f, RecordKey) for f in self.capture.spec_keys)
        if self.decl.fastcache or not records:  # their members are known by making one
            self.found = self._arguments(records or self.decl.fastcache)
        quarantined = steps.quarantined(self.backend, "caches")
        if quarantined is not None:
            reason = quarantined.message
        else:
            text = f"asking the caches for {self.decl.name} on {self.backend}"
            try:
                with steps.step("caches", text, backend=self.backend, kind="compile"):
                    fast, offline = self._asked(fast, offline)
            except (Exception, StepLimit) as error:
                reason = f"it could not be asked: {type(error).__name__}: {error}".splitlines()[0]
        if reason:
            fast, offline = (replace(x, reason=reason) for x in (fast, offline))
        return (first, fast, offline, *rest)

    def _asked(self, fast: CacheLayer, offline: CacheLayer) -> tuple[CacheLayer, CacheLayer]:
        reason = bypass_reason(self.config, DebugSwitches.read(os.environ))
        try:
            build = self._build()
        except QuadrantsCompilationError:
            build = None
        if not self.config.offline_cache:
            offline = replace(offline, state=OFF, reason="offline_cache=False")
        elif build is None or self.failed:
            offline = replace(offline, reason="the kernel does not compile")
        elif reason:
            offline = replace(offline, reason=reason)
        else:
            offline = self._offline(build, offline)
        return self._fastcache(build, fast, reason, offline), offline

    def _build(self) -> BuildResult:
        """Return the frontend's output, also for a kernel that is marked and not pure."""
        request = self.capture.request(self.backend, self.capture.spec_keys)
        decl = copy.copy(self.decl)
        decl.fastcache = False
        # What user code says while the frontend works, it said in the capture.
        with self.capture.steps.silent():
            return make_ir(request._replace(decl=decl, quiet=True))

    def _offline(self, build: BuildResult, layer: CacheLayer) -> CacheLayer:
        functions = functions_of(build.decls)
        parts = self.cache.parts(build.func, functions, noalias=True)
        about = about_of(build, parts, {})
        asked = Asked("offline", self.decl.qualname, parts, about, layer.cost_ms)
        return answer(asked, open_store(self.config, "offline"), self.before("offline", about))

    def _fastcache(
        self, build: BuildResult | None, layer: CacheLayer, reason: str, offline: CacheLayer
    ) -> CacheLayer:
        for name in ("offline_cache", "src_ll_cache"):
            if not getattr(self.config, name):
                return replace(layer, state=OFF, reason=f"{name}=False")
        pure, advice_text = (True, "") if build is None else purity_of(build)
        if not self.decl.fastcache:
            unfit = parts_of(self.decl, self.found) if pure and self.found else ()
            if isinstance(unfit, Bypass):
                advice_text = f"marked fastcache=True it could not be kept: {unfit.reason}"
            return replace(layer, state=OFF, reason="not marked fastcache=True", advice=advice_text)
        if build is None:
            return replace(layer, reason="the kernel does not compile")
        if not pure or reason:
            return replace(layer, reason=reason if pure else advice_text)
        from .fastcache_lookup import FastcacheLookup

        swap = partial(self.before, "fastcache")
        case = self.capture.cases[0] if self.capture.cases else None
        synthetic = case is None or case.origin == "synthetic"
        lookup = FastcacheLookup(
            self.decl, self.found, self.config, self.cache, offline, swap, synthetic
        )
        return lookup.ask(build, layer)

    def _arguments(self, real: bool) -> list[Argument]:
        """Arguments for which the kernel is looked up by its source.

        real: those of a call are made. Keys contain the owners of arrays, and members that are no
        parameters of the compiled kernel; its specialization keys contain neither.
        """
        capture = self.capture
        if not self.shared:
            made = capture.made(capture.cases[0]) if real and capture.cases else None
            if made is not None:  # without the contents, which no key holds
                self.shared.extend(
                    a._replace(value=None, back=None) for a in capture.bound(made[0])
                )
            else:
                given = [capture.instance if isinstance(f, InstanceKey) else None
                         for f in capture.spec_keys]  # fmt: skip
                pairs = zip(capture.spec_keys, given, strict=True)
                self.shared.extend(Argument(f, given=value) for f, value in pairs)
        return self.shared

    def before(self, layer: str, about: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the last request to this layer; ``about`` is kept for the next call."""
        return self.past.swap(f"{self.capture.record.id} {self.backend} {layer}", about)


def _ptx(lookup: _DryLookup) -> CacheLayer:
    """The layer of PTX, looked up with the input from which the capture made PTX."""
    layer = CacheLayer(name="ptx", state=NOT_APPLICABLE, reason=f"{lookup.backend} makes no PTX")
    if not find(lookup.backend).makes_ptx:
        return layer
    passed = lookup.capture.injected.get(lookup.backend)
    if not lookup.config.offline_cache:
        return replace(layer, state=OFF, reason="offline_cache=False")
    if passed is None or passed.job is None:
        return replace(layer, state=BYPASS, reason="the kernel does not compile")
    job = passed.job
    cache = PtxCache(lookup.config, job.arch)
    parts = cache.parts(job.llvm_ir, job.toolchain, job.settings)
    symbol = symbol_of(job.llvm_ir)
    about = {"kernel": symbol, "backend": "cuda", "parts": dict(parts)}
    asked = Asked("ptx", symbol, parts, about, lookup.compiled.codegen_ms)
    return answer(asked, open_store(lookup.config, cache.layer), lookup.before("ptx", about))


def _driver(lookup: _DryLookup) -> CacheLayer:
    seen = driver.observe(lookup.config, split(lookup.backend)[0])
    layer = CacheLayer(name="driver", state=seen.state, reason=seen.reason)
    passed = lookup.capture.injected.get(lookup.backend)
    if passed is None or passed.load_ms is None or seen.state == OFF:
        return layer
    reason = "an inspection makes the driver generate the machine code again"
    return replace(layer, state=BYPASS, reason=reason, cost_ms=passed.load_ms)


# ---- purity


def purity_of(build: BuildResult) -> tuple[bool, str]:
    """Return True if a kernel may be marked ``fastcache=True``, and a line that says so or names
    what it reads."""
    found = purity.of(build)
    kernel = build.decls[0]
    wrong = [_read(x.capture, kernel) for x in found if x.severity == "error"]
    if wrong:
        return False, f"not pure: reads {', '.join(wrong)}"
    odd = next((c for c in build.captures if c.opaque), None)
    if odd is not None:
        where = _place(odd, kernel)
        return True, f"marked fastcache=True it could not be kept: {odd.opaque}, {where}"
    text = "could be marked fastcache=True: it is pure"
    constants = [_read(x.capture, kernel) for x in found]
    return True, f"{text}, if {', '.join(constants)} is constant" if constants else text


def _read(capture: Capture, kernel: Decl) -> str:
    """``N (int) at line 12 in scale``."""
    return f"{capture.name} ({type(capture.value).__name__}) {_place(capture, kernel)}"


def _place(capture: Capture, kernel: Decl) -> str:
    loc = capture.loc
    name = "" if loc.file == kernel.file else f" of {os.path.basename(loc.file)}"
    owner = "" if capture.decl.qualname == kernel.qualname else f" in {capture.decl.qualname}"
    return f"at line {loc.line}{name}{owner}"
