"""Hosts that nobody has: what a test needs to know of a machine is one of these."""

from __future__ import annotations

from collections.abc import Mapping

from costdb.calibration.section import Cache, Host

KIB, MIB = 2**10, 2**20


def made_up(name: str, cores: int, *sizes: int) -> Host:
    """Return a host with caches of so many bytes, in lines of 64."""
    caches = tuple(Cache(level, size, 64) for level, size in enumerate(sizes, 1))
    return Host(cores, caches, 64, name, "Linux")


LAPTOP = made_up("A laptop", 2, 32 * KIB, 256 * KIB, 6 * MIB)
EPYC = made_up("AMD EPYC", 8, 32 * KIB, 512 * KIB, 32 * MIB)
SERVER = made_up("A large server", 64, 48 * KIB, 2 * MIB, 105 * MIB)
UNTOLD = Host(1, (), 0, "Something", "An unusual system")
"""A system that says nothing of itself."""
HOSTS: Mapping[str, Host] = {"laptop": LAPTOP, "epyc": EPYC, "server": SERVER}
