"""Amounts priced by grade: so much each up to a limit, otherwise from there to the next.

As with taxes, a rate holds for the part of an amount that lies within its grade. With rates that
are not negative the price never falls when the amount grows, and it has no steps, whatever the
rates are: caches and protocols bend the line without breaking it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from costdb.expr import Expr, minimum, num, sym
from costdb.machines import Json, Machine, MachineError, quantity_of
from costdb.quantity import Quantity


@dataclass(frozen=True, slots=True)
class Grade:
    """One grade of a profile's list.

    Attributes
    ----------
    above : float
        Where it begins.
    limit : float or None
        Up to where it holds; None for the rest.
    quantities : mapping of str to Quantity
        Its rates by key.
    """

    above: float
    limit: float | None
    quantities: Mapping[str, Quantity] = field(default_factory=dict)

    def part(self, amount: Expr) -> Expr:
        """Return the part of `amount` that lies in this grade."""
        most = amount if self.limit is None else minimum(amount, self.limit)
        return most if self.above == 0 else most - minimum(amount, self.above)


def grades_of(limits: Sequence[float]) -> Iterator[Grade]:
    """Yield grades that end at growing `limits`, and one for the rest, without any rates."""
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
    found = machine.section(*path[:-1]).get(path[-1])
    return () if found is None else tuple(_grades(found, machine, "/".join(("", *path))))


def _grades(listed: Json, machine: Machine, place: str) -> Iterator[Grade]:
    where = f"{machine.origin}: {place}"
    if not isinstance(listed, list) or not listed:
        raise MachineError(f"{where}: expected a list of at least one grade")
    above: float = 0
    for number, item in enumerate(listed):
        stated = item.get("max_bytes") if isinstance(item, dict) else None
        last = number == len(listed) - 1
        if not isinstance(item, dict) or (stated is None) != last:
            raise MachineError(
                f"{where}/{number}: expected a grade with max_bytes, null in the last only"
            )
        limit = None if stated is None else _limit(stated, f"{where}/{number}")
        if limit is not None and limit <= above:
            raise MachineError(f"{where}/{number}/max_bytes: grades must grow")
        yield Grade(above, limit, dict(_quantities(item, machine, f"{where}/{number}")))
        above = above if limit is None else limit


def _limit(stated: Json, where: str) -> float:
    if isinstance(stated, bool) or not isinstance(stated, int | float):
        raise MachineError(f"{where}/max_bytes: expected a number")
    # whole limits stay whole numbers, so that formulas show them so
    return int(stated) if stated == int(stated) else stated


def _quantities(
    item: Mapping[str, Json], machine: Machine, where: str
) -> Iterator[tuple[str, Quantity]]:
    for key, leaf in item.items():
        if key == "max_bytes":
            continue
        if not isinstance(leaf, dict) or "value" not in leaf:
            raise MachineError(f"{where}/{key}: expected a quantity")
        yield key, quantity_of(leaf, machine.sources)


@dataclass(frozen=True, slots=True)
class Step:
    """What one step takes on a machine: a call, bytes by grade, and whatever else is counted.

    Attributes
    ----------
    microseconds : Expr
        Over sizes and the keys of `coefficients`.
    coefficients : mapping of str to Quantity
    absent : tuple of str
        Places in the profile that hold nothing.
    """

    microseconds: Expr
    coefficients: Mapping[str, Quantity]
    absent: tuple[str, ...] = ()


def step_price(
    machine: Machine, path: tuple[str, ...], size: Expr, counts: Mapping[str, Expr] | None = None
) -> Step:
    """Price one step on `size` bytes by what a profile states at `path`.

    Parameters
    ----------
    path : tuple of str
        Of an object with ``call_us``, ``pieces`` that state ``us_per_byte``, and the keys of
        `counts`.
    counts : mapping of str to Expr, optional
        What else is counted, by the key of its coefficient: ``{"loop_us": rows}``.

    Raises
    ------
    MachineError
        The profile is malformed there.
    """
    place = ".".join(path)
    coefficients: dict[str, Quantity] = {}
    absent: list[str] = []
    total = num(0)
    for key, units in {"call_us": num(1), **(counts or {})}.items():
        stated = machine.quantity(*path, key)
        if stated is None:
            absent.append(f"{place}.{key}")
            continue
        symbol = f"{place}.{key.removesuffix('_us')}"
        coefficients[symbol] = stated
        total = total + units * sym(symbol)
    pieces = grades(machine, *path, "pieces") if size != num(0) else ()
    if size != num(0) and not pieces:
        absent.append(f"{place}.pieces")
    for number, piece in enumerate(pieces):
        rate = piece.quantities.get("us_per_byte")
        if rate is None:
            absent.append(f"{place}.pieces.{number}.us_per_byte")
            continue
        symbol = f"{place}.piece{number + 1}"
        coefficients[symbol] = rate
        total = total + piece.part(size) * sym(symbol)
    return Step(total, coefficients, tuple(absent))
