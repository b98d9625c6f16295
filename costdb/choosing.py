"""Predicting one choice, and ranking many: the same for every kind of subject."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise, product
from math import prod
from typing import Protocol, TypeAlias

from costdb.evaluate import (
    Bindings,
    Estimate,
    Middles,
    Missing,
    Priced,
    check_bindings,
    evaluate_price,
)
from costdb.expr import ZERO, Expr, ExprError, evaluate, free_symbols
from costdb.expr.evaluate import STEPS
from costdb.expr.functions import Conditional, Equal, Less, LessEqual, Reduction
from costdb.expr.nodes import Mul, Num, Sym, split_coefficient
from costdb.records import dataclass, nearest, read_number

# Whatever can be predicted, seen alike: parameters in, a price out.
#
# A process model, a description of an application and an annotated kernel differ in what they
# are made of; to a prediction and to a ranking each is a :class:`Subject`.


Number: TypeAlias = int | float
Chosen: TypeAlias = str | Number
"""What a parameter is given: a word, or a number, which may come as text."""


class SubjectError(ValueError):
    """A subject or a choice that cannot be used; the message is one line with its place."""


class PlacedError(SubjectError):
    """Something wrong in a text; the message begins with file, line and column."""


class RefusedError(SubjectError):
    """This choice is not allowed, others may be."""


@dataclass(frozen=True, slots=True)
class Bound:
    """A checked choice.

    Attributes
    ----------
    words : mapping of str to str
        They decide which formula holds.
    numbers : mapping of str to int or float
        They go into the formula: parameters, and sizes that words stand for.
    shown : mapping of str to str, int or float
        What a report names: every parameter that has a value, in the subject's order.
    """

    words: Mapping[str, str]
    numbers: Mapping[str, Number]
    shown: Mapping[str, Chosen]


class Subject(Protocol):
    """What a prediction is made for, on one machine or on none."""

    @property
    def origin(self) -> str:
        """Where it was read from, for messages."""

    @property
    def names(self) -> tuple[str, ...]:
        """All its parameters."""

    @property
    def words(self) -> frozenset[str]:
        """Those of its parameters that take words."""

    def about(self, name: str) -> str:
        """Return what a parameter is, for messages; empty where nobody says."""

    def bind(self, given: Mapping[str, Chosen]) -> Bound:
        """Check `given` and complete it with defaults; numbers may stay without a value.

        Raises
        ------
        RefusedError
            A name is unknown, or a value is not allowed.
        """

    def price(self, words: Mapping[str, str]) -> Priced | Missing:
        """Return the formula that holds for `words`.

        Raises
        ------
        SubjectError
            There is none.
        """

    def values(self, name: str, given: Mapping[str, Chosen]) -> Sequence[Chosen]:
        """Return all values that a parameter may take when the others are as `given`.

        Raises
        ------
        RefusedError
            `given` is not allowed.
        SubjectError
            They are not finitely many.
        """


class Sized(Subject):
    """What subjects whose parameters are all numbers have in common."""

    @property
    def words(self) -> frozenset[str]:
        """No parameter takes words."""
        return frozenset()

    def about(self, name: str) -> str:
        """Return nothing: the source says nothing that could be shown."""
        return ""

    def values(self, name: str, given: Mapping[str, Chosen]) -> Sequence[Chosen]:
        """Refuse: nothing says how large a number may be."""
        raise SubjectError(
            f"{self.origin}: which values may {name} take? Say so, as --over {name}=1..64"
        )

    def numbers(
        self,
        given: Mapping[str, Chosen],
        stated: Mapping[str, Number],
        whole: Collection[str],
        least: int = 1,
    ) -> dict[str, Number]:
        """Return what is stated, with what is given over it.

        Parameters
        ----------
        given : mapping of str to str or number
        stated : mapping of str to number
            Its names may be given, as those of the parameters.
        whole : collection of str
            Which are whole numbers of at least `least`; no others are negative.

        Raises
        ------
        RefusedError
            There is no such parameter, or it cannot have that value.
        """
        found = dict(stated)
        for name, value in given.items():
            at = f"{self.origin}: {name} = {value}"
            if name not in self.names and name not in stated:
                hint = nearest(name, self.names)
                raise RefusedError(f"{self.origin}: there is no parameter {name}{hint}")
            number = read_number(value) if isinstance(value, str) else value
            if number is None or not math.isfinite(number):
                raise RefusedError(f"{at} is {'not a number' if number is None else 'too large'}")
            if name in whole and (number < least or not float(number).is_integer()):
                raise RefusedError(f"{at} must be a whole number of at least {least}")
            if number < 0:
                raise RefusedError(f"{at} must not be negative")
            found[name] = number
        return found

    def bound(self, numbers: Mapping[str, Number]) -> Bound:
        """Return a choice of numbers."""
        return Bound({}, numbers, {name: numbers[name] for name in self.names if name in numbers})


# What a condition says about the values that its names can have.

_LARGEST_FACTORED = 10**12


def possible_values(condition: Expr, most: int) -> Mapping[str, Sequence[int]]:
    """Return values outside which `condition` cannot hold, for each name that it bounds.

    All names are taken to be whole numbers of at least 1. Read are comparisons, joined by
    ``and``, of a product of names with a number, such as ``PX*PY == 64 and PX <= 8``: a name
    is at most the number, and divides it where the two are equal. Other parts bound nothing.
    Of a longer range only ``most + 1`` values are returned.
    """
    greatest: dict[str, int] = {}
    divided: dict[str, int] = {}
    for part in _joined(condition):
        for names, limit in _limits(part):
            for name in names:
                greatest[name] = min(math.floor(limit), greatest.get(name, math.floor(limit)))
                if isinstance(part, Equal) and limit.denominator == 1:
                    divided[name] = math.gcd(divided.get(name, 0), limit.numerator)
    return {
        name: [divisor for divisor in _divisors(divided[name]) if divisor <= limit]
        if 1 <= divided.get(name, 0) <= _LARGEST_FACTORED
        else range(1, min(limit, most + 1) + 1)
        for name, limit in greatest.items()
    }


def _joined(condition: Expr) -> Iterator[Expr]:
    if isinstance(condition, Conditional) and condition.orelse == Num(0):
        yield from _joined(condition.test)
        yield from _joined(condition.then)
    else:
        yield condition


def _limits(part: Expr) -> Iterator[tuple[tuple[str, ...], Fraction]]:
    if not isinstance(part, Equal | Less | LessEqual):
        return
    sides = [(part.left, part.right)]
    if isinstance(part, Equal):
        sides.append((part.right, part.left))
    for left, bound in sides:
        coefficient, rest = split_coefficient(left)
        factors = rest.factors if isinstance(rest, Mul) else (rest,)
        names = tuple(factor.name for factor in factors if isinstance(factor, Sym))
        if isinstance(bound, Num) and coefficient > 0 and len(names) == len(factors):
            yield names, Fraction(bound.value) / coefficient


def _divisors(number: int) -> list[int]:
    small = [d for d in range(1, math.isqrt(number) + 1) if number % d == 0]
    return sorted({*small, *(number // d for d in small)})


MOST_CANDIDATES = 100_000
"""Combinations that one ranking may look at before it is refused."""

Over: TypeAlias = Mapping[str, Sequence[Chosen] | None]
"""Parameters to choose over; None stands for all values that subject and condition allow."""

Candidate: TypeAlias = Mapping[str, Chosen]


@dataclass(frozen=True, slots=True)
class Prediction:
    """An estimate, what it is for, and the formula that it is from."""

    bindings: Mapping[str, Chosen]
    estimate: Estimate
    priced: Priced


@dataclass(frozen=True, slots=True)
class Choice:
    """One binding of the parameters that were chosen over, and its predicted time."""

    bindings: Mapping[str, Chosen]
    estimate: Estimate


Known: TypeAlias = Callable[[Bound], Estimate | None]
"""What is known of a choice from elsewhere than its price: by measuring it."""


_Prices: TypeAlias = dict[tuple[tuple[str, str], ...], Priced | Missing]


def nothing_known(bound: Bound) -> None:
    """Know nothing of any choice."""


def predict(
    subject: Subject, given: Mapping[str, Chosen], known: Known = nothing_known
) -> Prediction | Missing:
    """Return the prediction for one choice of all parameters: what is known, else its price.

    Raises
    ------
    SubjectError
        A choice is not allowed, or a parameter has no value.
    """
    bound = subject.bind(given)
    found = _told(subject, bound, known, {})
    return found if isinstance(found, Missing) else Prediction(bound.shown, *found)


def rank(
    subject: Subject,
    over: Over,
    given: Mapping[str, Chosen],
    where: Expr | None = None,
    watched: Callable[[Sequence[Candidate]], Iterable[Candidate]] = iter,
    told: Callable[[str], None] | None = None,
    known: Known = nothing_known,
) -> tuple[Choice, ...] | Missing:
    """Return every allowed choice, fastest first and lower bounds last; ties as the values are.

    Parameters
    ----------
    subject : Subject
    over : mapping
        Parameters to vary.
    given : mapping
        The other parameters.
    where : Expr, optional
        Over the numbers; choices where it is 0 are left out, for example ``PX*PY == 64``.
    watched : callable, optional
        Hands on the candidates it is given; a progress bar is one.
    told : callable, optional
        Is given why a value that was asked for is in no choice, where the subject refused it.
    known : callable, optional
        Asked before the price of a choice is.

    Returns
    -------
    tuple of Choice or Missing
        Missing as soon as one choice cannot be priced.

    Raises
    ------
    SubjectError
        A name is unknown, values are not finitely many, or no choice is allowed.
    """
    _check_names(subject, over, given)
    refusals: list[RefusedError] = []
    refused: dict[tuple[str, Chosen], RefusedError] = {}
    prices: _Prices = {}
    ranked: list[Choice] = []
    for candidate in watched(tuple(_candidates(subject, over, given, where, refusals))):
        try:
            bound = subject.bind({**given, **candidate})
        except RefusedError as refusal:
            refusals.append(refusal)
            for pair in candidate.items():
                refused.setdefault(pair, refusal)
            continue
        if where is not None and not _holds(subject, where, bound):
            continue
        found = _told(subject, bound, known, prices)
        if isinstance(found, Missing):
            return found
        ranked.append(Choice({name: candidate[name] for name in over}, found[0]))
    if not ranked:
        if refusals:
            raise refusals[0]
        raise SubjectError(f"{subject.origin}: no choice of {', '.join(over)} meets the condition")
    if told is not None:
        for name, stated in over.items():
            taken = {choice.bindings[name] for choice in ranked}
            for value in stated or ():
                if value not in taken and (name, value) in refused:
                    told(f"{refused[name, value]}: left out")
    # a lower bound is never better than a price that is complete
    return tuple(sorted(ranked, key=lambda one: (not one.estimate.complete, one.estimate.mid)))


def _told(
    subject: Subject, bound: Bound, known: Known, prices: _Prices
) -> tuple[Estimate, Priced] | Missing:
    """Return what is known of a choice, else its price, which is looked up once for its words."""
    found = known(bound)
    if found is not None:
        return found, Priced(ZERO)
    words = tuple(bound.words.items())
    if words not in prices:
        prices[words] = subject.price(bound.words)
    priced = prices[words]
    return priced if isinstance(priced, Missing) else (_estimate(subject, priced, bound), priced)


def _check_names(subject: Subject, over: Over, given: Mapping[str, Chosen]) -> None:
    if not over:
        raise SubjectError(f"{subject.origin}: name the parameters to choose over")
    for name in over:
        if name not in subject.names:
            hint = nearest(name, subject.names)
            raise SubjectError(f"{subject.origin}: there is no parameter {name}{hint}")
        if name in given:
            raise SubjectError(f"{subject.origin}: {name} is fixed, so not to be chosen")


def _candidates(
    subject: Subject,
    over: Over,
    given: Mapping[str, Chosen],
    where: Expr | None,
    refusals: list[RefusedError],
) -> Iterator[Candidate]:
    """Yield every combination, words slowest, numbers within the bounds that the words set."""
    names = [name for name in subject.names if name in over]
    words = [name for name in names if name in subject.words]
    numbers = [name for name in names if name not in subject.words]
    seen = 0

    possible = {} if where is None else possible_values(where, MOST_CANDIDATES)

    def values(name: str, known: Mapping[str, Chosen]) -> Sequence[Chosen]:
        stated = over[name]
        if stated is not None:
            return stated
        try:
            return subject.values(name, known)
        except RefusedError:
            raise
        except SubjectError:
            if name not in possible:
                raise
            return possible[name]

    for combination in product(*(values(name, given) for name in words)):
        chosen = dict(zip(words, combination, strict=True))
        try:
            ranges = [values(name, {**given, **chosen}) for name in numbers]
        except RefusedError as refusal:
            refusals.append(refusal)
            continue
        seen += prod(map(len, ranges))
        if seen > MOST_CANDIDATES:
            raise SubjectError(
                f"{subject.origin}: more than {MOST_CANDIDATES} combinations of "
                f"{', '.join(over)}; fix some of them"
            )
        for picked in product(*ranges):
            yield {**chosen, **dict(zip(numbers, picked, strict=True))}


def _holds(subject: Subject, where: Expr, bound: Bound) -> bool:
    for name in sorted(free_symbols(where) - bound.numbers.keys()):
        hint = nearest(name, tuple(bound.numbers))
        raise SubjectError(f"{subject.origin}: condition: {name} is not a number here{hint}")
    try:
        return bool(evaluate(where, bound.numbers))
    except ExprError as error:
        raise SubjectError(f"{subject.origin}: condition: {error}") from error


def _estimate(subject: Subject, priced: Priced, bound: Bound) -> Estimate:
    formulas = [priced.microseconds, *(term.microseconds for term in priced.terms)]
    formulas += [domain.quantity for domain in priced.domains]
    needed = frozenset().union(*map(free_symbols, formulas)) - priced.coefficients.keys()
    # A subject's own order names the first parameter first.
    for name in (*subject.names, *sorted(needed)):
        if name in needed and name not in bound.numbers:
            about = f" ({subject.about(name)})" if subject.about(name) else ""
            raise SubjectError(
                f"{subject.origin}: {name} is not bound{about}: give it a value, such as {name}=8"
            )
    try:
        return evaluate_price(priced, bound.numbers)
    except ExprError as error:
        raise SubjectError(f"{subject.origin}: {error}") from error


# --- crossovers -----------------------------------------------------------------------------------
# Where one of two prices is the better one along a size: sampled over a range, edges bisected.


_DENSE, _STEP = 64, 1.15
"""So many values are tried one by one, then some per cent apart."""
_PARTS = 32
"""Into so many an interval with an edge is divided at once: a column costs little more than one."""
_DENSE_SLOW, _STEP_SLOW = 8, 1.6
"""The same where formulas hold sums without closed form."""

_ROUNDING = 1e-9
"""Relative difference of two prices below which they are equal."""


@dataclass(frozen=True, slots=True)
class Crossover:
    """Where the second of two prices is the better one, along one variable.

    Attributes
    ----------
    variable : str
        What varies.
    flips : tuple of int
        Each the first value at which that changes, ascending.
    after_wins_first : bool
        Whether it is at `low`.
    low, high : int
        The range that was tried, inclusive.
    samples : tuple of (int, float)
        The values that were tried before edges were looked for, with before over after there.
    """

    variable: str
    flips: tuple[int, ...]
    after_wins_first: bool
    low: int
    high: int
    samples: tuple[tuple[int, float], ...] = ()

    def holds(self, value: int) -> bool:
        """Return whether the second price is said to be the better one at a value."""
        return self.after_wins_first ^ (sum(flip <= value for flip in self.flips) % 2 == 1)


def crossover(
    before: Priced,
    after: Priced,
    variable: str,
    bindings: Bindings,
    low: int = 1,
    high: int = 1_000_000,
    least: float = 1.0,
    steps: int = STEPS,
) -> Crossover:
    """Return the whole values of `variable` from which on `after` is, or is no more, the better.

    Coefficients stand at their middle. A binding of `variable` itself is ignored. Two changes
    between neighbouring samples go unseen.

    Parameters
    ----------
    before, after : Priced
    variable : str
    bindings : mapping of str to number
    low, high : int
        The range to try.
    least : float
        How many times the time of `after` that of `before` has to be.
    steps : int
        Terms of a sum without closed form that are evaluated at each value.

    Raises
    ------
    ExprError
        A size other than `variable` is unbound, or a formula has no value somewhere.
    """
    if low > high:
        raise ExprError(f"the range {low}..{high} of {variable!r} is empty")
    check_bindings({name: value for name, value in bindings.items() if name != variable})
    times = Middles((before, after), steps)

    def told(one: float, other: float) -> tuple[bool, float]:
        """Return whether `after` is the better one by two prices, and before over after."""
        wins = one - least * other > _ROUNDING * abs(one)
        return wins, one / other if other > 0 else 1.0 if one == 0 else math.inf

    def tried(several: Sequence[int]) -> list[tuple[int, bool, float]]:
        columns = times.along(variable, several, bindings)
        return [(at, *told(*both)) for at, *both in zip(several, *columns, strict=True)]

    slow = _holds_sums((before.microseconds, after.microseconds))
    samples = tried(list(_grid(low, high, slow=slow)))
    flips = []
    for left_end, right_end in pairwise(samples):
        while left_end[1] != right_end[1] and (gap := right_end[0] - left_end[0]) > 1:
            parts = min(gap, _PARTS)
            middles = [left_end[0] + gap * part // parts for part in range(1, parts)]
            edges = pairwise((left_end, *tried(middles), right_end))
            left_end, right_end = next(pair for pair in edges if pair[0][1] != pair[1][1])
        if left_end[1] != right_end[1]:
            flips.append(right_end[0])
    shown = tuple((value, ratio) for value, _, ratio in samples)
    return Crossover(variable, tuple(flips), samples[0][1], low, samples[-1][0], shown)


def _grid(low: int, high: int, *, slow: bool) -> Iterable[int]:
    dense, step = (_DENSE_SLOW, _STEP_SLOW) if slow else (_DENSE, _STEP)
    value = low
    while value < high:
        yield value
        value = value + 1 if value < low + dense - 1 else math.ceil(value * step)
    yield high


def _holds_sums(formulas: Iterable[Expr]) -> bool:
    """Return whether a formula holds a reduction; each distinct part is looked at once."""
    pending, seen = list(formulas), set(formulas)
    while pending:
        part = pending.pop()
        if isinstance(part, Reduction):
            return True
        fresh = [child for child in part.children if child not in seen]
        seen.update(fresh)
        pending += fresh
    return False
