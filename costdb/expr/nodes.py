"""Immutable arithmetic expressions, kept in a light canonical form as they are built.

Constants are exact rationals. Sums and products are flat, like terms and equal bases are
combined, and both keep the order in which the author wrote them; equality ignores that order.
Removable singularities are removed: ``x*0`` is 0 and ``x/x`` is 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any, ClassVar, TypeAlias, cast

from costdb.records import dataclass

# Numbers: exact constants of formulas, bounded in size, and functions of values.

Rational: TypeAlias = int | Fraction
Value: TypeAlias = int | Fraction | float

MAX_BITS = 8192
"""Bits of an exact constant, so that a tower of powers is refused and not computed."""


class ExprError(ValueError):
    """An expression that cannot be built, read or evaluated; the message is one line."""


def magnitude(value: Rational) -> Rational:
    """Return the absolute value, which the type of `abs` would lose."""
    return -value if value < 0 else value


def check_size(value: Rational) -> Rational:
    """Return `value`, or refuse one of more than `MAX_BITS` bits."""
    # nearly every constant is a small whole number, and fractions are slow to ask
    if type(value) is int and -MAX_BITS < value < MAX_BITS:
        return value
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > MAX_BITS:
        raise ExprError(f"a constant needs more than {MAX_BITS} bits")
    return value


def exact(value: int | float | Fraction) -> Rational:
    """Return `value` as an exact rational; a float is the decimal it prints as."""
    if type(value) is int:
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ExprError(f"{value} is not a finite number")
        value = Fraction(repr(value))
    if isinstance(value, Fraction):
        return value.numerator if value.denominator == 1 else value
    return int(value)


def rational_power(base: Rational, exponent: int) -> Rational:
    """Return ``base ** exponent`` exactly, or refuse a result too large to be meant."""
    if base == 0 and exponent < 0:
        raise ExprError("division by zero")
    if base in (0, 1, -1):
        return exact(base ** (exponent % 2 + 2)) if exponent else 1
    bits = max(base.numerator.bit_length(), base.denominator.bit_length())
    if (bits - 1) * abs(exponent) > MAX_BITS:
        raise ExprError(f"a power needs more than {MAX_BITS} bits")
    return exact(Fraction(base) ** exponent)


def bounded_power(base: Value, exponent: Value) -> Value:
    """Return ``base ** exponent``, whole where both are whole and it can be."""
    if base == 0 and exponent < 0:
        raise ExprError("division by zero")
    if isinstance(exponent, int) and not isinstance(base, float):
        bits = max(base.numerator.bit_length(), base.denominator.bit_length())
        if bits > 1 and bits * abs(exponent) > 16 * MAX_BITS:
            raise ExprError(f"a power needs more than {16 * MAX_BITS} bits")
        return quotient(1, base**-exponent) if exponent < 0 else base**exponent
    if base < 0 and not float(exponent).is_integer():
        raise ExprError(f"{base} to the power {exponent} is not a real number")
    return math.pow(base, exponent)


def quotient(above: Value, below: Value) -> Value:
    """Return ``above / below``, whole where both are whole and it is."""
    if type(above) is int and type(below) is int:
        whole, rest = divmod(above, below)
        return above / below if rest else whole
    return above / below


def log2_value(value: Value) -> int | float:
    """Return the binary logarithm, an `int` for an exact power of two."""
    if value <= 0:
        raise ExprError(f"log2 of {value}, which is not positive")
    if isinstance(value, float):
        mantissa, exponent = math.frexp(value)
        return exponent - 1 if mantissa == 0.5 else math.log2(value)
    above, below = value.numerator, value.denominator
    if above & (above - 1) == 0 and below & (below - 1) == 0:
        return above.bit_length() - below.bit_length()
    return math.log2(above) - math.log2(below)


def gcd_value(left: Value, right: Value) -> int:
    """Return the greatest common divisor of two whole numbers."""
    for value in (left, right):
        if value % 1 != 0:
            raise ExprError(f"gcd of {value}, which is not a whole number")
    return math.gcd(int(left), int(right))


# Immutable trees, bounded in size, hashed once and compared by structure.

MAX_DEPTH = 100
"""Levels of nesting: keeps every recursion over a tree clear of Python's limit."""

MAX_SIZE = 2_000_000
"""Nodes counted as a tree: keeps a shared subtree from standing for an astronomic one.

Whatever computes with expressions visits a shared part once, so that the work is that of the
distinct parts: some thousand for a stencil over blocks of three axes whose sizes are all open,
where the tree has some hundred thousand. Only text is as long as the tree.
"""


