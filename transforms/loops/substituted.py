"""What one iteration of a loop binds for itself, put where it is used.

``e = np.exp(s[i] - s[i].max()); s[i] = e / e.sum()`` is one statement on rows: then nothing but
stores is left in the loop, and its index may become an axis. Names come back where a value is used
more than once. What is stored on a condition is chosen by it: ``if t > 0: s[i] = t`` stores
``np.where(t > 0, t, s[i])``.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from operator import is_

from advisor.ir.kernel import Kernel
from advisor.ir.shapes import ShapeConflict, is_whole
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
    Elementwise,
    Point,
    Read,
    Scalar,
    Value,
    parts_of,
    reads,
)
from advisor.numpy_table import PYTHON_INTEGER
from transforms.kit.kernels import mapped, replaced, type_of
from transforms.loops.formulas import of_text
from transforms.loops.masked import NotRaised, negated
from transforms.loops.opened import at_place
from transforms.loops.raising import WORD
from transforms.loops.searched import is_search, searched


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
    if not (bound or chooses) or (bound - {CONDITION}) & _used_elsewhere(loop, kernel):
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


def _used_elsewhere(loop: Loop, kernel: Kernel) -> frozenset[str]:
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
