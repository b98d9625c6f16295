"""Compiling an expression to a fast function of plain numbers."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, TypeAlias

from costdb.expr.arithmetic import MAX_ITERATIONS, bounded_power, normal, reduction_bound
from costdb.expr.denominators import cleared, over_denominator
from costdb.expr.errors import ExprError
from costdb.expr.exact import Rational, Value
from costdb.expr.forms import PLAIN_EXPONENT, form_of
from costdb.expr.functions import (
    Comparison,
    Conditional,
    Extreme,
    Gcd,
    Log2,
    Max,
    Reduction,
    Sum,
    gcd_value,
    log2_value,
)
from costdb.expr.lower import (
    Lowering,
    added_to,
    assign,
    assign_all,
    binary,
    call,
    choose,
    compare,
    comparison_operator,
    constant,
    first_of,
    is_exact,
    name,
    negative,
    raised_to,
    returned,
    returned_values,
    shared_parts,
)
from costdb.expr.names import free_symbols, fresh_name, substitute
from costdb.expr.nodes import (
    ONE,
    Add,
    CeilDiv,
    Division,
    Expr,
    FloorDiv,
    Mod,
    Mul,
    Num,
    Pow,
    Sym,
)
from costdb.expr.pieces import PIECED_FROM, pieced

ScalarFunction: TypeAlias = Callable[..., Value]

_AT: dict[str, Any] = {"lineno": 1, "col_offset": 0}

MOST_FORMS = 512
"""Loops that are kept compiled."""

MOST_REMEMBERED = 8192
"""Sums over ranges between numbers that are kept."""


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


class Scalar(Lowering):
    """Turns expressions into code for plain numbers."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(names)
        self.helpers = dict(_HELPERS)
        self.temporaries = 0
        self.numbers: Mapping[int, str] = {}
        """Magnitudes that are arguments, see :mod:`costdb.expr.forms`."""
        self.whole: frozenset[str] = frozenset()
        """Symbols that surely stand for an `int`."""
        self.alike: dict[Expr, bool] = {}

    def mode(self, expr: Expr, exact: bool) -> bool:
        """Return the mode that a part is lowered in: exact too where both give the same code."""
        return exact or self.same_in_both(expr)

    def same_in_both(self, expr: Expr) -> bool:
        """Tell whether no fraction and no unrounded division makes a difference of the modes."""
        if isinstance(expr, Num):
            return isinstance(expr.value, int)
        if isinstance(expr, Sym | Division | Comparison | Gcd):
            return True
        known = self.alike.get(expr)
        if known is None:
            known = self.alike[expr] = self._same_in_both(expr)
        return known

    def _same_in_both(self, expr: Expr) -> bool:
        match expr:
            case Add(constant=number) | Mul(coefficient=number):
                return isinstance(number, int) and all(map(self.same_in_both, expr.children))
            case Pow(exponent=Num(value=int() as exponent)):
                return 0 < exponent <= PLAIN_EXPONENT and self.same_in_both(expr.base)
            case Conditional():
                return self.same_in_both(expr.then) and self.same_in_both(expr.orelse)
            case Extreme():
                return all(map(self.same_in_both, expr.args))
            case _:
                return False

    def number(self, value: Rational, exact: bool) -> ast.expr:
        """Return code for a constant."""
        if isinstance(value, int):
            known = self.numbers.get(-value if value < 0 else value)
            if known is None:
                return constant(value)
            return negative(name(known)) if value < 0 else name(known)
        if exact:
            # made once, not at every step of a loop
            kept = f"q{value.numerator}_{value.denominator}".replace("-", "m")
            self.helpers[kept] = value
            return name(kept)
        return constant(nearest(value))

    def symbol(self, expr: Sym, exact: bool) -> ast.expr:
        """Return code for a symbol."""
        return name(self.scope[expr.name])

    def quotient(self, above: ast.expr, below: ast.expr, exact: bool) -> ast.expr:
        """Return code for an unrounded division."""
        return call("divide", above, below) if exact else binary(above, ast.Div(), below)

    def other(self, expr: Expr, exact: bool) -> ast.expr:
        """Return code for what is no constant, symbol, sum or product."""
        match expr:
            case Pow():
                return self.power(expr, exact)
            case Division():
                return self.division(expr)
            case Conditional():
                then = self.lower(expr.then, exact)
                return choose(self.test(expr.test), then, self.lower(expr.orelse, exact))
            case Comparison():
                return choose(self.test(expr), constant(1), constant(0))
            case Extreme():
                return self.extreme(expr, exact)
            case Log2():
                return call("log2", self.lower(expr.argument, exact))
            case Gcd():
                # what is certainly whole needs no look at it, which takes as long as the rest
                helper = "gcd_of_whole" if self.is_whole(expr) else "gcd"
                return call(helper, self.lower(expr.left, True), self.lower(expr.right, True))
            case Reduction():
                return self.reduction(expr, exact)
            case _:
                raise ExprError(f"{type(expr).__name__} cannot be compiled")

    def power(self, expr: Pow, exact: bool) -> ast.expr:
        """Return code for a power."""
        base = self.lower(expr.base, exact)
        if isinstance(expr.exponent, Num):
            value = expr.exponent.value
            if isinstance(value, int) and 0 < value <= PLAIN_EXPONENT:
                return binary(base, ast.Pow(), constant(value))
        return call("power", base, self.lower(expr.exponent, True))

    def division(self, expr: Division) -> ast.expr:
        """Return code for a rounded division or a remainder."""
        if isinstance(expr, CeilDiv) and isinstance(expr.dividend, Log2) and expr.divisor == ONE:
            return self.ceil_log2(expr.dividend.argument)
        above = self.lower(expr.dividend, True)
        below = self.lower(expr.divisor, True)
        if isinstance(expr, Mod):
            return binary(above, ast.Mod(), below)
        if isinstance(expr, FloorDiv):
            return binary(above, ast.FloorDiv(), below)
        return negative(binary(negative(above), ast.FloorDiv(), below))

    def ceil_log2(self, argument: Expr) -> ast.expr:
        """Return code for a rounded logarithm, which counts the rounds of a tree."""
        code = self.lower(argument, True)
        if not self.is_whole(argument):
            return call("ceil_log2", code)
        # in place, it takes a fifth of the time
        first, again = self.temporary(code)
        below = binary(again, ast.Sub(), constant(1))
        rounds = ast.Call(ast.Attribute(below, "bit_length", ast.Load(), **_AT), [], [], **_AT)
        positive = compare(first, ast.Gt(), constant(0))
        return choose(positive, rounds, call("ceil_log2", again))

    def is_whole(self, expr: Expr) -> bool:
        """Tell whether a part surely is an `int` when the code runs."""
        if not (free_symbols(expr) <= self.whole and expr.is_whole(self.whole)):
            return False
        pending, seen = [expr], {expr}
        while pending:
            part = pending.pop()
            if isinstance(part, Log2):
                # rounded down, it is whole and comes as a float
                return False
            fresh = [child for child in part.children if child not in seen]
            seen.update(fresh)
            pending += fresh
        return True

    def test(self, expr: Expr) -> ast.expr:
        """Return code whose truth is that of `expr`."""
        if isinstance(expr, Comparison):
            left, right = self.lower(expr.left, True), self.lower(expr.right, True)
            return compare(left, comparison_operator(expr), right)
        if isinstance(expr, Conditional):
            then, orelse = self.test(expr.then), self.test(expr.orelse)
            return choose(self.test(expr.test), then, orelse)
        return self.lower(expr, True)

    def extreme(self, expr: Extreme, exact: bool) -> ast.expr:
        """Return code for the largest or smallest of some."""
        operator: ast.cmpop = ast.GtE() if isinstance(expr, Max) else ast.LtE()
        code = self.lower(expr.args[0], exact)
        for arg in expr.args[1:]:
            # Comparing in place costs half of a call of max().
            left, right = self.temporary(code), self.temporary(self.lower(arg, exact))
            code = choose(compare(left[0], operator, right[0]), left[1], right[1])
        return code

    def temporary(self, code: ast.expr) -> tuple[ast.expr, ast.expr]:
        """Return code that evaluates and keeps a value, and code that recalls it."""
        if isinstance(code, ast.Name | ast.Constant):
            return code, code
        self.temporaries += 1
        kept = f"v{self.temporaries}"
        return ast.NamedExpr(ast.Name(kept, ast.Store(), **_AT), code, **_AT), name(kept)

    def function(self, expr: Expr, helpers: dict[str, object]) -> ScalarFunction:
        """Return the compiled function; loops over one range that are all needed are one loop."""
        together: dict[tuple[Expr, Expr], list[Reduction]] = {}
        for part in _needed(expr):
            together.setdefault((part.low, part.high), []).append(part)
        for (low, high), parts in together.items():
            if len(parts) > 1 and not free_symbols(expr) - self.scope.keys():
                code = self.looped(parts, low, high, False)
                targets = [f"r{self.reductions}_{place}" for place in range(len(parts))]
                self.statements.append(assign_all(targets, code))
                self.hoisted.update(zip([(part, False) for part in parts], targets, strict=True))
        return super().function(expr, helpers)

    def reduction(self, expr: Reduction, exact: bool) -> ast.expr:
        """Return code for a sum or maximum over a range."""
        return first_of(self.looped([expr], expr.low, expr.high, exact))

    def looped(self, parts: list[Reduction], low: Expr, high: Expr, exact: bool) -> ast.expr:
        """Return code for the values of reductions over one range, a tuple of them."""
        self.reductions += 1
        own = f"loop{self.reductions}"
        free = sorted(frozenset().union(*(free_symbols(p.body) - {p.index} for p in parts)))
        self.helpers[own] = _reducer(tuple(parts), tuple(free), exact)
        given = [self.symbol(Sym(one), exact) for one in free]
        return call(own, self.lower(low, True), self.lower(high, True), *given)


