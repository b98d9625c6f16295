"""A list of findings that are known and accepted, so that only new ones fail a run."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from advisor.files import listed_path, project_root
from advisor.finding import Finding
from costdb.records import dataclass

SCHEMA_VERSION = 2
_FROM_CURRENT_FOLDER = 1
"""The version before, whose paths count from the folder that it was written in.

That was the root of the project nearly always, and then its entries hold as they are.
"""

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
    dated : bool
        It was written by a release whose paths may count from another folder.
    """

    folder: str
    entries: tuple[Entry, ...]
    dated: bool = False


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
    lost : int
        How many entries of a dated baseline name no file of the project.
    """

    new: tuple[Finding, ...]
    known: int
    stale: tuple[Entry, ...]
    lost: int = 0


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
    lost = _lost(baseline) if baseline.dated else 0
    return Sifted(tuple(new), known, tuple(stale), lost)


def _lost(baseline: Baseline) -> int:
    root = project_root(baseline.folder) or baseline.folder
    return sum(not Path(root, entry.path).exists() for entry in baseline.entries)


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
    if isinstance(version, bool) or version not in (SCHEMA_VERSION, _FROM_CURRENT_FOLDER):
        raise BaselineError(f"{file}: /schema_version: expected {SCHEMA_VERSION}")
    entries = document.get("findings")
    if not isinstance(entries, list):
        raise BaselineError(f"{file}: /findings: expected an array")
    read = tuple(_entry(file, place, one) for place, one in enumerate(entries))
    return Baseline(_folder(file), read, dated=version == _FROM_CURRENT_FOLDER)


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