Setter: TypeAlias = Callable[[object, object], None]


class Node:
    """An immutable, hashable tree; ``==`` compares structure, in whatever order it is written."""

    __slots__ = ("_free", "_hash", "children", "depth", "size")
    __match_args__: ClassVar[tuple[str, ...]] = ()
    _free: frozenset[str] | None
    _hash: int
    children: tuple[Node, ...]
    depth: int
    size: int

    def _seal(self, children: tuple[Node, ...]) -> None:
        depth = 0
        size = 1
        for child in children:
            if child.depth > depth:
                depth = child.depth
            size += child.size
        if depth >= MAX_DEPTH:
            raise ExprError(f"the expression is nested more than {MAX_DEPTH} levels deep")
        if size > MAX_SIZE:
            raise ExprError(f"the expression has more than {MAX_SIZE} parts")
        _set_children(self, children)
        _set_depth(self, depth + 1)
        _set_size(self, size)
        _set_hash(self, hash((type(self).__name__, self._key())))
        _set_free(self, None)

    def _key(self) -> object:
        """Return what this node is, its children in no order where theirs does not matter."""
        return self.children

    def _beside(self) -> object:
        """Return what else than its children this node is."""
        return None

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Node):
            return NotImplemented
        if type(self) is not type(other) or self._hash != other._hash or self.size != other.size:
            return False
        if self.children and self.children == other.children:
            # mostly written in the same order, too, which is compared faster than any order; and
            # equal parts that are one and the same are compared at once the next time
            _set_children(self, other.children)
            return self._beside() == other._beside()
        return self._key() == other._key()

    def __reduce__(self) -> tuple[Any, ...]:
        # Hashes of strings differ from process to process, so they are not carried along.
        return type(self), tuple(getattr(self, name) for name in self.__match_args__)


def setter(owner: type[Node], slot: str) -> Setter:
    """Return what sets a slot of a node that is being made.

    Expressions are made by the ten thousand. A slot's own setter takes half the time of
    ``object.__setattr__``, which the methods that forbid changes leave as the other way.
    """
    return cast(Setter, owner.__dict__[slot].__set__)


_set_children = setter(Node, "children")
_set_depth = setter(Node, "depth")
_set_size = setter(Node, "size")
_set_hash = setter(Node, "_hash")
_set_free = setter(Node, "_free")


class Expr(Node):
    """An immutable, hashable expression; ``==`` compares structure, never values."""

    __slots__ = ()
    children: tuple[Expr, ...]

    def __post_init__(self) -> None:
        self._seal(tuple([getattr(self, name) for name in self.__match_args__]))

    def rebuild(self, children: tuple[Expr, ...]) -> Expr:
        """Return this node over other children, in canonical form."""
        return MAKERS[type(self)](*children) if children else self

    def is_whole(self, whole: frozenset[str] = frozenset()) -> bool:
        """Tell whether this is certainly a whole number when the symbols in `whole` are."""
        return all(child.is_whole(whole) for child in self.children)

    def __add__(self, other: ExprLike) -> Expr:
        return combine([(1, self), (1, as_expr(other))])

    def __radd__(self, other: ExprLike) -> Expr:
        return combine([(1, as_expr(other)), (1, self)])

    def __sub__(self, other: ExprLike) -> Expr:
        return combine([(1, self), (-1, as_expr(other))])

    def __rsub__(self, other: ExprLike) -> Expr:
        return combine([(1, as_expr(other)), (-1, self)])

    def __mul__(self, other: ExprLike) -> Expr:
        return multiply((self, as_expr(other)))

    def __rmul__(self, other: ExprLike) -> Expr:
        return multiply((as_expr(other), self))

    def __truediv__(self, other: ExprLike) -> Expr:
        return multiply((self, power(as_expr(other), MINUS_ONE)))

    def __rtruediv__(self, other: ExprLike) -> Expr:
        return multiply((as_expr(other), power(self, MINUS_ONE)))

    def __floordiv__(self, other: ExprLike) -> Expr:
        return floor_div(self, other)

    def __mod__(self, other: ExprLike) -> Expr:
        return modulo(self, other)

    def __pow__(self, other: ExprLike) -> Expr:
        return power(self, as_expr(other))

    def __neg__(self) -> Expr:
        return multiply((MINUS_ONE, self))

    def __bool__(self) -> bool:
        raise ExprError("an expression has no truth value; use conditional(test, then, orelse)")


