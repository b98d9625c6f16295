"""Choices: every allowed binding once, fastest first, and nothing else."""

import pytest

from costdb.choosing import Choice
from costdb.estimate import Missing
from costdb.expr import parse
from costdb.machines import machine_of
from costdb.phases.application import ApplicationError
from tests.costdb.phases.choices import parse_application, rank_choices

TEXT = """
schema_version = 1
name = "grid"
title = "A grid"
source = "made up"
[parameters.method]
words = ["fast", "slow"]
[parameters.side]
words = ["left", "right"]
default = "left"
[parameters.N]
minimum = 1
[parameters.X]
minimum = 1
maximum = "N"
power_of_two = true
[parameters.Y]
minimum = 1
maximum = "N/2"
[[constraints]]
require = "X != 3*Y"
because = "odd"
[[phases]]
name = "rows"
unit = "flop"
count = "ceil(N/X)*3"
rate = "r"
[[phases]]
name = "columns"
when = { method = ["slow"] }
unit = "flop"
count = "ceil(N/Y)**2"
rate = "r"
[[messages]]
name = "edges"
count = "X + Y"
bytes = "N"
[rates.r]
value = 2
unit = "MFlop/s"
provenance = "measured"
source = "a stopwatch"
"""
APPLICATION = parse_application(TEXT.encode(), "grid.toml")
COST = {"value": 2, "unit": "us", "provenance": "measured", "source": "s"}
HEAD = {"schema_version": 1, "name": "m", "title": "M", "library": "l", "sources": {"s": "x"}}
MACHINE = machine_of(
    {**HEAD, "phases": {"alpha_us": COST, "beta_us_per_byte": {**COST, "unit": "us/byte"}}},
    "m.json",
)


def rank(over: list[str], fixed: dict[str, str | int], where: str = "") -> tuple[Choice, ...]:
    ranked = rank_choices(APPLICATION, MACHINE, over, fixed, parse(where) if where else None)
    assert not isinstance(ranked, Missing)
    return ranked


@pytest.mark.parametrize(
    ("over", "fixed", "where", "problem"),
    [
        ([], {}, "", "name the parameters to choose over"),
        (["Z"], {}, "", "there is no parameter Z"),
        (["X"], {"X": 2}, "", "X is fixed, so not to be chosen"),
        (["N"], {"method": "fast"}, "", "/parameters/N: a number to choose over needs a maximum"),
        (["X"], {"method": "fast"}, "", "/parameters/X: a number to choose over needs a maximum"),
        (["X"], {"method": "fast", "N": 8, "Y": 1}, "method == 1", "condition: method is not"),
        (["X"], {"method": "fast", "N": 8, "Y": 1}, "X == 3", "no choice of X meets"),
        (["X"], {"method": "fast", "N": 8, "Y": 1}, "1/(X - 1)", "condition: division by zero"),
        (["X"], {"method": "fast", "N": 8, "Y": 9}, "", "Y = 9 must be at most 4"),
        (["X"], {"method": "fast", "N": 8}, "", "Y is not bound"),
        (["X"], {"N": 8, "Y": 1}, "", "method is not chosen"),
        (["Y"], {"method": "fast", "N": 10**6, "X": 1}, "Y == 0", "more than 100000 combinations"),
    ],
)
def test_a_wrong_question_is_refused_in_one_line(
    over: list[str], fixed: dict[str, str | int], where: str, problem: str
) -> None:
    with pytest.raises(ApplicationError) as refusal:
        rank(over, fixed, where)
    assert problem in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_machine_without_message_costs_cannot_rank() -> None:
    mute = machine_of({**HEAD, "phases": {}}, "m.json")
    missing = rank_choices(APPLICATION, mute, ["X"], {"method": "fast", "N": 8, "Y": 1})
    assert isinstance(missing, Missing)
    assert "alpha_us" in missing.what
