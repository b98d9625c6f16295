"""What comes anew from the system: drains of a heap by hand, and faults of real processes."""

from __future__ import annotations

import mmap
import os
import platform
import subprocess
import sys

import pytest

from advisor.analysis.loops.turns import process_symbols
from advisor.analysis.lower import lower
from advisor.analysis.temporaries import drains_of
from advisor.frontend.kernels import read_kernels
from advisor.ir.kernel import Kernel
from advisor.verify.running import alone
from costdb.arrays.heap import Anew, come_anew, largest
from costdb.expr import evaluate, num
from costdb.heap_work import Drain, FreshMemory
from costdb.process.terms import Leaf, Sequential
from costdb.work import ArrayCall, ArrayOperation, Region, Visit

ONE, OTHER = num(8_000), num(16_000)


def made(*operands: Visit | None, size: int = 1000, reuses: bool = False) -> ArrayCall:
    """Return a call; an operand that is None is the result of an earlier one."""
    region = Region(8, (num(size),), (num(8),))
    given = tuple(Visit(region) if one is None else one for one in operands)
    kind = ArrayOperation.BINARY
    return ArrayCall(kind, "float64", num(size), Visit(region), given, fresh=True, reuses=reuses)


NAMED = Visit(Region(8, (num(1000),), (num(8),)), "a")


def test_results_take_the_place_of_freed_ones_of_equal_size() -> None:
    # ((a + a) - a) - a: the third result lies where the first one was
    calls = [made(NAMED, NAMED), made(None, NAMED), made(None, NAMED)]
    first = Drain((ONE,))
    assert drains_of(calls, binds=False, elides=True) == (first, Drain((ONE,), (ONE,)))
    # with a name, the third one stays
    assert drains_of(calls, binds=True, elides=True) == (first,)


def test_results_in_the_place_of_an_operand_take_nothing() -> None:
    calls = [made(NAMED, NAMED), made(None, NAMED, reuses=True), made(None, NAMED, reuses=True)]
    assert drains_of(calls, binds=False, elides=True) == (Drain((ONE,)),)
    assert drains_of(calls, binds=True, elides=True) == ()
    assert len(drains_of(calls, binds=False, elides=False)) == 2


def test_what_lies_below_is_freed_with_what_lies_at_the_end() -> None:
    # (a + a) is freed first, below the result of the second: both become free with that
    calls = [made(NAMED, NAMED), made(None, NAMED, size=2000)]
    assert drains_of(calls, binds=False, elides=True) == (Drain((OTHER, ONE)),)


def test_what_loops_leave_is_what_their_last_iterations_left() -> None:
    """What a kernel frees at its end stands outside the loops whose indices sizes depend on."""
    source = (
        "import numpy as np\n# advise: kernel N=500 M=200\n# advise: data: f8[N, M]\n"
        "def f(data, N, M):\n    made = np.zeros((M, M))\n    for i in range(M):\n"
        "        for j in range(i):\n            made[i, i:M] = data[j, i:M] * 2.0 + data[i, i:M]\n"
        "        made[i, i:M] = data[:, i] @ data[:, i:M]\n    return made\n"
    )
    made = lower(read_kernels("f.py", source)[0])
    assert isinstance(made, Sequential)
    ended = made.parts[0]
    assert isinstance(ended, Leaf)
    assert isinstance(ended.work, FreshMemory)
    # in the last iteration one element is left of each row
    assert ended.work.drains[-1].before_bytes[0] == num(8)
    assert process_symbols(ended) <= {"N", "M"}


