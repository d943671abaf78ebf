"""``qd-studio --plain FILE``: the studio as a dialogue in lines of text.

For screen readers, terminals without cursor movement, and pipes: nothing is drawn, nothing moves,
and signs are spelled in ASCII. The files are watched as in the studio. After each save a line says
what happened to each kernel; commands are words, one line each, and their answers are the texts of
``qd-studio show``. Commands that come from a pipe wait until the files have been looked at.
"""

from __future__ import annotations

import os
import shlex
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from . import streams
from .core import format as fmt
from .core.charset import spelled
from .core.edits import Edits, changes, edit_lines, looked
from .core.lines import plain
from .core.saves import Saves
from .core.views.compared import summary
from .core.views.errors import by_backends, errors_of, headline
from .usage import EXIT_ENVIRONMENT, EXIT_FAILED, EXIT_OK

if TYPE_CHECKING:
    from ..engine.inspect.record import KernelRecord, Record
    from .worker.assuming import AssumingClient
    from .worker.client import WorkerClient
    from .worker.events import Event

__all__ = ["run_plain"]

_HELP: Final = """\
list                        a line for each kernel
show PANEL [KERNEL] [PASS]  a panel as text; `show` alone names the panels
find TEXT                   the lines with a text: sources, IR, code, errors, log
changes KERNEL              what the last save did
compare [A [B]]             two saves (by number), git revisions, NAME=VALUE or backends;
                            `compare` alone lists them; B is the newest save if left out
bisect [KERNEL]             find the pass that makes the result wrong
nan [KERNEL]                find what made the first NaN or infinity
gradient [KERNEL]           compare its gradient with differences
reproduce [KERNEL [PATH]]   write a small script that shows the wrong result
whatif KERNEL WHAT          compile as if WHAT held, such as noalias or fast_math, and measure
measure                     measure what the machine can do, for `show cost`
options                     every compile option and its value
set NAME=VALUE              compile with another option, for this session
backends NAME,NAME          compile for these backends; `all` for every one
refresh                     import, compile and measure once more
cancel                      stop what the worker does; ctrl+c does so in a longer command
log                         the output of your code
save FILE.qds               write a session
quit                        leave; so does the end of the input
"""
_MOST: Final = 200
_EVERY_S: Final = 3.0
"""Seconds between two lines about what the worker does."""


class _Stop(Exception):
    """The user leaves."""


