"""Runs built programs on ranks: what is run, and what came of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from advisor.build.program import build
from advisor.ir.kernel import Kernel
from advisor.verify.cases import ArrayInput, inputs_of
from costdb.launch.processes import ONE_THREAD, answers
from costdb.records import dataclass

_PATIENCE_S = 120.0


@dataclass(frozen=True, slots=True)
class BuiltCase:
    """A kernel as written, and programs that were built of it.

    Attributes
    ----------
    source, kernel : str
        The file that is held against, and which function of it.
    programs : tuple of str
    arrays : tuple of ArrayInput
    sizes : mapping of str to number
    """

    source: str
    kernel: str
    programs: tuple[str, ...]
    arrays: tuple[ArrayInput, ...]
    sizes: Mapping[str, int | float]


@dataclass(frozen=True, slots=True)
class Ran:
    """What came of a built program.

    Attributes
    ----------
    differs : str
        What of its results is not as the kernel has it; empty where all is.
    samples_s : tuple of float
        What its slowest rank took, each time.
    """

    differs: str
    samples_s: tuple[float, ...]


def built_case(
    path: str, kernel: Kernel, sizes: Mapping[str, int | float], variants: Iterable[Kernel] = ()
) -> BuiltCase:
    """Return a kernel with programs of it and of variants, which may be distributed otherwise.

    Raises
    ------
    NotBuiltError
        One of them has no form.
    """
    source = kernel.context.source
    programs = tuple(build(path, [one], sizes) for one in (kernel, *variants))
    name = kernel.name.rpartition(".")[2]
    return BuiltCase(source, name, programs, tuple(inputs_of(kernel, sizes)), sizes)


def run_built(
    path: str,
    cases: Sequence[BuiltCase],
    ranks: int,
    repetitions: int = 0,
    seconds: float = 1.0,
    patience_s: float = _PATIENCE_S,
) -> Iterator[tuple[Ran, ...]]:
    """Yield of each case what came of its programs, as many as there are.

    Parameters
    ----------
    path : str
        Beside this file lies what the kernels import.
    cases : sequence of BuiltCase
    ranks, repetitions : int
    seconds : float
        How long repetitions of one program may take.
    patience_s : float

    Raises
    ------
    CannotRunError
        mpi4py or a launcher is missing.
    JobFailedError
        A program failed; cases before that were yielded.
    """
    job = {
        "folder": str(Path(path).resolve().parent),
        "repetitions": repetitions,
        "seconds": seconds,
        "cases": [
            {
                "source": one.source,
                "kernel": one.kernel,
                "built": one.programs,
                "arrays": [asdict(array) for array in one.arrays],
                "sizes": dict(one.sizes),
            }
            for one in cases
        ],
    }
    for found in answers("advisor.verify.ranks", job, patience_s, ranks, ONE_THREAD):
        yield tuple(Ran(one["differs"], tuple(one["samples_s"])) for one in found)
