"""Findings of what has sizes that nothing binds: from which value each would pay.

Of kernels and of programs alike.

No time is told, for there is none. With one size open, the finding tells at which of its values a
proposal is faster, of those that a search tries. With several, each is taken by itself, with the
others at values that the finding names, because a search over all of them would say little. Of
arguments of which nothing tells, all are taken to be alike: there may be a dozen sizes. What does
not last then may do so where arrays have few columns, as points have. What is slower where they
are narrow, as one order of a product may be, is not told.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Generic

from advisor.analysis.lower import Unpriced
from advisor.finding import (
    REPORTED_FROM,
    Alternative,
    Applicability,
    Assumption,
    Condition,
    Crossover,
    Finding,
    Fix,
)
from advisor.ir.kernel import SOME, Kernel, Proposal, Rule
from advisor.ir.statements import Loop, walk
from advisor.ranking.compare import (
    TRIED_TO,
    WORTH_S,
    Costed,
    Number,
    Sizes,
    cost,
    pays_for,
    rounded,
    time_s,
    times_s,
)
from advisor.ranking.findings import (
    AnyProposal,
    Offered,
    Place,
    finding_about,
    unpredicted,
    with_prices,
)
from costdb.choosing import crossover
from costdb.evaluate import Middles
from costdb.expr import Expr, ExprError, evaluate, free_symbols, num, substitute, sym
from costdb.machines import Machine
from costdb.records import dataclass, replace

EXTENT, RANKS, OTHER = 1024, 16, 4
"""Values that stand in for an open extent of an array, of a mesh, and any other open size,
while another one is searched."""

STAND_IN = "not bound: its value where another is searched"
"""Origin of such a value."""

SMALL, LITTLE_S = 16, 2e-5
"""An edit that pays from here on, or from less, is offered: where it does not, little is lost.

