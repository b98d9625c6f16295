"""Machines whose profiles come with the package."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path

import machine_profiles
from costdb.machines.documents import MachineError, parse_document
from costdb.machines.machine import BUILT_IN, Machine, machine_of


@cache
def built_in_machine(name: str) -> Machine:
    """Return a machine of `built_in_names`."""
    # The package's loader reads from directories and archives alike; importlib.resources
    # would add some ten milliseconds to every run.
    loader = machine_profiles.__loader__
    folder = Path(str(machine_profiles.__file__)).parent
    read = getattr(loader, "get_data", None)
    path = folder / f"{name}.json"
    text = read(str(path)) if read is not None else path.read_bytes()
    machine = machine_of(parse_document(text, f"{BUILT_IN} {name}"), BUILT_IN)
    if machine.name != name:
        raise MachineError(f'{BUILT_IN} {name}: /name: expected "{name}", got "{machine.name}"')
    return machine


@cache
def built_in_names() -> tuple[str, ...]:
    """Return the names of the profiles that come with the package, sorted."""
    folder = Path(str(machine_profiles.__file__)).parent
    if folder.is_dir():
        entries: Iterable[str] = (entry.name for entry in folder.iterdir())
    else:
        from importlib.resources import files

        entries = (entry.name for entry in files(machine_profiles).iterdir())
    return tuple(
        sorted(
            entry.removesuffix(".json")
            for entry in entries
            if entry.endswith(".json") and not entry.endswith(".schema.json")
        )
    )
