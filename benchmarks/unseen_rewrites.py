"""Draws kernels that rewrites apply to, runs original and rewrites, and judges the ranking.

    python -m benchmarks.unseen_rewrites [--seed 1] [--count 8] [--machine here] [--keep FILE]
    python -m benchmarks.unseen_rewrites --from FILE

Of each family (:mod:`benchmarks.drawn_rewrites`) so many programs are drawn. Each is predicted and
run as by ``advise verify``, with a few rewrites or with a twin, all in turn, in several rounds.
Two variants are told apart where one took more than 10 % longer in every round. Printed is a table
of such pairs by rule, and all that were ranked wrong or whose ratio the predicted interval misses,
with both sides' errors and the terms that most of their predicted times are. A ``tie`` is
predicted to differ by less than what is a gain to ``advise``, and is not right; ``surely wrong``
has an interval on the other side of 1; ``untold`` is a gain that no prediction showed. ``--keep``
stores what was measured; ``--from`` predicts the same kernels anew and measures nothing.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from math import log
from pathlib import Path
from statistics import median
from typing import Any

from advisor.cli.common import text_style
from advisor.ranking.compare import WORTH, compared
from advisor.report.style import duration, table
from advisor.verify.cases import Case, Variant
from advisor.verify.running import Effort, Measured, measure
from advisor.verify.verdict import UNLIKE
from benchmarks.drawn_rewrites import Rewritable, case_for, families, rewritables
from costdb.calibration.section import Bystanders
from costdb.evaluate import Estimate, Ratio
from costdb.machines import Machine, load_machine

_EFFORT = Effort(launches=1, repetitions=9, seconds=0.2)
_ROUNDS = 3
_TOTALS = (
    "rewrite", "pairs", "apart", "right", "tie", "surely wrong", "untold", "inside", "error",
    "measured",
)  # fmt: skip
_MISSES = (
    "program", "rewrite", "ranked", "measured", "predicted", "low", "high", "times", "errors",
    "mostly", "and",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Run:
    """One variant, with what it took in each round."""

    variant: Variant
    rounds: tuple[Measured, ...]

    @property
    def seconds(self) -> float:
        """The median of the rounds."""
        return median(one.seconds for one in self.rounds)

    @property
    def failure(self) -> str:
        """Why it did not run, or differs; empty where it holds."""
        for one in self.rounds:
            if one.failure:
                return one.failure
        return "" if all(one.equal for one in self.rounds) else "its results differ"


@dataclass(frozen=True, slots=True)
class Pair:
    """Two variants of a program, both predicted and measured.

    Attributes
    ----------
    program : str
    before, after : Run
        The first is the program as written, or the one that was proposed first.
    predicted : Ratio
        Time of the first over time of the second.
    """

    program: str
    before: Run
    after: Run
    predicted: Ratio

    @property
    def what(self) -> str:
        """The rule that makes the second of the first, or what the choice is about."""
        codes = dict.fromkeys(run.variant.code for run in (self.before, self.after))
        named = " or ".join(code for code in codes if code)
        return named or self.after.variant.title

    @property
    def ratios(self) -> tuple[float, ...]:
        """Measured time of the first over time of the second, by rounds."""
        sides = zip(self.before.rounds, self.after.rounds, strict=True)
        return tuple(before.seconds / after.seconds for before, after in sides)

    @property
    def measured(self) -> float:
        """The median of the ratios."""
        return median(self.ratios)

    @property
    def apart(self) -> bool:
        """Whether every round says which one is more than 10 % faster."""
        return min(self.ratios) > UNLIKE or max(self.ratios) < 1 / UNLIKE

    @property
    def tie(self) -> bool:
        """Whether no order was predicted."""
        return 1 / WORTH < self.predicted.mid < WORTH

    @property
    def right(self) -> bool:
        """Whether the order was predicted."""
        return (self.measured > 1) == (self.predicted.mid > 1) and not self.tie

    @property
    def surely_wrong(self) -> bool:
        """Whether the whole interval is on the wrong side."""
        away = self.predicted.high < 1 if self.measured > 1 else self.predicted.low > 1
        return self.apart and away and not self.tie

    @property
    def untold(self) -> bool:
        """Whether the second is a gain that is not predicted: nothing is said of it."""
        return self.apart and self.measured > 1 and self.predicted.mid < WORTH

    @property
    def inside(self) -> bool:
        """Whether the interval of the ratio holds the measured one."""
        return self.predicted.low <= self.measured <= self.predicted.high

    @property
    def error(self) -> float:
        """How many times the predicted ratio is off, as its logarithm."""
        return abs(log(self.predicted.mid / self.measured))


def main() -> int:
    """Predict and measure, or predict what was measured; print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=8, help="programs of each family")
    parser.add_argument("--family", action="append", choices=families(), help="only these")
    parser.add_argument("--machine", default="here")
    parser.add_argument("--keep", type=Path, metavar="FILE")
    parser.add_argument("--from", dest="given", type=Path, metavar="FILE")
    parser.add_argument("--sources", action="store_true", help="print what is ranked wrong")
    given = parser.parse_args()
    machine = load_machine(given.machine)
    if given.given is None:
        kept = _measured(given.family or families(), given.seed, given.count, machine)
        if given.keep is not None:
            given.keep.write_text(json.dumps(kept, indent=1) + "\n", "utf-8")
    else:
        kept = json.loads(given.given.read_text("utf-8"))
    _print(kept, machine, sources=given.sources)
    return 0


