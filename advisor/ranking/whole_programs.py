"""Whole programs: what their parts take, how often places run in them, and what was not seen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from advisor.analysis.spmd.lower import Gap, lower_steps
from advisor.finding import Coverage, NotUnderstood
from advisor.ir.spmd.program import MODULE, RANKS, Program, SpmdFunction
from advisor.ir.spmd.steps import Call, Communicate, Loop, LoopKind, walk
from advisor.ranking.worth import Whole, priced_as
from costdb.evaluate import middle
from costdb.expr import ExprError, evaluate, sym
from costdb.machines import Machine
from costdb.pricing import Known, price_known
from costdb.records import dataclass, field


@dataclass(frozen=True, slots=True)
class _Root:
    """A function that nothing in the file calls, with its price and what that leaves out."""

    function: SpmdFunction
    price: Known
    gaps: tuple[Gap, ...]


@dataclass(slots=True)
class WholeProgram:
    """A program as what its findings are parts of.

    Attributes
    ----------
    program : Program
    machine : Machine
    sizes : mapping of str to number
        What is bound.
    """

    program: Program
    machine: Machine
    sizes: Mapping[str, int | float]
    _roots: dict[str, _Root] = field(default_factory=dict)

    def around(self, function: SpmdFunction, loops: tuple[Loop, ...]) -> Whole:
        """Return what steps of a function are a part of, which stand in some of its loops."""
        whose = priced_as(self.machine, sym(RANKS), self.sizes, distributed=self._communicates)
        for name in self._entries(function):
            root = self._root(name)
            times = self._calls(root.function, function.name)
            if any(loop.trips is None for loop in loops):
                times = None
            try:
                return Whole(
                    middle(root.price, self.sizes),
                    not (root.gaps or root.price.omitted),
                    times,
                    whose,
                )
            except (ExprError, ArithmeticError):
                continue
        return Whole(None, False, None, whose)

    def coverage(self, told: frozenset[str]) -> Coverage:
        """Return what was analysed of a program, and what was not.

        Parameters
        ----------
        told : frozenset of str
            Functions that findings are about.
        """
        unknown: dict[NotUnderstood, None] = {}
        unpriced: dict[str, None] = {}
        without: set[str] = set()
        lines = self.program.context.lines
        for name in self._entry_names():
            root = self._root(name)
            for missing in root.price.lacking:
                whose = self._whose(root.function)
                unpriced[f"{whose}, no price on {self.machine.name}: {missing.what}"] = None
                without |= {name, *_reached(root.function)}
            for gap in root.gaps:
                line = gap.span.start_line
                text = lines[line - 1].strip()
                unknown[NotUnderstood(self.program.path, line, text, gap.reason)] = None
                without |= {f.name for f in self.program.functions if f.whole.contains(gap.span)}
        known = [f.name for f in self.program.functions if f.name not in without]
        analysed = tuple(map(self._shown, known))
        fine = tuple(self._shown(name) for name in known if name not in told)
        left = tuple(self._shown(f.name) for f in self.program.functions if f.name in without)
        return Coverage(analysed, fine, tuple(unknown), (), tuple(unpriced), left)

    @property
    def _communicates(self) -> bool:
        return any(True for function in self.program.functions for _ in function.operations())

    def _whose(self, function: SpmdFunction) -> str:
        steps = [visit.step for visit in walk(function.body, into_calls=True)]
        loops = sum(isinstance(s, Loop) and s.kind is LoopKind.THREADS for s in steps)
        if loops and not any(isinstance(step, Communicate) for step in steps):
            name = self._shown(function.name)
            return f"{loops} parallel {'loop' if loops == 1 else 'loops'} in {name}"
        return self._shown(function.name)

    def _shown(self, name: str) -> str:
        return self.program.path if name == MODULE else name

    def _entry_names(self) -> tuple[str, ...]:
        functions = self.program.functions
        return tuple(f.name for f in functions if f.name == MODULE or not f.calls)

    def _entries(self, function: SpmdFunction) -> Iterator[str]:
        """Yield functions that reach one and that nothing in the file calls, the module first."""
        for name in sorted(self._entry_names(), key=lambda name: name != MODULE):
            root = self._named(name)
            if root is not None and (name == function.name or function.name in _reached(root)):
                yield name

    def _named(self, name: str) -> SpmdFunction | None:
        return next((f for f in self.program.functions if f.name == name), None)

    def _root(self, name: str) -> _Root:
        if name not in self._roots:
            function = self._named(name)
            assert function is not None
            lowered = lower_steps(function.body)
            price = price_known(lowered.process, self.machine, closed=False)
            self._roots[name] = _Root(function, price, lowered.gaps)
        return self._roots[name]

    def _calls(self, root: SpmdFunction, name: str) -> float | None:
        """Return how often a function runs in another one; None where nobody knows."""
        if root.name == name:
            return 1.0
        total = 0.0
        for visit in walk(root.body, into_calls=True):
            if isinstance(visit.step, Call) and visit.step.function == name:
                trips = self._trips(visit.loops)
                if trips is None:
                    return None
                total += trips
        return total

    def _trips(self, loops: tuple[Loop, ...]) -> float | None:
        found = 1.0
        for loop in loops:
            if loop.trips is None:
                return None
            try:
                found *= float(evaluate(loop.trips, self.sizes))
            except (ExprError, ArithmeticError):
                return None
        return found


def _reached(root: SpmdFunction) -> frozenset[str]:
    """Return the functions that one calls, also through others."""
    steps = (visit.step for visit in walk(root.body, into_calls=True))
    return frozenset(step.function for step in steps if isinstance(step, Call))
