"""What NumPy's functions are given in a program, and the steps and arrays that they make there."""

from __future__ import annotations

from collections.abc import Sequence as Many

from advisor.frontend.expressions.arguments import Given
from advisor.frontend.expressions.calls import MADE_OF_NUMBERS, VIEWS, Calls
from advisor.frontend.spmd import elementwise
from advisor.frontend.spmd.indexing import subscript
from advisor.frontend.spmd.numpy_created import (
    BY_KEYWORD,
    copied_array,
    dtype_name,
    flatten,
    numpy_number,
    parts_of,
    permuted,
    stated_dtype,
    unknown_function,
)
from advisor.frontend.spmd.run import Run
from advisor.frontend.spmd.values import (
    WHOLE_SLICE,
    Arguments,
    Array,
    Nothing,
    Number,
    Sequence,
    Slice,
    Text,
    Value,
)
from advisor.frontend.syntax.guard import NotUnderstood
from advisor.ir.shapes import ArrayType
from advisor.ir.spmd.memory import Order, Origin, View
from advisor.ir.spmd.steps import Allocate, Compute, Copy
from advisor.numpy_shapes import Shape, expanded, joined, reduced, resized
from advisor.numpy_table import PARAMETERS, REDUCTIONS, SAME_AS, UNKNOWN_DTYPE, reduced_dtype
from advisor.source import Span
from costdb.expr import Expr, log2, num
from costdb.records import dataclass, replace


