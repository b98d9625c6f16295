"""Shift or scan: from which side of the box on a scan is faster, predicted and measured.

On one process the kernel of the examples runs as written and as its rule rewrites it; on 2 ranks
the two programs of the examples do.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from advisor.ir.kernel import Kernel
from advisor.ranking.compare import Costed
from advisor.validation.evidence import Compared, keep
from advisor.validation.predicted import costed, kernel_of
from advisor.validation.ranks import RANKS, Job, Times, examples_folder, left_out, run_jobs
from costdb.estimate import Ratio
from costdb.evaluate import compare, evaluate_price
from costdb.machines import Machine
from costdb.published import CROSSOVER_B, LINES
from costdb.validation.results import CannotValidateError, Row, Section, Verdict

if TYPE_CHECKING:
    from advisor.validation.sections import Context

TITLE = "shift or scan: the side b of the box from which on scans win"
SIDES = (500, 1000, 2000)
BOXES = tuple(range(2, 21))
TIE = 1.1

_CODE = "ADV201"
_LAUNCHES, _REPETITIONS, _SECONDS = 2, 9, 0.2
_NOTE = (
    f"b from {BOXES[0]} to {BOXES[-1]}; at b = 1 there is nothing to shift. A threshold is the b "
    "from which on the scan is faster, with the fewest exceptions. Two of them agree where at all "
    "b between them the measured times are less than 10 % apart; such b are ties."
)


@dataclass(frozen=True, slots=True)
class Pair:
    """Shifts and scan at one b: predicted and measured, in seconds."""

    b: int
    predicted: tuple[float, float]
    measured: tuple[float, float]


def crossover(context: Context) -> Section:
    """Return the section; without MPI the rows of several ranks are left out and told.

    Raises
    ------
    CannotValidateError
        The profile cannot price the kernel, or the examples are missing.
    """
    rows: list[Row] = []
    for number, side in enumerate(SIDES):
        pairs: list[Pair] = []
        for pair in _sequential(side, context.machine):
            pairs.append(pair)
            share = (number + len(pairs) / len(BOXES)) / (len(SIDES) + 1)
            context.progress(f"box sums of {side} x {side} on one process", share)
        rows += rows_of(f"box sum, N = {side}, 1 process", pairs)
    skipped = ""
    every: list[Times] = []
    try:
        for side, pairs in _on_ranks(context.machine, every):
            context.progress("box sums on ranks", len(SIDES) / (len(SIDES) + 1))
            rows += rows_of(f"box sum, N = {side}, {RANKS} ranks", pairs)
    except CannotValidateError as problem:
        skipped = str(problem)
    return Section("crossover", TITLE, tuple(rows), (_NOTE, *left_out(every)), skipped)


def threshold(pairs: Sequence[tuple[int, float, float]]) -> int | None:
    """Return the b from which on the second of two times is the smaller one, None for never.

    Where times do not part cleanly it is the least b with the fewest exceptions on both sides.
    """
    wins = {b: second < first for b, first, second in pairs}

    def exceptions(limit: float) -> int:
        return sum(won != (b >= limit) for b, won in wins.items())

    best = min((*sorted(wins), math.inf), key=exceptions)
    return None if best == math.inf else int(best)


def rows_of(operation: str, pairs: Sequence[Pair]) -> Iterator[Row]:
    """Yield the thresholds of one size, and how many decisions were right."""
    predicted = threshold([(one.b, *one.predicted) for one in pairs])
    measured = threshold([(one.b, *one.measured) for one in pairs])
    between = range(*sorted(BOXES[-1] + 1 if b is None else b for b in (predicted, measured)))
    wrong = [one for one in pairs if one.b in between and not _tie(one)]
    printed = ", ".join(f"{machine} {b}" for machine, b in CROSSOVER_B.items())
    values = {
        name: float(b)
        for name, b in (("predicted_b", predicted), ("measured_b", measured))
        if b is not None
    }
    yield Row(
        "lines",
        operation,
        "scan wins from b on",
        printed,
        LINES,
        f"{_told(measured)}, predicted {_told(predicted)}",
        Verdict.of(not wrong),
        values,
        _loss(wrong) if wrong else "",
    )
    judged = [one for one in pairs if not _tie(one)]
    right = sum(_scan_wins(one.predicted) == _scan_wins(one.measured) for one in judged)
    yield Row(
        "lines",
        operation,
        "decisions right",
        "",
        "",
        f"{right} of {len(judged)}, {len(pairs) - len(judged)} ties",
        Verdict.of(right == len(judged)) if judged else Verdict.UNJUDGED,
        {"right": float(right), "judged": float(len(judged))},
    )


def _tie(one: Pair) -> bool:
    return max(one.measured) < TIE * min(one.measured)


def _scan_wins(pair: tuple[float, float]) -> bool:
    return pair[1] < pair[0]


def _loss(pairs: Sequence[Pair]) -> str:
    """Return what following the prediction costs at worst."""
    lost = [
        (one.measured[_scan_wins(one.predicted)] / min(one.measured) - 1, one.b) for one in pairs
    ]
    worst, b = max(lost)
    return f"following the prediction costs at most {worst:.0%}, at b = {b}"


def _told(b: int | None) -> str:
    return f"none to {BOXES[-1]}" if b is None else str(b)


def _sequential(side: int, machine: Machine) -> Iterator[Pair]:
    from advisor.transform_registry import transforms
    from advisor.verify.cases import case_of
    from advisor.verify.running import Effort, measure

    path = examples_folder() / "box_sum.py"
    kernel, source = kernel_of(path, "box_sum")
    rules = [rule for rule in transforms() if rule.code == _CODE]
    kept: list[Compared] = []
    for b in BOXES:
        sizes = {"N": side, "b": b}
        case = case_of(str(path), source, kernel, sizes, machine, rules)
        # scans along one axis alone are proposed too, and nothing is said of them here
        case = replace(case, variants=case.variants[:2])
        ways = case.variants
        unknown = [way.unknown for way in ways if way.predicted is None]
        if len(ways) < 2 or unknown:
            raise CannotValidateError(f"box sum: {(unknown or ['no scan is proposed'])[0]}")
        taken = measure(case, Effort(_LAUNCHES, _REPETITIONS, _SECONDS))
        failed = [one.failure for one in taken if one.failure]
        if failed:
            raise CannotValidateError(f"box sum: {failed[0]}")
        shifts, scan = taken
        times = [way.predicted.mid for way in ways if way.predicted is not None]
        before, after = (way.costed for way in ways)
        assert before is not None and after is not None
        measured = Ratio(
            shifts.low_s / scan.high_s, shifts.seconds / scan.seconds, shifts.high_s / scan.low_s
        )
        predicted = compare(before.priced, after.priced, sizes)
        kept.append(
            Compared("box_sum.py", "box_sum", _CODE, ways[1].title, sizes, predicted, measured)
        )
        yield Pair(b, (times[0], times[1]), (shifts.seconds, scan.seconds))
    keep(machine, 1, kept)


def _on_ranks(machine: Machine, every: list[Times]) -> Iterator[tuple[int, list[Pair]]]:
    """Yield the pairs of each size, and add what was measured to `every`."""
    changes = (
        ("row=4, col=4", f"row={RANKS}, col=1"),
        ("np.int32", "np.int64"),
    )
    kernel, _ = kernel_of(examples_folder() / "box_sum.py", "box_sum", changes)
    scan, title = _by_scan(kernel)
    cases = [{"N": side, "b": b} for side in SIDES for b in BOXES]
    jobs = [Job(("box shifts", "box scans"), dict(sizes)) for sizes in cases]
    found: dict[int, list[Pair]] = {}
    kept: list[Compared] = []
    for sizes, (one, other) in zip(cases, run_jobs(jobs, _SECONDS), strict=True):
        every += (one, other)
        before, after = costed(kernel, sizes, machine), costed(scan, sizes, machine)
        predicted = _mid(before, sizes), _mid(after, sizes)
        measured = one.median_us * 1e-6, other.median_us * 1e-6
        found.setdefault(sizes["N"], []).append(Pair(sizes["b"], predicted, measured))
        ratio = Ratio(
            one.low_us / other.high_us, one.median_us / other.median_us, one.high_us / other.low_us
        )
        told = compare(before.priced, after.priced, sizes)
        kept.append(Compared("box_sum.py", "box_sum", _CODE, title, sizes, told, ratio))
    keep(machine, RANKS, kept)
    yield from found.items()


def _by_scan(kernel: Kernel) -> tuple[Kernel, str]:
    """Return the kernel as its rule rewrites it, and what the rule calls that."""
    from advisor.transform_registry import transforms

    for rule in transforms():
        if rule.code == _CODE:
            for proposal in rule.propose(kernel):
                return proposal.variant, proposal.title
    raise CannotValidateError("box sum: no scan is proposed")


def _mid(one: Costed, sizes: Mapping[str, int]) -> float:
    return float(evaluate_price(one.priced, sizes).mid)
