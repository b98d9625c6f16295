"""Array statements as a person would leave them: nothing is stored twice, or computed twice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import product

from advisor.ir.concrete import with_part
from advisor.ir.kernel import Kernel
from advisor.ir.masks import masked
from advisor.ir.shapes import is_whole, whole
from advisor.ir.statements import (
    Bind,
    Loop,
    Scatter,
    Statement,
    Store,
    is_total,
    values_of,
    written,
)
from advisor.ir.values import (
    Along,
    Called,
    Copy,
    Elementwise,
    MatMul,
    Point,
    Read,
    Reduction,
    Roll,
    Scalar,
    Scan,
    Value,
    parts_of,
    reads,
)
from costdb.expr import Expr
from transforms.kit.kernels import type_of
from transforms.kit.rewrite import fresh_name
from transforms.loops.axes import told
from transforms.loops.listed import tidied_list
from transforms.loops.masked import NotRaised, under_masks
from transforms.loops.opened import at_place

_COMPUTED = Along | Called | Copy | Elementwise | MatMul | Reduction | Roll | Scan
_ZEROS = ("0", "0.0", "0.")


def tidied(statements: Sequence[Statement], kernel: Kernel) -> tuple[tuple[Statement, ...], Kernel]:
    """Return statements that store once and compute once, and the kernel with what they bind."""
    made: list[Statement] = []
    for store in statements:
        if isinstance(store, Loop):
            inner, kernel = tidied(store.body, kernel)
            made.append(replace(store, body=inner))
            continue
        if isinstance(store, Scatter):
            made.append(replace(store, by_element=False))
            continue
        assert isinstance(store, Store)
        last = made[-1] if made else None
        joined = _joined(last, store, kernel) if isinstance(last, Store) else None
        if joined is not None:
            made.pop()
        if store.array in kernel.lists:
            filled, kernel = tidied_list(store, kernel)
            made += filled
            continue
        stores, kernel = under_masks(_masked(joined or store, kernel), kernel, made)
        made += stores
    names = [named for one in made if isinstance(one, Store | Scatter) for named in one.held]
    elements = _elements(made, {value for _, value in names}, kernel)
    while (found := _repeated(made, elements, kernel)) is not None:
        value, first = found
        wanted = next((name for name, known in names if known == value), None)
        taken = {*kernel.arrays, *kernel.locals}
        if wanted is None:
            taken |= kernel.context.identifiers
        type_ = type_of(value, kernel)
        others = "mask" if type_.dtype == "bool" else "both"
        name = fresh_name(wanted or ("groups" if isinstance(value, Called) else others), taken)
        kernel = kernel.with_locals({name: type_})
        read = Read(name, whole(type_.extents))
        bind = Bind(name, value, made[first].span)
        places: dict[Value, Value] = {value: read}
        for part, (own, axis, at) in elements.items():
            if own == value:
                places[part] = at_place(read, axis, at, kernel)
        for part, named in places.items():
            made[first:] = [_with(one, part, named) for one in made[first:]]
        made.insert(first, bind)
    return tuple(made), kernel


def _elements(
    made: Sequence[Statement], named: Iterable[Value], kernel: Kernel
) -> dict[Value, tuple[Value, int, Expr]]:
    """Return what is an element along an axis of a value that has a name, and of which one."""
    computed = {part for one in made for part, _ in _computed(one) if isinstance(part, _COMPUTED)}
    points = {part.at for value in computed for read in reads(value) for part in read.region
              if isinstance(part, Point)}  # fmt: skip
    found: dict[Value, tuple[Value, int, Expr]] = {}
    for value in named:
        for axis, at in product(range(len(type_of(value, kernel).extents)), points):
            with suppress(NotRaised):
                part = at_place(value, axis, at, kernel)
                found |= {part: (value, axis, at)} if part in computed else {}
    return found


def _with(one: Statement, value: Value, read: Value) -> Statement:
    if isinstance(one, Store | Bind):
        return replace(one, value=with_part(one.value, value, read))
    return with_part(one, value, read) if isinstance(one, Scatter) else one


def _masked(store: Store, kernel: Kernel) -> Store:
    """Return a store that only changes what a mask chooses as one that does so in place."""
    match store.value:
        case Elementwise("where", (condition, Scalar(), known)) if known == Read(
            store.array, store.region
        ) and is_whole(store.region, kernel.extents(store.array)):
            # a mask of fewer axes chooses rows
            same = type_of(condition, kernel).extents == kernel.extents(store.array)
            return replace(store, in_place=True) if same else store
    return store


def _joined(first: Store, then: Store, kernel: Kernel) -> Store | None:
    """Return one statement for two that store to the same elements; None where it is another."""
    own = Read(first.array, first.region)
    uses = sum(read.array == own.array for read in reads(then.value))
    if is_total(first) or own != Read(then.array, then.region) or uses != 1:
        return None
    if any(read.array == own.array for read in reads(first.value)) or own not in reads(then.value):
        return None
    match first.value, then.value:
        case Scalar(text), Elementwise("add", (one, Reduction() | MatMul() as added)) if (
            one == own and text in _ZEROS
        ):
            return replace(then, value=added, in_place=False)
    same = type_of(first.value, kernel).dtype == kernel.dtype(first.array)
    whole_value = len(type_of(first.value, kernel).extents) == len(type_of(own, kernel).extents)
    if not same or not whole_value:
        return None
    value = with_part(then.value, own, first.value)
    return replace(then, value=value, in_place=False, held=first.held + then.held)


def _computed(one: Statement) -> Iterator[tuple[Value, bool]]:
    """Yield what a statement computes, and whether it does for all elements: not under a mask."""
    under = masked(one) if isinstance(one, Store) else None
    for number, value in enumerate(values_of(one) if under is None else under):
        for part in told(value):
            yield part, under is None or number == 0


def _is_short(value: Value) -> bool:
    """Return whether a value is written as soon as a name for it."""
    match value:
        case Elementwise("invert" | "negative", (Read(),)):
            return True
    return False


def _repeated(
    made: Sequence[Statement], elements: Mapping[Value, tuple[Value, int, Expr]], kernel: Kernel
) -> tuple[Value, int] | None:
    """Return the largest array that is computed more than once, and which statement needs it."""
    uses: dict[Value, list[int]] = {}
    for number, one in enumerate(made):
        for part, of_all in _computed(one):
            # what only masks choose may fail elsewhere
            part = elements[part][0] if part in elements else part
            if isinstance(part, _COMPUTED) and not _is_short(part) and (of_all or part in uses):
                uses.setdefault(part, []).append(number)
    sizes = {value: sum(1 for _ in parts_of(value)) for value in uses}
    for value in sorted(uses, key=lambda one: -sizes[one]):
        places = uses[value]
        between = map(written, made[places[0] : places[-1]])
        changed = frozenset().union(*between) & {read.array for read in reads(value)}
        if len(places) > 1 and not changed and type_of(value, kernel).extents:
            return value, places[0]
    return None
