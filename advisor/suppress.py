"""Leave out the findings that a comment ``# advise: ignore[CODE]`` asks to leave out."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from advisor.files import listed_path
from advisor.finding import UNUSED_SUPPRESSION, Finding, Remark, Untold
from advisor.frontend.directives import (
    AnyDirective,
    CommentError,
    Scope,
    Suppression,
    suppressed_blocks,
)
from advisor.source import split_lines
from costdb.records import dataclass, replace

if TYPE_CHECKING:
    import ast


@dataclass(frozen=True, slots=True)
class Kept:
    """What suppressions leave, and the suppressions that suppress nothing."""

    findings: tuple[Finding, ...]
    unused: tuple[Remark, ...]


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
    active: Callable[[str], bool] = lambda code: True,
    untold: Iterable[Untold] = (),
    known: Callable[[], Mapping[str, str]] | None = None,
) -> Kept:
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
    known : callable or None
        Gives the codes that there are, by themselves and by the names of their rules; None: any
        may be one.

    Raises
    ------
    SourceProblem
        For the start of a block without its end, or an end without its start.
    """
    candidates = tuple(findings)
    suppressions = [_coded(found, known) for found in directives if isinstance(found, Suppression)]
    if not suppressions:
        return Kept(candidates, ())
    try:
        reaches = tuple(_reaches(source, suppressions))
    except CommentError as error:
        raise error.in_file(path) from error
    kept = tuple(
        finding for finding in candidates if not any(reach.covers(finding) for reach in reaches)
    )
    if not active(UNUSED_SUPPRESSION):
        return Kept(kept, ())
    return Kept(kept, tuple(_unused(path, reaches, (*candidates, *untold), active, known)))


def _coded(suppression: Suppression, known: Callable[[], Mapping[str, str]] | None) -> Suppression:
    """Return a suppression with codes in the place of names."""
    if known is None or all(map(str.isupper, suppression.codes)):
        return suppression
    by_word = known()
    codes = tuple(by_word.get(word, word) for word in suppression.codes)
    return replace(suppression, codes=codes)


def _unused(
    path: str,
    reaches: Iterable[_Reach],
    findings: Sequence[Finding | Untold],
    active: Callable[[str], bool],
    known: Callable[[], Mapping[str, str]] | None,
) -> Iterator[Remark]:
    for reach in sorted(reaches, key=lambda reach: reach.suppression.span):
        covered = {finding.code for finding in findings if reach.covers(finding)}
        codes = reach.suppression.codes
        without = [code for code in codes if code not in covered]
        wrong = {} if known is None or not without else _wrong(without, known())
        for message in wrong.values():
            yield Remark(path, "", reach.suppression.span, message)
        idle = [code for code in without if code not in wrong and active(code)]
        if idle or not (codes or covered):
            which = f" for {', '.join(idle)}" if idle else ""
            yield Remark(
                path,
                "",
                reach.suppression.span,
                f"{UNUSED_SUPPRESSION} unused suppression: nothing to ignore{which}, "
                "with this machine and these sizes",
            )


def _wrong(codes: Iterable[str], known: Collection[str]) -> Mapping[str, str]:
    """Return what to say of codes that no rule has."""
    from costdb.wording import nearest

    return {
        code: f"{UNUSED_SUPPRESSION} unused suppression: there is no rule {code}"
        + nearest(code, sorted(known))
        for code in codes
        if code not in known
    }


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
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt | ast.ExceptHandler):
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

_TEXTS = ("fingerprint", "path", "code", "kernel")


class BaselineError(ValueError):
    """A baseline that cannot be used; the message is one line with file and place."""


@dataclass(frozen=True, slots=True, order=True)
class Entry:
    """One accepted finding; where it stands in its file is left open."""

    path: str
    code: str
    kernel: str
    fingerprint: str

    @staticmethod
    def of(finding: Finding, folder: str) -> Entry:
        """Return the entry that accepts a finding, in a baseline that is kept in `folder`."""
        path = listed_path(finding.path, folder)
        return Entry(path, finding.code, finding.kernel, finding.fingerprint)


@dataclass(frozen=True, slots=True)
class Baseline:
    """What is accepted.

    Attributes
    ----------
    folder : str
        Where it is kept; paths of files in no project count from there.
    entries : tuple of Entry
    """

    folder: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Sifted:
    """What a baseline leaves.

    Attributes
    ----------
    new : tuple of Finding
        Those that it does not hold; in their order.
    known : int
        How many it holds.
    stale : tuple of Entry
        Its entries that nothing was found for.
    """

    new: tuple[Finding, ...]
    known: int
    stale: tuple[Entry, ...]


def sift(findings: Iterable[Finding], baseline: Baseline, checked: Iterable[str]) -> Sifted:
    """Return the findings that a baseline does not accept, and its entries without a finding.

    Equal lines of a kernel have equal fingerprints: an entry accepts one finding, not all.

    Parameters
    ----------
    findings : iterable of Finding
    baseline : Baseline
    checked : iterable of str
        Paths of the files that were checked; nothing is said of entries for others.
    """
    left = Counter(map(_identity, baseline.entries))
    new = []
    known = 0
    for finding in findings:
        identity = _identity(Entry.of(finding, baseline.folder))
        if left[identity]:
            left[identity] -= 1
            known += 1
        else:
            new.append(finding)
    looked_at = {listed_path(path, baseline.folder) for path in checked}
    stale = []
    for entry in baseline.entries:
        if left[_identity(entry)] and entry.path in looked_at:
            left[_identity(entry)] -= 1
            stale.append(entry)
    return Sifted(tuple(new), known, tuple(stale))


def _identity(entry: Entry) -> tuple[str, str]:
    return entry.path, entry.fingerprint


def to_text(findings: Iterable[Finding], file: str) -> str:
    """Return the baseline that accepts these findings, as JSON that is to be kept in `file`."""
    entries = sorted(Entry.of(finding, _folder(file)) for finding in findings)
    document = {
        "schema_version": SCHEMA_VERSION,
        "findings": [{name: getattr(entry, name) for name in _TEXTS} for entry in entries],
    }
    return json.dumps(document, indent=2) + "\n"


def read_baseline(file: str) -> Baseline:
    """Return what a baseline accepts.

    Raises
    ------
    BaselineError
        It is not JSON, or not a baseline of a known version.
    OSError
        It cannot be read.
    """
    try:
        document: Any = json.loads(Path(file).read_bytes())
    except json.JSONDecodeError as error:
        raise BaselineError(
            f"{file}:{error.lineno}:{error.colno}: not JSON: {error.msg}"
        ) from error
    except (ValueError, RecursionError) as error:
        raise BaselineError(f"{file}:1: not JSON: {error}") from error
    version = document.get("schema_version") if isinstance(document, dict) else None
    if isinstance(version, bool) or version != SCHEMA_VERSION:
        raise BaselineError(f"{file}: /schema_version: expected {SCHEMA_VERSION}")
    entries = document.get("findings")
    if not isinstance(entries, list):
        raise BaselineError(f"{file}: /findings: expected an array")
    read = tuple(_entry(file, place, one) for place, one in enumerate(entries))
    return Baseline(_folder(file), read)


def _folder(file: str) -> str:
    return str(Path(file).parent)


def _entry(file: str, place: int, one: Any) -> Entry:
    texts = {}
    for name in _TEXTS:
        value = one.get(name) if isinstance(one, dict) else None
        if not isinstance(value, str):
            raise BaselineError(f"{file}: /findings/{place}/{name}: expected a string")
        texts[name] = value
    return Entry(**texts)
