"""The page on the SMP model shows what its example prints, and the figures that the code gives."""

import runpy
from pathlib import Path

import pytest

from costdb.expr import evaluate, num
from costdb.machines import load_machine
from costdb.smp.functions import Family, SuperstepInterval, superstep_interval

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "models" / "smp.md").read_text()


def test_the_table_is_what_the_example_prints(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(ROOT / "examples" / "models" / "sorts.py"))["main"]()
    printed = capsys.readouterr().out
    assert printed.count("\n") > 30
    assert f"```\n{printed}```" in PAGE


@pytest.mark.parametrize(
    ("family", "processors", "hr", "hw", "shown"),
    [
        (Family.HRHWM, 2, 0, 524_288, "4526"),
        (Family.HRHWM, 2, 0, 524_289, "3278"),
        (Family.HRHW, 8, 524_289, 0, "-4210"),
        (Family.HRHW, 8, 0, 524_289, "-8719"),
    ],
)
def test_the_oddities_have_the_figures_shown(
    family: Family, processors: int, hr: int, hw: int, shown: str
) -> None:
    found = superstep_interval(
        family, num(hr), num(hw), num(hr + hw), num(processors), load_machine("powerchallenge")
    )
    assert isinstance(found, SuperstepInterval)
    values = {name: quantity.value for name, quantity in found.coefficients.items()}
    assert f"{float(evaluate(found.good, values)):.0f}" == shown
    assert shown in PAGE
