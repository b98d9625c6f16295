"""What a part of the calibration is: points to time, how to do each, and how to fit them."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from enum import StrEnum
from importlib import import_module
from importlib.util import find_spec
from itertools import repeat
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from costdb.calibration.hardware import Host, blas_on_one_thread
from costdb.machines import Json
from costdb.records import dataclass, field
from costdb.repetition import typical, typical_of_launches

if TYPE_CHECKING:
    from mpi4py import MPI


Feature = int | float | str


class Need(StrEnum):
    """What a section cannot be measured without, besides NumPy."""

    MPI = "mpi"
    NUMBA = "numba"


class Effort(StrEnum):
    """How much to measure: a first idea within a minute, or all of it."""

    QUICK = "quick"
    FULL = "full"


@dataclass(frozen=True, slots=True)
class Point:
    """One thing to time.

    Attributes
    ----------
    operation : str
        Such as ``"message.column"``; points of one operation are fitted together.
    features : mapping of str to int, float or str
        All that the action and the fit need, units in the names: ``bytes``, ``rows``,
        ``pitch_bytes``, ``dtype``, ``ranks``.
    held_out : bool
        Kept from the fit; its error is what the profile publishes.
    """

    operation: str
    features: Mapping[str, Feature]
    held_out: bool = False


@dataclass(frozen=True, slots=True)
class Timing:
    """All samples of one point.

    Attributes
    ----------
    point : Point
    launches_us : tuple of tuple of tuple of float
        Raw samples in measured order, by launch of a fresh process and by visit.
    """

    point: Point
    launches_us: tuple[tuple[tuple[float, ...], ...], ...]

    @property
    def typical_us(self) -> float:
        """What the point takes: the mean over launches, but for one that others held up."""
        return typical_of_launches(self.each_launch_us)

    @property
    def each_launch_us(self) -> tuple[float, ...]:
        """What each launch says: what is typical of its visits."""
        return tuple(typical(launch) for launch in self.launches_us)

    @property
    def samples_us(self) -> tuple[float, ...]:
        """All samples, in measured order."""
        return tuple(us for launch in self.launches_us for visit in launch for us in visit)


@dataclass(frozen=True, slots=True)
class World:
    """Who takes part: this rank of `size`, on which host, and how to talk to the others."""

    host: Host
    rank: int = 0
    size: int = 1
    communicator: MPI.Intracomm | None = None


@dataclass(frozen=True, slots=True)
class Action:
    """What is timed.

    Attributes
    ----------
    run : callable
        One repetition. Collective where the section needs MPI: the slowest rank counts.
    repetitions : int
        How often `run` does the operation inside, so that short ones can be timed.
    close : callable
        Frees what the preparation took (windows, data types).
    before : callable
        Brings memory to the state that `run` starts from; done before each sample, not timed.
    alone : bool
        Whether this thread does all of it and waits for nobody: then the time that the process
        ran is what counts, which leaves out what others on a shared machine took of its core.
        On a machine at rest it is the time that passed.
    """

    run: Callable[[], object]
    repetitions: int = 1
    close: Callable[[], object] = field(default=lambda: None)
    before: Callable[[], object] = field(default=lambda: None)
    alone: bool = False


@dataclass(frozen=True, slots=True)
class Quality:
    """How well a model does on points that were kept from its fit.

    Attributes
    ----------
    operation, model : str
        Such as ``"message.column"`` and ``"M1 in pieces"``.
    r2 : float
        Residual over total sum of squares: 0 is perfect, 1 no better than the mean.
    median_error : float
        Median of ``|predicted - measured| / measured``.
    points : int
        How many were held out.
    chosen : bool
        Whether the profile uses this model.
    pairs : tuple of (float, float)
        Measured and predicted microseconds of the points that were held out.
    """

    operation: str
    model: str
    r2: float
    median_error: float
    points: int
    chosen: bool
    pairs: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Fitted:
    """What came of a section.

    Attributes
    ----------
    parts : mapping of str to JSON
        Sections of the profile, by their top-level name (``lines``, ``smp``, ``arrays``); parts
        of one name from several sections are merged by key.
    qualities : tuple of Quality
        The chosen models, and beside them the standard ones.
    notes : tuple of str
        What a reader of the profile must know.
    """

    parts: Mapping[str, Json]
    qualities: tuple[Quality, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Section:
    """One part of the calibration.

    Attributes
    ----------
    name : str
        Short, for the store and ``--only``: ``messages``.
    title : str
        For the progress bar: "messages: rows, columns and strides".
    needs : frozenset of Need
        What must be installed; the section is skipped without.
    points : callable
        From the effort, the ranks of the world where the section needs MPI, else the cores that may
        be used, and the host, to what to time: the same list on every rank and every launch.
    action : callable
        Prepares buffers for a point in a world and returns what to time. Runs on every rank.
    fit : callable
        Fits the models to all timings, which were taken on a host. Quantities have provenance
        ``measured`` and the source ``calibration``, which the harness adds to the profile's.
    """

    name: str
    title: str
    needs: frozenset[Need]
    points: Callable[[Effort, int, Host], Sequence[Point]]
    action: Callable[[Point, World], Action]
    fit: Callable[[Sequence[Timing], Host], Fitted]


# Sizes to measure at, and how often to repeat what is short.

# A clock's tick and a barrier's skew are small beside a sample so long.
SAMPLE_US = 100.0


def spread_sizes(low: int, high: int, count: int, unit: int = 8) -> list[int]:
    """Return `count` sizes from `low` to `high`, evenly spaced in their logarithm.

    They are multiples of `unit` bytes, and not powers of two but by chance.
    """
    ratio = math.log(high / low)
    sizes = (low * math.exp(ratio * number / (count - 1)) for number in range(count))
    return [max(unit, round(size / unit) * unit) for size in sizes]


def repetitions(guess_us: float) -> int:
    """Return how often to repeat what takes about so long, for a sample that can be timed."""
    return max(1, round(SAMPLE_US / guess_us))


def repeated(
    step: Callable[[], object],
    times: int,
    each: int = 1,
    close: Callable[[], object] = lambda: None,
    *,
    alone: bool = False,
) -> Action:
    """Return the action that does a step so often, which is `each` operations."""

    def run() -> None:
        for _ in repeat(None, times):
            step()

    return Action(run, times * each, close, alone=alone)


def communicator_of(world: World) -> Any:
    """Return who talks to whom in a section that needs MPI."""
    assert world.communicator is not None
    return world.communicator


# The sections of the calibration, by name; each is imported only when it is measured or fitted.

# In the order of measuring. The module has the section as SECTION, and imports what the section
# needs, but for NumPy, only inside functions.
SECTIONS: Mapping[str, str] = MappingProxyType(
    {
        "messages": "costdb.calibration.messages",
        "arrays": "costdb.calibration.arrays",
        "loops": "costdb.calibration.loops",
        "together": "costdb.calibration.together",
        "collectives": "costdb.calibration.collectives",
        "pickled": "costdb.calibration.pickled",
        "remote": "costdb.calibration.remote",
        "supersteps": "costdb.calibration.supersteps",
    }
)

_MODULES: Mapping[Need, str] = MappingProxyType({Need.MPI: "mpi4py", Need.NUMBA: "numba"})


class CalibrationError(ValueError):
    """A calibration that cannot be made; the message says why in one line."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """A section that cannot be measured here, and why."""

    name: str
    reason: str


def find_section(name: str) -> Section:
    """Return a section by its name, or by ``module:ATTRIBUTE`` as one of another package.

    Raises
    ------
    CalibrationError
        There is none of that name.
    """
    if ":" not in name:
        check_names((name,))
    module, _, attribute = SECTIONS.get(name, name).partition(":")
    blas_on_one_thread()
    try:
        found = getattr(import_module(module), attribute or "SECTION")
    except (ImportError, AttributeError) as error:
        raise CalibrationError(f"section {name} cannot be loaded: {error}") from error
    section: Section = found
    return section


def check_names(names: Collection[str]) -> None:
    """Refuse names that are in no list; ``module:ATTRIBUTE`` is for programs, not for people.

    Raises
    ------
    CalibrationError
        There is none of a name.
    """
    for name in names:
        if name not in SECTIONS:
            raise CalibrationError(
                f'the calibration has no section "{name}", only {", ".join(SECTIONS)}'
            )


def sections(names: Collection[str] = ()) -> Iterator[Section | Skipped]:
    """Yield the sections asked for, all where `names` is empty, in the order of measuring.

    Raises
    ------
    CalibrationError
        There is none of a name.
    """
    for name in names or SECTIONS:
        section = find_section(name)
        missing = [_MODULES[need] for need in sorted(section.needs) if not _installed(need)]
        yield Skipped(name, f"{' and '.join(missing)} missing") if missing else section


def _installed(need: Need) -> bool:
    return find_spec(_MODULES[need]) is not None
