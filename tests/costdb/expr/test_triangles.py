"""Sums over triangles, turned round so that one sum is left, give what enumeration gives."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from costdb.expr import Expr, evaluate, parse, summation, sym, to_text
from costdb.expr.functions import Reduction
from costdb.pricing import added_over, total_over

TERMS = ("i % 3", "log2(i + 40)", "(i // 4)*c", "if(i < 3, i, N)")
ENDS = st.integers(-3, 4)


def deepest(expr: Expr) -> int:
    inner = max(map(deepest, expr.children), default=0)
    return inner + isinstance(expr, Reduction)


@pytest.mark.parametrize("over", [total_over, added_over])
@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(TERMS),
    st.sampled_from(["k*2", "k % 2 + c", "0"]),
    st.tuples(ENDS, ENDS, ENDS, ENDS),
    st.booleans(),
)
def test_turned_sums_equal_enumerated_ones(
    over: object, inside: str, beside: str, ends: tuple[int, int, int, int], upper: bool
) -> None:
    low, high, lag, end = ends
    first, last = (f"k + {lag}", f"N + {end}") if upper else (f"{end}", f"k + {lag}")
    inner = summation("i", parse(first), parse(last), parse(inside))
    body = 3 * inner + parse(beside)
    assert callable(over)
    found = over("k", parse(f"{low}"), parse(f"N + {high}"), body)
    assert deepest(found) <= 1, to_text(found)
    whole = summation("k", parse(f"{low}"), parse(f"N + {high}"), body)
    for size in range(6):
        values = {"N": size, "c": 5}
        assert evaluate(found, values) == pytest.approx(evaluate(whole, values), rel=1e-12)


def test_what_depends_on_both_indices_stays_as_it_is() -> None:
    inner = summation("i", sym("k") + 1, sym("N"), parse("(i*k) % 7"))
    found = total_over("k", parse("0"), parse("N - 1"), inner)
    assert deepest(found) == 2
    assert evaluate(found, {"N": 9}) == sum(i * k % 7 for k in range(9) for i in range(k + 1, 10))
