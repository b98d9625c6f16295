"""Where a suggestion pays: crossovers in words, which say what would be reported there."""

from __future__ import annotations

from pathlib import Path

from advisor.engine import Options, check_source
from advisor.finding import REPORTED_FROM
from advisor.ranking.compare import time_s
from advisor.transform_registry import transforms
from costdb.choosing import crossover
from costdb.records import replace
from tests.advisor.ranking.priced_kernels import BOX, HALO, kernel_of, priced


def test_what_is_said_of_a_size_is_what_would_be_reported_there() -> None:
    """At every value tried, and between them, of kernels with every size and rule."""
    looked_at = 0
    for source, sizes in (
        (BOX, {"N": 1000, "b": 4}),
        (
            HALO.format(
                dtype="f8", dims="block(x), none", order="C", region="2:, :", shifted=":-2, :"
            ),
            {"N": 100, "M": 50, "T": 3, "w": 20},
        ),
    ):
        kernel = kernel_of(source)
        before = priced(kernel)
        variants = [one.variant for rule in transforms() for one in rule.propose(kernel)]
        for variant in variants[:4]:
            after = priced(variant)
            for variable in sorted(before.sizes | after.sizes):
                prices, least = (before.priced, after.priced), REPORTED_FROM
                found = crossover(*prices, variable, sizes, 1, 600, least)
                for value in range(1, 601, 7):
                    point = {**sizes, variable: value}
                    gain = time_s(before, point) / time_s(after, point)
                    if abs(gain - REPORTED_FROM) > 1e-6:
                        looked_at += 1
                        assert found.holds(value) == (gain > REPORTED_FROM), (variable, value)
    assert looked_at > 1000


def test_a_finding_never_contradicts_itself() -> None:
    """What it says of each size holds at the size that it is predicted for."""
    examples = sorted((Path(__file__).parents[3] / "examples").glob("*.py"))
    told = 0
    for path in examples:
        if path.stem == "gauss":
            continue  # where each of its crossovers lies is searched for some seconds
        result = check_source(str(path), path.read_text(), Options("e5000", {}, (), (), None))
        for finding in result.findings:
            bound = {one.name: one.value for one in finding.assumptions}
            for one in finding.crossovers:
                if finding.prediction is None or not isinstance(bound[one.variable], int):
                    continue
                told += 1
                value = int(bound[one.variable])
                flips = sum(flip <= value for flip in one.values)
                ends = "or N >=" in one.pays or ">=" in one.pays
                # it pays here, so an even number of changes is above where it pays in the end
                above = len(one.values) - flips
                assert (above % 2 == 0) == ends, (path.name, finding.code, one)
    assert told > 3


FROM_SOME_ON = '''"""Run: mpiexec -n 2 python f.py"""
import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
{asked}flag = 0.0
for step in range(100):
    parts = comm.gather(np.float64(step), root=0)
    total = max(parts) if comm.rank == 0 else None
    flag += comm.bcast(total, root=0)
'''


def test_ranks_of_a_command_line_are_for_trying_only() -> None:
    """What does not pay for them is searched, unless the program or the user asks for them."""
    options = Options("node2026", {}, ("ADV604",), (), None)
    (found,) = check_source("f.py", FROM_SOME_ON.format(asked=""), options).findings
    assert found.condition is not None and (found.condition.pays_from or 0) > 2
    asked = FROM_SOME_ON.format(asked="assert comm.size == 2\n")
    given = Options("node2026", {"P": 2}, ("ADV604",), (), None)
    assert not check_source("f.py", asked, options).findings
    assert not check_source("f.py", FROM_SOME_ON.format(asked=""), given).findings


ROWS = """\
import numpy as np


def rows(x, n):
    out = np.zeros((n, len(x)))
    for i in range(n):
        out[i] = x * i
        out[i, 0] = 1
    return out
"""


def test_what_pays_for_short_rows_only_is_told_where_they_are_known_to_be_short() -> None:
    options = Options("node2026", {}, (), (), None)
    assert not check_source("a.py", ROWS, options).findings
    assert check_source("a.py", ROWS, replace(options, everything=True)).findings
    called = f"{ROWS}\n\nfor k in range(100):\n    rows(np.zeros(50), 400)\n"
    (found,) = check_source("a.py", called, options).findings
    assert found.code == "ADV504"
