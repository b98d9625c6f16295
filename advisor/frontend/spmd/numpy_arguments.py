"""What a function of NumPy is given: values by place or name, element types, orders."""

from __future__ import annotations

from advisor.dtypes import UnknownDtype, dtype_of
from advisor.frontend.expressions.arguments import Given
from advisor.frontend.naming.names import ARRAY_MODULES
from advisor.frontend.spmd.frames import Argument
from advisor.frontend.spmd.run import Run
from advisor.frontend.spmd.values import Array, External, Nothing, Opaque, Text, Value
from advisor.ir.spmd.memory import Order
from advisor.ir.spmd.steps import Compute
from advisor.source import Span

_PYTHON_TYPES = frozenset({"builtins.bool", "builtins.complex", "builtins.float", "builtins.int"})


BY_KEYWORD = 99
"""Types of results are stated by keyword; nobody states them by their place."""


class Arguments:
    """The arguments of a call, by place and by keyword."""

    def __init__(self, given: list[Argument]) -> None:
        self.positional = [a for a in given if a.keyword is None and not a.star]
        self.keywords = {a.keyword: a for a in given if a.keyword is not None}
        self.starred = any(a.star for a in given)

    def at(self, position: int, *keywords: str) -> Value | None:
        """Return the argument at a place or under one of some keywords."""
        if position < len(self.positional):
            return self.positional[position].value
        for keyword in keywords:
            if keyword in self.keywords:
                return self.keywords[keyword].value
        return None

    def keyword(self, name: str) -> Value | None:
        """Return the argument under a keyword."""
        return self.keywords[name].value if name in self.keywords else None

    def given(self) -> list[Given[Value]]:
        """Return all of them, as the reader of calls takes them."""
        starred = [Given[Value](Nothing(), None, True)] if self.starred else []
        named = [Given(one.value, name) for name, one in self.keywords.items()]
        return [*starred, *(Given(one.value) for one in self.positional), *named]

    def values(self) -> list[Value]:
        """Return the arguments given by place."""
        return [a.value for a in self.positional]


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


def stated_order(arguments: Arguments, position: int) -> Order:
    """Return the order of the elements in memory that a call states."""
    match arguments.at(position, "order"):
        case Text("F"):
            return Order.F
        case Text("C") | None:
            return Order.C
    return Order.UNKNOWN


def numpy_number(name: str) -> str | None:
    """Return NumPy's element type of an array made of numbers of a type of Python's."""
    return {"int": "int64", "float": "float64", "complex": "complex128", "bool": "bool"}.get(
        name, dtype_name(Text(name))
    )


def unknown_function(name: str, arguments: Arguments, run: Run, span: Span) -> Value:
    """Note work of unknown size on the arrays that a function is given."""
    views = tuple(v.view for v in arguments.values() if isinstance(v, Array))
    run.emit(Compute(None, views, None, "call", span))
    return Opaque(f"the result of numpy.{name} is not known")
