"""Functions beyond arithmetic: extremes, logarithms, comparisons, choices and reductions."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping

from costdb.expr.nodes import (
    MAKERS,
    ONE,
    ZERO,
    Expr,
    ExprError,
    ExprLike,
    Num,
    Rational,
    Sym,
    as_expr,
    gcd_value,
    log2_value,
)
from costdb.records import IDENTIFIER, dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Extreme(Expr):
    """Common part of `Max` and `Min`: flat, without repetition, at most one constant."""

    args: tuple[Expr, ...]

    def __post_init__(self) -> None:
        self._seal(self.args)

    def _key(self) -> object:
        return frozenset(self.args)


@dataclass(frozen=True, slots=True, eq=False)
class Max(Extreme):
    """The largest of two or more arguments."""


@dataclass(frozen=True, slots=True, eq=False)
class Min(Extreme):
    """The smallest of two or more arguments."""


@dataclass(frozen=True, slots=True, eq=False)
class Log2(Expr):
    """Binary logarithm, exact for exact powers of two."""

    argument: Expr

    def is_whole(self, whole: frozenset[str] = frozenset()) -> bool:
        """Tell whether this is whole."""
        return False


@dataclass(frozen=True, slots=True, eq=False)
class Binary(Expr):
    """Common part of functions of two arguments."""

    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Gcd(Binary):
    """Greatest common divisor, never negative; of fractions, the largest common measure."""


@dataclass(frozen=True, slots=True, eq=False)
class Comparison(Binary):
    """Common part of the comparisons, whose value is 1 or 0."""

    def is_whole(self, whole: frozenset[str] = frozenset()) -> bool:
        """Tell whether this is whole."""
        return True


@dataclass(frozen=True, slots=True, eq=False)
class Less(Comparison):
    """1 where ``left < right``, else 0."""


@dataclass(frozen=True, slots=True, eq=False)
class LessEqual(Comparison):
    """1 where ``left <= right``, else 0."""


@dataclass(frozen=True, slots=True, eq=False)
class Equal(Comparison):
    """1 where ``left == right``, else 0."""


@dataclass(frozen=True, slots=True, eq=False)
class Conditional(Expr):
    """`then` where `test` is not 0, else `orelse`; only the chosen side is evaluated."""

    test: Expr
    then: Expr
    orelse: Expr

    def is_whole(self, whole: frozenset[str] = frozenset()) -> bool:
        """Tell whether this is whole."""
        return self.then.is_whole(whole) and self.orelse.is_whole(whole)


@dataclass(frozen=True, slots=True, eq=False)
class Reduction(Expr):
    """Common part of the reductions of `body` over whole `index` in ``low..high`` inclusive.

    An empty range gives 0. The bounds do not see `index`.
    """

    index: str
    low: Expr
    high: Expr
    body: Expr

    def __post_init__(self) -> None:
        self._seal((self.low, self.high, self.body))

    def rebuild(self, children: tuple[Expr, ...]) -> Expr:
        """Return the reduction over the same index."""
        return MAKERS[type(self)](self.index, *children)

    def is_whole(self, whole: frozenset[str] = frozenset()) -> bool:
        """Tell whether this is whole."""
        return self.body.is_whole(whole | {self.index})

    def _key(self) -> object:
        return self.index, self.low, self.high, self.body

    def _beside(self) -> object:
        return self.index


@dataclass(frozen=True, slots=True, eq=False)
class Sum(Reduction):
    """The sum of `body`."""


@dataclass(frozen=True, slots=True, eq=False)
class MaxOver(Reduction):
    """The largest value of `body`; 0 over an empty range."""


def _extreme(
    kind: type[Extreme], pick: Callable[[list[Rational]], Rational], args: Iterable[ExprLike]
) -> Expr:
    flat: dict[Expr, None] = {}
    constants: list[Rational] = []
    for arg in map(as_expr, args):
        for inner in arg.args if isinstance(arg, kind) else (arg,):
            if isinstance(inner, Num):
                constants.append(inner.value)
            else:
                flat[inner] = None
    if constants:
        flat[Num(pick(constants))] = None
    if not flat:
        raise ExprError("max and min need at least one argument")
    return next(iter(flat)) if len(flat) == 1 else kind(tuple(flat))


def maximum(*args: ExprLike) -> Expr:
    """Return the largest of `args`."""
    return _extreme(Max, max, args)


def minimum(*args: ExprLike) -> Expr:
    """Return the smallest of `args`."""
    return _extreme(Min, min, args)


def log2(value: ExprLike) -> Expr:
    """Return the binary logarithm of `value`; of a constant power of two, a whole constant."""
    value = as_expr(value)
    known = log2_value(value.value) if isinstance(value, Num) else None
    return Num(known) if isinstance(known, int) else Log2(value)


def gcd(left: ExprLike, right: ExprLike) -> Expr:
    """Return the greatest common divisor."""
    left, right = as_expr(left), as_expr(right)
    if isinstance(left, Num) and isinstance(right, Num):
        return Num(gcd_value(left.value, right.value))
    return Gcd(left, right)


def _compared(
    kind: type[Comparison],
    holds: Callable[[Rational, Rational], bool],
    left: ExprLike,
    right: ExprLike,
) -> Expr:
    # Cheap proofs only: equal terms cancel in the canonical sum.
    left, right = as_expr(left), as_expr(right)
    difference = left - right
    if isinstance(difference, Num):
        return Num(int(holds(difference.value, 0)))
    return kind(left, right)


def less(left: ExprLike, right: ExprLike) -> Expr:
    """Return 1 where ``left < right``, else 0."""
    return _compared(Less, operator.lt, left, right)


def less_equal(left: ExprLike, right: ExprLike) -> Expr:
    """Return 1 where ``left <= right``, else 0."""
    return _compared(LessEqual, operator.le, left, right)


def equal(left: ExprLike, right: ExprLike) -> Expr:
    """Return 1 where ``left == right``, else 0."""
    return _compared(Equal, operator.eq, left, right)


def logical_not(value: ExprLike) -> Expr:
    """Return 1 where `value` is 0, else 0."""
    value = as_expr(value)
    if isinstance(value, Less):
        return less_equal(value.right, value.left)
    if isinstance(value, LessEqual):
        return less(value.right, value.left)
    return equal(value, ZERO)


def logical_and(left: ExprLike, right: ExprLike) -> Expr:
    """Return 1 where both are nonzero, else 0; the right side is not evaluated after a 0."""
    return conditional(left, conditional(right, ONE, ZERO), ZERO)


def logical_or(left: ExprLike, right: ExprLike) -> Expr:
    """Return 1 where either is nonzero, else 0; the right side is not evaluated after a 1."""
    return conditional(left, ONE, conditional(right, ONE, ZERO))


def conditional(test: ExprLike, then: ExprLike, orelse: ExprLike) -> Expr:
    """Return `then` where `test` is not 0, else `orelse`."""
    test, then, orelse = as_expr(test), as_expr(then), as_expr(orelse)
    if isinstance(test, Num):
        return then if test.value else orelse
    if then == orelse:
        return then
    if then == ONE and orelse == ZERO and isinstance(test, Comparison):
        return test
    return Conditional(test, then, orelse)


def _over(kind: type[Reduction], index: str, low: ExprLike, high: ExprLike, body: ExprLike) -> Expr:
    low, high, body = as_expr(low), as_expr(high), as_expr(body)
    if body == ZERO or less(high, low) == ONE:
        return ZERO
    return kind(index, low, high, body)


def summation(index: str, low: ExprLike, high: ExprLike, body: ExprLike) -> Expr:
    """Return the sum of `body` over whole `index` in ``low..high``, both included.

    An empty range (``high < low``) gives 0.
    """
    return _over(Sum, index, low, high, body)


def maximum_over(index: str, low: ExprLike, high: ExprLike, body: ExprLike) -> Expr:
    """Return the largest `body` over whole `index` in ``low..high``, both included.

    An empty range (``high < low``) gives 0.
    """
    return _over(MaxOver, index, low, high, body)


MAKERS |= {
    Max: maximum,
    Min: minimum,
    Log2: log2,
    Gcd: gcd,
    Less: less,
    LessEqual: less_equal,
    Equal: equal,
    Conditional: conditional,
    Sum: summation,
    MaxOver: maximum_over,
}


# Names: which are allowed, which occur free, and replacing them without capture.


NAME_PATTERN = rf"{IDENTIFIER}(?:\.{IDENTIFIER})*"
"""Names as Python has them, which may be Greek or Chinese; what is none after all is refused."""

_NAMED = re.compile(" +")
NOT_NUMBERS = frozenset({"nan", "inf", "infinity"})
OPERATOR_WORDS = frozenset({"div", "mod", "and", "or", "not"})


def check_name(name: str) -> str:
    """Return `name`, or refuse what the grammar could not read back."""
    if not all(part.isidentifier() for part in name.split(".")):
        raise ExprError(f"{name!r} is not a name")
    if len(name) > 200:
        raise ExprError(f"a name of {len(name)} characters is too long")
    if name in OPERATOR_WORDS:
        raise ExprError(f"{name!r} is an operator, not a name")
    if name.lower() in NOT_NUMBERS:
        raise ExprError(f"{name!r} is not a finite number")
    return name


def is_name(text: str) -> bool:
    """Return whether a symbol may be called so; some names of Python's mean something here."""
    try:
        check_name(text)
    except ExprError:
        return False
    return True