def _needed(expr: Expr) -> list[Reduction]:
    """Return the reductions that are evaluated whatever is chosen."""
    found: dict[Expr, None] = {}
    pending = [expr]
    while pending:
        part = pending.pop()
        if part in found:
            continue
        found[part] = None
        if isinstance(part, Conditional):
            pending.append(part.test)
        elif not isinstance(part, Reduction):
            # divisions and comparisons are lowered in another mode
            pending += [] if is_exact(part) else part.children
    return [part for part in found if isinstance(part, Reduction)]


@lru_cache(maxsize=512)
def _loop(
    parts: tuple[Reduction, ...], names: tuple[str, ...], exact: bool, whole: frozenset[str]
) -> Callable[..., Any]:
    """Return a function of the ends of a range that is not empty, and of other symbols."""
    form = form_of(parts, names)
    if form is None:
        return _Loop(("low", "high", *names), whole=whole).over(parts, exact)
    key = form.key, tuple([name in whole for name in names]), exact
    made = _forms.pop(key, None)
    if made is None:
        numbers = {number: f"n{place}" for place, number in enumerate(form.numbers)}
        made = _Loop(("low", "high", *names), numbers, whole).over(parts, exact)
    _forms[key] = made
    while len(_forms) > MOST_FORMS:
        _forms.pop(next(iter(_forms)))
    return partial(made, *form.numbers) if form.numbers else made


