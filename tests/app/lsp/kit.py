"""An editor for tests of the language server: the client of pygls."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

from lsprotocol import types
from pygls.lsp.client import LanguageClient

# Long enough for any machine: a test that waits this long fails, none measures.
LONG_S = 60.0


class Editor:
    """Starts ``qd-studio lsp`` and holds what it sends. encoding: of positions. name: of an editor
    that pytest-lsp knows, whose capabilities are stated in place of the few that tests need."""

    def __init__(
        self, folder: Path, *arguments: str, encoding: str = "utf-16", name: str = ""
    ) -> None:
        self.folder = folder
        self.diagnostics: dict[str, list] = {}
        self.complaints: list[str] = []
        self.versions: dict[str, int] = {}
        self._arguments = arguments
        self._encoding = encoding
        self._name = name
        self._news = asyncio.Event()
        self.client = LanguageClient("tests", "1")
        self.client.feature("textDocument/publishDiagnostics")(self._published())
        for name in ("window/logMessage", "window/showMessage"):
            self.client.feature(name)(self._said())
        self.client.feature("workspace/inlayHint/refresh")(self._refreshed())

    async def __aenter__(self) -> Editor:
        command = ("-P", "-m", "qd_studio.app.cli", "lsp", *self._arguments)
        await self.client.start_io(sys.executable, *command)
        self.answer = await self.client.initialize_async(
            types.InitializeParams(
                capabilities=self._capabilities(),
                workspace_folders=[types.WorkspaceFolder(uri=self.folder.as_uri(), name="tests")],
            )
        )
        self.client.initialized(types.InitializedParams())
        return self

    def _capabilities(self) -> types.ClientCapabilities:
        if self._name:
            from pytest_lsp import client_capabilities

            return client_capabilities(self._name)
        workspace = types.WorkspaceClientCapabilities(
            inlay_hint=types.InlayHintWorkspaceClientCapabilities(refresh_support=True)
        )
        general = types.GeneralClientCapabilities(position_encodings=[self._encoding])
        return types.ClientCapabilities(workspace=workspace, general=general)

    async def __aexit__(self, *_) -> None:
        await asyncio.wait_for(self.client.shutdown_async(None), LONG_S)
        self.client.exit(None)
        await asyncio.wait_for(self.client.stop(), LONG_S)

    def _published(self):
        def handle(*received):
            params = received[-1]
            self.diagnostics[params.uri] = params.diagnostics
            self._news.set()

        return handle

    def _said(self):
        def handle(*received):
            self.complaints.append(received[-1].message)

        return handle

    def _refreshed(self):
        def handle(*received):
            self._news.set()

        return handle

    # ---- texts

    def open(self, path: Path) -> None:
        item = types.TextDocumentItem(path.as_uri(), "python", 1, path.read_text())
        self.versions[path.as_uri()] = 1
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))

    def change(self, path: Path, *changes) -> None:
        """Whole texts, or incremental changes."""
        uri = path.as_uri()
        self.versions[uri] += 1
        whole = types.TextDocumentContentChangeWholeDocument
        self.client.text_document_did_change(
            types.DidChangeTextDocumentParams(
                types.VersionedTextDocumentIdentifier(self.versions[uri], uri),
                [whole(change) if isinstance(change, str) else change for change in changes],
            )
        )

    def save(self, path: Path, text: str | None = None) -> None:
        """Save what the editor holds, which is ``text``."""
        if text is not None:
            path.write_text(text)
        of = types.TextDocumentIdentifier(path.as_uri())
        self.client.text_document_did_save(types.DidSaveTextDocumentParams(of))

    def close(self, path: Path) -> None:
        of = types.TextDocumentIdentifier(path.as_uri())
        self.client.text_document_did_close(types.DidCloseTextDocumentParams(of))

    # ---- requests

    async def until(self, wanted):
        """The first true result of ``wanted()``, a function that may await."""
        end = time.monotonic() + LONG_S
        while time.monotonic() < end:
            self._news.clear()
            found = wanted()
            found = await found if asyncio.iscoroutine(found) else found
            if found:
                return found
            try:
                await asyncio.wait_for(self._news.wait(), 1.0)
            except TimeoutError:
                continue
        raise AssertionError(f"{self.diagnostics}\n{self.complaints}")

    def errors(self, path: Path):
        """(line, column, end column, message) of each error."""
        return [
            (d.range.start.line, d.range.start.character, d.range.end.character, d.message)
            for d in self.diagnostics.get(path.as_uri(), ())
        ]

    async def hover(self, path: Path, line: int, column: int) -> str:
        at = types.Position(line, column)
        of = types.TextDocumentIdentifier(path.as_uri())
        found = await self.client.text_document_hover_async(types.HoverParams(of, at))
        return found.contents.value if found else ""

    async def hints(self, path: Path) -> dict[int, str]:
        everything = types.Range(types.Position(0, 0), types.Position(1 << 20, 0))
        of = types.TextDocumentIdentifier(path.as_uri())
        found = await self.client.text_document_inlay_hint_async(
            types.InlayHintParams(of, everything)
        )
        return {hint.position.line: hint.label for hint in found or ()}

    async def actions(self, path: Path, line: int) -> dict[str, list]:
        span = types.Range(types.Position(line, 0), types.Position(line, 0))
        of = types.TextDocumentIdentifier(path.as_uri())
        found = await self.client.text_document_code_action_async(
            types.CodeActionParams(of, span, types.CodeActionContext([]))
        )
        return {action.title: action.edit.changes[path.as_uri()] for action in found or ()}

    async def definition(self, path: Path, line: int, column: int) -> list:
        at = types.Position(line, column)
        of = types.TextDocumentIdentifier(path.as_uri())
        return await self.client.text_document_definition_async(types.DefinitionParams(of, at))
