"""Kills ``advise calibrate`` at random moments, and looks at what is left each time.

    python benchmarks/bench_calibration_kills.py [--kills 100] [--seed 1] [--section NAME]...

Sections are calibrated in turn, all of them where none is named. After each kill the store must
pass SQLite's integrity check and hold every sample that it held before, and ``advise machine
list`` must work. In the end the last calibration is resumed and its profile must load, of two that
are begun at once one must be refused, and no rank of a killed run may be left. Exit code 1 when
any of that does not hold.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import closing, suppress
from pathlib import Path

from costdb.calibration.section import SECTIONS

LONGEST_S = 9.0
PATIENCE_S = 45.0
STORE = "advise.sqlite3"


def main() -> int:
    """Kill, look, and print a line for each failure and one for all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--section", action="append", choices=SECTIONS)
    given = parser.parse_args()
    source = random.Random(given.seed)
    failures, rows, landed = 0, 0, Counter[str]()
    sections = given.section or [*SECTIONS]
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "ADVISE_DATA_DIR": folder}
        command = calibration_of(sections[-1])
        for number in range(given.kills):
            section = sections[number % len(sections)]
            command = calibration_of(section)
            kill_after(source.uniform(0, LONGEST_S), command, environment)
            problem, found = state(Path(folder) / STORE, environment)
            if not problem and found < rows:
                problem = f"{rows} samples before, {found} after"
            if problem:
                failures += 1
                print(f"kill {number + 1}, of {section}: {problem}")
            landed[section] += found > rows
            rows = max(rows, found)
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        resumed = "resuming" in done.stderr
        if done.returncode:
            failures += 1
            print(f"the run after the kills ended with {done.returncode}: {done.stderr}")
        refused = two_at_once(command, environment)
        if refused != 1:
            failures += 1
            print(f"of two at once {refused} were refused")
        shown = subprocess.run(
            [sys.executable, "-m", "advisor", "machine", "show", "here"],
            env=environment,
            capture_output=True,
            check=False,
        )
        failures += shown.returncode != 0
        left = left_after(PATIENCE_S, folder)
        if left:
            failures += 1
            print(f"still running: {', '.join(map(str, left))}")
    print(
        f"{given.kills} kills, {landed.total()} of them after new samples "
        f"({', '.join(f'{name} {count}' for name, count in landed.items())}); {rows} samples kept; "
        f"resumed: {'yes' if resumed else 'no'}; failures: {failures}"
    )
    return 1 if failures else 0


def calibration_of(section: str) -> list[str]:
    """Return the command that calibrates a section."""
    return [sys.executable, "-m", "advisor", "calibrate", "--quick", "--only", section]


def two_at_once(command: list[str], environment: dict[str, str]) -> int:
    """Begin two calibrations into one store, and return how many of them are refused for that."""
    both = [
        subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    said = [process.communicate()[1] for process in both]
    return sum(
        process.returncode == 2 and "another calibration is running" in text
        for process, text in zip(both, said, strict=True)
    )


def kill_after(seconds: float, command: list[str], environment: dict[str, str]) -> None:
    """Start a calibration and kill it, without a word, after so long."""
    process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    time.sleep(seconds)
    process.send_signal(signal.SIGKILL)
    process.wait()


def left_after(seconds: float, folder: str) -> list[int]:
    """Return the processes of these calibrations that do not end in time, where one can see."""
    end = time.monotonic() + seconds
    while (left := processes_of(folder)) and time.monotonic() < end:
        time.sleep(0.5)
    return left


def processes_of(folder: str) -> list[int]:
    """Return the processes that were started with a data directory."""
    mark = f"ADVISE_DATA_DIR={folder}".encode()
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if mark in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
    return found


def state(store: Path, environment: dict[str, str]) -> tuple[str, int]:
    """Return what is wrong with the store, and how many samples it has."""
    listed = subprocess.run(
        [sys.executable, "-m", "advisor", "machine", "list"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode or "t3e" not in listed.stdout:
        return f"advise machine list ended with {listed.returncode}: {listed.stderr}", 0
    if list(store.parent.glob("*.damaged-*")):
        return "the store was set aside as damaged", 0
    if not store.exists():
        return "", 0
    with closing(sqlite3.connect(store)) as connection:
        sound = connection.execute("PRAGMA integrity_check").fetchall()
        if sound != [("ok",)]:
            return f"integrity check: {sound}", 0
        if not connection.execute("PRAGMA user_version").fetchone()[0]:
            return "", 0
        return "", connection.execute("SELECT count(*) FROM samples").fetchone()[0]


if __name__ == "__main__":
    sys.exit(main())
