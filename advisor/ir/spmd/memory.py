"""Arrays of one rank, and the parts of them that are sent, copied or computed."""

from __future__ import annotations

from enum import StrEnum
from functools import lru_cache

from advisor.ir.shapes import whole
from advisor.ir.values import Point, Range, Strided, Subscript, within
from advisor.source import Span
from costdb.expr import Expr, free_symbols, num, sym
from costdb.expr.functions import name_like
from costdb.expr.nodes import Num
from costdb.expr.polynomials import expand
from costdb.records import dataclass, replace


class Order(StrEnum):
    """Which dimension is contiguous in memory: the last (C) or the first (F)."""

    C = "C"
    F = "F"
    UNKNOWN = "unknown"


class Origin(StrEnum):
    """Where an array's memory comes from."""

    NEW = "new"
    """``np.zeros`` and the like: elements are written, or left undefined."""
    COPY = "copy"
    """``x.copy()``, ``np.ascontiguousarray(x)``, ``np.array(x)``, ``x.flatten()``, fancy
    indexing: `Allocation.copied` says of what."""
    COMPUTED = "computed"
    """The result of arithmetic, a reduction along an axis, a product."""
    PYTHON = "python"
    """``np.array([...])`` of a list or of a loop over elements."""
    PICKLED = "pickled"
    """What a lower-case receive, broadcast or reduction returned."""
    SHARED = "shared"
    """The memory of a window."""
    EITHER = "either"
    """One of several arrays, by path or iteration: `Allocation.either` says of which."""
    EITHER_NEW = "either of new ones"
    """The same, where each of these has memory of its own."""
    PARAMETER = "parameter"
    """An argument that no call in the file gives, known from annotations or from its use."""


OWN = frozenset({Origin.NEW, Origin.COPY, Origin.COMPUTED, Origin.EITHER_NEW})
"""Of new memory, so that other arrays are not in it."""
EITHER = frozenset({Origin.EITHER, Origin.EITHER_NEW})


@lru_cache(maxsize=4096)
def extent_of(index: Subscript) -> Expr:
    """Return how many indices there are: of ``r*n : (r + 1)*n`` `n`, wherever it begins."""
    if not isinstance(index, Range):
        return num(1) if isinstance(index, Point) else index.count
    low, high = index.low, index.high
    extent = high - low
    if isinstance(extent, Num):
        # one that begins behind its end holds nothing
        return extent if extent.value > 0 else num(0)
    names = free_symbols(extent)
    if not names & free_symbols(low) & free_symbols(high):
        return extent
    # products are not multiplied out by themselves
    expanded = expand(extent)
    return expanded if free_symbols(expanded) < names else extent


def inside(outer: Range | Strided, part: Subscript, *, backwards: bool) -> Subscript | None:
    """Return a subscript of a view's dimension as one of the array's; None for none."""
    if isinstance(part, Range) and part.low == num(0) and part.high == extent_of(outer):
        if not backwards:
            return outer
    elif isinstance(outer, Strided) and outer.step < 0:
        return None
    match within(outer, part):
        case Range(low, high) if backwards:
            return Strided(low, high, -1)
        case Strided() as found if backwards:
            return replace(found, step=-found.step)
        case found:
            return found


@dataclass(frozen=True, slots=True)
class Allocation:
    """How an array came to be.

    Attributes
    ----------
    origin : Origin
    text : str
        The expression, as in the source.
    span : Span
    copied : View or None
        Of what it is a copy: the staging of a message.
    sources : tuple of View
        What it was computed from.
    within : Buffer or None
        Another array whose memory this is, under another shape.
    either : frozenset of (str, int)
        Which arrays it may be, by what tells them apart.
    """

    origin: Origin
    text: str
    span: Span
    copied: View | None = None
    sources: tuple[View, ...] = ()
    within: Buffer | None = None
    either: frozenset[tuple[str, int]] = frozenset()


@dataclass(frozen=True, slots=True)
class Buffer:
    """One array's memory.

    Attributes
    ----------
    name : str
        What the source first called it: ``u``, ``self.u``, ``halo['left']``; unnamed
        intermediate results are called by their expression.
    number : int
        Tells apart arrays that have the same name at different times.
    dtype : str or None
        NumPy's full name of the element type.
    extents : tuple of Expr or None
        Shape; None where not even the number of dimensions is known.
    order : Order
    allocation : Allocation
    """

    name: str
    number: int
    dtype: str | None
    extents: tuple[Expr, ...] | None
    order: Order
    allocation: Allocation

    @property
    def memory(self) -> Buffer:
        """The array that the memory was made for: this one, but where it is another's reshaped."""
        return self if self.allocation.within is None else self.allocation.within.memory

    @property
    def memories(self) -> frozenset[tuple[str, int]]:
        """What tells apart the memories that this may be."""
        own = self.memory
        return own.allocation.either | {(own.name, own.number)}


