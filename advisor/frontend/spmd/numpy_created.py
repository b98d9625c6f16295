"""Arrays made anew, or of the memory of others: copied, reshaped, split, of lists, of files."""

from __future__ import annotations

from advisor.frontend.spmd.run import Run
from advisor.frontend.spmd.values import (
    Arguments,
    Array,
    External,
    Nothing,
    Number,
    Opaque,
    Range,
    Sequence,
    Text,
    Value,
)
from advisor.ir.spmd.memory import Buffer, Contiguity, Order, Origin, View
from advisor.ir.spmd.steps import Allocate, Compute, Copy
from advisor.numpy_table import ARRAY_MODULES, Shape, UnknownDtype, count_of, dtype_of
from advisor.source import Span
from costdb.expr import Expr, num
from costdb.records import dataclass, replace

_ITS_OWN = ""

BY_KEYWORD = 99
"""Types of results are stated by keyword; nobody states them by their place."""

_PYTHON_TYPES = frozenset({"builtins.bool", "builtins.complex", "builtins.float", "builtins.int"})


@dataclass(frozen=True, slots=True)
class Maker:
    """Makes arrays where an expression stands, and notes the steps that this takes."""

    run: Run
    span: Span

    @property
    def source(self) -> str:
        """The expression on one line."""
        return self.run.text_of(self.span)

    def fresh(
        self,
        dtype: str | None,
        shape: Shape | None,
        origin: Origin = Origin.NEW,
        order: Order = Order.C,
        *,
        copied: View | None = None,
        sources: tuple[View, ...] = (),
        within: Buffer | None = None,
    ) -> View:
        """Return a view of all of a new array, or `within` another's memory."""
        made = copied, sources, within
        return self.run.fresh(self.source, dtype, shape, origin, self.span, order, *made)

    def seen(self, view: View, **changes: object) -> Array:
        """Return an array's memory, or part of it, as this expression shows it."""
        return Array(replace(view, text=self.source, span=self.span, **changes))  # type: ignore[arg-type]

    def allocated(
        self,
        dtype: str | None,
        shape: Shape | None,
        origin: Origin = Origin.NEW,
        order: Order = Order.C,
    ) -> Array:
        """Return a new array, and note that its memory is filled."""
        view = self.fresh(dtype, shape, origin, order)
        self.run.emit(Allocate(view.buffer, self.span))
        return Array(view)

    def unknown_length(self, *, varies: bool = False) -> Expr:
        """Return the length of a new vector, which nothing tells."""
        name, why = f"{self.run.target or 'array'}.n0", "its length is not known"
        return self.run.symbols.unknown(name, why, self.span, varies=varies)

    def copied(
        self,
        view: View,
        order: Order = Order.C,
        *,
        dtype: str | None = _ITS_OWN,
        shape: Shape | None = (),
        within: Buffer | None = None,
    ) -> Array:
        """Return a copy of an array, under another shape or of another type where that is said."""
        dtype, shape = (
            view.dtype if dtype == _ITS_OWN else dtype,
            view.shape if shape == () else shape,
        )
        made = self.fresh(dtype, shape, Origin.COPY, order, copied=view, within=within)
        self.run.emit(Copy(made, view, self.span, allocates=True))
        return Array(made)

    def reshaped(self, view: View, given: list[Value], order: Value | None = None) -> Value:
        """Return an array under another shape: the same memory where its order allows it."""
        wanted = given[0] if len(given) == 1 else Sequence(tuple(given), is_list=False)
        shape = self.run.numbers(wanted, "shape")
        if shape is not None:
            rest = count_of(tuple(extent for extent in shape if extent != num(-1)))
            if shape.count(num(-1)) == 1 and view.count is not None:
                shape = tuple(e if e != num(-1) else view.count / rest for e in shape)
            if shape == view.shape:
                return Array(view)
        read, whose = _order_of_reading(order, view), view.buffer
        if view.contiguity is not Contiguity.YES or not _is_read_through(view, read):
            # taken for a copy; axes that are only split, or evenly strided, need none
            lies = read if view.order is read else Order.UNKNOWN
            return self.copied(view, lies, shape=shape, within=whose)
        # a vector lies in either order
        order_kept = read if len(view.shape or ()) == 1 else view.order
        if view.is_whole:
            # what is made and reshaped in one expression has no other name
            within = None if self.span.contains(whose.allocation.span) else whose
            origin = whose.allocation.origin
            return Array(self.fresh(view.dtype, shape, origin, order_kept, within=within))
        region = view.region if order_kept is Order.C else None
        return self.seen(view, region=region, transposed=False, flat=True, shown=shape)

    def flattened(self, view: View, *, copies: bool, order: Value | None = None) -> Value:
        """Return an array as a vector: the same memory where that can be."""
        read = view.order if order == Text("K") else _order_of_reading(order, view)
        if not copies and view.contiguity is Contiguity.YES and _is_read_through(view, read):
            if len(view.shape or ()) == 1:
                return Array(view)
            return self.seen(view, flat=True, shown=None)
        shape = None if view.count is None else (view.count,)
        return self.copied(view, shape=shape, within=None if copies else view.buffer)

    def permuted(self, view: View, axes: tuple[int, ...]) -> Value:
        """Return a view of an array with its axes in another order."""
        shape = view.shape
        if shape is None:
            return self.seen(view, region=None)
        if axes == tuple(range(len(shape))):
            return Array(view)
        if axes == tuple(range(len(shape)))[::-1] and not view.flat:
            return self.seen(view, transposed=not view.transposed)
        shown = tuple(shape[axis] for axis in axes)
        return self.seen(view, region=None, transposed=False, flat=True, shown=shown)

    def over_memory(self, arguments: Arguments) -> Value:
        """Return ``np.ndarray(...)``: an array over memory that is there, or a new one."""
        given, memory = arguments.at(0, "shape"), arguments.at(2, "buffer")
        shape = None if given is None else self.run.numbers(given, "shape")
        order = Order.C if arguments.at(5, "order") is None else Order.UNKNOWN
        origin = Origin.PARAMETER
        if memory is None or isinstance(memory, Nothing):
            origin = Origin.NEW
        elif isinstance(memory, Array) and memory.view.buffer.allocation.origin is Origin.SHARED:
            origin = Origin.SHARED
        view = self.fresh(stated_dtype(arguments, 1, "float64"), shape, origin, order)
        if origin is Origin.NEW:
            self.run.emit(Allocate(view.buffer, self.span, filled=False))
        return Array(view)

    def listed(self, content: Value | None, arguments: Arguments) -> Array:
        """Return an array of a number, a nested list, or something that is not followed."""
        if isinstance(content, Number | Sequence | Range):
            shape, kind = _nested(content)
            order = Order.C if arguments.at(2, "order") in (None, Text("C")) else Order.UNKNOWN
            return self.allocated(stated_dtype(arguments, 1, kind), shape, Origin.PYTHON, order)
        return Array(
            self.fresh(stated_dtype(arguments, 1, None), None, Origin.PYTHON, Order.UNKNOWN)
        )

    def frombuffer(self, arguments: Arguments) -> Value:
        """Return a vector of the bytes of a buffer."""
        dtype, memory = stated_dtype(arguments, 1, "float64"), arguments.at(0, "buffer")
        if not isinstance(memory, Array):
            return self.allocated(dtype, (self.unknown_length(),))
        count = memory.view.count if memory.view.dtype == dtype else self.unknown_length()
        shape = None if count is None else (count,)
        return Array(self.fresh(dtype, shape, memory.view.buffer.allocation.origin))

    def from_file(self, arguments: Arguments, dtype: str | None = "float64") -> Value:
        """Return an array read from a file; its shape and the time are unknown."""
        why = "the time and the shape of what is read from a file are not known"
        self.run.unknown(why, self.span)
        return Array(self.fresh(stated_dtype(arguments, 1, dtype), None, order=Order.UNKNOWN))

    def unknown_function(self, name: str, arguments: Arguments) -> Value:
        """Note work of unknown size on the arrays that a function is given."""
        views = tuple(v.view for v in arguments.values() if isinstance(v, Array))
        self.run.emit(Compute(None, views, None, self.span, "call"))
        return Opaque(f"the result of numpy.{name} is not known")


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


