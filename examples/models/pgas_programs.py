"""Histogram, matrix product and Sobel in UPC: their groups of references, and their times.

Run ``python examples/models/pgas_programs.py`` to print groups and times.
"""

import tomllib
from pathlib import Path

from costdb.evaluate import Missing, evaluate_price
from costdb.machines import load_machine
from costdb.pgas.document import program_of
from costdb.pgas.partition import partition, remote_groups
from costdb.pricing import price_process
from costdb.work import Leaf, Sequential

PLATFORMS = ("mupc", "mupc-cache", "bupc", "gupc-t3e")
THREADS = (2, 4, 8, 12)

FOLDER = Path(__file__).parents[1] / "pgas"
# The histogram makes 10 % of a million increments on each thread.
SIZES = {
    "histogram": {"N": 1_000_000, "percent": 10},
    "matmul": {"N": 240},
    "sobel": {"N": 2000},
}


def interval_of(name):
    """Return what one thread of a described program does between two sequence points."""
    path = FOLDER / f"{name}.toml"
    _, _, interval_for = program_of(tomllib.loads(path.read_text()), str(path))
    return interval_for({"spread": "cyclic"})


def main() -> None:
    print("program    array  access  affinity  pattern")
    for name in SIZES:
        for group in partition(interval_of(name)):
            access = "r" * group.reads + "w" * group.writes
            print(f"{name:10} {group.array:6} {access:7} {group.affinity:9} {group.pattern}")
    print()
    print("program    platform   " + "".join(f"{f'T={t}':>10}" for t in THREADS) + "   seconds")
    for name, sizes in SIZES.items():
        for platform in PLATFORMS:
            groups = tuple(map(Leaf, remote_groups(interval_of(name))))
            priced = price_process(Sequential(groups), load_machine(platform))
            if isinstance(priced, Missing):
                raise SystemExit(f"{priced.what}; try: {priced.remedy}")
            times = [evaluate_price(priced, {**sizes, "T": t}).mid for t in THREADS]
            print(f"{name:10} {platform:11}" + "".join(f"{time:10.3f}" for time in times))


if __name__ == "__main__":
    main()
