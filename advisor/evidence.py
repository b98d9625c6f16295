"""What runs showed of suggestions: stored evidence, put beside the predictions of findings."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.finding import (
    MEASURED,
    ONE_PROCESS,
    Applicability,
    Finding,
    Prediction,
    Times,
    Verdict,
)
from advisor.report.style import ratio
from costdb.store.evidence import Row, evidence_in, stored_evidence
from costdb.store.place import StoreError

if TYPE_CHECKING:
    from costdb.store.evidence import Evidence


MOST_LINES = 2
BUILT = "the built program"
"""What was run, where a program was built of a kernel."""
BEFORE, AFTER = "before_s", "after_s"
"""Circumstances that are the least, the typical and the greatest seconds of both sides."""


RESULTS, DIFFER = "results", "differ"
"""Circumstance, and its value, of runs that gave other results than before the edit."""


def known_of(machine: str) -> tuple[Row, ...]:
    """Return the stored evidence on a machine, oldest first; none where the store has no use."""
    try:
        return stored_evidence(machine)
    except StoreError:
        return ()


def with_evidence(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return findings with what was measured of them on their machine."""
    known: dict[str, tuple[Row, ...]] = {}
    made = []
    for finding in findings:
        machine = finding.evidence.machine
        if machine not in known:
            known[machine] = known_of(machine)
        try:
            made.append(_with(finding, known[machine]))
        except StoreError:
            made.append(finding)  # altered by somebody else: no reason to say nothing of the kernel
    return tuple(made)


def _with(finding: Finding, known: Sequence[Row]) -> Finding:
    """Return a finding with the newest runs at its sizes; where there are none, at other sizes."""
    subject = finding.kernel, finding.code
    # of all others the numbers need not be read
    read = [evidence_in(row) for row in reversed(known) if row[1:3] == subject]
    runs = [one for one in read if _is_about(one, finding)]
    own = [one for one in runs if one.circumstances.get(RESULTS) != DIFFER]
    compared = next((one for one in runs if RESULTS in one.circumstances), None)
    if compared is not None and compared not in own:
        finding = _not_offered(finding, compared)
    same = [one for one in own if _same_sizes(one, finding)]
    lines = tuple(map(_told, same[:MOST_LINES]))
    lines = lines or _at_other_sizes(own)
    timed = next((one for one in same if BEFORE in one.circumstances), None)
    if timed is None:
        timed = _between(own, finding)
        lines = (_told(timed),) if timed is not None else lines
    found = replace(finding, evidence=replace(finding.evidence, measured=lines))
    if timed is None or not finding.priced_as.startswith(ONE_PROCESS):
        return found
    return _measured(found, timed)


def _not_offered(finding: Finding, run: Evidence) -> Finding:
    """Return a finding whose edit nobody may apply unseen: a run of it gave other results."""
    if finding.fix is None:
        return finding
    sizes = ", ".join(f"{name} = {value:g}" for name, value in sorted(run.bindings.items()))
    said = f"a run on {run.machine} {run.circumstances.get('date', '')[:10]}, {sizes}, gave other"
    fix = replace(
        finding.fix,
        applicability=Applicability.DISPLAY,
        legality=f"{said} results with it: `advise verify` compares them again",
    )
    return replace(finding, fix=fix)


def _at_other_sizes(own: Sequence[Evidence]) -> tuple[str, ...]:
    """Return one line: the newest run, or all that differ in one size only."""
    if not own:
        return ()
    newest = own[0]
    names = [
        name
        for name in newest.bindings
        if len({one.bindings.get(name) for one in own}) > 1
        and all(one.bindings.keys() == newest.bindings.keys() for one in own)
    ]
    if len(names) != 1:
        return (f"at other sizes: {_told(newest)}",)
    gains = {one.bindings[names[0]]: one.measured.mid for one in reversed(own)}
    listed = ", ".join(f"{value:g}: {ratio(gains[value])}" for value in sorted(gains))
    date = newest.circumstances.get("date", "")[:10]
    return (f"measured on {newest.machine} {date} at {names[0]} = {listed}",)


def _between(own: Sequence[Evidence], finding: Finding) -> Evidence | None:
    """Return what lies between two sizes that a finding's kernel was measured at."""
    # the newest of equal sizes is the first
    timed = {
        tuple(sorted(one.bindings.items())): one
        for one in reversed(own)
        if BEFORE in one.circumstances
    }
    sizes = {a.name: a.value for a in finding.assumptions if not isinstance(a.value, str)}
    if len(timed) < 2 or finding.prediction is None:
        return None
    sides = [
        between([(one.bindings, _times(one, side)) for one in timed.values()], sizes)
        for side in (BEFORE, AFTER)
    ]
    if sides[0] is None or sides[1] is None:
        return None
    # a kept answer needs none of the algebra of prices
    from costdb.evaluate import Ratio

    (before, (low, high), name), (after, _, _) = sides[0], sides[1]
    newest = next(iter(timed.values()))
    circumstances = {
        **newest.circumstances,
        BEFORE: " ".join(map(repr, before)),
        AFTER: " ".join(map(repr, after)),
        "of": f"the kernel, between {name} = {low:g} and {high:g}",
    }
    gain = Ratio(before[0] / after[2], before[1] / after[1], before[2] / after[0])
    predicted = finding.prediction
    said = Ratio(predicted.low, predicted.speedup, predicted.high)
    return replace(
        newest, bindings=sizes, measured=gain, predicted=said, circumstances=circumstances
    )


