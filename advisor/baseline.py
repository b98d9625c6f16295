"""A list of findings that are known and accepted, so that only new ones fail a run."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from advisor.files import relative_path
from advisor.finding import Finding

SCHEMA_VERSION = 1
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
    def of(finding: Finding) -> Entry:
        """Return the entry that accepts a finding."""
        return Entry(relative_path(finding.path), finding.code, finding.kernel, finding.fingerprint)


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


def sift(findings: Iterable[Finding], entries: Sequence[Entry], checked: Iterable[str]) -> Sifted:
    """Return the findings that a baseline does not accept, and its entries without a finding.

    Equal lines of a kernel have equal fingerprints: an entry accepts one finding, not all.

    Parameters
    ----------
    findings : iterable of Finding
    entries : sequence of Entry
    checked : iterable of str
        Paths of the files that were checked; nothing is said of entries for others.
    """
    left = Counter(map(_identity, entries))
    new = []
    known = 0
    for finding in findings:
        identity = _identity(Entry.of(finding))
        if left[identity]:
            left[identity] -= 1
            known += 1
        else:
            new.append(finding)
    looked_at = set(map(relative_path, checked))
    stale = []
    for entry in entries:
        if left[_identity(entry)] and entry.path in looked_at:
            left[_identity(entry)] -= 1
            stale.append(entry)
    return Sifted(tuple(new), known, tuple(stale))


def _identity(entry: Entry) -> tuple[str, str]:
    return entry.path, entry.fingerprint


def to_text(findings: Iterable[Finding]) -> str:
    """Return the baseline that accepts these findings, as JSON."""
    entries = sorted(map(Entry.of, findings))
    document = {
        "schema_version": SCHEMA_VERSION,
        "findings": [{name: getattr(entry, name) for name in _TEXTS} for entry in entries],
    }
    return json.dumps(document, indent=2) + "\n"


def read_baseline(file: str) -> tuple[Entry, ...]:
    """Return the entries of a baseline.

    Raises
    ------
    BaselineError
        It is not JSON, or not a baseline of this version.
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
    if not isinstance(document, dict) or document.get("schema_version") != SCHEMA_VERSION:
        raise BaselineError(f"{file}: /schema_version: expected {SCHEMA_VERSION}")
    entries = document.get("findings")
    if not isinstance(entries, list):
        raise BaselineError(f"{file}: /findings: expected an array")
    return tuple(_entry(file, place, one) for place, one in enumerate(entries))


def _entry(file: str, place: int, one: Any) -> Entry:
    texts = {}
    for name in _TEXTS:
        value = one.get(name) if isinstance(one, dict) else None
        if not isinstance(value, str):
            raise BaselineError(f"{file}: /findings/{place}/{name}: expected a string")
        texts[name] = value
    return Entry(**texts)
