"""Sampling programs in processes of their own, and what that says of the time of a run."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import version
from statistics import median
from typing import Any, Final

from advisor.evidence import Sizes
from advisor.finding import Times
from advisor.measure.language import Refused, Sampled, sampled_file, sampled_function
from advisor.verify.cases import Case
from costdb.calibration.section import this_host
from costdb.launch.processes import ONE_THREAD, THREADS, CannotRunError, JobFailedError, answers
from costdb.records import dataclass, field
from costdb.store.database import PIECE, Result, add_result, newest_document, reading, writing

_OF_MEMORY: Final = 0.7
_LONG_S: Final = 1.0
"""A run that takes longer is not launched again."""
_WHOLE_S: Final = 2.0
"""What may take less is run whole, for so long at most."""
_PATIENCE_S: Final = 10.0
_UNSEEN: Final = 0.05
"""How far iterations that were not run may be from those around, as a part of their time."""
_FEW_RUNS: Final = 0.1
"""The same for what was run less than three times."""

Arguments = Mapping[str, Mapping[str, Any]]
"""What is made for each parameter: ``value``, ``kind`` of number, or the array's description."""


@dataclass(frozen=True, slots=True)
class Effort:
    """Seconds for a launch, for the runs in it that are repeated; how many launches, and ranks.

    With `one_thread` libraries have no more, as on a rank that has one core.
    """

    budget_s: float = 60.0
    seconds: float = 0.3
    launches: int = 3
    ranks: int = 2
    one_thread: bool = False


@dataclass(frozen=True, slots=True)
class Piece:
    """What sampling showed of a program.

    Attributes
    ----------
    low_s, mid_s, high_s : float
        Time of one call, or of the whole file, where nothing else holds the machine up.
    parts_s : mapping of int to (float, float, float)
        Of its statements, by line: least, typical and greatest time.
    skipped : mapping of int to int
        Loops of which iterations were left out, by line.
    spent_s : float
        How long its sampled runs took in all.
    """

    low_s: float
    mid_s: float
    high_s: float
    parts_s: Mapping[int, Times]
    skipped: Mapping[int, int]
    spent_s: float

    @property
    def times_s(self) -> tuple[float, float, float]:
        """The least, what is typical, the greatest."""
        return self.low_s, self.mid_s, self.high_s


@dataclass(frozen=True, slots=True)
class NoPiece:
    """A program that could not be sampled: where, and why."""

    line: int
    why: str


@dataclass(slots=True)
class _Turns:
    program: Sampled
    job: dict[str, Any]
    runs: list[dict[str, Any]] = field(default_factory=list)
    spent_s: float = 0.0
    failure: NoPiece | None = None
    tried_whole: bool = False


def job_of(program: Sampled, arguments: Arguments, effort: Effort) -> dict[str, Any]:
    """Return what the worker is told."""
    return {
        "text": program.text,
        "modules": list(program.modules),
        "entry": program.entry,
        "arguments": _given(program, arguments),
        "budget_s": effort.budget_s,
        "seconds": effort.seconds,
        "memory_bytes": int(_OF_MEMORY * _memory_bytes()) // max(_ranks(program, effort), 1),
        "ranks": _ranks(program, effort),
        "whole": False,
    }


def _given(program: Sampled, arguments: Arguments) -> dict[str, dict[str, Any]]:
    return {program.parameters[name]: dict(one) for name, one in arguments.items()}


def _ranks(program: Sampled, effort: Effort) -> int:
    return effort.ranks if program.of_ranks else 0


def key_of(program: Sampled, arguments: Arguments, circumstances: Sequence[str], ranks: int) -> str:
    """Return what tells a piece from all others: its text, its arguments, what runs it."""
    content = [program.plain, program.entry, _given(program, arguments), *circumstances]
    content += [f"{ranks} ranks"] if program.of_ranks else []
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:32]


def _memory_bytes() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 2**31


def sample(
    programs: Sequence[tuple[Sampled, Arguments]],
    effort: Effort,
    told: Callable[[int], object] = lambda number: None,
) -> list[Piece | NoPiece]:
    """Run sampled programs in processes of their own, taking turns so that drift falls on all.

    `told` hears the number of each program that is about to run.
    """
    turns = [_Turns(program, job_of(program, given, effort)) for program, given in programs]
    for launch in range(effort.launches):
        for number, one in enumerate(turns):
            is_long = launch > 0 and bool(one.runs) and one.runs[-1]["real_s"] > _LONG_S
            if one.failure is None and not is_long:
                told(number)
                _launch(one, effort)
    return [one.failure or _judged(one) for one in turns]


