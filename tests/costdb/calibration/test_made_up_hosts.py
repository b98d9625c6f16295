"""What tests run on is made up, and what stands on it does not change it."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from costdb.calibration.fitting import caches
from costdb.calibration.section import (
    SECTIONS,
    Effort,
    Host,
    Timing,
    find_section,
    hardware_facts,
    host_of,
    read_host,
    this_host,
)
from costdb.documents import check_profile
from costdb.machines import machine_of
from tests.costdb.hosts import EPYC, HOSTS, SERVER, UNTOLD
from tests.costdb.made_up import HEADING


def test_the_host_that_tests_see_is_made_up() -> None:
    assert this_host() == EPYC


def test_what_a_system_tells_is_read_once_for_all(tmp_path: Path) -> None:
    stated = ("Unified", 3, "105M"), ("Data", 1, "48K"), ("Instruction", 1, "32K")
    for number, (kind, level, size) in enumerate((*stated, ("Unified", 2, "2048K"))):
        place = tmp_path / f"index{number}"
        place.mkdir()
        told = {"type": kind, "level": level, "size": size, "coherency_line_size": 64}
        for name, value in told.items():
            (place / name).write_text(f"{value}\n")
    (tmp_path / "cpuinfo").write_text("processor : 0\nmodel name\t: A  large server\n")
    found = read_host(tmp_path, tmp_path / "cpuinfo")
    sizes = [cache.size_bytes for cache in found.caches]
    assert sizes == [cache.size_bytes for cache in SERVER.caches]
    assert (found.processor, found.line_bytes) == ("A large server", 64)
    nothing = read_host(tmp_path / "none", tmp_path / "none")
    assert nothing.caches == ()
    assert set(hardware_facts(UNTOLD)) == {"cores"}
    assert caches(UNTOLD).levels


@pytest.mark.parametrize("host", [*HOSTS.values(), UNTOLD], ids=[*HOSTS, "untold"])
def test_a_host_is_the_same_after_a_job_has_told_of_it(host: Host) -> None:
    assert host_of(json.loads(json.dumps(asdict(host)))) == host


@pytest.mark.parametrize("name", SECTIONS)
def test_what_is_measured_on_any_host_makes_a_sound_profile(name: str, host: Host) -> None:
    section = find_section(name)
    points = section.points(Effort.QUICK, 2, host)
    assert points == section.points(Effort.QUICK, 2, host)
    timings = [Timing(point, (((1.0 + len(point.features),),),) * 2) for point in points]
    fitted = section.fit(timings, host)
    hardware = {"hardware": hardware_facts(host)}
    document = {
        **HEADING,
        **hardware,
        **fitted.parts,
    }
    assert check_profile(document, "made-up") == []
    assert machine_of(document, "a test").cache_line_bytes == 64
    stated = [document.get("arrays", {}).get("levels", {})]
    for levels in stated:
        if levels:
            ends = tuple(int(key.removeprefix("b")) for key in levels)
            assert ends == caches(host).levels
