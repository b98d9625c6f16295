"""Rates of array operations in a machine profile, and what stands in where one was not measured.

The nearest class or element type that was measured answers for one that was not; such a rate is
estimated, whatever it was, and its interval grows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from costdb.machines import Json, Machine, is_residual, quantity_of
from costdb.quantity import Provenance, Quantity

SECTION = "arrays"
WIDENED = 1.5
"""A stand-in's interval reaches so many times further up and down."""

_CLASSES: Mapping[str, tuple[str, ...]] = {
    "cast": ("copy",),
    "transpose": ("copy",),
    "unary": ("binary",),
    "root": ("divide", "transcendental"),
    "function": ("transcendental",),
    "compare": ("binary",),
    "where": ("binary",),
    "divide": ("root", "binary"),
    "divide_by_one": ("divide",),
    "remainder": ("transcendental", "divide"),
    "matvec": ("reduce",),
    "add_at": ("add_at_cast",),
    "add_at_cast": ("add_at",),
    "roll": ("copy",),
    "pad": ("roll", "copy"),
    "fill": ("copy",),
    "scan_across": ("scan",),
    "scan": ("scan_across",),
    "reduce_across": ("reduce",),
    "fft_across": ("fft",),
    "sort_across": ("sort",),
}
_NAME = re.compile(r"([a-z]+?)(\d+)?$")


@dataclass(frozen=True, slots=True)
class Rates:
    """The coefficients of one class of operation on one element type.

    Attributes
    ----------
    place : tuple of str
        Class and element type that were measured.
    document : mapping
        The coefficients, as the profile has them.
    stands_in : bool
        Whether they are of another class or element type than was asked for.
    """

    place: tuple[str, str]
    document: Mapping[str, Json]
    stands_in: bool


def rates_of(machine: Machine, key: str, dtype: str) -> Rates | None:
    """Return the rates of a class on an element type, or the nearest ones; None for none."""
    for candidate in (key, *_CLASSES.get(key, ())):
        measured = machine.section(SECTION, "rates", candidate)
        for name in _nearest(dtype, measured):
            section = machine.section(SECTION, "rates", candidate, name)
            exact = candidate == key and name in (dtype, "any")
            return Rates((candidate, name), section, not exact)
    return None


def quantity_at(machine: Machine, rates: Rates, path: tuple[str, ...]) -> Quantity | None:
    """Return a coefficient of some rates, None where they have none."""
    found: Json = dict(rates.document)
    for key in path:
        found = found.get(key) if isinstance(found, dict) else None
    if not isinstance(found, dict) or "value" not in found:
        return None
    quantity = quantity_of(found, machine.sources, independent=is_residual(path[-1]))
    return estimated(quantity, rates.place) if rates.stands_in else quantity


def estimated(quantity: Quantity, place: tuple[str, ...]) -> Quantity:
    """Return a quantity as the stand-in for one that was not measured."""
    value = quantity.value
    return replace(
        quantity,
        low=max(0.0, value - WIDENED * (value - quantity.low)) / WIDENED,
        high=(value + WIDENED * (quantity.high - value)) * WIDENED,
        provenance=Provenance.ESTIMATED,
        source=f"{quantity.source}, of {' '.join(place)}",
    )


def _nearest(dtype: str, measured: Mapping[str, Json]) -> Iterator[str]:
    """Yield measured element types, nearest first."""
    yield from (name for name in (dtype, "any") if name in measured)
    kind, width = _split(dtype)
    others = [name for name in measured if name not in (dtype, "any")]
    yield from sorted(
        others,
        key=lambda name: (
            _split(name)[0] != kind,
            abs(_split(name)[1] - width),
            name,
        ),
    )


def _split(dtype: str) -> tuple[str, int]:
    match = _NAME.match(dtype)
    if match is None:
        return dtype, 0
    kind = match[1].removeprefix("u")
    return kind, int(match[2] or 8)
