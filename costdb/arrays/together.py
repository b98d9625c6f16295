"""What lines cost more when several ranks of a node compute at the same time.

A profile states it for as many ranks as were measured; for fewer, what is added to 1 grows with
every rank beside the first, and more ranks than that are taken to sit on other nodes.
"""

from __future__ import annotations

from dataclasses import replace

from costdb.expr import Expr
from costdb.expr.nodes import Num
from costdb.machines import Machine
from costdb.profile_parts import counts_in_keys
from costdb.quantity import Quantity

PLACE = ("arrays", "together")


def line_factor(machine: Machine, ranks: Expr, piece: str) -> Quantity | None:
    """Return how many times longer a line takes in company; None where it takes no longer.

    Parameters
    ----------
    machine : Machine
    ranks : Expr
        That compute at the same time; one that is no number counts as many.
    piece : str
        Where the line comes from: ``"beyond"``.
    """
    measured = counts_in_keys(machine, "p", *PLACE)
    if not measured:
        return None
    several = ranks.value if isinstance(ranks, Num) else measured[-1]
    most = next((count for count in measured if count >= several), measured[-1])
    if several <= 1 or most <= 1:
        return None
    found = machine.quantity(*PLACE, f"p{most}", "line_factor", piece)
    if found is None:
        return None
    share = (min(float(several), most) - 1) / (most - 1)
    low, value, high = (1 + share * (end - 1) for end in (found.low, found.value, found.high))
    return replace(found, low=low, value=value, high=high)


def slowed(line: Quantity, factor: Quantity) -> Quantity:
    """Return the time of a line in company."""
    return replace(
        line,
        low=line.low * factor.low,
        value=line.value * factor.value,
        high=line.high * factor.high,
    )
