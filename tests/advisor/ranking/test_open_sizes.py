"""Sizes that nothing binds: findings say from which value they pay, and predict no time."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from advisor.engine import FileResult, Options, check_source
from advisor.ranking.compare import Costed
from advisor.ranking.open_sizes import best_where_open
from advisor.ranking.sizes import Sizes
from advisor.report.model import FORMATS, Report, renderer
from advisor.report.style import Style
from costdb.estimate import Priced
from costdb.expr import parse
from costdb.process.terms import NOTHING

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
