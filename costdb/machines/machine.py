"""A machine: a checked profile, and its numbers as quantities."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path

import machine_profiles
from costdb.machines.documents import (
    LINE_SIZE_EXPECTED,
    Json,
    MachineError,
    UnknownMachineError,
    cheap_problems,
    is_line_size,
    is_machine_name,
    parse_document,
    place_of,
    read_text,
    to_float,
)
from costdb.quantity import Provenance, Quantity
from costdb.records import dataclass

BUILT_IN = "built-in"
"""Where profiles that come with the package say that they are from."""

LEFT_OUT = ": left out: "
"""What stands in a note of a calibrated profile between a section that it lacks and the reason."""

_CALIBRATION = "calibration"  # what numbers that this project measured give as their source

RESIDUAL = "residual"
"""Key of what a calibration left unexplained of one class of work, independent of all others.

Where a class has several, the others' keys end with it.
"""


@dataclass(frozen=True, slots=True, eq=False)
class Machine:
    """A machine profile.

    Attributes
    ----------
    name, title : str
        What ``--machine`` takes, and what a report shows.
    library : str
        Communication library and its generation; coefficients hold for that one only.
    sources : mapping of str to str
        Citations by the identifiers that quantities refer to.
    notes : tuple of str
        Remarks on the whole profile.
    document : mapping
        The profile as read.
    origin : str
        Path of the profile, ``"built-in"``, or the store that holds it.
    """

    name: str
    title: str
    library: str
    sources: Mapping[str, str]
    notes: tuple[str, ...]
    document: Mapping[str, Json]
    origin: str

    @property
    def may_be_here(self) -> bool:
        """Whether what runs here may tell of it: the machines of the studies are no more."""
        return self.origin != BUILT_IN

    @property
    def is_calibrated(self) -> bool:
        """Whether a calibration by this project made the profile."""
        return any(source.startswith(_CALIBRATION) for source in self.sources)

    def section(self, *path: str) -> Mapping[str, Json]:
        """Return the object at `path`; an empty one where the profile says nothing.

        Raises
        ------
        MachineError
            Something other than an object is there.
        """
        found = self._at(path)
        if found is None:
            return {}
        if not isinstance(found, dict):
            raise MachineError(f"{self.origin}: {place_of(path)}: expected an object")
        return found

    def quantity(self, *path: str) -> Quantity | None:
        """Return the quantity at `path`, its source as a citation; None where there is none.

        Raises
        ------
        MachineError
            Something other than a quantity is there.
        """
        return self.quantity_at(path)

    def quantity_at(self, path: Sequence[str | int]) -> Quantity | None:
        """Return the quantity at a `path` that may go through lists, by number.

        Raises
        ------
        MachineError
            Something other than a quantity is there.
        """
        found = self._at(path)
        if found is None:
            return None
        if not isinstance(found, dict) or "value" not in found:
            raise MachineError(f"{self.origin}: {place_of(path)}: expected a quantity")
        return quantity_of(found, self.sources, independent=is_residual(path[-1]))

    @property
    def cache_line_bytes(self) -> int:
        """Bytes of a cache line as the lines model counts them.

        Raises
        ------
        MachineError
            The profile does not state one, or not a power of two that is the size of a line.
        """
        for section in ("lines", "hardware"):
            stated = self.quantity(section, "cache_line_bytes")
            if stated is not None:
                if not is_line_size(stated.value):
                    raise MachineError(
                        f"{self.origin}: {place_of((section, 'cache_line_bytes'))}: "
                        f"{LINE_SIZE_EXPECTED}, got {stated.value:g}"
                    )
                return int(stated.value)
        raise MachineError(f'machine "{self.name}" states no cache_line_bytes')

    def _at(self, path: Sequence[str | int]) -> Json:
        found: Json = dict(self.document)
        for key in path:
            if isinstance(found, dict) and isinstance(key, str):
                found = found.get(key)
            elif isinstance(found, list) and isinstance(key, int) and key < len(found):
                found = found[key]
            else:
                return None
        return found


def machine_of(document: dict[str, Json], origin: str) -> Machine:
    """Return the machine that a document describes, after the cheap checks.

    Raises
    ------
    MachineError
        With the place of the first problem.
    """
    for problem in cheap_problems(document):
        raise MachineError(f"{origin}: {problem}")
    sources = document.get("sources", {})
    notes = document.get("notes", [])
    return Machine(
        name=str(document["name"]),
        title=str(document["title"]),
        library=str(document["library"]),
        sources={key: str(text) for key, text in sources.items()}
        if isinstance(sources, dict)
        else {},
        notes=tuple(map(str, notes)) if isinstance(notes, list) else (),
        document=document,
        origin=origin,
    )


def is_residual(key: str | int) -> bool:
    """Return whether a key of a profile is that of a residual."""
    return isinstance(key, str) and (key == RESIDUAL or key.endswith(f"_{RESIDUAL}"))


def quantity_of(
    leaf: Mapping[str, Json], sources: Mapping[str, str], *, independent: bool = False
) -> Quantity:
    """Return the quantity that a checked leaf of a profile states."""
    value = leaf["value"]
    source = str(leaf["source"])
    return Quantity(
        value=to_float(value),
        low=to_float(leaf.get("low", value)),
        high=to_float(leaf.get("high", value)),
        unit=str(leaf["unit"]),
        provenance=Provenance(str(leaf["provenance"])),
        source=sources.get(source, source),
        fitted_to=str(leaf.get("fitted_to", "")),
        independent=independent,
    )


# Machines by name: those that come with the package, the user's own, and files.

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

SHIPPED = "node2026"
"""The machine of today that comes with the package, meant where none is named nor calibrated."""


def default_machine() -> str:
    """Return the machine meant where none is named: the calibrated one, once there is one.

    Raises
    ------
    StoreError
        The store cannot be read, or was written by a newer version.
    """
    return SHIPPED if _stored_profile(CALIBRATED) is None else CALIBRATED


def load_machine(name_or_path: str) -> Machine:
    """Return a machine by name (built-in, then the user's own) or by a path ending in .json.

    Names are in lower case, however they are asked for.

    Raises
    ------
    UnknownMachineError
        No machine has that name.
    MachineError
        The profile cannot be read or is not well formed.
    """
    if name_or_path.endswith(".json"):
        return _machine(read_text(Path(name_or_path)), name_or_path)
    name = name_or_path.lower()
    if name in built_in_names():
        return built_in_machine(name)
    stored = _stored_profile(name) if is_machine_name(name) else None
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
