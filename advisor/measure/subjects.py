"""What of a file can be sampled: its kernels, or all of it as a script, with their rewrites."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict

from advisor.measure.language import Refused, Sampled, sampled_file, sampled_function
from advisor.measure.pieces import Arguments, Effort, NoPiece, Piece, sample
from advisor.verify.cases import ORIGINAL, Case, ProgramCase
from costdb.records import dataclass


@dataclass(frozen=True, slots=True)
class Subject:
    """Something to sample.

    Attributes
    ----------
    path, name : str
        File, and kernel; the name is empty for a whole file.
    code, title : str
        The rewrite; empty and ``as written`` for none.
    found : (Sampled, Arguments) or NoPiece
    predicted_s : float or None
    """

    path: str
    name: str
    code: str
    title: str
    found: tuple[Sampled, Arguments] | NoPiece
    predicted_s: float | None = None

    @property
    def complete(self) -> bool:
        """Whether all of it is sampled."""
        return not isinstance(self.found, NoPiece) and not self.found[0].left_out


def of_case(case: Case) -> Iterator[Subject]:
    """Yield a kernel and its rewrites, with the arguments that it states."""
    name = case.kernel.rpartition(".")[2]
    arrays = {one.name: asdict(one) for one in case.arrays}
    for variant in case.variants:
        found: tuple[Sampled, Arguments] | NoPiece
        try:
            program = sampled_function(case.path, variant.source, name)
            found = program, dict(arguments_of(program, arrays, case.sizes))
        except Refused as refused:
            found = NoPiece(refused.line, refused.why)
        predicted = variant.predicted
        predicted_s = predicted.mid if predicted is not None and predicted.complete else None
        yield Subject(case.path, case.kernel, variant.code, variant.title, found, predicted_s)


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


def of_script(path: str, source: str, sizes: Mapping[str, int | float]) -> Subject:
    """Return all of a file."""
    return Subject(path, "", "", ORIGINAL, _script(path, source, sizes))


def _script(
    path: str, source: str, sizes: Mapping[str, int | float]
) -> tuple[Sampled, Arguments] | NoPiece:
    try:
        return sampled_file(path, source, sizes), {}
    except Refused as refused:
        return NoPiece(refused.line, refused.why)


def of_program(case: ProgramCase, sizes: Mapping[str, int | float]) -> Iterator[Subject]:
    """Yield a program of ranks and its rewrites, each of them as a whole."""
    found = _script(case.path, case.source, sizes)
    whole_s = None if case.whole is None or not case.whole.complete else case.whole.mid
    yield Subject(case.path, "", "", ORIGINAL, found, whole_s)
    for one in case.rewrites:
        after_s = None
        if whole_s is not None and one.change is not None:
            after_s = max(0.0, whole_s - one.change.before.mid + one.change.after.mid)
        found = _script(case.path, one.source, sizes)
        yield Subject(case.path, "", one.code, one.title, found, after_s)


def sampled(
    subjects: Sequence[Subject],
    effort: Effort,
    kept: Callable[[Sampled, Arguments], Piece | None],
    told: Callable[[Subject], object],
) -> list[Piece | NoPiece]:
    """Return what is `kept` of subjects, and sample the others, taking turns."""
    found: dict[int, Piece | NoPiece] = {}
    lacking: list[tuple[int, tuple[Sampled, Arguments]]] = []
    for number, one in enumerate(subjects):
        if isinstance(one.found, NoPiece):
            found[number] = one.found
        elif (known := kept(*one.found)) is not None:
            found[number] = known
        else:
            lacking.append((number, one.found))
    made = sample(
        [program for _, program in lacking],
        effort,
        lambda turn: told(subjects[lacking[turn][0]]),
    )
    found.update(zip((number for number, _ in lacking), made, strict=True))
    return [found[number] for number in range(len(subjects))]
