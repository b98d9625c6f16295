"""Nests of loops, and the iterations of them that touch the same elements.

The iterations of a nest are vectors of indices. Two accesses to one array meet at a distance
vector when some pair of iterations that far apart touches the same element. Only the signs of a
distance matter for the order of iterations, so the question asked is whether two accesses may
meet at some distance of given signs. Where subscripts are not affine, or differ in how they
depend on the indices, the answer is that they may.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from itertools import product
from math import gcd, inf

from advisor.ir.dependence import extreme, slope_of
from advisor.ir.shapes import ArrayType
from advisor.ir.statements import Loop, Statement, Store
from advisor.ir.values import (
    Chosen,
    Copy,
    Elementwise,
    Expand,
    Fill,
    Flip,
    Gather,
    Point,
    Read,
    Scalar,
    Subscript,
    Transpose,
    Value,
    operands,
    reads,
)
from costdb.expr import Expr, free_symbols
from costdb.expr.nodes import Num
from costdb.records import dataclass, only, replace

Signs = tuple[int, ...]
"""For each loop, outermost first: -1, 0 or 1."""


@dataclass(frozen=True, slots=True)
class Nest:
    """Loops each of which holds only the next one, and the stores within the innermost.

    Attributes
    ----------
    loops : tuple of Loop
        Outermost first.
    body : tuple of Store
    around : tuple of Loop
        Loops that hold the nest among other statements, outermost first.
    """

    loops: tuple[Loop, ...]
    body: tuple[Store, ...]
    around: tuple[Loop, ...] = ()

    @property
    def variables(self) -> tuple[str, ...]:
        """The indices, outermost first."""
        return tuple(loop.variable for loop in self.loops)

    @property
    def is_rectangular(self) -> bool:
        """Whether no loop's bounds depend on another's index."""
        bounds = (free_symbols(loop.low) | free_symbols(loop.high) for loop in self.loops)
        return not frozenset().union(*bounds) & frozenset(self.variables)

    @property
    def is_by_element(self) -> bool:
        """Whether every statement computes one element from single elements."""
        return all(_is_element(store.region) and is_of_elements(store.value) for store in self.body)


@dataclass(frozen=True, slots=True)
class Reference:
    """One access within a nest.

    Attributes
    ----------
    array : str
    region : tuple of Subscript
    store : bool
    statement : int
        Which of the nest's statements it belongs to.
    """

    array: str
    region: tuple[Subscript, ...]
    store: bool
    statement: int


def nest_of(loop: Loop) -> Nest | None:
    """Return the nest that begins with a loop; None where it holds anything but stores."""
    loops = [loop]
    while len(loops[-1].body) == 1 and isinstance(loops[-1].body[0], Loop):
        loops.append(loops[-1].body[0])
    stores = tuple(s for s in loops[-1].body if isinstance(s, Store))
    if not stores or len(stores) != len(loops[-1].body):
        return None
    return Nest(tuple(loops), stores)


def nests(statements: tuple[Statement, ...], around: tuple[Loop, ...] = ()) -> Iterator[Nest]:
    """Yield the outermost nests of a block, in program order."""
    for statement in only(Loop, statements):
        found = nest_of(statement)
        if found is None:
            yield from nests(statement.body, (*around, statement))
        else:
            yield replace(found, around=around)


def references(nest: Nest) -> tuple[Reference, ...]:
    """Return all accesses of a nest, the reads of a statement before its store."""
    return tuple(
        reference
        for number, store in enumerate(nest.body)
        for reference in (
            *(Reference(r.array, r.region, False, number) for r in reads(store.value)),
            Reference(store.array, store.region, True, number),
        )
    )


def slopes(part: Subscript, variables: tuple[str, ...]) -> dict[str, int] | None:
    """Return how an index grows with each variable, zeros left out; None where not affine.

    Raises
    ------
    TypeError
        For a subscript that selects a range.
    """
    if not isinstance(part, Point):
        raise TypeError("a range has no single slope")
    found: dict[str, int] = {}
    for variable in variables:
        slope = slope_of(part.at, variable)
        if slope is None or isinstance(slope, Fraction):
            return None
        if slope != 0:
            found[variable] = int(slope)
    return found


def may_meet(first: Reference, then: Reference, nest: Nest, signs: Signs) -> bool:
    """Return whether `then` may touch what `first` touched, at a distance of given signs.

    Parameters
    ----------
    first, then : Reference
        To the same array.
    nest : Nest
    signs : tuple of int
        Of the iteration of `then` less that of `first`, loop by loop.
    """
    if len(first.region) != len(then.region):
        return True
    variables = nest.variables
    wanted = dict(zip(variables, signs, strict=True))
    fixed: dict[str, int] = {v: 0 for v, sign in wanted.items() if sign == 0}
    for one, other in zip(first.region, then.region, strict=True):
        if not (isinstance(one, Point) and isinstance(other, Point)):
            continue
        if _are_apart(one.at, other.at, nest):
            return False
        slope, its = slopes(one, variables), slopes(other, variables)
        gap = one.at - other.at
        if slope is None or slope != its or not isinstance(gap, Num):
            continue
        if not _solvable(slope, Fraction(gap.value), wanted):
            return False
        if len(slope) == 1:
            ((variable, step),) = slope.items()
            distance = int(Fraction(gap.value) / step)
            if fixed.setdefault(variable, distance) != distance:
                return False
    return all(_fits(loop, fixed.get(loop.variable, 0)) for loop in nest.loops)


def _are_apart(one: Expr, other: Expr, nest: Nest) -> bool:
    """Return whether two subscripts surely differ, whatever iterations they belong to."""
    for low, high in ((one, other), (other, one)):
        least, greatest = _extreme(low, nest, least=True), _extreme(high, nest, least=False)
        if least is None or greatest is None:
            return False
        gap = least - greatest
        if isinstance(gap, Num) and gap.value > 0:
            return True
    return False


def _extreme(subscript: Expr, nest: Nest, *, least: bool) -> Expr | None:
    """Return the least or greatest value of a subscript in a nest; None where not affine."""
    found: Expr | None = subscript
    for loop in reversed(nest.loops):
        if found is not None:
            found = extreme(found, loop.variable, (loop.low, loop.high - 1), least=least)
    return found


def _solvable(slope: Mapping[str, int], gap: Fraction, wanted: Mapping[str, int]) -> bool:
    """Return whether ``sum(slope * distance) == gap`` for some distances of the wanted signs."""
    moving = {v: step for v, step in slope.items() if wanted[v] != 0}
    if not moving:
        return gap == 0
    if gap.denominator != 1 or int(gap) % gcd(*moving.values()):
        return False
    low = high = 0.0
    for variable, step in moving.items():
        if step * wanted[variable] > 0:
            low, high = low + abs(step), inf
        else:
            low, high = -inf, high - abs(step)
    return low <= gap <= high


def _fits(loop: Loop, distance: int) -> bool:
    """Return whether a loop has two iterations so far apart, as far as can be told."""
    if distance % loop.step:
        return False
    trips = loop.high - loop.low
    return not isinstance(trips, Num) or distance == 0 or abs(distance) < trips.value


def directions(depth: int) -> tuple[Signs, ...]:
    """Return the signs of all distances to later iterations of so many loops."""
    return tuple(signs for signs in product((-1, 0, 1), repeat=depth) if is_later(signs))


def is_later(signs: Signs) -> bool:
    """Return whether the first sign that is not 0 is positive."""
    return next((sign > 0 for sign in signs if sign != 0), False)


def conflicts(nest: Nest) -> Iterator[tuple[Reference, Reference]]:
    """Yield all pairs of accesses to one array of which one is a store, in either order."""
    found = references(nest)
    for first in found:
        for then in found:
            if first.array == then.array and (first.store or then.store):
                yield first, then


def index_name(variable: str) -> str:
    """Return the name that the source gives to a loop's index."""
    return variable.rpartition(".loop")[0]


