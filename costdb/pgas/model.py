"""Prices of groups of references: each group by its pattern's rate, intervals as sums of groups."""

from __future__ import annotations

from collections.abc import Mapping

from costdb.estimate import Domain, Missing, Priced
from costdb.expr import ONE, Expr, less, num, sym
from costdb.lines.coefficients import Bill
from costdb.machines import Machine, MachineError
from costdb.profile_parts import counts_in_keys, lacking, piecewise_linear
from costdb.quantity import Quantity, exactly
from costdb.records import dataclass
from costdb.work import Pattern, Region, RemoteGroup

# What one reference to shared data takes, by pattern, thread count, read or write.

SECTION = "pgas"

_BEST_FIRST = (Pattern.VECTOR, Pattern.COALESCE, Pattern.BASELINE)
_KINDS = {False: "read", True: "write"}
_MICROSECONDS_PER_SECOND = 1e6
_EXACT = exactly(1.0, "1", "no residual is stated")
_WORDS = {"rates": "gap", "call_us": "call"}
"""By table of a profile: what its symbols are called."""


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
    found = _measured(machine, "rates", pattern, store, threads)
    return found or lacking(machine, f"{SECTION}.rates.{pattern} for {_KINDS[store]}s")


def _measured(
    machine: Machine, entry: str, pattern: Pattern, store: bool, threads: Expr
) -> Gap | None:
    """Return the times that a table of the profile gives between its thread counts, if any."""
    kind = _KINDS[store]
    residual = machine.quantity(SECTION, "residual") or _EXACT
    coefficients: dict[str, Quantity] = {}
    knots: list[tuple[int, Expr]] = []
    for count in counts_in_keys(machine, "t", SECTION, entry, pattern):
        stated = machine.quantity(SECTION, entry, pattern, f"t{count}", kind)
        if stated is None:
            continue
        symbol = f"{SECTION}.{_WORDS[entry]}.{pattern}.t{count}.{kind}"
        coefficients[symbol] = _time(machine, stated, residual, is_rate=entry == "rates")
        knots.append((count, sym(symbol)))
    if not knots:
        return None
    return Gap(piecewise_linear(threads, knots), coefficients, (knots[0][0], knots[-1][0]))


def _time(machine: Machine, stated: Quantity, residual: Quantity, *, is_rate: bool) -> Quantity:
    if is_rate:
        if stated.low <= 0:
            raise MachineError(f"{machine.origin}: /{SECTION}/rates: a rate must be above 0")
        source = f"reciprocal of the rate, {stated.value:g} {stated.unit}: {stated.source}"
        stated = stated.reciprocal(_MICROSECONDS_PER_SECOND, "us", source=source)
    return stated.times(residual)


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


MODEL = "pgas"


def price_remote_group(group: RemoteGroup, machine: Machine) -> Priced | Missing:
    """Price a group of references by the best pattern that both it and the platform support.

    A mixed group, uniform over all threads, takes ``(T-1)/T`` of that pattern's time and
    ``1/T`` of a local shared access. A reference counts as one double word whatever its size.
    Calls cost extra where the profile says what one takes. Elements on a machine that knows nothing
    of such references are what message passing makes of them: a message for each.

    Raises
    ------
    MachineError
        The profile's section is malformed.
    """
    if group.itemsize_bytes and not machine.section(SECTION):
        bill = Bill(machine)
        away = group.count * (1 - ONE / group.threads) if group.mixed else group.count
        item = group.itemsize_bytes
        bill.charge_messages(away, Region(item, (ONE,), (ONE * item,)))
        return bill.total()
    pattern = served_pattern(machine, group.pattern, group.store)
    remote = gap(machine, pattern, group.store, group.threads)
    if isinstance(remote, Missing):
        return remote
    each, coefficients, ranges = remote.microseconds, dict(remote.coefficients), [remote.threads]
    if group.mixed and pattern is not Pattern.LOCAL:
        local = gap(machine, Pattern.LOCAL, group.store, group.threads)
        if isinstance(local, Missing):
            return local
        own_share = num(1) / group.threads
        each = (1 - own_share) * each + own_share * local.microseconds
        coefficients |= local.coefficients
        ranges.append(local.threads)
    fewest, most = (list(ends) for ends in zip(*ranges, strict=True))
    threads = Domain("threads", group.threads, max(fewest), min(most))
    bill = Bill(machine, MODEL, coefficients=coefficients, domains=[threads])
    label = f"{group.label}: {_described(group, pattern)}"
    bill.add(label, group.count * each)
    if group.calls != num(0) and pattern is not Pattern.LOCAL:
        each_call = _measured(machine, "call_us", pattern, group.store, group.threads)
        if each_call is not None:
            coefficients |= each_call.coefficients
            remote_share = 1 - num(1) / group.threads if group.mixed else num(1)
            bill.add(f"{label}, calls", group.calls * remote_share * each_call.microseconds)
        words = group.count / group.calls
        bill.within(words, MODEL, "call_words", "words of a call", less(0, group.calls))
    return bill.total()


def _described(group: RemoteGroup, pattern: Pattern) -> str:
    kind = "writes" if group.store else "reads"
    mixed = group.mixed and pattern is not Pattern.LOCAL
    return f"{pattern} {kind}, 1/T local" if mixed else f"{pattern} {kind}"
