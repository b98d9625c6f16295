"""The sections of the calibration, by name; each is imported only when it is measured or fitted."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from types import MappingProxyType

from costdb.calibration.section import Need, Section

# In the order of measuring. The module has the section as SECTION, and imports what the section
# needs only inside functions.
SECTIONS: Mapping[str, str] = MappingProxyType(
    {
        "messages": "costdb.calibration.ranks.messages",
        "arrays": "costdb.calibration.array_calls.arrays",
        "loops": "costdb.calibration.array_calls.loops",
        "together": "costdb.calibration.ranks.together",
        "collectives": "costdb.calibration.ranks.collectives",
        "pickled": "costdb.calibration.ranks.pickled",
        "remote": "costdb.calibration.ranks.remote",
        "supersteps": "costdb.calibration.threads.supersteps",
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
