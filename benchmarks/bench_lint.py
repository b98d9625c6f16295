"""Whole-process times of ``advise`` beside ``ruff check`` and ``fixit lint``.

    python benchmarks/bench_lint.py [--rounds 9] [--files 1000]

Programs take turns within a round, in another order each time, so that a busy moment of the
machine hits all of them. Medians are shown, of the time that passed and of the processors' time,
and the ratio of the latter to that of ``advise``. Only the ratios travel to other machines.
What takes more than twenty seconds is run once. fixit is no dependency: install it by hand, and
below each table stands which part of its time ``advise`` takes, and how many modules it loads.

The three do different work: ruff is compiled and looks at syntax, fixit parses with LibCST as
``advise`` does and runs a visitor for each of its rules, ``advise`` parses only files with a mark,
and prices what it finds there.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parent.parent
OWN = "advise"
SLOW_S = 20.0
ROOMS = ("advisor", "costdb", "transforms", "machine_profiles")

# Some 50 lines without a mark, as most files of a project are.
PLAIN = '''\
"""A module that has nothing to do with distributed arrays."""

from __future__ import annotations

import math


class Account{n}:
    """Keeps a balance."""

    def __init__(self, owner: str, balance: float = 0.0) -> None:
        self.owner = owner
        self.balance = balance
        self.history: list[float] = []

    def deposit(self, amount: float) -> None:
        """Add money."""
        if amount <= 0 or not math.isfinite(amount):
            raise ValueError(f"cannot deposit {{amount}}")
        self.balance += amount
        self.history.append(amount)

    def withdraw(self, amount: float) -> None:
        """Take money out."""
        if amount > self.balance:
            raise ValueError(f"{{self.owner}} has only {{self.balance}}")
        self.balance -= amount
        self.history.append(-amount)

    def interest(self, rate: float, years: int) -> float:
        """Return what the balance would earn."""
        return self.balance * ((1 + rate) ** years - 1)


def total(accounts: list[Account{n}]) -> float:
    """Return the sum of all balances."""
    return math.fsum(account.balance for account in accounts)


def largest(accounts: list[Account{n}]) -> Account{n} | None:
    """Return the account with the largest balance."""
    return max(accounts, key=lambda account: account.balance, default=None)


if __name__ == "__main__":
    ours = [Account{n}("a", 1.0), Account{n}("b", 2.0)]
    for one in ours:
        one.deposit({n} + 1.0)
    print(total(ours), largest(ours))
'''


@dataclass(frozen=True, slots=True)
class Case:
    """Commands to compare, by name; the first one is ours."""

    title: str
    commands: Mapping[str, Sequence[str]]


def program(name: str) -> str | None:
    """Return the path of a program beside this Python, or on the path."""
    beside = Path(sys.executable).with_name(name)
    return str(beside) if beside.exists() else shutil.which(name)


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds that passed, and seconds of all processors."""

    passed_s: float
    used_s: float


def run(command: Sequence[str], folder: Path) -> Times:
    """Return what a command takes; findings are no failure, anything else is."""
    environment = {
        name: value
        for name, value in os.environ.items()
        # whoever forbids bytecode makes Python programs compile themselves each time
        if name != "PYTHONDONTWRITEBYTECODE" and not name.startswith("ADVISE_")
    }
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    ended = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    passed = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if ended.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(command)} ended with {ended.returncode}:\n{ended.stderr}")
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Times(passed, used)


def measured(case: Case, folder: Path, rounds: int) -> Mapping[str, Times]:
    """Return the median times of every command of a case."""
    # once before the medians: caches, and bytecode
    first = {name: run(command, folder) for name, command in case.commands.items()}
    order = [name for name, times in first.items() if times.passed_s <= SLOW_S]
    runs: dict[str, list[Times]] = {name: [] for name in order}
    shuffle = random.Random(1).shuffle
    for _ in range(rounds):
        shuffle(order)
        for name in order:
            runs[name].append(run(case.commands[name], folder))
    return {name: _median(runs[name]) if name in runs else first[name] for name in first}


def _median(runs: Sequence[Times]) -> Times:
    return Times(median(one.passed_s for one in runs), median(one.used_s for one in runs))


def modules_loaded(folder: Path) -> int:
    """Return how many modules of this project a run over the file with a kernel imports."""
    program = (
        "import sys\n"
        "from advisor.cli.app import main\n"
        "main('kernel.py --machine t3e --isolated --no-cache --output-file=out'.split())\n"
        f"print(sum(name.partition('.')[0] in {ROOMS} for name in sys.modules))"
    )
    run = [sys.executable, "-c", program]
    ended = subprocess.run(run, cwd=folder, capture_output=True, text=True, check=True)
    return int(ended.stdout)


def cases(count: int) -> tuple[list[Case], list[str]]:
    """Return what to compare, and the names of programs that are not installed."""
    found = {name: program(name) for name in (OWN, "ruff", "fixit")}
    missing = [name for name, path in found.items() if path is None]
    own = [found[OWN] or OWN, "--machine", "t3e", "--isolated"]
    others: dict[str, list[str]] = {}
    if found["ruff"]:
        others["ruff check --no-cache"] = [found["ruff"], "check", "--isolated", "--no-cache"]
        others["ruff check"] = [found["ruff"], "check", "--isolated"]
    if found["fixit"]:
        others["fixit lint"] = [found["fixit"], "lint"]

    def beside(path: str, *ours: tuple[str, list[str]]) -> Mapping[str, list[str]]:
        return {
            **{name: [*own, *options, path] for name, options in ours},
            **{name: [*command, path] for name, command in others.items()},
        }

    uncached, cached = ("advise --no-cache", ["--no-cache"]), ("advise, from the cache", [])
    return [
        Case("a file with a kernel", beside("kernel.py", uncached, cached)),
        Case("a file without a mark", beside("plain.py", ("advise", []))),
        Case(f"{count} files without a mark", beside("many", ("advise", []))),
    ], missing


def main() -> None:
    """Run the benchmark and print its table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--files", type=int, default=1000)
    given = parser.parse_args()
    compared, missing = cases(given.files)
    if OWN in missing:
        raise SystemExit("advise is not installed beside this Python")
    for name in missing:
        print(f"{name} is not installed, and left out")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "kernel.py").write_text((ROOT / "examples" / "box_sum.py").read_text())
        (folder / "plain.py").write_text(PLAIN.format(n=0))
        (folder / "many").mkdir()
        for number in range(given.files):
            (folder / "many" / f"m{number}.py").write_text(PLAIN.format(n=number))
        for case in compared:
            # the large case takes long, and is steady for that
            rounds = given.rounds if "many" not in str(case.commands) else max(3, given.rounds // 3)
            medians = measured(case, folder, rounds)
            ours = next(iter(medians.values())).used_s
            print(f"\n{case.title}, median of {rounds}:")
            print(f"  {'':<24} {'passed':>12} {'processors':>12}")
            for command, times in medians.items():
                print(
                    f"  {command:<24} {1e3 * times.passed_s:9.1f} ms {1e3 * times.used_s:9.1f} ms"
                    f"   {times.used_s / ours:6.2f}x",
                    flush=True,
                )
            if (fixit := medians.get("fixit lint")) is not None:
                mine = next(iter(medians.values()))
                print(
                    f"  advise takes {mine.used_s / fixit.used_s:.2f} of what fixit does"
                    f" ({mine.passed_s / fixit.passed_s:.2f} of the time that passes)"
                )
        print(f"\n{modules_loaded(folder)} modules of ours are loaded for the kernel")


if __name__ == "__main__":
    main()
