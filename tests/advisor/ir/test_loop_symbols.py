"""Symbols of loops hang on the order of loops, and never on lines."""

from __future__ import annotations

from collections.abc import Iterator

from advisor.frontend.kernels import read_kernels
from advisor.ir.statements import Loop, Statement

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
