"""Whether array statements leave what loops left: to the bit, to rounding, or not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import reduce
from itertools import product

from advisor.finding import Applicability
from advisor.ir.kernel import Kernel, Legality, with_part
from advisor.ir.nests import masked
from advisor.ir.shapes import is_whole, kind_of_or_none, whole
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
    Gather,
    MatMul,
    Point,
    Read,
    Reduction,
    Roll,
    Scalar,
    Scan,
    Tally,
    Value,
    operands,
    parts_of,
    reads,
)
from advisor.numpy_table import (
    OF_MATH,
    PYTHON_COMPLEX,
    PYTHON_FLOAT,
    PYTHON_INTEGER,
    ROWS,
    Kind,
    promote,
    strong,
)
from costdb.expr import Expr
from transforms.kit.kernels import overlaps, safe, type_of, unless_apart, unsafe
from transforms.kit.rewrite import fresh_name
from transforms.loops.axes import told
from transforms.loops.lift import rounds_together
from transforms.loops.masked import NotRaised, doubt, overflows, tidied_list, under_masks
from transforms.loops.raising import combined, is_of_python
from transforms.loops.substituted import at_place

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
_RESULTS = {"subtract": "difference", "multiply": "product", "divide": "quotient", "power": "power"}
_ROUNDING_OF_MATH = set(OF_MATH.values()) - _EXACT_FLOATING
_EXACT_TOGETHER = frozenset({"bool", "int64", "float64"})
_LITERALS = frozenset({PYTHON_INTEGER, PYTHON_FLOAT, PYTHON_COMPLEX})
_ROUNDED = (
    "{} may be rounded otherwise for arrays than for single numbers, so results agree to rounding"
)

_OF_DOMAIN = frozenset({"sqrt", "log", "log2", "log10", "log1p", "arcsin", "arccos", "arctanh"})
_NO_ERROR = "where `{}` of a number raises, NumPy's gives NaN or an infinity"

WHOLE = "if all that is made a whole number is finite and fits int64, like what is computed of it"
_NO_NAN = "where no element is NaN, which an array's extreme passes on and a comparison passes over"

_OF_SUMS = "sums are rounded in another order"
_WHOLE_NUMBERS = frozenset({Kind.INTEGER, Kind.BOOLEAN})
_EXACT_REDUCTIONS = frozenset(
    {"maximum", "minimum", "argmax", "argmin", "logical_or", "logical_and", "count_nonzero"}
)
_WIDEST = {Kind.INTEGER: "int64", Kind.FLOATING: "float64"}


def legality_of(before: Sequence[Store], after: Sequence[Store], kernel: Kernel) -> Legality | None:
    """Return why results stay what they are; None where they may not."""
    found: list[Legality] = []
    for one, other in zip(before, after, strict=True):
        parts = combined(one)
        added = parts is not None and reductions_in(other) > reductions_in(one)
        argued = _of_sums(one, kernel) if added else of_statement(one, kernel)
        if argued is None:
            return None
        if added and parts and is_total(one) and is_of_python(parts[1]) is None:
            words = f"{argued.argument}, and the result may be a number of NumPy"
            argued = unsafe(f"{words} where it was one of Python")
        started = kind_of_or_none(kernel.dtype(one.array)), one.array in kernel.lists
        if added and parts and parts[0] == "add" and started == (Kind.FLOATING, True):
            argued = unsafe(f"{argued.argument}, and of no terms the sum is 0.0 in the place of 0")
        found.append(argued)
        # an index was a number of Python's, of which `math` made another
        new = _operations_in(other) - _operations_in(one)
        found += [unsafe(_ROUNDED.format(f"`{name}`")) for name in sorted(new & _ROUNDING_OF_MATH)]
        for part in parts_of(one.value):
            match part:
                case Elementwise(name, (Copy(of_python=True), *_)) if name in _OF_DOMAIN:
                    found.append(unsafe(_NO_ERROR.format(name)))
    doubts = [one.argument for one in found if one.applicability is not Applicability.SAFE]
    named = [one for one in before if not is_total(one)]
    if any(made_whole(part, kernel) for one in before for part in parts_of(one.value)):
        doubts.append(f"results are equal {WHOLE}")
    if not doubts:
        return unless_apart(named, kernel) or found[0]
    if shared := overlaps(named, kernel):
        doubts.append(f"if {shared}")
    return unsafe(", and ".join(dict.fromkeys(doubts)))


def _operations_in(store: Store) -> set[str]:
    return {part.operation for part, _ in _computed(store.value)}


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


def of_other_order(store: Store) -> str:
    """Return what changes where reductions go through their terms otherwise; empty: nothing."""
    if _rounds(store.value):
        return _OF_SUMS
    extremes = (
        part.dtype
        for part in parts_of(store.value)
        if isinstance(part, Reduction) and part.operation in ("maximum", "minimum")
    )
    kinds = set(map(kind_of_or_none, extremes))
    return "" if kinds <= _WHOLE_NUMBERS else "results are equal, but for the signs of zeros"


def _rounds(value: Value) -> bool:
    """Return whether the order of some terms matters to what they come to."""
    match value:
        case Along("median", operand):
            # at most two are added up
            return _rounds(operand)
        case Reduction(operand, _, operation, dtype):
            exact = operation in _EXACT_REDUCTIONS or kind_of_or_none(dtype) in _WHOLE_NUMBERS
            return not exact or _rounds(operand)
    if isinstance(value, MatMul | Tally) or rounds_together(value):
        return True
    return any(map(_rounds, operands(value)))


def of_statement(store: Store, kernel: Kernel) -> Legality | None:
    """Return whether a statement over arrays gives the same bits; None where types change."""
    target, value = kernel.dtype(store.array), type_of(store.value, kernel).dtype
    kind = kind_of_or_none(target)
    arithmetic = kind not in (None, Kind.BOOLEAN) and promote(target, value) == target
    alone = all(isinstance(part, Point) for part in store.region)
    if alone and not arithmetic and target != value:
        return None
    reduced = of_other_order(store) if kind is not Kind.INTEGER else ""
    rounded = [reduced, *(inexact(store, kernel) if reduced != _OF_SUMS else ())]
    doubtful = dict.fromkeys([*rounded, doubt(store, kernel)])
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
        yield f"results are equal {_NO_NAN}, and no zero has a sign"
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
    if (dtype, total) == ("bool", "bool") and operation not in ("add", "subtract"):
        doubtful = dict.fromkeys(inexact(store, kernel))
        return unsafe(", and ".join(doubtful)) if doubtful else safe("the same truths are combined")
    match term:
        case Elementwise("where", (_, Scalar("1", _), Scalar("0", _))):
            if dtype == "float64":
                return unsafe("ones are added at once, which changes no bit of a whole number")
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
        return unsafe(f"results are equal {_NO_NAN}")
    if total != dtype:
        # in half precision most sums overflow or lose their terms
        told = (
            f"the terms are added up in {total}, not in {dtype}, and in another order, so results"
        )
        argument = f"{told} agree only to the rounding of {total}"
        return None if total == "float16" else unsafe(argument)
    told = (
        "the terms come in another order: floating-point sums are not associative, so results"
        " agree only to rounding"
    )
    parts = (part for part, _ in _computed(term) if not part.called)
    extremes = (part for part in parts if part.operation in ("minimum", "maximum"))
    return unsafe(f"{told}, and {_NO_NAN}" if any(extremes) else told)


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


# --- temporaries ----------------------------------------------------------------------------------
# Array statements as a person would leave them: nothing is stored twice, or computed twice.


_COMPUTED = Along | Called | Copy | Elementwise | MatMul | Reduction | Roll | Scan
_ZEROS = ("0", "0.0", "0.")
_LONG = 8
"""Operations that fit a line."""


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
        if store.array in kernel.lists and store.region:
            filled, kernel = tidied_list(store, kernel)
            made += filled
            continue
        stores, kernel = under_masks(_masked(joined or store, kernel), kernel, made)
        made += stores
    names = [named for one in made if isinstance(one, Store | Scatter) for named in one.held]
    elements = _elements(made, {value for _, value in names}, kernel)
    while (found := _held(made, names) or _repeated(made, elements, kernel)) is not None:
        value, first = found
        wanted = next((name for name, known in names if known == value), None)
        taken = {*kernel.arrays, *kernel.locals}
        if wanted is None:
            taken |= kernel.context.identifiers
        type_ = type_of(value, kernel)
        name = fresh_name(wanted or _wanted(value, type_.dtype), taken)
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


def _wanted(value: Value, dtype: str) -> str:
    """Return what a person might call a value that several statements need."""
    if dtype == "bool":
        return "mask"
    named = ""
    match value:
        case Called():
            return "groups"
        case Elementwise("multiply", (Scalar(text=one), Read(array=other))):
            named = f"{one}_{other}"
        case Elementwise(operation, (Read(array=of),)):
            named = f"{operation}_{of}"
    named = named.replace(".", "_")
    plain = _RESULTS.get(value.operation, "both") if isinstance(value, Elementwise) else "both"
    # items of lists and dictionaries have names that are none of the source's
    return named if named.isidentifier() else plain


def _held(
    made: Sequence[Statement], names: Sequence[tuple[str, Value]]
) -> tuple[Value, int] | None:
    """Return a part of a long statement that has a name in the source, and where it stands."""
    for number, one in enumerate(made):
        if isinstance(one, Store | Bind):
            parts = [*parts_of(one.value)]
            if sum(isinstance(part, _COMPUTED) for part in parts) > _LONG:
                held = [v for _, v in names if v in parts[1:] and isinstance(v, _COMPUTED)]
                for value in held:
                    # what is computed of it comes first, and then it
                    if not any(value in [*parts_of(v)][1:] for v in held):
                        return value, number
    return None


def _elements(
    made: Sequence[Statement], named: Iterable[Value], kernel: Kernel
) -> dict[Value, tuple[Value, int, Expr]]:
    """Return what is an element along an axis of a value that has a name, and of which one."""
    computed = {part for one in made for part, _ in _reused(one) if isinstance(part, _COMPUTED)}
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


def _reused(one: Statement) -> Iterator[tuple[Value, bool]]:
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
        for part, of_all in _reused(one):
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
