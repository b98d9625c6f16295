"""What the models are asked of each collective: its kind, and what a step carries."""

from __future__ import annotations

import pytest
from reading import the_operation

from advisor.analysis.spmd.operations import of_communication
from advisor.analysis.spmd.regions import NoWork
from advisor.ir.spmd.program import RANKS
from costdb.expr import Expr, evaluate
from costdb.lines.regions import bytes_of
from costdb.work import Collective, CollectiveKind, PickledCollective

ARRAYS = "whole, other = np.ones(96), np.empty(96)\npiece = np.empty(96 // size)\n"


def bytes_at(size: Expr, ranks: int) -> float:
    return float(evaluate(size, {RANKS: ranks}))


@pytest.mark.parametrize("ranks", [2, 3, 4, 8])
@pytest.mark.parametrize(
    ("call", "kind", "pieces"),
    [
        ("Reduce_scatter_block(whole, piece)", CollectiveKind.REDUCE_SCATTER, 1),
        ("Reduce_scatter(whole, piece, op=MPI.MAX)", CollectiveKind.REDUCE_SCATTER, 1),
        ("Reduce_scatter_block(MPI.IN_PLACE, whole)", CollectiveKind.REDUCE_SCATTER, 1),
        ("Scan(whole, other)", CollectiveKind.PREFIX, 0),
        ("Exscan(whole, other)", CollectiveKind.PREFIX, 0),
        ("Reduce(whole, other)", CollectiveKind.REDUCE, 0),
        ("Alltoall(whole, other)", CollectiveKind.ALLTOALL, 1),
        ("Alltoallv(whole, other)", CollectiveKind.ALLTOALLV, 1),
        ("Allgather(piece, whole)", CollectiveKind.ALLGATHER, 1),
        ("Allgatherv(piece, whole)", CollectiveKind.ALLGATHERV, 1),
        ("Gatherv(piece, whole)", CollectiveKind.GATHER, 1),
    ],
)
def test_each_method_is_priced_as_what_it_is(
    call: str, kind: CollectiveKind, pieces: int, ranks: int
) -> None:
    (work,) = of_communication(the_operation(f"{ARRAYS}comm.{call}\n"))
    assert isinstance(work, Collective)
    assert work.kind is kind
    expected = 96 * 8 / ranks if pieces else 96 * 8
    assert bytes_at(bytes_of(work.region), ranks) == pytest.approx(expected, abs=8)


@pytest.mark.parametrize("method", ["scan", "exscan", "reduce"])
def test_prefixes_of_objects_take_the_steps_of_a_reduction(method: str) -> None:
    (work,) = of_communication(the_operation(f"{ARRAYS}x = comm.{method}(whole)\n"))
    assert isinstance(work, PickledCollective)
    assert work.kind is CollectiveKind.REDUCE


def test_what_mpi4py_has_no_method_for_has_no_price() -> None:
    with pytest.raises(NoWork, match="reduce_scatter"):
        of_communication(the_operation(f"{ARRAYS}x = comm.reduce_scatter(whole)\n"))
