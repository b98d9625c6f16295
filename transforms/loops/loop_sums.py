"""Sums, products, extremes and counts over loops, as reductions of array expressions."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial

from advisor.dtypes import Kind, dtype_of
from advisor.finding import Applicability
from advisor.ir.kernel import Kernel
from advisor.ir.nests import Nest
from advisor.ir.proposal import Legality, Proposal
from advisor.ir.shapes import kind_of_or_none
from advisor.ir.statements import ScalarBind, Statement, Store, is_total
from advisor.ir.values import (
    Elementwise,
    Expand,
    MatMul,
    Range,
    Read,
    Reduction,
    Scalar,
    Value,
    parts_of,
    reads,
)
from advisor.numpy_table import promote
from advisor.source import Edit
from costdb.records import dataclass
from transforms.kit.kernels import compiled, is_all_of, type_of, unless_apart
from transforms.kit.rewrite import replace_statement, span_of, stands_alone, statements_at
from transforms.kit.slices import Sliced, edited, shown_reads, slice_edits, sliced_nest
from transforms.loops.array_statements import are_plain, in_place_of_loops

METHODS = {
    "add": "sum",
    "subtract": "sum",
    "multiply": "prod",
    "maximum": "max",
    "minimum": "min",
}


_MODULAR = frozenset({"add", "subtract", "multiply", "negative"})

_COMMUTATIVE = frozenset({"add", "multiply", "maximum", "minimum"})


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


def sums(nest: Nest, outer: int, kernel: Kernel) -> Iterator[Proposal]:
    """Yield one statement in the place of all loops of a nest but so many outer ones."""
    found = _summed(nest, outer, kernel)
    if found is None:
        return
    argued = legality(found, nest, kernel)
    if argued is None:
        return
    what = "a product" if found.product is not None else f"a `{method(found)}`"
    yield in_place_of_loops(
        nest,
        outer,
        kernel,
        f"{what} of arrays",
        "each rank combines its own elements, the parts are combined once, and no interpreter"
        " runs for each element",
        (_statement(found, kernel),),
        argued,
        partial(sum_edits, found, nest, outer, kernel),
    )


def _summed(nest: Nest, outer: int, kernel: Kernel) -> Summed | None:
    if not are_plain(nest, outer) or len(nest.body) != 1:
        return None
    (store,) = nest.body
    combined = _combined(store)
    if combined is None:
        return None
    return _over_slices(sliced_nest(nest, outer, kernel), store, *combined)


def _combined(store: Store) -> tuple[str, Value] | None:
    """Return how a statement combines an element, or a number, with a term."""
    own, value = Read(store.array, store.region), store.value
    if not isinstance(value, Elementwise) or value.operation not in METHODS:
        return None
    if len(value.operands) != 2:
        return None
    one, two = value.operands
    if two == own and value.operation in _COMMUTATIVE:
        one, two = two, one
    if one != own or any(read.array == store.array for read in reads(two)):
        return None
    return value.operation, two


def _over_slices(sliced: Sliced, store: Store, operation: str, term: Value) -> Summed | None:
    kept = sliced.axes(store.region)
    region = () if is_total(store) else sliced.region(store.array, store.region)
    if kept is None or region is None or len(kept) == len(sliced.inner):
        return None
    if not is_total(store) and operation not in ("add", "subtract"):
        # of no terms there is no greatest one
        return None
    place = Read(store.array, region)
    if operation in ("add", "subtract"):
        product = _product(sliced, term, kept)
        if product is not None:
            value, order = product
            return Summed(store, operation, term, value, place, None, order)
    shown = _shown(term)
    if shown is term and any(
        isinstance(p, Elementwise) and p.operation == "where" for p in parts_of(term)
    ):
        return None
    for read in reads(shown):
        axes = sliced.axes(read.region)
        if axes is None or sorted(axes) != sorted(sliced.inner):
            continue
        if [axis for axis in axes if axis in kept] != kept:
            continue
        terms = sliced.value(shown, axes)
        if terms is None:
            return None
        along = tuple(place for place, axis in enumerate(axes) if axis not in kept)
        if is_count(term) and kept:
            return None
        return Summed(store, operation, term, terms, place, along if kept else None)
    return None


def _product(sliced: Sliced, term: Value, kept: list[str]) -> tuple[Value, tuple[int, int]] | None:
    """Return a sum of products as a product of matrices or vectors, and which is the left one."""
    match term:
        case Elementwise("multiply", (Read() as one, Read() as two)):
            pass
        case _:
            return None
    regions = [sliced.region(read.array, read.region) for read in (one, two)]
    axes = [sliced.axes(read.region) for read in (one, two)]
    gone = [axis for axis in sliced.inner if axis not in kept]
    if None in regions or None in axes or len(gone) != 1:
        return None
    dtype = type_of(term, sliced.kernel).dtype
    reads_of_both = [Read(r.array, at or ()) for r, at in zip((one, two), regions, strict=True)]
    for left, right in ((0, 1), (1, 0)):
        a, b = reads_of_both[left], reads_of_both[right]
        factors: tuple[Value, Value, int | None] | None = None
        match axes[left], axes[right], len(kept):
            case first, last, 0 if first == last == gone:
                factors = a, b, None
            case first, last, 1 if first == [*kept, *gone] and last == gone:
                factors = a, Expand(b, 0), 1
            case first, last, 1 if first == gone and last == [*gone, *kept]:
                factors = Expand(a, 1), b, 0
            case first, last, 2 if first == [kept[0], *gone] and last == [*gone, kept[1]]:
                return MatMul(a, b), (left, right)
        if factors is not None:
            products = Elementwise("multiply", factors[:2])
            return Reduction(products, factors[2], "add", dtype, fused=True), (left, right)
    return None


def _statement(found: Summed, kernel: Kernel) -> Statement:
    value = _reduction(found, kernel)
    store = found.store
    if not is_total(store):
        value = Elementwise(found.operation, (found.place, value))
        return Store(store.array, found.place.region, value, store.span, in_place=True)
    return ScalarBind(store.array, value, store.span)


def _reduction(found: Summed, kernel: Kernel) -> Value:
    if found.product is not None:
        return found.sliced
    dtype = type_of(found.sliced, kernel).dtype
    operation = "add" if found.operation == "subtract" else found.operation
    if operation in ("add", "multiply"):
        dtype = "int64" if is_count(found.term) else _summing(dtype)
    value = found.sliced
    if found.axes is None:
        return Reduction(value, None, operation, dtype)
    for axis in reversed(found.axes):
        value = Reduction(value, axis, operation, dtype)
    return value


def _summing(dtype: str) -> str:
    """Return the type in which NumPy sums: no integer narrower than the platform's."""
    kind = kind_of_or_none(dtype)
    if kind in (Kind.BOOLEAN, Kind.INTEGER):
        return "uint64" if kind is Kind.INTEGER and not dtype_of(dtype).signed else "int64"
    return dtype


