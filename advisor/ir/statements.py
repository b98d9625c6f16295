"""Statements of the kernel's intermediate form."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from advisor.ir.values import Gather, Point, Read, Subscript, Value, parts_of, reads
from advisor.source import Span
from costdb.expr import Expr
from costdb.records import dataclass, field, replace


@dataclass(frozen=True, slots=True)
class Bind:
    """A name comes to denote a fresh array: ``name = value``."""

    name: str
    value: Value
    span: Span


@dataclass(frozen=True, slots=True)
class Store:
    """Elements of an existing array change: ``array[region] = value``.

    Where it is `in_place` (``array[region] += other``, ``np.add(x, y, out=array)``), the last
    operation stores there by itself; otherwise its result is an array of its own, and copied. The
    result is the same, so stores that differ in this only are equal.

    Where a number is `compared`, as the "first" or the "last" of two, Python finds the extreme.

    Values that are `held` are in variables of these names, computed once for all their uses. While
    the element is combined it may be in a `variable`. Neither changes the result.
    """

    array: str
    region: tuple[Subscript, ...]
    value: Value
    span: Span
    in_place: bool = field(default=False, compare=False)
    held: tuple[tuple[str, Value], ...] = field(default=(), compare=False)
    variable: str = field(default="", compare=False)
    compared: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class ScalarBind:
    """A name comes to denote a number computed from arrays (a sum, an element).

    Where it is `combined`, the value is what the number that it was is combined with.
    """

    name: str
    value: Value
    span: Span
    combined: bool = field(default=False, compare=False)


class Threads(StrEnum):
    """Whether threads share the iterations of a loop."""

    NO = "no"
    """It is no ``prange``."""
    ASKED = "asked"
    """A ``prange``; nothing shows what the compiler made of it."""
    SHARED = "shared"
    """A ``prange`` that the compiler made parallel."""
    REFUSED = "refused"
    """A ``prange`` that runs as a plain range: nobody asked the compiler, or it did not."""


class Compiled(StrEnum):
    """Whether a compiler of single functions takes a loop that Python interprets, as proposed."""

    NO = "no"
    ALONE = "alone"
    """Its iterations wait for nothing."""
    WAITING = "waiting"
    """Each may wait for the one before."""


@dataclass(frozen=True, slots=True)
class Loop:
    """``for variable in range(low, high, step)``; `variable` is a symbol of the body.

    Where `stated`, the bounds are what a pragma says of the usual run, not what the source does.
    `starts` tells what numbers that iterations pass on hold before the first one, by their own
    names where that is not known. Where it is `listed`, elements are Python's numbers in lists:
    how many are put there, or taken from there, and the most places of one. None of `threads`,
    `compiled` and this changes what it computes or the order within an iteration.
    """

    variable: str
    low: Expr
    high: Expr
    step: int
    body: tuple[Statement, ...]
    span: Span
    stated: bool = False
    threads: Threads = Threads.NO
    compiled: Compiled = Compiled.NO
    starts: tuple[tuple[str, Value], ...] = field(default=(), compare=False)
    listed: tuple[Expr, int] | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """A conditional whose condition is true with a stated probability.

    The `condition` itself is known where it is computed from numbers and elements.
    """

    probability: Expr
    then: tuple[Statement, ...]
    orelse: tuple[Statement, ...]
    span: Span
    condition: Value | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Stated:
    """A statement whose whole cost a pragma states, in microseconds."""

    microseconds: Expr
    mentions: frozenset[str]
    span: Span


@dataclass(frozen=True, slots=True)
class Scatter:
    """Elements at places that only the data know are combined with values.

    ``np.add.at(array, places, value)``; repeated places count each time. Where the `operation` is
    `SET`, they are stored, and the last one stays. Where it is `by_element`, the source has loops
    that do so one by one. The places are along the first axis, `others` along those after it.
    Values that are `held` are in variables of these names.
    """

    array: str
    places: Value
    value: Value
    operation: str
    span: Span
    by_element: bool = False
    others: tuple[Value, ...] = ()
    held: tuple[tuple[str, Value], ...] = field(default=(), compare=False)

    @property
    def all_places(self) -> tuple[Value, ...]:
        """The places along each axis."""
        return (self.places, *self.others)


SET = "set"
"""The operation of a scatter that stores."""

CONDITION = "<condition>"
"""The name under which a number is bound that only a condition uses."""


@dataclass(frozen=True, slots=True)
class Rename:
    """Names of equal arrays are exchanged (``u, v = v, u``); no element moves."""

    names: frozenset[str]
    span: Span


@dataclass(frozen=True, slots=True)
class Return:
    """The end of the kernel, and the arrays that leave it."""

    names: frozenset[str]
    span: Span


@dataclass(frozen=True, slots=True)
class Unknown:
    """Something that is not understood; it may read or change every name it mentions.

    What is not known `of_all` concerns every statement of a kernel: none of them has a price.
    It takes at least some `steps` of the interpreter: subscripts, operators, NumPy's functions.
    """

    reason: str
    mentions: frozenset[str]
    span: Span
    of_all: bool = False
    steps: tuple[int, int, int] = (0, 0, 0)


UNTOLD = "how often the loop runs is not known: `# advise: trip COUNT` above it says so"
"""What is told of a loop of which one iteration has a price."""

NO_PRICE = "has no price"
"""What is told of a statement whose effects are known, at its end."""


@dataclass(frozen=True, slots=True)
class Opaque(Unknown):
    """Something besides work on arrays: nobody knows how long it takes, but what it changes.

    It may read all that it mentions.
    """

    changes: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Unrolled:
    """A loop over values that are written out, as its iterations one after another.

    Several of its statements have one place in the source, so that no rule rewrites them.
    """

    body: tuple[Statement, ...]
    span: Span


Statement = (
    Bind
    | Store
    | ScalarBind
    | Loop
    | Choice
    | Stated
    | Scatter
    | Rename
    | Return
    | Unknown
    | Unrolled
)


def is_total(statement: Statement) -> bool:
    """Return whether a statement accumulates a number, as an array of no dimensions."""
    return isinstance(statement, Store) and not statement.region


def names_elements(statement: Statement) -> bool:
    """Return whether a statement itself names single elements, or places that data tell."""
    parts = (part for value in values_of(statement) for part in parts_of(value))
    return any(
        isinstance(one, Gather)
        or (isinstance(one, Read | Store) and {type(part) for part in one.region} == {Point})
        for one in (statement, *parts)
    )


def values_of(statement: Statement) -> tuple[Value, ...]:
    """Return the values that a statement itself computes."""
    match statement:
        case Bind() | ScalarBind() | Store():
            return (statement.value,)
        case Scatter():
            return (*statement.all_places, statement.value)
    return ()


def within(statement: Statement) -> tuple[Statement, ...]:
    """Return the statements that a statement directly holds."""
    match statement:
        case Loop() | Unrolled():
            return statement.body
        case Choice():
            return statement.then + statement.orelse
    return ()


def mentioned(statement: Statement) -> frozenset[str]:
    """Return the names of all arrays that a statement reads, writes or binds."""
    names = statement.names if isinstance(statement, Return) else _changed(statement)
    names = names | statement.mentions if isinstance(statement, Unknown) else names
    needed = (read.array for value in values_of(statement) for read in reads(value))
    return names.union(needed, *map(mentioned, within(statement)))


def written(statement: Statement) -> frozenset[str]:
    """Return the names of all arrays that a statement may change or rebind."""
    return _changed(statement).union(*map(written, within(statement)))


def _changed(statement: Statement) -> frozenset[str]:
    match statement:
        case Bind() | ScalarBind():
            return frozenset({statement.name})
        case Store() | Scatter():
            return frozenset({statement.array})
        case Rename():
            return statement.names
        case Opaque():
            return statement.changes
        case Stated() | Unknown():
            return statement.mentions
    return frozenset()


def walk(statements: tuple[Statement, ...], *, rewritable: bool = False) -> Iterator[Statement]:
    """Yield all statements, outermost first, in program order.

    Where `rewritable`, without those that share their place in the source with others.
    """
    for statement in statements:
        yield statement
        if not (rewritable and isinstance(statement, Unrolled)):
            yield from walk(within(statement), rewritable=rewritable)


def parts_of_range(statement: Statement) -> tuple[Loop, ...]:
    """Return the loops as which one is read that treats parts of its range each in its own way."""
    body = statement.body if isinstance(statement, Unrolled) else ()
    parts = tuple(one for one in body if isinstance(one, Loop) and one.span == statement.span)
    return parts if len(parts) == len(body) else ()


def unrolled(statements: tuple[Statement, ...]) -> tuple[Statement, ...]:
    """Return statements with the iterations of loops over written-out values in their places."""
    if not any(isinstance(statement, Unrolled) for statement in walk(statements)):
        return statements
    made: list[Statement] = []
    for statement in statements:
        match statement:
            case Unrolled(body, _):
                made.extend(unrolled(body))
            case Loop():
                made.append(replace(statement, body=unrolled(statement.body)))
            case Choice():
                then, orelse = unrolled(statement.then), unrolled(statement.orelse)
                made.append(replace(statement, then=then, orelse=orelse))
            case _:
                made.append(statement)
    return tuple(made)
