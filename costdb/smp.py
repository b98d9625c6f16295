"""The Good and the Bad cost functions of a shared-memory superstep.

`hr` and `hw` are the most reads and writes of shared data by any processor, `M` the reads and
writes of all. Good functions were fitted to consecutive, cached, uncontended accesses, Bad ones
to accesses that each touch another line over which all processors fight. Good functions change
at the cache's capacity: piece R0 up to it, R1 above. Source: a study of communication cost
functions on the SGI Power Challenge.
"""

from __future__ import annotations

from collections.abc import Mapping

from costdb.evaluate import Domain, ImpossibleError, Missing, Priced, Term
from costdb.expr import (
    Expr,
    conditional,
    evaluate,
    free_symbols,
    less,
    less_equal,
    maximum,
    minimum,
    num,
    sym,
)
from costdb.machines import Machine
from costdb.profile_parts import (
    counts_in_keys,
    grades_of,
    interval_of,
    lacking,
    piecewise_linear,
)
from costdb.quantity import Quantity, anywhere
from costdb.records import dataclass
from costdb.work import Spacing, Superstep

SECTION = "smp"


_LEVELS = "levels"
_GOOD, _BAD = "HrHwM_c", "HrHwM"
"""The functions that tell reads, writes and all accesses apart; others are printed, too."""


class SuperstepError(ImpossibleError):
    """Counts that no superstep can have; the message says why in one line."""


@dataclass(frozen=True, slots=True)
class SuperstepInterval:
    """Both predictions for one superstep, in microseconds.

    Attributes
    ----------
    good, bad : Expr
        Exactly as published, over the counts and the keys of `coefficients`; nothing is clamped.
    coefficients : mapping of str to Quantity
    domains : tuple of Domain
        Accesses and processor counts that the functions were fitted to.
    """

    good: Expr
    bad: Expr
    coefficients: Mapping[str, Quantity]
    domains: tuple[Domain, ...]


def superstep_interval(
    hr: Expr, hw: Expr, total: Expr, processors: Expr, machine: Machine
) -> SuperstepInterval | Missing:
    """Return the Good and the Bad prediction for a superstep.

    Between the processor counts of the profile both are interpolated linearly, outside them
    the nearest count stands in and a domain marks the extrapolation.

    Parameters
    ----------
    hr, hw, total : Expr
        Most reads, most writes, all accesses, in elements of the profile's size.
    processors : Expr

    Raises
    ------
    SuperstepError
        Constant counts that contradict one another.
    MachineError
        The profile's section is malformed.
    """
    _check_counts(hr, hw, total, processors)
    coefficients: dict[str, Quantity] = {}
    busiest = maximum(hr, hw)

    def formula(features: Mapping[str, Expr], *path: str) -> Expr:
        return _linear(machine, path, features, coefficients)

    if machine.section(SECTION, _LEVELS):
        both = []
        for name in ("good", "bad"):
            features = _by_level(hr, hw, total, _limits(machine, name))
            keys = machine.section(SECTION, _LEVELS, name)
            counts = sorted(int(key[1:]) for key in keys if key.startswith("p"))
            both.append([(at, formula(features, _LEVELS, name, f"p{at}")) for at in counts])
    else:
        capacity = machine.quantity(SECTION, "cache_capacity_elements")
        good_at = counts_in_keys(machine, "p", SECTION, "good", _GOOD)
        bad_at = counts_in_keys(machine, "p", SECTION, "bad", _BAD)
        if capacity is None or not good_at or not bad_at:
            return lacking(machine, f"prices of threads ({SECTION} functions {_GOOD} and {_BAD})")
        # A capacity in the test of a choice stays a number: no interval may move it.
        limit = num(capacity.value)
        within = less_equal(busiest, limit)
        sides = {"ghr": hr, "ghw": hw}
        features = {"L": num(1), "gM": total, **sides}
        features |= {f"{key}c": minimum(side, limit) for key, side in sides.items()}
        features |= {f"{key}m": maximum(side - limit, 0) for key, side in sides.items()}
        pieces = [
            [formula(features, "good", _GOOD, f"p{count}", piece) for piece in ("R0", "R1")]
            for count in good_at
        ]
        both = [
            [(at, conditional(within, *two)) for at, two in zip(good_at, pieces, strict=True)],
            [(at, formula(features, "bad", _BAD, f"p{at}")) for at in bad_at],
        ]
    good, bad = (piecewise_linear(processors, knots) for knots in both)
    fewest, most = max(knots[0][0] for knots in both), min(knots[-1][0] for knots in both)
    domains = [Domain("processors", processors, fewest, most)]
    ends = interval_of(machine, SECTION, "range", "h")
    if ends is not None:
        domains.insert(0, Domain("accesses of the busiest processor", busiest, *ends))
    used = free_symbols(good) | free_symbols(bad)
    kept = {name: quantity for name, quantity in coefficients.items() if name in used}
    return SuperstepInterval(good, bad, kept, tuple(domains))


