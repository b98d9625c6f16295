"""What the models are asked: of what ranks compute, of collectives, of the interpreter."""

from __future__ import annotations

from pathlib import Path

import pytest
from reading import program, the_operation, works

from advisor.analysis.placement import NotPriced
from advisor.analysis.spmd.lower import lower_steps
from advisor.analysis.spmd.statements import of_communication
from advisor.frontend.spmd.reader import read_program
from advisor.ir.spmd.program import RANKS
from advisor.ranking.programs import bind_program
from costdb.expr import Expr, evaluate, num, sym
from costdb.lines.coefficients import bytes_of
from costdb.work import (
    ArrayOperation,
    Branch,
    Collective,
    CollectiveKind,
    Interpretation,
    Leaf,
    Message,
    Parallel,
    Process,
    SeqLoop,
    Sequential,
    Statement,
)


def work(text: str) -> list[Statement]:
    (function,) = program(text).functions
    return list(works(lower_steps(function.body).process, Statement))


@pytest.mark.parametrize(
    ("product", "operation", "elements", "length"),
    [
        ("a @ x", ArrayOperation.MATVEC, 30 * 50, 50),
        ("y @ a", ArrayOperation.MATVEC, 30 * 50, 30),
        ("x @ x", ArrayOperation.MATVEC, 50, 50),
        ("np.dot(x, x)", ArrayOperation.MATVEC, 50, 50),
        ("a @ a.T", ArrayOperation.MATMUL, 30 * 30 / 2, 50),
        ("a @ b", ArrayOperation.MATMUL, 30 * 20, 50),
    ],
)
def test_a_product_with_a_vector_uses_every_element_of_the_matrix_once(
    product: str, operation: ArrayOperation, elements: float, length: int
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


def test_what_mpi4py_has_no_method_for_has_no_price() -> None:
    with pytest.raises(NotPriced, match="reduce_scatter"):
        of_communication(the_operation(f"{ARRAYS}x = comm.reduce_scatter(whole)\n"))


def interpretations(text: str) -> list[Interpretation]:
    (function,) = program(text).functions
    return list(works(lower_steps(function.body).process, Interpretation))


def test_a_list_of_numbers_is_a_number_of_steps_for_each() -> None:
    made = interpretations("x = np.ones(30 + size)\nnumbers = x.tolist()\ncomm.bcast(numbers)\n")
    assert {evaluate(one.iterations, {RANKS: 2}) for one in made if one.operations} == {32}


def test_a_loop_over_numbers_is_the_interpreters_work() -> None:
    (work,) = interpretations(
        "import random\n"
        "def estimate(samples):\n"
        "    hits = 0\n"
        "    for _ in range(samples):\n"
        "        x, y = random.random(), random.random()\n"
        "        if x * x + y * y <= 1:\n"
        "            hits += 1\n"
        "    return hits\n"
        "pi = comm.reduce(estimate(1_000_000 // size), op=MPI.SUM)\n"
    )
    # two calls, three products and sums, a comparison, an increment
    assert (work.loads, work.stores, work.operations) == (0, 0, 7)


COMPILED = """\
import numba
from numba import njit

{decorator}
def relax(u):
    for i in range(u.shape[0]):
        u[i] = 0.5 * u[i]

x = np.zeros(1000)
relax(x)
comm.Bcast(x)
"""


@pytest.mark.parametrize("decorator", ["@njit", "@numba.njit(cache=True)", "@numba.jit"])
def test_compiled_loops_have_no_price_of_the_interpreter(decorator: str) -> None:
    text = COMPILED.format(decorator=decorator)
    assert not interpretations(text)
    (function,) = program(text).functions
    (gap,) = lower_steps(function.body).gaps
    assert "`relax`, which numba compiles, is not modelled" in gap.reason


# Whole programs as people write them: how many bytes a rank sends in all, worked out by hand. A
# rank between the ends is meant, with four ranks. The number holds only if sizes, shapes,
# trips, partners and branches of a program are all understood.


PROGRAMS = Path(__file__).parents[1] / "data" / "programs"

SENT_BYTES = {
    # two faces of 1024 numbers, 500 times
    "jacobi_in_dictionaries.py": 2 * 1024 * 8 * 500,
    "heat_solver.py": 2 * 2048 * 8 * 1000,
    # nine components of 300 points
    "components_first.py": 2 * 9 * 300 * 8 * 1000,
    "fortran_order.py": 2 * 3000 * 8 * 200,
    "waits_for_all.py": 2 * 4000 * 8 * 100,
    "persistent.py": 2 * 1000 * 8 * 250,
    "derived_column.py": 2 * 2000 * 8 * 1000,
    # 2 x 2 ranks, blocks of 600 x 600 with an edge
    "cartesian.py": (2 * 602 + 2 * 602) * 8 * 300,
    # three fields
    "properties.py": 3 * 2 * 1200 * 8 * 50,
    # planes of single precision
    "wave.py": 2 * 256 * 256 * 4 * 400,
    "two_files/driver.py": 2 * 512 * 8 * 1000,
}


def sent(process: Process, here: dict[str, int | float]) -> int:
    """Return the bytes of all messages."""
    match process:
        case Leaf(work=Message(region=region)):
            return int(evaluate(bytes_of(region), here))
        case Sequential(parts=parts):
            return sum(sent(part, here) for part in parts)
        case Parallel(parts=parts):
            return max((sent(part, here) for part in parts), default=0)
        case Branch(probability, then, orelse):
            return sent(then if evaluate(probability, here) else orelse, here)
        case SeqLoop(low=low, high=high, body=body, variable=variable):
            first = int(evaluate(low, here))
            times = int(evaluate(high, here)) - first + 1
            return max(times, 0) * sent(body, {**here, variable: first})
    return 0


@pytest.mark.parametrize("name", SENT_BYTES)
def test_all_that_a_program_sends_is_known(name: str) -> None:
    file = PROGRAMS / name
    read = read_program(str(file), file.read_text())
    lowered = lower_steps(read.functions[-1].body)
    assert lowered.gaps == ()
    values = dict(bind_program(read, {"P": 4}).values)
    assert sent(lowered.process, values) == SENT_BYTES[name]


def test_every_program_has_its_number() -> None:
    files = {str(f.relative_to(PROGRAMS)) for f in PROGRAMS.rglob("*.py")}
    assert files == {*SENT_BYTES, "two_files/halo.py"}
