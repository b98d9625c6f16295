"""What NumPy's functions are given in a program, and the steps and arrays that operations are."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence as Many
from functools import reduce

import advisor.ir.values as forms
from advisor.frontend.calls import Calls
from advisor.frontend.indices import calculated
from advisor.frontend.spmd.numpy_created import Maker, dtype_name, parts_of
from advisor.frontend.spmd.run import Run
from advisor.frontend.spmd.values import Array, Nothing, Number, Opaque, Sequence, Text, Value
from advisor.frontend.trees import NotUnderstood
from advisor.ir.kernel import mapped, rebuilt
from advisor.ir.shapes import ArrayType, ShapeConflict, agreed, describe, whole
from advisor.ir.spmd.memory import Contiguity, Order, Origin, View
from advisor.ir.spmd.steps import Allocate, Compute
from advisor.numpy_table import (
    PYTHON_COMPLEX,
    PYTHON_FLOAT,
    PYTHON_INTEGER,
    UNKNOWN_DTYPE,
    Shape,
    joined,
    promote,
    resized,
    strong,
)
from advisor.source import Span
from costdb.expr import Expr, num, to_text
from costdb.records import dataclass, field, replace


@dataclass(frozen=True, slots=True)
class ProgramDoor(Maker):
    """What a program's values say, and the steps that operations on its arrays are.

    Attributes
    ----------
    held : list of Value
        What the leaves of forms stand for, by their names.
    """

    held: list[Value] = field(default_factory=list)

    # what arguments say -------------------------------------------------------------------

    def value(self, argument: Value) -> forms.Value:
        """Return what is given."""
        self.held.append(argument)
        shape = argument.view.shape if isinstance(argument, Array) else None
        return forms.Read(str(len(self.held) - 1), whole(shape or ()))

    def behind(self, leaf: forms.Value) -> Value:
        """Return what a leaf stands for."""
        assert isinstance(leaf, forms.Read)
        return self.held[int(leaf.array)]

    def view(self, leaf: forms.Value) -> View:
        """Return the array that a leaf stands for."""
        found = self.behind(leaf)
        if not isinstance(found, Array):
            raise NotUnderstood("something that is not known to be an array")
        return found.view

    def array(self, argument: Value, name: str) -> forms.Value:
        """Return an array that is known to be one."""
        if not isinstance(argument, Array):
            raise NotUnderstood(f"np.{name} of something that is not known to be an array")
        return self.value(argument)

    def integer(self, argument: Value) -> int | None:
        """Return a whole number, through the values of sizes."""
        return self.run.integer(argument)

    def size(self, argument: Value, name: str) -> Expr:
        """Return a whole number, symbolic where need be."""
        found = self.run.number(argument, name)
        if found is None:
            raise NotUnderstood(f"`{name}` is no number")
        return found

    def shape(self, argument: Value) -> Shape | None:
        """Return a shape; None where it is not known."""
        return self.run.numbers(argument, "shape")

    def items(self, argument: Value) -> Many[Value] | None:
        """Return the entries of a list or tuple."""
        if isinstance(argument, Sequence) and argument.items is None:
            raise NotUnderstood("a list whose entries are not known")
        return argument.items if isinstance(argument, Sequence) else None

    def dtype(self, argument: Value) -> str:
        """Return an element type, which may be unknown."""
        return dtype_name(argument) or UNKNOWN_DTYPE

    def text(self, argument: Value) -> str | None:
        """Return a text."""
        return argument.value if isinstance(argument, Text) else None

    def is_none(self, argument: Value) -> bool:
        """Return whether it is None."""
        return isinstance(argument, Nothing)

    def written(self, argument: Value) -> str:
        """Return a text or a whole number; of others nothing is told."""
        if isinstance(argument, Text):
            return repr(argument.value)
        found = self.run.integer(argument)
        if isinstance(argument, Number) and argument.dtype == "bool" and found is not None:
            return str(bool(found))
        return "" if found is None else str(found)

    def constant(self, argument: Value) -> tuple[str, str]:
        """Return the element type of an array of one value; which value it is, is not told."""
        known = dtype_name(Text(argument.dtype)) if isinstance(argument, Number) else None
        return "?", known or UNKNOWN_DTYPE

    def may_be_complex(self, value: forms.Value) -> bool:
        """Return whether elements are complex."""
        return self.type_of(value).dtype.startswith("complex")

    def shares_out(self) -> bool:
        """Return whether ranks share out an array: each has its own."""
        return False

    def type_of(self, value: forms.Value) -> ArrayType:
        """Return element type and shape."""
        leaves = (part for part in forms.parts_of(value) if isinstance(part, forms.Read))
        for found in map(self.behind, leaves):
            if isinstance(found, Array) and found.view.shape is None:
                raise NotUnderstood("an array whose shape is not known")
        return self._described(value)

    def _held(self, leaf: str) -> ArrayType:
        match self.held[int(leaf)]:
            case Array(view):
                return ArrayType(view.dtype or UNKNOWN_DTYPE, ())
            case Number(dtype=dtype):
                return ArrayType(WEAK.get(dtype, dtype), ())
        return ArrayType(UNKNOWN_DTYPE, ())

    # what operations make ---------------------------------------------------------------------

    def made(self, form: forms.Value) -> forms.Value:
        """Return what an operation on leaves makes, and note the step that it takes."""
        return self.value(self._made(form))

    def _made(self, form: forms.Value) -> Value:
        match form:
            case forms.Elementwise(operation, parts):
                given = [self.behind(one) for one in parts if isinstance(one, forms.Read)]
                if len(given) < len(parts):
                    return self.computed(form)
                if all(isinstance(one, Number) for one in given):
                    made = self.computed(form)
                    dtype = made.dtype if isinstance(made, Number) else "float"
                    return replace(of_numbers(operation, given, self.run), dtype=dtype)
                if not any(isinstance(one, Array) for one in given):
                    return Opaque(f"numpy.{operation} of something that is not followed")
            case forms.Transpose(operand, axes):
                return self.permuted(self.view(operand), axes)
            case forms.Expand(operand, axis) if not isinstance(operand, forms.Read):
                return self._made(forms.Expand(self.made(operand), axis))
            case forms.Expand(operand) | forms.Flip(operand):
                # one that goes through an axis from its end is no stretch of memory
                kept = isinstance(form, forms.Expand)
                return self._seen(operand, describe(form, self._held), kept=kept)
            case forms.Windows():
                raise NotUnderstood("windows of an array")
        return self.computed(form)

    def computed(
        self,
        form: forms.Value,
        target: View | None = None,
        copied: View | None = None,
        places: tuple[forms.Value, ...] = (),
    ) -> Value:
        """Return what an operation makes, stored in a target where there is one; note the step.

        It may be the elements that are `copied` of an array, or be stored at some `places`.
        """
        run, span = self.run, self.span
        parts = (*forms.parts_of(form), *places)
        names = [part.array for part in parts if isinstance(part, forms.Read)]
        given = {name: self.held[int(name)] for name in dict.fromkeys(names)}
        arrays = {name: one.view for name, one in given.items() if isinstance(one, Array)}
        views, order = tuple(arrays.values()), {name: str(k) for k, name in enumerate(arrays)}
        # an operation in place gives as much as is there
        known = target is not None or not any(isinstance(one, Opaque) for one in given.values())
        known = known and all(view.shape is not None for view in views)
        found = self._described(form)
        fresh = target is None
        if target is None and (found.extents or not known):
            dtype = None if found.dtype == UNKNOWN_DTYPE else strong(found.dtype)
            extents = found.extents
            if isinstance(form, forms.Chosen):
                # as many on no two ranks
                extents = (self.unknown_length(varies=True), *extents[1:])
            target = self.fresh(
                dtype,
                extents if known else None,
                Origin.COMPUTED if copied is None else Origin.COPY,
                _order_of_result(form, views),
                copied=copied,
                sources=views if copied is None else (),
            )

        def leaf(part: object) -> forms.Value | None:
            if not isinstance(part, forms.Read):
                return None
            if part.array in order:
                return forms.Read(order[part.array], part.region)
            number, dtype = run.number(given[part.array]), self._held(part.array).dtype
            unknown = getattr(given[part.array], "text", "?")
            return forms.Scalar(unknown if number is None else to_text(number), dtype)

        value, at = (mapped(form, leaf), mapped(places, leaf)) if known else (None, ())
        fresh = fresh and target is not None
        run.emit(Compute(target, views, value, span, allocates=fresh, places=at))
        if target is not None:
            return Array(target)
        dtype = "float64" if found.dtype == UNKNOWN_DTYPE else strong(found.dtype)
        return Number(None, dtype, varies=True)

    def _described(self, form: forms.Value) -> ArrayType:
        def attempt(alike: Mapping[Expr, Expr]) -> ArrayType:
            return describe(rebuilt(form, lambda one: alike.get(one, one)), self._held)

        try:
            return agreed(attempt)
        except ShapeConflict as reason:
            raise NotUnderstood(str(reason)) from reason

    def misfit(self, conflict: ShapeConflict) -> NotUnderstood:
        """Return the problem that operands do not fit."""
        return NotUnderstood(str(conflict))

    def copy(self, operand: forms.Value, dtype: str, order: str, *, always: bool) -> forms.Value:
        """Return a copy, or the array itself."""
        view = self.view(operand)
        known = view.dtype if not dtype else None if dtype == UNKNOWN_DTYPE else dtype
        lies = {"C": Order.C, "F": Order.F}.get(order, _order_of(view))
        as_is = view.contiguity is Contiguity.YES and lies is view.order
        if not always and known == view.dtype and (order == "K" or as_is):
            return operand
        return self.value(self.copied(view, lies, dtype=known))

    def fill(
        self,
        value: str,
        shape: Shape | None,
        dtype: str,
        order: str,
        like: forms.Value | None = None,
    ) -> forms.Value:
        """Return a new array."""
        lies = {"C": Order.C, "F": Order.F}.get(order, Order.UNKNOWN)
        if like is not None:
            lies = _order_of(self.view(like))
        made = self.fresh(_known(dtype), shape, order=lies)
        self.run.emit(Allocate(made.buffer, self.span, bool(value)))
        return self.value(Array(made))

    def vector(self, made: forms.Fill, extent: Expr | None) -> forms.Value:
        """Return a new vector, whose length may be a symbol of its own."""
        extent = self.unknown_length() if extent is None else extent
        return self.fill(made.value, (extent,), made.dtype, "C")

    def _seen(self, operand: forms.Value, found: ArrayType, *, kept: bool) -> Value:
        """Return the same memory under another shape, in the same order where it is kept."""
        held, shape = self.behind(operand), found.extents
        if not isinstance(held, Array):
            return Array(self.fresh(_known(found.dtype), shape))
        region, turned = (held.view.region, held.view.transposed) if kept else (None, False)
        return self.seen(held.view, region=region, transposed=turned, flat=True, shown=shape)

    def between(self, operand: forms.Value, axis: int, before: int, behind: int) -> forms.Value:
        """Return a view."""
        view, shape = self.view(operand), self.type_of(operand).extents
        shape = resized(shape, axis, shape[axis] - before - behind)
        along = len(shape) - 1 - axis if view.transposed else axis
        parts = [part for part in view.region or () if not isinstance(part, forms.Point)]
        steps = {getattr(part, "step", 1) for part in parts}
        plain = len(parts) == len(shape) == len(view.region or ()) and steps == {1}
        if view.flat or not plain:
            return self.value(self._seen(operand, ArrayType("", shape), kept=False))
        low = getattr(parts[along], "low", num(0)) + before
        parts[along] = forms.Range(low, low + shape[axis])
        return self.value(self.seen(view, region=tuple(parts)))

    def flat(self, operand: forms.Value) -> forms.Value:
        """Return a view or a copy; a vector as it is."""
        view = self.view(operand)
        if len(view.shape or ()) == 1:
            return operand
        return self.value(self.flattened(view, copies=False))

    def joined(self, name: str, parts: Value, axis: int) -> forms.Value:
        """Return arrays and lists of numbers one behind the other, or beside one another."""
        views, shapes, dtypes, times = parts_of(parts)
        shape = joined(name, shapes, axis, times) if shapes else None
        if shape is None:
            made = self.fresh(None, None)
            self.run.emit(Compute(made, views, None, self.span, allocates=True))
            return self.value(Array(made))
        dtype = reduce(promote, [strong(one or UNKNOWN_DTYPE) for one in dtypes])
        leaves = tuple(self.value(Array(view)) for view in views)
        return self.made(forms.Called(name, leaves, shape, dtype, (("axis", str(axis)),)))


def _known(dtype: str) -> str | None:
    return None if dtype == UNKNOWN_DTYPE else dtype


def _order_of(view: View) -> Order:
    """Return in which order a new array lies that keeps that of a view."""
    several = view.shape is None or len(view.shape) > 1
    return Order.UNKNOWN if several and view.flat and view.region is None else view.order


_LAID_OUT_OTHERWISE = frozenset({"apply_along_axis", "einsum", "unique"})
"""Functions whose results may have axes in another order than all of their operands."""


def _order_of_result(form: forms.Value, views: tuple[View, ...]) -> Order:
    """Return in which order NumPy lays out a result.

    Of operands in C order results are in it, too. Others are kept by what goes over elements, and
    of all else nothing is told.
    """
    name = str(getattr(form, "name", ""))
    if isinstance(form, forms.MatMul):
        return Order.C
    if isinstance(form, forms.Fourier) or name in _LAID_OUT_OTHERWISE:
        return Order.UNKNOWN
    several = [view for view in views if view.shape is None or len(view.shape) > 1]
    orders = {_order_of(view) for view in several}
    if orders <= {Order.C}:
        return Order.C
    alike = isinstance(form, forms.Elementwise) and len({view.shape for view in several}) == 1
    return orders.pop() if alike and len(orders) == 1 else Order.UNKNOWN


WEAK = {"int": PYTHON_INTEGER, "float": PYTHON_FLOAT, "complex": PYTHON_COMPLEX}


def of_numbers(name: str, values: Many[Value], run: Run) -> Number:
    """Return the result of a function of numbers."""
    found = calculated(name, run.number(values[0]))
    return Number(found, "float", varies=found is None and run.varies(*values))


def operation(
    name: str, operands: Many[Value], run: Run, span: Span, target: View | None = None
) -> Value:
    """Return what an operator makes of arrays and numbers, stored in a target where it is stated.

    It is NumPy's function of that name, and ``matmul`` for products.
    """
    door = ProgramDoor(run, span)
    leaves = [*map(door.value, operands)]
    try:
        if name == "matmul":
            return door.behind(Calls(door).product(*leaves))
        if name == "power" and isinstance(operands[0], Array) and operands[0].view.dtype == "bool":
            raise NotUnderstood("a power of booleans, whose type depends on the exponent")
        return door.computed(forms.Elementwise(name, tuple(leaves)), target)
    except NotUnderstood:
        views = tuple(one.view for one in operands if isinstance(one, Array))
        made = target or door.fresh(None, None, Origin.COMPUTED)
        run.emit(Compute(made, views, None, span, allocates=target is None))
        return Array(made)
