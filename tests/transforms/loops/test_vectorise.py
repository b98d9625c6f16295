"""ADV401: array statements give what the loops gave, or are not offered."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from advisor.analysis.lower import lower
from advisor.finding import Applicability
from advisor.frontend.kernels import read_kernels
from advisor.ir.statements import Unknown, walk
from tests.transforms.generated.loop_programs import (
    Program,
    program,
    rewritten,
)
from transforms.loops.vectorise import TRANSFORM


def is_the_proposed(source: str, made: Program, which: int) -> bool:
    (again,) = read_kernels("program.py", source)
    proposal = list(TRANSFORM.propose(made.kernel))[which]
    return lower(again) == lower(proposal.variant)


BOUNDS = ("0", "2", "N", "N - 3", "K", "N // 2")


def test_every_size_for_which_the_loop_runs() -> None:
    """All bounds and distances; where a statement is offered, all sizes, also empty ones."""
    offered: set[tuple[str, str]] = set()
    for low, high, offset in product(BOUNDS, BOUNDS, (-2, -1, 0, 1, 3)):
        source = "\n".join(
            [
                "import numpy as np",
                "# advise: kernel",
                "# advise: a: i8[N]",
                "# advise: b: i8[N]",
                "def program(a, b, N: int, K: int):",
                f"    for i in range({low}, {high}):",
                f"        a[i] = b[i + {offset}] + 3 * a[i]",
                "",
            ]
        )
        made = Program(source, (("a", 1), ("b", 1)), "i8")
        for proposal in TRANSFORM.propose(made.kernel):
            after = rewritten(made, proposal)
            for n, k in product(range(7), (-2, 0, 3)):
                try:
                    before = run(source, n, k)
                except IndexError:
                    # not a run whose results could be kept
                    continue
                assert run(after, n, k) == before, after
            offered.add((low, high))
    assert {("0", "N"), ("2", "N"), ("2", "N - 3")} <= offered


def run(source: str, n: int, k: int) -> list[int]:
    names: dict[str, object] = {}
    exec(compile(source, "program.py", "exec"), names)
    function = names["program"]
    assert callable(function)
    a = np.arange(n) * 7 + 1
    b = np.arange(n) * 11 + 5
    function(a, b, n, k)
    return list(map(int, a))


REWRITTEN = {
    "a stencil": (
        ["for i in range(1, N):", "    for j in range(N):", "        a[i, j] = b[i - 1, j] * 2"],
        ["a[1:N, :N] = b[:N - 1, :N] * 2"],
    ),
    "an inner loop where the outer one carries sums": (
        [
            "for i in range(1, N):  # rows",
            "    for j in range(N):",
            "        a[i, j] += a[i - 1, j]",
        ],
        ["for i in range(1, N):  # rows", "    a[i, :N] += a[i - 1, :N]"],
    ),
    "a triangle": (
        ["for i in range(N):", "    for j in range(i, N):", "        a[i, j] = 0  # upper"],
        ["for i in range(N):", "    a[i, i:N] = 0  # upper"],
    ),
    "comments within": (
        ["for i in range(N):", "    # twice", "    v[i] = 2 * v[i]  # in place"],
        ["# twice", "v[:N] = 2 * v[:N]  # in place"],
    ),
    "a start of which only the sign is known": (
        ["for i in range(2, N - 2):", "    v[i] = 2 * v[i + 2]"],
        ["v[2:N - 2] = 2 * v[4:N]"],
    ),
}


@pytest.mark.parametrize(("lines", "expected"), REWRITTEN.values(), ids=REWRITTEN.keys())
def test_what_is_written(lines: list[str], expected: list[str]) -> None:
    made = program(lines, (("a", 2), ("b", 2), ("v", 1)))
    first = next(iter(TRANSFORM.propose(made.kernel)))
    body = rewritten(made, first).split("N: int):\n")[1].splitlines()
    assert [line.removeprefix("    ") for line in body] == expected
    assert is_the_proposed(rewritten(made, first), made, 0)


QUIET = {
    "a recurrence": ["for i in range(1, N):", "    v[i] = v[i - 1] + v[i]"],
    "a recurrence over several statements": [
        "for i in range(1, N):",
        "    v[i] = w[i - 1]",
        "    w[i] = v[i] + 1",
    ],
    "a statement that undoes what the next iteration needs": [
        "for i in range(N - 1):",
        "    v[i] = w[i + 1]",
        "    w[i] = 2 * v[i + 1]",
    ],
    "a sum": ["for i in range(N):", "    v[0] += w[i]"],
    "the index as a number": ["for i in range(N):", "    v[i] = i"],
    "the index within a number": ["for i in range(N):", "    v[i] = w[i] * (2 * i + 1)"],
    "places that only the data know": ["for i in range(N):", "    v[w[i]] = 1"],
    "a call": ["for i in range(N):", "    v[i] = next(w)"],
    "a break": ["for i in range(N):", "    v[i] = w[i]", "    break"],
    "a continue": ["for i in range(N):", "    v[i] = w[i]", "    continue"],
    "a number that the loop changes": [
        "s = 0",
        "for i in range(N):",
        "    s += 1",
        "    v[i] = s",
    ],
    "elements beyond the end": ["for i in range(N):", "    v[i] = w[i + 1]"],
    "elements before the start": ["for i in range(N):", "    v[i] = w[i - 1]"],
    "a start that may be negative": ["for i in range(K, N):", "    v[i] = w[i]"],
    "an end that may lie beyond": ["for i in range(K):", "    v[i] = w[i]"],
    "an end that need not be inside": ["for i in range(5):", "    v[i] = w[i]"],
    "a row that an empty array lacks": ["for j in range(N):", "    a[0, j] = 1"],
    "a diagonal": ["for i in range(N):", "    a[i, i] = 1"],
    "an index used afterwards": ["for i in range(N):", "    v[i] = 1", "return i"],
    "a transposition": ["for i in range(N):", "    v[N - 1 - i] = w[i]"],
    "an alias": ["u = v[1:]", "for i in range(N - 1):", "    u[i] = v[i]"],
    "a condition": ["for i in range(N):", "    if w[i] > 0:", "        v[i] = 1"],
    "another type": ["for i in range(N):", "    v[i] = 0.5 * w[i]"],
}


@pytest.mark.parametrize("lines", QUIET.values(), ids=QUIET.keys())
def test_quiet_where_results_may_differ(lines: list[str]) -> None:
    made = program(lines, (("a", 2), ("v", 1), ("w", 1)))
    with_more = made.source.replace("N: int)", "N: int, K: int)")
    (kernel,) = read_kernels("program.py", with_more)
    assert [proposal.title for proposal in TRANSFORM.propose(kernel)] == []


@pytest.mark.parametrize(
    ("statement", "dtype", "applicability"),
    [
        ("v[i] = v[i] * 3 + 1", "i4", Applicability.SAFE),
        ("v[i] = v[i] * 3 + 1", "f8", Applicability.SAFE),
        ("v[i] = v[i] * 3", "f4", Applicability.UNSAFE),
        ("v[i] = v[i] * v[i]", "f4", Applicability.SAFE),
        ("v[i] = v[i] ** 2", "f8", Applicability.UNSAFE),
        ("v[i] = np.exp(v[i])", "f8", Applicability.UNSAFE),
        ("v[i] = v[i] * v[i]", "c16", Applicability.UNSAFE),
        ("v[i] = w[i]", "f8", Applicability.UNSAFE),
    ],
)
def test_who_may_apply_it(statement: str, dtype: str, applicability: Applicability) -> None:
    made = program(["for i in range(N):", f"    {statement}"], (("v", 1), ("w", 1)), dtype)
    (proposal,) = TRANSFORM.propose(made.kernel)
    assert proposal.legality.applicability is applicability


def test_a_choice_between_two_numbers_is_left_as_it_is() -> None:
    lines = ["for i in range(N):", "    v[i] = w[i] if w[i] > 0.0 else -1.0"]
    made = program(lines, (("v", 1), ("w", 1)), "f8")
    assert not [s for s in walk(made.kernel.body) if isinstance(s, Unknown)]
    assert not any(proposal.edits() for proposal in TRANSFORM.propose(made.kernel))