# --- why results stay what they are


def method(found: Summed) -> str:
    """Return what NumPy calls the reduction."""
    return "count_nonzero" if is_count(found.term) else METHODS[found.operation]


def is_count(term: Value) -> bool:
    """Return whether a term is 1 where a condition holds, and 0 elsewhere."""
    match term:
        case Elementwise("where", (_, Scalar("1", _), Scalar("0", _))):
            return True
    return False


def _shown(term: Value) -> Value:
    """Return what the source shows of a term: of a count its condition."""
    return term.operands[0] if isinstance(term, Elementwise) and is_count(term) else term


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
    shared = unless_apart(nest.body, kernel)
    if shared is not None and not is_total(store):
        return shared
    return Legality(
        Applicability.SAFE,
        "the terms of whole numbers come in another order, which changes no bit, also where they"
        " wrap around at the width of their type",
    )


# --- the source


def sum_edits(found: Summed, nest: Nest, outer: int, kernel: Kernel) -> tuple[Edit, ...]:
    """Return the edits that put one statement in the place of the loops; none if it cannot be."""
    context, span = kernel.context, nest.loops[outer].span
    nodes = statements_at(context)
    node = nodes.get((found.store.span.start_line, found.store.span.start_column))
    if node is None or not is_all_of(nest, nodes) or not stands_alone(context, span):
        return ()
    text = _text(node, found, kernel)
    return () if text is None else (replace_statement(span, [text], context),)


def _text(node: ast.stmt, found: Summed, kernel: Kernel) -> str | None:
    """Return the statement that combines whole arrays."""
    term, store, product = _term(node, found), found.store, found.product
    if term is None or term.lineno != term.end_lineno:
        return None
    after = shown_reads(found.sliced)
    if product is not None:
        after = [(read, 0) for read in reads(found.sliced)]
    if product == (1, 0):
        after.reverse()
    edits = slice_edits((term,), list(reads(_shown(found.term))), after, kernel)
    if edits is None:
        return None

    def text(part: ast.expr) -> str:
        return edited(span_of(part, kernel.context.lines), edits, kernel)

    place = store.array
    if not is_total(store):
        target = node.target if isinstance(node, ast.AugAssign) else None
        if not isinstance(target, ast.Subscript):
            return None
        own = [Read(store.array, store.region)]
        at = slice_edits((target,), own, [(found.place, 0)], kernel)
        if at is None:
            return None
        place = edited(span_of(target, kernel.context.lines), at, kernel)
    if product is not None:
        if not isinstance(term, ast.BinOp):
            return None
        sides = text(term.left), text(term.right)
        value = f"{sides[product[0]]} @ {sides[product[1]]}"
    elif is_count(found.term):
        if kernel.context.array_module is None or "int" in kernel.context.not_builtins:
            return None
        value = f"{kernel.context.array_module}.count_nonzero({text(term)})"
        # NumPy's number where Python's was is not what every reader of it takes
        value = f"int({value})" if is_total(store) else value
    else:
        inner = text(term) if isinstance(term, ast.Subscript) else f"({text(term)})"
        given = ""
        if found.operation in ("maximum", "minimum"):
            given = f"initial={store.array}"
        elif found.axes is not None:
            given = f"axis={found.axes[0] if len(found.axes) == 1 else found.axes}"
        value = f"{inner}.{METHODS[found.operation]}({given})"
    sign = {"add": "+=", "subtract": "-=", "multiply": "*="}.get(found.operation, "=")
    return f"{place} {sign} {value}"


def _term(node: ast.stmt, found: Summed) -> ast.expr | None:
    """Return the expression of what each iteration adds."""
    name = found.store.array
    if isinstance(node, ast.If):
        if is_count(found.term):
            return node.test
        (inner,) = node.body
        return inner.value if isinstance(inner, ast.Assign) else None
    if isinstance(node, ast.AugAssign):
        return node.value
    if not isinstance(node, ast.Assign) or not is_total(found.store):
        return None

    def is_own(part: ast.expr) -> bool:
        return isinstance(part, ast.Name) and part.id == name

    parts = []
    if isinstance(node.value, ast.BinOp):
        parts = [node.value.left, node.value.right]
    elif isinstance(node.value, ast.Call) and len(node.value.args) == 2:
        parts = node.value.args
    others = [part for part in parts if not is_own(part)]
    return others[0] if len(parts) == 2 and len(others) == 1 else None