@dataclass(frozen=True, slots=True)
class ProgramDoor:
    """What a program's values say, and the steps that operations on its arrays are."""

    run: Run
    span: Span
    target: str

    # what arguments say -------------------------------------------------------------------

    def value(self, argument: Value) -> Value:
        """Return what is given."""
        return argument

    def array(self, argument: Value, name: str) -> Array:
        """Return an array that is known to be one."""
        if not isinstance(argument, Array):
            raise NotUnderstood(f"np.{name} of something that is not known to be an array")
        return argument

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

    def truth(self, argument: Value) -> bool | None:
        """Return a truth value."""
        found = self.run.integer(argument)
        return None if found is None else bool(found)

    def is_none(self, argument: Value) -> bool:
        """Return whether it is None."""
        return isinstance(argument, Nothing)

    def constant(self, argument: Value) -> tuple[str, str]:
        """Return the element type of an array of one value; which value it is, is not told."""
        known = numpy_number(argument.dtype) if isinstance(argument, Number) else None
        return "?", known or UNKNOWN_DTYPE

    def type_of(self, value: Value) -> ArrayType:
        """Return element type and shape."""
        if not isinstance(value, Array):
            if isinstance(value, Number):
                return ArrayType(elementwise.WEAK.get(value.dtype, value.dtype), ())
            return ArrayType(UNKNOWN_DTYPE, ())
        if value.view.shape is None:
            raise NotUnderstood("an array whose shape is not known")
        return ArrayType(value.view.dtype or UNKNOWN_DTYPE, value.view.shape)

    # what operations make -----------------------------------------------------------------

    def _fresh(
        self, dtype: str, shape: Shape | None, sources: tuple[View, ...], order: Order = Order.C
    ) -> View:
        known = None if dtype == UNKNOWN_DTYPE else dtype
        origin = Origin.COMPUTED if sources else Origin.NEW
        text = self.run.text_of(self.span)
        return self.run.fresh(text, known, shape, origin, self.span, order, sources=sources)

    def _made(
        self,
        what: str,
        operands: tuple[Value, ...],
        shape: Shape,
        dtype: str,
        each: Expr | None,
        along: tuple[int, Expr] | None = None,
    ) -> Value:
        """Return what a step with so much work for an element of its first operand makes."""
        views = tuple(value.view for value in operands if isinstance(value, Array))
        made = self._fresh(dtype, shape, views) if shape else None
        count = views[0].count if views else None
        work = None if each is None or count is None else count * each
        self.run.emit(Compute(made, views, work, what, self.span, "", *(along or (None, None))))
        if made is not None:
            return Array(made)
        return Number(None, "float" if dtype == UNKNOWN_DTYPE else dtype, varies=True)

    def _along(self, operand: Value, axis: int) -> tuple[int, Expr]:
        shape = self.type_of(operand).extents
        return len(shape) - 1 - axis, shape[axis]

    def elementwise(self, operation: str, operands: tuple[Value, ...]) -> Value:
        """Return an array, or the number that an operation on numbers gives."""
        if any(isinstance(one, Array) for one in operands):
            return elementwise.elementwise(operands, self.run, self.span, operation)
        return elementwise.of_numbers(operation, operands, self.run)

    def reduction(self, operand: Value, axis: int | None, operation: str, dtype: str) -> Value:
        """Return a reduction, of everything a number."""
        shape = reduced(self.type_of(operand).extents, axis)
        along = None if axis is None or not shape else self._along(operand, axis)
        return self._made("reduction", (operand,), shape, dtype, num(1), along)

    def scan(self, operand: Value, axis: int, operation: str, dtype: str) -> Value:
        """Return a scan."""
        shape = self.type_of(operand).extents
        return self._made("scan", (operand,), shape, dtype, num(1), self._along(operand, axis))

    def product(self, left: Value, right: Value) -> Value:
        """Return a product."""
        return elementwise.product(left, right, self.run, self.span)

    def summed_products(self, left: Value, right: Value) -> Value:
        """Return the sum of all products."""
        return self.product(self.flat(left), self.flat(right))

    def copy(self, operand: Value, dtype: str) -> Value:
        """Return a copy."""
        return copied_array(self.array(operand, "copy").view, self.run, self.span, dtype=dtype)

    def same(self, operand: Value, dtype: str, order: str) -> Value:
        """Refuse: what shares memory is read where its layout is."""
        raise NotUnderstood("an array that may be shared")

    def fill(
        self, value: str, shape: Shape | None, dtype: str, order: str, like: Value | None = None
    ) -> Value:
        """Return a new array."""
        lies = {"C": Order.C, "F": Order.F}.get(order, Order.UNKNOWN)
        if isinstance(like, Array):
            lies = like.view.order
        made = self._fresh(dtype, shape, (), lies)
        self.run.emit(Allocate(made.buffer, self.span, bool(value)))
        return Array(made)

    def vector(self, extent: Expr | None, dtype: str) -> Value:
        """Return a new vector, whose length may be a symbol of its own."""
        if extent is None:
            why = "its length is not known"
            extent = self.run.symbols.unknown(f"{self.target or 'array'}.n0", why, self.span)
        return self.fill("arange", (extent,), dtype, "C")

    def _seen(self, operand: Value, shape: Shape, *, kept: bool) -> Value:
        """Return the same memory under another shape, in the same order where it is kept."""
        if not isinstance(operand, Array):
            return Array(self._fresh(self.type_of(operand).dtype, shape, ()))
        view, text = operand.view, self.run.text_of(self.span)
        region = view.region if kept else None
        turned = kept and view.transposed
        return Array(View(view.buffer, region, text, self.span, turned, flat=True, shown=shape))

    def expand(self, operand: Value, axis: int) -> Value:
        """Return a view."""
        return self._seen(operand, expanded(self.type_of(operand).extents, axis), kept=True)

    def transpose(self, operand: Value, axes: tuple[int, ...]) -> Value:
        """Return a view."""
        return permuted(self.array(operand, "transpose").view, axes, self.run, self.span)

    def flip(self, operand: Value, axis: int) -> Value:
        """Return a view that goes through an axis from its end: none that is one stretch."""
        return self._seen(operand, self.type_of(operand).extents, kept=False)

    def between(self, operand: Value, axis: int, before: int, behind: int) -> Value:
        """Return a view."""
        shape = self.type_of(operand).extents
        parts = [WHOLE_SLICE] * len(shape)
        parts[axis] = Slice(Number(num(before)), Number(shape[axis] - behind), Nothing())
        text = self.run.text_of(self.span)
        index = Sequence(tuple(parts), is_list=False)
        found = subscript(operand, index, self.run, self.span, text)
        if isinstance(found, Array) and found.view.shape is not None:
            return found
        return self._seen(operand, resized(shape, axis, shape[axis] - before - behind), kept=False)

    def flat(self, operand: Value) -> Value:
        """Return a view or a copy."""
        return flatten(self.array(operand, "ravel").view, self.run, self.span, copies=False)

    def roll(self, operand: Value, axis: int, amount: Expr) -> Value:
        """Return a copy."""
        found = self.type_of(operand)
        return self._made("roll", (operand,), found.extents, found.dtype, num(0))

    def pad(self, operand: Value, axis: int, before: Expr, after: Expr) -> Value:
        """Return a larger copy."""
        found = self.type_of(operand)
        shape = resized(found.extents, axis, found.extents[axis] + before + after)
        return self._made("pad", (operand,), shape, found.dtype, num(0))

    def sort(self, operand: Value, axis: int) -> Value:
        """Return a sorted copy."""
        found, along = self.type_of(operand), self._along(operand, axis)
        each = log2(along[1])
        return self._made("sort", (operand,), found.extents, found.dtype, each, along)

    def fourier(self, name: str, operand: Value, axis: int, dtype: str) -> Value:
        """Return transforms."""
        shape, along = self.type_of(operand).extents, self._along(operand, axis)
        return self._made("fourier", (operand,), shape, dtype, 5 * log2(along[1]), along)

    def gather(self, operand: Value, places: Value) -> Value:
        """Return a copy of some elements."""
        return subscript(operand, places, self.run, self.span, self.run.text_of(self.span))

    def tally(self, places: Value, weights: Value | None, extent: Expr, dtype: str) -> Value:
        """Return counts."""
        operands = (places,) if weights is None else (places, weights)
        return self._made("tally", operands, (extent,), dtype, num(1))

    def joined(self, name: str, parts: Value, axis: int) -> Value:
        """Return arrays and lists of numbers one behind the other, or beside one another."""
        views, shapes, dtypes, times = parts_of(parts)
        shape = joined(name, shapes, axis, times) if shapes else None
        dtype = next(iter(dtypes)) if len(dtypes) == 1 else None
        text = self.run.text_of(self.span)
        made = self.run.fresh(text, dtype, shape, Origin.COMPUTED, self.span, sources=views)
        work = num(0) if shape else None
        self.run.emit(Compute(made, views, work, "elementwise", self.span))
        return Array(made)

    def unpriced(self, name: str, operands: tuple[Value, ...], shape: Shape, dtype: str) -> Value:
        """Return a result of known shape and type."""
        return self._made("call", operands, shape, dtype, None)