def name_like(text: str) -> str:
    """Return `text` with an underscore for each run of what names do not hold; dots stay."""
    parts = _NAMED.split("".join(c if c == "." or f"_{c}".isidentifier() else " " for c in text))
    return "_".join(parts)


def sym(name: str) -> Expr:
    """Return the symbol `name`: identifiers of Python, joined by dots."""
    return Sym(check_name(name))


CHANCE = "chance.line"
"""With a number behind it: the probability of a condition in that line that nothing tells."""


def chance(line: int) -> Expr:
    """Return the probability of a condition that nothing tells, by the line where it stands."""
    return sym(f"{CHANCE}{line}")


TRIPS = "trips.line"
"""With a number behind it: how often the loop in that line runs, which nothing tells."""


def trips(line: int) -> Expr:
    """Return how often a loop runs of which nothing tells, by the line where it stands."""
    return sym(f"{TRIPS}{line}")


def free_symbols(expr: Expr) -> frozenset[str]:
    """Return the names that a value of `expr` depends on."""
    known = expr._free
    if known is not None:
        return known
    if isinstance(expr, Sym):
        found = frozenset({expr.name})
    elif isinstance(expr, Reduction):
        found = free_symbols(expr.low) | free_symbols(expr.high)
        found |= free_symbols(expr.body) - {expr.index}
    else:
        found = frozenset().union(*map(free_symbols, expr.children))
    object.__setattr__(expr, "_free", found)
    return found


