"""The cases of an experiment, predicted and measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from statistics import median

from advisor.analysis.lower import Unpriced
from advisor.ir.concrete import at_sizes
from advisor.ir.kernel import Kernel
from advisor.ir.proposal import Transform
from advisor.ranking.compare import cost
from advisor.ranking.worth import as_one_process
from advisor.transform_registry import transforms
from advisor.validation.experiments import (
    CannotValidateError,
    Case,
    Experiment,
    Way,
)
from advisor.verify.cases import case_of
from advisor.verify.running import Effort, measure
from costdb.calibration.section import typical
from costdb.choosing import SubjectError
from costdb.documents import load_description
from costdb.estimate import Estimate, Missing, Seconds
from costdb.evaluate import evaluate_price
from costdb.launch.processes import ONE_THREAD, CannotRunError, JobFailedError, answers
from costdb.machines import Machine
from costdb.pricing import price_process
from costdb.records import dataclass, replace
from costdb.work import Leaf, Sequential

Sizes = Mapping[str, int]
_WORKER = "advisor.validation.worker"
_PATIENCE_S = 240.0
_ASIDE = 20
_EFFORT = Effort(launches=2, repetitions=9, seconds=0.2)


@dataclass(frozen=True, slots=True)
class Job:
    """Programs that do one thing in other ways, at the same sizes."""

    programs: tuple[str, ...]
    sizes: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Times:
    """What one way took: what is typical of rounds, and every repetition, least first."""

    seconds: float
    taken_s: tuple[float, ...]

    @property
    def usual_s(self) -> tuple[float, float]:
        """Between these are nine in ten repetitions."""
        aside = len(self.taken_s) // _ASIDE
        return self.taken_s[aside], self.taken_s[-1 - aside]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a case at some sizes: of each way what was predicted, and what it took."""

    case: Case
    sizes: Sizes
    predicted: tuple[Estimate, ...]
    measured: tuple[Times, ...]

    @property
    def mids_s(self) -> tuple[float, ...]:
        """What each way is predicted to take."""
        return tuple(one.mid for one in self.predicted)

    @property
    def taken_s(self) -> tuple[float, ...]:
        """What each way took."""
        return tuple(one.seconds for one in self.measured)


def outcomes(
    experiment: Experiment,
    machine: Machine,
    progress: Callable[[float], object],
    skip: Callable[[str], None],
) -> Iterator[Outcome]:
    """Yield what becomes of all cases; `skip` is told why those on some ranks have nothing."""
    for ranks in dict.fromkeys(case.ranks for case in experiment.cases):
        cases = [case for case in experiment.cases if case.ranks == ranks]
        try:
            yield from list(_on_ranks(experiment, cases, ranks, machine, progress))
        except (CannotValidateError, SubjectError) as problem:
            skip(str(problem))


def _on_ranks(
    experiment: Experiment,
    cases: Sequence[Case],
    ranks: int,
    machine: Machine,
    progress: Callable[[float], object],
) -> Iterator[Outcome]:
    each = [(case, sizes) for case in cases for sizes in case.points]
    prices = [[_price(case, way, sizes, machine) for way in case.ways] for case, sizes in each]
    if all(way.program for case in cases for way in case.ways):
        jobs = [Job(_programs(case), sizes) for case, sizes in each]
        found = run_in_rounds(jobs, ranks, experiment.seconds, experiment.rounds, progress)
    else:
        found = []
        for case, sizes in each:
            found.append(_rewritten(case, sizes, machine))
            progress(len(found) / len(each))
    for (case, sizes), predicted, times in zip(each, prices, found, strict=True):
        private = iter(times[len(case.ways) :])
        for number, way in enumerate(case.ways):
            if way.private:
                predicted[number] = _with(predicted[number], next(private))
        yield Outcome(case, sizes, tuple(predicted), times[: len(case.ways)])


def _programs(case: Case) -> tuple[str, ...]:
    private = (way.private for way in case.ways if way.private)
    return (*(way.program for way in case.ways), *private)


def _with(price: Estimate, own: Times) -> Estimate:
    low, high = own.usual_s
    return replace(
        price,
        low=Seconds(price.low + low),
        mid=Seconds(price.mid + own.seconds),
        high=Seconds(price.high + high),
    )


def _price(case: Case, way: Way, sizes: Sizes, machine: Machine) -> Estimate:
    if way.references:
        found = price_process(Sequential(tuple(map(Leaf, way.references))), machine)
    elif case.subject.endswith(".toml"):
        subject = load_description(examples_folder() / case.subject).on(machine)
        found = subject.price(subject.bind({**way.choose, **sizes}).words)
    else:
        kernel = kernel_of(case, way)
        try:
            costed = cost(
                at_sizes(kernel if way.program else as_one_process(kernel), sizes), machine
            )
        except Unpriced as unpriced:
            raise CannotValidateError(f"{case.subject}: {unpriced.reason}") from unpriced
        found = costed if isinstance(costed, Missing) else costed.priced
    if isinstance(found, Missing):
        raise CannotValidateError(f"{case.operation}: {found.what}; {found.remedy}")
    return evaluate_price(found, sizes)


