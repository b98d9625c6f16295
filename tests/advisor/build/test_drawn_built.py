"""Kernels that are drawn, built and run on ranks; ``benchmarks.built_kernels`` runs thousands."""

from __future__ import annotations

import pytest

from advisor.verify.running import BuiltCase
from benchmarks.built_kernels import cases, outcomes

COUNT, SEED = 40, 20_261_124
FORMS = ("fetch(", "Halo(", ".receive(", "scanned(", "reduced(", ".holds(", ".range(", ".own(")


@pytest.fixture(scope="module")
def built() -> list[tuple[object, BuiltCase]]:
    return [(one, case) for one, case in cases(SEED, COUNT) if isinstance(case, BuiltCase)]


def test_all_are_built_and_take_every_form(built: list[tuple[object, BuiltCase]]) -> None:
    assert len(built) > 0.9 * COUNT
    texts = [case.programs[0].partition("# Sizes")[2] for _, case in built]
    assert [form for form in FORMS if not any(form in text for text in texts)] == []


@pytest.mark.parametrize("ranks", [2, 3])
def test_results_are_those_of_the_plain_kernels(
    built: list[tuple[object, BuiltCase]], ranks: int
) -> None:
    found = [(one, why) for one, _, why in outcomes(built, ranks)]  # type: ignore[arg-type]
    assert len(found) == len(built)
    assert [(one, why) for one, why in found if why] == []


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("rims", "array[where] = values\n\n    def ready", "pass\n\n    def ready"),
        ("scans", "line.Exscan(total, before, op)", "pass"),
        ("fetches", "found[at(*chosen)] = values", "pass"),
    ],
)
def test_a_program_that_is_wrong_is_found_out(
    built: list[tuple[object, BuiltCase]], name: str, old: str, new: str
) -> None:
    spoilt = [
        (one, BuiltCase(case.source, case.kernel, (text,), case.arrays, case.sizes))
        for one, case in built
        if old in case.programs[0]
        for text in [case.programs[0].replace(old, new)]
    ]
    assert any(why for _, _, why in outcomes(spoilt[:12], 2)), name  # type: ignore[arg-type]