def fresh_name(stem: str, taken: frozenset[str]) -> str:
    """Return `stem`, or `stem` with the first number that makes it differ from all `taken`."""
    name, count = stem, 0
    while name in taken:
        count += 1
        name = f"{stem}_{count}"
    return name


def substitute(expr: Expr, replacements: Mapping[str, ExprLike]) -> Expr:
    """Replace free symbols, renaming an index that would capture a replacement.

    Parameters
    ----------
    expr : Expr
    replacements : mapping of str to Expr or number
        All replaced at once; names that do not occur are ignored.
    """
    return _Replacing({name: as_expr(new) for name, new in replacements.items()}).replaced(expr)


class _Replacing:
    """One set of replacements; parts that occur several times are replaced once."""

    def __init__(self, replacements: dict[str, Expr]) -> None:
        self.replacements = replacements
        self.known: dict[Expr, Expr] = {}

    def replaced(self, expr: Expr) -> Expr:
        if free_symbols(expr).isdisjoint(self.replacements):
            return expr
        if isinstance(expr, Sym):
            return self.replacements[expr.name]
        found = self.known.get(expr)
        if found is None:
            found = self.known[expr] = self._replaced(expr)
        return found

    def _replaced(self, expr: Expr) -> Expr:
        if isinstance(expr, Reduction):
            low, high = self.replaced(expr.low), self.replaced(expr.high)
            body = rename_index(expr, self.replacements)
            return body.rebuild((low, high, body.body))
        if isinstance(expr, Conditional):
            test = self.replaced(expr.test)
            if isinstance(test, Num):
                # the other branch may have no value here, which is what the test is for
                return self.replaced(expr.then if test.value else expr.orelse)
        return expr.rebuild(tuple([self.replaced(child) for child in expr.children]))


def rename_index(expr: Reduction, replacements: dict[str, Expr]) -> Reduction:
    """Return `expr` with `replacements` made in its body, under an index that captures none."""
    inner_names = free_symbols(expr.body) - {expr.index}
    inner = {name: replacements[name] for name in inner_names & replacements.keys()}
    index = expr.index
    incoming = frozenset().union(*map(free_symbols, inner.values()))
    if index in incoming:
        index = fresh_name(index, incoming | inner_names)
        inner[expr.index] = Sym(index)
    return type(expr)(index, expr.low, expr.high, _Replacing(inner).replaced(expr.body))
