"""Models in pieces, by message protocol and cache level: the one predictions use, the standard one.

Both are given the same pieces and judged on the same points, none of which the fit that predicts
it has seen: by operation and element type, by operation, and by family of operations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean, median

from costdb.calibration.host.hardware import this_host
from costdb.calibration.registry import find_section
from costdb.calibration.section import Quality, Timing
from costdb.published import ACCEPTED_R2, LINES
from costdb.validation.paired import Better, Comparison, compare_all, repeats_within
from costdb.validation.results import CannotValidateError, Row, Verdict, percent

Pair = tuple[Quality, Quality]
"""The standard model of an operation, and the one that predictions use."""
CLASS, OPERATION, FAMILY = 1.0, 2.0, 3.0
"""What a row is of: one operation and type of elements, an operation with all, several."""
_SCOPES = {CLASS: "", OPERATION: "{} types of elements.", FAMILY: "{} operations and types."}
_MODEL = "lines"
# What the standard models are called that have the pieces of the chosen ones.
_SAME_PIECES = frozenset(("bytes by grades", "call + elements in pieces", "standard"))
NOTES = (
    "In pieces: what a calibration fits, by message protocol and cache level, to relative errors: "
    "the standard model given these pieces, and the one that predictions use, on the same points, "
    "none of which the fit that predicts it has seen. Points and launches are drawn anew a "
    "thousand times: less or more is a difference of one sign in nine of ten draws, within noise "
    "is any other, the same are models that agree within 1 % everywhere. The verdict holds where "
    "one figure is less and none more; there is none where the data tell no difference. R2 weighs "
    "the longest times, the median error all alike.",
    "Of all types of an operation, and of all operations of a family: R2 is the mean of theirs, "
    "the median error that of all their points. Launches repeat within: how far a launch is from "
    "the median of the others, at the median of the points. No model tells a launch closer.",
)


def in_pieces(section: str, timings: Sequence[Timing]) -> Iterator[tuple[str, Pair]]:
    """Yield, for each operation, the standard model and the one that predictions use."""
    try:
        qualities = find_section(section).fit(timings, this_host()).qualities
    except ValueError as error:
        raise CannotValidateError(f"{section}: not fitted in pieces: {error}") from error
    for operation in dict.fromkeys(quality.operation for quality in qualities):
        ours = [quality for quality in qualities if quality.operation == operation]
        chosen = next((quality for quality in ours if quality.chosen), None)
        standard = next((quality for quality in ours if quality.model in _SAME_PIECES), None)
        if chosen is not None and standard is not None:
            yield operation, (standard, chosen)


def pooled_rows(pieces: Mapping[str, Pair]) -> Iterator[Row]:
    """Yield classes of array calls with all their element types, and families of operations."""
    by_class: dict[str, list[Pair]] = {}
    by_family: dict[str, list[Pair]] = {}
    for operation, pair in pieces.items():
        name, _, dtype = operation.partition(" ")
        if dtype:
            by_class.setdefault(name, []).append(pair)
        family = _family(name, statement=bool(dtype))
        if family:
            by_family.setdefault(family, []).append(pair)
    yield from (pieces_row(name, pairs, OPERATION) for name, pairs in by_class.items())
    yield from (pieces_row(name, pairs, FAMILY) for name, pairs in by_family.items())


def _family(operation: str, *, statement: bool) -> str:
    if operation.startswith("message."):
        return "row-and-column transfers"
    if operation.partition(".")[0] in ("scan", "scan_across"):
        return "scans"
    return "local statements" if statement else ""


def pieces_row(operation: str, pairs: Sequence[Pair], scope: float) -> Row:
    """Return both models of operations, and what their points can tell of the difference."""
    found = compare_all(pairs)
    r2, error = found.r2, found.median_error
    (before, after), (theirs, own) = (
        (fmean(one[which].r2 for one in pairs) for which in (0, 1)),
        (_median_error([one[which] for one in pairs]) for which in (0, 1)),
    )
    repeats = repeats_within(ours for _, ours in pairs)
    standard, ours = pairs[0]
    return Row(
        _MODEL,
        operation,
        f"R2, {standard.model} | {ours.model}",
        f"{ACCEPTED_R2:g} accepts",
        LINES,
        f"{before:.3g} | {after:.3g} ({r2.verdict}), median error "
        f"{percent(theirs)} | {percent(own)} ({error.verdict})"
        + ("" if repeats is None else f", launches repeat within {percent(repeats)}"),
        _verdict(found),
        {
            "scope": scope,
            "r2": after,
            "r2_standard": before,
            "r2_difference_low": r2.low,
            "r2_difference_high": r2.high,
            "median_error": own,
            "median_error_standard": theirs,
            "median_error_difference_low": error.low,
            "median_error_difference_high": error.high,
            "points": float(sum(ours.points for _, ours in pairs)),
            **({} if repeats is None else {"repeats_within": repeats}),
        },
        _SCOPES[scope].format(len(pairs)) if len(pairs) > 1 else "",
    )


def _median_error(models: Sequence[Quality]) -> float:
    return median(abs(told - taken) / taken for one in models for taken, told in one.pairs)


def _verdict(found: Comparison) -> Verdict:
    """Return whether a model beats the standard one: by either figure, and is worse by none."""
    if Better.MORE in found.verdicts:
        return Verdict.MISSES
    return Verdict.HOLDS if Better.LESS in found.verdicts else Verdict.UNJUDGED
