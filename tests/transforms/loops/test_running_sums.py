"""ADV401 on running sums: prefix sums give what the loops gave, bit for bit."""

from __future__ import annotations

import pytest

from advisor.finding import Applicability
from tests.transforms.generated.loop_programs import program, rewritten
from tests.transforms.generated.running_programs import ARRAYS, offered

WRITTEN = {
    "a vector": (
        ["for i in range(1, N):", "    v[i] = v[i - 1] + w[i]"],
        ["v[1:N] = w[1:N]", "np.cumsum(v[:N], out=v[:N])"],
    ),
    "along rows": (
        [
            "for i in range(N):",
            "    for j in range(1, N):",
            "        a[i, j] = b[i, j] + a[i, j - 1]",
        ],
        ["a[:N, 1:N] = b[:N, 1:N]", "np.cumsum(a[:N, :N], axis=1, out=a[:N, :N])"],
    ),
}


@pytest.mark.parametrize(("lines", "expected"), WRITTEN.values(), ids=WRITTEN.keys())
def test_what_is_written(lines: list[str], expected: list[str]) -> None:
    made = program(lines, ARRAYS, "f8")
    first = offered(made)[0]
    assert [line.strip() for line in rewritten(made, first).splitlines()][-2:] == expected


def test_arrays_that_are_made_here_are_safe() -> None:
    made = program(
        ["v = np.zeros(N)", "for i in range(1, N):", "    v[i] = v[i - 1] + w[i]", "w[:] = v"],
        (("w", 1),),
        "f8",
    )
    (only,) = offered(made)
    assert only.legality.applicability is Applicability.SAFE


@pytest.mark.parametrize("over", [" over (block(p)) on mesh(p=4)", ""])
def test_floating_point_numbers_of_ranks_are_added_in_parts(over: str) -> None:
    lines = ["for i in range(1, N):", "    v[i] = v[i - 1] + 1.5"]
    (only,) = offered(program(lines, (("v", 1),), "f8", over))
    wanted = Applicability.UNSAFE if over else Applicability.SAFE
    assert only.legality.applicability is wanted


QUIET = {
    "two before": ["for i in range(2, N):", "    v[i] = v[i - 2] + w[i]"],
    "a factor": ["for i in range(1, N):", "    v[i] = 0.5 * v[i - 1] + w[i]"],
    "a difference": ["for i in range(1, N):", "    v[i] = w[i] - v[i - 1]"],
    "backwards": ["for i in range(0, N - 1):", "    v[i] = v[i + 1] + w[i]"],
    "the term looks at it": ["for i in range(1, N):", "    v[i] = v[i - 1] + v[N - i]"],
    "from the last one on": ["for i in range(0, N):", "    v[i] = v[i - 1] + w[i]"],
    "in steps": ["for i in range(1, N, 2):", "    v[i] = v[i - 1] + w[i]"],
    "both ways": [
        "for i in range(1, N):",
        "    for j in range(1, N):",
        "        a[i, j] = a[i - 1, j - 1] + b[i, j]",
    ],
}


@pytest.mark.parametrize("lines", QUIET.values(), ids=QUIET.keys())
def test_near_misses_are_no_prefix_sums(lines: list[str]) -> None:
    assert not offered(program(lines, ARRAYS, "f8"))


@pytest.mark.parametrize("dtype", ["i4", "u1", "c16"])
def test_types_that_cumsum_widens_or_rounds_otherwise_are_left_alone(dtype: str) -> None:
    assert not offered(
        program(["for i in range(1, N):", "    v[i] = v[i - 1] + w[i]"], ARRAYS, dtype)
    )
