"""Arrays that each iteration of a loop makes for itself, with the loop as an axis more.

``h = np.zeros(3); h[0] = x[i] ...; y[i] = h.sum()`` waits for nothing: all iterations may have
their ``h`` at once, as the columns of one array, and then nothing but stores is left in the loop.
``h = np.array([x[i], 2 * x[i]])`` is filled in parts, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from advisor.ir.kernel import Kernel, symbols
from advisor.ir.shapes import ArrayType, is_whole, whole
from advisor.ir.statements import Bind, Loop, Statement, Store, walk
from advisor.ir.values import Called, Copy, Fill, Point, Read, Value, bounds_in, reads, step_of
from costdb.expr import num, sym
from costdb.expr.nodes import Num
from transforms.kit.kernels import mapped, named, with_statement
from transforms.loops.array_text import FILLED
from transforms.loops.substituted import used_elsewhere


def expanded(loop: Loop, kernel: Kernel) -> tuple[tuple[Bind, ...], Loop, Kernel]:
    """Return what binds the arrays of all iterations, the loop with these, and the kernel.

    Only arrays that iterations fill in parts; what they bind whole is put where it is used.
    """
    if loop.step != 1:
        return (), loop, kernel
    named_body, known = _with_rows(loop.body, kernel)
    names = frozenset(_filled(loop, named_body, known))
    extent, at = loop.high - loop.low, Point(sym(loop.variable) - loop.low)

    def with_axis(part: object) -> object:
        if isinstance(part, Read | Store) and part.array in names:
            return replace(part, region=(*part.region, at))
        return part

    before, body, types = [], list[Statement](), dict[str, ArrayType]()
    for one in named_body:
        if isinstance(one, Store):
            body += _by_places(one)
        elif isinstance(one, Bind) and one.name in names:
            found = known.locals[one.name]
            types[one.name] = replace(found, extents=(*found.extents, extent))
            fill = Fill("", types[one.name].extents, found.dtype)
            if isinstance(one.value, Fill) and not one.value.of and one.value.value in FILLED:
                fill = replace(one.value, shape=fill.shape)
            else:
                body += _by_places(Store(one.name, whole(found.extents), one.value, one.span))
            before.append(replace(one, value=fill))
        else:
            body.append(one)
    if len(body) == len(loop.body) and not before:
        return (), loop, kernel
    made = replace(loop, body=mapped(tuple(body), with_axis))
    known = known.with_body(with_statement(kernel.body, loop, (made,)))
    return tuple(before), made, known.with_locals(types)


def _with_rows(body: tuple[Statement, ...], kernel: Kernel) -> tuple[tuple[Statement, ...], Kernel]:
    """Return statements with a name for each list that is an element of a list, and the kernel."""
    made: list[Statement] = []
    for one in body:
        if isinstance(one, Store) and one.array in kernel.lists and _items(one.value):
            bind, read, kernel = named("rows", one.value, one.span, kernel)
            made += (bind, replace(one, value=read))
        else:
            made.append(one)
    return tuple(made), kernel


def _filled(loop: Loop, body: tuple[Statement, ...], kernel: Kernel) -> Iterator[str]:
    """Yield the arrays of an iteration that are filled in parts."""
    inside = tuple(walk(body))
    parts = {
        one.array
        for one in inside
        if isinstance(one, Store) and one.array in kernel.locals
        if not is_whole(one.region, kernel.extents(one.array))
    }
    parts |= {one.name for one in body if isinstance(one, Bind) and _items(one.value)}
    names = [one.name for one in inside if isinstance(one, Bind)]
    others = kernel.lists.keys() | kernel.arrays.keys() | kernel.aliases
    others |= used_elsewhere(loop, kernel) if parts else frozenset()
    for one in body:
        if isinstance(one, Bind) and one.name in parts - others and names.count(one.name) == 1:
            own = one.name in {read.array for read in reads(one.value)}
            if not own and loop.variable not in symbols(whole(kernel.extents(one.name))):
                yield one.name


def _items(value: Value) -> dict[tuple[int, ...], Value]:
    """Return the elements of an array that is written out, by their places; else none."""
    match value:
        case Copy(Called("array") as made) | (Called("array" | "list") as made):
            extents = [int(one.value) for one in made.shape if isinstance(one, Num)]
            places = product(*map(range, extents))
            return dict(zip(places, made.operands, strict=True))
    return {}


def _by_places(store: Store) -> Iterator[Store]:
    """Yield what stores elements that are written out one by one, where they need none of it."""
    items = _items(store.value)
    if not items or store.array in {read.array for read in reads(store.value)}:
        yield store
        return
    open_ = [axis for axis, one in enumerate(store.region) if not isinstance(one, Point)]
    for place, value in items.items():
        region = list(store.region)
        for axis, at in zip(open_, place, strict=True):
            part = region[axis]
            region[axis] = Point(bounds_in(part)[0] + num(at * step_of(part)))
        yield replace(store, region=tuple(region), value=value, held=())
