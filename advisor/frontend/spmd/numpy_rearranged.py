"""Arrays made of the elements of others: copied, reshaped, transposed, joined, split."""

from __future__ import annotations

from advisor.frontend.spmd.indexing import subscript
from advisor.frontend.spmd.numpy_arguments import Arguments
from advisor.frontend.spmd.run import Run
from advisor.frontend.spmd.values import (
    Array,
    External,
    Nothing,
    Number,
    Opaque,
    Sequence,
    Text,
    Value,
)
from advisor.ir.spmd.memory import Contiguity, Order, Origin, View
from advisor.ir.spmd.program import RANK
from advisor.ir.spmd.steps import Copy
from advisor.source import Span
from costdb.expr import Expr, ceil_div, num, sym


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
    """Return an array under another shape: the same memory where its order allows it."""
    wanted = given[0] if len(given) == 1 else Sequence(tuple(given), is_list=False)
    shape = run.numbers(wanted, "shape")
    if shape is not None:
        unknown = [k for k, extent in enumerate(shape) if extent == num(-1)]
        if len(unknown) == 1 and view.count is not None:
            rest = num(1)
            for extent in shape:
                rest = rest * extent if extent != num(-1) else rest
            shape = tuple(e if e != num(-1) else view.count / rest for e in shape)
    if shape is not None and shape == view.shape:
        return Array(view)
    text, read = run.text_of(span), _order_of_reading(order, view)
    if view.contiguity is not Contiguity.YES or not _is_read_through(view, read):
        return _copied_or_split(view, run, span, shape, read)
    # a vector lies in either order
    order_kept = read if len(view.shape or ()) == 1 else view.order
    if view.is_whole:
        origin, whose = view.buffer.allocation.origin, view.buffer
        # what is made and reshaped in one expression has no other name
        within = None if span.contains(whose.allocation.span) else whose
        return Array(run.fresh(text, view.dtype, shape, origin, span, order_kept, within=within))
    region = view.region if order_kept is Order.C else None
    return Array(View(view.buffer, region, text, span, flat=True, shown=shape))


def _copied_or_split(
    view: View, run: Run, span: Span, shape: tuple[Expr, ...] | None, order: Order
) -> Value:
    """Return what is taken for a copy. Axes that are only split, or evenly strided, need none."""
    made = run.fresh(
        run.text_of(span), view.dtype, shape, Origin.COPY, span, order, view, within=view.buffer
    )
    run.emit(Copy(made, view, span, allocates=True))
    return Array(made)


def _order_of_reading(stated: Value | None, view: View) -> Order:
    """Return in which order elements are taken from an array and laid out under another shape."""
    match stated:
        case None | Text("C"):
            return Order.C
        case Text("F"):
            return Order.F
        case Text("A"):
            return view.order if view.contiguity is Contiguity.YES else Order.C
    return Order.UNKNOWN


def _is_read_through(view: View, order: Order) -> bool:
    """Return whether an order takes the elements of a contiguous array as they lie.

    Arrays of an order that the source does not tell are taken to lie as they are read.
    """
    if len(view.shape or ()) == 1 or order is view.order:
        return True
    return view.order is Order.UNKNOWN and order is not Order.UNKNOWN


def flatten(view: View, run: Run, span: Span, *, copies: bool, order: Value | None = None) -> Value:
    """Return an array as a vector: the same memory where that can be."""
    in_memory = isinstance(order, Text) and order.value == "K"
    read = view.order if in_memory else _order_of_reading(order, view)
    if not copies and view.contiguity is Contiguity.YES and _is_read_through(view, read):
        shape = view.shape
        if shape is not None and len(shape) == 1:
            return Array(view)
        return Array(
            View(view.buffer, view.region, run.text_of(span), span, view.transposed, flat=True)
        )
    count = view.count
    shape = None if count is None else (count,)
    if not copies:
        return _copied_or_split(view, run, span, shape, Order.C)
    made = run.fresh(run.text_of(span), view.dtype, shape, Origin.COPY, span, copied=view)
    run.emit(Copy(made, view, span, allocates=True))
    return Array(made)


def permuted(view: View, axes: tuple[int, ...], run: Run, span: Span) -> Value:
    """Return a view of an array with its axes in another order."""
    shape = view.shape
    if shape is None:
        return Array(View(view.buffer, None, run.text_of(span), span))
    if axes == tuple(range(len(shape))):
        return Array(view)
    if axes == tuple(range(len(shape)))[::-1] and not view.flat:
        return Array(View(view.buffer, view.region, run.text_of(span), span, not view.transposed))
    shown = tuple(shape[axis] for axis in axes)
    return Array(View(view.buffer, None, run.text_of(span), span, flat=True, shown=shown))


def split(name: str, arguments: Arguments, run: Run, span: Span) -> Value:
    """Return the parts of an array that is split along its first axis.

    ``split`` makes all of one length; of ``array_split`` the first ones may have one element more.
    """
    source, sections = arguments.at(0), arguments.at(1)
    if not isinstance(source, Array):
        return Opaque("the parts of something that is not known to be an array")
    count = run.number(sections, "parts") if isinstance(sections, Number | Opaque) else None
    shape = source.view.shape
    if count is None or shape is None or arguments.keyword("axis") is not None:
        return Sequence(None, Array(View(source.view.buffer, None, source.view.text, span)), count)
    own = num(0) if name == "split" else sym(RANK)
    longest = ceil_div(shape[0] - own, count)
    high = Sequence((External("slice"), Nothing(), Number(longest), Nothing()), is_list=False)
    part = subscript(source, high, run, span, run.text_of(span))
    return Sequence(None, part, count)
