"""Work of loops over single elements, by the owner-computes rule.

Each element is computed where its target lives, so a loop whose index runs along a distributed
dimension of the target is shared out among the ranks. What the innermost loop touches is a
strided run of memory, which is how the order of the loops shows against the storage order. A
reference to an element of another rank is one by itself: nothing collects it into a message.

A number that a nest accumulates belongs to nobody: every rank combines the elements that it owns,
and a reduction over the ranks combines their parts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from advisor.analysis.array_statements.arrays import Arrays
from advisor.analysis.array_statements.interpreted import interpretations, is_compiled
from advisor.analysis.array_statements.traversals import length_of_step
from advisor.analysis.facts import NotPriced
from advisor.analysis.loops.element_references import Shares, remote_elements
from advisor.analysis.placed.placement import local_extents, pitches_bytes
from advisor.dtypes import itemsize_of
from advisor.ir.nests import Nest, slopes
from advisor.ir.signs import least_index
from advisor.ir.statements import Loop
from advisor.ir.values import Elementwise, Range, Read, Value, operands
from costdb.expr import ONE, ZERO, Expr, ceil_div, free_symbols, maximum
from costdb.process.terms import Leaf, Process, SeqLoop, Sequential
from costdb.work import (
    Access,
    ArrayCall,
    ArrayOperation,
    Collective,
    CollectiveKind,
    Interpretation,
    Region,
    Statement,
    Visit,
)

LABEL = "element loops"


def element_loops(nest: Nest, arrays: Arrays) -> list[Process]:
    """Return the work of a nest that computes single elements.

    Raises
    ------
    NotPriced
        Where the distribution and the subscripts go together in a way that has no closed form.
    """
    made: list[Process] = []
    steps = interpretations(nest.body, ONE)
    for store, each in zip(nest.body, steps, strict=True):
        made += _Traversal(Shares(nest, store, arrays), each).work()
    return made


@dataclass(frozen=True, slots=True)
class _Traversal:
    """What a rank walks along, element by element, and what is interpreted for each."""

    shares: Shares
    each: Interpretation

    def work(self) -> list[Process]:
        """Return the traversal, before it the references that other ranks serve.

        After it comes the reduction of a number.
        """
        trips: dict[str, Expr] = {}
        traversal = self._looped(0, trips)
        return [*remote_elements(self.shares, trips), traversal, *self._reduced()]

    def _reduced(self) -> list[Process]:
        """Return what combines the parts of a number that ranks have."""
        if not self.shares.is_total:
            return []
        ranks = ONE
        for dimension in range(len(self.shares.region)):
            ranks = ranks * self.shares.placement.ranks(dimension)
        if ranks == ONE:
            return []
        itemsize = itemsize_of(self.shares.arrays.type_of(self.shares.store.array).dtype)
        one = Region(itemsize, (ONE,), (ONE * itemsize,))
        return [Leaf(Collective(CollectiveKind.ALLREDUCE, ranks, one, "reduction"))]

    def _looped(self, depth: int, trips: dict[str, Expr]) -> Process:
        """Return the loops from one on inwards, and note how often each runs."""
        loop = self.shares.nest.loops[depth]
        count = trips[loop.variable] = self._trips(loop)
        if depth == len(self.shares.nest.loops) - 1:
            return self._run(loop, count)
        least = least_index(loop.low, self.shares.facts.minima)
        with self.shares.facts.within(loop.variable, least, loop.high - 1):
            inner = self._looped(depth + 1, trips)
        if loop.variable in self.shares.driven or loop.step != 1:
            return SeqLoop(loop.variable, ONE, count, inner)
        return SeqLoop(loop.variable, loop.low, loop.high - 1, inner)

    def _trips(self, loop: Loop) -> Expr:
        driven = self.shares.driven.get(loop.variable)
        length = loop.high - loop.low
        bounds = free_symbols(length) & frozenset(self.shares.nest.variables)
        if driven is None:
            if bounds & (self.shares.driven.keys() | self._stepped()):
                raise NotPriced("a loop as long as the index of one that is shared out")
            whole = length if loop.step == 1 else ceil_div(length, loop.step)
            return whole if self.shares.facts.non_negative(length) else maximum(0, whole)
        if bounds or free_symbols(driven.offset) & frozenset(self.shares.nest.variables):
            raise NotPriced("a loop that is shared out and whose length changes")
        if loop.step != 1:
            raise NotPriced("a loop with a step along a distributed dimension")
        if loop.variable in self.shares.sequential:
            return length if self.shares.facts.non_negative(length) else maximum(0, length)
        part = Range(loop.low + driven.offset, loop.high + driven.offset)
        return self.shares.placement.along(driven.dimension, part).count(self.shares.facts)

    def _stepped(self) -> frozenset[str]:
        return frozenset(loop.variable for loop in self.shares.nest.loops if loop.step != 1)

    def _run(self, loop: Loop, count: Expr) -> Process:
        """Return what all trips of the innermost loop do, for one iteration of those around."""
        stored = (
            ()
            if self.shares.is_total
            else (Read(self.shares.store.array, self.shares.store.region),)
        )
        accesses = [Access(self._walked(r, loop, count)) for r in self.shares.touched()]
        accesses += [Access(self._walked(r, loop, count), store=True) for r in stored]
        operations = _operations(self.shares.store.value)
        work = Statement(tuple(accesses), operations * count, LABEL)
        if is_compiled(self.shares.arrays.kernel):
            touched = dict.fromkeys((*self.shares.touched(), *stored))
            places = tuple(
                Visit(self._walked(r, loop, count), r.array, advance_bytes=self._advance(r, loop))
                for r in touched
            )
            compiled = ArrayCall(
                ArrayOperation.LOOP, "float64", max(1, operations) * count, None, places
            )
            return Leaf(replace(work, calls=(compiled,)))
        # what it computes is done one element at a time, not by an array library
        interpreted = replace(self.each, iterations=count)
        return Sequential((Leaf(replace(work, calls=())), Leaf(interpreted)))

    def _walked(self, read: Read, loop: Loop, count: Expr) -> Region:
        """Return the memory that a loop walks along."""
        itemsize = itemsize_of(self.shares.arrays.type_of(read.array).dtype)
        step = ZERO
        for part, pitch in zip(read.region, self._pitches(read), strict=True):
            slope = slopes(part, (loop.variable,))
            if slope is None:
                raise NotPriced("a subscript that is not linear in an index")
            step = step + slope.get(loop.variable, 0) * loop.step * pitch
        return Region(itemsize, (count,), (step,))

    def _advance(self, read: Read, loop: Loop) -> Expr | None:
        """Return how far a walk begins from the one before it."""
        around = self.shares.nest.loops[: self.shares.nest.loops.index(loop)]
        if not around:
            return None
        pitches = self._pitches(read)
        step = ZERO
        for part, pitch in zip(read.region, pitches, strict=True):
            slope = slopes(part, (around[-1].variable,)) or {}
            step = step + slope.get(around[-1].variable, 0) * around[-1].step * pitch
        return None if step == ZERO else length_of_step(step, self.shares.facts)

    def _pitches(self, read: Read) -> tuple[Expr, ...]:
        placement, found = (
            self.shares.arrays.placement(read.array),
            self.shares.arrays.type_of(read.array),
        )
        extents = local_extents(placement, found.extents, self.shares.facts)
        return pitches_bytes(extents, placement.order, itemsize_of(found.dtype))


def _operations(value: Value) -> int:
    own = 1 if isinstance(value, Elementwise) else 0
    return own + sum(map(_operations, operands(value)))