def _launch(one: _Turns, effort: Effort) -> None:
    ranks, lines = one.job["ranks"], one.program.lines
    began = time.perf_counter()
    found, said = _answers(one.job, effort)
    took_s = time.perf_counter() - began
    failed = next((one["failure"] for one in found if "failure" in one), None)
    endless = next((one["unfinished"] for one in found if "unfinished" in one), None)
    if endless is not None:
        rate_ms = 1e3 * endless["seconds"] / max(endless["trips"], 1)
        one.failure = NoPiece(
            lines[endless["place"]],
            "nothing says how often this loop runs: "
            f"{endless['trips']} trips were not all, {rate_ms:.3g} ms each",
        )
    elif failed is not None and failed["skipped"] and ranks and not one.job["whole"]:
        # iterations that were left out would have made data that what follows needs
        one.job["whole"] = True
        _launch(one, effort)
    elif failed is not None:
        one.failure = NoPiece(lines[failed["place"]], failed["why"])
    elif said or len(found) < max(ranks, 1):
        one.failure = NoPiece(lines[0] if lines else 1, said or "a rank ended before the others")
    else:
        runs = _of_slowest(found)
        one.spent_s += sum(run["real_s"] for run in runs)
        begins_s = took_s - sum(run["real_s"] for run in found[0]["runs"])
        one.runs += _run_whole(one, effort, runs[0]["times_s"][1], begins_s) or runs


def _answers(job: Mapping[str, Any], effort: Effort) -> tuple[list[dict[str, Any]], str]:
    """Return what each rank tells of a job, and why there is no more."""
    found: list[dict[str, Any]] = []
    try:
        limit_s, more = job["budget_s"] + _PATIENCE_S, ONE_THREAD if effort.one_thread else None
        for answer in answers("advisor.measure.worker", job, limit_s, job["ranks"], more):
            found += answer
    except (CannotRunError, JobFailedError) as error:
        return found, str(error)
    return found, ""


