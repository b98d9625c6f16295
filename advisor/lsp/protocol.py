"""The library's protocol, with documents of our own instead of its own; see `document`."""

from __future__ import annotations

from typing import Protocol

from lsprotocol import types
from pygls.protocol import LanguageServerProtocol, lsp_method


class Documents(Protocol):
    """What follows the user's typing."""

    def opened(self, params: types.DidOpenTextDocumentParams) -> None:
        """Take in a file."""

    def changed(self, params: types.DidChangeTextDocumentParams) -> None:
        """Carry out changes, in the order given."""

    def closed(self, params: types.DidCloseTextDocumentParams) -> None:
        """Forget a file."""


class AdviseProtocol(LanguageServerProtocol):
    """Hands every change to `documents` before anybody else touches it."""

    documents: Documents

    @lsp_method(types.TEXT_DOCUMENT_DID_OPEN)
    def lsp_text_document__did_open(self, params: types.DidOpenTextDocumentParams) -> None:
        """Open a file."""
        self.documents.opened(params)

    @lsp_method(types.TEXT_DOCUMENT_DID_CHANGE)
    def lsp_text_document__did_change(self, params: types.DidChangeTextDocumentParams) -> None:
        """Change a file."""
        self.documents.changed(params)

    @lsp_method(types.TEXT_DOCUMENT_DID_CLOSE)
    def lsp_text_document__did_close(self, params: types.DidCloseTextDocumentParams) -> None:
        """Close a file."""
        self.documents.closed(params)
