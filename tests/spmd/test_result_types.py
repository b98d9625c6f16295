"""Element types and shapes of expressions: where they are told, they are those of NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from advisor.ir.spmd.memory import Contiguity
from advisor.ir.spmd.payloads import PayloadKind
from costdb.expr.nodes import Num
from tests.spmd.reading import operations, program

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
np.linspace(0, 1, 5, dtype=np.float32)
np.linspace(0, 1, 5, dtype='i4')
np.linspace(0, 1)
np.arange(5.0)
np.arange(0, 1, 0.1)
np.arange(5, dtype=float)
np.arange(1, 9, 2, dtype=np.float32)
np.bincount(i8)
np.bincount(i8, minlength=20)
np.bincount(i8, weights=v)
np.histogram(v, bins=10)[0]
f4 + 1
f4 + 1.0
f4 * f8
f4 * i4
i4 / 2
i4 // 2
i4 + i8
i4 + 1
i4 * 1.5
u1 + 1
u1 + u1
u1 / u1
np.sqrt(i4)
np.sqrt(f4)
np.sqrt(u1)
np.exp(c8)
np.abs(c8)
np.abs(c16)
abs(c16)
c8.real
c16.imag
np.real(c16)
np.conj(c8)
f4.sum(axis=0)
i4.sum(axis=0)
u1.sum(axis=0)
b.sum(axis=0)
f4.mean(axis=1)
i4.mean(axis=1)
f4.mean(axis=1, dtype=np.float64)
i4.sum(axis=0, dtype=np.int32)
np.cumsum(i4)
np.cumsum(i4, axis=0)
np.cumsum(u1, axis=1)
np.cumsum(f4, axis=0)
f8 > 0
~b
b & b
np.where(b, f4, 0)
np.where(b, f4, f8)
np.where(b, 1, 0)
np.where(b, 1.0, 0.0)
np.maximum(f4, 0)
np.maximum(f4, f8)
np.clip(f4, 0, 1)
np.minimum(i4, 3)
np.argsort(v)
np.sort(f4)
np.argmax(f4, axis=0)
f4.argmin(axis=1)
np.concatenate([f4, f8])
np.concatenate((v, i8))
np.vstack([f4, f4])
np.hstack((f4, f8))
np.stack([v, v])
np.stack([v, v], axis=1)
np.array([1, 2, 3])
np.array([1.0, 2])
np.array([[1, 2], [3, 4]], dtype=np.float32)
np.array(L)
np.array([True, False])
np.array([1j, 2])
np.asarray(f4, dtype=np.float64)
np.array(f4)
f4.astype(int)
f4.astype('f8')
f4.astype(np.complex64)
f4.T
f4.T.copy()
np.ascontiguousarray(f4.T)
f4.flatten()
f4.ravel()
f4.reshape(-1)
f4.reshape(-1, 8)
f4.reshape((2, 12))
f4[:, ::2]
f4[1]
f4[1:3, 2:]
f4[..., 0]
f4[None, :, 0]
f4[b]
v[i8]
f8[[0, 2]]
f8 @ v
f4 @ v
f4 @ f4.T
i4 @ i8
np.dot(f8, v)
np.outer(v, i8)
np.einsum('ij,j->i', f8, v)
np.tile(v, 3)
np.repeat(v, 2)
np.roll(f4, 1, axis=0)
np.pad(f4, 1)
np.diff(f4, axis=0)
np.diff(v)
np.gradient(v)
np.fft.fft(v)
np.fft.rfft(v)
np.fft.fft(c8)
np.fft.ifft(c16)
np.zeros_like(i4)
np.zeros_like(i4, dtype=float)
np.full(5, 3)
np.full(5, 3.0)
np.full((2, 3), 1, dtype=np.int16)
np.ones(4, bool)
np.ones(4, int)
np.empty(4, 'c16')
np.eye(3)
np.eye(3, dtype=np.float32)
np.identity(3)
np.meshgrid(v, v)[0]
np.power(f4, 2)
f4 ** 2
i4 ** 2
v ** 0.5
-u1
np.sin(i4)
np.mod(i4, 3)
f4 % 2
i4 % 2.5
np.floor(f4)
np.floor(i4)
np.round(f4)
np.sign(i4)
np.square(u1)
np.isnan(f4)
np.logical_and(b, b)
np.add(i4, 1, dtype=np.float64)
np.transpose(f4)
np.swapaxes(f4, 0, 1)
np.expand_dims(v, 0)
np.squeeze(f4[:1])
np.split(v, 2)[0]
np.array_split(v, 4)[0]
np.unique(i8)
np.nonzero(v)[0]
np.flatnonzero(v)
np.prod(i4, axis=0)
np.max(f4, axis=0)
f4.max(axis=(0, 1), keepdims=True)
f4.std(axis=0)
i4.var(axis=0)
np.linalg.norm(f4, axis=1)
np.cross(np.zeros(3), np.ones(3))
np.indices((3, 4))
np.tril(f4)
np.diag(v)
np.diag(f8)
np.trace(f8)
np.kron(v, v)
np.interp(v, v, f4[0])
np.column_stack((v, v))
np.r_[v, v]
np.searchsorted(v, v)
np.digitize(v, v)
np.take(f4, [0, 1], axis=0)
np.compress([True, False], v)
np.frombuffer(b.tobytes(), dtype=np.uint8)
f4.view(np.int32)
f4.view('u1')
c16.view(float)
np.float32(2) * f8
np.float64(2) * f4
np.int64(2) * i4
f4 * np.pi
f4 * v[0]
f4 * f8[0, 0]
f4 + f4.sum()
f4 * f8.sum()
i4 * i8.max()
f4 + len(L)
2 ** i4
1 / f4
1 / i4
1 - u1
3 * c8
f4 * 1j
np.hypot(f4, f4)
np.arctan2(i4, i4)
np.add.reduce(f4)
np.add.outer(v, v)
np.multiply(i4, 2.0)
np.true_divide(i4, i4)
np.where(v > 0)[0]
np.mean(u1, axis=0)
np.median(f4, axis=0)
np.average(f4, axis=0)
np.nan_to_num(f4)
f4.copy(order='F')
np.asfortranarray(f4)
np.flip(f4, 0)
f4[::-1]
np.moveaxis(f4, 0, 1)
np.broadcast_to(v, (3, 6))
np.copy(f4)
np.empty((3,) + f4.shape)
np.zeros(f4.shape[::-1])
np.zeros(f4.size)
np.zeros(len(f4))
np.logspace(0, 1, 7)
np.convolve(v, v)
np.convolve(v, v, mode='same')
np.correlate(v, v)
np.ptp(f4, axis=0)
np.percentile(f4, 5, axis=0)
np.count_nonzero(f4, axis=0)
np.any(f4, axis=0)
f4.all(axis=1)
np.bitwise_xor(i4, 1)
i4 << 2
i4 >> np.int64(1)
divmod(i4, 2)[0]
np.rint(i4)
np.cbrt(i4)
np.ldexp(f4, 2)
np.float32(f8)
np.int32(f8)
float(v[0]) * f4
complex(1) * f4
"""


