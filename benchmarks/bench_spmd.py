"""Original and rewritten SPMD programs side by side on real ranks, as predicted and as measured.

    python benchmarks/bench_spmd.py [--machine here] [--ranks 2] [--rounds 7]

For each idiom of `spmd_programs`, the rule is asked about the program, as `advise` asks it, for the
machine; its edits are made, or what is written by hand in their place is taken. Both programs run
in one launch, taking turns, and must give equal results. The table has the predicted times of what
the rule changes, and the median over rounds of the slowest rank's time for the whole programs,
which do little else.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import textwrap
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from spmd_programs import CASES, Case

from advisor.frontend.spmd.reader import read_program
from advisor.ir.spmd.program import RANKS
from advisor.ranking.programs import bind_program, rank_program
from advisor.source import Edit, apply_edits
from costdb.machines import Machine, load_machine

HEADER = "import numpy as np\nfrom mpi4py import MPI\n\n\ndef main(comm):\n    comm.Barrier()\n"

DRIVER = """\
import sys, time
from importlib import import_module
from statistics import median

import numpy as np
from mpi4py import MPI

def same(one, other, tolerance):
    if isinstance(one, tuple):
        return all(same(a, b, tolerance) for a, b in zip(one, other, strict=True))
    return np.allclose(one, other, rtol=tolerance, atol=0)

comm = MPI.COMM_WORLD
rounds = int(sys.argv[1])
for number, tolerance in enumerate(map(float, sys.argv[2:])):
    mains = [import_module(f"{side}_{number}").main for side in ("before", "after")]
    results, spent = [None, None], [[], []]
    for turn in range(rounds + 1):
        for side in (0, 1) if turn % 2 else (1, 0):
            comm.Barrier()
            start = time.perf_counter()
            results[side] = mains[side](comm)
            taken = comm.allreduce(time.perf_counter() - start, op=MPI.MAX)
            if turn:  # the first warms up
                spent[side].append(taken)
    agree = comm.allreduce(same(*results, tolerance), op=MPI.LAND)
    if comm.Get_rank() == 0:
        print(number, int(agree), *map(median, spent), flush=True)
"""


@dataclass(frozen=True, slots=True)
class Pair:
    """A program, what becomes of it, and what the rule predicts; None: no gain is predicted."""

    before: str
    after: str
    before_s: float | None
    after_s: float | None


def pair(case: Case, machine: Machine, ranks: int) -> Pair:
    """Return both programs of a case with the predicted times of what changes."""
    source = HEADER + textwrap.indent(textwrap.dedent(case.body), "    ")
    program = read_program("program.py", source)
    if program is None:
        raise SystemExit(f"{case.idiom}: nothing in the program communicates")
    rule = import_module(f"transforms.{case.rule}").TRANSFORM
    edits: dict[Edit, None] = {}
    offered = list(rule.propose_program(program))
    for proposal in offered:
        edits.update(dict.fromkeys(proposal.edits()))
    if not offered or bool(edits) == bool(case.by_hand):
        raise SystemExit(f"{case.idiom}: {len(offered)} proposals, {len(edits)} edits")
    after = apply_edits(source, edits)
    if case.by_hand:
        after = HEADER + textwrap.indent(textwrap.dedent(case.by_hand), "    ")
    ranked = rank_program(program, machine, bind_program(program, {RANKS: ranks}), (rule,))
    found = [f.finding.prediction for f in ranked.judged if f.finding.prediction is not None]
    if not found:
        return Pair(source, after, None, None)
    return Pair(
        source, after, sum(one.before_s for one in found), sum(one.after_s for one in found)
    )


def measured(pairs: list[Pair], ranks: int, rounds: int) -> list[tuple[bool, float, float]]:
    """Return for each pair whether results are equal, and the seconds of both programs."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number, one in enumerate(pairs):
            (folder / f"before_{number}.py").write_text(one.before)
            (folder / f"after_{number}.py").write_text(one.after)
        (folder / "driver.py").write_text(DRIVER)
        mpiexec = Path(sys.executable).with_name("mpiexec")
        arguments = ["driver.py", str(rounds), *(str(case.tolerance) for case in CASES)]
        ended = subprocess.run(
            [mpiexec, "-n", str(ranks), sys.executable, *arguments],
            cwd=folder,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    lines = [line.split() for line in ended.stdout.splitlines()]
    return [(agree == "1", float(old), float(new)) for _, agree, old, new in lines]


def row(case: Case, one: Pair, agree: bool, old_s: float, new_s: float) -> tuple[list[str], bool]:
    """Return a line of the table, and whether it shows what it should."""
    ratio = old_s / new_s
    predicted, times, right = "none", "", ratio <= 1
    if one.before_s is not None and one.after_s is not None:
        gain = one.before_s / one.after_s
        predicted, right = f"{gain:.2f}", (gain > 1) == (ratio > 1)
        times = f"{1e3 * one.before_s:.3g} to {1e3 * one.after_s:.3g}"
    return [
        case.idiom,
        import_module(f"transforms.{case.rule}").TRANSFORM.code,
        "by hand" if case.by_hand else "edit",
        "equal" if agree else "DIFFERENT",
        times,
        predicted,
        f"{1e3 * old_s:.3g} to {1e3 * new_s:.3g}",
        f"{ratio:.2f}",
        "as predicted" if right else "OTHER",
    ], agree and right


TITLES = (
    "idiom",
    "rule",
    "rewritten",
    "results",
    "predicted (ms)",
    "ratio",
    "measured (ms)",
    "ratio",
    "direction",
)


def main() -> None:
    """Run the benchmark, print its table in Markdown, and end with 1 should a row not hold."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--machine", default="here")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    given = parser.parse_args()
    machine = load_machine(given.machine)
    pairs = [pair(case, machine, given.ranks) for case in CASES]
    rows, held = [list(TITLES), ["---"] * len(TITLES)], 0
    for case, one, seen in zip(
        CASES, pairs, measured(pairs, given.ranks, given.rounds), strict=True
    ):
        cells, holds = row(case, one, *seen)
        rows.append(cells)
        held += holds
    widths = [max(len(cells[k]) for cells in rows) for k in range(len(TITLES))]
    for cells in rows:
        padded = (
            cell.ljust(width, "-" if cell == "---" else " ")
            for cell, width in zip(cells, widths, strict=True)
        )
        print(f"| {' | '.join(padded)} |")
    print(f"\n{held} of {len(CASES)} with equal results and the predicted direction")
    sys.exit(held < len(CASES))


if __name__ == "__main__":
    main()
