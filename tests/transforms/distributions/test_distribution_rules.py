"""ADV102 and ADV202: annotations and loops as rewritten mean what was proposed."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from advisor.finding import Applicability
from advisor.ir.kernel import Proposal, Transform
from advisor.source import apply_edits
from tests.transforms.checks import (
    Rewrite,
    check_square,
    check_text,
    only_kernel,
)
from transforms.distributions.block_or_cyclic import TRANSFORM as BLOCK_OR_CYCLIC
from transforms.sweeps.recurrence import TRANSFORM as RECURRENCE

EXAMPLES = Path(__file__).parents[3] / "examples"


def rewrites(source: str, transform: Transform) -> list[Rewrite]:
    kernel = only_kernel(source)
    made = [(p, p.edits()) for p in transform.propose(kernel)]
    return [Rewrite(source, kernel, p, apply_edits(source, edits)) for p, edits in made if edits]


def check_distributions(found: Rewrite) -> None:
    """The rewritten program has the distributions and the work of the variant."""
    again, variant = only_kernel(found.rewritten), found.proposal.variant
    for name, array in variant.arrays.items():
        assert again.arrays[name].spec == array.spec, found.rewritten
    check_text(found)
    check_square(found)


# ADV102

HEADS = {
    "one line": "from advisor import Block, Dist, Mesh, kernel",
    "in brackets": "from advisor import (Block, Dist, Mesh, kernel)",
    "one each": "from advisor import (\n    Block,\n    Dist,\n    Mesh,\n    kernel,\n)",
    "renamed": "from advisor import Block as B, Dist, Mesh, kernel",
    "of the package": "import advisor\nfrom advisor import Dist, Mesh, kernel",
    "both": "from advisor import Block, Cyclic, Dist, Mesh, kernel",
}
ENTRIES = {
    "renamed": 'B("r")',
    "of the package": 'advisor.Block("r")',
    "bare": '"r"',
}


def annotated(head: str, entry: str) -> str:
    return f"""\
from typing import Annotated
import numpy as np
from numpy.typing import NDArray
{head}

mesh = Mesh(r=4)


@kernel(N=64)
def eliminate(a: Annotated[NDArray[np.float64], Dist("N", "N", None, {entry}, on=mesh)]):
    for k in range(a.shape[0] - 1):  # every pivot
        a[k + 1 :, k + 1 :] -= a[k + 1 :, k, None] * a[k, None, k + 1 :]
"""


@pytest.mark.parametrize("name", [*HEADS, "bare"])
def test_pieces_are_written_with_the_import_they_need(name: str) -> None:
    source = annotated(HEADS.get(name, HEADS["one line"]), ENTRIES.get(name, 'Block("r")'))
    found = rewrites(source, BLOCK_OR_CYCLIC)
    assert len(found) == 7
    for one in found:
        check_distributions(one)
        function = ast.parse(one.rewritten).body[-1]
        assert ast.dump(ast.parse(source).body[-1].body[0]) == ast.dump(function.body[0])


def test_a_name_that_means_something_else_is_left_alone() -> None:
    source = annotated(HEADS["one line"], 'Block("r")') + "\n\nclass Cyclic: ...\n"
    assert not rewrites(source, BLOCK_OR_CYCLIC)


# ADV202


QUIET = {
    "independent": ["for j in range(1, N):", "    x[:, j] = 2.0 * x[:, j]"],
    "along the other axis": ["for i in range(1, M):", "    x[i, :] = x[i, :] - x[i - 1, :]"],
    "not elementwise": ["for j in range(1, N):", "    x[:, j] = np.cumsum(x[:, j - 1])"],
    "across rows": ["for j in range(1, N):", "    x[1:, j] = x[:-1, j - 1]"],
    "part of the rows": ["for j in range(1, N):", "    x[2:, j] = x[2:, j - 1]"],
    "reduced": ["for j in range(1, N):", "    x[:, j] = x[:, j - 1] + np.sum(x)"],
}


@pytest.mark.parametrize("name", QUIET)
def test_near_misses_stay_quiet(name: str) -> None:
    body = "\n".join(f"    {line}" for line in QUIET[name])
    source = f"""\
import numpy as np

# advise: kernel M=64 N=64 P=8
# advise: x: f8[M, N] over (none, block(r)) on mesh(r=P)
def sweep(x, M: int, N: int):
{body}
"""
    assert not list(RECURRENCE.propose(only_kernel(source)))


def proposals_of(body: list[str], head: str = "") -> list[Proposal]:
    text = "\n".join(f"    {line}" for line in body)
    source = f"""\
import numpy as np
{head}
# advise: kernel M=64 N=64 P=8
# advise: x: f8[M, N] over (none, block(r)) on mesh(r=P)
def sweep(x, M: int, N: int):
{text}
"""
    return list(RECURRENCE.propose(only_kernel(source)))


def test_an_index_used_later_is_shown_only() -> None:
    found = proposals_of(["for j in range(1, N):", "    x[:, j] = x[:, j - 1]", "return j"])
    assert all(p.legality.applicability is Applicability.DISPLAY for p in found)


def test_a_loop_that_does_something_else_is_left_alone() -> None:
    found = proposals_of(["for j in range(1, N):", "    x[:, j] = x[:, j - 1]", "    print(j)"])
    assert found and not any(p.edits() for p in found)


def test_memory_that_may_be_shared_makes_it_unsafe() -> None:
    adi = (EXAMPLES / "adi.py").read_text()
    from advisor.frontend.kernels import read_kernels

    sweep = read_kernels("adi.py", adi)[0]
    kinds = [p.legality.applicability for p in RECURRENCE.propose(sweep) if p.edits()]
    assert kinds and set(kinds) == {Applicability.UNSAFE}
    alone = proposals_of(["for j in range(1, N):", "    x[:, j] = x[:, j - 1]"])
    assert alone[0].legality.applicability is Applicability.SAFE