class Dialogue:
    """The state of the dialogue. Events come on the client's thread, commands on the main one."""

    def __init__(self, files: Sequence[str]) -> None:
        self.files = files
        self.client: AssumingClient | None = None
        self.saves = Saves()
        self.record: Record | None = None
        self.edits = Edits()
        self.ready = threading.Event()
        self._lock = threading.Lock()
        self._said = 0.0
        self._commands: Final[Mapping[str, Callable[[list[str]], None]]] = {
            "help": self._help, "list": self._list, "show": self._show, "find": self._find,
            "changes": self._changes, "set": self._set, "backends": self._backends,
            "refresh": self._refresh, "log": self._log, "save": self._save, "quit": self._quit,
            "compare": self._compare,
            "whatif": self._what_if, "measure": self._measure, "options": self._options,
            "cancel": self._cancel, "bisect": partial(self._study, "bisect"),
            "reproduce": partial(self._study, "repro"), "nan": partial(self._study, "nan"),
            "gradient": partial(self._study, "check-grad"),
        }  # fmt: skip

    def say(self, text: str) -> None:
        """Print lines of text in ASCII."""
        with self._lock:
            streams.write(spelled(text.rstrip("\n")) + "\n")

    # --- events ----------------------------------------------------------------------------

    def heard(self, event: Event) -> None:
        """Called with each event of the worker."""
        from .worker import events as ev

        if isinstance(event, ev.Progress):
            self._working(event)
            self.ready.clear()
        elif isinstance(event, ev.Exited) and not event.expected:
            self.say(f"the worker ended: {event.reason}")
        elif isinstance(event, ev.RecordUpdated) and event.complete:
            before, self._said = self._effects(), 0.0
            self.record = event.record
            self.edits = looked(self.edits, event.record, event.again)
            self.saves.add(event.record, time.strftime("%H:%M:%S"), event.again)
            self.saves.pack()
            news = self._news(event.record)
            if event.again:
                news = (text for id, text in self._effects().items() if before.get(id) != text)
            for line in news:
                self.say(line)
            self.ready.set()

    def _effects(self) -> dict[str, str]:
        """A line for each kernel with an earlier result, by its id: what the last save did."""
        before, now, shown = self.edits.before, self.edits.now, self.record
        if before is None or now is None or shown is None:
            return {}
        found = changes(before, now)
        return {
            k.id: f"{k.name}: {''.join(text for text, _ in summary(found[k.id]))}"
            for k in shown.kernels
            if k.id in found and not k.stale
        }

    def _working(self, event: Event) -> None:
        """Say now and then what a worker does, and how long that still lasts."""
        from .worker.events import Progress

        now = time.monotonic()
        if isinstance(event, Progress) and now - self._said > _EVERY_S:
            self._said = now
            self.say(f"... {event.forms[0]}")

    def _news(self, record: Record) -> Iterator[str]:
        """Errors, then a line for each kernel: what the save did, or at first how it runs."""
        for error in errors_of(record, gradients=False):
            place = f"{error.file}:{error.line}: " if error.line else ""
            yield f"error: {place}{headline(error)}"
        effects = self._effects()
        for kernel in record.kernels:
            yield effects.get(kernel.id) or _sentence(kernel)
        yield f"ready: {fmt.counted(len(record.kernels), 'kernel')}; `help` names the commands"

    # --- commands --------------------------------------------------------------------------

    def obey(self, line: str) -> None:
        """Carry out one line of the user's."""
        try:
            words = shlex.split(line)
        except ValueError as error:
            self.say(f"not understood: {error}")
            return
        if not words:
            return
        name, *rest = words
        near = [known for known in self._commands if known.startswith(name)]
        if len(near) != 1 and name not in self._commands:
            self.say(f"there is no command {name!r}: `help` names them")
            return
        command = name if name in self._commands else near[0]
        if command not in ("help", "quit", "cancel"):
            self.ready.wait()
        self._commands[command](rest)

    def _help(self, words: list[str]) -> None:
        self.say(_HELP)

    def _quit(self, words: list[str]) -> None:
        raise _Stop

    def _list(self, words: list[str]) -> None:
        for kernel in self._known().kernels:
            self.say(_sentence(kernel))

    def _show(self, words: list[str]) -> None:
        from .panels import NothingToShow, panels
        from .show import show

        if not words:
            self.say("panels: " + ", ".join(p.id for p in panels() if p.text is not None))
            return
        kernel = words[1] if len(words) > 1 else None
        pass_name = words[2] if len(words) > 2 else None
        try:
            form = "outline" if words[0] == "cfg" else "readable"
            self.say(show(self._known(), words[0], kernel, pass_name, form=form))
        except KeyError:
            self.say(f"there is no panel {words[0]!r}: `show` names them")
        except NothingToShow as error:
            self.say(str(error))

    def _find(self, words: list[str]) -> None:
        from .panels._finding import find

        text = " ".join(words)
        found = find(self._known(), text)
        for hit in found[:_MOST]:
            self.say(f"{hit.name}, {hit.place}: {hit.text}")
        more = len(found) > _MOST
        self.say(f"{_MOST} of more lines" if more else fmt.counted(len(found), "line"))

    def _changes(self, words: list[str]) -> None:
        before, now = self.edits.before, self.edits.now
        if before is None or now is None:
            self.say("nothing was saved yet")
            return
        for kernel in self._named(words):
            self.say(f"{kernel.name}:\n" + plain(edit_lines(before, now, kernel.id, "", 0, True)))

    # --- what compiles ---------------------------------------------------------------------

    def _compare(self, words: list[str]) -> None:
        from . import plain_work as work

        assert self.client is not None
        if not words:
            self.say(work.choices(self.saves, self.client.template.files[0]))
            return
        try:
            self._answer(work.compared(words, self.saves, self.client, self._working))
        except (ValueError, RuntimeError) as error:
            self.say(str(error))

    def _study(self, kind: str, words: list[str]) -> None:
        from . import plain_work as work

        assert self.client is not None
        kernel = self._one(words)
        if kernel is not None:
            path = words[1] if len(words) > 1 else f"repro_{kernel.name.replace('.', '_')}.py"
            record = self._known()
            self._answer(work.studied(kind, kernel, self.client, self._working, record, path))

    def _answer(self, text: str | None) -> None:
        self._said = 0.0
        self.say("cancelled" if text is None else text)

    def _one(self, words: list[str]) -> KernelRecord | None:
        """The kernel that is named, or the only one."""
        found = self._named(words[:1])
        if len(found) > 1:
            self.say("name a kernel: " + ", ".join(k.name for k in found))
        return found[0] if len(found) == 1 else None

    def _what_if(self, words: list[str]) -> None:
        from ..engine.inspect import assumption
        from .core.views.what_if import what_if_lines
        from .worker.protocol import Assume

        kernel = self._one(words)
        if kernel is None:
            return
        try:
            assumed = [Assume(text=text, kernel=kernel.id) for text in words[1:]]
            for one in assumed:
                assumption(one.text)
        except ValueError as error:
            self.say(str(error))
            return
        if not assumed:
            self.say("name an assumption, such as noalias, no_checks or fast_math")
            return
        self._again(lambda client: client.what_if(assumed))
        self.ready.wait()
        found = next((k for k in self._known().kernels if k.id == kernel.id), None)
        self.say(plain(what_if_lines(found.what_ifs)) if found is not None else "it is gone")

    def _measure(self, words: list[str]) -> None:
        self._again(lambda client: client.measure_peaks())

    def _options(self, words: list[str]) -> None:
        record = self._known()
        entries = next((f.config for f in record.files if f.config), ()) or record.config
        self.say("\n".join(f"{e.name}={e.value} ({e.origin})" for e in entries))

    def _cancel(self, words: list[str]) -> None:
        if self.client is not None:
            self.client.cancel()

    def _set(self, words: list[str]) -> None:
        from ..engine import inspect

        try:
            config = dict(inspect.parse_setting(word) for word in words)
        except ValueError as error:
            self.say(str(error))
            return
        self._again(lambda client: client.set_config(config))

    def _backends(self, words: list[str]) -> None:
        from ..engine import inspect

        try:
            names = inspect.expand([name for word in words for name in word.split(",") if name])
        except ValueError as error:
            self.say(str(error))
            return
        self._again(lambda client: client.set_backends(names))

    def _refresh(self, words: list[str]) -> None:
        self._again(lambda client: client.request_refresh())

    def _log(self, words: list[str]) -> None:
        self.say("\n".join(line.text for line in self._known().log) or "nothing was written")

    def _save(self, words: list[str]) -> None:
        from ..engine import inspect

        path = words[0] if words else "session.qds"
        if os.path.exists(path):
            self.say(f"{path} exists already: give another name")
            return
        try:
            inspect.save(self._known(), path)
        except OSError as error:
            self.say(f"cannot write {path}: {error.strerror}")
            return
        self.say(f"saved {os.path.abspath(path)}")

    def _again(self, ask: Callable[[AssumingClient], Any]) -> None:
        assert self.client is not None
        self.ready.clear()
        ask(self.client)

    def _known(self) -> Record:
        assert self.record is not None
        return self.record

    def _named(self, words: list[str]) -> list[KernelRecord]:
        found = [k for k in self._known().kernels if not words or words[0] in (k.name, k.id)]
        if not found:
            self.say(f"there is no kernel {words[0]!r}")
        return found


