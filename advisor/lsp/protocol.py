"""Findings as the protocol's objects."""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.capabilities import get_capability
from pygls.protocol import LanguageServerProtocol, lsp_method

from advisor.config.files import FILE_NAME
from advisor.finding import Applicability, Finding, Remark, Verdict
from advisor.lsp.analyses import Answer, Offer, Purpose
from advisor.lsp.document import Document, Encoding
from advisor.lsp.settings import SECTION
from advisor.report.model import headline
from advisor.report.style import duration
from advisor.source import Edit, SourceProblem, newline_of
from costdb.records import dataclass

MEASURE = "advise.measure"
"""The command that times a kernel."""

# Inlay hints: what a line costs, behind its end.


@dataclass(frozen=True, slots=True)
class Hint:
    """Text behind the end of a line, counted from 1."""

    line: int
    label: str
    tooltip: str


def hints(findings: Iterable[Finding], first_line: int, last_line: int) -> tuple[Hint, ...]:
    """Return one hint for each line that a finding starts on, within the lines asked for.

    Of several findings on a line the one that saves most speaks.
    """
    best: dict[int, Finding] = {}
    for finding in findings:
        line = finding.span.start_line
        known = best.get(line)
        if first_line <= line <= last_line and (known is None or finding.order < known.order):
            best[line] = finding
    return tuple(Hint(line, _label(best[line]), headline(best[line])) for line in sorted(best))


def _label(finding: Finding) -> str:
    """Return the predicted time of the kernel and its largest part: ``~ 3.1 ms, 78 % start-up``."""
    if finding.condition is not None:
        return f"~ faster for {finding.condition.text}"
    assert finding.prediction is not None
    time = finding.prediction.before_s
    parts = [(term.before_s, term.label) for term in finding.evidence.terms if term.before_s]
    label = f"~ {duration(time)}"
    if time > 0 and parts:
        part, name = max(parts)
        label += f", {min(100.0, 100 * part / time):.0f} % {name}"
    return label


# What the editor shows over a finding: all that it rests on, as Markdown that shows text as it is.

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~$])")


