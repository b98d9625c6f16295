"""What a part of the calibration is: points to time, how to do each, and how to fit them."""

from __future__ import annotations

import math
import os
import platform
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from itertools import repeat
from pathlib import Path
from statistics import fmean, median
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from costdb.launch.processes import ONE_THREAD
from costdb.machines import Json
from costdb.records import dataclass, field

if TYPE_CHECKING:
    from mpi4py import MPI


# The machine while it is measured: cores, caches, processor, who else computes, freed memory.
#
# Read in one place and handed on as a `Host`: whatever goes by caches and cores, the points of a
# section or a fit, is then the same wherever it is worked out.


# The cores that this process may use.


def usable_cores() -> int:
    """Return how many cores this process may use."""
    return len(_cores())


def cores_in_words() -> str:
    """Return which cores this process may use, as a calibration tells it."""
    return "cores " + ",".join(map(str, sorted(_cores())))


def _cores() -> frozenset[int]:
    if hasattr(os, "sched_getaffinity"):
        return frozenset(os.sched_getaffinity(0))
    return frozenset(range(os.cpu_count() or 1))


SYSTEM_SOURCE = "system"
SYSTEM_CITATION = "What the operating system states, in /sys/devices/system/cpu and by sysconf"

_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_PROCESSOR = Path("/proc/cpuinfo")
_UNITS = {"K": 2**10, "M": 2**20, "G": 2**30}


@dataclass(frozen=True, slots=True)
class Cache:
    """A cache that holds data; 0 is what the system does not state."""

    level: int
    size_bytes: int
    line_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Host:
    """What calibrating goes by.

    Attributes
    ----------
    cores : int
        That a process may use.
    caches : tuple of Cache
        Nearest first; empty where the system tells of none.
    line_bytes : int
        Of a cache line; 0 where the system does not state it.
    processor : str
        Maker and model.
    system : str
        The operating system.
    """

    cores: int
    caches: tuple[Cache, ...]
    line_bytes: int
    processor: str
    system: str

    @property
    def title(self) -> str:
        """What a profile is called after."""
        return f"{self.processor}, {self.cores} cores, {self.system}"


def this_host() -> Host:
    """Return the host that this process runs on."""
    return read_host(_CACHES, _PROCESSOR)


def read_host(folder: Path, processor: Path) -> Host:
    """Return a host by a folder of what its system tells of caches, and its ``/proc/cpuinfo``."""
    caches = tuple(sorted(_data_caches(folder), key=lambda cache: cache.level))
    line = next((cache.line_bytes for cache in caches if cache.line_bytes), 0)
    if not line and "SC_LEVEL1_DCACHE_LINESIZE" in os.sysconf_names:
        line = max(os.sysconf("SC_LEVEL1_DCACHE_LINESIZE"), 0)
    return Host(usable_cores(), caches, line, _model(processor), platform.system())


def host_of(document: Mapping[str, Any]) -> Host:
    """Return the host whose `dataclasses.asdict` this is."""
    return Host(**{**document, "caches": tuple(Cache(**one) for one in document["caches"])})


def hardware_facts(host: Host) -> dict[str, Json]:
    """Return the ``hardware`` section: only what the system states."""
    facts: dict[str, Json] = {"cores": _stated(host.cores, "core")}
    for one in host.caches:
        facts[f"l{one.level}_bytes"] = _stated(one.size_bytes, "byte")
    if host.line_bytes:
        facts["cache_line_bytes"] = _stated(host.line_bytes, "byte")
    return facts


def _model(processor: Path) -> str:
    if processor.is_file():
        for line in processor.read_text(errors="replace").splitlines():
            key, _, text = line.partition(":")
            if key.strip() == "model name" and text.strip():
                return " ".join(text.split())
    return platform.processor() or platform.machine()


def _data_caches(folder: Path) -> Iterator[Cache]:
    for index in sorted(folder.glob("index*")):
        kind, level, size, line = (
            _text(index / name) for name in ("type", "level", "size", "coherency_line_size")
        )
        if kind in ("Data", "Unified") and level.isdecimal() and _bytes(size):
            yield Cache(int(level), _bytes(size), int(line) if line.isdecimal() else 0)


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _bytes(size: str) -> int:
    number, unit = (size[:-1], size[-1:]) if size[-1:] in _UNITS else (size, "")
    return int(number) * _UNITS.get(unit, 1) if number.isdecimal() else 0


def _stated(value: int, unit: str) -> Json:
    return {"value": value, "unit": unit, "provenance": "published", "source": SYSTEM_SOURCE}


# Whether anything else ran while a launch was measured, as far as the system tells.

_STATISTICS = Path("/proc/stat")
# user, nice, system, interrupts, soft interrupts and stolen; the others are idle.
_BUSY_COLUMNS = (1, 2, 3, 6, 7, 8)


