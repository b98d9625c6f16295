# ruff: noqa: N802
"""Ranks without MPI: who sends what to whom, by running a program's ranks one after the other.

Every rank runs a program from its beginning to its end; what it receives is what was sent in the
round before, and rounds follow until all send what they sent before. Of 64 ranks none is started.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
PROC_NULL, IN_PLACE = -2, "in place"
Sent = dict[tuple[Any, ...], list[Any]]


class Communicator:
    """One rank's end: takes messages of the round before, and keeps those of this one."""

    def __init__(self, rank: int, size: int, before: Sent, now: Sent, name: str = "world") -> None:
        self.rank, self.size, self.name = rank, size, name
        self.before, self.now = before, now
        self.taken: dict[tuple[Any, ...], set[int]] = defaultdict(set)
        self.called = 0

    def Get_rank(self) -> int:
        return self.rank

    def Get_size(self) -> int:
        return self.size

    def Barrier(self) -> None:
        pass

    def Create_cart(self, dims: object) -> Communicator:
        return Communicator(self.rank, self.size, self.before, self.now, "line")

    def Shift(self, axis: int, by: int) -> tuple[int, int]:
        beside = (self.rank - by, self.rank + by)
        low, high = (one if 0 <= one < self.size else PROC_NULL for one in beside)
        return low, high

    # --- messages

    def Send(self, buf: Array, dest: int, tag: int = 0) -> None:
        if dest != PROC_NULL:
            assert 0 <= dest < self.size and buf.flags.forc
            self.now[self.name, self.rank, dest].append((tag, np.ravel(buf, "K").copy()))

    Ssend = Send

    def Isend(self, buf: Array, dest: int, tag: int = 0) -> SimpleNamespace:
        self.Send(buf, dest, tag)
        return SimpleNamespace(Wait=lambda: None)

    def Recv(self, buf: Array, source: int, tag: int | None = None) -> None:
        key = (self.name, source, self.rank)
        sent = self.before.get(key, []) if source != PROC_NULL else []
        open_ = [k for k in range(len(sent)) if k not in self.taken[key]]
        found = [k for k in open_ if tag in (None, sent[k][0])]
        assert found or not sent, f"nobody sends what {key} receives"
        for k in found[:1]:
            self.taken[key].add(k)
            buf.reshape(-1)[: sent[k][1].size] = sent[k][1]

    def Irecv(self, buf: Array, source: int, tag: int | None = None) -> SimpleNamespace:
        # what comes is looked at behind the wait only
        self.Recv(buf, source, tag)
        return SimpleNamespace(Wait=lambda: None)

    def Sendrecv(
        self,
        sendbuf: Array,
        dest: int,
        sendtag: int = 0,
        recvbuf: Array | None = None,
        source: int = PROC_NULL,
        recvtag: int | None = None,
    ) -> None:
        self.Send(sendbuf, dest, sendtag)
        assert recvbuf is not None
        self.Recv(recvbuf, source, recvtag)

    # --- collectives: every rank's part goes to all, who take of it what is theirs

    def all_parts(self, part: object) -> list[Any]:
        key = (self.name, "collective", self.called)
        self.called += 1
        self.now[key].append((0, np.copy(part) if isinstance(part, np.ndarray) else part))
        parts = [one for _, one in self.before.get(key, [])]
        return parts if len(parts) == self.size else []

    def gather(self, part: object, root: int = 0) -> list[Any] | None:
        parts = self.all_parts(part) or [part] * self.size
        return parts if self.rank == root else None

    def _own(self, send: Any, whole: Array | None, rows: int) -> Array:
        if not isinstance(send, np.ndarray) and whole is not None:
            send = whole.reshape(rows, -1)[self.rank % rows]
        return np.ravel(send).copy()

    def Gather(self, send: Any, recv: Any, root: int = 0) -> None:
        parts = self.all_parts(self._own(send, recv, self.size))
        if parts and self.rank == root:
            recv.reshape(-1)[:] = np.concatenate(parts)

    def Gatherv(self, send: Any, recv: Any, root: int = 0) -> None:
        parts = self.all_parts(np.ravel(send))
        if parts and self.rank == root:
            assert list(recv[1]) == [one.size for one in parts]
            recv[0][:] = np.concatenate(parts)

    def Allgather(self, send: Any, recv: Array) -> None:
        parts = self.all_parts(self._own(send, recv, self.size))
        if parts:
            recv.reshape(-1)[:] = np.concatenate(parts)

    def Alltoall(self, send: Array, recv: Array) -> None:
        parts = self.all_parts(send.reshape(self.size, -1))
        if parts:
            recv.reshape(self.size, -1)[:] = [one[self.rank] for one in parts]

    def Scatter(self, send: Any, recv: Any, root: int = 0) -> None:
        parts = self.all_parts(send if self.rank == root else None)
        if parts and not isinstance(recv, str):
            recv.reshape(-1)[:] = parts[root].reshape(self.size, -1)[self.rank]

    def Bcast(self, buf: Array, root: int = 0) -> None:
        parts = self.all_parts(buf)
        if parts:
            buf[...] = parts[root]

    def Reduce(self, send: Any, recv: Any, op: object = None, root: int = 0) -> None:
        parts = self.all_parts(self._own(send, recv, 1))
        if parts and self.rank == root:
            recv.reshape(-1)[:] = sum(parts)

    def Allreduce(self, send: Any, recv: Array, op: object = None) -> None:
        parts = self.all_parts(self._own(send, recv, 1))
        if parts:
            recv.reshape(-1)[:] = sum(parts)


MPI = SimpleNamespace(
    IN_PLACE=IN_PLACE,
    PROC_NULL=PROC_NULL,
    ANY_SOURCE=-1,
    SUM="sum",
    Request=SimpleNamespace(Waitall=lambda requests: None),
)


def main_of(source: str) -> Callable[[Communicator], Any]:
    """Return the main function of a program of the tests, MPI left out."""
    names: dict[str, Any] = {"MPI": MPI}
    exec(source.replace("from mpi4py import MPI\n", ""), names)
    main: Callable[[Communicator], Any] = names["main"]
    return main


def _same(one: list[Any], other: list[Any]) -> bool:
    return len(one) == len(other) and all(
        mine == others and np.array_equal(a, b)
        for (mine, a), (others, b) in zip(one, other, strict=True)
    )


def results(source: str, size: int) -> list[Any]:
    """Return what each rank of a program returns."""
    main, before = main_of(source), Sent()
    for _ in range(3 * size + 3):
        now: Sent = defaultdict(list)
        found = [main(Communicator(rank, size, before, now)) for rank in range(size)]
        same = before.keys() == now.keys() and all(_same(before[key], now[key]) for key in now)
        if same:
            return found
        before = now
    raise AssertionError("ranks send other things in each round")
