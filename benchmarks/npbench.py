"""NPBench's programs, run and measured in pieces side by side, in one go.

``python -m benchmarks.npbench FOLDER [--size S] [--numba] [--launches 5] [NAME ...]``: FOLDER is a
checkout of NPBench (https://github.com/spcl/npbench), of which nothing is kept here. Each of its
NumPy programs, or of those for numba, is written as a script that makes its data with NPBench's own
initialiser and calls its kernel three times; the first call does not count. The script is run as it
is, and sampled, in turn; a program takes as long as its fastest call, as other guests of a shared
machine make any run longer and none shorter.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from advisor.measure.language import Refused, sampled_file
from advisor.measure.pieces import Effort, NoPiece, Piece, sample

CALLS = 3
MARK = "@@times "


@dataclass(frozen=True, slots=True)
class Row:
    """A program: seconds of a call, run and sampled; seconds that sampling took; or why not.

    `again_s`, where it is known, is what other runs of it say.
    """

    name: str
    run_s: float
    low_s: float = 0.0
    mid_s: float = 0.0
    high_s: float = 0.0
    run_in_all_s: float = 0.0
    spent_s: float = 0.0
    why: str = ""
    again_s: float = 0.0

    @property
    def error(self) -> float:
        """How far the sampled time is from the other, as a part of it."""
        return abs(self.mid_s / self.run_s - 1)

    def line(self) -> str:
        """Return it in a line."""
        if self.why:
            return f"{self.name:32} {self.run_s:9.4f} s  not priced: {self.why}"
        interval = f"({self.low_s:.4f} to {self.high_s:.4f})"
        inside = "" if self.low_s <= self.run_s <= self.high_s else "  outside"
        times = f"{self.run_s:9.4f} s  sampled {self.mid_s:9.4f} s {interval}"
        return f"{self.name:32} {times}  ratio {self.mid_s / self.run_s:5.2f}{inside}"


def programs(folder: Path, kind: str, names: Sequence[str]) -> Iterator[tuple[Any, Path]]:
    """Yield what NPBench says of each program, and its file."""
    for document in sorted((folder / "bench_info").glob("*.json")):
        info = json.loads(document.read_text())["benchmark"]
        room = folder / "npbench" / "benchmarks" / info["relative_path"]
        for file in sorted(room.glob(f"{info['module_name']}_{kind}*.py")):
            if not names or document.stem in names or file.stem in names:
                yield info, file


def scripts(info: Any, file: Path, size: str) -> tuple[str, str, list[int]]:
    """Return a script to sample, one that times itself, and the lines of the former's calls."""
    made = file.with_name(f"{info['module_name']}.py")
    text = made.read_text() if info.get("init") and made.exists() else ""
    text += "\n" + file.read_text() + "\n"
    text += "".join(f"{key} = {value!r}\n" for key, value in info["parameters"][size].items())
    begin, init = "", info.get("init")
    if init:
        results, given = ", ".join(init["output_args"]), ", ".join(init["input_args"])
        begin = f"{results} = {init['func_name']}({given})\n"
    call = f"{info['func_name']}({', '.join(info['input_args'])})\n"
    plain, timed, lines = text, text + "import time as _t\n_found = []\n", []
    for _ in range(CALLS):
        plain += begin + call
        lines.append(plain.count("\n"))
        timed += f"{begin}_begin = _t.perf_counter()\n{call}"
        timed += "_found.append(_t.perf_counter() - _begin)\n"
    return plain, timed + f"print({MARK!r} + repr(_found))\n", lines


def run(script: str, folder: Path) -> list[float]:
    """Run a script that times itself; return the seconds of its calls."""
    file = folder / "timed.py"
    file.write_text(script)
    command = [sys.executable, "-W", "ignore", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    _, mark, found = done.stdout.partition(MARK)
    if not mark:
        raise RuntimeError((done.stderr.strip().splitlines() or ["did not run"])[-1])
    times: list[float] = json.loads(found.strip())
    return times


def row(info: Any, file: Path, size: str, launches: int) -> Row:
    """Run and sample one program, in turn."""
    name = file.stem.removesuffix("_numpy")
    plain, timed, lines = scripts(info, file, size)
    runs: list[list[float]] = []
    pieces: list[Piece] = []
    why = ""
    with TemporaryDirectory() as room:
        for _ in range(launches):
            try:
                runs.append(run(timed, Path(room)))
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                return Row(name, 0.0, why=f"does not run here: {error}")
            if why:
                continue
            try:
                program = sampled_file(f"{name}.py", plain, {})
            except Refused as refused:
                why = str(refused)
                continue
            (found,) = sample([(program, {})], Effort(launches=1))
            if isinstance(found, NoPiece):
                why = f"line {found.line}: {found.why}"
            else:
                pieces.append(found)
    truth = min(min(times[1:]) for times in runs)
    if why:
        return Row(name, truth, why=why)
    parts = [one.parts_s[line] for one in pieces for line in lines[1:]]
    return Row(
        name,
        truth,
        min(low for low, _, _ in parts),
        min(mid for _, mid, _ in parts),
        median(high for _, _, high in parts),
        median(sum(times) for times in runs),
        median(one.spent_s for one in pieces),
    )


def summary(rows: Sequence[Row]) -> Iterator[str]:
    """Yield what all of them say."""
    ran = [one for one in rows if one.run_s]
    priced = sorted((one for one in ran if not one.why), key=lambda one: one.error)
    yield f"priced {len(priced)} of {len(ran)} that run"
    if not priced:
        return
    errors = [one.error for one in priced]
    far = errors[int(0.9 * len(errors))]
    yield f"error: median {median(errors):.0%}, 90th percentile {far:.0%}"
    inside = sum(one.low_s <= one.run_s <= one.high_s for one in priced)
    yield f"inside the interval: {inside} of {len(priced)}"
    widths = [(one.high_s - one.low_s) / 2 / one.mid_s for one in priced]
    yield f"half-width of the interval: median {median(widths):.0%}"
    long = [one for one in priced if one.run_s > 1]
    if long:
        spent = sum(one.spent_s for one in long) / sum(one.run_in_all_s for one in long)
        yield f"sampling took {spent:.0%} of the run time of the {len(long)} that run over 1 s"
    yield "worst: " + ", ".join(f"{one.name} {one.mid_s / one.run_s:.2f}" for one in priced[-5:])


def main(arguments: Any = None) -> None:
    """Print a line for each program, and what all of them say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--size", default="S")
    parser.add_argument("--numba", action="store_true")
    parser.add_argument("--launches", type=int, default=5)
    parser.add_argument("names", nargs="*")
    given = parser.parse_intermixed_args(arguments)
    rows: list[Row] = []
    kind = "numba" if given.numba else "numpy"
    for info, file in programs(given.folder, kind, given.names):
        one = row(info, file, given.size, given.launches)
        rows.append(one)
        print(one.line(), flush=True)
    for line in summary(rows):
        print(line)


if __name__ == "__main__":
    main()
