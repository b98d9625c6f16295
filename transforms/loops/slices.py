"""Slices of the elements that loops go through, and statements over them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from advisor.dtypes import Kind
from advisor.ir.kernel import Kernel
from advisor.ir.nests import Nest, index_name, slopes
from advisor.ir.shapes import ArrayType, describe, kind_of_or_none
from advisor.ir.statements import Store
from advisor.ir.values import (
    Copy,
    Elementwise,
    Expand,
    Point,
    Range,
    Read,
    Scalar,
    Subscript,
    Value,
    operands,
)
from advisor.numpy_table import promote
from costdb.expr import maximum, sym
from costdb.wording import IDENTIFIER
from transforms.loops.proofs import Proofs

_NAME = re.compile(IDENTIFIER)


@dataclass(frozen=True, slots=True)
class Sliced:
    """Makes slices of the elements that some inner loops go through.

    Attributes
    ----------
    clamped : set of str
        Indices whose ranges must not end before they start: a bound that is negative then would
        count from the end.
    """

    nest: Nest
    outer: int
    kernel: Kernel
    known: Proofs
    clamped: set[str] = field(default_factory=set)

    def stores(self) -> tuple[Store, ...] | None:
        """Return all statements over slices; None where one of them cannot be."""
        made = [self.store(store) for store in self.nest.body]
        found = tuple(store for store in made if store is not None)
        return found if len(found) == len(made) else None

    @property
    def inner(self) -> tuple[str, ...]:
        """The indices of the inner loops, outermost first."""
        return self.nest.variables[self.outer :]

    def store(self, store: Store) -> Store | None:
        """Return a store to a slice; None where it cannot be one."""
        axes = self.axes(store.region)
        if axes is None or sorted(axes) != sorted(self.inner):
            # an element that several iterations store to: the last one counts
            return None
        region = self.region(store.array, store.region)
        value = self.value(store.value, axes)
        if region is None or value is None or not self._fits(store):
            return None
        return Store(store.array, region, value, store.span, store.in_place)

    def _fits(self, store: Store) -> bool:
        """Return whether storing an array converts its elements as storing each one does."""

        def found(name: str) -> ArrayType:
            return ArrayType(self.kernel.dtype(name), self.kernel.extents(name))

        target, value = self.kernel.dtype(store.array), describe(store.value, found).dtype
        arithmetic = kind_of_or_none(target) not in (None, Kind.BOOLEAN)
        return arithmetic and promote(target, value) == target

    def axes(self, region: tuple[Subscript, ...]) -> list[str] | None:
        """Return the index that each sliced dimension follows; None where that is not clear."""
        found: list[str] = []
        for part in region:
            slope = slopes(part, self.inner)
            if slope is None or len(slope) > 1 or any(step != 1 for step in slope.values()):
                return None
            found += slope
        return found if len(set(found)) == len(found) else None

    def value(self, value: Value, axes: list[str]) -> Value | None:
        """Return a value over slices whose dimensions follow so many indices."""
        match value:
            case Read(array, region):
                own = self.axes(region)
                made = None if own is None else self.region(array, region)
                if own is None or made is None:
                    return None
                return _lined_up(Read(array, made), own, axes)
            case Scalar(text, _):
                names = {index_name(variable) for variable in self.inner}
                return None if names & set(_NAME.findall(text)) else value
            case Copy(operand, dtype):
                inside = self.value(operand, axes)
                return None if inside is None else Copy(inside, dtype)
            case Elementwise(operation, parts):
                made_parts = [self.value(part, axes) for part in parts]
                whole = tuple(part for part in made_parts if part is not None)
                return Elementwise(operation, whole) if len(whole) == len(parts) else None
        return None

    def region(self, array: str, region: tuple[Subscript, ...]) -> tuple[Subscript, ...] | None:
        """Return the slices that the subscripts of an element go through."""
        loops = {loop.variable: loop for loop in self.nest.loops[self.outer :]}
        made: list[Subscript] = []
        for part, extent in zip(region, self.kernel.extents(array), strict=True):
            assert isinstance(part, Point)
            slope = slopes(part, self.inner)
            if not slope:
                # it is looked at even where there are no elements beside it
                inside = self.known.non_negative(part.at) and self.known.non_negative(
                    extent - part.at - 1
                )
                if not inside:
                    return None
                made.append(part)
                continue
            (variable,) = slope
            loop = loops[variable]
            distance = part.at - sym(variable)
            low, high = loop.low + distance, loop.high + distance
            if variable in self.clamped:
                made.append(Range(low, maximum(loop.low, loop.high) + distance))
                continue
            ends_inside = self.kernel.runs_through or self.known.non_negative(extent - high)
            if not (self.known.non_negative(low) and ends_inside):
                return None
            counts = self.known.non_negative(high)
            if not counts and not self.known.empty_when_negative(low, high, extent):
                self.clamped.add(variable)
            made.append(Range(low, high))
        return tuple(made)


def _lined_up(read: Read, own: list[str], axes: list[str]) -> Value | None:
    """Return slices with new axes after them, as NumPy lines up dimensions from the last one."""
    if not own:
        return read
    if own[0] not in axes:
        return None
    first = axes.index(own[0])
    if own != axes[first : first + len(own)]:
        return None
    made: Value = read
    for position in range(len(own), len(axes) - first):
        made = Expand(made, position)
    return made


def shown_reads(value: Value) -> list[tuple[Read, int]]:
    """Return the slices in a value, left to right, and how many new axes follow each."""
    added = 0
    while isinstance(value, Expand):
        value, added = value.operand, added + 1
    if isinstance(value, Read):
        return [(value, added)]
    return [found for part in operands(value) for found in shown_reads(part)]
