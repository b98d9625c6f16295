"""Histogram, matrix product and Sobel in UPC: their groups of references, and their times.

Run ``python examples/models/pgas_programs.py`` to print the tables of docs/models/pgas.md.
"""

from costdb.estimate import Missing
from costdb.evaluate import evaluate_price
from costdb.expr import sym
from costdb.machines import load_machine
from costdb.pgas import price_groups
from costdb.pgas.applications import histogram, matmul, sobel
from costdb.pgas.partition import partition, remote_groups
from costdb.pgas.references import Spread

PLATFORMS = ("mupc", "mupc-cache", "bupc", "gupc-t3e")
THREADS = (2, 4, 8, 12)

N, T = sym("N"), sym("T")
# The histogram makes 10 % of a million increments on each thread.
PROGRAMS = {
    "histogram": (histogram(N, T), 100_000),
    "matmul": (matmul(N, T, Spread.CYCLIC), 240),
    "sobel": (sobel(N, T), 2000),
}


def main() -> None:
    print("program    array  access  affinity  pattern")
    for name, (interval, _) in PROGRAMS.items():
        for group in partition(interval):
            access = "r" * group.reads + "w" * group.writes
            print(f"{name:10} {group.array:6} {access:7} {group.affinity:9} {group.pattern}")
    print()
    print("program    platform   " + "".join(f"{f'T={t}':>10}" for t in THREADS) + "   seconds")
    for name, (interval, size) in PROGRAMS.items():
        for platform in PLATFORMS:
            priced = price_groups(remote_groups(interval), load_machine(platform))
            if isinstance(priced, Missing):
                raise SystemExit(f"{priced.what}; try: {priced.remedy}")
            times = [evaluate_price(priced, {"N": size, "T": t}).mid for t in THREADS]
            print(f"{name:10} {platform:11}" + "".join(f"{time:10.3f}" for time in times))


if __name__ == "__main__":
    main()
