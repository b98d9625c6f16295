"""Shapes and element types of arrays as they are read, against NumPy's own."""

from __future__ import annotations

import numpy as np
import pytest
from reading import operations, program

from advisor.ir.spmd.memory import Contiguity
from costdb.expr import evaluate

EXPRESSIONS = [
    # new axes and what they are broadcast to
    "np.zeros((4, 3))[None, :, :] - np.zeros((4, 3))[:, None, :]",
    "np.zeros(5)[:, None] * np.zeros(7)",
    "np.zeros((4, 3))[..., np.newaxis] + np.zeros(6)",
    "(np.zeros((4, 3))[None, :, :] - np.zeros((4, 3))[:, None, :]).sum(axis=2)",
    "np.zeros((4, 3, 2))[1, :, None]",
    "np.zeros((4, 3, 2))[..., 1]",
    "np.zeros((4, 3, 2))[1, ...]",
    "np.zeros((4, 6), order='F')[2:, None, 1]",
    "np.zeros((10, 3))[8:2]",
    # axes in another order
    "np.zeros((2, 3, 4)).transpose(1, 0, 2)",
    "np.transpose(np.zeros((2, 3, 4)), (2, 0, 1))",
    "np.zeros((2, 3)).transpose()",
    "np.swapaxes(np.zeros((2, 3, 4)), 0, 2)",
    "np.zeros((2, 3, 4)).swapaxes(0, -1)",
    "np.moveaxis(np.zeros((2, 3, 4)), 0, -1)",
    "np.rollaxis(np.zeros((2, 3, 4, 5)), 1)",
    "np.rollaxis(np.zeros((2, 3, 4, 5)), 1, 3)",
    "np.rollaxis(np.zeros((2, 3, 4, 5)), 3, 1)",
    "np.ascontiguousarray(np.rollaxis(np.zeros((2, 3, 4)), 2))",
    # the same memory under another shape
    "np.zeros((4, 6))[1:3].reshape(3, 4)",
    "np.zeros((4, 6)).reshape(2, -1)",
    "np.zeros((4, 6))[:, 1:3].reshape(8)",
    # joined
    "np.concatenate([np.zeros((2, 3)), np.zeros((4, 3))])",
    "np.concatenate((np.zeros((2, 3)), np.zeros((2, 5))), axis=-1)",
    "np.concatenate(([0], np.arange(7), [9]))",
    "np.concatenate([np.zeros((2, 3)) for _ in range(5)])",
    "np.hstack([np.zeros(3), np.zeros(4)])",
    "np.hstack([np.zeros((2, 3)), np.zeros((2, 4))])",
    "np.vstack([np.zeros(3), np.zeros(3)])",
    "np.vstack([np.zeros((2, 3)), np.zeros((4, 3))])",
    "np.stack([np.zeros((2, 3)), np.zeros((2, 3))], axis=1)",
    "np.column_stack([np.zeros(3), np.zeros(3)])",
    # transforms
    "np.fft.rfft(np.zeros((4, 10)))",
    "np.fft.rfft2(np.zeros((3, 8, 6)), axes=(1, 2))",
    "np.fft.rfftn(np.zeros((4, 7)))",
    "np.fft.irfft(np.zeros((4, 6), dtype=complex))",
    "np.fft.fft(np.zeros((4, 10)), axis=0)",
    # others
    "np.diff(np.arange(8))",
    "np.searchsorted(np.arange(8), np.zeros(3))",
    "np.array(list(range(2, 11, 3)))",
    "np.zeros(np.dtype('i4').itemsize)",
    "np.zeros(MPI.DOUBLE.Get_size())",
]


