"""What a message carries."""

from __future__ import annotations

from enum import StrEnum

from advisor.ir.spmd.memory import View
from advisor.source import Span
from costdb.expr import Expr, sym
from costdb.expr.functions import name_like
from costdb.records import dataclass


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
