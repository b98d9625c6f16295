"""The price of a superstep: from Good to Bad, by how local its accesses are."""

from __future__ import annotations

from costdb.estimate import Missing, Priced, Term
from costdb.expr import Expr, conditional, less, minimum, num, sym
from costdb.machines import Machine
from costdb.quantity import Provenance, Quantity
from costdb.smp.functions import Family, superstep_interval
from costdb.work import Spacing, Superstep

MODEL = "smp"

LOCALITY = "smp.locality"
RESIDUAL = "smp.residual"
_UNKNOWN_LOCALITY = Quantity(
    0.5,
    0.0,
    1.0,
    "1",
    Provenance.DERIVED,
    "definition of Loc: 0 at the Bad prediction, 1 at the Good one; the middle is their mean",
)


def price_superstep(step: Superstep, machine: Machine) -> Priced | Missing:
    """Price a superstep as ``Bad - locality * (Bad - Good)``.

    The symbol `smp.locality` is the published grade `Loc`, unknown before the program runs: its
    interval is 0 to 1, so the estimate runs from Good to Bad with their arithmetic mean in the
    middle. The cost functions are those that tell reads, writes and all accesses apart. A
    calibrated profile may state a `residual`, whose interval widens both ends.

    Where the step says how a processor's accesses follow each other, that bounds the grade, by
    the part of them that begin another cache line. Neighbours of its own are Good, but for those:
    each line may have to come from another processor. Every so many elements, with what others
    access between them, are Bad where they begin another line, which all fight over, as all of
    the Bad family do; of the others, on a line that the processor has just had, the grade is
    unknown.
    """
    interval = superstep_interval(
        Family.HRHWM,
        *_counts_of(step, machine),
        step.processors,
        machine,
    )
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
