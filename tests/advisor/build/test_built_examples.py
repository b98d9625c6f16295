"""Kernels of the examples, built and run on ranks: their results are those of the kernels."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.frontend.kernels import read_kernels
from advisor.ir.kernel import Kernel
from advisor.ranking.built import plan_of, proposed
from advisor.transform_registry import transforms
from advisor.verify.running import BuiltCase, run_built
from benchmarks.built_kernels import built_case

EXAMPLES = Path(__file__).parents[3] / "examples"
LENGTHS = {"N", "M", "R"}
SMALL = {"b": 3, "steps": 4, "width": 7}


def kernels() -> list[tuple[str, Kernel]]:
    return [
        (str(path), kernel)
        for path in sorted(EXAMPLES.glob("*.py"))
        for kernel in read_kernels(str(path), path.read_text())
        if kernel.arrays
    ]


def distributions(kernel: Kernel) -> list[Kernel]:
    """Return the kernel as every rule would have it, in text only where data lie elsewhere."""
    return [
        proposal.variant
        for rule in transforms()
        if rule.code.startswith("ADV1")
        for proposal in rule.propose(kernel)
    ]


def cases(ranks: int, length: int) -> list[tuple[str, BuiltCase]]:
    found = []
    for path, kernel in kernels():
        sizes = {**SMALL, "P": ranks, **dict.fromkeys(LENGTHS, length)}
        known = frozenset(kernel.sizes) | {"N", "b", "steps", "width", "P"}
        own = {name: value for name, value in sizes.items() if name in known}
        # on more ranks than cores all wait for each other: they run what is written, and one more
        case = built_case(path, kernel, own, distributions(kernel)[: 1 if ranks > 3 else None])
        found.append((f"{Path(path).name}:{kernel.name}", case))
    return found


# one rank, unequal parts, and ranks without any, of a mesh that is not square
@pytest.mark.parametrize(("ranks", "length"), [(1, 5), (3, 13), (6, 5)])
def test_examples_run_as_they_are_and_as_rules_would_distribute_them(
    ranks: int, length: int
) -> None:
    named = cases(ranks, length)
    found = list(run_built(str(EXAMPLES / "adi.py"), [case for _, case in named], ranks))
    assert len(found) == len(named) > 13
    for (name, case), programs in zip(named, found, strict=True):
        assert len(programs) == len(case.programs)
        for number, one in enumerate(programs):
            assert not one.differs, f"{name}, variant {number}: {one.differs}"


def test_plans_of_every_rule_are_the_kernels_they_stand_for() -> None:
    ranks = 3
    named = []
    for path, kernel in kernels():
        own = {**SMALL, "P": ranks, **dict.fromkeys(LENGTHS, 13)}
        plans = [
            plan.kernel
            for plan in proposed(plan_of(kernel, None), None, transforms())
            if not plan.steps[-1][0].startswith("ADV1")
        ]
        if plans:
            named.append((kernel.name, built_case(path, kernel, own, plans[:12])))
    found = list(run_built(str(EXAMPLES / "adi.py"), [case for _, case in named], ranks))
    wrong = [
        (name, number, one.differs)
        for (name, _), programs in zip(named, found, strict=True)
        for number, one in enumerate(programs)
        if one.differs
    ]
    assert sum(map(len, found)) > 20 and wrong == []


TABLE = """
import numpy as np
# advise: kernel N=13
# advise: v: f8[N + 2] over (block(p)) on mesh(p=3)
# advise: w: i8[N] over (none) on mesh(p=3)
def f(v, w):
    np.add.at(v, w - 1, 1.0)
    return v
"""


def test_places_that_are_computed_are_places_of_all_of_a_table() -> None:
    (kernel,) = read_kernels("f.py", TABLE)
    case = built_case("f.py", kernel, {"N": 13})
    assert "(w - 1) % (N + 2)" in case.programs[0]
    ((ran,),) = run_built("f.py", [case], 3)
    assert not ran.differs
