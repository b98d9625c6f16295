"""What was measured in the place of what models say: of a kernel, of one rank's part, of a file.

Of a kernel on one process all is measured, or lies between sizes that were; of one that is
distributed what a rank does between its messages, which the models price; of a program of ranks
the whole file, on as many ranks as there are cores.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from advisor.evidence import between
from advisor.files import read_source
from advisor.finding import INTERPOLATED, MEASURED, MODULE, Times
from advisor.ir.spmd.program import RANKS
from advisor.measure.language import Refused, Sampled, sampled_file, sampled_function
from advisor.measure.local import ENTRY, NotLocalError, local_parts
from advisor.measure.pieces import (
    Arguments,
    Effort,
    Found,
    Kept,
    NoPiece,
    Piece,
    arguments_of,
    left_out_of,
    sample,
)
from advisor.ranking.compare import ranks_of
from advisor.ranking.subjects import PROGRAM, AlternativesSubject, KernelSubject, ProgramSubject
from advisor.report.style import Style, duration, json_text, ratio, table
from advisor.source import SourceProblem
from advisor.verify.cases import ORIGINAL, Case, Variant, inputs_of, speed_up
from costdb.calibration.section import this_host
from costdb.choosing import Bound
from costdb.choosing import Subject as Predicted
from costdb.evaluate import Estimate, Missing, Priced, Seconds, TermEstimate, evaluate_price
from costdb.expr import ZERO, ExprError, evaluate
from costdb.machines import Machine
from costdb.quantity import Omission, Provenance
from costdb.records import dataclass, field, grouped, replace

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
        one = program, dict(arguments_of(program, arrays, sizes))
        kept = Kept(self.machine.name, 1)
        piece = self._piece(one, ORIGINAL, kept, sizes)
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
            raise Refused(0, f"{self.machine.name} has no rates of array calls")
        if abs(sum(term.mid for term in modelled.terms) - modelled.mid) > _SAME * modelled.mid:
            raise Refused(0, "what ranks do overlaps with their messages")
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
            one, title = (program, dict(arguments_of(program, arrays, sizes))), f"a rank of {ranks}"
            pieces.append(self._piece(one, title, Kept(self.machine.name, 1), {}, part.lines))
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
            raise Refused(0, "only whole files of ranks are, and this is a function")
        if not 0 < ranks <= this_host().cores:
            raise Refused(0, f"{ranks} ranks on {this_host().cores} cores")
        named = {name: value for name, value in sizes.items() if name != RANKS}
        program = sampled_file(subject.path, read_source(subject.path).text, named)
        one: tuple[Sampled, Arguments] = program, {}
        piece = self._piece(one, ORIGINAL, Kept(self.machine.name, ranks), named, ranks=ranks)
        if piece is None:
            return None
        return _whole(piece.times_s, _by_line(piece), one, _modelled(subject, sizes))

    def _piece(
        self,
        one: tuple[Sampled, Arguments],
        title: str,
        kept: Kept,
        sizes: Mapping[str, int | float],
        lines: Mapping[int, int] | None = None,
        ranks: int = 1,
    ) -> Piece | None:
        """Return what is kept of a program, or is sampled now if that was asked for."""
        known = kept.known(*one)
        if known is not None or self.effort is None:
            return known
        effort = replace(self.effort, ranks=ranks, one_thread=lines is not None)
        (found,) = sample([one], effort, lambda number: self.told(title))
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
    what: Found,
    modelled: Estimate | None,
) -> Estimate:
    low, mid, high = map(Seconds, times)
    return Estimate(
        low=low,
        mid=mid,
        high=Seconds(math.inf) if left_out_of(what) else high,
        terms=terms,
        provenance=Provenance.MEASURED,
        in_range=True,
        remarks=() if modelled is None else (_as_modelled(modelled),),
        omitted=tuple(Omission(*one, "left out of what was measured") for one in left_out_of(what)),
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


# --- report ---------------------------------------------------------------------------------------
# What sampling showed, beside what was predicted: as text, and as JSON.


_MOST_LINES = 12
_SMALL = 0.01


@dataclass(frozen=True, slots=True)
class Measurement:
    """A kernel or a whole file with its rewrites, and what sampling showed of each.

    `free` is the size, if any, that has no value of its own, so that it is measured at several.
    """

    case: Case
    ways: tuple[Found, ...]
    found: tuple[Piece | NoPiece, ...]
    free: str = ""

    @property
    def at(self) -> int | float:
        """The value of the free size."""
        return self.case.sizes[self.free]

    @property
    def each(self) -> Iterator[tuple[Variant, Found, Piece | NoPiece]]:
        """Each way to write it, what of that is sampled, and what came of it."""
        yield from zip(self.case.variants, self.ways, self.found, strict=True)

    def predicted_s(self, way: Variant) -> float | None:
        """Return what a way is predicted to take; None where some of that has no price."""
        case = self.case
        whole = way.predicted if case.kernel else case.variants[0].predicted
        return case.predicted_s(way) if whole is not None and whole.complete else None

    @property
    def seconds(self) -> float | None:
        """How long all of them take together; None where one could not be measured."""
        pieces = [one for one in self.found if isinstance(one, Piece)]
        return sum(one.mid_s for one in pieces) if len(pieces) == len(self.found) else None

    def faster(self, code: str, title: str) -> bool | None:
        """Return whether a rewrite is faster here; None where that is not known."""
        before = self.found[0]
        for way, _, piece in self.each:
            if (way.code, way.title) != (code, title):
                continue
            if isinstance(before, Piece) and isinstance(piece, Piece):
                return piece.mid_s < before.mid_s
        return None

    @property
    def rewrites(self) -> tuple[tuple[str, str], ...]:
        """Rules and titles of its rewrites."""
        return tuple((one.code, one.title) for one in self.case.rewrites)


def changes_between(one: Measurement, other: Measurement) -> bool:
    """Return whether some rewrite is faster in one of two measurements, and not in the other."""
    return any({one.faster(*way), other.faster(*way)} == {True, False} for way in one.rewrites)


def faster_from(made: Sequence[Measurement]) -> Iterator[str]:
    """Yield from which value of their free size on the rewrites of a kernel are faster."""
    first, name = made[0], made[0].free
    at = ", ".join(f"{one.at}" for one in made)
    for code, title in first.rewrites:
        said = [one.faster(code, title) for one in made]
        where = f"{first.case.path}: {first.case.kernel}, {code}"
        if None in said:
            continue
        slower = [number for number, faster in enumerate(said) if not faster]
        faster = [number for number, faster in enumerate(said) if faster]
        if not faster:
            what = f"never faster for {name} up to {made[-1].at}"
        elif not slower:
            what = f"faster for every {name} tried"
        elif slower[-1] < faster[0]:
            what = f"faster from {name} = {made[faster[0]].at}"
        elif faster[-1] < slower[0]:
            what = f"faster up to {name} = {made[faster[-1]].at}"
        else:
            values = ", ".join(f"{made[number].at}" for number in faster)
            what = f"faster at {name} = {values} only"
        yield f"{where}: {what} (measured at {at})"


def as_text(made: Sequence[Measurement], style: Style) -> str:
    """Return a line for each statement of a script, and for each kernel and rewrite."""
    text = "".join(_of_script(one, style) for one in made if not one.case.kernel)
    compared = [one for one in made if one.case.kernel or one.case.rewrites]
    if compared:
        heads = ("kernel", "rule", "predicted", "measured", "from", "to", "faster")
        text += table(heads, [row for one in compared for row in _rows(one)], 2, style)
    kernels = grouped(((one.case.path, one.case.kernel), one) for one in compared if one.free)
    notes = [line for of_kernel in kernels.values() for line in faster_from(of_kernel)]
    notes += dict.fromkeys(line for one in compared for line in _notes(one))
    return text + "".join(f"{line}\n" for line in notes)


def _rows(one: Measurement) -> Iterator[tuple[str, ...]]:
    before = one.found[0]
    for way, _, piece in one.each:
        written, predicted_s = way.title == ORIGINAL, one.predicted_s(way)
        name = f":{one.case.kernel}" if one.case.kernel else ""
        name += f" {one.free}={one.at}" if one.free else ""
        yield (
            f"{one.case.path}{name}" if written else "",
            way.code or ORIGINAL,
            "unknown" if predicted_s is None else duration(predicted_s),
            *(
                ("-", "-", "-")
                if isinstance(piece, NoPiece)
                else (duration(piece.mid_s), duration(piece.low_s), duration(piece.high_s))
            ),
            "" if written else _faster(before, piece),
        )


def _faster(before: Piece | NoPiece, after: Piece | NoPiece) -> str:
    if isinstance(before, NoPiece) or isinstance(after, NoPiece):
        return "-"
    found = speed_up(before.times_s, after.times_s)
    return f"{ratio(found.mid)} ({ratio(found.low)} to {ratio(found.high)})"


def _notes(one: Measurement) -> Iterator[str]:
    for way, program, piece in one.each:
        if not one.case.kernel and way.title == ORIGINAL:
            continue
        name = f"{one.case.path}: {one.case.kernel or 'the file'}, {way.code or way.title}"
        if isinstance(piece, NoPiece):
            yield f"{name}: not measured: line {piece.line}: {piece.why}"
            continue
        for line, text in left_out_of(program):
            yield f"{name}: left out: line {line}: {text}"
        if piece.skipped and way.title == ORIGINAL:
            yield f"{name}: {_in_words(piece)}"


def _in_words(piece: Piece) -> str:
    loops = ", ".join(f"line {line}" for line in piece.skipped)
    return f"of the iterations of {loops} some were run, and the others taken to be like them"


def _of_script(one: Measurement, style: Style) -> str:
    path, piece, left_out = one.case.path, one.found[0], left_out_of(one.ways[0])
    if isinstance(piece, NoPiece):
        return f"{path}: not measured: line {piece.line}: {piece.why}\n"
    lines = read_source(path).text.splitlines()
    times = {line: mid for line, (_, mid, _) in piece.parts_s.items()}
    total = sum(times.values())
    most = sorted(times.items(), key=lambda pair: -pair[1])[:_MOST_LINES]
    rows = [
        (f"{line}", lines[line - 1].strip()[:60], duration(seconds), f"{seconds / total:.0%}")
        for line, seconds in sorted(most)
        if seconds >= _SMALL * total
    ]
    least = "at least " if left_out else ""
    head = (
        f"{path}: {least}{duration(piece.mid_s)} ({duration(piece.low_s)} to"
        f" {duration(piece.high_s)}), measured in {duration(piece.spent_s)}\n"
    )
    notes = [_in_words(piece)] if piece.skipped else []
    notes += [f"left out: line {line}: {text}" for line, text in left_out]
    shown = table(("line", "statement", "time", "share"), rows, 2, style)
    return head + shown + "".join(f"{note}\n" for note in notes)


def as_json(made: Sequence[Measurement]) -> str:
    """Return a JSON document: everything in seconds."""
    entries = [entry for one in made for entry in _entries(one)]
    return json_text({"measured": entries}, ascii_only=False)


def _entries(one: Measurement) -> Iterator[dict[str, Any]]:
    for way, program, piece in one.each:
        entry: dict[str, Any] = {
            "path": one.case.path,
            "kernel": one.case.kernel or None,
            "code": way.code or None,
            "title": way.title,
            "sizes": dict(one.case.sizes),
            "predicted_s": one.predicted_s(way),
        }
        if isinstance(piece, NoPiece):
            yield {**entry, "unknown": {"line": piece.line, "why": piece.why}}
            continue
        yield {
            **entry,
            "measured_s": dict(zip(("low", "mid", "high"), piece.times_s, strict=True)),
            "provenance": "measured in stretches, on made-up arrays",
            "complete": not left_out_of(program),
            "statements_s": {str(line): mid for line, (_, mid, _) in piece.parts_s.items()},
            "iterations_not_run": {str(line): many for line, many in piece.skipped.items()},
            "left_out": [{"line": line, "text": text} for line, text in left_out_of(program)],
        }
