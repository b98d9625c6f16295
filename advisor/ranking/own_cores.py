"""Whether each rank has a core of its own, which predictions take for granted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from advisor.ir.kernel import Kernel
from costdb.expr import Expr, evaluate, free_symbols, maximum, num, sym
from costdb.machines import Machine


def ranks_of(kernel: Kernel) -> Expr:
    """Return over how many ranks a kernel's arrays are distributed, at most."""
    most: list[Expr] = [num(1)]
    for array in kernel.arrays.values():
        ranks: Expr = num(1)
        for _, extent in array.spec.mesh.axes:
            ranks = ranks * (num(extent) if isinstance(extent, int) else sym(extent))
        most.append(ranks)
    return maximum(*dict.fromkeys(most))


def about_cores(machine: Machine, ranks: Expr, values: Mapping[str, int | float]) -> Iterator[str]:
    """Yield a line where ranks outnumber the cores that a calibration could use.

    Ranks that take turns on a core wait for each other as long as the system's time slices last,
    which no model covers; on more cores or nodes than were calibrated there is nothing to wait for.
    """
    cores = machine.quantity("hardware", "cores")
    if cores is None or not free_symbols(ranks) <= values.keys():
        return
    count = evaluate(ranks, values)
    if count > cores.value:
        yield (
            f"as if each of {count:g} ranks had a core of its own: {machine.name} was calibrated"
            f" on {cores.value:g}, and ranks that share one can take far longer"
        )
