"""What the tool decides for many programs on many machines: frozen, compared and frozen again.

Run from the project's directory: ``python -m tests.decision_corpus`` tells which decisions differ
from those in ``tests/data/decisions``, ``--update`` freezes those of today. Words after that choose
programs by parts of their names.

A decision is what is found in one program for one machine: codes, lines, titles of the winning
proposals, their order, speed-ups, and what the edits make of the program. Of pairs that no rule
makes it is which one is faster, and of descriptions what `choose` puts first. Machines are the
shipped profiles and one frozen calibration; nothing is asked of the host or of its user's store.
Of what a report says nothing is frozen but titles: `decided` is the only place that reads findings.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from functools import cache, lru_cache
from io import StringIO
from itertools import groupby
from pathlib import Path
from typing import Any

from advisor.cli.app import main as main_of_advise
from advisor.engine import (
    PLAIN_GAIN,
    FileResult,
    Options,
    ReadFile,
    check_read,
    needs_reading,
    rank_kernel,
    read_file,
)
from advisor.finding import GAIN_FROM, Finding, Remark, Verdict
from advisor.frontend.kernels import read_kernels
from advisor.ir.kernel import at_sizes
from advisor.ranking.compare import bind_sizes, compared, cost
from advisor.ranking.worth import as_one_process
from advisor.source import SourceProblem, apply_edits
from costdb.evaluate import Missing
from costdb.expr import ExprError
from costdb.machines import MachineError, built_in_names, load_machine

ROOT = Path(__file__).parent.parent
FROZEN = ROOT / "tests" / "data" / "decisions"
CALIBRATED = "calibrated"
TIMES_MAY_MOVE = 1.15
"""Speed-ups may differ by this factor: models get better, decisions stay."""
ENDS_MAY_MOVE = 2.0
"""The same of sizes from which on a suggestion pays, which move far where times move little."""
AGAIN = "python -m tests.decision_corpus --update, and say in the commit why they change"

Record = dict[str, Any]
"""A decision as one line of a file, see `decided`."""


@dataclass(frozen=True, eq=False)
class Program:
    """A program of the corpus, equal to itself alone.

    Attributes
    ----------
    name : str
        Its path from the project's directory, or what it was drawn as.
    kind : str
        Which file of decisions it is in.
    sizes : mapping of str to int
        What a user would give by ``-D``.
    text : str
        Its source, where no file has it.
    other : str
        Another program that comes to the same, which no rule makes of this one.
    plans : bool
        Whether plans of several steps are frozen too; they take a search.
    choice : tuple of str
        Arguments of ``advise choose`` where it is a description, not a program.
    """

    name: str
    kind: str
    sizes: Mapping[str, int] = field(default_factory=dict)
    text: str = ""
    other: str = ""
    plans: bool = False
    choice: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """What tells it from the same file with other sizes."""
        # what was drawn has a name of its own
        sizes = {} if self.text else self.sizes
        return " ".join((self.name, *(f"{name}={value}" for name, value in sizes.items())))

    @property
    def source(self) -> str:
        return self.text or (ROOT / self.name).read_text("utf-8")


FOLDERS: tuple[tuple[str, str, tuple[Mapping[str, int], ...]], ...] = (
    ("examples", "examples", ({},)),
    ("examples", "examples/mpi", ({}, {"P": 16})),
    ("judged", "tests/data/judged", ({"P": 4},)),
    ("kernels", "tests/data/kernels", ({},)),
    ("programs", "tests/data/programs", ({"P": 4},)),
    ("programs", "tests/data/programs/two_files", ({"P": 4},)),
    ("rules", "tests/transforms/cases/ADV201", ({},)),
    ("rules", "tests/transforms/near_misses", ({},)),
)


CHOICES: Mapping[str, tuple[str, ...]] = {
    **{
        f"examples/pstswm {problem} on {ranks}": (
            "examples/pstswm/pstswm.toml",
            *("-D", f"problem={problem}", "--over", "algorithm,PX,PY"),
            *("--where", f"PX*PY == {ranks}"),
        )
        for problem in ("T42", "T85")
        for ranks in (16, 64, 256)
    },
    **{
        f"examples/sorts {keys} keys": (
            "examples/sorts/sorts.toml",
            *("-D", f"n={keys}", "--over", "algorithm,p=2,4,8,12"),
        )
        for keys in (65536, 1048576)
    },
}
"""Arguments of `advise choose`, its answers read from its JSON."""


@cache
def programs() -> tuple[Program, ...]:
    """Return every program of the corpus."""
    chosen = (Program(name, "choices", choice=words) for name, words in CHOICES.items())
    return (*_of_files(), *_of_texts(), *chosen)


def _of_files() -> Iterator[Program]:
    for kind, folder, given in FOLDERS:
        for path in sorted((ROOT / folder).glob("*.py")):
            for sizes in given:
                name = path.relative_to(ROOT).as_posix()
                yield Program(name, kind, sizes, plans=kind == "examples")


def _of_texts() -> Iterator[Program]:
    """Yield programs that were drawn or written in tests, frozen as text.

    Generators draw others as their libraries and rules change.
    """
    for path in sorted(FROZEN.glob("*_programs.jsonl")):
        for line in path.read_text("utf-8").splitlines():
            one = json.loads(line)
            kind = path.name.removesuffix("_programs.jsonl")
            sizes, other = one.get("sizes", {}), one.get("other", "")
            yield Program(one["name"], kind, sizes, one["source"], other)


def machines() -> tuple[str, ...]:
    """Return the shipped profiles of the studies and the frozen calibration.

    Those of today are calibrations too, which change whenever they are made again.
    """
    studies = (name for name in built_in_names() if not load_machine(name).is_calibrated)
    return (*sorted(studies), CALIBRATED)


def decided(program: Program, machine: str) -> Record:
    """Return what is found in a program for a machine: the one place that reads findings.

    Returns
    -------
    dict
        ``findings`` in their order, greatest gain first. Each has ``code``, ``line``, ``does`` (the
        title of the proposal), ``fix`` (who may apply the edit, and a digest of the edited
        program; absent where nobody writes it), and ``gain`` (middle, low and high end) or,
        where nothing binds the sizes in ``open``, ``pays_from``. ``unknown`` are lines of what is
        not understood, with the beginning of the reason; ``plans`` lines of plans of several
        steps; ``other`` is the ratio of the times of a program and the other one, if it has one and
        both have prices; ``refused`` is the kind of error that there is instead of an answer.
    """
    profile = str(FROZEN / f"{CALIBRATED}.json") if machine == CALIBRATED else machine
    if program.choice:
        return {"program": program.title, "machine": machine, **_chosen(program, profile)}
    source = program.source
    # beside programs that are texts there is no other file
    path = str(FROZEN / "none" / "drawn.py") if program.text else str(ROOT / program.name)
    options = Options(profile, program.sizes, (), (), None, details=False, plans=program.plans)
    record: Record = {"program": program.title, "machine": machine}
    try:
        result = check_read(_read(path, program), options, rank_kernel)
    except (SourceProblem, MachineError, ExprError) as error:
        return {**record, "refused": type(error).__name__}
    check_classes(result, load_machine(profile).name)
    if program.other:
        ratio = _ratio(program, profile)
        record["other"] = ratio and float(f"{ratio:.4g}")
    record["findings"] = [_finding(source, one) for one in result.findings]
    plans = [one for one in result.remarks if _is_plan(one)]
    if plans:
        record["plans"] = [[one.span.start_line, _of_plan(one)] for one in plans]
    unknown = [one for one in result.remarks if not _is_plan(one)]
    if unknown:
        record["unknown"] = sorted([one.span.start_line, _reason(one)] for one in unknown)
    return record


@lru_cache(maxsize=1)
def _read(path: str, program: Program) -> ReadFile:
    """Return what a program says, once for all machines."""
    options = Options(None, program.sizes, (), (), None)
    if needs_reading(program.source, path):
        return read_file(path, program.source, options)
    return ReadFile(path, program.source, (), (), None)


def check_classes(result: FileResult, machine: str) -> None:
    """Hold findings to what their classes say, whatever is found."""
    saved = [one.saves_s or 0.0 for one in result.findings]
    assert saved == sorted(saved, reverse=True)
    for one in result.findings:
        assert not one.is_small and machine in one.priced_as
        assert one.prediction is None or one.prediction.speedup >= PLAIN_GAIN
        if one.verdict is Verdict.GAIN:
            assert one.prediction is not None and one.prediction.low > GAIN_FROM
    assert not {one.kernel for one in result.findings} & set(result.coverage.fine)
    edits = [one.fix.edits for one in result.findings if one.fix is not None and one.fix.edits]
    assert len(edits) == len(set(edits)), "one edit is one finding"


def _chosen(program: Program, profile: str) -> Record:
    """Return what is chosen, its time, and how much longer the next one takes."""
    file, *rest = program.choice
    words = ("choose", str(ROOT / file), *rest, "--machine", profile, "--output-format", "json")
    answer = StringIO()
    with redirect_stdout(answer), redirect_stderr(StringIO()):
        code = main_of_advise(words)
    if code:
        return {"refused": f"exit {code}"}
    first, second, *_ = json.loads(answer.getvalue())["choices"]
    times = [one["seconds"]["mid"] for one in (first, second)]
    return {
        "chosen": first["bindings"],
        "seconds": float(f"{times[0]:.4g}"),
        "next": round(times[1] / times[0], 3),
    }


def _ratio(program: Program, profile: str) -> float | None:
    """Return how many times as long a program takes as the other one; None without prices."""
    costed = []
    for text in (program.text, program.other):
        (kernel,) = read_kernels("drawn.py", text)
        sizes = bind_sizes(kernel, program.sizes).values
        found = cost(at_sizes(as_one_process(kernel), sizes), load_machine(profile))
        if isinstance(found, Missing):
            return None
        costed.append(found)
    return compared(*costed, sizes).ratio.mid


def _finding(source: str, one: Finding) -> Record:
    told: Record = {
        "code": one.code,
        "line": one.span.start_line,
        "does": one.message.partition(": ")[2],
    }
    if one.prediction is not None:
        three = one.prediction.speedup, one.prediction.low, one.prediction.high
        told["gain"] = [float(f"{end:.4g}") if math.isfinite(end) else None for end in three]
    if one.condition is not None:
        told["open"] = list(one.condition.open_sizes)
        told["pays_from"] = "always" if one.condition.always else one.condition.pays_from
    if one.fix is not None and one.fix.edits:
        # of the text that results: how it is cut into edits decides nothing
        edited = apply_edits(source, dict.fromkeys(one.fix.edits)).encode()
        told["fix"] = f"{one.fix.applicability} {hashlib.sha256(edited).hexdigest()[:8]}"
    return told


def _is_plan(one: Remark) -> bool:
    return one.message.startswith("best plan for kernel ")


def _of_plan(one: Remark) -> str:
    return one.message.partition("): ")[2]


def _reason(one: Remark) -> str:
    """Return the beginning of what stands behind the name of the kernel, without the remedy."""
    said = one.message.partition("`: ")[2] or one.message
    said = said.partition("; ")[0]
    return said if len(said) <= 70 else said[:67] + "..."


@cache
def frozen() -> dict[str, list[Record]]:
    """Return all frozen decisions by the titles of their programs."""
    found: dict[str, list[Record]] = {}
    for path in sorted(FROZEN.glob("*.jsonl")):
        if not path.stem.endswith("_programs"):
            for line in path.read_text("utf-8").splitlines():
                record = json.loads(line)
                found.setdefault(record["program"], []).append(record)
    return found


def differences(before: Record, after: Record) -> list[str]:
    """Return in which ways a decision is another one, in a line each."""
    if before.get("refused") != after.get("refused"):
        return [f"{before.get('refused', 'answered')} -> {after.get('refused', 'answered')}"]
    was, now = (dict(_by_place(one.get("findings", ()))) for one in (before, after))
    told = [f"lost  {_shown(was[place])}" for place in was if place not in now]
    told += [f"new   {_shown(now[place])}" for place in now if place not in was]
    for place in was.keys() & now.keys():
        told += _of_finding(was[place], now[place])
    both = ([place for place in one if place in was.keys() & now.keys()] for one in (was, now))
    first, then = both
    if first != then:
        told.append(f"order {_ordered(first)} -> {_ordered(then)}")
    plans, plans_now = (before.get("plans", []), after.get("plans", []))
    if plans != plans_now:
        told.append(f"plans {plans} -> {plans_now}")
    if before.get("chosen") != after.get("chosen"):
        told.append(f"choice {before.get('chosen')} -> {after.get('chosen')}")
    elif _apart(before.get("seconds"), after.get("seconds"), TIMES_MAY_MOVE):
        told.append(f"time {before.get('seconds')} -> {after.get('seconds')} s")
    ratios = before.get("other"), after.get("other")
    if _apart(*ratios, TIMES_MAY_MOVE) or _faster(ratios[0]) != _faster(ratios[1]):
        told.append(f"the other program: {ratios[0]} -> {ratios[1]} times as fast")
    lines, lines_now = ([n for n, _ in one.get("unknown", ())] for one in (before, after))
    if lines != lines_now:
        told.append(f"not understood {before.get('unknown')} -> {after.get('unknown')}")
    return told


def _faster(ratio: float | None) -> str:
    """Return which of two programs is worth choosing."""
    if ratio is None or 1 / PLAIN_GAIN <= ratio <= PLAIN_GAIN:
        return "neither"
    return "other" if ratio > 1 else "one"


def _by_place(findings: Iterable[Record]) -> Iterator[tuple[tuple[str, int, int], Record]]:
    """Yield findings by code, line, and which of that code and line."""
    seen: dict[tuple[str, int], int] = {}
    for one in findings:
        place = one["code"], one["line"]
        seen[place] = seen.get(place, -1) + 1
        yield (*place, seen[place]), one


def _ordered(places: Iterable[tuple[str, int, int]]) -> str:
    return " ".join(f"{code}:{line}" for code, line, _ in places)


def _shown(one: Record) -> str:
    gain = f"{one['gain'][0]:.2f}x" if "gain" in one else f"from {one.get('pays_from')}"
    return f'{one["code"]} line {one["line"]} {gain} "{one["does"]}" {one.get("fix", "no edit")}'


def _of_finding(before: Record, after: Record) -> Iterator[str]:
    place = f"{before['code']} line {before['line']}"
    for what in ("does", "fix", "open"):
        if before.get(what) != after.get(what):
            yield f"{place} {what}: {before.get(what)!r} -> {after.get(what)!r}"
    gains = [one["gain"][0] if "gain" in one else None for one in (before, after)]
    if _apart(*gains, TIMES_MAY_MOVE):
        yield f"{place} gain: {before.get('gain')} -> {after.get('gain')}"
    ends = before.get("pays_from"), after.get("pays_from")
    if _apart(*ends, ENDS_MAY_MOVE):
        yield f"{place} pays from: {ends[0]} -> {ends[1]}"


def _apart(one: Any, other: Any, factor: float) -> bool:
    numbers = [isinstance(value, (int, float)) for value in (one, other)]
    if not all(numbers):
        return bool(one != other)
    return max(one, other) > factor * min(one, other)


def changes(was: Sequence[Record], now: Sequence[Record]) -> list[str]:
    """Return how decisions of one program changed, machine by machine."""
    before, after = ({one["machine"]: one for one in records} for records in (was, now))
    told: list[str] = []
    for machine in (*before, *(name for name in after if name not in before)):
        if machine not in after:
            told.append(f"{machine}: no longer decided")
        elif machine not in before:
            told.append(f"{machine}: not frozen")
        elif found := differences(before[machine], after[machine]):
            told += [f"{machine}: {line}" for line in found]
    return told


def all_decided(program: Program) -> list[Record]:
    """Return what is found in a program for every machine."""
    return [decided(program, machine) for machine in machines()]


def main() -> int:
    """Compare or freeze."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", help="only programs whose titles hold one of these")
    parser.add_argument("--update", action="store_true", help="freeze today's decisions")
    parser.add_argument("--diff", action="store_true", help="tell what differs; the default")
    parser.add_argument("-j", "--jobs", type=int, default=2)
    given = parser.parse_args()
    chosen = [
        one
        for one in programs()
        if not given.parts or any(part in one.title for part in given.parts)
    ]
    with ProcessPoolExecutor(given.jobs) as pool:
        now = dict(zip(chosen_titles(chosen), pool.map(all_decided, chosen), strict=True))
    changed = decisions = 0
    for title, records in now.items():
        told = changes(frozen().get(title, ()), records)
        decisions += len(records)
        changed += len({line.partition(":")[0] for line in told})
        for line in told:
            print(f"{title} on {line}")
    gone = [] if given.parts else [title for title in frozen() if title not in now]
    for title in gone:
        print(f"{title}: no longer a program of the corpus")
    print(f"{changed} of {decisions} decisions change")
    if given.update:
        freeze(now, gone)
        return 0
    return 1 if changed or gone else 0


def chosen_titles(chosen: Iterable[Program]) -> list[str]:
    """Return titles, no two the same."""
    titles = [one.title for one in chosen]
    assert len(titles) == len({*titles})
    return titles


def freeze(now: Mapping[str, list[Record]], gone: Iterable[str]) -> None:
    """Write decisions, those of other programs as they were."""
    everything = {**frozen(), **now}
    for title in gone:
        del everything[title]
    known = [one for one in programs() if one.title in everything]
    for kind, group in groupby(sorted(known, key=lambda one: one.kind), lambda one: one.kind):
        records = [record for one in group for record in everything[one.title]]
        lines = [json.dumps(one, ensure_ascii=False, separators=(",", ":")) for one in records]
        (FROZEN / f"{kind}.jsonl").write_text("\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    sys.exit(main())
