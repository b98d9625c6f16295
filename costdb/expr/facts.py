"""What is known about the names of an expression, and cheap proofs from it.

Proofs are one-sided: True is certain, False means not proved.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from costdb.expr.functions import (
    Comparison,
    Conditional,
    Extreme,
    Gcd,
    Max,
    Min,
    Reduction,
    maximum,
    minimum,
)
from costdb.expr.names import free_symbols, substitute
from costdb.expr.nodes import (
    ONE,
    ZERO,
    Add,
    CeilDiv,
    Expr,
    FloorDiv,
    Mod,
    Mul,
    Num,
    Pow,
    Sym,
    split_coefficient,
)
from costdb.expr.polynomials import affine_in, at, expand, terms_of

_MAX_STEPS = 5
_MAX_TRIALS = 100
_MAX_PROVED_SIZE = 150
_MAX_COMPARED = 16


@dataclass(frozen=True, slots=True)
class IndexRange:
    """Inside a reduction its index lies in ``low..high``, which is then not empty."""

    index: str
    low: Expr
    high: Expr


@dataclass(frozen=True, slots=True)
class Facts:
    """Assumptions about names.

    Attributes
    ----------
    positive : frozenset of str
        Whole numbers that are at least 1.
    nonnegative : frozenset of str
        Real numbers that are at least 0.
    ranges : tuple of IndexRange
        Indices of the enclosing reductions, the outermost first.
    """

    positive: frozenset[str] = frozenset()
    nonnegative: frozenset[str] = frozenset()
    ranges: tuple[IndexRange, ...] = ()

    def inside(self, index: str, low: Expr, high: Expr) -> Facts:
        """Return the facts that hold for one step of a reduction."""
        return Facts(self.positive, self.nonnegative, (*self.ranges, IndexRange(index, low, high)))

    @property
    def names(self) -> frozenset[str]:
        """Every name that something is known about."""
        found = self.positive | self.nonnegative
        for known in self.ranges:
            found |= {known.index} | free_symbols(known.low) | free_symbols(known.high)
        return found

    @property
    def whole(self) -> frozenset[str]:
        """Names that are certainly whole numbers."""
        return self.positive | {known.index for known in self.ranges}

    def proves_at_least(self, left: Expr, right: Expr) -> bool:
        """Tell whether ``left >= right`` is certain."""
        return _proved(left - right, self)

    def sign(self, expr: Expr) -> int | None:
        """Return 1 where `expr` is certainly not negative, -1 where it is not positive."""
        if self.proves_at_least(expr, ZERO):
            return 1
        return -1 if self.proves_at_least(-expr, ZERO) else None

    def largest(self, args: Iterable[Expr]) -> Expr:
        """Return the maximum of `args` without those that another one certainly covers."""
        return maximum(*self._undominated(list(args), 1))

    def smallest(self, args: Iterable[Expr]) -> Expr:
        """Return the minimum of `args` without those that another one certainly covers."""
        return minimum(*self._undominated(list(args), -1))

    def _undominated(self, args: list[Expr], direction: int) -> list[Expr]:
        if len(args) > _MAX_COMPARED:
            return args
        kept: list[Expr] = []
        for arg in args:
            if any(self._covers(other, arg, direction) for other in kept):
                continue
            kept = [other for other in kept if not self._covers(arg, other, direction)]
            kept.append(arg)
        return kept

    def _covers(self, one: Expr, other: Expr, direction: int) -> bool:
        if direction > 0:
            return self.proves_at_least(one, other)
        return self.proves_at_least(other, one)


@lru_cache(maxsize=4096)
def _proved(expr: Expr, facts: Facts) -> bool:
    # the terms of one price ask the same of the same sizes over and over
    return _is_nonnegative(expr, facts, _Effort(_MAX_STEPS, []))


@dataclass(frozen=True, slots=True)
class _Effort:
    """How far a proof may still go: levels below this one, and trials of the whole proof."""

    levels: int
    trials: list[None]

    def deeper(self) -> _Effort:
        self.trials.append(None)
        return _Effort(self.levels - 1, self.trials)

    @property
    def is_spent(self) -> bool:
        return self.levels <= 0 or self.is_exhausted

    @property
    def is_exhausted(self) -> bool:
        return len(self.trials) > _MAX_TRIALS


def _is_nonnegative(expr: Expr, facts: Facts, effort: _Effort) -> bool:
    if isinstance(expr, Num):
        return expr.value >= 0
    if expr.size > _MAX_PROVED_SIZE or effort.is_exhausted:
        return False
    for known in reversed(facts.ranges):
        if known.index in free_symbols(expr):
            line = affine_in(expr, known.index)
            if line is None:
                continue
            outside = Facts(facts.positive, facts.nonnegative, _before(facts, known))
            if _is_nonnegative(line[0], outside, effort.deeper()):
                expr = at(expr, known.index, known.low)
            elif _is_nonnegative(-line[0], outside, effort.deeper()):
                expr = at(expr, known.index, known.high)
            else:
                return False
    # With N = 1 + n, whole numbers N >= 1 become n >= 0, and signs of coefficients decide.
    shift = {name: Sym(name) + 1 for name in facts.positive & free_symbols(expr)}
    shifted = Facts(frozenset(), facts.nonnegative | facts.positive, facts.ranges)
    if shift:
        shifted = Facts(
            frozenset(),
            facts.nonnegative | facts.positive,
            tuple(
                IndexRange(r.index, substitute(r.low, shift), substitute(r.high, shift))
                for r in facts.ranges
            ),
        )
    return _by_signs(expand(substitute(expr, shift)), shifted, effort)


def _before(facts: Facts, known: IndexRange) -> tuple[IndexRange, ...]:
    return facts.ranges[: facts.ranges.index(known)]


def _by_signs(expr: Expr, facts: Facts, effort: _Effort) -> bool:
    doubtful: list[Expr] = []
    for term in terms_of(expr):
        coefficient, rest = (term.value, ONE) if isinstance(term, Num) else split_coefficient(term)
        factors = rest.factors if isinstance(rest, Mul) else (rest,)
        if coefficient >= 0 and all(_sign_is_known(factor, facts, effort) for factor in factors):
            continue
        doubtful.append(term)
    if not doubtful:
        return True
    if effort.is_spent:
        return False
    return any(
        _by_bounding(
            expr, split_coefficient(term)[1], split_coefficient(term)[0] > 0, facts, effort
        )
        for term in terms_of(expr)
        if not isinstance(term, Num)
    )


def _by_bounding(expr: Expr, atom: Expr, is_added: bool, facts: Facts, effort: _Effort) -> bool:
    """Replace one atom by something that is not better and try again."""

    def holds(bound: Expr) -> bool:
        coefficient = next(
            split_coefficient(term)[0]
            for term in terms_of(expr)
            if not isinstance(term, Num) and split_coefficient(term)[1] == atom
        )
        return _is_nonnegative(expr + Num(coefficient) * (bound - atom), facts, effort.deeper())

    match atom:
        case Max() | Min():
            any_will_do = isinstance(atom, Max) == is_added
            return any(map(holds, atom.args)) if any_will_do else all(map(holds, atom.args))
        case Conditional():
            return holds(atom.then) and holds(atom.orelse)
        case FloorDiv() | CeilDiv() if isinstance(atom.divisor, Num) and atom.divisor.value > 0:
            quotient = atom.dividend / atom.divisor
            if isinstance(atom, FloorDiv):
                return holds(quotient - 1 if is_added else quotient)
            return holds(quotient if is_added else quotient + 1)
        case Mod() if _is_nonnegative(atom.divisor - 1, facts, effort.deeper()):
            return holds(ZERO if is_added else atom.divisor)
        case _:
            return False


def _sign_is_known(factor: Expr, facts: Facts, effort: _Effort) -> bool:
    """Tell whether a factor is certainly not negative."""
    if effort.is_spent:
        return isinstance(factor, Comparison | Gcd)

    def nonnegative(part: Expr) -> bool:
        return _is_nonnegative(part, facts, effort.deeper())

    match factor:
        case Num():
            return factor.value >= 0
        case Sym():
            if factor.name in facts.nonnegative:
                return True
            return any(r.index == factor.name and nonnegative(r.low) for r in facts.ranges)
        case Comparison() | Gcd():
            return True
        case Add() | Mul():
            return nonnegative(factor)
        case Pow():
            if isinstance(factor.exponent, Num) and factor.exponent.value % 2 == 0:
                return True
            return nonnegative(factor.base)
        case FloorDiv() | CeilDiv():
            return nonnegative(factor.dividend) and nonnegative(factor.divisor)
        case Mod():
            return nonnegative(factor.divisor)
        case Max():
            return any(map(nonnegative, factor.args))
        case Extreme():
            return all(map(nonnegative, factor.args))
        case Conditional():
            return nonnegative(factor.then) and nonnegative(factor.orelse)
        case Reduction():
            inner = facts.inside(factor.index, factor.low, factor.high)
            if factor.index in facts.names:
                return False
            return _is_nonnegative(factor.body, inner, effort.deeper())
        case _:
            return False
