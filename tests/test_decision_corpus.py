"""What the tool decides stays as it was frozen, unless a change of it is argued."""

from __future__ import annotations

import pytest

from advisor import engine
from tests.decision_corpus import (
    AGAIN,
    Program,
    all_decided,
    changes,
    decided,
    differences,
    frozen,
    machines,
    programs,
)

SHOWN = 6
"""Lines of what changed that one program gets."""


@pytest.mark.parametrize("program", programs(), ids=lambda one: one.title)
def test_decisions_are_those_that_were_frozen(program: Program) -> None:
    told = changes(frozen().get(program.title, ()), all_decided(program))
    more = [f"and {len(told) - SHOWN} more"] if len(told) > SHOWN else []
    shown = "\n".join((*told[:SHOWN], *more))
    assert not told, f"{program.title} is decided otherwise:\n{shown}\nTo freeze: {AGAIN}"


def test_every_program_is_frozen_for_every_machine_and_nothing_else_is() -> None:
    assert {*frozen()} == {one.title for one in programs()}
    for records in frozen().values():
        assert [one["machine"] for one in records] == list(machines())


def test_the_corpus_holds_gains_open_sizes_edits_and_silence() -> None:
    records = [one for records in frozen().values() for one in records]
    found = [one for record in records for one in record.get("findings", ())]
    assert len({one["code"] for one in found}) >= 15
    for what, least in {"gain": 250, "fix": 250, "pays_from": 15}.items():
        assert sum(what in one for one in found) >= least, what
    assert sum(not record.get("findings") for record in records) > 100
    by_machine = {one: sum(bool(r.get("findings")) for r in records if r["machine"] == one)
                  for one in machines()}  # fmt: skip
    assert min(by_machine[name] for name in ("t3e", "sp2", "e5000", "calibrated")) > 30, by_machine


def example() -> Program:
    return next(one for one in programs() if one.name == "examples/box_sum.py")


def test_another_threshold_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    (before,) = (one for one in frozen()[example().title] if one["machine"] == "t3e")
    assert before["findings"]
    monkeypatch.setattr(engine, "PLAIN_GAIN", 1e9)
    told = differences(before, decided(example(), "t3e"))
    assert len(told) == len(before["findings"])
    assert all(line.startswith("lost ") for line in told)


def finding(code: str, line: int, gain: float, does: str = "do this", fix: str = "safe 1") -> dict:
    return {"code": code, "line": line, "does": does, "gain": [gain, 1.0, 3.0], "fix": fix}


ONE, TWO = finding("ADV1", 3, 2.0), finding("ADV2", 5, 1.5)


@pytest.mark.parametrize(
    ("after", "told"),
    [
        ([ONE, TWO], []),
        ([{**ONE, "gain": [2.29, 0.5, None]}, TWO], []),
        ([{**ONE, "gain": [2.31, 1.0, 3.0]}, TWO], ["ADV1 line 3 gain"]),
        ([{**ONE, "gain": [1.7, 1.0, 3.0]}, TWO], ["ADV1 line 3 gain"]),
        ([TWO, ONE], ["order ADV1:3 ADV2:5 -> ADV2:5 ADV1:3"]),
        ([ONE], ["lost  ADV2 line 5 1.50x"]),
        ([ONE, {**TWO, "line": 6}], ["lost  ADV2 line 5", "new   ADV2 line 6"]),
        ([ONE, {**TWO, "does": "do that"}], ["ADV2 line 5 does: 'do this' -> 'do that'"]),
        ([ONE, {**TWO, "fix": "unsafe 1"}], ["ADV2 line 5 fix"]),
        ([ONE, TWO, TWO], ["new   ADV2 line 5"]),
    ],
)
def test_what_changed_is_told_in_a_line(after: list[dict], told: list[str]) -> None:
    found = differences({"findings": [ONE, TWO]}, {"findings": after})
    assert len(found) == len(told)
    assert all(line.startswith(start) for line, start in zip(found, told, strict=True)), found


def test_where_sizes_are_open_the_least_may_move_by_half_but_not_vanish() -> None:
    def paying(least: object) -> dict:
        return {"findings": [{"code": "A", "line": 1, "does": "", "open": ["N"],
                              "pays_from": least}]}  # fmt: skip

    assert not differences(paying(100), paying(199))
    for other in (201, 49, None, "always"):
        (told,) = differences(paying(100), paying(other))
        assert told.startswith("A line 1 pays from: 100 -> ")
    (told,) = differences({"refused": "ExprError"}, {"findings": []})
    assert told == "ExprError -> answered"
    (told,) = differences({"unknown": [[4, "x"]]}, {"findings": []})
    assert told.startswith("not understood")
