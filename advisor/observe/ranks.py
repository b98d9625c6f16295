"""One record of a run out of those of its ranks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from advisor.observe.messages import Place, Traffic
from advisor.observed import Seen, from_document, to_document


@dataclass(frozen=True, slots=True)
class Record:
    """What one process saw, or all of them together.

    Attributes
    ----------
    facts : tuple of (str, Seen)
        Functions with their files.
    messages : tuple of (Place, Traffic)
    ranks : int
    """

    facts: tuple[tuple[str, Seen], ...]
    messages: tuple[tuple[Place, Traffic], ...]
    ranks: int = 1


def merged(records: Iterable[Record]) -> Record:
    """Return the record of all ranks.

    Calls of one function with the same sizes are those of the rank that made most of them;
    messages are those of all ranks together.
    """
    records = tuple(records)
    calls: dict[tuple[str, Seen], int] = {}
    traffic: dict[Place, Traffic] = {}
    for record in records:
        for file, seen in record.facts:
            key = file, replace(seen, calls=1, ranks=len(records))
            calls[key] = max(calls.get(key, 0), seen.calls)
        for place, counted in record.messages:
            if place in traffic:
                traffic[place].merge(counted)
            else:
                traffic[place] = replace(counted)
    facts = tuple((file, replace(seen, calls=n)) for (file, seen), n in calls.items())
    return Record(facts, tuple(traffic.items()), len(records))


def document_of(record: Record) -> dict[str, Any]:
    """Return a value of JSON from which :func:`record_of` makes the same again."""
    return {
        "facts": [[file, to_document(seen)] for file, seen in record.facts],
        "messages": [[asdict(place), asdict(traffic)] for place, traffic in record.messages],
        "ranks": record.ranks,
    }


def record_of(document: Mapping[str, Any]) -> Record:
    """Return the record that :func:`document_of` was given."""
    return Record(
        tuple((file, from_document(seen)) for file, seen in document["facts"]),
        tuple((Place(**place), Traffic(**traffic)) for place, traffic in document["messages"]),
        document["ranks"],
    )


def together(mpi: Any, own: Record) -> Record | None:
    """Return the record of all ranks on rank 0, None on the others.

    Collective over the world communicator; MPI must not be finalized yet.

    Parameters
    ----------
    mpi : module or None
        ``mpi4py.MPI`` where the program imported it.
    own : Record
    """
    if mpi is None or not mpi.Is_initialized() or mpi.Is_finalized():
        return own
    world = mpi.Intracomm(mpi.COMM_WORLD)
    gathered = world.gather(own, root=0)
    return None if gathered is None else merged(gathered)
