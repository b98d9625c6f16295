"""Findings as the protocol's objects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from lsprotocol import types

from advisor.edits import newline_of
from advisor.finding import Finding, Remark
from advisor.lsp.actions import Offer
from advisor.lsp.analyses import Answer
from advisor.lsp.document import Change, Document, Position
from advisor.lsp.hints import Hint
from advisor.lsp.hover import hover_markdown, hover_plain
from advisor.report.rows import headline, is_gain
from advisor.source import Edit, SourceProblem, Span

SOURCE = "advise"


def changes_of(
    given: Iterable[types.TextDocumentContentChangeEvent],
) -> Iterator[Change]:
    """Yield the changes of a notification."""
    for change in given:
        if isinstance(change, types.TextDocumentContentChangePartial):
            start, end = change.range.start, change.range.end
            yield Change(
                change.text,
                Position(start.line, start.character),
                Position(end.line, end.character),
            )
        else:
            yield Change(change.text)


def diagnostics(
    document: Document, answer: Answer, pages: Mapping[str, str]
) -> list[types.Diagnostic]:
    """Return an answer as diagnostics."""
    found = [diagnostic(document, finding, pages) for finding in answer.findings]
    found += [_of_remark(document, remark) for remark in answer.remarks]
    if answer.problem is not None:
        found.append(_of_problem(document, answer.problem))
    return found


def diagnostic(document: Document, finding: Finding, pages: Mapping[str, str]) -> types.Diagnostic:
    """Return a finding as a diagnostic; its message starts with its class and the gain."""
    severity = types.DiagnosticSeverity
    href = pages.get(finding.code)
    return types.Diagnostic(
        range=range_of(document, finding.span),
        severity=severity.Warning if is_gain(finding) else severity.Information,
        code=finding.code,
        code_description=types.CodeDescription(href) if href else None,
        source=SOURCE,
        message=headline(finding),
    )


def range_of(document: Document, span: Span) -> types.Range:
    """Return a span in the editor's terms."""
    start, end = document.range_of(span)
    return types.Range(_position(start), _position(end))


def overlapping(
    document: Document, findings: Iterable[Finding], wanted: types.Range
) -> tuple[Finding, ...]:
    """Return the findings that a range of the editor touches."""
    start = document.place(_place(wanted.start))
    end = document.place(_place(wanted.end))
    return tuple(
        finding
        for finding in findings
        if (finding.span.start_line, finding.span.start_column) <= end
        and start <= (finding.span.end_line, finding.span.end_column)
    )


def code_action(
    document: Document, offer: Offer, pages: Mapping[str, str], preferable: bool
) -> types.CodeAction:
    """Return an offer as an action whose edit is still to be resolved."""
    finding = offer.finding
    return types.CodeAction(
        title=offer.title,
        kind=offer.kind,
        diagnostics=[diagnostic(document, finding, pages)],
        is_preferred=True if offer.preferred and preferable else None,
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
        types.TextEdit(range_of(document, edit.span), edit.replacement.replace("\n", newline))
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
    return types.Hover(types.MarkupContent(kind, text), range_of(document, findings[0].span))


def inlay_hint(document: Document, hint: Hint) -> types.InlayHint:
    """Return a hint behind the end of its line."""
    return types.InlayHint(
        position=_position(document.end_of_line(hint.line)),
        label=hint.label,
        tooltip=hint.tooltip,
        padding_left=True,
    )


def _of_remark(document: Document, remark: Remark) -> types.Diagnostic:
    return types.Diagnostic(
        range=range_of(document, remark.span),
        severity=types.DiagnosticSeverity.Hint,
        source=SOURCE,
        message=remark.message,
    )


def _of_problem(document: Document, problem: SourceProblem) -> types.Diagnostic:
    start = document.position(problem.line, problem.column)
    end = document.end_of_line(start.line + 1)
    return types.Diagnostic(
        range=types.Range(_position(start), _position(end)),
        severity=types.DiagnosticSeverity.Information,
        source=SOURCE,
        message=problem.message,
    )


def _position(position: Position) -> types.Position:
    return types.Position(position.line, position.column)


def _place(position: types.Position) -> Position:
    return Position(position.line, position.character)
