"""Sizes that nothing binds: findings say from which value they pay, and predict no time."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from advisor.engine import FileResult, Options, check_source
from advisor.frontend.kernels import read_kernels
from advisor.ir.kernel import Kernel
from advisor.ranking.compare import Costed, Sizes, bind_sizes, cost
from advisor.ranking.open_sizes import best_where_open
from advisor.ranking.rank import rank
from advisor.report.model import FORMATS, Report, renderer
from advisor.report.style import Style
from advisor.transform_registry import transforms
from costdb.evaluate import Priced
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


def test_no_plan_where_one_step_does_it_all() -> None:
    kernel = only_kernel(MOVING_SUM)
    rules = [t for t in transforms() if t.code == "ADV201"]
    told = rank("f.py", kernel, MACHINE, bind_sizes(kernel, {}, {}), rules)
    assert told.findings and not told.remarks


def test_what_pays_for_few_of_the_smallest_sizes_is_not_told() -> None:
    (kernel,) = read_kernels("k.py", MOVING_SUM)
    proposal = next(one for rule in transforms() for one in rule.propose(kernel))
    for name, least, ranks, told in (("N", 5, "", 0), ("N", 9, "", 1), ("P", 5, "P", 1)):
        before, after = (Costed(NOTHING, Priced(parse(text))) for text in (f"{least}", name))
        best = best_where_open(before, [(proposal, after)], [], Sizes({}, {}), {name: 64}, ranks)
        assert (best is not None) == told


def test_what_has_no_price_at_small_sizes_is_searched_from_where_it_has() -> None:
    (kernel,) = read_kernels("k.py", MOVING_SUM)
    proposal = next(one for rule in transforms() for one in rule.propose(kernel))
    steep, flat = (Costed(NOTHING, Priced(parse(text))) for text in ("100*log2(N - 4)", "10*N"))
    for before, after, pays in ((steep, flat, "N < "), (flat, steep, "N >= ")):
        best = best_where_open(before, [(proposal, after)], [], Sizes({}, {}), {"N": 64})
        assert best is not None and pays in best.condition.text


def test_what_pays_for_no_value_of_a_size_is_not_told_for_small_ones_of_another() -> None:
    (kernel,) = read_kernels("k.py", MOVING_SUM)
    proposal = next(one for rule in transforms() for one in rule.propose(kernel))
    before, after = (Costed(NOTHING, Priced(parse(text))) for text in ("100", "N + M"))
    for usual, told in (({"N": 64, "M": 200}, False), ({"N": 64, "M": 64}, True)):
        best = best_where_open(before, [(proposal, after)], [], Sizes({}, {}), usual)
        assert (best is not None) == told
