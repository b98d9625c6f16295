"""What was measured in the place of what models say: of a kernel, of one rank's part, of a file.

Of a kernel on one process all is measured, or lies between sizes that were; of one that is
distributed what a rank does between its messages, which the models price; of a program of ranks
the whole file, on as many ranks as there are cores.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace

from advisor.evidence import between
from advisor.files import read_source
from advisor.finding import INTERPOLATED, MEASURED, MODULE, Times
from advisor.ir.spmd.program import RANKS
from advisor.measure.language import Refused, sampled_function
from advisor.measure.local import ENTRY, NotLocalError, local_parts
from advisor.measure.pieces import (
    Effort,
    Kept,
    NoPiece,
    Piece,
    Subject,
    arguments_of,
    of_script,
    sampled,
)
from advisor.ranking.compare import ranks_of
from advisor.ranking.subjects import PROGRAM, AlternativesSubject, KernelSubject, ProgramSubject
from advisor.report.style import duration
from advisor.source import SourceProblem
from advisor.verify.cases import ORIGINAL, inputs_of
from costdb.calibration.section import this_host
from costdb.choosing import Bound
from costdb.choosing import Subject as Predicted
from costdb.estimate import Estimate, Missing, Priced, Seconds, TermEstimate
from costdb.evaluate import evaluate_price
from costdb.expr import ZERO, ExprError, evaluate
from costdb.machines import Machine
from costdb.quantity import Omission, Provenance

OF_RANKS = frozenset({"arrays", "elements"})
"""Models of what a rank does by itself."""
_SAME = 1e-6


@dataclass(slots=True)
class Measurements:
    """Asked for a choice of a subject's parameters, says what was measured of it.

    Attributes
    ----------
    subject : Subject
    machine : Machine
        This one: of others nothing is measured.
    effort : Effort or None
        For what was not measured before; None: nothing is run.
    told : callable
        Hears what is about to be sampled.
    refused : dict
        What cannot be measured, and why.
    """

    subject: Predicted
    machine: Machine
    effort: Effort | None
    told: Callable[[str], object] = lambda what: None
    refused: dict[str, None] = field(default_factory=dict)

    def __call__(self, bound: Bound) -> Estimate | None:
        """Return the estimate for a choice, of which at least a part is measured; else None."""
        subject = self.subject
        if isinstance(subject, AlternativesSubject):
            subject = subject.subjects[bound.words[PROGRAM]]
        try:
            if isinstance(subject, KernelSubject):
                return self._of_kernel(subject, bound.numbers)
            if isinstance(subject, ProgramSubject):
                return self._of_program(subject, bound.numbers)
        except (Refused, NotLocalError) as error:
            line = getattr(error, "line", None)
            span = getattr(error, "span", None)
            line = span.start_line if span is not None else line
            place = f"line {line}: " if line else ""
            self.refused[f"not measured: {place}{error.why}"] = None
        except ExprError:
            # a size has no value: who asks for the price is told which
            pass
        return None

    def _of_kernel(
        self, subject: KernelSubject, sizes: Mapping[str, int | float]
    ) -> Estimate | None:
        kernel, path = subject.kernel, subject.path
        ranks = int(evaluate(ranks_of(kernel), sizes))
        if ranks > 1:
            return self._of_rank(subject, sizes, ranks)
        program = sampled_function(path, read_source(path).text, kernel.name.rpartition(".")[2])
        arrays = {one.name: asdict(one) for one in inputs_of(kernel, sizes)}
        given = dict(arguments_of(program, arrays, sizes))
        one = Subject(path, kernel.name, "", ORIGINAL, (program, given))
        kept = Kept(self.machine.name, 1)
        piece = self._piece(one, kept, sizes)
        if piece is not None:
            terms = _by_line(piece)
            return _whole(piece.times_s, terms, one, _modelled(subject, sizes))
        around = between(kept.at_other_sizes(program), sizes)
        if around is None:
            return None
        times, (low, high), name = around
        label = f"the kernel, by {name} = {low:g} and {high:g}"
        terms = (_term(label, INTERPOLATED, times),)
        return _whole(times, terms, one, _modelled(subject, sizes))

    def _of_rank(
        self, subject: KernelSubject, sizes: Mapping[str, int | float], ranks: int
    ) -> Estimate | None:
        """Return measured work of the slowest rank, and messages by the models."""
        priced = subject.price({})
        if isinstance(priced, Missing):
            return None
        modelled = evaluate_price(priced, sizes)
        if not any(term.model in OF_RANKS for term in priced.terms):
            self.refused[f"not measured: {self.machine.name} has no rates of array calls"] = None
            return None
        if abs(sum(term.mid for term in modelled.terms) - modelled.mid) > _SAME * modelled.mid:
            self.refused["not measured: what ranks do overlaps with their messages"] = None
            return None
        parts = local_parts(subject.kernel, sizes)
        below = {one.name: one.below for one in inputs_of(subject.kernel, sizes)}
        least = min(below.values(), default=1)
        pieces = []
        for part in parts:
            program = sampled_function(subject.path, part.source, ENTRY)
            arrays = {
                n: {**one, "below": below.get(part.whose[n], least)}
                for n, one in part.arrays.items()
            }
            found = program, dict(arguments_of(program, arrays, sizes))
            one = Subject(subject.path, subject.kernel.name, "", f"a rank of {ranks}", found)
            pieces.append(self._piece(one, Kept(self.machine.name, 1), {}, part.lines))
        if not pieces or None in pieces:
            return None
        slowest = max((one for one in pieces if one is not None), key=lambda one: one.mid_s)
        left = tuple(term for term in priced.terms if term.model not in OF_RANKS)
        sent = sum((term.microseconds for term in left), ZERO)
        rest = evaluate_price(replace(priced, microseconds=sent, terms=left), sizes)
        label = f"what a rank of {ranks} does"
        own = _term(label, MEASURED, slowest.times_s)
        ends = zip(slowest.times_s, (rest.low, rest.mid, rest.high), strict=True)
        low, mid, high = (Seconds(one + other) for one, other in ends)
        return replace(
            rest,
            low=low,
            mid=mid,
            high=high,
            terms=(own, *rest.terms),
            remarks=(*rest.remarks, _as_modelled(modelled)),
        )

    def _of_program(
        self, subject: ProgramSubject, sizes: Mapping[str, int | float]
    ) -> Estimate | None:
        ranks = int(sizes.get(RANKS, 0))
        if subject.function.name != MODULE:
            self.refused["not measured: only whole files of ranks are, and this is a function"] = (
                None
            )
            return None
        if not 0 < ranks <= this_host().cores:
            self.refused[f"not measured: {ranks} ranks on {this_host().cores} cores"] = None
            return None
        named = {name: value for name, value in sizes.items() if name != RANKS}
        one = of_script(subject.path, read_source(subject.path).text, named)
        if isinstance(one.found, NoPiece):
            raise Refused(one.found.line, one.found.why)
        piece = self._piece(one, Kept(self.machine.name, ranks), named, ranks=ranks)
        if piece is None:
            return None
        return _whole(piece.times_s, _by_line(piece), one, _modelled(subject, sizes))

    def _piece(
        self,
        one: Subject,
        kept: Kept,
        sizes: Mapping[str, int | float],
        lines: Mapping[int, int] | None = None,
        ranks: int = 1,
    ) -> Piece | None:
        """Return what is kept of a subject, or is sampled now if that was asked for."""
        assert not isinstance(one.found, NoPiece)
        known = kept.known(*one.found)
        if known is not None or self.effort is None:
            return known
        effort = replace(self.effort, ranks=ranks, one_thread=lines is not None)
        (found,) = sampled([one], effort, kept.known, lambda subject: self.told(subject.title))
        if isinstance(found, NoPiece):
            line = found.line if lines is None else lines.get(found.line, 0)
            raise Refused(line, found.why)
        kept.keep([one], [found], sizes)
        return found


def _term(label: str, model: str, times: Times) -> TermEstimate:
    return TermEstimate(label, model, *map(Seconds, times))


def _by_line(piece: Piece) -> tuple[TermEstimate, ...]:
    """Return the statements of a piece as terms, the whole where there are none."""
    if not piece.parts_s:
        return (_term("all of it", MEASURED, piece.times_s),)
    return tuple(
        _term(f"line {line}", MEASURED, times) for line, times in sorted(piece.parts_s.items())
    )


def _whole(
    times: Times,
    terms: tuple[TermEstimate, ...],
    what: Subject,
    modelled: Estimate | None,
) -> Estimate:
    low, mid, high = map(Seconds, times)
    return Estimate(
        low=low,
        mid=mid,
        high=Seconds(math.inf) if what.left_out else high,
        terms=terms,
        provenance=Provenance.MEASURED,
        in_range=True,
        remarks=() if modelled is None else (_as_modelled(modelled),),
        omitted=tuple(Omission(*one, "left out of what was measured") for one in what.left_out),
    )


def _modelled(
    subject: KernelSubject | ProgramSubject, sizes: Mapping[str, int | float]
) -> Estimate | None:
    try:
        priced = subject.price({})
        return evaluate_price(priced, sizes) if isinstance(priced, Priced) else None
    except (SourceProblem, ExprError):
        return None


def _as_modelled(modelled: Estimate) -> str:
    least = "" if modelled.complete else "at least "
    return f"the models alone say {least}{duration(modelled.mid)}"
