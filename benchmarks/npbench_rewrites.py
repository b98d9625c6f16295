"""NPBench's NumPy programs as they are, beside what ``advise --fix`` makes of them.

``python -m benchmarks.npbench_rewrites FOLDER [--size S] [--safe] [--launches 3] [NAME ...]``:
FOLDER is a checkout of NPBench (https://github.com/spcl/npbench), of which nothing is kept here.
Each program is written as a script that makes its data with NPBench's own initialiser and calls its
kernel three times. One ``advise run`` sees what it is called with, ``advise --fix`` (with unsafe
fixes, but for ``--safe``) edits a copy, and both run in turn; the fastest call counts. What the
last call returns, and leaves in its arguments, has to agree as NPBench asks of other frameworks:
each element, or the norm of the difference, to one part in 10**5.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.npbench import MARK, programs, scripts

_SAVED = """
import pickle as _p, numpy as _n
_left = [value for value in (_returned, {given}) if value is not None]
_flat = [one for value in _left for one in (value if isinstance(value, tuple) else [value])]
_p.dump([_n.asarray(one) for one in _flat], open({file!r}, "wb"))
"""


@dataclass(frozen=True, slots=True)
class Row:
    """A program: seconds of a call before and after, whether it was edited and results agree.

    `least` and `most` are the bounds of what its edits together were predicted to gain.
    """

    name: str
    before_s: float
    after_s: float
    edited: bool
    predicted: str
    equal: bool
    why: str = ""
    least: float = 1.0
    most: float = 1.0

    @property
    def gain(self) -> float:
        """How many times faster it became."""
        return self.before_s / self.after_s if self.edited and not self.why else 1.0

    @property
    def is_inside(self) -> bool:
        """Whether it became as much faster as was predicted, within the interval."""
        return self.least <= self.gain <= self.most

    def line(self) -> str:
        """Return it in a line."""
        if self.why:
            return f"{self.name:28} {self.why}"
        if not self.edited:
            return f"{self.name:28} {1e3 * self.before_s:10.3f} ms  no edit"
        equal = "" if self.equal else "  WRONG RESULT"
        equal += "" if self.is_inside else "  outside its interval"
        times = f"{1e3 * self.before_s:10.3f} ms -> {1e3 * self.after_s:10.3f} ms"
        return f"{self.name:28} {times}  {self.gain:7.2f}x  predicted {self.predicted}{equal}"


def advised(arguments: list[str], home: Path) -> subprocess.CompletedProcess[str]:
    """Run the command line with a store of its own, on the machine that is calibrated here."""
    command = [sys.executable, "-m", "advisor", *arguments]
    environment = {**os.environ, "ADVISE_DATA_DIR": str(home)}
    return subprocess.run(
        command, capture_output=True, text=True, timeout=600, check=False, env=environment
    )


def row(info: Any, file: Path, size: str, launches: int, home: Path, *, safe: bool) -> Row:
    """Advise on one program, and run it before and after."""
    name = file.stem.removesuffix("_numpy")
    plain, timed, _ = scripts(info, file, size)
    given = ", ".join(info["input_args"])
    call = f"{info['func_name']}({given})\n"
    with TemporaryDirectory() as folder:
        script = Path(folder) / f"{name}.py"
        script.write_text(plain)
        seen = advised(["run", str(script)], home)
        if seen.returncode:
            return Row(name, 0, 0, False, "", False, f"does not run: {seen.stderr.strip()[-60:]}")
        told = advised([str(script), "--machine", "here", "--output-format", "json"], home)
        findings = json.loads(told.stdout)["findings"] if told.returncode in (0, 1) else []
        predicted = ", ".join(
            f"{one['code']} {one['prediction']['speedup']:.1f}x"
            for one in findings
            if one["prediction"]
        )
        more = [] if safe else ["--unsafe-fixes"]
        offered = [one["fix"] and one["fix"]["applicability"] != "display" for one in findings]
        made = [one["prediction"] for one in compress(findings, offered) if one["prediction"]]
        ends = [math.prod(one[end] for one in made) for end in ("low", "high")]
        advised([str(script), "--machine", "here", "--fix", *more], home)
        fixed = script.read_text()
        edits = fixed != plain
        texts = {"before": timed}
        if edits:
            texts["after"] = _timed(fixed, timed, plain)
        times: dict[str, list[float]] = {which: [] for which in texts}
        for launch in range(launches):
            for which, text in texts.items():
                end = ""
                if launch == 0:
                    left = str(Path(folder) / which)
                    end = _SAVED.format(given=given, file=left)
                once = text.replace(call, f"_returned = {call}")
                found = _run(once + end, Path(folder) / "timed.py")
                if isinstance(found, str):
                    return Row(name, 0, 0, edits, predicted, False, f"{which}: {found}")
                times[which] += found[1:]
        before_s = min(times["before"])
        if not edits:
            return Row(name, before_s, before_s, False, predicted, True)
        equal = _equal(Path(folder) / "before", Path(folder) / "after")
        return Row(name, before_s, min(times["after"]), True, predicted, equal, "", *ends)


def _timed(fixed: str, timed: str, plain: str) -> str:
    """Return the script that times itself with the functions that were edited."""
    # both begin with the program, and differ in how they call it
    same = next(n for n, (one, other) in enumerate(zip(plain, timed, strict=False)) if one != other)
    return fixed[: len(fixed) - (len(plain) - same)] + timed[same:]


def _run(text: str, file: Path) -> list[float] | str:
    file.write_text(text)
    command = [sys.executable, "-W", "ignore", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    _, mark, found = done.stdout.partition(MARK)
    if not mark:
        return (done.stderr.strip().splitlines() or ["did not run"])[-1]
    times: list[float] = json.loads(found.splitlines()[0])
    return times


def _equal(one: Path, other: Path) -> bool:
    import pickle

    import numpy as np

    # both were written by scripts that this wrote
    left, right = (pickle.loads(file.read_bytes()) for file in (one, other))
    return len(left) == len(right) and all(
        a.shape == b.shape
        and (
            np.allclose(a, b, 1e-5, 1e-8, equal_nan=True)
            or np.linalg.norm(a - b) < 1e-5 * np.linalg.norm(a)
        )
        for a, b in zip(left, right, strict=True)
        if a.dtype.kind in "biufc"
    )


def main(arguments: Any = None) -> None:
    """Print a line for each program, and the geometric means."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--size", default="S")
    parser.add_argument("--safe", action="store_true")
    parser.add_argument("--launches", type=int, default=3)
    parser.add_argument("names", nargs="*")
    given = parser.parse_intermixed_args(arguments)
    rows = []
    with TemporaryDirectory() as folder:
        home = _store(Path(folder))
        for info, file in programs(given.folder, "numpy", given.names):
            rows.append(row(info, file, given.size, given.launches, home, safe=given.safe))
            print(rows[-1].line(), flush=True)
    print(*summary({one.name: one for one in rows}), sep="\n")


