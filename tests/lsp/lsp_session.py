"""A client for the real server, run as an editor runs it, or beside the tests.

A process takes longer to start than most tests take to ask what they ask of it. So one is started
only where it is what a test is about.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from threading import Thread
from typing import Any

from lsprotocol import types
from pytest_lsp import LanguageClient, make_test_lsp_client

from advisor.lsp.protocol import Settings
from advisor.lsp.server import AdviseServer

URI = "file:///kernels/smooth.py"
COMMAND = (sys.executable, "-m", "advisor", "lsp")
PATIENCE_S = 60.0

KERNEL = """\
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from advisor import Block, Dist, Mesh, kernel

ranks = Mesh(rank=17)  # a prime number, and so no other mesh


@kernel(N=1000)
def smooth(
    field: Annotated[NDArray[np.float64], Dist("N", "N", None, Block("rank"), on=ranks)],
) -> NDArray[np.float64]:
    above = field.copy()
    above[:, 1:] = field[:, :-1]
    return above
"""
CODE = "ADV101"


def capabilities(
    *,
    pull: bool = False,
    encodings: tuple[str, ...] = (),
    configuration: bool = True,
    watches: bool = False,
) -> types.ClientCapabilities:
    """Capabilities as VS Code declares them; without pull diagnostics as older editors do."""
    resolve = types.ClientCodeActionResolveOptions(properties=["edit"])
    return types.ClientCapabilities(
        general=types.GeneralClientCapabilities(position_encodings=list(encodings) or None),
        workspace=types.WorkspaceClientCapabilities(
            configuration=configuration,
            did_change_watched_files=types.DidChangeWatchedFilesClientCapabilities(
                dynamic_registration=watches
            ),
            did_change_configuration=types.DidChangeConfigurationClientCapabilities(
                dynamic_registration=configuration
            ),
            workspace_edit=types.WorkspaceEditClientCapabilities(document_changes=True),
            diagnostics=types.DiagnosticWorkspaceClientCapabilities(refresh_support=pull),
        ),
        text_document=types.TextDocumentClientCapabilities(
            diagnostic=types.DiagnosticClientCapabilities() if pull else None,
            hover=types.HoverClientCapabilities(
                content_format=[types.MarkupKind.Markdown, types.MarkupKind.PlainText]
            ),
            code_action=types.CodeActionClientCapabilities(
                data_support=True,
                resolve_support=resolve,
            ),
        ),
    )


def changed(
    text: str, start: types.Position | None = None, end: types.Position | None = None
) -> types.TextDocumentContentChangeEvent:
    """Return a change of what lies between two positions; without them, of all of a text."""
    if start is None or end is None:
        return types.TextDocumentContentChangeWholeDocument(text)
    return types.TextDocumentContentChangePartial(types.Range(start, end), text)


class Session:
    """One file in one editor."""

    def __init__(
        self, client: LanguageClient, started: types.InitializeResult, registered: list[str]
    ) -> None:
        self.registered = registered
        self.client = client
        self.started = started
        self.published: list[types.PublishDiagnosticsParams] = []
        self.news = asyncio.Event()
        self.text = ""
        self.version = 0

    def on_published(self, params: types.PublishDiagnosticsParams) -> None:
        self.published.append(params)
        self.news.set()

    def open(self, text: str = KERNEL, uri: str = URI) -> None:
        self.version += 1
        self.text = text
        item = types.TextDocumentItem(uri, "python", self.version, text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))

    def close(self, uri: str = URI) -> None:
        identifier = types.TextDocumentIdentifier(uri)
        self.client.text_document_did_close(types.DidCloseTextDocumentParams(identifier))

    def replace(self, old: str, new: str) -> None:
        """Change the first occurrence of `old`; for ASCII texts, where columns are code points."""
        offset = self.text.index(old)
        changed = types.Range(self.position(offset), self.position(offset + len(old)))
        self.text = self.text[:offset] + new + self.text[offset + len(old) :]
        self.change(types.TextDocumentContentChangePartial(changed, new))

    def save(self, uri: str = URI) -> None:
        identifier = types.TextDocumentIdentifier(uri)
        self.client.text_document_did_save(types.DidSaveTextDocumentParams(identifier))

    def on_disk(self, *uris: str) -> None:
        """Tell of files that changed on disk, as an editor that watches them does."""
        changes = [types.FileEvent(uri, types.FileChangeType.Changed) for uri in uris]
        self.client.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams(changes))

    def change(self, *changes: types.TextDocumentContentChangeEvent, uri: str = URI) -> None:
        self.version += 1
        identifier = types.VersionedTextDocumentIdentifier(self.version, uri)
        self.client.text_document_did_change(
            types.DidChangeTextDocumentParams(identifier, list(changes))
        )

    def position(self, offset: int) -> types.Position:
        before = self.text[:offset]
        line = before.count("\n")
        return types.Position(line, offset - (before.rfind("\n") + 1))

    async def pushed(self, uri: str = URI) -> list[types.Diagnostic]:
        """Wait for the diagnostics of the newest version."""
        return await self.first(lambda one: one.uri == uri and one.version == self.version)

    async def first(
        self, wanted: Callable[[types.PublishDiagnosticsParams], bool]
    ) -> list[types.Diagnostic]:
        """Wait for diagnostics of which something holds."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                for params in self.published:
                    if wanted(params):
                        return list(params.diagnostics)
                self.news.clear()
                await self.news.wait()

    async def asked(
        self, previous: str | None = None, uri: str = URI
    ) -> types.RelatedFullDocumentDiagnosticReport:
        """Ask for diagnostics that are not those of before."""
        report = await self.pulled(previous, uri)
        assert isinstance(report, types.RelatedFullDocumentDiagnosticReport)
        return report

    async def pulled(
        self, previous: str | None = None, uri: str = URI
    ) -> types.RelatedFullDocumentDiagnosticReport | types.RelatedUnchangedDocumentDiagnosticReport:
        async with asyncio.timeout(PATIENCE_S):
            return await self.client.text_document_diagnostic_async(
                types.DocumentDiagnosticParams(
                    types.TextDocumentIdentifier(uri), previous_result_id=previous
                )
            )

    async def hover(self, line: int, character: int) -> types.Hover | None:
        return await self.client.text_document_hover_async(
            types.HoverParams(types.TextDocumentIdentifier(URI), types.Position(line, character))
        )

    async def hovered(self, line: int, character: int) -> str:
        shown = await self.hover(line, character)
        assert shown is not None and isinstance(shown.contents, types.MarkupContent)
        assert shown.contents.kind is types.MarkupKind.Markdown
        return shown.contents.value

    async def actions(
        self, wanted: types.Range, only: list[str] | None = None
    ) -> list[types.CodeAction]:
        given = await self.client.text_document_code_action_async(
            types.CodeActionParams(
                types.TextDocumentIdentifier(URI), wanted, types.CodeActionContext([], only)
            )
        )
        return [action for action in given or () if isinstance(action, types.CodeAction)]

    async def command(self, name: str, *arguments: Any) -> Any:
        return await self.client.workspace_execute_command_async(
            types.ExecuteCommandParams(name, list(arguments))
        )

    def applied(self, edit: types.WorkspaceEdit) -> str:
        """The text with an edit carried out; for ASCII texts."""
        assert edit.document_changes is not None
        (change,) = edit.document_changes
        assert isinstance(change, types.TextDocumentEdit)
        assert change.text_document.version == self.version
        lines = self.text.splitlines(keepends=True)
        text = self.text
        starts = [sum(map(len, lines[:n])) for n in range(len(lines) + 1)]
        for one in sorted(change.edits, key=lambda e: e.range.start, reverse=True):
            start = starts[one.range.start.line] + one.range.start.character
            end = starts[one.range.end.line] + one.range.end.character
            text = text[:start] + one.new_text + text[end:]
        return text


