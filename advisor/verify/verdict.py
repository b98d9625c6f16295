"""Predictions beside measurements: which were right, by how much, and what it says in all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from math import isfinite
from statistics import median
from typing import Any

from advisor.report.style import Style, duration, table
from advisor.verify.cases import ORIGINAL, Case, Variant
from advisor.verify.running import Measured
from costdb.evaluate import Estimate
from costdb.records import dataclass

UNLIKE = 1.1
"""How many times apart measured times are before their order counts."""
_MATTERS = 0.1
NOTHING_TO_COMPARE = "nothing that it prints, returns or leaves behind could be compared"
SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class Verdict:
    """One variant, predicted and measured."""

    case: Case
    variant: Variant
    measured: Measured

    @property
    def judged(self) -> bool:
        """Whether there are both a prediction, with an upper end, and a measurement."""
        predicted = self.variant.predicted
        return predicted is not None and isfinite(predicted.high) and not self.measured.failure

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

    @property
    def sound(self) -> bool:
        """Whether nothing speaks against its results."""
        return not self.measured.failure and self.measured.equal is not False

    @property
    def result(self) -> str:
        """What came of comparing results, in a word."""
        if self.measured.failure:
            return "did not run"
        if self.measured.equal is None:
            return "not compared"
        return "equal" if self.measured.equal else "DIFFERS"

    @property
    def matters(self) -> bool:
        """Whether what a rewrite changes is predicted to be a tenth of its program, or more."""
        change, after = self.variant.change, self.measured
        if change is None or after.beside is None or after.failure:
            return False
        before = change.before.mid >= _MATTERS * after.beside.seconds
        return before or change.after.mid >= _MATTERS * after.seconds

    @property
    def right(self) -> bool | None:
        """Whether it was predicted which is faster, a program or its rewrite; None where none is,
        or nothing says."""
        change, after = self.variant.change, self.measured
        if change is None or after.beside is None or not self.matters:
            return None
        predicted = change.after.mid, change.before.mid
        return ordered(predicted, (after.seconds, after.beside.seconds))


Groups = Sequence[Sequence[Verdict]]
"""The variants of several cases, as written first."""


def decision(first: Verdict, then: Verdict) -> bool | None:
    """Return whether the order of two variants was predicted; None where none is measured."""
    if not (first.judged and then.judged):
        return None
    assert first.variant.predicted is not None and then.variant.predicted is not None
    predicted = first.variant.predicted.mid, then.variant.predicted.mid
    return ordered(predicted, (first.measured.seconds, then.measured.seconds))


def apart(one: float, other: float) -> bool:
    """Return whether two measured times are so far apart that their order counts."""
    return max(one, other) >= UNLIKE * min(one, other)


def ordered(predicted: tuple[float, float], measured: tuple[float, float]) -> bool | None:
    """Return whether the order of two times was predicted; None where they are too near."""
    if not apart(*measured):
        return None
    return (measured[0] < measured[1]) == (predicted[0] < predicted[1])


def as_table(groups: Groups, style: Style) -> str:
    """Return one line for each variant."""
    heads = ("kernel", "rule", "result", "predicted", "measured", "ratio", "inside", "decision")
    rows = [
        (
            *_cells(one, "unknown"),
            f"{one.ratio:.2f}" if one.judged else "-",
            ("yes" if one.inside else "NO") if one.judged else "-",
            _decided(group[0], one),
        )
        for group in groups
        for one in group
    ]
    return table(heads, rows, 3, style)


def _cells(one: Verdict, unknown: str) -> tuple[str, ...]:
    """Return what is verified, by which rule, whether results agree, and both times."""
    case, whose = one.case, ""
    if one.variant.title == ORIGINAL:
        ranks = f", {case.ranks} ranks" if case.ranks > 1 else ""
        whose = f"{case.path}{':' * bool(case.kernel)}{case.kernel}{ranks}"
    predicted_s = case.predicted_s(one.variant)
    return (
        whose,
        one.variant.code or ORIGINAL,
        one.result,
        unknown if predicted_s is None else duration(predicted_s),
        "-" if one.measured.failure else duration(one.measured.seconds),
    )


def _decided(original: Verdict, one: Verdict) -> str:
    if one is original:
        return ""
    right = decision(original, one)
    if right is None:
        return "tie" if original.judged and one.judged else "-"
    return "right" if right else "WRONG"


def summary_of(groups: Groups) -> dict[str, float] | None:
    """Return what the verdicts say in all, None where nothing could be compared.

    Errors of predicted times are a part of the measured ones, half-widths a part of the middles;
    `unlike` are pairs of variants of a kernel whose measured times are more than 10 % apart.
    """
    judged = [one for group in groups for one in group if one.judged]
    if not judged:
        return None
    pairs = (pair for group in groups for pair in combinations(group, 2))
    decisions = [right for pair in pairs if (right := decision(*pair)) is not None]
    return {
        "median_error": median(abs(one.ratio - 1) for one in judged),
        "judged": len(judged),
        "inside": sum(one.inside for one in judged),
        "median_half_width": median(one.half_width for one in judged),
        "unlike": len(decisions),
        "right": sum(decisions),
    }


def in_words(groups: Groups) -> list[str]:
    """Return what the verdicts say in all, and why any has no prediction or no measurement."""
    lines = [
        f"{one.case.kernel}, {one.variant.code or ORIGINAL}: {why}"
        for group in groups
        for one in group
        if (why := one.measured.failure or one.variant.unknown)
    ]
    found = summary_of(groups)
    if found is None:
        return [*lines, "nothing could be compared"]
    return [
        *lines,
        f"median error of predicted times {found['median_error']:.0%}, of {found['judged']}"
        " variants",
        f"inside the interval {found['inside']} of {found['judged']},"
        f" median half-width {found['median_half_width']:.0%}",
        f"pairs more than 10 % apart ranked right: {found['right']} of {found['unlike']}",
    ]


# Programs on ranks.


def programs_table(groups: Groups, style: Style) -> str:
    """Return one line for each program and each rewrite of one.

    What a rewrite changes is predicted by itself; measured times are those of whole programs.
    """
    heads = ("program", "rule", "result", "predicted", "measured", "change predicted", "decision")
    rows: list[Sequence[str]] = []
    for first, *rewrites in groups:
        whose, rule, result, *times = _cells(first, "unknown")
        told = result if first.measured.failure or not rewrites else ""
        rows.append((whose, rule, told, *times, "", ""))
        rows += [(*_cells(one, ""), *_change(one)) for one in rewrites]
    return table(heads, rows, 3, style)


def _change(one: Verdict) -> tuple[str, str]:
    """Return what a rewrite is predicted to change, and whether it was predicted right."""
    change = one.variant.change
    if change is None:
        return "unknown", "-"
    told = f"{duration(change.before.mid)} to {duration(change.after.mid)}"
    if one.measured.failure:
        return told, "-"
    if one.right is None:
        return told, "tie" if one.matters else "small part"
    return told, "right" if one.right else "WRONG"


def programs_in_words(groups: Groups) -> list[str]:
    """Return what the verdicts say in all, and why any has no prediction or no measurement."""
    lines = [line for group in groups for line in _doubts(group)]
    rewrites = [one for group in groups for one in group[1:]]
    decided = [one.right for one in rewrites if one.right is not None]
    ran = [one for group in groups for one in (group[1:] or group) if not one.measured.failure]
    compared = [one for one in ran if one.measured.equal is not None]
    return [
        *lines,
        f"programs on ranks: {len(groups)}, with {len(rewrites)} rewrites; results equal"
        f" {sum(one.sound for one in compared)} of {len(compared)} compared",
        f"programs more than 10 % faster or slower, decided right:"
        f" {sum(decided)} of {len(decided)}",
    ]


def _doubts(group: Sequence[Verdict]) -> Iterator[str]:
    path = group[0].case.path
    if group[0].variant.unknown:
        yield f"{path}: the whole has no price: {group[0].variant.unknown}"
    if len(group) == 1:
        yield f"{path}: no rule has an edit for it"
    for one in group[1:] or group:
        unknown = one.variant.unknown if one.variant.code else ""
        silent = NOTHING_TO_COMPARE if one.measured.equal is None else ""
        if why := one.measured.failure or unknown or silent:
            yield f"{path}, {one.variant.code or ORIGINAL}: {why}"


# A verification as a document; ``verification.schema.json`` of the reports describes it.


def document_of(groups: Groups, programs: Groups, where: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document, with whose predictions were verified, and when."""
    return {
        "schema_version": SCHEMA_VERSION,
        **where,
        "summary": summary_of(groups),
        "kernels": [_kernel(group) for group in groups],
        "programs": [_program(group) for group in programs],
    }


