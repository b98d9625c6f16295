"""The steps of an interpreter in a statement that computes one element from others.

An element is a number of the array library: fetching and storing it takes longer than an operator,
and a function of the library that is called for one number longer still. What variables hold is
computed once for all its uses; where it is written out again beside its variable, that counts as
the variable.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from advisor.ir.statements import Store, is_total
from advisor.ir.values import (
    Copy,
    Elementwise,
    Gather,
    Read,
    Value,
)
from advisor.source import Span
from costdb.expr import Expr, num
from costdb.work import Interpretation

_LOAD, _STORE, _OPERATION, _CALL = "loads", "stores", "operations", "calls"


def interpretations(body: Iterable[Store], iterations: Expr) -> list[Interpretation]:
    """Return what is interpreted for each of some stores, which one iteration does in turn.

    Parameters
    ----------
    body : iterable of Store
        That compute single elements from single elements.
    iterations : Expr
    """
    found: list[Interpretation] = []
    known: set[Value] = set()
    for store in body:
        steps = _Steps(store, known)
        found.append(steps.interpretation(iterations, loop=not found))
        # what a variable got before an array was changed, it has still
        known |= steps.computed
    return found


def single(store: Store) -> Interpretation:
    """Return what is interpreted for a store to one element that no loop of its own repeats."""
    return _Steps(store, set()).interpretation(num(1), loop=False)


def steps_of(value: Value) -> Interpretation:
    """Return what is interpreted for a number that is computed from single elements."""
    number = Store("", (), value, Span(1, 0, 1, 0), in_variable=True)
    return _Steps(number, set()).interpretation(num(1), loop=False)


@dataclass(slots=True)
class _Steps:
    store: Store
    known: set[Value]
    counts: Counter[str] = field(default_factory=Counter)
    computed: set[Value] = field(default_factory=set)

    def interpretation(self, iterations: Expr, *, loop: bool) -> Interpretation:
        """Return the steps of the store."""
        store = self.store
        self._value(store.value)
        if not is_total(store) and not store.in_variable:
            self.counts[_STORE] += 1
        return Interpretation(
            iterations,
            loads=self.counts[_LOAD],
            stores=self.counts[_STORE],
            operations=self.counts[_OPERATION],
            calls=self.counts[_CALL],
            loop=loop,
        )

    def _value(self, value: Value) -> None:
        """Count what it takes to have a value."""
        store = self.store
        if store.in_variable and value == Read(store.array, store.region):
            return
        if any(value == known for _, known in store.held):
            if value in self.known or value in self.computed:
                return
            self.computed.add(value)
        match value:
            case Read(_, region):
                self.counts[_LOAD] += bool(region)
            case Gather(_, places):
                self._value(places)
                self.counts[_LOAD] += 1
            case Copy(operand, _):
                self._value(operand)
                self.counts[_OPERATION] += 1
            case Elementwise("where", parts, called=False):
                self._value(parts[0])
                self._longer(parts[1:])
            case Elementwise(_, parts, called):
                for part in parts:
                    self._value(part)
                self.counts[_CALL if called else _OPERATION] += 1
            case _:
                # what makes an array on the way is work of the library
                pass

    def _longer(self, ways: tuple[Value, ...]) -> None:
        """Count one of two ways, of which only the data know which is taken: the longer one."""
        counted: list[Counter[str]] = []
        for way in ways:
            one = _Steps(self.store, self.known | self.computed)
            one._value(way)
            counted.append(one.counts)
        _, longer = max((sum(one.values()), number) for number, one in enumerate(counted))
        self.counts += counted[longer]
