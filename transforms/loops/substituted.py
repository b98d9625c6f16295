"""What one iteration of a loop binds for itself, put where it is used.

``e = np.exp(s[i] - s[i].max()); s[i] = e / e.sum()`` is one statement on rows: then nothing but
stores is left in the loop, and its index may become an axis. Names come back where a value is used
more than once. What is stored on a condition is chosen by it: ``if t > 0: s[i] = t`` stores
``np.where(t > 0, t, s[i])``.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from operator import is_

from advisor.ir.kernel import Kernel, symbols
from advisor.ir.nests import index_symbol, nest_of
from advisor.ir.shapes import ShapeConflict, is_whole, whole
from advisor.ir.statements import (
    CONDITION,
    Bind,
    Choice,
    Loop,
    ScalarBind,
    Scatter,
    Statement,
    Store,
    mentioned,
    values_of,
    walk,
    written,
)
from advisor.ir.values import (
    Called,
    Copy,
    Elementwise,
    Expand,
    Fill,
    MatMul,
    Part,
    Point,
    Range,
    Read,
    Reduction,
    Scalar,
    Subscript,
    Transpose,
    Value,
    bounds_in,
    parts_of,
    reads,
    step_of,
)
from advisor.numpy_table import PYTHON_INTEGER
from costdb.expr import ONE, ZERO, Expr, num, sym
from costdb.expr.nodes import Num
from transforms.kit.kernels import around, mapped, replaced, type_of
from transforms.kit.rewrite import fresh_name
from transforms.loops.formulas import of_text
from transforms.loops.lift import Raised
from transforms.loops.masked import NotRaised, negated
from transforms.loops.raising import WORD, raised
from transforms.loops.searched import is_search, searched

# --- opened ---------------------------------------------------------------------------------------
# Windows that move with a loop, opened: a loop over the places in the window takes their place.
#
# ``y[i] = (x[i:i + K] * w).sum()`` is a sum over ``K`` statements ``y[i] += x[i + p] * w[p]``,
# whose subscripts are single ones, so that the index becomes an axis like any other.


_WRITTEN_OUT = 4
"""Places in a window that are operands of one statement, and no loop."""


def opened(
    loop: Loop, outer: tuple[Loop, ...], kernel: Kernel
) -> tuple[tuple[Raised, ...], Kernel]:
    """Return statements for a nest that reduces windows, and the kernel with their indices.

    Raises
    ------
    NotRaised, ShapeConflict
        There are none.
    """
    nest = nest_of(loop)
    if nest is None or len(nest.body) != 1:
        raise NotRaised
    (store,) = nest.body
    if store.array in {read.array for read in reads(store.value)}:
        raise NotRaised
    operation, within, axes = _reduced(store.value, kernel)
    extents = type_of(within, kernel).extents
    moving = [axis for axis in sorted(axes) if _moves(within, axis, kernel, nest.variables)]
    if not moving:
        raise NotRaised
    rest = tuple(axis for axis in axes if axis not in moving)
    lengths = [extents[axis] for axis in moving]
    places = _written_out(lengths)
    if places:
        terms = [
            _term(within, dict(zip(moving, at, strict=True)), rest, store, kernel) for at in places
        ]
        value = terms[0]
        for term in terms[1:]:
            value = Elementwise(operation, (value, term))
        (inner,) = around(nest.loops, (replace(store, value=value),))
        assert isinstance(inner, Loop)
        return raised(inner, outer, kernel), kernel
    if operation != "add" or not all(isinstance(one, Point | Range) for one in store.region):
        raise NotRaised
    indices, kernel = with_indices("pqrstuvw", lengths, kernel)
    at = {axis: sym(one.variable) for axis, one in zip(moving, indices, strict=True)}
    term = _term(within, at, rest, store, kernel)
    own = Read(store.array, store.region)
    added = replace(store, value=Elementwise("add", (own, term)), in_place=True, held=())
    first = replace(store, value=Scalar("0", "integer literal"), in_place=False, held=())
    made: list[Raised] = []
    for one, more in ((first, ()), (added, indices)):
        (inner,) = around(nest.loops, (one,))
        assert isinstance(inner, Loop)
        statements = raised(inner, (*outer, *more), kernel)
        made += around(more, statements)  # type: ignore[arg-type]  # loops around what is raised
    return tuple(made), kernel


def _reduced(value: Value, kernel: Kernel) -> tuple[str, Value, tuple[int, ...]]:
    """Return by what operation, of what, and along which axes of it a value is a reduction."""
    axes: tuple[int, ...] = ()
    operation = ""
    while isinstance(value, Reduction) and value.operation in ("add", "maximum", "minimum"):
        if operation not in ("", value.operation):
            break
        operation = value.operation
        if value.axis is None:
            rank = len(type_of(value.operand, kernel).extents)
            return operation, value.operand, tuple(range(rank))
        own = value.axis
        axes = (own, *(axis + (axis >= own) for axis in axes))
        value = value.operand
    if not axes:
        raise NotRaised
    return operation, value, axes


def _moves(value: Value, axis: int, kernel: Kernel, indices: Sequence[str]) -> bool:
    """Return whether a part of a value is a window along an axis."""
    found = [
        read
        for read, own in _along(value, axis, kernel)
        if own is not None
        and any(set(indices) & symbols(bound) for bound in bounds_in(_part(read, own)))
    ]
    return bool(found)


def _along(value: Value, axis: int, kernel: Kernel) -> list[tuple[Read, int | None]]:
    """Return what is read along an axis, and which axis of it that is."""
    match value:
        case Read():
            return [(value, axis)]
        case Expand(operand, at):
            return [] if at == axis else _along(operand, axis - (axis > at), kernel)
        case Copy(operand):
            return _along(operand, axis, kernel)
        case Transpose(operand, axes):
            return _along(operand, axes[axis], kernel)
        case Elementwise(_, parts):
            ranks = [len(type_of(one, kernel).extents) for one in parts]
            return [
                found
                for one, own in zip(parts, ranks, strict=True)
                if axis - max(ranks) + own >= 0
                for found in _along(one, axis - max(ranks) + own, kernel)
            ]
        case Reduction(operand, along) if along is not None:
            return _along(operand, axis + (axis >= along), kernel)
        case Scalar():
            return []
    raise NotRaised


def _part(read: Read, axis: int) -> Subscript:
    kept = [part for part in read.region if not isinstance(part, Point)]
    return kept[axis]


def at_place(value: Value, axis: int, at: Expr, kernel: Kernel) -> Value:
    """Return a value at one place along an axis, which it then does not have.

    Raises
    ------
    NotRaised
        It has no form there.
    """
    match value:
        case Read(_, region) | Part(_, region):
            kept = [n for n, part in enumerate(region) if not isinstance(part, Point)]
            part = region[kept[axis]]
            assert not isinstance(part, Point)
            first = bounds_in(part)[0]
            chosen = Point(first + at * step_of(part))
            return replace(value, region=(*region[: kept[axis]], chosen, *region[kept[axis] + 1 :]))
        case Expand(operand, own):
            if own == axis:
                return operand
            return Expand(at_place(operand, axis - (axis > own), at, kernel), own - (own > axis))
        case Copy(operand, dtype):
            return Copy(at_place(operand, axis, at, kernel), dtype)
        case Scalar():
            return value
        case Called(_, _, extents):
            region = whole(extents)
            return Part(value, (*region[:axis], Point(at), *region[axis + 1 :]))
        case Reduction(operand, along) if along is not None:
            moved = axis + (axis >= along)
            inner = at_place(operand, moved, at, kernel)
            return replace(value, operand=inner, axis=along - (along > moved))
        case Elementwise(_, parts):
            shapes = [type_of(one, kernel).extents for one in parts]
            rank = max(map(len, shapes))
            made = []
            for one, shape in zip(parts, shapes, strict=True):
                own = axis - rank + len(shape)
                stretched = own >= 0 and shape[own] == ONE and not isinstance(one, Expand)
                if stretched and type_of(value, kernel).extents[axis] != ONE:
                    raise NotRaised
                made.append(one if own < 0 else at_place(one, own, at, kernel))
            return replace(value, operands=tuple(made))
    raise NotRaised


def _written_out(lengths: Sequence[Expr]) -> list[tuple[Expr, ...]]:
    """Return the places in a small window of a known size, in order; else none."""
    places: list[tuple[Expr, ...]] = [()]
    for one in lengths:
        if not isinstance(one, Num) or not 0 < one.value * len(places) <= _WRITTEN_OUT:
            return []
        places = [(*place, num(n)) for place in places for n in range(int(one.value))]
    return places


def _term(
    within: Value, at: Mapping[int, Expr], rest: tuple[int, ...], store: Store, kernel: Kernel
) -> Value:
    """Return what is reduced, at one place of the window, reduced along all other axes."""
    whole = store.value
    assert isinstance(whole, Reduction)
    for axis in sorted(at, reverse=True):
        within = at_place(within, axis, at[axis], kernel)
        rest = tuple(one - (one > axis) for one in rest)
    for axis in sorted(rest, reverse=True):
        within = _product(Reduction(within, axis, whole.operation, whole.dtype), kernel)
    return within


def _product(value: Reduction, kernel: Kernel) -> Value:
    """Return a sum of products as a product of matrices, where it is one."""
    match value:
        case Reduction(Elementwise("multiply", (Expand(one, 2), Expand(other, 0))), 1, "add"):
            ranks = [len(type_of(part, kernel).extents) for part in (one, other)]
            if ranks == [2, 2] and value.dtype.startswith(("float", "complex")):
                return MatMul(one, other)
    return value


def with_indices(
    wanted: Sequence[str], lengths: Sequence[Expr], kernel: Kernel
) -> tuple[tuple[Loop, ...], Kernel]:
    """Return loops of nothing yet, with names like those wanted, and the kernel with these."""
    context = kernel.context
    taken = {*context.identifiers, *kernel.arrays, *kernel.locals}
    texts = dict(context.scalar_texts)
    numbers = count(1 + len(texts))
    loops: list[Loop] = []
    for one, extent in zip(wanted, lengths, strict=False):
        name = fresh_name(one, taken)
        taken.add(name)
        variable = index_symbol(name, next(numbers))
        texts[variable] = name
        loops.append(Loop(variable, ZERO, extent, 1, (), kernel.span))
    return tuple(loops), replace(kernel, context=replace(context, scalar_texts=texts))


# --- substituted ----------------------------------------------------------------------------------


def substituted(
    loop: Loop, outer: tuple[Loop, ...], kernel: Kernel
) -> tuple[Loop, Kernel, tuple[str, ...]]:
    """Return a loop of stores alone, the kernel without the names that it bound, and conditions.

    A loop that binds nothing, or whose names something else needs, stays as it is.
    """
    found, within, conditions = _found(loop, outer, kernel)
    if found is not loop:
        within = replace(within, body=replaced(kernel.body, {id(loop): (found,)}))
    plain, known = _bound_where_used(found, within)
    if any(isinstance(one, ScalarBind) for one in plain.body) and conditions:
        # what is found is used in a way that is not followed
        return loop, kernel, ()
    return plain, replace(known, body=kernel.body), conditions


def _found(
    loop: Loop, outer: tuple[Loop, ...], kernel: Kernel
) -> tuple[Loop, Kernel, tuple[str, ...]]:
    """Return a loop with those within it in this form, and numbers in the place of searches."""
    body: list[Statement] = []
    conditions: list[str] = []
    known = kernel
    for one in loop.body:
        if not isinstance(one, Loop):
            body.append(one)
            continue
        inner, own, more = substituted(one, (*outer, loop), kernel)
        known = _without(known, kernel.locals.keys() - own.locals.keys())
        conditions += more
        if not is_search(inner):
            body.append(inner)
            continue
        try:
            found = searched(inner, (*outer, loop), own)
        except (NotRaised, ShapeConflict):
            return loop, kernel, ()
        body += [ScalarBind(s.array, s.value, s.span) for s in (found.place, found.best)]
        conditions.append(found.condition)
    if all(map(is_, body, loop.body)) and len(body) == len(loop.body):
        return loop, kernel, ()
    return replace(loop, body=tuple(body)), known, tuple(conditions)


def _bound_where_used(loop: Loop, kernel: Kernel) -> tuple[Loop, Kernel]:
    bound = {one.name for one in _of_iteration(loop.body) if isinstance(one, Bind | ScalarBind)}
    bound -= kernel.arrays.keys() | kernel.aliases
    chooses = any(isinstance(one, Choice) for one in loop.body)
    if not (bound or chooses) or (bound - {CONDITION}) & used_elsewhere(loop, kernel):
        return loop, kernel
    try:
        body = _Iteration(kernel, bound).block(loop.body)
    except NotRaised:
        return loop, kernel
    return replace(loop, body=body), _without(kernel, bound)


def _without(kernel: Kernel, names: Collection[str]) -> Kernel:
    """Return a kernel without some of the arrays and lists that it makes."""
    kept = {name: found for name, found in kernel.locals.items() if name not in names}
    lists = {name: filled for name, filled in kernel.lists.items() if name not in names}
    return replace(kernel, locals=kept, lists=lists)


def _of_iteration(body: tuple[Statement, ...]) -> Iterator[Statement]:
    """Yield statements, and those of branches."""
    for one in body:
        yield one
        if isinstance(one, Choice):
            yield from _of_iteration((*one.then, *one.orelse))


def used_elsewhere(loop: Loop, kernel: Kernel) -> frozenset[str]:
    """Return the names that anything but a loop of a kernel needs."""
    others = replaced(kernel.body, {id(loop): ()})
    # what stands for numbers of the iteration says what it is computed from
    names = (kernel.observed - kernel.implied).union(*map(mentioned, others))
    texts = (
        part.text
        for one in walk(others)
        for value in values_of(one)
        for part in parts_of(value)
        if isinstance(part, Scalar)
    )
    return names.union(*map(WORD.findall, texts))


def _place(one: Store) -> Read:
    return Read(one.array, one.region)


def _under(test: Value, one: Statement) -> Statement:
    """Return a statement that changes something only where a condition holds."""
    if isinstance(one, Loop):
        return replace(one, body=tuple(_under(test, inner) for inner in one.body))
    if isinstance(one, Scatter) and one.operation == "add":
        # nothing is added where it does not hold
        nothing = Scalar("0", PYTHON_INTEGER)
        made = [Elementwise("where", (test, v, nothing)) for v in (*one.all_places, one.value)]
        return replace(one, places=made[0], others=tuple(made[1:-1]), value=made[-1])
    if not isinstance(one, Store):
        # at places that are not chosen nothing may be looked for
        raise NotRaised
    chosen = Elementwise("where", (test, one.value, _place(one)))
    return replace(one, value=chosen, in_place=False)


@dataclass(slots=True)
class _Iteration:
    """What names hold at one point of an iteration."""

    kernel: Kernel
    bound: set[str]
    held: dict[str, Value] = field(default_factory=dict)

    def block(self, body: tuple[Statement, ...]) -> tuple[Statement, ...]:
        made: list[Statement] = []
        for one in body:
            match one:
                case Bind(name, value) | ScalarBind(name, value, combined=False) if (
                    name in self.bound
                ):
                    self.held[name] = self.value(value)
                case Store(array) if array in self.bound:
                    self.changed(one)
                case Store(array):
                    value = self.value(one.value)
                    # a number of its own, and not what a row is made of
                    named = {n: self.value(v) for n, v in one.held} | self.held
                    held = tuple((n, v) for n, v in named.items() if v in parts_of(value))
                    self.forget(array)
                    made.append(replace(one, value=value, held=held))
                case Scatter(array) if array not in self.bound:
                    first, *others = map(self.value, one.all_places)
                    value = self.value(one.value)
                    names = {n: self.value(v) for n, v in one.held} | self.held
                    names.pop(CONDITION, None)
                    self.forget(array)
                    found = replace(one, places=first, others=tuple(others), value=value)
                    made.append(replace(found, held=tuple(names.items())))
                case Choice(condition=condition) if condition is not None:
                    made += self.choice(one, self.value(condition))
                case Loop() if not written(one) & self.bound:
                    for array in written(one):
                        self.forget(array)
                    made.append(replace(one, body=self.block(one.body)))
                case _:
                    raise NotRaised
        return tuple(made)

    def choice(self, choice: Choice, test: Value) -> Iterator[Statement]:
        """Yield what two branches do, where a condition chooses it."""
        before, made = self.held, []
        for body in (choice.then, choice.orelse):
            self.held = dict(before)
            made.append((self.block(body), self.held))
        (then, first), (orelse, second) = made
        looked_at = {read.array for read in reads(test)}
        several = [*then, *orelse]
        again = len(several) > 1 or any(isinstance(one, Loop) for one in several)
        if again and looked_at & frozenset().union(*map(written, several)):
            # it is asked once, before anything changes
            raise NotRaised
        self.held = {n: v for n, v in first.items() if second.get(n) == v}
        match then, orelse:
            case (Store() as one,), (Store() as other,) if _place(one) == _place(other):
                ways = (one.value, other.value)
                value = Elementwise("where", (test, *ways))
                yield replace(one, value=value, in_place=False, held=one.held + other.held)
                return
        yield from (_under(test, store) for store in then)
        yield from (_under(negated(test), store) for store in orelse)

    def changed(self, store: Store) -> None:
        """Note what an array of the iteration holds after a statement in place."""
        known = type_of(Read(store.array, store.region), self.kernel)
        value = self.value(store.value)
        whole = is_whole(store.region, self.kernel.extents(store.array))
        if not whole or type_of(value, self.kernel) != known:
            raise NotRaised
        match value:
            case Elementwise("add", (Fill("0"), Reduction(operation="add") as alone)):
                # a sum begins with nothing by itself
                value = alone if type_of(alone, self.kernel) == known else value
        self.held[store.array] = value

    def forget(self, array: str) -> None:
        """Drop what was computed from an array that changes."""
        for name, value in list(self.held.items()):
            if any(read.array == array for read in reads(value)):
                del self.held[name]

    def value(self, value: Value) -> Value:
        """Return a value without the names of the iteration."""

        def other(part: object) -> object:
            if isinstance(part, Read) and part.array in self.bound:
                return self.part(part)
            if isinstance(part, Scalar) and self.bound & set(WORD.findall(part.text)):
                node = ast.parse(part.text, mode="eval").body
                return of_text(node, lambda one: self.number(one, part))
            return part

        return mapped(value, other)

    def part(self, read: Read) -> Value:
        """Return a part of an array of the iteration, which is all of it but for single places."""
        value = self.held.get(read.array)
        if value is None:
            raise NotRaised
        extents = self.kernel.extents(read.array)
        for axis in reversed(range(len(read.region))):
            part = read.region[axis]
            if isinstance(part, Point):
                value = at_place(value, axis, part.at, self.kernel)
            elif not is_whole((part,), (extents[axis],)):
                raise NotRaised
        return value

    def number(self, node: ast.expr, like: Scalar) -> Value:
        """Return what a part of the text of a number says with values in the place of names."""
        match node:
            case ast.Name(name) if name in self.bound:
                if name not in self.held:
                    raise NotRaised
                return self.held[name]
            case ast.Constant() | ast.Name() | ast.Attribute():
                return replace(like, text=ast.unparse(node), span=None)
        raise NotRaised
