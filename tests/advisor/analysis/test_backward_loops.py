"""Loops that run backwards: what they do is what the mirrored loop does that runs forwards."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.analysis.lower import lower
from advisor.analysis.processes import works
from advisor.frontend.kernels import read_kernels
from costdb.expr import Expr, evaluate
from costdb.work import Statement, Visit

SIZES = {"N": 40, "M": 9}
KERNEL = """\
import numpy as np
from numba import njit
# advise: kernel N=40 M=9
{arrays}
{decorator}def program(u, v, w):
    for i in {loop}:
{body}
"""


def visits(loop: str, body: str, order: str, decorator: str = "") -> Iterator[Visit]:
    """Yield what the calls of a kernel's loop touch."""
    arrays = "\n".join(f"# advise: {n}: f8[N, N] order={order}" for n in "uvw")
    made = "\n".join(f"        {line}" for line in body.splitlines())
    (kernel,) = read_kernels(
        "program.py", KERNEL.format(decorator=decorator, arrays=arrays, loop=loop, body=made)
    )
    for work in works(lower(kernel)):
        if isinstance(work, Statement):
            for call in work.calls or ():
                yield from call.visits


def at_40(visit: Visit) -> tuple[str, tuple[object, ...], object, object]:
    def of(expr: Expr | None) -> object:
        return None if expr is None else evaluate(expr, SIZES)

    counts = tuple(of(count) for count in visit.region.counts)
    return visit.array, counts, of(visit.distance_bytes), of(visit.advance_bytes)


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from("CF"),
    st.booleans(),
    st.integers(0, 3),
    st.integers(0, 3),
    st.sampled_from(["", "u", "v", "w"]),
)
def test_a_mirrored_loop_touches_the_same(
    order: str, rows: bool, behind: int, ahead: int, more: str
) -> None:
    def body(sign: int) -> str:
        def part(name: str, offset: int) -> str:
            at = f"i + {offset}" if offset >= 0 else f"i - {-offset}"
            return f"{name}[{at}, :]" if rows else f"{name}[:, {at}]"

        value = f"{part('u', -sign * behind)} + {part('v', sign * ahead)}"
        if more:
            value += f" * {part(more, -sign * behind)}"
        return f"{part('w', 0)} = {value}"

    forwards = f"range({behind}, 40 - {ahead})"
    backwards = f"range({39 - behind}, {ahead - 1}, -1)"
    found = [at_40(one) for one in visits(backwards, body(-1), order)]
    assert found
    assert found == [at_40(one) for one in visits(forwards, body(1), order)]
