"""How arguments become sizes: made once for each kind of arguments."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from typing import Any

from advisor.frontend.seen import seen_sizes
from advisor.ir.kernel import Kernel
from advisor.observe.messages import seen_argument
from advisor.observed import Seen, SeenArray, SeenNumber
from advisor.selection.formulas import Formulas, formulas_of
from advisor.selection.variants import NoKernel, Variant, kernel_of
from costdb.expr import Expr, evaluate, free_symbols, sym
from costdb.machines import Machine

Sizes = Callable[..., Mapping[str, int]]
Direct = Callable[[list[Any]], tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Taken:
    """Where the value of a size is found.

    Attributes
    ----------
    argument : int
        Which argument.
    axis : int or None
        Of its shape; None for the argument itself.
    offset, divisor : int
        The size is ``(value - offset) / divisor``.
    """

    argument: int
    axis: int | None = None
    offset: int = 0
    divisor: int = 1

    def value(self, arguments: Sequence[Any]) -> int:
        """Return the size."""
        given = arguments[self.argument]
        found = given if self.axis is None else given.shape[self.axis]
        if self.offset == 0 and self.divisor == 1:
            return int(found)
        return int((found - self.offset) // self.divisor)


@dataclass(frozen=True, slots=True)
class Plan:
    """Prices of the variants for arguments of one kind, and where their sizes are found.

    Attributes
    ----------
    formulas : Formulas
        With `lacking` set where no choice is possible.
    taken : tuple of Taken
        For each name of `formulas`; empty where `stated` gives them.
    stated : callable or None
        The caller's function from arguments to sizes.
    fixed : mapping of str to int
        Sizes that every call of this kind has.
    variants : tuple of str
        Names of the variants.
    direct : callable or None
        Does the same as `taken` where every size is an extent or a whole number as it stands,
        from the numbers that `seen_in_short` finds.
    """

    formulas: Formulas
    taken: tuple[Taken | None, ...] = ()
    stated: Sizes | None = None
    fixed: Mapping[str, int] | None = None
    variants: tuple[str, ...] = ()
    direct: Direct | None = None

    def values(self, arguments: Sequence[Any]) -> tuple[int | float, ...]:
        """Return the sizes in the order of the formulas' names."""
        names = self.formulas.names
        given: Mapping[str, int] = {} if self.stated is None else self.stated(*arguments)
        fixed = self.fixed or {}
        return tuple(
            given[name]
            if name in given
            else place.value(arguments)
            if place is not None
            else fixed[name]
            for name, place in zip(names, self.taken, strict=True)
        )


def communicator_in(arguments: Iterable[Any]) -> Any:
    """Return the first argument that is a communicator of mpi4py, or None."""
    for argument in arguments:
        kind: Any = type(argument)
        if _is_communicator(kind):
            return argument
    return None


@lru_cache(maxsize=1024)
def _is_communicator(kind: Any) -> bool:
    return any(
        base.__module__.partition(".")[0] == "mpi4py" and hasattr(base, "Get_size")
        for base in kind.__mro__
    )


def seen_in_short(arguments: Sequence[Any]) -> tuple[Hashable, list[Any]]:
    """Return what a plan depends on, and all extents and arguments that could be sizes.

    A plan depends on the kind of each argument, and on which arrays share their sizes.
    """
    kinds: list[Hashable] = []
    shapes: list[object] = []
    numbers: list[Any] = []
    for argument in arguments:
        kind: Any = type(argument)
        if kind is int:
            kinds.append(kind)
            numbers.append(argument)
        elif hasattr(argument, "strides"):
            shape, flags = argument.shape, argument.flags
            kinds.append((argument.dtype, len(shape), flags.c_contiguous, flags.f_contiguous))
            shapes.append(shape)
            numbers += shape
        elif _is_communicator(kind):
            kinds.append((kind, argument.Get_size()))
        else:
            kinds.append(kind)
    if len(shapes) > 1:
        kinds.append(tuple(map(shapes.index, shapes)))
    return tuple(kinds), numbers


