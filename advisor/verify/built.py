"""Builds kernels and their plans for ranks, runs them, and says what came of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from advisor.build.plans import Plan, on_ranks, plan_of, proposed
from advisor.build.program import NotBuiltError, build
from advisor.distribution import NotDistributed
from advisor.ir.kernel import Kernel
from advisor.ir.proposal import Transform
from advisor.ranking.compare import time_s
from advisor.verify.cases import ORIGINAL, ArrayInput, Case, Variant, inputs_of
from advisor.verify.running import Effort, Measured
from costdb.evaluate import evaluate_price
from costdb.launch.processes import ONE_THREAD, JobFailedError, answers
from costdb.machines import Machine
from costdb.records import dataclass

_PATIENCE_S = 120.0
_MOST_PLANS = 6
"""Plans of a kernel that are run: those that are predicted to be fastest."""


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


def distributed_case(
    path: str,
    kernel: Kernel,
    sizes: Mapping[str, int | float],
    machine: Machine | None,
    transforms: Sequence[Transform],
    ranks: int,
) -> Case:
    """Return a kernel on ranks, as written and as rules would have it, each as a built program.

    Plans that cannot be built are left out.

    Raises
    ------
    NotBuiltError
        The kernel as written cannot be built.
    """
    here = {**sizes, "P": ranks}
    written = plan_of(on_ranks(kernel, ranks), machine, here)
    variants = [_variant(path, written, here)]
    plans = proposed(written, machine, here, transforms)
    for plan in sorted(plans, key=lambda one: _time(one, here)):
        try:
            made = _variant(path, plan, here)
        except NotBuiltError:
            continue
        if len(variants) <= _MOST_PLANS and all(made.source != one.source for one in variants):
            variants.append(made)
    inputs = tuple(inputs_of(kernel, here))
    return Case(path, kernel.name, here, inputs, tuple(variants), ranks)


def is_distributed(kernel: Kernel) -> bool:
    """Return whether ranks share any of a kernel's arrays."""
    return any(
        not isinstance(dim, NotDistributed)
        for array in kernel.arrays.values()
        for dim in array.spec.dims
    )


def _time(plan: Plan, sizes: Mapping[str, int | float]) -> float:
    return float("inf") if plan.costed is None else time_s(plan.costed, sizes)


def _variant(path: str, plan: Plan, sizes: Mapping[str, int | float]) -> Variant:
    code, title = plan.steps[-1] if plan.steps else ("", ORIGINAL)
    predicted = None if plan.costed is None else evaluate_price(plan.costed.priced, sizes)
    text = build(path, [plan.kernel], sizes)
    return Variant(code, title, text, False, plan.costed, predicted, plan.unknown)


def measure_built(source: str, case: Case, effort: Effort) -> list[Measured]:
    """Run all programs of a case, taking turns in each launch.

    Raises
    ------
    CannotRunError
        mpi4py or a launcher is missing.
    """
    texts = tuple(one.source for one in case.variants)
    name = case.kernel.rpartition(".")[2]
    given = BuiltCase(source, name, texts, case.arrays, case.sizes)
    launches: list[tuple[Ran, ...]] = []
    try:
        for _ in range(effort.launches):
            launches += run_built(
                case.path, [given], case.ranks, effort.repetitions, effort.seconds
            )
    except JobFailedError as error:
        return [Measured(failure=str(error)) for _ in texts]
    found = []
    for runs in zip(*launches, strict=True):
        wrong = next((one.differs for one in runs if one.differs), "")
        found.append(Measured.of([one.samples_s for one in runs], not wrong))
    return found
