"""Programs over ranks, one for each way to lay out the data of a kernel.

They do what the models take owner-computes to do: MATMUL gathers the columns of B or has them all,
ADI sweeps an axis that is spread over the ranks or one that is whole, GAUSS deals its columns out
in blocks or cyclically, PSRS keeps an index vector on every rank or a part on each. The box sums
are those of the examples. Only a validation's ranks run this; numpy and mpi4py are imported then.
"""

from __future__ import annotations

import runpy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Sizes = Mapping[str, int]
SEED = 20_261_121


def _nothing() -> None:
    pass


@dataclass(frozen=True, slots=True)
class Ready:
    """A program with its arrays.

    Attributes
    ----------
    run : callable
        Does it once; what is timed.
    reset : callable
        Puts the arrays back as they were, before the clock starts.
    close : callable
        Frees what it holds.
    result : callable
        Returns what this rank has of the result.
    """

    run: Callable[[], object]
    reset: Callable[[], object] = _nothing
    close: Callable[[], object] = _nothing
    result: Callable[[], Any] = _nothing


Prepare = Callable[[Any, Sizes, Path], Ready]


def share(communicator: Any, length: int) -> tuple[int, int]:
    """Return the first index of this rank's block and the one behind its last."""
    rank, each = communicator.Get_rank(), -(-length // communicator.Get_size())
    return min(rank * each, length), min((rank + 1) * each, length)


def _matmul(communicator: Any, sizes: Sizes, *, gathered: bool) -> Ready:
    import numpy as np

    order, ranks = sizes["N"], communicator.Get_size()
    whole = _matrix(order)
    low, high = share(communicator, order)
    a, c = whole[low:high].copy(), np.zeros((high - low, order))
    b = np.ascontiguousarray(whole[:, low:high])
    pieces, full = np.empty((ranks, order, high - low)), whole.copy()

    def run() -> None:
        if gathered:
            communicator.Allgather(b, pieces)
            for owner in range(ranks):
                full[:, owner * (high - low) : (owner + 1) * (high - low)] = pieces[owner]
        c[...] = a @ full

    return Ready(run, result=lambda: c)


def _sweep(communicator: Any, sizes: Sizes, *, axis: int, spread: int) -> Ready:
    """Return a recurrence along `axis` of a square whose axis `spread` is over the ranks."""
    import numpy as np

    order, rank, ranks = sizes["N"], communicator.Get_rank(), communicator.Get_size()
    low, high = share(communicator, order)
    own = (slice(low, high), slice(None)) if spread == 0 else (slice(None), slice(low, high))
    given, factors = _matrix(order)[own].copy(), np.full((order, order), 0.5)[own].copy()
    x = given.copy()
    coming, going = np.empty(order), np.empty(order)

    def at(array: Any, place: int) -> Any:
        return array[place] if axis == 0 else array[:, place]

    def run() -> None:
        first = 1
        if spread == axis and rank > 0:
            communicator.Recv(coming, source=rank - 1)
            at(x, 0)[...] = at(x, 0) - at(factors, 0) * coming
        for place in range(first, x.shape[axis]):
            at(x, place)[...] = at(x, place) - at(factors, place) * at(x, place - 1)
        if spread == axis and rank + 1 < ranks:
            np.copyto(going, at(x, -1))
            communicator.Send(going, dest=rank + 1)

    return Ready(run, lambda: np.copyto(x, given), result=lambda: x)


def _eliminate(communicator: Any, sizes: Sizes, *, cyclic: bool) -> Ready:
    import numpy as np

    order, rank, ranks = sizes["N"], communicator.Get_rank(), communicator.Get_size()
    low, high = share(communicator, order)
    each = -(-order // ranks)
    mine = np.arange(rank, order, ranks) if cyclic else np.arange(low, high)
    given = _matrix(order)[:, mine].copy()
    a, column = given.copy(), np.empty(order)

    def run() -> None:
        for k in range(order - 1):
            owner, place = (k % ranks, k // ranks) if cyclic else divmod(k, each)
            # of this rank's columns, those behind column k
            after = (k - rank) // ranks + 1 if cyclic else min(max(k + 1 - low, 0), high - low)
            needed = column[: order - k - 1]
            if owner == rank:
                a[k + 1 :, place] = a[k + 1 :, place] / a[k, place]
                needed[...] = a[k + 1 :, place]
            communicator.Bcast(needed, root=owner)
            a[k + 1 :, after:] -= needed[:, None] * a[k, None, after:]
            if owner == rank:
                a[k + 1 :, place] = 0.0

    return Ready(run, lambda: np.copyto(a, given), result=lambda: a)


def _buckets(communicator: Any, sizes: Sizes, *, replicated: bool) -> Ready:
    import numpy as np

    count, rank, ranks = sizes["M"], communicator.Get_rank(), communicator.Get_size()
    random = np.random.default_rng(SEED)
    given = random.integers(0, count * ranks, (ranks, count))[rank : rank + 1].copy()
    keys = given.copy()
    everyone = np.empty((ranks, count), dtype=np.int64)
    bucket = np.empty((ranks if replicated else 1, count), dtype=np.int64)

    def run() -> None:
        keys[...] = np.sort(keys, axis=1)
        if replicated:
            communicator.Allgather(keys, everyone)
            bucket[...] = everyone // count
        else:
            bucket[...] = keys // count

    return Ready(run, lambda: np.copyto(keys, given), result=lambda: bucket)


def _box(communicator: Any, sizes: Sizes, examples: Path, *, way: str) -> Ready:
    import numpy as np

    program = runpy.run_path(str(examples / "mpi" / "box_sum.py"))[way]
    order = sizes["N"]
    low, high = share(communicator, order)
    image = np.random.default_rng(SEED).integers(0, 100, (order, order))[low:high].copy()
    last: list[Any] = [None]

    def run() -> None:
        last[0] = program(communicator, image, sizes["b"])

    return Ready(run, result=lambda: last[0])


def _matrix(order: int) -> Any:
    """Return a matrix that can be eliminated without pivoting."""
    import numpy as np

    made = np.random.default_rng(SEED).uniform(0.5, 1.5, (order, order))
    made[np.diag_indices(order)] += order
    return made


DISTRIBUTED: Mapping[str, Prepare] = {
    "matmul gathered": lambda c, s, e: _matmul(c, s, gathered=True),
    "matmul held": lambda c, s, e: _matmul(c, s, gathered=False),
    "sweep_rows swept": lambda c, s, e: _sweep(c, s, axis=1, spread=1),
    "sweep_rows other": lambda c, s, e: _sweep(c, s, axis=1, spread=0),
    "sweep_columns swept": lambda c, s, e: _sweep(c, s, axis=0, spread=0),
    "sweep_columns other": lambda c, s, e: _sweep(c, s, axis=0, spread=1),
    "eliminate block": lambda c, s, e: _eliminate(c, s, cyclic=False),
    "eliminate cyclic": lambda c, s, e: _eliminate(c, s, cyclic=True),
    "buckets replicated": lambda c, s, e: _buckets(c, s, replicated=True),
    "buckets partitioned": lambda c, s, e: _buckets(c, s, replicated=False),
    "box shifts": lambda c, s, e: _box(c, s, e, way="box_by_shifts"),
    "box scans": lambda c, s, e: _box(c, s, e, way="box_by_scans"),
}
"""Programs by name; each is made on every rank."""
