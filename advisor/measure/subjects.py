"""What of a file can be sampled: its kernels with their rewrites, or all of it as a script."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

from advisor.measure.language import Refused, Sampled, sampled_file, sampled_function
from advisor.measure.pieces import Arguments, Effort, NoPiece, Piece, sample
from advisor.verify.running import Case


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
    """

    path: str
    name: str
    code: str
    title: str
    found: tuple[Sampled, Arguments] | NoPiece

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
            found = program, dict(_arguments(program, arrays, case.sizes))
        except Refused as refused:
            found = NoPiece(refused.line, refused.why)
        yield Subject(case.path, case.kernel, variant.code, variant.title, found)


def _arguments(
    program: Sampled,
    arrays: Mapping[str, Mapping[str, object]],
    sizes: Mapping[str, int | float],
) -> Iterator[tuple[str, Mapping[str, object]]]:
    for name in program.parameters:
        if name in arrays:
            yield name, arrays[name]
        elif name in sizes:
            yield name, {"value": sizes[name]}
        elif name in program.kinds:
            yield name, {"kind": program.kinds[name]}


def of_script(path: str, source: str, sizes: Mapping[str, int | float]) -> Subject:
    """Return all of a file."""
    found: tuple[Sampled, Arguments] | NoPiece
    try:
        found = sampled_file(path, source, sizes), {}
    except Refused as refused:
        found = NoPiece(refused.line, refused.why)
    return Subject(path, "", "", "as written", found)


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
