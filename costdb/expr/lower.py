"""Lowering expressions to Python's syntax tree: what scalar and vector code share.

Code is built as a tree, never as text, and names of the expression never become names of the
code. Each part is lowered in one of two modes. *Exact* is for what decides a whole number or a
choice (divisions rounded to whole numbers, remainders, comparisons, bounds): there a constant
such as 1/3 may not be rounded. *Loose* is for all else, where constants are floats.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterable, Sequence
from types import CodeType, FunctionType
from typing import Any, TypeAlias

from costdb.expr.errors import ExprError
from costdb.expr.exact import Rational
from costdb.expr.functions import Comparison, Conditional, Gcd, Less, LessEqual, Reduction
from costdb.expr.names import free_symbols
from costdb.expr.nodes import (
    MINUS_ONE,
    Add,
    Division,
    Expr,
    FloorDiv,
    Mod,
    Mul,
    Num,
    Sym,
    is_reciprocal,
    power,
    split_coefficient,
)

Key: TypeAlias = tuple[Expr, bool]
_ERRORS: dict[str, object] = {
    "zero_division": ZeroDivisionError,
    "overflow": OverflowError,
    "fail": ExprError,
}
_AT: dict[str, Any] = {"lineno": 1, "col_offset": 0}
_LARGEST_COMMON_DENOMINATOR = 5040


def name(text: str) -> ast.expr:
    """Return a name that is read."""
    return ast.Name(text, ast.Load(), **_AT)


def constant(value: float | None) -> ast.expr:
    """Return a literal."""
    return ast.Constant(value, **_AT)


def binary(left: ast.expr, operator: ast.operator, right: ast.expr) -> ast.expr:
    """Return an operator applied."""
    return ast.BinOp(left, operator, right, **_AT)


def negative(operand: ast.expr) -> ast.expr:
    """Return a sign change."""
    return ast.UnaryOp(ast.USub(), operand, **_AT)


def call(function: str, *args: ast.expr) -> ast.expr:
    """Return a helper applied."""
    return ast.Call(name(function), list(args), [], **_AT)


def compare(left: ast.expr, operator: ast.cmpop, right: ast.expr) -> ast.expr:
    """Return a comparison."""
    return ast.Compare(left, [operator], [right], **_AT)


def choose(test: ast.expr, then: ast.expr, orelse: ast.expr) -> ast.expr:
    """Return a conditional expression."""
    return ast.IfExp(test, then, orelse, **_AT)


def assign(target: str, value: ast.expr) -> ast.stmt:
    """Return an assignment."""
    return ast.Assign([ast.Name(target, ast.Store(), **_AT)], value, **_AT)


def assign_all(targets: Sequence[str], value: ast.expr) -> ast.stmt:
    """Return an assignment of the items of a tuple."""
    names: list[ast.expr] = [ast.Name(target, ast.Store(), **_AT) for target in targets]
    return ast.Assign([ast.Tuple(names, ast.Store(), **_AT)], value, **_AT)


def first_of(value: ast.expr) -> ast.expr:
    """Return the first item of a tuple."""
    return ast.Subscript(value, constant(0), ast.Load(), **_AT)


def returned(names: Sequence[str]) -> ast.stmt:
    """Return a statement that gives back a tuple of names."""
    return returned_values([name(one) for one in names])


def returned_values(values: Sequence[ast.expr]) -> ast.stmt:
    """Return a statement that gives back a tuple."""
    return ast.Return(ast.Tuple(list(values), ast.Load(), **_AT), **_AT)


def added_to(total: str, value: ast.expr) -> ast.stmt:
    """Return an assignment that adds."""
    return ast.AugAssign(ast.Name(total, ast.Store(), **_AT), ast.Add(), value, **_AT)


def appended_to(total: str, value: ast.expr) -> ast.stmt:
    """Return a statement that puts a value at the end of a list."""
    append = ast.Attribute(name(total), "append", ast.Load(), **_AT)
    return ast.Expr(ast.Call(append, [value], [], **_AT), **_AT)


def raised_to(total: str, value: ast.expr) -> list[ast.stmt]:
    """Return statements that keep the greater of two, or the only one there is."""
    kept = f"{total}_new"
    none = ast.Compare(name(total), [ast.Is()], [constant(None)], **_AT)
    above = compare(name(kept), ast.Gt(), name(total))
    test = ast.BoolOp(ast.Or(), [none, above], **_AT)
    return [assign(kept, value), ast.If(test, [assign(total, name(kept))], [], **_AT)]


def comparison_operator(expr: Comparison) -> ast.cmpop:
    """Return Python's operator for a comparison."""
    if isinstance(expr, Less):
        return ast.Lt()
    return ast.LtE() if isinstance(expr, LessEqual) else ast.Eq()


