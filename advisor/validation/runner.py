"""Doing experiments: each becomes a section of the report, or says why it cannot be done."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from advisor.validation.experiments import SECTIONS, load_experiment
from advisor.validation.results import CannotValidateError, Row, Section
from costdb.calibration.hardware import Bystanders, usable_cores
from costdb.machines import Machine
from costdb.records import dataclass, replace

_NOTICEABLE_CORES = 0.15


@dataclass(frozen=True, slots=True)
class Context:
    """What an experiment is done with.

    Attributes
    ----------
    machine : Machine
        The profile of the machine that this runs on.
    progress : callable
        Told what is being done, and which share of the experiment is, from 0 to 1.
    """

    machine: Machine
    progress: Callable[[str, float], None] = lambda doing, share: None


def make_sections(names: Sequence[str], context: Context) -> Iterator[Section]:
    """Yield the sections; one that cannot be made is skipped, with the reason."""
    for name in names or SECTIONS:
        others = Bystanders()
        made = _made(name, context)
        busy = others.busy_cores()
        yield replace(
            made,
            notes=(*made.notes, *_disturbed(busy)),
            busy_cores=busy,
        )


def _made(name: str, context: Context) -> Section:
    try:
        return do(name, context)
    except CannotValidateError as problem:
        return Section(name, name, skipped=str(problem))
    except ImportError as error:
        return Section(name, name, skipped=f"{error.name or error} is missing")
    except Exception as error:
        # whatever is wrong with one experiment, the others are worth having
        reason = str(error) if isinstance(error, ValueError) else repr(error)
        return Section(name, name, skipped=f"failed: {' '.join(reason.split())}")


def do(name: str, context: Context) -> Section:
    """Do the experiment of a name, or of a document's path.

    Raises
    ------
    CannotValidateError
        The document cannot be used, or the machine has too few cores.
    """
    experiment = load_experiment(name)
    if usable_cores() < experiment.cores:
        raise CannotValidateError(f"{experiment.name} needs {experiment.cores} cores")
    rows: list[Row] = []
    notes: list[str] = [*experiment.notes]
    skipped: list[str] = []
    context.progress(experiment.name, 0.0)
    if experiment.samples is not None:
        from advisor.validation.figures import rows_of_samples

        machine = context.machine
        rows += rows_of_samples(experiment, experiment.samples, machine, skipped.append)
    if experiment.cases:
        from advisor.validation.cases import left_out, outcomes
        from advisor.validation.figures import rows_of

        def progress(share: float) -> None:
            context.progress(experiment.name, share)

        found = list(outcomes(experiment, context.machine, progress, skipped.append))
        rows += rows_of(experiment, found)
        notes += left_out(times for one in found for times in one.measured)
    return Section(experiment.name, experiment.title, tuple(rows), tuple(notes), "; ".join(skipped))


def _disturbed(busy_cores: float | None) -> tuple[str, ...]:
    """Return what is to be said of other processes that ran meanwhile."""
    if busy_cores is None or busy_cores < _NOTICEABLE_CORES:
        return ()
    return (
        f"Other processes kept {busy_cores:.1f} cores busy meanwhile: what was measured may be too "
        "long, validate again on a machine at rest.",
    )
