"""One kernel priced as written and as proposed, on one machine, for sizes that are bound."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from advisor.analysis.lower import Unpriced, lower
from advisor.analysis.placement import ranks_of as ranks_along
from advisor.finding import REPORTED_FROM, Assumption
from advisor.ir.kernel import Kernel, at_sizes, once, symbols_of, whole_numbers_of
from advisor.source import SourceProblem, Span
from costdb.choosing import Crossover, crossover
from costdb.evaluate import (
    Estimate,
    Middles,
    Missing,
    Priced,
    Ratio,
    at_once,
    compare,
    evaluate_price,
    middle,
)
from costdb.expr import ONE, Expr, ExprError, evaluate, free_symbols, maximum
from costdb.machines import Machine
from costdb.pricing import price_process
from costdb.records import dataclass
from costdb.work import Process

# Which value every size has, what bound it, and whether each rank has a core of its own.


Number = int | float


@dataclass(frozen=True, slots=True)
class Sizes:
    """Values of sizes and their origins.

    Attributes
    ----------
    values : mapping of str to number
    origins : mapping of str to str
        What bound each: a line of the source, an observed run, a configuration file, or ``-D``.
    """

    values: Mapping[str, Number]
    origins: Mapping[str, str]

    def assumptions(self, names: Iterable[str]) -> tuple[Assumption, ...]:
        """Return the named sizes as assumptions of a finding, in alphabetical order."""
        return tuple(
            Assumption(name, self.values[name], self.origins[name]) for name in sorted(names)
        )


def bind_sizes(
    kernel: Kernel, given: Mapping[str, Number], given_by: Mapping[str, str] | None = None
) -> Sizes:
    """Return the sizes of a kernel: what the source says, overruled by `given`.

    Parameters
    ----------
    kernel : Kernel
    given : mapping of str to number
    given_by : mapping of str to str, optional
        What gave them, where it was not ``-D``.
    """
    values = {name: binding.value for name, binding in kernel.sizes.items()}
    origins = {
        name: binding.origin or f"line {binding.span.start_line}"
        for name, binding in kernel.sizes.items()
    }
    by = {name: (given_by or {}).get(name, "-D") for name in given}
    return Sizes({**values, **given}, {**origins, **by})


def checked_sizes(
    path: str,
    kernel: Kernel,
    given: Mapping[str, Number],
    given_by: Mapping[str, str] | None = None,
) -> Sizes:
    """Return the sizes of a kernel as :func:`bind_sizes` does, of which `given` can be true.

    Raises
    ------
    SourceProblem
        What counts elements, ranks or iterations is given as no whole number of at least 1.
    """
    sizes = bind_sizes(kernel, given, given_by)
    values = dict(sizes.values)
    for name in sorted(whole_numbers_of(kernel) & given.keys()):
        value = given[name]
        if value < 1 or not float(value).is_integer():
            at = kernel.span
            why = f"size {name} of kernel `{kernel.name}` must be a whole number of at least 1,"
            given_as = f"{why} not {value:g} ({sizes.origins[name]})"
            raise SourceProblem(path, at.start_line, at.start_column, given_as)
        values[name] = int(value)  # also of ``2048.0``
    return Sizes(values, sizes.origins)


def bindable(kernel: Kernel) -> frozenset[str]:
    """Return the names of a kernel to which a value can be given."""
    return whole_numbers_of(kernel) | symbols_of(kernel)


def open_sizes(costed: Costed, sizes: Sizes) -> tuple[str, ...]:
    """Return the sizes that a price depends on and nothing binds, in alphabetical order."""
    return tuple(sorted(costed.sizes - sizes.values.keys()))


def ranks_of(kernel: Kernel) -> Expr:
    """Return over how many ranks a kernel's arrays are distributed, at most."""
    meshes = [array.spec.mesh for array in kernel.arrays.values()]
    found = [ranks_along(mesh, tuple(axis for axis, _ in mesh.axes)) for mesh in meshes]
    return maximum(*dict.fromkeys((ONE, *found)))


def about_cores(machine: Machine, ranks: Expr, values: Mapping[str, int | float]) -> Iterator[str]:
    """Yield a line where ranks outnumber the cores that a calibration could use.

    Ranks that take turns on a core wait for each other as long as the system's time slices last,
    which no model covers; on more cores or nodes than were calibrated there is nothing to wait for.
    """
    cores = machine.quantity("hardware", "cores")
    if cores is None or not free_symbols(ranks) <= values.keys():
        return
    count = evaluate(ranks, values)
    if count > cores.value:
        yield (
            f"as if each of {count:g} ranks had a core of its own: {machine.name} was calibrated"
            f" on {cores.value:g}, and ranks that share one can take far longer"
        )


TRIED_TO = 4096
"""Sizes up to here, and up to some times their value, are tried for crossovers."""

WORTH_S = 1e-3
"""What a proposal has to save of what nobody asked about and is known in part, in all calls."""

