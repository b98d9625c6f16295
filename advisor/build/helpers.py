"""What built programs call: who owns what, and how it gets to whom needs it.

This module is never imported by the tool: :mod:`advisor.build.program` copies the definitions that
a program uses into its text, so that a built program needs NumPy and mpi4py only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from mpi4py import MPI

Array = np.ndarray[Any, Any]
Indices = range | Array
Need = Callable[[int], Any]

comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()


class Mesh:
    """The ranks as a grid with named axes, the last one fastest."""

    def __init__(self, **axes: int) -> None:
        shape = list(axes.values())
        if np.prod(shape) != size:  # another number of ranks runs: a grid of all of them
            shape = MPI.Compute_dims(size, len(shape))
        self.axes = dict(zip(axes, shape))  # noqa: B905
        self.grid = comm.Create_cart(shape)
        self.places = [self.grid.Get_coords(one) for one in range(size)]
        self._lines: dict[tuple[str, ...], MPI.Intracomm] = {}

    def extent(self, axes: Sequence[str]) -> int:
        """Return how many ranks there are along some axes together."""
        return int(np.prod([self.axes[axis] for axis in axes]))

    def place(self, one: int, axes: Sequence[str]) -> int:
        """Return where a rank is along some axes together, of which the last is fastest."""
        found = 0
        for axis in axes:
            found = found * self.axes[axis] + self.places[one][list(self.axes).index(axis)]
        return found

    def line(self, *axes: str) -> MPI.Intracomm:
        """Return the communicator of ranks that differ from this one along some axes only."""
        if axes not in self._lines:
            others = [axis for axis in self.axes if axis not in axes]
            made: Any = self.grid.Split(self.place(rank, others), self.place(rank, axes))
            self._lines[axes] = made
        return self._lines[axes]


class Along:
    """One dimension: pieces of `piece` elements, dealt in turn to the ranks along mesh axes."""

    def __init__(self, extent: int, mesh: Mesh, axes: Sequence[str], piece: int) -> None:
        self.extent = extent
        self.count = mesh.extent(axes)
        self.piece = max(1, piece or -(-extent // self.count))
        self.cycle = self.piece * self.count
        self.places = [mesh.place(one, axes) for one in range(size)]
        self.place = self.places[rank]

    def below(self, index: int, one: int = rank) -> int:
        """Return how many of the elements before an index a rank owns."""
        turns, rest = divmod(index, self.cycle)
        return turns * self.piece + min(max(rest - self.places[one] * self.piece, 0), self.piece)

    def part(self, low: int, high: int, origin: int = 0) -> tuple[int, int]:
        """Return where in this rank's memory its elements of a range begin and end."""
        first, start = self.below(origin), self.below(low)
        return start - first, max(self.below(high), start) - first

    def range(self, low: int, high: int) -> tuple[int, int]:
        """Return the range of this rank's elements of a range; it owns one piece only."""
        start = max(low, self.place * self.piece)
        return start, max(start, min(high, (self.place + 1) * self.piece))

    def own(self, low: int, high: int, one: int = rank, step: int = 1, by: int = 0) -> Indices:
        """Return which elements of ``range(low, high, step)`` a rank owns, moved by a distance."""
        indices = range(low, high, step)
        return moved(picked(indices, self.owned(indices, one)), by)

    def dealt_to(self, index: Any) -> Any:
        """Return where along the axes the owner of an element is, or of each of its elements."""
        piece = index // self.piece
        return piece if self.cycle >= self.extent else piece % self.count

    def holds(self, index: int, one: int = rank) -> bool:
        """Return whether a rank owns an element."""
        return bool(self.dealt_to(index) == self.places[one])

    def some(self, low: int, high: int, one: int = rank) -> bool:
        """Return whether a rank owns any element of a range."""
        return self.below(high, one) > self.below(low, one)

    def owned(self, indices: Indices, one: int) -> Indices:
        """Return where among some indices those are that a rank owns."""
        if isinstance(indices, range):
            low, step = indices.start, indices.step
            if len(indices) == 1:
                return range(int(self.holds(low, one)))
            first = self.places[one] * self.piece
            if self.cycle >= self.extent:
                start, stop = -((low - first) // step), -((low - first - self.piece) // step)
                return range(max(0, start), max(0, start, min(len(indices), stop)))
            if self.piece == step == 1:
                return range((first - low) % self.count, len(indices), self.count)
        return np.flatnonzero(self.dealt_to(np.asarray(indices, int)) == self.places[one])

    def local(self, index: Any) -> Any:
        """Return where in its owner's memory an element lies, or each of its elements."""
        if isinstance(index, range):
            if self.cycle >= self.extent:
                return moved(index, -(index.start // self.piece * self.piece))
            if len(index) == 1:
                return moved(index, self.local(index.start) - index.start)
            index = np.asarray(index, int)
        within = index % self.piece
        return within if self.cycle >= self.extent else index // self.cycle * self.piece + within


def moved(indices: Indices, by: int) -> Indices:
    """Return indices so much further on."""
    if isinstance(indices, range):
        return range(indices.start + by, indices.stop + by, indices.step)
    return indices + by


def picked(indices: Indices, chosen: Indices) -> Indices:
    """Return some of the indices."""
    if isinstance(indices, range) and isinstance(chosen, range):
        return indices[chosen.start : chosen.stop : chosen.step]
    return np.asarray(indices, int)[chosen]


def block(*axes: str) -> tuple[tuple[str, ...], int]:
    """Consecutive pieces of ``ceil(extent / ranks)`` elements, one for each rank."""
    return axes, 0


def cyclic(k: int, *axes: str) -> tuple[tuple[str, ...], int]:
    """Pieces of `k` elements, dealt to the ranks in turn."""
    return axes, k


class Layout:
    """Who owns which elements of an array.

    The array is `shape` elements from `origin` on of an index space of `template` elements, whose
    dimensions are dealt out. Ranks that differ along mesh axes that no dimension names hold copies.
    """

    def __init__(
        self,
        mesh: Mesh,
        template: Sequence[int],
        *dims: tuple[tuple[str, ...], int] | None,
        origin: Sequence[int] = (),
        shape: Sequence[int] | None = None,
        order: Any = "C",
    ) -> None:
        spread = [dim or ((), 0) for dim in dims]
        self.dims = [Along(n, mesh, *dim) for n, dim in zip(template, spread)]  # noqa: B905
        self.origin = list(origin) or [0] * len(self.dims)
        self.shape = list(template if shape is None else shape)
        self.order = order
        named = [axis for axes, _ in spread for axis in axes]
        others = [axis for axis in mesh.axes if axis not in named]
        self.copies = [mesh.place(one, others) if named else one for one in range(size)]

    def owned(self, one: int = rank) -> list[Indices]:
        """Return the indices along each dimension that a rank owns."""
        parts = zip(self.dims, self.origin, self.shape)  # noqa: B905
        return [dim.own(o, o + n, one, by=-o) for dim, o, n in parts]

    def local(self, one: int = rank) -> tuple[int, ...]:
        """Return the shape of a rank's block."""
        return tuple(len(found) for found in self.owned(one))

    def shared(self, wanted: Sequence[Indices], one: int) -> list[Indices] | None:
        """Return which of the wanted indices a rank owns, along each dimension; None: none."""
        parts = zip(self.dims, self.origin, wanted)  # noqa: B905
        found = [dim.owned(moved(indices, o), one) for dim, o, indices in parts]
        return found if all(map(len, found)) else None

    def places(self, indices: Sequence[Indices]) -> Any:
        """Return where in this rank's block its own elements lie."""
        parts = zip(self.dims, self.origin, indices)  # noqa: B905
        local = (moved(dim.local(moved(one, o)), -dim.below(o)) for dim, o, one in parts)
        return at(*local)


def at(*places: Any) -> Any:
    """Return the index of the places along each dimension: slices where they are in equal steps."""
    found: list[Any] = []
    for one in places:
        if isinstance(one, range):
            found.append(slice(one.start, one.stop, one.step))
        elif isinstance(one, int):
            found.append(one)
        elif len(one) == 0:
            found.append(slice(0, 0))
        else:
            step = int(one[1] - one[0]) if len(one) > 1 else 1
            if step < 1 or not np.array_equal(one, np.arange(one[0], one[-1] + 1, step)):
                break
            found.append(slice(int(one[0]), int(one[-1]) + 1, step))
    if len(found) == len(places):
        return tuple(found)
    vectors = iter(np.ix_(*(np.asarray(one) for one in places if not isinstance(one, int))))
    return tuple(one if isinstance(one, int) else next(vectors) for one in places)


def always(_: int) -> bool:
    """Return that a rank needs something."""
    return True


def fetch(
    array: Array, layout: Layout, need: Need, when: Need = always, into: Array | None = None
) -> Array:
    """Return the elements that this rank needs of a distributed array; all ranks call it.

    ``need(one)`` says which a rank needs, the indices along each dimension, and ``when(one)``
    whether it does. As every rank knows that of all, owners send without being asked. Of copies
    each rank asks its own. They come to lie in `into`, which is no part of the array, if given.
    """
    mine = need(rank)
    found = np.empty([len(one) for one in mine], array.dtype) if into is None else into
    partners = [one for one in range(size) if layout.copies[one] == layout.copies[rank]]
    sent, requests = [], []
    for one in partners:
        wanted = need(one)
        chosen = layout.shared(wanted, rank) if when(one) else None
        if chosen is None:
            continue
        indices = [picked(every, some) for every, some in zip(wanted, chosen)]  # noqa: B905
        values = array[layout.places(indices)]
        if one == rank:
            found[at(*chosen)] = values
        else:
            sent.append(np.ascontiguousarray(values))
            requests.append(comm.Isend(sent[-1], one))
    for one in partners:
        chosen = layout.shared(mine, one) if one != rank and when(rank) else None
        if chosen is not None:
            values = np.empty([len(some) for some in chosen], array.dtype)
            comm.Recv(values, one)
            found[at(*chosen)] = values
    MPI.Request.Waitall(requests)
    return found


def from_owner(array: Array, layout: Layout, wanted: Sequence[Indices]) -> Array:
    """Return elements that one rank owns of a distributed array; all ranks call it."""
    found = np.empty([len(one) for one in wanted], array.dtype)
    owner = next((one for one in range(size) if layout.shared(wanted, one)), 0)
    if rank == owner and found.size:
        found[...] = array[layout.places(wanted)]
    comm.Bcast(found, owner)
    return found


def padded(block: Array, widths: Sequence[tuple[int, int]]) -> Array:
    """Return a copy of a block with room for neighbours' elements on either side."""
    pairs = zip(block.shape, widths)  # noqa: B905
    order: Any = "C" if block.flags.c_contiguous else "F" if block.flags.f_contiguous else "C"
    made = np.empty([low + n + high for n, (low, high) in pairs], block.dtype, order)
    made[core(widths)] = block
    return made


def core(widths: Sequence[tuple[int, int]]) -> tuple[slice, ...]:
    """Return the index of a padded block's own elements."""
    return tuple(slice(low, -high or None) for low, high in widths)


class Halo:
    """The exchange of a rim of neighbours' elements, one dimension after the other."""

    def __init__(self, layout: Layout, widths: Sequence[tuple[int, int]]) -> None:
        self.sides: dict[tuple[int, int], tuple[list[Any], list[Any]]] = {}
        own = [core([(low, high)])[0] for low, high in widths]
        for d in range(len(layout.dims)):
            for side, width in enumerate(widths[d]):
                if width:
                    # rims of dimensions that were exchanged before go along: corners get there
                    before, after = [slice(None)] * d, own[d + 1 :]
                    ends = _rims(layout, d, side, width)
                    base = ends[rank][0] - widths[d][0]
                    sends: list[Any] = []
                    receives: list[Any] = []
                    for one in range(size):
                        if not _in_line(layout, d, one):
                            continue
                        for pairs, owner, user in ((sends, rank, one), (receives, one, rank)):
                            low = max(ends[owner][0], ends[user][2])
                            high = min(ends[owner][1], ends[user][3])
                            if owner != user and low < high:
                                part = slice(low - base, high - base)
                                pairs.append((one, (*before, part, *after)))
                    self.sides[d, side] = sends, receives
        self.dims = [d for d in range(len(layout.dims)) if any(widths[d])]
        self.made: dict[tuple[int, str], tuple[list[Any], list[Any], list[Any]]] = {}

    def __call__(self, array: Array, *dims: int) -> None:
        """Fill the rim of a padded block, along all dimensions or some."""
        for d in dims or self.dims:
            sends, receives, requests = self.ready(d, array)
            for values, where in sends:
                values[...] = array[where]
            MPI.Prequest.Startall(requests)
            MPI.Prequest.Waitall(requests)
            for values, where in receives:
                array[where] = values

    def ready(self, d: int, array: Array) -> tuple[list[Any], list[Any], list[Any]]:
        """Return buffers and persistent requests of the messages along a dimension."""
        key = d, array.dtype.char
        if key not in self.made:
            sends, receives, requests = [], [], []
            for side in (0, 1):
                to, coming = self.sides.get((d, side), ((), ()))
                for one, where in to:
                    sends.append((np.empty_like(array[where], order="C"), where))
                    requests.append(comm.Send_init(sends[-1][0], one, side))
                for one, where in coming:
                    receives.append((np.empty_like(array[where], order="C"), where))
                    requests.append(comm.Recv_init(receives[-1][0], one, side))
            self.made[key] = sends, receives, requests
        return self.made[key]

    def receive(self, array: Array, d: int, side: int, *part: slice) -> None:
        """Wait for the rim of one side, or for a part of it along the other dimensions."""
        for one, where in _within(self.sides[d, side][1], d, part):
            values = np.empty(array[where].shape, array.dtype)
            comm.Recv(values, one)
            array[where] = values

    def send(self, array: Array, d: int, side: int, *part: slice) -> None:
        """Send the elements that are others' rim of that side, or a part of them."""
        for one, where in _within(self.sides[d, side][0], d, part):
            comm.Send(np.ascontiguousarray(array[where]), one)


def _within(pairs: Sequence[Any], d: int, part: Sequence[slice]) -> Sequence[Any]:
    if not part:
        return pairs
    return [(one, (*part[:d], where[d], *part[d + 1 :])) for one, where in pairs]


def _rims(layout: Layout, d: int, side: int, width: int) -> list[tuple[int, int, int, int]]:
    """Return the range that each rank owns along a dimension, and that of its rim on a side."""
    dim, origin, n = layout.dims[d], layout.origin[d], layout.shape[d]
    found = []
    for one in range(size):
        start = dim.places[one] * dim.piece + dim.below(origin, one)
        stop = start + dim.below(origin + n, one) - dim.below(origin, one)
        low, high = (start - width, start) if side == 0 else (stop, stop + width)
        found.append((start, stop, max(low, origin), min(high, origin + n)))
    return found


def _in_line(layout: Layout, d: int, one: int) -> bool:
    """Return whether a rank differs from this one along one dimension only."""
    return layout.copies[one] == layout.copies[rank] and all(
        dim.places[one] == dim.place for other, dim in enumerate(layout.dims) if other != d
    )


def identity(ufunc: Any, dtype: Any) -> Any:
    """Return the number that changes nothing."""
    if ufunc.identity is not None:
        return np.dtype(dtype).type(ufunc.identity)
    lowest, highest = -np.inf, np.inf
    if np.dtype(dtype).kind in "iu":
        lowest, highest = np.iinfo(dtype).min, np.iinfo(dtype).max
    return np.dtype(dtype).type(lowest if ufunc is np.maximum else highest)


def operation(ufunc: Any, dtype: Any) -> MPI.Op:
    """Return MPI's operation that does what a function of NumPy does, NaN included."""
    if ufunc is np.add and np.dtype(dtype).kind != "b":
        return MPI.SUM

    def combine(left: Any, right: Any, _: Any) -> None:
        one, other = (np.frombuffer(buffer, dtype) for buffer in (left, right))
        ufunc(one, other, out=other)

    return MPI.Op.Create(combine)


def reduced(values: Array, axis: Any, ufunc: Any, dtype: Any, line: MPI.Intracomm) -> Array:
    """Return a reduction over this rank's elements and those of the ranks in line."""
    own = ufunc.reduce(values, axis, dtype, initial=identity(ufunc, dtype))
    return combined(np.asarray(own, dtype), ufunc, line)


def combined(values: Array, ufunc: Any, line: MPI.Intracomm) -> Array:
    """Return what ranks in line have, combined element by element."""
    given = np.ascontiguousarray(values)
    made, op = np.empty_like(given), operation(ufunc, given.dtype)
    line.Allreduce(given, made, op)
    if not op.is_predefined:
        op.Free()
    return made.reshape(values.shape)


def scanned(
    values: Array, axis: int, ufunc: Any, dtype: Any, line: MPI.Intracomm, reverse: bool
) -> Array:
    """Return the running sums along an axis in blocks: one's own, and what ranks before have."""
    own = np.flip(values, axis) if reverse else values
    own = ufunc.accumulate(own, axis, dtype)
    neutral = identity(ufunc, dtype)
    total = np.array(ufunc.reduce(values, axis, dtype, initial=neutral), dtype, order="C")
    before, op = np.full_like(total, neutral), operation(ufunc, dtype)
    if reverse:
        turned: Any = line.Split(0, -line.Get_rank())
        line = turned
    line.Exscan(total, before, op)
    if line.Get_rank() == 0:
        before[...] = neutral  # of the first rank, MPI leaves it undefined
    if reverse:
        line.Free()
    if not op.is_predefined:
        op.Free()
    own = ufunc(np.expand_dims(before, axis), own)
    return np.flip(own, axis) if reverse else own


def add_at(array: Array, layout: Layout, places: Array, values: Any, ufunc: Any) -> None:
    """Combine elements of a distributed vector with values at places that any rank may own.

    Every rank gives its own places; those of an owner come to it in the order of ranks.
    """
    dim, n = layout.dims[0], layout.shape[0]
    given = np.broadcast_to(values, places.shape).ravel()
    where = places.ravel()
    least, most = (where.min(), where.max()) if where.size else (0, 0)
    if least < -n or most >= n:
        raise IndexError(f"a place beyond the {n} elements of the array")
    where = where % n if least < 0 else where
    ranks = np.array([dim.places.index(place) for place in range(dim.count)])
    owners = ranks[dim.dealt_to(where)]
    order = np.argsort(owners.astype(np.uint16), kind="stable")
    counts = np.bincount(owners, minlength=size)
    coming = np.empty_like(counts)
    comm.Alltoall(counts, coming)
    got = np.empty(coming.sum(), where.dtype), np.empty(coming.sum(), given.dtype)
    for column, made in zip((where, given), got):  # noqa: B905
        comm.Alltoallv((np.ascontiguousarray(column[order]), counts), (made, coming))
    ufunc.at(array, dim.local(got[0]), got[1])


def scatter(layout: Layout, whole: Array | None = None) -> Array:
    """Return this rank's block of an array that rank 0 has."""
    kind = comm.bcast(None if whole is None else whole.dtype.str)
    if rank == 0 and whole is not None:
        for one in range(1, size):
            comm.Send(np.ascontiguousarray(whole[np.ix_(*layout.owned(one))]), one)
        return np.array(whole[np.ix_(*layout.owned())], order=layout.order)
    made = np.empty(layout.local(), kind)
    comm.Recv(made, 0)
    return np.array(made, order=layout.order)


def gather(layout: Layout, own: Array) -> Array | None:
    """Return the array whose blocks ranks have, on rank 0; None on others."""
    if rank:
        if layout.copies[rank] == layout.copies[0]:
            comm.Send(np.ascontiguousarray(own), 0)
        return None
    whole = np.empty(layout.shape, own.dtype)
    whole[np.ix_(*layout.owned())] = own
    for one in range(1, size):
        if layout.copies[one] == layout.copies[0]:
            part = np.empty(layout.local(one), own.dtype)
            comm.Recv(part, one)
            whole[np.ix_(*layout.owned(one))] = part
    return whole
