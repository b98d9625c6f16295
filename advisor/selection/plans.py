"""Functions to choose from as kernels with prices, and how arguments become their sizes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from advisor.analysis.lower import Unpriced
from advisor.compiler.record import PLAIN
from advisor.files import read_source
from advisor.frontend.kernels import read_kernels
from advisor.frontend.seen import seen_sizes
from advisor.ir.kernel import Kernel
from advisor.observe.calls import seen_argument
from advisor.observed import Seen, SeenArray, SeenNumber, Source
from advisor.ranking.compare import cost
from advisor.ranking.worth import as_one_process
from advisor.source import SourceProblem
from costdb.estimate import Missing, Priced
from costdb.expr import Expr, ExprError, evaluate, free_symbols, num, substitute, sym
from costdb.expr.evaluate import Evaluator
from costdb.machines import Machine
from costdb.records import dataclass, field, replace

Sizes = Callable[..., Mapping[str, int]]

# Functions as kernels.


class NoPrice(Exception):
    """A function that cannot be read as a kernel, or has no price; one line."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One of the functions to choose from.

    Attributes
    ----------
    call : callable
        As it was given.
    name : str
    plain : function
        Its Python source: itself, or what it was compiled from.
    source : {"numba", "call"}
        What runs it.
    """

    call: Any
    name: str
    plain: Any
    source: Source

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters, those by position first."""
        code = self.plain.__code__
        return tuple(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])


def variant_of(function: Any) -> Variant:
    """Return a callable as a variant.

    Raises
    ------
    TypeError
        It has no Python source: only functions, and what numba makes of them, can be priced.
    """
    compiled = getattr(function, "py_func", None)
    plain = compiled if compiled is not None else getattr(function, PLAIN, function)
    if not callable(function) or not hasattr(plain, "__code__"):
        raise TypeError(f"select takes functions, not {function!r}")
    return Variant(function, plain.__name__, plain, "call" if compiled is None else "numba")


def kernel_of(variant: Variant, facts: Sequence[SeenArray | SeenNumber], *, local: bool) -> Kernel:
    """Return a variant as a kernel.

    Parameters
    ----------
    variant : Variant
    facts : sequence of SeenArray and SeenNumber
        What its arguments are.
    local : bool
        Whether it works on whole arrays in this process, whatever its annotations distribute.

    Raises
    ------
    NoPrice
        Its source is not there, or is none that can be read.
    """
    plain = variant.plain
    seen = Seen(
        function=plain.__qualname__,
        line=plain.__code__.co_firstlineno,
        source=variant.source,
        # a choice is made for calls of all shapes, of which these only tell which are the same
        arrays=tuple(
            replace(fact, shape=None, like=fact.like or repr(fact.shape))
            for fact in facts
            if isinstance(fact, SeenArray)
        ),
        numbers=tuple(fact for fact in facts if isinstance(fact, SeenNumber)),
    )
    try:
        found = _read(plain.__code__.co_filename, seen)
    except (SourceProblem, OSError) as problem:
        raise NoPrice(f"`{variant.name}` cannot be read: {problem}") from problem
    own = [k for k in found if k.name == variant.name and k.span.start_line >= seen.line]
    if not own:
        raise NoPrice(f"`{variant.name}`: its source is not in {plain.__code__.co_filename}")
    kernel = min(own, key=lambda one: one.span.start_line)
    return as_one_process(kernel) if local else kernel


@lru_cache(maxsize=256)
def _read(file: str, seen: Seen) -> tuple[Kernel, ...]:
    return read_kernels(file, read_source(file).text, [seen])


