"""Whether array statements leave what loops left: to the bit, to rounding, or not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce

from advisor.dtypes import Kind
from advisor.finding import Applicability
from advisor.ir.kernel import Kernel
from advisor.ir.proposal import Legality
from advisor.ir.shapes import kind_of_or_none
from advisor.ir.statements import Store, is_total
from advisor.ir.values import (
    Copy,
    Elementwise,
    Gather,
    MatMul,
    Point,
    Read,
    Reduction,
    Scalar,
    Tally,
    Value,
    operands,
    parts_of,
)
from advisor.numpy_table import PYTHON_COMPLEX, PYTHON_FLOAT, PYTHON_INTEGER, ROWS, promote, strong
from transforms.kit.kernels import overlaps, safe, type_of, unless_apart, unsafe
from transforms.loops.lift import rounds_together
from transforms.loops.listed import doubt
from transforms.loops.masked import overflows
from transforms.loops.raising import combined, is_of_python

_CHOICES = frozenset({"where", *(name for name, row in ROWS.items() if row.result == "truth")})
_EXACT_FLOATING = _CHOICES | {
    *("add", "subtract", "multiply", "divide", "negative", "absolute", "sqrt", "square"),
    *("floor", "ceil", "trunc", "rint", "fabs", "minimum", "maximum"),
}
MODULAR = _CHOICES | {
    *("add", "subtract", "multiply", "negative", "bitwise_and", "bitwise_or", "bitwise_xor"),
    "invert",
}
_EXACT_WHOLE = MODULAR | {
    *("minimum", "maximum", "square", "absolute", "divide", "floor_divide", "remainder"),
}
_EXACT_TOGETHER = frozenset({"bool", "int64", "float64"})
_LITERALS = frozenset({PYTHON_INTEGER, PYTHON_FLOAT, PYTHON_COMPLEX})
_ROUNDED = (
    "{} may be rounded otherwise for arrays than for single numbers, so results agree to rounding"
)

WHOLE = "if all that is made a whole number is finite and fits int64, like what is computed of it"

_WIDEST = {Kind.INTEGER: "int64", Kind.FLOATING: "float64"}


def legality_of(before: Sequence[Store], after: Sequence[Store], kernel: Kernel) -> Legality | None:
    """Return why results stay what they are; None where they may not."""
    found: list[Legality] = []
    for one, other in zip(before, after, strict=True):
        added = combined(one) is not None and reductions_in(other) > reductions_in(one)
        argued = _of_sums(one, kernel) if added else of_statement(one, kernel)
        if argued is None:
            return None
        if added and is_total(one) and is_of_python((combined(one) or ("", one.value))[1]) is None:
            words = f"{argued.argument}, and the result may be a number of NumPy"
            argued = unsafe(f"{words} where it was one of Python")
        found.append(argued)
    doubts = [one.argument for one in found if one.applicability is not Applicability.SAFE]
    named = [one for one in before if not is_total(one)]
    if any(made_whole(part, kernel) for one in before for part in parts_of(one.value)):
        doubts.append(f"results are equal {WHOLE}")
    if not doubts:
        return unless_apart(named, kernel) or found[0]
    if shared := overlaps(named, kernel):
        doubts.append(f"if {shared}")
    return unsafe(", and ".join(dict.fromkeys(doubts)))


def made_whole(value: Value, kernel: Kernel) -> bool:
    """Return whether a number is made a whole one: NaN is in NumPy alone, and Python's grow."""
    match value:
        case Copy(operand, dtype) if kind_of_or_none(dtype) is Kind.INTEGER:
            return kind_of_or_none(type_of(operand, kernel).dtype) is Kind.FLOATING
        case Elementwise(operation, parts) if operation in MODULAR:
            kinds = {kind_of_or_none(strong(type_of(one, kernel).dtype)) for one in parts}
            return kinds == {Kind.INTEGER} and any(isinstance(one, Copy) for one in parts)
    return False


def reductions_in(store: Store) -> int:
    """Return how many sums, products and extremes a statement computes."""
    return sum(
        isinstance(part, Reduction | MatMul | Tally) or rounds_together(part)
        for part in parts_of(store.value)
    )


def of_statement(store: Store, kernel: Kernel) -> Legality | None:
    """Return whether a statement over arrays gives the same bits; None where types change."""
    target, value = kernel.dtype(store.array), type_of(store.value, kernel).dtype
    kind = kind_of_or_none(target)
    arithmetic = kind not in (None, Kind.BOOLEAN) and promote(target, value) == target
    alone = all(isinstance(part, Point) for part in store.region)
    if alone and not arithmetic and target != value:
        return None
    if reductions_in(store) and kind is not Kind.INTEGER:
        return unsafe("sums are rounded in another order")
    doubtful = dict.fromkeys([*inexact(store, kernel), doubt(store, kernel)])
    if any(doubtful):
        return unsafe(", and ".join(filter(None, doubtful)))
    return safe(
        "no iteration reads what an earlier one wrote, and each element is computed by the same"
        " operations, so every result is equal bit for bit"
    )


