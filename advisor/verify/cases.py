"""What is run to verify kernels and programs: themselves and their rewrites, with predictions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from math import isfinite
from pathlib import Path
from typing import TypeVar

from advisor.analysis.lower import Unpriced
from advisor.distribution import StorageOrder
from advisor.evidence import AFTER, BEFORE, BUILT, DIFFER, RESULTS
from advisor.finding import MODULE, Applicability, Times
from advisor.frontend.spmd.reader import read_program
from advisor.ir.kernel import Kernel, Proposal, Transform, at_sizes
from advisor.ir.spmd.program import RANKS, Program, ProgramProposal, ProgramTransform
from advisor.ir.statements import Scatter, values_of, walk
from advisor.ir.values import Gather, Point, Read, Value, parts_of
from advisor.ranking.compare import Compared as Change
from advisor.ranking.compare import Costed, compared, cost
from advisor.ranking.programs import bind_program, cost_steps
from advisor.ranking.worth import as_one_process
from advisor.source import EditError, apply_edits
from costdb.evaluate import Estimate, Missing, Ratio, compare, evaluate_price
from costdb.expr import ExprError, evaluate
from costdb.machines import Machine
from costdb.records import dataclass
from costdb.store.evidence import Evidence

ORIGINAL = "as written"
NOT_CALIBRATED = "this machine is not calibrated"

Sizes = Mapping[str, int | float]
_Proposal = TypeVar("_Proposal", Proposal, ProgramProposal)
_Found = TypeVar("_Found")


def speed_up(before: Times, after: Times) -> Ratio:
    """Return how many times faster one is than the other, as sure as their samples make it."""
    (low, mid, high), (then_low, then_mid, then_high) = before, after
    return Ratio(low / then_high, mid / then_mid, high / then_low)


@dataclass(frozen=True, slots=True)
class ArrayInput:
    """An argument to make: shape and element type, below what whole numbers stay, storage order."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    below: int
    order: StorageOrder = "C"


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to write a kernel or a program.

    Attributes
    ----------
    code, title : str
        The rule and what it does; the title of what is as written is `ORIGINAL`.
    source : str
    exact : bool
        Whether results must be equal to the last bit.
    costed : Costed or None
        Its price on one process; None where there is none, for the reason in `unknown`.
    predicted : Estimate or None
        Of a program as written all that the file does when it is run; of its rewrites None.
    unknown : str
    function : str
        Where a program is rewritten.
    change : Change or None
        What that is predicted to change.
    """

    code: str
    title: str
    source: str
    exact: bool
    costed: Costed | None
    predicted: Estimate | None
    unknown: str = ""
    function: str = ""
    change: Change | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """What to verify: its arguments, and the ways to write it, as written first.

    Attributes
    ----------
    kernel : str
        Empty for a program of ranks.
    ranks : int
        A kernel on several of them is built, and its variants are programs.
    source : str
        The file that built programs are held against.
    """

    path: str
    kernel: str
    sizes: Sizes
    arrays: tuple[ArrayInput, ...]
    variants: tuple[Variant, ...]
    ranks: int = 1
    source: str = ""

    @property
    def rewrites(self) -> tuple[Variant, ...]:
        """The other ways to write it."""
        return self.variants[1:]

    def predicted_s(self, way: Variant) -> float | None:
        """Return what a variant is predicted to take; None where it has no price."""
        whole = self.variants[0].predicted
        if way.change is None or whole is None:
            return None if way.predicted is None else way.predicted.mid
        return max(0.0, whole.mid - way.change.before.mid + way.change.after.mid)

    def compared(
        self, way: Variant, before: Times, after: Times, equal: bool | None = None
    ) -> Evidence | None:
        """Return how a variant compares by the clock of a machine that is still to be named.

        None where it has no price. `equal` is whether both gave the same results; None where
        nobody compared them.
        """
        original = self.variants[0].costed
        if way.change is not None:
            of, predicted = "the whole program", way.change.ratio
        elif original is not None and way.costed is not None:
            of = "" if self.ranks == 1 else BUILT
            predicted = compare(original.priced, way.costed.priced, self.sizes)
        else:
            return None
        circumstances = {
            "file": Path(self.path).name,
            "title": way.title,
            "of": of,
            RESULTS: {True: "equal", False: DIFFER, None: ""}[equal],
        }
        if not of:
            sides = zip((BEFORE, AFTER), (before, after), strict=True)
            circumstances |= {side: " ".join(map(repr, times)) for side, times in sides}
        about = "", way.function or self.kernel, way.code, dict(self.sizes)
        known = predicted if isfinite(predicted.low) and isfinite(predicted.high) else None
        return Evidence(*about, known, speed_up(before, after), circumstances)


def case_of(
    path: str,
    source: str,
    kernel: Kernel,
    sizes: Sizes,
    machine: Machine | None,
    transforms: Sequence[Transform],
) -> Case:
    """Return a kernel with all rewrites that change what one process does.

    Without a machine nothing is predicted.

    Raises
    ------
    ExprError
        A size has no value.
    """

    def variant(code: str, title: str, text: str, exact: bool, written: Kernel) -> Variant:
        costed, unknown = _or_why(machine, lambda own: _costed(cost(at_sizes(written, sizes), own)))
        predicted = None if costed is None else evaluate_price(costed.priced, sizes)
        return Variant(code, title, text, exact, costed, predicted, unknown)

    proposals = (
        (transform.code, proposal)
        for transform in transforms
        for proposal in transform.propose(kernel)
        # one process does not notice where data lives
        if proposal.variant.body != kernel.body
    )
    variants = [variant("", ORIGINAL, source, True, as_one_process(kernel))]
    for code, proposal, text in _rewritten(source, proposals):
        safe = proposal.legality.applicability is Applicability.SAFE
        variants.append(variant(code, proposal.title, text, safe, as_one_process(proposal.variant)))
    return Case(path, kernel.name, sizes, tuple(inputs_of(kernel, sizes)), tuple(variants))


def program_case(
    path: str,
    source: str,
    given: Sizes,
    ranks: int,
    machine: Machine | None,
    transforms: Sequence[ProgramTransform],
) -> Case | None:
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
    whole, unknown = _or_why(machine, partial(_whole, program, sizes))
    proposals = ((one.code, made) for one in transforms for made in one.propose_program(program))
    variants = [Variant("", ORIGINAL, source, True, None, whole, unknown)]
    for code, proposal, text in _rewritten(source, proposals):
        change, why = _or_why(machine, partial(_change, proposal, sizes))
        exact = proposal.legality.applicability is Applicability.SAFE
        about = code, proposal.title, text, exact, None, None, why
        variants.append(Variant(*about, proposal.function.name, change))
    return Case(path, "", sizes, (), tuple(variants), ranks)


def _rewritten(
    source: str, proposals: Iterable[tuple[str, _Proposal]]
) -> Iterator[tuple[str, _Proposal, str]]:
    """Yield what has edits, with the text that they make; each other text once."""
    seen = {source}
    for code, proposal in proposals:
        try:
            text = apply_edits(source, proposal.edits())
        except EditError:
            continue
        if text not in seen:
            seen.add(text)
            yield code, proposal, text


# Predictions, or why there are none.


class _Unknown(Exception):
    """A part without a price; the message names it."""


def _or_why(
    machine: Machine | None, predict: Callable[[Machine], _Found]
) -> tuple[_Found | None, str]:
    """Return what is predicted on a machine, or None and why nothing is."""
    if machine is None:
        return None, NOT_CALIBRATED
    try:
        return predict(machine), ""
    except Unpriced as unpriced:
        return None, unpriced.reason
    except _Unknown as unknown:
        return None, str(unknown)


def _costed(found: _Found | Missing) -> _Found:
    if isinstance(found, Missing):
        raise _Unknown(found.what)
    return found


def _change(proposal: ProgramProposal, sizes: Sizes, machine: Machine) -> Change:
    try:
        before, after = (
            _costed(cost_steps(steps, machine, proposal.loops)).costed
            for steps in (proposal.before, proposal.after)
        )
        return compared(before, after, sizes)
    except ExprError as error:
        raise _Unknown(str(error)) from error


def _whole(program: Program, sizes: Sizes, machine: Machine) -> Estimate:
    """Return what all that a file does takes."""
    ran = program.function(MODULE) or program.function("main")
    if ran is None:
        raise _Unknown("it says of no function that it is run")
    try:
        found = _costed(cost_steps(ran.body, machine))
        if found.gaps:
            first = min(found.gaps, key=lambda gap: gap.span)
            more = f" and {len(found.gaps) - 1} more" if len(found.gaps) > 1 else ""
            raise _Unknown(f"line {first.span.start_line}: {first.reason}{more}")
        return evaluate_price(found.costed.priced, sizes)
    except ExprError as error:
        raise _Unknown(str(error)) from error


# Arguments to make.

_BELOW = 1000
"""What whole numbers stay below that are no places."""


def inputs_of(kernel: Kernel, sizes: Sizes) -> Iterator[ArrayInput]:
    """Yield what arrays to make for a kernel at given sizes."""
    limits = dict(_limits(kernel, sizes))
    shapes = {
        name: tuple(int(evaluate(extent, sizes)) for extent in array.extents)
        for name, array in kernel.arrays.items()
    }
    # of whole numbers any may be a place, in a way that nobody understood
    least = min([_BELOW, *(one for shape in shapes.values() for one in shape if one > 1)])
    for name, array in kernel.arrays.items():
        below = limits.get(name, least)
        yield ArrayInput(name, shapes[name], array.dtype, below, array.spec.order)


def _limits(kernel: Kernel, sizes: Sizes) -> Iterator[tuple[str, int]]:
    """Yield the arrays whose elements are places in another one, and how many places it has."""
    for statement in walk(kernel.body):
        if isinstance(statement, Scatter):
            yield from _places(statement.places, kernel, statement.array, sizes)
        for value in values_of(statement):
            for part in parts_of(value):
                match part:
                    case Gather(Read(array, region)):
                        kept = [d for d, one in enumerate(region) if not isinstance(one, Point)]
                        for axis, places in zip(kept, part.all_places, strict=False):
                            yield from _places(places, kernel, array, sizes, axis)


def _places(
    value: Value, kernel: Kernel, table: str, sizes: Sizes, axis: int = 0
) -> Iterator[tuple[str, int]]:
    if isinstance(value, Read):
        try:
            yield value.array, int(evaluate(kernel.extents(table)[axis], sizes))
        except ExprError:
            return