# Plans.


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
        return int((found - self.offset) // self.divisor)


@dataclass(frozen=True, slots=True)
class Plan:
    """Prices of the variants for arguments of one kind, and where their sizes are found.

    Attributes
    ----------
    names : tuple of str
        Sizes, in the order of :meth:`values`.
    prices : tuple of Priced
        With coefficients as symbols, for explanations.
    lacking : str
        Why a choice is not possible; empty where it is.
    taken : tuple of Taken
        For each name; empty where `stated` gives them.
    stated : callable or None
        The caller's function from arguments to sizes.
    fixed : mapping of str to int
        Sizes that every call of this kind has.
    variants : tuple of str
        Names of the variants.
    """

    names: tuple[str, ...] = ()
    prices: tuple[Priced, ...] = ()
    lacking: str = ""
    taken: tuple[Taken | None, ...] = ()
    stated: Sizes | None = None
    fixed: Mapping[str, int] = field(default_factory=dict)
    variants: tuple[str, ...] = ()
    _bound: tuple[tuple[Expr, tuple[Expr, ...]], ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_bound", tuple(map(_with_coefficients, self.prices)))

    def values(self, arguments: Sequence[Any]) -> tuple[int | float, ...]:
        """Return the sizes in the order of the names."""
        given: Mapping[str, int] = {} if self.stated is None else self.stated(*arguments)
        return tuple(
            given[name]
            if name in given
            else place.value(arguments)
            if place is not None
            else self.fixed[name]
            for name, place in zip(self.names, self.taken, strict=True)
        )

    def times_us(self, values: Sequence[int | float]) -> tuple[float, ...]:
        """Return the predicted time of each variant, every coefficient at its middle."""
        # one evaluator a call: calls may come from several threads
        found = Evaluator([time for time, _ in self._bound])
        return tuple(map(float, found.at(dict(zip(self.names, values, strict=True)))))

    def outside(self, values: Sequence[int | float]) -> tuple[int, str] | None:
        """Return the first variant that is used where its model was not calibrated, and why."""
        evaluator = Evaluator([amount for _, amounts in self._bound for amount in amounts])
        found = iter(evaluator.at(dict(zip(self.names, values, strict=True))))
        for place, price in enumerate(self.prices):
            for domain in price.domains:
                value = float(next(found))
                if not domain.low <= value <= domain.high:
                    span = f"{domain.low:.4g} to {domain.high:.4g}"
                    return place, f"{domain.what}: {value:.4g} is not in {span}"
        return None


def _with_coefficients(price: Priced) -> tuple[Expr, tuple[Expr, ...]]:
    """Return time and checked quantities over sizes alone."""
    middles: Mapping[str, Expr] = {
        name: num(quantity.value) for name, quantity in price.coefficients.items()
    }
    quantities = tuple(substitute(domain.quantity, middles) for domain in price.domains)
    return substitute(price.microseconds, middles), quantities


def _price(kernel: Kernel, machine: Machine) -> Priced:
    try:
        found = cost(kernel, machine)
    except Unpriced as unknown:
        why = f"{unknown.reason} (line {unknown.span.start_line})"
        raise NoPrice(f"`{kernel.name}` has no price: {why}") from unknown
    except ExprError as error:
        raise NoPrice(f"`{kernel.name}` has no price: {error}") from error
    if isinstance(found, Missing):
        raise NoPrice(f"`{kernel.name}` has no price: {found.what}; {found.remedy}")
    for one in found.priced.omitted:
        # a lower bound is never taken for less than a price that is complete
        raise NoPrice(f"`{kernel.name}` has no price: {one.reason} (line {one.line})")
    return found.priced


def _sizes_of(price: Priced) -> frozenset[str]:
    """Return which sizes a price, and what is checked of it, depend on."""
    used = frozenset().union(
        free_symbols(price.microseconds), *(free_symbols(one.quantity) for one in price.domains)
    )
    return used - price.coefficients.keys()


@lru_cache(maxsize=1024)
def _is_communicator(kind: Any) -> bool:
    return any(
        base.__module__.partition(".")[0] == "mpi4py" and hasattr(base, "Get_size")
        for base in kind.__mro__
    )


def kinds_of(arguments: Sequence[Any]) -> Hashable:
    """Return what a plan depends on: kinds of arguments, and which arrays share their sizes."""
    kinds: list[Hashable] = []
    shapes: list[object] = []
    for argument in arguments:
        kind: Any = type(argument)
        if hasattr(argument, "strides"):
            shape, flags = argument.shape, argument.flags
            kinds.append((argument.dtype, len(shape), flags.c_contiguous, flags.f_contiguous))
            shapes.append(shape)
        elif _is_communicator(kind):
            kinds.append((kind, argument.Get_size()))
        else:
            kinds.append(kind)
    if len(shapes) > 1:
        kinds.append(tuple(map(shapes.index, shapes)))
    return tuple(kinds)


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
    kinds: list[Any] = [type(one) for one in arguments]
    found = (one for one, kind in zip(arguments, kinds, strict=True) if _is_communicator(kind))
    communicator = next(found, None)
    shared = communicator is not None or stated is not None
    names = variants[0].parameters
    facts = [seen_argument(n, a) for n, a in zip(names, arguments, strict=False)]
    # what a rank holds may be of another size than what its neighbour holds
    telling = SeenNumber if shared else SeenNumber | SeenArray
    known = [fact for fact in facts if isinstance(fact, telling)]
    try:
        kernels = [kernel_of(twin, known, local=not shared) for twin in twins]
        prices = tuple(_price(kernel, machine) for kernel in kernels)
    except NoPrice as problem:
        return Plan(lacking=str(problem))
    sizes = tuple(sorted(frozenset().union(*map(_sizes_of, prices))))
    ranks = 1 if communicator is None else int(communicator.Get_size())
    places = _places(kernels, known, names)
    fixed = _fixed(kernels, known, ranks)
    given = frozenset(stated(*arguments)) if stated is not None else frozenset()
    for name in sizes:
        if name not in given and name not in places and name not in fixed:
            why = "is not among what all ranks know alike" if shared else "cannot be told"
            return Plan(lacking=f"size {name} {why}: pass sizes= to select")
    taken = tuple(places.get(name) for name in sizes)
    called = tuple(variant.name for variant in variants)
    return Plan(sizes, prices, "", taken, stated, fixed, called)


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


# ``select``: a callable that takes at each call the variant predicted to be fastest.

TIE = 1.01
"""Predicted times whose quotient is below this are equal: the first is taken."""

PREDICTED, TIED, OUTSIDE, UNPRICED = "predicted", "tie", "outside range", "no price"
"""Why a variant was taken; all but the first mean the first variant."""
