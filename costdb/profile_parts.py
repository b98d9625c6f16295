"""What models ask of a profile alike: counts in keys, what lies between them, what is lacking."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from costdb.evaluate import Missing
from costdb.expr import Expr, conditional, less_equal, minimum
from costdb.machines import BUILT_IN, LEFT_OUT, Machine
from costdb.records import dataclass


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
            raise machine.refuse(f"expected {letter} and a number", *path, key)
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
            raise machine.refuse("expected [low, high]", *path)


# Formulas between the points where they were measured, never beyond them.


def piecewise_linear(x: Expr, knots: Sequence[tuple[int, Expr]]) -> Expr:
    """Return the formula at `x`, linear between neighbouring knots, constant outside them.

    At a knot it is exactly that knot's formula. The caller marks what lies outside as an
    extrapolation (:class:`costdb.evaluate.Domain`). When `x` is a constant only the knots
    around it occur in the result.

    Parameters
    ----------
    x : Expr
        Where the formula is wanted.
    knots : sequence of (int, Expr)
        At least one, by strictly increasing position.
    """
    first, last = knots[0], knots[-1]
    result = last[1]
    for left, right in reversed(list(pairwise(knots))):
        result = conditional(less_equal(right[0], x), result, _between(x, left, right))
    return conditional(less_equal(x, first[0]), first[1], result)


def _between(x: Expr, left: tuple[int, Expr], right: tuple[int, Expr]) -> Expr:
    width = right[0] - left[0]
    return left[1] * ((right[0] - x) / width) + right[1] * ((x - left[0]) / width)


# Amounts priced by grade: so much each up to a limit, otherwise from there to the next.
#
# As with taxes, a rate holds for the part of an amount that lies within its grade. With rates that
# are not negative the price never falls when the amount grows, and it has no steps, whatever the
# rates are: caches and protocols bend the line without breaking it.


@dataclass(frozen=True, slots=True)
class Grade:
    """One grade of a profile's list.

    Attributes
    ----------
    above : float
        Where it begins.
    limit : float or None
        Up to where it holds; None for the rest.
    """

    above: float
    limit: float | None

    def part(self, amount: Expr) -> Expr:
        """Return the part of `amount` that lies in this grade."""
        most = amount if self.limit is None else minimum(amount, self.limit)
        return most if self.above == 0 else most - minimum(amount, self.above)


def grades_of(limits: Sequence[float]) -> Iterator[Grade]:
    """Yield grades that end at growing `limits`, and one for the rest."""
    above: float = 0
    for limit in limits:
        yield Grade(above, limit)
        above = limit
    yield Grade(above, None)


def grades(machine: Machine, *path: str) -> tuple[Grade, ...]:
    """Return the grades that a profile lists at `path`, none where it lists nothing.

    The last part of `path` names the list. Each item has ``max_bytes``, null in the last, and
    quantities.

    Raises
    ------
    MachineError
        It is no list of grades, or their limits do not grow.
    """
    listed = machine.section(*path[:-1]).get(path[-1])
    if listed is None:
        return ()
    if not isinstance(listed, list) or not listed:
        raise machine.refuse("expected a list of at least one grade", *path)
    limits: list[float] = []
    for number, item in enumerate(listed):
        stated = item.get("max_bytes") if isinstance(item, dict) else None
        last = number == len(listed) - 1
        if not isinstance(item, dict) or (stated is None) != last:
            problem = "expected a grade with max_bytes, null in the last only"
            raise machine.refuse(problem, *path, number)
        if last:
            break
        if isinstance(stated, bool) or not isinstance(stated, int | float):
            raise machine.refuse("expected a number", *path, number, "max_bytes")
        if stated <= max(limits, default=0):
            raise machine.refuse("grades must grow", *path, number, "max_bytes")
        # whole limits stay whole numbers, so that formulas show them so
        limits.append(int(stated) if stated == int(stated) else stated)
    return tuple(grades_of(limits))
