"""Prices of groups of references: each group by its pattern's rate, intervals as sums of groups."""

from __future__ import annotations

from collections.abc import Iterable

from costdb.estimate import Domain, Missing, Priced, Term
from costdb.expr import Expr, conditional, less, num
from costdb.machines import Machine
from costdb.pgas.rates import call, gap, resume, served_pattern
from costdb.profile_parts import interval_of
from costdb.quantity import Quantity
from costdb.work import Pattern, RemoteGroup

MODEL = "pgas"


def price_remote_group(group: RemoteGroup, machine: Machine) -> Priced | Missing:
    """Price a group of references by the best pattern that both it and the platform support.

    A mixed group, uniform over all threads, takes ``(T-1)/T`` of that pattern's time and
    ``1/T`` of a local shared access. A reference counts as one double word whatever its size.
    Calls cost extra where the profile says what one takes, and so does the return from every
    operation on another's memory to the program's own work.

    Raises
    ------
    MachineError
        The profile's section is malformed.
    """
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
    time_us = group.count * each
    threads = Domain(
        "threads",
        group.threads,
        max(fewest for fewest, _ in ranges),
        min(most for _, most in ranges),
    )
    label = f"{group.label}: {_described(group, pattern)}"
    terms = [Term(label, MODEL, time_us)]
    share = 1 - num(1) / group.threads if group.mixed else num(1)
    each_return, operations = resume(machine, group.then), _operations(group, pattern)
    returns_us = operations * share * each_return.microseconds
    if returns_us != num(0):
        coefficients |= each_return.coefficients
        terms.append(Term(f"{label}, resuming own work", MODEL, returns_us))
        time_us = time_us + returns_us
    if group.calls != num(0) and pattern is not Pattern.LOCAL:
        each_call = call(machine, pattern, group.store, group.threads)
        coefficients |= each_call.coefficients
        calls_us = group.calls * share * each_call.microseconds
        if calls_us != num(0):
            terms.append(Term(f"{label}, calls", MODEL, calls_us))
            time_us = time_us + calls_us
        measured = interval_of(machine, MODEL, "range", "call_words")
        if measured is not None:
            each_words = conditional(less(0, group.calls), group.count / group.calls, measured[0])
            return Priced(
                time_us,
                tuple(terms),
                coefficients,
                (threads, Domain("words of a call", each_words, *measured)),
            )
    return Priced(time_us, tuple(terms), coefficients, (threads,))


def price_groups(groups: Iterable[RemoteGroup], machine: Machine) -> Priced | Missing:
    """Price an interval between sequence points: the sum of its groups.

    Private computation is no part of it.
    """
    total = num(0)
    terms: list[Term] = []
    coefficients: dict[str, Quantity] = {}
    domains: dict[Domain, None] = {}
    for group in groups:
        priced = price_remote_group(group, machine)
        if isinstance(priced, Missing):
            return priced
        total = total + priced.microseconds
        terms += priced.terms
        coefficients |= priced.coefficients
        domains |= dict.fromkeys(priced.domains)
    return Priced(total, tuple(terms), coefficients, tuple(domains))


def _operations(group: RemoteGroup, pattern: Pattern) -> Expr:
    """Return how many operations on others' memory a group is; a compiler's blocks are unknown."""
    if pattern is Pattern.LOCAL:
        return num(0)
    return group.count if pattern is Pattern.BASELINE else group.calls


def _described(group: RemoteGroup, pattern: Pattern) -> str:
    kind = "writes" if group.store else "reads"
    mixed = group.mixed and pattern is not Pattern.LOCAL
    return f"{pattern} {kind}, 1/T local" if mixed else f"{pattern} {kind}"
