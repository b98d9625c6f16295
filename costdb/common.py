"""Prices that belong to no one model: barriers, stated time, and what loops over elements do."""

from __future__ import annotations

from costdb.estimate import Missing, Priced, Term
from costdb.expr import ONE, ZERO, Expr, ceil, conditional, less_equal, log2, num
from costdb.lines.coefficients import Bill, bytes_of
from costdb.machines import Machine
from costdb.profile_parts import lacking
from costdb.quantity import Omission
from costdb.records import dataclass, replace
from costdb.work import (
    Barrier,
    Collective,
    CollectiveKind,
    Fixed,
    Interpretation,
    PickledCollective,
    PickledMessage,
    Region,
    Unknown,
)

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
STEPS = ("iteration_us", "getitem_us", "setitem_us", "arith_us", "call_us")
"""An iteration of a loop, an element fetched and stored, an operator, and a call of the array
library for one number."""


def price_interpretation(work: Interpretation, machine: Machine) -> Priced | Missing:
    """Price the interpreter's part in a loop: nothing where the profile does not state it.

    Profiles of machines that the literature measured with compiled programs state none.
    """
    if all(machine.quantity(SECTION, key) is not None for key in STEPS):
        in_each = int(work.loop), work.loads, work.stores, work.operations, work.calls
        counts = {key: count for key, count in zip(STEPS, in_each, strict=True) if count}
        bill = Bill(machine, SECTION)
        each = sum((count * bill.stated(SECTION, key) for key, count in counts.items()), ZERO)
        bill.add(work.label, work.iterations * each)
        return bill.total()
    if not machine.section("arrays"):
        return Priced(ZERO)
    # measured with an interpreter, but not what that takes by itself
    lacks = Omission(0, "interpreted steps", f'machine "{machine.name}" states no {SECTION}')
    return Priced(ZERO, omitted=(lacks,))


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


def price_pickled_message(work: PickledMessage, machine: Machine) -> Priced | Missing:
    """Price one pickled message, from before its serialisation to after the making of objects.

    Raises
    ------
    MachineError
        The profile's section is malformed.
    """
    return _price(Steps(ONE, ONE, ONE), work.region, work.objects, machine, work.label)


def price_pickled_collective(work: PickledCollective, machine: Machine) -> Priced | Missing:
    """Price a pickled collective by the algorithm that mpi4py uses for it.

    Raises
    ------
    MachineError
        The profile's section is malformed.
    """
    steps = pickled_steps(work.kind, work.ranks)
    return _price(steps, work.region, work.objects, machine, work.label, work.kind)


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


def _price(
    steps: Steps,
    region: Region,
    objects: Expr,
    machine: Machine,
    label: str,
    kind: CollectiveKind | None = None,
) -> Priced | Missing:
    size = bytes_of(region)
    bill = Bill(machine, _PICKLE)
    for what, step, times, amount in (
        ("serialising", "dump", steps.dump, size),
        ("transfer", "transfer", steps.transfer, size),
        ("sizes", "transfer", steps.sizes, ZERO),
        ("making objects", "load", steps.load, size),
        ("combining", "combine", steps.combine, size),
    ):
        if times != ZERO:
            # no rank waits for a step that is not taken
            taken = conditional(less_equal(times, 0), 0, times)
            bill.charge_step(f"{label}: {what}", taken, (_PICKLE, step), amount)
    # items are serialised and made one by one: half of their cost falls to either side
    items = objects * (steps.dump + steps.load) / 2
    if items != ZERO:
        bill.add(f"{label}: items", items * bill.stated(_PICKLE, "object_us"))
    if kind is not None:
        bill.correct(bill.factor(_PICKLE, "collectives", kind.value))
    bill.correct(bill.factor(_PICKLE, "residual"))
    # a strided array is copied before it is serialised: one of the two copies of a staged message
    bill.charge_staging(steps.dump / 2, region)
    bill.within(size, _PICKLE, "bytes", "pickled bytes")
    if bill.absent and not machine.section(_PICKLE):
        return lacking(machine, "prices of pickles")
    return bill.total()
