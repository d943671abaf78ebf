"""Edited IR: progress while a worker of its own compiles and launches it, then the outcome."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ....engine.inspect.record import KernelRecord, Record
from ...core.lines import Line
from ...core.views.edited import conflict, edited_lines
from .lists import ListScreen

if TYPE_CHECKING:
    from ....engine.inspect.edit_file import IrEdit
    from ...worker.client import WorkerClient
    from ...worker.protocol import Job

__all__ = ["EditedScreen"]


class EditedScreen(ListScreen):
    """See the module docstring. path: of the file with the edited IR."""

    KEYS = (("edit-ir", "edit again"), ("search", "search"), ("copy-all", "copy all"),
            ("export", "export"), ("help", "help"), ("back", "back, stop"))  # fmt: skip

    def __init__(self, edit: IrEdit) -> None:
        super().__init__()
        self.path = edit.path
        self._edit = edit
        self._client: WorkerClient | None = None
        self._turn = 0
        self._doing = "starting a worker"
        self._found: KernelRecord | None = None
        self._failure = ""
        self._newer = ""

    @property
    def heading(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The kernel and the pass."""
        after = self._edit.after
        where = f"after {after[3]} ({after[0]})" if after is not None else "before any pass"
        return f"edited IR of {self._edit.kernel} {where}"

    def on_mount(self) -> None:
        super().on_mount()
        self.start(self._edit)

    def on_unmount(self) -> None:
        self._stop()

    def _stop(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            threading.Thread(target=client.stop, name="studio-edit-end", daemon=True).start()

    def start(self, edit: IrEdit) -> None:
        """Run ``edit`` in place of the one before."""
        self._stop()
        self._edit, self._found, self._failure, self._newer = edit, None, "", ""
        self._doing = "starting a worker"
        self._turn += 1
        link = self.studio.link
        like = link.client.template if link is not None and link.client is not None else None
        threading.Thread(
            target=self._run, args=(self._turn, edit, like), name="studio-edit", daemon=True
        ).start()
        self.paint()

    def _run(self, turn: int, edit: IrEdit, like: Job | None) -> None:
        """Start the worker; on another thread."""
        from ...worker import events
        from ...worker.client import WorkerClient
        from ...worker.protocol import Job

        def heard(event: object) -> None:
            if isinstance(event, events.Progress):
                self._later(turn, event.forms, None)
            elif isinstance(event, events.RecordUpdated) and event.complete:
                self._later(turn, (), event.record)

        like = like or Job(id=0, files=())
        client = WorkerClient(
            [edit.file], like.config, like.backends or (edit.backend,), heard, run=like.run,
            only=[edit.kernel], limits=like.limits, opening=like.opening, edit=edit,
        )  # fmt: skip
        if turn != self._turn or not self.is_attached:
            client.stop()
        else:
            self._client = client

    def _later(self, turn: int, doing: Sequence[str], record: Record | None) -> None:
        if self.is_attached:
            self.app.call_later(self._heard, turn, doing, record)  # pyright: ignore[reportUnknownMemberType]

    def _heard(self, turn: int, doing: Sequence[str], record: Record | None) -> None:
        if turn != self._turn:
            return
        self.activity, self._doing = doing, doing[0] if doing else ""
        if record is not None:
            found = next((k for k in record.kernels if k.id == self._edit.kernel), None)
            self._found = found
            if found is None or not (found.backends or found.errors):
                errors = [e.rendered or e.message for e in record.errors]
                missing = f"{self._edit.file} has no kernel {self._edit.kernel}."
                self._failure = "\n".join(errors or [missing])
            elif conflict(found):
                self._keep_newer(found)
            self._stop()
        self.paint()

    def _keep_newer(self, kernel: KernelRecord) -> None:
        """Write the IR as it is now next to the edited one."""
        from ...core.edit_conflict import newer_path, newer_text

        text = newer_text(kernel, self._edit)
        if text is None:
            return
        path = newer_path(self.path)
        try:
            with open(path, "x", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            self._newer = f"cannot write {path}: {error.strerror}"
        else:
            self._newer = f"the IR as it is now is in {path}"

    def content(self) -> tuple[Sequence[Line], list[Line]]:
        head = [Line(((f"your edit is in {self.path}", "dim"),))]
        if self._newer:
            head.append(Line(((self._newer, "warn"),)))
        if self._failure:
            return [Line(((text, "bad"),)) for text in self._failure.splitlines()], head
        if self._found is None:
            stop = self.studio.key_name("back")
            return [Line(((f"{self._doing} ...  {stop} stops it", "dim"),))], head
        return edited_lines(self._found), head
