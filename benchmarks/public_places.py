"""What is told of places in public code that a reader noted before the tool ran on them.

    python -m benchmarks.public_places FOLDER [--machine node2026] [--gaps 20]

``public_places.jsonl`` holds the places: repository, commit, lines, whether they are worth a
comment, and which one. They were noted by four readers who had not seen the tool; 377 carry what
was measured of them, or of a place like them. FOLDER holds the repositories, each in ``owner+name``
and at its commit. A place counts as told where a finding begins in it: whether the comment is the
right one, only a reader can say.

With ``--gaps`` FOLDER is any: it prints why lines in it are not understood, by how often.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

PLACES = Path(__file__).with_suffix(".jsonl")
_NAME = re.compile("`[^`]*`")
_AROUND = 2
"""Lines before a place at which a finding about it may begin: decorators, comments."""

Place = Mapping[str, Any]


def report(file: Path, machine: str) -> Mapping[str, Any]:
    """Return what is told of a file."""
    command = (sys.executable, "-m", "advisor", str(file), "--machine", machine, "--no-cache")
    ended = subprocess.run(
        (*command, "--output-format", "json"), capture_output=True, text=True, check=False
    )
    if ended.returncode == 2 and not ended.stdout:
        # of Python 2, for one
        print(ended.stderr.strip())
        return {"findings": (), "coverage": {"not_understood": ()}}
    told: Mapping[str, Any] = json.loads(ended.stdout)
    return told


def print_gaps(reports: Iterable[Mapping[str, Any]], most: int) -> None:
    """Print the reasons for which most lines are not understood, each with one of them."""
    gaps = [gap for one in reports for gap in one["coverage"]["not_understood"]]
    # of what else is not understood for it, the first one says why
    causes = [gap for gap in gaps if "since line" not in gap["reason"]]
    shown = {_NAME.sub("`_`", gap["reason"]): gap for gap in causes}
    counts = Counter(_NAME.sub("`_`", gap["reason"]) for gap in causes)
    for reason, times in counts.most_common(most):
        gap = shown[reason]
        print(f"{times:5}  {reason}\n       {gap['path']}:{gap['line']} {gap['text'][:80]}")
    print(f"{len(gaps)} lines are not understood")


def main() -> None:
    """Print how many places are told, and those that are not worth it by name."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--machine", default="node2026")
    parser.add_argument("--gaps", type=int, default=0)
    asked = parser.parse_args()
    told = partial(report, machine=asked.machine)
    if asked.gaps:
        with ThreadPoolExecutor(2) as pool:
            print_gaps(pool.map(told, sorted(asked.folder.rglob("*.py"))), asked.gaps)
        return
    places: list[Place] = [json.loads(line) for line in PLACES.read_text("utf-8").splitlines()]

    def file_of(place: Place) -> Path:
        folder: Path = asked.folder
        return folder / place["repository"].replace("/", "+") / place["file"]

    files = sorted({file_of(place) for place in places})
    missing = [file for file in files if not file.is_file()]
    if missing:
        raise SystemExit(f"{missing[0]}: no such file; {len(missing)} of {len(files)} are missing")
    with ThreadPoolExecutor(2) as pool:
        reports = pool.map(told, files)
        found = {file: one["findings"] for file, one in zip(files, reports, strict=True)}
    counts: Counter[tuple[bool, str]] = Counter()
    for place in places:
        rows = range(place["line"] - _AROUND, place["last"] + 1)
        here = [one for one in found[file_of(place)] if one["location"]["row"] in rows]
        classes = {one["verdict"] for one in here}
        counts[place["worth"], "gain" if "gain" in classes else "uncertain" if here else ""] += 1
        if here and not place["worth"]:
            codes = ", ".join(f"{one['code']} {one['verdict']}" for one in here)
            print(f"not worth it: {file_of(place)}:{place['line']} {place['kind']}: {codes}")
    for worth, what in ((True, "worth a comment"), (False, "not worth one")):
        of = {kind: counts[worth, kind] for kind in ("gain", "uncertain")}
        total = sum(count for (which, _), count in counts.items() if which is worth)
        print(f"{what}: {sum(of.values())} of {total} told, {of['gain']} as clear gains")
    print(f"findings in these {len(files)} files: {sum(map(len, found.values()))}")


if __name__ == "__main__":
    main()
