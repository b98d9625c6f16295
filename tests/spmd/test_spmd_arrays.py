"""Arrays as they are read, against NumPy's own: shapes, element types, layouts."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reading import operations, program, steps, the_operation

from advisor.engine import Options, check_source
from advisor.frontend.spmd.numpy_calls import INTEGERS, SIZE_AT, TYPED
from advisor.ir.spmd.memory import Contiguity, Order
from advisor.ir.spmd.payloads import Payload, PayloadKind
from advisor.ir.spmd.steps import Compute, Copy, walk
from costdb.expr import evaluate, num
from costdb.expr.nodes import Num


def each(table: str) -> list[str]:
    """Return the expressions of a table."""
    return table.strip().replace("\n", "; ").split("; ")


UNDERSTOOD = """\
np.zeros((4, 3))[None, :, :] - np.zeros((4, 3))[:, None, :]; np.zeros(5)[:, None] * np.zeros(7)
np.zeros((4, 3))[..., np.newaxis] + np.zeros(6)
(np.zeros((4, 3))[None, :, :] - np.zeros((4, 3))[:, None, :]).sum(axis=2)
np.zeros((4, 3, 2))[1, :, None]; np.zeros((4, 3, 2))[..., 1]; np.zeros((4, 3, 2))[1, ...]
np.zeros((4, 6), order='F')[2:, None, 1]; np.zeros((10, 3))[8:2]
np.zeros((2, 3, 4)).transpose(1, 0, 2); np.transpose(np.zeros((2, 3, 4)), (2, 0, 1))
np.zeros((2, 3)).transpose(); np.swapaxes(np.zeros((2, 3, 4)), 0, 2)
np.zeros((2, 3, 4)).swapaxes(0, -1); np.moveaxis(np.zeros((2, 3, 4)), 0, -1)
np.rollaxis(np.zeros((2, 3, 4, 5)), 1); np.rollaxis(np.zeros((2, 3, 4, 5)), 1, 3)
np.rollaxis(np.zeros((2, 3, 4, 5)), 3, 1)
np.ascontiguousarray(np.rollaxis(np.zeros((2, 3, 4)), 2)); np.zeros((4, 6))[1:3].reshape(3, 4)
np.zeros((4, 6)).reshape(2, -1); np.zeros((4, 6))[:, 1:3].reshape(8)
np.concatenate([np.zeros((2, 3)), np.zeros((4, 3))])
np.concatenate((np.zeros((2, 3)), np.zeros((2, 5))), axis=-1)
np.concatenate(([0], np.arange(7), [9])); np.concatenate([np.zeros((2, 3)) for _ in range(5)])
np.hstack([np.zeros(3), np.zeros(4)]); np.hstack([np.zeros((2, 3)), np.zeros((2, 4))])
np.vstack([np.zeros(3), np.zeros(3)]); np.vstack([np.zeros((2, 3)), np.zeros((4, 3))])
np.stack([np.zeros((2, 3)), np.zeros((2, 3))], axis=1)
np.column_stack([np.zeros(3), np.zeros(3)]); np.fft.rfft(np.zeros((4, 10)))
np.fft.rfft2(np.zeros((3, 8, 6)), axes=(1, 2)); np.fft.rfftn(np.zeros((4, 7)))
np.fft.irfft(np.zeros((4, 6), dtype=complex)); np.fft.fft(np.zeros((4, 10)), axis=0)
np.diff(np.arange(8)); np.searchsorted(np.arange(8), np.zeros(3)); np.array(list(range(2, 11, 3)))
np.zeros(np.dtype('i4').itemsize); np.zeros(MPI.DOUBLE.Get_size())
np.zeros(100); np.zeros((10, 20), dtype=np.int32); np.empty(50, 'f4'); np.ones_like(np.arange(9))
np.full((3, 4), 1.5); np.arange(2, 11, 3); np.linspace(0, 1, 77); np.array([1, 2, 3])
np.array([[1, 2.5], [3, 4]]); np.zeros(100) + 1; np.arange(8) / 2; np.arange(8) * 1j
np.sqrt(np.arange(8)); np.zeros((4, 5)).T; np.zeros((4, 5)).reshape(2, -1); np.zeros((4, 5))[1:-1]
np.zeros((4, 5)) @ np.zeros((5, 6)); np.sum(np.zeros((4, 5)), axis=1); np.zeros((4, 5)).sum(0)
np.zeros((4, 5)).max(axis=0); np.zeros((4, 5))[2]
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


