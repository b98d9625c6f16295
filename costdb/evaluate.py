"""Numbers from prices: estimates in seconds and ratios of two prices.

Every machine coefficient has an interval. An estimate's ends put each coefficient at whichever
of its ends makes the price least or greatest, except residuals, which are independent of one
another (:mod:`costdb.evaluate`); a ratio moves the coefficients that both prices share together,
so what is uncertain about both alike cancels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NewType, TypeAlias

from costdb.expr import Expr, ExprError, free_symbols, num, substitute, sym
from costdb.expr.evaluate import STEPS, Evaluator
from costdb.expr.evaluate import Point as Sizes
from costdb.expr.functions import Max, Min
from costdb.expr.nodes import Add, Mul, Value, add
from costdb.expr.polynomials import Names, by_products
from costdb.quantity import Omission, Provenance, Quantity
from costdb.records import dataclass, field, grouped, replace

# --- estimate -------------------------------------------------------------------------------------
# What pricing gives: a formula whose coefficients stay symbolic, and estimates made from it.


Seconds = NewType("Seconds", float)


class ImpossibleError(ValueError):
    """A model was asked of what no program can do; the message says why in one line."""


@dataclass(frozen=True, slots=True)
class Domain:
    """Where a coefficient was calibrated: `quantity` should lie in ``low..high``."""

    what: str
    quantity: Expr
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Term:
    """A part of a formula that a person would name, in microseconds."""

    label: str
    model: str
    microseconds: Expr


@dataclass(frozen=True, slots=True)
class Priced:
    """Work priced on a machine; sizes and coefficients are still symbols.

    Attributes
    ----------
    microseconds : Expr
        Over the sizes of the program and the keys of `coefficients`.
    terms : tuple of Term
        Named parts; for purely sequential work they add up to `microseconds`.
    coefficients : mapping of str to Quantity
        Every machine number used, by symbol.
    domains : tuple of Domain
        Ranges outside which the estimate is an extrapolation.
    repeats : tuple of Quantity
        Of each kind of work that is done: by which factor one launch of a program differs from
        another one of the same (:func:`costdb.evaluate.with_repetition`).
    omitted : tuple of Omission
        Parts that it leaves out, each once.
    """

    microseconds: Expr
    terms: tuple[Term, ...] = ()
    coefficients: Mapping[str, Quantity] = field(default_factory=dict)
    domains: tuple[Domain, ...] = ()
    repeats: tuple[Quantity, ...] = ()
    omitted: tuple[Omission, ...] = ()

    @property
    def sizes(self) -> frozenset[str]:
        """The size symbols that it depends on, or whether it was calibrated."""
        asked = (self.microseconds, *(one.quantity for one in self.domains))
        return frozenset().union(*map(free_symbols, asked)) - self.coefficients.keys()


@dataclass(frozen=True, slots=True)
class Missing:
    """An explicit "cannot price this": what is missing and how to get it."""

    what: str
    remedy: str


@dataclass(frozen=True, slots=True)
class TermEstimate:
    """One term's seconds, ``low <= mid <= high``."""

    label: str
    model: str
    low: Seconds
    mid: Seconds
    high: Seconds


