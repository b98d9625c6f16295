"""``select``: a callable that takes at each call the variant predicted to be fastest.

Functions to choose from are kernels with prices, and arguments become their sizes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache, partial, update_wrapper
from typing import Any

from advisor.analysis.lower import Unpriced
from advisor.compiler.record import PLAIN, told
from advisor.files import read_source
from advisor.frontend.kernels import read_kernels
from advisor.frontend.seen import seen_sizes
from advisor.ir.kernel import Kernel
from advisor.observe.calls import seen_argument
from advisor.observed import Seen, SeenArray, SeenNumber, Source
from advisor.ranking.compare import cost
from advisor.ranking.worth import as_one_process
from advisor.source import SourceProblem
from costdb.evaluate import Missing, Priced, evaluate_price
from costdb.expr import Expr, ExprError, evaluate, free_symbols, num, substitute, sym
from costdb.expr.evaluate import Evaluator
from costdb.launch.space import ours
from costdb.machines import Machine, MachineError, load_machine
from costdb.records import dataclass, field, only, replace
from costdb.store.place import StoreError

Sizes = Callable[..., Mapping[str, int]]
_Place = Callable[[Sequence[Any]], int]

MOST_DECISIONS = 4096
"""Decisions that are remembered; then all are forgotten, so that memory stays bounded."""

TIE = 1.01
"""Predicted times whose quotient is below this are equal: the first is taken."""

PREDICTED, TIED, OUTSIDE, UNPRICED = "predicted", "tie", "outside range", "no price"
"""Why a variant was taken; all but the first mean the first variant."""

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
            replace(fact, shape=None, like=fact.like or tuple(map(str, fact.shape or ())))
            for fact in only(SeenArray, facts)
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
class Plan:
    """Prices of the variants for arguments of one kind, and where their sizes are found.

    Attributes
    ----------
    names : tuple of str
        Sizes, in the order of :meth:`values`.
    prices : tuple of Priced
        With coefficients as symbols, for explanations.
    taken : mapping of str to int or callable
        A size, or what finds it among the arguments; `stated` goes over it.
    stated : callable or None
        The caller's function from arguments to sizes.
    variants : tuple of str
        Names of the variants.
    """

    names: tuple[str, ...]
    prices: tuple[Priced, ...]
    taken: Mapping[str, int | _Place]
    stated: Sizes | None
    variants: tuple[str, ...]
    _bound: tuple[tuple[Expr, tuple[Expr, ...]], ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_bound", tuple(map(_with_coefficients, self.prices)))

    def values(self, arguments: Sequence[Any]) -> tuple[int | float, ...]:
        """Return the sizes in the order of the names."""
        found = self.taken
        if self.stated is not None:
            found = {**self.taken, **self.stated(*arguments)}
        known = (found[name] for name in self.names)
        return tuple(one(arguments) if callable(one) else one for one in known)

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

    Raises
    ------
    NoPrice
        A choice is not possible.
    """
    communicator = next((one for one in arguments if _is_communicator(one.__class__)), None)
    shared = communicator is not None or stated is not None
    names = variants[0].parameters
    facts = [seen_argument(n, a) for n, a in zip(names, arguments, strict=False)]
    # what a rank holds may be of another size than what its neighbour holds
    telling = SeenNumber if shared else SeenNumber | SeenArray
    known = [fact for fact in facts if isinstance(fact, telling)]
    kernels = [kernel_of(twin, known, local=not shared) for twin in twins]
    prices = tuple(_price(kernel, machine) for kernel in kernels)
    sizes = tuple(sorted(frozenset().union(*(one.sizes for one in prices))))
    ranks = 1 if communicator is None else int(communicator.Get_size())
    taken: dict[str, int | _Place] = {
        **_fixed(kernels, known, ranks),
        **_places(kernels, known, names),
    }
    given = frozenset(stated(*arguments)) if stated is not None else frozenset()
    for name in sizes:
        if name not in given and name not in taken:
            why = "is not among what all ranks know alike" if shared else "cannot be told"
            raise NoPrice(f"size {name} {why}: pass sizes= to select")
    return Plan(sizes, prices, taken, stated, tuple(variant.name for variant in variants))


