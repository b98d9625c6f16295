"""Prices of Python objects that mpi4py sends by pickling them: its lower-case calls.

Each is composed of what the library does: objects are serialised (*dump*), their bytes travel
through buffers that are allocated for them (*transfer*), and new objects are made (*load*);
reductions *combine* in Python. Each of the four takes so long for a call and for each byte, by
grades (:mod:`costdb.profile_parts`), and each item of a list or dictionary costs extra. A profile
may correct a collective by a factor that it measured for its kind.
"""

from __future__ import annotations

from dataclasses import dataclass

from costdb.estimate import Domain, Missing, Priced
from costdb.expr import ONE, ZERO, Expr, ceil, conditional, less_equal, log2
from costdb.lines.coefficients import Bill
from costdb.lines.regions import bytes_of
from costdb.machines import Machine
from costdb.profile_parts import interval_of, lacking
from costdb.work import CollectiveKind, PickledCollective, PickledMessage, Region

SECTION = "pickle"


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
    bill = Bill(machine, model=SECTION)
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
            bill.charge_step(f"{label}: {what}", taken, (SECTION, step), amount)
    # items are serialised and made one by one: half of their cost falls to either side
    items = objects * (steps.dump + steps.load) / 2
    bill.charge_each(f"{label}: items", items, SECTION, "object_us")
    if kind is not None:
        bill.correct_by(SECTION, "collectives", kind.value)
    bill.correct_by(SECTION, "residual")
    # a strided array is copied before it is serialised: one of the two copies of a staged message
    bill.charge_staging(steps.dump / 2, region)
    stated = interval_of(machine, SECTION, "range", "bytes")
    if stated is not None:
        bill.domains.append(Domain("pickled bytes", size, *stated))
    if bill.absent and not machine.section(SECTION):
        return lacking(machine, "prices of pickles")
    return bill.total()
