"""# ADV505 array-algebra

**What it does.** Finds expressions over arrays for which there is a cheaper one. A table has
products with an inverse, with a diagonal matrix, or in an order that makes a matrix where a vector
would do; products of which a row, a column or the diagonal is used; of integers, which BLAS does
not multiply; sums of outer products, and in them; sums of products that an array of their own
holds, and along rows; `einsum` of several arrays by one loop nest; squared distances of all pairs
by their differences; sorting for a few elements; equations with one matrix that a loop solves again
and again; vectors of `eig` or `svd` that nobody uses, and `eig` of what is seen to be symmetric;
Python's `sum`, `min`, `max` and `sorted` of arrays; whole and half powers up to 16.

**Why it costs.** `inv(A) @ b` takes three times the arithmetic of `solve(A, b)`, `P @ Q @ v` that
of a product of matrices where two of a matrix and a vector do, and `alpha * A @ x` writes and reads
a matrix for one product. `np.sum(x * y)` makes an array that `np.dot` does not need. A sort puts
all elements in order where one is wanted. Python's functions make an object of every element.

**Example**

```python
y = np.linalg.inv(A) @ b
```

**Use instead**

```python
y = np.linalg.solve(A, b)
```

**When it stays quiet.** Where the prediction gains nothing, as for matrices of a few rows; inverses
where nothing tells how many columns they meet; element types that would change; names whose
inverse, or sorted elements, serve for anything else; operands that would be computed twice; orders
of products that take longer where some matrix is wide; what a compiler takes.

**Fix safety.** Unsafe: each pattern states on what condition results agree, most of them to
rounding.

**Models used.** Arrays (calls, elements, cache lines), where the profile has their rates; linear
algebra as so many products of matrices.

**References.** Golub and Van Loan, Matrix Computations, on the order of products and on inverses;
NumPy's documentation of `partition`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial, reduce
from itertools import permutations
from typing import Any

from advisor.ir.kernel import Kernel, Proposal, with_part
from advisor.ir.shapes import ShapeConflict, kind_of_or_none
from advisor.ir.shapes import whole as region_of
from advisor.ir.statements import (
    Bind,
    Loop,
    ScalarBind,
    Scatter,
    Statement,
    Store,
    mentioned,
    values_of,
    walk,
    within,
    written,
)
from advisor.ir.values import (
    Called,
    Copy,
    Elementwise,
    Expand,
    Flip,
    MatMul,
    Part,
    Point,
    Range,
    Read,
    Reduction,
    Scalar,
    Sort,
    Subscript,
    Transpose,
    Value,
    bounds_in,
    parts_of,
    reads,
)
from advisor.numpy_table import POWERS, PYTHON_FLOAT, PYTHON_INTEGER, ROWS, Kind
from advisor.source import Edit, names_in
from costdb.expr import ZERO, Expr, free_symbols, num, python_text
from costdb.expr.functions import trips
from costdb.expr.nodes import Mod
from costdb.records import only
from transforms.kit import kernels, rewrite
from transforms.loops.distances import CONDITION, by_product, squared_or_multiplied

Factors = tuple[Value, ...]
Made = tuple[tuple[Statement, ...], Kernel, Callable[[], tuple[Edit, ...]]]
"""Statements in the place of one, the kernel that has their names, and what writes them."""


def _edits_of(*given: Any) -> tuple[Edit, ...]:
    """Return what `words.edits_of` does; who only reads a file loads none of its writers."""
    from transforms.loops import words

    return words.edits_of(*given)


# The table: each pattern stands with the function that yields what comes to the same.


@dataclass(frozen=True, slots=True)
class Pattern:
    """Values that come to the same as others.

    Attributes
    ----------
    others : callable
        Yields them.
    title, reason : str
    condition : str
        On what results agree.
    of_any_rank : bool
        Whether they do for any number of dimensions.
    """

    others: Callable[[Value, Kernel], Iterator[Value]]
    title: str
    reason: str
    condition: str
    of_any_rank: bool = False


PATTERNS: list[Pattern] = []


def _pattern(
    title: str, reason: str, condition: str, *, of_any_rank: bool = False
) -> Callable[[Callable[[Value, Kernel], Iterator[Value]]], Pattern]:
    """Return what enters a function into the table, and gives its place there."""

    def entered(others: Callable[[Value, Kernel], Iterator[Value]]) -> Pattern:
        PATTERNS.append(Pattern(others, title, reason, condition, of_any_rank))
        return PATTERNS[-1]

    return entered


_ROUNDING = "sums come in another order, so results agree to rounding"
_TERMS = "terms are rounded in another place, so results agree to rounding where nothing overflows"
_SORTED = "the elements that are wanted need no order among all others"


# Products: matrices, and vectors at either end.


def product(left: Value, right: Value, kernel: Kernel) -> Value:
    """Return the product of two of them."""
    sides: tuple[Value, Value]
    axis: int | None
    match len(kernels.type_of(left, kernel).extents), len(kernels.type_of(right, kernel).extents):
        case 2, 1:
            sides, axis = (left, Expand(right, 0)), 1
        case 1, 2:
            sides, axis = (Expand(left, 1), right), 0
        case 1, 1:
            sides, axis = (left, right), None
        case _:
            return MatMul(left, right)
    terms = Elementwise("multiply", sides)
    return Reduction(terms, axis, "add", kernels.type_of(terms, kernel).dtype, fused=True)


def _chain(value: Value) -> Factors:
    found = kernels.factors(value)
    return tuple(one for side in found for one in _chain(side)) if found else (value,)


@_pattern(
    "solve the equations, without the inverse",
    "an inverse takes three times the arithmetic of solving, and is used once",
    "no inverse is rounded, so results agree to the rounding of a well-conditioned matrix",
)
def _solved(value: Value, kernel: Kernel) -> Iterator[Value]:
    if kernel.assumed and len(kernels.type_of(value, kernel).extents) == 2:
        # for more columns than rows it takes up to twice as long, and nothing tells how many
        return
    match kernels.factors(value):
        case (Called("linalg.inv", (matrix,)), right):
            found = kernels.type_of(value, kernel)
            yield Called("linalg.solve", (matrix, right), found.extents, found.dtype)
        case (left, Called("linalg.inv", (matrix,))):
            turned, found = _turned(left, kernel), kernels.type_of(value, kernel)
            shape = tuple(reversed(found.extents))
            yield _turned(
                Called("linalg.solve", (_turned(matrix, kernel), turned), shape, found.dtype),
                kernel,
            )


@_pattern(
    "multiply the product in another order",
    "products cost by their order, which changes no result but for rounding",
    _ROUNDING,
)
def _ordered(value: Value, kernel: Kernel) -> Iterator[Value]:
    """Yield a chain of products from the end that has a vector; of matrices, from either one."""
    chain = _chain(value)
    ranks = [_rank(one, kernel) for one in chain]
    if len(chain) < 3 or {*ranks[1:-1]} != {2} or ranks[0] == ranks[-1] == 1:
        return
    if ranks[0] == 2:
        yield reduce(lambda done, one: product(one, done, kernel), chain[-2::-1], chain[-1])
    if ranks[-1] == 2:
        yield reduce(lambda done, one: product(done, one, kernel), chain[1:], chain[0])


@_pattern(
    "multiply as floating-point numbers",
    "NumPy multiplies matrices of integers by loops of its own, without BLAS",
    "results are equal as long as no sum of products is beyond its type, or 2**53",
)
def _as_floats(value: Value, kernel: Kernel) -> Iterator[Value]:
    guessed = kernel.assumed and any(one.array in kernel.shown for one in reads(value))
    if guessed or not isinstance(value, MatMul):
        # a subscript may be truth values, too
        return
    dtype = kernels.type_of(value, kernel).dtype
    if dtype in ("int32", "int64"):
        sides: Iterator[Value] = (Copy(one, "float64") for one in _chain(value))
        yield Copy(reduce(MatMul, sides), dtype)


def _turned(value: Value, kernel: Kernel) -> Value:
    if isinstance(value, Transpose):
        return value.operand
    return Transpose(value, (1, 0)) if len(kernels.type_of(value, kernel).extents) == 2 else value


@_pattern(
    "multiply by the diagonal, not by a matrix of it",
    "all but the diagonal are products with zeros",
    "results are equal where every element is finite: zeros make NaN of others",
)
def _broadcast(value: Value, kernel: Kernel) -> Iterator[Value]:
    match kernels.factors(value):
        case (Called("diag", (diagonal,)), right) if _rank(diagonal, kernel) == 1:
            vector = _rank(right, kernel) == 1
            yield Elementwise("multiply", (diagonal if vector else Expand(diagonal, 1), right))
        case (left, Called("diag", (diagonal,))) if _rank(diagonal, kernel) == 1:
            vector = _rank(left, kernel) == 1
            yield Elementwise("multiply", (left, diagonal if vector else Expand(diagonal, 0)))


@_pattern(
    "multiply the product by the number, not the matrix",
    "a scaled matrix is an array of its own, made and read again for one product",
    "each term is rounded in another place, so results agree to rounding where nothing overflows",
)
def _scaled(value: Value, kernel: Kernel) -> Iterator[Value]:
    """Yield a product that is scaled in the place of its matrix."""
    found = kernels.factors(value)
    for number, side in enumerate(found):
        match side:
            case Elementwise("multiply" | "divide" as operation, (one, other)):
                first = _rank(one, kernel) == 2
                matrix, scale = (one, other) if first else (other, one)
                kinds = kind_of_or_none(kernels.type_of(matrix, kernel).dtype)
                if (
                    (_rank(matrix, kernel), _rank(scale, kernel)) != (2, 0)
                    or (operation == "divide" and not first)
                    or kinds not in (Kind.FLOATING, Kind.COMPLEX)
                    or kernels.type_of(side, kernel).dtype != kernels.type_of(matrix, kernel).dtype
                    or {_rank(part, kernel) for part in found} == {2}
                ):
                    continue
                sides = (matrix, found[1]) if number == 0 else (found[0], matrix)
                inner = product(*sides, kernel)
                yield Elementwise(operation, (inner, scale) if first else (scale, inner))


def _terms(value: Value, sign: str = "add") -> Iterator[tuple[str, Value]]:
    """Yield the terms of a sum, and whether each is added or subtracted."""
    match value:
        case Elementwise("add" | "subtract" as operation, (one, other)):
            yield from _terms(one, sign)
            yield from _terms(other, "add" if operation == sign else "subtract")
        case _:
            yield sign, value


def _outer(value: Value, kernel: Kernel) -> Factors:
    """Return the vectors of which a value is the outer product, scaled or not; else none."""
    match value:
        case Elementwise("multiply" | "divide" as operation, sides):
            for column, row in (sides, sides[::-1])[: 1 + (operation == "multiply")]:
                found = _outer(column, kernel) if not _rank(row, kernel) else ()
                if found:
                    return Elementwise(operation, (found[0], row)), found[1]
                row = row.operand if isinstance(row, Expand) and row.axis == 0 else row
                match column:
                    case Expand(vector, 1) if operation == "multiply":
                        if _rank(vector, kernel) == _rank(row, kernel) == 1:
                            return vector, row
    return ()


@_pattern(
    "multiply by one product of matrices, for all outer products",
    "every outer product is an array of its own, made and read again for the sum",
    _TERMS,
)
def _of_rank(value: Value, kernel: Kernel) -> Iterator[Value]:
    """Yield a sum of outer products as one product of two matrices, with a column for each."""
    found = [(sign, one, _outer(one, kernel)) for sign, one in _terms(value)]
    pairs = [(sign, vectors[0], vectors[1]) for sign, _, vectors in found if vectors]
    types = {kernels.type_of(one, kernel).dtype for _, _, vectors in found for one in vectors}
    dtype = kernels.type_of(value, kernel).dtype
    known = _is_floating(dtype) or kind_of_or_none(dtype) is Kind.COMPLEX
    if len(pairs) < 2 or types != {dtype} or not known:
        return
    if not any(one == value for _, one in kernel.context.written):
        return
    count = num(len(pairs))
    rows = tuple(row for _, _, row in pairs)
    columns = tuple(
        one if sign == "add" else Elementwise("negative", (one,)) for sign, one, _ in pairs
    )
    shapes = (
        (*kernels.type_of(columns[0], kernel).extents, count),
        (count, *kernels.type_of(rows[0], kernel).extents),
    )
    made: Value = MatMul(
        Called("column_stack", columns, shapes[0], dtype), Called("vstack", rows, shapes[1], dtype)
    )
    for sign, one in ((sign, one) for sign, one, vectors in found if not vectors):
        made = Elementwise(sign, (made, one))
    yield made


@_pattern(
    "compute only the part of the product that is used",
    "of the product only the diagonal, a row or a column is used",
    _ROUNDING,
)
def _traced(value: Value, kernel: Kernel) -> Iterator[Value]:
    match value:
        case Called("trace", (MatMul() as whole,), dtype=dtype):
            terms = _on_diagonal(whole, kernel)
            # narrow whole numbers wrap around before they are added up
            if terms is not None and dtype == kernels.type_of(whole, kernel).dtype:
                yield Reduction(terms, None, "add", dtype)
        case Called("diag" | "diagonal", (square,), (_,), stated=()):
            found = _diagonal(square, kernel)
            if found is not None:
                yield found
        case Part(MatMul(left, right), (Point(at), across)):
            row = _line(left, 0, at, kernel)
            if row is not None:
                yield _part(product(row, right, kernel), across, kernel)
        case Part(MatMul(left, right), (Range() as down, Point(at))):
            column = _line(right, 1, at, kernel)
            if column is not None:
                yield _part(product(left, column, kernel), down, kernel)


def _part(vector: Value, part: Subscript, kernel: Kernel) -> Value:
    whole = region_of(kernels.type_of(vector, kernel).extents)
    return vector if (part,) == whole else Part(vector, (part,))


def _line(value: Value, axis: int, at: Expr, kernel: Kernel) -> Value | None:
    """Return a row or a column of a matrix; None where that takes all of it."""
    match value:
        case Read(array, region) if all(isinstance(one, Range) for one in region):
            own = region[axis]
            assert isinstance(own, Range)
            return Read(array, (*region[:axis], Point(own.low + at), *region[axis + 1 :]))
        case Transpose(operand, (1, 0)):
            return _line(operand, 1 - axis, at, kernel)
        case MatMul(left, right):
            side = _line((left, right)[axis], axis, at, kernel)
            if side is not None:
                return product(left, side, kernel) if axis else product(side, right, kernel)
    return None


def _on_diagonal(value: MatMul, kernel: Kernel) -> Value | None:
    """Return the terms of the sums on the diagonal of a product, a row of them for each."""
    one, other = kernels.type_of(value.left, kernel), kernels.type_of(value.right, kernel)
    if one.extents != other.extents[::-1] or len(one.extents) != 2 or one.dtype != other.dtype:
        return None
    return Elementwise("multiply", (value.left, _turned(value.right, kernel)))


def _diagonal(value: Value, kernel: Kernel) -> Value | None:
    """Return the diagonal of a sum in which there are products; None where there are none."""
    match value:
        case MatMul() if (terms := _on_diagonal(value, kernel)) is not None:
            dtype = kernels.type_of(value, kernel).dtype
            # sums of narrow whole numbers are wider than products of them
            if kind_of_or_none(dtype) in (Kind.FLOATING, Kind.COMPLEX):
                return Reduction(terms, 1, "add", dtype)
        case Elementwise("add" | "subtract" as operation, sides):
            shapes = {kernels.type_of(side, kernel).extents for side in sides}
            parts = [_diagonal(side, kernel) for side in sides]
            if len(shapes) == 1 and any(part is not None for part in parts):
                shape = shapes.pop()[:1]
                kinds = [kernels.type_of(side, kernel).dtype for side in sides]
                ends = zip(parts, sides, kinds, strict=True)
                made = (part or Called("diagonal", (x,), shape, kind) for part, x, kind in ends)
                return Elementwise(operation, tuple(made))
    return None


@_pattern(
    "multiply by `@`",
    "`einsum` goes through all indices in one loop nest, a product of matrices by blocks of them",
    _ROUNDING,
)
def _of_two(value: Value, kernel: Kernel) -> Iterator[Value]:
    match value:
        case Called("einsum", operands, stated=((_, axes), _)) if len(operands) == 2:
            named, _, result = axes.partition("->")
            pairs = list(zip(named.split(","), operands, strict=True))
            turned = ((name[::-1], _turned(one, kernel)) for name, one in pairs if len(name) == 2)
            for (left, one), (right, other) in permutations((*pairs, *turned), 2):
                stacks = {left[:-2], right[:-2]} - {""}
                made = "".join(stacks) + left[-2:-1] + right[1:][-1:]
                apart = len(stacks) < 2 and len({*left, *right}) == len(made) + 1
                if apart and result == made and left[-1:] == right[-2:][:1] != "":
                    yield product(one, other, kernel)


@_pattern(
    "let `einsum` choose an order, by `optimize=True`",
    "without it one loop nest goes through all indices, and each pair of arrays has fewer",
    _ROUNDING,
)
def _by_pairs(value: Value, kernel: Kernel) -> Iterator[Value]:
    match value:
        case Called("einsum", stated=((_, axes) as subscripts, (_, "False"))):
            # what two come to without a product of matrices is copied, for little
            if axes.count(",") > 1 or not any(_of_two.others(value, kernel)):
                operands = [frozenset(one) for one in axes.partition("->")[0].split(",")]
                if len(operands) > 2 or (operands[0] - operands[1] and operands[1] - operands[0]):
                    yield replace(value, stated=(subscripts, ("optimize", "True")))


# Sums.


def _factors_summed(
    value: Value, kernel: Kernel
) -> tuple[Factors, list[tuple[Expr, ...]], int | None, str] | None:
    """Return two factors whose products are summed, with their shapes, the axis and the type."""
    match value:
        case Reduction(terms, axis, "add", dtype, fused=False):
            sides = squared_or_multiplied(terms)
            types = [kernels.type_of(side, kernel) for side in sides]
            if {one.dtype for one in types} == {dtype} and _is_floating(dtype):
                return sides, [one.extents for one in types], axis, dtype
    return None


@_pattern(
    "sum the products by a product of arrays",
    "a product of arrays keeps no array of all terms",
    _ROUNDING,
)
def _dotted(value: Value, kernel: Kernel) -> Iterator[Value]:
    match _factors_summed(value, kernel):
        case sides, shapes, axis, dtype:
            # of matrices that nothing is known of copies may be what their elements stand in
            ranks = (1,) if kernel.assumed else (1, 2)
            if axis is None and shapes[0] == shapes[1] and len(shapes[0]) in ranks:
                yield Reduction(Elementwise("multiply", sides), None, "add", dtype, fused=True)
            for (matrix, other), one in ((sides, shapes), (sides[::-1], shapes[::-1])):
                if axis == 1 and len(one[0]) == 2 and one[1] == one[0][1:]:
                    yield product(matrix, other, kernel)


@_pattern(
    "sum the products of rows by `einsum`",
    "it keeps no array of all terms, and a sum along a short axis is a loop for each row",
    _ROUNDING,
)
def _by_rows(value: Value, kernel: Kernel) -> Iterator[Value]:
    match _factors_summed(value, kernel):
        # in float32 the order of many terms is felt: a sum takes them in pairs
        case sides, shapes, int(axis), "float64" | "complex128" as dtype:
            if shapes[0] == shapes[1] and 2 <= len(shapes[0]) == axis + 1 <= len(_LETTERS):
                rows = _LETTERS[: axis + 1]
                stated = ("subscripts", f"{rows},{rows}->{rows[:-1]}"), ("optimize", "False")
                yield Called("einsum", sides, shapes[0][:-1], dtype, stated)


_LETTERS = "ijkl"


@_pattern(
    "multiply the vectors by the matrix, without their outer product",
    "the outer product is a matrix that is made to be summed",
    _TERMS,
)
def _weighted(value: Value, kernel: Kernel) -> Iterator[Value]:
    """Yield the sum of an outer product, each element times that of a matrix."""
    match value:
        case Reduction(Elementwise("multiply", sides), None, "add", fused=False):
            for matrix, other in (sides, sides[::-1]):
                found = _outer(other, kernel)
                types = [kernels.type_of(one, kernel) for one in (matrix, *found)]
                shapes = [one.extents for one in types]
                alike = len({one.dtype for one in types}) == 1 and _is_floating(types[0].dtype)
                if found and alike and shapes[0] == shapes[1] + shapes[2]:
                    yield product(product(found[0], matrix, kernel), found[1], kernel)


@_pattern(
    "take the squared distances of all pairs from a product of arrays",
    "the differences of all pairs are an array with one more axis",
    CONDITION,
)
def _distances(value: Value, kernel: Kernel) -> Iterator[Value]:
    made = by_product(value, kernel)
    if made is not None:
        yield made


@_pattern(
    "count by `count_nonzero`",
    "a sum makes a number of every truth value first",
    "the count is equal, as a number of Python's, in the place of one of NumPy's, by which a"
    " division raises where it is 0",
)
def _counted(value: Value, kernel: Kernel) -> Iterator[Value]:
    match value:
        case Reduction(mask, None, "add", "int64", fused=False) | Called(
            "builtins.sum", (mask,), _, "bool"
        ):
            along_rows = isinstance(value, Called) and _rows(kernel) is not None
            if kernels.type_of(mask, kernel).dtype == "bool" and not along_rows:
                yield Reduction(mask, None, "count_nonzero", "int64")


@_pattern(
    "leave the loop to NumPy",
    "Python's function makes an object of every element",
    "results agree to rounding, where the array has elements and none is NaN",
    of_any_rank=True,
)
def _by_numpy(value: Value, kernel: Kernel) -> Iterator[Value]:
    match value:
        case Called("builtins.sum" | "builtins.max" | "builtins.min" as name, (vector,)):
            dtype = kernels.type_of(vector, kernel).dtype
            operation = {"sum": "add", "max": "maximum", "min": "minimum"}[name[9:]]
            if _is_floating(dtype) or dtype == "int64":
                yield Reduction(vector, _rows(kernel), operation, dtype)
            elif dtype == "bool" and operation == "add" and _rows(kernel) is not None:
                yield Reduction(vector, 0, "count_nonzero", "int64")


def _rows(kernel: Kernel) -> int | None:
    """Return the axis that Python goes over, where there may be others."""
    return 0 if kernel.assumed else None


@_pattern(
    "reduce the whole array along its axis",
    "`apply_along_axis` calls a function from Python for every vector",
    _ROUNDING,
)
def _at_once(value: Value, kernel: Kernel) -> Iterator[Value]:
    match value:
        case Called("apply_along_axis", (array,), stated=((_, operation), (_, axis))):
            if operation in ("add", "multiply", "maximum", "minimum", "mean"):
                yield Reduction(array, int(axis), operation, kernels.type_of(value, kernel).dtype)


_HALVES = re.compile(r"-?\d+(\.[05]0*)?").fullmatch
_MOST = 16
"""Powers up to here take five products at most."""


@_pattern(
    "multiply, without a power",
    "NumPy computes squares and roots by themselves, and any other power by a function",
    "products are rounded one by one, so results agree to rounding where nothing is infinite,"
    " overflows or is a negative zero",
    of_any_rank=True,
)
def _multiplied(value: Value, kernel: Kernel) -> Iterator[Value]:
    match value:
        case Elementwise("power", (base, Scalar(text))) if text not in POWERS and _HALVES(text):
            found, exponent = kernels.type_of(base, kernel), Fraction(text)
            if not found.extents or not _is_floating(found.dtype) or abs(exponent) > _MOST:
                return
            if kernel.assumed and exponent.denominator == 1 and "." in text:
                # of whole numbers, which it may be given, only this power has the type
                return
            power, half = divmod(abs(exponent), 1)
            parts = [_products(base, int(power))] if power else []
            parts += [Elementwise("sqrt", (base,))] if half else []
            if parts:
                made = reduce(lambda one, other: Elementwise("multiply", (one, other)), parts)
                one = Scalar("1.0", PYTHON_FLOAT)
                yield made if exponent > 0 else Elementwise("divide", (one, made))


def _products(base: Value, power: int) -> Value:
    """Return a power by products and squares."""
    if power == 1:
        return base
    if power % 2 and power > 3:
        return Elementwise("multiply", (_products(base, power - 1), base))
    if power == 3:
        return Elementwise("multiply", (Elementwise("multiply", (base, base)), base))
    return Elementwise("power", (_products(base, power // 2), Scalar("2", PYTHON_INTEGER)))


def _times(value: Value, part: Value) -> int:
    return sum(one == part for one in parts_of(value))


def _named(
    part: Value, other: Value, statement: Bind | Store | ScalarBind, kernel: Kernel
) -> Made | None:
    """Return a base that is used several times under a name of its own; None where it has one."""
    base = part.operands[0] if isinstance(part, Elementwise) else part
    if isinstance(base, Read) or _times(other, base) < 2:
        return None
    name = rewrite.fresh_name("base", {*kernel.arrays, *kernel.locals, *kernel.context.identifiers})
    found, at = kernels.type_of(base, kernel), rewrite.before(statement.span)
    read = Read(name, region_of(found.extents))
    bind, known = Bind(name, base, statement.span), kernel.with_locals({name: found})
    other = with_part(other, base, read)

    def edits() -> tuple[Edit, ...]:
        made = _edits_of(statement.span, {part: other}, known)
        text = next(
            (kernel.context.text(at) for at, one in kernel.context.written if one == base), ""
        )
        if (
            not (made and text)
            or "\n" in text
            or not rewrite.stands_alone(kernel.context, statement.span)
        ):
            return ()
        return Edit(
            at, f"{name} = {text}\n{rewrite.indent_at(statement.span, kernel.context)}"
        ), *made

    return (bind, replace(statement, value=with_part(statement.value, part, other))), known, edits


# Sorted arrays of which a few elements are wanted.


@_pattern(
    "select the elements, without sorting all",
    _SORTED,
    "results are equal where the array has as many elements as are asked for, and zeros have"
    " no sign",
)
def _selected(value: Value, kernel: Kernel) -> Iterator[Value]:
    match value:
        case Part(Sort(vector), (where,)):
            pass
        case Part(Flip(Sort(vector)), (Range(low) as where,)) if low == ZERO:
            (extent,) = kernels.type_of(vector, kernel).extents
            upper = Range(extent - where.high, extent)
            yield Flip(Sort(_partitioned(vector, (upper,), "-{}", "-{}:", kernel), 0), 0)
            return
        case _:
            return
    found = kernels.type_of(vector, kernel)
    (extent,), dtype = found.extents, found.dtype
    if kind_of_or_none(dtype) not in (Kind.FLOATING, Kind.INTEGER):
        return
    match where:
        case Point(at) if at in (ZERO, extent - 1):
            least = "fmin" if _is_floating(dtype) else "minimum"
            yield Reduction(vector, None, least if at == ZERO else "maximum", dtype)
        case Point():
            yield _partitioned(vector, (where,), "{}", "{}", kernel)
        case Range(low, high) if high == extent:
            yield Sort(_partitioned(vector, (where,), "{}", "{}:", kernel), 0)
        case Range(low, high) if low == ZERO:
            yield Sort(_partitioned(vector, (where,), "{} - 1", ":{}", kernel), 0)


@_pattern(
    "select the element by NumPy, without sorting all",
    "Python compares objects of its own, one by one, and one of them is wanted",
    "results are equal where no element is NaN, and there are as many as are asked for",
)
def _selected_of_list(value: Value, kernel: Kernel) -> Iterator[Value]:
    match value:
        case Part(Called("builtins.sorted", (vector,)), where):
            for other in _selected.others(Part(Sort(vector, 0), where), kernel):
                if isinstance(other, Reduction):
                    # a list has no order among NaN, and so no least of others
                    least = "minimum" if other.operation == "fmin" else other.operation
                    other = replace(other, operation=least)
                yield other


def _partitioned(
    vector: Value, region: tuple[Point | Range, ...], kth: str, part: str, kernel: Kernel
) -> Part:
    """Return a part of a partitioned vector; in `kth` and `part`, braces are for the subscript."""
    found = kernels.type_of(vector, kernel)
    stated = (("kth", kth), ("part", part))
    return Part(Called("partition", (vector,), found.extents, found.dtype, stated), region)


@_pattern(
    "look for the place of one element, without sorting all",
    _SORTED,
    "places are equal where the element that is looked for occurs once, and none is NaN",
)
def _placed(value: Value, kernel: Kernel) -> Iterator[Value]:
    match value:
        case Part(Called("argsort", (vector,), (extent,)), (Point(at),)):
            if at in (ZERO, extent - 1):
                operation = "argmin" if at == ZERO else "argmax"
                yield Reduction(vector, None, operation, "int64")


@_pattern(
    "look for the places by `argpartition`, and sort only these if their order matters", _SORTED, ""
)
def _some_placed(value: Value, kernel: Kernel) -> Iterator[Value]:
    """Yield the places of the least or greatest elements, in no order."""
    match value:
        case Part(Called("argsort", (_,), (extent,)) as places, (Range(low, high) as where,)) if (
            low == ZERO
        ) != (high == extent):
            yield Part(replace(places, function="argpartition"), (where,))
        case Part(Flip(Called("argsort", (_,), (extent,)) as places), (Range(low, high),)) if (
            low == ZERO and high != extent
        ):
            where = Range(extent - high, extent)
            yield Flip(Part(replace(places, function="argpartition"), (where,)), 0)


def _rank(value: Value, kernel: Kernel) -> int:
    return len(kernels.type_of(value, kernel).extents)


def _is_floating(dtype: str) -> bool:
    return kind_of_or_none(dtype) is Kind.FLOATING and dtype != "float16"


_TRUTHS = frozenset(name for name, row in ROWS.items() if row.result == "truth")


def propose(kernel: Kernel) -> Iterator[Proposal]:
    """Yield each expression of the table in another way, and names that serve for nothing else."""
    if kernels.is_compiled_alone(kernel):
        return
    for statement in walk(kernel.body, rewritable=True):
        if not isinstance(statement, Bind | Store | ScalarBind | Scatter):
            continue
        compared = {
            part
            for one in parts_of(statement.value)
            if isinstance(one, Elementwise) and one.operation in _TRUTHS
            for part in parts_of(one)
        }
        for part in dict.fromkeys(parts_of(statement.value)):
            for pattern, other in _others(part, kernel):
                if part in compared and "rounding" in pattern.condition:
                    # it may come out otherwise where both sides are the same
                    continue
                if pattern is _counted and _divides(part, statement, kernel):
                    continue
                changed = replace(statement, value=with_part(statement.value, part, other))
                edits = partial(_edits_of, statement.span, {part: other}, kernel)
                made: Made = (changed,), kernel, edits
                if pattern is _multiplied and not isinstance(statement, Scatter):
                    made = _named(part, other, statement, kernel) or made
                body = kernels.with_statement(kernel.body, statement, made[0])
                yield _proposal(pattern, statement, made[1].with_body(body), made[2], kernel)
    yield from _of_names(kernel)
    yield from _factored(kernel)


def _divides(value: Value, statement: Statement, kernel: Kernel) -> bool:
    """Return whether a statement divides by a value, or anything by what it binds to that."""
    parts = (part for whole in values_of(statement) for part in parts_of(whole))
    by = (one.operands[1] for one in parts
          if isinstance(one, Elementwise) and one.operation in _QUOTIENTS)  # fmt: skip
    first, last = kernel.context.whole
    divisors = (
        node.right if isinstance(node, ast.BinOp) else node.value
        for node in only(ast.BinOp | ast.AugAssign, rewrite.nodes_of(kernel.context.source))
        if isinstance(node.op, ast.Div | ast.FloorDiv | ast.Mod) and first <= node.lineno <= last
    )
    by_name = {name for one in divisors for name in names_in(one)}
    named = not written(statement).isdisjoint(by_name)
    return named or any(value in parts_of(one) for one in by)


_QUOTIENTS = ("divide", "floor_divide", "remainder")


def _others(value: Value, kernel: Kernel) -> Iterator[tuple[Pattern, Value]]:
    for pattern in PATTERNS:
        try:
            for other in pattern.others(value, kernel):
                same = kernels.type_of(other, kernel) == kernels.type_of(value, kernel)
                if other != value and (same or pattern is _counted):
                    yield pattern, other
        except ShapeConflict:
            continue


def _proposal(
    pattern: Pattern,
    statement: Statement,
    variant: Kernel,
    edits: Callable[[], tuple[Edit, ...]],
    kernel: Kernel,
) -> Proposal:
    condition = pattern.condition
    used = {kernel.dtype(read.array) for value in values_of(statement) for read in reads(value)}
    if used & {"float32", "complex64"}:
        condition = condition.replace("to rounding", "to the rounding of float32")
    span, argued = rewrite.first_line(statement.span, kernel.context), kernels.unsafe(condition)
    if not condition:
        other_order = "the places come in another order, and equal elements do"
        argued, edits = kernels.displayed(other_order), tuple
    made = kernels.offered(kernel, span, pattern.title, pattern.reason, variant, argued, edits)
    return replace(made, of_any_rank=pattern.of_any_rank)


# Names that stand for an inverse, a diagonal matrix or a sorted array, and serve for nothing else.


def _of_names(kernel: Kernel) -> Iterator[Proposal]:
    for block in kernels.blocks(kernel.body):
        for bind in block:
            match bind:
                case Bind(value=Sort(vector) | Called("builtins.sorted", (vector,))):
                    yield from _without_order(bind, vector, block, kernel)
                case Bind(name, Called("linalg.inv" | "diag") | MatMul() | Elementwise()) if (
                    name not in kernel.observed
                ):
                    yield from _without_matrix(bind, block, kernel)


def _without_order(
    bind: Bind, vector: Value, block: tuple[Statement, ...], kernel: Kernel
) -> Iterator[Proposal]:
    """Yield a partition in the place of a sorted array of which single elements are read."""
    users = [
        one
        for one in walk(kernel.body)
        if bind.name in mentioned(one) and not any(part is bind for part in walk((one,)))
    ]
    behind = [*walk(block[block.index(bind) + 1 :])]
    later = {name for one in behind for name in (*written(one), getattr(one, "variable", ""))}
    if not all(any(one is other for other in behind) for one in users):
        return
    values = [value for one in users for value in values_of(one)]
    found = [read for value in values for read in reads(value) if read.array == bind.name]
    texts, places = kernel.context.scalar_texts, list[str]()
    for read in dict.fromkeys(found):
        match read.region:
            case (Point(Mod(dividend=at) | at),) if (
                later.isdisjoint(free_symbols(at)) and (text := python_text(at, texts)) is not None
            ):
                places.append(text)
            case _:
                return
    plain = all(isinstance(one, Bind | Store | ScalarBind) for one in users if values_of(one))
    others = any(
        bind.name in written(one) or (not within(one) and not values_of(one)) for one in users
    )
    if not places or others or not plain or bind.name in kernel.aliases:
        return
    kth = places[0] if len(places) == 1 else f"[{', '.join(places)}]"
    other = _partitioned(vector, (), kth, "", kernel).operand
    body = kernels.with_statement(kernel.body, bind, (replace(bind, value=other),))
    edits = partial(_edits_of, bind.span, {bind.value: other}, kernel)
    yield _proposal(_selected_of_list, bind, kernel.with_body(body), edits, kernel)


def _without_matrix(bind: Bind, block: tuple[Statement, ...], kernel: Kernel) -> Iterator[Proposal]:
    """Yield the statements that multiply by a named matrix with what it stands for in them."""
    pattern = _traced
    if isinstance(bind.value, Called):
        pattern = _solved if bind.value.function == "linalg.inv" else _broadcast
    whole = Read(bind.name, region_of(kernel.extents(bind.name)))
    rest = block[block.index(bind) + 1 :]
    users = [one for one in rest if bind.name in mentioned(one)]
    leaves = (one for one in walk(kernel.body) if not within(one) and one is not bind)
    between = rest[: rest.index(users[-1])] if users else ()
    changed = {name for one in between for name in written(one)}
    needed = {bind.name, *(read.array for read in reads(bind.value))}
    if not users or changed & needed or needed & kernel.aliases:
        return
    if any(bind.name in mentioned(one) for one in leaves if not any(one is o for o in users)):
        return
    body, edits = kernels.with_statement(kernel.body, bind, ()), [partial(_gone, bind, kernel)]
    for one in users:
        if not isinstance(one, Bind | Store | ScalarBind):
            return
        changes: dict[Value, Value] = {}
        for part in parts_of(one.value):
            named = part
            if isinstance(part, Read) and part.array == bind.name and part != whole:
                named = Part(bind.value, part.region)
            elif whole in (part.operands if isinstance(part, Called) else kernels.factors(part)):
                named = with_part(part, whole, bind.value)
            if named != part:
                other = next(pattern.others(named, kernel), None)
                if other is None or kernels.type_of(other, kernel) != kernels.type_of(part, kernel):
                    return
                changes[part] = other
        value: Value = one.value
        for part, other in changes.items():
            value = with_part(value, part, other)
        if bind.name in mentioned(replace(one, value=value)):
            return
        body = kernels.with_statement(body, one, (replace(one, value=value),))
        edits.append(partial(_edits_of, one.span, changes, kernel, bind.span))

    def every() -> tuple[Edit, ...]:
        made = [edit() for edit in edits]
        return tuple(one for some in made for one in some) if all(made) else ()

    yield _proposal(pattern, bind, kernel.with_body(body), every, kernel)


# Equations with one matrix, solved again and again.


def _factored(kernel: Kernel) -> Iterator[Proposal]:
    """Yield what factorises a matrix before the outermost loop in which it stays as it is."""
    seen: set[int] = set()
    for loop in walk(kernel.body, rewritable=True):
        inner = list(walk(within(loop))) if isinstance(loop, Loop) else []
        for one in (one for one in inner if isinstance(one, Bind | Store | ScalarBind | Scatter)):
            for part in parts_of(one.value):
                match part:
                    case Called("linalg.solve", (matrix, right)) if id(one) not in seen:
                        stays = _made_before(matrix, loop, inner, kernel)
                    case _:
                        continue
                if stays is None:
                    continue
                seen.add(id(one))
                found = kernels.type_of(matrix, kernel)
                name = rewrite.fresh_name("factors", kernel.context.identifiers)
                inverse = Called("linalg.inv", (stays,), found.extents, found.dtype)
                known = kernel.with_locals({name: found})
                # of a loop that runs nobody knows how often one iteration is priced
                untold = isinstance(loop, Loop) and loop.high == trips(loop.span.start_line)
                factors_of_it = stays if untold else Read(name, region_of(found.extents))
                other = replace(part, function=_BY_FACTORS, operands=(factors_of_it, right))
                changed = replace(one, value=with_part(one.value, part, other))
                body = kernels.with_statement(kernel.body, one, (changed,))
                again = next(p for p in walk(body) if isinstance(p, Loop) and p.span == loop.span)
                bind = () if untold else (Bind(name, inverse, loop.span),)
                body = kernels.with_statement(body, again, (*bind, again))
                pays = ", which pays from the second iteration on" if untold else ""
                yield kernels.offered(
                    kernel,
                    rewrite.first_line(one.span, kernel.context),
                    f"factorise the matrix once, before the loop of line {loop.span.start_line}"
                    f"{pays}",
                    "each iteration factorises it again, which takes by far the most of solving;"
                    " scipy.linalg has lu_factor and lu_solve, cho_factor and cho_solve",
                    known.with_body(body),
                    kernels.displayed("results agree to rounding"),
                    tuple,
                )


_BY_FACTORS = "scipy.linalg.lu_solve"


def _made_before(
    value: Value, loop: Statement, inner: Sequence[Statement], kernel: Kernel
) -> Value | None:
    """Return what a value is made of that no iteration changes; None where one may."""
    for one in inner:
        if isinstance(one, Bind) and value == _whole(one.name, kernel):
            changes = (leaf for leaf in inner if not within(leaf) and one.name in written(leaf))
            value = one.value if [*changes] == [one] else value
    indices = {one.variable for one in (loop, *inner) if isinstance(one, Loop)}
    changed = {*written(loop), *kernel.aliases, *(one.partition(".")[0] for one in indices)}
    parts = [*parts_of(value)]
    names = {read.array for read in reads(value)}
    names |= {word for one in parts if isinstance(one, Scalar) for word in _WORD.findall(one.text)}
    regions = (part for read in reads(value) for part in read.region)
    moving = any(free_symbols(end) & indices for part in regions for end in bounds_in(part))
    drawn = any(isinstance(one, Called) and one.function.startswith("random.") for one in parts)
    return None if names & changed or moving or drawn else value


_WORD = re.compile(r"[^\W\d]\w*")


def _whole(name: str, kernel: Kernel) -> Value | None:
    return Read(name, region_of(kernel.extents(name))) if name in kernel.locals else None


def _gone(bind: Bind, kernel: Kernel) -> tuple[Edit, ...]:
    if not rewrite.stands_alone(kernel.context, bind.span):
        return ()
    return (rewrite.replace_statement(bind.span, [], kernel.context),)


TRANSFORM = kernels.KernelRule("ADV505", "array-algebra", __doc__ or "", propose)
