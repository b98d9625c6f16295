"""What a directory without anything to advise on costs, beside reading it and beside linters.

    python benchmarks/bench_scan.py [--rounds 7] [--files 1000] [--skip fixit]

Files are made in a temporary directory: usual code of several kinds, without MPI and without
annotations, some with words that make a second look necessary. Programs take turns within a round,
in another order each time; medians are shown, of the processors' time of whole processes. Plain
reading is a Python process that walks the directory, opens every file and reads its bytes; what
starting Python takes is in all of them but ruff's, so it is shown for itself. Only the ratios
travel to other machines.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from bench_lint import PLAIN, Case, measured, program

READING = """\
import os, sys
total = 0
for folder, _, files in os.walk(sys.argv[1]):
    for name in sorted(files):
        with open(os.path.join(folder, name), 'rb') as stream:
            total += len(stream.read())
"""

# words that are near those that the prefilter looks for
NEAR = '''

def broadcast(values, scatter=None):
    """Send values to all who listen, and gather what they advise us of."""
    for value in values:
        listeners.send(value, reduce=True)
    return forecast.gather(values, recv=scatter)
'''


def make_files(folder: Path, count: int) -> int:
    """Write files into packages of fifty; returns their bytes."""
    total = 0
    for number in range(count):
        package = folder / f"package{number // 50}"
        package.mkdir(exist_ok=True)
        text = PLAIN.format(n=number) * (1 + number % 5)
        if number % 4 == 0:
            text += NEAR
        total += (package / f"m{number}.py").write_text(text)
    return total


def commands(place: str, skip: str | None) -> tuple[dict[str, list[str]], list[str]]:
    """Return what to run, by name, and the names of programs that are not installed."""
    found = {name: program(name) for name in ("advise", "ruff", "fixit") if name != skip}
    made = {"reading alone": [sys.executable, "-c", READING, place]}
    if found.get("advise"):
        own = [found["advise"], "--machine", "t3e", "--isolated", "-j", "1"]
        made["advise --no-cache"] = [*own, "--no-cache", place]
        made["advise, cache on"] = [*own, place]
    made["starting Python"] = [sys.executable, "-c", ""]
    if found.get("ruff"):
        ruff = [found["ruff"], "check", "--isolated", "--exit-zero"]
        made["ruff check --no-cache"] = [*ruff, "--no-cache", place]
    if found.get("fixit"):
        made["fixit lint"] = [found["fixit"], "lint", place]
    return made, [name for name, path in found.items() if path is None]


def main() -> None:
    """Run the benchmark and print its table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--skip", help="a program that takes too long for several rounds")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "tree").mkdir()
        size = make_files(folder / "tree", given.files)
        made, missing = commands("tree", given.skip)
        for absent in missing:
            print(f"{absent} is not installed, and left out")
        medians = measured(Case("scan", made), folder, given.rounds)
        reading = medians["reading alone"].used_s
        print(f"{given.files} files, {size / 1e6:.1f} MB, median of {given.rounds}:")
        for command, times in medians.items():
            each = 1e6 * (times.used_s - medians["starting Python"].used_s) / given.files
            print(
                f"  {command:<24} {1e3 * times.used_s:8.1f} ms {each:8.1f} us a file"
                f"   {times.used_s / reading:6.2f} x reading"
            )


if __name__ == "__main__":
    main()
