"""Observes the programs of one process; see the package docstring and `runtime.recording`."""

from __future__ import annotations

import atexit
import linecache
import os
import sys
import threading
import time
from collections.abc import Sequence
from time import perf_counter_ns as now
from types import CodeType
from typing import TYPE_CHECKING, Any, Final

from ... import version
from ...config import OPTIONS, CompileConfig
from ...ir import to_text
from ...ir.params import param_text
from . import keeping
from .model import Limits
from .parts import PartWriter
from .tally import LaunchTally, Site

if TYPE_CHECKING:
    from ...frontend.build import BuildResult
    from ...runtime.compile import Compiled, CompileRequest
    from ...runtime.program import Program
    from ...runtime.variant import Variant
    from ...types import FieldHandle

__all__ = ["ApplicationRecorder"]

_ENGINE: Final = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_STANDARD: Final = os.path.dirname(os.path.abspath(os.__file__)) + os.sep
_PACKAGES: Final = (_STANDARD + "site-packages" + os.sep, _STANDARD + "dist-packages" + os.sep)
_WAITING: Final = 50
"""Waiting for a device may take one part in this many of the time since the start."""
_FIRST_WAITS: Final = 3
_MOST_KERNELS: Final = 20_000


class ApplicationRecorder:
    """See the module docstring. part: of this process. keeps: launches are kept with arguments."""

    def __init__(self, folder: str, limits: Limits, start: str) -> None:
        """start: the folder that relative paths of files are relative to."""
        self._start: Final = start
        self.limits: Final = limits
        self.keeps: Final = limits.kept > 0
        self.lock = threading.RLock()
        self._folder: Final = folder
        self._tallies: Final[list[LaunchTally]] = []
        self._user_code: Final[dict[CodeType, bool]] = {}
        self._ir: Final = threading.local()
        self._closed = False
        self._begin()
        atexit.register(self.close)

    def _begin(self) -> None:
        self.part = PartWriter(self._folder)
        self._began = now()
        self._waited = 0
        self.keeper = keeping.Keeper(self.limits)
        self.part.write(
            "process", pid=os.getpid(), parent=os.getppid(), argv=list(sys.argv),
            python=sys.version.split()[0], version=version.VERSION, time=time.time(),
        )  # fmt: skip

    def before_fork(self) -> None:
        """See `recording.Recorder`."""
        self.lock.acquire()

    def after_fork(self) -> None:
        """See `recording.Recorder`."""
        self.lock.release()

    def in_child(self) -> None:
        """See `recording.Recorder`. The child has a part of its own."""
        self.lock = threading.RLock()
        self.part.abandon()
        self._closed = False
        self._begin()
        for tally in self._tallies:
            tally.begin_child()
        # A child of multiprocessing ends without atexit, but with finalizers that it made itself.
        util: Any = sys.modules.get("multiprocessing.util")
        if util is not None:
            util.register_after_fork(self, _finalize)

    def close(self) -> None:
        """Write what is not written yet; at the end of the process."""
        with self.lock:
            if self._closed:
                return
            self._closed = True
            for tally in self._tallies:
                tally.settle()
            self.part.write("end", seconds=(now() - self._began) / 1e9)

    # ---- compiles

    def built(self, request: CompileRequest, build: BuildResult) -> None:
        """See `recording.Recorder`."""
        if self.keeps:
            self._ir.made = request, to_text(build.func, locs=True)

    def compiled(self, program: Program, request: CompileRequest, compiled: Compiled) -> None:
        """See `recording.Recorder`."""
        about = self._about(program, request)
        meta = compiled.executable.meta
        about |= {
            "timings": dict(compiled.timings),
            "caches": [[seen.layer, seen.state, seen.reason, seen.source, seen.ms]
                       for seen in compiled.layers],
            "params": [param_text(p) for p in meta.params],
            "tasks": [[t.kind, t.name, len(t.stacks)] for t in meta.tasks],
            "ir": self._ir_of(request),
        }  # fmt: skip
        with self.lock:
            if len(self._tallies) >= _MOST_KERNELS:
                return
            tally = LaunchTally(self, len(self._tallies), about, program, compiled)
            self._tallies.append(tally)
            self._declare(tally)
        compiled.tally = tally

    def failed(self, program: Program, request: CompileRequest, error: BaseException) -> None:
        """See `recording.Recorder`."""
        about = self._about(program, request)
        text = str(error)
        with self.lock:
            self.part.write("failed", **about, error=text[: 4 << 10])

    def _about(self, program: Program, request: CompileRequest) -> dict[str, Any]:
        decl = request.decl
        return {
            "name": decl.name, "qualname": decl.qualname, "file": self._path(decl.file),
            "line": decl.line, "source": decl.src.text, "mode": decl.autodiff,
            "noalias": request.noalias,
            "backend": program.backend.name, "device": program.device.name,
            "config": options_of(request.config), "own": decl.file.startswith(_ENGINE + os.sep),
            "specialization": [feature_text(spec_key) for spec_key in request.specialization],
            "thread": threading.current_thread().name,
        }  # fmt: skip

    def _declare(self, tally: LaunchTally, inherited: bool = False) -> None:
        tally.declared = True
        self.part.write("kernel", kernel=tally.number, inherited=inherited, **tally.about)

    def _ir_of(self, request: CompileRequest) -> str:
        """The digest of the IR as the frontend made it; made again where a cache had the code."""
        if not self.keeps:
            return ""
        made = getattr(self._ir, "made", None)
        self._ir.made = None
        if made is not None and made[0] is request:
            text = made[1]
        else:
            from ...runtime.compile import make_ir

            try:
                text = to_text(make_ir(request._replace(quiet=True)).func, locs=True)
            except Exception:  # the program goes on without
                return ""
        with self.lock:
            return self.keeper.put(self.part, text.encode(), counted=False)

    # ---- launches

    def is_user(self, code: CodeType) -> bool:
        """True for code that is neither the engine's nor Python's own library."""
        found = self._user_code.get(code)
        if found is None:
            file = code.co_filename
            ours = file.startswith((_ENGINE + os.sep, "<launch stub", "<frozen ", "<string>"))
            standard = file.startswith(_STANDARD) and not file.startswith(_PACKAGES)
            found = self._user_code[code] = not (ours or standard)
        return found

    def new_site(self, tally: LaunchTally, key: Sequence[tuple[CodeType, int]]) -> Site:
        """A caller that was not seen before; the lock is held."""
        if not tally.declared:
            self._declare(tally, inherited=True)
        site = Site(self.part.slot())
        frames = [[self._path(code.co_filename), line, code.co_qualname,
                   linecache.getline(code.co_filename, line).strip()[:200]]
                  for code, line in key]  # fmt: skip
        self.part.write("site", kernel=tally.number, slot=site.slot, frames=frames)
        return site

    def _path(self, file: str) -> str:
        """The path of a source file, which a reader in another folder can use."""
        return file if file.startswith("<") else os.path.join(self._start, file)

    def device_to_wait_for(self, program: Program) -> Any:
        """The device, if its launches are not complete when they return and cannot fail later."""
        config = program.config
        if program.device.host_arrays or config.debug or config.check_out_of_bound:
            return None
        return program.device

    def may_wait(self, samples: int) -> bool:
        """True if a launch may be waited for now."""
        return samples < _FIRST_WAITS or self._waited * _WAITING < now() - self._began

    def wait(self, device: Any) -> None:
        """Wait for a device."""
        began = now()
        device.sync()
        self._waited += now() - began

    def begin_keeping(
        self, tally: LaunchTally, variant: Variant, values: Sequence[Any], number: int,
        resume: int, stream: int,
    ) -> keeping.Inputs | None:  # fmt: skip
        """The arguments of a launch that is to be kept; None for others."""
        if number < tally.keep_at:
            return None
        with self.lock:
            tally.kept += 1
            limits = self.limits
            following = tally.keep_at + limits.every if limits.every else tally.keep_at * 10
            tally.keep_at = following if tally.kept < limits.kept else float("inf")
            reason = self._unfit(tally, variant, resume, stream)
            return self.keeper.begin(self.part, tally.number, variant, values, number, reason)

    def _unfit(self, tally: LaunchTally, variant: Variant, resume: int, stream: int) -> str:
        if not tally.has_ir:
            return "its IR could not be made again"
        if resume:
            return "it begins at a checkpoint"
        program = variant.program
        if not program.device.host_arrays and self.device_to_wait_for(program) is None:
            return "the device reports failed checks late: copying arguments would move the error"
        if stream:
            return "it is on a stream: copying its arguments would wait for the stream"
        return ""

    def end_keeping(
        self, tally: LaunchTally, variant: Variant, kept: keeping.Inputs, values: Sequence[Any],
        results: tuple[Any, ...],
    ) -> None:  # fmt: skip
        """Keep the results of a launch."""
        with self.lock:
            self.keeper.end(self.part, tally.number, variant, kept, values, results)

    def launch_failed(
        self, tally: LaunchTally, kept: keeping.Inputs, error: BaseException
    ) -> None:  # fmt: skip
        """A launch that was to be kept has raised an error."""
        with self.lock:
            self.part.write(
                "launch", kernel=tally.number, number=kept.number, values=kept.values,
                reason=f"it raised {type(error).__name__}",
            )  # fmt: skip


