"""Calibrates several times, verifies and validates after each, and prints tables with medians.

    python -m benchmarks.calibrations --runs 3 --dir DIR [--under "COMMAND"]
    python -m benchmarks.calibrations --from DIR1 DIR2 DIR3

Each run has a data directory of its own below DIR, 1 to K: ``advise calibrate`` (in full),
``advise verify examples --all`` and every section of ``advise validate`` write what they find
there, as JSON. What is there already is not made again, so the same command goes on after an
interruption. ``--from`` measures nothing and prints what directories hold. With ``--under`` each
command is started by another one, such as a site's ``srun -n 1`` or what reserves a machine.
Exit code 1 when a command failed.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sqlite3
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.calibration_tables import Run, markdown

ROOT = Path(__file__).parents[1]
SECTIONS = ("lines", "smp", "sorts", "crossover", "pgas", "choices")
STORE = "advise.sqlite3"
CALIBRATE = "calibrate"


@dataclass(frozen=True, slots=True)
class Step:
    """A command, the file that it leaves, and the exit codes with which it does."""

    title: str
    arguments: tuple[str, ...]
    file: Path
    sound: tuple[int, ...] = (0,)


def main() -> int:
    """Do what is not done, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--dir", type=Path)
    parser.add_argument("--from", dest="given", type=Path, nargs="+", metavar="DIR")
    parser.add_argument("--under", default="", metavar="COMMAND")
    given = parser.parse_args()
    if (given.dir is None) == (given.given is None):
        parser.error("one of --dir and --from is needed")
    folders = given.given or [given.dir / str(number + 1) for number in range(given.runs)]
    missing = [folder for folder in folders if given.given and not folder.is_dir()]
    if missing:
        parser.error(f"{missing[0]}: no such directory")
    sound = given.given is not None or _make(folders, shlex.split(given.under))
    print(markdown([run_in(folder) for folder in folders]), end="")
    return 0 if sound else 1


def steps_in(folder: Path) -> list[Step]:
    """Return what is to be done in a directory, in this order."""
    page, verified = str(folder / "report.html"), folder / "verify.json"
    as_json = ("--output-format", "json", "-o")
    return [
        Step(CALIBRATE, (CALIBRATE, "--report", page), folder / f"{CALIBRATE}.json"),
        # exit code 1: results differ, which the document tells
        Step("verify", ("verify", "examples", "--all", *as_json, str(verified)), verified, (0, 1)),
        *(
            Step(f"validate {name}", ("validate", "--only", name, *as_json, str(file)), file)
            for name in SECTIONS
            for file in [folder / f"validate.{name}.json"]
        ),
    ]


def _make(folders: Sequence[Path], under: Sequence[str]) -> bool:
    """Do all steps that are not done; say which, and whether all went well."""
    work = [(folder, step) for folder in folders for step in steps_in(folder)]
    sound = True
    for number, (folder, step) in enumerate(work, 1):
        # without a profile there is nothing to verify or to validate
        lost = step.title != CALIBRATE and not (folder / f"{CALIBRATE}.json").exists()
        if step.file.exists() or lost:
            continue
        print(f"{number} of {len(work)}: {folder}: {step.title}", file=sys.stderr, flush=True)
        folder.mkdir(parents=True, exist_ok=True)
        sound &= _done(folder, step, under)
    return sound


def _done(folder: Path, step: Step, under: Sequence[str]) -> bool:
    command = [*under, sys.executable, "-m", "advisor", *step.arguments]
    environment = {**os.environ, "ADVISE_DATA_DIR": str(folder.resolve())}
    begin = time.monotonic()
    with (folder / "log.txt").open("a", encoding="utf-8") as log:
        log.write(f"# {step.title}\n")
        log.flush()
        ended = subprocess.run(
            command, cwd=ROOT, env=environment, stdout=log, stderr=log, check=False
        )
    seconds = time.monotonic() - begin
    if ended.returncode not in step.sound:
        print(f"ended with {ended.returncode}: see {folder / 'log.txt'}", file=sys.stderr)
        return False
    if step.title == CALIBRATE:
        _keep(step.file, {"seconds": seconds})
    return True


def _keep(file: Path, document: Mapping[str, Any]) -> None:
    made = file.with_suffix(".new")
    made.write_text(json.dumps(document) + "\n", "utf-8")
    made.replace(file)


def run_in(folder: Path) -> Run:
    """Return what a directory holds."""
    calibrated, verified = (_read(folder / f"{name}.json") for name in ("calibrate", "verify"))
    if calibrated is not None:
        calibrated = {
            **calibrated,
            "others_busy_cores": busiest_launch(folder / STORE),
        }
    sections = {
        section["name"]: section
        for file in sorted(folder.glob("validate*.json"))
        for section in (_read(file) or {"sections": ()})["sections"]
        if section["rows"]
    }
    return Run(folder.name, calibrated, verified, sections)


def busiest_launch(store: Path) -> float | None:
    """Return how many cores others kept busy in the launch that they disturbed most."""
    if not store.exists():
        return None
    with closing(sqlite3.connect(f"{store.resolve().as_uri()}?mode=ro", uri=True)) as connection:
        rows = connection.execute("SELECT document FROM results WHERE command = 'calibrate'")
        launches = [one for (document,) in rows for one in json.loads(document)["launches"]]
    kept = [launch["setting"].get("others_busy_cores") for launch in launches]
    return max((cores for cores in kept if cores is not None), default=None)


def _read(file: Path) -> Any:
    return json.loads(file.read_text("utf-8")) if file.exists() else None


if __name__ == "__main__":
    sys.exit(main())
