"""ADV402 and ADV403: arrays fetched whole and private counts give what single references gave."""

from __future__ import annotations

from collections import Counter

import pytest

from advisor.analysis.lower import lower
from advisor.analysis.processes import works
from advisor.edits import apply_edits
from advisor.engine import Options, check_source
from advisor.finding import Applicability
from costdb.expr import evaluate
from costdb.work import Collective, CollectiveKind, RemoteElements
from tests.transforms.generated.gather_programs import (
    placed,
    run,
)
from transforms.loops.fetched_whole import TRANSFORM as FETCHED_WHOLE
from transforms.loops.private_counts import TRANSFORM as PRIVATE_COUNTS


def test_what_is_written() -> None:
    made = placed(["for i in range(N):", "    y[i] = t[k[i]]"])
    first = next(iter(FETCHED_WHOLE.propose(made.kernel)))
    assert apply_edits(made.source, first.edits()).splitlines()[-4:] == [
        "    # advise: t_all: int64[M] over (none) on mesh(p=4)",
        "    t_all = t.copy()",
        "    for i in range(N):",
        "        y[i] = t_all[k[i]]",
    ]
    counted = placed(["for i in range(1, N):", "    h[k[i]] += 1"])
    (only,) = PRIVATE_COUNTS.propose(counted.kernel)
    assert apply_edits(counted.source, only.edits()).splitlines()[-1] == (
        "    h += np.bincount(k[1:], minlength=h.shape[0])"
    )
    assert only.legality.applicability is Applicability.UNSAFE


QUIET = {
    "an array that the loop changes": [
        "for i in range(N):",
        "    t[k[i]] = y[i]",
        "    y[i] = t[k[i]]",
    ],
    "an array that is its own place": ["for i in range(N):", "    k[k[i]] += 1"],
    "increments by elements": ["for i in range(N):", "    h[k[i]] += z[i]"],
    "increments by two": ["np.add.at(h, k, 2)"],
    "counts that are looked at": [
        "for i in range(N):",
        "    h[k[i]] += 1",
        "    y[i] = h[k[i]]",
    ],
    "products": ["for i in range(N):", "    h[k[i]] *= 2"],
    "the last one stays": ["for i in range(N):", "    h[k[i]] = 1"],
}


@pytest.mark.parametrize("body", QUIET.values(), ids=QUIET.keys())
def test_quiet_where_results_may_differ(body: list[str]) -> None:
    kernel = placed(body).kernel
    assert not [p.title for rule in (PRIVATE_COUNTS,) for p in rule.propose(kernel)]
    made = placed(body)
    for proposal in FETCHED_WHOLE.propose(kernel):
        # before each of them, where the loop changes what it reads
        source = apply_edits(made.source, proposal.edits())
        assert run(source, 20, 5, 1) == run(made.source, 20, 5, 1), source


def test_tables_that_every_rank_holds_are_left_alone() -> None:
    made = placed(["y[:] = t[k]"], dim="none")
    assert not list(FETCHED_WHOLE.propose(made.kernel))


@pytest.mark.parametrize("dim", ["block(p)", "cyclic(p)"])
def test_references_by_element_are_counted_as_those_of_whole_arrays(dim: str) -> None:
    """A loop of gathers, or of increments, refers to as many elements as one statement."""
    pairs = [
        (["y[:] = t[k]"], ["for i in range(N):", "    y[i] = t[k[i]]"]),
        (["np.add.at(h, k, 1)"], ["for i in range(N):", "    h[k[i]] += 1"]),
    ]
    for whole, loop in pairs:
        tallies = []
        for body in (whole, loop):
            tally: Counter[bool] = Counter()
            for work in works(lower(placed(body, dim=dim).kernel)):
                if isinstance(work, RemoteElements):
                    assert work.mixed
                    tally[work.store] += int(evaluate(work.count, {"N": 40, "M": 9}))
            tallies.append(tally)
        assert tallies[0] == tallies[1]
        assert tallies[0][False] == 10


def test_private_counts_end_in_one_reduction() -> None:
    kernel = placed(["h += np.bincount(k, minlength=M)"]).kernel
    (found,) = [w for w in works(lower(kernel)) if isinstance(w, Collective)]
    assert found.kind is CollectiveKind.ALLREDUCE
    assert [evaluate(c, {"M": 9}) for c in found.region.counts] == [9]


@pytest.mark.parametrize("machine", ["t3e", "sp2"])
def test_a_histogram_is_told_of(machine: str) -> None:
    source = placed(["np.add.at(h, k, 1)"]).source.replace("N=40 M=9", "N=1000000 M=4096")
    found = check_source("f.py", source, Options(machine, {}, (), (), 1.0, everything=True))
    assert "ADV403" in {finding.code for finding in found.findings}
