"""Findings as the protocol's objects."""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.protocol import LanguageServerProtocol, lsp_method

from advisor.config.effective import Resolver
from advisor.config.files import Configurations, Layer
from advisor.engine import Options
from advisor.finding import ONE_PROCESS, Applicability, Finding, Verdict
from advisor.lsp.analyses import Analysis, Document
from advisor.observed import Observations
from advisor.report.model import headline, page
from advisor.report.style import Style, duration
from advisor.source import Edit, newline_of
from costdb.records import dataclass, field, replace

MEASURE = "advise.measure"
"""The command that times a kernel."""

QUICK_FIX, REWRITE = types.CodeActionKind.QuickFix, types.CodeActionKind.RefactorRewrite
EDIT, IGNORE = "rewrite", "ignore"
"""What the data of an action says that it does."""

# Inlay hints: what a line costs, behind its end.


def hints(
    document: Document, findings: Iterable[Finding], first_line: int, last_line: int
) -> list[types.InlayHint]:
    """Return one hint for each line that a finding starts on, within the lines asked for.

    Of several findings on a line the one that saves most speaks.
    """
    best: dict[int, Finding] = {}
    for finding in sorted(findings, key=lambda one: one.order):
        if first_line <= finding.span.start_line <= last_line:
            best.setdefault(finding.span.start_line, finding)
    return [
        types.InlayHint(
            position=document.end_of_line(line),
            label=_label(best[line]),
            tooltip=headline(best[line]),
            padding_left=True,
        )
        for line in sorted(best)
    ]


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

    blocks = "\n\n".join("\n".join(block(one, None, Style())) for one in findings)
    return blocks if current else f"{blocks}\n\n(as predicted before the last edits)"


SOURCE = "advise"


def diagnostics(
    document: Document, answer: Analysis, pages: Mapping[str, str]
) -> list[types.Diagnostic]:
    """Return an answer as diagnostics."""
    found = [diagnostic(document, finding, pages) for finding in answer.findings]
    for remark in answer.remarks:
        place, severity = document.range_of(remark.span), types.DiagnosticSeverity.Hint
        found.append(types.Diagnostic(place, remark.message, severity, source=SOURCE))
    # that a text is no Python is said by other tools
    if answer.problem is not None and not answer.half_typed:
        start = document.position(answer.problem.line, answer.problem.column)
        place = types.Range(start, document.end_of_line(start.line + 1))
        severity = types.DiagnosticSeverity.Information
        found.append(types.Diagnostic(place, answer.problem.message, severity, source=SOURCE))
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


def actions(
    document: Document,
    findings: Sequence[Finding],
    only: Sequence[str] | None,
    here: Callable[[str], bool],
    pages: Mapping[str, str],
) -> Iterator[types.CodeAction]:
    """Yield the actions on findings: rewrites, a measurement of each kernel, suppressions.

    A safe rewrite is a quick fix. An unsafe one is a refactoring, which nobody applies without
    looking; an editor that asks for refactorings only gets the safe ones as such too. Edits are
    made when the user picks one.

    Parameters
    ----------
    document : Document
    findings : sequence of Finding
    only : sequence of str or None
        The kinds that the editor asks for, each with those below it; None for all.
    here : callable
        Whether a machine may be the one that this runs on.
    pages : mapping of str to str
        URIs of the pages of rules, by code.
    """
    quick, refactoring = _asked(QUICK_FIX, only), _asked(REWRITE, only)

    def action(title: str, purpose: str, preferred: bool, finding: Finding) -> types.CodeAction:
        return types.CodeAction(
            title=title,
            kind=QUICK_FIX if preferred or purpose == IGNORE else REWRITE,
            diagnostics=[diagnostic(document, finding, pages)],
            is_preferred=preferred or None,
            data={
                "uri": document.uri,
                "version": document.version,
                "purpose": purpose,
                "code": finding.code,
                "fingerprint": finding.fingerprint,
                "line": finding.span.start_line,
            },
        )

    kernels: dict[str, types.CodeAction] = {}
    for finding in findings:
        fix = finding.fix
        safety = fix.applicability if fix is not None and fix.edits else None
        if safety is Applicability.SAFE and (quick or refactoring):
            yield action(headline(finding), EDIT, quick, finding)
        elif safety is Applicability.UNSAFE and refactoring:
            yield action(f"{headline(finding)} (unsafe: results may differ)", EDIT, False, finding)
        if finding.priced_as.startswith(ONE_PROCESS) and here(finding.evidence.machine):
            title = f"Measure {finding.kernel} and its rewrites on this machine"
            command = types.Command(title, MEASURE, arguments=[document.uri, finding.kernel])
            kernels[finding.kernel] = types.CodeAction(title, QUICK_FIX, command=command)
    if quick:
        yield from kernels.values()
        for finding in findings:
            yield action(f"Ignore {finding.code} ({finding.name}) here", IGNORE, False, finding)


