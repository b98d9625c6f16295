"""Every family of drawn programs, in short; ``benchmarks.many_programs`` is the long run."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from advisor.transform_registry import Installed, program_transforms, transforms
from tests.transforms.generated.families import FAMILIES, Family, check_exchanges, check_loops
from tests.transforms.generated.loop_programs import nests
from tests.transforms.generated.message_programs import IDIOMS, Exchanging, exchanging

SHOWN_ONLY = {"ADV203", "ADV301", "ADV605", "ADV606", "ADV609"}
"""Rules that write no edit, so that there is nothing to run."""

OF_FAMILIES = {
    *("ADV101", "ADV102", "ADV103", "ADV104", "ADV201", "ADV202"),
    *("ADV401", "ADV402", "ADV403", "ADV501", "ADV502", "ADV504"),
}

EXAMPLES = {
    **{"sums over windows": 15, "distributions": 5, "sweeps": 8, "triangles": 4},
}
"""Programs by family, where that is not what it is for most."""


CHOOSING = Family(
    "nests that choose",
    st.integers(2, 3).flatmap(lambda depth: nests(depth, statements=2, choices=True)),
    check_loops(("ADV501",)),
)


@pytest.mark.parametrize("family", (*FAMILIES, CHOOSING), ids=lambda family: family.name)
def test_rewrites_of_a_family_hold(family: Family) -> None:
    rewrites, examples = Counter[str](), EXAMPLES.get(family.name, 9)

    @settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(family.programs, st.integers(0, 2**32))
    def run(made: Any, seed: int) -> None:
        rewrites.update(family.check(made, seed))

    run()
    assert sum(rewrites.values()) >= examples


def test_exchanges_give_equal_results_on_two_ranks(tmp_path: Path) -> None:
    made: list[Exchanging] = []

    @settings(
        max_examples=40,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(exchanging())
    def draw(one: Exchanging) -> None:
        made.append(one)

    draw()
    assert sum(check_exchanges(tmp_path, made, ranks=2).values()) == len(made)


def test_every_rule_with_an_edit_is_run() -> None:
    """In a family of drawn programs, or in cases of its own that run what is rewritten."""
    makers = {one.code: one.rule for one in transforms() if isinstance(one, Installed)}
    known = makers.keys() | {one.code for one in program_transforms()}
    in_families = SHOWN_ONLY | OF_FAMILIES | {code for code, _, _ in IDIOMS.values()}
    assert in_families <= known
    for code in known - in_families:
        folder, _, name = makers[code].propose.__module__.removeprefix("transforms.").partition(".")
        cases = (Path(__file__).parent / folder / f"test_{name}.py").read_text("utf-8")
        runs = [("apply_edits(", "first_rewrite("), ("exec(", "function_of(")]
        assert all(any(one in cases for one in ways) for ways in runs), f"nothing runs {code}"
