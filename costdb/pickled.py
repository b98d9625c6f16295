"""Prices of Python objects that mpi4py sends by pickling them: its lower-case calls.

Each is composed of what the library does: objects are serialised (*dump*), their bytes travel
through buffers that are allocated for them (*transfer*), and new objects are made (*load*);
reductions *combine* in Python. Each of the four takes so long for a call and for each byte, by
grades (:mod:`costdb.graded`), and each item of a list or dictionary costs extra. A profile may
correct a collective by a factor that it measured for its kind.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from costdb.estimate import Domain, Missing, Priced, Term
from costdb.expr import ONE, ZERO, Expr, ceil, conditional, less_equal, log2, sym
from costdb.graded import step_price
from costdb.lines.coefficients import Bill
from costdb.lines.regions import bytes_of
from costdb.machines import Machine
from costdb.profile_parts import interval_of, lacking
from costdb.quantity import Quantity
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
    bill = _Bill(machine, _factor(machine, kind))
    bill.charge(f"{label}: serialising", "dump", steps.dump, size)
    bill.charge(f"{label}: transfer", "transfer", steps.transfer, size)
    bill.charge(f"{label}: sizes", "transfer", steps.sizes, ZERO)
    bill.charge(f"{label}: making objects", "load", steps.load, size)
    bill.charge(f"{label}: combining", "combine", steps.combine, size)
    # items are serialised and made one by one: half of their cost falls to either side
    bill.charge_items(f"{label}: items", objects * (steps.dump + steps.load) / 2)
    bill.copy_to_one_run(steps.dump, region)
    stated = interval_of(machine, SECTION, "range", "bytes")
    domains = () if stated is None else (Domain("pickled bytes", size, *stated),)
    return bill.total(domains)


def _factor(machine: Machine, kind: CollectiveKind | None) -> tuple[tuple[str, Quantity], ...]:
    """Return the factors that correct a price, with their symbols."""
    found = [(f"{SECTION}.residual", machine.quantity(SECTION, "residual"))]
    if kind is not None:
        place = (SECTION, "collectives", kind.value)
        found = [(".".join(place), machine.quantity(*place)), *found]
    return tuple((symbol, quantity) for symbol, quantity in found if quantity is not None)


@dataclass(slots=True)
class _Bill:
    machine: Machine
    factors: tuple[tuple[str, Quantity], ...]
    terms: list[Term] = field(default_factory=list)
    coefficients: dict[str, Quantity] = field(default_factory=dict)
    absent: list[str] = field(default_factory=list)

    def charge(self, label: str, step: str, times: Expr, size: Expr) -> None:
        if times == ZERO:
            return
        price = step_price(self.machine, (SECTION, step), size)
        self.absent += price.absent
        self.coefficients |= price.coefficients
        each = price.microseconds
        # no rank waits for a step that is not taken
        self._add(label, conditional(less_equal(times, 0), 0, times * each))

    def charge_items(self, label: str, items: Expr) -> None:
        if items == ZERO:
            return
        each = self.machine.quantity(SECTION, "object_us")
        if each is None:
            self.absent.append(f"{SECTION}.object_us")
            return
        symbol = f"{SECTION}.object"
        self.coefficients[symbol] = each
        self._add(label, items * sym(symbol))

    def copy_to_one_run(self, times: Expr, region: Region) -> None:
        """Charge what a strided array takes before it is serialised, where messages tell.

        It is one of the two copies of a staged message, so half of their price.
        """
        copies = Bill(self.machine)
        copies.charge_staging(times / 2, region)
        self.terms += copies.terms
        self.coefficients |= copies.coefficients
        self.absent += copies.absent

    def total(self, domains: tuple[Domain, ...]) -> Priced | Missing:
        if self.absent:
            known = self.machine.section(SECTION)
            what = ", ".join(dict.fromkeys(self.absent)) if known else "prices of pickles"
            return lacking(self.machine, what)
        total = sum((term.microseconds for term in self.terms), ZERO)
        return Priced(total, tuple(self.terms), self.coefficients, domains)

    def _add(self, label: str, microseconds: Expr) -> None:
        for symbol, quantity in self.factors:
            self.coefficients[symbol] = quantity
            microseconds = microseconds * sym(symbol)
        if microseconds != ZERO:
            self.terms.append(Term(label, SECTION, microseconds))
