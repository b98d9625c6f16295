"""Values of the kernel's intermediate form: what an expression over whole arrays computes.

Values are pure. Regions are absolute and half-open, in the index space of the array they are
taken from, whatever sign the source wrote: ``x[1:-1]`` of an ``N`` vector is ``Range(1, N - 1)``.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from advisor.source import Span
from costdb.expr import ZERO, Expr, floor_div, free_symbols, num
from costdb.expr.nodes import Add, Mul, Num
from costdb.records import dataclass, field


@dataclass(frozen=True, slots=True)
class Range:
    """Indices ``low <= i < high`` of one dimension."""

    low: Expr
    high: Expr


@dataclass(frozen=True, slots=True)
class Strided:
    """Every `step`-th index from `start` on, below `stop`: the slice ``start:stop:step``.

    Its bounds have other names than those of a :class:`Range`, so that nothing takes the one
    for the other.

    Attributes
    ----------
    start, stop : Expr
    step : int
        At least 2; of an array of an MPI program negative where a view goes backwards.
    """

    start: Expr
    stop: Expr
    step: int

    @property
    def count(self) -> Expr:
        """Number of indices, ``ceil((stop - start) / step)``."""
        return ceil_steps(self.stop - self.start, abs(self.step))

    @property
    def last(self) -> Expr:
        """The last index, where there is any."""
        return self.start + (self.count - 1) * self.step


@dataclass(frozen=True, slots=True)
class Point:
    """One index of a dimension; the dimension disappears from the result."""

    at: Expr


Subscript = Range | Strided | Point


@lru_cache(maxsize=4096)
def length(part: Range | Strided) -> Expr:
    """Return how many indices a slice selects."""
    # asked of every read by each who looks at it
    return part.high - part.low if isinstance(part, Range) else part.count


@dataclass(frozen=True, slots=True)
class Read:
    """A region of a named array."""

    array: str
    region: tuple[Subscript, ...]


@dataclass(frozen=True, slots=True)
class Scalar:
    """A number that every rank has.

    `text` is how the source wrote it, `dtype` its NumPy name, or ``"integer literal"`` or
    ``"float literal"`` for Python numbers, which do not widen an array's element type.

    What is computed of numbers has a text of its own, by NumPy's functions: ``subtract(N, 1)``.
    `span` is where the source has it as it is written, None for what is written nowhere.
    """

    text: str
    dtype: str
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Fill:
    """An array of one constant (`value` is source text, ``""`` where it is left undefined).

    Or what a function of that name makes: ``arange`` of whole numbers in a row from the `first`
    on, others `of` the numbers that they were given.
    """

    value: str
    shape: tuple[Expr, ...]
    dtype: str
    first: Expr = ZERO
    of: tuple[Value, ...] = ()


@dataclass(frozen=True, slots=True)
class Copy:
    """A fresh array with the operand's elements (``x.copy()``, ``x.astype(...)``).

    A number that ``float(x)`` or ``int(x)`` makes is one `of_python`; of several, the same text
    makes NumPy's.
    """

    operand: Value
    dtype: str
    of_python: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class Elementwise:
    """One arithmetic operation an element, over operands of one shape or scalars.

    One that is `called`, as by ``np.minimum(x, y)`` and not by ``min(x, y)`` or an operator, takes
    longer on single numbers; the result is the same, so they are equal.
    """

    operation: str
    operands: tuple[Value, ...]
    called: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class Roll:
    """A periodic shift: element ``i`` of the result is element ``i - amount`` of the operand."""

    operand: Value
    axis: int
    amount: Expr


@dataclass(frozen=True, slots=True)
class PeriodicPad:
    """The operand extended along `axis` by wrapped copies of its other end."""

    operand: Value
    axis: int
    before: Expr
    after: Expr


@dataclass(frozen=True, slots=True)
class Flip:
    """The operand with one axis reversed."""

    operand: Value
    axis: int


@dataclass(frozen=True, slots=True)
class Scan:
    """Inclusive prefix operation along an axis (suffix operation where `reverse`)."""

    operand: Value
    axis: int
    operation: str
    dtype: str
    reverse: bool = False


@dataclass(frozen=True, slots=True)
class Reduction:
    """A reduction along `axis`, or over the whole array where it is None.

    Products that are `fused` with it are never stored: ``a @ x``, of a matrix and a vector. A
    function that is `called` for it, ``np.sum(x)``, takes longer than the method, ``x.sum()``.
    """

    operand: Value
    axis: int | None
    operation: str
    dtype: str
    fused: bool = False
    called: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class Expand:
    """The operand with a dimension of length 1 put in at `axis` (``x[:, None]``)."""

    operand: Value
    axis: int


@dataclass(frozen=True, slots=True)
class Transpose:
    """The operand with its dimensions in another order: result axis ``i`` is ``axes[i]``."""

    operand: Value
    axes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class MatMul:
    """The product of two matrices, or of stacks of them."""

    left: Value
    right: Value


@dataclass(frozen=True, slots=True)
class Fourier:
    """Discrete Fourier transforms along one axis (inverse ones where `inverse`).

    Along a distributed axis, ranks transpose there and back, or exchange their whole parts step
    by step where `butterflies`.
    """

    operand: Value
    axis: int
    dtype: str
    inverse: bool
    butterflies: bool = False


@dataclass(frozen=True, slots=True)
class Sort:
    """The operand with the elements along an axis in ascending order."""

    operand: Value
    axis: int


@dataclass(frozen=True, slots=True)
class Windows:
    """All windows of so many neighbours along an axis: where they begin there, and the last axis.

    ``sliding_window_view(operand, length, axis)``, a view.
    """

    operand: Value
    axis: int
    length: Expr


@dataclass(frozen=True, slots=True)
class Along:
    """What a function of NumPy makes of the elements along some axes.

    Attributes
    ----------
    function : str
        Its name there.
    operand : Value
    axes : tuple of int
        Ascending.
    kept : bool
        Whether these stay, with one element each.
    options : str
        Further arguments, as the source has them: ``ddof=1``.
    computed : Value
        The same in other operations, or what takes about as long where it is not `exact`.
    exact : bool
    """

    function: str
    operand: Value
    axes: tuple[int, ...]
    kept: bool
    options: str
    computed: Value
    exact: bool = True


@dataclass(frozen=True, slots=True)
class Gather:
    """Elements, or rows, of an array at places that only the data know: ``table[places]``.

    The places are along its first axis, and those of `others` along the axes after it:
    ``table[rows, columns]``.
    """

    operand: Value
    places: Value
    others: tuple[Value, ...] = ()

    @property
    def all_places(self) -> tuple[Value, ...]:
        """The places along each of the axes that have such."""
        return (self.places, *self.others)


@dataclass(frozen=True, slots=True)
class Chosen:
    """The elements, or rows, of an array where truth values hold, in order: ``x[mask]``.

    Only the data know how many these are: `count` stands for that.
    """

    operand: Value
    mask: Value
    count: Expr


@dataclass(frozen=True, slots=True)
class Tally:
    """How often each of the first so many whole numbers occurs, or the sum of their weights.

    Every rank counts its own places into an array of its own, and these are added up.
    """

    places: Value
    weights: Value | None
    extent: Expr
    dtype: str


@dataclass(frozen=True, slots=True)
class Called:
    """What a function gives that has no operation of its own here; it changes nothing.

    Attributes
    ----------
    function : str
        Its name below ``numpy``, or below ``builtins``.
    operands : tuple of Value
    shape : tuple of Expr
    dtype : str
    stated : tuple of (str, str)
        Its other arguments, by the names of its parameters, as they are written.
    """

    function: str
    operands: tuple[Value, ...]
    shape: tuple[Expr, ...]
    dtype: str
    stated: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Part:
    """A region of an array that has no name, and memory of its own."""

    operand: Value
    region: tuple[Subscript, ...]


Value = (
    Read
    | Scalar
    | Fill
    | Copy
    | Elementwise
    | Roll
    | PeriodicPad
    | Flip
    | Scan
    | Reduction
    | Expand
    | Transpose
    | MatMul
    | Fourier
    | Sort
    | Windows
    | Along
    | Gather
    | Chosen
    | Tally
    | Called
    | Part
)


def operands(value: Value) -> tuple[Value, ...]:
    """Return the direct operands of a value, left to right."""
    match value:
        case Read() | Scalar():
            return ()
        case Fill():
            return value.of
        case Elementwise(_, parts) | Called(_, parts):
            return parts
        case MatMul(left, right):
            return (left, right)
        case Gather(operand, places, others):
            return (operand, places, *others)
        case Chosen(operand, mask, _):
            return (operand, mask)
        case Along():
            return (value.computed,)
        case Tally(places, weights, _, _):
            return (places,) if weights is None else (places, weights)
        case _:
            return (value.operand,)


def parts_of(value: Value) -> Iterator[Value]:
    """Yield a value, and all that it is computed from, left to right."""
    yield value
    for part in operands(value):
        yield from parts_of(part)


def reads(value: Value) -> tuple[Read, ...]:
    """Return every region of a named array that the value needs, left to right."""
    if isinstance(value, Read):
        return (value,)
    return tuple(read for part in operands(value) for read in reads(part))


def step_of(part: Subscript) -> int:
    """Return the distance between neighbours among the indices that a subscript selects."""
    return part.step if isinstance(part, Strided) else 1


def bounds_in(part: Subscript) -> tuple[Expr, ...]:
    """Return the expressions that a subscript is written with."""
    match part:
        case Range(low, high):
            return (low, high)
        case Strided(start, stop, _):
            return (start, stop)
        case Point(at):
            return (at,)


def within(outer: Range | Strided, inner: Subscript) -> Subscript:
    """Return a subscript of a view, as one of the dimension that the view is taken from."""
    if isinstance(outer, Range):
        match inner:
            case Range(low, high):
                return Range(outer.low + low, outer.low + high)
            case Strided(start, stop, step):
                return Strided(outer.low + start, outer.low + stop, step)
            case Point(at):
                return Point(outer.low + at)
    if isinstance(inner, Point):
        return Point(outer.start + inner.at * outer.step)
    low, high = (inner.low, inner.high) if isinstance(inner, Range) else (inner.start, inner.stop)
    # behind the last index that is selected, or where the slice itself stops
    last = outer.start + (high - 1) * outer.step + 1
    stop = outer.stop if high == outer.count else last
    step = inner.step if isinstance(inner, Strided) else 1
    return Strided(outer.start + low * outer.step, stop, outer.step * step)


_SHARING = frozenset({"ravel", "reshape", "diagonal", "fliplr", "flipud", "rot90", "real", "imag"})
"""Functions whose results may share memory with their operand."""


def base_of(value: Value) -> str | None:
    """Return the array whose memory a value shares with other strides."""
    match value:
        case Read(array, _):
            return array
        case Flip(operand, _) | Transpose(operand, _) | Expand(operand, _) | Part(operand, _):
            return base_of(operand)
        case Called(name, (operand, *_)) if name in _SHARING:
            return base_of(operand)
        case Chosen(operand, Called("between")):
            return base_of(operand)
        case _:
            return None


# Indices in equal steps: how many there are, and which of them lie in one progression.
#
# What is a multiple of the step is divided exactly, so that equal numbers of indices are equal
# expressions: ``(2 * M + 1) // 2`` is ``M``, and two progressions that end one step apart differ
# by the constant 1.


def floor_steps(distance: Expr, step: int) -> Expr:
    """Return how many whole steps fit a distance: ``floor(distance / step)``."""
    if step == 1:
        return distance
    multiples, rest = _divided(distance, step)
    return multiples + floor_div(rest, step)


def ceil_steps(length: Expr, step: int) -> Expr:
    """Return how many of `length` indices are a step apart: ``ceil(length / step)``."""
    return floor_steps(length + (step - 1), step)


def residue(index: Expr, step: int) -> int | None:
    """Return what is left of an index after whole steps; None where it depends on sizes."""
    _, rest = _divided(index, step)
    return int(rest.value) if isinstance(rest, Num) and isinstance(rest.value, int) else None


def _divided(expr: Expr, step: int) -> tuple[Expr, Expr]:
    """Return the multiples of a step in a sum, divided by it, and what is left of it."""
    multiples, rest = ZERO, ZERO
    for term in (*expr.terms, num(expr.constant)) if isinstance(expr, Add) else (expr,):
        if isinstance(term, Num) and isinstance(term.value, int):
            multiples, rest = multiples + term.value // step, rest + term.value % step
        elif _is_multiple(term, step):
            multiples = multiples + term / step
        else:
            rest = rest + term
    return multiples, rest


def _is_multiple(term: Expr, step: int) -> bool:
    """Return whether a product of sizes has a factor that is a multiple of a step."""
    if not isinstance(term, Mul) or not isinstance(term.coefficient, int):
        return False
    # sizes and indices are whole numbers
    return term.coefficient % step == 0 and term.is_whole(free_symbols(term))