def kernel_of(case: Case, way: Way) -> Kernel:
    """Return the kernel of a way: of the example with other annotations, or as a rule rewrites it.

    Raises
    ------
    CannotValidateError
        The example is not the one that the changes were made for.
    """
    kernel = _kernel(case.subject, way.changes)
    if not way.rewritten:
        return kernel
    for proposal in (one for rule in _rules(case) for one in rule.propose(kernel)):
        return proposal.variant
    raise CannotValidateError(f"{case.subject}: {case.rule} proposes nothing")


@cache
def _kernel(subject: str, changes: tuple[tuple[str, str], ...]) -> Kernel:
    from advisor.frontend.kernels import read_kernels

    file, _, name = subject.partition(":")
    path = examples_folder() / file
    source = path.read_text("utf-8")
    for old, new in changes:
        if old not in source:
            raise CannotValidateError(f"{path}: expected {old!r} in it: another version?")
        source = source.replace(old, new)
    for kernel in read_kernels(str(path), source):
        if kernel.name == name:
            return kernel
    raise CannotValidateError(f"{path}: has no kernel {name}")


def _rules(case: Case) -> list[Transform]:
    return [rule for rule in transforms() if rule.code == case.rule]


def _rewritten(case: Case, sizes: Sizes, machine: Machine) -> tuple[Times, ...]:
    """Run a kernel and what its rule makes of it, on this process's one thread."""
    path = examples_folder() / case.subject.partition(":")[0]
    kernel, source = kernel_of(case, case.ways[0]), path.read_text("utf-8")
    run = case_of(str(path), source, kernel, sizes, machine, _rules(case))
    # a rule may propose more, of which nothing is said here
    taken = measure(replace(run, variants=run.variants[: len(case.ways)]), _EFFORT)
    failed = [one.failure for one in taken if one.failure]
    if failed or len(taken) < len(case.ways):
        raise CannotValidateError(f"{case.operation}: {(failed or ['no rewrite is proposed'])[0]}")
    return tuple(Times(one.seconds, one.times_s) for one in taken)


# Processes that run programs of the examples, and what they measured.


def examples_folder() -> Path:
    """Return where the examples are: in the installed package, or beside its source.

    Raises
    ------
    CannotValidateError
        They are in neither place.
    """
    package = Path(__file__).parents[1]
    for folder in (package / "examples", package.parent / "examples"):
        if (folder / "studies").is_dir():
            return folder
    raise CannotValidateError(
        f"the examples are missing: neither {package / 'examples'} nor "
        f"{package.parent / 'examples'} has them; install a wheel of kernel-advisor"
    )


def run_in_rounds(
    jobs: Sequence[Job],
    ranks: int,
    seconds: float,
    rounds: int,
    progress: Callable[[float], object],
) -> list[tuple[Times, ...]]:
    """Run jobs one after another, and all of them again; return the times of each one's programs.

    What the host does for a while then falls on all alike, and on none of them alone.

    Parameters
    ----------
    seconds : float
        For each job, all rounds together.
    progress : callable
        Takes the share that is done, above 0 to 1.

    Raises
    ------
    CannotValidateError
        MPI is missing, or the ranks ended before they were done.
    """
    every = []
    for times in run_jobs([*jobs] * rounds, ranks, seconds / rounds):
        every.append(times)
        progress(len(every) / (rounds * len(jobs)))
    return [
        tuple(_all_rounds(of_one) for of_one in zip(*every[number :: len(jobs)], strict=True))
        for number in range(len(jobs))
    ]


def _all_rounds(rounds: Sequence[Times]) -> Times:
    return Times(
        typical([one.seconds] for one in rounds),
        tuple(sorted(taken for one in rounds for taken in one.taken_s)),
    )


def run_jobs(jobs: Sequence[Job], ranks: int, seconds: float) -> Iterator[tuple[Times, ...]]:
    """Run jobs on ranks; yield the times of each one's programs as they come.

    Raises
    ------
    CannotValidateError
        MPI is missing, or the ranks ended before they were done.
    """
    stated = {
        "examples": str(examples_folder()),
        "ranks": ranks,
        "seconds": seconds,
        "jobs": [{"programs": job.programs, "sizes": dict(job.sizes)} for job in jobs],
    }
    mpi, done = ranks if ranks > 1 else 0, 0
    try:
        for found in answers(_WORKER, stated, _PATIENCE_S, mpi, ONE_THREAD):
            done += 1
            yield tuple(Times(median(taken), tuple(sorted(taken))) for taken in found)
    except CannotRunError as error:
        raise CannotValidateError(str(error)) from error
    except JobFailedError as error:
        # the last one may fail on its way out, with nothing left to do
        if done < len(jobs):
            raise CannotValidateError(
                f"the ranks ended after {done} of {len(jobs)} jobs: {error}"
            ) from error
