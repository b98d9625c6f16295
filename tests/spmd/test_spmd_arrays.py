"""Arrays as they are read, against NumPy's own: shapes, element types, layouts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reading import operations, program, steps, the_operation

from advisor.engine import Options, check_source
from advisor.ir.spmd.memory import Contiguity, Order, Payload, PayloadKind
from advisor.ir.spmd.steps import Compute, Copy, walk
from costdb.expr import evaluate, num


def each(table: str) -> list[str]:
    """Return the expressions of a table."""
    return table.strip().replace("\n", "; ").split("; ")


MADE = """\
np.zeros((4, 6), order='F')[2:, None, 1]; np.zeros((10, 3))[8:2]
np.zeros((4, 6))[1:3].reshape(3, 4)
np.zeros((4, 6)).reshape(2, -1); np.ascontiguousarray(np.rollaxis(np.zeros((2, 3, 4)), 2))
np.concatenate(([0], np.arange(7), [9])); np.concatenate([np.zeros((2, 3)) for _ in range(5)])
np.fft.rfft2(np.zeros((3, 8, 6)), axes=(1, 2)); np.fft.irfft(np.zeros((4, 6), dtype=complex))
np.array(list(range(2, 11, 3))); np.zeros(np.dtype('i4').itemsize); np.zeros(MPI.DOUBLE.Get_size())
np.array([[1, 2.5], [3, 4]]); np.array([True, False]); np.arange(8) * 1j
np.arange(0, 360, 360 / 36); np.arange(3, 31, 12 / 4); np.arange(30, 0, -6 / 2); np.arange(6 / 2)
np.array([[1.0, 2.0], [3.0, 4.0]], order='F')[1]
np.split(np.zeros(6), 2)[0]; np.frombuffer(np.zeros(4), dtype=float); np.zeros((2, 3))[[0, 1]]
"""


FACES = """\
np.zeros((8, 9))[1]; np.zeros((8, 9))[1, :]; np.zeros((8, 9))[1:3]; np.zeros((8, 9))[:, 1]
np.zeros((8, 9))[:, 1:2]; np.zeros((8, 9))[1:-1, 1:-1]; np.zeros((8, 9))[1, 2:5]
np.zeros((8, 9))[::2]; np.zeros((8, 9)).T; np.zeros((8, 9)).T[1]; np.zeros((8, 9), order='F')[1]
np.zeros((8, 9), order='F')[:, 1]; np.zeros((3, 8, 9))[:, :, 1]; np.zeros((3, 8, 9))[:, 1, :]
np.zeros((3, 8, 9))[0]; np.zeros((3, 8, 9))[0, 1]
"""


class _Sizes:
    """Stands in for ``MPI`` where NumPy makes the array."""

    class DOUBLE:  # as MPI calls it
        @staticmethod
        def Get_size() -> int:  # noqa: N802  # as MPI calls it
            return 8


@pytest.mark.parametrize("text", each(MADE + FACES))
def test_arrays_are_read_as_numpy_makes_them(text: str) -> None:
    payload, real = sent(text), np.asarray(eval(text, {"np": np, "MPI": _Sizes}))
    assert payload.dtype == real.dtype.name
    assert tuple(int(evaluate(extent, {})) for extent in payload.view.shape) == real.shape
    found, flags = payload.view.contiguity, real.flags
    assert found is not Contiguity.UNKNOWN or text not in FACES
    if found is not Contiguity.UNKNOWN:
        assert (found is Contiguity.YES) == (flags.c_contiguous or flags.f_contiguous)


def sent(text: str) -> Payload:
    """Return what an expression is known to be where it is sent."""
    return operations(program(f"x = {text}\ncomm.send(x, dest=1)\n"))[-1].send


def test_an_operation_in_place_has_the_shape_of_its_target() -> None:
    """Also where the operand is what another rank sends."""
    read = program(
        "x = np.zeros(50)\n"
        "if rank == 0:\n    s = x.mean()\n    comm.send(s, dest=1)\n"
        "else:\n    s = comm.recv(source=0)\n"
        "x -= s\n"
    )
    (last,) = (step for step in steps(read, Compute) if step.operation == "subtract")
    assert last.target and evaluate(last.target.count, {}) == 50 and last.value is not None


KEPT = [
    "d = {side: np.empty(9) for side in ('a', 'b')}",
    "d = dict(a=np.empty(9), b=np.empty(9))",
    "d = {}\nfor side in ('a', 'b'):\n    d[side] = np.empty(9)",
    "d = {'a': np.empty(9)}\nd['b'] = np.empty(9)",
]


@pytest.mark.parametrize("made", KEPT)
@pytest.mark.parametrize("used", ["d['b']", "d.get('b')"])
def test_buffers_are_found_in_dictionaries(made: str, used: str) -> None:
    (one,) = operations(program(f"{made}\ncomm.Send({used}, dest=1)\n"))
    assert one.send is not None and one.send.view is not None
    assert evaluate(one.send.count, {}) == 9


@pytest.mark.parametrize("over", ["d", "d.keys()", "sorted(d)", "list(d)"])
def test_going_over_a_dictionary_gives_its_keys(over: str) -> None:
    read = program(
        "d = {side: np.empty(9) for side in ('a', 'b')}\n"
        f"for key in {over}:\n    comm.Send(d[key], dest=1)\n"
    )
    (one,) = operations(read)
    assert evaluate(one.send.count, {}) == 9


@pytest.mark.parametrize(
    "call", ["normal(means, 1.0)", "poisson(lam=means)", "uniform(means)", "normal(*means)"]
)
def test_of_arrays_they_are_no_numbers(call: str) -> None:
    text = f"means = np.zeros(40)\nx = np.random.{call}\ncomm.send(x, dest=1)\n"
    payload = the_operation(text).send
    assert payload is not None and payload.kind is not PayloadKind.SCALAR


# Arrays under other shapes: whose memory they are, and in which order it lies, as in NumPy.


RESHAPED = (
    "np.zeros((4, 6))",
    "np.zeros((4, 6), order='F')",
    "np.zeros((4, 6)).T",
    "np.zeros(24)",
    "np.ones(30)[6:]",
    "np.zeros((6, 6))[:4]",
    "np.zeros((4, 8))[:, 2:]",
    "np.zeros((4, 12))[:, ::2]",
    "np.zeros((2, 3, 4), order='F')",
)
ORDERS = ("", ", order='C'", ", order='F'", ", order='A'")
FORMS = (
    "a.reshape(3, 8{})",
    "a.reshape((2, 3, 4){})",
    "a.reshape(-1{})",
    "np.reshape(a, (8, 3){})",
    "np.reshape(a, (8, -1){})",
)
VECTORS = ("a.ravel({})", "a.flatten({})", "np.ravel(a{})", "np.ravel(a, 'F'{})")


@settings(max_examples=80, deadline=None)
@given(st.sampled_from(RESHAPED), st.sampled_from((*FORMS, *VECTORS)), st.sampled_from(ORDERS))
def test_memory_and_order_are_numpys(made: str, form: str, order: str) -> None:
    stated = "" if "'F'" in form else order
    text = form.format(stated).replace("(, ", "(")
    names = {"np": np}
    exec(f"a = {made}\nx = {text}", names)
    a, x = names["a"], names["x"]
    assert isinstance(a, np.ndarray) and isinstance(x, np.ndarray)
    read = program(f"a = {made}\nx = {text}\ncomm.send(x, dest=1)\n")
    (sent,) = operations(read)
    view = sent.send.view
    assert tuple(int(evaluate(extent, {})) for extent in view.shape) == x.shape
    line = view.span.start_line
    copies = [step for step in steps(read, Copy) if step.span.start_line == line]
    assert copies or np.shares_memory(a, x)
    if copies and np.shares_memory(a, x):
        # axes that are only split, or evenly strided, stay where they are: it may be either
        (made_of,) = copies
        assert view.buffer.memory == made_of.source.buffer.memory
        return
    if view.contiguity is Contiguity.YES:
        assert x.flags.c_contiguous or x.flags.f_contiguous
        if x.ndim > 1 and not view.flat and view.order is not Order.UNKNOWN:
            assert (view.order is Order.C) == x.flags.c_contiguous
            assert (view.order is Order.F) == x.flags.f_contiguous


HEAD = """\
import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()
up, down = (rank - 1) % size, (rank + 1) % size
n = 1000
flat = np.zeros(n * n)
"""
ALIASES = {
    "written between the copy and the message": """\