NO_INDEX = "iteration"
"""Stands for the name of an index where a loop has none."""


def index_symbol(name: str, number: int) -> str:
    """Return the symbol of the index of a function's first, second ... loop.

    It does not hang on lines, so that whatever is known of a loop's costs holds on when lines
    above it come and go.
    """
    return f"{name}.loop{number}"


def renamed_index(variable: str, name: str) -> str:
    """Return the symbol of a loop's index under another name."""
    return f"{name}.loop{variable.rpartition('.loop')[2]}"


def _is_element(region: tuple[Subscript, ...]) -> bool:
    return all(isinstance(part, Point) for part in region)


def is_of_elements(value: Value) -> bool:
    """Return whether a value is computed from single elements and numbers by arithmetic.

    An element may be one whose place only the data know.
    """
    match value:
        case Read(_, region):
            return _is_element(region)
        case Gather(operand):
            rest = operand.region if isinstance(operand, Read) else ()
            axes = sum(not isinstance(part, Point) for part in rest)
            single = not rest or axes == len(value.all_places)
            return single and all(map(is_of_elements, value.all_places))
        case Scalar():
            return True
        case Elementwise() | Copy():
            return all(map(is_of_elements, operands(value)))
    return False


def element_reads(value: Value) -> list[Read]:
    """Return the single elements that a value needs at places that the program states."""
    if isinstance(value, Read):
        return [value]
    parts = value.all_places if isinstance(value, Gather) else operands(value)
    return [read for part in parts for read in element_reads(part)]


