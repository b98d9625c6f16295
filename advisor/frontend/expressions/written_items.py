"""What the names of a loop over written-out values denote in one of its iterations."""

from __future__ import annotations

import libcst as cst

from advisor.frontend.expressions.arrays import value_of
from advisor.frontend.expressions.scalars import bound_to_number
from advisor.frontend.naming.literals import is_of_literals
from advisor.frontend.naming.scope import Scope
from advisor.frontend.syntax.guard import NotUnderstood
from advisor.ir.values import Read, Scalar


def bind_item(name: str, node: cst.BaseExpression, scope: Scope) -> None:
    """Let a name denote what is written: a number, a tuple of them, an array or part of one.

    Raises
    ------
    NotUnderstood
        For anything that is computed, which would have been before the first iteration.
    """
    if scope.has_array(name):
        raise NotUnderstood(f"`{name}` is an array elsewhere and goes through a loop's values here")
    scope.forget(name)
    scope.written_out.pop(name, None)
    if isinstance(node, cst.SimpleString):
        return
    if is_of_literals(node):
        scope.written_out[name] = node
        return
    if bound_to_number(name, node, scope):
        return
    value = value_of(node, scope)
    if isinstance(value, Scalar):
        scope.bind_number(name, value.dtype)
    elif isinstance(value, Read) and scope.type_of(value).extents:
        scope.bind_view(name, value)
    else:
        raise NotUnderstood("a loop over values that are computed")