@pytest.mark.parametrize("text", each(UNDERSTOOD + FACES))
def test_arrays_are_read_as_numpy_makes_them(text: str) -> None:
    payload, real = sent(text), np.asarray(eval(text, {"np": np, "MPI": _Sizes}))
    agree(payload, real)
    assert payload.dtype == real.dtype.name
    assert payload.view.contiguity is not Contiguity.UNKNOWN or text not in FACES
    assert tuple(int(evaluate(extent, {})) for extent in payload.view.shape) == real.shape


def sent(text: str, made: str = "") -> Payload:
    """Return what an expression is known to be where it is sent."""
    return operations(program(f"{made}x = {text}\ncomm.send(x, dest=1)\n"))[-1].send


def agree(payload: Payload, expected: object) -> None:
    """Assert that what is told of an array is so in NumPy."""
    view = payload.view
    if not isinstance(expected, np.ndarray):
        assert payload.kind is not PayloadKind.ARRAY or view is None
        return
    assert payload.kind is not PayloadKind.SCALAR
    if view is None:
        return
    assert payload.dtype in (None, expected.dtype.name)
    if view.shape is not None:
        told = [extent.value if isinstance(extent, Num) else None for extent in view.shape]
        assert len(told) == expected.ndim
        assert all(one in (None, other) for one, other in zip(told, expected.shape, strict=True))
    if view.contiguity is not Contiguity.UNKNOWN:
        flags = expected.flags
        one_stretch = flags.c_contiguous or flags.f_contiguous
        assert (view.contiguity is Contiguity.YES) == one_stretch


def test_an_operation_in_place_has_the_shape_of_its_target() -> None:
    """Also where the operand is what another rank sends."""
    read = program(
        "x = np.zeros(50)\n"
        "if rank == 0:\n    s = x.mean()\n    comm.send(s, dest=1)\n"
        "else:\n    s = comm.recv(source=0)\n"
        "x -= s\n"
    )
    (last,) = (step for step in steps(read, Compute) if step.operation == "subtract")
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


MADE = """
f4 = np.zeros((4, 6), dtype=np.float32)
f8 = np.ones((4, 6))
i4 = np.arange(24, dtype=np.int32).reshape(4, 6)
i8 = np.arange(6)
c8 = np.zeros(6, dtype=np.complex64)
c16 = np.zeros(6, dtype=complex)
b = f8 > 0
u1 = np.zeros((4, 6), np.uint8)
v = np.linspace(0, 1, 6)
L = [1, 2, 3]
"""

EXPRESSIONS = """\
np.linspace(0, 1, 5, dtype='i4'); np.arange(0, 1, 0.1); np.arange(5, dtype=float); np.bincount(i8)
np.histogram(v, bins=10)[0]; f4 + 1.0; f4 * f8; f4 * i4; i4 / 2; i4 // 2; i4 + i8; i4 * 1.5
u1 + 1; u1 + u1; u1 / u1; np.sqrt(i4); np.sqrt(u1); np.abs(c8); np.abs(c16); abs(c16); c8.real
c16.imag; np.real(c16); u1.sum(axis=0); f4.mean(axis=1, dtype=np.float64); np.cumsum(i4); f8 > 0
~b; b & b; np.where(b, f4, 0); np.where(b, f4, f8); np.where(b, 1, 0); np.where(b, 1.0, 0.0)
np.maximum(f4, f8); np.argsort(v); np.concatenate([f4, f8]); np.concatenate((v, i8))
np.hstack((f4, f8)); np.stack([v, v]); np.array([1.0, 2])
np.array([[1, 2], [3, 4]], dtype=np.float32); np.array(L); np.array([True, False])
np.array([1j, 2]); np.asarray(f4, dtype=np.float64); np.array(f4); f4.astype(int); f4.astype('f8')
f4.astype(np.complex64); f4.T; f4.T.copy(); np.ascontiguousarray(f4.T); f4.flatten(); f4.ravel()
f4.reshape(-1, 8); f4.reshape((2, 12)); f4[:, ::2]; f4[1]; f4[1:3, 2:]; f4[..., 0]; f4[None, :, 0]
f4[b]; v[i8]; f8[[0, 2]]; f8 @ v; f4 @ v; f4 @ f4.T; i4 @ i8; np.tile(v, 3); np.repeat(v, 2)
np.ones(4, bool); np.meshgrid(v, v)[0]; f4 ** 2; i4 ** 2; v ** 0.5; -u1; np.mod(i4, 3); f4 % 2
i4 % 2.5; np.logical_and(b, b); np.add(i4, 1, dtype=np.float64); np.expand_dims(v, 0)
np.squeeze(f4[:1]); np.split(v, 2)[0]; np.array_split(v, 4)[0]; np.unique(i8); np.nonzero(v)[0]
np.diag(v); np.r_[v, v]; np.compress([True, False], v); np.frombuffer(b.tobytes(), dtype=np.uint8)
f4.view(np.int32); f4.view('u1'); c16.view(float); np.float32(2) * f8; np.float64(2) * f4
np.int64(2) * i4; f4 * np.pi; f4 * v[0]; f4 * f8[0, 0]; f4 + f4.sum(); f4 * f8.sum()
i4 * i8.max(); f4 + len(L); 2 ** i4; 1 / f4; 1 / i4; 1 - u1; 3 * c8; f4 * 1j; np.arctan2(i4, i4)
np.add.reduce(f4); np.multiply(i4, 2.0); np.where(v > 0)[0]; np.nan_to_num(f4); f4.copy(order='F')
np.asfortranarray(f4); f4[::-1]; np.broadcast_to(v, (3, 6)); np.empty((3,) + f4.shape)
np.zeros(f4.shape[::-1]); np.zeros(f4.size); np.zeros(len(f4)); np.convolve(v, v, mode='same')
np.bitwise_xor(i4, 1); i4 << 2; i4 >> np.int64(1); divmod(i4, 2)[0]; np.ldexp(f4, 2)
np.float32(f8); np.int32(f8); float(v[0]) * f4; complex(1) * f4
"""


