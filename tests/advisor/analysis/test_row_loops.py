"""Loops over rows that read one row of another rank: fetched once, and done side by side."""

from __future__ import annotations

import pytest

from advisor.analysis.lower import lower
from advisor.frontend.kernels import read_kernels
from advisor.ir.kernel import Kernel
from tests.advisor.analysis.tally import Tally

HEADER = """\
import numpy as np

# advise: kernel N=24 P=3
# advise: a: f8[N, N] over (block(p), none) on mesh(p=P)
# advise: b: f8[N, N] over (block(p), none) on mesh(p=P)
# advise: c: f8[N] over (block(p)) on mesh(p=P)
def f(a, b, c, N: int):
"""
SIZES = {"N": 24, "P": 3}


def kernel_of(*lines: str) -> Kernel:
    (kernel,) = read_kernels("k.py", HEADER + "".join(f"    {line}\n" for line in lines))
    return kernel


def collectives(*lines: str) -> dict[tuple[str, int, int], int]:
    return dict(Tally(lower(kernel_of(*lines)), SIZES).collectives)


@pytest.mark.parametrize(
    ("loop", "whole"),
    [
        (
            ("for i in range(k + 1, N):", "    a[i, :] -= a[k, :]"),
            "a[k + 1:, :] -= a[k, :]",
        ),
        (
            ("for i in range(k + 1, N):", "    a[i, k + 1:] -= 2.0 * a[k, k + 1:]"),
            "a[k + 1:, k + 1:] -= 2.0 * a[k, k + 1:]",
        ),
        (("for i in range(N):", "    b[i, :] += a[k, :]"), "b[:, :] += a[k, :]"),
        (("for i in range(k):", "    a[i, :] += a[k, :]"), "a[:k, :] += a[k, :]"),
    ],
)
def test_a_row_is_fetched_as_for_all_rows_at_once(loop: tuple[str, ...], whole: str) -> None:
    around = "for k in range(1, N - 1):"
    rows = collectives(around, *(f"    {line}" for line in loop))
    at_once = collectives(around, f"    {whole}")
    assert rows == at_once
    assert rows


def test_rows_are_shared_out_where_the_pivot_lies_outside() -> None:
    """Each rank does its own rows: a third of the iterations where there are three ranks."""
    told = Tally(lower(kernel_of("for i in range(1, N):", "    a[i, :] -= a[0, :]")), SIZES)
    assert told.totals["operations"] == 8 * 24