ExprLike: TypeAlias = Expr | int | float | Fraction


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Num(Expr):
    """An exact constant; whole values are `int`."""

    value: Rational

    def __init__(self, value: Rational) -> None:
        _set_value(self, check_size(value))
        self._seal(())

    def is_whole(self, whole: frozenset[str] = frozenset()) -> bool:
        """Tell whether this is whole."""
        return isinstance(self.value, int)

    def _key(self) -> object:
        return self.value


@dataclass(frozen=True, slots=True, eq=False)
class Sym(Expr):
    """A free name: a size, a coefficient, or the index of an enclosing reduction."""

    name: str

    def __post_init__(self) -> None:
        self._seal(())

    def is_whole(self, whole: frozenset[str] = frozenset()) -> bool:
        """Tell whether this is whole."""
        return self.name in whole

    def _key(self) -> object:
        return self.name


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Add(Expr):
    """``terms[0] + terms[1] + ... + constant``; no term is a constant or a sum."""

    terms: tuple[Expr, ...]
    constant: Rational

    def __init__(self, terms: tuple[Expr, ...], constant: Rational) -> None:
        _set_terms(self, terms)
        _set_constant(self, constant)
        self._seal(terms)

    def rebuild(self, children: tuple[Expr, ...]) -> Expr:
        """Return the sum of other terms."""
        return add((*children, num(self.constant)))

    def is_whole(self, whole: frozenset[str] = frozenset()) -> bool:
        """Tell whether this is whole."""
        return isinstance(self.constant, int) and all(t.is_whole(whole) for t in self.terms)

    def _key(self) -> object:
        return frozenset(self.terms), self.constant

    def _beside(self) -> object:
        return self.constant


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Mul(Expr):
    """``factors[0] * factors[1] * ... * coefficient``; bases of factors are distinct."""

    factors: tuple[Expr, ...]
    coefficient: Rational

    def __init__(self, factors: tuple[Expr, ...], coefficient: Rational) -> None:
        _set_factors(self, factors)
        _set_coefficient(self, coefficient)
        self._seal(factors)

    def rebuild(self, children: tuple[Expr, ...]) -> Expr:
        """Return the product of other factors."""
        return multiply((*children, num(self.coefficient)))

    def is_whole(self, whole: frozenset[str] = frozenset()) -> bool:
        """Tell whether this is whole."""
        whole_factors = all(factor.is_whole(whole) for factor in self.factors)
        return isinstance(self.coefficient, int) and whole_factors

    def _key(self) -> object:
        return frozenset(self.factors), self.coefficient

    def _beside(self) -> object:
        return self.coefficient


@dataclass(frozen=True, slots=True, eq=False)
class Pow(Expr):
    """``base ** exponent``; division is a negative exponent."""

    base: Expr
    exponent: Expr

    def is_whole(self, whole: frozenset[str] = frozenset()) -> bool:
        """Tell whether this is whole."""
        exponent = self.exponent
        if not isinstance(exponent, Num) or not isinstance(exponent.value, int):
            return False
        return exponent.value > 0 and self.base.is_whole(whole)


@dataclass(frozen=True, slots=True, eq=False)
class Division(Expr):
    """Common part of the divisions that do not give a fraction."""

    dividend: Expr
    divisor: Expr

    def is_whole(self, whole: frozenset[str] = frozenset()) -> bool:
        """Tell that what is rounded is whole."""
        return True


@dataclass(frozen=True, slots=True, eq=False)
class FloorDiv(Division):
    """The largest whole number not above ``dividend / divisor``."""


@dataclass(frozen=True, slots=True, eq=False)
class CeilDiv(Division):
    """The smallest whole number not below ``dividend / divisor``."""


@dataclass(frozen=True, slots=True, eq=False)
class Mod(Division):
    """``dividend - divisor * floor(dividend / divisor)``: the sign is the divisor's."""

    def is_whole(self, whole: frozenset[str] = frozenset()) -> bool:
        """Tell whether both sides are whole."""
        return self.dividend.is_whole(whole) and self.divisor.is_whole(whole)


_set_value = setter(Num, "value")
_set_terms = setter(Add, "terms")
_set_constant = setter(Add, "constant")
_set_factors = setter(Mul, "factors")
_set_coefficient = setter(Mul, "coefficient")


MAKERS: dict[type[Expr], Callable[..., Expr]] = {}
"""What makes a node of each kind of its children, in canonical form."""


