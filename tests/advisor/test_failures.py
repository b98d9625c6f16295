"""A bug of ours costs the function that it comes up with, is told, and nothing else."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from advisor import engine
from advisor.cli.app import main
from advisor.engine import Options, check_source
from advisor.frontend import kernels
from advisor.frontend.declarations import FoundKernel
from advisor.ir.kernel import Kernel

SUMS = """
import numpy as np


def {name}(n):
    x = np.ones(n)
    total = 0.0
    for i in range(n):
        total += x[i] * x[i]
    return total


{name}(1_000_000)
"""
SOURCE = SUMS.format(name="first") + SUMS.format(name="second") + SUMS.format(name="third")
OPTIONS = Options("node2026", {}, (), (), None, sparing=True)


def name_of(one: FoundKernel | Kernel) -> str:
    return one.name if isinstance(one, Kernel) else one.node.name.value


def plant(monkeypatch: pytest.MonkeyPatch, module: object, step: str, place: int) -> None:
    """Let a step fail for the second function."""
    right = getattr(module, step)

    def failing(*given, **named):
        if name_of(given[place]) == "second":
            raise ZeroDivisionError("a planted bug")
        return right(*given, **named)

    monkeypatch.setattr(module, step, failing)


@pytest.mark.parametrize(
    ("module", "step", "place"), [(kernels, "_kernel", 0), (engine, "rank_kernel", 1)]
)
def test_a_bug_costs_one_function(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    module: object,
    step: str,
    place: int,
) -> None:
    whole = check_source("a.py", SOURCE, OPTIONS)
    plant(monkeypatch, module, step, place)
    left = check_source("a.py", SOURCE, OPTIONS)
    assert {one.kernel for one in whole.findings} == {"first", "second", "third"}
    assert left.findings == tuple(one for one in whole.findings if one.kernel != "second")
    (failure,) = left.failures
    assert failure.name == "second" and "a planted bug" in failure.trace
    assert SOURCE.split("\n")[failure.line - 1].startswith("def second")
    assert "second" in left.coverage.incomplete and "second" not in left.coverage.fine
    with pytest.raises(ZeroDivisionError):
        check_source("a.py", SOURCE, replace(OPTIONS, sparing=False))

    monkeypatch.chdir(tmp_path)
    Path("a.py").write_text(SOURCE)
    for _ in range(2):  # what is not whole is not kept
        assert main(["check", "a.py", "--machine", "node2026", "--isolated"]) == 2
        told = capsys.readouterr()
        assert re.search(r"internal error in a\.py:\d+: second was left out", told.err)
        assert "in first" in told.out and "in third" in told.out and "in second" not in told.out