def serve_one(listening: socket.socket, machine: str | None) -> None:
    """Serve who connects first, as the process does on its standard streams."""
    with listening, listening.accept()[0] as connection, suppress(SystemExit):
        streams = (connection.makefile("rb"), connection.makefile("wb"))
        AdviseServer("0", Settings(machine=machine)).start_io(*streams)


@asynccontextmanager
async def session(
    client_capabilities: types.ClientCapabilities,
    *,
    settings: dict[str, Any] | None = None,
    options: Any = None,
    machine: str | None = "sp2",
    command: tuple[str, ...] = (),
) -> AsyncIterator[Session]:
    """Start a server, agree on capabilities, and end it as the protocol asks.

    With a command, it is a process of its own.
    """
    client = make_test_lsp_client()
    client.set_configuration({"advise": {"minSpeedup": 1.01, **(settings or {})}})
    beside = None
    if command:
        environment = {
            name: value
            for name, value in os.environ.items()
            if name == "ADVISE_DATA_DIR" or not name.startswith("ADVISE_")
        }
        arguments = ("--machine", machine) if machine else ()
        await client.start_io(*command, *arguments, env=environment)
    else:
        listening = socket.create_server(("127.0.0.1", 0))
        beside = Thread(target=serve_one, args=(listening, machine), daemon=True)
        beside.start()
        await client.start_tcp(*listening.getsockname())
    registered: list[str] = []

    @client.feature(types.CLIENT_REGISTER_CAPABILITY)
    def register(params: types.RegistrationParams) -> None:
        registered.extend(one.method for one in params.registrations)

    try:
        started = await client.initialize_session(
            types.InitializeParams(capabilities=client_capabilities, initialization_options=options)
        )
        one = Session(client, started, registered)
        client.protocol.fm.features.pop(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS, None)
        client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(partial(one.on_published))
        yield one
        await client.shutdown_session()
    finally:
        process = client._server
        if process is not None and process.returncode is None:
            process.kill()  # after a failure; else it has ended by now
        if beside is not None:
            client.protocol.writer.close()
            await asyncio.to_thread(beside.join, PATIENCE_S)
            assert not beside.is_alive()
        await client.stop()
