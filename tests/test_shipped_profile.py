"""The profile that is meant where none is named: every rule finds its prices there."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest

from advisor.engine import Options, check_source
from advisor.report.prediction import machine_as_json
from advisor.transform_registry import rules
from benchmarks.shipped_profiles import CLUSTER, cluster, written
from costdb.machines import SHIPPED, load_machine
from tests.decision_corpus import Program, frozen, programs
from tests.transforms.loops.test_scattered_sums import CASES
from tests.transforms.loops.test_scattered_sums import program as scattered
from tests.transforms.spmd_running import HEADER
from tests.transforms.test_program_shapes import START, TRIANGLE, mesh

PROFILES = Path(__file__).parents[1] / "machine_profiles"
SHOWN_ONLY = {
    "ADV503": scattered(*CASES["whole terms"][:3]),
    "ADV505": "import numpy as np\n# advise: kernel\n# advise: a: f8[900, 900]\n"
    "# advise: x: f8[900]\ndef f(a, x):\n    return 2.5 * a @ x\n",
    "ADV506": "import numpy as np\n# advise: kernel\n# advise: x: f8[90000]\n"
    "def f(x):\n    return np.exp(x) / np.exp(x).sum()\n",
    "ADV508": "import numpy as np\n# advise: kernel\n# advise: x: f8[9000]\n# advise: h: float\n"
    "def f(x, h):\n    for i in range(1, len(x)):\n        x[i] = x[i - 1] * h + x[i]\n",
    "ADV605": f"# mpirun -n 12 python program.py\n{HEADER}{START}{mesh()}",
    "ADV609": f"{HEADER}{START}{TRIANGLE}",
    "ADV610": f"{HEADER}comm, total = MPI.COMM_WORLD, 0.0\nfor step in range(100):\n"
    "    comm.Barrier()\n    total = comm.allreduce(total + 1.5, op=MPI.SUM)\n",
}
"""Programs for rules of which no frozen decision tells."""


@cache
def by_code() -> dict[str, Program]:
    """Return for each rule the shortest program in which it was found to pay on some machine."""
    # where each crossover of elimination lies is searched for some seconds
    slow = ("gauss.py", "lu.py", "lu_by_rows.py", "lu_slices.py")
    known = {one.title: one for one in programs() if not (one.choice or one.name.endswith(slow))}
    found = {code: Program(f"{code}.py", "", {"P": 4}, text) for code, text in SHOWN_ONLY.items()}
    for title in sorted(frozen().keys() & known.keys(), key=lambda key: -len(known[key].source)):
        for record in frozen()[title]:
            found |= {one["code"]: known[title] for one in record.get("findings", ())}
    return found


@pytest.mark.parametrize("code", [rule.code for rule in rules()])
def test_every_rule_finds_prices_for_what_it_speaks_of(code: str) -> None:
    program = by_code()[code]
    options = Options(SHIPPED, program.sizes, (code,), (), None, plans=False, everything=True)
    found = check_source(program.name, program.source, options)
    assert found.coverage.unpriced == ()
    assert found.coverage.analysed


def test_every_number_says_how_it_is_known() -> None:
    for name in (SHIPPED, CLUSTER):
        stated = json.loads(machine_as_json(load_machine(name)))["machine"]["quantities"]
        for one in stated:
            assert one["low"] <= one["value"] <= one["high"]
            assert len(one["source"]) > 20
        told = {one["provenance"] for one in stated}
        assert told <= {"measured", "published"} | ({"estimated"} if name == CLUSTER else set())


def test_the_cluster_is_made_of_the_node() -> None:
    node, made = (
        json.loads((PROFILES / f"{n}.json").read_text("utf-8")) for n in (SHIPPED, CLUSTER)
    )
    assert cluster(node) == made
    assert json.loads(written(made)) == made