def num(value: int | float | Fraction) -> Expr:
    """Return a constant.

    Parameters
    ----------
    value : int, float or Fraction
        Kept exactly; a float stands for the decimal it prints as, so ``num(0.1)`` is one tenth.

    Raises
    ------
    ExprError
        For a NaN, an infinity, or a number of more than `MAX_BITS` bits.
    """
    if type(value) is int and -_FEW < value < _FEW:
        return _SMALL[value + _FEW]
    return Num(exact(value))


_FEW = 300
_SMALL = tuple(Num(value) for value in range(-_FEW, _FEW))
"""Constants that occur again and again, each made once."""

ZERO = num(0)
ONE = num(1)
MINUS_ONE = num(-1)


def as_expr(value: ExprLike) -> Expr:
    """Return `value` as an expression."""
    if isinstance(value, Expr):
        return value
    if type(value) is int or isinstance(value, int | float | Fraction):
        return num(value)
    raise ExprError(f"{value!r} is not a number or an expression")


def split_coefficient(expr: Expr) -> tuple[Rational, Expr]:
    """Return ``(c, rest)`` with ``expr == c * rest`` and no constant factor left in `rest`."""
    if isinstance(expr, Mul):
        if expr.coefficient == 1:
            return 1, expr
        if len(expr.factors) == 1:
            return expr.coefficient, expr.factors[0]
        return expr.coefficient, Mul(expr.factors, 1)
    return 1, expr


def scale(coefficient: Rational, rest: Expr) -> Expr:
    """Inverse of `split_coefficient`."""
    if coefficient == 1:
        return rest
    if isinstance(rest, Mul):
        return Mul(rest.factors, coefficient)
    return Mul((rest,), coefficient)


def add(terms: Iterable[Expr]) -> Expr:
    """Return the sum of `terms`, flat and with like terms combined."""
    return combine([(1, term) for term in terms])


def combine(weighted: list[tuple[Rational, Expr]]) -> Expr:
    """Return the sum of terms with weights, flat and with like terms combined."""
    constant: Rational = 0
    like: dict[Expr, Rational] = {}
    pending = weighted[::-1]
    while pending:
        factor, term = pending.pop()
        if isinstance(term, Num):
            constant = check_size(constant + factor * term.value)
            continue
        if isinstance(term, Add):
            if term.constant != 0:
                constant = check_size(constant + factor * term.constant)
            pending += [(factor, inner) for inner in reversed(term.terms)]
            continue
        if isinstance(term, Mul) and term.coefficient != 1:
            coefficient, term = split_coefficient(term)
            factor = factor * coefficient
            if isinstance(term, Add):
                pending.append((factor, term))
                continue
        before = like.get(term)
        like[term] = check_size(factor if before is None else before + factor)
    kept = tuple([scale(exact(c), rest) for rest, c in like.items() if c != 0])
    constant = exact(constant)
    if not kept:
        return num(constant)
    if len(kept) == 1 and constant == 0:
        return kept[0]
    return Add(kept, constant)


def multiply(factors: Iterable[Expr]) -> Expr:
    """Return the product of `factors`, flat and with equal bases combined."""
    coefficient: Rational = 1
    bases: dict[Expr, list[Expr]] = {}
    pending = list(factors)
    pending.reverse()
    while pending:
        factor = pending.pop()
        if isinstance(factor, Num):
            coefficient = check_size(coefficient * factor.value)
        elif isinstance(factor, Mul):
            if factor.coefficient != 1:
                coefficient = check_size(coefficient * factor.coefficient)
            pending += factor.factors[::-1]
        elif isinstance(factor, Pow):
            bases.setdefault(factor.base, []).append(factor.exponent)
        elif factor in bases:
            bases[factor].append(ONE)
        else:
            bases[factor] = [ONE]
    coefficient = exact(coefficient)
    if coefficient == 0:
        return ZERO
    kept: list[Expr] = []
    again: list[Expr] = []
    for base, exponents in bases.items():
        exponent = exponents[0] if len(exponents) == 1 else add(exponents)
        if exponent is ONE:
            kept.append(base)
            continue
        if len(exponents) == 1 or not isinstance(exponent, Num):
            kept.append(base if exponent == ONE else Pow(base, exponent))
            continue
        combined = power(base, exponent)
        if isinstance(combined, Num):
            coefficient = exact(coefficient * combined.value)
        elif isinstance(combined, Mul):
            again.extend(combined.children)
            coefficient = exact(coefficient * combined.coefficient)
        else:
            kept.append(combined)
    if again:
        return multiply((*kept, *again, Num(coefficient)))
    if not kept:
        return num(coefficient)
    if coefficient == 1 and len(kept) == 1:
        return kept[0]
    return Mul(tuple(kept), coefficient)


