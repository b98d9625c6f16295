"""Predictions about SPMD programs beside runs of them on ranks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from advisor.report.style import Style, duration, table
from advisor.verify.ranks import NOTHING_TO_COMPARE, ProgramCase, Rewrite, Turns
from advisor.verify.running import ORIGINAL, Measured, Variant
from advisor.verify.verdict import UNLIKE, Verdict, summary_of
from costdb.estimate import Estimate

_MATTERS = 0.1


@dataclass(frozen=True, slots=True)
class ProgramVerdict:
    """A program as written, and one rewrite of it, run in turn; None: it has none."""

    case: ProgramCase
    rewrite: Rewrite | None
    turns: Turns

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
        if self.rewrite is None or self.rewrite.change is None or self.failure:
            return False
        change, turns = self.rewrite.change, self.turns
        return (
            change.before.mid >= _MATTERS * turns.before.seconds
            or change.after.mid >= _MATTERS * turns.after.seconds
        )

    @property
    def right(self) -> bool | None:
        """Whether it was predicted which is faster; None where none is, or nothing says."""
        if not self.matters or self.rewrite is None or self.rewrite.change is None:
            return None
        one, other = self.turns.before.seconds, self.turns.after.seconds
        if max(one, other) < UNLIKE * min(one, other):
            return None
        return (one > other) == (self.rewrite.change.before.mid > self.rewrite.change.after.mid)

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


def program_document(group: Sequence[ProgramVerdict]) -> dict[str, object]:
    """Return the verdicts on one program as part of a document."""
    case = group[0].case
    return {
        "path": case.path,
        "ranks": case.ranks,
        "sizes": dict(case.sizes),
        "predicted": None if case.whole is None else _ends(case.whole),
        "unknown": case.unknown,
        "measured_s": None if group[0].failure else group[0].turns.before.seconds,
        "rewrites": [
            {
                "rule": one.rewrite.code,
                "title": one.rewrite.title,
                "function": one.rewrite.function,
                "before": None if one.rewrite.change is None else _ends(one.rewrite.change.before),
                "after": None if one.rewrite.change is None else _ends(one.rewrite.change.after),
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


def _ends(found: Estimate) -> dict[str, float]:
    return {"low_s": found.low, "mid_s": found.mid, "high_s": found.high}


# A verification as a document; ``verification.schema.json`` of the reports describes it.

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class Circumstances:
    """Whose predictions were verified, and when (UTC, ISO).

    Attributes
    ----------
    machine, calibration, made_at : str
    busy_cores : float or None
        How many cores others kept busy meanwhile; None where the system does not tell.
    """

    machine: str
    calibration: str
    made_at: str
    busy_cores: float | None


def document_of(
    groups: Sequence[Sequence[Verdict]],
    programs: Sequence[Sequence[ProgramVerdict]],
    where: Circumstances,
) -> dict[str, Any]:
    """Return the document."""
    summary = summary_of(groups)
    return {
        "schema_version": SCHEMA_VERSION,
        "machine": where.machine,
        "calibration": where.calibration,
        "made_at": where.made_at,
        "others_busy_cores": where.busy_cores,
        "summary": None if summary is None else asdict(summary),
        "kernels": [_kernel(group) for group in groups],
        "programs": [program_document(group) for group in programs],
    }


def _kernel(group: Sequence[Verdict]) -> dict[str, Any]:
    case = group[0].case
    return {
        "path": case.path,
        "kernel": case.kernel,
        "sizes": dict(case.sizes),
        "variants": [_variant(one) for one in group],
    }


def _variant(one: Verdict) -> dict[str, Any]:
    return {
        "rule": one.variant.code,
        "title": one.variant.title,
        "predicted": _predicted(one.variant),
        "unknown": one.variant.unknown,
        "measured": _measured(one.measured),
        "failure": one.measured.failure,
        "equal": one.measured.equal,
        "inside": one.inside if one.judged else None,
    }


def _predicted(variant: Variant) -> dict[str, float] | None:
    found = variant.predicted
    if found is None:
        return None
    return {"low_s": found.low, "mid_s": found.mid, "high_s": found.high}


def _measured(measured: Measured) -> dict[str, float] | None:
    if measured.failure:
        return None
    return {"low_s": measured.low_s, "median_s": measured.seconds, "high_s": measured.high_s}
