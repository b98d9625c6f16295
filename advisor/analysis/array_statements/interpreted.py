"""The steps of an interpreter in a statement that computes one element from others.

An element is a number of the array library. What is done with it takes other times than the same
with numbers of the language, and a function of the library takes longer than an operator, so each
kind of step is counted by itself. What variables hold is computed once for all its uses; where it
is written out again beside its variable, that counts as the variable.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from advisor.ir.kernel import COMPILERS, Kernel
from advisor.ir.shapes import ArrayType, describe
from advisor.ir.statements import Store, is_total
from advisor.ir.values import (
    Copy,
    Elementwise,
    Gather,
    Point,
    Read,
    Scalar,
    Spelling,
    Subscript,
    Value,
)
from advisor.numpy_table import PYTHON_FLOAT, PYTHON_INTEGER, ROWS, strong
from costdb.expr import Expr, num
from costdb.expr.nodes import Add, Mul, Num, Sym
from costdb.interpretation import Interpretation, Step
from costdb.work import ArrayOperation

_LOAD, _STORE, _OPERATION = "loads", "stores", "operations"
_VECTOR = "vector_"
_OF_PYTHON = frozenset({PYTHON_FLOAT, PYTHON_INTEGER})
_SIGNS = frozenset({"negative", "invert", "absolute"})


def is_compiled(kernel: Kernel) -> bool:
    """Return whether a kernel's decorators say that nothing interprets it."""
    names = kernel.context.decorators
    return any(part in COMPILERS for name in names for part in name.split("."))


def interpretations(
    body: Iterable[Store], iterations: Expr, types: Callable[[str], ArrayType]
) -> list[Interpretation]:
    """Return what is interpreted for each of some stores, which one iteration does in turn.

    Parameters
    ----------
    body : iterable of Store
        That compute single elements from single elements.
    iterations : Expr
    types : callable
        Gives the element type and shape of a named array.
    """
    found: list[Interpretation] = []
    known: set[Value] = set()
    for store in body:
        steps = _Steps(types, store, known)
        found.append(steps.interpretation(iterations, loop=not found))
        # what a variable got before an array was changed, it has still
        known |= steps.computed
    return found


def single(store: Store, types: Callable[[str], ArrayType]) -> Interpretation:
    """Return what is interpreted for a store to one element that no loop of its own repeats."""
    return _Steps(types, store, set()).interpretation(num(1), loop=False)


@dataclass(slots=True)
class _Steps:
    types: Callable[[str], ArrayType]
    store: Store
    known: set[Value]
    counts: Counter[str] = field(default_factory=Counter)
    computed: set[Value] = field(default_factory=set)

    def interpretation(self, iterations: Expr, *, loop: bool) -> Interpretation:
        """Return the steps of the store."""
        store = self.store
        self._value(store.value)
        if not is_total(store) and not store.in_variable:
            self._subscripts(store.region)
            self.counts[_of(_STORE, store.region)] += 1
            if self._changes_type():
                self.counts[Step.CAST_STORE] += 1
        others = tuple((step, self.counts[step]) for step in Step if self.counts[step])
        return Interpretation(
            iterations,
            loads=self.counts[_LOAD],
            stores=self.counts[_STORE],
            operations=self.counts[_OPERATION],
            vector_loads=self.counts[_VECTOR + _LOAD],
            vector_stores=self.counts[_VECTOR + _STORE],
            others=others,
            loop=loop,
        )

    def _changes_type(self) -> bool:
        made = self._dtype(self.store.value)
        return made not in _OF_PYTHON and made != self.types(self.store.array).dtype

    def _dtype(self, value: Value) -> str:
        return describe(value, self.types).dtype

    def _value(self, value: Value) -> None:
        """Count what it takes to have a value."""
        store = self.store
        if store.in_variable and value == Read(store.array, store.region):
            return
        if value in store.held:
            if value in self.known or value in self.computed:
                return
            self.computed.add(value)
        match value:
            case Scalar(text, _):
                # numbers of the language are followed as text, in which operators are functions
                self.counts[Step.PYTHON_ARITH] += text.count("(")
            case Read(_, region):
                if region:
                    self._subscripts(region)
                    self.counts[_of(_LOAD, region)] += 1
            case Gather(_, places):
                self._value(places)
                self.counts[_VECTOR + _LOAD] += 1
                self.counts[Step.SUBSCRIPT] += 1
            case Copy(operand, _):
                self._value(operand)
                self.counts[Step.CONVERT] += 1
            case Elementwise():
                self._operation(value)
            case _:
                # what makes an array on the way is work of the library
                pass

    def _operation(self, value: Elementwise) -> None:
        parts = value.operands
        match value.spelled:
            case Spelling.MATH:
                # the function converts by itself
                self._values(part.operand if isinstance(part, Copy) else part for part in parts)
                self.counts[Step.MATH] += 1
                return
            case Spelling.OPERATOR if value.operation == "where":
                self._value(parts[0])
                self._longer(parts[1:])
                return
        self._values(parts)
        self.counts[self._step(value)] += 1

    def _values(self, values: Iterable[Value]) -> None:
        for value in values:
            self._value(value)

    def _longer(self, ways: tuple[Value, ...]) -> None:
        """Count one of two ways, of which only the data know which is taken: the longer one."""
        counted: list[Counter[str]] = []
        for way in ways:
            one = _Steps(self.types, self.store, self.known | self.computed)
            one._value(way)
            counted.append(one.counts)
        _, longer = max((sum(one.values()), number) for number, one in enumerate(counted))
        self.counts += counted[longer]

    def _step(self, value: Elementwise) -> str:
        """Return the kind of step that an operation is."""
        parts = value.operands
        match value.spelled:
            case Spelling.LIBRARY:
                return Step.FUNCTION if len(parts) == 1 else Step.BINARY_FUNCTION
            case Spelling.BUILTIN:
                return Step.EXTREME if len(parts) > 1 else Step.UNARY
        if ROWS[value.operation].cost is ArrayOperation.COMPARE or value.operation in (
            "minimum",
            "maximum",
        ):
            return Step.COMPARE
        if len(parts) == 1:
            return Step.UNARY if value.operation in _SIGNS else Step.FUNCTION
        dtypes = [self._dtype(part) for part in parts]
        if any(dtype in _OF_PYTHON for dtype in dtypes):
            return Step.NUMBER_ARITH
        return _OPERATION if len(set(map(strong, dtypes))) == 1 else Step.MIXED_ARITH

    def _subscripts(self, region: tuple[Subscript, ...]) -> None:
        """Count the arithmetic in subscripts."""
        for part in region:
            if isinstance(part, Point):
                self.counts[Step.PYTHON_ARITH] += operators(part.at)


def operators(subscript: Expr) -> int:
    """Return how many operators a subscript takes at least: ``i + 1`` one, ``2 * i + 1`` two."""
    match subscript:
        case Num() | Sym():
            return 0
        case Add(terms, constant):
            own = len(terms) - 1 + (constant != 0)
            return own + sum(map(operators, terms))
        case Mul():
            return 1
    return 1


def _of(what: str, region: tuple[Subscript, ...]) -> str:
    return f"{_VECTOR}{what}" if len(region) == 1 else what
