"""SPMD programs that are drawn to try the ranking: rewritten, and told apart as they should be."""

from __future__ import annotations

import pytest

from benchmarks.unseen_exchanges import Trial, judged, trials
from costdb.machines import load_machine
from tests.transforms.generated.message_programs import IDIOMS


def test_programs_of_every_idiom_are_drawn_and_rewritten() -> None:
    machine = load_machine("t3e")
    made = list(trials(3, 1, machine, 2))
    assert [one.made.idiom for one in made] == sorted(IDIOMS)
    for one in made:
        assert one.after != one.made.source
        compile(one.after, "after.py", "exec")
        compile(one.without, "without.py", "exec")
        assert one.made.source.startswith(one.without.rpartition("\n    return")[0])
    assert made == list(trials(3, 1, machine, 2))
    assert made != list(trials(4, 1, machine, 2))


@pytest.mark.parametrize(
    ("before", "after", "predicted", "ranked"),
    [
        (2.0, 1.0, (2.0, 1.0, 1.5, 2.5), "right"),
        (2.0, 1.0, None, "UNTOLD"),
        (1.0, 2.0, None, "right"),
        (1.0, 2.0, (2.0, 1.0, 1.5, 2.5), "WRONG"),
        (1.0, 1.05, (2.0, 1.0, 1.5, 2.5), "not apart"),
    ],
)
def test_gains_are_right_wrong_or_untold(
    before: float, after: float, predicted: tuple[float, float, float, float] | None, ranked: str
) -> None:
    (first, *_) = trials(3, 1, load_machine("t3e"), 2)
    one = Trial(first.made, 9, 9, "", "", predicted)
    found, (ratio, *_) = judged(one, [[before] * 4, [after] * 4, [0.5] * 4])
    assert found == ranked
    assert ratio == f"{(before - 0.5) / (after - 0.5):.2f}"
