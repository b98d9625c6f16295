"""From a formula of positive parts to seconds with their interval."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

from costdb.estimate import Estimate, Priced, Seconds, Term, TermEstimate
from costdb.expr import ExprError, evaluate, free_symbols
from costdb.expr.nodes import Value
from costdb.quantity import Provenance, Quantity

_TRUST = tuple(Provenance)
_US_PER_S = 1e6


def estimate_sum(priced: Priced, values: Mapping[str, Value]) -> Estimate:
    """Return the estimate of a price whose terms add up, each monotone in each coefficient.

    A term's interval spans the corners of its coefficients' intervals; the whole interval is
    the sum, which is exact where every coefficient acts in one direction only (a rate always
    shortens, a message cost always lengthens).

    Parameters
    ----------
    priced : Priced
    values : mapping of str to number
        Every size and parameter of the formula.

    Raises
    ------
    ExprError
        A name of the formula is not bound.
    """
    terms = tuple(_term(term, priced.coefficients, values) for term in priced.terms)
    used = free_symbols(priced.microseconds)
    remarks = tuple(_remarks(priced, values))
    return Estimate(
        low=Seconds(sum(term.low for term in terms)),
        mid=Seconds(sum(term.mid for term in terms)),
        high=Seconds(sum(term.high for term in terms)),
        terms=terms,
        provenance=max(
            (q.provenance for name, q in priced.coefficients.items() if name in used),
            key=_TRUST.index,
            default=Provenance.DERIVED,
        ),
        in_range=not remarks,
        remarks=remarks,
    )


def _term(
    term: Term, coefficients: Mapping[str, Quantity], values: Mapping[str, Value]
) -> TermEstimate:
    used = sorted(free_symbols(term.microseconds) & coefficients.keys())
    scope = dict(values)
    scope.update({name: coefficients[name].value for name in used})
    mid = float(evaluate(term.microseconds, scope))
    corners = [mid]
    ends = [{coefficients[name].low, coefficients[name].high} for name in used]
    for corner in product(*ends):
        scope.update(zip(used, corner, strict=True))
        corners.append(float(evaluate(term.microseconds, scope)))
    return TermEstimate(
        term.label,
        term.model,
        Seconds(min(corners) / _US_PER_S),
        Seconds(mid / _US_PER_S),
        Seconds(max(corners) / _US_PER_S),
    )


def _remarks(priced: Priced, values: Mapping[str, Value]) -> list[str]:
    remarks = []
    for domain in priced.domains:
        try:
            value = float(evaluate(domain.quantity, values))
        except ExprError as error:
            raise ExprError(f"range of {domain.what}: {error}") from error
        if not domain.low <= value <= domain.high:
            remarks.append(
                f"extrapolated: {domain.what} {value:g} is outside "
                f"{domain.low:g} to {domain.high:g}"
            )
    return remarks
