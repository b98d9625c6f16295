"""Draws SPMD programs that rules rewrite, runs them on real ranks, and judges the ranking.

    python -m benchmarks.unseen_exchanges [--seed 1] [--count 3] [--machine here] [--ranks 2]

So many programs of each idiom of the rules' own generator
(`tests.transforms.generated.message_programs`), with messages of 40 bytes to 4 MB. Each is
predicted as by ``advise``, rewritten, and both run in one launch, in turn. They are *apart* where
one took more than 10 % longer in three rounds of four. Predicted is what the rule changes; what the
programs do besides is measured by one without the idiom, and taken off.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import exp, log
from pathlib import Path
from random import Random
from statistics import median

from advisor.cli.common import text_style
from advisor.frontend.spmd.reader import read_program
from advisor.ir.spmd.program import RANKS
from advisor.ranking.programs import bind_program, rank_program
from advisor.report.style import duration, table
from advisor.transform_registry import program_transforms
from advisor.verify.verdict import UNLIKE
from costdb.machines import Machine, load_machine
from tests.transforms.generated.message_programs import IDIOMS, Exchanging, exchange
from tests.transforms.spmd_running import proposals, rewritten

_ELEMENTS, _MOST_MESSAGES = (5, 500_000), 300
_ROUNDS = 9
_COLUMNS = ("idiom", "rule", "n", "rows", "ranked", "measured", "predicted", "low", "high", "times")
_DRIVER = """\
import sys, time
from importlib import import_module
from mpi4py import MPI

comm = MPI.COMM_WORLD
for number in range(int(sys.argv[1])):
    mains = [import_module(f"{side}_{number}").main for side in ("before", "after", "without")]
    spent = [[], [], []]
    for turn in range(int(sys.argv[2]) + 1):
        for side in (0, 1, 2) if turn % 2 else (2, 1, 0):
            comm.Barrier()
            start = time.perf_counter()
            mains[side](comm)
            taken = comm.allreduce(time.perf_counter() - start, op=MPI.MAX)
            if turn:  # the first warms up
                spent[side].append(taken)
    if comm.Get_rank() == 0:
        for side in spent:
            print(*side, flush=True)
"""


@dataclass(frozen=True, slots=True)
class Trial:
    """A program, its rewrite, and the program without what is rewritten.

    Attributes
    ----------
    predicted : tuple of float or None
        Times of what changes, before and after in seconds, and the low and high end of their
        ratio; None where no gain is predicted.
    """

    made: Exchanging
    n: int
    rows: int
    after: str
    without: str
    predicted: tuple[float, float, float, float] | None


def main() -> int:
    """Predict, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=3, help="programs of each idiom")
    parser.add_argument("--machine", default="here")
    parser.add_argument("--ranks", type=int, default=2)
    given = parser.parse_args()
    machine = load_machine(given.machine)
    made = [*trials(given.seed, given.count, machine, given.ranks)]
    rows, apart, right, untold = [], 0, 0, 0
    for one, spent in zip(made, _measured(made, given.ranks), strict=True):
        ranked, cells = judged(one, spent)
        apart += ranked not in ("not apart",)
        right += ranked == "right"
        untold += ranked == "UNTOLD"
        rows.append((one.made.idiom, one.made.code, str(one.n), str(one.rows), ranked, *cells))
    rows.sort(key=lambda row: (row[4] in ("right", "not apart"), row))
    print(table(_COLUMNS, rows, 2, text_style(None)), end="")
    print(f"pairs more than 10 % apart: {apart} of {len(rows)}, ranked right {right}", end="")
    print(f"; gains that no prediction showed {untold}")
    return 0


