"""Machines by name: those that come with the package, the user's own, and files."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from costdb.machines.built_in import built_in_machine, built_in_names
from costdb.machines.checks import is_machine_name
from costdb.machines.documents import UnknownMachineError, parse_document, read_text
from costdb.machines.machine import Machine, machine_of

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
    from costdb.store import stored_profile

    return stored_profile(name)


def _stored_names() -> Iterable[str]:
    from costdb.store import stored_profile_names

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
