"""What the operating system says of the machine: cache line, cache sizes, cores."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from pathlib import Path

from costdb.calibration.host.cores import usable_cores
from costdb.machines.documents import Json

SYSTEM_SOURCE = "system"
SYSTEM_CITATION = "What the operating system states, in /sys/devices/system/cpu and by sysconf"

_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_PROCESSOR = Path("/proc/cpuinfo")
_UNITS = {"K": 2**10, "M": 2**20, "G": 2**30}


def hardware_facts(caches: Path = _CACHES) -> dict[str, Json]:
    """Return the ``hardware`` section: only what the system states."""
    facts: dict[str, Json] = {"cores": _stated(usable_cores(), "core")}
    line = 0
    for level, size, line_bytes in _data_caches(caches):
        facts[f"l{level}_bytes"] = _stated(size, "byte")
        line = line or line_bytes
    if not line and "SC_LEVEL1_DCACHE_LINESIZE" in os.sysconf_names:
        line = os.sysconf("SC_LEVEL1_DCACHE_LINESIZE")
    if line > 0:
        facts["cache_line_bytes"] = _stated(line, "byte")
    return facts


def machine_title() -> str:
    """Return maker and model of the processor, and how many cores there are."""
    model = platform.processor() or platform.machine()
    if _PROCESSOR.is_file():
        for line in _PROCESSOR.read_text(errors="replace").splitlines():
            key, _, text = line.partition(":")
            if key.strip() == "model name" and text.strip():
                model = " ".join(text.split())
                break
    return f"{model}, {usable_cores()} cores, {platform.system()}"


def _data_caches(folder: Path) -> Iterator[tuple[int, int, int]]:
    for index in sorted(folder.glob("index*")):
        kind, level, size, line = (
            _text(index / name) for name in ("type", "level", "size", "coherency_line_size")
        )
        bytes_ = _bytes(size)
        if kind in ("Data", "Unified") and level.isdecimal() and bytes_:
            yield int(level), bytes_, int(line) if line.isdecimal() else 0


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
