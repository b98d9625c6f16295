"""Compiling an expression to a fast function of plain numbers."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

from costdb.expr.denominators import cleared, over_denominator
from costdb.expr.exact import Value
from costdb.expr.loops import Scalar
from costdb.expr.lower import call, constant, returned_values, shared_parts
from costdb.expr.nodes import Expr

ScalarFunction: TypeAlias = Callable[..., Value]

_AT: dict[str, Any] = {"lineno": 1, "col_offset": 0}


def compile_scalar(expr: Expr, names: Sequence[str]) -> ScalarFunction:
    """Return a function of plain numbers.

    Parameters
    ----------
    expr : Expr
    names : sequence of str
        Symbols in the order of the function's arguments; all free symbols must be among them.

    Returns
    -------
    callable
        Rounded divisions, remainders and comparisons of whole numbers are exact; other
        arithmetic may round as floats do. A division by zero raises `ExprError`.

    Raises
    ------
    ExprError
        For a free symbol that is not in `names`.
    """
    scalar = Scalar(names)
    return scalar.function(cleared(expr), scalar.helpers)


@lru_cache(maxsize=512)
def compile_exactly(
    exprs: tuple[Expr, ...], names: tuple[str, ...]
) -> Callable[..., tuple[Value, ...]]:
    """Return a function of plain numbers that gives the values of several formulas.

    Exact where its arguments are; otherwise as :func:`compile_scalar`.
    """
    scalar = Scalar(names)
    whole = [over_denominator(expr) for expr in exprs]
    scalar.share(shared_parts([(expr, True) for expr, _ in whole], scalar.mode))
    values = [call("divide", scalar.lower(expr, True), constant(below)) for expr, below in whole]
    scalar.statements.append(returned_values(values))
    arguments = [ast.arg(argument, None, **_AT) for argument in scalar.scope.values()]
    return scalar.compiled(arguments, scalar.helpers)
