"""One-sided references: the four patterns of the PGAS model with real windows.

Every rank reaches into the window of the next at once. A *baseline* reference is a program's
scalar access: one ``Get`` (``Put``) of a double word at a random place, and a flush before the
next. *Coalesced* references are one call with an indexed type of small irregular strides,
*vector* ones a call of consecutive words, each call at another place and with its flush; a
*local* one is an element of the rank's own window, read or written through its NumPy view.
*Pipelined* scalars, flushed together, are timed beside them. Loops are Python's, as in the
programs that are predicted. What private statements take longer after each reference is timed as
well (:mod:`costdb.calibration.ranks.remote_private`).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle
from typing import Any

import numpy as np

from costdb.calibration.host.hardware import Host
from costdb.calibration.ranks.remote_fit import fit_remote
from costdb.calibration.ranks.remote_private import PRIVATE, private_statement
from costdb.calibration.section import Action, Effort, Fitted, Need, Point, Timing, World
from costdb.calibration.sizes import repetitions, spread_sizes

_WORD_BYTES = 8
_WINDOW_WORDS = 1 << 17
_LARGEST_WORDS = {"coalesce": 8 << 10, "vector": 16 << 10}
_COUNTS = {Effort.QUICK: 8, Effort.FULL: 20}
# Single references are timed by so many at different places; several points tell the spread.
_SCALARS = (40, 56, 72, 88)
_BESIDE = (56, 88)
_BLOCK_PLACES = 61
_SEED = 5


class Remote:
    """The section that measures and fits ``pgas``."""

    name = "remote"
    title = "remote references: patterns and synchronisation"
    needs = frozenset((Need.MPI,))

    def points(self, effort: Effort, processors: int, host: Host) -> Sequence[Point]:
        """Return references of each pattern, private statements beside, and synchronisation."""
        made = [
            Point(operation, {"words": words, "ranks": processors}, held_out=number % 2 == 1)
            for operation, number, words in _references(_COUNTS[effort])
        ]
        made += [
            Point(
                operation,
                {"words": words, "private": what, "ranks": processors},
                held_out=number % 2 == 1,
            )
            for operation in ("remote.private", "remote.beside.read", "remote.beside.write")
            for what in PRIVATE
            for number, words in enumerate(_BESIDE)
        ]
        alone = ("remote.fence", "remote.lock", "remote.flush", "remote.barrier")
        return made + [Point(name, {"words": 0, "ranks": processors}) for name in alone]

    def action(self, point: Point, world: World) -> Action:
        """Return references into the next rank's window, in an epoch that is open all the time."""
        from mpi4py import MPI

        communicator = world.communicator
        assert communicator is not None
        window: Any = MPI.Win.Allocate(_WINDOW_WORDS * _WORD_BYTES, _WORD_BYTES, comm=communicator)
        np.frombuffer(window, dtype=np.float64)[:] = 1.0
        step, close = _step(point, window, communicator)
        words = int(point.features["words"])
        count = repetitions(5.0 + words * (1e-3 if words > _SCALARS[-1] else 0.5))

        def run() -> None:
            for _ in range(count):
                step()

        def free() -> None:
            close()
            window.Free()

        return Action(run, count, free)

    def fit(self, timings: Sequence[Timing], host: Host) -> Fitted:
        """Fit the rate of each pattern, and a call's time for those of many words."""
        return fit_remote(timings)


SECTION = Remote()


def _references(count: int) -> Iterator[tuple[str, int, int]]:
    for kind in ("read", "write"):
        for pattern in ("baseline", "pipelined", "local"):
            for number, words in enumerate(_SCALARS):
                yield f"remote.{pattern}.{kind}", number, words
        for pattern, most in _LARGEST_WORDS.items():
            for number, words in enumerate(spread_sizes(8, most, count, unit=1)):
                yield f"remote.{pattern}.{kind}", number, words