def _store(folder: Path) -> Path:
    """Return a store that holds this machine's calibration and nothing else."""
    from costdb.machines import load_machine

    profile = folder / "here.json"
    profile.write_text(json.dumps(load_machine("here").document))
    home = folder / "data"
    done = advised(["machine", "import", str(profile)], home)
    if done.returncode:
        sys.exit(f"{done.stderr.strip()}\ncalibrate this machine first: advise calibrate --quick")
    return home


def summary(rows: Mapping[str, Row]) -> list[str]:
    """Return what all of them say."""
    ran = [one for one in rows.values() if not one.why]
    edited = sorted((one for one in ran if one.edited), key=lambda one: one.gain)
    mean = math.exp(sum(math.log(one.gain) for one in ran) / len(ran)) if ran else 1.0
    wrong = [one.name for one in edited if not one.equal]
    slower = [f"{one.name} {one.gain:.2f}x" for one in edited if one.gain < 0.97]
    return [
        f"{len(edited)} of {len(ran)} edited; {mean:.2f} times faster in the geometric mean of all",
        f"inside the interval that was predicted: {sum(one.is_inside for one in edited)}",
        f"wrong results: {', '.join(wrong) or 'none'}; slower: {', '.join(slower) or 'none'}",
    ]


if __name__ == "__main__":
    main()