def is_exact(expr: Expr) -> bool:
    """Tell whether the parts of `expr` must be lowered in exact mode."""
    return isinstance(expr, Division | Gcd | Comparison)


class Lowering:
    """Turns one expression into the body of a function.

    Parameters
    ----------
    names : sequence of str
        Symbols in the order of the function's arguments.
    """

    def __init__(self, names: Sequence[str]) -> None:
        if len(set(names)) != len(names):
            raise ExprError("a name is given twice")
        self.scope = {symbol: f"x{position}" for position, symbol in enumerate(names)}
        self.hoisted: dict[Key, str] = {}
        self.statements: list[ast.stmt] = []
        self.reductions = 0

    def function(self, expr: Expr, helpers: dict[str, object]) -> Callable[..., Any]:
        """Return the compiled function; `helpers` are the names it may use besides."""
        unbound = sorted(free_symbols(expr) - self.scope.keys())
        if unbound:
            raise ExprError(f"{unbound[0]!r} has no value")
        arguments = [ast.arg(argument, None, **_AT) for argument in self.scope.values()]
        self.share(shared_parts([(expr, False)], self.mode))
        self.statements.append(ast.Return(self.lower(expr, False), **_AT))
        return self.compiled(arguments, helpers)

    def share(self, keys: Iterable[Key]) -> None:
        """Evaluate parts once, in order, and use their values from here on."""
        for key in keys:
            if key not in self.hoisted:
                target = f"t{len(self.hoisted)}"
                self.statements.append(assign(target, self.lower(*key)))
                self.hoisted[key] = target

    def compiled(self, arguments: list[ast.arg], helpers: dict[str, object]) -> Callable[..., Any]:
        """Return the statements as a function."""
        signature = ast.arguments([], arguments, None, [], [], None, [])
        definition = ast.FunctionDef("formula", signature, [self.guarded()], [], **_AT)
        module = compile(ast.Module([definition], []), "<formula>", "exec")
        code = next(part for part in module.co_consts if isinstance(part, CodeType))
        # The helpers are all that the code can reach.
        return FunctionType(code, {"__builtins__": {}, **helpers, **_ERRORS}, "formula")

    def guarded(self) -> ast.stmt:
        """Return the statements so far, with the errors of arithmetic said in our words."""
        handlers = [
            ast.ExceptHandler(
                name(error),
                None,
                [ast.Raise(call("fail", ast.Constant(said, **_AT)), constant(None), **_AT)],
                **_AT,
            )
            for error, said in (
                ("zero_division", "division by zero"),
                ("overflow", "the value is too large"),
            )
        ]
        return ast.Try(self.statements, handlers, [], [], **_AT)

    def mode(self, expr: Expr, exact: bool) -> bool:
        """Return the mode that a part is lowered in where it is asked for in one."""
        return exact

    def lower(self, expr: Expr, exact: bool) -> ast.expr:
        """Return code for `expr`."""
        exact = self.mode(expr, exact)
        known = self.hoisted.get((expr, exact))
        if known is not None:
            return name(known)
        if isinstance(expr, Num):
            return self.number(expr.value, exact)
        if isinstance(expr, Sym):
            return self.symbol(expr, exact)
        if isinstance(expr, Add):
            return self.sum(expr, exact)
        if isinstance(expr, Mul) or is_reciprocal(expr):
            return self.product(expr, exact)
        return self.other(expr, exact)

    def number(self, value: Rational, exact: bool) -> ast.expr:
        """Return code for a constant."""
        raise NotImplementedError

    def symbol(self, expr: Sym, exact: bool) -> ast.expr:
        """Return code for a symbol."""
        raise NotImplementedError

    def quotient(self, above: ast.expr, below: ast.expr, exact: bool) -> ast.expr:
        """Return code for an unrounded division."""
        raise NotImplementedError

    def other(self, expr: Expr, exact: bool) -> ast.expr:
        """Return code for anything that is not a constant, a symbol, a sum or a product."""
        raise NotImplementedError

    def sum(self, expr: Add, exact: bool) -> ast.expr:
        """Return code for a sum."""
        denominator = 1 if exact else _common_denominator(expr)
        total: ast.expr | None = None
        for term in expr.terms:
            coefficient, rest = split_coefficient(term)
            coefficient = _whole(coefficient * denominator)
            code = self.lower(rest, exact)
            size = -coefficient if coefficient < 0 else coefficient
            if size != 1:
                code = binary(code, ast.Mult(), self.number(size, exact))
            if total is None:
                total = negative(code) if coefficient < 0 else code
            else:
                total = binary(total, ast.Sub() if coefficient < 0 else ast.Add(), code)
        assert total is not None
        if expr.constant != 0:
            rest_code = self.number(_whole(expr.constant * denominator), exact)
            total = binary(total, ast.Add(), rest_code)
        return total if denominator == 1 else binary(total, ast.Div(), constant(denominator))

    def product(self, expr: Expr, exact: bool) -> ast.expr:
        """Return code for a product or a reciprocal."""
        factors = expr.factors if isinstance(expr, Mul) else (expr,)
        coefficient: Rational = expr.coefficient if isinstance(expr, Mul) else 1
        above = [self.lower(f, exact) for f in factors if not is_reciprocal(f)]
        below = [self.lower(power(f, MINUS_ONE), exact) for f in factors if is_reciprocal(f)]
        if coefficient == -1 and above:
            above[0] = negative(above[0])
        elif coefficient != 1 or not above:
            above.append(self.number(coefficient, exact))
        code = _joined(above)
        return code if not below else self.quotient(code, _joined(below), exact)

    def rounded(self, expr: Division) -> ast.expr:
        """Return code for a rounded division or a remainder, of exact sides."""
        above = self.lower(expr.dividend, True)
        below = self.lower(expr.divisor, True)
        if isinstance(expr, Mod):
            return binary(above, ast.Mod(), below)
        if isinstance(expr, FloorDiv):
            return binary(above, ast.FloorDiv(), below)
        return negative(binary(negative(above), ast.FloorDiv(), below))


