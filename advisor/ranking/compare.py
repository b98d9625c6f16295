"""One kernel priced as written and as proposed, on one machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from advisor.analysis.lower import lower
from advisor.ir.kernel import Kernel
from costdb.estimate import Estimate, Missing, Priced, Ratio
from costdb.evaluate import compare, crossover, evaluate_price
from costdb.expr import free_symbols
from costdb.machines import Machine
from costdb.pricing import price_process
from costdb.process.terms import Process

Number = int | float
SCANNED_TO = 4096
"""Sizes up to here, and up to some times their value, are searched for crossovers."""


@dataclass(frozen=True, slots=True)
class Costed:
    """A kernel with its work and its price."""

    process: Process
    priced: Priced

    @property
    def sizes(self) -> frozenset[str]:
        """The size symbols that the price depends on."""
        return free_symbols(self.priced.microseconds) - self.priced.coefficients.keys()


@dataclass(frozen=True, slots=True)
class Compared:
    """Two costed kernels at given sizes."""

    before: Estimate
    after: Estimate
    ratio: Ratio


def cost(kernel: Kernel, machine: Machine) -> Costed | Missing:
    """Return the work of a kernel and its price.

    Raises
    ------
    Unpriced
        When some statement is not understood.
    """
    process = lower(kernel)
    priced = price_process(process, machine)
    return priced if isinstance(priced, Missing) else Costed(process, priced)


def compared(before: Costed, after: Costed, sizes: Mapping[str, Number]) -> Compared:
    """Return both estimates, and their ratio with shared coefficients moving together."""
    return Compared(
        evaluate_price(before.priced, sizes),
        evaluate_price(after.priced, sizes),
        compare(before.priced, after.priced, sizes),
    )


def where_it_pays(
    before: Costed, after: Costed, variable: str, sizes: Mapping[str, Number]
) -> tuple[tuple[int, ...], str] | None:
    """Return where the better of two kernels changes along one size, and where `after` pays.

    None where it does not change in the range searched.
    """
    high = max(SCANNED_TO, 4 * int(sizes[variable]))
    found = crossover(before.priced, after.priced, variable, sizes, 1, high)
    if not found.flips:
        return None
    edges = [1, *found.flips] if found.after_wins_first else list(found.flips)
    parts: list[str] = []
    for position in range(0, len(edges), 2):
        low = edges[position]
        end = edges[position + 1] if position + 1 < len(edges) else None
        if end is None:
            parts.append(f"{variable} >= {low}")
        elif low == 1:
            parts.append(f"{variable} < {end}")
        else:
            parts.append(f"{low} <= {variable} < {end}")
    return found.flips, " or ".join(parts)
