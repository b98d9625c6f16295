"""ADV401: array statements give what the loops gave, or are not offered."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from advisor.finding import Applicability
from advisor.frontend.kernels import read_kernels
from advisor.ir.kernel import Proposal
from advisor.ir.statements import Unknown, walk
from tests.transforms.generated.loop_programs import (
    Program,
    program,
    rewritten,
)
from transforms.loops.array_statements import IF_NOT_EMPTY
from transforms.loops.vectorise import TRANSFORM

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
            if proposal.legality.applicability is Applicability.DISPLAY:
                assert not proposal.edits()
                continue
            after = rewritten(made, proposal)
            for n, k in product(range(7), (-2, 0, 3)):
                first, last = (eval(end, {"N": n, "K": k}) for end in (low, high))
                if IF_NOT_EMPTY in proposal.legality.argument and last <= first:
                    continue
                if "`K` is not negative" in proposal.legality.argument and k < 0:
                    continue
                if "`K` is positive" in proposal.legality.argument and k < 1:
                    continue
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


def test_a_choice_between_two_numbers_is_made_for_all_at_once() -> None:
    lines = ["for i in range(N):", "    v[i] = w[i] if w[i] > 0.0 else -1.0"]
    made = program(lines, (("v", 1), ("w", 1)), "f8")
    assert not [s for s in walk(made.kernel.body) if isinstance(s, Unknown)]
    (only,) = TRANSFORM.propose(made.kernel)
    assert "v[:] = np.where(w > 0.0, w, -1.0)" in rewritten(made, only)


@pytest.mark.parametrize(
    ("statement", "dtype", "applicability"),
    [
        # the sum of nothing was Python's 0
        ("s += v[i]", "i8", Applicability.UNSAFE),
        ("s += v[i] * w[i]", "u8", Applicability.UNSAFE),
        ("s += v[i]", "f8", Applicability.UNSAFE),
        ("s += v[i]", "i4", Applicability.DISPLAY),
        ("s += v[i] / w[i]", "i8", Applicability.UNSAFE),
        ("s = max(s, v[i])", "i8", Applicability.UNSAFE),
        ("s = max(s, v[i])", "f8", Applicability.UNSAFE),
        ("s = max(s, v[i])", "i2", Applicability.DISPLAY),
    ],
)
def test_who_may_sum(statement: str, dtype: str, applicability: Applicability) -> None:
    made = program(["s = 0", "for i in range(N):", f"    {statement}"], (("v", 1), ("w", 1)), dtype)
    found = [p.legality.applicability for p in TRANSFORM.propose(made.kernel)]
    assert found == [applicability]


def running_sums(made: Program) -> list[Proposal]:
    return [p for p in TRANSFORM.propose(made.kernel) if "prefix sum" in p.title]


def test_arrays_that_are_made_here_are_safe() -> None:
    made = program(
        ["v = np.zeros(N)", "for i in range(1, N):", "    v[i] = v[i - 1] + w[i]", "w[:] = v"],
        (("w", 1),),
        "f8",
    )
    (only,) = running_sums(made)
    assert only.legality.applicability is Applicability.SAFE


@pytest.mark.parametrize("over", [" over (block(p)) on mesh(p=4)", ""])
def test_floating_point_numbers_of_ranks_are_added_in_parts(over: str) -> None:
    lines = ["for i in range(1, N):", "    v[i] = v[i - 1] + 1.5"]
    (only,) = running_sums(program(lines, (("v", 1),), "f8", over))
    wanted = Applicability.UNSAFE if over else Applicability.SAFE
    assert only.legality.applicability is wanted


@pytest.mark.parametrize("dtype", ["i4", "u1", "c16"])
def test_types_that_cumsum_widens_or_rounds_otherwise_are_left_alone(dtype: str) -> None:
    lines = ["for i in range(1, N):", "    v[i] = v[i - 1] + w[i]"]
    assert not running_sums(program(lines, (("v", 1), ("w", 1)), dtype))


DOUBTS = {
    "whole": ("for i in range(N):\n        y[i] = int(x[i])", ["finite and fits int64"]),
    "floor": ("for i in range(N):\n        y[i] = math.floor(x[i])", ["finite and fits int64"]),
    "counted": (
        "for i in range(N):\n        if int(x[i]) > 0:\n            n += 1",
        ["finite and fits int64"],
    ),
    "of all": (
        "for i in range(N):\n        y[i] = math.exp(z[i])\n        m = max(m, x[i])",
        ["`exp` on float64", "no element is NaN"],
    ),
}


@pytest.mark.parametrize("name", DOUBTS)
def test_every_doubt_is_told(name: str) -> None:
    body, words = DOUBTS[name]
    lines = [
        "import math", "import numpy as np", "# advise: kernel", "# advise: x: f8[N]",
        "# advise: z: f8[N]", "def program(x, z, N: int):", "    y = np.zeros(N)", "    n = 0",
        "    m = -1.0", f"    {body}", "    return y, n, m", "",
    ]  # fmt: skip
    (kernel,) = read_kernels("f.py", "\n".join(lines))
    proposals = list(TRANSFORM.propose(kernel))
    assert proposals
    for proposal in proposals:
        assert proposal.legality.applicability is Applicability.UNSAFE
        assert all(part in proposal.legality.argument for part in words), proposal.legality


def test_all_names_that_may_share_memory_are_told() -> None:
    lines = [
        "# advise: kernel", "# advise: a: f8[N]", "# advise: b: f8[N]", "# advise: c: f8[N]",
        "def program(a, b, c, N: int):", "    for i in range(N):", "        a[i] = b[i] + c[i]", "",
    ]  # fmt: skip
    (kernel,) = read_kernels("f.py", "import numpy as np\n" + "\n".join(lines))
    proposals = list(TRANSFORM.propose(kernel))
    assert proposals
    for proposal in proposals:
        assert "no two of `a`, `b`, `c` overlap" in proposal.legality.argument