HEAD = "import numpy as np\n# advise: kernel N={n} T=5\n{arrays}def f({names}):\n"
LOOPS = {
    "step": ("u", "f8[N]", 200_000, "u[1:-1] = u[1:-1] - (u[2:] - 2 * u[1:-1])"),
    "sum": ("u", "f8[N]", 100_000, "u[:] = u * u + (u - 1.0) * (u + 1.0)"),
    "least": ("uv", "f8[N]", 70_000, "v[:] = np.minimum(u, u + v)"),
    "one": ("u", "f8[N]", 200_000, "u[:] = u + 1.0"),
    # a number of Python has 64 bits: the library adds into no operand of 32
    "narrow": ("u", "f4[N]", 400_000, "u[:] = 0.5 * (u + u)"),
    "rows": ("uv", "f8[N, N]", 400, "v[1:-1, 1:-1] = u[1:-1, 1:-1] + 0.1 * (u[:-2, 1:-1] - 2.0 *"
             " u[1:-1, 1:-1] + u[2:, 1:-1])"),
    "wider": ("uv", "i4[N]", 300_000, "u[:] = np.cumsum(v)"),
    "smooth": ("u", "c16[N]", 60_000, "u[:] = np.fft.fft(u)"),
    "awkward": ("u", "c16[N]", 30_011, "u[:] = np.fft.ifft(u)"),
    "rolled": ("uv", "f8[N]", 150_000, "u[:] = np.minimum(np.roll(v, 1) + u, u * v)"),
    "wave": ("uv", "f8[N]", 120_000, "n = 2.0 * u - v\n        v = u\n        u = n"),
    "pair": ("uv", "f8[N]", 90_000, "n = 0.5 * (u + v)\n        m = 0.5 * (u - v)\n        u = n\n"
             "        v = m"),
}  # fmt: skip
NAMES = "    a = u + 1.0\n    b = a * u\n    u[:] = np.sqrt(b) - a"
KERNELS = {
    **{
        name: (names, kind, n, f"    for _ in range(5):\n        {body}")
        for name, (names, kind, n, body) in LOOPS.items()
    },
    "names": ("u", "f8[N]", 150_000, NAMES),
}
RUN = """
import resource, sys
import numpy as np
exec(sys.argv[1])
dtype, shape, gap = sys.argv[2], eval(sys.argv[3]), int(sys.argv[5])
# what the library loads for its first large expression must not lie above what that makes
np.ones(33_000) + 1.0 + 1.0
given = np.full(shape, 1, dtype)
size = given.nbytes
del given
given = [np.full(shape, 1, dtype) for _ in range(int(sys.argv[4]))]
if gap:
    # something small is taken while a large array lies at the end of the heap
    np.empty(gap, np.uint8)
    large = np.empty(gap, np.uint8)
    small = [np.empty(2048, np.uint8)]
    while small[-1].ctypes.data < large.ctypes.data:
        small.append(np.empty(2048, np.uint8))
    del large
seen = []
for _ in range(6):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    f(*given)
    seen.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
print(sorted(seen)[2])
"""


def followed(source: str, n: int) -> FreshMemory:
    made = lower(concrete(read_kernels("kernel.py", source)[0], n))
    assert isinstance(made, Sequential)
    first = made.parts[0]
    assert isinstance(first, Leaf)
    assert isinstance(first.work, FreshMemory)
    return first.work


def pages(anew: Anew) -> float:
    return float(evaluate(anew.small_bytes + anew.huge_bytes, {})) / 4096


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library's heap")
@pytest.mark.skipif(mmap.PAGESIZE != 4096, reason="pages of another size than predictions take")
@pytest.mark.parametrize("gap", [False, True])
@pytest.mark.parametrize("name", KERNELS)
def test_pages_that_come_anew_are_those_of_a_real_process(name: str, gap: bool) -> None:
    names, kind, n, body = KERNELS[name]
    layout = "(block(p), none)" if "," in kind else "(block(p))"
    arrays = "".join(f"# advise: {one}: {kind} over {layout} on mesh(p=1)\n" for one in names)
    source = HEAD.format(n=n, arrays=arrays, names=", ".join(names)) + body + "\n"
    work = followed(source, n)
    usual, kept = map(pages, come_anew(work))
    shape = str((n, n) if "," in kind else (n,))
    room = largest(work.steps) if gap else 0
    told = source, kind.partition("[")[0], shape, str(len(names)), str(room)
    ended = subprocess.run(
        [sys.executable, "-c", RUN, *told],
        capture_output=True, text=True, check=True, env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )  # fmt: skip
    assert int(ended.stdout) == pytest.approx(kept if gap else usual, rel=0.03, abs=20)


def concrete(kernel: Kernel, n: int) -> Kernel:
    from advisor.ir.concrete import at_sizes

    return at_sizes(alone(kernel), {"N": n, "T": 5})
