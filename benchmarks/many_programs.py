"""Ten thousand generated programs, rewritten by every rule with an edit, run before and after.

Run from the project's directory: ``python -m benchmarks.many_programs``. Of every program: results
are equal bit for bit where the rewrite says that it is safe and within its tolerance elsewhere,
comments are kept, nothing is proposed twice, and reading the rewritten source gives the variant
that was proposed. SPMD programs run under mpiexec on two ranks, many in one run; what they
propose is steps and not a kernel, so of them the rewritten source is read again and must leave
nothing to say.

Slices: ``--part 3/10`` does every tenth part, each with seeds of its own. Shown are programs by
family and rewrites by rule; the exit code is 1 when anything does not hold.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.transforms.generated.families import FAMILIES, Family, check_exchanges
from tests.transforms.generated.message_programs import Exchanging, exchanging

BATCH = 60
"""SPMD programs in one run of mpiexec."""

RANKS = 2
EXCHANGES = "messages"


class Progress:
    """A bar on a terminal, nothing elsewhere."""

    def __init__(self, name: str, total: int) -> None:
        self.name, self.total, self.done = name, total, 0

    def step(self, count: int = 1) -> None:
        """Count programs that are done."""
        self.done += count
        if sys.stderr.isatty() and (self.done % 20 == 0 or self.done >= self.total):
            filled = 30 * min(self.done, self.total) // max(self.total, 1)
            bar = "#" * filled + "." * (30 - filled)
            end = "\n" if self.done >= self.total else ""
            print(f"\r{self.name:<24} {bar} {self.done}/{self.total}", end=end, file=sys.stderr)


def drawn(
    strategy: st.SearchStrategy[Any], count: int, start: int, use: Callable[[Any, int], None]
) -> None:
    """Call `use` with so many programs that it accepts, and a number for its arguments."""

    @seed(start)
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy, st.integers(0, 2**32))
    def run(made: Any, number: int) -> None:
        use(made, number)

    run()


def check_family(family: Family, count: int, start: int) -> Counter[str]:
    """Check so many programs of a family; return rewrites by rule."""
    rewrites, progress = Counter[str](), Progress(family.name, count)

    def use(made: Any, number: int) -> None:
        rewrites.update(family.check(made, number))
        rewrites["programs"] += 1
        progress.step()

    drawn(family.programs, count, start, use)
    return rewrites


def check_messages(count: int, start: int) -> Counter[str]:
    """Check so many SPMD programs; return rewrites by rule."""
    rewrites, progress = Counter[str](), Progress(EXCHANGES, count)
    made: list[Exchanging] = []
    drawn(exchanging(), count, start, lambda one, _: made.append(one))
    for first in range(0, len(made), BATCH):
        with tempfile.TemporaryDirectory() as folder:
            part = made[first : first + BATCH]
            rewrites.update(check_exchanges(Path(folder), part, RANKS))
        rewrites["programs"] += len(part)
        progress.step(len(part))
    return rewrites


def main() -> int:
    """Check and print a table; 1 when anything does not hold."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--programs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--part", default="1/1", help="K/N: one of N parts")
    names = [family.name for family in FAMILIES] + [EXCHANGES]
    parser.add_argument("--family", action="append", choices=names, help="only these")
    given_ = parser.parse_args()
    part, parts = map(int, given_.part.split("/"))
    chosen = given_.family or names
    count = -(-given_.programs // (len(chosen) * parts))
    start = given_.seed + 1000 * (part - 1)
    print(f"{given_.programs} programs, part {part} of {parts}, seed {given_.seed}")
    rewrites, failed = Counter[str](), 0
    for name in chosen:
        family = next((one for one in FAMILIES if one.name == name), None)
        began = time.monotonic()
        try:
            found = (
                check_messages(count, start)
                if family is None
                else check_family(family, count, start)
            )
        except Exception:
            failed += 1
            print(f"{name}: FAILED")
            traceback.print_exc(limit=-3, file=sys.stdout)
            continue
        took = time.monotonic() - began
        print(f"{name:<24} {found.pop('programs'):>6} programs, {took:.0f} s", flush=True)
        rewrites.update(found)
    for code, number in sorted(rewrites.items()):
        print(f"  {code} {number:>6} programs rewritten")
    print(f"{failed} families failed" if failed else "everything holds")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
