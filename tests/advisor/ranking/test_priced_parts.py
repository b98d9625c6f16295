"""Prices are told in parts where somebody looks at them: what is said stays the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.analysis.lower import Unpriced
from advisor.frontend.kernels import read_kernels
from advisor.ir.kernel import Kernel
from advisor.ranking import compare
from advisor.ranking.compare import Costed, cost, in_parts
from advisor.ranking.rank import Ranked, rank
from advisor.ranking.sizes import bind_sizes
from advisor.transform_registry import transforms
from costdb.estimate import Priced
from costdb.expr import ExprError
from costdb.machines import Machine, load_machine
from costdb.pricing import with_parts
from costdb.process.terms import Process

EXAMPLES = Path(__file__).parents[3] / "examples"
MACHINE = load_machine("t3e")


def kernels() -> list[Kernel]:
    found = []
    for name in ("gauss", "adi", "box_sum"):
        found += read_kernels(name, (EXAMPLES / f"{name}.py").read_text())
    return found


def ranked(kernel: Kernel) -> Ranked:
    sizes = bind_sizes(kernel, {})
    return rank("x.py", kernel, MACHINE, sizes, transforms(), details=False, plans=True)


@pytest.fixture(autouse=True)
def nothing_remembered() -> None:
    compare._costs.clear()
    compare._compared.clear()


def test_parts_are_made_of_the_first_of_each_rule_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Process] = []

    def counted(priced: Priced, process: Process, machine: Machine, closed: bool) -> Priced:
        asked.append(process)
        return with_parts(priced, process, machine, closed)

    monkeypatch.setattr(compare, "with_parts", counted)
    kernel = kernels()[1]
    found = ranked(kernel)
    variants = sum(1 for rule in transforms() for _ in rule.propose(kernel))
    assert found.findings
    assert len(asked) == len(set(map(id, asked)))
    assert 2 <= len(asked) < variants / 2


def test_a_variant_without_parts_is_no_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = next(one for one in kernels() if one.name == "eliminate")
    best = ranked(kernel).findings[0]
    compare._costs.clear()
    refused: list[Process] = []

    def failing(priced: Priced, process: Process, machine: Machine, closed: bool) -> Priced:
        # the first is the kernel as written, the second the best variant of a rule
        made = with_parts(priced, process, machine, closed)
        estimate = compare.evaluate_price(made, bind_sizes(kernel, {}).values).mid
        if best.prediction is not None and abs(estimate - best.prediction.after_s) < 1e-9:
            refused.append(process)
            raise ExprError("division by zero")
        return made

    monkeypatch.setattr(compare, "with_parts", failing)
    found = ranked(kernel)
    assert refused
    assert best.message not in [one.message for one in found.findings]
    told = [one for one in found.findings if one.code == best.code]
    assert told
    reasons = [one.reason for one in told[0].alternatives if one.time_s is None]
    assert any("division by zero" in reason for reason in reasons)


def test_whoever_asks_for_parts_hears_that_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(priced: Priced, process: Process, machine: Machine, closed: bool) -> Priced:
        raise ExprError("division by zero")

    monkeypatch.setattr(compare, "with_parts", failing)
    kernel = kernels()[0]
    later = cost(kernel, MACHINE, closed=False, parts=False)
    assert isinstance(later, Costed)
    with pytest.raises(Unpriced, match="division by zero"):
        in_parts(later)
    with pytest.raises(Unpriced, match="division by zero"):
        cost(kernel, MACHINE, closed=False)
    (remark,) = ranked(kernel).remarks
    assert "division by zero" in remark.message