def trials(seed: int, count: int, machine: Machine, ranks: int) -> Iterator[Trial]:
    """Yield so many programs of each idiom, with their rewrites and predictions."""
    rules = {one.code: one for one in program_transforms()}
    for idiom in sorted(IDIOMS):
        for number in range(count):
            random = Random(f"{idiom} {seed} {number}")
            n = round(exp(random.uniform(*map(log, _ELEMENTS))))
            n = min(n, _MOST_MESSAGES) if idiom == "elements" else n
            rows = random.randint(4, max(4, min(_MOST_MESSAGES, 2_000_000 // n)))
            made = exchange(idiom, {
                "n": n, "rows": rows, "row": random.randint(1, rows - 2), "trips": 6, "shift": 3,
                "tag": random.randint(0, 9), "root": random.randint(0, 1), "step": "step",
                "dtype": random.choice(("float64", "float64", "float32", "int64", "int32")),
                "remark": "on",
            })  # fmt: skip
            rule, source = rules[made.code], made.source
            while offered := proposals(source, rule):
                source = rewritten(source, offered)
            head, _, tail = made.source.partition("  # on\n")
            without = f"{head}\n    return {tail.rpartition('return ')[2]}"
            yield Trial(made, n, rows, source, without, _predicted(made, machine, ranks))


def _predicted(
    made: Exchanging, machine: Machine, ranks: int
) -> tuple[float, float, float, float] | None:
    program = read_program("program.py", made.source)
    assert program is not None
    rule = next(one for one in program_transforms() if one.code == made.code)
    ranked = rank_program(program, machine, bind_program(program, {RANKS: ranks}), (rule,))
    found = [one.finding.prediction for one in ranked.judged if one.finding.prediction is not None]
    if not found:
        return None
    first = found[0]
    return sum(one.before_s for one in found), sum(one.after_s for one in found), first.low, (
        first.high
    )  # fmt: skip


def _measured(made: Sequence[Trial], ranks: int) -> list[list[list[float]]]:
    """Return the seconds of each round, of each program as written, rewritten and without."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number, one in enumerate(made):
            (folder / f"before_{number}.py").write_text(one.made.source, "utf-8")
            (folder / f"after_{number}.py").write_text(one.after, "utf-8")
            (folder / f"without_{number}.py").write_text(one.without, "utf-8")
        (folder / "driver.py").write_text(_DRIVER)
        mpiexec = Path(sys.executable).with_name("mpiexec")
        ended = subprocess.run(
            [mpiexec, "-n", str(ranks), sys.executable, "driver.py", str(len(made)), str(_ROUNDS)],
            cwd=folder, stdout=subprocess.PIPE, text=True, check=True,
        )  # fmt: skip
    lines = [[float(cell) for cell in line.split()] for line in ended.stdout.splitlines()]
    return [lines[3 * number : 3 * number + 3] for number in range(len(made))]


def judged(one: Trial, spent: Sequence[Sequence[float]]) -> tuple[str, tuple[str, ...]]:
    """Return how the pair was ranked, and the rest of its row."""
    ratios = [before / after for before, after, _ in zip(*spent, strict=True)]
    sooner = sum(ratio > UNLIKE for ratio in ratios)
    later = sum(ratio < 1 / UNLIKE for ratio in ratios)
    rest = median(spent[2])
    before, after = (max(median(side) - rest, 0.0) for side in spent[:2])
    ratio = before / after if after else float("inf")
    gain = one.predicted is not None and one.predicted[0] > one.predicted[1]
    if 4 * max(sooner, later) < 3 * len(ratios):
        ranked = "not apart"
    elif sooner > later:
        ranked = "right" if gain else "UNTOLD"
    else:
        ranked = "WRONG" if gain else "right"
    times = f"{duration(before)} to {duration(after)}"
    if one.predicted is None:
        return ranked, (f"{ratio:.2f}", "none", "", "", times)
    first, then, low, high = one.predicted
    return ranked, (f"{ratio:.2f}", f"{first / then:.2f}", f"{low:.2f}", f"{high:.2f}", times)


if __name__ == "__main__":
    sys.exit(main())
