"""Element types by NumPy's names, without NumPy."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from costdb.records import dataclass


class Kind(StrEnum):
    """What arithmetic an element type has: on integers and booleans it is exact."""

    BOOLEAN = "boolean"
    INTEGER = "integer"
    FLOATING = "floating"
    COMPLEX = "complex"


@dataclass(frozen=True, slots=True)
class DType:
    """An element type.

    Attributes
    ----------
    name : str
        NumPy's full name, such as ``"int32"``.
    kind : Kind
    itemsize_bytes : int
    signed : bool
        False for booleans and unsigned integers.
    """

    name: str
    kind: Kind
    itemsize_bytes: int
    signed: bool = True

    @property
    def code(self) -> str:
        """NumPy's short code, such as ``"i4"``."""
        letter = {
            Kind.BOOLEAN: "b",
            Kind.INTEGER: "i" if self.signed else "u",
            Kind.FLOATING: "f",
            Kind.COMPLEX: "c",
        }[self.kind]
        return f"{letter}{self.itemsize_bytes}"


class UnknownDtype(ValueError):
    """A name that is no element type of fixed size known here."""


_TYPES: Final = (
    DType("bool", Kind.BOOLEAN, 1, signed=False),
    *(DType(f"int{8 * size}", Kind.INTEGER, size) for size in (1, 2, 4, 8)),
    *(DType(f"uint{8 * size}", Kind.INTEGER, size, signed=False) for size in (1, 2, 4, 8)),
    *(DType(f"float{8 * size}", Kind.FLOATING, size) for size in (2, 4, 8)),
    *(DType(f"complex{8 * size}", Kind.COMPLEX, size) for size in (8, 16)),
)

# Character codes, C names and Python's own types, with the widths of 64-bit Unix (LP64).
_SYNONYMS: Final = {
    "bool": ("?", "bool_"),
    "int8": ("b", "byte"),
    "int16": ("h", "short"),
    "int32": ("i", "intc"),
    "int64": ("l", "q", "p", "int", "int_", "intp", "long", "longlong"),
    "uint8": ("B", "ubyte"),
    "uint16": ("H", "ushort"),
    "uint32": ("I", "uintc"),
    "uint64": ("L", "Q", "P", "uint", "uintp", "ulong", "ulonglong"),
    "float16": ("e", "half"),
    "float32": ("f", "single"),
    "float64": ("d", "float", "double", "float_"),
    "complex64": ("F", "csingle"),
    "complex128": ("D", "complex", "cdouble", "complex_"),
}


_BY_NAME: Final = {
    name: dtype for dtype in _TYPES for name in (dtype.name, dtype.code, *_SYNONYMS[dtype.name])
}

_LONGEST_CODE: Final = 3
"""Characters of codes such as ``"c16"``, which are no names in NumPy's module."""


def dtype_of(name: str) -> DType:
    """Return the element type that NumPy knows by a name or code.

    Parameters
    ----------
    name : str
        For example ``"i4"``, ``"int32"``, ``"<f8"``, ``"double"`` or ``"d"``. A mark of byte
        order is allowed and does not matter. ``int`` and the C names have the widths of
        64-bit Unix.

    Raises
    ------
    UnknownDtype
        One line that quotes the name.
    """
    bare = name[1:] if name[:1] in {"<", ">", "=", "|"} else name
    dtype = _BY_NAME.get(bare)
    if dtype is None:
        raise UnknownDtype(f"unknown element type {name!r}; expected one such as i4 or float64")
    return dtype


def is_dtype(name: str) -> bool:
    """Return whether a name is that of an element type, among those of NumPy's module."""
    return len(name) > _LONGEST_CODE and name in _BY_NAME


def itemsize_of(name: str) -> int:
    """Return the bytes of one element of a type named as for :func:`dtype_of`."""
    return dtype_of(name).itemsize_bytes


def kind_of(name: str) -> Kind:
    """Return the kind of a type named as for :func:`dtype_of`."""
    return dtype_of(name).kind
