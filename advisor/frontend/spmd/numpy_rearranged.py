"""Arrays made of the elements of others: copied, reshaped, transposed, joined, split."""

from __future__ import annotations

from advisor.frontend.spmd.elementwise import Shape
from advisor.frontend.spmd.indexing import subscript
from advisor.frontend.spmd.numpy_arguments import Arguments
from advisor.frontend.spmd.run import Run
from advisor.frontend.spmd.values import Array, External, Nothing, Number, Opaque, Sequence, Value
from advisor.ir.spmd.memory import Contiguity, Order, Origin, View
from advisor.ir.spmd.steps import Compute, Copy
from advisor.source import Span
from costdb.expr import ceil_div, num


def copied_array(
    view: View, run: Run, span: Span, order: Order = Order.C, dtype: str | None = None
) -> Value:
    """Return a copy of an array, and note the copying."""
    text = run.text_of(span)
    made = run.fresh(text, dtype or view.dtype, view.shape, Origin.COPY, span, order, copied=view)
    run.emit(Copy(made, view, span, allocates=True))
    return Array(made)


def reshape(
    view: View, given: list[Value], run: Run, span: Span, order: Value | None = None
) -> Value:
    """Return an array under another shape: the same memory where that is contiguous."""
    wanted = given[0] if len(given) == 1 else Sequence(tuple(given), is_list=False)
    shape = run.numbers(wanted, "shape")
    if shape is not None:
        unknown = [k for k, extent in enumerate(shape) if extent == num(-1)]
        if len(unknown) == 1 and view.count is not None:
            rest = num(1)
            for extent in shape:
                rest = rest * extent if extent != num(-1) else rest
            shape = tuple(e if e != num(-1) else view.count / rest for e in shape)
    if view.contiguity is Contiguity.YES and view.is_whole and view.buffer.allocation:
        # the same memory under another shape
        text = run.text_of(span)
        made = run.fresh(text, view.dtype, shape, view.buffer.allocation.origin, span, view.order)
        return Array(made)
    if view.contiguity is Contiguity.YES:
        return Array(View(view.buffer, view.region, run.text_of(span), span, flat=True))
    made = run.fresh(run.text_of(span), view.dtype, shape, Origin.COPY, span, copied=view)
    run.emit(Copy(made, view, span, allocates=True))
    return Array(made)


def flatten(view: View, run: Run, span: Span, *, copies: bool) -> Value:
    """Return an array as a vector: the same memory where that can be."""
    if not copies and view.contiguity is Contiguity.YES and view.order is not Order.F:
        shape = view.shape
        if shape is not None and len(shape) == 1:
            return Array(view)
        return Array(
            View(view.buffer, view.region, run.text_of(span), span, view.transposed, flat=True)
        )
    count = view.count
    shape = None if count is None else (count,)
    made = run.fresh(run.text_of(span), view.dtype, shape, Origin.COPY, span, copied=view)
    run.emit(Copy(made, view, span, allocates=True))
    return Array(made)


def concatenate(arguments: Arguments, run: Run, span: Span) -> Value:
    """Return an array joined of others along an axis."""
    parts = arguments.at(0)
    views = (
        [p.view for p in parts.items if isinstance(p, Array)]
        if isinstance(parts, Sequence) and parts.items is not None
        else []
    )
    dtype = views[0].dtype if views and len({v.dtype for v in views}) == 1 else None
    shape: Shape | None = None
    if (
        views
        and isinstance(parts, Sequence)
        and parts.items is not None
        and len(views) == len(parts.items)
    ):
        shapes = [v.shape for v in views]
        axis = run.integer(arguments.at(1, "axis")) if arguments.at(1, "axis") else 0
        if all(s for s in shapes) and axis is not None:
            first = shapes[0] or ()
            if all(s is not None and len(s) == len(first) for s in shapes) and axis < len(first):
                total = sum(((s or ())[axis] for s in shapes), num(0))
                shape = (*first[:axis], total, *first[axis + 1 :]) if axis >= 0 else None
    elif isinstance(parts, Sequence) and isinstance(parts.element, Array):
        dtype = parts.element.view.dtype
    made = run.fresh(run.text_of(span), dtype, shape, Origin.COMPUTED, span, sources=tuple(views))
    run.emit(Compute(made, tuple(views), num(0) if shape else None, "elementwise", span))
    return Array(made)


def transpose(view: View, arguments: list[Value], run: Run, span: Span) -> Value:
    """Return a view of an array with its axes turned round."""
    shape = view.shape
    if arguments or shape is None or view.flat:
        if shape is not None and len(shape) == 2 and not view.flat:
            return Array(
                View(view.buffer, view.region, run.text_of(span), span, not view.transposed)
            )
        return Array(View(view.buffer, None, run.text_of(span), span))
    return Array(View(view.buffer, view.region, run.text_of(span), span, not view.transposed))


def split(arguments: Arguments, run: Run, span: Span) -> Value:
    """Return the parts of an array that is split along its first axis."""
    source, sections = arguments.at(0), arguments.at(1)
    if not isinstance(source, Array):
        return Opaque("the parts of something that is not known to be an array")
    count = run.number(sections, "parts") if isinstance(sections, Number | Opaque) else None
    shape = source.view.shape
    if count is None or shape is None or arguments.keyword("axis") is not None:
        return Sequence(None, Array(View(source.view.buffer, None, source.view.text, span)), count)
    high = Sequence(
        (External("slice"), Nothing(), Number(ceil_div(shape[0], count)), Nothing()), is_list=False
    )
    part = subscript(source, high, run, span, run.text_of(span))
    return Sequence(None, part, count)