def _limits(machine: Machine, name: str) -> list[float]:
    stated = machine.section(SECTION, _LEVELS, name).get("limits")
    limits = (
        [one for one in stated if isinstance(one, int | float)] if isinstance(stated, list) else []
    )
    if limits != sorted(limits) or limits != stated:
        raise machine.refuse("expected growing numbers", SECTION, _LEVELS, name, "limits")
    return limits


def _by_level(hr: Expr, hw: Expr, total: Expr, limits: list[float]) -> dict[str, Expr]:
    parts = {
        f"{key}{number}": grade.part(count)
        for key, count in (("ghr", hr), ("ghw", hw))
        for number, grade in enumerate(grades_of(limits))
    }
    return {"L": num(1), "gM": total, **parts}


def _linear(
    machine: Machine,
    path: tuple[str, ...],
    features: Mapping[str, Expr],
    coefficients: dict[str, Quantity],
) -> Expr:
    place = (SECTION, *path)
    table = machine.section(*place)
    if not table:
        raise machine.refuse("expected coefficients", *place)
    result = num(0)
    for key in table:
        quantity = machine.quantity(*place, key)
        if key not in features or quantity is None:
            raise machine.refuse("no such coefficient", *place, key)
        symbol = ".".join((*place, key))
        coefficients[symbol] = quantity
        result = result + sym(symbol) * features[key]
    return result


def _check_counts(hr: Expr, hw: Expr, total: Expr, processors: Expr) -> None:
    if free_symbols(hr) | free_symbols(hw) | free_symbols(total) | free_symbols(processors):
        return
    reads, writes, accesses, count = (evaluate(e, {}) for e in (hr, hw, total, processors))
    if count < 1:
        raise SuperstepError(f"a superstep needs at least 1 processor, got {count}")
    if reads < 0 or writes < 0:
        raise SuperstepError(f"reads and writes cannot be negative, got {reads} and {writes}")
    if not reads + writes <= accesses <= count * (reads + writes):
        raise SuperstepError(
            f"{count} processors with at most {reads} reads and {writes} writes each "
            f"cannot make {accesses} accesses"
        )


# The price of a superstep: from Good to Bad, by how local its accesses are.

MODEL = "smp"

LOCALITY = "smp.locality"
RESIDUAL = "smp.residual"
_UNKNOWN_LOCALITY = anywhere(
    "definition of Loc: 0 at the Bad prediction, 1 at the Good one; the middle is their mean"
)


def price_superstep(step: Superstep, machine: Machine) -> Priced | Missing:
    """Price a superstep as ``Bad - locality * (Bad - Good)``.

    The symbol `smp.locality` is the published grade `Loc`, unknown before the program runs: its
    interval is 0 to 1, so the estimate runs from Good to Bad with their arithmetic mean in the
    middle. A
    calibrated profile may state a `residual`, whose interval widens both ends.

    Where the step says how a processor's accesses follow each other, that bounds the grade, by
    the part of them that begin another cache line. Neighbours of its own are Good, but for those:
    each line may have to come from another processor. Every so many elements, with what others
    access between them, are Bad where they begin another line, which all fight over, as all of
    the Bad family do; of the others, on a line that the processor has just had, the grade is
    unknown.
    """
    interval = superstep_interval(*_counts_of(step, machine), step.processors, machine)
    if isinstance(interval, Missing):
        return interval
    unknown = 1 - sym(LOCALITY)
    bad = unknown if step.spacing is None else _bad_part(step.spacing, unknown, machine)
    time_us = bad * interval.bad + (1 - bad) * interval.good
    coefficients = {LOCALITY: _UNKNOWN_LOCALITY, **interval.coefficients}
    residual = machine.quantity(MODEL, "residual")
    if residual is not None:
        time_us = sym(RESIDUAL) * time_us
        coefficients[RESIDUAL] = residual
    terms = (Term(step.label, MODEL, time_us),)
    return Priced(time_us, terms, coefficients, interval.domains)


def _counts_of(step: Superstep, machine: Machine) -> tuple[Expr, Expr, Expr]:
    """Return the counts in elements of the size that a machine's functions were fitted to."""
    counts = (step.reads, step.writes, step.total)
    fitted = machine.quantity(MODEL, "element_bytes")
    if step.counted_bytes is None or fitted is None:
        return counts
    ratio = num(step.counted_bytes) / num(fitted.value)
    return (counts[0] * ratio, counts[1] * ratio, counts[2] * ratio)


def _bad_part(spacing: Spacing, unknown: Expr, machine: Machine) -> Expr:
    """Return the part of the accesses that are Bad, if `unknown` of the doubtful ones are."""
    line = machine.quantity("hardware", "cache_line_bytes")
    if line is None:
        return unknown
    # the length of a line is a whole number, of which nothing is uncertain
    length, between = num(line.value), spacing.between_bytes
    begun_in_block = minimum(1, spacing.element_bytes / length)
    begun_in_turn = minimum(1, (between + spacing.element_bytes) / length)
    in_turn = begun_in_turn + (1 - begun_in_turn) * unknown
    # a single processor has nobody's elements between its own
    return conditional(less(0, between), in_turn, begun_in_block * unknown)
