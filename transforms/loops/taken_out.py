"""What a recurrence does not wait for, computed for all of its iterations before it begins."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from advisor.ir.concrete import with_part
from advisor.ir.kernel import Kernel
from advisor.ir.shapes import whole
from advisor.ir.statements import Bind, Loop, Statement, Store
from advisor.ir.values import Elementwise, Point, Read, Reduction, Value, parts_of, reads
from costdb.expr import sym
from transforms.kit.kernels import proofs, type_of
from transforms.kit.rewrite import fresh_name
from transforms.loops.axes import told
from transforms.loops.raising import Lift, NotRaised, ShapeConflict, is_raisable, needed


def taken_out(
    loop: Loop, outer: tuple[Loop, ...], kernel: Kernel
) -> tuple[tuple[Statement, ...], Kernel]:
    """Return a loop after statements that compute what it does not wait for, and their kernel.

    Raises
    ------
    NotRaised
        It waits for all that it computes.
    """
    stores = [one for one in loop.body if isinstance(one, Store)]
    if len(stores) != len(loop.body) or loop.step != 1 or not is_raisable(loop, kernel):
        raise NotRaised
    changed = frozenset(one.array for one in stores)
    lift = Lift(loop, outer, kernel, proofs(kernel, outer))
    lift.needed = frozenset(read for one in stores for read in needed(one))
    found = dict.fromkeys(one for store in stores for one in _ready(store.value, changed, lift))
    refusing = (lift.needs_elements(part) for value in found for part in told(value))
    if not found or (not kernel.runs_through and any(refusing)):
        raise NotRaised
    taken = {*kernel.arrays, *kernel.locals, *kernel.context.identifiers}
    made: list[Statement] = []
    body = loop.body
    # what holds another one comes before it
    for value in sorted(found, key=lambda one: -sum(1 for _ in parts_of(one))):
        name = fresh_name("terms", taken)
        taken.add(name)
        for read in reads(value):
            lift.note(Store(read.array, read.region, read, loop.span))
            if not lift.is_there(Store(read.array, read.region, read, loop.span)):
                raise NotRaised
        computed, place = lift.value(value)
        type_ = type_of(computed, kernel)
        kernel = kernel.with_locals({name: type_})
        region = list(whole(type_.extents))
        if place is not None:
            region[place] = Point(sym(loop.variable) - loop.low)
        made.append(Bind(name, computed, loop.span))
        body = with_part(body, value, Read(name, tuple(region)))
    body = tuple(replace(one, held=()) if isinstance(one, Store) else one for one in body)
    return (*made, replace(loop, body=body)), kernel


def _ready(value: Value, changed: frozenset[str], lift: Lift) -> Iterator[Value]:
    """Yield the largest arrays in a value that nothing of the loop changes."""
    named = {read.array for read in reads(value)}
    computes = isinstance(value, Elementwise | Reduction) and lift.rank(value) > 0
    if computes and named and not named & changed:
        try:
            lift.value(value)
        except (NotRaised, ShapeConflict):
            pass
        else:
            yield value
            return
    if isinstance(value, Elementwise) and value.operation != "where":
        for part in value.operands:
            yield from _ready(part, changed, lift)


def terms_of(statements: tuple[Statement, ...]) -> Iterator[Store]:
    """Yield what is computed before the loop, as if it were stored to an array of its own."""
    for one in statements:
        if isinstance(one, Bind):
            read = next(part for part in parts_of(one.value) if isinstance(part, Read))
            yield Store(read.array, read.region, one.value, one.span)
