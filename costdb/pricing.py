"""Work and processes priced on a machine: which model answers, and how answers are put together.

This is the only place that knows which model prices which work. Models are imported when first
asked, so a run loads what it uses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from importlib import import_module
from math import isfinite, prod
from typing import Any

from costdb.estimate import Domain, Missing, Priced, Term, missing_of
from costdb.evaluate import merge_coefficients
from costdb.expr import (
    ZERO,
    Expr,
    conditional,
    free_symbols,
    less_equal,
    logical_not,
    maximum,
    maximum_over,
    minimum,
    num,
    substitute,
    summation,
    sym,
)
from costdb.expr.functions import CHANCE, TRIPS, Sum
from costdb.expr.nodes import Add, Mul, Sym, add
from costdb.expr.polynomials import coefficients_in, is_polynomial_in, sum_below
from costdb.machines import Machine
from costdb.quantity import Omission, Provenance, Quantity, anywhere, exactly
from costdb.records import dataclass, replace
from costdb.work import (
    Barrier,
    Branch,
    Collective,
    Delay,
    Fixed,
    Interpretation,
    Leaf,
    Message,
    Parallel,
    ParLoop,
    PickledCollective,
    PickledMessage,
    PrefixScan,
    Process,
    RemoteGroup,
    SeqLoop,
    Sequential,
    Statement,
    Superstep,
    Unknown,
    Use,
    Work,
)

_COMPILED = "process models state their times, and compile themselves"


def added_over(variable: str, low: Expr, high: Expr, expr: Expr) -> Expr:
    """Return the sum of `expr` over ``low..high``, in closed form where that is seen at once."""
    if variable not in free_symbols(expr):
        return at_least(ZERO, high - low + 1) * expr
    turned, rest = turned_over(variable, low, high, expr)
    if turned != ZERO:
        return turned + added_over(variable, low, high, rest)
    # expanding what is no polynomial takes longer than all else that is done to it
    coefficients = coefficients_in(expr, variable) if is_polynomial_in(expr, variable) else None
    if coefficients is None:
        return summation(variable, low, high, expr)
    return sum_below(coefficients, at_least(low, high + 1)) - sum_below(coefficients, low)


def at_least(low: Expr, count: Expr) -> Expr:
    """Return the greater of two; how often a loop runs of which nothing tells is no less than 0.

    It is a coefficient, and of a choice between coefficients no price is a sum of products. So is
    a share of a size.
    """
    factors = count.factors if isinstance(count, Mul) and count.coefficient > 0 else (count,)
    untold = any(isinstance(o, Sym) and o.name.startswith((TRIPS, CHANCE)) for o in factors)
    return count if untold and low == ZERO else maximum(low, count)


def turned_over(variable: str, low: Expr, high: Expr, expr: Expr) -> tuple[Expr, Expr]:
    """Return the sums of an expression's inner sums over triangles, and what is left of it.

    An inner sum whose terms do not depend on the outer index, but one of whose ends moves with
    it, has each of its terms as often as there are outer indices that reach it: one sum instead
    of two, one within the other.
    """
    turned, rest = ZERO, ZERO
    for term in (*expr.terms, num(expr.constant)) if isinstance(expr, Add) else (expr,):
        factors = term.factors if isinstance(term, Mul) else (term,)
        sums = [factor for factor in factors if isinstance(factor, Sum)]
        one = _turned(variable, low, high, sums[0]) if len(sums) == 1 else None
        others = term.coefficient if isinstance(term, Mul) else 1
        scale = num(others) * prod(factor for factor in factors if factor not in sums)
        if one is None or variable in free_symbols(scale):
            rest = rest + term
        else:
            turned = turned + scale * one
    return turned, rest


def _turned(variable: str, low: Expr, high: Expr, inner: Sum) -> Expr | None:
    """Return a sum over ``low..high`` of an inner sum as one sum; None where it is no triangle."""
    outer, place = sym(variable), sym(inner.index)
    around = free_symbols(low) | free_symbols(high)
    if variable in free_symbols(inner.body) or inner.index in around:
        return None
    if variable not in free_symbols(inner.high):
        lag = inner.low - outer
        times = minimum(high, place - lag) - low + 1
        first, last = low + lag, inner.high
    elif variable not in free_symbols(inner.low):
        lag = inner.high - outer
        times = high - maximum(low, place - lag) + 1
        first, last = inner.low, high + lag
    else:
        return None
    if variable in free_symbols(lag) or inner.index in free_symbols(lag):
        return None
    return summation(inner.index, first, last, maximum(0, times) * inner.body)


def longest_over(variable: str, low: Expr, high: Expr, expr: Expr) -> Expr:
    """Return the largest `expr` over ``low..high``, 0 where that is empty."""
    if variable not in free_symbols(expr):
        return conditional(less_equal(low, high), expr, 0)
    from costdb.expr.simplify import simplify  # few loops are spread over ranks

    return simplify(maximum_over(variable, low, high, expr))


def when(condition: Expr, expr: Expr) -> Expr:
    """Return `expr` weighed by a probability, or chosen by a comparison.

    What a comparison does not choose need not have a value.
    """
    return conditional(condition, expr, 0) if condition.is_whole() else condition * expr


def opposite(condition: Expr) -> Expr:
    """Return the probability that `condition` is not so."""
    return logical_not(condition) if condition.is_whole() else num(1) - condition


def _only_if(test: Expr, domain: Domain) -> Domain:
    # What does not happen is in range, which any value inside says.
    inside = next((end for end in (domain.low, domain.high) if isfinite(end)), 0.0)
    return replace(domain, quantity=conditional(test, domain.quantity, num(inside)))


LAUNCHES = "launches"
ALONE, RANKS, THREADS = "alone_residual", "ranks_residual", "threads_residual"
"""What one process does by itself, what ranks do, and what threads do together."""

_KINDS: dict[type, str] = {
    Message: RANKS,
    PrefixScan: RANKS,
    Collective: RANKS,
    PickledMessage: RANKS,
    PickledCollective: RANKS,
    RemoteGroup: RANKS,
    Superstep: THREADS,
}


def repeats_of(works: Iterable[Work], machine: Machine) -> tuple[Quantity, ...]:
    """Return what a machine states of each kind of work."""
    kinds = dict.fromkeys(
        _KINDS.get(type(work), ALONE) for work in works if not isinstance(work, Fixed | Unknown)
    )
    stated = (machine.quantity(LAUNCHES, kind) for kind in kinds)
    return tuple(one for one in stated if one is not None)


_Model = Callable[[Any, Machine], Priced | Missing]

_MODELS: dict[type, tuple[str, str]] = {
    Message: ("costdb.lines.model", "price_message"),
    PrefixScan: ("costdb.lines.model", "price_scan"),
    Statement: ("costdb.lines.model", "price_statement"),
    Collective: ("costdb.lines.model", "price_collective"),
    PickledMessage: ("costdb.common", "price_pickled_message"),
    PickledCollective: ("costdb.common", "price_pickled_collective"),
    Superstep: ("costdb.smp", "price_superstep"),
    RemoteGroup: ("costdb.pgas.model", "price_remote_group"),
    Interpretation: ("costdb.common", "price_interpretation"),
    Barrier: ("costdb.common", "price_barrier"),
    Fixed: ("costdb.common", "price_fixed"),
    Unknown: ("costdb.common", "price_unknown"),
}


@lru_cache(maxsize=4096)
def price_work(work: Work, machine: Machine) -> Priced | Missing:
    """Price one piece of work by the model that its type belongs to.

    Equal work on the same machine is priced once.

    Raises
    ------
    MachineError
        The profile states something in the wrong shape.
    ExprError
        The work's sizes contradict each other.
    """
    module, function = _MODELS[type(work)]
    model: _Model = getattr(import_module(module), function)
    return model(work, machine)


def price_process(process: Process, machine: Machine) -> Priced | Missing:
    """Price a process: its leaves by their models, their composition by the process algebra.

    So are terms of equal label and model, by themselves: they add up along sequences, and side by
    side the largest counts.

    Returns
    -------
    Priced or Missing
        Missing as soon as any leaf is, naming all that is lacking, each thing once.

    Raises
    ------
    MachineError, ExprError
        As :func:`price_work`; or the process is not well formed.
    """
    found = price_known(process, machine)
    return found if not found.lacking else missing_of(found.lacking)


@dataclass(frozen=True, slots=True)
class Known(Priced):
    """What is known of a price, and what the machine lacks for the rest of it."""

    lacking: tuple[Missing, ...] = ()


def price_known(process: Process, machine: Machine) -> Known:
    """Price what a machine has coefficients for; what it lacks counts as omitted."""
    prices: dict[Work, Priced] = {}
    lacking: dict[Missing, None] = {}
    taken: dict[tuple[str, str], dict[Work, Expr]] = {}
    leaves = tuple(_leaves(process))
    repeated = {work for work, again in leaves if again}
    for work in dict.fromkeys(work for work, _ in leaves):
        price = price_work(work, machine)
        if isinstance(price, Missing):
            lacking[price] = None
            price = Priced(num(0), omitted=(Omission(0, work.label, price.what),))
        if work in repeated:
            omitted = tuple(replace(one, once=False) for one in price.omitted)
            price = replace(price, omitted=omitted)
        prices[work] = price
        for term in price.terms:
            of_label = taken.setdefault((term.label, term.model), {})
            of_label[work] = of_label.get(work, ZERO) + term.microseconds
    time = _time(process, {work: price.microseconds for work, price in prices.items()})
    coefficients = [price.coefficients for price in prices.values()]
    return Known(
        time,
        tuple(Term(*label, _time(process, times)) for label, times in taken.items()),
        coefficients=merge_coefficients([*coefficients, _chances(time)]),
        domains=tuple(dict.fromkeys(_domains(process, prices))),
        repeats=repeats_of(prices, machine),
        omitted=tuple(dict.fromkeys(one for price in prices.values() for one in price.omitted)),
        lacking=tuple(lacking),
    )


def _chances(time: Expr) -> dict[str, Quantity]:
    """Return what nothing tells in a time: the price of both ends of a probability is in it.

    A loop is priced for one iteration, and what is left out is told where it stands.
    """
    once = "nothing says how often the loop runs: the price is that of one iteration"
    names = sorted(free_symbols(time))
    found = {name: exactly(1.0, "1", once) for name in names if name.startswith(TRIPS)}
    found = {name: replace(one, provenance=Provenance.ESTIMATED) for name, one in found.items()}
    for name in (name for name in names if name.startswith(CHANCE)):
        why = f"nothing says how often the condition in line {name.removeprefix(CHANCE)} holds:"
        found[name] = anywhere(f"{why} never, always or in between", Provenance.ESTIMATED)
    return found


def _leaves(process: Process, again: bool = False) -> Iterator[tuple[Work, bool]]:
    """Yield work, and whether it stands in a loop."""
    match process:
        case Leaf(work):
            yield work, again
        case Sequential(parts) | Parallel(parts):
            for part in parts:
                yield from _leaves(part, again)
        case SeqLoop(body=body) | ParLoop(body=body):
            yield from _leaves(body, again=True)
        case Branch(_, then, orelse):
            yield from _leaves(then, again)
            yield from _leaves(orelse, again)
        case Delay() | Use():
            raise AssertionError(_COMPILED)


def _time(process: Process, times: Mapping[Work, Expr]) -> Expr:
    """Return the times of work put together as the process is; others take none."""
    match process:
        case Leaf(work):
            return times.get(work, ZERO)
        case Sequential(parts):
            return add([_time(part, times) for part in parts])
        case Parallel(parts):
            found = [time for part in parts if (time := _time(part, times)) != ZERO]
            return maximum(*found) if found else ZERO
        case SeqLoop(variable, low, high, body):
            return added_over(variable, low, high, _time(body, times))
        case ParLoop(variable, low, high, body):
            return longest_over(variable, low, high, _time(body, times))
        case Branch(condition, then, orelse):
            taken = when(condition, _time(then, times))
            return taken + when(opposite(condition), _time(orelse, times))
        case Delay() | Use():
            raise AssertionError(_COMPILED)


def _domains(process: Process, prices: Mapping[Work, Priced]) -> Iterator[Domain]:
    """Yield calibrated ranges: of loops at both ends, and not at all where they are empty."""
    match process:
        case Leaf(work):
            yield from prices[work].domains
        case Sequential(parts) | Parallel(parts):
            for part in parts:
                yield from _domains(part, prices)
        case SeqLoop(variable, low, high, body) | ParLoop(variable, low, high, body):
            for domain in dict.fromkeys(_domains(body, prices)):
                for end in (low, high):
                    quantity = substitute(domain.quantity, {variable: end})
                    yield _only_if(less_equal(low, high), replace(domain, quantity=quantity))
        case Branch(condition, then, orelse):
            for test, side in ((condition, then), (opposite(condition), orelse)):
                for domain in _domains(side, prices):
                    yield _only_if(test, domain)
