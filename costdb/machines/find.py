"""Machines by name: those that come with the package, the user's own, and files."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache, lru_cache
from pathlib import Path

import machine_profiles
from costdb.machines.checks import is_machine_name
from costdb.machines.documents import MachineError, UnknownMachineError, parse_document, read_text
from costdb.machines.machine import BUILT_IN, Machine, machine_of

# Machines whose profiles come with the package.


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


CALIBRATED = "here"
"""The machine that a calibration makes unless told otherwise, and that is meant where none is."""


def default_machine() -> str | None:
    """Return the machine meant where none is named: the calibrated one, once there is one.

    Raises
    ------
    StoreError
        The store cannot be read, or was written by a newer version.
    """
    return None if _stored_profile(CALIBRATED) is None else CALIBRATED


def load_machine(name_or_path: str) -> Machine:
    """Return a machine by name (built-in, then the user's own) or by a path ending in .json.

    Raises
    ------
    UnknownMachineError
        No machine has that name.
    MachineError
        The profile cannot be read or is not well formed.
    """
    if name_or_path.endswith(".json"):
        return _machine(read_text(Path(name_or_path)), name_or_path)
    if name_or_path in built_in_names():
        return built_in_machine(name_or_path)
    stored = _stored_profile(name_or_path) if is_machine_name(name_or_path) else None
    if stored is not None:
        return _machine(*stored)
    raise UnknownMachineError(_unknown(name_or_path))


def machine_names() -> tuple[str, ...]:
    """Return the names of all machines, built-in and stored, sorted."""
    return tuple(sorted({*built_in_names(), *_stored_names()}))


@lru_cache(maxsize=8)
def _machine(text: bytes | str, origin: str) -> Machine:
    """Return the machine of a profile's text, the same one again while that is the same.

    Prices are remembered by machine: an editor's server asks for it at every edit.
    """
    return machine_of(parse_document(text, origin), origin)


def _stored_profile(name: str) -> tuple[str, str] | None:
    from costdb.store.evidence import stored_profile

    return stored_profile(name)


def _stored_names() -> Iterable[str]:
    from costdb.store.evidence import stored_profile_names

    return stored_profile_names()


def _unknown(name: str) -> str:
    from difflib import get_close_matches

    if name == CALIBRATED:
        return (
            f'"{name}" is this machine, and it is not calibrated yet: run "advise calibrate",'
            " or name another one"
        )
    nearest = get_close_matches(name.lower(), machine_names(), n=3, cutoff=0.5)
    verb = "are" if len(nearest) > 1 else "is"
    hint = f": nearest {verb} {', '.join(nearest)}" if nearest else ""
    asked = json.dumps(name, ensure_ascii=False)
    return f'unknown machine {asked}{hint}; "advise machine list" shows all'
