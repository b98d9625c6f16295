"""Prices of messages, scans, statements and collectives by the lines model.

A message costs ``alpha + beta*bytes + gamma*lines``, where `lines` are the distinct cache lines
touched while its payload is marshalled. Local work costs ``phi`` for each operation, ``access``
for each load and store, and ``line`` for each line that an access touches. Parallel scans and
reductions take ``ceil(log2 p)`` such steps.
"""

from __future__ import annotations

from dataclasses import replace

from costdb.evaluate import Missing, Priced, one_after_another
from costdb.expr import Expr, ceil, conditional, floor, less, log2, maximum, minimum, num, sym
from costdb.lines.coefficients import Bill, bytes_of, elements_of
from costdb.machines import Machine
from costdb.profile_parts import lacking
from costdb.quantity import Provenance, Quantity
from costdb.work import (
    COMBINING,
    ArrayOperation,
    Collective,
    CollectiveKind,
    Message,
    PrefixScan,
    Region,
    Statement,
)

_VIEW = ArrayOperation.VIEW
HALVING = Quantity(
    1.0,
    0.5,
    2.0,
    "1",
    Provenance.DERIVED,
    "a reduce-scatter is taken to halve recursively: ceil(log2 p) steps, which together send and"
    " combine (p-1)/p of the array; libraries also exchange pairwise, or reduce and scatter",
)
"""How far a price may be off where nothing says which algorithm a library takes."""


# How many steps the textbook algorithms of collectives take on their longest path.


def doubling_steps(ranks: Expr) -> Expr:
    """Return the steps of an algorithm that doubles distances: ``ceil(log2 p)``."""
    return ceil(log2(ranks))


def allreduce_steps(ranks: Expr) -> tuple[Expr, Expr]:
    """Return the steps of recursive doubling that send, and those that combine.

    One step more before and after where the number of ranks is no power of two.
    """
    doubling = floor(log2(ranks))
    odd = conditional(less(doubling, log2(ranks)), 1, 0)
    return doubling + 2 * odd, doubling + odd


def collective_steps(kind: CollectiveKind, ranks: Expr) -> Expr:
    """Return the messages on the longest path of a collective."""
    match kind:
        case (
            CollectiveKind.BROADCAST
            | CollectiveKind.REDUCE
            | CollectiveKind.REDUCE_SCATTER
            | CollectiveKind.PREFIX
        ):
            return doubling_steps(ranks)
        case CollectiveKind.ALLREDUCE:
            return allreduce_steps(ranks)[0]
        case (
            CollectiveKind.ALLGATHER
            | CollectiveKind.ALLGATHERV
            | CollectiveKind.ALLTOALL
            | CollectiveKind.ALLTOALLV
            | CollectiveKind.GATHER
            | CollectiveKind.SCATTER
        ):
            return ranks - 1


def pieces_in_a_step(kind: CollectiveKind, ranks: Expr) -> Expr:
    """Return how many of a collective's regions one of its steps carries, on average.

    Reduce-scatter by recursive halving sends half of the array, then a quarter and so on: all
    pieces but one, in ``ceil(log2 p)`` steps. Pairwise exchange sends as much in more steps.
    """
    if kind is not CollectiveKind.REDUCE_SCATTER:
        return num(1)
    return (ranks - 1) / maximum(1, doubling_steps(ranks))


def step_region(kind: CollectiveKind, ranks: Expr, region: Region) -> Region:
    """Return what one step of a collective carries: its region, or several in one run."""
    pieces = pieces_in_a_step(kind, ranks)
    if pieces == num(1):
        return region
    item = region.itemsize_bytes
    return Region(item, (pieces * elements_of(region),), (num(item),))


# Collectives on machines that measured them: their own steps.
#
# A calibration states them where composing them of messages and local operations would miss.

SECTION = "collectives"
_RESIDUAL = (SECTION, "residual")
_OF_PIECES = frozenset(
    (
        CollectiveKind.ALLGATHER,
        CollectiveKind.ALLGATHERV,
        CollectiveKind.ALLTOALL,
        CollectiveKind.ALLTOALLV,
        CollectiveKind.GATHER,
        CollectiveKind.SCATTER,
    )
)


def charge_own_steps(bill: Bill, kind: CollectiveKind, steps: Expr, region: Region) -> None:
    """Charge the steps of a collective, and the copies of what is not one run.

    A buffer is packed and unpacked once, however many steps it goes through; pieces each.
    """
    size, once = bytes_of(region), conditional(less(0, steps), 1, 0)
    path = (SECTION, "steps", kind.value)
    label = "prefix over ranks" if kind is CollectiveKind.PREFIX else f"{kind.value} steps"
    bill.charge_step(label, steps, path, size, residual=_RESIDUAL)
    bill.charge_staging(steps if kind in _OF_PIECES else once, region)
    bill.within(size, SECTION, "bytes", "collective bytes", less(0, size * once))


def price_message(work: Message, machine: Machine) -> Priced | Missing:
    """Price one message."""
    bill = Bill(machine)
    bill.charge_messages(num(1), work.region)
    return bill.total()


