"""The machine while it is measured: cores, caches, processor, who else computes, freed memory.

Read in one place and handed on as a `Host`: whatever goes by caches and cores, the points of a
section or a fit, is then the same wherever it is worked out.
"""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from costdb.machines import Json
from costdb.records import dataclass

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

_NAMES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


def blas_on_one_thread() -> None:
    """Have NumPy's library start no threads; it counts them once, when it is loaded.

    Who set the number of threads in the environment, or loaded NumPy already, is left alone.
    """
    if "numpy" not in sys.modules:
        for name in _NAMES:
            os.environ.setdefault(name, "1")


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
