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

from costdb.evaluate import Domain, Missing, Priced, Term, merge_coefficients, missing_of
from costdb.expr import (
    ONE,
    ZERO,
    Expr,
    ceil,
    conditional,
    free_symbols,
    less_equal,
    log2,
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
from costdb.expr.polynomials import coefficients_in, is_polynomial_in, simplify, sum_below
from costdb.lines.coefficients import Bill, bytes_of
from costdb.machines import Machine
from costdb.profile_parts import lacking
from costdb.quantity import Omission, Provenance, Quantity, anywhere, exactly
from costdb.records import dataclass, replace
from costdb.work import (
    Barrier,
    Branch,
    Collective,
    CollectiveKind,
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
    Region,
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
    PickledMessage: ("costdb.pricing", "price_pickled"),
    PickledCollective: ("costdb.pricing", "price_pickled"),
    Superstep: ("costdb.smp", "price_superstep"),
    RemoteGroup: ("costdb.pgas.partition", "price_remote_group"),
    Interpretation: ("costdb.pricing", "price_interpretation"),
    Barrier: ("costdb.pricing", "price_barrier"),
    Fixed: ("costdb.pricing", "price_fixed"),
    Unknown: ("costdb.pricing", "price_unknown"),
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


# --- common ---------------------------------------------------------------------------------------
# Prices that belong to no one model: barriers, stated time, and what loops over elements do.


_NOTHING = Region(1, (num(0),), (num(1),))


def price_barrier(work: Barrier, machine: Machine) -> Priced | Missing:
    """Price a barrier: as the profile states it, else as ``ceil(log2 p)`` steps or empty messages.

    That is the dissemination algorithm, in which every rank hears from every other by doubling
    distances. One rank waits for nobody.
    """
    bill = Bill(machine, "barrier")
    if machine.quantity("hardware", "barrier_us") is not None:
        whole = bill.stated("hardware", "barrier_us")
        bill.add(work.label, conditional(less_equal(work.ranks, 1), 0, whole))
        return bill.total()
    if machine.quantity("collectives", "barrier_step_us") is not None:
        step = bill.stated("collectives", "barrier_step_us")
        bill.add(work.label, ceil(log2(work.ranks)) * step)
        return bill.total()
    from costdb.lines.model import price_collective

    empty = Collective(CollectiveKind.BROADCAST, work.ranks, _NOTHING, work.label)
    rounds = price_collective(empty, machine)
    if isinstance(rounds, Missing):
        return Missing(f"{rounds.what}, nor hardware.barrier_us", rounds.remedy)
    terms = tuple(replace(term, label=work.label) for term in rounds.terms)
    # An empty message costs the start-up alone, which is no extrapolation in size.
    return replace(rounds, terms=terms, domains=())


def price_fixed(work: Fixed, machine: Machine) -> Priced | Missing:
    """Price stated time at what it states, on any machine."""
    return Priced(work.microseconds, (Term(work.label, "stated", work.microseconds),))


def price_unknown(work: Unknown, machine: Machine) -> Priced | Missing:
    """Price what nobody can price: nothing, and it is told as omitted."""
    return Priced(num(0), omitted=(Omission(work.line, work.text, work.reason, once=True),))


SECTION = "python"
STEPS = ("iteration_us", "getitem_us", "setitem_us", "arith_us", "call_us", "function_us")
"""An iteration of a loop, an element fetched and stored, an operator, a call of the array library
for one number, and what a function of the library does in Python around its loops."""


def price_interpretation(work: Interpretation, machine: Machine) -> Priced | Missing:
    """Price the interpreter's part in a loop: nothing where the profile does not state it.

    Profiles of machines that the literature measured with compiled programs state none.
    """
    if all(machine.quantity(SECTION, key) is not None for key in STEPS[:-1]):
        in_each = int(work.loop), work.loads, work.stores, work.operations, work.calls
        counts = {key: count for key, count in zip(STEPS, in_each, strict=False) if count}
        bill = Bill(machine, SECTION)
        each = sum((count * bill.stated(SECTION, key) for key, count in counts.items()), ZERO)
        if work.functions:
            like = SECTION, "call_us"
            each = each + work.functions * _stated_or_like(bill, (SECTION, STEPS[-1]), like, 4)
        bill.add(work.label, work.iterations * each)
        return bill.total()
    if not machine.section("arrays"):
        return Priced(ZERO)
    # measured with an interpreter, but not what that takes by itself
    lacks = Omission(0, "interpreted steps", f'machine "{machine.name}" states no {SECTION}')
    return Priced(ZERO, omitted=(lacks,))


def _stated_or_like(bill: Bill, path: tuple[str, ...], like: tuple[str, ...], times: float) -> Expr:
    """Return what a profile states, or else an estimate: so many times something like it."""
    other = bill.machine.quantity(*like)
    if bill.machine.quantity(*path) is not None or other is None:
        return bill.stated(*path)
    from costdb.arrays.model import estimated

    name = ".".join(path).removesuffix("_us")
    bill.coefficients[name] = estimated(other.times(exactly(times, "1", "")), like)
    return sym(name)


# Python objects that mpi4py sends by pickling them: its lower-case calls.
#
# Each is composed of what the library does: objects are serialised (*dump*), their bytes travel
# through buffers that are allocated for them (*transfer*), and new objects are made (*load*);
# reductions *combine* in Python. Each of the four takes so long for a call and for each byte, by
# grades (`costdb.profile_parts`), and each item of a list or dictionary costs extra. A profile
# may correct a collective by a factor that it measured for its kind.

_PICKLE = "pickle"


@dataclass(frozen=True, slots=True)
class Steps:
    """How often the slowest rank waits for each step.

    Attributes
    ----------
    dump, transfer, load, combine : Expr
    sizes : Expr
        Messages that carry nothing but the size of what follows.
    """

    dump: Expr
    transfer: Expr
    load: Expr
    combine: Expr = ZERO
    sizes: Expr = ZERO


def pickled_steps(kind: CollectiveKind, ranks: Expr) -> Steps:
    """Return what the slowest rank of a pickled collective goes through.

    ``bcast``: the root serialises once; size and bytes go down a tree of ``ceil(log2 p)`` steps;
    all make their object, the root too. ``gather`` and ``allgather``: each serialises once, the
    root (or all) makes `p` objects; ``scatter``: the root serialises `p` pieces; ``alltoall``:
    all do both. ``reduce``: each rank copies its own object by a pickle, then ``ceil(log2 p)``
    pickled messages follow one another up a tree, each combined on arrival; ``allreduce``
    broadcasts from rank 0 after that. The root of a collective exchanges ``p - 1`` pieces.
    """
    deep, others = ceil(log2(ranks)), ranks - 1
    match kind:
        case CollectiveKind.BROADCAST:
            return Steps(ONE, deep, ONE, sizes=deep)
        case CollectiveKind.GATHER | CollectiveKind.ALLGATHER:
            return Steps(ONE, others, ranks, sizes=others)
        case CollectiveKind.SCATTER:
            return Steps(ranks, others, ONE, sizes=others)
        case CollectiveKind.ALLTOALL:
            return Steps(ranks, others, ranks, sizes=others)
        case CollectiveKind.REDUCE:
            return Steps(deep + 1, deep, deep + 1, deep, sizes=deep)
        case CollectiveKind.ALLREDUCE:
            return Steps(deep + 2, 2 * deep, deep + 2, deep, sizes=2 * deep)
        case _:
            raise ValueError(f"there is no collective of Python objects of kind {kind}")


def price_pickled(work: PickledMessage | PickledCollective, machine: Machine) -> Priced | Missing:
    """Price one pickled message, from before its serialisation to after the making of objects.

    A collective is priced by the algorithm that mpi4py uses for it.

    Raises
    ------
    MachineError
        The profile's section is malformed.
    """
    steps = Steps(ONE, ONE, ONE)
    if isinstance(work, PickledCollective):
        steps = pickled_steps(work.kind, work.ranks)
    size, label = bytes_of(work.region), work.label
    bill = Bill(machine, _PICKLE)
    for what, step, times, amount in (
        ("serialising", "dump", steps.dump, size),
        ("transfer", "transfer", steps.transfer, size),
        ("sizes", "transfer", steps.sizes, ZERO),
        ("making objects", "load", steps.load, size),
        ("combining", "combine", steps.combine, size),
    ):
        if times != ZERO and not (work.plain and step in ("dump", "load")):
            # no rank waits for a step that is not taken
            taken = conditional(less_equal(times, 0), 0, times)
            bill.charge_step(f"{label}: {what}", taken, (_PICKLE, step), amount)
    # items are serialised and made one by one: half of their cost falls to either side
    pairs = (steps.dump + steps.load) / 2
    if work.objects != ZERO:
        bill.add(f"{label}: items", pairs * work.objects * bill.stated(_PICKLE, "object_us"))
    if work.plain:
        number = _stated_or_like(bill, (_PICKLE, "number_us"), (_PICKLE, "dump", "call_us"), 1 / 15)
        bill.add(f"{label}: serialising", pairs * number)
    if isinstance(work, PickledCollective):
        bill.correct(bill.factor(_PICKLE, "collectives", work.kind.value))
    bill.correct(bill.factor(_PICKLE, "residual"))
    # a strided array is copied before it is serialised: one of the two copies of a staged message
    bill.charge_staging(steps.dump / 2, work.region)
    bill.within(size, _PICKLE, "bytes", "pickled bytes")
    if bill.absent and not machine.section(_PICKLE):
        return lacking(machine, "prices of pickles")
    return bill.total()