def plan_for(
    variants: Sequence[Variant],
    twins: Sequence[Variant],
    machine: Machine,
    arguments: Sequence[Any],
    stated: Sizes | None,
) -> Plan:
    """Return the plan for arguments of the kind of `arguments`.

    Parameters
    ----------
    variants : sequence of Variant
    twins : sequence of Variant
        What each is priced as; the variants themselves where nothing else was said.
    machine : Machine
    arguments : sequence
        In the order of the first variant's parameters.
    stated : callable or None
        From arguments to sizes.
    """
    communicator = communicator_in(arguments)
    shared = communicator is not None or stated is not None
    names = variants[0].parameters
    facts = [seen_argument(n, a) for n, a in zip(names, arguments, strict=False)]
    # what a rank holds may be of another size than what its neighbour holds
    known = [f for f in facts if f is not None and not (shared and isinstance(f, SeenArray))]
    try:
        kernels = [kernel_of(twin, known, local=not shared) for twin in twins]
    except NoKernel as problem:
        return Plan(Formulas((), (), str(problem)))
    formulas = formulas_of(kernels, machine)
    if formulas.lacking:
        return Plan(formulas)
    ranks = 1 if communicator is None else int(communicator.Get_size())
    places = _places(kernels, known, names)
    fixed = _fixed(kernels, known, ranks)
    given = frozenset(stated(*arguments)) if stated is not None else frozenset()
    for name in formulas.names:
        if name not in given and name not in places and name not in fixed:
            why = "is not among what all ranks know alike" if shared else "cannot be told"
            reason = f"size {name} {why}: pass sizes= to select"
            return Plan(Formulas((), (), reason))
    taken = tuple(places.get(name) for name in formulas.names)
    called = tuple(variant.name for variant in variants)
    direct = _direct(taken, arguments) if stated is None else None
    return Plan(formulas, taken, stated, fixed, called, direct)


def _direct(taken: Sequence[Taken | None], arguments: Sequence[Any]) -> Direct | None:
    """Return the function from numbers to sizes; None where one is not found just so."""
    offsets: list[int] = []
    total = 0
    for argument in arguments:
        offsets.append(total)
        total += 1 if type(argument) is int else len(getattr(argument, "shape", ()))
    found: list[int] = []
    for place in taken:
        if place is None or (place.offset, place.divisor) != (0, 1):
            return None
        if place.axis is None and type(arguments[place.argument]) is not int:
            return None
        found.append(offsets[place.argument] + (place.axis or 0))
    if len(found) > 1:
        return itemgetter(*found)
    return (lambda numbers: (numbers[found[0]],)) if found else lambda _: ()


def _places(
    kernels: Sequence[Kernel], facts: Sequence[SeenArray | SeenNumber], names: Sequence[str]
) -> dict[str, Taken]:
    """Return where sizes are found among the arguments."""
    found: dict[str, Taken] = {}
    for fact in facts:
        argument = names.index(fact.name)
        if isinstance(fact, SeenNumber):
            if fact.value is not None:
                found.setdefault(fact.name, Taken(argument))
            continue
        for kernel in kernels:
            declared = kernel.arrays.get(fact.name)
            for axis, extent in enumerate(declared.extents if declared is not None else ()):
                linear = _linear(extent)
                if linear is not None:
                    name, offset, divisor = linear
                    found.setdefault(name, Taken(argument, axis, offset, divisor))
    return found


def _linear(extent: Expr) -> tuple[str, int, int] | None:
    """Return name, offset and factor of an extent that is linear in one size."""
    symbols = free_symbols(extent)
    if len(symbols) != 1:
        return None
    (name,) = symbols
    if extent == sym(name):
        return name, 0, 1
    offset = evaluate(extent, {name: 0})
    divisor = evaluate(extent, {name: 1}) - offset
    if not isinstance(offset, int) or not isinstance(divisor, int) or divisor < 1:
        return None
    return (name, offset, divisor) if extent == divisor * sym(name) + offset else None


def _fixed(
    kernels: Sequence[Kernel], facts: Sequence[SeenArray | SeenNumber], ranks: int
) -> dict[str, int]:
    """Return sizes that every call of this kind has: constants of the module, and the ranks'."""
    fixed: dict[str, int] = {}
    numbers = {fact.name for fact in facts if isinstance(fact, SeenNumber)}
    for kernel in kernels:
        seen = Seen(kernel.name, 1, "call", ranks=ranks)
        for name, binding in seen_sizes(seen, kernel.arrays, (), kernel.span).items():
            fixed[name] = int(binding.value)
        for array in kernel.arrays.values():
            if ranks == 1 and len(array.spec.mesh.axes) == 1:
                (_, extent) = array.spec.mesh.axes[0]
                if isinstance(extent, str):
                    fixed[extent] = 1
    return {name: value for name, value in fixed.items() if name not in numbers}