class Bystanders:
    """Watches from its making on; processes that this one started and waited for are its own."""

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._before = _others_s()

    def busy_cores(self) -> float | None:
        """Return how many cores were kept busy by others on average; None where unknown."""
        now, seconds = _others_s(), time.monotonic() - self._begun
        if now is None or self._before is None or seconds <= 0:
            return None
        return max(0.0, (now - self._before) / seconds)


def _others_s() -> float | None:
    try:
        columns = _STATISTICS.read_text().splitlines()[0].split()
        busy = sum(int(columns[at]) for at in _BUSY_COLUMNS)
    except (OSError, ValueError, IndexError):
        return None
    own = os.times()
    ours_s = own.user + own.system + own.children_user + own.children_system
    return busy / os.sysconf("SC_CLK_TCK") - ours_s


# NumPy with its matrix products on one thread, as a rank among others has it.


def blas_on_one_thread() -> None:
    """Have NumPy's library start no threads; it counts them once, when it is loaded.

    Who set the number of threads in the environment, or loaded NumPy already, is left alone.
    """
    if "numpy" not in sys.modules:
        for name, one in ONE_THREAD.items():
            os.environ.setdefault(name, one)


# What the C library does with freed memory: kept for good, or as in a program of some size.
#
# It keeps of the heap's free end twice the largest array that was ever freed, and gives back more.
# A process that measures arrays of many sizes has freed the largest long ago, and so keeps what a
# program with smaller ones gives back and gets anew, page by page, each time. What is measured is
# told which of the two it means. On other C libraries nothing is set.

_TRIM, _MAPPED_FROM, _MAPPED_AT_MOST = -1, -3, -4  # the C library's names for its settings
_HEAP_BYTES = 216_000
"""What the C library keeps of a heap without large arrays."""
_HEADER_BYTES = 8192
"""What an object has around its elements, and the rest of its last page, are less."""


@cache
def keep_freed_memory() -> None:
    """Tell the C library to keep what is freed, so that no sample pays for memory itself."""
    _set(_TRIM, 2**31 - 1)
    _set(_MAPPED_AT_MOST, 0)


def keep_as_with(largest_bytes: int) -> None:
    """Tell the C library to keep what it does in a program whose largest array is so large."""
    largest = max(_HEAP_BYTES, largest_bytes) + _HEADER_BYTES
    _set(_MAPPED_FROM, largest)
    _set(_TRIM, 2 * largest)


def _set(name: int, value: int) -> None:
    import ctypes

    change = getattr(ctypes.CDLL(None), "mallopt", None)
    if change is not None:
        change(name, value)


# What something takes on a processor that has several speeds.
#
# Where others share a processor's cores, one operation has several speeds, each for a tenth of a
# second to some seconds. Repetitions right after one another are shorter than that and meet one of
# them; a program that runs longer meets all, and takes what is right on average. A median would
# jump from one speed to another as their shares pass a half. So the repetitions are spread over
# several visits, a visit's value is the median of its repetitions, and what counts is the visits'
# mean.


_NONE_OUT, _VISITS_FOR_ONE = 5, 8
_NO_SPEED = 3.0
"""Who shares a core has about half of it: nothing takes three times as long by that."""


def typical(visits: Iterable[Collection[float]]) -> float:
    """Return the mean of visits' medians.

    Of five visits one at either end is left out, of thirteen two, and so on: one that was
    disturbed can take many times as long.

    Parameters
    ----------
    visits : iterable of collection of float
        Repetitions of each visit, in any unit.

    Raises
    ------
    statistics.StatisticsError
        There are no visits, or one has no repetition.
    """
    found = sorted(median(visit) for visit in visits)
    out = (len(found) + _VISITS_FOR_ONE - _NONE_OUT) // _VISITS_FOR_ONE
    return fmean(found[out : len(found) - out])


def typical_of_launches(each: Sequence[float]) -> float:
    """Return the mean of what launches say, but for those that take no speed of the processor's.

    Threads and ranks that wait for each other take hundreds of times as long while a process
    holds one of their cores. Where that went on for a part of a launch, the launch says nothing
    of the machine, and of three launches one would decide.

    Parameters
    ----------
    each : sequence of float
        What each launch says, in any unit.

    Raises
    ------
    statistics.StatisticsError
        There are no launches.
    """
    most = _NO_SPEED * median(each)
    return fmean(one for one in each if one <= most)


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
    operation : str
        Such as ``"message.column"``.
    median_error : float
        Median of ``|predicted - measured| / measured``.
    pairs : tuple of (float, float)
        Measured and predicted microseconds of these points.
    """

    operation: str
    median_error: float
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
        Of each operation that was fitted.
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

# In the order of measuring. The module has the section as SECTION, or as what it says behind a
# colon, and imports what the section needs, but for NumPy, only inside functions.
SECTIONS: Mapping[str, str] = MappingProxyType(
    {
        "messages": "costdb.calibration.messages",
        "arrays": "costdb.calibration.arrays",
        "loops": "costdb.calibration.loops",
        "together": "costdb.calibration.loops:TOGETHER",
        "collectives": "costdb.calibration.pickled:COLLECTIVES",
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
