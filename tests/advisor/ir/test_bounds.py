"""What is shown of indices within nested loops holds for every iteration of small ones."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.frontend.kernels import read_kernels
from advisor.ir.dependence import least_index, non_negative_within
from advisor.ir.statements import Loop, Statement
from costdb.expr import Expr, evaluate, num, sym

SMALL = st.integers(-2, 3)


def linear(names: list[str]) -> st.SearchStrategy[Expr]:
    coefficients = st.lists(SMALL, min_size=len(names), max_size=len(names))
    return st.builds(
        lambda constant, factors: sum(
            (sym(name) * factor for name, factor in zip(names, factors, strict=True)),
            num(constant),
        ),
        SMALL,
        coefficients,
    )


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_a_sign_within_loops_holds_in_every_iteration(data: st.DataObject) -> None:
    minima: dict[str, int] = {}
    maxima: dict[str, Expr] = {}
    starts: dict[str, Expr] = {}
    for names in (["N"], ["N", "i"], ["N", "i", "j"]):
        index = "ijk"[len(names) - 1]
        starts[index] = data.draw(linear(names))
        maxima[index] = data.draw(linear(names))
        minima[index] = least_index(starts[index], minima)
    expr = data.draw(linear(["N", "i", "j", "k"]))
    if not non_negative_within(expr, minima, maxima, starts):
        return

    def values(index: str, known: dict[str, int]) -> range:
        low = int(evaluate(starts[index], known))
        # a start of unknown sign is taken to stay inside its array
        assumed = max(low, minima[index]) if minima[index] >= 0 else low
        return range(assumed, int(evaluate(maxima[index], known)) + 1)

    for size in range(1, 6):
        for i in values("i", {"N": size}):
            for j in values("j", {"N": size, "i": i}):
                for k in values("k", {"N": size, "i": i, "j": j}):
                    assert evaluate(expr, {"N": size, "i": i, "j": j, "k": k}) >= 0


# Symbols of loops hang on the order of loops, and never on lines.


KERNEL = """\
import numpy as np

def scaled(y):
    for i in range(4):
        y[i] = 2 * y[i]


# advise: kernel N=100
# advise: x: f8[N, N] over (block(row), none) on mesh(row=4)
def smooth(x):
    for i in range(1, 9):
        for j in range(1, 8):
            x[i, j] = x[i, j - 1]
    # advise: trip 5
    while x[0, 0] > 0:
        for i in range(3):
            x[i] = x[i + 1]
"""


def variables(body: tuple[Statement, ...]) -> Iterator[str]:
    for statement in body:
        if isinstance(statement, Loop):
            yield statement.variable
            yield from variables(statement.body)


def symbols(source: str) -> list[str]:
    (kernel,) = read_kernels("f.py", source)
    return list(variables(kernel.body))


def test_loops_are_numbered_in_the_order_of_the_source() -> None:
    assert symbols(KERNEL) == ["i.loop1", "j.loop2", "iteration.loop3", "i.loop4"]
