"""Runs SPMD programs on real ranks: as written and rewritten in turn, in one launch each."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from advisor.analysis.lower import Unpriced
from advisor.edits import EditError, apply_edits
from advisor.finding import Applicability
from advisor.frontend.spmd.reader import read_program
from advisor.ir.spmd.program import MODULE, RANKS, Program
from advisor.ir.spmd.proposal import ProgramProposal, ProgramTransform
from advisor.ranking.compare import Costed
from advisor.ranking.programs import bind_program, cost_steps
from advisor.verify.running import NOT_CALIBRATED, Effort, Measured
from costdb.estimate import Estimate, Missing, Ratio
from costdb.evaluate import compare, evaluate_price
from costdb.expr import ExprError
from costdb.launch.processes import ONE_THREAD, run
from costdb.machines import Machine
from costdb.typical import typical

# What is run to verify an SPMD program: itself and its rewrites, on several ranks.

Number = int | float


@dataclass(frozen=True, slots=True)
class Change:
    """What a rewrite changes of a program: predicted before and after, for the slowest rank."""

    before: Estimate
    after: Estimate
    ratio: Ratio


@dataclass(frozen=True, slots=True)
class Rewrite:
    """One way to write a program otherwise.

    Attributes
    ----------
    code, title : str
        The rule and what it does.
    function : str
        Where it does so.
    source : str
    exact : bool
        Whether results must be equal to the last bit.
    change : Change or None
        None where there is no prediction, for the reason in `unknown`.
    unknown : str
    """

    code: str
    title: str
    function: str
    source: str
    exact: bool
    change: Change | None
    unknown: str = ""


@dataclass(frozen=True, slots=True)
class ProgramCase:
    """A program to verify.

    Attributes
    ----------
    path, source : str
    ranks : int
    sizes : mapping of str to number
    whole : Estimate or None
        Of all that the file does when it is run; None where parts have no price, for the reason
        in `unknown`.
    unknown : str
    rewrites : tuple of Rewrite
    """

    path: str
    source: str
    ranks: int
    sizes: Mapping[str, Number]
    whole: Estimate | None
    unknown: str
    rewrites: tuple[Rewrite, ...]


def program_case(
    path: str,
    source: str,
    given: Mapping[str, Number],
    ranks: int,
    machine: Machine | None,
    transforms: Sequence[ProgramTransform],
) -> ProgramCase | None:
    """Return an SPMD program with all rewrites that its rules have edits for.

    None where the file is no such program; without a machine nothing is predicted.

    Raises
    ------
    SourceProblem
        The file does not parse.
    """
    program = read_program(path, source)
    if program is None or not program.functions or program.mpi_module is None:
        return None
    sizes = bind_program(program, {**given, RANKS: ranks}).values
    whole, unknown = _whole(program, sizes, machine)
    rewrites: dict[str, Rewrite] = {}
    for transform in transforms:
        for proposal in transform.propose_program(program):
            try:
                rewritten = apply_edits(source, proposal.edits())
            except EditError:
                continue
            if rewritten != source and rewritten not in rewrites:
                rewrites[rewritten] = _rewrite(transform.code, proposal, rewritten, sizes, machine)
    return ProgramCase(path, source, ranks, sizes, whole, unknown, tuple(rewrites.values()))


def _rewrite(
    code: str,
    proposal: ProgramProposal,
    source: str,
    sizes: Mapping[str, Number],
    machine: Machine | None,
) -> Rewrite:
    change, unknown = _change(proposal, sizes, machine)
    exact = proposal.legality.applicability is Applicability.SAFE
    name = proposal.function.name
    return Rewrite(code, proposal.title, name, source, exact, change, unknown)


def _change(
    proposal: ProgramProposal, sizes: Mapping[str, Number], machine: Machine | None
) -> tuple[Change | None, str]:
    if machine is None:
        return None, NOT_CALIBRATED
    costed: list[Costed] = []
    try:
        for steps in (proposal.before, proposal.after):
            found = cost_steps(steps, machine, proposal.loops)
            if isinstance(found, Missing):
                return None, found.what
            costed.append(found.costed)
        before, after = costed
        ratio = compare(before.priced, after.priced, sizes)
        ends = evaluate_price(before.priced, sizes), evaluate_price(after.priced, sizes)
    except (ExprError, Unpriced) as error:
        return None, str(error)
    return Change(*ends, ratio), ""


def _whole(
    program: Program, sizes: Mapping[str, Number], machine: Machine | None
) -> tuple[Estimate | None, str]:
    """Return what all that a file does takes, or why that has no price."""
    if machine is None:
        return None, NOT_CALIBRATED
    ran = program.function(MODULE) or program.function("main")
    if ran is None:
        return None, "it says of no function that it is run"
    try:
        found = cost_steps(ran.body, machine)
        if isinstance(found, Missing):
            return None, found.what
        if found.gaps:
            first = min(found.gaps, key=lambda gap: gap.span)
            more = f" and {len(found.gaps) - 1} more" if len(found.gaps) > 1 else ""
            return None, f"line {first.span.start_line}: {first.reason}{more}"
        return evaluate_price(found.costed.priced, sizes), ""
    except (ExprError, Unpriced) as error:
        return None, str(error)


_PATIENCE_S = 120.0
NOTHING_TO_COMPARE = "nothing that it prints, returns or leaves behind could be compared"


@dataclass(frozen=True, slots=True)
class Turns:
    """A program and one rewrite of it, run in turn in the same launches.

    Attributes
    ----------
    before, after : Measured
        Wall-clock time of the slowest rank; `after.equal` says whether results agree.
    compared : bool
        Whether there was anything to compare.
    """

    before: Measured
    after: Measured
    compared: bool


def measure_program(case: ProgramCase, effort: Effort) -> tuple[Turns, ...]:
    """Run a program with each of its rewrites, and with itself where it has none.

    Raises
    ------
    CannotRunError
        mpi4py or a launcher is missing.
    """
    pairs = [(one.source, one.exact) for one in case.rewrites] or [(case.source, True)]
    return tuple(_turns(case, source, exact, effort) for source, exact in pairs)


def _turns(case: ProgramCase, after: str, exact: bool, effort: Effort) -> Turns:
    samples: list[list[list[float]]] = [[], []]
    equal = compared = True
    with TemporaryDirectory() as name:
        folder = Path(name)
        job = {
            "folder": str(Path(case.path).resolve().parent),
            "exact": exact,
            "repetitions": effort.repetitions,
            "seconds": effort.seconds,
            "output": str(folder / "output.json"),
        }
        files = []
        for which, text in (("before", case.source), ("after", after)):
            (folder / which).mkdir()
            file = folder / which / Path(case.path).name
            file.write_text(text, "utf-8")
            files.append(str(file))
        stated = folder / "job.json"
        stated.write_text(json.dumps({**job, "files": files}), "utf-8")
        for _ in range(effort.launches):
            said = run("advisor.verify.rank_worker", stated, _PATIENCE_S, case.ranks, ONE_THREAD)
            if said:
                failed = Measured(failure=said)
                return Turns(failed, failed, False)
            found = json.loads((folder / "output.json").read_text("utf-8"))
            equal = equal and found["equal"]
            compared = compared and found["compared"]
            for side, taken in zip(samples, found["samples_s"], strict=True):
                side.append(taken)
    before, then = (_measured(side, equal) for side in samples)
    return Turns(before, then, compared)


def _measured(launches: Sequence[Sequence[float]], equal: bool) -> Measured:
    every = [sample for launch in launches for sample in launch]
    middle = typical(launches)
    return Measured(middle, min(every), max(every), equal)