_forms: dict[Hashable, Callable[..., Any]] = {}


class _Loop(Scalar):
    """Reductions over one range, as one loop that evaluates what they share once.

    Parameters
    ----------
    names : sequence of str
    numbers : mapping of int to str
        The first arguments.
    whole : frozenset of str
        Those of `names` that surely stand for an `int`.
    """

    def __init__(
        self,
        names: Sequence[str],
        numbers: Mapping[int, str] | None = None,
        whole: frozenset[str] = frozenset(),
    ) -> None:
        super().__init__(names)
        self.numbers = numbers or {}
        self.whole = whole

    def over(self, parts: tuple[Reduction, ...], exact: bool) -> Callable[..., Any]:
        low, high = self.scope.pop("low"), self.scope.pop("high")
        given = (*self.numbers.values(), low, high, *self.scope.values())
        arguments = [ast.arg(one, None, **_AT) for one in given]
        index = parts[0].index
        if any(part.index != index for part in parts) or index in self.scope:
            index = fresh_name("i", frozenset(self.scope))
        bodies = [(_indexed(part, index), exact) for part in parts]
        keys = shared_parts(bodies, self.mode, index)
        self.share(key for key in keys if index not in free_symbols(key[0]))
        totals = [f"total{place}" for place in range(len(parts))]
        starts = [constant(0 if isinstance(part, Sum) else None) for part in parts]
        before = [*self.statements, *map(assign, totals, starts)]
        self.statements = []
        self.scope[index] = "i"
        self.whole |= {index}
        self.share(key for key in keys if index in free_symbols(key[0]))
        for part, total, (body, _) in zip(parts, totals, bodies, strict=True):
            code = self.lower(body, exact)
            if isinstance(part, Sum):
                self.statements.append(added_to(total, code))
            else:
                self.statements += raised_to(total, code)
        steps = call("range", name(low), binary(name(high), ast.Add(), constant(1)))
        loop = ast.For(ast.Name("i", ast.Store(), **_AT), steps, self.statements, [], **_AT)
        self.statements = [*before, loop, returned(totals)]
        return self.compiled(arguments, self.helpers)


def _indexed(part: Reduction, index: str) -> Expr:
    return part.body if part.index == index else substitute(part.body, {part.index: Sym(index)})


def sums_over(
    parts: tuple[Reduction, ...], low: int, high: int, values: Mapping[str, Value]
) -> tuple[Value, ...]:
    """Return reductions over one range, each exact where the values that it uses are.

    Parameters
    ----------
    parts : tuple of Reduction
        Their own bounds are not looked at.
    low, high : int
    values : mapping of str to int, Fraction or float
        A value for every symbol in their bodies.
    """
    asked: list[Hashable] = []
    for part, names in zip(parts, _names_in(parts), strict=True):
        used = [values[name] for name in names]
        # a whole number and a float may be equal
        types = tuple([type(value) for value in used])
        asked.append((type(part), part.index, part.body, low, high, types, *used))
    new = tuple([part for part, one in zip(parts, asked, strict=True) if one not in _remembered])
    found = dict(zip(new, _enumerated(new, low, high, values), strict=True)) if new else {}
    total = tuple(
        found[part] if part in found else _remembered[one]
        for part, one in zip(parts, asked, strict=True)
    )
    for one, value in zip(asked, total, strict=True):
        _remembered.pop(one, None)
        _remembered[one] = value
    while len(_remembered) > MOST_REMEMBERED:
        del _remembered[next(iter(_remembered))]
    return total


