"""What NumPy's functions are given in a program, and the steps and arrays that they make there."""

from __future__ import annotations

from collections.abc import Sequence as Many

import advisor.ir.values as forms
from advisor.frontend.arguments import Given
from advisor.frontend.calls import MADE_OF_NUMBERS, VIEWS, Calls
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
    Opaque,
    Sequence,
    Slice,
    Text,
    Value,
)
from advisor.frontend.trees import NotUnderstood
from advisor.ir.shapes import ArrayType, describe, whole
from advisor.ir.spmd.memory import Contiguity, Order, Origin, View
from advisor.ir.spmd.steps import Allocate, Compute, Copy
from advisor.numpy_functions import FUNCTIONS
from advisor.numpy_table import (
    ELEMENTWISE,
    PARAMETERS,
    REDUCTIONS,
    ROWS,
    SAME_AS,
    UNKNOWN_DTYPE,
    Shape,
    joined,
    reduced_dtype,
    resized,
)
from advisor.source import Span
from costdb.expr import Expr, log2, num
from costdb.records import dataclass, field, replace


@dataclass(frozen=True, slots=True)
class ProgramDoor:
    """What a program's values say, and the steps that operations on its arrays are.

    Attributes
    ----------
    run : Run
    span : Span
    target : str
        What the result is assigned to.
    held : list of Value
        What the leaves of forms stand for, by their names.
    """

    run: Run
    span: Span
    target: str
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

    def truth(self, argument: Value) -> bool | None:
        """Return a truth value."""
        found = self.run.integer(argument)
        return None if found is None else bool(found)

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
        known = numpy_number(argument.dtype) if isinstance(argument, Number) else None
        return "?", known or UNKNOWN_DTYPE

    def type_of(self, value: forms.Value) -> ArrayType:
        """Return element type and shape."""
        found = self.behind(value)
        if isinstance(found, Array) and found.view.shape is None:
            raise NotUnderstood("an array whose shape is not known")
        return describe(value, self._held)

    def _held(self, leaf: str) -> ArrayType:
        match self.held[int(leaf)]:
            case Array(view):
                return ArrayType(view.dtype or UNKNOWN_DTYPE, ())
            case Number(dtype=dtype):
                return ArrayType(elementwise.WEAK.get(dtype, dtype), ())
        return ArrayType(UNKNOWN_DTYPE, ())

    # what operations make -----------------------------------------------------------------

    def made(self, form: forms.Value) -> forms.Value:
        """Return what an operation on leaves makes, and note the steps that it takes."""
        return self.value(self._made(form))

    def _made(self, form: forms.Value) -> Value:
        run, span = self.run, self.span
        match form:
            case forms.Elementwise(operation, parts):
                return elementwise.of_any(operation, [*map(self.behind, parts)], run, span)
            case forms.Reduction(forms.Elementwise(_, sides), axis, fused=True):
                inner = (one.operand if isinstance(one, forms.Expand) else one for one in sides)
                left, right = (self.flat(one) if axis is None else one for one in inner)
                return elementwise.product(self.behind(left), self.behind(right), run, span)
            case forms.MatMul(left, right):
                return elementwise.product(self.behind(left), self.behind(right), run, span)
            case forms.Transpose(operand, axes):
                return permuted(self.view(operand), axes, run, span)
            case forms.Gather(operand, places):
                text = run.text_of(span)
                return subscript(self.behind(operand), self.behind(places), run, span, text)
            case forms.Expand(operand) | forms.Flip(operand):
                # one that goes through an axis from its end is no stretch of memory
                found, kept = describe(form, self._held), isinstance(form, forms.Expand)
                return self._seen(operand, found, kept=kept)
        if type(form) not in _STEPS:
            raise NotUnderstood("windows of an array")
        what, found = _STEPS[type(form)], describe(form, self._held)
        first = forms.operands(form)[0]
        extents, axis = self.type_of(first).extents, getattr(form, "axis", None)
        along = None
        if axis is not None and found.extents and what not in ("roll", "pad"):
            along = len(extents) - 1 - axis, extents[axis]
        # for an element of the first operand
        each = num(0 if what in ("roll", "pad") else 1)
        if what in ("sort", "fourier"):
            each = log2(extents[axis or 0]) * (5 if what == "fourier" else 1)
        return self._computed(what, forms.operands(form), found, each, along)

    def _fresh(
        self, dtype: str, shape: Shape | None, sources: tuple[View, ...], order: Order = Order.C
    ) -> View:
        known = None if dtype == UNKNOWN_DTYPE else dtype
        origin = Origin.COMPUTED if sources else Origin.NEW
        text = self.run.text_of(self.span)
        return self.run.fresh(text, known, shape, origin, self.span, order, sources=sources)

    def _computed(
        self,
        what: str,
        operands: tuple[forms.Value, ...],
        found: ArrayType,
        each: Expr | None,
        along: tuple[int, Expr] | None = None,
    ) -> Value:
        """Return what a step with so much work for an element of its first operand makes."""
        values = map(self.behind, operands)
        views = tuple(value.view for value in values if isinstance(value, Array))
        made = self._fresh(found.dtype, found.extents, views) if found.extents else None
        count = views[0].count if views else None
        work = None if each is None or count is None else count * each
        self.run.emit(Compute(made, views, work, what, self.span, "", *(along or (None, None))))
        if made is not None:
            return Array(made)
        return Number(None, "float" if found.dtype == UNKNOWN_DTYPE else found.dtype, varies=True)

    def copy(self, operand: forms.Value, dtype: str, order: str, *, always: bool) -> forms.Value:
        """Return a copy, or the array itself."""
        view = self.view(operand)
        known = view.dtype if not dtype else None if dtype == UNKNOWN_DTYPE else dtype
        lies = {"C": Order.C, "F": Order.F}.get(order, view.order)
        as_is = view.contiguity is Contiguity.YES and lies is view.order
        if not always and known == view.dtype and (order == "K" or as_is):
            return operand
        return self.value(copied_array(view, self.run, self.span, lies, dtype=known))

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
            lies = self.view(like).order
        made = self._fresh(dtype, shape, (), lies)
        self.run.emit(Allocate(made.buffer, self.span, bool(value)))
        return self.value(Array(made))

    def vector(self, extent: Expr | None, dtype: str) -> forms.Value:
        """Return a new vector, whose length may be a symbol of its own."""
        if extent is None:
            why = "its length is not known"
            extent = self.run.symbols.unknown(f"{self.target or 'array'}.n0", why, self.span)
        return self.fill("arange", (extent,), dtype, "C")

    def _seen(self, operand: forms.Value, found: ArrayType, *, kept: bool) -> Value:
        """Return the same memory under another shape, in the same order where it is kept."""
        held, text, shape = self.behind(operand), self.run.text_of(self.span), found.extents
        if not isinstance(held, Array):
            return Array(self._fresh(found.dtype, shape, ()))
        view = held.view
        region = view.region if kept else None
        turned = kept and view.transposed
        return Array(View(view.buffer, region, text, self.span, turned, flat=True, shown=shape))

    def between(self, operand: forms.Value, axis: int, before: int, behind: int) -> forms.Value:
        """Return a view."""
        shape = self.type_of(operand).extents
        parts = [WHOLE_SLICE] * len(shape)
        parts[axis] = Slice(Number(num(before)), Number(shape[axis] - behind), Nothing())
        text = self.run.text_of(self.span)
        index = Sequence(tuple(parts), is_list=False)
        found = subscript(self.behind(operand), index, self.run, self.span, text)
        if not isinstance(found, Array) or found.view.shape is None:
            shape = resized(shape, axis, shape[axis] - before - behind)
            found = self._seen(operand, ArrayType("", shape), kept=False)
        return self.value(found)

    def flat(self, operand: forms.Value) -> forms.Value:
        """Return a view or a copy; a vector as it is."""
        view = self.view(operand)
        if len(view.shape or ()) == 1:
            return operand
        return self.value(flatten(view, self.run, self.span, copies=False))

    def joined(self, name: str, parts: Value, axis: int) -> forms.Value:
        """Return arrays and lists of numbers one behind the other, or beside one another."""
        views, shapes, dtypes, times = parts_of(parts)
        shape = joined(name, shapes, axis, times) if shapes else None
        dtype = next(iter(dtypes)) if len(dtypes) == 1 else None
        text = self.run.text_of(self.span)
        made = self.run.fresh(text, dtype, shape, Origin.COMPUTED, self.span, sources=views)
        work = num(0) if shape else None
        self.run.emit(Compute(made, views, work, "elementwise", self.span))
        return self.value(Array(made))

    def called(self, form: forms.Called) -> forms.Value:
        """Return a result of known shape and type, which takes a time that is not known."""
        found = ArrayType(form.dtype, form.shape)
        return self.value(self._computed("call", form.operands, found, None))

    def along(
        self,
        name: str,
        operand: forms.Value,
        axes: tuple[int, ...] | None,
        kept: bool,
        options: str,
        computed: forms.Value | ArrayType,
    ) -> forms.Value:
        """Return what other operations make, or a result of known shape and type."""
        if not isinstance(computed, ArrayType):
            return computed
        return self.value(self._computed("call", (operand,), computed, None))


