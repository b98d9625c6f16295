"""What the decorators of a function ask of numba."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import libcst as cst

from advisor.ir.statements import Threads
from advisor.observed import Seen

_JIT = frozenset({"numba.njit", "numba.jit"})
# arguments that change how it is compiled, not what it computes
_HARMLESS = frozenset(
    {"boundscheck", "cache", "debug", "error_model", "nogil", "nopython", "parallel"}
)


@dataclass(frozen=True, slots=True)
class Asked:
    """What one decorator asks of numba.

    Attributes
    ----------
    keeps_bits : bool
        Whether numba may compute nothing in another way than the source: no ``fastmath``, no
        passes of somebody else, no signatures that convert arguments.
    parallel : bool or None
        Whether loops over ``prange`` are to be made parallel; None where that is not literal.
    """

    keeps_bits: bool
    parallel: bool | None


def asked_of_numba(full: str | None, call: cst.BaseExpression) -> Asked | None:
    """Return what a decorator asks of numba; None for any other decorator.

    Parameters
    ----------
    full : str or None
        The decorator's full name.
    call : libcst.BaseExpression
        The decorator.
    """
    if full not in _JIT:
        return None
    if not isinstance(call, cst.Call):
        return Asked(True, False)
    keeps_bits, parallel = True, False
    for argument in call.args:
        name = None if argument.keyword is None else argument.keyword.value
        stated = _truth(argument.value)
        if name is None and argument.star:
            return Asked(False, None)
        if name == "parallel":
            if stated is None:
                return Asked(False, None)
            parallel = stated
        elif name not in _HARMLESS and not (name == "fastmath" and stated is False):
            keeps_bits = False
    return Asked(keeps_bits, parallel)


def _truth(node: cst.BaseExpression) -> bool | None:
    if isinstance(node, cst.Name) and node.value in ("True", "False"):
        return node.value == "True"
    return None


def threads_by_line(
    asked: Asked | None, seen: Seen | None, first_line: int
) -> Callable[[int], Threads]:
    """Return what tells of a ``prange`` in a line whether threads share its iterations.

    Parameters
    ----------
    asked : Asked or None
    seen : Seen or None
        Its lines are those of the file when it ran.
    first_line : int
        Of the function now, its decorators included.
    """
    if seen is not None and seen.source == "numba" and seen.loops:
        shared = {loop.line - seen.line + first_line for loop in seen.loops}
        return lambda line: Threads.SHARED if line in shared else Threads.REFUSED
    # a function from numba's cache comes without loops, so that none is no sign
    if asked is not None and asked.parallel is False:
        return lambda line: Threads.REFUSED
    return lambda line: Threads.ASKED
