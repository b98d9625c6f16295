"""Scans and collectives on machines that measured them: their own steps and passes.

A calibration states them where composing them of messages and local operations would miss.
"""

from __future__ import annotations

from costdb.expr import Expr, conditional, less, num
from costdb.lines.coefficients import Bill
from costdb.lines.regions import bytes_of, elements_of
from costdb.lines.steps import doubling_steps
from costdb.machines import Machine
from costdb.work import CollectiveKind, PrefixScan, Region

ONE = num(1)
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


def charge_own_steps(
    bill: Bill, kind: CollectiveKind, kin: CollectiveKind, steps: Expr, region: Region
) -> None:
    """Charge the steps of a collective, and the copies of what is not one run.

    A buffer is packed and unpacked once, however many steps it goes through; pieces each.

    Parameters
    ----------
    kin : CollectiveKind
        Whose steps the profile states: those of `kind`, or what stands in for it.
    """
    size = bytes_of(region)
    path = (SECTION, "steps", kin.value)
    label = f"{kind.value} steps"
    if kin is not kind:
        label += f", derived from {kin.value}"
    bill.charge_step(label, steps, path, size, residual=_RESIDUAL)
    copies = steps if kind in _OF_PIECES else conditional(less(0, steps), 1, 0)
    bill.charge_staging(copies, region)
    bill.within_section(SECTION, "bytes", conditional(less(0, steps), size, 0), "collective bytes")


def states_passes(machine: Machine) -> bool:
    """Tell whether a profile states the passes of scans by direction."""
    return "along" in machine.section("lines", "scan")


def charge_own_scan(bill: Bill, work: PrefixScan) -> None:
    """Charge a scan: what one rank does alone, or all passes and the prefix over ranks.

    Passes along the contiguous axis and across it differ: sums along it wait for one another.
    The copy of a strided edge is part of the passes that were measured.
    """
    direction = "along" if is_along(work) else "across"
    size, elements = bytes_of(work.block), elements_of(work.block)
    counts = {"loop_us": _rows(work.block), "element_us": elements}
    several = less(1, work.ranks)
    for name, label, times in (
        ("alone", "scan on one rank", ONE - several),
        ("spread", "scan, local passes", several),
    ):
        if times != num(0):
            passes = ("lines", "scan", direction, name)
            residual = ("lines", "scan", "residual")
            bill.charge_step(label, times, passes, size, counts, residual)
    charge_prefix(bill, work, staged=False)
    bill.within("scan_elements", elements)


def charge_prefix(bill: Bill, work: PrefixScan, *, staged: bool = True) -> None:
    """Charge the prefix over ranks alone: measured steps, else messages.

    Parameters
    ----------
    staged : bool
        Also the copies of a strided edge; false where they are part of something measured.
    """
    steps = doubling_steps(work.ranks)
    if steps == num(0):
        return
    path = (SECTION, "steps", "prefix")
    if not bill.machine.section(*path):
        bill.charge_messages(steps, work.edge)
        return
    edge = bytes_of(work.edge)
    bill.charge_step("prefix over ranks", steps, path, edge, residual=_RESIDUAL)
    if staged:
        bill.charge_staging(conditional(less(0, steps), 1, 0), work.edge)


def is_along(work: PrefixScan) -> bool:
    """Tell whether the scanned axis is the one along which elements are contiguous.

    It is the axis along which the edge has one element; a block of one row is scanned along it.
    """
    item = num(work.block.itemsize_bytes)
    contiguous = [axis for axis, pitch in enumerate(work.block.pitches_bytes) if pitch == item]
    if len(contiguous) != 1:
        return len(work.block.counts) == 1
    (axis,) = contiguous
    return work.edge.counts[axis] == ONE and work.block.counts[axis] != ONE


def _rows(region: Region) -> Expr:
    """Return the number of runs along the contiguous axis."""
    rows = ONE
    item = num(region.itemsize_bytes)
    for count, pitch in zip(region.counts, region.pitches_bytes, strict=True):
        if pitch != item:
            rows = rows * count
    return rows
