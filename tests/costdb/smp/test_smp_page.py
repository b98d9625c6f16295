"""The page on the SMP model says what its example prints, and shows figures that the code gives."""

import runpy
from pathlib import Path

import pytest

from costdb.expr import evaluate, num
from costdb.machines import load_machine
from costdb.smp import SuperstepInterval, superstep_interval

ROOT = Path(__file__).parents[3]
ORDER = ("sample", "column", "radix")
PAGE = (ROOT / "docs" / "models.md").read_text()


def test_the_example_ranks_the_sorts_as_the_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(ROOT / "examples" / "models" / "sorts.py"))["main"]()
    printed = capsys.readouterr().out
    rows = [line.split() for line in printed.splitlines()[1:]]
    assert len(rows) == 36
    for n in {row[1] for row in rows}:
        # at both ends sample sort comes before column sort, and that before radix sort
        for end in (3, 4):
            least = {s: min(float(r[end]) for r in rows if r[:2] == [s, n]) for s in ORDER}
            assert sorted(least, key=least.__getitem__) == list(ORDER)


@pytest.mark.parametrize(("hw", "shown"), [(524_288, "4526"), (524_289, "3278")])
def test_the_oddity_has_the_figures_shown(hw: int, shown: str) -> None:
    found = superstep_interval(num(0), num(hw), num(hw), num(2), load_machine("powerchallenge"))
    assert isinstance(found, SuperstepInterval)
    values = {name: quantity.value for name, quantity in found.coefficients.items()}
    assert f"{float(evaluate(found.good, values)):.0f}" == shown
    assert shown in PAGE
