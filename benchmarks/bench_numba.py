"""How much longer numba compiles with the pass that looks at its facts: at most 10 per cent.

Each round compiles the same functions afresh in one process, with and without the pass, in an
order that alternates; the median of the rounds' quotients is compared with the limit. The report
at the end of a program is timed apart: it is made after the program, not while it compiles.

    python benchmarks/bench_numba.py
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from types import FunctionType

import numba
import numpy as np

from advisor.compiler import AdvisedCompiler, record
from advisor.compiler.advice import advise_on

LIMIT = 1.10


def scaled(a, out):
    """Multiply element by element."""
    n, m = a.shape
    for i in range(n):
        for j in range(m):
            out[i, j] = 2.0 * a[i, j]


def smoothed(a, out):
    """Take the mean of four neighbours."""
    n, m = a.shape
    for i in range(1, n - 1):
        for j in range(1, m - 1):
            out[i, j] = 0.25 * (a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1])


def in_parallel(a, out):
    """Add roots, rows in parallel."""
    for i in numba.prange(a.shape[0]):
        for j in range(a.shape[1]):
            out[i, j] = np.sqrt(a[i, j]) + a[i, j]


FUNCTIONS = ((scaled, False), (smoothed, False), (in_parallel, True))


def main() -> int:
    """Print a line for each function; return 1 where all together are over the limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=11)
    rounds = parser.parse_args().rounds
    array = np.ones((40, 30))
    _compile_s(in_parallel, array, parallel=True, advised=True)
    print(f"{'compiling':<14}{'plain (ms)':>12}{'advised (ms)':>14}{'quotient':>10}")
    together: list[tuple[float, float]] = [(0.0, 0.0)] * rounds
    for function, parallel in FUNCTIONS:
        pairs = [_pair(function, array, parallel, turn) for turn in range(rounds)]
        together = [(p + a, q + b) for (p, q), (a, b) in zip(together, pairs, strict=True)]
        _show(function.__name__, pairs)
    quotient = _show("all", together)
    print(f"  limit {LIMIT}; {rounds} rounds in alternating order")
    report = _timed_s(lambda: advise_on(record.gathered(), "t3e"))
    print(f"the report at the end of the program: {1000 * report:.0f} ms, imports included")
    return int(quotient > LIMIT)


def _pair(
    function: Callable[..., None], array: np.ndarray, parallel: bool, turn: int
) -> tuple[float, float]:
    order = (False, True) if turn % 2 else (True, False)
    found = {
        advised: _compile_s(function, array, parallel=parallel, advised=advised)
        for advised in order
    }
    return found[False], found[True]


def _compile_s(
    function: Callable[..., None], array: np.ndarray, *, parallel: bool, advised: bool
) -> float:
    """Return the seconds of a first call, which compiles."""
    assert isinstance(function, FunctionType)
    fresh = FunctionType(function.__code__, function.__globals__, function.__name__)
    options = {"pipeline_class": AdvisedCompiler} if advised else {}
    record._facts.clear()
    made = numba.njit(parallel=parallel, **options)(fresh)
    seconds = _timed_s(lambda: made(array, array.copy()))
    assert len(record.gathered()) == advised
    return seconds


def _timed_s(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _show(name: str, pairs: Sequence[tuple[float, float]]) -> float:
    plain, advised = (1000 * statistics.median(side) for side in zip(*pairs, strict=True))
    quotient = statistics.median(after / before for before, after in pairs)
    print(f"{name:<14}{plain:>12.1f}{advised:>14.1f}{quotient:>10.3f}")
    return quotient


if __name__ == "__main__":
    sys.exit(main())
