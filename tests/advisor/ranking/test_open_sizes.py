"""Sizes that nothing binds: findings say from which value they pay, and predict no time."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from advisor.engine import FileResult, Options, check_source
from advisor.frontend.kernels import read_kernels
from advisor.ir.kernel import Kernel
from advisor.ranking.compare import KEPT, Costed, compared, cost, shortlist
from advisor.ranking.joint import best_plan
from advisor.ranking.open_sizes import best_where_open
from advisor.ranking.rank import rank
from advisor.ranking.sizes import Sizes, bind_sizes
from advisor.report.model import FORMATS, Report, renderer
from advisor.report.style import Style
from advisor.transform_registry import transforms
from costdb.estimate import Priced
from costdb.expr import parse
from costdb.machines import load_machine
from costdb.work import NOTHING

EXAMPLES = Path(__file__).parents[3] / "examples"


def checked(source: str, **sizes: int) -> FileResult:
    return check_source("kernel.py", source, Options("t3e", sizes, (), (), None))


def without(name: str, *sizes: str) -> str:
    """Return an example in which nothing binds some sizes."""
    text = (EXAMPLES / f"{name}.py").read_text()
    for size in sizes:
        text = re.sub(rf"(@kernel\(.*?)\b{size}=\d+(, )?", r"\1", text)
    return text


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("N", "2000", "N >= 2101, tried to 4096"),
        ("N*ceil(N/4)", "10**6", "N >= 2049, tried to 4096"),
        ("3*N", "2*N", "every N tried, 1 to 4096"),
        ("N % 2 + N/100", "1/2", "N >= 53, and for some values below, tried to 4096"),
    ],
)
def test_sizes_far_above_the_smallest_are_found(before: str, after: str, told: str) -> None:
    class Step:
        title = "a step"

    costs = [Costed(NOTHING, Priced(parse(text))) for text in (before, after)]
    found = best_where_open(costs[0], [(Step(), costs[1])], [], Sizes({}, {}), {"N": 1024})  # type: ignore[type-var]
    assert found is not None
    assert found.condition.text == told


def test_where_nothing_pays_the_open_size_is_named() -> None:
    source = """\
# advise: kernel
# advise: a: f8[N] over (block(x)) on mesh(x=4)
def twice(a):
    a[:] = a + a
"""
    result = checked(source)
    assert not result.findings
    (remark,) = result.remarks
    assert "nothing binds N" in remark.message
    assert not checked(source, N=100).remarks


@pytest.mark.parametrize("output", FORMATS)
def test_every_format_tells_the_condition_and_no_time(output: str) -> None:
    source = without("box_sum", "b")
    result = checked(source)
    report = Report("t3e", result.findings, result.remarks, {"kernel.py": source})
    shown = renderer(output)(report, Style())
    assert "b &gt;= 3" in shown or "b >= 3" in shown or "b %3E= 3" in shown
    assert "x faster" not in shown
    if output == "json":
        found = json.loads(shown)["findings"][0]
        assert found["prediction"] is None
        assert found["condition"]["pays_from"] == 3


# Plans of several steps, and families of proposals.


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
