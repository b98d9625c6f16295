"""Triangular loops that wait in one order of their indices, and not in the other.

A factorisation by rows waits for each element of its row: ``for j in range(i)``, ``A[i, j]`` needs
``A[i, :j]``. By columns nothing waits but the columns. The inner index then counts the iterations
of the outer loop, and all rows below are one statement. Every two iterations that touch the same
element have to keep their order, which is a question of inequalities between affine expressions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from math import gcd

from advisor.ir.dependence import bounds_of, slope_of
from advisor.ir.kernel import Kernel, mapped, rebuilt
from advisor.ir.nests import index_name
from advisor.ir.shapes import ShapeConflict
from advisor.ir.statements import Loop, ScalarBind, Statement, Store, is_total, values_of
from advisor.ir.values import Elementwise, Point, Read, Scalar, Value, parts_of, reads
from costdb.expr import ONE, ZERO, Expr, free_symbols, num, substitute, sym
from costdb.expr.nodes import Num
from transforms.kit.kernels import proofs
from transforms.loops.lift import Raised
from transforms.loops.masked import NotRaised
from transforms.loops.raising import WORD, is_raisable, raised

_MOST = 200
"""Inequalities from which on nobody asks whether they contradict one another."""

Affine = Mapping[str, int]
"""The factor of each symbol, and under the empty name what is added."""


@dataclass(frozen=True, slots=True)
class _Instances:
    """All iterations of a statement.

    Attributes
    ----------
    store : Store
        As it is in the new order.
    indices : tuple of str
    domain : tuple of Expr
        What is not negative in all of them.
    before, after : tuple of Expr
        When they ran, and run: those come first that are less in the first of these that differ.
    """

    store: Store
    indices: tuple[str, ...]
    domain: tuple[Expr, ...]
    before: tuple[Expr, ...]
    after: tuple[Expr, ...]


def reordered(
    loop: Loop, outer: tuple[Loop, ...], kernel: Kernel
) -> tuple[Loop, tuple[Store, ...], tuple[Store, ...]]:
    """Return a loop with triangles in it the other way, its statements before, and after.

    Raises
    ------
    NotRaised
        There is no order in which nothing but the loop itself waits.
    """
    if not is_raisable(loop, kernel):
        raise NotRaised
    items = list(_items(loop.body, outer, (*outer, loop), kernel))
    waits = [_is_triangle(one, loop) for one in items]
    numbers = [p.text for item in items for one in _stores(item) for p in parts_of(one.value)
               if isinstance(p, Scalar)]  # fmt: skip
    names = {index_name(one.variable) for one in (loop, *items) if isinstance(one, Loop)}
    if not any(waits) or loop.step != 1 or names & {w for t in numbers for w in WORD.findall(t)}:
        raise NotRaised
    for shift, first in product(
        (ZERO, ONE - _ahead(items[waits.index(True)], loop)), (True, False)
    ):
        order = sorted(range(len(items)), key=lambda n: waits[n] != first)
        turned = [_turned(one, loop, shift) if w else one
                  for one, w in zip(items, waits, strict=True)]  # fmt: skip
        if not all(_fits(items[n], loop, shift, outer, kernel) for n in order if waits[n]):
            continue
        body: list[Raised] = []
        around = (*outer, replace(loop, body=tuple(turned[n] for n in order)))
        try:
            for n in order:
                one = turned[n]
                body += raised(one, around, kernel) if isinstance(one, Loop) else (one,)
        except (NotRaised, ShapeConflict):
            continue
        instances = [
            _instances(items[n], turned[n], (n, order.index(n)), loop, shift if waits[n] else None)
            for n in order
        ]
        flat = [one for some in instances for one in some]
        if not all(_keeps_order(a, b, outer, kernel) for a, b in product(flat, flat)):
            continue
        before = tuple(one for n in order for one in _stores(items[n]))
        after = tuple(one for one in body if isinstance(one, Store))
        return replace(loop, body=tuple(body)), before, after
    raise NotRaised


def _items(
    body: Sequence[Statement], outer: tuple[Loop, ...], around: tuple[Loop, ...], kernel: Kernel
) -> Iterator[Store | Loop]:
    """Yield statements, and loops of them, with what they need numbers for in their places."""
    numbers: dict[str, Value] = {}
    stored = 0
    for one in body:
        if isinstance(one, Loop):
            if one.step != 1 or not is_raisable(one, kernel):
                raise NotRaised
            counts = all(map(is_total, _stores(one)))
            if len(around) > len(outer) + 1 or counts:
                made = raised(one, around, kernel)
                if len(made) != 1:
                    raise NotRaised
                one = made[0]
            else:
                inner = tuple(_items(one.body, outer, (*around, one), kernel))
                if numbers or not all(isinstance(made, Store) for made in inner):
                    raise NotRaised
                yield replace(one, body=inner)
                continue
        one = mapped(one, lambda part: _number(part, numbers))
        texts = [part.text for value in values_of(one) for part in parts_of(value)
                 if isinstance(part, Scalar)]  # fmt: skip
        if numbers.keys() & {word for text in texts for word in WORD.findall(text)}:
            raise NotRaised
        match one:
            case ScalarBind(name) if name in kernel.observed:
                raise NotRaised
            case ScalarBind(name, value, combined=False):
                numbers[name] = value
            case Store(name, (), value) if Read(name, ()) not in reads(value):
                numbers[name] = value
            case Store() if not (is_total(one) or one.variable or one.held):
                stored += 1
                yield one
            case _:
                raise NotRaised
    if numbers and stored != 1:
        # what a number was made of may be another one by then
        raise NotRaised


def _number(part: object, numbers: Mapping[str, Value]) -> object:
    match part:
        case Elementwise("add", (Read(name, ()), term)) if name in numbers:
            if isinstance(first := numbers[name], Scalar) and first.text in ("0", "0.0"):
                return term
        case Read(name, ()) | Scalar(name):
            return numbers.get(name)
    return None


def _stores(item: object) -> tuple[Store, ...]:
    if isinstance(item, Store):
        return (item,)
    return (
        tuple(one for inner in item.body for one in _stores(inner))
        if isinstance(item, Loop)
        else ()
    )


def _ahead(item: Store | Loop, loop: Loop) -> Expr:
    """Return how far the end of a triangle is ahead of the index around it."""
    assert isinstance(item, Loop)
    return item.high - sym(loop.variable)


def _is_triangle(item: Store | Loop, loop: Loop) -> bool:
    return (
        isinstance(item, Loop)
        and loop.variable not in free_symbols(item.low)
        and isinstance(_ahead(item, loop), Num)
    )


def _turned(item: Store | Loop, loop: Loop, shift: Expr) -> Loop:
    """Return a triangle whose inner index is the outer one, so much ahead."""
    assert isinstance(item, Loop)
    index = sym(loop.variable) - shift
    other = {loop.variable: sym(item.variable), item.variable: index}
    body = rebuilt(item.body, lambda expr: substitute(expr, other))
    low = index - _ahead(item, loop) + ONE
    return replace(item, low=low, high=loop.high, body=body)


def _fits(
    item: Store | Loop, loop: Loop, shift: Expr, outer: tuple[Loop, ...], kernel: Kernel
) -> bool:
    """Return whether iterations of the outer loop are those of a triangle, but for empty ones."""
    assert isinstance(item, Loop)
    ahead, known = _ahead(item, loop), proofs(kernel, outer)
    same = item.low + shift == loop.low and known.non_negative(ONE - ahead - shift)
    if not same or not known.non_negative(item.low - ahead + ONE - loop.low):
        return False
    if ahead + shift == ONE:
        return True
    # elements that no iteration needs, where there is none
    known = proofs(kernel, (*outer, loop))
    found = [
        (part.at, extent)
        for one in _stores(_turned(item, loop, shift))
        for read in (Read(one.array, one.region), *reads(one.value))
        for part, extent in zip(read.region, kernel.extents(read.array), strict=True)
        if isinstance(part, Point) and item.variable not in free_symbols(part.at)
    ]
    return all(known.non_negative(at) and known.non_negative(n - at - ONE) for at, n in found)


# --- which iterations have to keep their order ----------------------------------------------------


def _instances(
    item: Store | Loop, made: Store | Loop, place: tuple[int, int], loop: Loop, shift: Expr | None
) -> list[_Instances]:
    """Return the iterations of the statements of a part of a body."""
    index = sym(loop.variable)
    domain = [index - loop.low, loop.high - ONE - index]
    indices: tuple[str, ...] = (loop.variable,)
    inner: Expr = ZERO
    was: tuple[Expr, Expr] = (index, ZERO)
    if isinstance(made, Loop):
        indices = (loop.variable, made.variable)
        inner = sym(made.variable)
        domain += [inner - made.low, made.high - ONE - inner]
        was = (index, inner) if shift is None else (inner, index - shift)
    return [
        _Instances(
            one,
            indices,
            tuple(domain),
            (was[0], num(place[0]), was[1], num(number)),
            (index, num(place[1]), inner, num(number)),
        )
        for number, one in enumerate(_stores(made))
    ]


def _keeps_order(
    first: _Instances, then: _Instances, outer: Sequence[Loop], kernel: Kernel
) -> bool:
    """Return whether no iteration comes after one that it came before, and that it may touch."""
    then = rebuilt(then, lambda e: substitute(e, {n: sym(f"{n}.then") for n in then.indices}))
    at_all = [*first.domain, *then.domain]
    for one in outer:
        at_all += [sym(one.variable) - one.low, one.high - ONE - sym(one.variable)]
    sizes = {n for name in kernel.arrays for e in kernel.extents(name) for n in free_symbols(e)}
    at_all += [sym(name) - num(kernel.least.get(name, 1)) for name in sorted(sizes)]
    known = _rows(at_all)
    turned = [
        _rows([*was, *now])
        for was, now in product(
            _earlier(first.before, then.before), _earlier(then.after, first.after)
        )
    ]
    turned = [rows for rows in turned if not _contradict([*known, *rows])]
    return all(
        _contradict([*known, *_rows(_overlap(*pair)), *rows])
        for rows in turned
        for pair in _conflicts(first.store, then.store)
    )


def _conflicts(first: Store, then: Store) -> Iterator[tuple[Read, Read]]:
    """Yield what two statements touch of the same array, one of them to store."""
    stored = [Read(one.array, one.region) for one in (first, then)]
    for one in (stored[0], *reads(first.value)):
        for other in (stored[1], *reads(then.value)):
            if one.array == other.array and (one is stored[0] or other is stored[1]):
                yield one, other


def _overlap(one: Read, other: Read) -> list[Expr]:
    """Return what is not negative where two regions have an element in common."""
    found: list[Expr] = []
    for parts in zip(one.region, other.region, strict=True):
        (low, high), (its_low, its_high) = map(bounds_of, parts)
        found += [high - ONE - low, its_high - ONE - its_low]
        found += [high - ONE - its_low, its_high - ONE - low]
    return found


def _earlier(one: Sequence[Expr], other: Sequence[Expr]) -> Iterator[list[Expr]]:
    """Yield the ways in which one is earlier, each as what is not negative then."""
    for n, (a, b) in enumerate(zip(one, other, strict=True)):
        same = [e for x, y in zip(one[:n], other[:n], strict=True) for e in (x - y, y - x)]
        yield [*same, b - a - ONE]


def _rows(expressions: Sequence[Expr]) -> list[Affine]:
    """Return those of some expressions that are affine."""
    # leaving one out makes it harder to contradict
    return [row for row in map(_row, expressions) if row is not None]


@lru_cache(maxsize=4096)
def _row(expr: Expr) -> Affine | None:
    # a slope that is not known is none here
    slopes = {name: slope_of(expr, name) or 0 for name in sorted(free_symbols(expr))}
    rest = expr - sum((sym(name) * slope for name, slope in slopes.items()), ZERO)
    if not isinstance(rest, Num):
        return None
    found = {"": rest.value, **slopes}
    whole = {name: value for name, value in found.items() if isinstance(value, int)}
    return whole if len(whole) == len(found) else None


def _contradict(rows: Sequence[Affine]) -> bool:
    """Return whether expressions are surely not all at least 0 at once (Fourier and Motzkin)."""
    while len(rows) < _MOST:
        rows = [dict(pairs) for pairs in {tuple(sorted(row.items())) for row in rows}]
        if any(len(row) == 1 and row[""] < 0 for row in rows):
            return True
        signs = [(name, factor > 0) for row in rows for name, factor in row.items() if name]
        if not signs:
            return False
        counts = Counter(signs)
        name = min(sorted(dict(signs)), key=lambda n: counts[n, True] * counts[n, False])
        above = [row for row in rows if row.get(name, 0) > 0]
        below = [row for row in rows if row.get(name, 0) < 0]
        rows = [row for row in rows if name not in row]
        rows += [_without(name, a, b) for a, b in product(above, below)]
    return False


def _without(name: str, one: Affine, other: Affine) -> Affine:
    """Return what two inequalities say together that one of their symbols is not in."""
    ours, theirs = one[name], -other[name]
    found = {n: one.get(n, 0) * theirs + other.get(n, 0) * ours for n in {*one, *other} - {name}}
    common = gcd(*found.values()) or 1
    return {n: factor // common for n, factor in found.items() if factor or not n}
