"""What holds where paths of a program meet: of a name, of an entry, of all that is bound."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TypeVar

import libcst as cst

from advisor.frontend.directives import spoken_of
from advisor.frontend.spmd import values
from advisor.frontend.spmd.run import Run, State, whole
from advisor.frontend.spmd.values import (
    NOBODY,
    Array,
    Comm,
    External,
    NeighbourRank,
    Nothing,
    Number,
    Opaque,
    Range,
    Record,
    Request,
    Sequence,
    Slice,
    Text,
    Value,
)
from advisor.ir.spmd.memory import EITHER, OWN, Allocation, Buffer, Contiguity, Order, Origin, View
from advisor.ir.spmd.steps import CommKind, Communicator, Condition, ConditionKind
from advisor.numpy_table import Shape
from costdb.expr import Expr, equal, logical_not, num
from costdb.expr.functions import Equal
from costdb.expr.nodes import Num, Sym

# The condition on which paths part: on whom it depends.


def condition_of(test: cst.BaseExpression, lines: range, run: Run) -> Condition:
    """Return the condition of a branch."""
    found = run.evaluate(test, run)
    value = found.expr if isinstance(found, Number | Opaque) else None
    varies = isinstance(found, Number | Opaque) and found.varies
    kind = ConditionKind.UNIFORM
    if run.symbols.varies(value) or (varies and _names_ranks(test, run)):
        kind = ConditionKind.RANK
    elif varies:
        kind = ConditionKind.DATA
    elif not isinstance(found, Number):
        kind = ConditionKind.UNKNOWN
    single = None
    if isinstance(value, Equal):
        for one, other in ((value.left, value.right), (value.right, value.left)):
            if isinstance(one, Sym) and one.name.startswith("rank"):
                single = other
    probability = spoken_of(run.file.pragmas.probabilities, lines)
    if isinstance(found, Number) and found.dtype == "int" and value is not None:
        # ``if rank:``
        value = logical_not(equal(value, num(0)))
    elif not isinstance(found, Number) or found.dtype != "bool":
        value = None if value is None or not isinstance(value, Num) else num(int(value.value != 0))
    return Condition(kind, run.text(test), run.span(test), value, single, probability)


def _names_ranks(test: cst.BaseExpression, run: Run) -> bool:
    """Return whether a condition asks for a rank or a neighbour, not only for data."""
    waiting: list[cst.CSTNode] = [test]
    while waiting:
        node = waiting.pop()
        if isinstance(node, cst.Name | cst.Attribute):
            found = run.evaluate(node, run)
            known = found.expr if isinstance(found, Number | Opaque) else None
            if isinstance(found, NeighbourRank) or run.symbols.varies(known):
                return True
        else:
            waiting += node.children
    return False


# One thing of two.


def join(one: Value | None, other: Value | None, name: str, run: Run) -> Value:
    """Return what holds of a name that denotes one of two things."""
    if one is None or other is None:
        found = other if one is None else one
        # bound on one path only: whoever uses it took that path
        return found if found is not None else Opaque("not bound")
    if one == other:
        return one
    match one, other:
        case (Opaque(why=values.BROADCAST), value) | (value, Opaque(why=values.BROADCAST)):
            # the same name on both paths: the root has what the others are sent
            return value
        case (Opaque(why=values.RECEIVED), Number() as n) | (
            Number() as n,
            Opaque(why=values.RECEIVED),
        ):
            # one rank has what it sends to the others under the same name
            return Number(None, n.dtype, varies=True)
        case (Nothing(), Array(view)) | (Array(view), Nothing()):
            return Array(replace(view, or_none=True))
        case (Nothing(), value) | (value, Nothing()):
            return value
        case (External(path=NOBODY.path), Number() as n) | (
            Number() as n,
            External(path=NOBODY.path),
        ):
            return replace(n, nobody=True)
        case (Opaque(expr=Expr() as expr), Number() as right):
            return _joined_numbers(Number(expr), right, name, run)
        case (Number() as left, Opaque(expr=Expr() as expr)):
            return _joined_numbers(left, Number(expr), name, run)
        case (Record() as left, Record() as right) if left.cls == right.cls:
            return _joined_records(left, right, run)
        case (Number() as left, Number() as right):
            return _joined_numbers(left, right, name, run)
        case (Array(left_view), Array(right_view)):
            return _joined_arrays(left_view, right_view, name, run)
        case (Sequence() as left_seq, Sequence() as right_seq):
            return _joined_sequences(left_seq, right_seq, name, run)
        case (Text(), Text()):
            return Text(None)
        case (Request(), Request()):
            return one
        case (Comm(), Comm()):
            same = one.communicator.text == other.communicator.text
            return one if same else _mixed(one.communicator, other.communicator, name, run)
    return Opaque(f"`{name}` denotes different things on different paths", text=name)


def join_all(values: Iterable[Value | None], name: str, run: Run) -> Value | None:
    """Return what holds of each of some values; None where there is none."""
    found: Value | None = None
    for value in values:
        if value is not None:
            found = value if found is None else join(found, value, name, run)
    return found


def _mixed(one: Communicator, other: Communicator, name: str, run: Run) -> Value:
    """Return what is one communicator here and another there: of whose ranks, nobody knows."""
    if one.rank == other.rank:
        return Comm(run.communicator(CommKind.GIVEN, one.text, one.span))
    text = f"{name}.either"
    size = run.symbols.unknown(f"P.{text}", f"`{name}` is several communicators", run.statement)
    rank = run.symbols.unknown(f"rank.{text}", "the own rank", run.statement, varies=True)
    return Comm(Communicator(CommKind.GIVEN, text, size, rank, one.span))


def _joined_numbers(one: Number, other: Number, name: str, run: Run) -> Number:
    dtype = one.dtype if one.dtype == other.dtype else "float"
    varies = run.varies(one, other)
    expr = one.expr
    if one.expr != other.expr:
        default = _default(one, other, name, run)
        default = _default(other, one, name, run) if default is None else default
        if default is not None:
            return Number(default, dtype)
        why = f"`{name}` has several values"
        expr = run.symbols.unknown(name, why, run.statement, varies=varies)
    return Number(expr, dtype, one.nobody or other.nobody, varies)


def _default(one: Number, other: Number, name: str, run: Run) -> Expr | None:
    """Return a size that the command line may set and the source otherwise does."""
    if not isinstance(one.expr, Sym) or other.expr is None:
        return None
    fact = run.symbols.facts.get(one.expr.name)
    if fact is None or fact.value is not None or fact.origin != values.COMMAND_LINE:
        return None
    if isinstance(other.expr, Num):
        line = run.statement.start_line
        origin = f"used where the command line says nothing, line {line}"
        return run.symbols.known(name, int(other.expr.value), origin, run.statement)
    return other.expr


def _joined_arrays(one: View, other: View, name: str, run: Run) -> Value:
    if _place(one) == _place(other):
        return Array(one if one.or_none else other)
    left, right = one.shape, other.shape
    if left is None or right is None or len(left) != len(right):
        shape = None
    else:
        why = f"`{name}` has several shapes"
        shape = tuple(
            a if a == b else run.symbols.unknown(f"{name}.n{k}", why, run.statement)
            for k, (a, b) in enumerate(zip(left, right, strict=True))
        )
    return Array(_either(name, shape, (one, other), run))


def _place(view: View) -> tuple[object, ...]:
    return view.buffer, view.region, view.transposed, view.flat, view.shown


def _either(name: str, shape: Shape | None, views: tuple[View, ...], run: Run) -> View:
    """Return what is one of several views: of whose memory, no rule may rely on."""
    dtypes, orders = {view.dtype for view in views}, {view.order for view in views}
    number = -run.statement.start_line * 1000 - run.statement.start_column
    memories = frozenset(one for view in views for one in view.buffer.memories)
    new = all(view.buffer.allocation.origin in OWN for view in views)
    origin = Origin.EITHER_NEW if new else Origin.EITHER
    made = Allocation(origin, name, run.statement, either=memories - {(name, number)})
    flat = shape is not None and len(shape) <= 1
    order = Order.C if flat else orders.pop() if len(orders) == 1 else Order.UNKNOWN
    dtype = dtypes.pop() if len(dtypes) == 1 else None
    found = whole(Buffer(name, number, dtype, shape, order, made))
    found = replace(found, or_none=any(view.or_none for view in views))
    if order is Order.UNKNOWN or any(v.contiguity is not Contiguity.YES for v in views):
        return replace(found, region=None, flat=shape is not None, shown=shape)
    return found


def _joined_records(one: Record, other: Record, run: Run) -> Record:
    made = run.record(one.cls)
    for key, left in run.entries(one.number):
        right = run.entry(other.number, key)
        if right is not None:
            same = left if isinstance(left, Record) else join(left, right, str(key), run)
            run.keep(made.number, key, same)
    return made


def _joined_sequences(one: Sequence, other: Sequence, name: str, run: Run) -> Value:
    mine, others = one.items, other.items
    if mine is not None and others is not None and len(mine) == len(others):
        pairs = zip(mine, others, strict=True)
        joined = tuple(join(a, b, f"{name}[{k}]", run) for k, (a, b) in enumerate(pairs))
        return Sequence(joined, is_list=one.is_list)
    elements = [value for s in (one, other) for value in (s.items or (s.element,))]
    element = join_all(elements, f"{name}[...]", run)
    length = run.symbols.unknown(f"{name}.len", "the length of a list", run.statement)
    return Sequence(None, element, length, one.is_list)


# All that is bound.

Key = TypeVar("Key")


def meet(before: State, run: Run) -> None:
    """Keep what holds on both of two paths: what held, and what holds now."""
    for names, frame in zip(before[0], run.frames, strict=False):
        for name, value in _differing(names, frame.names, run):
            frame.names[name] = value
    kept = run.kept
    for record, entries in [pair for pair in before[1].items() if kept.get(pair[0]) is not pair[1]]:
        # what only one path made is as that path left it
        now = kept.setdefault(record, entries)
        if entries is not now:
            run.budget -= 1
            for key, value in _differing(entries, now, run):
                run.keep(record, key, value)


def _differing(
    before: Mapping[Key, Value], now: Mapping[Key, Value], run: Run
) -> list[tuple[Key, Value]]:
    """Return what holds of those that differ."""
    differing = [key for key, value in before.items() if now.get(key) is not value]
    differing += [key for key in now if key not in before]
    return [(key, join(before.get(key), now.get(key), str(key), run)) for key in differing]


def carry(head: State, missed: set[str], run: Run, *, last: bool) -> bool:
    """Let hold what holds at the head of a loop, now that its body has been followed once more.

    Parameters
    ----------
    head : State
        What was taken to hold there.
    missed : set of str
        Names that the body asked for before it bound them.
    run : Run
        What holds at the end of the body.
    last : bool
        What still changes becomes unknown.

    Returns
    -------
    bool
        Whether that is anything else.
    """
    changed = False
    ends, places = run.state(), list[tuple[dict[str, Value], dict[str, Value], set[str]]]()
    run.restore(head)
    for frame, names in zip(run.frames, ends[0], strict=False):
        places.append((frame.names, names, missed if frame is run.frame else set()))
    for held, names, asked in places:
        for name in (*held, *(asked & names.keys() - held.keys())):
            found = _carried(held.get(name), names.get(name), name, run, last=last)
            if found is not None:
                held[name], changed = found, True
    for record, entries in ends[1].items():
        known = run.kept.get(record)
        if known is None:
            run.kept[record] = entries
            continue
        for key, value in () if known is entries else entries.items():
            found = _carried(known.get(key), value, f".{key}", run, last=last)
            if found is not None:
                run.keep(record, key, found)
                changed = True
    return changed


def _carried(
    one: Value | None, other: Value | None, name: str, run: Run, *, last: bool
) -> Value | None:
    """Return what a loop carries from one iteration to the next; None for what it was."""
    if other is None or one is other or one == other:
        return None
    found = _aged(join(one, other, name, run), name, run)
    if found == one:
        return None
    return Opaque(f"`{name}` changes within a loop", text=name) if last else found


def _aged(value: Value, name: str, run: Run) -> Value:
    """Return what an earlier iteration made, which is another thing than what this one makes."""
    match value:
        case Array(view) if view.buffer.allocation.origin not in EITHER:
            return Array(_either(name, view.shape, (view,), run))
        case Sequence(items=items, element=element):
            aged = items and tuple(_aged(v, f"{name}[{k}]", run) for k, v in enumerate(items))
            one = None if element is None else _aged(element, f"{name}[...]", run)
            return replace(value, items=aged, element=one)
    return value


# Entries of dictionaries: by their keys where these are known, else what holds of any of them.

MOST_ENTRIES = 16
"""Keys of a comprehension that are looked at one by one."""


def key_of(value: Value, run: Run) -> object:
    """Return the key that a value is; None where it is not known."""
    match value:
        case Text(str() as text):
            return text
        case Number():
            return run.integer(value)
    return None


def entry(record: Record, index: Value, run: Run) -> Value | None:
    """Return the entry of a dictionary under a key; None where there is none.

    Under a key that is not known it is what holds of all entries.
    """
    key = key_of(index, run)
    exact = run.entry(record.number, key)
    if exact is not None:
        return exact
    if key is not None:
        return run.entry(record.number, None)
    return join_all((value for _, value in run.entries(record.number)), "entry", run)


def keys(record: Record, run: Run) -> Sequence:
    """Return the keys of a dictionary, as going over it gives them."""
    found = run.entries(record.number)
    if any(key is None for key, _ in found):
        return Sequence(None, Opaque("a key of a dictionary"), None)
    return Sequence(tuple(as_value(key) for key, _ in found))


def as_value(key: object) -> Value:
    """Return a key as a value."""
    match key:
        case str():
            return Text(key)
        case int():
            return Number(num(key))
    return Opaque("a key of a dictionary")


def items_of(value: Value, run: Run) -> tuple[Value, ...] | None:
    """Return what a loop over a value goes through, where that is known one by one."""
    match value:
        case Record(cls=None):
            return keys(value, run).items
        case Range(low=Num() as low, high=Num() as high, step=Num() as step) if step.value:
            # sizes that a user may change do not decide how many entries there are
            numbers = range(int(low.value), int(high.value), int(step.value))
            if len(numbers) <= MOST_ENTRIES:
                return tuple(Number(num(number)) for number in numbers)
        case Sequence(items=items):
            return items
    return None


def replaced(owner: Sequence, index: Value, value: Value, run: Run) -> Sequence:
    """Return a list with another value at a place: at any, where the place is not known."""
    position, items = run.integer(index), owner.items
    if items is not None and position is not None and -len(items) <= position < len(items):
        changed = list(items)
        changed[position] = value
        return Sequence(tuple(changed), is_list=owner.is_list)
    given: tuple[Value | None, ...] = (value,)
    length = owner.length if items is None else num(len(items))
    if isinstance(index, Slice):
        given = (Opaque("what it is given is not a list"),)
        if isinstance(value, Sequence):
            given = value.items or (value.element,)
        length = None if isinstance(index.step, Nothing) else length
    element = join_all((*given, *(items or (owner.element,))), "element", run)
    return Sequence(None, element, length, owner.is_list)