def _step(
    point: Point, window: Any, communicator: Any
) -> tuple[Callable[[], object], Callable[[], object]]:
    """Return what to repeat, and what ends the epoch it is in."""
    size = communicator.Get_size()
    target = (communicator.Get_rank() + 1) % size
    _, name, *kind = point.operation.split(".")
    if name == "barrier":
        return communicator.Barrier, _nothing
    if name == "fence":
        window.Fence()
        return window.Fence, _nothing
    if name == "lock":

        def locked() -> None:
            window.Lock(target)
            window.Unlock(target)

        return locked, _nothing
    if name == "private":
        return _private(point), _nothing
    window.Lock_all()
    if name == "flush":
        return lambda: window.Flush(target), window.Unlock_all
    words, store = int(point.features["words"]), kind == ["write"]
    if name == "local":
        return _local(window, words, store=store), window.Unlock_all
    move = window.Put if store else window.Get
    if name in _LARGEST_WORDS:
        return _block(window, move, target, words, indexed=name == "coalesce")
    if name == "beside":
        return _beside(window, move, target, point), window.Unlock_all
    return _scalars(window, move, target, words, each=name == "baseline"), window.Unlock_all


def _nothing() -> None:
    pass


def _places(count: int, below: int = _WINDOW_WORDS) -> list[int]:
    return random.Random(_SEED).choices(range(below), k=count)


def _scalars(
    window: Any, move: Callable[..., object], target: int, words: int, *, each: bool
) -> Callable[[], object]:
    from mpi4py import MPI

    places = _places(words)
    # what is in flight together needs places of its own
    cells = [np.ones(1)] * words if each else list(np.ones((words, 1)))

    def flushed_each() -> None:
        for cell, place in zip(cells, places, strict=True):
            move(cell, target, (place, 1, MPI.DOUBLE))
            window.Flush(target)

    def flushed_once() -> None:
        for cell, place in zip(cells, places, strict=True):
            move(cell, target, (place, 1, MPI.DOUBLE))
        window.Flush(target)

    return flushed_each if each else flushed_once


def _beside(
    window: Any, move: Callable[..., object], target: int, point: Point
) -> Callable[[], object]:
    from mpi4py import MPI

    places = _places(int(point.features["words"]))
    cells, then = [np.ones(1)] * len(places), private_statement(str(point.features["private"]))

    def beside() -> None:
        for cell, place in zip(cells, places, strict=True):
            move(cell, target, (place, 1, MPI.DOUBLE))
            window.Flush(target)
            then(place)

    return beside


def _private(point: Point) -> Callable[[], object]:
    places = _places(int(point.features["words"]))
    then = private_statement(str(point.features["private"]))

    def alone() -> None:
        for place in places:
            then(place)

    return alone


def _local(window: Any, words: int, *, store: bool) -> Callable[[], object]:
    own, places = np.frombuffer(window, dtype=np.float64), _places(words)

    def read() -> None:
        for place in places:
            own[place]

    def write() -> None:
        for place in places:
            own[place] = 1.0

    return write if store else read


def _block(
    window: Any, move: Callable[..., object], target: int, words: int, *, indexed: bool
) -> tuple[Callable[[], object], Callable[[], object]]:
    from mpi4py import MPI

    cells = np.ones(words)
    if indexed:
        gaps = random.Random(_SEED).choices((1, 2, 3, 4), k=words)
        spots = np.cumsum(gaps)
        there = MPI.DOUBLE.Create_indexed_block(1, spots.tolist()).Commit()
        reach, count = int(spots[-1]) + 1, 1
    else:
        there, reach, count = None, words, words
    kind = MPI.DOUBLE if there is None else there
    # programs come to another place each time, and say where in the call
    places = cycle(_places(_BLOCK_PLACES, _WINDOW_WORDS - reach))

    def block() -> None:
        move(cells, target, (next(places), count, kind))
        window.Flush(target)

    def close() -> None:
        window.Unlock_all()
        if there is not None:
            there.Free()

    return block, close