def _asked(kind: str, only: Sequence[str] | None) -> bool:
    return only is None or any(
        kind == asked or kind.startswith(f"{asked}.") or asked == "" for asked in only
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


# --- settings -------------------------------------------------------------------------------------
# What the user chose in the editor: machine, sizes, the least gain shown, inlay hints.


SECTION = "advise"


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of the editor; None where it says nothing.

    Attributes
    ----------
    machine : str or None
        A name or a profile.json.
    sizes : mapping of str to number
        Over what the source and configuration files say.
    min_speedup : float or None
        Smaller predicted gains are not shown.
    inlay_hints : bool
    """

    machine: str | None = None
    sizes: Mapping[str, int | float] = field(default_factory=dict)
    min_speedup: float | None = None
    inlay_hints: bool = False

    def with_chosen(self, chosen: Settings) -> Settings:
        """Return the settings with the machine and the sizes that a command chose over them."""
        machine, sizes = chosen.machine or self.machine, {**self.sizes, **chosen.sizes}
        return replace(self, machine=machine, sizes=sizes)


class SettingError(ValueError):
    """A value that a setting cannot have; the message is one line."""


def read_settings(given: Any, default: Settings) -> tuple[Settings, tuple[str, ...]]:
    """Return settings from an editor's JSON, and one line for each value that cannot be.

    Parameters
    ----------
    given : JSON
        The section ``advise``, or an object that holds it. Null means nothing is set.
    default : Settings
        Holds for what is not set, or set wrongly.
    """
    if isinstance(given, dict) and isinstance(given.get(SECTION), dict):
        given = given[SECTION]
    if given is None:
        return default, ()
    if not isinstance(given, dict):
        return default, (f"{SECTION}: settings must be an object",)
    read, problems = dict[str, Any](), list[str]()
    for name, value in given.items():
        if name not in _READERS and not str(name).startswith(("server", "trace")):
            known = ", ".join(_READERS)
            problems.append(f"{SECTION}.{name}: unknown setting; known are {known}")
        elif name in _READERS and value is not None:
            key, reader = _READERS[name]
            try:
                read[key] = reader(value)
            except SettingError as problem:
                problems.append(f"{SECTION}.{problem}")
    machine = read.pop("machine", None) or default.machine
    sizes = {**default.sizes, **read.pop("sizes", {})}
    return replace(default, machine=machine, sizes=sizes, **read), tuple(problems)


def machine_name(value: Any) -> str | None:
    """Return the name of a machine whose profile loads; None for an empty one.

    Raises
    ------
    SettingError
        It is unknown, or its profile is broken.
    """
    from costdb.machines import MachineError, load_machine

    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise SettingError("machine: must be a name or the path of a profile")
    try:
        load_machine(value)
    except MachineError as error:
        raise SettingError(f"machine: {error}") from error
    return value


def size(name: Any, value: Any) -> tuple[str, int | float]:
    """Return a size and its value.

    Raises
    ------
    SettingError
        The name is none, or the value is not a positive number.
    """
    if not (isinstance(name, str) and all(part.isidentifier() for part in name.split("."))):
        raise SettingError(f"sizes: {name!r} is not a name")
    number = _positive(value, f"sizes: {name} =")
    return name, int(number) if isinstance(number, float) and number.is_integer() else number


def _positive(value: Any, what: str) -> int | float:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not value > 0 or not math.isfinite(value):
        raise SettingError(f"{what} {value!r} is not a positive number")
    found: int | float = value
    return found


def _sizes(value: Any) -> Mapping[str, int | float]:
    if not isinstance(value, dict):
        raise SettingError('sizes: must be an object such as {"N": 1000}')
    return dict(size(name, number) for name, number in value.items())


def _inlay_hints(value: Any) -> bool:
    if not isinstance(value, bool):
        raise SettingError(f"inlayHints: {value!r} is neither true nor false")
    return value


_READERS: Mapping[str, tuple[str, Callable[[Any], Any]]] = {
    "machine": ("machine", machine_name),
    "sizes": ("sizes", _sizes),
    "minSpeedup": ("min_speedup", lambda value: float(_positive(value, "minSpeedup:"))),
    "inlayHints": ("inlay_hints", _inlay_hints),
}


# What holds for a file: its configuration, and over it what the editor says.

EDITOR = "editor"
"""Named as what bound a size, where others are bound by a line or by ``-D``."""


class OptionsOfFiles:
    """Looks up what holds for files; configuration files are read once.

    Parameters
    ----------
    settings : Settings
        Of the editor.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        layer = Layer(
            machine=settings.machine, sizes=settings.sizes, min_speedup=settings.min_speedup
        )
        self._resolver = Resolver(Configurations(layer), None, Observations())

    def of(self, path: str) -> Options | None:
        """Return the options for a file; None for one that its configuration excludes.

        Raises
        ------
        CommandError
            A configuration is wrong.
        """
        if self._resolver.configurations.excludes(path):
            return None
        options = self._resolver.effective(path).options
        ours = dict.fromkeys(self.settings.sizes, EDITOR)
        return replace(options, size_origins={**options.size_origins, **ours})
