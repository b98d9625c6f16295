"""Sizes that nothing binds: findings say from which value they pay, and predict no time."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from advisor.engine import FileResult, Options, check_source
from advisor.finding import Applicability, Finding
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


def only(result: FileResult, code: str) -> Finding:
    (found,) = [finding for finding in result.findings if finding.code == code]
    return found


def gain(source: str, code: str, **sizes: int) -> bool:
    """Return whether a rule's proposal of the open kernel is a finding at given sizes."""
    return any(finding.code == code for finding in checked(source, **sizes).findings)


def test_a_finding_says_from_which_value_it_pays() -> None:
    source = without("box_sum", "b")
    found = only(checked(source), "ADV201")
    assert found.prediction is None
    assert found.condition is not None
    assert found.condition.open_sizes == ("b",)
    assert found.condition.pays_from == 3, "as published"
    assert found.message.startswith("pays on t3e for b >= 3, tried to 4096: ")
    # the value is where findings begin when it is given
    assert not gain(source, "ADV201", b=2)
    assert gain(source, "ADV201", b=3)
    assert {a.name: a.value for a in found.assumptions} == {"N": 1000}
    (crossover,) = found.crossovers
    assert crossover.values == (3,)


def test_loops_over_shrinking_regions_are_searched_as_well() -> None:
    found = only(checked(without("gauss", "N")), "ADV102")
    assert found.condition is not None
    least = found.condition.pays_from
    assert least is not None and 113 < least < 250
    bound = only(checked(without("gauss")), "ADV102")
    assert [c.pays for c in bound.crossovers if c.variable == "N"] == [
        f"N >= {least}, tried to 4096"
    ]


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


def test_several_open_sizes_say_what_the_others_were_taken_for() -> None:
    found = only(checked(without("box_sum", "N", "b")), "ADV201")
    assert found.condition is not None
    assert found.condition.open_sizes == ("N", "b")
    assert found.condition.pays_from is None
    assert "b >= 3, tried to 4096 (at N = 1024)" in found.condition.text
    assert {(a.name, a.value) for a in found.assumptions} == {("N", 1024), ("b", 4)}
    assert all(a.origin.startswith("not bound") for a in found.assumptions)


def test_what_does_not_pay_for_all_sizes_is_not_applied() -> None:
    found = only(checked(without("box_sum", "b")), "ADV201")
    assert found.fix is not None
    assert found.fix.applicability is Applicability.DISPLAY
    bound = only(checked(without("box_sum")), "ADV201")
    assert bound.fix is not None
    assert bound.fix.applicability is Applicability.SAFE


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
