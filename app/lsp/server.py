"""The language server: the requests of an editor, connected to `Answers` by pygls."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from importlib.metadata import version
from typing import Any, Final

from .answers import Answers
from .looking import Document, Looker

__all__ = ["COMMANDS", "serve"]

# Untyped: the packages are optional.
types: Any = import_module("lsprotocol.types")
_servers: Any = import_module("pygls.lsp.server")
_uris: Any = import_module("pygls.uris")
_errors: Any = import_module("pygls.exceptions")

COMMANDS: Final = ("qd-studio.look", "qd-studio.cancel", "qd-studio.measure")
"""Look again with launches; give up what is in work; measure the speed of the machine."""
_REFRESH_S: Final = 0.03
"""Seconds in which changes are gathered before an editor is asked to fetch hints again."""


class _Server:
    """The features of one connection."""

    def __init__(self, settings: Mapping[str, Any], launch: bool, unsaved: str) -> None:
        self.lsp: Any = _servers.LanguageServer("qd-studio", version("qd-studio"))
        self._settings = settings
        self._launch, self._unsaved = launch, unsaved
        self._looker: Looker | None = None
        self._answers: Answers | None = None
        self._published: set[str] = set()
        self._stopped = False
        self._refresh: asyncio.TimerHandle | None = None
        self._report: Final = self.lsp.report_server_error
        self.lsp.report_server_error = self._report_error
        for name, handler in self._features():
            self.lsp.feature(getattr(types, name))(_safe(handler))
        for name in COMMANDS:
            self.lsp.command(name)(_safe(self._command(name)))
        self.lsp.feature(types.TEXT_DOCUMENT_CODE_ACTION)(_safe(self._code_actions))

    def _features(self) -> Iterator[tuple[str, Callable[..., Any]]]:
        yield "TEXT_DOCUMENT_DID_OPEN", self._opened
        yield "TEXT_DOCUMENT_DID_CHANGE", self._edited
        yield "TEXT_DOCUMENT_DID_SAVE", self._saved
        yield "TEXT_DOCUMENT_DID_CLOSE", self._closed
        yield "TEXT_DOCUMENT_HOVER", self._hover
        yield "TEXT_DOCUMENT_INLAY_HINT", self._inlay_hints
        yield "TEXT_DOCUMENT_DEFINITION", self._definition
        yield "TEXT_DOCUMENT_IMPLEMENTATION", self._definition
        yield "SHUTDOWN", self._shutdown

    # ---- texts

    @property
    def looker(self) -> Looker:
        """The worker's side, made with the first text: it needs the running loop."""
        if self._looker is None:
            self._looker = Looker(
                self._settings, self._changed, launch=self._launch, unsaved=self._unsaved
            )
            self._answers = Answers(self._looker, self._encoding())
        folders = (folder.uri for folder in self.lsp.workspace.folders.values())
        self._looker.folders = tuple(filter(None, map(_path, folders)))
        return self._looker

    @property
    def answers(self) -> Answers:
        """The knowledge, by positions of the editor."""
        _ = self.looker
        assert self._answers is not None
        return self._answers

    def _encoding(self) -> str:
        found = self.lsp.workspace.position_encoding
        return str(getattr(found, "value", found) or "utf-16").lower()

    def _text(self, uri: str) -> str:
        return self.lsp.workspace.get_text_document(uri).source

    def _opened(self, params: Any) -> None:
        item = params.text_document
        path = _path(item.uri)
        if path:
            self.looker.open(Document(item.uri, path, item.text, item.version))

    def _edited(self, params: Any) -> None:
        item = params.text_document
        path = _path(item.uri)
        if path:
            self.looker.change(path, self._text(item.uri), item.version)

    def _saved(self, params: Any) -> None:
        uri = params.text_document.uri
        path = _path(uri)
        if path:
            self.looker.save(path, self._text(uri))

    def _closed(self, params: Any) -> None:
        path = _path(params.text_document.uri)
        if path:
            self.looker.close(path)

    def _shutdown(self, params: Any) -> None:
        self.stop()

    def stop(self) -> None:
        """End the worker, send nothing more by itself, and remove the listings."""
        self._stopped = True
        if self._refresh is not None:
            self._refresh.cancel()
        if self._looker is not None:
            self._looker.stop()
        if self._answers is not None:
            self._answers.listings.close()

    # ---- what the server sends by itself

    def _report_error(self, error: Exception, source: Any) -> None:
        """Show an error to the person, unless it was in sending: to send that would fail, too, and
        be reported, and so on."""
        if source is not _errors.JsonRpcInternalError:
            self._report(error, source)

    def _changed(self, errors: bool) -> None:
        if self._stopped:
            return
        if errors:
            self._publish()
        if self._refresh is None:
            loop = asyncio.get_running_loop()
            self._refresh = loop.call_later(_REFRESH_S, self._refresh_hints)

    def _publish(self) -> None:
        """Send the errors of every file that has some, or had, or is followed."""
        by_file = self.answers.diagnostics()
        for file in sorted({*by_file, *self._published, *self.looker.followed}):
            document = self.looker.documents.get(file)
            uri = _uris.from_fs_path(file) if document is None else document.uri
            items = [self._diagnostic(each) for each in by_file.get(file, ())]
            version = None if document is None else document.version
            params = types.PublishDiagnosticsParams(uri=uri, diagnostics=items, version=version)
            self.lsp.text_document_publish_diagnostics(params)
        self._published = {file for file, items in by_file.items() if items}

    def _diagnostic(self, found: Any) -> Any:
        severity = types.DiagnosticSeverity
        severities = {"error": severity.Error, "warning": severity.Warning}
        related = [
            types.DiagnosticRelatedInformation(
                location=types.Location(uri=_uris.from_fs_path(file), range=_range(span)),
                message=text,
            )
            for file, span, text in found.related
        ]
        return types.Diagnostic(
            range=_range(found.range),
            message=found.message,
            severity=severities.get(found.severity, severity.Hint),
            code=found.kind,
            source="qd-studio",
            related_information=related or None,
        )

    def _refresh_hints(self) -> None:
        """Ask the editor to fetch inlay hints again, if it can be asked."""
        self._refresh = None
        with contextlib.suppress(AttributeError):
            if self.lsp.client_capabilities.workspace.inlay_hint.refresh_support:
                self.lsp.workspace_inlay_hint_refresh(None)

    # ---- requests

    def _hover(self, params: Any) -> Any:
        path, at = _path(params.text_document.uri), params.position
        found = self.answers.hover(path, at.line, at.character) if path else None
        if found is None:
            return None
        content = types.MarkupContent(kind=types.MarkupKind.Markdown, value=found[1])
        return types.Hover(contents=content, range=_range(found[0]))

    def _inlay_hints(self, params: Any) -> Any:
        path = _path(params.text_document.uri)
        first, last = params.range.start.line, params.range.end.line
        return [
            types.InlayHint(
                position=types.Position(line=line, character=column),
                label=text, padding_left=True,
                tooltip=types.MarkupContent(kind=types.MarkupKind.Markdown, value=tip),
            )
            for line, column, text, tip in (self.answers.hints(path) if path else ())
            if first <= line <= last
        ]  # fmt: skip

    def _code_actions(self, params: Any) -> Any:
        uri = params.text_document.uri
        path = _path(uri)
        if not path:
            return []
        first, last = params.range.start.line, params.range.end.line
        out: list[Any] = []
        for title, span, text, of in self.answers.fixes(path, first, last):
            edit = types.TextEdit(range=_range(span), new_text=text)
            out.append(
                types.CodeAction(
                    title=title,
                    kind=types.CodeActionKind.QuickFix,
                    diagnostics=[self._diagnostic(of)] if of is not None else None,
                    edit=types.WorkspaceEdit(changes={uri: [edit]}),
                )
            )
        return out

    def _definition(self, params: Any) -> Any:
        path, at = _path(params.text_document.uri), params.position
        found = self.answers.definition(path, at.line, at.character) if path else []
        return [
            types.Location(uri=_uris.from_fs_path(file), range=_range(span)) for file, span in found
        ]

    def _command(self, name: str) -> Callable[..., Any]:
        def run(*_: Any) -> None:
            looker = self.looker
            {COMMANDS[0]: looker.again, COMMANDS[1]: looker.cancel, COMMANDS[2]: looker.measure}[
                name
            ]()

        return run


def _safe(handler: Callable[..., Any]) -> Callable[..., Any]:
    """A function for pygls, which looks at the names of parameters and sets attributes."""

    def handle(ls: Any, *params: Any) -> Any:
        return handler(*params)

    return handle


def _path(uri: str) -> str:
    """The path of a URI; empty for what is not a file."""
    if not uri.startswith("file:"):
        return ""
    with contextlib.suppress(ValueError):
        found = _uris.to_fs_path(uri)
        return os.path.abspath(found) if found and "\0" not in found else ""
    return ""


def _range(span: tuple[int, int, int, int]) -> Any:
    line, col, end_line, end_col = span
    return types.Range(
        start=types.Position(line=line, character=col),
        end=types.Position(line=end_line, character=end_col),
    )


def serve(settings: Mapping[str, Any], *, launch: bool = True, unsaved: str = "kernels") -> None:
    """Serve one editor, until it ends or says so."""
    server = _Server(settings, launch, unsaved)
    try:
        server.lsp.start_io()
    finally:
        server.stop()