WORTH = 1.01
"""How many times faster a step must be, alone or after others, to count as one."""

MOST_RUNS = 3
"""Ranges of a size that are spelled out."""


@dataclass(frozen=True, eq=False)
class Costed:
    """A kernel with its work and its price; equal to itself alone."""

    process: Process
    priced: Priced

    @property
    def sizes(self) -> frozenset[str]:
        """The size symbols that the price depends on, or whether it was calibrated."""
        return self.priced.sizes


@dataclass(frozen=True, slots=True)
class Compared:
    """Two costed kernels at given sizes."""

    before: Estimate
    after: Estimate
    ratio: Ratio


@once
def cost(kernel: Kernel, machine: Machine) -> Costed | Missing:
    """Return the work of a kernel and its price.

    Raises
    ------
    Unpriced
        When some statement is not understood, or the formula has no value at the kernel's sizes.
    """
    try:
        process = lower(kernel, reuse=bool(machine.section("arrays")))
    except ExprError as error:
        raise Unpriced(f"its cost has no value: {error}", kernel.span) from error
    return cost_of(process, machine, kernel.span)


def cost_at(kernel: Kernel, machine: Machine, sizes: Mapping[str, Number]) -> Costed | Missing:
    """Return the price of a kernel at its sizes alone; see :func:`cost`."""
    return cost(at_sizes(kernel, sizes), machine)


def cost_of(process: Process, machine: Machine, span: Span) -> Costed | Missing:
    """Return the price of work that is known.

    Raises
    ------
    Unpriced
        The formula has no value at the sizes that it has.
    """
    try:
        priced = price_process(process, machine)
    except ExprError as error:
        raise Unpriced(f"its cost has no value: {error}", span) from error
    return priced if isinstance(priced, Missing) else Costed(process, priced)


def time_s(costed: Costed, sizes: Mapping[str, Number]) -> float:
    """Return the predicted time, rounded."""
    return rounded(middle(costed.priced, sizes))


def times_s(several: Sequence[Costed], sizes: Mapping[str, Number]) -> list[float]:
    """Return the times of several at sizes, each as :func:`time_s` does."""
    return [rounded(time) for time in Middles([one.priced for one in several]).at(sizes)]


def rounded(time: float) -> float:
    """Return a time so that equal formulas written otherwise are equal."""
    return float(f"{time:.12g}")


def compared(before: Costed, after: Costed, sizes: Mapping[str, Number]) -> Compared:
    """Return both estimates, and their ratio with shared coefficients moving together."""
    sizes = at_once(sizes)
    return Compared(
        evaluate_price(before.priced, sizes),
        evaluate_price(after.priced, sizes),
        compare(before.priced, after.priced, sizes),
    )


def where_it_pays(
    before: Costed,
    after: Costed,
    variable: str,
    sizes: Mapping[str, Number],
    *,
    of_ranks: bool = False,
) -> tuple[tuple[int, ...], str] | None:
    """Return where the better of two kernels changes along one size, and where `after` pays.

    Where the size is the number of ranks of a program, nothing is said of one, which sends nothing.

    None where it does not change in the range tried. A finding that is reported for less than
    others are is held to that.
    """
    high = max(TRIED_TO, 4 * int(sizes[variable]))
    own, other = (time_s(one, sizes) for one in (before, after))
    gain = own / other if other else 0.0
    least = gain * (1 - 1e-6) if 1 < gain < REPORTED_FROM else REPORTED_FROM
    low = 2 if of_ranks else 1
    found = crossover(before.priced, after.priced, variable, sizes, low, high, least)
    if not found.flips:
        return None
    return found.flips, f"{pays_for(found)}, tried to {found.high}"


def pays_for(found: Crossover) -> str:
    """Describe where the second of two kernels pays; empty where nothing changes."""
    if not found.flips:
        return ""
    edges = [found.low, *found.flips] if found.after_wins_first else list(found.flips)
    return _ranges(found.variable, edges)


def _ranges(variable: str, edges: list[int]) -> str:
    """Describe where something holds that begins and ends at edges in turn."""
    runs = [edges[place : place + 2] for place in range(0, len(edges), 2)]
    last = runs[-1]
    if len(runs) > MOST_RUNS:
        # blocks that do not divide evenly make it change at every few values
        if len(last) == 1:
            return f"{variable} >= {last[0]}, and for some values below"
        return f"some values of {variable} below {last[1]}"
    parts: list[str] = []
    for run in runs:
        if len(run) == 1:
            parts.append(f"{variable} >= {run[0]}")
        elif run[1] == run[0] + 1:
            parts.append(f"{variable} = {run[0]}")
        elif run[0] == 1:
            parts.append(f"{variable} < {run[1]}")
        else:
            parts.append(f"{run[0]} <= {variable} < {run[1]}")
    return " or ".join(parts)