def _finalize(recorder: ApplicationRecorder) -> None:
    util: Any = sys.modules["multiprocessing.util"]
    util.Finalize(None, recorder.close, exitpriority=-100)


def options_of(config: CompileConfig) -> dict[str, Any]:
    """The options whose values are not the defaults."""
    return {
        name: value
        for name, value in config.as_dict().items()
        if isinstance(value, str | int | float | bool) and value != OPTIONS[name].initial()
    }


def feature_text(spec_key: Any) -> str:
    """A specialization key on one line."""
    from ...frontend.specialization import InstanceKey, NdarrayKey, RecordKey
    from ...runtime.about import value_text
    from ...types import FieldHandle

    if isinstance(spec_key, NdarrayKey):
        element = "".join([f"; {n}" for n in spec_key.element_shape])
        grad = ", needs_grad" if spec_key.needs_grad else ""
        return f"ndarray<{spec_key.dtype.name}, {spec_key.ndim}{element}{grad}>"
    if isinstance(spec_key, RecordKey):
        return spec_key.cls.__qualname__
    if isinstance(spec_key, InstanceKey):
        return "self"
    if isinstance(spec_key, FieldHandle):
        return _field_text(spec_key)
    try:
        return value_text(spec_key) or getattr(spec_key, "__name__", type(spec_key).__name__)
    except Exception:  # of the user's own __repr__
        return f"an object of {type(spec_key).__qualname__}"


def _field_text(field: FieldHandle) -> str:
    """A field as IR shows one: ``field x: f32[128, 128; 2]``."""
    axes = ", ".join(map(str, field.shape))
    element = f"; {', '.join(map(str, field.element_shape))}" if field.element_shape else ""
    name = f" {field.name}" if field.name else ""
    return f"field{name}: {field.dtype.name}[{axes}{element}]"
