"""What NumPy's functions are given in a kernel, and the values that they make there."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import libcst as cst

from advisor.dtypes import Kind, UnknownDtype, dtype_of
from advisor.frontend.expressions.indices import Known, known, scalar, whole
from advisor.frontend.naming.names import resolve
from advisor.frontend.naming.scope import Scope
from advisor.frontend.syntax.guard import NotUnderstood
from advisor.ir.shapes import ArrayType, is_whole, kind_of_or_none
from advisor.ir.values import (
    Copy,
    Elementwise,
    Fill,
    Flip,
    Point,
    Range,
    Read,
    Reduction,
    Scalar,
    Scan,
    Value,
)
from advisor.numpy_shapes import Shape
from advisor.numpy_table import PYTHON_INTEGER, strong
from costdb.expr import Expr
from costdb.records import dataclass

_BUILTIN_TYPES = frozenset({"int", "float", "bool", "complex"})


@dataclass(frozen=True, slots=True)
class KernelDoor:
    """What a kernel's arguments say, and the values that operations on arrays are."""

    scope: Scope
    value: Callable[[Known], Value]

    def array(self, argument: Known, name: str) -> Value:
        """Return the array that an argument is."""
        value = self.value(argument)
        if isinstance(value, Scalar):
            raise NotUnderstood(f"np.{name} of a number")
        return value

    def integer(self, argument: Known) -> int | None:
        """Return a whole number that depends on no size."""
        return whole(known(argument, self.scope))

    def size(self, argument: Known, name: str) -> Expr:
        """Return a whole number over sizes."""
        return scalar(argument, self.scope)

    def shape(self, argument: Known) -> Shape:
        """Return a shape that is written out, or that of an array."""
        items = self.items(argument)
        return tuple(scalar(one, self.scope) for one in ((argument,) if items is None else items))

    def items(self, argument: Known) -> Sequence[Known] | None:
        """Return what a tuple or list consists of."""
        found = known(argument, self.scope)
        return found if isinstance(found, tuple) else None

    def dtype(self, argument: Known) -> str:
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
            full = (isinstance(node, cst.CSTNode) and resolve(node, scope.imports)) or ""
            if not full.startswith("numpy."):
                raise NotUnderstood("an element type that cannot be read")
            name = full.removeprefix("numpy.")
        try:
            return dtype_of(name).name
        except UnknownDtype as error:
            raise NotUnderstood(str(error)) from error

    def text(self, argument: Known) -> str | None:
        """Return a text that is written out."""
        return str(argument.evaluated_value) if isinstance(argument, cst.SimpleString) else None

    def truth(self, argument: Known) -> bool | None:
        """Return a truth value that is written out."""
        known = isinstance(argument, cst.Name) and argument.value in ("True", "False")
        return argument.value == "True" if known and isinstance(argument, cst.Name) else None

    def is_none(self, argument: Known) -> bool:
        """Return whether an argument is None."""
        return isinstance(argument, cst.Name) and argument.value == "None"

    def constant(self, argument: Known) -> tuple[str, str]:
        """Return a number that is written out."""
        if isinstance(argument, cst.Integer | cst.Float):
            return argument.value, "int64" if isinstance(argument, cst.Integer) else "float64"
        raise NotUnderstood("np.full with a value that is no literal")

    def type_of(self, value: Value) -> ArrayType:
        """Return element type and shape of a value."""
        return self.scope.type_of(value)

    def made(self, form: Value) -> Value:
        """Return an operation, once shapes and element types agree."""
        match form:
            case Elementwise():
                return self._applied(form)
            case Flip(Scan(Flip(inner, first), along, operation, dtype, False), last) if (
                first == along == last
            ):
                # a scan of a reversed array, reversed back, is a scan from the other end
                form = Scan(inner, along, operation, dtype, reverse=True)
            case Reduction(Elementwise(_, sides), axis, fused=True):
                # the elements of a vector are multiplied with those of another, never stretched
                shapes = [self.type_of(side).extents for side in sides]
                one, other = (
                    shapes if axis is None else (shape[axis : axis + 1] for shape in shapes)
                )
                if not one or one != other:
                    raise NotUnderstood("a product of arrays whose extents may differ")
        self.type_of(form)
        return form

    def _applied(self, form: Elementwise) -> Value:
        """Return an operation element by element, of numbers alone a number."""
        operation, parts = form.operation, form.operands
        found = self.type_of(form)
        numbers = [part for part in parts if isinstance(part, Scalar)]
        if operation == "power" and self.type_of(parts[0]).dtype == "bool":
            raise NotUnderstood("a power of booleans, whose type depends on the exponent")
        if len(numbers) < len(parts):
            return form
        if operation == "power" and not _has_known_type(*numbers):
            raise NotUnderstood("a power of a number, whose type depends on its sign")
        # unlike an operator, a function makes NumPy's number of a Python one
        dtype = strong(found.dtype) if form.called else found.dtype
        return Scalar(f"{operation}({', '.join(part.text for part in numbers)})", dtype)

    def copy(self, operand: Value, dtype: str, order: str, *, always: bool) -> Value:
        """Return a copy, or the operand itself where nothing about it has to change.

        What may share the memory of its operand, the caller of this has to find out.
        """
        own = self.type_of(operand).dtype
        copied = Copy(operand, dtype or own)
        if always or copied.dtype != own:
            return copied
        if not isinstance(operand, Read) or order == "K":
            return operand
        whole_array = is_whole(operand.region, self.scope.array_type(operand.array).extents)
        declared = self.scope.declared.get(operand.array)
        lies = declared is not None and declared.spec.order == order
        return operand if whole_array and lies else copied

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

    def joined(self, name: str, parts: Known, axis: int) -> Value:
        """Refuse to join arrays, whose parts may lie on different ranks."""
        raise NotUnderstood(f"the time of np.{name} is not known")

    def unpriced(self, name: str, operands: tuple[Value, ...], shape: Shape, dtype: str) -> Value:
        """Refuse what takes a time that is not known."""
        raise NotUnderstood(f"the time of np.{name} is not known")


def _has_known_type(base: Scalar, exponent: Scalar) -> bool:
    """Return whether the type of a power of numbers follows from the types of both.

    A whole number to a negative power is a fraction, and a negative one to a fraction is complex.
    """
    if exponent.dtype == PYTHON_INTEGER:
        whole_base = base.dtype == PYTHON_INTEGER or kind_of_or_none(base.dtype) is Kind.INTEGER
        return not whole_base or exponent.text.isdigit()
    return base.dtype != PYTHON_INTEGER or base.text.isdigit()
