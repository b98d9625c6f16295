"""Predictions beside measurements: which were right, by how much, and what it says in all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import combinations
from math import isfinite
from statistics import median
from typing import Any

from advisor.ranking.compare import Compared
from advisor.report.style import Style, duration, table
from advisor.verify.cases import ORIGINAL, Case, ProgramCase, Rewrite, Variant
from advisor.verify.running import Measured, Turns
from costdb.estimate import Estimate
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


def decision(first: Verdict, then: Verdict) -> bool | None:
    """Return whether the order of two variants was predicted; None where none is measured."""
    if not (first.judged and then.judged):
        return None
    assert first.variant.predicted is not None and then.variant.predicted is not None
    predicted = first.variant.predicted.mid, then.variant.predicted.mid
    return _ordered(predicted, (first.measured.seconds, then.measured.seconds))


def _ordered(predicted: tuple[float, float], measured: tuple[float, float]) -> bool | None:
    """Return whether the order of two times was predicted; None where they are too near."""
    if max(measured) < UNLIKE * min(measured):
        return None
    return (measured[0] < measured[1]) == (predicted[0] < predicted[1])


def as_table(groups: Sequence[Sequence[Verdict]], style: Style) -> str:
    """Return one line for each variant."""
    heads = ("kernel", "rule", "result", "predicted", "measured", "ratio", "inside", "decision")
    rows = [
        (
            _subject(one.case) if one.variant.title == ORIGINAL else "",
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


def _subject(case: Case) -> str:
    ranks = f", {case.ranks} ranks" if case.ranks > 1 else ""
    return f"{case.path}:{case.kernel}{ranks}"


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


# Programs on ranks.


@dataclass(frozen=True, slots=True)
class ProgramVerdict:
    """A program as written, and one rewrite of it, run in turn; None: it has none."""

    case: ProgramCase
    rewrite: Rewrite | None
    turns: Turns

    @property
    def change(self) -> Compared | None:
        """What the rewrite is predicted to change; None where there is no prediction."""
        return None if self.rewrite is None else self.rewrite.change

    @property
    def failure(self) -> str:
        """Why it did not run; empty where it did."""
        return self.turns.after.failure

    @property
    def sound(self) -> bool:
        """Whether nothing speaks against its results."""
        return not self.failure and self.turns.after.equal

    @property
    def matters(self) -> bool:
        """Whether what a rewrite changes is predicted to be a tenth of the program, or more."""
        change, turns = self.change, self.turns
        return (
            change is not None
            and not self.failure
            and (
                change.before.mid >= _MATTERS * turns.before.seconds
                or change.after.mid >= _MATTERS * turns.after.seconds
            )
        )

    @property
    def right(self) -> bool | None:
        """Whether it was predicted which is faster; None where none is, or nothing says."""
        change, turns = self.change, self.turns
        if change is None or not self.matters:
            return None
        predicted = change.after.mid, change.before.mid
        return _ordered(predicted, (turns.after.seconds, turns.before.seconds))

    @property
    def result(self) -> str:
        """What came of comparing results, in a word."""
        if self.failure:
            return "did not run"
        if not self.turns.compared:
            return "not compared"
        return "equal" if self.turns.after.equal else "DIFFERS"


def programs_table(groups: Sequence[Sequence[ProgramVerdict]], style: Style) -> str:
    """Return one line for each program and each rewrite of one.

    What a rewrite changes is predicted by itself; measured times are those of whole programs.
    """
    heads = ("program", "rule", "result", "predicted", "measured", "change predicted", "decision")
    rows: list[Sequence[str]] = []
    for group in groups:
        first = group[0]
        whole = first.case.whole
        alone = first.rewrite is None
        rows.append(
            (
                f"{first.case.path}, {first.case.ranks} ranks",
                ORIGINAL,
                first.result if alone or first.failure else "",
                "unknown" if whole is None else duration(whole.mid),
                "-" if first.failure else duration(first.turns.before.seconds),
                "",
                "",
            )
        )
        rows += [_row(one, one.rewrite) for one in group if one.rewrite is not None]
    return table(heads, rows, 3, style)


def _row(one: ProgramVerdict, rewrite: Rewrite) -> Sequence[str]:
    change = rewrite.change
    whole = one.case.whole
    after = ""
    if whole is not None and change is not None:
        after = duration(max(0.0, whole.mid - change.before.mid + change.after.mid))
    told = "unknown"
    if change is not None:
        told = f"{duration(change.before.mid)} to {duration(change.after.mid)}"
    right = one.right
    decided = "-" if change is None or one.failure else "tie" if one.matters else "small part"
    if right is not None:
        decided = "right" if right else "WRONG"
    measured = "-" if one.failure else duration(one.turns.after.seconds)
    return ("", rewrite.code, one.result, after, measured, told, decided)


def programs_in_words(groups: Iterable[Sequence[ProgramVerdict]]) -> list[str]:
    """Return what the verdicts say in all, and why any has no prediction or no measurement."""
    kept = [list(group) for group in groups]
    lines: list[str] = []
    for group in kept:
        case = group[0].case
        if case.unknown:
            lines.append(f"{case.path}: the whole has no price: {case.unknown}")
        if all(one.rewrite is None for one in group):
            lines.append(f"{case.path}: no rule has an edit for it")
        for one in group:
            name = ORIGINAL if one.rewrite is None else one.rewrite.code
            unknown = "" if one.rewrite is None else one.rewrite.unknown
            why = one.failure or unknown or ("" if one.turns.compared else NOTHING_TO_COMPARE)
            if why:
                lines.append(f"{case.path}, {name}: {why}")
    verdicts = [one for group in kept for one in group]
    decided = [one.right for one in verdicts if one.right is not None]
    rewrites = [one for one in verdicts if one.rewrite is not None]
    compared = [one for one in verdicts if one.turns.compared and not one.failure]
    lines += [
        f"programs on ranks: {len(kept)}, with {len(rewrites)} rewrites; results equal"
        f" {sum(one.turns.after.equal for one in compared)} of {len(compared)} compared",
        f"programs more than 10 % faster or slower, decided right:"
        f" {sum(decided)} of {len(decided)}",
    ]
    return lines


# A verification as a document; ``verification.schema.json`` of the reports describes it.


def document_of(
    groups: Sequence[Sequence[Verdict]],
    programs: Sequence[Sequence[ProgramVerdict]],
    where: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the document, with whose predictions were verified, and when."""
    summary = summary_of(groups)
    return {
        "schema_version": SCHEMA_VERSION,
        **where,
        "summary": None if summary is None else asdict(summary),
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


def _program(group: Sequence[ProgramVerdict]) -> dict[str, Any]:
    case = group[0].case
    return {
        "path": case.path,
        "ranks": case.ranks,
        "sizes": dict(case.sizes),
        "predicted": _ends(case.whole),
        "unknown": case.unknown,
        "measured_s": None if group[0].failure else group[0].turns.before.seconds,
        "rewrites": [
            {
                "rule": one.rewrite.code,
                "title": one.rewrite.title,
                "function": one.rewrite.function,
                "before": None if one.change is None else _ends(one.change.before),
                "after": None if one.change is None else _ends(one.change.after),
                "unknown": one.rewrite.unknown,
                "measured_before_s": None if one.failure else one.turns.before.seconds,
                "measured_after_s": None if one.failure else one.turns.after.seconds,
                "failure": one.failure,
                "equal": one.turns.after.equal if one.turns.compared else None,
                "right": one.right,
            }
            for one in group
            if one.rewrite is not None
        ],
    }


def _ends(found: Estimate | None) -> dict[str, float] | None:
    if found is None or not isfinite(found.high):
        return None
    return {"low_s": found.low, "mid_s": found.mid, "high_s": found.high}


def _samples(found: Measured) -> dict[str, float]:
    return {"low_s": found.low_s, "median_s": found.seconds, "high_s": found.high_s}
