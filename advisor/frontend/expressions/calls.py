"""Calls of NumPy's functions and of arrays' methods, as values of the intermediate form."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import libcst as cst

from advisor.dtypes import Kind, dtype_of
from advisor.frontend.expressions.arguments import (
    Arguments,
    axis_of,
    element_type,
    is_none,
    matched,
    required,
)
from advisor.frontend.expressions.composed import COMPOSED, OF_METHODS, Composed, reduced
from advisor.frontend.expressions.library_steps import steps_of
from advisor.frontend.expressions.scalars import scalar
from advisor.frontend.naming.scope import Scope
from advisor.frontend.syntax.guard import NotUnderstood
from advisor.ir.shapes import is_whole, kind_of_or_none
from advisor.ir.values import (
    Copy,
    Elementwise,
    Expand,
    Fill,
    Fourier,
    Gather,
    MatMul,
    PeriodicPad,
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
from costdb.expr import Expr, num

SCANS = {"cumsum": "add", "cumprod": "multiply"}
REDUCTIONS = {"sum": "add", "prod": "multiply", "max": "maximum", "min": "minimum", "mean": "add"}
_OF_DATA = frozenset(
    {"nonzero", "flatnonzero", "argwhere", "unique", "compress", "extract", "setdiff1d"}
)
METHODS = frozenset(
    {"copy", "astype", "transpose", "dot", "conj", *SCANS, *REDUCTIONS, *OF_METHODS}
)


class Calls:
    """Reads calls of one kernel.

    Parameters
    ----------
    scope : Scope
    read : callable
        Gives the value of an expression.
    """

    def __init__(self, scope: Scope, read: Callable[[cst.BaseExpression], Value]) -> None:
        self.scope = scope
        self.read = read

    def function(self, name: str, given: Sequence[cst.Arg]) -> Value:
        """Return the value of ``np.name(...)``.

        Raises
        ------
        NotUnderstood
            For a function, or an argument, outside the understood language.
        """
        match name:
            case "matmul" | "dot":
                return self.product(*self._pair(given, name))
            case "inner" | "vdot":
                return self._inner(*self._pair(given, name), name)
            case "outer":
                return self._outer(*self._pair(given, name))
            case "take":
                return self._taken(*self._pair(given, name))
            case "fft.fft" | "fft.ifft":
                return self._fourier(name.removeprefix("fft."), given)
            case "sort":
                return self._sorted(matched(given, ("a", "axis"), name))
            case "zeros" | "ones" | "empty" | "full":
                return self._created(name, given)
            case "zeros_like" | "ones_like" | "empty_like" | "full_like":
                return self._created_like(name.removesuffix("_like"), given)
            case "roll":
                return self._rolled(matched(given, ("a", "shift", "axis"), name))
            case "pad":
                return self._padded(matched(given, ("array", "pad_width", "mode"), name))
            case "asarray" | "ascontiguousarray":
                # what may share the memory of its operand, the caller of this has to find out
                return self._same(name, matched(given, ("a", "dtype"), name))
            case "array":
                return self._array(matched(given, ("object", "dtype", "copy", "order"), name))
            case "bincount":
                return self._tallied(matched(given, ("x", "weights", "minlength"), name))
            case "einsum":
                return self._composed.summed_products(given)
        if name in COMPOSED and given and given[0].keyword is None and not given[0].star:
            operand = self._array_value(given[0].value, name)
            return self._composed.value(name, operand, given[1:], function=True)
        if name in METHODS and given and given[0].keyword is None and not given[0].star:
            operand = self._array_value(given[0].value, name)
            return self.method(name, operand, given[1:], function=True)
        if name in _OF_DATA:
            raise NotUnderstood(f"np.{name}, whose length only the data know")
        raise NotUnderstood(f"np.{name} is not understood")

    def method(
        self, name: str, operand: Value, given: Sequence[cst.Arg], *, function: bool = False
    ) -> Value:
        """Return the value of a method of an array, or of the function of the same name."""
        found = self.scope.type_of(operand)
        if name == "copy":
            matched(given, ("order",), name)
            return Copy(operand, found.dtype)
        if name == "astype":
            arguments = matched(given, ("dtype", "order", "casting"), name)
            return Copy(operand, self._dtype(required(arguments, "dtype", name)))
        if name == "transpose":
            return self._transposed(operand, given)
        if name == "dot":
            other = required(matched(given, ("b",), name), "b", name)
            return self.product(operand, self._array_value(other, name))
        if name == "conj":
            matched(given, (), name)
            return Elementwise("conjugate", (operand,))
        if name in OF_METHODS:
            return self._composed.value(name, operand, given, function=function)
        dimensions = len(found.extents)
        if name in SCANS:
            arguments = matched(given, ("axis", "dtype"), name)
            axis = axis_of(arguments.get("axis"), dimensions, name)
            dtype = self._given_dtype(arguments, _accumulator(found.dtype))
            return Scan(operand, axis, SCANS[name], dtype)
        if name not in REDUCTIONS:
            raise NotUnderstood(f"`{name}` is not understood")
        steps = steps_of(name, function=function)
        if name in ("max", "min"):
            arguments = matched(given, ("axis", "keepdims", "initial"), name)
            dtype = found.dtype
            if "initial" in arguments:
                made = reduced(operand, arguments, REDUCTIONS[name], dtype, dimensions, steps)
                return Elementwise(REDUCTIONS[name], (made, self.read(arguments["initial"])))
        else:
            arguments = matched(given, ("axis", "dtype", "keepdims"), name)
            dtype = _accumulator(found.dtype)
            if name == "mean" and kind_of_or_none(dtype) is Kind.INTEGER:
                dtype = "float64"
            dtype = self._given_dtype(arguments, dtype)
        return reduced(operand, arguments, REDUCTIONS[name], dtype, dimensions, steps)

    @property
    def _composed(self) -> Composed:
        return Composed(self.scope, self.read, self.product)

    def product(self, left: Value, right: Value) -> Value:
        """Return the product of two matrices, of a matrix and a vector, or of two vectors.

        A product with a vector is a sum of products along one axis: where that axis is
        distributed, each rank sums its part.
        """
        made: Value
        match self._dimensions(left), self._dimensions(right):
            case 2, 1:
                made = self._summed(left, Expand(right, 0), 1)
            case 1, 2:
                made = self._summed(Expand(left, 1), right, 0)
            case 1, 1:
                made = self._summed(left, right, None)
            case _:
                made = MatMul(left, right)
        self.scope.type_of(made)  # shapes must agree
        return made

    def _summed(self, left: Value, right: Value, axis: int | None) -> Reduction:
        products = Elementwise("multiply", (left, right))
        # the elements of a vector are multiplied with those of another, never stretched
        if self._summed_extent(left, axis) != self._summed_extent(right, axis):
            raise NotUnderstood("a product of arrays whose extents may differ")
        return Reduction(products, axis, "add", self.scope.type_of(products).dtype, fused=True)

    def _summed_extent(self, value: Value, axis: int | None) -> Expr:
        return self.scope.type_of(value).extents[axis or 0]

    def _inner(self, left: Value, right: Value, name: str) -> Value:
        if self._dimensions(left) != 1 or self._dimensions(right) != 1:
            raise NotUnderstood(f"np.{name} of something other than two vectors")
        return self.product(left, right)

    def reversed_axes(self, operand: Value) -> Transpose:
        """Return the transposition that an array's ``T`` is."""
        dimensions = len(self.scope.type_of(operand).extents)
        return Transpose(operand, tuple(reversed(range(dimensions))))

    def _pair(self, given: Sequence[cst.Arg], name: str) -> tuple[Value, Value]:
        arguments = matched(given, ("a", "b"), name)
        if len(arguments) != 2 or any(argument.keyword for argument in given):
            raise NotUnderstood(f"np.{name} of something other than two arrays")
        return self._array_value(arguments["a"], name), self._array_value(arguments["b"], name)

    def _array_value(self, node: cst.BaseExpression, name: str) -> Value:
        value = self.read(node)
        if isinstance(value, Scalar):
            raise NotUnderstood(f"np.{name} of a number")
        return value

    def _dimensions(self, value: Value) -> int:
        return len(self.scope.type_of(value).extents)

    def _dtype(self, node: cst.BaseExpression) -> str:
        if isinstance(node, cst.Attribute) and node.attr.value == "dtype":
            return self.scope.type_of(self._array_value(node.value, "dtype")).dtype
        return element_type(node, self.scope)

    def _given_dtype(self, arguments: Arguments, default: str) -> str:
        wanted = arguments.get("dtype")
        return default if wanted is None else self._dtype(wanted)

    def _outer(self, left: Value, right: Value) -> Value:
        made = Elementwise("multiply", (Expand(left, 1), Expand(right, 0)))
        if self._dimensions(left) != 1 or self._dimensions(right) != 1:
            raise NotUnderstood("np.outer of something other than two vectors")
        return made

    def _taken(self, operand: Value, places: Value) -> Gather:
        found = self.scope.type_of(places)
        if self._dimensions(operand) != 1 or not found.extents:
            raise NotUnderstood("np.take from something other than a vector")
        if kind_of_or_none(found.dtype) is not Kind.INTEGER:
            raise NotUnderstood("np.take at places that are no whole numbers")
        return Gather(operand, places)

    def _tallied(self, arguments: Arguments) -> Tally:
        places = self._array_value(required(arguments, "x", "bincount"), "bincount")
        found = self.scope.type_of(places)
        if len(found.extents) != 1 or kind_of_or_none(found.dtype) is not Kind.INTEGER:
            raise NotUnderstood("np.bincount of something other than a vector of whole numbers")
        # with larger numbers than that the result would be longer, and fit nothing else
        extent = scalar(required(arguments, "minlength", "bincount"), self.scope)
        node = arguments.get("weights")
        if is_none(node) or node is None:
            return Tally(places, None, extent, "int64")
        return Tally(places, self._array_value(node, "bincount"), extent, "float64")

    def _transposed(self, operand: Value, given: Sequence[cst.Arg]) -> Transpose:
        axes = matched(given, ("axes",), "transpose").get("axes")
        if axes is None:
            return self.reversed_axes(operand)
        if not isinstance(axes, cst.Tuple):
            raise NotUnderstood("the axes of a transposition are no literal tuple")
        dimensions = self._dimensions(operand)
        order = tuple(axis_of(element.value, dimensions, "transpose") for element in axes.elements)
        if sorted(order) != list(range(dimensions)):
            raise NotUnderstood("the axes of a transposition are no permutation")
        return Transpose(operand, order)

    def _fourier(self, name: str, given: Sequence[cst.Arg]) -> Fourier:
        arguments = matched(given, ("a", "n", "axis"), name)
        if "n" in arguments:
            raise NotUnderstood("a Fourier transform of another length")
        operand = self._array_value(required(arguments, "a", name), name)
        found = self.scope.type_of(operand)
        if kind_of_or_none(found.dtype) is None:
            raise NotUnderstood("a Fourier transform of something of unknown type")
        if found.dtype in ("float16", "float32", "complex64"):
            # NumPy 2 keeps single precision, NumPy 1 does not
            raise NotUnderstood("a Fourier transform in single precision")
        axis = self._last_axis(arguments, operand, name)
        return Fourier(operand, axis, "complex128", inverse=name == "ifft")

    def _sorted(self, arguments: Arguments) -> Sort:
        operand = self._array_value(required(arguments, "a", "sort"), "sort")
        return Sort(operand, self._last_axis(arguments, operand, "sort"))

    def _last_axis(self, arguments: Arguments, operand: Value, name: str) -> int:
        dimensions, node = self._dimensions(operand), arguments.get("axis")
        if not dimensions:
            raise NotUnderstood(f"np.{name} of a number")
        return dimensions - 1 if node is None else axis_of(node, dimensions, name)

    def _array(self, arguments: Arguments) -> Copy:
        copy = arguments.get("copy")
        if copy is not None and not (isinstance(copy, cst.Name) and copy.value == "True"):
            raise NotUnderstood("np.array that may share the memory of its operand")
        operand = self._array_value(required(arguments, "object", "array"), "array")
        return Copy(operand, self._given_dtype(arguments, self.scope.type_of(operand).dtype))

    def _same(self, name: str, arguments: Arguments) -> Value:
        """Return the operand itself where nothing about it has to change, else a copy."""
        operand = self._array_value(required(arguments, "a", name), name)
        found = self.scope.type_of(operand)
        dtype = self._given_dtype(arguments, found.dtype)
        if dtype != found.dtype:
            return Copy(operand, dtype)
        if not isinstance(operand, Read):
            return operand
        whole = is_whole(operand.region, self.scope.array_type(operand.array).extents)
        if name == "asarray" or (whole and self._is_in_c_order(operand.array)):
            return operand
        return Copy(operand, dtype)

    def _is_in_c_order(self, array: str) -> bool:
        declared = self.scope.declared.get(array)
        return declared is not None and declared.spec.order == "C"

    def _created(self, name: str, given: Sequence[cst.Arg]) -> Fill:
        full = name == "full"
        parameters = ("shape", *(("fill_value",) if full else ()), "dtype", "order")
        arguments = matched(given, parameters, name)
        shape = self._shape(required(arguments, "shape", name))
        value, default = _filled(name, arguments)
        return Fill(value, shape, self._given_dtype(arguments, default))

    def _created_like(self, name: str, given: Sequence[cst.Arg]) -> Fill:
        parameters = ("a", *(("fill_value",) if name == "full" else ()), "dtype", "order")
        arguments = matched(given, parameters, f"{name}_like")
        like = self.scope.type_of(self._array_value(required(arguments, "a", name), name))
        value, _ = _filled(name, arguments)
        return Fill(value, like.extents, self._given_dtype(arguments, like.dtype))

    def _shape(self, node: cst.BaseExpression) -> tuple[Expr, ...]:
        if isinstance(node, cst.Tuple | cst.List):
            if any(isinstance(element, cst.StarredElement) for element in node.elements):
                raise NotUnderstood("a starred element of a shape")
            return tuple(scalar(element.value, self.scope) for element in node.elements)
        if isinstance(node, cst.Attribute) and node.attr.value == "shape":
            return self.scope.type_of(self._array_value(node.value, "shape")).extents
        return (scalar(node, self.scope),)

    def _rolled(self, arguments: Arguments) -> Value:
        operand = self._array_value(required(arguments, "a", "roll"), "roll")
        shift, axis = required(arguments, "shift", "roll"), arguments.get("axis")
        dimensions = self._dimensions(operand)
        if not isinstance(shift, cst.Tuple):
            return Roll(operand, axis_of(axis, dimensions, "roll"), scalar(shift, self.scope))
        shifts = shift.elements
        if not isinstance(axis, cst.Tuple) or len(axis.elements) != len(shifts) or not shifts:
            raise NotUnderstood("np.roll whose shifts and axes are not written out side by side")
        rolled = operand
        for one, along in zip(shifts, axis.elements, strict=True):
            if isinstance(one, cst.StarredElement) or isinstance(along, cst.StarredElement):
                raise NotUnderstood("a starred shift or axis of np.roll")
            amount = scalar(one.value, self.scope)
            rolled = Roll(rolled, axis_of(along.value, dimensions, "roll"), amount)
        return rolled

    def _padded(self, arguments: Arguments) -> Value:
        operand = self._array_value(required(arguments, "array", "pad"), "pad")
        mode = required(arguments, "mode", "pad")
        if not isinstance(mode, cst.SimpleString) or mode.evaluated_value != "wrap":
            raise NotUnderstood("np.pad other than mode='wrap'")
        width = required(arguments, "pad_width", "pad")
        if not isinstance(width, cst.Tuple) or len(width.elements) != self._dimensions(operand):
            raise NotUnderstood("np.pad whose widths are not written out by dimension")
        padded = operand
        for axis, element in enumerate(width.elements):
            if not isinstance(element.value, cst.Tuple) or len(element.value.elements) != 2:
                raise NotUnderstood("np.pad whose widths are not written out by dimension")
            before, after = (scalar(part.value, self.scope) for part in element.value.elements)
            if before != num(0) or after != num(0):
                padded = PeriodicPad(padded, axis, before, after)
        if isinstance(padded, Read):
            return Copy(padded, self.scope.type_of(padded).dtype)
        return padded


def _accumulator(dtype: str) -> str:
    """Return the type in which NumPy sums: no integer narrower than the platform's."""
    kind = kind_of_or_none(dtype)
    if kind is Kind.BOOLEAN:
        return "int64"
    if kind is Kind.INTEGER:
        return "int64" if dtype_of(dtype).signed else "uint64"
    return dtype


def _filled(name: str, arguments: Arguments) -> tuple[str, str]:
    """Return the constant of a fresh array, and its element type where none is asked for."""
    if name != "full":
        return {"zeros": "0", "ones": "1", "empty": ""}[name], "float64"
    node = required(arguments, "fill_value", name)
    if isinstance(node, cst.Integer):
        return node.value, "int64"
    if isinstance(node, cst.Float):
        return node.value, "float64"
    raise NotUnderstood("np.full with a value that is no literal")
