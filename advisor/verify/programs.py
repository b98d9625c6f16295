"""What is run to verify an SPMD program: itself and its rewrites, on several ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from advisor.analysis.lower import Unpriced
from advisor.edits import EditError, apply_edits
from advisor.finding import Applicability
from advisor.frontend.spmd.reader import read_program
from advisor.ir.spmd.program import MODULE, RANKS, Program
from advisor.ir.spmd.proposal import ProgramProposal, ProgramTransform
from advisor.ranking.compare import Costed
from advisor.ranking.programs import bind_program, cost_steps
from costdb.estimate import Estimate, Missing, Ratio
from costdb.evaluate import compare, evaluate_price
from costdb.expr import ExprError
from costdb.machines import Machine

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
    machine: Machine,
    transforms: Sequence[ProgramTransform],
) -> ProgramCase | None:
    """Return an SPMD program with all rewrites that its rules have edits for.

    None where the file is no such program.

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
    machine: Machine,
) -> Rewrite:
    change, unknown = _change(proposal, sizes, machine)
    exact = proposal.legality.applicability is Applicability.SAFE
    name = proposal.function.name
    return Rewrite(code, proposal.title, name, source, exact, change, unknown)


def _change(
    proposal: ProgramProposal, sizes: Mapping[str, Number], machine: Machine
) -> tuple[Change | None, str]:
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
    program: Program, sizes: Mapping[str, Number], machine: Machine
) -> tuple[Estimate | None, str]:
    """Return what all that a file does takes, or why that has no price."""
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
