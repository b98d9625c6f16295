"""Draws kernels that no fit has seen, runs them, and holds predictions against the clock.

    python -m benchmarks.unseen_kernels [--seed 1] [--count 60] [--machine here] [--keep FILE]
    python -m benchmarks.unseen_kernels --from FILE

Kernels (:mod:`benchmarks.drawn_kernels`) are none of the examples, nor the programs that the
calibration itself times. Each is predicted and, with its rewrites, run as by ``advise verify``.
Printed are its summary and a line for each variant, those that the interval misses first, with
what most of its predicted time is. ``--keep`` stores what was measured; ``--from`` predicts the
same kernels anew and measures nothing.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from math import log
from pathlib import Path
from typing import Any

from advisor.cli.common import text_style
from advisor.frontend.kernels import read_kernels
from advisor.ranking.compare import bind_sizes
from advisor.report.style import duration, table
from advisor.transform_registry import transforms
from advisor.verify.cases import ORIGINAL, Case, case_of
from advisor.verify.running import Effort, Measured, measure
from advisor.verify.verdict import Verdict, in_words
from benchmarks.drawn_kernels import drawn
from costdb.calibration.section import Bystanders
from costdb.machines import Machine, load_machine

_EFFORT = Effort(launches=2, repetitions=15, seconds=0.3)
_MOST_VARIANTS = 3
_COLUMNS = (
    "kernel", "rule", "inside", "ratio", "measured", "predicted", "low", "high", "mostly",
)  # fmt: skip


def main() -> int:
    """Predict and measure, or predict what was measured; print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--machine", default="here")
    parser.add_argument("--keep", type=Path, metavar="FILE")
    parser.add_argument("--from", dest="given", type=Path, metavar="FILE")
    parser.add_argument("--sources", action="store_true", help="print the kernels that are missed")
    given = parser.parse_args()
    machine = load_machine(given.machine)
    if given.given is None:
        kept = _measured(given.seed, given.count, machine)
        if given.keep is not None:
            given.keep.write_text(json.dumps(kept, indent=1) + "\n", "utf-8")
    else:
        kept = json.loads(given.given.read_text("utf-8"))
    groups = _judged(kept, machine)
    _print(kept, groups, sources=given.sources)
    return 0


def _cases(seed: int, numbers: Iterable[int], machine: Machine) -> Iterator[tuple[int, Case]]:
    """Yield each kernel with its first rewrites."""
    for number in numbers:
        one = drawn(seed, number)
        kernel = read_kernels(f"{one.name}.py", one.source)[0]
        sizes = bind_sizes(kernel, {}).values
        case = case_of(f"{one.name}.py", one.source, kernel, sizes, machine, transforms())
        yield (
            number,
            Case(case.path, case.kernel, case.sizes, case.arrays, case.variants[:_MOST_VARIANTS]),
        )


def _measured(seed: int, count: int, machine: Machine) -> dict[str, Any]:
    others = Bystanders()
    kernels: dict[str, list[dict[str, Any]]] = {}
    for number, case in _cases(seed, range(count), machine):
        print(f"{number + 1} of {count}: {len(case.variants)} variants", file=sys.stderr)
        if case.variants[0].predicted is not None:
            found = measure(case, _EFFORT)
            kernels[str(number)] = [
                {"rule": variant.code, "title": variant.title, **asdict(measured)}
                for variant, measured in zip(case.variants, found, strict=True)
            ]
    return {
        "seed": seed,
        "count": count,
        "others_busy_cores": others.busy_cores(),
        "kernels": kernels,
    }


def _judged(kept: Mapping[str, Any], machine: Machine) -> list[list[Verdict]]:
    """Return predictions beside what was measured; rewrites by what they are called."""
    groups = []
    measured = {int(number): rows for number, rows in kept["kernels"].items()}
    for number, case in _cases(kept["seed"], measured, machine):
        found = {
            (row.pop("rule"), row.pop("title")): Measured(**row)
            for row in map(dict, measured[number])
        }
        group = [
            Verdict(case, variant, found[variant.code, variant.title])
            for variant in case.variants
            if (variant.code, variant.title) in found
        ]
        groups.append(group)
    return groups


def _print(kept: Mapping[str, Any], groups: Sequence[Sequence[Verdict]], *, sources: bool) -> None:
    every = [one for group in groups for one in group if one.judged]
    every.sort(key=lambda one: (one.inside, -abs(log(one.ratio))))
    rows = [_row(one) for one in every]
    print(table(_COLUMNS, rows, 2, text_style(None)), end="")
    print("\n".join(in_words(groups)))
    print("misses by what most of the predicted time is:", _by_term(every))
    print(f"kernels drawn: {kept['count']}, with seed {kept['seed']}; priced {len(groups)}")
    busy = kept["others_busy_cores"]
    print("others kept busy", "unknown" if busy is None else f"{busy:.1f} cores")
    for one in every if sources else ():
        if not one.inside and one.variant.title == ORIGINAL:
            print(f"\n# {one.ratio:.2f} predicted over measured\n{one.variant.source}")


def _row(one: Verdict) -> tuple[str, ...]:
    predicted = one.variant.predicted
    assert predicted is not None
    return (
        one.case.kernel,
        one.variant.code or ORIGINAL,
        "yes" if one.inside else "NO",
        f"{one.ratio:.2f}",
        duration(one.measured.seconds),
        duration(predicted.mid),
        *(f"{end / predicted.mid:.2f}" for end in (predicted.low, predicted.high)),
        *(f"{label} {share:.0%}" for label, share in _most(one)),
    )


def _most(one: Verdict) -> list[tuple[str, float]]:
    predicted = one.variant.predicted
    assert predicted is not None
    term = max(predicted.terms, key=lambda term: term.mid)
    return [(term.label, term.mid / predicted.mid)]


def _by_term(every: Iterable[Verdict]) -> str:
    judged, missed = Counter[str](), Counter[str]()
    for one in every:
        for label, _ in _most(one):
            judged[label] += 1
            missed[label] += not one.inside
    return ", ".join(f"{label} {missed[label]} of {count}" for label, count in judged.most_common())


if __name__ == "__main__":
    sys.exit(main())
