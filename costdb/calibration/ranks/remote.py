"""One-sided references: the four patterns of the PGAS model with real windows.

Every rank reaches into the window of the next at once. A *baseline* reference is a program's
scalar access: one ``Get`` (``Put``) of a double word at a random place, and a flush before the
next. *Coalesced* references are one call with an indexed type of small irregular strides,
*vector* ones a call of consecutive words, each call at another place and with its flush; a
*local* one is an element of the rank's own window, read or written through its NumPy view.
*Pipelined* scalars, flushed together, are timed beside them. Loops are Python's, as in the
programs that are predicted. What private statements take longer after each reference is timed as
well (:mod:`costdb.calibration.ranks.remote`).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from statistics import median
from typing import Any

import numpy as np

from costdb.calibration.fitting import (
    Vector,
    fit_above,
    held_out,
    predict,
    quality,
    residual_of,
    typical_us,
)
from costdb.calibration.host.hardware import Host
from costdb.calibration.section import (
    Action,
    Effort,
    Fitted,
    Need,
    Point,
    Quality,
    Timing,
    World,
    repetitions,
    spread_sizes,
)
from costdb.machines.documents import Json, measured
from costdb.pgas.model import RESUME_US

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


# Rates of one-sided references by pattern, fitted to their measured times.

# Private computation between remote references, which finds the library's code in its place.
#
# A loop of references, or of private statements, keeps caches and branch predictors to itself. In a
# program the two take turns, and each return from a reference finds them full of the other's code
# and data. Timed are private statements alone and after each reference; what they take longer is
# neither the reference's rate nor the private part.

PRIVATE = ("element", "integer", "sum", "added")
"""An element added to, whole numbers divided; a vector summed up, one added to another by the
library."""

_VECTOR = 64
_DIVISOR = 7


def private_statement(what: str) -> Callable[[int], object]:
    """Return a statement of one's own variables that takes a place."""
    cell, left, made = np.ones(1), np.ones(_VECTOR), np.ones(_VECTOR)

    def element(_: int) -> None:
        cell[0] += 1.0

    def integer(place: int) -> object:
        return divmod(place, _DIVISOR)

    def added(_: int) -> object:
        return np.add(left, left, out=made)

    return {
        "element": element,
        "integer": integer,
        "sum": lambda _: left.sum(),
        "added": added,
    }[what]


_OPERATION = "remote.beside."
_PRIVATE = "remote.private"


@dataclass(frozen=True, slots=True)
class Beside:
    """References with a private statement after each.

    Attributes
    ----------
    timing : Timing
    apart_us : float
        What the references and the statements take apart.
    """

    timing: Timing
    apart_us: float

    @property
    def words(self) -> float:
        """How many references there are."""
        return float(self.timing.point.features["words"])

    @property
    def longer_us(self) -> float:
        """What each reference makes the rest take longer."""
        return (self.timing.typical_us - self.apart_us) / self.words


class Resumption:
    """What a program's own work takes longer after each reference to another's memory.

    Parameters
    ----------
    timings : sequence of Timing
        Of the section; points that were not measured are none.
    word_us : mapping of str to float
        One reference, by ``"read"`` and ``"write"``.
    """

    def __init__(self, timings: Sequence[Timing], word_us: Mapping[str, float]) -> None:
        alone = {
            _statements(timing): timing.typical_us
            for timing in timings
            if timing.point.operation == _PRIVATE
        }
        self._found = [
            Beside(timing, alone[_statements(timing)] + each * float(_statements(timing)[1]))
            for kind, each in word_us.items()
            for timing in timings
            if timing.point.operation == _OPERATION + kind and _statements(timing) in alone
        ]
        # it differs by the statement, and which one a program has is not known
        self._longer_us = sorted(max(0.0, one.longer_us) for one in self._given(held_out=False))

    def _given(self, *, held_out: bool) -> list[Beside]:
        return [one for one in self._found if one.timing.point.held_out is held_out]

    def document(self) -> dict[str, Json]:
        """Return what a profile says of it: nothing where nothing was measured."""
        seen = self._longer_us
        note = "ends: the private statements and kinds of reference that it was measured with"
        return {RESUME_US: measured(median(seen), "us", seen[0], seen[-1], note)} if seen else {}

    def tested(self) -> Iterator[tuple[Timing, float]]:
        """Yield the points kept from the fit with their predicted times."""
        for one in self._given(held_out=True) if self._longer_us else ():
            yield one.timing, one.apart_us + median(self._longer_us) * one.words

    def qualities(self) -> Iterator[Quality]:
        """Yield the errors with it and without."""
        kept = [(timing.typical_us, predicted) for timing, predicted in self.tested()]
        if not kept:
            return
        apart = [one.apart_us for one in self._given(held_out=True)]
        times, predicted = (np.array(column) for column in zip(*kept, strict=True))
        operation = _OPERATION.rstrip(".")
        yield quality(operation, "apart", times, np.array(apart), chosen=False)
        yield quality(operation, "apart and resumed", times, predicted, chosen=True)


def _statements(timing: Timing) -> tuple[str, int]:
    features = timing.point.features
    return str(features["private"]), int(features["words"])