def power(base: Expr, exponent: Expr) -> Expr:
    """Return ``base ** exponent``.

    Raises
    ------
    ExprError
        For a division by zero and for a constant power beyond `MAX_BITS`.
    """
    if not isinstance(exponent, Num):
        return ONE if base == ONE else Pow(base, exponent)
    if exponent.value == 0:
        return ONE
    if exponent.value == 1:
        return base
    if isinstance(exponent.value, Fraction):
        return base if base in (ZERO, ONE) and exponent.value > 0 else Pow(base, exponent)
    if abs(exponent.value) > MAX_BITS and not isinstance(base, Num):
        raise ExprError(f"an exponent above {MAX_BITS} is not supported")
    if isinstance(base, Num):
        return num(rational_power(base.value, exponent.value))
    if isinstance(base, Mul):
        constant = num(rational_power(base.coefficient, exponent.value))
        return multiply((*(power(factor, exponent) for factor in base.factors), constant))
    if isinstance(base, Pow) and isinstance(base.exponent, Num):
        return power(base.base, Num(exact(base.exponent.value * exponent.value)))
    return Pow(base, exponent)


def fraction_parts(expr: Expr) -> tuple[Expr, Expr]:
    """Return ``(a, b)`` with ``expr == a / b`` and constants of both whole, ``b`` positive."""
    if isinstance(expr, Num):
        return num(expr.value.numerator), num(expr.value.denominator)
    if isinstance(expr, Mul):
        above: list[Expr] = [num(expr.coefficient.numerator)]
        below: list[Expr] = [num(expr.coefficient.denominator)]
        for factor in expr.factors:
            if is_reciprocal(factor):
                below.append(power(factor, MINUS_ONE))
            else:
                above.append(factor)
        return multiply(above), multiply(below)
    if is_reciprocal(expr):
        return ONE, power(expr, MINUS_ONE)
    if isinstance(expr, Add):
        parts = [split_coefficient(term)[0].denominator for term in expr.terms]
        common = math.lcm(expr.constant.denominator, *parts)
        if common > 1:
            return add(Num(common) * term for term in (*expr.terms, Num(expr.constant))), Num(
                common
            )
    return expr, ONE


def is_reciprocal(expr: Expr) -> bool:
    """Tell whether `expr` is a base to a negative whole power."""
    return (
        isinstance(expr, Pow)
        and isinstance(expr.exponent, Num)
        and isinstance(expr.exponent.value, int)
        and expr.exponent.value < 0
    )


def _rounded(
    kind: type[Division],
    rounding: Callable[[Fraction], int],
    dividend: ExprLike,
    divisor: ExprLike,
) -> Expr:
    divisor = as_expr(divisor)
    if divisor == ZERO:
        raise ExprError("division by zero")
    above, below = fraction_parts(as_expr(dividend) / divisor)
    above, inner = fraction_parts(above)
    below = below * inner
    if isinstance(above, Num) and isinstance(below, Num):
        return Num(rounding(Fraction(above.value) / below.value))
    if below == ONE and above.is_whole():
        return above
    return kind(above, below)


def floor_div(dividend: ExprLike, divisor: ExprLike) -> Expr:
    """Return ``floor(dividend / divisor)``, exact for whole numbers and fractions."""
    return _rounded(FloorDiv, math.floor, dividend, divisor)


def ceil_div(dividend: ExprLike, divisor: ExprLike) -> Expr:
    """Return ``ceil(dividend / divisor)``, exact for whole numbers and fractions."""
    return _rounded(CeilDiv, math.ceil, dividend, divisor)


def floor(value: ExprLike) -> Expr:
    """Return the largest whole number not above `value`; of a quotient, a floor division."""
    return floor_div(value, ONE)


def ceil(value: ExprLike) -> Expr:
    """Return the smallest whole number not below `value`; of a quotient, a ceiling division."""
    return ceil_div(value, ONE)


def modulo(dividend: ExprLike, divisor: ExprLike) -> Expr:
    """Return ``dividend mod divisor`` with the sign of the divisor."""
    dividend, divisor = as_expr(dividend), as_expr(divisor)
    if divisor == ZERO:
        raise ExprError("division by zero")
    if isinstance(dividend, Num) and isinstance(divisor, Num):
        return Num(exact(Fraction(dividend.value) % divisor.value))
    if dividend in (ZERO, divisor) or (divisor == ONE and dividend.is_whole()):
        return ZERO
    return Mod(dividend, divisor)


MAKERS |= {Pow: power, FloorDiv: floor_div, CeilDiv: ceil_div, Mod: modulo}
