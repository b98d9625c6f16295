"""Entries of dictionaries: by their keys where these are known, else what holds of any of them."""

from __future__ import annotations

from advisor.frontend.spmd.joining import join
from advisor.frontend.spmd.run import Run
from advisor.frontend.spmd.values import External, Number, Opaque, Record, Sequence, Text, Value
from costdb.expr import num

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
    found: Value | None = None
    for _, value in contents(record, run):
        found = value if found is None else join(found, value, "entry", run)
    return found


def contents(record: Record, run: Run) -> list[tuple[object, Value]]:
    """Return keys and values of a dictionary, in the order in which they were set."""
    return run.entries(record.number)


def keys(record: Record, run: Run) -> Sequence:
    """Return the keys of a dictionary, as going over it gives them."""
    found = contents(record, run)
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
        case Sequence(
            items=(External(path="range"), Number() as low, Number() as high, Number() as step)
        ):
            bounds = [run.integer(bound) for bound in (low, high, step)]
            if None in bounds or bounds[2] == 0:
                return None
            # numbers that a user may change do not decide how many entries there are
            if not all(run.is_literal(bound) for bound in (low, high, step)):
                return None
            numbers = range(*[bound for bound in bounds if bound is not None])
            if len(numbers) > MOST_ENTRIES:
                return None
            return tuple(Number(num(number)) for number in numbers)
        case Sequence(items=tuple() as items) if not any(isinstance(i, External) for i in items):
            return items
    return None