def _of_slowest(found: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the runs of the rank that took longest in each, but for the first one.

    The first run of a process finds libraries and memory as no later one does.
    """
    every = zip(*(rank["runs"] for rank in found), strict=True)
    runs = [max(ranks, key=lambda run: run["times_s"][0]) for ranks in every]
    return runs[1:] or runs


def _run_whole(
    one: _Turns, effort: Effort, least_s: float, begins_s: float
) -> list[dict[str, Any]]:
    """Return runs without a clock in loops, if they take no longer than is worth it.

    A process takes `begins_s` until it runs. Windows do not show what depends on data, as a search
    that ends or a table that fills, and may say many times too much; and in short loops a clock
    takes as long as they do.
    """
    if one.tried_whole or least_s > _WHOLE_S:
        return []
    one.tried_whole = True
    job = one.job | {"text": one.program.plain, "whole": True}
    within_s = begins_s + max(_WHOLE_S, effort.seconds)
    found, said = _answers(job | {"budget_s": min(effort.budget_s, within_s)}, effort)
    if said or len(found) < max(job["ranks"], 1) or any("failure" in rank for rank in found):
        return []
    one.job = job
    runs = _of_slowest(found)
    one.spent_s += sum(run["real_s"] for run in runs)
    return runs


def _judged(one: _Turns) -> Piece:
    lines = one.program.lines
    fastest = min(one.runs, key=lambda run: run["times_s"][0])
    skipped: dict[int, int] = {}
    for place, many in fastest["skipped"].items():
        line = lines[int(place)]
        skipped[line] = skipped.get(line, 0) + many
    # few runs tell little of how far runs differ
    unseen = (_UNSEEN if skipped else 0.0) + (_FEW_RUNS if len(one.runs) < 3 else 0.0)
    by_line: dict[int, list[list[Times]]] = {}
    for number, found in enumerate(one.runs):
        for place, times in found["parts_s"].items():
            runs = by_line.setdefault(lines[int(place)], [[] for _ in one.runs])
            runs[number].append(times)
    low, mid, high = _spread([run["times_s"] for run in one.runs], unseen)
    parts = {
        line: _spread([_sum(times) for times in runs], unseen)
        for line, runs in sorted(by_line.items())
    }
    return Piece(low, mid, high, parts, skipped, one.spent_s)


def _sum(times: Sequence[Times]) -> Times:
    low, mid, high = (sum(column) for column in zip(*times, strict=True)) if times else (0, 0, 0)
    return low, mid, high


def _spread(times: Sequence[Times], unseen: float) -> Times:
    """Return what clocks showed of runs: the least, the fastest run, what others typically took.

    Whatever else a machine does makes runs longer and none shorter.
    """
    mids, lows, highs = zip(*times, strict=True)
    mid = min(mids)
    return min(*lows, mid) * (1 - unseen), mid, max(median(highs), mid) * (1 + unseen)


# What of a file can be sampled: its kernels, or all of it as a script, with their rewrites.

Found = tuple[Sampled, Arguments] | NoPiece
"""What is sampled of a way to write a kernel or a file, or why nothing is."""


def ways_of(case: Case, given: Sizes) -> Iterator[Found]:
    """Yield what is sampled of each way to write a kernel, or a file whose names are `given`."""
    arrays = {one.name: asdict(one) for one in case.arrays}
    for variant in case.variants:
        try:
            if not case.kernel:
                yield sampled_file(case.path, variant.source, given), {}
                continue
            name = case.kernel.rpartition(".")[2]
            program = sampled_function(case.path, variant.source, name)
            yield program, dict(arguments_of(program, arrays, case.sizes))
        except Refused as refused:
            yield NoPiece(refused.line, refused.why)


def arguments_of(
    program: Sampled,
    arrays: Mapping[str, Mapping[str, object]],
    sizes: Mapping[str, int | float],
) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Yield what is made for each parameter of a kernel: arrays, sizes, some number."""
    for name in program.parameters:
        if name in arrays:
            yield name, arrays[name]
        elif name in sizes:
            yield name, {"value": sizes[name]}
        elif name in program.kinds:
            yield name, {"kind": program.kinds[name]}


def left_out_of(found: Found) -> Sequence[tuple[int, str]]:
    """Return what is not sampled, by line; nothing where all is not."""
    return () if isinstance(found, NoPiece) else found[0].left_out


def sampled(
    ways: Sequence[Found],
    effort: Effort,
    kept: Callable[[Sampled, Arguments], Piece | None],
    told: Callable[[int], object],
) -> list[Piece | NoPiece]:
    """Return what is `kept` of ways, and sample the others, taking turns.

    `told` hears the number of each that is about to run.
    """
    found: dict[int, Piece | NoPiece] = {}
    lacking: dict[int, tuple[Sampled, Arguments]] = {}
    for number, one in enumerate(ways):
        if isinstance(one, NoPiece):
            found[number] = one
        elif (known := kept(*one)) is not None:
            found[number] = known
        else:
            lacking[number] = one
    numbers = list(lacking)
    made = sample([*lacking.values()], effort, lambda turn: told(numbers[turn]))
    found.update(zip(numbers, made, strict=True))
    return [found[number] for number in range(len(ways))]


# Measured pieces in the store: found by their content, and between sizes that were measured.

HERE = "here"
"""What this machine is called while it has no calibration."""


def circumstances() -> tuple[str, ...]:
    """Return what a piece depends on beside its text: libraries, processor, threads."""
    host = this_host()
    return (
        f"python {platform.python_version()}",
        *(f"{library} {version(library)}" for library in ("numpy", "scipy")),
        f"{host.processor}, {host.cores} cores",
        *(f"{name}={os.environ[name]}" for name in sorted(THREADS) if name in os.environ),
    )


@dataclass(slots=True)
class Kept:
    """Pieces of a machine in the store.

    Attributes
    ----------
    machine : str
    ranks : int
        Of programs that communicate.
    again : bool
        Whether nothing that was measured before counts.
    """

    machine: str
    ranks: int
    again: bool = False
    where: tuple[str, ...] = field(default_factory=circumstances)
    found: set[str] = field(default_factory=set)

    def known(self, program: Sampled, arguments: Arguments) -> Piece | None:
        """Return what was measured before of a program with these arguments."""
        if self.again:
            return None
        key = key_of(program, arguments, self.where, self.ranks)
        with reading() as connection:
            document = newest_document(connection, self.machine, PIECE, key)
        if document is None:
            return None
        self.found.add(key)
        return _piece(document)

    def at_other_sizes(self, program: Sampled) -> tuple[tuple[Sizes, Times], ...]:
        """Return what was measured of a program at any sizes."""
        with reading() as connection:
            document = newest_document(connection, self.machine, PIECE, self._grid(program))
        if document is None:
            return ()
        return tuple((sizes, (low, mid, high)) for sizes, (low, mid, high) in document["points"])

    def keep(self, ways: Sequence[Found], found: Sequence[Piece | NoPiece], sizes: Sizes) -> None:
        """Store what was measured now, and at which sizes."""
        new = {}
        for way, piece in zip(ways, found, strict=True):
            if isinstance(piece, NoPiece) or isinstance(way, NoPiece):
                continue
            program, arguments = way
            key = key_of(program, arguments, self.where, self.ranks)
            if key in self.found:
                continue
            new[key] = asdict(piece)
            if sizes:
                others = [one for one in self.at_other_sizes(program) if one[0] != sizes]
                points = [*others, (dict(sizes), piece.times_s)]
                new[self._grid(program)] = {"points": points}
        if new:
            with writing() as connection:
                for key, document in new.items():
                    add_result(connection, Result(self.machine, PIECE, key, document))

    def _grid(self, program: Sampled) -> str:
        return "sizes " + key_of(program, {}, self.where, self.ranks)


def _piece(document: Mapping[str, Any]) -> Piece:
    """Return the piece of a document, in which keys are texts."""
    parts = {int(line): tuple(times) for line, times in document["parts_s"].items()}
    skipped = {int(line): many for line, many in document["skipped"].items()}
    return Piece(**{**document, "parts_s": parts, "skipped": skipped})
