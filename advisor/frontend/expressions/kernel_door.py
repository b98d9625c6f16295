"""What NumPy's functions are given in a kernel, and the values that they make there."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import libcst as cst

from advisor.dtypes import UnknownDtype, dtype_of
from advisor.frontend.expressions.indices import scalar
from advisor.frontend.naming.names import resolve
from advisor.frontend.naming.scope import Scope
from advisor.frontend.naming.written_out import literal_int
from advisor.frontend.syntax.guard import NotUnderstood
from advisor.ir.shapes import ArrayType, is_whole
from advisor.ir.values import (
    Copy,
    Elementwise,
    Expand,
    Fill,
    Flip,
    Fourier,
    Gather,
    MatMul,
    PeriodicPad,
    Point,
    Range,
    Read,
    Reduction,
    Roll,
    Scalar,
    Scan,
    Sort,
    Tally,
    Transpose,
    Value,
)
from advisor.numpy_shapes import Shape
from costdb.expr import Expr
from costdb.records import dataclass

_BUILTIN_TYPES = frozenset({"int", "float", "bool", "complex"})


@dataclass(frozen=True, slots=True)
class KernelDoor:
    """What a kernel's arguments say, and the values that operations on arrays are."""

    scope: Scope
    value: Callable[[cst.BaseExpression], Value]

    # what operations make are mostly values of their own
    copy = staticmethod(Copy)
    reduction = staticmethod(Reduction)
    scan = staticmethod(Scan)
    expand = staticmethod(Expand)
    transpose = staticmethod(Transpose)
    roll = staticmethod(Roll)
    pad = staticmethod(PeriodicPad)
    sort = staticmethod(Sort)
    gather = staticmethod(Gather)
    tally = staticmethod(Tally)

    def array(self, argument: cst.BaseExpression, name: str) -> Value:
        """Return the array that an argument is."""
        value = self.value(argument)
        if isinstance(value, Scalar):
            raise NotUnderstood(f"np.{name} of a number")
        return value

    def integer(self, argument: cst.BaseExpression) -> int | None:
        """Return a whole number that is written out."""
        return literal_int(argument)

    def size(self, argument: cst.BaseExpression, name: str) -> Expr:
        """Return a whole number over sizes."""
        return scalar(argument, self.scope)

    def shape(self, argument: cst.BaseExpression) -> Shape:
        """Return a shape that is written out, or that of an array."""
        items = self.items(argument)
        if items is not None:
            return tuple(scalar(item, self.scope) for item in items)
        if isinstance(argument, cst.Attribute) and argument.attr.value == "shape":
            return self.type_of(self.array(argument.value, "shape")).extents
        return (scalar(argument, self.scope),)

    def items(self, argument: cst.BaseExpression) -> Sequence[cst.BaseExpression] | None:
        """Return what a tuple or list consists of."""
        if not isinstance(argument, cst.Tuple | cst.List):
            return None
        if any(isinstance(element, cst.StarredElement) for element in argument.elements):
            raise NotUnderstood("a starred element of a tuple")
        return [element.value for element in argument.elements]

    def dtype(self, argument: cst.BaseExpression) -> str:
        """Return the name of the element type that an expression such as ``np.int32`` denotes."""
        node, scope = argument, self.scope
        if isinstance(node, cst.Attribute) and node.attr.value == "dtype":
            return self.type_of(self.array(node.value, "dtype")).dtype
        if isinstance(node, cst.SimpleString):
            name = str(node.evaluated_value)
        elif isinstance(node, cst.Name) and node.value in _BUILTIN_TYPES:
            if scope.not_builtin(node.value):
                raise NotUnderstood(f"`{node.value}` may be something other than the builtin")
            name = node.value
        else:
            full = resolve(node, scope.imports) or ""
            if not full.startswith("numpy."):
                raise NotUnderstood("an element type that cannot be read")
            name = full.removeprefix("numpy.")
        try:
            return dtype_of(name).name
        except UnknownDtype as error:
            raise NotUnderstood(str(error)) from error

    def text(self, argument: cst.BaseExpression) -> str | None:
        """Return a text that is written out."""
        return str(argument.evaluated_value) if isinstance(argument, cst.SimpleString) else None

    def truth(self, argument: cst.BaseExpression) -> bool | None:
        """Return a truth value that is written out."""
        known = isinstance(argument, cst.Name) and argument.value in ("True", "False")
        return argument.value == "True" if known and isinstance(argument, cst.Name) else None

    def is_none(self, argument: cst.BaseExpression) -> bool:
        """Return whether an argument is None."""
        return isinstance(argument, cst.Name) and argument.value == "None"

    def constant(self, argument: cst.BaseExpression) -> tuple[str, str]:
        """Return a number that is written out."""
        if isinstance(argument, cst.Integer | cst.Float):
            return argument.value, "int64" if isinstance(argument, cst.Integer) else "float64"
        raise NotUnderstood("np.full with a value that is no literal")

    def type_of(self, value: Value) -> ArrayType:
        """Return element type and shape of a value."""
        return self.scope.type_of(value)

    def elementwise(self, operation: str, operands: tuple[Value, ...]) -> Value:
        """Return an operation, once shapes and element types agree."""
        made = Elementwise(operation, operands)
        self.type_of(made)
        return made

    def product(self, left: Value, right: Value) -> Value:
        """Return the product of two matrices, of a matrix and a vector, or of two vectors.

        A product with a vector is a sum of products along one axis: where that axis is
        distributed, each rank sums its part.
        """
        made: Value
        match len(self.type_of(left).extents), len(self.type_of(right).extents):
            case 2, 1:
                made = self._summed(left, Expand(right, 0), 1)
            case 1, 2:
                made = self._summed(Expand(left, 1), right, 0)
            case 1, 1:
                made = self._summed(left, right, None)
            case _:
                made = MatMul(left, right)
        self.type_of(made)  # shapes must agree
        return made

    def summed_products(self, left: Value, right: Value) -> Value:
        """Return the sum of all products."""
        extents = self.type_of(left).extents
        if not extents or extents != self.type_of(right).extents:
            raise NotUnderstood("products of arrays of several shapes")
        return self._summed(left, right, None)

    def _summed(self, left: Value, right: Value, axis: int | None) -> Value:
        products = Elementwise("multiply", (left, right))
        # the elements of a vector are multiplied with those of another, never stretched
        one, other = (self.type_of(side).extents[axis or 0] for side in (left, right))
        if one != other:
            raise NotUnderstood("a product of arrays whose extents may differ")
        return Reduction(products, axis, "add", self.type_of(products).dtype, fused=True)

    def same(self, operand: Value, dtype: str, order: str) -> Value:
        """Return the operand itself where nothing about it has to change, else a copy.

        What may share the memory of its operand, the caller of this has to find out.
        """
        if dtype != self.type_of(operand).dtype:
            return Copy(operand, dtype)
        if not isinstance(operand, Read) or not order:
            return operand
        whole_array = is_whole(operand.region, self.scope.array_type(operand.array).extents)
        declared = self.scope.declared.get(operand.array)
        lies = declared is not None and declared.spec.order == order
        return operand if whole_array and lies else Copy(operand, dtype)

    def fill(
        self, value: str, shape: Shape | None, dtype: str, order: str, like: Value | None = None
    ) -> Value:
        """Return a new array."""
        assert shape is not None
        return Fill(value, shape, dtype)

    def vector(self, extent: Expr | None, dtype: str) -> Value:
        """Return a new vector, which takes as long to make as one of a constant."""
        if extent is None:
            raise NotUnderstood("a vector of a length that is not known")
        return Fill("arange", (extent,), dtype)

    def flip(self, operand: Value, axis: int) -> Value:
        """Return a reversed operand.

        A scan of a reversed array, reversed back, is a scan from the other end.
        """
        if isinstance(operand, Scan) and operand.axis == axis and not operand.reverse:
            inner = operand.operand
            if isinstance(inner, Flip) and inner.axis == axis:
                return Scan(inner.operand, axis, operand.operation, operand.dtype, reverse=True)
        return Flip(operand, axis)

    def between(self, operand: Value, axis: int, before: int, behind: int) -> Value:
        """Return a part of an array that has a name."""
        if not isinstance(operand, Read):
            raise NotUnderstood("a part of something other than an array that has a name")
        along = [d for d, part in enumerate(operand.region) if not isinstance(part, Point)][axis]
        part = operand.region[along]
        if not isinstance(part, Range) or part.high == part.low:
            raise NotUnderstood("a part of nothing, or of a slice with a step")
        inner = Range(part.low + before, part.high - behind)
        region = (*operand.region[:along], inner, *operand.region[along + 1 :])
        return Read(operand.array, region)

    def flat(self, operand: Value) -> Value:
        """Refuse an array as a vector."""
        raise NotUnderstood("the elements of all axes in a row")

    def fourier(self, name: str, operand: Value, axis: int, dtype: str) -> Value:
        """Return a Fourier transform of as many elements."""
        return Fourier(operand, axis, dtype, inverse=name == "ifft")

    def joined(self, name: str, parts: cst.BaseExpression, axis: int) -> Value:
        """Refuse to join arrays, whose parts may lie on different ranks."""
        raise NotUnderstood(f"the time of np.{name} is not known")

    def unpriced(self, name: str, operands: tuple[Value, ...], shape: Shape, dtype: str) -> Value:
        """Refuse what takes a time that is not known."""
        raise NotUnderstood(f"the time of np.{name} is not known")
