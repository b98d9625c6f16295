"""``select``: a callable that takes at each call the variant predicted to be fastest."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import update_wrapper
from typing import Any

from advisor.compiler.record import told
from advisor.selection.plans import (
    OUTSIDE,
    PREDICTED,
    TIE,
    TIED,
    UNPRICED,
    Plan,
    Sizes,
    Variant,
    kinds_of,
    plan_for,
    variant_of,
)
from costdb.evaluate import evaluate_price
from costdb.expr import ExprError
from costdb.launch.space import ours
from costdb.machines import Machine, MachineError, load_machine
from costdb.records import dataclass
from costdb.store.place import StoreError

MOST_DECISIONS = 4096
"""Decisions that are remembered; then all are forgotten, so that memory stays bounded."""


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
    times_us : tuple of float
        Predicted, by variant; empty without prices.
    """

    variant: int
    why: str
    because: str
    sizes: Mapping[str, int | float]
    times_us: tuple[float, ...] = ()


def without_price(because: str) -> Decision:
    """Return the decision for the first variant, for want of a price."""
    return Decision(0, UNPRICED, because, {})


def decided_at(plan: Plan, values: tuple[int | float, ...]) -> Decision:
    """Price every variant of a plan at the values of its sizes, and say which is taken."""
    sizes = dict(zip(plan.names, values, strict=True))
    if any(value < 1 for value in values):
        return Decision(0, OUTSIDE, "a size is below 1, where no model holds", sizes)
    times = plan.times_us(values)
    outside = plan.outside(values)
    if outside is not None:
        place, why = outside
        because = f"{plan.variants[place]} is outside the calibrated range: {why}"
        return Decision(0, OUTSIDE, because, sizes, times)
    best = min(range(len(times)), key=times.__getitem__)
    if times[0] <= times[best] * TIE:
        if best == 0 and all(t > times[0] * TIE for t in times[1:]):
            return Decision(0, PREDICTED, "predicted to be fastest", sizes, times)
        because = f"as fast as any, within {TIE - 1:.0%}, so the first one is taken"
        return Decision(0, TIED, because, sizes, times)
    return Decision(best, PREDICTED, "predicted to be fastest", sizes, times)


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
        self._plans: dict[object, Plan] = {}
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
            if plan.lacking:
                return without_price(plan.lacking)
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

    def _planned(self, machine: Machine, arguments: Sequence[Any]) -> Plan:
        with ours():
            return plan_for(self._variants, self._twins, machine, arguments, self._stated)

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
        for place, time in enumerate(decision.times_us):
            interval = self._interval(place, decision)
            lines.append(f"  {self._variants[place].name}: {time:.4g} us predicted{interval}")
        lines.append(f"  machine {machine}")
        taken = [
            f"{name} {count} times ({why})"
            for name, reasons in self.counts.items()
            for why, count in reasons.items()
        ]
        if taken:
            lines.append(f"  taken so far: {', '.join(taken)}")
        return "\n".join(lines)

    def _interval(self, place: int, decision: Decision) -> str:
        for plan in self._plans.values():
            if plan.names == tuple(decision.sizes) and place < len(plan.prices):
                with suppress(ExprError):
                    found = evaluate_price(plan.prices[place], decision.sizes)
                    return f", {found.low * 1e6:.4g} to {found.high * 1e6:.4g}"
        return ""


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