def inexact(store: Store, kernel: Kernel) -> Iterator[str]:
    """Yield how results may come out otherwise for arrays than for single numbers."""
    target, extremes = kernel.dtype(store.array), False
    for part, compared in _computed(store.value):
        ways = part.operands[part.operation == "where" :]
        found = {type_of(one, kernel).dtype for one in ways} - _LITERALS
        if len(found) > 1 and not found <= _EXACT_TOGETHER:
            yield _ROUNDED.format("arithmetic on mixed types")
        if part.operation in _CHOICES or not found:
            continue
        dtype = reduce(promote, sorted(found))
        kind = kind_of_or_none(dtype)
        numbers = any(isinstance(one, Scalar) for one in ways)
        # before NumPy 2 a Python number widened another number, though not an array
        widens = numbers and dtype != _WIDEST.get(kind or Kind.BOOLEAN)
        exact: frozenset[str] = frozenset()
        if kind is Kind.FLOATING:
            extremes |= part.operation in ("minimum", "maximum")
            exact = frozenset() if widens else _EXACT_FLOATING
        elif kind is Kind.INTEGER and widens:
            exact = MODULAR if dtype == target and not compared else frozenset()
        elif kind in (Kind.INTEGER, Kind.BOOLEAN):
            exact = _EXACT_WHOLE
        if part.operation not in exact:
            yield _ROUNDED.format(f"`{part.operation}` on {dtype}")
    if extremes:
        yield (
            "results are equal where no element is NaN, which an array's extreme passes on and a"
            " comparison passes over, and no zero has a sign"
        )
    operation = overflows(store.value, kernel)
    if operation:
        yield (
            f"results are equal, and `{operation}` is computed also where it is not chosen, which"
            " may overflow there"
        )


def _computed(value: Value, *, compared: bool = False) -> Iterator[tuple[Elementwise, bool]]:
    """Yield the operations in a value, each with whether it is for a comparison or a place."""
    if isinstance(value, Elementwise):
        yield value, compared
        compared |= value.operation in _CHOICES and value.operation != "where"
    for number, part in enumerate(operands(value)):
        condition = isinstance(value, Elementwise) and value.operation == "where" and number == 0
        place = isinstance(value, Gather) and number > 0
        yield from _computed(part, compared=compared or condition or place)


def _of_sums(store: Store, kernel: Kernel) -> Legality | None:
    """Return whether a sum over iterations comes to the same; None where it may not."""
    found = combined(store)
    assert found is not None
    operation, term = found
    dtype, total = kernel.dtype(store.array), strong(type_of(term, kernel).dtype)
    match term:
        case Elementwise("where", (_, Scalar("1", _), Scalar("0", _))):
            if dtype != "int64":
                return None
            return safe("it counts what it counted before, as a Python number")
    named = {kernel.dtype(read.array) for read in _summed(term)}
    kinds = {kind_of_or_none(name) for name in (*named, dtype, total)}
    if kinds == {Kind.INTEGER}:
        return _of_whole_numbers(store, operation, term, named, kernel)
    if not kinds <= {*_WIDEST, Kind.COMPLEX} or promote(dtype, total) != dtype:
        return None
    product = isinstance(term, Elementwise) and term.operation == "multiply"
    if kind_of_or_none(total) is Kind.INTEGER and (product or total in ("int64", "uint64")):
        # a product of whole numbers keeps their type, and wraps around where the number does not
        return None
    if Kind.INTEGER in kinds and any(isinstance(part, Copy) for part in parts_of(term)):
        # what Python converts is a number of Python's, and so is their sum
        return None
    if operation in ("maximum", "minimum"):
        if named != {dtype} or dtype != "float64":
            return None
        return unsafe(
            "results are equal where no element is NaN, which an array's extreme passes on and a"
            " comparison passes over"
        )
    if total != dtype:
        # in half precision most sums overflow or lose their terms
        told = (
            f"the terms are added up in {total}, not in {dtype}, and in another order, so results"
        )
        argument = f"{told} agree only to the rounding of {total}"
        return None if total == "float16" else unsafe(argument)
    return unsafe(
        "the terms come in another order: floating-point sums are not associative, so results"
        " agree only to rounding"
    )


def _summed(value: Value) -> Iterator[Read]:
    """Yield what is computed with, and not only compared."""
    if isinstance(value, Read):
        yield value
    elif not (isinstance(value, Elementwise) and ROWS[value.operation].result == "truth"):
        for part in operands(value):
            yield from _summed(part)


def _of_whole_numbers(
    store: Store, operation: str, term: Value, named: set[str], kernel: Kernel
) -> Legality | None:
    dtype = kernel.dtype(store.array)
    if named != {dtype}:
        # products of narrower numbers would wrap around before they are added
        return None
    used = {part.operation for part in parts_of(term) if isinstance(part, Elementwise)}
    if not used <= MODULAR:
        return None
    literals = any(isinstance(part, Scalar) for part in parts_of(term))
    wide = dtype in ("int64", "uint64")
    alone = all(isinstance(part, Point) for part in store.region)
    extreme = operation in ("maximum", "minimum") and not (literals or is_total(store))
    if not wide and not extreme and (alone or is_total(store) or literals):
        # a wider sum is refused by a single element where it does not fit; and before NumPy 2 a
        # Python number widened another number, though not an array
        return None
    if literals and dtype == "uint64":
        return None
    if is_total(store) and is_of_python(term):
        return unsafe(
            f"results are equal if the sum fits {dtype}: whole numbers of Python grow instead"
        )
    if is_total(store) and not kernel.runs_through:
        return unsafe("results are equal, and what no iteration adds to becomes a number of NumPy")
    return safe(
        "the terms of whole numbers come in another order, which changes no bit, also where they"
        " wrap around at the width of their type"
    )
