"""Scripts and programs of ranks, run and measured in pieces side by side, in one go.

``python -m benchmarks.measured_scripts [-P 2] [--launches 5] FILE-OR-FOLDER ...``: each file is
run as it is, on so many ranks where it imports mpi4py, and sampled, in turn. Files of one folder
whose names differ only behind their last underscore (``sum_loop.py``, ``sum_scan.py``) are
alternatives, which take turns too: what sampling ranks first is held to what runs first. So are as
many more runs, which shows how far the machine agrees with itself. A program takes as long as its
fastest run, from behind its imports to its end; where it has one process, by the clock of its main
thread, which other programs do not hold up.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, groupby
from pathlib import Path
from statistics import median
from typing import Any

from advisor.measure.language import Refused, Sampled, sampled_file
from advisor.measure.pieces import Effort, NoPiece, Piece, sample
from benchmarks.npbench import MARK, Row, summary
from costdb.launch.processes import environment, find_launcher

_APART = 1.1
_AROUND = """
import ast, contextlib, io, os, sys, time, numpy
ranks, file = int(sys.argv[1]), sys.argv[2]
del sys.argv[1:]
sys.path.insert(0, os.path.dirname(file))
text = open(file).read()
for node in ast.walk(ast.parse(text)):
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        exec(ast.unparse(node), {})
world = None
if ranks:
    from mpi4py import MPI
    world = MPI.COMM_WORLD
    world.Barrier()
code = compile(text, file, "exec")
now = time.thread_time if world is None else time.perf_counter
began = now()
with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    exec(code, {"__name__": "__main__"})
spent = now() - began
if world is not None:
    spent = world.allreduce(spent, op=MPI.MAX)
if world is None or world.rank == 0:
    print(MARK + repr(spent))
"""


def run(file: Path, ranks: int) -> float:
    """Run a file; return the seconds of its slowest rank."""
    launch = [find_launcher(), "-n", str(ranks)] if ranks else []
    text = _AROUND.replace("MARK", repr(MARK))
    done = subprocess.run(
        [*launch, sys.executable, "-W", "ignore", "-c", text, str(ranks), str(file.resolve())],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env=environment(),
        cwd=file.parent,
    )
    _, mark, found = done.stdout.partition(MARK)
    if not mark:
        raise RuntimeError((done.stderr.strip().splitlines() or ["did not run"])[-1])
    return float(json.loads(found.split()[0]))


@dataclass
class _Turns:
    """A file that runs and is sampled in turn with its alternatives."""

    name: str
    program: Sampled | None
    why: str
    runs: list[float] = field(default_factory=list)
    again: list[float] = field(default_factory=list)
    pieces: list[Piece] = field(default_factory=list)

    def row(self) -> Row:
        if self.why or not self.pieces:
            return Row(self.name, min(self.runs, default=0.0), why=self.why)
        return Row(
            self.name,
            min(self.runs),
            min(one.low_s for one in self.pieces),
            min(one.mid_s for one in self.pieces),
            median(one.high_s for one in self.pieces),
            median(self.runs),
            median(one.spent_s for one in self.pieces),
            again_s=min(self.again),
        )


def rows_of(files: Sequence[Path], ranks: int, launches: int) -> list[Row]:
    """Run and sample alternatives, in turn, so that what slows the machine falls on all."""
    turns: dict[Path, _Turns] = {}
    for file in files:
        name = f"{file.parent.name}/{file.stem}"
        try:
            turns[file] = _Turns(name, sampled_file(str(file), file.read_text("utf-8"), {}), "")
        except Refused as refused:
            turns[file] = _Turns(name, None, str(refused))
    for launch in range(launches):
        for file in files if launch % 2 else reversed(files):
            one = turns[file]
            of = ranks if one.program is None or one.program.of_ranks else 0
            if one.why and (one.program is not None or one.runs):
                continue
            try:
                one.runs.append(run(file, of))
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                one.why = f"does not run here: {error}"
                continue
            if one.program is None:
                continue
            (found,) = sample([(one.program, {})], Effort(launches=1, ranks=ranks))
            if isinstance(found, NoPiece):
                one.why = f"line {found.line}: {found.why}"
            else:
                one.pieces.append(found)
                one.again.append(run(file, of))
    return [one.row() for one in turns.values()]


def ranked(rows: Sequence[Row]) -> Iterator[str]:
    """Yield how often alternatives over 10 % apart were ranked right, and what choosing costs."""
    families: dict[str, list[Row]] = {}
    for one in rows:
        if one.run_s:  # it runs here
            families.setdefault(one.name.rpartition("_")[0], []).append(one)
    right = wrong = refused = again = 0
    regrets, told = [], []
    for some in families.values():
        if len(some) < 2:
            continue
        for one, other in combinations(some, 2):
            if max(one.run_s, other.run_s) < _APART * min(one.run_s, other.run_s):
                continue
            if one.why or other.why:
                refused += 1
                continue
            again += (one.run_s < other.run_s) == (one.again_s < other.again_s)
            if (one.run_s < other.run_s) == (one.mid_s < other.mid_s):
                right += 1
            else:
                wrong += 1
                told.append(f"{one.name} {other.name}")
        known = [one for one in some if not one.why]
        if known:
            chosen = min(known, key=lambda one: one.mid_s)
            regrets.append(chosen.run_s / min(one.run_s for one in some) - 1)
    if regrets:
        yield f"pairs over 10 % apart: {right} right, {wrong} wrong, {refused} refused"
        yield f"of those right and wrong, other runs rank {again} as the first do"
        yield f"regret of choosing by it: mean {sum(regrets) / len(regrets):.1%}"
        yield from (f"wrong: {pair}" for pair in told)


def main(arguments: Any = None) -> None:
    """Print a line for each program, and what all of them say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("-P", "--ranks", type=int, default=2)
    parser.add_argument("--launches", type=int, default=5)
    given = parser.parse_intermixed_args(arguments)
    files = [file for one in given.files for file in (sorted(one.rglob("*.py")) or [one])]
    rows = []
    for _, family in groupby(files, lambda file: (file.parent, file.stem.rpartition("_")[0])):
        some = rows_of(list(family), given.ranks, given.launches)
        rows += some
        print(*(one.line() for one in some), sep="\n", flush=True)
    for line in (*summary(rows), *ranked(rows)):
        print(line)


if __name__ == "__main__":
    main()