No more than this in a call, or not as much as it takes now.
"""

FEW = 8
"""What pays only for sizes below is not told."""

NARROW = 3
"""How many columns an array of few has."""

SLOWER = 1.25
"""How many times as long as now a proposal may take where arrays are narrow."""

ALIKE = "size"
"""What sizes are called that are taken to be alike."""

STEPS = 128
"""Terms of a sum without closed form that are evaluated at each value that is tried."""

Point = Mapping[str, Number]


@dataclass(frozen=True, slots=True)
class Opened(Generic[Offered]):
    """The best proposal of a rule where sizes are open, and where it pays.

    Attributes
    ----------
    proposal : Offer
    costed : Costed
    condition : Condition
    crossovers : tuple of Crossover
    assumptions : tuple of Assumption
    rivals : tuple of Alternative
    gain : float
        Predicted speed-up at the most favourable of the values tried.
    brief : bool
        Whether nobody asked.
    slower : str
        Where else it is slower than for small sizes.
    loses : bool
        Whether more than a little is lost where sizes are small.
    """

    proposal: Offered
    costed: Costed
    condition: Condition
    crossovers: tuple[Crossover, ...]
    assumptions: tuple[Assumption, ...]
    rivals: tuple[Alternative, ...]
    gain: float
    brief: bool = False
    slower: str = ""
    loses: bool = False

    def offered(self, finding: Finding) -> Finding:
        """Return a finding whose edits are for the reader where they do not pay for most sizes."""
        fix, condition = finding.fix, self.condition
        if fix is None or condition.always:
            return finding
        least, offered, why = condition.pays_from, fix.applicability, self.slower
        if self.brief and least is not None and least <= SMALL and not self.loses:
            offered = Applicability.UNSAFE if offered is Applicability.SAFE else offered
            below = f"for sizes below {least}" * (least > 1)
            why = f"slower {' and '.join(filter(None, (below, why)))}"
        else:
            offered, why = Applicability.DISPLAY, "left to you, as it does not pay for all sizes"
        return replace(finding, fix=Fix(offered, f"{fix.legality}; {why}", fix.edits))


def opened(
    kernel: Kernel,
    machine: Machine,
    sizes: Sizes,
    proposals: Sequence[Proposal],
    before: Costed,
    enough: float = 1.0,
) -> Opened[Proposal] | None:
    """Return the best of some proposals for a kernel, None where none pays anywhere tried.

    Of what nobody asked about it has to be `enough` times as fast.
    """
    candidates, lost = with_prices(proposals, before, lambda one: cost(one.variant, machine))
    unbound = _unbound(before, candidates, sizes)
    if not kernel.assumed:
        stand_ins = _stand_ins(kernel, unbound)
        found = best_where_open(before, candidates, lost, sizes, stand_ins)
        return None if found is None else replace(found, brief=not kernel.asked)
    loops = [one for one in walk(kernel.body) if isinstance(one, Loop)]
    least = dict.fromkeys(sorted(_shortening(loops) & set(unbound)), 1)
    search = partial(
        _assumed, kernel, machine, sizes, candidates, lost, before, unbound, loops, enough
    )
    best = search(least)
    if best is not None and best.condition.pays_from is not None:
        return best
    # no loop goes over the columns of points
    rows = (free_symbols(one.high - one.low) for one in loops)
    columns = (free_symbols(one) for array in kernel.arrays.values() for one in array.extents[1:])
    few = frozenset().union(*columns) & set(unbound) - least.keys() - frozenset().union(*rows)
    narrow = search({**dict.fromkeys(sorted(few), NARROW), **least}) if few else None
    if narrow is None or narrow.condition.pays_from is None:
        return best
    text = narrow.condition.text
    for alike in best.crossovers if best is not None else ():
        text = f"{text.removesuffix(')')}; were all alike, for {alike.pays})"
    slower = f"where {' and '.join(sorted(few))} {'are' if len(few) > 1 else 'is'} as large"
    condition = replace(narrow.condition, text=text, always=False)
    return replace(narrow, condition=condition, slower=slower)


def _assumed(
    kernel: Kernel,
    machine: Machine,
    sizes: Sizes,
    candidates: Sequence[tuple[Proposal, Costed]],
    lost: Sequence[Alternative],
    before: Costed,
    unbound: Sequence[str],
    loops: Sequence[Loop],
    enough: float,
    fixed: Mapping[str, int],
) -> Opened[Proposal] | None:
    """Return the best proposal where open sizes are alike, but those that are fixed."""
    indices = {one.variable for one in loops}
    others = [name for name in unbound if name not in fixed.keys() | indices]
    size = others[0] if len(others) == 1 else ALIKE
    values = {name: num(fixed[name]) if name in fixed else sym(size) for name in unbound}
    all_of_it = _alike(before, values)
    # how much other loops of theirs take, nothing tells
    speedup = max((one.least[0] for one, _ in candidates), default=1.0)
    rest = _rest(kernel, candidates, machine) if speedup > 1 else None
    now = all_of_it if rest is None else _without(all_of_it, _alike(rest, values))
    alike = [(one, _alike(after, values)) for one, after in candidates]
    if rest is not None:
        alike = [(one, _without(after, _alike(rest, values))) for one, after in alike]
    brief = max(speedup, enough)
    best = best_where_open(now, alike, lost, sizes, {size: EXTENT}, brief=brief)
    if best is None or (best.condition.pays_from is None and speedup > 1):
        # what is only shown has to last
        return None
    here = {**sizes.values, size: EXTENT}
    saved = _saved_s(now, best.costed, here)
    if saved * max(kernel.calls, SOME) < WORTH_S or (
        rest is not None and not _is_felt(saved, all_of_it, here)
    ):
        # what only small ones gain is worth no word
        return None
    (costed,) = (after for one, after in candidates if one is best.proposal)
    both = [one if rest is None else _without(one, rest) for one in (before, costed)]
    large = {**sizes.values, **dict.fromkeys(unbound, EXTENT), **fixed}
    # a loop over an extent that is not its array's is none
    gone_over = frozenset().union(*(free_symbols(one.high - one.low) for one in loops))
    small = max(OTHER, best.condition.pays_from or 0)
    points = [{**large, name: small} for name in others if name not in gone_over]
    wide = {**large, **{name: EXTENT for name in fixed if fixed[name] == NARROW}}
    points += [wide, *({**wide, name: small} for name in fixed if fixed[name] == NARROW)]
    points += [{**wide, name: small} for name in others if name not in gone_over]
    # a loop that was none pays where there is much to do in each iteration
    extents = (
        one.high - one.low for one in walk(best.proposal.variant.body) if isinstance(one, Loop)
    )
    made = frozenset().union(*map(free_symbols, extents)) - gone_over
    points += [{**large, **dict.fromkeys(others, small), name: EXTENT} for name in made]
    if _is_slower(both, points):
        return None
    notes = [f"{', '.join(others)} alike"] if len(others) > 1 else []
    notes += [f"{name} = {value}" for name, value in fixed.items()]
    notes += ["arrays in C order"] * kernel.context.is_compiled
    text = best.condition.text + (f" ({'; '.join(notes)})" if notes else "")
    open_sizes = tuple(name for name in unbound if name not in indices)
    condition = replace(best.condition, text=text, open_sizes=open_sizes)
    with suppress(ExprError):
        little, then = times_s(both, {**large, **dict.fromkeys(others, OTHER)})
        best = replace(best, loses=then - little > max(little, LITTLE_S))
    return replace(best, costed=costed, condition=condition)


def _shortening(loops: Iterable[Loop]) -> frozenset[str]:
    """Return the sizes that make loops shorter, and none longer: where one begins, or a window."""
    lengths = [(one.high - one.low) * (1 if one.step > 0 else -1) for one in loops]

    def shortens(name: str) -> bool:
        changes = [0.0]
        for length in lengths:
            names = free_symbols(length)
            for large in names - {name} if name in names else ():
                point = {**dict.fromkeys(names, 1), large: EXTENT**2}
                try:
                    now, then = (evaluate(length, {**point, name: at}) for at in (1, 2))
                except ExprError:
                    return False
                changes.append(float(max(0, then) - max(0, now)))
        return min(changes) < 0 and max(changes) == 0

    return frozenset(filter(shortens, frozenset().union(*map(free_symbols, lengths))))


def _rest(
    kernel: Kernel, candidates: Sequence[tuple[Proposal, Costed]], machine: Machine
) -> Costed | None:
    """Return the price of what none of some proposals changes, where they say what that is."""
    others = [one.rest for one, _ in candidates]
    if len(others) != 1 or others[0] is None:
        return None
    try:
        found = cost(others[0], machine)
    except Unpriced:
        return None
    return found if isinstance(found, Costed) else None


def _without(costed: Costed, rest: Costed) -> Costed:
    price, other = costed.priced, rest.priced
    made = replace(
        price,
        microseconds=price.microseconds - other.microseconds,
        coefficients={**other.coefficients, **price.coefficients},
    )
    return Costed(costed.process, made)


def _is_slower(both: Iterable[Costed], points: Iterable[Point]) -> bool:
    """Return whether the second of two takes clearly longer at any of some sizes."""
    times = Middles([one.priced for one in both], STEPS)
    for point in points:
        with suppress(ExprError):
            now, then = times.at(point)
            if then > SLOWER * now:
                return True
    return False


def _saved_s(before: Costed, after: Costed, point: Point) -> float:
    try:
        now, then = times_s((before, after), point)
    except ExprError:
        # the stand-ins fit no call of it: nothing tells that little is saved
        return math.inf
    return now - then


def _is_felt(saved: float, whole: Costed, point: Point) -> bool:
    """Return whether what is saved of a kernel would be reported of all of it."""
    try:
        now = time_s(whole, point)
    except ExprError:
        return True
    return now >= REPORTED_FROM * (now - saved)


def _alike(costed: Costed, values: Mapping[str, Expr]) -> Costed:
    """Return a price with something in the place of sizes."""
    price = costed.priced
    made = replace(
        price,
        microseconds=substitute(price.microseconds, values),
        domains=tuple(
            replace(one, quantity=substitute(one.quantity, values)) for one in price.domains
        ),
    )
    return Costed(costed.process, made)


def _unbound(
    before: Costed, candidates: Iterable[tuple[object, Costed]], sizes: Sizes
) -> tuple[str, ...]:
    names = before.sizes.union(*(after.sizes for _, after in candidates))
    return tuple(sorted(names - sizes.values.keys()))


def best_where_open(
    before: Costed,
    candidates: Sequence[tuple[Offered, Costed]],
    lost: Sequence[Alternative],
    sizes: Sizes,
    stand_ins: Mapping[str, Number],
    ranks: str = "",
    *,
    brief: float | None = None,
) -> Opened[Offered] | None:
    """Return the proposal that wins most often, and where it pays.

    Parameters
    ----------
    before : Costed
    candidates : sequence of (Offer, Costed)
        Proposals of one rule with their prices.
    lost : sequence of Alternative
        Those without one.
    sizes : Sizes
        The sizes that something binds.
    stand_ins : mapping of str to number
        Values of each of the others where another one is searched.
    ranks : str
        Which of them is the number of ranks of a program: nothing is said of one, which sends
        nothing.
    brief : float or None
        Where nobody asked: how many times as fast a proposal has to be. Nothing is looked for long.

    Returns
    -------
    Opened or None
        None where nothing pays at any value that was tried, only below `FEW`, or for no value of
        one size and not for large ones of another.
    """
    if not candidates:
        return None
    unbound = _unbound(before, candidates, sizes)
    here = {**stand_ins, **sizes.values}
    prices = [after for _, after in candidates]
    least = REPORTED_FROM if brief is None else brief
    wins, gains = _tried(before, prices, unbound, here)
    most = max(wins)
    chosen = wins.index(most)
    proposal, after = candidates[chosen]
    found = [_searched(before, after, name, here, name == ranks, least) for name in unbound if most]
    if not any(one.pays and (one.name == ranks or not one.is_for_few) for one in found):
        return None
    if not all(one.pays for one in found) and all(one.least is None for one in found):
        # where some sizes are usual it pays for none of another
        return None
    rivals = [
        Alternative(other.title, None, f"fastest at {count} of the values tried, this at {most}")
        for (other, _), count in zip(candidates, wins, strict=True)
        if other is not proposal
    ]
    return Opened(
        proposal,
        after,
        _condition(found, here),
        tuple(one.crossover for one in found if one.crossover is not None),
        tuple(_assumptions(before.sizes | after.sizes, unbound, sizes, here)),
        (*rivals, *lost),
        gains[chosen],
        brief is not None,
    )


def finding_of_opened(
    place: Place, machine: Machine, rule: Rule, before: Costed, best: Opened[AnyProposal]
) -> Finding:
    """Return the finding that a proposal is worth making for some sizes."""
    gain = f"pays on {machine.name} for {best.condition.text}"
    evidence = unpredicted(machine, before, best.costed)
    legality = best.proposal.legality
    return replace(
        finding_about(place, rule, best.proposal, gain, legality, evidence, best.rivals),
        assumptions=best.assumptions,
        crossovers=best.crossovers,
        condition=best.condition,
    )


@dataclass(frozen=True, slots=True)
class _Searched:
    """Where a proposal pays along one size; `pays` is empty where it does nowhere up to `end`."""

    name: str
    pays: str
    end: str
    always: bool
    least: int | None
    crossover: Crossover | None

    @property
    def is_for_few(self) -> bool:
        """Return whether it pays no more from less than `FEW` on."""
        return self.least is None and any(one.values[-1] < FEW for one in [self.crossover] if one)


def _searched(
    before: Costed,
    after: Costed,
    name: str,
    here: Point,
    of_ranks: bool,
    least: float,
) -> _Searched:
    times, low = Middles((before.priced, after.priced), STEPS), 1 + of_ranks
    while low <= TRIED_TO:
        with suppress(ExprError):
            times.at({**here, name: low})
            break
        low *= 2  # sizes that small make no kernel
    else:
        return _Searched(name, "", str(TRIED_TO), False, None, None)
    prices = before.priced, after.priced
    found = crossover(*prices, name, here, low, TRIED_TO, least, STEPS)
    first, flips = found.after_wins_first, found.flips
    end = str(found.high)
    if not flips:
        # an edit is for every number of ranks only if it loses nothing on one
        alone = not of_ranks or crossover(*prices, name, here, 1, 1).after_wins_first
        pays = f"every {name} tried, {low} to {end}" if first else ""
        return _Searched(name, pays, end, first and alone, low if first else None, None)
    # an odd number of changes after a loss, or an even one after a gain, ends in a gain
    lasting = first == (len(flips) % 2 == 0)
    pays, least_size = pays_for(found), flips[-1] if lasting else None
    flipping = Crossover(name, flips, pays)
    return _Searched(name, f"{pays}, tried to {end}", end, False, least_size, flipping)


def _condition(found: Sequence[_Searched], here: Point) -> Condition:
    unbound = tuple(one.name for one in found)
    always, least = all(one.always for one in found), [one.least for one in found]
    pays_from = max((one for one in least if one is not None), default=None)
    pays_from = None if None in least else pays_from
    if len(found) == 1:
        return Condition(found[0].pays, unbound, pays_from, always)
    parts = []
    for one in found:
        others = ", ".join(f"{name} = {here[name]}" for name in unbound if name != one.name)
        parts.append(f"{one.pays or f'no {one.name} up to {one.end}'} (at {others})")
    return Condition("; ".join(parts), unbound, pays_from, always)


def _assumptions(
    used: frozenset[str], unbound: Sequence[str], sizes: Sizes, here: Point
) -> Iterator[Assumption]:
    yield from sizes.assumptions(used & sizes.values.keys())
    if len(unbound) > 1:
        yield from (Assumption(name, here[name], STAND_IN) for name in unbound)


def _stand_ins(kernel: Kernel, unbound: Sequence[str]) -> dict[str, Number]:
    extents: set[str] = set()
    ranks: set[str] = set()
    for array in kernel.arrays.values():
        extents.update(*(free_symbols(extent) for extent in array.extents))
        ranks.update(extent for _, extent in array.spec.mesh.axes if isinstance(extent, str))
    return {
        name: RANKS if name in ranks else EXTENT if name in extents else OTHER for name in unbound
    }


def _tried(
    before: Costed, candidates: Sequence[Costed], unbound: Iterable[str], here: Point
) -> tuple[list[int], list[float]]:
    """Return of each candidate at how many values of a size it wins, and its greatest gain."""
    wins, gains = [0] * len(candidates), [0.0] * len(candidates)
    prices = [one.priced for one in (before, *candidates)]
    # which one wins more often shows in few terms
    several = Middles(prices, STEPS // 4)
    values = [1 << n for n in range(1, TRIED_TO.bit_length())]
    for now, *times in (one for name in unbound for one in _along(several, name, values, here)):
        for place, time in enumerate(times):
            if time > 0:
                gains[place] = max(gains[place], now / time)
        if min(times) * REPORTED_FROM < now:
            wins[times.index(min(times))] += 1
    return wins, gains


def _along(
    several: Middles, name: str, values: Sequence[int], here: Point
) -> Iterator[Sequence[float]]:
    """Return the times at values of a size, without those at which one has none."""
    try:
        yield from zip(
            *(map(rounded, one) for one in several.along(name, values, here)), strict=True
        )
    except ExprError:
        # sizes that small make no kernel, or larger ones take too long
        middle = len(values) // 2
        if middle:
            yield from _along(several, name, values[:middle], here)
            yield from _along(several, name, values[middle:], here)
