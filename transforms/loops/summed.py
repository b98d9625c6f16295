"""What combines all that some loops go through, and why its results stay what they are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from advisor.dtypes import Kind
from advisor.finding import Applicability
from advisor.ir.kernel import Kernel
from advisor.ir.nests import Nest
from advisor.ir.proposal import Legality
from advisor.ir.shapes import kind_of_or_none
from advisor.ir.statements import Store, is_total
from advisor.ir.values import Elementwise, Range, Read, Scalar, Value, operands, reads
from advisor.numpy_table import promote
from transforms.loops.element_loops import compiled, unless_apart

METHODS = {
    "add": "sum",
    "subtract": "sum",
    "multiply": "prod",
    "maximum": "max",
    "minimum": "min",
}
_MODULAR = frozenset({"add", "subtract", "multiply", "negative"})


@dataclass(frozen=True, slots=True)
class Summed:
    """A statement that combines all that some loops go through, at once.

    Attributes
    ----------
    store : Store
        The statement on one element.
    operation : str
    term : Value
        What each iteration adds.
    sliced : Value
        The terms of all iterations, as an array.
    region : tuple of Subscript
        Where they end up; empty for a number.
    axes : tuple of int or None
        Along which the terms are combined; None: all.
    product : tuple of int or None
        Where it is a product of two operands: their places among those of the term.
    """

    store: Store
    operation: str
    term: Value
    sliced: Value
    place: Read
    axes: tuple[int, ...] | None
    product: tuple[int, int] | None = None


def method(found: Summed) -> str:
    """Return what NumPy calls the reduction."""
    return "count_nonzero" if is_count(found.term) else METHODS[found.operation]


def is_count(term: Value) -> bool:
    """Return whether a term is 1 where a condition holds, and 0 elsewhere."""
    match term:
        case Elementwise("where", (_, Scalar("1", _), Scalar("0", _))):
            return True
    return False


def parts_of(value: Value) -> Iterator[Value]:
    """Yield a value and all that it is made of."""
    yield value
    for part in operands(value):
        yield from parts_of(part)


def legality(found: Summed, nest: Nest, kernel: Kernel) -> Legality | None:
    """Return why results stay what they are; None where they may not."""
    store = found.store
    dtype = kernel.dtype(store.array)
    named = {kernel.dtype(read.array) for read in reads(found.term)}
    left_alone = compiled(kernel)
    if left_alone is not None:
        return left_alone
    if is_count(found.term):
        if dtype != "int64":
            return None
        return Legality(Applicability.SAFE, "it counts what it counted before, as a Python number")
    kinds = {kind_of_or_none(name) for name in (*named, dtype)}
    if kinds == {Kind.INTEGER}:
        return _of_whole_numbers(found, nest, kernel, named)
    if not kinds <= {Kind.FLOATING, Kind.COMPLEX}:
        return None
    if any(promote(dtype, name) != dtype for name in named):
        return None
    if found.operation in ("maximum", "minimum"):
        if named != {dtype} or dtype != "float64":
            return None
        return Legality(
            Applicability.UNSAFE,
            "results are equal where no element is NaN, which an array's extreme passes on and a"
            " comparison passes over",
        )
    return Legality(
        Applicability.UNSAFE,
        "the terms come in another order: floating-point sums are not associative, so results"
        " agree only to rounding",
    )


def _of_whole_numbers(
    found: Summed, nest: Nest, kernel: Kernel, named: set[str]
) -> Legality | None:
    store = found.store
    dtype = kernel.dtype(store.array)
    if named != {dtype}:
        # products of narrower numbers would wrap around before they are added
        return None
    used = {part.operation for part in parts_of(found.term) if isinstance(part, Elementwise)}
    if not used <= _MODULAR:
        return None
    literals = any(isinstance(part, Scalar) for part in parts_of(found.term))
    wide = dtype in ("int64", "uint64")
    alone = not any(isinstance(part, Range) for part in found.place.region)
    if not wide and alone and found.product is None:
        # a wider sum is refused by a single element where it does not fit
        return None
    if not wide and (is_total(store) or literals):
        # before NumPy 2 a Python number widened another number, though not an array
        return None
    if literals and dtype == "uint64":
        return None
    shared = unless_apart(nest, kernel)
    if shared is not None and not is_total(store):
        return shared
    return Legality(
        Applicability.SAFE,
        "the terms of whole numbers come in another order, which changes no bit, also where they"
        " wrap around at the width of their type",
    )