def _measured(names: Iterable[str], seed: int, count: int, machine: Machine) -> dict[str, Any]:
    others = Bystanders()
    programs: list[dict[str, Any]] = []
    for family in names:
        for number, one in enumerate(rewritables(family, seed, count, machine)):
            case = case_for(one, machine)
            print(f"{family} {number + 1}: {len(case.variants)} variants", file=sys.stderr)
            rounds = [measure(case, _EFFORT) for _ in range(_ROUNDS)]
            runs = {
                variant.source: [asdict(turn[number]) for turn in rounds]
                for number, variant in enumerate(case.variants)
            }
            programs.append({**asdict(one), "runs": runs})
    return {"seed": seed, "others_busy_cores": others.busy_cores(), "programs": programs}


def _runs(kept: Mapping[str, Any], machine: Machine) -> Iterator[tuple[str, Case, list[Run]]]:
    """Yield programs, predicted now, with what was measured of them."""
    for number, held in enumerate(kept["programs"]):
        told = {key: value for key, value in held.items() if key != "runs"}
        # every variant that was run, not those that are chosen by the rules of today
        case = case_for(Rewritable(**told), machine, every=True)
        yield f"{held['family']} {number}", case, [
            Run(variant, tuple(Measured(**one) for one in held["runs"][variant.source]))
            for variant in case.variants
            if variant.source in held["runs"]
        ]  # fmt: skip


def _pairs(program: str, case: Case, runs: Sequence[Run]) -> Iterator[Pair]:
    for before, after in combinations(runs, 2):
        one, other = before.variant.costed, after.variant.costed
        if one and other and not before.failure and not after.failure:
            yield Pair(program, before, after, compared(one, other, case.sizes).ratio)


def _print(kept: Mapping[str, Any], machine: Machine, *, sources: bool) -> None:
    found = list(_runs(kept, machine))
    pairs = [pair for one in found for pair in _pairs(*one)]
    print(table(_TOTALS, [*_totals(pairs)], 1, text_style(None)))
    missed = [pair for pair in pairs if pair.apart and not (pair.right and pair.inside)]
    missed.sort(key=lambda pair: (pair.right, not pair.surely_wrong, -pair.error))
    print(table(_MISSES, [_row(pair) for pair in missed], 3, text_style(None)))
    for program, _, runs in found:
        for run in runs:
            why = run.failure or run.variant.unknown
            if why:
                print(f"{program}, {run.variant.code or run.variant.title}: {why}")
    busy = kept["others_busy_cores"]
    print(f"programs drawn with seed {kept['seed']}: {len(found)}", end="; ")
    print("others kept busy", "unknown" if busy is None else f"{busy:.1f} cores")
    for pair in missed if sources else ():
        if not pair.right:
            print(f"\n# {pair.program}: {pair.what}\n{pair.before.variant.source}", end="")
            print(f"# rewritten\n{pair.after.variant.source}")


def _totals(pairs: Sequence[Pair]) -> Iterator[tuple[str, ...]]:
    for what in (*sorted({pair.what for pair in pairs}), "in all"):
        of_rule = [pair for pair in pairs if what in (pair.what, "in all")]
        apart = [pair for pair in of_rule if pair.apart]
        ratios = [pair.measured for pair in of_rule]
        yield (
            what,
            str(len(of_rule)),
            str(len(apart)),
            str(sum(pair.right for pair in apart)),
            str(sum(pair.tie for pair in apart)),
            str(sum(pair.surely_wrong for pair in apart)),
            str(sum(pair.untold for pair in apart)),
            f"{sum(pair.inside for pair in of_rule)} of {len(of_rule)}",
            f"{median(pair.error for pair in of_rule):.0%}" if of_rule else "-",
            f"{min(ratios):.2g} to {max(ratios):.2g}" if ratios else "-",
        )


def _row(pair: Pair) -> tuple[str, ...]:
    return (
        pair.program,
        pair.what,
        _ranked(pair),
        f"{pair.measured:.3g}",
        *(f"{end:.3g}" for end in (pair.predicted.mid, pair.predicted.low, pair.predicted.high)),
        " to ".join(duration(run.seconds) for run in (pair.before, pair.after)),
        ", ".join(f"{_predicted(run).mid / run.seconds:.2f}" for run in (pair.before, pair.after)),
        *(_most(run) for run in (pair.before, pair.after)),
    )


def _ranked(pair: Pair) -> str:
    if pair.tie:
        return "TIE"
    return "right" if pair.right else "SURELY WRONG" if pair.surely_wrong else "WRONG"


def _most(run: Run) -> str:
    predicted = _predicted(run)
    term = max(predicted.terms, key=lambda term: term.mid)
    return f"{term.label} {term.mid / predicted.mid:.0%}"


def _predicted(run: Run) -> Estimate:
    assert run.variant.predicted is not None
    return run.variant.predicted


if __name__ == "__main__":
    sys.exit(main())