@dataclass(frozen=True, slots=True)
class Estimate:
    """A predicted time in seconds with its interval and origin.

    Attributes
    ----------
    low, mid, high : Seconds
        ``low <= mid <= high``; `high` is infinite where parts are omitted.
    terms : tuple of TermEstimate
        The named parts.
    provenance : Provenance
        That of the least trustworthy coefficient used.
    in_range : bool
        False when any coefficient was used outside the range that calibrated it.
    remarks : tuple of str
        One line for each such extrapolation.
    omitted : tuple of Omission
        Parts that no model prices: the times are lower bounds.
    """

    low: Seconds
    mid: Seconds
    high: Seconds
    terms: tuple[TermEstimate, ...]
    provenance: Provenance
    in_range: bool
    remarks: tuple[str, ...] = ()
    omitted: tuple[Omission, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether every part has a price."""
        return not self.omitted


@dataclass(frozen=True, slots=True)
class Ratio:
    """Predicted time before over after; the interval moves shared coefficients together."""

    low: float
    mid: float
    high: float


def missing_of(several: Iterable[Missing]) -> Missing:
    """Return all that is missing as one, each thing once."""
    parts = tuple(several)
    return Missing(
        "; ".join(dict.fromkeys(one.what for one in parts)),
        "; ".join(dict.fromkeys(one.remedy for one in parts)),
    )


def one_after_another(parts: Iterable[Priced | Missing]) -> Priced | Missing:
    """Return the price of parts one after another, terms of a label as one; or what is missing."""
    found: list[Priced] = []
    lacking: list[Missing] = []
    for part in parts:
        if isinstance(part, Missing):
            lacking.append(part)
        else:
            found.append(part)
    if lacking:
        return missing_of(lacking)
    terms = (term for part in found for term in part.terms)
    times = grouped(((one.label, one.model), one.microseconds) for one in terms)
    return Priced(
        add([part.microseconds for part in found]),
        tuple(Term(*label, add(some)) for label, some in times.items()),
        {name: quantity for part in found for name, quantity in part.coefficients.items()},
        tuple(dict.fromkeys(domain for part in found for domain in part.domains)),
    )


# --- evaluate -------------------------------------------------------------------------------------


# Intervals of prices: functions of machine coefficients alone, over a box of these.
#
# With all sizes bound, most prices are multilinear in the coefficients: sums of products in which
# no coefficient occurs twice. Such a function, and a quotient of two, has its extremes at corners
# of the box, which ascent by single coefficients looks for from several points.
#
# A *residual* is what a calibration left unexplained of one class of work: a factor around 1 whose
# ends are quantiles of measured over predicted time at points that no fit had seen. Misses of
# different classes know nothing of one another, so that a price which several of them enter does
# not miss by all at once. With ``T`` linear in each residual ``r_k``, ``T - T_mid`` is the sum of
# the parts ``A_k * (r_k - 1)``, and the squares of independent deviations add:
# ``high - mid = sqrt(sum (A_k * (high_k - 1))**2)``, and so for the low end. Deviations that are
# normal keep the probability of the quantiles exactly; where one term makes up most of the time,
# whatever its distribution, its own quantiles are what is left. Everything else that is uncertain
# (a published range, a locality that nobody knows) may be wrong in the same direction everywhere,
# so that its ends do add up. Within a class the residual is one for all calls: equal calls repeat
# their miss, and it never averages out over a loop.


_MOST_SWEEPS = 20

Point: TypeAlias = Mapping[str, float]
Bindings = Mapping[str, int | float]


@dataclass(frozen=True, slots=True)
class Interval:
    """A coefficient's ends and middle, or a value's."""

    low: float
    mid: float
    high: float


Box: TypeAlias = Mapping[str, Interval]


@dataclass(frozen=True, slots=True)
class Multilinear:
    """Sum of ``weight * product of coefficients``; the constant has the empty product."""

    weights: Mapping[Names, float]

    @property
    def coefficients(self) -> frozenset[str]:
        """Coefficients whose value matters."""
        return frozenset(name for names in self.weights for name in names)

    def at(self, point: Point) -> float:
        """Return the value at `point`."""
        total = 0.0
        for names, weight in self.weights.items():
            for name in names:
                weight *= point[name]
            total += weight
        return total


@dataclass(frozen=True, slots=True)
class General:
    """A price that is not multilinear, reduced to an expression over coefficients."""

    reduced: Expr
    _evaluator: Evaluator = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_evaluator", Evaluator((self.reduced,)))

    @property
    def coefficients(self) -> frozenset[str]:
        """Coefficients whose value matters."""
        return free_symbols(self.reduced)

    def at(self, point: Point) -> float:
        """Return the value at `point`."""
        return float(self._evaluator.at(point)[0])


@dataclass(frozen=True, slots=True)
class Combined:
    """A sum, a product or an extreme of prices that are reduced each by itself."""

    kind: type[Expr]
    parts: tuple[Reduced, ...]

    @property
    def coefficients(self) -> frozenset[str]:
        """Coefficients whose value matters."""
        return frozenset[str]().union(*[part.coefficients for part in self.parts])

    def at(self, point: Point) -> float:
        """Return the value at `point`."""
        return _COMBINING[self.kind]([part.at(point) for part in self.parts])


_COMBINING: dict[type[Expr], Callable[[list[float]], float]] = {
    Add: sum,
    Mul: math.prod,
    Max: max,
    Min: min,
}
Reduced: TypeAlias = Multilinear | General | Combined


class BoundSizes(dict[str, int | float]):
    """Values of sizes, with what parts of formulas come to there: several prices share most."""

    def __init__(self, sizes: Bindings) -> None:
        super().__init__(sizes)
        self.point = Sizes(sizes, STEPS)


def at_once(sizes: Bindings) -> BoundSizes:
    """Return sizes at which what prices have in common is evaluated once."""
    return sizes if isinstance(sizes, BoundSizes) else BoundSizes(sizes)


def reduce_price(expr: Expr, sizes: Bindings, coefficients: frozenset[str]) -> Reduced:
    """Bind all sizes in `expr`, leaving a function of the coefficients.

    Raises
    ------
    ExprError
        A symbol is neither a size nor a coefficient, or the expression has no value.
    """
    used = free_symbols(expr) - coefficients
    for name in sorted(used):
        if name not in sizes:
            raise ExprError(f"{name!r} has no value")
    products = by_products(expr, coefficients)
    if products is None and type(expr) in _COMBINING:
        parts = list(expr.children)
        if isinstance(expr, Add):
            alike = [one for one in parts if by_products(one, coefficients) is not None]
            parts = [expr.constant + add(alike), *(one for one in parts if one not in alike)]
        elif isinstance(expr, Mul):
            parts.append(num(expr.coefficient))
        reduced = [reduce_price(one, sizes, coefficients) for one in parts]
        return Combined(type(expr), tuple(reduced))
    if products is None:
        return General(substitute(expr, {name: sizes[name] for name in used}))
    at = at_once(sizes).point
    weights = {names: _finite(at.at(factor)) for names, factor in products.items()}
    return Multilinear({names: weight for names, weight in weights.items() if weight})


def extremes(
    function: Callable[[Point], float], box: Box, independent: Iterable[str], *, is_ratio: bool
) -> Interval:
    """Return the least value, the value at the middle, and the greatest value over `box`.

    Exact for multilinear prices and for all that are monotone in each coefficient, whichever
    way; otherwise the best of a search from several corners. Always ``low <= mid <= high``.

    Parameters
    ----------
    function : callable
    box : mapping of str to Interval
    independent : iterable of str
        Coefficients that deviate independently of all others. Where there are several, each moves
        alone from where the others put an end, and its deviation counts by its square.
    is_ratio : bool
        Deviations of a ratio are its logarithm's.
    """
    middle = {name: interval.mid for name, interval in box.items()}
    mid = function(middle)
    alone = sorted(box.keys() & set(independent))
    alone = alone if len(alone) > 1 else []
    to, back = (math.log, math.exp) if is_ratio else (float, float)
    ends = []
    for sense in (-1, 1):
        corner = _corner(function, sense, [name for name in box if name not in alone], box)
        values = [function(corner)]
        for name in alone:
            moved = (function({**corner, name: at}) for at in (box[name].low, box[name].high))
            values.append(sense * max(sense * value for value in (values[0], *moved)))
        if is_ratio and not all(0 < value < math.inf for value in values):
            ends.append(function(_corner(function, sense, list(box), box)))
            continue
        centre, *moved_to = map(to, values)
        ends.append(back(centre + sense * math.hypot(*(one - centre for one in moved_to))))
    return Interval(ends[0], mid, ends[1])


def _corner(
    function: Callable[[Point], float], sense: int, names: Sequence[str], box: Box
) -> dict[str, float]:
    """Return where coordinate ascent finds the greatest value, or the least, from three starts.

    The starts are two corners and the middle; other coefficients stay at theirs. Each step moves
    one coefficient to the better of its ends. That is the greatest of all for what is monotone in
    each coefficient, and for quotients of two affine functions: where no single end is better, no
    point of the box is.
    """
    middle = {name: interval.mid for name, interval in box.items()}
    found = []
    for end in ("mid", "high", "low"):
        point = {**middle, **{name: getattr(box[name], end) for name in names}}
        best = sense * function(point)
        for _ in range(_MOST_SWEEPS):
            before = best
            for name in names:
                here = point[name]
                for candidate in {box[name].low, box[name].high} - {here}:
                    point[name] = candidate
                    value = sense * function(point)
                    if value > best:
                        best, here = value, candidate
                point[name] = here
            if best == before:
                break
        found.append((best, point))
    return max(found, key=lambda one: one[0])[1]


def _finite(value: Value) -> float:
    try:
        number = float(value)
    except OverflowError:
        number = float("inf")
    if number - number != 0:
        raise ExprError("the value is not a finite number")
    return number


# Which misses two programs have in common, for the interval of their ratio.
#
# A residual is how far a class of work misses what is predicted of it: by as much for equal calls,
# by something else for a call of another shape or on other memory, as the points show that it was
# found from. So of two programs only what both do alike misses alike, and cancels in their ratio:
# of each product of coefficients the lesser of both amounts. What either does beyond that has a
# miss of its own.

_ABOVE, _BELOW = ".above", ".below"
_SAME = 1e-9
"""A part of the greater amount: what is left of equal amounts when one is taken from the other."""


def with_own_misses(
    above: Reduced, below: Reduced, box: Box, residuals: Collection[str]
) -> tuple[Reduced, Reduced, Box]:
    """Return two prices in which residuals stand for what both do alike, or for one's own work.

    Parameters
    ----------
    above, below : Multilinear, General or Combined
    box : mapping of str to Interval
    residuals : collection of str
        Coefficients of the box that deviate independently of all others.

    Returns
    -------
    above, below : Multilinear, General or Combined
        With more coefficients, equal to those given where all residuals are.
    box : mapping of str to Interval
        That of all coefficients; those which were not in the box given are residuals.
    """
    names = frozenset(residuals) & above.coefficients & below.coefficients
    if not names or above == below:
        return above, below, box
    if isinstance(above, Multilinear) and isinstance(below, Multilinear):
        first: Reduced = _split(above.weights, below.weights, names, _ABOVE)
        second: Reduced = _split(below.weights, above.weights, names, _BELOW)
    else:
        first, second = _renamed(above, names, _ABOVE), below
    own = {
        name + mark: box[name]
        for name in names
        for mark in (_ABOVE, _BELOW)
        if name + mark in first.coefficients | second.coefficients
    }
    return first, second, {**box, **own}


def _split(
    weights: Mapping[Names, float], others: Mapping[Names, float], names: frozenset[str], mark: str
) -> Multilinear:
    made: dict[Names, float] = {}
    for together, weight in weights.items():
        both = min(weight, others.get(together, 0.0)) if weight > 0 else 0.0
        if names.isdisjoint(together):
            both = weight
        rest = weight - max(both, 0.0)
        if abs(rest) <= _SAME * abs(weight):
            made[together] = made.get(together, 0.0) + weight
            continue
        if both > 0:
            made[together] = made.get(together, 0.0) + both
        own = tuple(sorted(name + mark if name in names else name for name in together))
        made[own] = made.get(own, 0.0) + rest
    return Multilinear(made)


def _renamed(price: Reduced, names: frozenset[str], mark: str) -> Reduced:
    if isinstance(price, General):
        return General(substitute(price.reduced, {name: sym(name + mark) for name in names}))
    if isinstance(price, Combined):
        return replace(price, parts=tuple([_renamed(one, names, mark) for one in price.parts]))
    return _split(price.weights, {}, names, mark)


def independent_of(coefficients: Mapping[str, Quantity]) -> list[str]:
    """Return the coefficients that deviate independently of all others."""
    return [name for name, quantity in coefficients.items() if quantity.independent]


# How far two launches of one program differ.
#
# What two programs do alike misses alike and cancels in their ratio; what differs from launch to
# launch (where memory lies, what the machine is at) does not, not even between a program and
# itself. A profile may state, of each kind of work, a factor around 1 that holds nine in ten ratios
# of two launches; one of published figures says nothing of it.


def with_repetition(ratio: Ratio, above: Iterable[Quantity], below: Iterable[Quantity]) -> Ratio:
    """Return a ratio whose interval also holds how two launches differ.

    A factor holds ratios of two launches of one kind of work, so that either launch has half of
    its square. Of several kinds in one program the one that repeats worst counts.
    """
    if not (math.isfinite(ratio.high) and ratio.low > 0):
        return ratio
    down = up = 0.0
    for side in (list(above), list(below)):
        down += max((math.log(one.value / one.low) ** 2 for one in side), default=0.0) / 2
        up += max((math.log(one.high / one.value) ** 2 for one in side), default=0.0) / 2
    down, up = math.sqrt(down), math.sqrt(up)
    low = math.exp(-math.hypot(math.log(ratio.mid / ratio.low), down))
    high = math.exp(math.hypot(math.log(ratio.high / ratio.mid), up))
    return Ratio(ratio.mid * low, ratio.mid, ratio.mid * high)


_SECONDS_PER_MICROSECOND = 1e-6
_TRUST = tuple(Provenance)


def evaluate_price(priced: Priced, bindings: Bindings) -> Estimate:
    """Return the estimate of a price for given sizes.

    Parameters
    ----------
    priced : Priced
        In microseconds, over sizes and coefficients.
    bindings : mapping of str to int or float
        A value for every size; names that do not occur are ignored.

    Returns
    -------
    Estimate
        In seconds. A formula used where it turns negative counts as 0, and a remark says so.

    Raises
    ------
    ExprError
        A size is unbound or not a finite number, or the formula has no value there.
    """
    check_bindings(bindings)
    bindings = at_once(bindings)
    names = frozenset(priced.coefficients)
    box = _box(priced.coefficients)
    whole = reduce_price(priced.microseconds, bindings, names)
    independent = frozenset(independent_of(priced.coefficients))

    def ends_of(price: Reduced) -> Interval:
        own = {name: box[name] for name in sorted(price.coefficients)}
        return extremes(price.at, own, independent, is_ratio=False)

    interval = ends_of(whole)
    remarks = tuple(dict.fromkeys(_extrapolations(priced, bindings, box)))
    if interval.mid < 0:
        remarks = (*remarks, "the formula is negative at these sizes; taken as 0")
    terms = []
    for term in priced.terms:
        low, mid, high = _seconds(ends_of(reduce_price(term.microseconds, bindings, names)))
        terms.append(TermEstimate(term.label, term.model, low, mid, high))
    low, mid, high = _seconds(interval)
    return Estimate(
        low=low,
        mid=mid,
        high=Seconds(math.inf) if priced.omitted else high,
        terms=tuple(terms),
        provenance=_worst(priced.coefficients[name] for name in whole.coefficients),
        in_range=not remarks,
        remarks=remarks,
        omitted=priced.omitted,
    )


def middle(priced: Priced, bindings: Bindings) -> Seconds:
    """Return the predicted time with every coefficient at its middle, and nothing else.

    Raises
    ------
    ExprError
        As :func:`evaluate_price`.
    """
    return Middles([priced]).at(bindings)[0]


def fixed_part(priced: Priced, bindings: Bindings) -> Seconds:
    """Return what is paid for each call and each step, however little data it is for.

    Raises
    ------
    ExprError
        As :func:`evaluate_price`.
    """
    fixed = {
        name: replace(quantity, value=0.0, low=0.0) if "/" in quantity.unit else quantity
        for name, quantity in priced.coefficients.items()
    }
    return middle(replace(priced, coefficients=fixed), bindings)


class Middles:
    """Times of several prices at sizes, each as :func:`middle` gives it.

    Variants share most of their parts, and one set of sizes much with the next.

    Parameters
    ----------
    prices : sequence of Priced
        Of one machine.
    steps : int
        Terms of a sum without closed form that are evaluated; more are sampled.

    Raises
    ------
    ExprError
        The prices disagree on a coefficient.
    """

    def __init__(self, prices: Sequence[Priced], steps: int = STEPS) -> None:
        merged = merge_coefficients([priced.coefficients for priced in prices])
        self.coefficients = {name: quantity.value for name, quantity in merged.items()}
        self.formulas = Evaluator([priced.microseconds for priced in prices], steps)

    def at(self, bindings: Bindings) -> list[Seconds]:
        """Return the time of each; raises as :func:`middle` does."""
        check_bindings(bindings)
        found = self.formulas.at({**bindings, **self.coefficients})
        return [_not_below_0(one) for one in found]

    def along(
        self, variable: str, values: Sequence[int], bindings: Bindings
    ) -> list[list[Seconds]]:
        """Return the times of each for several values of one size; raises where one has none."""
        point = {**bindings, **self.coefficients}
        found = self.formulas.along(variable, values, point)
        return [[_not_below_0(one) for one in column] for column in found]


def _not_below_0(microseconds: Value) -> Seconds:
    return Seconds(max(0.0, float(microseconds)) * _SECONDS_PER_MICROSECOND)


def compare(before: Priced, after: Priced, bindings: Bindings) -> Ratio:
    """Return predicted time `before` over `after`, with shared coefficients moved together.

    How far two launches differ is part of the interval where the machine states it.

    Exact where both prices are multilinear in their coefficients and positive over the
    intervals; otherwise the best of a search from several corners.

    What both omit alike takes the same time in both, nobody knows how long: where it stands in a
    loop, the ratio can be anything between that of the known parts and 1; what runs once is left
    out of the ratio. What one of them omits alone leaves the ratio without an upper end, or without
    a lower one.

    Raises
    ------
    ExprError
        As :func:`evaluate_price`; or the prices disagree on a coefficient.
    """
    found = _compare_known(before, after, bindings)
    above, below = set(before.omitted), set(after.omitted)
    low, high = found.low, found.high
    if not all(one.once for one in (*before.omitted, *after.omitted) if one in above & below):
        low, high = min(low, 1.0), max(high, 1.0)
    return Ratio(0.0 if below - above else low, found.mid, math.inf if above - below else high)


def _compare_known(before: Priced, after: Priced, bindings: Bindings) -> Ratio:
    check_bindings(bindings)
    merged = merge_coefficients((before.coefficients, after.coefficients))
    names, box = frozenset(merged), _box(merged)
    above = reduce_price(before.microseconds, bindings, names)
    below = reduce_price(after.microseconds, bindings, names)
    used = sorted(above.coefficients | below.coefficients)
    residuals = independent_of(merged)
    given = {name: box[name] for name in used}
    one, other, wider = with_own_misses(above, below, given, residuals)
    own = wider.keys() - given.keys()
    found = extremes(partial(_quotient, one, other), wider, {*residuals, *own}, is_ratio=True)
    ratio = Ratio(found.low, found.mid, found.high)
    return with_repetition(ratio, before.repeats, after.repeats)


def merge_coefficients(mappings: Sequence[Mapping[str, Quantity]]) -> dict[str, Quantity]:
    """Return all coefficients together.

    Raises
    ------
    ExprError
        One symbol stands for two different quantities.
    """
    merged: dict[str, Quantity] = {}
    for mapping in mappings:
        for name, quantity in mapping.items():
            if merged.setdefault(name, quantity) != quantity:
                raise ExprError(f"the coefficient {name!r} has two different values")
    return merged


def _quotient(above: Reduced, below: Reduced, point: Point) -> float:
    before, after = max(above.at(point), 0.0), max(below.at(point), 0.0)
    if after > 0:
        return before / after
    return 1.0 if before == 0 else math.inf


def _box(coefficients: Mapping[str, Quantity]) -> Box:
    return {
        name: Interval(quantity.low, quantity.value, quantity.high)
        for name, quantity in coefficients.items()
    }


def _seconds(interval: Interval) -> tuple[Seconds, Seconds, Seconds]:
    return _not_below_0(interval.low), _not_below_0(interval.mid), _not_below_0(interval.high)


def _worst(quantities: Iterable[Quantity]) -> Provenance:
    known = [quantity.provenance for quantity in quantities]
    # Without any coefficient the time follows from what the input states.
    return max(known, key=_TRUST.index, default=Provenance.DERIVED)


def _extrapolations(priced: Priced, bindings: Bindings, box: Box) -> Iterator[str]:
    names = frozenset(priced.coefficients)
    middles = {name: interval.mid for name, interval in box.items()}
    for domain in priced.domains:
        value = reduce_price(domain.quantity, bindings, names).at(middles)
        if not domain.low <= value <= domain.high:
            calibrated = f"{domain.low:g} to {domain.high:g}"
            yield f"{domain.what}: {value:g} is outside the calibrated {calibrated}"


def check_bindings(bindings: Bindings) -> None:
    """Refuse sizes that are not finite numbers.

    Raises
    ------
    ExprError
    """
    for name, value in bindings.items():
        if not math.isfinite(value):
            raise ExprError(f"{name!r} is not a finite number")
