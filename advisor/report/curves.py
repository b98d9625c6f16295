"""How the gain of a finding goes with the sizes that it hangs on, with its interval."""

from __future__ import annotations

from advisor.ranking.compare import TRIED_TO
from advisor.ranking.findings import Judged
from advisor.report.model import Curve
from costdb.crossovers import crossover
from costdb.evaluate import compare
from costdb.expr import ExprError, free_symbols

_POINTS, _MOST = 32, 2
_CHANGES = 1.1


def curves_of(judged: Judged) -> tuple[Curve, ...]:
    """Return the speed-up over sizes, those first at which a choice changes, at most two.

    Parameters
    ----------
    judged : Judged
        A finding whose two prices hold for all sizes; others have no curve.
    """
    finding = judged.finding
    sizes = {
        one.name: one.value for one in finding.assumptions if isinstance(one.value, int | float)
    }
    turning = {one.variable: one.values for one in finding.crossovers}
    used = free_symbols(judged.before.microseconds) | free_symbols(judged.after.microseconds)
    curves: list[Curve] = []
    for name in sorted(used & sizes.keys(), key=lambda name: (name not in turning, name)):
        if len(curves) == _MOST or (finding.condition and name not in finding.condition.open_sizes):
            continue
        try:
            found = _curve(judged, name, sizes, turning.get(name, ()))
        except (ExprError, ArithmeticError):
            continue  # some values of it make no program
        middles = [middle for _, _, middle, _ in found.points]
        if turning.get(name) or max(middles) > _CHANGES * min(middles):
            curves.append(found)
    return tuple(curves)


def _curve(
    judged: Judged, name: str, sizes: dict[str, int | float], flips: tuple[int, ...]
) -> Curve:
    here, before, after = int(sizes[name]), judged.before, judged.after
    least = 2 if name == "P" else 1
    found = crossover(before, after, name, sizes, least, max(TRIED_TO, 4 * here))
    tried = [value for value, _ in found.samples]
    # as many a decade everywhere: those that are dense at the beginning would hide the rest
    steps = (found.high / found.low) ** (1 / _POINTS)
    wanted = [found.low * steps**place for place in range(_POINTS + 1)]
    chosen = {min(tried, key=lambda value: abs(value - one)) for one in wanted} | {here, *flips}
    points = []
    for value in sorted(chosen):
        ratio = compare(before, after, {**sizes, name: value})
        if ratio.mid > 0:
            points.append((float(value), ratio.low, ratio.mid, ratio.high))
    return Curve(name, float(here), tuple(points), tuple(map(float, flips)))