class Contiguity(StrEnum):
    """Whether a view is one stretch of memory, in the order in which it would be sent."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class View:
    """Part of an array's memory, or all of it.

    Attributes
    ----------
    buffer : Buffer
    region : tuple of Subscript or None
        One entry for each dimension of the buffer; None where it is not known.
    text : str
        As in the source.
    span : Span
    transposed : bool
        The view's dimensions are the buffer's in reverse order.
    flat : bool
        Seen under another shape without a copy: elements and order are kept.
    shown : tuple of Expr or None
        That shape, of a `flat` view; None for a vector of all elements. Without a `region` only
        the shape is known, not which elements of the buffer follow one another.
    or_none : bool
        Whoever has it may have None instead.
    """

    buffer: Buffer
    region: tuple[Subscript, ...] | None
    text: str
    span: Span
    transposed: bool = False
    flat: bool = False
    shown: tuple[Expr, ...] | None = None
    or_none: bool = False

    @property
    def dtype(self) -> str | None:
        """Element type."""
        return self.buffer.dtype

    @property
    def is_whole(self) -> bool:
        """Whether it is all of its buffer."""
        return self.region is not None and self.region == whole(self.buffer.extents or ())

    @property
    def order(self) -> Order:
        """Storage order of the view's dimensions."""
        order = self.buffer.order
        if self.transposed and order is not Order.UNKNOWN:
            return Order.F if order is Order.C else Order.C
        return order

    @property
    def shape(self) -> tuple[Expr, ...] | None:
        """Extents of the view's own dimensions; None where they are not known."""
        if self.flat and self.shown is not None:
            return self.shown
        if self.region is None:
            return None
        found = tuple(extent_of(one) for one in self.region if not isinstance(one, Point))
        if self.flat:
            return None if self.count is None else (self.count,)
        return found[::-1] if self.transposed else found

    @property
    def count(self) -> Expr | None:
        """Elements; None where that is not known."""
        if self.region is None and self.shown is None:
            return None
        total = num(1)
        extents = self.shown if self.region is None else tuple(map(extent_of, self.region))
        for extent in extents or ():
            total = total * extent
        return total

    @property
    def contiguity(self) -> Contiguity:
        """Whether mpi4py would take it as it stands (C or Fortran contiguous, as it does)."""
        return contiguity(self)

    def strides(self) -> tuple[Expr, ...] | None:
        """Return the distance in elements between neighbours, for each dimension of the buffer."""
        extents, order = self.buffer.extents, self.buffer.order
        if extents is None or order is Order.UNKNOWN:
            return None
        pitch, found = num(1), []
        for extent in extents if order is Order.F else extents[::-1]:
            found.append(pitch)
            pitch = pitch * extent
        return tuple(found if order is Order.F else found[::-1])


def contiguity(view: View) -> Contiguity:
    """Return whether a view is one stretch of memory.

    mpi4py takes arrays that are contiguous in C or in Fortran order, and refuses others. Sizes
    are taken to be larger than 1 where nothing says otherwise.
    """
    region, all_of = view.region, whole(view.buffer.extents or ())
    unordered = view.buffer.order is Order.UNKNOWN and not view.is_whole
    if region is None or (len(region) > 1 and unordered):
        return Contiguity.UNKNOWN
    partial, pairs = False, list(zip(region, all_of, strict=True))
    for index, every in pairs if view.buffer.order is Order.F else pairs[::-1]:
        if isinstance(index, Point) or _is_one(extent_of(index)):
            # a later dimension that is more than one index would jump over the rest of this one
            partial = True
        elif partial or isinstance(index, Strided):
            return Contiguity.NO
        else:
            partial = index != every
    return Contiguity.YES


def _is_one(count: Expr) -> bool:
    return isinstance(count, Num) and count.value == 1


# --- payloads -------------------------------------------------------------------------------------
# What a message carries.


class PayloadKind(StrEnum):
    """What the interpreter would find at run time, as far as the source tells."""

    ARRAY = "array"
    SCALAR = "scalar"
    OBJECT = "object"
    """A list, tuple, dictionary or string; `Payload.parts` holds what is known of its content."""
    UNKNOWN = "unknown"


class Constructor(StrEnum):
    """How a derived datatype is laid out."""

    CONTIGUOUS = "contiguous"
    VECTOR = "vector"
    SUBARRAY = "subarray"
    DARRAY = "darray"
    STRUCT = "struct"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class DerivedType:
    """A datatype made with ``Create_vector`` and its like; strided buffers are legal with one.

    Attributes
    ----------
    constructor : Constructor
    text : str
        The expression that made it.
    span : Span
    numbers : tuple of Expr
        For a vector: count, block length and stride in elements.
    base : str or None
        NumPy's name of the element type.
    elements : Expr or None
        How many elements one of it carries.
    """

    constructor: Constructor
    text: str
    span: Span
    numbers: tuple[Expr, ...] = ()
    base: str | None = None
    elements: Expr | None = None


@dataclass(frozen=True, slots=True)
class Payload:
    """What is sent, or where something is received.

    Attributes
    ----------
    kind : PayloadKind
    text : str
        The argument, as in the source.
    span : Span
        Of the argument.
    view : View or None
        For an array.
    dtype : str or None
        NumPy's name of the element type, of arrays and of numbers.
    count : Expr or None
        Elements carried: a stated count goes over the size of the array. 1 for a number.
    described : bool
        A buffer description ``[array, MPI.DOUBLE]`` or ``(array, n, MPI.INT)``.
    datatype : DerivedType or None
    parts : tuple of Payload
        Known content of an object, such as the arrays of a list.
    length : Expr or None
        How many parts an object has, where `parts` shows only the kind of each (a list that a
        comprehension or a loop makes).
    reason : str
        Why it is not known.
    """

    kind: PayloadKind
    text: str
    span: Span
    view: View | None = None
    dtype: str | None = None
    count: Expr | None = None
    described: bool = False
    datatype: DerivedType | None = None
    parts: tuple[Payload, ...] = ()
    length: Expr | None = None
    reason: str = ""


def unknown_count(name: str) -> Expr:
    """Return the symbol for the elements of an array of unknown size."""
    bare = name_like(name.replace(".", " ")).strip("_") or "array"
    return sym(f"{bare}.size" if bare.isidentifier() else f"_{bare}.size")


def elements(payload: Payload) -> Expr:
    """Return how many elements an array or a buffer carries, as a symbol where nothing tells."""
    if payload.count is not None:
        return payload.count
    return unknown_count(payload.text if payload.view is None else payload.view.buffer.name)
