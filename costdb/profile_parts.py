"""What several models ask of a profile alike: counts spelt as keys, and what is lacking."""

from __future__ import annotations

from costdb.estimate import Missing
from costdb.machines import BUILT_IN, LEFT_OUT, Machine, MachineError


def counts_in_keys(machine: Machine, letter: str, *path: str) -> list[int]:
    """Return the numbers in keys like ``p8`` of the object at `path`, ascending.

    Raises
    ------
    MachineError
        A key is not `letter` and a number.
    """
    counts = []
    for key in machine.section(*path):
        digits = key.removeprefix(letter)
        if key == digits or not (digits.isascii() and digits.isdecimal()):
            place = "/".join((*path, key))
            raise MachineError(f"{machine.origin}: /{place}: expected {letter} and a number")
        counts.append(int(digits))
    return sorted(counts)


def lacking(machine: Machine, what: str) -> Missing:
    """Return the answer that a profile lacks `what`, with the command that gives it."""
    return Missing(f'machine "{machine.name}" has no {what}', _remedy(machine))


def _remedy(machine: Machine) -> str:
    if machine.origin == BUILT_IN:
        return "advise machine import FILE, with a profile of this machine that states it"
    if machine.is_calibrated:
        if any(LEFT_OUT in note for note in machine.notes):
            return "pip install 'kernel-advisor[calibrate]', then advise calibrate, on this machine"
        return "advise calibrate, on this machine"
    return "a profile that states it, as advise calibrate on that machine makes one"


def interval_of(machine: Machine, *path: str) -> tuple[float, float] | None:
    """Return the ends of the range stated at `path`, None where none is.

    Raises
    ------
    MachineError
        Something other than two ordered numbers is there.
    """
    match machine.section(*path[:-1]).get(path[-1]):
        case None:
            return None
        case [int() | float() as low, int() | float() as high] if low <= high:
            return float(low), float(high)
        case _:
            raise MachineError(f"{machine.origin}: /{'/'.join(path)}: expected [low, high]")
