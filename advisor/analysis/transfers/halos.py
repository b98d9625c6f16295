"""Which layers of neighbours' elements ranks hold, and what must be sent for a read.

A layer stays valid until its array is written. What is held is known at each point of a kernel:
after a branch only what both sides leave, after a loop that may not run only what was held
before it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from advisor.analysis.sizes.facts import Facts
from advisor.analysis.transfers.communication import Gathered, messages
from advisor.analysis.transfers.requests import (
    Reach,
    Request,
    lacking,
    missing_layers,
    requests,
    weaker_sides,
)
from costdb.expr import ONE, ZERO, Expr, free_symbols
from costdb.process.terms import Process

Held = dict[str, tuple[Request | Gathered, ...]]


@dataclass(frozen=True, slots=True)
class Fetch:
    """A request that was answered, and the messages for it.

    Attributes
    ----------
    name : str
        The array.
    request : Request
    sent : tuple of Process
    symbols : frozenset of str
        What the request and the conditions around it depend on.
    """

    name: str
    request: Request | Gathered
    sent: tuple[Process, ...]
    symbols: frozenset[str]


@dataclass(slots=True)
class Halos:
    """What is held at one point of a kernel.

    Attributes
    ----------
    held : dict of str to tuple of Request
    fetched : list of Fetch
        Since the list was last emptied, in order; fetches that may not happen are left out.
    certain : bool
        False inside a branch.
    """

    held: Held = field(default_factory=dict)
    fetched: list[Fetch] = field(default_factory=list)
    certain: bool = True

    def fetch(self, name: str | None, reach: Reach, facts: Facts) -> list[Process]:
        """Return the messages for a read, and hold what they bring.

        Parameters
        ----------
        name : str or None
            The array; None for one that has no name, of which nothing is held.
        reach : Reach
        facts : Facts
        """
        wanted = requests(reach, facts)
        weaker = weaker_sides(wanted)
        made: list[Process] = []
        for request in wanted:
            kept = self.held.get(name, ()) if name is not None else ()
            known = tuple(held for held in kept if isinstance(held, Request))
            tests = [lacking(held, request, facts) for held in known]
            if ZERO in tests:
                continue
            needed = next((test for test in tests if test != ONE), ONE)
            nearer = _nearer(known, request, facts) if needed == ONE else None
            sent = messages(request, reach, facts, weaker, nearer, needed)
            made += sent
            if name is not None:
                self.held[name] = (*kept, request)
                if self.certain:
                    self.fetched.append(Fetch(name, request, tuple(sent), symbols_of(request)))
        return made

    def gather(self, name: str | None, what: Gathered, work: Process) -> list[Process]:
        """Return a collective, unless what it brings is held; then hold it."""
        if name is None:
            return [work]
        kept = self.held.get(name, ())
        if what in kept:
            return []
        self.held[name] = (*kept, what)
        if self.certain:
            self.fetched.append(Fetch(name, what, (work,), what.symbols))
        return [work]

    def forget(self, names: Iterable[str]) -> None:
        """Hold nothing of some arrays any more."""
        for name in names:
            self.held.pop(name, None)

    def exchange(self, names: frozenset[str]) -> None:
        """Follow two arrays that exchange their names."""
        one, other = sorted(names)
        first, second = self.held.pop(one, ()), self.held.pop(other, ())
        self.held.update({name: kept for name, kept in ((one, second), (other, first)) if kept})

    def forget_symbol(self, symbol: str) -> None:
        """Hold nothing whose place depends on an index that is going to change."""
        for name, kept in list(self.held.items()):
            self.held[name] = tuple(r for r in kept if symbol not in symbols_of(r))


def common(one: Held, other: Held) -> Held:
    """Return what is held in both of two states."""
    return {
        name: tuple(request for request in kept if request in other[name])
        for name, kept in one.items()
        if name in other
    }


def symbols_of(request: Request | Gathered) -> frozenset[str]:
    """Return every size symbol that a request depends on."""
    if isinstance(request, Gathered):
        return request.symbols
    parts: list[Expr] = [depth for side in request.sides for depth in side.depths]
    parts += [offset for _, offsets in request.across for offset in offsets]
    parts += [bound for _, low, high in request.ranges for bound in (low, high)]
    parts += [bound for _, along in request.regions for bound in (along.low, along.high)]
    return frozenset().union(*map(free_symbols, parts))


def _nearer(known: tuple[Request, ...], request: Request, facts: Facts) -> tuple[Expr, Expr] | None:
    found = (missing_layers(held, request, facts) for held in reversed(known))
    return next((layers for layers in found if layers is not None), None)
