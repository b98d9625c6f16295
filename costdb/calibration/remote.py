"""One-sided references: the four patterns of the PGAS model with real windows.

Every rank reaches into the window of the next at once. A *baseline* reference is a program's
scalar access: one ``Get`` (``Put``) of a double word at a random place, and a flush before the
next. *Coalesced* references are one call with an indexed type of small irregular strides,
*vector* ones a call of consecutive words, each call at another place and with its flush; a
*local* one is an element of the rank's own window, read or written through its NumPy view.
Loops are Python's, as in the programs that are predicted.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle, product
from operator import itemgetter
from typing import Any

import numpy as np

from costdb.calibration.fitting import (
    TOO_FEW,
    feature,
    fit_and_judge,
    held_out,
    named,
    residual_of_all,
    typical_us,
)
from costdb.calibration.section import (
    Action,
    Effort,
    Fitted,
    Host,
    Need,
    Point,
    Quality,
    Section,
    Timing,
    World,
    communicator_of,
    repeated,
    repetitions,
    spread_sizes,
)
from costdb.machines import measured

_WORD_BYTES = 8
_WINDOW_WORDS = 1 << 17
_LARGEST_WORDS = {"coalesce": 8 << 10, "vector": 16 << 10}
_COUNTS = {Effort.QUICK: 8, Effort.FULL: 20}
# Single references are timed by so many at different places; several points tell the spread.
_SCALARS = (40, 56, 72, 88)
_BLOCK_PLACES = 61
_SEED = 5
_PATTERNS = ("baseline", "coalesce", "vector", "local")
_OF_MANY = ("coalesce", "vector")
_KINDS = ("read", "write")


def _points(effort: Effort, processors: int, host: Host) -> Sequence[Point]:
    """Return references of each pattern, and a barrier."""
    made = [
        Point(operation, {"words": words, "ranks": processors}, number % 2 == 1)
        for operation, number, words in _references(_COUNTS[effort])
    ]
    return [*made, Point("remote.barrier", {"words": 0, "ranks": processors})]


def _action(point: Point, world: World) -> Action:
    """Return references into the next rank's window, in an epoch that is open all the time."""
    from mpi4py import MPI

    communicator = communicator_of(world)
    window: Any = MPI.Win.Allocate(_WINDOW_WORDS * _WORD_BYTES, _WORD_BYTES, comm=communicator)
    np.frombuffer(window, dtype=np.float64)[:] = 1.0
    step, close = _step(point, window, communicator)
    words = int(point.features["words"])
    count = repetitions(5.0 + words * (1e-3 if words > _SCALARS[-1] else 0.5))

    def free() -> None:
        close()
        window.Free()

    return repeated(step, count, close=free)


def _references(count: int) -> Iterator[tuple[str, int, int]]:
    for kind in _KINDS:
        for pattern in ("baseline", "local"):
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
        return communicator.Barrier, lambda: None
    words, store = int(point.features["words"]), kind == ["write"]
    window.Lock_all()
    if name == "local":
        return _local(window, words, store=store), window.Unlock_all
    move = window.Put if store else window.Get
    if name in _LARGEST_WORDS:
        return _block(window, move, target, words, indexed=name == "coalesce")
    return _scalars(window, move, target, words), window.Unlock_all


def _places(count: int, below: int = _WINDOW_WORDS) -> list[int]:
    return random.Random(_SEED).choices(range(below), k=count)


def _scalars(
    window: Any, move: Callable[..., object], target: int, words: int
) -> Callable[[], object]:
    from mpi4py import MPI

    places, cell = _places(words), np.ones(1)

    def flushed_each() -> None:
        for place in places:
            move(cell, target, (place, 1, MPI.DOUBLE))
            window.Flush(target)

    return flushed_each


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


# Rates of one-sided references by pattern, fitted to their measured times.


def _fitted(timings: Sequence[Timing], host: Host) -> Fitted:
    """Fit the section ``pgas`` of a profile, and what barriers take."""
    ranks = int(timings[0].point.features["ranks"])
    found: dict[tuple[str, str], dict[str, float]] = {}
    fitted: list[Timing] = []
    qualities: list[Quality] = []
    for pattern, kind in product(_PATTERNS, _KINDS):
        points = _named(timings, f"{pattern}.{kind}")
        columns = {"word": feature(points, "words")}
        if pattern in _OF_MANY:
            columns["call"] = np.ones(len(points))
        if np.count_nonzero(~held_out(points)) < 2 * len(columns):
            # fewer than twice as many points as coefficients fit nearly anything
            raise ValueError(TOO_FEW)
        found[pattern, kind], quality = fit_and_judge(points, columns)
        fitted += points
        qualities.append(quality)

    def stated(pattern: str, unit: str, of: Callable[[dict[str, float]], float]) -> dict[str, Any]:
        each = {kind: measured(of(found[pattern, kind]), unit) for kind in _KINDS}
        return {f"t{ranks}": each}

    section: dict[str, Any] = {
        "rates": {p: stated(p, "double words/s", lambda one: 1e6 / one["word"]) for p in _PATTERNS},
        "call_us": {p: stated(p, "us", itemgetter("call")) for p in _OF_MANY},
        "optimizations": {pattern: list(_KINDS) for pattern in _OF_MANY},
        "residual": residual_of_all(fitted, qualities),
        "range": {"call_words": _range(timings)},
    }
    steps = max(1, (ranks - 1).bit_length())
    (barrier,) = typical_us(_named(timings, "barrier"))
    barrier_us = measured(float(barrier) / steps, "us")
    parts: dict[str, Any] = {"pgas": section, "collectives": {"barrier_step_us": barrier_us}}
    return Fitted(parts, tuple(qualities), (_NOTE.format(ranks),))


def _named(timings: Sequence[Timing], name: str) -> list[Timing]:
    return named(timings, f"remote.{name}")


def _range(timings: Sequence[Timing]) -> list[float]:
    """Return the fewest and the most words of a call that every pattern was measured with."""
    words = [feature(_named(timings, f"{pattern}.read"), "words") for pattern in _OF_MANY]
    return [float(max(map(min, words))), float(min(map(max, words)))]


_NOTE = (
    "Rates of remote references are those of {} ranks that all reach into the next one's window"
    " at once, from Python loops."
)


SECTION = Section(
    "remote",
    "remote references: patterns, and barriers",
    frozenset((Need.MPI,)),
    _points,
    _action,
    _fitted,
)
