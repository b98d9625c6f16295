"""Programs of a folder as they are, beside what ``advise --fix --unsafe-fixes`` makes of them.

``python -m benchmarks.edited_programs FOLDER [--ranks 2 3] [--machine node2026] [--limit 240]``:
every program below FOLDER that gets an edit runs three times, twice as written, under ``mpiexec``
with each number of ranks where it imports mpi4py. What two runs of the program itself print alike
has to be printed by the edited one, numbers to one part in 10**6. Nothing in FOLDER changes. The
programs run: only name such as you would run yourself.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from costdb.launch.processes import find_launcher

AGREED = 1e-6
_NUMBER = re.compile(r"([-+]?\d+\.?\d*(?:[eE][-+]?\d+)?)")


@dataclass(frozen=True, slots=True)
class Run:
    """What a program printed, or why it did not end well, and the seconds it took."""

    text: str
    failed: str
    took_s: float


def difference(one: str, again: str, other: str) -> float:
    """Return by how much numbers of a third text differ from those of two; inf where words do.

    What differs between the first two (times, say) may differ in the third.
    """
    texts = [_NUMBER.split(text) for text in (one, again, other)]
    if len({len(text) for text in texts}) > 1:
        return float("inf")
    worst = 0.0
    for number, (first, second, third) in enumerate(zip(*texts, strict=True)):
        if first != second or first == third:
            continue
        if number % 2 == 0:
            return float("inf")
        size = max(abs(float(first)), abs(float(third)))
        worst = max(worst, abs(float(first) - float(third)) / size)
    return worst


def run(command: Sequence[str], limit_s: float) -> Run:
    """Run a program where it may write what it likes."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    with TemporaryDirectory() as folder:
        begun = time.perf_counter()
        try:
            done = subprocess.run(
                command,
                cwd=folder,
                env=environment,
                capture_output=True,
                text=True,
                timeout=limit_s,
            )
        except subprocess.TimeoutExpired:
            return Run("", f"no end after {limit_s:g} s", limit_s)
        failed = done.stderr.strip().splitlines()[-1:] if done.returncode else []
        return Run(done.stdout, "".join(failed), time.perf_counter() - begun)


def judged(before: Path, after: Path, ranks: Sequence[int], limit_s: float) -> Iterator[str]:
    """Yield a line for each way in which a program runs."""
    is_parallel = "mpi4py" in before.read_text()
    for count in ranks if is_parallel else (1,):
        launcher = [find_launcher(), "-n", str(count)] if is_parallel else []
        plain, again, edited = (
            run([*launcher, sys.executable, str(path)], limit_s) for path in (before, before, after)
        )
        where = f"{before.name} ({count} ranks)" if is_parallel else before.name
        if plain.failed or again.failed:
            yield f"{where:44} does not run: {plain.failed or again.failed}"
            continue
        times = f"{min(plain.took_s, again.took_s):7.1f} s -> {edited.took_s:6.1f} s"
        apart = difference(plain.text, again.text, edited.text)
        told = "same" if apart == 0 else f"numbers differ by {apart:.1e}"
        if edited.failed:
            told = f"WRONG: {edited.failed}"
        elif apart > AGREED:
            told = f"WRONG: {told}"
        yield f"{where:44} {times}  {told}"


def main() -> int:
    """Print a line for each program that was edited, and how many came out otherwise."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 3])
    parser.add_argument("--machine", default="node2026")
    parser.add_argument("--limit", type=float, default=240.0, help="seconds for each run")
    given = parser.parse_args()
    edited = wrong = programs = 0
    with TemporaryDirectory() as folder:
        for path in sorted(given.folder.rglob("*.py")):
            if any(part.startswith(".") for part in path.relative_to(given.folder).parts):
                continue
            programs += 1
            copy = Path(folder) / path.name
            shutil.copy(path, copy)
            options = ("--machine", given.machine, "--no-cache", "--fix", "--unsafe-fixes")
            command = (sys.executable, "-P", "-m", "advisor", str(copy), *options)
            subprocess.run(command, cwd=folder, capture_output=True, check=False)
            if copy.read_text() == path.read_text():
                continue
            edited += 1
            lines = list(judged(path.absolute(), copy, given.ranks, given.limit))
            wrong += any("WRONG" in line for line in lines)
            print("\n".join(lines), flush=True)
    print(f"{edited} of {programs} programs edited, {wrong} of them print something else")
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