@pytest.mark.parametrize("text", EXPRESSIONS.splitlines())
@pytest.mark.filterwarnings("ignore")
def test_what_is_told_of_arrays_is_true(text: str) -> None:
    names: dict[str, object] = {"np": np}
    exec(MADE, names)
    expected = eval(text, names)
    payload = operations(program(f"{MADE}x = {text}\ncomm.send(x, dest=1)\n"))[-1].send
    assert payload is not None
    if not isinstance(expected, np.ndarray):
        assert payload.kind is not PayloadKind.ARRAY or payload.view is None
        return
    assert payload.kind is not PayloadKind.SCALAR
    view = payload.view
    if view is None:
        return
    assert payload.dtype in (None, expected.dtype.name)
    if view.shape is not None:
        told = [extent.value if isinstance(extent, Num) else None for extent in view.shape]
        assert len(told) == expected.ndim
        assert all(one in (None, other) for one, other in zip(told, expected.shape, strict=True))
    flags = expected.flags
    if view.contiguity is not Contiguity.UNKNOWN:
        one_stretch = flags.c_contiguous or flags.f_contiguous
        assert (view.contiguity is Contiguity.YES) == one_stretch


@pytest.mark.parametrize(
    ("text", "dtype"),
    [
        ("np.abs(c8)", "float32"),
        ("u1.sum(axis=0)", "uint64"),
        ("np.cumsum(i4)", "int64"),
        ("np.where(b, 1, 0)", "int64"),
        ("f4.mean(axis=1, dtype=np.float64)", "float64"),
        ("f4 * 1j", "complex64"),
        ("np.arctan2(i4, i4)", "float64"),
        ("c16.real", "float64"),
    ],
)
def test_types_that_differ_from_those_of_the_operands_are_told(text: str, dtype: str) -> None:
    payload = operations(program(f"{MADE}x = {text}\ncomm.send(x, dest=1)\n"))[-1].send
    assert payload is not None and payload.dtype == dtype
