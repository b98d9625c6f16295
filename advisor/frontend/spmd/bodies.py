"""Bodies of functions that were followed before, for an editor that reads a file again and again.

A body is taken from memory only where all that it asked for has the same answer again; see
:mod:`advisor.frontend.spmd.asked`. Nothing has to be known of what an edit may concern.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import TYPE_CHECKING

import libcst as cst

from advisor.frontend.spmd.asked import (
    Added,
    Beyond,
    Closure,
    Contents,
    Entering,
    Entry,
    Kept,
    Looked,
    Made,
    Ranks,
    Read,
    Recorded,
    Site,
    Varying,
    Way,
    Worked,
)
from advisor.frontend.spmd.values import Value
from advisor.ir.spmd.steps import Step
from advisor.source import Span
from costdb.expr import Expr, to_text

if TYPE_CHECKING:
    from advisor.frontend.spmd.frames import Defined
    from advisor.frontend.spmd.run import Run

_MOST_BODIES = 1000
_MOST_WAYS = 8
"""Ways of entering one function that are remembered."""


@dataclass(frozen=True, slots=True)
class Body:
    """What following a function once gave.

    Attributes
    ----------
    start : Entering
        The function.
    names : mapping of str to Value
        Its parameters.
    outer : int
        Loops around the call.
    frames : int
        Running functions when it was entered.
    asked : tuple of Entry
        In order; what it left behind is among them.
    inside : frozenset of str
        Functions that were entered, itself included.
    spent, clocks : int
        Expressions that were looked at, and readings of clocks.
    returned : tuple of Value
    steps : tuple of Step
    left : mapping of (int, object) to Value
        Attributes and entries that it set.
    """

    start: Entering
    names: Mapping[str, Value]
    outer: int
    frames: int
    asked: tuple[Entry, ...]
    inside: frozenset[str]
    spent: int
    clocks: int
    returned: tuple[Value, ...]
    steps: tuple[Step, ...]
    left: Mapping[tuple[int, object], Value]


@dataclass(slots=True)
class Recording:
    """The state of a run when a body is begun."""

    start: Entering
    names: dict[str, Value]
    outer: int
    frames: int
    begin: int
    budget: int
    clocks: int
    records: int
    kept: dict[tuple[int, object], Value]


@dataclass(slots=True)
class BodyMemory:
    """What is known of the functions of some files. To be used by one thread at a time."""

    _around: dict[str, object] = field(default_factory=dict)
    _bodies: OrderedDict[tuple[str, int], list[Body]] = field(default_factory=OrderedDict)
    """By file and by the identity of nodes, which files may share."""
    _path: str = ""
    followed: list[str] = field(default_factory=list)
    """Functions that were not known in the last file, in the order in which they were followed."""

    def begin(self, path: str, around: object) -> None:
        """Read a file.

        Parameters
        ----------
        path : str
        around : object
            What every function of the file hangs on, besides what it asks for.
        """
        self.followed.clear()
        if not alike(self._around.get(path), around):
            for key in [key for key in self._bodies if key[0] == path]:
                del self._bodies[key]
            self._around[path] = around
        self._path = path

    def recall(
        self, run: Run, defined: Defined, names: dict[str, Value], outer: int
    ) -> Body | None:
        """Return a body as it would be followed now, with all that this leaves behind."""
        node = defined.function.node
        running = {frame.function for frame in run.frames}
        key = self._path, id(node)
        for body in self._bodies.get(key, ()):
            fits = (
                body.start.node is node
                and body.start.function == defined.key
                and body.outer == outer
                and len(run.frames) <= body.frames
                and body.spent <= run.budget
                and body.start.span == run.span(node)
                and running.isdisjoint(body.inside)
                and alike(body.names, names)
            )
            if fits and _holds(body, run):
                self._bodies.move_to_end(key)
                return body
        return None

    def record(self, run: Run, defined: Defined, names: dict[str, Value], outer: int) -> Recording:
        """Begin to follow a body."""
        node = defined.function.node
        journal = run.symbols.journal
        assert journal is not None
        begin = len(journal)
        start = Entering(defined.key, node, run.span(node))
        journal.append(start)
        self.followed.append(defined.key)
        return Recording(
            start,
            names,
            outer,
            len(run.frames),
            begin,
            run.budget,
            run.clocks,
            run.records,
            dict(run.kept),
        )

    def note_nested(self, run: Run, defined: Defined) -> None:
        """Note that a function is followed that is defined within another."""
        journal = run.symbols.journal
        assert journal is not None
        node = defined.function.node
        journal += (Closure(defined.since), Entering(defined.key, node, run.span(node)))
        self.followed.append(defined.key)

    def keep(
        self, made: Recording, run: Run, returned: Iterable[Value], steps: tuple[Step, ...]
    ) -> None:
        """Remember a body that was followed to its end, unless it used what is not noted."""
        journal = run.symbols.journal
        assert journal is not None
        asked = _from_outside(journal[made.begin :], made)
        if asked is None or not made.kept.keys() <= run.kept.keys():
            return
        body = Body(
            made.start,
            dict(made.names),
            made.outer,
            made.frames,
            tuple(_once(asked)),
            frozenset(entry.function for entry in asked if isinstance(entry, Entering)),
            made.budget - run.budget,
            run.clocks - made.clocks,
            tuple(returned),
            steps,
            {key: value for key, value in run.kept.items() if made.kept.get(key) is not value},
        )
        key = self._path, id(made.start.node)
        known = self._bodies.setdefault(key, [])
        if known and known[0].start.node is not made.start.node:
            known.clear()  # of a node that is gone, at the same place in memory
        known.insert(0, body)
        del known[_MOST_WAYS:]
        self._bodies.move_to_end(key)
        if len(self._bodies) > _MOST_BODIES:
            self._bodies.popitem(last=False)


def _from_outside(asked: Iterable[Entry], made: Recording) -> list[Entry] | None:
    """Return what a body asked that was there before it; None where that cannot be told."""
    found: list[Entry] = []
    for entry in asked:
        match entry:
            case Beyond():
                return None
            case Closure(since):
                if since < made.begin:
                    return None
                continue
            case Kept(record, key, value):
                if record > made.records or made.kept.get((record, key)) is not value:
                    continue  # made or set by the body
            case Contents(record, contents):
                if record > made.records:
                    continue
                if not _are(contents, [(k, v) for (n, k), v in made.kept.items() if n == record]):
                    return None
            case _:
                pass
        found.append(entry)
    return found


def _are(one: Sequence[tuple[object, Value]], other: Sequence[tuple[object, Value]]) -> bool:
    return len(one) == len(other) and all(
        a == b and left is right for (a, left), (b, right) in zip(one, other, strict=True)
    )


def _once(asked: Iterable[Entry]) -> Iterator[Entry]:
    """Yield what was asked without the same questions with the same answers again."""
    seen: set[object] = set()
    for entry in asked:
        match entry:
            case Looked(function, name, value):
                key: object = (function, name, id(value))
            case Read(symbol, fact, varies):
                key = (symbol, id(fact), varies)
            case Entering(function):
                key = function
            case _:
                yield entry
                continue
        if key not in seen:
            seen.add(key)
            yield entry


def _holds(body: Body, run: Run) -> bool:
    """Return whether a body would ask the same and be told the same; then it is as if followed."""
    symbols = run.symbols
    saved, records, forget = symbols.state(), run.records, run.functions.state()
    journal = symbols.journal
    assert journal is not None
    begin = len(journal)
    # what is asked now is what whoever called it has asked
    if not all(_again(entry, run) for entry in body.asked):
        symbols.restore(saved)
        run.records = records
        forget()
        del journal[begin:]
        return False
    for entry in body.asked:
        _leave(entry, run)
    run.kept.update(body.left)
    run.budget -= body.spent
    run.clocks += body.clocks
    return True


def _again(entry: Entry, run: Run) -> bool:
    """Ask once more; return whether the answer is the same."""
    symbols, journal = run.symbols, run.symbols.journal
    assert journal is not None
    match entry:
        case Looked(function, name, value):
            shared = run.functions.shared(function) if function else {}
            if shared is None:
                return False
            found = run.around(shared, name)
            journal.append(Looked(function, name, found))
            return alike(found, value)
        case Read(symbol, fact, varies):
            return alike(symbols.read(symbol), (fact, varies))
        case Made(name, span, value, fact, symbol):
            return symbols.made(name, span, value, fact) == symbol
        case Varying(symbol):
            symbols.vary(symbol)
        case Worked():
            symbols.derive(*entry)
        case Ranks():
            symbols.note_ranks(*entry)
        case Entering(function, node, span):
            journal.append(entry)
            return run.functions.node(function) is node and run.span(node) == span
        case Added(name, node, shared, nested, number, key):
            journal.append(entry)
            there = run.functions.count
            return there == number and run.functions.define(name, node, shared, nested, run) == key
        case Recorded(number):
            return run.record().number == number
        case Kept(record, key, value):
            return alike(run.entry(record, key), value)
        case Contents(record, contents):
            return alike(tuple(run.entries(record)), contents)
        case _:
            journal.append(entry)
    return True


def _leave(entry: Entry, run: Run) -> None:
    match entry:
        case Site(function, site):
            run.functions.note_site(function, site)
        case Way(function, entered):
            run.functions.note_way(function, entered)
        case _:
            pass


def alike(one: object, other: object) -> bool:
    """Return whether two values are the same in all that anybody can see of them.

    Equal expressions may be written in another order, which reports show, and functions are
    equal whose text is not.
    """
    if one is other:
        return True
    if type(one) is not type(other) or isinstance(one, cst.CSTNode):
        return False
    if isinstance(one, Expr) and isinstance(other, Expr):
        return one == other and to_text(one) == to_text(other)
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return [*one] == [*other] and all(map(alike, one.values(), other.values()))
    if is_dataclass(one) and not isinstance(one, Span):
        return all(
            alike(getattr(one, part.name), getattr(other, part.name)) for part in fields(one)
        )
    return one == other