def _joined(parts: list[ast.expr]) -> ast.expr:
    code = parts[0]
    for part in parts[1:]:
        code = binary(code, ast.Mult(), part)
    return code


def _whole(value: Rational) -> Rational:
    return value.numerator if value.denominator == 1 else value


def _common_denominator(expr: Add) -> int:
    # Sums of powers have whole values: summed as whole numbers and divided once, exactly.
    if not all(split_coefficient(term)[1].is_whole(free_symbols(term)) for term in expr.terms):
        return 1
    parts = [split_coefficient(term)[0].denominator for term in expr.terms]
    common = math.lcm(expr.constant.denominator, *parts)
    return common if common <= _LARGEST_COMMON_DENOMINATOR else 1


def shared_parts(
    exprs: Iterable[Key], mode: Callable[[Expr, bool], bool], index: str | None = None
) -> list[Key]:
    """Return parts that are evaluated more than once whatever is chosen, inner ones first.

    With the `index` of a loop around all of them, also parts that it does not change. The `mode`
    is what a part is lowered in where it is asked for in one.
    """
    seen: dict[Key, int] = {}
    order: list[Key] = []
    lasting: set[Key] = set()

    def visit(part: Expr, exact: bool, *, moves: bool = True) -> None:
        if not part.children:
            return
        exact = mode(part, exact)
        key = part, exact
        if moves and index is not None and index not in free_symbols(part):
            lasting.add(key)
        seen[key] = seen.get(key, 0) + 1
        if seen[key] > 1:
            return
        inner, moves = exact or is_exact(part), key not in lasting and moves
        if isinstance(part, Conditional):
            visit(part.test, True, moves=moves)
        elif isinstance(part, Reduction):
            visit(part.low, True, moves=moves)
            visit(part.high, True, moves=moves)
        else:
            for child in part.children:
                if isinstance(part, Add):
                    visit(split_coefficient(child)[1], inner, moves=moves)
                elif isinstance(part, Mul) and is_reciprocal(child):
                    visit(power(child, MINUS_ONE), inner, moves=moves)
                else:
                    visit(child, inner, moves=moves)
        order.append(key)

    for expr, exact in exprs:
        visit(expr, exact)
    return [key for key in order if seen[key] > 1 or key in lasting]