def plain(text: str) -> str:
    """Return `text` so that Markdown shows it on one line as it is."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


_FIXES = {
    Applicability.SAFE: "safe edit",
    Applicability.UNSAFE: "unsafe edit",
    Applicability.DISPLAY: "to be done by hand",
}


def hover_markdown(findings: Iterable[Finding], *, current: bool) -> str:
    """Return the hover text of findings at one place.

    Parameters
    ----------
    findings : iterable of Finding
    current : bool
        False when they are about an earlier text, because the present one does not parse.
    """
    texts = ["\n\n".join(_paragraphs(finding)) for finding in findings]
    if not current:
        texts.append("*As predicted before the last edits: the file cannot be read as it is.*")
    return "\n\n---\n\n".join(texts)


def _paragraphs(finding: Finding) -> Iterator[str]:
    from advisor.report.explanation import sections, times_of

    yield f"**{plain(headline(finding))}**"
    yield f"{finding.code} {plain(finding.name)}, kernel {plain(finding.kernel)}"
    heads, rows = times_of(finding)
    if rows:
        cells = (heads, [":--", "--:", "--:", ":--"], *(map(plain, row) for row in rows))
        yield "\n".join(f"| {' | '.join(row)} |" for row in cells)
    for label, texts in sections(finding):
        told = [plain(text) for text in texts if text]
        if told:
            if label == "fix" and finding.fix is not None:
                label = _FIXES[finding.fix.applicability]
            several = "\n- ".join(["", *told])
            yield f"**{label.capitalize()}** {told[0] if len(told) == 1 else several}"
    yield f"**Least certain number** {plain(finding.evidence.provenance)}"


def hover_plain(findings: Iterable[Finding], *, current: bool) -> str:
    """Return the same for an editor that shows no Markdown."""
    from advisor.report.full import block
    from advisor.report.style import Style

    blocks = "\n\n".join("\n".join(block(one, None, Style())) for one in findings)
    return blocks if current else f"{blocks}\n\n(as predicted before the last edits)"


SOURCE = "advise"


def diagnostics(
    document: Document, answer: Answer, pages: Mapping[str, str]
) -> list[types.Diagnostic]:
    """Return an answer as diagnostics."""
    found = [diagnostic(document, finding, pages) for finding in answer.findings]
    found += [_of_remark(document, remark) for remark in answer.said.remarks]
    # that a text is no Python is said by other tools
    if answer.said.problem is not None and not answer.said.half_typed:
        found.append(_of_problem(document, answer.said.problem))
    return found


_SEVERITIES = {
    Verdict.GAIN: types.DiagnosticSeverity.Warning,
    Verdict.UNCERTAIN: types.DiagnosticSeverity.Information,
    Verdict.PLAN: types.DiagnosticSeverity.Hint,
}


def diagnostic(document: Document, finding: Finding, pages: Mapping[str, str]) -> types.Diagnostic:
    """Return a finding as a diagnostic; its message starts with its class and the gain."""
    href = pages.get(finding.code)
    about = types.CodeDescription(href) if href else None
    place, severity = document.range_of(finding.span), _SEVERITIES[finding.verdict]
    return types.Diagnostic(place, headline(finding), severity, finding.code, about, source=SOURCE)


def overlapping(
    document: Document, findings: Iterable[Finding], wanted: types.Range
) -> tuple[Finding, ...]:
    """Return the findings that a range of the editor touches."""
    start = document.place(wanted.start)
    end = document.place(wanted.end)
    return tuple(
        finding for finding in findings if finding.span.start <= end and start <= finding.span.end
    )


def code_action(document: Document, offer: Offer, pages: Mapping[str, str]) -> types.CodeAction:
    """Return an offer as an action: a command, or an edit that is still to be resolved."""
    finding = offer.finding
    if offer.purpose is Purpose.MEASURE:
        command = types.Command(offer.title, MEASURE, arguments=[document.uri, finding.kernel])
        return types.CodeAction(title=offer.title, kind=offer.kind, command=command)
    return types.CodeAction(
        title=offer.title,
        kind=offer.kind,
        diagnostics=[diagnostic(document, finding, pages)],
        is_preferred=True if offer.preferred else None,
        data={
            "uri": document.uri,
            "version": document.version,
            "purpose": str(offer.purpose),
            "code": finding.code,
            "fingerprint": finding.fingerprint,
            "line": finding.span.start_line,
        },
    )


def asked_finding(findings: Iterable[Finding], data: Mapping[str, Any]) -> Finding | None:
    """Return the finding that the data of an action names."""
    for finding in findings:
        named = (finding.code, finding.fingerprint, finding.span.start_line)
        if named == (data.get("code"), data.get("fingerprint"), data.get("line")):
            return finding
    return None


def workspace_edit(
    document: Document, edits: Sequence[Edit], versioned: bool
) -> types.WorkspaceEdit:
    """Return edits of a file; with its version where the editor can check it."""
    newline = newline_of(document.text)
    texts = [
        types.TextEdit(document.range_of(edit.span), edit.replacement.replace("\n", newline))
        for edit in edits
    ]
    if not versioned:
        return types.WorkspaceEdit(changes={document.uri: texts})
    identifier = types.OptionalVersionedTextDocumentIdentifier(
        uri=document.uri, version=document.version
    )
    return types.WorkspaceEdit(
        document_changes=[types.TextDocumentEdit(text_document=identifier, edits=texts)]
    )


def hover(
    document: Document, findings: Sequence[Finding], *, current: bool, markdown: bool
) -> types.Hover:
    """Return what is shown of findings at a place, in the form that the editor takes."""
    if markdown:
        kind, text = types.MarkupKind.Markdown, hover_markdown(findings, current=current)
    else:
        kind, text = types.MarkupKind.PlainText, hover_plain(findings, current=current)
    return types.Hover(types.MarkupContent(kind, text), document.range_of(findings[0].span))


def inlay_hint(document: Document, hint: Hint) -> types.InlayHint:
    """Return a hint behind the end of its line."""
    return types.InlayHint(
        position=document.end_of_line(hint.line),
        label=hint.label,
        tooltip=hint.tooltip,
        padding_left=True,
    )


def _of_remark(document: Document, remark: Remark) -> types.Diagnostic:
    place = document.range_of(remark.span)
    return types.Diagnostic(place, remark.message, types.DiagnosticSeverity.Hint, source=SOURCE)


def _of_problem(document: Document, problem: SourceProblem) -> types.Diagnostic:
    start = document.position(problem.line, problem.column)
    end = document.end_of_line(start.line + 1)
    severity = types.DiagnosticSeverity.Information
    return types.Diagnostic(types.Range(start, end), problem.message, severity, source=SOURCE)


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
    from advisor.report.model import page
    from advisor.transform_registry import rules

    pages: dict[str, str] = {}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for rule in rules():
            path, data = folder / f"{rule.code}.md", page(rule).encode()
            if not (path.is_file() and path.read_bytes() == data):
                replace_file(str(path), data)
            pages[rule.code] = path.resolve().as_uri()
    except (OSError, LookupError) as error:
        _log.warning("no rule pages: %s", error)
    return pages


# The library's protocol, with documents of our own instead of its own; see `document`.


class AdviseProtocol(LanguageServerProtocol):
    """Hands every change to `documents`, the server, before anybody else touches it."""

    documents: Any

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


class Ability(StrEnum):
    """What an editor can do, as far as it matters here, and where it says so.

    Fields that an editor does not know it passes over: of these nothing is asked.
    """

    PULLS = "text_document.diagnostic"
    REFRESHES = "workspace.diagnostics.refresh_support"
    REFRESHES_HINTS = "workspace.inlay_hint.refresh_support"
    MARKDOWN = "text_document.hover.content_format"
    RESOLVES_EDITS = "text_document.code_action.resolve_support.properties"
    SENDS_DATA_BACK = "text_document.code_action.data_support"
    VERSIONED_EDITS = "workspace.workspace_edit.document_changes"
    HAS_CONFIGURATION = "workspace.configuration"
    REGISTERS_CONFIGURATION = "workspace.did_change_configuration.dynamic_registration"
    WATCHES_FILES = "workspace.did_change_watched_files.dynamic_registration"


_AMONG = {Ability.MARKDOWN: types.MarkupKind.Markdown, Ability.RESOLVES_EDITS: "edit"}
"""What the value must hold, where it is a list."""


def abilities_of(client: types.ClientCapabilities) -> frozenset[Ability]:
    """Read the capabilities that an editor declares."""
    said = {one: get_capability(client, one, None) for one in Ability}
    return frozenset(
        one
        for one, value in said.items()
        # an object without anything in it counts
        if value not in (None, False) and (one not in _AMONG or _AMONG[one] in value)
    )


def encoding_of(name: str | None) -> Encoding:
    """Return the encoding of columns that was agreed on; without an agreement UTF-16."""
    return Encoding(name) if name else Encoding.UTF16


def registrations_of(abilities: Collection[Ability]) -> Iterator[types.Registration]:
    """Return what the server asks an editor to be told of."""
    if Ability.REGISTERS_CONFIGURATION in abilities:
        yield types.Registration(
            id="settings",
            method=types.WORKSPACE_DID_CHANGE_CONFIGURATION,
            register_options={"section": SECTION},
        )
    if Ability.WATCHES_FILES in abilities:
        watchers = [types.FileSystemWatcher(f"**/{name}") for name in (FILE_NAME, "*.py")]
        yield types.Registration(
            id="files",
            method=types.WORKSPACE_DID_CHANGE_WATCHED_FILES,
            register_options=types.DidChangeWatchedFilesRegistrationOptions(watchers),
        )
