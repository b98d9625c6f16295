"""Meshes that programs work out of the number of ranks, against running the same loops."""

from __future__ import annotations

from math import isqrt, sqrt

import pytest
from reading import operations, program

from advisor.ranking.programs import bind_program
from costdb.expr import evaluate

HELPERS = {
    "down from the root": """\
def factor(p):
    for i in range(int(sqrt(p)), 0, -1):
        if p % i == 0:
            return i, p // i
""",
    "the last below the root": """\
def factor(p):
    px = 1
    for i in range(1, int(sqrt(p)) + 1):
        if p % i == 0:
            px = i
    return px, p // px
""",
    "step by step": """\
def factor(p):
    px = int(sqrt(p))
    while p % px != 0:
        px -= 1
    return px, p // px
""",
    "with isqrt and break": """\
def factor(p):
    for i in range(isqrt(p), 0, -1):
        if p % i == 0:
            px = i
            break
    return px, p // px
""",
}


@pytest.mark.parametrize("helper", HELPERS.values(), ids=HELPERS)
def test_factors_are_those_that_the_program_finds(helper: str) -> None:
    read = program(
        f"from math import isqrt, sqrt\n{helper}\npx, py = factor(size)\n"
        "comm.Send(np.zeros(1000 * px + py), dest=1)\n"
    )
    (sent,) = operations(read)
    assert sent.send is not None and sent.send.count is not None
    names: dict[str, object] = {"sqrt": sqrt, "isqrt": isqrt}
    exec(helper, names)
    for ranks in (1, 2, 6, 7, 12, 16, 36, 97, 120):
        px, py = names["factor"](ranks)  # type: ignore[operator]  # the text above defines it
        values = bind_program(read, {"P": ranks}).values
        assert evaluate(sent.send.count, values) == 1000 * px + py, ranks


def test_a_mesh_that_mpi_chooses_is_known_for_two_axes() -> None:
    read = program(
        "dims = MPI.Compute_dims(size, 2)\ncomm.Send(np.zeros(1000 * dims[0] + dims[1]), dest=1)\n"
    )
    (sent,) = operations(read)
    assert sent.send is not None and sent.send.count is not None
    for ranks, dims in ((1, (1, 1)), (6, (3, 2)), (12, (4, 3)), (7, (7, 1)), (16, (4, 4))):
        sizes = bind_program(read, {"P": ranks})
        assert evaluate(sent.send.count, sizes.values) == 1000 * dims[0] + dims[1]
        assert "MPI.Compute_dims" in sizes.origins["dims0"]


def test_what_nothing_binds_stays_open() -> None:
    read = program("dims = MPI.Compute_dims(size, 2)\ncomm.Send(np.zeros(dims[0]), dest=1)\n")
    assert "dims0" not in bind_program(read, {}).values
    assert bind_program(read, {"P": 6, "dims0": 2}).values["dims0"] == 2


def test_stated_extents_of_a_mesh_stay_as_they_are() -> None:
    read = program(
        "dims = MPI.Compute_dims(size, [0, 4])\n"
        "comm.Send(np.zeros(1000 * dims[0] + dims[1]), dest=1)\n"
    )
    (sent,) = operations(read)
    assert sent.send is not None and sent.send.count is not None
    assert evaluate(sent.send.count, {"P": 12}) == 3004


@pytest.mark.parametrize(
    "loop",
    [
        "for i in range(9):\n    if i % 3 == 1:\n        comm.Barrier()\n        k = i\n",
        "for i in range(9):\n    if unknown(i):\n        k = i\n",
        "for i in range(9):\n    k = i\n    if i > 3:\n        break\n",
    ],
)
def test_other_loops_look_for_nothing(loop: str) -> None:
    read = program(f"k = 0\n{loop}comm.Send(np.zeros(k + 1), dest=1)\n")
    assert all(fact.derived is None for fact in read.sizes.values())
