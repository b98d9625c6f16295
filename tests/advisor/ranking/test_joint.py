"""Plans of several steps, and families of proposals."""

from __future__ import annotations

from pathlib import Path

from advisor.frontend.kernels import read_kernels
from advisor.ir.kernel import Kernel
from advisor.ranking.compare import KEPT, Costed, compared, cost, shortlist
from advisor.ranking.joint import best_plan
from advisor.ranking.rank import rank
from advisor.ranking.sizes import bind_sizes
from advisor.transform_registry import transforms
from costdb.machines import load_machine

EXAMPLES = Path(__file__).parents[3] / "examples"
MOVING_SUM = """\
from typing import Annotated
import numpy as np
from numpy.typing import NDArray
from advisor import Block, Dist, Mesh, kernel

mesh = Mesh(rank=16)


@kernel(N=1000, b=6)
def f(image: Annotated[NDArray[np.int32], Dist("N", "N", None, Block("rank"), on=mesh)], b: int):
    total = image.copy()
    moved = image.copy()
    for _ in range(b - 1):
        moved[:, 1:] = moved[:, :-1]
        moved[:, 0] = 0
        total += moved
    return total
"""

STENCIL = """\
from typing import Annotated
import numpy as np
from numpy.typing import NDArray
from advisor import Block, Dist, Mesh, kernel

mesh = Mesh(row=1, col=4096)


@kernel(N=8192)
def g(u: Annotated[NDArray[np.float64], Dist("N", "N", Block("row"), Block("col"), on=mesh)]):
    v = u.copy()
    v[1:-1, 1:-1] = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
    return v
"""

MACHINE = load_machine("sp2")


def only_kernel(source: str) -> Kernel:
    (kernel,) = read_kernels("f.py", source)
    return kernel


def costed(kernel: Kernel) -> Costed:
    found = cost(kernel, MACHINE)
    assert isinstance(found, Costed)
    return found


def test_a_plan_beats_every_single_step_and_is_told() -> None:
    kernel = only_kernel(MOVING_SUM)
    rules = [t for t in transforms() if t.code in ("ADV101", "ADV201")]
    ranked = rank("f.py", kernel, MACHINE, bind_sizes(kernel, {}, {}), rules)
    singles = [finding.prediction.speedup for finding in ranked.findings]
    assert len(singles) == 2
    plan = best_plan(kernel, costed(kernel), MACHINE, bind_sizes(kernel, {}, {}), rules)
    assert plan is not None
    assert plan.compared.ratio.mid > max(singles)
    (remark,) = ranked.remarks
    assert str(plan) in remark.message


def test_no_plan_where_one_step_does_it_all() -> None:
    kernel = only_kernel(MOVING_SUM)
    rules = [t for t in transforms() if t.code == "ADV201"]
    sizes = bind_sizes(kernel, {}, {})
    assert best_plan(kernel, costed(kernel), MACHINE, sizes, rules) is None


def test_a_family_keeps_its_fastest_member() -> None:
    kernel = only_kernel(STENCIL)
    (rule,) = (t for t in transforms() if t.code == "ADV103")
    sizes = bind_sizes(kernel, {}, {})
    before = costed(kernel)
    everything = list(rule.propose(kernel))
    assert len(everything) == 12
    kept = shortlist(rule.propose(kernel), MACHINE, sizes.values)
    assert len(kept) == KEPT
    times = {
        p.title: compared(before, costed(p.variant), sizes.values).after.mid for p in everything
    }
    assert min(times, key=lambda title: times[title]) in {p.title for p in kept}
