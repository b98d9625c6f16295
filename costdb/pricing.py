"""Work and processes priced on a machine: which model answers, and how answers are put together.

This is the only place that knows which model prices which work. Models are imported when first
asked, so a run loads what it uses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import import_module
from typing import Any

from costdb.estimate import Missing, Priced
from costdb.evaluate import merge_coefficients
from costdb.expr import Expr, maximum, num
from costdb.expr.nodes import add
from costdb.heap_work import FreshMemory
from costdb.interpretation import Interpretation
from costdb.machines import Machine
from costdb.omission import Omission
from costdb.pricing_terms import (
    Over,
    Parts,
    added_over,
    longest_over,
    of_loop,
    of_parallel,
    of_sequence,
    opposite,
    total_over,
    weighted,
    when,
)
from costdb.process.terms import (
    Branch,
    Delay,
    Leaf,
    Parallel,
    ParLoop,
    Process,
    SeqLoop,
    Sequential,
    Use,
)
from costdb.repetition import repeats_of
from costdb.work import (
    Barrier,
    Collective,
    Fixed,
    Message,
    PickledCollective,
    PickledMessage,
    PrefixScan,
    RemoteElements,
    RemoteGroup,
    Statement,
    Superstep,
    Unknown,
    Work,
)

_Model = Callable[[Any, Machine], Priced | Missing]

_MODELS: dict[type, tuple[str, str]] = {
    Message: ("costdb.lines.model", "price_message"),
    PrefixScan: ("costdb.lines.model", "price_scan"),
    Statement: ("costdb.lines.model", "price_statement"),
    Collective: ("costdb.lines.model", "price_collective"),
    PickledMessage: ("costdb.pickled", "price_pickled_message"),
    PickledCollective: ("costdb.pickled", "price_pickled_collective"),
    Superstep: ("costdb.smp.functions", "price_superstep"),
    RemoteGroup: ("costdb.pgas.model", "price_remote_group"),
    RemoteElements: ("costdb.elements", "price_remote_elements"),
    Interpretation: ("costdb.elements", "price_interpretation"),
    Barrier: ("costdb.common", "price_barrier"),
    FreshMemory: ("costdb.common", "price_fresh_memory"),
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


def price_process(process: Process, machine: Machine, *, closed: bool = True) -> Priced | Missing:
    """Price a process: its leaves by their models, their composition by the process algebra.

    Terms of equal label and model are added up along sequences; side by side the largest
    counts. A loop's trips multiply them.

    Parameters
    ----------
    process : Process
    machine : Machine
    closed : bool
        Whether to find closed forms for sums over outermost loops too. That takes longer than
        evaluating them a few times does.

    Returns
    -------
    Priced or Missing
        Missing as soon as any leaf is, naming all that is lacking, each thing once.

    Raises
    ------
    MachineError, ExprError
        As :func:`price_work`; or the process is not well formed.
    """
    found = price_time(process, machine, closed=closed)
    return found if isinstance(found, Missing) else with_parts(found, process, machine, closed)


def price_time(process: Process, machine: Machine, *, closed: bool = True) -> Priced | Missing:
    """Price a process as :func:`price_process` does, without named parts and ranges.

    Whoever compares many variants looks at those of a few.
    """
    found = price_known(process, machine, closed=closed)
    return found if not found.lacking else _together(found.lacking)


@dataclass(frozen=True, slots=True)
class Known(Priced):
    """What is known of a price, and what the machine lacks for the rest of it."""

    lacking: tuple[Missing, ...] = ()


def price_known(process: Process, machine: Machine, *, closed: bool = True) -> Known:
    """Price what a machine has coefficients for; what it lacks counts as omitted."""
    prices: dict[Work, Priced] = {}
    lacking: dict[Missing, None] = {}
    for work in dict.fromkeys(_leaves(process)):
        price = price_work(work, machine)
        if isinstance(price, Missing):
            lacking[price] = None
            price = Priced(num(0), omitted=(Omission(0, work.label, price.what),))
        prices[work] = price
    return Known(
        _time(process, prices, closed, closed),
        coefficients=merge_coefficients([price.coefficients for price in prices.values()]),
        repeats=repeats_of(prices, machine),
        omitted=tuple(dict.fromkeys(one for price in prices.values() for one in price.omitted)),
        lacking=tuple(lacking),
    )


def with_parts(priced: Priced, process: Process, machine: Machine, closed: bool) -> Priced:
    """Return a price from :func:`price_time` with the named parts and ranges of its process.

    Raises
    ------
    MachineError, ExprError
        As :func:`price_process`.
    """
    prices: dict[Work, Priced] = {}
    for work in dict.fromkeys(_leaves(process)):
        price = price_work(work, machine)
        # all of it had a price before
        assert isinstance(price, Priced)
        prices[work] = price
    parts = _parts(process, prices, total_over if closed else added_over)
    return replace(priced, terms=parts.terms, domains=parts.domains)


def _together(lacking: Iterable[Missing]) -> Missing:
    return Missing(
        "; ".join(dict.fromkeys(missing.what for missing in lacking)),
        "; ".join(dict.fromkeys(missing.remedy for missing in lacking)),
    )


def _leaves(process: Process) -> Iterator[Work]:
    match process:
        case Leaf(work):
            yield work
        case Sequential(parts) | Parallel(parts):
            for part in parts:
                yield from _leaves(part)
        case SeqLoop(body=body) | ParLoop(body=body):
            yield from _leaves(body)
        case Branch(_, then, orelse):
            yield from _leaves(then)
            yield from _leaves(orelse)
        case Delay() | Use():
            pass


def _time(process: Process, prices: Mapping[Work, Priced], closed: bool, inner: bool) -> Expr:
    # Without anything side by side, times simply add up, which needs no compiler; nor does the
    # longest of several that share nothing, where no closed form is asked for.
    match process:
        case Leaf(work):
            return prices[work].microseconds
        case Delay(microseconds):
            return microseconds
        case Sequential(parts):
            return add([_time(part, prices, closed, inner) for part in parts])
        case SeqLoop(variable, low, high, body):
            total = total_over if inner else added_over
            return total(variable, low, high, _time(body, prices, closed, True))
        case Branch(condition, then, orelse):
            taken = when(condition, _time(then, prices, closed, inner))
            return taken + when(opposite(condition), _time(orelse, prices, closed, inner))
        case Parallel(parts) if parts and not closed and not _is_contended(process):
            return maximum(*[_time(part, prices, closed, True) for part in parts])
        case Parallel() | ParLoop() | Use():
            from costdb.process.compile import compile_process

            return compile_process(process, lambda work: prices[work].microseconds).T


def _is_contended(process: Process) -> bool:
    """Return whether parts may wait for one another at a resource."""
    match process:
        case Sequential(parts) | Parallel(parts):
            return any(map(_is_contended, parts))
        case SeqLoop(body=body) | ParLoop(body=body):
            return _is_contended(body)
        case Branch(_, then, orelse):
            return _is_contended(then) or _is_contended(orelse)
    return isinstance(process, Use)


def _parts(process: Process, prices: Mapping[Work, Priced], total: Over) -> Parts:
    match process:
        case Leaf(work):
            return Parts(prices[work].terms, prices[work].domains)
        case Delay(microseconds):
            return Parts.stated("delay", microseconds)
        case Use(resource, microseconds):
            return Parts.stated("service", microseconds / resource.multiplicity)
        case Sequential(parts):
            return of_sequence(_parts(part, prices, total) for part in parts)
        case Parallel(parts):
            return of_parallel(_parts(part, prices, total_over) for part in parts)
        case SeqLoop(variable, low, high, body):
            return of_loop(variable, low, high, _parts(body, prices, total_over), total)
        case ParLoop(variable, low, high, body):
            return of_loop(variable, low, high, _parts(body, prices, total_over), longest_over)
        case Branch(condition, then, orelse):
            taken = weighted(condition, _parts(then, prices, total))
            other = weighted(opposite(condition), _parts(orelse, prices, total))
            return of_sequence((taken, other))
