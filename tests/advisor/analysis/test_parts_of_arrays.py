"""Where the elements of a part of an array lie: calls are priced by NumPy's own strides."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.analysis.lower import Unpriced, lower
from advisor.analysis.processes import works
from advisor.frontend.kernels import read_kernels
from costdb.expr import evaluate
from costdb.work import ArrayCall, ArrayOperation, PrefixScan, Statement

N, M = 12, 9
PARTS = (":", "2:-1", "3:7", "1::2", "4")
# how it is written, and the class of the call that goes through the part
OPERATIONS = {
    "s = {part}.sum()": ArrayOperation.REDUCE,
    "s = np.max({part})": ArrayOperation.REDUCE,
    "s = {part}.sum(axis=0)": ArrayOperation.REDUCE,
    "s = np.cumsum({part}, axis=0)": ArrayOperation.SCAN,
    "s = np.sort({part}, axis=0)": ArrayOperation.SORT,
    "s = np.roll({part}, 1, axis=0)": ArrayOperation.ROLL,
}


def calls_of(source: str) -> list[ArrayCall]:
    (kernel,) = read_kernels("program.py", source)
    process = lower(kernel)
    assert not isinstance(process, Unpriced), process
    found: list[ArrayCall] = []
    for work in works(process):
        if isinstance(work, Statement | PrefixScan):
            found += work.calls or ()
    return found


def seen(call: ArrayCall) -> list[tuple[int, int]]:
    """Return extent and pitch of each dimension of what a call reads."""
    (operand,) = call.operands
    sizes = {"n": N, "m": M}
    region = operand.region
    counted = (
        (evaluate(c, sizes), evaluate(p, sizes))
        for c, p in zip(region.counts, region.pitches_bytes, strict=True)
    )
    return [(int(count), int(pitch)) for count, pitch in counted]


@pytest.mark.parametrize("statement", OPERATIONS)
@given(rows=st.sampled_from(PARTS), columns=st.sampled_from(PARTS), order=st.sampled_from("CF"))
def test_a_part_is_gone_through_as_it_lies(
    statement: str, rows: str, columns: str, order: Any
) -> None:
    part = f"a[{rows}, {columns}]"
    array = np.ones((N, M), order=order)
    chosen = eval(part, {"a": array})  # our own text
    if np.ndim(chosen) == 0:
        return
    source = (
        "import numpy as np\n\n\n# advise: kernel n=12 m=9\n"
        f"# advise: a: f8[n, m] order={order}\n"
        f"def f(a, n: int, m: int):\n    {statement.format(part=part)}\n    return s\n"
    )
    (call,) = (one for one in calls_of(source) if one.operation is OPERATIONS[statement])
    assert seen(call) == list(zip(chosen.shape, chosen.strides, strict=True))
