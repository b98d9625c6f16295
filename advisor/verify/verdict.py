"""Predictions beside measurements: which were right, by how much, and what it says in all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median

from advisor.report.style import Style, duration, table
from advisor.verify.running import ORIGINAL, Case, Measured, Variant

UNLIKE = 1.1
"""How many times apart measured times are before their order counts."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """One variant, predicted and measured."""

    case: Case
    variant: Variant
    measured: Measured

    @property
    def judged(self) -> bool:
        """Whether there are both a prediction and a measurement."""
        return self.variant.predicted is not None and not self.measured.failure

    @property
    def ratio(self) -> float:
        """Predicted over measured time."""
        assert self.variant.predicted is not None
        return self.variant.predicted.mid / self.measured.seconds

    @property
    def inside(self) -> bool:
        """Whether the predicted interval holds the measured time."""
        predicted = self.variant.predicted
        return predicted is not None and predicted.low <= self.measured.seconds <= predicted.high

    @property
    def half_width(self) -> float:
        """Half the predicted interval, as a part of its middle."""
        predicted = self.variant.predicted
        assert predicted is not None
        return (predicted.high - predicted.low) / 2 / predicted.mid if predicted.mid else 0.0


def decision(first: Verdict, then: Verdict) -> bool | None:
    """Return whether the order of two variants was predicted; None where none is measured."""
    if not (first.judged and then.judged):
        return None
    one, other = first.measured.seconds, then.measured.seconds
    if max(one, other) < UNLIKE * min(one, other):
        return None
    assert first.variant.predicted is not None and then.variant.predicted is not None
    return (one < other) == (first.variant.predicted.mid < then.variant.predicted.mid)


def as_table(groups: Sequence[Sequence[Verdict]], style: Style) -> str:
    """Return one line for each variant."""
    heads = ("kernel", "rule", "result", "predicted", "measured", "ratio", "inside", "decision")
    rows = [
        (
            f"{one.case.path}:{one.case.kernel}" if one.variant.title == ORIGINAL else "",
            one.variant.code or ORIGINAL,
            _result(one),
            "unknown" if one.variant.predicted is None else duration(one.variant.predicted.mid),
            "-" if one.measured.failure else duration(one.measured.seconds),
            f"{one.ratio:.2f}" if one.judged else "-",
            ("yes" if one.inside else "NO") if one.judged else "-",
            _decided(group[0], one),
        )
        for group in groups
        for one in group
    ]
    return table(heads, rows, 3, style)


def _result(one: Verdict) -> str:
    if one.measured.failure:
        return "did not run"
    return "equal" if one.measured.equal else "DIFFERS"


def _decided(original: Verdict, one: Verdict) -> str:
    if one is original:
        return ""
    right = decision(original, one)
    if right is None:
        return "tie" if original.judged and one.judged else "-"
    return "right" if right else "WRONG"


@dataclass(frozen=True, slots=True)
class Summary:
    """What all verdicts say together.

    Attributes
    ----------
    median_error : float
        Of predicted times, as a part of the measured ones.
    judged, inside : int
        Variants with both times, and those whose measured time the interval holds.
    median_half_width : float
        Of the intervals, as a part of their middles.
    unlike, right : int
        Pairs of variants of a kernel whose measured times are more than 10 % apart, and those of
        them whose order was predicted.
    """

    median_error: float
    judged: int
    inside: int
    median_half_width: float
    unlike: int
    right: int


def summary_of(groups: Iterable[Sequence[Verdict]]) -> Summary | None:
    """Return what the verdicts say in all, None where nothing could be compared."""
    kept = [list(group) for group in groups]
    judged = [one for group in kept for one in group if one.judged]
    if not judged:
        return None
    decisions = [
        right
        for group in kept
        for pair in combinations(group, 2)
        if (right := decision(*pair)) is not None
    ]
    return Summary(
        median(abs(one.ratio - 1) for one in judged),
        len(judged),
        sum(one.inside for one in judged),
        median(one.half_width for one in judged),
        len(decisions),
        sum(decisions),
    )


def in_words(groups: Iterable[Sequence[Verdict]]) -> list[str]:
    """Return what the verdicts say in all, and why any has no prediction or no measurement."""
    kept = [list(group) for group in groups]
    lines = [
        f"{one.case.kernel}, {one.variant.code or ORIGINAL}: {why}"
        for group in kept
        for one in group
        if (why := one.measured.failure or one.variant.unknown)
    ]
    found = summary_of(kept)
    if found is None:
        return [*lines, "nothing could be compared"]
    return [
        *lines,
        f"median error of predicted times {found.median_error:.0%}, of {found.judged} variants",
        f"inside the interval {found.inside} of {found.judged},"
        f" median half-width {found.median_half_width:.0%}",
        f"pairs more than 10 % apart ranked right: {found.right} of {found.unlike}",
    ]
