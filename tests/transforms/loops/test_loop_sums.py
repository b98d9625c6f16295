"""ADV401 on accumulations: reductions give what the loops gave, or are not offered."""

from __future__ import annotations

import pytest

from advisor.analysis.lower import lower
from advisor.finding import Applicability
from advisor.frontend.kernels import read_kernels
from tests.transforms.generated.loop_programs import (
    program,
    rewritten,
)
from transforms.loops.vectorise import TRANSFORM

REWRITTEN = {
    "a total": (
        ["s = 0", "for i in range(N):", "    for j in range(N):", "        s += a[i, j]  # all"],
        "s += a[:N, :N].sum()  # all",
    ),
    "a total of an expression": (
        ["s = 0", "for i in range(N - 1):", "    s = s + (v[i] - w[i + 1])"],
        "s += (v[:N - 1] - w[1:N]).sum()",
    ),
    "a dot product": (
        ["s = 0", "for i in range(N):", "    s += v[i] * w[i]"],
        "s += v[:N] @ w[:N]",
    ),
    "a maximum": (
        ["s = v[0]", "for i in range(N):", "    if v[i] > s:", "        s = v[i]"],
        "s = v[:N].max(initial=s)",
    ),
    "a minimum": (
        ["s = v[0]", "for i in range(N):", "    s = min(v[i], s)"],
        "s = v[:N].min(initial=s)",
    ),
    "a count": (
        ["s = 0", "for i in range(N):", "    if v[i] > 3:", "        s += 1"],
        "s += np.count_nonzero(v[:N] > 3)",
    ),
    "a matrix and a vector": (
        ["for i in range(N):", "    for j in range(N):", "        v[i] += a[i, j] * w[j]"],
        "v[:N] += a[:N, :N] @ w[:N]",
    ),
    "a transposed matrix and a vector": (
        ["for i in range(N):", "    for j in range(N):", "        v[i] -= a[j, i] * w[j]"],
        "v[:N] -= w[:N] @ a[:N, :N]",
    ),
    "two matrices": (
        [
            "for i in range(N):",
            "    for j in range(N):",
            "        for k in range(N):",
            "            c[i, j] += a[i, k] * b[k, j]",
        ],
        "c[:N, :N] += a[:N, :N] @ b[:N, :N]",
    ),
    "sums of rows": (
        ["for i in range(N):", "    for j in range(N):", "        v[i] += a[i, j]"],
        "v[:N] += a[:N, :N].sum(axis=1)",
    ),
    "an outer product": (
        ["for i in range(N):", "    for j in range(N):", "        c[i, j] = v[i] * w[j]"],
        "c[:N, :N] = v[:N, None] * w[:N]",
    ),
    "an elimination": (
        [
            "for k in range(N):",
            "    v[k] = 0",
            "    for i in range(k + 1, N):",
            "        for j in range(k + 1, N):",
            "            a[i, j] = a[i, j] - a[i, k] * a[k, j]",
        ],
        "    a[k + 1:N, k + 1:N] = a[k + 1:N, k + 1:N] - a[k + 1:N, k, None] * a[k, k + 1:N]",
    ),
}
ARRAYS = (("a", 2), ("b", 2), ("c", 2), ("v", 1), ("w", 1))


@pytest.mark.parametrize(("lines", "expected"), REWRITTEN.values(), ids=REWRITTEN.keys())
def test_what_is_written(lines: list[str], expected: str) -> None:
    made = program(lines, ARRAYS)
    first = next(iter(TRANSFORM.propose(made.kernel)))
    source = rewritten(made, first)
    assert f"    {expected}" in source.splitlines()
    (again,) = read_kernels("program.py", source)
    assert lower(again) == lower(first.variant)


NOT_WRITTEN = {
    "a prefix sum": ["t = 0", "for i in range(N):", "    t += v[i]", "    w[i] = t"],
    "a total that is watched": [
        "s = 0",
        "for i in range(N):",
        "    s += v[i]",
        "    if s > 9:",
        "        break",
    ],
    "a total of what it adds to": ["for i in range(N):", "    v[0] += v[i]"],
    "a mean on the way": ["s = 0", "for i in range(N):", "    s = (s + v[i]) / 2"],
    "sums and differences": [
        "s = 0",
        "for i in range(N):",
        "    s = v[i] - s",
    ],
    "an extreme with its place": [
        "s = v[0]",
        "m = 0",
        "for i in range(N):",
        "    if v[i] > s:",
        "        s = v[i]",
        "        m = i",
    ],
    "two operations": [
        "s = 0",
        "for i in range(N):",
        "    s += v[i]",
        "    s *= w[i]",
    ],
    "terms beyond the end": ["s = 0", "for i in range(N):", "    s += v[i + 1]"],
    "as many terms as a caller says": ["s = 0", "for i in range(K):", "    s += v[i]"],
    "a number of each iteration": [
        "s = 0",
        "for i in range(N):",
        "    t = v[i] - w[i]",
        "    s += t * t",
    ],
    "a swap": ["for i in range(N):", "    t = v[i]", "    v[i] = w[i]", "    w[i] = t"],
    "something else beside it": ["n = 0", "for i in range(N):", "    n += 1", "    v[i] = w[i]"],
    "a number that doubles": ["s = 0.5", "for i in range(N):", "    s *= 2", "    v[i] = s"],
    "a number made of itself": ["s = 0.5", "for i in range(N):", "    v[i] = s", "    s = s * 2"],
    "a loop that counts down": ["for i in range(N - 1, -1, -1):", "    v[i] = w[i]"],
    "an outer number between the loops": [
        "for i in range(N):",
        "    t = v[i]",
        "    for j in range(N):",
        "        c[i, j] = t * a[i, j]",
    ],
}


@pytest.mark.parametrize("lines", NOT_WRITTEN.values(), ids=NOT_WRITTEN.keys())
def test_nothing_is_written_where_results_may_differ(lines: list[str]) -> None:
    made = program(lines, ARRAYS)
    with_more = made.source.replace("N: int)", "N: int, K: int)")
    (kernel,) = read_kernels("program.py", with_more)
    assert [p.title for p in TRANSFORM.propose(kernel) if p.edits()] == []


@pytest.mark.parametrize("name", ["a number that doubles", "a number made of itself"])
def test_nothing_is_said_of_numbers_that_change(name: str) -> None:
    made = program(NOT_WRITTEN[name], ARRAYS, "f8")
    assert not list(TRANSFORM.propose(made.kernel))


@pytest.mark.parametrize(
    ("statement", "dtype", "applicability"),
    [
        ("s += v[i]", "i8", Applicability.SAFE),
        ("s += v[i] * w[i]", "u8", Applicability.SAFE),
        ("s += v[i]", "f8", Applicability.UNSAFE),
        ("s += v[i]", "i4", None),
        ("s += v[i] / w[i]", "i8", None),
        ("s = max(s, v[i])", "i8", Applicability.SAFE),
        ("s = max(s, v[i])", "f8", Applicability.UNSAFE),
        ("s = max(s, v[i])", "i2", None),
    ],
)
def test_who_may_apply_it(statement: str, dtype: str, applicability: Applicability | None) -> None:
    made = program(["s = 0", "for i in range(N):", f"    {statement}"], (("v", 1), ("w", 1)), dtype)
    found = [p.legality.applicability for p in TRANSFORM.propose(made.kernel)]
    assert found == ([] if applicability is None else [applicability])
