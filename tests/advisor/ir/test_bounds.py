"""What is shown of indices within nested loops holds for every iteration of small ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.analysis.lower import Unpriced, lower
from advisor.frontend.kernels import read_kernels
from advisor.ir.concrete import at_sizes, content_of
from advisor.ir.dependence import least_index, non_negative_within
from advisor.ir.kernel import Kernel
from advisor.ir.statements import Choice, Loop, Stated, Statement, Store, Unknown, Unrolled
from advisor.ir.values import Read, Scalar
from advisor.ranking import compare
from advisor.source import Span
from advisor.transform_registry import transforms
from costdb.expr import Expr, evaluate, num, sym
from costdb.machines import load_machine

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


# What costs of kernels follow from: nothing but places is left out, and places do not matter.


EXAMPLES = sorted((Path(__file__).parents[3] / "examples").glob("*.py"))
HERE, THERE = Span(1, 0, 1, 1), Span(7, 4, 9, 2)


def variants(path: Path) -> Iterator[Kernel]:
    """Yield the kernels of a file, and what the rules make of them, also at their sizes."""
    for kernel in read_kernels(str(path), path.read_text(encoding="utf-8")):
        sizes = {name: binding.value for name, binding in kernel.sizes.items()}
        found = [kernel]
        for transform in transforms():
            found += (proposal.variant for proposal in transform.propose(kernel))
        for one in found:
            yield one
            yield at_sizes(one, sizes)


def process_of(kernel: Kernel) -> object:
    try:
        return lower(kernel)
    except Unpriced as unknown:
        return unknown.reason


def test_equal_content_is_lowered_alike() -> None:
    groups: dict[object, list[Kernel]] = {}
    for path in EXAMPLES:
        for kernel in variants(path):
            groups.setdefault(content_of(kernel), []).append(kernel)
    assert len(groups) > 100
    assert any(len(group) > 1 for group in groups.values())
    for group in groups.values():
        if len(group) > 1:
            assert len({process_of(kernel) for kernel in group}) == 1


def statement_kernel(statement: Statement) -> Kernel:
    kernel = read_kernels("a.py", EXAMPLES[0].read_text(encoding="utf-8"))[0]
    return kernel.with_body((Loop("i", num(0), num(9), 1, (statement,), HERE),))


_GIVEN: Mapping[str, Any] = {"name": "x", "value": Scalar("1", "float64")}
SAMPLES: tuple[Statement, ...] = (
    Store("a", (), Scalar("1", "float64"), HERE),
    Loop("k", num(0), num(5), 1, (Unknown("why", frozenset(), HERE),), HERE),
    Choice(num(1) / 2, (Unknown("why", frozenset(), HERE),), (), HERE),
    Stated(num(3), frozenset({"a"}), HERE),
    Unrolled((Unknown("why", frozenset(), HERE),), HERE),
    *(
        kind(*(_GIVEN.get(field.name, frozenset({"a"})) for field in fields(kind)))
        for kind in get_args(Statement)
        if kind not in (Store, Loop, Choice, Stated, Unrolled)
    ),
)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: type(sample).__name__)
def test_every_field_of_a_statement_but_its_place_counts(sample: Statement) -> None:
    before = content_of(statement_kernel(sample))
    moved = replace(sample, span=THERE)
    assert content_of(statement_kernel(moved)) == before
    for field in fields(sample):
        if field.name == "span":
            continue
        other: Any = Read("other", ())
        if field.name in ("body", "then", "orelse"):
            other = (Unknown("other", frozenset(), HERE),)
        elif field.name == "in_place":
            other = True
        changes: dict[str, Any] = {field.name: other}
        assert content_of(statement_kernel(replace(sample, **changes))) != before, field.name


def test_no_more_costs_are_kept_than_said() -> None:
    machine = load_machine("t3e")
    kernel = read_kernels("a.py", EXAMPLES[0].read_text(encoding="utf-8"))[0]
    for count in range(compare.MOST_REMEMBERED + 5):
        body = (Stated(num(count), frozenset(), HERE),)
        compare.cost(kernel.with_body(body), machine)
    assert len(compare._costs) == compare.MOST_REMEMBERED