def _kernel(group: Sequence[Verdict]) -> dict[str, Any]:
    case = group[0].case
    return {
        "path": case.path,
        "kernel": case.kernel,
        "ranks": case.ranks,
        "sizes": dict(case.sizes),
        "variants": [
            {
                "rule": one.variant.code,
                "title": one.variant.title,
                "predicted": _ends(one.variant.predicted),
                "unknown": one.variant.unknown,
                "measured": None if one.measured.failure else _samples(one.measured),
                "failure": one.measured.failure,
                "equal": one.measured.equal,
                "inside": one.inside if one.judged else None,
            }
            for one in group
        ],
    }


def _program(group: Sequence[Verdict]) -> dict[str, Any]:
    first, *rewrites = group
    return {
        "path": first.case.path,
        "ranks": first.case.ranks,
        "sizes": dict(first.case.sizes),
        "predicted": _ends(first.variant.predicted),
        "unknown": first.variant.unknown,
        "measured_s": None if first.measured.failure else first.measured.seconds,
        "rewrites": list(map(_rewrite, rewrites)),
    }


def _rewrite(one: Verdict) -> dict[str, Any]:
    variant, after, change = one.variant, one.measured, one.variant.change
    before_s = None if after.beside is None else after.beside.seconds
    return {
        "rule": variant.code,
        "title": variant.title,
        "function": variant.function,
        "before": None if change is None else _ends(change.before),
        "after": None if change is None else _ends(change.after),
        "unknown": variant.unknown,
        "measured_before_s": before_s,
        "measured_after_s": None if after.failure else after.seconds,
        "failure": after.failure,
        "equal": after.equal,
        "right": one.right,
    }


def _ends(found: Estimate | None) -> dict[str, float] | None:
    if found is None or not isfinite(found.high):
        return None
    return {"low_s": found.low, "mid_s": found.mid, "high_s": found.high}


def _samples(found: Measured) -> dict[str, float]:
    return {"low_s": found.low_s, "median_s": found.seconds, "high_s": found.high_s}
