"""Processor time of ``advise`` on every example: on a published machine, and on a calibrated one.

    python benchmarks/bench_examples.py [--machine here] [--data DIRECTORY] [--rounds 5] [FILE...]

A calibrated machine has some hundred coefficients where a published one has ten, and its loops are
sums without closed forms. Each command is a process of its own, with its imports and the start of
Python; commands take turns within a round, in another order each time. Shown are medians of the
processors' time, and in brackets the ratio to ``import libcst`` in the same rounds, which is what
travels to other machines. `again` is a second run of the same file, answered from the cache.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parent.parent
PUBLISHED = "t3e"
LIMIT_S = {"published": 1.0, "calibrated": 1.5}
"""Of the slowest example."""


def used_s(command: Sequence[str], environment: Mapping[str, str]) -> float:
    """Return the seconds of all processors that a command takes; findings are no failure."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ended = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if ended.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(command)} ended with {ended.returncode}:\n{ended.stderr}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def commands(file: str, machine: str) -> Mapping[str, Sequence[str]]:
    """Return what is run for an example, by what it shows."""
    advise = [str(Path(sys.executable).with_name("advise")), "--isolated", "--machine"]
    return {
        "published": [*advise, PUBLISHED, "--no-cache", file],
        "calibrated": [*advise, machine, "--no-cache", file],
        "again": [*advise, machine, file],
    }


def main() -> int:
    """Run the benchmark and print its table; 1 where an example takes longer than its limit."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--machine", default="here", help="a calibrated machine")
    parser.add_argument("--data", help="the data directory with its store; default: the user's")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("files", nargs="*", help="default: all examples")
    given = parser.parse_args()
    files = given.files or sorted(
        str(path.relative_to(ROOT)) for path in (ROOT / "examples").rglob("*.py")
    )
    # whoever forbids bytecode makes Python programs compile themselves each time
    kept = {name: v for name, v in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    if given.data:
        kept["ADVISE_DATA_DIR"] = str(Path(given.data).resolve())
    start = [sys.executable, "-c", "import libcst"]
    slowest = dict.fromkeys(LIMIT_S, 0.0)
    shuffle = random.Random(1).shuffle
    with tempfile.TemporaryDirectory() as cache:
        environment = {**kept, "ADVISE_CACHE_DIR": cache}
        print(f"median of {given.rounds}, ms of processors' time (times import libcst)")
        print(f"{'':<32}{PUBLISHED:>16}{given.machine:>16}{'again':>16}")
        for file in files:
            run = {**commands(file, given.machine), "start": start}
            for command in run.values():
                used_s(command, environment)
            taken: dict[str, list[float]] = {name: [] for name in run}
            order = list(run)
            for _ in range(given.rounds):
                shuffle(order)
                for name in order:
                    taken[name].append(used_s(run[name], environment))
            medians = {name: median(times) for name, times in taken.items()}
            cells = [
                f"{1e3 * medians[name]:8.0f} ({medians[name] / medians['start']:4.1f})"
                for name in ("published", "calibrated", "again")
            ]
            print(f"{file:<32}" + "".join(f"{cell:>16}" for cell in cells), flush=True)
            slowest = {name: max(time, medians[name]) for name, time in slowest.items()}
    for name, limit in LIMIT_S.items():
        print(f"slowest, {name} machine: {slowest[name]:.2f} s, limit {limit} s")
    return int(any(slowest[name] > limit for name, limit in LIMIT_S.items()))


if __name__ == "__main__":
    sys.exit(main())
