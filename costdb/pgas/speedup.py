"""The published quick estimate of speed-up from counts and gaps, without any interval."""

from __future__ import annotations

from costdb.estimate import Missing
from costdb.expr import Expr, num
from costdb.machines import Machine
from costdb.pgas.rates import gap
from costdb.work import Pattern

_MICROSECONDS_PER_SECOND = 1_000_000


def relative_gap(
    machine: Machine, pattern: Pattern, store: bool, threads: Expr, private_per_second: float
) -> Expr | Missing:
    """Return ``G``, how many private accesses take as long as one reference of `pattern`.

    Parameters
    ----------
    private_per_second : float
        Rate of private accesses; no profile states a published one.

    Raises
    ------
    ValueError
        When that rate is not positive.
    """
    if not private_per_second > 0:
        raise ValueError(f"a rate of private accesses must be above 0, got {private_per_second}")
    each = gap(machine, pattern, store, threads)
    if isinstance(each, Missing):
        return each
    return each.microseconds * (num(private_per_second) / _MICROSECONDS_PER_SECOND)


def speedup(
    sequential: Expr,
    private: Expr,
    local: Expr,
    remote: Expr,
    local_gap: Expr,
    remote_gap: Expr,
) -> Expr:
    """Return ``Ns / (Nc + Nl*Gl + Nr*Gr)``.

    Parameters
    ----------
    sequential : Expr
        Accesses of the sequential program, all private.
    private, local, remote : Expr
        Private, local shared and remote accesses of the slowest thread.
    local_gap, remote_gap : Expr
        Their gaps, relative to a private access.
    """
    return sequential / (private + local * local_gap + remote * remote_gap)