_STEPS = {
    forms.Reduction: "reduction",
    forms.Scan: "scan",
    forms.Sort: "sort",
    forms.Fourier: "fourier",
    forms.Roll: "roll",
    forms.PeriodicPad: "pad",
    forms.Tally: "tally",
}


def called(name: str, owner: Array | None, arguments: Arguments, run: Run, span: Span) -> Value:
    """Return what a function gives, or a method of an owner, and note the steps that it takes.

    Only what it gives has the name that it is assigned to, or is stored in ``out=``. Where the
    table does not tell that, as much is told as is known.
    """
    noted, targets = len(run.steps[-1]), run.targets
    out, all_given = arguments.keyword("out"), arguments.all
    if name in ELEMENTWISE and len(arguments.positional) > ROWS[ELEMENTWISE[name]].operands:
        out, all_given = arguments.positional[-1].value, all_given[:-1]
    given = [Given(a.value, a.keyword, bool(a.star)) for a in all_given if a.keyword != "out"]
    run.targets = ()
    door = ProgramDoor(run, span, targets[0] if targets else "")
    calls = Calls(door)
    try:
        if owner is None and len(getattr(FUNCTIONS.get(name), "dtypes", ())) > 1:
            results = calls.several(name, given)
            if len(results) > 1:
                return Sequence(tuple(map(door.behind, results)), is_list=False)
            made = results[0]
        elif owner is None:
            made = calls.function(name, given)
        else:
            made = calls.method(name, door.value(owner), given)
        found = door.behind(made)
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
    if name in ELEMENTWISE and not any(isinstance(one.value, Array) for one in arguments.all):
        return Opaque(f"numpy.{name} of something that is not followed")
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
    last = steps[own[-1]] if own else None
    if isinstance(out, Array):
        shapes = {shape for shape in (out.view.shape, view.shape) if shape is not None}
        if len(shapes) > 1:
            raise NotUnderstood("`out=` of another shape")
        if not isinstance(last, Compute) or last.target != view:
            steps.append(Copy(out.view, view, view.span))
            return out
        _forgotten(view, run)
        work = out.view.count if last.what == "elementwise" else last.operations
        steps[own[-1]] = replace(last, target=out.view, operations=work)
        return out
    if not own or not targets:
        return made
    _forgotten(view, run)
    buffer = replace(view.buffer, name=targets[0])
    run.frame.buffers.setdefault((buffer.name, buffer.number), buffer)
    for at in own:
        step = steps[at]
        if isinstance(step, Allocate):
            steps[at] = replace(step, buffer=buffer)
        elif isinstance(step, Compute | Copy) and step.target is not None:
            steps[at] = replace(step, target=replace(step.target, buffer=buffer))
    return Array(replace(view, buffer=buffer))


def _forgotten(view: View, run: Run) -> None:
    run.frame.buffers.pop((view.buffer.name, view.buffer.number), None)


def _written(step: object) -> object:
    """Return the array that a step makes or stores to."""
    match step:
        case Allocate(buffer=buffer):
            return buffer
        case Compute(target=View(buffer=buffer)) | Copy(target=View(buffer=buffer)):
            return buffer
    return None