@pytest.mark.parametrize("text", each(EXPRESSIONS))
@pytest.mark.filterwarnings("ignore")
def test_what_is_told_of_arrays_is_true(text: str) -> None:
    names: dict[str, object] = {"np": np}
    exec(MADE, names)
    agree(sent(text, MADE), eval(text, names))


GENERATOR = np.random.default_rng(1)
VALUES = {"p": "0.5", "a": "2.0", "alpha": "2.0", "df": "3.0"}


def parameters(name: str) -> list[str]:
    return list(inspect.signature(getattr(GENERATOR, name)).parameters)


def before_size(name: str) -> list[str]:
    """Return arguments that the distribution takes before its size."""
    if name == "integers":
        return ["0", "9"]
    if name == "triangular":
        return ["1.0", "2.0", "3.0"]
    if name in ("hypergeometric", "binomial"):
        return ["7", "0.5"] if name == "binomial" else ["7", "5", "4"]
    return [VALUES.get(p, "2.0") for p in parameters(name)[: SIZE_AT[name]]]


MODERN = sorted(name for name in SIZE_AT if hasattr(GENERATOR, name))


@pytest.mark.parametrize("name", MODERN)
def test_the_size_stands_where_numpy_has_it(name: str) -> None:
    assert parameters(name).index("size") == SIZE_AT[name]
    assert ("dtype" in parameters(name)) == (name in TYPED)


CASES = [
    (name, stated)
    for name in MODERN
    for stated in ("", "int32" if name in INTEGERS else "float32")
    if not stated or name in TYPED
]


@pytest.mark.parametrize("keyword", [False, True])
@pytest.mark.parametrize(("name", "stated"), CASES)
def test_arrays_have_the_shape_and_type_of_numpy_s(name: str, keyword: bool, stated: str) -> None:
    given = [*before_size(name), "size=(3, 5)" if keyword else "(3, 5)"]
    if stated:
        given.append(f"dtype=np.{stated}")
    made = f"np.random.default_rng(1).{name}({', '.join(given)})"
    expected = eval(made, {"np": np})
    text = f"rng = np.random.default_rng(1)\nx = rng.{name}({', '.join(given)})\n"
    payload = the_operation(f"{text}comm.send(x, dest=1)\n").send
    assert payload.kind is PayloadKind.ARRAY
    assert payload.view.shape == tuple(map(num, expected.shape))
    assert payload.dtype == expected.dtype.name


@pytest.mark.parametrize("name", MODERN)
def test_without_a_size_they_are_numbers(name: str) -> None:
    text = f"x = np.random.default_rng(1).{name}({', '.join(before_size(name))})\n"
    payload = the_operation(f"{text}comm.send(x, dest=1)\n").send
    assert payload is not None and payload.kind is PayloadKind.SCALAR


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


@settings(max_examples=200, deadline=None)
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
    assert [one.operations for one in made] == [num(24), num(24), num(24)]
    assert {buffer.name for buffer in function.buffers} == {"v", "w"}
