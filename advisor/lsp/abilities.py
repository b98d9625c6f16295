"""What the editor at the other end can do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lsprotocol import types
from pygls.capabilities import get_capability

from advisor.config.find import FILE_NAME
from advisor.frontend.beside import SUFFIXES
from advisor.lsp.positions import Encoding
from advisor.lsp.settings import SECTION


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
