"""Arrays under other shapes: whose memory they are, and in which order it lies, as in NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reading import operations, program, steps

from advisor.engine import Options, check_source
from advisor.ir.spmd.memory import Contiguity, Order
from advisor.ir.spmd.steps import Copy
from costdb.expr import evaluate

MADE = (
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


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(MADE), st.sampled_from((*FORMS, *VECTORS)), st.sampled_from(ORDERS))
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
        if x.ndim > 1 and not view.flat:
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
