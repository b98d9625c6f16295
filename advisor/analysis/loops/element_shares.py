"""How the iterations of a nest of single elements are shared out, by the owner-computes rule."""

from __future__ import annotations

from dataclasses import dataclass, field

from advisor.analysis.array_statements.arrays import Arrays
from advisor.analysis.placed.placement import NOWHERE, Placement
from advisor.analysis.sizes.facts import Facts, NotPriced
from advisor.ir.nests import Nest, Reference, directions, element_reads, may_meet, slopes
from advisor.ir.statements import Store, is_total
from advisor.ir.values import Point, Read, Subscript, reads
from costdb.expr import Expr, sym


@dataclass(frozen=True, slots=True)
class Driven:
    """A loop whose index runs along a distributed dimension of what is computed."""

    dimension: int
    offset: Expr


@dataclass(slots=True)
class Shares:
    """One store of a nest, and who does which of its iterations.

    Attributes
    ----------
    owned : Read or None
        The element whose owner does an iteration; None where every rank does all of them.
    placement : Placement
        Of that element's array.
    driven : dict of str to Driven
        The loops that are shared out, each with the dimension that decides it.
    sequential : frozenset of str
        Those of them whose iterations wait for one another.
    """

    nest: Nest
    store: Store
    arrays: Arrays
    owned: Read | None = field(init=False)
    placement: Placement = field(init=False)
    driven: dict[str, Driven] = field(init=False)
    sequential: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        self.owned = Read(self.store.array, self.store.region)
        if self.is_total:
            self.owned = self._summed()
        self.placement = NOWHERE if self.owned is None else self.arrays.placement(self.owned.array)
        self.driven = self._drivers()
        self.sequential = self._in_turn()

    @property
    def facts(self) -> Facts:
        """What is known of sizes."""
        return self.arrays.facts

    @property
    def is_total(self) -> bool:
        """Whether a number is accumulated, not an element."""
        return is_total(self.store)

    @property
    def region(self) -> tuple[Subscript, ...]:
        """The subscripts that decide who does an iteration."""
        return () if self.owned is None else self.owned.region

    def touched(self) -> tuple[Read, ...]:
        """Return the elements that are read, each once."""
        return tuple(dict.fromkeys(self.elements()))

    def elements(self) -> list[Read]:
        """Return the elements that are read; a number that is accumulated is none."""
        return [read for read in element_reads(self.store.value) if read.region]

    def _summed(self) -> Read | None:
        """Return the read element that is distributed most, of which each rank sums its own."""

        def spread(read: Read) -> int:
            placement = self.arrays.placement(read.array)
            return sum(map(placement.is_spread, range(len(read.region))))

        candidates = sorted(self.touched(), key=spread, reverse=True)
        return candidates[0] if candidates and spread(candidates[0]) else None

    def _drivers(self) -> dict[str, Driven]:
        """Return the loops that are shared out, each with the dimension that decides it."""
        found: dict[str, Driven] = {}
        for dimension, part in enumerate(self.region):
            if not self.placement.is_spread(dimension):
                continue
            slope = slopes(part, self.nest.variables)
            if slope is None or len(slope) > 1 or any(step != 1 for step in slope.values()):
                raise NotPriced("a subscript of a distributed dimension that is no index alone")
            assert isinstance(part, Point)
            for variable in slope:
                if variable in found:
                    raise NotPriced("a diagonal of an array that is distributed both ways")
                found[variable] = Driven(dimension, part.at - sym(variable))
        return found

    def _in_turn(self) -> frozenset[str]:
        """Return the loops that are shared out but whose iterations wait for one another."""
        if self.is_total:
            return frozenset()
        own = [
            Reference(self.store.array, read.region, False, 0)
            for read in reads(self.store.value)
            if read.array == self.store.array
        ]
        written = Reference(self.store.array, self.store.region, True, 0)
        waiting: set[str] = set()
        for signs in directions(len(self.nest.loops)):
            carrier = next(v for v, s in zip(self.nest.variables, signs, strict=True) if s != 0)
            if carrier in self.driven and carrier not in waiting:
                met = (may_meet(written, read, self.nest, signs) for read in own)
                if any(met):
                    waiting.add(carrier)
        return frozenset(waiting)
