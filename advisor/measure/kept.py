"""Measured pieces in the store: found by their content, and between sizes that were measured."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import version
from typing import Any

from advisor.evidence import Sizes, Times
from advisor.measure.language import Sampled
from advisor.measure.pieces import Arguments, NoPiece, Piece, key_of
from advisor.measure.subjects import Subject
from costdb.calibration.section import this_host
from costdb.launch.processes import THREADS
from costdb.store.database import reading, writing
from costdb.store.extract import store_path
from costdb.store.records import PIECE, Result, add_result, stored_piece

HERE = "here"
"""What this machine is called while it has no calibration."""


def circumstances() -> tuple[str, ...]:
    """Return what a piece depends on beside its text: libraries, processor, threads."""
    host = this_host()
    return (
        f"python {platform.python_version()}",
        *(f"{library} {version(library)}" for library in ("numpy", "scipy")),
        f"{host.processor}, {host.cores} cores",
        *(f"{name}={os.environ[name]}" for name in sorted(THREADS) if name in os.environ),
    )


class Kept:
    """Pieces of a machine in the store.

    Parameters
    ----------
    machine : str
    ranks : int
        Of programs that communicate.
    again : bool
        Whether nothing that was measured before counts.
    complain : callable, optional
        Hears of a store that cannot be written.
    """

    def __init__(
        self,
        machine: str,
        ranks: int,
        *,
        again: bool = False,
        complain: Callable[[str], None] = lambda why: None,
    ) -> None:
        self.machine, self.ranks, self.again, self.complain = machine, ranks, again, complain
        self.where = circumstances()
        self.found: set[str] = set()

    def known(self, program: Sampled, arguments: Arguments) -> Piece | None:
        """Return what was measured before of a program with these arguments."""
        if self.again:
            return None
        key = key_of(program, arguments, self.where, self.ranks)
        with reading(store_path()) as connection:
            document = stored_piece(connection, self.machine, key)
        if document is None:
            return None
        self.found.add(key)
        return _piece(document)

    def at_other_sizes(self, program: Sampled) -> tuple[tuple[Sizes, Times], ...]:
        """Return what was measured of a program at any sizes."""
        with reading(store_path()) as connection:
            document = stored_piece(connection, self.machine, self._grid(program))
        if document is None:
            return ()
        return tuple((sizes, (low, mid, high)) for sizes, (low, mid, high) in document["points"])

    def keep(self, subjects: Sequence[Subject], found: Iterable[object], sizes: Sizes) -> None:
        """Store what was measured now, and at which sizes."""
        new = {}
        for subject, piece in zip(subjects, found, strict=True):
            if isinstance(piece, NoPiece) or isinstance(subject.found, NoPiece):
                continue
            assert isinstance(piece, Piece)
            program, arguments = subject.found
            key = key_of(program, arguments, self.where, self.ranks)
            if key in self.found:
                continue
            new[key] = asdict(piece)
            if sizes:
                others = [one for one in self.at_other_sizes(program) if one[0] != sizes]
                points = [*others, (dict(sizes), piece.times_s)]
                new[self._grid(program)] = {"points": points}
        if new:
            with writing(store_path(), self.complain) as connection:
                for key, document in new.items():
                    add_result(connection, Result(self.machine, PIECE, key, document))

    def _grid(self, program: Sampled) -> str:
        return "sizes " + key_of(program, {}, self.where, self.ranks)


def _piece(document: Mapping[str, Any]) -> Piece:
    """Return the piece of a document, in which keys are texts."""
    parts = {int(line): tuple(times) for line, times in document["parts_s"].items()}
    skipped = {int(line): many for line, many in document["skipped"].items()}
    return Piece(**{**document, "parts_s": parts, "skipped": skipped})