def called(name: str, owner: Array | None, arguments: Arguments, run: Run, span: Span) -> Value:
    """Return what a function gives, or a method of an owner, and note the steps that it takes.

    Only what it gives has the name that it is assigned to, or is stored in ``out=``. Where the
    table does not tell that, as much is told as is known.
    """
    noted, targets = len(run.steps[-1]), run.targets
    out = arguments.keyword("out")
    given = [Given(a.value, a.keyword, bool(a.star)) for a in arguments.all if a.keyword != "out"]
    run.targets = ()
    calls = Calls(ProgramDoor(run, span, targets[0] if targets else ""))
    try:
        found = calls.function(name, given) if owner is None else calls.method(name, owner, given)
        if isinstance(found, Array):
            return _settled(found, run, noted, targets, out)
        if not isinstance(out, Array):
            return found
    except NotUnderstood:
        pass
    finally:
        run.targets = targets
    del run.steps[-1][noted:]
    first = owner or arguments.at(0)
    return _of_unknown_shape(SAME_AS.get(name, name), first, arguments, run, span)


def _of_unknown_shape(
    name: str, first: Value | None, arguments: Arguments, run: Run, span: Span
) -> Value:
    row, dtype = REDUCTIONS.get(name), stated_dtype(arguments, BY_KEYWORD, None)
    text = run.text_of(span)
    arrays = any(isinstance(value, Array) for value in arguments.values())
    if name.endswith("_like") or (name in MADE_OF_NUMBERS and not arrays):
        view = run.fresh(text, dtype, None, Origin.NEW, span, Order.UNKNOWN)
        run.emit(Allocate(view.buffer, span))
        return Array(view)
    if not isinstance(first, Array) or name not in PARAMETERS:
        return unknown_function(name, arguments, run, span)
    view = first.view
    of_all = not {"axis", "keepdims", "where", "out"} & arguments.keywords.keys()
    if row is not None and of_all and len(arguments.positional) <= (first is arguments.at(0)):
        found = dtype or reduced_dtype(row.result, view.dtype or UNKNOWN_DTYPE)
        run.emit(Compute(None, (view,), view.count, "reduction", span))
        return Number(None, "float" if found == UNKNOWN_DTYPE else found, varies=True)
    if name in VIEWS:
        return Array(View(view.buffer, None, text, span))
    made = run.fresh(text, None, None, Origin.COMPUTED, span, sources=(view,))
    run.emit(Compute(made, (view,), None, "call", span))
    return Array(made)


def _settled(
    made: Array, run: Run, noted: int, targets: tuple[str, ...], out: Value | None
) -> Array:
    """Return an array under the name that it is assigned to, or where it is stored."""
    steps, view = run.steps[-1], made.view
    own = [at for at in range(noted, len(steps)) if _written(steps[at]) == view.buffer]
    if isinstance(out, Array):
        if out.view.shape not in (None, view.shape):
            raise NotUnderstood("`out=` of another shape")
        last = steps[own[-1]] if own else None
        if isinstance(last, Compute) and last.target == view:
            steps[own[-1]] = replace(last, target=out.view)
        else:
            steps.append(Copy(out.view, view, view.span))
        return out
    if not own or not targets:
        return made
    run.frame.buffers.pop((view.buffer.name, view.buffer.number), None)
    buffer = replace(view.buffer, name=targets[0])
    run.frame.buffers.setdefault((buffer.name, buffer.number), buffer)
    for at in own:
        step = steps[at]
        if isinstance(step, Allocate):
            steps[at] = replace(step, buffer=buffer)
        elif isinstance(step, Compute | Copy) and step.target is not None:
            steps[at] = replace(step, target=replace(step.target, buffer=buffer))
    return Array(replace(view, buffer=buffer))


def _written(step: object) -> object:
    """Return the array that a step makes or stores to."""
    match step:
        case Allocate(buffer=buffer):
            return buffer
        case Compute(target=View(buffer=buffer)) | Copy(target=View(buffer=buffer)):
            return buffer
    return None
