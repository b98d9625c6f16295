"""Single elements at places that are computed, as written and in the rewrites that are proposed."""

from __future__ import annotations

import pytest

from advisor.analysis.lower import lower
from advisor.frontend.kernels import read_kernels
from transforms.loops.raised import TRANSFORM as OF_ARRAYS
from transforms.loops.vectorise import TRANSFORM as OF_ELEMENTS

HEAD = """\
import math
import numpy as np


# advise: kernel
# advise: data: f8[M, N]
# advise: offsets: f8[M]
# advise: table: f8[N]
def f(data, offsets, table, v: float):
    ntr, nt = data.shape
    out = np.zeros(nt)
"""
BODIES = {
    "a moved trace": """\
    for k in range(ntr):
        for it in range(nt):
            j = int(math.sqrt(it * it + (offsets[k] / v) ** 2))
            if j + 1 < nt:
                out[it] += data[k, j] + data[k, j + 1]
""",
    "an element of a vector": """\
    for it in range(nt):
        j = int(offsets[0] / v)
        out[it] = table[j] + data[0, it]
""",
    "an element at a number of another loop": """\
    for k in range(ntr):
        j = int(offsets[k])
        for it in range(nt):
            out[it] += table[j] * data[k, it]
""",
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_what_is_written_and_what_is_proposed_can_be_priced(body: str) -> None:
    (kernel,) = read_kernels("f.py", HEAD + body + "    return out\n")
    assert lower(kernel).parts
    for rule in (OF_ELEMENTS, OF_ARRAYS):
        for proposal in rule.propose(kernel):
            assert lower(proposal.variant).parts
