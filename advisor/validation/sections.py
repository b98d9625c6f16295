"""The sections of a validation, by name; each is imported only when it is made."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from types import MappingProxyType

from costdb.calibration.host.bystanders import Bystanders
from costdb.machines import Machine
from costdb.validation.results import CannotValidateError, Section

SECTIONS: Mapping[str, str] = MappingProxyType(
    {
        "lines": "advisor.validation.fits:lines",
        "smp": "advisor.validation.fits:smp",
        "sorts": "advisor.validation.fits:sorts",
        "crossover": "advisor.validation.crossover:crossover",
        "pgas": "advisor.validation.remote:remote",
        "choices": "advisor.validation.choices:choices",
    }
)
"""In the order of a report: module and function."""

_NOTICEABLE_CORES = 0.15


@dataclass(frozen=True, slots=True)
class Context:
    """What a section is made with.

    Attributes
    ----------
    machine : Machine
        The profile of the machine that this runs on.
    progress : callable
        Told what is being done, and which share of the section is, from 0 to 1.
    """

    machine: Machine
    progress: Callable[[str, float], None] = lambda doing, share: None


def make_sections(names: Sequence[str], context: Context) -> Iterator[Section]:
    """Yield the sections; one that cannot be made is skipped, with the reason."""
    # it needs NumPy, which those who only ask for names of sections do not
    from costdb.calibration.host.neighbour_watch import NeighbourWatch

    for name in names or SECTIONS:
        others = Bystanders()
        with NeighbourWatch(context.machine) as neighbours:
            made = _made(name, context)
        busy = others.busy_cores()
        yield replace(
            made,
            notes=(*made.notes, *_disturbed(busy), *neighbours.told()),
            busy_cores=busy,
            cores_shared=neighbours.cores_shared,
        )


def _made(name: str, context: Context) -> Section:
    module, _, function = SECTIONS[name].partition(":")
    try:
        made: Section = getattr(import_module(module), function)(context)
    except CannotValidateError as problem:
        return Section(name, name, skipped=str(problem))
    except ImportError as error:
        return Section(name, name, skipped=f"{error.name or error} is missing")
    except Exception as error:
        # whatever is wrong with one section, the others are worth having
        reason = str(error) if isinstance(error, ValueError) else repr(error)
        return Section(name, name, skipped=f"failed: {' '.join(reason.split())}")
    return made


def _disturbed(busy_cores: float | None) -> tuple[str, ...]:
    """Return what is to be said of other processes that ran meanwhile."""
    if busy_cores is None or busy_cores < _NOTICEABLE_CORES:
        return ()
    return (
        f"Other processes kept {busy_cores:.1f} cores busy meanwhile: what was measured may be too "
        "long, validate again on a machine at rest.",
    )
