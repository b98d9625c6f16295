"""Compiling an expression to a function over arrays of parameter points."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from costdb.expr.errors import ExprError
from costdb.expr.exact import Rational, magnitude
from costdb.expr.functions import (
    Comparison,
    Conditional,
    Extreme,
    Gcd,
    Log2,
    Max,
)
from costdb.expr.lower import (
    Lowering,
    assign,
    binary,
    call,
    compare,
    comparison_operator,
    constant,
    is_exact,
    name,
)
from costdb.expr.nodes import Add, Division, Expr, Mul, Num, Pow, Sym
from costdb.expr.scalar import ScalarFunction, compile_scalar
from costdb.expr.scalar_code import nearest

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    Floats: TypeAlias = NDArray[np.float64]
    VectorFunction: TypeAlias = Callable[..., Floats]

CHUNK = 16_384
"""Points worked on at once: a handful of temporaries stay in a core's cache."""

_LARGEST_WHOLE = 2**62


class NotVectorized(Exception):
    """Exact arithmetic is needed that arrays of machine numbers do not offer."""


def compile_vector(expr: Expr, names: Sequence[str]) -> VectorFunction:
    """Return a function over arrays that are broadcast against each other.

    Parameters
    ----------
    expr : Expr
    names : sequence of str
        Symbols in the order of the function's arguments; all free symbols must be among them.

    Returns
    -------
    callable
        Takes arrays or numbers and returns an array of float64 of their common shape. Points
        whose exact parts do not fit 64-bit whole numbers, and expressions that need fractions
        or loops, are worked out one by one. A division by zero raises `ExprError`.

    Raises
    ------
    ExprError
        For a free symbol that is not in `names`.
    """
    one_point = compile_scalar(expr, names)
    many_points: Callable[..., Any] | None
    try:
        many_points = _Vector(names).function(expr, _helpers())
    except NotVectorized:
        many_points = None
    exact_parts = _exact_parts(expr)

    def over_points(*values: ArrayLike) -> Floats:
        import numpy as np

        if len(values) != len(names):
            raise ExprError(f"the formula takes {len(names)} values, not {len(values)}")
        arrays = [np.asarray(value) for value in values]
        for symbol, array in zip(names, arrays, strict=True):
            _check_numbers(symbol, array)
        shape = np.broadcast_shapes(*(array.shape for array in arrays))
        flat = [_flattened(array, shape) for array in arrays]
        count = int(np.prod(shape, dtype=np.int64))
        result = np.empty(count)
        fits = many_points is not None and _fits(exact_parts, names, arrays)
        for start in range(0, count, CHUNK):
            stop = min(start + CHUNK, count)
            part = [array if array.ndim == 0 else array[start:stop] for array in flat]
            if fits and many_points is not None:
                try:
                    with np.errstate(divide="raise", invalid="raise", over="raise"):
                        result[start:stop] = many_points(*part)
                    continue
                except FloatingPointError:
                    # Perhaps only a choice that is not taken; the scalar code knows.
                    pass
            result[start:stop] = _one_by_one(one_point, part, stop - start)
        if not np.isfinite(result).all():
            raise ExprError("a value is not a finite number")
        return result.reshape(shape)

    return over_points


def _check_numbers(symbol: str, array: NDArray[Any]) -> None:
    import numpy as np

    if array.dtype.kind not in "iufb":
        raise ExprError(f"the values of {symbol!r} are not numbers")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ExprError(f"the values of {symbol!r} are not all finite numbers")


