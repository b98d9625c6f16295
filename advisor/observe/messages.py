"""Messages of an mpi4py program, by the place in the source that sends them.

mpi4py's own way to watch calls is the profiling interface of MPI, which takes a compiled library
(``mpi4py.profile``). What needs no compiler is that a communicator class may be subclassed, and
that a method which makes a communicator of the same kind makes one of the subclass: the world
communicator of a module that was just imported is replaced by one of a class that counts.
"""

from __future__ import annotations

import linecache
import sys
import threading
from collections.abc import Iterable
from typing import Any

from advisor.compiler.record import guarded
from advisor.observed import Seen, SeenBinding, SeenMessages, agreeing
from costdb.records import dataclass, field, replace

_OF_BUFFERS = """
Send Ssend Bsend Rsend Isend Issend Ibsend Irsend Recv Irecv Sendrecv Sendrecv_replace Isendrecv
Isendrecv_replace Send_init Recv_init Bcast Ibcast Reduce Ireduce Allreduce Iallreduce Scan
Iscan Exscan Iexscan Gather Gatherv Igather Igatherv Allgather Allgatherv Iallgather Iallgatherv
Scatter Scatterv Iscatter Iscatterv Alltoall Alltoallv Ialltoall Ialltoallv Reduce_scatter
Reduce_scatter_block Neighbor_alltoall Neighbor_allgather
"""
BUFFERS = frozenset(_OF_BUFFERS.split())
"""Methods that take buffers; the first one that is given tells the size."""

_OF_OBJECTS = """
send ssend bsend isend issend ibsend recv irecv sendrecv bcast reduce allreduce scan exscan
gather allgather scatter alltoall
"""
OBJECTS = frozenset(_OF_OBJECTS.split())
"""Methods that pickle; only arrays tell their size."""

_OF_MAKERS = """
Split Split_type Create Create_group Create_cart Create_graph Create_dist_graph
Create_dist_graph_adjacent Dup Dup_with_info Clone Sub Create_from_group
"""
_MAKERS = frozenset(_OF_MAKERS.split())


@dataclass(slots=True)
class Messages:
    """What was sent and received so far, by file and what a call was given there."""

    by_place: dict[tuple[object, ...], SeenMessages] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, communicator: Any, method: str, args: tuple[Any, ...], named: Any) -> None:
        """Note one call, which the caller's caller makes."""
        frame = sys._getframe(2)
        size, dtype, shape, whole = _described(args, named, pickled=method in OBJECTS)
        file, line, ranks = frame.f_code.co_filename, frame.f_lineno, communicator.size
        seen = SeenMessages(line, "", method, dtype, shape, whole, size, size, 1, ranks, 1)
        place = file, line, method, dtype, ranks
        with self._lock:
            known = self.by_place.get(place)
            self.by_place[place] = seen if known is None else known.and_also(seen)

    def gathered(self) -> tuple[tuple[str, SeenMessages], ...]:
        """Return them with their files, and with the texts of their lines."""
        return tuple(
            (str(file), replace(one, text=linecache.getline(str(file), one.line).strip()))
            for (file, *_), one in self.by_place.items()
        )


def _described(args: tuple[Any, ...], named: Any, *, pickled: bool) -> tuple[Any, ...]:
    """Return bytes, element type, layout and shapes of the first buffer that tells."""
    for given in (*args, *named.values()):
        buffer = given
        if isinstance(given, list | tuple) and given and not pickled:
            buffer = given[0]
        dtype, size = getattr(buffer, "dtype", None), getattr(buffer, "nbytes", None)
        if dtype is None or not isinstance(size, int):
            continue
        count = (
            next((x for x in given[1:] if type(x) is int), None) if buffer is not given else None
        )
        if count is not None:
            size = count * dtype.itemsize
        shape = tuple(buffer.shape)
        whole = getattr(getattr(buffer, "base", None), "shape", shape)
        return size, str(dtype), shape, whole
    return 0, "object" if pickled else "", None, None


def install(mpi: Any, messages: Messages) -> None:
    """Replace the world communicator of ``mpi4py.MPI`` by one that counts.

    Parameters
    ----------
    mpi : module
        Just imported, so that nobody holds the plain communicator yet.
    messages : Messages
    """
    classes: dict[type, type] = {}
    for base in (mpi.Intracomm, mpi.Cartcomm, mpi.Graphcomm, mpi.Distgraphcomm):
        methods = {
            name: _counting(name, base, messages)
            for name in sorted(BUFFERS | OBJECTS)
            if hasattr(base, name)
        }
        methods |= {n: _making(n, base, classes) for n in sorted(_MAKERS) if hasattr(base, n)}
        classes[base] = type(base.__name__, (base,), methods)
    counting = classes[mpi.Intracomm]
    mpi.COMM_WORLD = counting(mpi.COMM_WORLD)


def _counting(name: str, base: type, messages: Messages) -> Any:
    plain = getattr(base, name)

    def method(self: Any, *args: Any, **named: Any) -> Any:
        with guarded("looking at a message"):
            messages.note(self, name, args, named)
        return plain(self, *args, **named)

    method.__name__, method.__doc__ = name, plain.__doc__
    return method


def _making(name: str, base: type, classes: dict[type, type]) -> Any:
    plain = getattr(base, name)

    def method(self: Any, *args: Any, **named: Any) -> Any:
        made = plain(self, *args, **named)
        counting = classes.get(type(made))
        return made if counting is None or not made else counting(made)

    method.__name__, method.__doc__ = name, plain.__doc__
    return method


# One record of a run out of those of its ranks.


@dataclass(frozen=True, slots=True)
class Record:
    """What one process saw, or all of them together.

    Attributes
    ----------
    facts : tuple of (str, Seen)
        Functions with their files.
    messages : tuple of (str, SeenMessages)
    ranks : int
    """

    facts: tuple[tuple[str, Seen], ...]
    messages: tuple[tuple[str, SeenMessages], ...]
    ranks: int = 1


def merged(records: Iterable[Record]) -> Record:
    """Return the record of all ranks.

    Calls of one function with the same sizes are those of the rank that made most of them;
    messages are those of all ranks together.
    """
    records = tuple(records)
    calls: dict[tuple[str, Seen], int] = {}
    bindings: dict[tuple[str, Seen], tuple[SeenBinding, ...]] = {}
    traffic: dict[tuple[str, SeenMessages], SeenMessages] = {}
    for record in records:
        for file, seen in record.facts:
            key = file, replace(seen, calls=1, ranks=len(records), bindings=())
            calls[key] = max(calls.get(key, 0), seen.calls)
            bindings[key] = (*bindings.get(key, ()), *seen.bindings)
        for file, sent in record.messages:
            place, sent = (file, sent.place), replace(sent, world=len(records))
            traffic[place] = traffic[place].and_also(sent) if place in traffic else sent
    facts = agreeing(
        (key[0], replace(key[1], calls=count, bindings=bindings[key]))
        for key, count in calls.items()
    )
    sent_by_all = tuple((file, sent) for (file, _), sent in traffic.items())
    return Record(facts, sent_by_all, len(records))


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
