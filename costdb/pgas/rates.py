"""What one reference to shared data takes, by pattern, thread count, read or write."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from costdb.estimate import Missing
from costdb.expr import Expr, num, sym
from costdb.interpolation import piecewise_linear
from costdb.machines import Machine, MachineError
from costdb.profile_parts import counts_in_keys, lacking
from costdb.quantity import Quantity
from costdb.work import Pattern, Then

SECTION = "pgas"

_BEST_FIRST = (Pattern.VECTOR, Pattern.COALESCE, Pattern.BASELINE)
_KINDS = {False: "read", True: "write"}
_MICROSECONDS_PER_SECOND = 1e6
RESUME_US = {
    Then.ANYTHING: "resume_us",
    Then.INTERPRETED: "resume_interpreted_us",
    Then.LIBRARY: "resume_library_us",
}


@dataclass(frozen=True, slots=True)
class Gap:
    """Microseconds for each reference of one pattern.

    Attributes
    ----------
    microseconds : Expr
        Over the thread count and the keys of `coefficients`.
    coefficients : mapping of str to Quantity
    threads : tuple of int
        Fewest and most threads that the rate was measured with.
    """

    microseconds: Expr
    coefficients: Mapping[str, Quantity]
    threads: tuple[int, int]


def gap(machine: Machine, pattern: Pattern, store: bool, threads: Expr) -> Gap | Missing:
    """Return the time of one reference, the reciprocal of the profile's rate.

    Between two measured thread counts the time (not the rate) is interpolated linearly, since
    times are what adds up along a thread's path; outside them the nearest count stands in, and
    the caller's domain marks it. The interval of each time includes the profile's `residual`,
    the ratio of measured to predicted times of whole programs.

    Raises
    ------
    MachineError
        The profile's section is malformed.
    """
    measured = _measured(machine, pattern, store, threads, _RATES)
    if measured is None:
        kind = _KINDS[store]
        return lacking(machine, f"{SECTION}.{_RATES.entry}.{pattern} for {kind}s")
    return measured


def call(machine: Machine, pattern: Pattern, store: bool, threads: Expr) -> Gap:
    """Return the time of one call of a pattern, besides that of its words.

    0 where the profile does not state any: its rates were measured on references that a
    compiler makes.

    Raises
    ------
    MachineError
        The profile's section is malformed.
    """
    measured = _measured(machine, pattern, store, threads, _CALLS)
    return Gap(num(0), {}, (0, 0)) if measured is None else measured


def resume(machine: Machine, then: Then) -> Gap:
    """Return what a program's own work takes longer after each remote operation than without.

    Where the profile does not tell what comes then apart from other things, that of anything; 0
    where it does not state any.

    Raises
    ------
    MachineError
        The profile's section is malformed.
    """
    for kind in (then, Then.ANYTHING):
        stated = machine.quantity(SECTION, RESUME_US[kind])
        if stated is not None:
            symbol = f"{SECTION}.{RESUME_US[kind].removesuffix('_us')}"
            return Gap(sym(symbol), {symbol: stated}, (0, 0))
    return Gap(num(0), {}, (0, 0))


def _measured(
    machine: Machine, pattern: Pattern, store: bool, threads: Expr, table: _Table
) -> Gap | None:
    """Return what a table of the profile gives between its thread counts, if it has any."""
    kind = _KINDS[store]
    residual = machine.quantity(SECTION, "residual")
    coefficients: dict[str, Quantity] = {}
    knots: list[tuple[int, Expr]] = []
    for count in counts_in_keys(machine, "t", SECTION, table.entry, pattern):
        stated = machine.quantity(SECTION, table.entry, pattern, f"t{count}", kind)
        if stated is None:
            continue
        symbol = f"{SECTION}.{table.word}.{pattern}.t{count}.{kind}"
        coefficients[symbol] = table.time(machine, stated, residual)
        knots.append((count, sym(symbol)))
    if not knots:
        return None
    return Gap(piecewise_linear(threads, knots), coefficients, (knots[0][0], knots[-1][0]))


def _times(_: Machine, stated: Quantity, factor: Quantity | None) -> Quantity:
    if factor is None:
        return stated
    return replace(
        stated,
        value=stated.value * factor.value,
        low=stated.low * factor.low,
        high=stated.high * factor.high,
    )


def served_pattern(machine: Machine, admitted: Pattern, store: bool) -> Pattern:
    """Return the best pattern that the subscripts admit and the platform optimizes.

    What admits vector access admits coalescing, and everything admits the baseline. A platform
    may optimize reads only.

    Raises
    ------
    MachineError
        The profile's list of optimizations is malformed.
    """
    if admitted is Pattern.LOCAL:
        return admitted
    kind = _KINDS[store]
    optimizations = machine.section(SECTION, "optimizations")
    for pattern in _BEST_FIRST[_BEST_FIRST.index(admitted) :]:
        optimized = optimizations.get(pattern, [])
        if not isinstance(optimized, list):
            raise MachineError(
                f"{machine.origin}: /{SECTION}/optimizations/{pattern}: expected a list"
            )
        if kind in optimized:
            return pattern
    return Pattern.BASELINE


def _reciprocal(machine: Machine, rate: Quantity, residual: Quantity | None) -> Quantity:
    if rate.low <= 0:
        raise MachineError(f"{machine.origin}: /{SECTION}/rates: a rate must be above 0")
    if residual is None:
        low = mid = high = 1.0
    else:
        low, mid, high = residual.low, residual.value, residual.high
    return Quantity(
        mid * _MICROSECONDS_PER_SECOND / rate.value,
        low * _MICROSECONDS_PER_SECOND / rate.high,
        high * _MICROSECONDS_PER_SECOND / rate.low,
        "us",
        rate.provenance,
        f"reciprocal of the rate, {rate.value:g} {rate.unit}: {rate.source}",
        rate.fitted_to,
    )


@dataclass(frozen=True, slots=True)
class _Table:
    """Where a profile keeps times by thread count, and how its entries become times."""

    entry: str
    word: str
    time: Callable[[Machine, Quantity, Quantity | None], Quantity]


_RATES = _Table("rates", "gap", _reciprocal)
_CALLS = _Table("call_us", "call", _times)