u = flat.reshape((n, n))
for step in range(30):
    face = u[1].copy()
    flat[:] = step
    comm.Sendrecv(face, dest=up, recvbuf=u[-1], source=down)
""",
    "received into the same memory": """\
u = flat.reshape((n, n))
for step in range(30):
    comm.Sendrecv(u[1].copy(), dest=up, recvbuf=flat[n : 2 * n], source=down)
""",
    "reshaped twice": """\
cube = np.reshape(flat, (n, 10, n // 10))
u = cube.reshape(n, n)
for step in range(30):
    face = u[1].copy()
    cube[1, 2] = step
    comm.Sendrecv(face, dest=up, recvbuf=u[-1], source=down)
""",
    "a row of an array that lies by columns": """\
u = np.arange(n * n, dtype="d").reshape((n, n), order="F")
ghost = np.empty(n)
for step in range(30):
    comm.Sendrecv(u[1].copy(), dest=up, recvbuf=ghost, source=down)
    u[-1, :] = ghost
""",
}
SAFE = """\
u = np.zeros(n * n).reshape((n, n))
for step in range(30):
    face = u[1].copy()
    flat[:] = step
    comm.Sendrecv(face, dest=up, recvbuf=u[-1], source=down)
"""


def codes(text: str) -> set[str]:
    found = check_source(
        "program.py", HEAD + text, Options("t3e", {"P": 4}, (), (), 1.0, everything=True)
    )
    return {finding.code for finding in found.findings}


@pytest.mark.parametrize("which", ALIASES)
def test_faces_are_not_sent_in_place_under_another_name_of_their_memory(which: str) -> None:
    assert "ADV602" not in codes(ALIASES[which])


def test_what_is_made_and_reshaped_at_once_has_no_other_name() -> None:
    assert "ADV602" in codes(SAFE)


def test_results_go_where_they_are_stored_also_of_what_is_not_known() -> None:
    text = """
def f(u, comm):
    w, v = np.empty((8, 3)), np.load("v.npy")
    np.add(v, 1.0, out=w)
    np.cumsum(w, axis=0, out=w)
    np.sqrt(w, w)
    comm.Send(w, dest=1)
"""
    (function,) = program(text).functions
    made = [v.step for v in walk(function.body) if isinstance(v.step, Compute)]
    assert [one.target and one.target.buffer.name for one in made] == ["w", "w", "w"]
    assert [one.target and one.target.count for one in made] == [num(24), num(24), num(24)]
    assert {buffer.name for buffer in function.buffers} == {"v", "w"}


LAID_OUT = each("""\
np.roll({0}, 1, axis=1); np.sort({0}, axis=0); np.concatenate([{0}, {1}]); np.vstack([{0}, {1}])
np.hstack([{0}, {1}]); np.cumsum({0}, axis=0); np.cumprod({0}, axis=1); np.nan_to_num({0})
{0}.copy(); np.copy({0}); np.array({0}); np.partition({0}, 1); np.kron({0}, {1}); {0} + {1}
np.outer({0}[0], {1}[1]).T; {0} + 1; np.where({0} > 3, {1}, 0); {0}.astype(np.float32)
np.flip({0}, 0).copy(); np.clip({0}, 1, 5); np.zeros_like({0}); np.full_like({0}, 2)
np.stack([{0}, {1}]); np.repeat({0}, 2, axis=0); np.diff({0}, axis=0); {0}[[0, 2]]; np.pad({0}, 1)
{0} @ {1}.T; np.round({0}); np.tril({0}); np.array([{0}, {1}]); {0}.reshape(2, 6); {0}[:, 1:] * 2
{0}.reshape(3, 2, 2).max(axis=1); np.stack([{0}, {1}]).sum(axis=0); np.swapaxes({0}, 0, 1) * 1
{0}[::-1] + {1}; {0}[:, 0:1] + {1}[0:1]; np.fft.fft({0}, axis=0)
""")
C_ORDER = "np.arange(12.0).reshape(3, 4)"
LAYOUTS = (C_ORDER, f"np.asfortranarray({C_ORDER})", "np.arange(12.0).reshape(4, 3).T")


@pytest.mark.parametrize("expression", LAID_OUT)
def test_an_order_that_is_told_is_that_of_numpy(expression: str) -> None:
    for one in LAYOUTS:
        for other in LAYOUTS:
            text = expression.format("one", "other")
            sent = the_operation(f"one, other = {one}, {other}\nx = {text}\ncomm.bcast(x)\n").send
            assert sent is not None and sent.view is not None
            flags = eval(text, {"np": np, "one": eval(one), "other": eval(other)}).flags
            lies = {Order.C: flags.c_contiguous, Order.F: flags.f_contiguous, Order.UNKNOWN: True}
            if sent.view.contiguity is Contiguity.YES:
                assert lies[sent.view.order], (text, one, other)
            if one == other == C_ORDER and " @ " not in text and ".T" not in text:
                known = "swap" in text or "fft" in text or flags.forc is False
                assert known or sent.view.order is not Order.UNKNOWN, text
