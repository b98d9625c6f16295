"""What a message carries: arrays, numbers and objects, told from where they are made."""

from __future__ import annotations

import pytest
from reading import operations, program, the_operation

from advisor.ir.spmd.memory import PayloadKind
from advisor.ir.spmd.steps import Op
from costdb.expr import evaluate, num, to_text

ARRAY, SCALAR, OBJECT, UNKNOWN = PayloadKind

# what is assigned to x, how it is sent, and what is known of it then
PAYLOADS = [
    ("np.arange(5.0)", "x", ARRAY, "float64", None),
    ("np.array([rank], dtype='i')", "x", ARRAY, "int32", "1"),
    ("np.random.rand(6, 7)", "x", ARRAY, "float64", "42"),
    ("np.dot(np.zeros(5), np.zeros(5))", "x", SCALAR, "float64", "1"),
    # the trap: a sum is a number, a sum along an axis is an array
    ("np.sum(np.zeros((4, 5)))", "x", SCALAR, "float64", "1"),
    ("np.zeros((4, 5)).mean()", "x", SCALAR, "float64", "1"),
    ("np.zeros(5)[2]", "x", SCALAR, "float64", "1"),
    ("3", "x", SCALAR, "int", "1"),
    ("3.5 * rank", "x", SCALAR, "float", "1"),
    ("{'a': 1}", "x", OBJECT, None, None),
    ("[1, 2, 3]", "x", OBJECT, None, None),
    ("'text'", "x", OBJECT, None, None),
    ("input()", "x", OBJECT, None, None),
    ("some_library()", "x", UNKNOWN, None, None),
]


@pytest.mark.parametrize(("made", "sent", "kind", "dtype", "count"), PAYLOADS)
def test_a_payload_is_typed_where_it_is_made(
    made: str, sent: str, kind: PayloadKind, dtype: str | None, count: str | None
) -> None:
    found = the_operation(f"x = {made}\ncomm.send({sent}, dest=1)\n").send
    assert found.kind is kind
    assert found.dtype == dtype
    if count is not None:
        assert to_text(found.count) == count


@pytest.mark.parametrize(
    ("described", "dtype", "count"),
    [
        ("[x, MPI.DOUBLE]", "float64", "100"),
        ("(x, 10, MPI.DOUBLE)", "float64", "10"),
        ("[x, 7]", "float64", "7"),
        ("(x, MPI.INT)", "float64", "100"),
    ],
)
def test_a_buffer_description_is_a_buffer_not_a_list(
    described: str, dtype: str, count: str
) -> None:
    found = the_operation(f"x = np.zeros(100)\ncomm.Send({described}, dest=1)\n").send
    assert found.described
    assert (found.kind, found.dtype) == (ARRAY, dtype)
    assert to_text(found.count) == count


def test_bounds_that_are_not_known_are_not_the_same() -> None:
    text = "n = int(input())\nx = np.zeros(100)\nlow, high = np.random.randint(9), n // 2\n"
    for sent in ("x[low:high]", "np.arange(low, high)"):
        made = the_operation(f"{text}comm.Send({sent}, dest=1)\n")
        assert made.send.count != num(0)
    pieces = "ends = comm.gather(rank)\ncomm.Send(x[ends[0]:ends[1]], dest=1)\n"
    sends = [op for op in operations(program(text + pieces)) if op.send and op.op is Op.SEND]
    assert [op.send.count == num(0) for op in sends if op.send] == [False]


@pytest.mark.parametrize(
    ("said", "dtype"),
    [
        ("F = np.int32", "int32"),
        ("from numpy import int32 as F", "int32"),
        ("F = float", "float64"),
        ("from settings import F", None),
        ("import settings; F = settings.d", None),
    ],
)
def test_an_element_type_of_unknown_origin_is_not_guessed_from_its_name(
    said: str, dtype: str | None
) -> None:
    found = the_operation(f"{said}\ncomm.Send(np.zeros(9, dtype=F), dest=1)\n").send
    assert found.dtype == dtype


