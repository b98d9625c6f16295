"""What ranks compute by themselves: the class of a product, and whom they share memory with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass

import pytest
from reading import program

from advisor.analysis.spmd.lower import lower_steps
from advisor.ir.spmd.program import RANKS
from costdb.expr import Expr, evaluate, num, sym
from costdb.work import ArrayOperation, Statement


def statements(part: object) -> Iterator[Statement]:
    """Yield the statements of a process."""
    if isinstance(part, Statement):
        yield part
    elif isinstance(part, tuple):
        for one in part:
            yield from statements(one)
    elif is_dataclass(part) and not isinstance(part, (Expr, type)):
        for field in fields(part):
            yield from statements(getattr(part, field.name))


def work(text: str) -> list[Statement]:
    (function,) = program(text).functions
    return list(statements(lower_steps(function.body).process))


@pytest.mark.parametrize(
    ("product", "operation", "elements", "length"),
    [
        ("a @ x", ArrayOperation.MATVEC, 30 * 50, 50),
        ("y @ a", ArrayOperation.MATVEC, 30 * 50, 30),
        ("x @ x", ArrayOperation.MATVEC, 50, 50),
        ("np.dot(x, x)", ArrayOperation.MATVEC, 50, 50),
        ("a @ a.T", ArrayOperation.MATMUL, 30 * 30, 50),
        ("a @ b", ArrayOperation.MATMUL, 30 * 20, 50),
    ],
)
def test_a_product_with_a_vector_uses_every_element_of_the_matrix_once(
    product: str, operation: ArrayOperation, elements: int, length: int
) -> None:
    made = work(
        "a, b, x, y = np.ones((30, 50)), np.ones((50, 20)), np.ones(50), np.ones(30)\n"
        f"c = {product}\n"
        "comm.Barrier()\n"
    )
    (call,) = (
        call
        for statement in made
        for call in statement.calls
        if call.operation in (ArrayOperation.MATMUL, ArrayOperation.MATVEC)
    )
    assert call.operation is operation
    assert call.length is not None
    assert (evaluate(call.elements, {}), evaluate(call.length, {})) == (elements, length)


def test_ranks_compute_at_the_same_time_but_in_a_chain() -> None:
    made = work("x = np.ones(50)\nx += 1.0\ncomm.Allreduce(x.copy(), x)\n")
    assert made
    assert {statement.together for statement in made} == {sym(RANKS)}
    chain = work(
        "x = np.ones(50)\n"
        "if rank > 0:\n"
        "    comm.Recv(x, source=rank - 1)\n"
        "x += 1.0\n"
        "if rank < size - 1:\n"
        "    comm.Send(x, dest=rank + 1)\n"
    )
    added = {s.together for s in chain for call in s.calls if call.operation != "fill"}
    assert num(1) in added


@pytest.mark.parametrize(
    ("statement", "views"),
    [
        ("w = u[1:-1] * u[2:]", 2),
        ("u[1] = u[2]", 2),
        ("u[3:] += 1.0", 1),
        ("w = v * 2.0", 0),
        ("w = u * u", 0),
    ],
)
def test_views_cost_where_they_are_written_out(statement: str, views: int) -> None:
    made = work(f"u = np.ones((90, 90))\nv = u[1:-1]\n{statement}\ncomm.Barrier()\n")
    calls = [call.operation for each in made for call in each.calls]
    assert calls.count(ArrayOperation.VIEW) == views


def test_what_is_replaced_is_sent_from_a_copy() -> None:
    text = "x, y = np.ones(90), np.ones(90)\ncomm.{}, dest=rank ^ 1, source=rank ^ 1)\n"
    replaced, apart = (
        [call for each in work(text.format(way)) for call in each.calls if call.result]
        for way in ("Sendrecv_replace(x", "Sendrecv(x, recvbuf=y")
    )
    copies = [call for call in replaced if call.operation is ArrayOperation.COPY]
    assert [evaluate(call.elements, {}) for call in copies] == [90]
    assert not any(call.operation is ArrayOperation.COPY for call in apart)
