"""ADV505: products are scaled in the place of their matrices, where that rounds no other type."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from transforms.loops.scaled_products import TRANSFORM

from advisor.finding import Applicability
from advisor.source import apply_edits
from tests.transforms.checks import only_kernel

HEAD = """\
import numpy as np

# advise: kernel
# advise: a: {t}[M, N]
# advise: x: f8[N]
# advise: y: {t}[M]
# advise: alpha: {number}
def f(a, x, y, alpha):
    {line}
"""
MOVED = [
    ("return alpha * a @ x", "return alpha * (a @ x)"),
    ("return a * alpha @ x", "return a @ x * alpha"),
    ("return a / alpha @ x", "return a @ x / alpha"),
    ("y[:] = y @ (2.5 * a) @ x - x[0]", None),
    ("y += (2.5 * a) @ x", "y += 2.5 * (a @ x)"),
    ("return y @ (alpha * a)", "return alpha * (y @ a)"),
    ("return np.sqrt(-a @ x * a @ x)", None),
    ("return alpha / a @ x", None),
    ("return alpha * x @ a.T", None),
    ("return y[:, None] * a @ x", None),
]


@pytest.mark.parametrize(("line", "wanted"), MOVED)
def test_numbers_are_moved_out_of_products(line: str, wanted: str | None) -> None:
    source = HEAD.format(t="f8", number="float", line=line)
    found = [one for one in TRANSFORM.propose(only_kernel(source)) if one.edits()]
    if wanted is None:
        assert not found
        return
    (proposal,) = found
    assert proposal.legality.applicability is Applicability.UNSAFE
    after = apply_edits(source, proposal.edits())
    assert after == source.replace(line, wanted)
    generator = np.random.default_rng(1)
    for rows, columns in ((4, 3), (0, 3), (3, 0)):
        a, x = generator.standard_normal((rows, columns)), generator.standard_normal(columns)
        results = []
        for text in (source, after):
            y, names = np.ones(rows), dict[str, Any]()
            exec(compile(text, "program.py", "exec"), names)
            returned = names["f"](a.copy(), x.copy(), y, 1.25)
            results.append((y, y if returned is None else returned))
        for one, other in zip(*results, strict=True):
            np.testing.assert_allclose(one, other, 1e-12, 1e-12)


@pytest.mark.parametrize(("dtype", "number"), [("i8", "int"), ("f4", "f8")])
def test_whole_numbers_and_wider_ones_stay(dtype: str, number: str) -> None:
    source = HEAD.format(t=dtype, number=number, line="return alpha * a @ x")
    assert not [one for one in TRANSFORM.propose(only_kernel(source)) if one.edits()]