def _times(one: Evidence, side: str) -> Times:
    low, mid, high = (float(word) for word in one.circumstances[side].split())
    return low, mid, high


def _measured(finding: Finding, one: Evidence) -> Finding:
    """Return a finding with the times that were measured of both sides in the place of a model's.

    They are of the kernel as one process, which is what the finding is priced as.
    """
    predicted, ratio_ = finding.prediction, one.measured
    if predicted is None:
        return finding
    before, after = _times(one, BEFORE), _times(one, AFTER)
    mid, then_mid = before[1], after[1]
    prediction = Prediction.of(before, after, (ratio_.low, ratio_.mid, ratio_.high))
    share = finding.share
    if share is not None:
        # of the same part of the program
        part = share / max(1 - predicted.after_s / predicted.before_s, share)
        share = part * (1 - then_mid / mid)
    gain = f"{ratio_.mid:.2f}x faster on {one.machine}"
    evidence = replace(finding.evidence, provenance=MEASURED, terms=(), coefficients=())
    found = replace(
        finding,
        message=f"{gain}: {finding.title}",
        prediction=prediction,
        evidence=evidence,
        share=share,
        saves_s=mid - then_mid,
    )
    if found.verdict is Verdict.PLAN:
        return found
    return replace(found, verdict=Verdict.GAIN if found.is_gain else Verdict.UNCERTAIN)


def _is_about(one: Evidence, finding: Finding) -> bool:
    file, title = (one.circumstances.get(name, "") for name in ("file", "title"))
    return (
        file in ("", Path(finding.path).name)
        # a rule may have several suggestions for one kernel
        and finding.message.endswith(title)
    )


def _same_sizes(one: Evidence, finding: Finding) -> bool:
    # how many ranks there are is no size of the data: what ran says on how many it did
    sizes = {a.name: a.value for a in finding.assumptions if a.name in one.bindings}
    return bool(sizes) and all(one.bindings[name] == value for name, value in sizes.items())


def _told(one: Evidence) -> str:
    sizes = ", ".join(f"{name} = {value:g}" for name, value in sorted(one.bindings.items()))
    ranks = one.circumstances.get("ranks", "")
    where = {"": "", "1": " on 1 process"}.get(ranks, f" on {ranks} ranks")
    # what changes is predicted by itself
    of = f" of {one.circumstances['of']}" if "of" in one.circumstances else ""
    date = one.circumstances.get("date", "")[:10]
    measured = one.measured
    predicted, so = "not predicted", ""
    if one.predicted is not None:
        predicted = f"predicted {ratio(one.predicted.mid)}"
        if one.circumstances.get("of") == BUILT:
            agrees = (one.predicted.mid > 1) == (measured.mid > 1)
            so = f"{'confirmed' if agrees else 'contradicted'} by a run: "
    return (
        f"{so}on {one.machine} {date}{where}, {sizes}: {ratio(measured.mid)}{of}"
        f" ({ratio(measured.low)} .. {ratio(measured.high)}), {predicted}"
    )


# Times between two sizes at which something was measured.


Sizes = Mapping[str, int | float]
_SURE = 0.05
"""How far a time between two sizes may be from a power law through them, at least."""


def between(
    points: Iterable[tuple[Sizes, Times]], sizes: Sizes
) -> tuple[Times, tuple[float, float], str] | None:
    """Return times between two sizes that were measured, by a power law through them.

    Where a size before or behind them was measured too, the law through these says how far the
    time may be off: the bend between two slopes may lie anywhere between the sizes.

    Parameters
    ----------
    points : iterable of (sizes, times)
        What was measured, in seconds.
    sizes : mapping of str to number

    Returns
    -------
    (Times, (float, float), str) or None
        The times, the sizes around, and which size it is. None where not exactly one size
        differs, or none was measured on both sides.
    """
    lines: dict[str, dict[float, Times]] = {}
    for known, times in points:
        other = [name for name in sizes if known.get(name) != sizes[name]]
        if len(other) == 1 and known.keys() == sizes.keys() and times[0] > 0:
            lines.setdefault(other[0], {})[known[other[0]]] = times
    for name, measured in lines.items():
        at, order = float(sizes[name]), sorted(measured)
        for number, (low, high) in enumerate(pairwise(order)):
            if low < at < high:
                near = order[max(number - 1, 0) : number + 3]
                return _law(measured, near, low, high, at), (low, high), name
    return None


def _law(
    measured: Mapping[float, Times], near: Sequence[float], low: float, high: float, at: float
) -> Times:
    def along(one: float, other: float, end: int) -> float:
        left, right = measured[one][end], measured[other][end]
        slope = math.log(right / left) / math.log(other / one)
        return left * math.exp(slope * math.log(at / one))

    least, mid, most = (along(low, high, end) for end in range(3))
    bends = [along(*pair, 1) / mid for pair in pairwise(near) if pair != (low, high)]
    inside = [bend for bend in bends if measured[low][1] <= bend * mid <= measured[high][1]]
    return least * (1 - _SURE) * min([1.0, *inside]), mid, most * (1 + _SURE) * max([1.0, *inside])