_PATTERNS = ("baseline", "coalesce", "vector", "local")
_OF_MANY = ("coalesce", "vector")
_KINDS = ("read", "write")
_SYNCHRONIZATION = ("fence", "lock", "flush")
# A word takes no less than this, whatever else explains the times: eight terabytes a second.
_LEAST_US_PER_WORD = 1e-6

_Coefficients = dict[str, float]


def fit_remote(timings: Sequence[Timing]) -> Fitted:
    """Fit the section ``pgas`` of a profile, and what barriers take."""
    ranks = int(timings[0].point.features["ranks"])
    found = {
        (pattern, kind): _fit(_of(timings, pattern, kind), pattern)
        for pattern in _PATTERNS
        for kind in _KINDS
    }
    tested = [
        (timing, float(predicted))
        for (pattern, kind), coefficients in found.items()
        for timing, predicted in _tested(_of(timings, pattern, kind), coefficients)
    ]
    resumed = Resumption(timings, {kind: found["baseline", kind]["word"] for kind in _KINDS})
    tested += resumed.tested()
    section: dict[str, Any] = {
        "rates": {
            pattern: {f"t{ranks}": {kind: _rate(found[pattern, kind]) for kind in _KINDS}}
            for pattern in _PATTERNS
        },
        "call_us": {
            pattern: {
                f"t{ranks}": {kind: measured(found[pattern, kind]["call"], "us") for kind in _KINDS}
            }
            for pattern in _OF_MANY
        },
        **resumed.document(),
        "synchronization": {
            f"{name}_us": measured(float(typical_us(_named(timings, name))[0]), "us")
            for name in _SYNCHRONIZATION
        },
        "optimizations": {pattern: list(_KINDS) for pattern in _OF_MANY},
        "residual": residual_of([timing for timing, _ in tested], np.array([p for _, p in tested])),
    }
    section["range"] = {"call_words": _range(timings)}
    barrier = float(typical_us(_named(timings, "barrier"))[0])
    steps = max(1, (ranks - 1).bit_length())
    parts: dict[str, Any] = {
        "pgas": section,
        "collectives": {"barrier_step_us": measured(barrier / steps, "us")},
    }
    qualities = (*_qualities(timings, found), *resumed.qualities())
    return Fitted(parts, qualities, _notes(timings, ranks))


def _named(timings: Sequence[Timing], name: str) -> list[Timing]:
    return [timing for timing in timings if timing.point.operation == f"remote.{name}"]


def _of(timings: Sequence[Timing], pattern: str, kind: str) -> list[Timing]:
    return _named(timings, f"{pattern}.{kind}")


def _range(timings: Sequence[Timing]) -> list[float]:
    """Return the fewest and the most words of a call that every pattern was measured with."""
    words = [
        [float(timing.point.features["words"]) for timing in _of(timings, pattern, "read")]
        for pattern in _OF_MANY
    ]
    return [max(map(min, words)), min(map(max, words))]


def _columns(timings: Sequence[Timing], *, calls: bool) -> dict[str, Vector]:
    words = np.array([float(timing.point.features["words"]) for timing in timings])
    return {"call": np.ones(words.size), "word": words} if calls else {"word": words}


def _fit(timings: Sequence[Timing], pattern: str) -> _Coefficients:
    given = [timing for timing in timings if not timing.point.held_out]
    columns = _columns(given, calls=pattern in _OF_MANY)
    return fit_above(columns, typical_us(given), {"word": _LEAST_US_PER_WORD})


def _tested(
    timings: Sequence[Timing], coefficients: _Coefficients
) -> Iterator[tuple[Timing, float]]:
    kept = [timing for timing in timings if timing.point.held_out]
    predicted = predict(_columns(kept, calls="call" in coefficients), coefficients)
    yield from zip(kept, predicted.tolist(), strict=True)


def _rate(coefficients: _Coefficients) -> dict[str, Any]:
    return measured(1e6 / coefficients["word"], "double words/s")


def _qualities(
    timings: Sequence[Timing], found: dict[tuple[str, str], _Coefficients]
) -> Iterator[Quality]:
    for (pattern, kind), coefficients in found.items():
        points = _of(timings, pattern, kind)
        times, kept = typical_us(points), held_out(points)
        ours = predict(_columns(points, calls="call" in coefficients), coefficients)
        operation = f"remote.{pattern}.{kind}"
        if "call" in coefficients:
            words = _columns(points, calls=False)
            given = {name: column[~kept] for name, column in words.items()}
            rate = predict(words, fit_above(given, times[~kept]))
            yield quality(operation, "rate alone", times[kept], rate[kept], chosen=False)
        label = "rate and call" if "call" in coefficients else "rate"
        yield quality(operation, label, times[kept], ours[kept], chosen=True)


def _notes(timings: Sequence[Timing], ranks: int) -> tuple[str, ...]:
    rates = []
    for kind in _KINDS:
        points = _of(timings, "pipelined", kind)
        words = np.array([float(timing.point.features["words"]) for timing in points])
        rates.append(f"{float(np.median(words / typical_us(points))):.2f} million {kind}s")
    return (
        f"Rates of remote references are those of {ranks} ranks that all reach into the next "
        "one's window at once, from Python loops.",
        f"Scalar references that are flushed together instead: {' and '.join(rates)} a second.",
    )