@lru_cache(maxsize=512)
def _names_in(parts: tuple[Reduction, ...]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(sorted(free_symbols(part.body) - {part.index})) for part in parts)


_remembered: dict[Hashable, Value] = {}
"""Sums of late: a price is made of those of its terms, variants share most of theirs, and whoever
compares prices or looks for crossovers asks for all of them again."""


def forget_sums() -> None:
    """Drop the sums that are remembered, as a measurement needs."""
    _remembered.clear()


def _enumerated(
    parts: tuple[Reduction, ...], low: int, high: int, values: Mapping[str, Value]
) -> tuple[Value, ...]:
    names = frozenset().union(*_names_in(parts))
    whole = frozenset(name for name in names if type(values[name]) is int)
    free = sorted(names)
    return _exactly(parts, tuple(free), whole)(low, high, *(values[name] for name in free))


def nearest(value: Rational) -> float:
    """Return the float nearest to a constant."""
    try:
        return value.numerator / value.denominator
    except OverflowError:
        raise ExprError("a constant is too large") from None


def _divide(above: Value, below: Value) -> Value:
    if below == 1:
        return above
    if isinstance(above, float) or isinstance(below, float):
        return above / below
    return normal(Fraction(above) / below)


def _ceil_log2(value: Value) -> int:
    """Return the rounds of a tree over `value` ranks."""
    if isinstance(value, int) and value > 0:
        return (value - 1).bit_length()
    return math.ceil(log2_value(value))


def _greatest_divisor(left: Value, right: Value) -> Rational:
    try:
        return math.gcd(left, right)  # type: ignore[arg-type]  # what is not whole is refused
    except TypeError:
        return gcd_value(left, right)


def _reducer(
    parts: tuple[Reduction, ...],
    names: tuple[str, ...],
    exact: bool,
    known_whole: frozenset[str] = frozenset(),
) -> Callable[..., tuple[Value, ...]]:
    """Return a function of the ends of a range and of other symbols, a value for each part."""
    whole = [_over(part, exact) for part in parts]
    parts, below = tuple(part for part, _ in whole), tuple(number for _, number in whole)

    def reduced(low: Value, high: Value, *others: Value) -> tuple[Value, ...]:
        first, last = reduction_bound(low, "a loop"), reduction_bound(high, "a loop")
        if last < first:
            return (0,) * len(parts)
        if last - first >= PIECED_FROM:
            known = _in_pieces(parts, first, last, dict(zip(names, others, strict=True)))
            if known is not None:
                return tuple(map(_divide, known, below))
        if last - first >= MAX_ITERATIONS:
            raise ExprError(f"a loop without a closed form has more than {MAX_ITERATIONS} steps")
        values = _loop(parts, names, exact, known_whole)(first, last, *others)
        return tuple(map(_divide, values, below))

    return reduced


@lru_cache(maxsize=512)
def _exactly(
    parts: tuple[Reduction, ...], names: tuple[str, ...], whole: frozenset[str]
) -> Callable[..., tuple[Value, ...]]:
    return _reducer(parts, names, True, whole)


def _over(part: Reduction, exact: bool) -> tuple[Reduction, int]:
    """Return a reduction that decides over whole numbers, and what to divide it by."""
    if not exact:
        return type(part)(part.index, part.low, part.high, cleared(part.body)), 1
    body, below = over_denominator(part.body)
    return type(part)(part.index, part.low, part.high, body), below


def _in_pieces(
    parts: tuple[Reduction, ...], low: int, high: int, others: dict[str, Value]
) -> tuple[Value, ...] | None:
    found: list[Value] = []
    for part in parts:
        # what is exact decides where pieces end; floats, such as coefficients, only weigh them
        used = sorted(free_symbols(part.body) - {part.index})
        exact = tuple((n, v) for n in used if not isinstance(v := others[n], float))
        weights = pieced(part, low, high, exact)
        if weights is None:
            return None
        found.append(
            sum(w * math.prod(others[name] for name in names) for names, w in weights.items())
        )
    return tuple(found)


_HELPERS: dict[str, object] = {
    "ceil_log2": _ceil_log2,
    "divide": _divide,
    "fraction": Fraction,
    "gcd": _greatest_divisor,
    "gcd_of_whole": math.gcd,
    "log2": log2_value,
    "power": bounded_power,
    "range": range,
}
