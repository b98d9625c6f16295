"""What the editor at the other end can do."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from inspect import cleandoc
from pathlib import Path
from typing import Protocol

from lsprotocol import types
from pygls.capabilities import get_capability
from pygls.protocol import LanguageServerProtocol, lsp_method

from advisor.config.find import FILE_NAME
from advisor.frontend.syntax.prefilter import SUFFIXES
from advisor.lsp.document import Encoding
from advisor.lsp.settings import SECTION

# Pages of the rules as files, for the link on a diagnostic.
#
# They are written from the rules that are installed, so they need no network, fit this version,
# and exist for rules of other packages too.

_log = logging.getLogger(__name__)


@cache
def rule_pages() -> Mapping[str, str]:
    """Return a ``file:`` URI for each code; empty where no file can be written."""
    from platformdirs import user_cache_dir

    return write_pages(Path(user_cache_dir("kernel-advisor", appauthor=False)) / "rules")


def write_pages(folder: Path) -> Mapping[str, str]:
    """Write the page of every rule to a folder and return their URIs by code."""
    from advisor.files import replace_file
    from advisor.transform_registry import rules

    pages: dict[str, str] = {}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for rule in rules():
            text = cleandoc(rule.documentation).strip() + "\n"
            if not text.startswith("# "):
                text = f"# {rule.code} {rule.name}\n\n{text}"
            path = folder / f"{rule.code}.md"
            data = text.encode()
            if not (path.is_file() and path.read_bytes() == data):
                replace_file(str(path), data)
            pages[rule.code] = path.resolve().as_uri()
    except (OSError, LookupError) as error:
        _log.warning("no rule pages: %s", error)
    return pages


# The library's protocol, with documents of our own instead of its own; see `document`.


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


@dataclass(frozen=True, slots=True)
class Abilities:
    """The editor's capabilities, as far as they matter here.

    Attributes
    ----------
    pulls : bool
        It asks for diagnostics; then none are pushed.
    refreshes, refreshes_hints : bool
        It can be told to ask again.
    versions_diagnostics, links_codes : bool
        It knows these parts of a diagnostic.
    markdown : bool
        In hovers.
    literal_actions, resolves_edits, prefers : bool
        It takes code actions that are no commands, asks for their edits later, marks the best.
    versioned_edits : bool
        It refuses edits of a text that has changed.
    has_configuration, registers_configuration : bool
        It can be asked for settings, and says when they change.
    watches_files : bool
        It says when files change.
    """

    pulls: bool = False
    refreshes: bool = False
    refreshes_hints: bool = False
    versions_diagnostics: bool = False
    links_codes: bool = False
    markdown: bool = False
    literal_actions: bool = False
    resolves_edits: bool = False
    prefers: bool = False
    versioned_edits: bool = False
    has_configuration: bool = False
    registers_configuration: bool = False
    watches_files: bool = False


def abilities_of(client: types.ClientCapabilities) -> Abilities:
    """Read the capabilities that an editor declares."""

    def has(name: str) -> bool:
        return bool(get_capability(client, name, False))

    pull = get_capability(client, "text_document.diagnostic", None)
    publish = (
        "text_document.diagnostic" if pull is not None else "text_document.publish_diagnostics"
    )
    formats = get_capability(client, "text_document.hover.content_format", None) or ()
    resolved = get_capability(client, "text_document.code_action.resolve_support.properties", None)
    literals = get_capability(client, "text_document.code_action.code_action_literal_support", None)
    return Abilities(
        pulls=pull is not None,
        refreshes=has("workspace.diagnostics.refresh_support"),
        refreshes_hints=has("workspace.inlay_hint.refresh_support"),
        versions_diagnostics=has("text_document.publish_diagnostics.version_support"),
        links_codes=has(f"{publish}.code_description_support"),
        markdown=types.MarkupKind.Markdown in formats,
        literal_actions=literals is not None,
        resolves_edits="edit" in (resolved or ()) and has("text_document.code_action.data_support"),
        prefers=has("text_document.code_action.is_preferred_support"),
        versioned_edits=has("workspace.workspace_edit.document_changes"),
        has_configuration=has("workspace.configuration"),
        watches_files=has("workspace.did_change_watched_files.dynamic_registration"),
        registers_configuration=has("workspace.did_change_configuration.dynamic_registration"),
    )


def encoding_of(name: str | None) -> Encoding:
    """Return the encoding of columns that was agreed on; without an agreement UTF-16."""
    return Encoding(name) if name else Encoding.UTF16


def registrations_of(abilities: Abilities) -> Iterator[types.Registration]:
    """Return what the server asks an editor to be told of."""
    if abilities.registers_configuration:
        yield types.Registration(
            id="settings",
            method=types.WORKSPACE_DID_CHANGE_CONFIGURATION,
            register_options={"section": SECTION},
        )
    if abilities.watches_files:
        names = (FILE_NAME, *(f"*{suffix}" for suffix in SUFFIXES))
        watchers = [types.FileSystemWatcher(f"**/{name}") for name in names]
        yield types.Registration(
            id="files",
            method=types.WORKSPACE_DID_CHANGE_WATCHED_FILES,
            register_options=types.DidChangeWatchedFilesRegistrationOptions(watchers),
        )