@pytest.mark.parametrize(("operator", "method"), [("@", "__matmul__"), ("*", "__mul__")])
def test_operators_of_a_class_are_followed(operator: str, method: str) -> None:
    read = program(
        "class Matrix:\n"
        f"    def {method}(self, x):\n"
        "        full = np.empty(70)\n"
        "        comm.Allgather(x, full)\n"
        "        return full\n"
        "    def __call__(self, x):\n"
        "        comm.Barrier()\n"
        "A = Matrix()\n"
        f"y = A {operator} np.ones(10)\n"
        "A(y)\n"
        "comm.Send(y, dest=1)\n"
    )
    assert [op.op for op in operations(read)] == [Op.ALLGATHER, Op.BARRIER, Op.SEND]
    sent = operations(read)[-1].send
    assert evaluate(sent.count, {}) == 70


@pytest.mark.parametrize("given", ["", "MPI.COMM_WORLD", "None"])
def test_a_communicator_by_default(given: str) -> None:
    read = program(
        "def run(comm=None):\n"
        "    comm = comm or MPI.COMM_WORLD\n"
        "    comm.bcast(1)\n"
        f"run({given})\n",
        head="from mpi4py import MPI\n",
    )
    assert [op.op for op in operations(read)] == [Op.BCAST]


def test_an_entry_of_a_list_that_counts_ranks_is_that_of_the_own_rank() -> None:
    read = program(
        "n = 50\n"
        "counts = [n // size + (1 if r < n % size else 0) for r in range(size)]\n"
        "comm.Send(np.zeros(counts[rank]), dest=0)\n"
    )
    (sent,) = operations(read)
    for ranks in (1, 3, 4, 7):
        for rank in range(ranks):
            expected = 50 // ranks + (1 if rank < 50 % ranks else 0)
            values = {"P": ranks, "rank": rank, "n": 50}
            assert evaluate(sent.send.count, values) == expected


def test_powers_of_numbers_are_sizes() -> None:
    read = program("N = 2 ** 20\ncomm.Send(np.zeros(N), dest=1)\n")
    assert read.sizes["N"].value == 2**20


# what one rank sends, in the order in which the source has the two ends
ENDS = {
    "sent first": "{send}\n{receive}\n",
    "received first": "{receive}\n{send}\n",
    "on two sides": "if rank == 0:\n    {send}\nelse:\n    {receive}\n",
    "for the root": "if rank == 0:\n    {receive}\nelse:\n    {send}\n",
}


@pytest.mark.parametrize("ends", ENDS)
@pytest.mark.parametrize(("made", "sent", "kind", "dtype", "count"), PAYLOADS)
def test_a_receive_gets_what_is_sent(
    ends: str, made: str, sent: str, kind: PayloadKind, dtype: str | None, count: str | None
) -> None:
    send, receive = f"comm.send({sent}, dest=1, tag=3)", "got = comm.recv(source=0)"
    text = f"x = {made}\n" + ENDS[ends].format(send=send, receive=receive)
    found = next(step for step in operations(program(text)) if step.op is Op.RECV).comes
    if kind is UNKNOWN:
        assert found is None
    else:
        assert found is not None and (found.kind, found.dtype) == (kind, dtype)
        assert found.count == the_operation(f"x = {made}\n{send}\n").send.count


@pytest.mark.parametrize(
    "sends",
    [
        "comm.send(np.zeros(5), dest=1)\ncomm.send(np.zeros(6), dest=1)\n",
        "comm.send(np.zeros(5 + rank), dest=1)\n",
        "for i in range(5):\n    comm.send(np.zeros(i), dest=1)\n",
        "comm.send(np.zeros(5), dest=1, tag=7)\n",
        "comm.Split(rank % 2, rank).send(np.zeros(5), dest=1)\n",
    ],
)
def test_what_may_be_either_is_not_known(sends: str) -> None:
    found = operations(program(f"{sends}got = comm.recv(source=0, tag=0)\n"))
    assert [step.comes for step in found if step.op is Op.RECV] == [None]


def test_what_is_received_has_a_shape_where_it_is_used() -> None:
    text = (
        "if rank == 0:\n    comm.send(np.zeros((4, 5)), dest=1)\n"
        "else:\n    got = comm.irecv(source=0).wait()\n    comm.Send(got.sum(axis=0), dest=0)\n"
    )
    assert [step.send.count for step in operations(program(text)) if step.method == "Send"] == [
        num(5)
    ]
