"""Arguments of calls, matched with the names of parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import libcst as cst

from advisor.dtypes import UnknownDtype, dtype_of
from advisor.frontend.naming.literals import literal_int
from advisor.frontend.naming.names import resolve
from advisor.frontend.naming.scope import Scope
from advisor.frontend.syntax.guard import NotUnderstood

Arguments = Mapping[str, cst.BaseExpression]

_BUILTIN_TYPES = frozenset({"int", "float", "bool", "complex"})


def matched(arguments: Sequence[cst.Arg], parameters: tuple[str, ...], name: str) -> Arguments:
    """Return the arguments of a call by the names of its parameters.

    Raises
    ------
    NotUnderstood
        For an argument of any other parameter: it may mean something that is not modelled.
    """
    found: dict[str, cst.BaseExpression] = {}
    for position, argument in enumerate(arguments):
        if argument.star:
            raise NotUnderstood("starred arguments")
        if argument.keyword is not None:
            parameter = argument.keyword.value
        elif position < len(parameters):
            parameter = parameters[position]
        else:
            raise NotUnderstood(f"argument {position + 1} of `{name}` is not understood")
        if parameter not in parameters or parameter in found:
            raise NotUnderstood(f"`{parameter}=` of `{name}` is not understood")
        found[parameter] = argument.value
    return found


def required(arguments: Arguments, parameter: str, name: str) -> cst.BaseExpression:
    """Return an argument that a call cannot do without."""
    if parameter not in arguments:
        raise NotUnderstood(f"`{name}` without `{parameter}`")
    return arguments[parameter]


def axis_of(node: cst.BaseExpression | None, dimensions: int, name: str) -> int:
    """Return an axis counted from the first; it may be left out for a vector."""
    if node is None and dimensions == 1:
        return 0
    number = None if node is None else literal_int(node)
    if number is None or not -dimensions <= number < dimensions:
        raise NotUnderstood(f"the axis of `{name}` is not a literal of a {dimensions}-d array")
    return number % dimensions


def is_none(node: cst.BaseExpression | None) -> bool:
    """Return whether an argument is left out or None."""
    return node is None or (isinstance(node, cst.Name) and node.value == "None")


def element_type(node: cst.BaseExpression, scope: Scope) -> str:
    """Return the name of the element type that an expression such as ``np.int32`` denotes."""
    if isinstance(node, cst.SimpleString):
        name = str(node.evaluated_value)
    elif isinstance(node, cst.Name) and node.value in _BUILTIN_TYPES:
        if scope.not_builtin(node.value):
            raise NotUnderstood(f"`{node.value}` may be something other than the builtin")
        name = node.value
    else:
        full = resolve(node, scope.imports) or ""
        if not full.startswith("numpy."):
            raise NotUnderstood("an element type that cannot be read")
        name = full.removeprefix("numpy.")
    try:
        return dtype_of(name).name
    except UnknownDtype as error:
        raise NotUnderstood(str(error)) from error