def _flattened(array: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    import numpy as np

    if array.ndim == 0 or array.shape == shape:
        return array if array.ndim == 0 else array.reshape(-1)
    return np.broadcast_to(array, shape).reshape(-1)


def _one_by_one(one_point: ScalarFunction, part: list[NDArray[Any]], count: int) -> list[float]:
    columns = [[array.item()] * count if array.ndim == 0 else array.tolist() for array in part]
    points = zip(*columns, strict=True) if columns else [()] * count
    return [float(one_point(*point)) for point in points]


class _Vector(Lowering):
    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(names)
        self.converted: dict[tuple[str, bool], str] = {}

    def number(self, value: Rational, exact: bool) -> ast.expr:
        if not exact:
            return constant(nearest(value))
        if not isinstance(value, int) or abs(value) > _LARGEST_WHOLE:
            raise NotVectorized
        return constant(value)

    def symbol(self, expr: Sym, exact: bool) -> ast.expr:
        key = expr.name, exact
        if key not in self.converted:
            self.converted[key] = f"s{len(self.converted)}"
            code = call("exact" if exact else "loose", name(self.scope[expr.name]))
            self.statements.insert(0, assign(self.converted[key], code))
        return name(self.converted[key])

    def quotient(self, above: ast.expr, below: ast.expr, exact: bool) -> ast.expr:
        if exact:
            raise NotVectorized
        return binary(above, ast.Div(), below)

    def other(self, expr: Expr, exact: bool) -> ast.expr:
        code = self.function_of(expr, exact)
        # Whole numbers of 64 bits would wrap around silently outside the parts checked to fit.
        return call("loose", code) if is_exact(expr) and not exact else code

    def function_of(self, expr: Expr, exact: bool) -> ast.expr:
        match expr:
            case Pow(exponent=Num(value=int() as value)) if value > 0:
                return binary(self.lower(expr.base, exact), ast.Pow(), constant(value))
            case Pow() if not exact:
                base = self.lower(expr.base, False)
                return binary(base, ast.Pow(), self.lower(expr.exponent, False))
            case Division():
                return self.rounded(expr)
            case Conditional():
                then = self.lower(expr.then, exact)
                orelse = self.lower(expr.orelse, exact)
                return call("where", self.lower(expr.test, True), then, orelse)
            case Comparison():
                left, right = self.lower(expr.left, True), self.lower(expr.right, True)
                return call("whole", compare(left, comparison_operator(expr), right))
            case Extreme():
                pair = "maximum" if isinstance(expr, Max) else "minimum"
                code = self.lower(expr.args[0], exact)
                for arg in expr.args[1:]:
                    code = call(pair, code, self.lower(arg, exact))
                return code
            case Log2() if not exact:
                return call("log2", self.lower(expr.argument, False))
            case Gcd():
                return call("gcd", self.lower(expr.left, True), self.lower(expr.right, True))
            case _:
                raise NotVectorized


def _helpers() -> dict[str, object]:
    import numpy as np

    def exact(values: NDArray[Any]) -> NDArray[Any]:
        return values if values.dtype.kind == "f" else values.astype(np.int64, copy=False)

    def gcd(left: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
        if "f" in (np.asarray(left).dtype.kind, np.asarray(right).dtype.kind):
            raise FloatingPointError
        common: NDArray[Any] = np.gcd(left, right)
        return common

    def loose(values: Any) -> Any:
        return np.asarray(values, dtype=np.float64)

    def whole(truth: Any) -> Any:
        return np.asarray(truth).astype(np.int64)

    return {
        "exact": exact,
        "gcd": gcd,
        "log2": np.log2,
        "loose": loose,
        "maximum": np.maximum,
        "minimum": np.minimum,
        "where": np.where,
        "whole": whole,
    }


def _exact_parts(expr: Expr) -> list[Expr]:
    """Return the outermost parts that are worked out in whole numbers."""
    if is_exact(expr):
        return [expr]
    if isinstance(expr, Conditional):
        return [expr.test, *_exact_parts(expr.then), *_exact_parts(expr.orelse)]
    return [part for child in expr.children for part in _exact_parts(child)]


def _fits(parts: list[Expr], names: Sequence[str], arrays: list[NDArray[Any]]) -> bool:
    """Tell whether no exact part can leave 64-bit whole numbers at these points."""
    if not parts:
        return True
    sizes = {
        symbol: float(max(abs(array.min().item()), abs(array.max().item()))) if array.size else 0.0
        for symbol, array in zip(names, arrays, strict=True)
    }
    try:
        return all(_bound(part, sizes) <= _LARGEST_WHOLE for part in parts)
    except OverflowError:
        return False


def _bound(expr: Expr, sizes: dict[str, float]) -> float:
    """Return the largest magnitude that `expr` or any of its parts can take, at least 1."""
    inner = [_bound(child, sizes) for child in expr.children]
    match expr:
        case Num():
            own = float(magnitude(expr.value))
        case Sym():
            own = sizes[expr.name]
        case Add():
            own = math.fsum(inner) + float(magnitude(expr.constant))
        case Mul():
            own = math.prod(inner) * float(magnitude(expr.coefficient))
        case Pow() if isinstance(expr.exponent, Num):
            own = math.pow(inner[0], float(expr.exponent.value))
        case _:
            own = max(inner) + 1
    return max(1.0, own, *inner)