def dtype_name(value: Value | None) -> str | None:
    """Return NumPy's name of the element type that a value states; None where it is not known."""
    match value:
        case Text(str() as text):
            name = text
        case External(path=path):
            module, _, name = path.rpartition(".")
            if module not in ARRAY_MODULES and path not in _PYTHON_TYPES:
                return None
        case _:
            return None
    if name.startswith(">"):
        return None  # bytes the other way round: another type to MPI
    try:
        return dtype_of(name).name
    except UnknownDtype:
        return None


def stated_dtype(arguments: Arguments, position: int, default: str | None) -> str | None:
    """Return the element type that a call states, or the default where it states none."""
    value = arguments.at(position, "dtype")
    if value is None or isinstance(value, Nothing):
        return default
    return dtype_name(value)


def _nested(content: Value) -> tuple[Shape | None, str | None]:
    """Return the shape and element type of an array made of a number or a nested list."""
    match content:
        case Number():
            return (), dtype_name(Text(content.dtype))
        case Array(view):
            return view.shape, view.dtype
        case Range():
            return None, "int64"
        case Sequence(items=None, element=element, length=Expr() as length) if element:
            pass
        case Sequence(items=tuple() as items):
            length, element = num(len(items)), items[0] if items else Number(None, "float")
            kinds = {i.dtype if isinstance(i, Number) else type(i).__name__ for i in items}
            if kinds == {"int", "float"}:
                element = Number(None, "float")
            elif len(kinds) > 1:
                return None, None
        case _:
            return None, None
    inner, dtype = _nested(element)
    return None if inner is None else (length, *inner), dtype


def parts_of(parts: Value) -> tuple[tuple[View, ...], list[Shape] | None, set[str | None], Expr]:
    """Return the arrays among what is joined, all shapes, element types, and how often each."""
    items: tuple[Value, ...] = ()
    times: Expr | None = num(1)
    if isinstance(parts, Sequence) and parts.items is not None:
        items = parts.items
    elif isinstance(parts, Sequence) and parts.element is not None:
        items, times = (parts.element,), parts.length
    views = tuple(item.view for item in items if isinstance(item, Array))
    found = [_nested(item) if isinstance(item, Array | Sequence) else (None, "") for item in items]
    shapes = [shape for shape, _ in found if shape is not None]
    complete = shapes and len(shapes) == len(items) and times is not None
    dtypes = {dtype for _, dtype in found if dtype != ""}
    return views, shapes if complete else None, dtypes, num(1) if times is None else times
