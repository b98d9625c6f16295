"""What comes anew from the system: drains of a heap by hand, and faults of real processes."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Iterator

import pytest

from advisor.analysis.lower import lower
from advisor.analysis.temporaries import drains_of
from advisor.frontend.kernels import read_kernels
from advisor.ir.kernel import Kernel
from advisor.verify.cases import alone
from costdb.arrays.fresh import given_anew
from costdb.expr import evaluate, num
from costdb.process.terms import Branch, Leaf, Process, SeqLoop, Sequential
from costdb.work import ArrayCall, ArrayOperation, Drain, FreshMemory, Region, Visit

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


HEAD = "import numpy as np\n# advise: kernel N={n} T=5\n{arrays}def f({names}):\n"
BODIES = {
    "step": ("u", 200_000, "u[1:-1] = u[1:-1] - (u[2:] - 2 * u[1:-1])"),
    "sum": ("u", 100_000, "u[:] = u * u + (u - 1.0) * (u + 1.0)"),
    "least": ("uv", 70_000, "v[:] = np.minimum(u, u + v)"),
    "one": ("u", 200_000, "u[:] = u + 1.0"),
}
NAMES = "    a = u + 1.0\n    b = a * u\n    u[:] = np.sqrt(b) - a"
KERNELS = {
    **{
        name: (names, n, f"    for _ in range(5):\n        {body}")
        for name, (names, n, body) in BODIES.items()
    },
    "names": ("u", 150_000, NAMES),
}
RUN = """
import resource, sys
import numpy as np
exec(sys.argv[1])
n, count = map(int, sys.argv[2:])
# what the library loads for its first large expression must not lie above what that makes
np.ones(40_000) + 1.0 + 1.0
np.empty(n * 8, np.uint8)
given = [np.full(n, 1.0) for _ in range(count)]
seen = []
for _ in range(6):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    f(*given)
    seen.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
print(sorted(seen)[2])
"""


def anew_bytes(process: Process, times: int = 1) -> Iterator[float]:
    match process:
        case Leaf(FreshMemory() as work):
            yield times * sum(float(evaluate(part, {})) for part in given_anew(work))
        case Sequential(parts):
            for part in parts:
                yield from anew_bytes(part, times)
        case SeqLoop(_, low, high, body):
            yield from anew_bytes(body, times * int(evaluate(high - low + 1, {})))
        case Branch(condition, then, orelse):
            yield from anew_bytes(then if evaluate(condition, {}) else orelse, times)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library's heap")
@pytest.mark.parametrize("name", KERNELS)
def test_pages_that_come_anew_are_those_of_a_real_process(name: str) -> None:
    names, n, body = KERNELS[name]
    arrays = "".join(f"# advise: {one}: f8[N] over (block(p)) on mesh(p=1)\n" for one in names)
    source = HEAD.format(n=n, arrays=arrays, names=", ".join(names)) + body + "\n"
    kernel = concrete(read_kernels("kernel.py", source)[0], n)
    pages = sum(anew_bytes(lower(kernel))) / 4096
    ended = subprocess.run(
        [sys.executable, "-c", RUN, source, str(n), str(len(names))],
        capture_output=True, text=True, check=True, env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )  # fmt: skip
    assert int(ended.stdout) == pytest.approx(pages, rel=0.1, abs=20)


def concrete(kernel: Kernel, n: int) -> Kernel:
    from advisor.ir.concrete import at_sizes

    return at_sizes(alone(kernel), {"N": n, "T": 5})