def gathers(value: Value) -> list[Gather]:
    """Return the elements that a value needs at places that only the data know."""
    inner = [found for part in operands(value) for found in gathers(part)]
    return [value, *inner] if isinstance(value, Gather) else inner


# --- masks ----------------------------------------------------------------------------------------
# What a mask chooses, in and out of expressions: ``a[mask] / b[mask]`` is ``(a / b)[mask]``.


def masked(store: Store) -> tuple[Value, Value] | None:
    """Return the mask of ``array[mask] = value``, and the value for all elements.

    None for a store that is under no mask.
    """
    match store.value:
        case Elementwise("where", (mask, value, own)) if store.in_place:
            return (mask, value) if own == Read(store.array, store.region) else None
    return None


def chosen_in(
    value: Value, mask: Value, type_of: Callable[[Value], ArrayType], count: Expr
) -> Value | None:
    """Return a value with what a mask chooses in the place of arrays; None where it has no form.

    Parameters
    ----------
    value : Value
    mask : Value
    type_of : callable
        Gives element type and shape of a value.
    count : Expr
        Stands for how many are chosen.
    """
    extents = type_of(value).extents
    match value:
        case _ if not extents:
            return value
        case Read() | Transpose() | Expand() | Flip() | Fill():
            same = extents == type_of(mask).extents
            return Chosen(value, mask, count) if same else None
        case Gather(operand) if type_of(operand).extents[len(value.all_places) :]:
            return None
    return of_parts(value, lambda part: chosen_in(part, mask, type_of, count))


def of_parts(value: Value, other: Callable[[Value], Value | None]) -> Value | None:
    """Return a value of elements with something else for each part; None where one has nothing."""
    match value:
        case Copy(operand, dtype):
            inner = other(operand)
            return None if inner is None else Copy(inner, dtype)
        case Gather(operand):
            found = [other(one) for one in value.all_places]
            places = tuple(one for one in found if one is not None)
            return Gather(operand, places[0], places[1:]) if len(places) == len(found) else None
        case Elementwise(_, parts):
            known = tuple(made for part in parts if (made := other(part)) is not None)
            return replace(value, operands=known) if len(known) == len(parts) else None
    return None


def unchosen(value: Value, mask: Value) -> Value | None:
    """Return what a value is for all elements, of which it has those that a mask chooses.

    None where it is not computed element by element from such.
    """
    match value:
        case Scalar():
            return value
        case Chosen(operand, other, _) if other == mask:
            return operand
    return of_parts(value, lambda part: unchosen(part, mask))