def _size_at(
    arguments: Sequence[Any],
    *,
    argument: int,
    axis: int | None = None,
    offset: int = 0,
    divisor: int = 1,
) -> int:
    """Return a size out of an argument, or out of its shape: ``(value - offset) / divisor``."""
    found = arguments[argument] if axis is None else arguments[argument].shape[axis]
    return int((found - offset) // divisor)


def _places(
    kernels: Sequence[Kernel], facts: Sequence[SeenArray | SeenNumber], names: Sequence[str]
) -> dict[str, _Place]:
    """Return what finds sizes among the arguments."""
    found: dict[str, _Place] = {}
    for fact in facts:
        at = partial(_size_at, argument=names.index(fact.name))
        if isinstance(fact, SeenNumber):
            if fact.value is not None:
                found.setdefault(fact.name, at)
            continue
        for kernel in kernels:
            declared = kernel.arrays.get(fact.name)
            for axis, extent in enumerate(declared.extents if declared is not None else ()):
                linear = _linear(extent)
                if linear is not None:
                    name, offset, divisor = linear
                    place = partial(at, axis=axis, offset=offset, divisor=divisor)
                    found.setdefault(name, place)
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


# What is taken for the arguments of a call, and what calls it.


@dataclass(frozen=True, slots=True)
class Decision:
    """Which variant is taken for arguments of certain sizes, and why.

    Attributes
    ----------
    variant : int
    why : str
        ``"predicted"``, ``"tie"``, ``"outside range"`` or ``"no price"``.
    because : str
        Why, in a sentence.
    sizes : mapping of str to number
    times_us, prices : tuple
        Predicted, by variant; empty without prices.
    """

    variant: int
    why: str
    because: str
    sizes: Mapping[str, int | float]
    times_us: tuple[float, ...] = ()
    prices: tuple[Priced, ...] = ()


def without_price(because: str) -> Decision:
    """Return the decision for the first variant, for want of a price."""
    return Decision(0, UNPRICED, because, {})


def decided_at(plan: Plan, values: tuple[int | float, ...]) -> Decision:
    """Price every variant of a plan at the values of its sizes, and say which is taken."""
    sizes = dict(zip(plan.names, values, strict=True))
    if any(value < 1 for value in values):
        return Decision(0, OUTSIDE, "a size is below 1, where no model holds", sizes)
    priced = sizes, plan.times_us(values), plan.prices
    _, times, _ = priced
    outside = plan.outside(values)
    if outside is not None:
        place, why = outside
        because = f"{plan.variants[place]} is outside the calibrated range: {why}"
        return Decision(0, OUTSIDE, because, *priced)
    best = min(range(len(times)), key=times.__getitem__)
    if times[0] > times[best] * TIE or all(time > times[0] * TIE for time in times[1:]):
        return Decision(best, PREDICTED, "predicted to be fastest", *priced)
    because = f"as fast as any, within {TIE - 1:.0%}, so the first one is taken"
    return Decision(0, TIED, because, *priced)


class Selection:
    """Functions that do the same job, called as one; made by :func:`select`."""

    def __init__(
        self,
        variants: Sequence[Variant],
        twins: Sequence[Variant],
        machine: str,
        sizes: Sizes | None,
    ) -> None:
        self._variants = tuple(variants)
        self._twins = tuple(twins)
        self._calls = tuple(variant.call for variant in variants)
        self._stated = sizes
        self._machine: Machine | None = None
        self._lacking = ""
        try:
            with ours():
                self._machine = load_machine(machine)
        except (MachineError, StoreError) as error:
            self._lacking = f"{error}; advise calibrate measures this machine"
        self._name = machine
        self._plans: dict[object, Plan | str] = {}
        self._known: dict[tuple[object, tuple[int | float, ...]], Decision] = {}
        self._counts: dict[tuple[int, str], int] = {}
        self._last: Decision | None = None
        self._lock = threading.Lock()
        self._positional: int = variants[0].plain.__code__.co_argcount
        update_wrapper(self, variants[0].plain)

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Call the variant that is predicted to be fastest for these arguments."""
        return self._calls[self.decide(*args, **named).variant](*args, **named)

    @property
    def variants(self) -> tuple[Callable[..., Any], ...]:
        """The functions, in the order in which they were given."""
        return self._calls

    @property
    def counts(self) -> Mapping[str, Mapping[str, int]]:
        """How often each variant was taken, and why: by name, then by reason."""
        found: dict[str, dict[str, int]] = {variant.name: {} for variant in self._variants}
        with self._lock:
            for (place, why), count in self._counts.items():
                found[self._variants[place].name][why] = count
        return found

    def decide(self, *args: Any, **named: Any) -> Decision:
        """Return which variant a call with these arguments takes, and count it."""
        decision = self._decided(args, named)
        counted = (decision.variant, decision.why)
        with self._lock:
            self._counts[counted] = self._counts.get(counted, 0) + 1
            self._last = decision
        return decision

    def _decided(self, args: tuple[Any, ...], named: dict[str, Any]) -> Decision:
        if self._machine is None:
            return without_price(self._lacking)
        try:
            in_order = not named and len(args) == self._positional
            arguments = args if in_order else self._in_order(args, named)
            kind = kinds_of(arguments)
            plan = self._plans.get(kind)
            if plan is None:
                plan = self._plans[kind] = self._planned(self._machine, arguments)
            if isinstance(plan, str):
                return without_price(plan)
            values = plan.values(arguments)
            known = self._known.get((kind, values))
            if known is None:
                if len(self._known) >= MOST_DECISIONS:
                    self._known.clear()
                known = self._known[kind, values] = decided_at(plan, values)
            return known
        except Exception as error:
            told("choosing a variant", error)
            return without_price("an error of ours, which was logged")

    def _planned(self, machine: Machine, arguments: Sequence[Any]) -> Plan | str:
        try:
            with ours():
                return plan_for(self._variants, self._twins, machine, arguments, self._stated)
        except NoPrice as problem:
            return str(problem)

    def _in_order(self, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
        plain = self._variants[0].plain
        names = self._variants[0].parameters
        given = {**dict(zip(names, args, strict=False)), **named}
        by_position, values = names[: self._positional], plain.__defaults__ or ()
        usual = dict(zip(reversed(by_position), reversed(values), strict=False))
        usual |= plain.__kwdefaults__ or {}
        return tuple(given.get(name, usual.get(name)) for name in names)

    def explain(self, *args: Any, **named: Any) -> str:
        """Say in words which variant is taken and why.

        Parameters
        ----------
        *args, **named
            Of a call that is not made; the last call that was made when none are given.
        """
        decision = self._last
        if args or named:
            decision = self._decided(args, named)
        if decision is None:
            return "nothing was called yet"
        machine = self._name if self._machine is None else f"{self._name} ({self._machine.title})"
        lines = [f"{self._variants[decision.variant].name}: {decision.because}"]
        if decision.sizes:
            sizes = ", ".join(f"{name} = {value}" for name, value in decision.sizes.items())
            lines.append(f"  at {sizes}")
        for variant, time, price in zip(
            self._variants, decision.times_us, decision.prices, strict=False
        ):
            lines.append(f"  {variant.name}: {time:.4g} us predicted")
            with suppress(ExprError):
                found = evaluate_price(price, decision.sizes)
                lines[-1] += f", {found.low * 1e6:.4g} to {found.high * 1e6:.4g}"
        lines.append(f"  machine {machine}")
        taken = [
            f"{name} {count} times ({why})"
            for name, reasons in self.counts.items()
            for why, count in reasons.items()
        ]
        if taken:
            lines.append(f"  taken so far: {', '.join(taken)}")
        return "\n".join(lines)


def select(
    *variants: Callable[..., Any],
    machine: str = "here",
    kernels: Sequence[Callable[..., Any]] | None = None,
    sizes: Sizes | None = None,
) -> Selection:
    """Return a callable that takes at each call the variant predicted to be fastest.

    Parameters
    ----------
    *variants : function or numba dispatcher
        They take the same arguments and give the same results; the first is taken whenever
        there is no better reason: a tie, sizes outside the calibrated range, no price.
    machine : str
        A name, or a path that ends in ``.json``.
    kernels : sequence of function, optional
        For each variant the annotated kernel that does the same on whole arrays: what an SPMD
        function, whose own text is one rank's, is priced as.
    sizes : callable, optional
        From the arguments of a call to the values of sizes by name. With it, or with a
        communicator among the arguments, the variants are SPMD functions: annotations keep
        their distribution, and shapes of arrays, which are one rank's, decide nothing.

    Returns
    -------
    Selection

    Raises
    ------
    TypeError
        A variant is no function with a source in Python.
    ValueError
        No variant is given, or not as many kernels as variants.

    Notes
    -----
    No message is ever sent to decide. The ranks of an SPMD program decide alike because each
    computes the same closed form from the same numbers: the size of the communicator, whole
    numbers among the arguments, and what `sizes` returns. So these must be equal on all ranks, as
    they must be for MPI's own collective calls, and all ranks must read the same profile.

    Examples
    --------
    >>> box = select(box_by_shifts, box_by_scan, machine="here")  # doctest: +SKIP
    """
    if not variants:
        raise ValueError("select needs a function to choose")
    found = [variant_of(function) for function in variants]
    if kernels is not None and len(kernels) != len(found):
        raise ValueError(f"{len(found)} variants, but {len(kernels)} kernels")
    twins = found if kernels is None else [variant_of(function) for function in kernels]
    return Selection(found, twins, machine, sizes)