def price_scan(work: PrefixScan, machine: Machine) -> Priced | Missing:
    """Price a prefix operation over one mesh dimension.

    Each of ``ceil(log2 p)`` steps sends one edge and combines it element by element. Locally
    the block is passed over twice, once to accumulate and once to add what comes in from the
    ranks before; a single rank needs the first pass only. A pass loads, combines and stores
    each element in place, so it touches the block's lines once.
    """
    if work.calls is not None and machine.section("arrays"):
        return _scan_of_calls(work, machine)
    bill = Bill(machine)
    steps = doubling_steps(work.ranks)
    bill.charge_messages(steps, work.edge)
    bill.charge("combining edges", "scan", "phi_us_per_operation", steps * elements_of(work.edge))
    passes = minimum(work.ranks, 2)
    elements = elements_of(work.block)
    bill.charge("scan operations", "scan", "phi_us_per_operation", passes * elements)
    bill.charge("scan loads and stores", "scan", "access_us", passes * elements * 2)
    bill.charge("scan lines", "scan", "line_us", passes * bill.lines(work.block))
    bill.within(elements, "lines", "scan_elements")
    return bill.total()


def _scan_of_calls(work: PrefixScan, machine: Machine) -> Priced | Missing:
    """Price the local passes as calls of an array library, and the steps as messages."""
    from costdb.arrays.model import price_calls

    bill = Bill(machine)
    steps = doubling_steps(work.ranks)
    if machine.section(SECTION, "steps", "prefix") and steps != num(0):
        charge_own_steps(bill, CollectiveKind.PREFIX, steps, work.edge)
    else:
        bill.charge_messages(steps, work.edge)
    parts = [bill.total(), price_calls(work.calls or (), machine, work.ranks)]
    if work.ranks != num(1) and work.correction:
        added = price_calls(work.correction, machine, work.ranks)
        several = less(1, work.ranks)
        parts.append(added if isinstance(added, Missing) else _only_if(several, added))
    return one_after_another(parts)


def _only_if(test: Expr, priced: Priced) -> Priced:
    return replace(
        priced,
        microseconds=conditional(test, priced.microseconds, 0),
        terms=tuple(
            replace(term, microseconds=conditional(test, term.microseconds, 0))
            for term in priced.terms
        ),
    )


def price_statement(work: Statement, machine: Machine) -> Priced | Missing:
    """Price the local computation of an array statement.

    A profile with rates of array operations prices the calls that it consists of, or the compiled
    loop that it is.
    """
    if machine.section("arrays"):
        from costdb.arrays.model import price_calls, price_loop

        if work.calls is None:
            return price_loop(work, machine)
        return price_calls(work.calls, machine, work.together)
    if not work.accesses and any(one.operation is not _VIEW for one in work.calls or ()):
        return lacking(machine, "arrays.rates")
    bill = Bill(machine)
    bill.charge("operations", "statement", "phi_us_per_operation", work.operations)
    touched = [elements_of(access.region) for access in work.accesses]
    bill.charge("loads and stores", "statement", "access_us", sum(touched, num(0)))
    lines = (bill.lines(access.region) for access in work.accesses)
    bill.charge("lines", "statement", "line_us", sum(lines, num(0)))
    for elements in dict.fromkeys(touched):
        bill.within(elements, "lines", "statement_elements")
    return bill.total()


def price_collective(work: Collective, machine: Machine) -> Priced | Missing:
    """Price a collective as the sequence of messages of its textbook algorithm.

    Broadcast and reduce go up or down a binomial tree, ``ceil(log2 p)`` steps, and a prefix
    operation doubles distances in as many; allreduce doubles recursively, with one step more
    before and after when `p` is no power of two; allgather (a ring) and alltoall (pairwise) take
    ``p - 1`` steps of one piece each, and so do gather and scatter at the root; reduce-scatter
    halves recursively, ``ceil(log2 p)`` steps that together send ``p - 1`` pieces. Reductions
    combine element by element at every step, at the rate of local statements. Where the profile
    states the steps of a kind as measured, these take the place of messages and operations; of
    another algorithm than libraries may take a factor says so, with provenance ``derived``.
    """
    bill = Bill(machine)
    steps = collective_steps(work.kind, work.ranks)
    region = step_region(work.kind, work.ranks, work.region)
    if machine.section(SECTION, "steps", work.kind.value):
        charge_own_steps(bill, work.kind, steps, region)
        return bill.total()
    bill.charge_messages(steps, region)
    if work.kind in COMBINING:
        doubling = work.kind is CollectiveKind.ALLREDUCE
        combined = allreduce_steps(work.ranks)[1] if doubling else steps
        operations = combined * elements_of(region)
        bill.charge("combining", "statement", "phi_us_per_operation", operations)
    if work.kind is CollectiveKind.REDUCE_SCATTER:
        derived = f"{SECTION}.{work.kind.value}.derived"
        bill.coefficients[derived] = HALVING
        bill.correct(sym(derived))
    return bill.total()
