"""Which value every size has, what bound it, and whether each rank has a core of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from advisor.analysis.placement import ranks_of as ranks_along
from advisor.finding import Assumption
from advisor.ir.concrete import symbols_of, whole_numbers_of
from advisor.ir.kernel import Kernel
from advisor.ranking.compare import Costed
from advisor.source import SourceProblem
from costdb.expr import ONE, Expr, evaluate, free_symbols, maximum
from costdb.machines import Machine
from costdb.records import dataclass

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
    values: dict[str, Number] = {}
    origins: dict[str, str] = {}
    for name, binding in kernel.sizes.items():
        values[name] = binding.value
        origins[name] = binding.origin or f"line {binding.span.start_line}"
    for name, value in given.items():
        values[name] = value
        origins[name] = (given_by or {}).get(name, "-D")
    return Sizes(values, origins)


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
    counts = whole_numbers_of(kernel) & given.keys()
    sizes = bind_sizes(kernel, {n: _as_count(n in counts, v) for n, v in given.items()}, given_by)
    for name in sorted(counts):
        value = sizes.values[name]
        if not isinstance(value, int) or value < 1:
            place = kernel.span
            raise SourceProblem(
                path,
                place.start_line,
                place.start_column,
                f"size {name} of kernel `{kernel.name}` must be a whole number of at least 1,"
                f" not {value:g} ({sizes.origins[name]})",
            )
    return sizes


def _as_count(counts: bool, value: Number) -> Number:
    """Return ``2048.0`` as the whole number that it is, where one is due."""
    return int(value) if counts and isinstance(value, float) and value.is_integer() else value


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
