"""NumPy's functions that are made of others: norms, means and spreads, differences, counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import libcst as cst

from advisor.dtypes import Kind, itemsize_of
from advisor.frontend.expressions.arguments import Arguments, axis_of, is_none, matched
from advisor.frontend.expressions.library_steps import steps_of
from advisor.frontend.naming.literals import literal_int
from advisor.frontend.naming.scope import Scope
from advisor.frontend.syntax.guard import NotUnderstood
from advisor.ir.shapes import kind_of_or_none
from advisor.ir.values import (
    Elementwise,
    Expand,
    Fourier,
    Point,
    Range,
    Read,
    Reduction,
    Subscript,
    Transpose,
    Value,
)
from costdb.expr import num

COMPOSED = frozenset(
    {
        *("linalg.norm", "var", "std", "ptp", "count_nonzero", "any", "all", "argmax", "argmin"),
        *("clip", "diff", "einsum", "fft.fft2", "fft.ifft2", "fft.fftn", "fft.ifftn"),
    }
)
OF_METHODS = COMPOSED & {"var", "std", "any", "all", "argmax", "argmin", "clip", "ptp"}
"""Those that are methods of arrays as well."""

_TRUTHS = {"any": "logical_or", "all": "logical_and"}
ONE = num(1)


class Composed:
    """Reads calls of functions that are made of others.

    Parameters
    ----------
    scope : Scope
    read : callable
        Gives the value of an expression.
    product : callable
        Gives the product of matrices or vectors.
    """

    def __init__(
        self,
        scope: Scope,
        read: Callable[[cst.BaseExpression], Value],
        product: Callable[[Value, Value], Value],
    ) -> None:
        self.scope = scope
        self.read = read
        self.product = product

    def value(
        self, name: str, operand: Value, given: Sequence[cst.Arg], *, function: bool
    ) -> Value:
        """Return the value of ``np.name(operand, ...)``, or of the method of that name.

        Raises
        ------
        NotUnderstood
            For an argument outside the understood language.
        """
        steps = steps_of(name, function=function)
        match name:
            case "linalg.norm":
                return self._norm(operand, matched(given, ("ord", "axis", "keepdims"), name))
            case "var" | "std" | "ptp":
                arguments = matched(given, ("axis", "keepdims"), name)
                return self._spread(name, operand, arguments, steps)
            case "clip":
                return self._clipped(operand, matched(given, ("a_min", "a_max"), name))
            case "diff":
                return self._difference(operand, matched(given, ("n", "axis"), name))
            case "count_nonzero" | "any" | "all" | "argmax" | "argmin":
                arguments = matched(given, ("axis", "keepdims"), name)
                if name == "count_nonzero":
                    return self._reduced(operand, arguments, "add", "int64", steps)
                if name in _TRUTHS:
                    return self._reduced(operand, arguments, _TRUTHS[name], "bool", steps)
                return self._reduced(operand, arguments, name, "int64", steps)
        return self._transformed(name, operand, given)

    def summed_products(self, given: Sequence[cst.Arg]) -> Value:
        """Return the value of ``np.einsum("ij,jk->ik", a, b)`` and its like.

        Raises
        ------
        NotUnderstood
            For any other contraction than products of matrices and vectors.
        """
        values = [argument.value for argument in given if not argument.keyword]
        if len(values) != 3 or len(values) != len(given) or any(a.star for a in given):
            raise NotUnderstood("np.einsum of something other than two arrays")
        if not isinstance(values[0], cst.SimpleString):
            raise NotUnderstood("np.einsum whose subscripts are no literal")
        text = str(values[0].evaluated_value).replace(" ", "")
        operands, arrow, result = text.partition("->")
        one, comma, two = operands.partition(",")
        left, right = self.read(values[1]), self.read(values[2])
        ranks = [len(self.scope.type_of(value).extents) for value in (left, right)]
        if not arrow or not comma or [len(one), len(two)] != ranks:
            raise NotUnderstood("np.einsum whose subscripts do not fit its arrays")
        shared = set(one) & set(two)
        for axes in (one, two, result):
            if len(set(axes)) != len(axes):
                raise NotUnderstood("np.einsum along a diagonal")
        if len(shared) == 1 and not shared & set(result) and max(ranks) <= 2:
            left = _turned(left, one, last=shared)
            right = _turned(right, two, first=shared)
            kept = "".join(axis for axis in one + two if axis not in shared)
            if sorted(kept) == sorted(result):
                made = self.product(left, right)
                return made if kept == result else Transpose(made, (1, 0))
        if one == two and result in ("", one):
            products = Elementwise("multiply", (left, right))
            dtype = self.scope.type_of(products).dtype
            return products if result else Reduction(products, None, "add", dtype, fused=True)
        raise NotUnderstood("this contraction by np.einsum is not understood")

    def _reduced(
        self, operand: Value, arguments: Arguments, operation: str, dtype: str, steps: int = 0
    ) -> Value:
        dimensions = len(self.scope.type_of(operand).extents)
        return reduced(operand, arguments, operation, dtype, dimensions, steps)

    def _real(self, operand: Value) -> str:
        """Return the type of the sizes of elements, as real numbers."""
        dtype = self.scope.type_of(operand).dtype
        match kind_of_or_none(dtype):
            case Kind.FLOATING:
                return dtype
            case Kind.COMPLEX:
                return f"float{4 * itemsize_of(dtype)}"
            case Kind.INTEGER | Kind.BOOLEAN:
                return "float64"
        raise NotUnderstood("elements of unknown type")

    def _norm(self, operand: Value, arguments: Arguments) -> Value:
        if not is_none(arguments.get("ord")) and literal_int(arguments["ord"]) != 2:
            raise NotUnderstood("a norm other than the Euclidean one")
        if "ord" in arguments and len(self.scope.type_of(operand).extents) != 1:
            raise NotUnderstood("the spectral norm of a matrix")
        squares = Elementwise("square", (operand,))
        dtype = self._real(operand)
        return Elementwise("sqrt", (self._reduced(squares, arguments, "add", dtype),))

    def _spread(self, name: str, operand: Value, arguments: Arguments, steps: int) -> Value:
        if name == "ptp":
            dtype = self.scope.type_of(operand).dtype
            ends = (
                self._reduced(operand, arguments, operation, dtype, around)
                for operation, around in (("maximum", steps), ("minimum", 0))
            )
            return Elementwise("subtract", tuple(ends))
        dtype = self._real(operand)
        dimensions, node = len(self.scope.type_of(operand).extents), arguments.get("axis")
        axis = None if is_none(node) else axis_of(node, dimensions, name)
        mean: Value = Reduction(operand, axis, "add", dtype)
        if axis is not None:
            mean = Expand(mean, axis)
        squares = Elementwise("square", (Elementwise("subtract", (operand, mean)),))
        found = self._reduced(squares, arguments, "add", dtype, steps)
        return Elementwise("sqrt", (found,)) if name == "std" else found

    def _clipped(self, operand: Value, arguments: Arguments) -> Value:
        given = operand
        for bound, operation in (("a_min", "maximum"), ("a_max", "minimum")):
            node = arguments.get(bound)
            if node is not None and not is_none(node):
                operand = Elementwise(operation, (operand, self.read(node)))
        if operand is given:
            raise NotUnderstood("a clip without bounds")
        self.scope.type_of(operand)  # shapes must agree
        return operand

    def _difference(self, operand: Value, arguments: Arguments) -> Value:
        times = arguments.get("n")
        if times is not None and literal_int(times) != 1:
            raise NotUnderstood("np.diff of another order than the first")
        if not isinstance(operand, Read):
            raise NotUnderstood("np.diff of something other than an array that has a name")
        dimensions = [d for d, part in enumerate(operand.region) if not isinstance(part, Point)]
        node = arguments.get("axis")
        axis = -1 if node is None else axis_of(node, len(dimensions), "diff")
        if not dimensions:
            raise NotUnderstood("np.diff of a single element")
        along = dimensions[axis]
        part = operand.region[along]
        if not isinstance(part, Range):
            raise NotUnderstood("np.diff of a slice with a step")
        if part.high - part.low == num(0):
            raise NotUnderstood("np.diff of nothing")
        ends = (Range(part.low + ONE, part.high), Range(part.low, part.high - ONE))
        return Elementwise(
            "subtract",
            tuple(Read(operand.array, _put(operand.region, along, end)) for end in ends),
        )

    def _transformed(self, name: str, operand: Value, given: Sequence[cst.Arg]) -> Value:
        """Return Fourier transforms along several axes, the last one first."""
        matched(given, (), name)
        found = self.scope.type_of(operand)
        if found.dtype in ("float16", "float32", "complex64"):
            # NumPy 2 keeps single precision, NumPy 1 does not
            raise NotUnderstood("a Fourier transform in single precision")
        dimensions = len(found.extents)
        axes = range(dimensions) if name.endswith("n") else range(dimensions)[-2:]
        if name.endswith("2") and dimensions < 2:
            raise NotUnderstood(f"np.{name} of a vector")
        for axis in reversed(axes):
            operand = Fourier(operand, axis, "complex128", inverse="ifft" in name)
        return operand


def reduced(
    operand: Value,
    arguments: Arguments,
    operation: str,
    dtype: str,
    dimensions: int,
    steps: int = 0,
) -> Value:
    """Return a reduction along the axes that arguments name, all where they name none.

    `steps` functions of Python come before it, however many axes there are.
    """
    node, kept = arguments.get("axis"), _is_true(arguments.get("keepdims"))
    if is_none(node):
        if kept:
            raise NotUnderstood("a reduction of all axes that keeps them")
        return Reduction(operand, None, operation, dtype, steps=steps)
    if isinstance(node, cst.Tuple):
        axes = sorted(axis_of(element.value, dimensions, operation) for element in node.elements)
        if len(set(axes)) != len(axes) or not axes:
            raise NotUnderstood("a reduction along no axis, or along one twice")
        if len(axes) == dimensions and not kept:
            return Reduction(operand, None, operation, dtype, steps=steps)
    else:
        axes = [axis_of(node, dimensions, operation)]
    if len(axes) > 1 and operation.startswith("arg"):
        raise NotUnderstood("a place along several axes")
    for number, axis in enumerate(reversed(axes)):
        around = 0 if number else steps
        operand = Reduction(operand, axis, operation, dtype, steps=around)
    if kept:
        for axis in axes:
            operand = Expand(operand, axis)
    return operand


def _is_true(node: cst.BaseExpression | None) -> bool:
    if node is None:
        return False
    if isinstance(node, cst.Name) and node.value in ("True", "False"):
        return node.value == "True"
    raise NotUnderstood("`keepdims=` that is not written out")


def _turned(
    value: Value, axes: str, *, first: set[str] | None = None, last: set[str] | None = None
) -> Value:
    """Return a matrix turned such that a subscript is its first or last one."""
    if len(axes) == 1:
        return value
    right = axes[0] in first if first is not None else axes[-1] in (last or ())
    return value if right else Transpose(value, (1, 0))


def _put(region: tuple[Subscript, ...], at: int, part: Subscript) -> tuple[Subscript, ...]:
    return (*region[:at], part, *region[at + 1 :])
