"""Programs over ranks, one for each way to lay out the data of a kernel.

They do what the models take owner-computes to do: MATMUL gathers the columns of B or has them all,
ADI sweeps an axis that is spread over the ranks or one that is whole, GAUSS deals its columns out
in blocks or cyclically, PSRS keeps an index vector on every rank or a part on each. The box sums
are those beside. ``advise validate`` times them: each function makes the arrays of a rank and
returns what is to be done with them.
"""

from __future__ import annotations

import runpy
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np

EXAMPLES = Path(__file__).parents[1]
SEED = 20_261_121


def share(comm, length):
    """Return the first index of this rank's block and the one behind its last."""
    rank, each = comm.Get_rank(), -(-length // comm.Get_size())
    return min(rank * each, length), min((rank + 1) * each, length)


def _matmul(comm, sizes, gathered):
    order, ranks = sizes["N"], comm.Get_size()
    whole = _matrix(order)
    low, high = share(comm, order)
    a, c = whole[low:high].copy(), np.zeros((high - low, order))
    b = np.ascontiguousarray(whole[:, low:high])
    pieces, full = np.empty((ranks, order, high - low)), whole.copy()

    def run():
        if gathered:
            comm.Allgather(b, pieces)
            for owner in range(ranks):
                full[:, owner * (high - low) : (owner + 1) * (high - low)] = pieces[owner]
        c[...] = a @ full

    return SimpleNamespace(run=run, result=lambda: c)


def _sweep(comm, sizes, axis, spread):
    """Return a recurrence along `axis` of a square whose axis `spread` is over the ranks."""
    order, rank, ranks = sizes["N"], comm.Get_rank(), comm.Get_size()
    low, high = share(comm, order)
    own = (slice(low, high), slice(None)) if spread == 0 else (slice(None), slice(low, high))
    given, factors = _matrix(order)[own].copy(), np.full((order, order), 0.5)[own].copy()
    x = given.copy()
    coming, going = np.empty(order), np.empty(order)

    def at(array, place):
        return array[place] if axis == 0 else array[:, place]

    def run():
        first = 1
        if spread == axis and rank > 0:
            comm.Recv(coming, source=rank - 1)
            at(x, 0)[...] = at(x, 0) - at(factors, 0) * coming
        for place in range(first, x.shape[axis]):
            at(x, place)[...] = at(x, place) - at(factors, place) * at(x, place - 1)
        if spread == axis and rank + 1 < ranks:
            np.copyto(going, at(x, -1))
            comm.Send(going, dest=rank + 1)

    return SimpleNamespace(run=run, reset=lambda: np.copyto(x, given), result=lambda: x)


def _eliminate(comm, sizes, cyclic):
    order, rank, ranks = sizes["N"], comm.Get_rank(), comm.Get_size()
    low, high = share(comm, order)
    each = -(-order // ranks)
    mine = np.arange(rank, order, ranks) if cyclic else np.arange(low, high)
    given = _matrix(order)[:, mine].copy()
    a, column = given.copy(), np.empty(order)

    def run():
        for k in range(order - 1):
            owner, place = (k % ranks, k // ranks) if cyclic else divmod(k, each)
            # of this rank's columns, those behind column k
            after = (k - rank) // ranks + 1 if cyclic else min(max(k + 1 - low, 0), high - low)
            needed = column[: order - k - 1]
            if owner == rank:
                a[k + 1 :, place] = a[k + 1 :, place] / a[k, place]
                needed[...] = a[k + 1 :, place]
            comm.Bcast(needed, root=owner)
            a[k + 1 :, after:] -= needed[:, None] * a[k, None, after:]
            if owner == rank:
                a[k + 1 :, place] = 0.0

    return SimpleNamespace(run=run, reset=lambda: np.copyto(a, given), result=lambda: a)


def _buckets(comm, sizes, replicated):
    count, rank, ranks = sizes["M"], comm.Get_rank(), comm.Get_size()
    random = np.random.default_rng(SEED)
    given = random.integers(0, count * ranks, (ranks, count))[rank : rank + 1].copy()
    keys = given.copy()
    everyone = np.empty((ranks, count), dtype=np.int64)
    bucket = np.empty((ranks if replicated else 1, count), dtype=np.int64)

    def run():
        keys[...] = np.sort(keys, axis=1)
        if replicated:
            comm.Allgather(keys, everyone)
            bucket[...] = everyone // count
        else:
            bucket[...] = keys // count

    return SimpleNamespace(run=run, reset=lambda: np.copyto(keys, given), result=lambda: bucket)


def _box(comm, sizes, way):
    program = runpy.run_path(str(EXAMPLES / "mpi" / "box_sum.py"))[way]
    order = sizes["N"]
    low, high = share(comm, order)
    image = np.random.default_rng(SEED).integers(0, 100, (order, order))[low:high].copy()
    last = [None]

    def run():
        last[0] = program(comm, image, sizes["b"])

    return SimpleNamespace(run=run, result=lambda: last[0])


def _matrix(order):
    """Return a matrix that can be eliminated without pivoting."""
    made = np.random.default_rng(SEED).uniform(0.5, 1.5, (order, order))
    made[np.diag_indices(order)] += order
    return made


matmul_gathered = partial(_matmul, gathered=True)
matmul_held = partial(_matmul, gathered=False)
rows_swept = partial(_sweep, axis=1, spread=1)
rows_whole = partial(_sweep, axis=1, spread=0)
columns_swept = partial(_sweep, axis=0, spread=0)
columns_whole = partial(_sweep, axis=0, spread=1)
eliminate_block = partial(_eliminate, cyclic=False)
eliminate_cyclic = partial(_eliminate, cyclic=True)
buckets_replicated = partial(_buckets, replicated=True)
buckets_partitioned = partial(_buckets, replicated=False)
box_by_shifts = partial(_box, way="box_by_shifts")
box_by_scans = partial(_box, way="box_by_scans")
