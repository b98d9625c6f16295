"""Steps that lowering counts for statements on single elements, against running them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.analysis.lower import lower
from advisor.frontend.kernels import read_kernels
from costdb.expr import evaluate
from costdb.work import Interpretation, Leaf, Process, SeqLoop, Sequential

SIZES = {"N": 4, "M": 5}
HEADER = """\
import math

import numpy as np

# advise: kernel
# advise: a: float64[N, M]
# advise: b: float64[N, M]
# advise: v: float64[M]
# advise: w: float64[N]
# advise: k: int64[N]
def program(a, b, v, w, k, t: float):
"""


class Number:
    """An element that counts what is done with it."""

    def __init__(self, value: float, counts: Counter[str]) -> None:
        self.value, self.counts = value, counts

    def _made(self, step: str, value: float) -> Number:
        self.counts[step] += 1
        return Number(value, self.counts)

    def _with(self, value: float) -> Number:
        return self._made("operations", value)

    def __add__(self, other: Any) -> Number:
        return self._with(self.value + _plain(other))

    def __mul__(self, other: Any) -> Number:
        return self._with(self.value * _plain(other))

    __radd__, __rmul__ = __add__, __mul__

    def __sub__(self, other: Any) -> Number:
        return self._with(self.value - _plain(other))

    def __neg__(self) -> Number:
        return self._made("operations", -self.value)

    def __abs__(self) -> Number:
        return self._made("operations", abs(self.value))

    def __lt__(self, other: Any) -> bool:
        self.counts["operations"] += 1
        return self.value < float(_plain(other))

    def __gt__(self, other: Any) -> bool:
        self.counts["operations"] += 1
        return self.value > float(_plain(other))

    def __float__(self) -> float:
        # converted, and computed with
        self.counts["operations"] += 1
        self.counts["operations"] += 1
        return float(self.value)

    def __array_ufunc__(self, ufunc: Any, method: str, *given: Any) -> Number:
        return self._made("calls", float(ufunc(*map(_plain, given))))

    def __index__(self) -> int:
        return int(self.value)


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, Number) else value


class Index(int):
    """An index that counts what is computed of it."""

    counts: Counter[str]

    def _with(self, value: int) -> int:
        if value is not NotImplemented:
            self.counts["operations"] += 1
        return value

    def __add__(self, other: Any) -> int:
        return self._with(super().__add__(other))

    def __sub__(self, other: Any) -> int:
        return self._with(super().__sub__(other))

    def __rmul__(self, other: Any) -> int:
        return self._with(super().__rmul__(other))


class Counted:
    """An array that counts the elements that are loaded and stored."""

    def __init__(self, array: Any, counts: Counter[str]) -> None:
        self.array, self.counts, self.shape = array, counts, array.shape

    def __getitem__(self, key: Any) -> Number:
        self.counts["loads"] += 1
        return Number(self.array[key], self.counts)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.counts["stores"] += 1
        self.array[key] = _plain(value)


def ran(source: str) -> Counter[str]:
    """Return what a program does."""
    counts: Counter[str] = Counter()
    rows, columns = SIZES["N"], SIZES["M"]
    arrays = [
        Counted(np.full(shape, 1.5).astype(dtype), counts)
        for shape, dtype in (
            *(((rows, columns), float), ((rows, columns), float), ((columns,), float)),
            *(((rows,), float), ((rows,), int)),
        )
    ]

    def counted_range(*bounds: int) -> Iterator[Index]:
        for number in range(*bounds):
            index = Index(number)
            index.counts = counts
            yield index

    scope: dict[str, Any] = {"range": counted_range}
    exec(source, scope)  # our own text
    scope["program"](*arrays, 0.5)
    return +counts


def told(source: str) -> Counter[str]:
    """Return what lowering says that it does."""
    (kernel,) = read_kernels("drawn.py", source)
    counts: Counter[str] = Counter()
    for work, times in _leaves(lower(kernel), 1):
        if not isinstance(work, Interpretation):
            continue
        times *= int(evaluate(work.iterations, SIZES))
        for name in ("loads", "stores", "operations", "calls"):
            counts[name] += times * getattr(work, name)
    return +counts


def _leaves(process: Process, times: int) -> Iterator[tuple[object, int]]:
    match process:
        case Leaf(work):
            yield work, times
        case Sequential(parts):
            for part in parts:
                yield from _leaves(part, times)
        case SeqLoop(_, low, high, body):
            trips = int(evaluate(high, SIZES)) - int(evaluate(low, SIZES)) + 1
            yield from _leaves(body, times * trips)
        case _:
            raise AssertionError(f"{process} is not counted")


LEAVES = ("a[i, j]", "b[i, j]", "b[i - 1, j]", "v[j]", "w[i]", "v[k[i]]")


def _inner(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    number = st.sampled_from(("2.0", "3", "t", "i", "2 * j"))
    return st.one_of(
        st.builds("({} {} {})".format, parts, st.sampled_from("+-*"), parts),
        st.builds("({} {} {})".format, number, st.sampled_from("+*"), parts),
        st.builds("{}({}, {})".format, st.sampled_from(("min", "max")), parts, parts),
        st.builds("np.{}({}, {})".format, st.sampled_from(("minimum", "add")), parts, parts),
        st.builds("{}({})".format, st.sampled_from(("-", "abs", "np.cosh", "np.square")), parts),
    )


VALUES = st.recursive(st.sampled_from(LEAVES), _inner, max_leaves=5)
TARGETS = st.sampled_from(("a[i, j]", "v[j]", "a[i, 0]"))


@settings(max_examples=60, deadline=None)
@given(TARGETS, VALUES)
def test_steps_are_those_that_a_program_does(target: str, value: str) -> None:
    body = f"""\
    for i in range(1, a.shape[0]):
        for j in range(a.shape[1]):
            {target} = {value}
"""
    assert told(HEADER + body) == ran(HEADER + body)


def test_what_a_mathematical_function_converts_is_part_of_it() -> None:
    body = """\
    for i in range(w.shape[0]):
        w[i] = math.sqrt(w[i]) * w[i]
"""
    assert told(HEADER + body) == ran(HEADER + body)
