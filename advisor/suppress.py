"""Leave out the findings that a comment ``# advise: ignore[CODE]`` asks to leave out."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.files import listed_path
from advisor.finding import UNUSED_SUPPRESSION, Finding, Remark, Untold
from advisor.frontend.directives import (
    AnyDirective,
    CommentError,
    Scope,
    Suppression,
    suppressed_blocks,
)
from advisor.report.style import json_text
from advisor.source import split_lines
from costdb.records import dataclass, nearest, only, replace

if TYPE_CHECKING:
    import ast


@dataclass(frozen=True, slots=True)
class _Reach:
    """The lines where a suppression holds, both ends included."""

    suppression: Suppression
    first_line: int
    last_line: int

    def covers(self, finding: Finding | Untold) -> bool:
        return (
            self.first_line <= finding.span.start_line <= self.last_line
            and self.suppression.covers(finding.code)
        )


def apply_suppressions(
    path: str,
    source: str,
    directives: tuple[AnyDirective, ...],
    findings: Iterable[Finding],
    active: Callable[[str], bool],
    untold: Iterable[Untold],
    known: Callable[[], Mapping[str, str]],
) -> tuple[tuple[Finding, ...], tuple[Remark, ...]]:
    """Return the findings that no comment suppresses, and remarks on comments without effect.

    A suppression behind a statement, or on a line of its own above one, holds for the findings
    that start within that statement: behind ``def`` or ``for`` for the whole body. The comments
    right above a statement belong to it, so that it holds for arrays that they describe.

    Parameters
    ----------
    path, source : str
        The file.
    directives : tuple of directives
        All of the file, in order.
    findings : iterable of Finding
    active : callable
        Whether the rule of a code was run; a suppression of a rule that was not run is no news.
        Asked for `UNUSED_SUPPRESSION` too.
    untold : iterable of Untold
        Gains too small to tell of: a suppression is not idle because a gain is small today.
    known : callable
        Gives the codes that there are, by themselves and by the names of their rules.

    Raises
    ------
    SourceProblem
        For the start of a block without its end, or an end without its start.
    """
    candidates = tuple(findings)
    suppressions = [_coded(found, known) for found in directives if isinstance(found, Suppression)]
    try:
        reaches = tuple(_reaches(source, suppressions))
    except CommentError as error:
        raise error.in_file(path) from error
    kept = tuple(one for one in candidates if not any(reach.covers(one) for reach in reaches))
    if not active(UNUSED_SUPPRESSION):
        return kept, ()
    return kept, tuple(_unused(path, reaches, (*candidates, *untold), active, known))


def _coded(suppression: Suppression, known: Callable[[], Mapping[str, str]]) -> Suppression:
    """Return a suppression with codes in the place of names."""
    if all(map(str.isupper, suppression.codes)):
        return suppression
    by_word = known()
    return replace(suppression, codes=tuple(by_word.get(one, one) for one in suppression.codes))


def _unused(
    path: str,
    reaches: Iterable[_Reach],
    findings: Sequence[Finding | Untold],
    active: Callable[[str], bool],
    known: Callable[[], Mapping[str, str]],
) -> Iterator[Remark]:
    start = f"{UNUSED_SUPPRESSION} unused suppression:"
    for reach in sorted(reaches, key=lambda reach: reach.suppression.span):
        covered = {finding.code for finding in findings if reach.covers(finding)}
        codes, span = reach.suppression.codes, reach.suppression.span
        without = [code for code in codes if code not in covered]
        rules = sorted(known()) if without else []
        wrong = [code for code in without if code not in rules]
        for code in wrong:
            message = f"{start} there is no rule {code}{nearest(code, rules)}"
            yield Remark(path, "", span, message)
        idle = [code for code in without if code not in wrong and active(code)]
        if idle or not (codes or covered):
            which = f" for {', '.join(idle)}" if idle else ""
            message = f"{start} nothing to ignore{which}, with this machine and these sizes"
            yield Remark(path, "", span, message)


def _reaches(source: str, suppressions: list[Suppression]) -> Iterator[_Reach]:
    for block in suppressed_blocks(tuple(suppressions)):
        yield _Reach(block.suppression, block.first_line, block.last_line)
    statements: tuple[_Statement, ...] | None = None
    for suppression in suppressions:
        if suppression.scope is Scope.FILE:
            yield _Reach(suppression, 1, source.count("\n") + source.count("\r") + 1)
        elif suppression.scope is Scope.STATEMENT:
            if statements is None:
                statements = _statements(source)
            reach = _statement_reach(suppression, statements)
            yield replace(reach, first_line=_with_comments(source, reach.first_line))


def _with_comments(source: str, line: int) -> int:
    """Return the first of the lines with nothing but comments that end right above a line."""
    lines = split_lines(source)
    while line > 1 and lines[line - 2].lstrip().startswith("#"):
        line -= 1
    return line


@dataclass(frozen=True, slots=True)
class _Statement:
    """Lines of a statement; `head_line` is the last one before the body of a compound one."""

    first_line: int
    head_line: int
    last_line: int


def _statements(source: str) -> tuple[_Statement, ...]:
    """Return all statements, outer ones before inner ones, in order of their first lines."""
    import ast
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # doubts about the scanned text are not ours to tell
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        # Newer syntax than this Python knows: suppressions still reach their own lines.
        return ()
    found = []
    for node in only(ast.stmt | ast.ExceptHandler, ast.walk(tree)):
        first = _first_line(node)
        last = node.end_lineno or first
        body: list[ast.stmt] = getattr(node, "body", [])
        head = max(first, _first_line(body[0]) - 1) if body else last
        found.append(_Statement(first, head, last))
    return tuple(sorted(found, key=lambda one: (one.first_line, -one.last_line)))


def _first_line(node: ast.stmt | ast.ExceptHandler) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def _statement_reach(suppression: Suppression, statements: Iterable[_Statement]) -> _Reach:
    line = suppression.line
    if suppression.own_line:
        below = next((one for one in statements if one.first_line > line), None)
        if below is None:
            return _Reach(suppression, line, line + 1)
        return _Reach(suppression, below.first_line, below.last_line)
    around = [one for one in statements if one.first_line <= line <= one.head_line]
    if not around:
        return _Reach(suppression, line, line)
    return _Reach(suppression, around[-1].first_line, around[-1].last_line)


# A list of findings that are known and accepted, so that only new ones fail a run.


SCHEMA_VERSION = 2


@dataclass(frozen=True, slots=True, order=True)
class Entry:
    """One accepted finding; where it stands in its file is left open."""

    path: str
    code: str
    kernel: str
    fingerprint: str

    @property
    def identity(self) -> tuple[str, str]:
        """What a finding is known again by."""
        return self.path, self.fingerprint


def entry_of(finding: Finding, file: str) -> Entry:
    """Return the entry that accepts a finding, in a baseline that is kept in `file`."""
    path = listed_path(finding.path, str(Path(file).parent))
    return Entry(path, finding.code, finding.kernel, finding.fingerprint)


def sift(
    findings: Iterable[Finding], file: str, checked: Iterable[str]
) -> tuple[list[Finding], list[Entry]]:
    """Return the findings that a baseline does not accept, and its entries without a finding.

    Equal lines of a kernel have equal fingerprints: an entry accepts one finding, not all.

    Parameters
    ----------
    findings : iterable of Finding
    file : str
        The baseline.
    checked : iterable of str
        Paths of the files that were checked; nothing is said of entries for others.

    Raises
    ------
    SubjectError
        It is not JSON, or not a baseline of a known version.
    OSError
        It cannot be read.
    """
    entries = _read(file)
    left = Counter(one.identity for one in entries)
    new = []
    for finding in findings:
        identity = entry_of(finding, file).identity
        if left[identity]:
            left[identity] -= 1
        else:
            new.append(finding)
    looked_at = {listed_path(path, str(Path(file).parent)) for path in checked}
    stale = []
    for entry in entries:
        if left[entry.identity] and entry.path in looked_at:
            left[entry.identity] -= 1
            stale.append(entry)
    return new, stale


def to_text(findings: Iterable[Finding], file: str) -> str:
    """Return the baseline that accepts these findings, as JSON that is to be kept in `file`."""
    entries = [asdict(one) for one in sorted(entry_of(finding, file) for finding in findings)]
    return json_text({"schema_version": SCHEMA_VERSION, "findings": entries})


def _read(file: str) -> list[Entry]:
    from costdb.choosing import SubjectError
    from costdb.phases.document import Node, record

    try:
        top = Node(json.loads(Path(file).read_bytes()), "", file)
    except (ValueError, RecursionError) as error:
        raise SubjectError(f"{file}: not JSON: {error}") from error
    version = top.table().get("schema_version")
    if version is None or version.value != SCHEMA_VERSION:
        raise SubjectError(f"{file}: /schema_version: expected {SCHEMA_VERSION}")
    found = top.known(("schema_version", "findings"), ())["findings"]
    return [record(Entry, one) for one in found.items()]