def _sentence(kernel: KernelRecord) -> str:
    """``saxpy: cpu 3.62 ms, agrees; opencl 4.1 ms, 1.12x of cpu, slower, agrees``."""
    parts: list[str] = []
    for backend in kernel.backends:
        if backend.status == "absent":
            continue
        launch = max(backend.launches, key=lambda x: x.wall_us or x.median_us, default=None)
        words = [f"{backend.backend} {fmt.launch_time(launch)}" if launch else backend.backend]
        if launch is None:
            words.append(fmt.unlaunched_reason(kernel, backend))
        against = next((v for v in kernel.verdicts if v.backend == backend.backend), None)
        words += [fmt.against(against)] if against is not None else []
        if backend.agreement is not None and backend.backend != "interp":
            words.append(_AGREES.get(backend.agreement.state, backend.agreement.state))
            if backend.agreement.state != "ok":
                words.append(backend.agreement.first_difference or backend.agreement.reason)
        parts.append(", ".join(word for word in words if word))
    stale = "stale, " if kernel.stale else ""
    errors = dict.fromkeys(headline(error) for error, _ in by_backends(kernel))
    return f"{kernel.name}: {stale}{'; '.join([*errors, *parts])}"


_AGREES: Final = {"ok": "agrees"}


def run_plain(files: Sequence[str], settings: Mapping[str, Any], command: Sequence[str]) -> int:
    """Hold the dialogue until the user leaves; return the exit code."""
    from .worker.assuming import AssumingClient

    dialogue = Dialogue(files)
    dialogue.client = client = AssumingClient(
        files, on_event=dialogue.heard, command=command, watch=True, **settings
    )
    try:
        for line in _lines(client):
            dialogue.obey(line)
    except _Stop:
        pass
    else:
        while not dialogue.ready.wait(0.2) and client.alive:
            pass
    finally:
        client.stop()
    if client.failure is not None:
        streams.talk(f"qd-studio: {client.failure}")
        return EXIT_ENVIRONMENT
    record = dialogue.record
    return EXIT_FAILED if record is not None and errors_of(record, gradients=False) else EXIT_OK


def _lines(client: WorkerClient) -> Iterator[str]:
    """The lines of the standard input, with a prompt where it is a terminal."""
    asks = sys.stdin.isatty()
    while client.alive:
        if asks:
            streams.write("> ")
        line = sys.stdin.readline()
        if not line:
            return
        yield line
