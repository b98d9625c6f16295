"""ADV402 and ADV403: arrays fetched whole and private counts give what single references gave."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from advisor.engine import Options, check_source
from advisor.source import apply_edits
from tests.transforms.generated.gather_programs import (
    placed,
    run,
)
from transforms.loops.fetched_whole import TRANSFORM as FETCHED_WHOLE
from transforms.loops.private_counts import TRANSFORM as PRIVATE_COUNTS

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


IMAGE = """\
import numpy as np


# advise: kernel N=300 K=200 M=256
# advise: image: u1[N, K]
# advise: hist: i8[M]
def counted(image, hist):
    for i in range(len(image)):
        for j in range(image.shape[1]):
            hist[image[i, j]] += 1
    return hist
"""


def test_counts_of_all_elements_of_an_image_are_one_call() -> None:
    (finding,) = check_source("f.py", IMAGE, Options("node2026", {}, (), (), None)).findings
    after = apply_edits(IMAGE, finding.fix.edits)
    assert "hist += np.bincount(image.ravel(), minlength=hist.shape[0])" in after
    image = np.random.default_rng(3).integers(0, 256, (30, 17), dtype=np.uint8)
    counts = []
    for source in (IMAGE, after):
        space: dict[str, Any] = {}
        exec(source, space)
        counts.append(space["counted"](image, np.arange(256)))
    np.testing.assert_array_equal(*counts)
