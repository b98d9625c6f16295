"""What a loop goes through: ranges of whole numbers, also those that are written out."""

from __future__ import annotations

from itertools import pairwise

import libcst as cst

from advisor.frontend.expressions.scalars import scalar
from advisor.frontend.naming.literals import literal_int
from advisor.frontend.naming.names import resolve
from advisor.frontend.naming.scope import Scope
from advisor.frontend.syntax.problems import NotUnderstood
from costdb.expr import Expr, num


def range_of(node: cst.BaseExpression, scope: Scope) -> tuple[Expr, Expr, int] | None:
    """Return first, end and step of a range; None for anything else.

    Raises
    ------
    NotUnderstood
        For a range whose bounds or step are not known.
    """
    if isinstance(node, cst.Tuple | cst.List):
        return _progression(node)
    if not isinstance(node, cst.Call):
        return None
    name = node.func.value if isinstance(node.func, cst.Name) else None
    if name == "reversed" and not scope.not_builtin(name) and len(node.args) == 1:
        inner = range_of(node.args[0].value, scope)
        if inner is None or inner[2] != 1:
            return None
        return inner[1] - 1, inner[0] - 1, -1
    if name != "range" and not is_prange(node, scope):
        return None
    if name == "range" and scope.not_builtin(name):
        raise NotUnderstood("`range` may be something other than the builtin")
    if not 1 <= len(node.args) <= 3 or any(a.keyword or a.star for a in node.args):
        raise NotUnderstood("a range that cannot be read")
    values = [argument.value for argument in node.args]
    step = literal_int(values[2]) if len(values) == 3 else 1
    if step is None or (step < 1 and step != -1):
        raise NotUnderstood("a range whose step is neither a positive literal nor -1")
    if len(values) == 1:
        return num(0), scalar(values[0], scope), step
    return scalar(values[0], scope), scalar(values[1], scope), step


def is_prange(node: cst.BaseExpression, scope: Scope) -> bool:
    """Return whether a loop's iterations may be shared by threads."""
    return isinstance(node, cst.Call) and resolve(node.func, scope.imports) == "numba.prange"


def _progression(node: cst.Tuple | cst.List) -> tuple[Expr, Expr, int] | None:
    """Return the range that written out numbers, such as ``(-1, 0, 1)``, are."""
    numbers = [literal_int(element.value) for element in node.elements]
    whole = [number for number in numbers if number is not None]
    if not whole or len(whole) < len(numbers):
        return None
    step = whole[1] - whole[0] if len(whole) > 1 else 1
    if (step < 1 and step != -1) or any(b - a != step for a, b in pairwise(whole)):
        return None
    return num(whole[0]), num(whole[-1] + (1 if step > 0 else -1)), step