class _Sizes:
    """Stands in for ``MPI`` where NumPy makes the array."""

    class DOUBLE:  # as MPI calls it
        @staticmethod
        def Get_size() -> int:  # noqa: N802  # as MPI calls it
            return 8


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_arrays_are_read_as_numpy_makes_them(text: str) -> None:
    real = np.asarray(eval(text, {"np": np, "MPI": _Sizes}))
    payload = operations(program(f"x = {text}\ncomm.send(x, dest=1)\n"))[-1].send
    assert payload is not None and payload.view is not None
    shape = payload.view.shape
    assert shape is not None, "not understood"
    assert tuple(int(evaluate(extent, {})) for extent in shape) == real.shape
    assert payload.view.dtype == real.dtype.name
    flags = real.flags
    contiguous = flags.c_contiguous or flags.f_contiguous
    if payload.view.contiguity is not Contiguity.UNKNOWN:
        assert (payload.view.contiguity is Contiguity.YES) == contiguous


def test_an_operation_in_place_has_the_shape_of_its_target() -> None:
    """Also where the operand is what another rank sends."""
    from advisor.ir.spmd.steps import Compute, walk

    read = program(
        "x = np.zeros(50)\n"
        "if rank == 0:\n    s = x.mean()\n    comm.send(s, dest=1)\n"
        "else:\n    s = comm.recv(source=0)\n"
        "x -= s\n"
    )
    (last,) = [
        visit.step
        for visit in walk(read.functions[-1].body)
        if isinstance(visit.step, Compute) and visit.step.operation == "subtract"
    ]
    assert last.operations is not None
    assert evaluate(last.operations, {}) == 50


KEPT = [
    "d = {side: np.empty(9) for side in ('a', 'b')}",
    "d = dict(a=np.empty(9), b=np.empty(9))",
    "d = {}\nfor side in ('a', 'b'):\n    d[side] = np.empty(9)",
    "d = {'a': np.empty(9)}\nd['b'] = np.empty(9)",
]


@pytest.mark.parametrize("made", KEPT)
@pytest.mark.parametrize("used", ["d['b']", "d.get('b')"])
def test_buffers_are_found_in_dictionaries(made: str, used: str) -> None:
    (sent,) = operations(program(f"{made}\ncomm.Send({used}, dest=1)\n"))
    assert sent.send is not None and sent.send.view is not None
    assert sent.send.count is not None
    assert evaluate(sent.send.count, {}) == 9


@pytest.mark.parametrize("over", ["d", "d.keys()", "sorted(d)", "list(d)"])
def test_going_over_a_dictionary_gives_its_keys(over: str) -> None:
    read = program(
        "d = {side: np.empty(9) for side in ('a', 'b')}\n"
        f"for key in {over}:\n    comm.Send(d[key], dest=1)\n"
    )
    (sent,) = operations(read)
    assert sent.send is not None and sent.send.count is not None
    assert evaluate(sent.send.count, {}) == 9


def test_entries_of_a_comprehension_are_arrays_of_their_own() -> None:
    read = program(
        "d = {side: np.empty(9) for side in ('a', 'b')}\n"
        "p, q = (np.zeros(4) for _ in range(2))\n"
        "comm.Sendrecv(d['a'], 1, recvbuf=d['b'])\ncomm.Sendrecv(p, 1, recvbuf=q)\n"
    )
    for step in operations(read):
        assert step.send is not None and step.receive is not None
        assert step.send.view is not None and step.receive.view is not None
        assert step.send.view.buffer != step.receive.view.buffer


def test_a_dictionary_carries_its_entries() -> None:
    read = program("d = {'x': np.zeros(30), 'y': np.zeros(12)}\ncomm.send(d, dest=1)\n")
    (sent,) = operations(read)
    assert sent.send is not None
    counts = [part.count for part in sent.send.parts]
    assert [int(evaluate(count, {})) for count in counts if count is not None] == [30, 12]


def test_constants_of_classes_are_sizes() -> None:
    read = program(
        "from dataclasses import dataclass\n\n"
        "@dataclass\nclass Setup:\n    nx: int = 1200\n    steps: int = 7\n\n"
        "s = Setup()\nfor _ in range(s.steps):\n    comm.Send(np.zeros(s.nx), dest=1)\n"
    )
    facts = {name: (fact.value, fact.origin) for name, fact in read.sizes.items()}
    assert facts["nx"] == (1200, "line 11")
    assert facts["steps"] == (7, "line 12")
